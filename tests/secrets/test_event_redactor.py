"""What is masked of events, plans and errors, and what a run goes by and is not."""

from __future__ import annotations

from typing import Any

import pytest

from planrun.model import events as ev
from planrun.model.plan import Plan, Step
from planrun.plan.kinds.command import Run
from planrun.plan.kinds.question import Ask, Decide, Option
from planrun.secrets.masker import Masker
from planrun.secrets.redactor import EventRedactor

SECRET = "s3cr3t-0123456789"
REDACTOR = EventRedactor(Masker({"TOKEN": SECRET}))


def start(**fields: Any) -> ev.RunStarted:
    """Return the first event of a run."""
    known: dict[str, Any] = {
        "at": "2026-01-31T09:30:00.000Z",
        "run": "20260131-093000-000000",
        "planrun": "0",
        "plan": {"name": "p", "version": 1, "digest": "d", "sha256": "s", "file": "p.yml"},
        "params": {},
        "context": {"ci": True, "ref": "", "sha": "", "event": ""},
        "options": {"selection": {"only": ["a"]}},
        "pid": 1,
        "host": "h",
    }
    return ev.RunStarted(**{**known, **fields})


def end(**fields: Any) -> ev.AttemptEnded:
    """Return the end of an attempt."""
    return ev.AttemptEnded(at="t", step="a", n=1, status="failed", step_status="failed", **fields)


def test_an_event_without_secrets_stays_the_same() -> None:
    """So most events cost nothing but the look at them."""
    for event in (end(), ev.RunEnding(at="t", why="cancel"), ev.PlanMoved(at="t", status="executing")):
        assert REDACTOR.mask_event(event) is event
    assert REDACTOR.mask_event(start()) == start()


def test_what_people_and_steps_wrote_is_masked() -> None:
    """Names and files, parameters, messages, outputs, checks and notes; also deep inside of values."""
    found = REDACTOR.mask_event(
        start(
            plan={"name": SECRET, "version": 1, "digest": "d", "sha256": "s", "file": f"{SECRET}/p.yml"},
            params={"a": [{"b": f"x{SECRET}"}]},
            context={"ci": True, "ref": f"refs/{SECRET}", "sha": "", "event": ""},
        )
    )
    assert isinstance(found, ev.RunStarted)
    assert found.plan == {"name": "***", "version": 1, "digest": "d", "sha256": "s", "file": "***/p.yml"}
    assert found.params == {"a": [{"b": "x***"}]}
    assert found.context == {"ci": True, "ref": "refs/***", "sha": "", "event": ""}
    ended = REDACTOR.mask_event(
        end(
            error={"class": "logic", "rule": "r", "message": f"no {SECRET}"},
            checks=({"name": f"that: {SECRET}", "ok": False, "message": SECRET},),
            notes=(SECRET,),
        )
    )
    assert isinstance(ended, ev.AttemptEnded)
    assert ended.error == {"class": "logic", "rule": "r", "message": "no ***"}
    assert ended.checks == ({"name": "that: ***", "ok": False, "message": "***"},)
    assert ended.notes == ("***",)
    moved = REDACTOR.mask_event(
        ev.StepMoved(at="t", step="a", status="failed", reason="refused", message=SECRET)
    )
    assert isinstance(moved, ev.StepMoved)
    assert moved.message == "***"


def test_an_output_that_held_a_secret_is_named() -> None:
    """The note stands behind those that were there; outputs without secrets keep their types."""
    found = REDACTOR.mask_event(end(outputs={"a": SECRET, "n": 3, "l": [1, f"-{SECRET}"]}, notes=("before",)))
    assert isinstance(found, ev.AttemptEnded)
    assert found.outputs == {"a": "***", "n": 3, "l": [1, "-***"]}
    assert found.notes == (
        "before",
        'the output "a" held a secret; it is recorded and handed on masked',
        'the output "l" held a secret; it is recorded and handed on masked',
    )


def test_what_a_run_goes_by_is_left_alone() -> None:
    """Ids, fingerprints, logs, hashes and the selection lead from one record to the other."""
    event = ev.AttemptStarted(at="t", step=SECRET, n=1, fingerprint=SECRET, log=f"logs/{SECRET}/1.log")
    assert REDACTOR.mask_event(event) is event
    assert REDACTOR.mask_event(end(outputs={SECRET: "x"})) == end(outputs={SECRET: "x"})


