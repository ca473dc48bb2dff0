"""Gates as people read them: what is asked and why, the commands that answer, and who answered what.

What a run waits for and what was answered, as parts of the reports for people.
"""

from __future__ import annotations

from shlex import quote

from planrun.model.events import GateAnswered, GateOpened
from planrun.model.jsontext import dumps
from planrun.model.progress import Gate
from planrun.reports.document import BELOW, Section
from planrun.reports.escape import line
from planrun.reports.facts import has_secret_in_plan, is_waiting
from planrun.reports.policies import VERDICTS, asked, grounds, name_of, waits_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from planrun.model.events import Event
    from planrun.model.state import RunState
    from planrun.reports.document import Kind, Part

_MOST_STEPS = 50  # of a plan, whose commands are shown with its gate
APPROVAL_FILE = "approval.json"
_CHOICES = ("decide", "failure")  # kinds of gates that have options
# Where an answer came from, by `via`.
_SOURCES = {
    "command": "",
    "terminal": "at the terminal",
    "option": "by an option of the command line",
    "file": "by a decisions file",
    "policy": "by the policy",
    "criteria": "by the criteria of its options",
    "timeout": "by default, since there was no answer in time",
    "approval": "by an approval file",
}


def gates(state: RunState) -> list[tuple[str, Gate]]:
    """Return all gates that were opened or answered, by step; that of the whole plan comes first and has no step.

    A step may have two: one before it, and one after its failure.
    """
    all_gates = [("", state.gate)] if state.gate else []
    for name, step in state.steps.items():
        all_gates += [(name, gate) for gate in (step.gate, step.after) if gate]
    return all_gates


def status_of(state: RunState, step: str, gate: Gate) -> str:
    """Return open, answered, or closed: the run or the step ended without an answer."""
    if gate.answered is not None:
        return "answered"
    over = state.ended is not None or (
        state.steps[step].ended if step else state.status != "awaiting_approval"
    )
    return "closed" if over else "open"


def open_gates(state: RunState) -> list[GateOpened]:
    """Return the gates that wait for an answer."""
    return [
        gate.opened
        for name, gate in gates(state)
        if gate.opened is not None and status_of(state, name, gate) == "open"
    ]


def answers(state: RunState) -> list[GateAnswered]:
    """Return the answers, whatever gave them."""
    return [gate.answered for _, gate in gates(state) if gate.answered is not None]


def until(opened: GateOpened) -> str:
    """Return what happens without an answer in time; empty where there is no time limit."""
    if not opened.until:
        return ""
    then = f"the answer is {shown(_default(opened))}" if opened.default else "it fails"
    return f"until {line(opened.until)}, then {then}"


def _default(opened: GateOpened) -> Any:
    """Return the answer that is taken when the time is over; None where there is none."""
    default = opened.default
    return list(default) if len(default) > 1 else default[0] if default else None


def choices(opened: GateOpened) -> list[str]:
    """Return the possible answers, one a clean line; for a value its type and bounds."""
    if opened.kind in _CHOICES:
        return [_choice(option) for option in opened.options]
    schema = opened.schema or {}
    bounds = [f"{key} {shown(value)}" for key, value in schema.items() if key not in ("type", "description")]
    return [line(", ".join([str(schema.get("type", "string")), *bounds]))] if schema else []


def _choice(option: dict[str, Any]) -> str:
    value, label = shown(option.get("value")), line(str(option.get("label", "")), 200)
    about = line(str(option.get("description") or ""), 300)
    text = value if value == label else f"{value}: {label}"
    return f"{text} - {about}" if about else text


