"""Where the answer of a step that asks comes from, what is asked when there is none, and what time does to it."""

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


class Room:
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
        """Judge the step and apply what comes of it, as the engine does."""
        passage = self.questions.judge(self.step, self.state)
        for event in (passage.opened, passage.answered):
            if event is not None:
                self.state.apply(event)
        return passage

    def answer(self, value: Any) -> None:
        """Record an answer of somebody."""
        self.state.apply(
            ev.GateAnswered(at=self.clock.stamp(), step="x", answer=value, via="command", by="Ann")
        )

    def resumed(self) -> None:
        """Have the run go on as a resume does: what waited is pending again and keeps its gate."""
        self.state.steps["x"].status = "pending"


def answered(passage: Passage) -> tuple[str, Any, str]:
    """Return answer and source of a passage that lets a step in."""
    assert passage.answered is not None
    return passage.answer, passage.answered.answer, passage.answered.via


STORES = (
    Option(label="Redis", value="redis", description="Fast.", when=parse("params.ci")),
    Option(label="SQLite", value="sqlite", when=parse("true")),
)
SURE = Ask(question="Sure?")
STORE = Decide(question="Which?", options=STORES)


def test_what_is_asked_is_told_whole() -> None:
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
    room = Room(action)
    passage = room.judge()
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
    assert (room.state.steps["x"].status, room.state.steps["x"].reason) == ("waiting", "decision")
    assert room.judge().opened is None  # it stands at its gate


def test_answers_are_looked_for_in_order() -> None:
    """Given ones, recorded ones, an approval, a policy, criteria: the first that is there."""
    given = {"x": Answer(value="sqlite", via="file")}
    policy = {"x": Answer(value="sqlite", via="policy", rule="plan:decisions.x")}
    room = Room(STORE, Answers(given=given, of_policies=policy), ci=True)
    room.answer("redis")
    assert answered(room.judge()) == ("allow", "sqlite", "file")
    room = Room(STORE, Answers(of_policies=policy), ci=True)
    assert answered(room.judge()) == ("allow", "sqlite", "policy")
    room = Room(STORE, Answers(of_policies=policy), ci=True)
    room.answer("redis")
    assert (room.judge().answer, room.judge().answered) == ("allow", None)
    assert answered(Room(STORE, ci=True).judge()) == ("allow", "redis", "criteria")
    assert answered(Room(STORE, ci=False).judge()) == ("allow", "sqlite", "criteria")
    policy = {"x": Answer(value=False, via="policy")}
    assert answered(Room(SURE, Answers(of_policies=policy), approved="a1").judge()) == (
        "allow",
        True,
        "approval",
    )
    assert (
        Room(STORE.but(options=tuple(each.but(when=None) for each in STORES)), approved="a1").judge().answer
        == "ask"
    )


def test_several_criteria_choose_several_options() -> None:
    """For `multi_select` every option whose criterion holds is chosen."""
    assert answered(Room(STORE.but(multi_select=True), ci=True).judge()) == (
        "allow",
        ["redis", "sqlite"],
        "criteria",
    )


def test_a_default_counts_when_the_time_is_over() -> None:
    """Before, it is no answer; then it is, and without one the step is denied as late."""
    room = Room(Ask(question="Sure?", default=(False,), timeout=60.0))
    assert (room.judge().answer, room.judge().seconds) == ("ask", 60.0)
    room.clock.now = 60.0
    assert answered(room.judge()) == ("allow", False, "timeout")
    late = Room(Ask(question="Sure?", timeout=60.0))
    late.judge()
    late.clock.now = 61.0
    passage = late.judge()
    assert (passage.answer, passage.is_late) == ("deny", True)
    assert passage.reason == "no answer until 2026-02-01T00:00:59.900Z"
    forever = Room(Ask(question="Sure?", default=(True,)))
    assert (forever.judge().answer, forever.judge().seconds) == ("ask", None)