def test_what_is_asked_and_answered_is_masked() -> None:
    """The question, what can be answered, why it is asked, the answer and who gave it; no kinds, rules and times."""
    opened = REDACTOR.mask_event(
        ev.GateOpened(
            at="t",
            step="a",
            kind="decide",
            question=f"Use {SECRET}?",
            header=SECRET,
            options=({"label": SECRET, "value": [SECRET], "description": f"the {SECRET}"},),
            schema={"type": "string", "enum": [SECRET]},
            default=(SECRET,),
            rule="plan:rules.1",
            reason=f"`echo {SECRET}`: unknown",
        )
    )
    assert opened == ev.GateOpened(
        at="t",
        step="a",
        kind="decide",
        question="Use ***?",
        header="***",
        options=({"label": "***", "value": ["***"], "description": "the ***"},),
        schema={"type": "string", "enum": ["***"]},
        default=("***",),
        rule="plan:rules.1",
        reason="`echo ***`: unknown",
    )
    answered = REDACTOR.mask_event(
        ev.GateAnswered(at="t", step="a", answer=[SECRET], via="command", by=SECRET)
    )
    assert answered == ev.GateAnswered(at="t", step="a", answer=["***"], via="command", by="***")
    resumed = REDACTOR.mask_event(
        start(options={"policy": {"told": SECRET}, "selection": {"only": [SECRET]}})
    )
    assert isinstance(resumed, ev.RunStarted)
    assert resumed.options == {"policy": {"told": "***"}, "selection": {"only": [SECRET]}}


def test_questions_of_a_plan_are_shown_masked_and_decide_the_same() -> None:
    """Texts that people read are masked, also around interpolations; values and criteria decide, and stay."""
    spoken = ("template", (f"Use {SECRET} for ", (("path", 0, 0, ("env", "X")), "env.X"), "?"))
    option = Option(label=SECRET, value=SECRET, description=f"the {SECRET}", when=("const", 0, 0, True))
    asks = Step(id="a", action=Ask(question=spoken, header=SECRET, default=(SECRET,)), kind="ask")
    decides = Step(id="b", action=Decide(question=f"{SECRET}?", options=(option,)), kind="decide")
    plain = Step(id="c", action=Ask(question="Go on?"), kind="ask", risk_reason=f"`echo {SECRET}`: high")
    plan = Plan(name="p", file="p.yml", digest="d", steps=(asks, decides, plain))
    first, second, third = REDACTOR.mask_plan(plan).steps
    assert isinstance(first.action, Ask)
    assert first.action.question == ("template", ("Use *** for ", spoken[1][1], "?"))
    assert (first.action.header, first.action.default) == ("***", (SECRET,))
    assert isinstance(second.action, Decide)
    assert second.action.question == "***?"
    assert second.action.options == (option.but(label="***", description="the ***"),)
    assert third.risk_reason == "`echo ***`: high"
    assert REDACTOR.mask_plan(plan.but(steps=(plain.but(risk_reason=""),))).steps == (
        plain.but(risk_reason=""),
    )


def test_every_kind_of_event_was_thought_of() -> None:
    """A new field of an event is either masked or known to hold nothing that people or steps wrote."""
    structural = {"at", "run", "planrun", "options", "pid", "host", "rerun", "lost", "status", "step", "n"}
    structural |= {
        "fingerprint",
        "log",
        "step_status",
        "reason",
        "exit_code",
        "duration",
        "log_bytes",
        "delay",
    }
    # Of a ledger whose end was dropped: how much, and which steps.
    structural |= {"discarded"}
    structural |= {"step_reason", "usage", "why", "signal", "verdict", "summary", "events", "retry"}
    # Of gates: `schema`, `options` and so on are masked, rules are ids of ours, and a digest is one.
    structural |= {"risk", "rule", "kind", "multi", "until", "via", "approval", "digest"}
    # Of models: what planrun itself says of calls, and the hash of what was asked.
    structural |= {
        "purpose",
        "steps",
        "call",
        "request",
        "reserved",
        "ending",
        "attempts",
        "is_estimate",
        "replayed",
    }
    structural |= {"scope", "resource", "level", "used", "limit", "outcome", "rounds"}
    # Of agents: ids, names of tools, types and modes, classes and effects of risk, and figures.
    structural |= {"agent", "agent_type", "mode", "workspace", "parent", "depth", "continues", "budget"}
    structural |= {"turn", "turns", "percent", "stats", "name", "sha256", "effects", "duration", "bytes"}
    structural |= {"before", "after", "left_out", "carries", "project"}
    # Of rounds and shortened questions: numbers, and names of the parts of a question. Of a cluster: an address.
    structural |= {"most", "cut", "worker"}
    masked = {"plan", "params", "context", "error", "outputs", "checks", "notes", "message", "program"}
    masked |= {"question", "header", "options", "schema", "default", "answer", "by"}
    masked |= {"model", "request_id", "refusals", "problems"}
    masked |= {"args", "summary", "evidence", "patch"}
    masked |= {"sandbox", "hooks", "proposed"}
    masked |= {"items", "files", "tools", "resources", "reports", "cache"}
    # Of results that are used again: the hash of what they depend on, and the id of the run that made them.
    structural |= {"key", "source"}
    # Names of locks are ids.
    structural |= {"lock"}
    structural |= {"finishes"}
    # Numbers of attempts, offsets in logs, hashes of logs.
    structural |= {"attempt", "stderr", "log_sha256"}
    # What agents note is masked, but for what it is found by; their ids are made of those of steps.
    masked |= {"change"}
    structural |= {"agent"}
    fields = {name for kind in ev.EVENTS.values() for name in kind.__annotations__}
    assert fields == structural | masked


