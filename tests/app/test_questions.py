"""Sources of answers for a step that asks, its question without one, and the effect of time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from planrun.actions.environment import RunEnvironment
from planrun.actions.prepare import Steps
from planrun.approval.answers import Answer, Answers
from planrun.approval.gates import MAX_QUESTION, Questions
from planrun.clock import between, later
from planrun.expressions.parse import parse, parse_template
from planrun.model import events as ev
from planrun.model.plan import Param, Plan, Step
from planrun.model.state import RunState
from planrun.plan.kinds.question import Ask, Decide, Option

if TYPE_CHECKING:
    from typing import Any

    from planrun.model.job import Passage

START = "2026-01-31T23:59:59.900Z"


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 0.0

    def stamp(self) -> str:
        return later(START, self.now)

    def monotonic(self) -> float:
        return self.now


class AskingRun:
    """A run with one step, which asks."""

    def __init__(
        self, action: Ask | Decide, answers: Answers | None = None, approved: str = "", **params: Any
    ) -> None:
        kind: Any = "ask" if isinstance(action, Ask) else "decide"
        self.step = Step(id="x", kind=kind, action=action)
        names = tuple(Param(name=name, schema={}) for name in params)
        self.state = RunState(Plan(name="p", file="p.yml", digest="0", steps=(self.step,), params=names))
        self.state.params = params
        self.clock = Clock()
        place = RunEnvironment(run="r", workspace="/", rundir="/", env={}, shell=("sh",), context={})
        self.steps = Steps(place)
        self.questions = Questions(
            answers or Answers(),
            self.steps,
            self.clock,
            lambda _step: (approved, "Ann") if approved else None,
        )

    def judge(self) -> Passage:
        """Judge the step and apply the events, as the engine does."""
        passage = self.questions.judge(self.step, self.state)
        for event in (passage.opened, passage.answered):
            if event is not None:
                self.state.apply(event)
        return passage

    def answer(self, value: Any) -> None:
        """Record an answer of the user."""
        self.state.apply(
            ev.GateAnswered(at=self.clock.stamp(), step="x", answer=value, via="command", by="Ann")
        )

    def resumed(self) -> None:
        """Resume the run: waiting steps are pending again and keep their gates."""
        self.state.steps["x"].status = "pending"


def answered(passage: Passage) -> tuple[str, Any, str]:
    """Return answer and source of a passage that allows a step."""
    assert passage.answered is not None
    return passage.answer, passage.answered.answer, passage.answered.via


STORES = (
    Option(label="Redis", value="redis", description="Fast.", when=parse("params.ci")),
    Option(label="SQLite", value="sqlite", when=parse("true")),
)
SURE = Ask(question="Sure?")
STORE = Decide(question="Which?", options=STORES)


def test_the_event_has_the_whole_question() -> None:
    """The event has header, options, several or one, the default and the end of the time; the step waits."""
    plain = tuple(option.but(when=None) for option in STORES)
    action = Decide(
        question="Which?",
        header="Store",
        options=plain,
        multi_select=True,
        default=(["redis"],),
        timeout=90.0,
    )
    asking = AskingRun(action)
    passage = asking.judge()
    assert (passage.answer, passage.seconds) == ("ask", 90.0)
    assert passage.opened == ev.GateOpened(
        at=START,
        step="x",
        kind="decide",
        question="Which?",
        header="Store",
        options=(
            {"label": "Redis", "value": "redis", "description": "Fast."},
            {"label": "SQLite", "value": "sqlite", "description": ""},
        ),
        multi=True,
        default=(["redis"],),
        until="2026-02-01T00:01:29.900Z",
    )
    assert (asking.state.steps["x"].status, asking.state.steps["x"].reason) == ("waiting", "decision")
    assert asking.judge().opened is None  # it stands at its gate


def test_answers_are_looked_for_in_order() -> None:
    """Given ones, recorded ones, an approval, a policy, criteria: the first that is there."""
    given = {"x": Answer(value="sqlite", via="file")}
    policy = {"x": Answer(value="sqlite", via="policy", rule="plan:decisions.x")}
    asking = AskingRun(STORE, Answers(given=given, of_policies=policy), ci=True)
    asking.answer("redis")
    assert answered(asking.judge()) == ("allow", "sqlite", "file")
    asking = AskingRun(STORE, Answers(of_policies=policy), ci=True)
    assert answered(asking.judge()) == ("allow", "sqlite", "policy")
    asking = AskingRun(STORE, Answers(of_policies=policy), ci=True)
    asking.answer("redis")
    assert (asking.judge().answer, asking.judge().answered) == ("allow", None)
    assert answered(AskingRun(STORE, ci=True).judge()) == ("allow", "redis", "criteria")
    assert answered(AskingRun(STORE, ci=False).judge()) == ("allow", "sqlite", "criteria")
    policy = {"x": Answer(value=False, via="policy")}
    assert answered(AskingRun(SURE, Answers(of_policies=policy), approved="a1").judge()) == (
        "allow",
        True,
        "approval",
    )
    assert (
        AskingRun(STORE.but(options=tuple(each.but(when=None) for each in STORES)), approved="a1")
        .judge()
        .answer
        == "ask"
    )


def test_several_criteria_choose_several_options() -> None:
    """For `multi_select` every option whose criterion holds is chosen."""
    assert answered(AskingRun(STORE.but(multi_select=True), ci=True).judge()) == (
        "allow",
        ["redis", "sqlite"],
        "criteria",
    )


def test_a_default_counts_when_the_time_is_over() -> None:
    """Before, it is no answer; then it is, and without one the step is denied as late."""
    asking = AskingRun(Ask(question="Sure?", default=(False,), timeout=60.0))
    assert (asking.judge().answer, asking.judge().seconds) == ("ask", 60.0)
    asking.clock.now = 60.0
    assert answered(asking.judge()) == ("allow", False, "timeout")
    late = AskingRun(Ask(question="Sure?", timeout=60.0))
    late.judge()
    late.clock.now = 61.0
    passage = late.judge()
    assert (passage.answer, passage.is_late) == ("deny", True)
    assert passage.reason == "no answer until 2026-02-01T00:00:59.900Z"
    forever = AskingRun(Ask(question="Sure?", default=(True,)))
    assert (forever.judge().answer, forever.judge().seconds) == ("ask", None)


def test_the_time_of_a_question_counts_while_the_run_is_paused() -> None:
    """A resume asks again and waits for what is left of the first time; an answer that came meanwhile counts."""
    for answer in (None, True):
        asking = AskingRun(Ask(question="Sure?", default=(False,), timeout=60.0))
        asking.judge()
        if answer is not None:
            asking.answer(answer)
        asking.clock.now = 45.0
        asking.resumed()
        passage = asking.judge()
        if answer is None:
            assert passage.opened is not None
            assert (passage.answer, passage.seconds, passage.opened.until) == (
                "ask",
                15.0,
                later(START, 60.0),
            )
        else:
            assert (passage.answer, passage.opened, passage.answered) == ("allow", None, None)


def test_an_answer_is_one_to_the_question_that_was_asked() -> None:
    """When its values are others on a resume, the question is another one and is asked again, with new time."""
    asking = AskingRun(Ask(question=parse_template("Publish ${{ params.v }}?"), timeout=60.0), v="1.0")
    assert asking.judge().opened is not None
    asking.answer(True)
    asking.state.params = {"v": "2.0"}
    asking.clock.now = 30.0
    asking.resumed()
    passage = asking.judge()
    assert passage.opened is not None
    assert (passage.answer, passage.opened.question, passage.seconds) == ("ask", "Publish 2.0?", 60.0)
    assert asking.state.steps["x"].gate is not None
    assert asking.state.steps["x"].gate.answered is None


def test_an_answer_that_came_first_holds() -> None:
    """An answer may be given before the step asks; one that is invalid in another plan does not count."""
    asking = AskingRun(STORE)
    asking.answer("redis")
    passage = asking.judge()
    assert (passage.answer, passage.answered) == ("allow", None)
    assert passage.opened is not None
    asking = AskingRun(STORE.but(options=tuple(each.but(when=None) for each in STORES)))
    asking.answer("mysql")
    assert asking.judge().answer == "ask"


def test_a_question_is_one_clean_text() -> None:
    """Values are data: no control characters, no commands to CI, no line breaks, at most 2,000 characters."""
    asking = AskingRun(
        Ask(question=parse_template("Is ${{ params.t }} right?")), t="a\x1b[2J\n::error::b ##[c]" + "x" * 9000
    )
    opened = asking.judge().opened
    assert opened is not None
    assert opened.question.startswith("Is a ")
    assert len(opened.question) == MAX_QUESTION
    assert not set("\x1b\n") & set(opened.question)
    assert "##[" not in opened.question


def test_a_question_without_a_value_fails_the_step() -> None:
    """The step passes its gate unasked, and its start fails with the reason."""
    for action in (
        Ask(question=parse_template("Publish ${{ params.absent }}?")),
        Decide(question="?", options=(Option(label="a", value="a", when=parse("params.absent")),)),
        Decide(question="?", options=(Option(label="a", value="a", when=parse("'a'")),)),
    ):
        asking = AskingRun(action)
        passage = asking.judge()
        assert (passage.answer, passage.opened, passage.answered) == ("allow", None, None)
        outcome = asking.steps.prepare(asking.step, 1, asking.state).outcome
        assert outcome is not None
        assert (outcome.status, outcome.reason) == ("failed", "refused")


def test_a_step_without_an_answer_is_refused() -> None:
    """Without an answer on record a step is refused, also after its gate allowed it."""
    for action in (SURE, STORE.but(options=tuple(each.but(when=None) for each in STORES))):
        asking = AskingRun(action)
        outcome = asking.steps.prepare(asking.step, 1, asking.state).outcome
        assert outcome is not None
        assert (outcome.status, outcome.reason, outcome.message) == (
            "failed",
            "refused",
            "no one answered it",
        )


def test_early_answers_hold_for_a_resumed_run() -> None:
    """The caller's answers are in the first event, for other processes too; a recorded no is final."""
    asking = AskingRun(SURE)
    asking.state.answers = {"x": {"value": True, "via": "option"}}
    answered = asking.judge().answered
    assert answered is not None
    assert (answered.step, answered.answer, answered.via) == ("x", True, "option")
    asking = AskingRun(SURE, Answers(given={"x": Answer(value=True, via="option")}))
    no = ev.GateAnswered(at=START, step="x", answer=False, via="command")
    asking.state.apply(no)
    assert asking.judge().answered is None
    assert asking.state.steps["x"].gate is not None
    assert asking.state.steps["x"].gate.answered == no


def test_stamps_are_reckoned_with() -> None:
    """Across days, months and leap days, to the millisecond, as the system's own clock does."""
    for seconds in (0.0, 0.1, 0.101, 86400.0, 86400.0 * 400, 31.5):
        assert between(START, later(START, seconds)) == pytest.approx(seconds, abs=1e-9)
    assert later("2028-02-28T23:59:59.999Z", 0.001) == "2028-02-29T00:00:00.000Z"
    assert later(START, 0.2) == time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(1769904000)) + ".100Z"