def test_the_time_of_a_question_goes_on_while_nobody_works_on_the_run() -> None:
    """A resume asks again and waits for what is left of the first time; an answer that came meanwhile counts."""
    for answer in (None, True):
        room = Room(Ask(question="Sure?", default=(False,), timeout=60.0))
        room.judge()
        if answer is not None:
            room.answer(answer)
        room.clock.now = 45.0
        room.resumed()
        passage = room.judge()
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
    room = Room(Ask(question=parse_template("Publish ${{ params.v }}?"), timeout=60.0), v="1.0")
    assert room.judge().opened is not None
    room.answer(True)
    room.state.params = {"v": "2.0"}
    room.clock.now = 30.0
    room.resumed()
    passage = room.judge()
    assert passage.opened is not None
    assert (passage.answer, passage.opened.question, passage.seconds) == ("ask", "Publish 2.0?", 60.0)
    assert room.state.steps["x"].gate is not None
    assert room.state.steps["x"].gate.answered is None


def test_an_answer_that_came_first_holds() -> None:
    """Somebody may answer before the step asks; what is no answer any more, in another plan, is none."""
    room = Room(STORE)
    room.answer("redis")
    passage = room.judge()
    assert (passage.answer, passage.answered) == ("allow", None)
    assert passage.opened is not None
    room = Room(STORE.but(options=tuple(each.but(when=None) for each in STORES)))
    room.answer("mysql")
    assert room.judge().answer == "ask"


def test_a_question_is_one_clean_text() -> None:
    """Values are data: no control characters, no commands to CI, no line breaks, at most 2,000 characters."""
    room = Room(
        Ask(question=parse_template("Is ${{ params.t }} right?")), t="a\x1b[2J\n::error::b ##[c]" + "x" * 9000
    )
    opened = room.judge().opened
    assert opened is not None
    assert opened.question.startswith("Is a ")
    assert len(opened.question) == MAX_QUESTION
    assert not set("\x1b\n") & set(opened.question)
    assert "##[" not in opened.question


def test_a_question_without_a_value_lets_nobody_in() -> None:
    """The step is let through to where it is refused with the reason: nobody is asked, and it does not pass."""
    for action in (
        Ask(question=parse_template("Publish ${{ params.absent }}?")),
        Decide(question="?", options=(Option(label="a", value="a", when=parse("params.absent")),)),
        Decide(question="?", options=(Option(label="a", value="a", when=parse("'a'")),)),
    ):
        room = Room(action)
        passage = room.judge()
        assert (passage.answer, passage.opened, passage.answered) == ("allow", None, None)
        outcome = room.steps.prepare(room.step, 1, room.state).outcome
        assert outcome is not None
        assert (outcome.status, outcome.reason) == ("failed", "refused")


def test_nothing_passes_that_nobody_answered() -> None:
    """Without an answer on record a step is refused, whoever let it start."""
    for action in (SURE, STORE.but(options=tuple(each.but(when=None) for each in STORES))):
        room = Room(action)
        outcome = room.steps.prepare(room.step, 1, room.state).outcome
        assert outcome is not None
        assert (outcome.status, outcome.reason, outcome.message) == (
            "failed",
            "refused",
            "nobody answered it",
        )


def test_early_answers_hold_for_a_run_that_goes_on() -> None:
    """What the caller gave is in the first event, and another process finds it there; a recorded no is final."""
    room = Room(SURE)
    room.state.answers = {"x": {"value": True, "via": "option"}}
    answered = room.judge().answered
    assert answered is not None
    assert (answered.step, answered.answer, answered.via) == ("x", True, "option")
    room = Room(SURE, Answers(given={"x": Answer(value=True, via="option")}))
    no = ev.GateAnswered(at=START, step="x", answer=False, via="command")
    room.state.apply(no)
    assert room.judge().answered is None
    assert room.state.steps["x"].gate is not None
    assert room.state.steps["x"].gate.answered == no


def test_stamps_are_reckoned_with() -> None:
    """Across days, months and leap days, to the millisecond, as the system's own clock does."""
    for seconds in (0.0, 0.1, 0.101, 86400.0, 86400.0 * 400, 31.5):
        assert between(START, later(START, seconds)) == pytest.approx(seconds, abs=1e-9)
    assert later("2028-02-28T23:59:59.999Z", 0.001) == "2028-02-29T00:00:00.000Z"
    assert later(START, 0.2) == time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(1769904000)) + ".100Z"