AT = "2026-01-31T09:30:00.000Z"


def test_what_a_model_says_is_masked() -> None:
    """The model's name, ids and messages of the service, refusals and problems; steps keep their ids."""
    answered = ev.ModelAnswered(
        at=AT, call=1, ending="answered", usage={}, model=SECRET, request_id=SECRET, message=f"got {SECRET}"
    )
    found = REDACTOR.mask_event(answered)
    assert isinstance(found, ev.ModelAnswered)
    assert (found.model, found.request_id, found.message) == ("***", "***", "got ***")
    ended = REDACTOR.mask_event(
        ev.PlanningEnded(
            at=AT,
            purpose="replan",
            steps=("a",),
            outcome="denied",
            message=f"no {SECRET}",
            plan={"name": SECRET, "file": f"{SECRET}.yml", "version": 2, "digest": "d"},
            refusals=({"step": "b", "rule": "r", "reason": f"runs {SECRET}"},),
            problems=(f"steps[0]: {SECRET}",),
        )
    )
    assert SECRET not in repr(vars(ended))
    assert isinstance(ended, ev.PlanningEnded)
    assert (ended.refusals[0]["step"], ended.plan["version"], ended.steps) == ("b", 2, ("a",))
    asked = ev.ModelAsked(at=AT, call=1, purpose="replan", model=SECRET, request="f" * 64, reserved={})
    assert SECRET not in repr(vars(REDACTOR.mask_event(asked)))


def test_what_an_agent_notes_is_masked() -> None:
    """Keys, values and texts; what a change is found and folded by stays."""
    change = {"op": "write", "type": "fact", "key": f"k {SECRET}", "value": {SECRET: [SECRET]}, "at": AT}
    found = REDACTOR.mask_event(ev.AgentNoted(at=AT, step="a", agent="a", kind="memory", change=change))
    assert isinstance(found, ev.AgentNoted)
    assert found.change == {
        "op": "write",
        "type": "fact",
        "key": "k ***",
        "value": {"***": ["***"]},
        "at": AT,
    }


def test_a_plan_is_shown_masked_and_does_the_same() -> None:
    """Titles and descriptions are masked; scripts, ids and digest are those that were reviewed."""
    step = Step(id="a", action=Run(script=f"echo {SECRET}"), kind="run", title=f"Uses {SECRET}", line=3)
    plan = Plan(
        name="p", file="p.yml", digest="d", steps=(step, step.but(id="b", title="Plain")), goal=SECRET
    )
    found = REDACTOR.mask_plan(plan)
    assert [one.title for one in found.steps] == ["Uses ***", "Plain"]
    assert found.goal == "***"
    assert found.steps[0].action == step.action
    assert (found.digest, found.steps[0].id) == ("d", "a")
    harmless = plan.but(goal="", steps=(step.but(title="Plain"),))
    assert REDACTOR.mask_plan(harmless) is harmless


def test_errors_and_what_led_to_them_are_masked() -> None:
    """In place, so that whoever shows them, a traceback included, shows nothing else; also when they go in circles."""
    cause = FileNotFoundError(2, f"No such {SECRET}", f"/a/{SECRET}")
    error = ValueError(f"bad {SECRET}", [SECRET])
    error.__cause__, error.__context__ = cause, error
    REDACTOR.mask_error(error)
    assert error.args == ("bad ***", ["***"])
    assert str(cause) == "[Errno 2] No such ***: '/a/***'"


@pytest.mark.parametrize("text", ["", "nothing", "***"])
def test_texts_without_secrets_stay(text: str) -> None:
    """Masks are not laid twice, and not over nothing."""
    assert REDACTOR.mask_text(text) == text


def test_outputs_of_a_plan_are_masked() -> None:
    """Values, and the message about one that could not be evaluated; names stay."""
    ended = ev.RunEnded(
        at=AT, status="failed", verdict="failed", exit_code=1, duration=0.1, summary={}, events=1,
        outputs={"a": [f"x {SECRET}"]}, message=f"not JSON: {SECRET}",
    )  # fmt: skip
    found = REDACTOR.mask_event(ended)
    assert isinstance(found, ev.RunEnded)
    assert (found.outputs, found.message) == ({"a": ["x ***"]}, "not JSON: ***")