def commands(state: RunState, opened: GateOpened) -> list[str]:
    """Return the commands that answer; what is in capitals is to be filled in."""
    run = _word(state.started.run if state.started else "RUN")
    step = _word(opened.step)
    if opened.kind in _CHOICES:
        values = [_word(shown(option.get("value"))) for option in opened.options]
        several = [",".join(values[:9])] if opened.multi and len(values) > 1 else []
        return [f"planrun decide {run} {step}={value}" for value in [*values[:9], *several]]
    if opened.kind == "ask":
        if opened.schema is not None:
            return [f"planrun decide {run} {step}=VALUE"]
        return [f"planrun decide {run} {step}={word}" for word in ("yes", "no")]
    here = f"{run} {step}" if opened.step else run
    answers = [f"planrun approve {here}", f"planrun reject {here}"]
    found = state.steps.get(opened.step)
    if found is not None and found.patch is not None:  # no file can approve what did not exist before
        return [f"planrun show {here} --patch", *answers]
    if (
        state.plan.version > 1
    ):  # the file is another version, and what approves that does not approve this one
        return answers
    there = _word(state.plan.file) + (f" --step {step}" if opened.step else "") + _given(state)
    answers = [f"planrun approve {here}", f"planrun reject {here}"]
    ended = state.planning.ended if state.planning else ()
    is_from_a_model = any(event.plan.get("version") == state.plan.version for event in ended if event.plan)
    if is_from_a_model:
        return answers  # no file that could be named has this version of the plan
    return [
        *answers,
        # A comment of the shell, so that the line can be copied as it stands.
        f"planrun approve {there} -o {APPROVAL_FILE}  # a file to be committed, for execute --approval {APPROVAL_FILE}",
    ]


def _given(state: RunState) -> str:
    """Return the options for parameters that are not their defaults: without them another digest is approved."""
    options = ""
    for param in state.plan.params:
        value = state.params.get(param.name)
        if value is not None and value != param.schema.get("default"):
            options += f" -p {_word(f'{param.name}={(value if isinstance(value, str) else dumps(value))}')}"
    return options


def to_continue(state: RunState) -> str:
    """Return what is to be done once everything is answered."""
    return f"to continue once answered: planrun resume {line(state.started.run) if state.started else 'RUN'}"


def answer(answered: GateAnswered) -> str:
    """Return `approved by release-team (command)`, `answered prod by a decisions file`; clean, in one line."""
    verdict = answered.answer if answered.answer in VERDICTS else ""
    text = verdict or f"answered {shown(answered.answer)}"
    source = _SOURCES.get(answered.via, f"by {line(answered.via)}")
    if answered.approval:
        source = f"by the approval {line(answered.approval)}"
    who = f" by {line(answered.by, 200)}" if answered.by else ""
    text += (who + f" ({source})" if who and source else who or f" {source}").rstrip()
    return f"{text}: {line(answered.reason)}" if answered.reason else text


def shown(value: Any) -> str:
    """Return an answer as people give it: yes and no, texts as they are, anything else as JSON; one clean line."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return line(value, 200)
    if isinstance(value, list | tuple):
        return ",".join([shown(item) for item in value])
    return line(dumps(value), 200)


def as_data(state: RunState, step: str, gate: Gate) -> dict[str, Any]:
    """Return a gate as JSON data; what is not known is null or empty."""
    opened, answered = gate.opened, gate.answered
    own = state.steps[step].step if step else None
    options = opened.options if opened else ()
    return {
        "step": step or None,
        "kind": opened.kind if opened else own.kind if own and own.action.asks else "approval",
        "question": opened.question if opened else "",
        "header": opened.header if opened else "",
        "options": [
            {
                "label": option.get("label", ""),
                "value": option.get("value"),
                "description": option.get("description", ""),
            }
            for option in options
        ],
        "multi_select": opened.multi if opened else False,
        "schema": opened.schema if opened else None,
        "default": _default(opened) if opened else None,
        "status": status_of(state, step, gate),
        "answer": answered.answer if answered else None,
        "via": answered.via if answered else "",
        "by": answered.by if answered else "",
        "because": answered.reason if answered else "",
        "approval": answered.approval if answered else "",
        "rule": opened.rule if opened else "",
        "risk": (opened.risk if opened else "") or None,
        "reason": opened.reason if opened else "",
        "opened_at": opened.at if opened else None,
        "until": (opened.until if opened else "") or None,
        "answered_at": answered.at if answered else None,
    }


def approvals(state: RunState) -> list[dict[str, Any]]:
    """Return the approval files that were used: id, who approved, which steps (None: the whole plan), and when."""
    used: dict[str, dict[str, Any]] = {}
    for name, gate in gates(state):
        answered = gate.answered
        if answered is not None and answered.approval:
            entry = used.setdefault(
                answered.approval,
                {"id": answered.approval, "by": answered.by, "at": answered.at, "steps": []},
            )
            entry["steps"].append(name or None)
    return list(used.values())


def _word(text: str) -> str:
    """Return text as one clean word of a shell."""
    return line(quote(line(text)))


def sections(state: RunState) -> Iterator[Section]:
    """Yield every open gate, what would run and how to answer it; then what was asked, and who answered."""
    if opened := open_gates(state):
        waiting = [_section(state, gate) for gate in opened]
        yield Section(heading="Waiting for", sections=waiting, leads=True)
    lines: list[tuple[str, str]] = []
    for _, gate in gates(state):
        if answered := gate.answered:
            at = f"{answered.at[:19].replace('T', ' ')} UTC"
            lines.append(("", f"{name_of(answered)}: {answer(answered)}"))
            question = f"{asked(gate.opened)} {grounds(gate.opened)}".strip() if gate.opened else ""
            lines.append((BELOW, ", ".join(filter(None, [question, at]))))
    if lines:
        yield Section(heading="Answers", lines=lines)


def _section(state: RunState, opened: GateOpened) -> Section:
    """Return one gate: what is asked and why, what would run, what can be answered, and the commands that answer."""
    below = []
    if text := would_run(state, opened):
        below.append(Section(heading="It would run", code=text))
    below.append(Section(heading="To answer", code="\n".join(commands(state, opened)), language="sh"))
    rows: list[tuple[str, str, Kind]] = [
        ("Why", grounds(opened), "text"),
        ("Risk", opened.risk, "text"),
        ("Digest", str(state.named.get("digest", "")) if opened.kind == "approval" else "", "code"),
        *[("Answer", choice, "text") for choice in choices(opened)],
        ("Time", until(opened), "text"),
    ]
    return Section(
        heading=waits_for(opened),
        mark="waiting",
        step=opened.step,
        text=asked(opened),
        facts=[row for row in rows if row[1]],
        sections=below,
    )


def would_run(state: RunState, opened: GateOpened) -> str:
    """Return what an approval lets run, as the plan has it; "" for other questions, and where a plan holds a secret."""
    if opened.kind != "approval" or has_secret_in_plan(state):
        return ""
    if opened.step:
        return state.steps[opened.step].step.action.written().strip("\n")
    texts = {step.step.id: step.step.action.written().strip("\n") for step in state.counted()}
    rows = [f"# {name}\n{text}" for name, text in [*texts.items()][:_MOST_STEPS] if text]
    more = len(texts) - _MOST_STEPS
    return "\n".join([*rows, *([f"# and {more} more steps"] if more > 0 else [])])


def notices(state: RunState) -> Iterator[tuple[int, str, str]]:
    """Yield line of the plan, title and message of an annotation for each open gate."""
    for opened in open_gates(state):
        at = state.steps[opened.step].step.line if opened.step else 0
        text = f"{asked(opened)} {grounds(opened)}".rstrip()
        yield at, waits_for(opened), f"{text}\n{commands(state, opened)[0]}"


def event_line(event: Event, _state: RunState) -> tuple[str, str]:
    """Return the status whose icon fits, and one clean line."""
    if isinstance(event, GateAnswered):
        return (
            "cancelled" if event.answer == "rejected" else "completed",
            f"{name_of(event)}: {answer(event)}",
        )
    if not isinstance(event, GateOpened):
        raise TypeError(type(event).__name__)
    why = grounds(event) if event.kind == "approval" else asked(event)
    return "waiting", f"{waits_for(event)}: {why}"


def _opening(state: RunState) -> Iterator[str]:
    if state.gate and state.gate.answered:
        yield f"the plan: {answer(state.gate.answered)}"


def _closing(state: RunState) -> Iterator[str]:
    """Yield every open gate and how to answer it, where the run stopped for that."""
    if not is_waiting(state):
        return
    opened = open_gates(state)
    yield "\nWaiting for"
    for gate in opened:
        yield f"  {waits_for(gate)}: {asked(gate)}"
        yield from [f"    why: {why}" for why in (grounds(gate),) if why]
        yield from [f"    answer: {choice}" for choice in choices(gate)]
        yield from [f"    {limit}" for limit in (until(gate),) if limit]
        yield from [f"    $ {command}" for command in commands(state, gate)]
    yield f"  {to_continue(state)}"
    if given := answers(state):
        yield "\nAnswers"
        yield from [f"  {name_of(answered)}: {answer(answered)}" for answered in given]


GATES: Part = {
    "sections": sections,
    "opening": _opening,
    "event_line": event_line,
    "closing": _closing,
    "notices": notices,
    "ledger": {
        "gates": lambda state: [as_data(state, name, gate) for name, gate in gates(state)],
        "approvals": approvals,
    },
}
