"""Small parts of the reports that only some runs have: outputs, produced files, secrets, rollback, hooks and others."""

from __future__ import annotations

from planrun.model.jsontext import dumps
from planrun.model.rollback import owed_cleanup, owes, owes_rollback, status, undoable
from planrun.model.sandbox import described
from planrun.reports import facts
from planrun.reports.document import Section, lined, table
from planrun.reports.escape import line
from planrun.reports.facts import names, seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from planrun.model.events import RoundStarted
    from planrun.model.progress import StepState
    from planrun.model.state import RunState
    from planrun.reports.document import Part

MAX_SHOWN = 1000  # characters of a value


def output_rows(state: RunState) -> list[str]:
    """Return a heading and a line for each output of the plan; nothing when there are none."""
    outputs = _shown(state)
    return ["Outputs", *[f"  {name} = {text}" for name, text in outputs.items()]] if outputs else []


def _outputs_failures(state: RunState) -> Iterator[tuple[str, str, str]]:
    """Yield why outputs of the plan could not be evaluated."""
    if message := line(state.ended.message) if state.ended else "":
        yield "failed", message, "plan outputs"


def output_properties(state: RunState) -> dict[str, str]:
    """Return the outputs as properties of a JUnit file."""
    return {f"planrun.output.{name}": text for name, text in _shown(state).items()}


def _shown(state: RunState) -> dict[str, str]:
    """Return each value as text of one line."""
    return {name: shown_value(value) for name, value in (state.ended.outputs if state.ended else {}).items()}


def shown_value(value: Any) -> str:
    """Return a value as text of one line: texts as they are, anything else as JSON."""
    text = line(value) if isinstance(value, str) else dumps(value)
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "…"


def _outputs_sections(state: RunState) -> Iterator[Section]:
    if outputs := _shown(state):
        yield table("Outputs", (("Output", "code"), ("Value", "code")), [*outputs.items()])


MAX_OF_STEP = 50  # files of one step that the report lists; the ledger has more
MADE = ("created", "changed", "unchanged", "restored")


def _made(step: StepState) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of the last attempt about what it made, those of a failed attempt included."""
    if not step.step.makes:
        return
    attempt = facts.last(step)
    ended = attempt.ended if attempt else None
    for row in step.restored.files if step.restored else ended.files if ended else ():
        if row["op"] in (*MADE, "more") and "key" not in row:
            yield row


def _produced_sections(state: RunState) -> Iterator[Section]:
    rows, left = [], 0
    for step in facts.listed(state):
        made = list(_made(step))
        shown = [row for row in made if "path" in row][:MAX_OF_STEP]
        left += sum([row.get("count", 1) for row in made]) - len(shown)
        name = step.step.id
        rows += [(name, row["path"], facts.size(row["bytes"]), row["op"], row["sha256"]) for row in shown]
    if rows or left:
        yield table(
            "Produced files",
            (("Step", "step"), ("File", "code"), ("Size", "number"), ("Change", "text"), ("SHA-256", "code")),
            rows,
            note=f"{left} more files are in ledger.json." if left else "",
        )


def _secret_warnings(state: RunState) -> Iterator[str]:
    """Yield a line for each secret that has no value, is not masked, or stands in the plan."""
    about: Any = facts.option(state, "secrets")
    file = state.plan.file
    for secret, steps in about.get("missing", {}).items():
        needed_by = names([line(step) for step in steps])
        yield f"the secret {line(secret)} has no value in planrun's environment; it is needed by: {needed_by}"
    unmasked = about.get("unmasked", ())
    if unmasked:
        several = len(unmasked) > 1
        yield (
            f"not masked, since {'their values are' if several else 'its value is'} too short or too common: "
            f"{names([line(secret) for secret in unmasked])}"
        )
    for place in about.get("in_plan", ()):
        where, _, secret = place.rpartition(" ")
        if where.count(":") > 1:  # in a plan that it uses, as seen from its folder
            yield f"{line(where)}: a plan that is used holds the value of the secret {line(secret)}"
            continue
        yield f"{line(file)}:{where}: the plan itself holds the value of the secret {line(secret)}"


def rollback_rows(state: RunState) -> Iterator[str]:
    """Yield a line for each step that was or should be undone, then what is pending and how to finish it."""
    for undo in state.undoing.values():
        number = undo.step.id.removeprefix(f"undo:{undo.step.undoes}").lstrip(":") or "1"
        rollback = state.steps[undo.step.undoes].step.rollback
        step = f"{undo.step.undoes}, action {number}" if rollback and rollback.more else undo.step.undoes
        if undo.status == "completed":
            yield f"{step}: undone ({facts.details(undo)})"
        elif undo.ended:
            yield f"{step}: not undone: {facts.sentence(undo)}"
    if status(state) == "failed":
        yield "rollback_failed: not everything was undone"
    yield from pending_rows(state)


def pending_rows(state: RunState) -> Iterator[str]:
    """Yield what is pending in a run that has stopped, and the command that finishes it."""
    if state.ended is None or not owes(state):
        return
    yield pending(state)


def pending(state: RunState) -> str:
    """Return what is pending in a run that has stopped, and the command that finishes it."""
    parts = []
    if owes_rollback(state):
        left = [
            undo.step.undoes for undo in state.undoing.values() if undo.status in ("pending", "cancelled")
        ]
        parts.append(f"undo {facts.names(list(dict.fromkeys(left)) if state.rollback else undoable(state))}")
    cleanup = owed_cleanup(state)
    if cleanup:
        parts.append(f"run {facts.names(cleanup)}")
    run = state.started.run if state.started else ""
    what = f"pending: {' and '.join(parts)}" if parts else "the run has no recorded end"
    return f"{what}; to finish: planrun finalize {run}"


def not_undone(state: RunState) -> str:
    """Name the steps that could not be undone; "" where there are none."""
    undoing = state.undoing.values()
    left = [undo.step.undoes for undo in undoing if undo.ended and undo.status != "completed"]
    return facts.names(list(dict.fromkeys(left)))


def _rollback_properties(state: RunState) -> dict[str, str]:
    """Return what was undone in a few words: what undoes a step is no test, and no case of its own."""
    steps = dict.fromkeys([undo.step.undoes for undo in state.undoing.values()])
    undone = [name for name in steps if state.steps[name].undone == "completed"]
    left = not_undone(state)
    parts = [
        f"undone: {facts.names(undone)}" if undone else "",
        f"rollback_failed: not undone: {left}" if left else "",
    ]
    return {"planrun.rollback": "; ".join([*filter(None, parts), *pending_rows(state)])}


def _rollback_failures(state: RunState) -> Iterator[tuple[str, str, str]]:
    if left := not_undone(state):
        yield "rollback_failed", f"not undone: {left}", ""


def _rollback_sections(state: RunState) -> Iterator[Section]:
    if rows := [*rollback_rows(state)]:
        yield Section(heading="Undone", lines=lined(rows), leads=True)


SECRETS: Part = {"warnings": _secret_warnings}
ROLLBACK: Part = {
    "failures": _rollback_failures,
    "closing": lambda state: [f"  {row}" for row in rollback_rows(state)],
    "sections": _rollback_sections,
    "properties": _rollback_properties,
}
PRODUCED: Part = {"sections": _produced_sections}
OUTPUTS: Part = {
    "failures": _outputs_failures,
    "ending": output_rows,
    "sections": _outputs_sections,
    "properties": output_properties,
}

_NAMED = 20  # steps of one round, and failed hooks on a console
_HOOKS = 200  # rows of the table


def round_line(event: RoundStarted) -> str:
    """Return one round as a line: `round 1 of 2 in 1m 0s: test failed for passing reasons`."""
    more = f" and {len(event.steps) - _NAMED} more" if len(event.steps) > _NAMED else ""
    reason = "a passing reason" if len(event.steps) == 1 else "passing reasons"
    when = f" in {seconds(event.delay)}" if event.delay else ""
    return line(
        f"round {event.n} of {event.most}{when}: {', '.join(event.steps[:_NAMED])}{more} failed for {reason}"
    )


def rounds_data(state: RunState) -> list[dict[str, Any]]:
    """Return the rounds by which a run went on by itself as JSON data."""
    return [
        {
            "n": event.n,
            "most": event.most,
            "at": event.at,
            "delay_s": event.delay,
            "failed": list(event.steps),
            "rerun": list(event.rerun),
        }
        for event in state.rounds
    ]


ROUNDS: Part = {
    "event_line": lambda event, _state: ("waiting", round_line(event)),
    "sections": lambda state: [
        table(
            "Rounds",
            (("Time", "text"), ("Round", "text")),
            [(event.at, round_line(event)) for event in state.rounds],
        )
    ],
    "ledger": {"rounds": rounds_data},
    "properties": lambda state: {"planrun.rounds": str(len(state.rounds))},
}


def hooks_data(state: RunState) -> list[dict[str, Any]]:
    """Return each hook that ran: step, attempt, and what its attempt recorded of it."""
    return [
        {"step": name, "attempt": attempt.n, **row}
        for name, found in state.steps.items()
        for attempt in found.attempts
        for row in (attempt.ended.hooks if attempt.ended else ())
    ]


def _hooks_ending(state: RunState) -> Iterator[str]:
    failed = [row for row in hooks_data(state) if not row["ok"]]
    for row in failed[:_NAMED]:
        yield "  " + line(
            f"the hook {row['when']}_step of {row['step']} failed: {row['name']}: {row['message']}"
        )
    if len(failed) > _NAMED:
        yield f"  and {len(failed) - _NAMED} more hooks failed"


def _hooks_sections(state: RunState) -> Iterator[Section]:
    ran = sorted(hooks_data(state), key=lambda row: bool(row["ok"]))  # those that failed come first
    rows = [
        (row["step"], row["when"], row["name"], seconds(row["duration"]), row["message"] or "ok")
        for row in ran[:_HOOKS]
    ]
    if rows:
        more = f"; the first {_HOOKS} are listed" if len(ran) > _HOOKS else ""
        yield table(
            "Hooks",
            (("Step", "step"), ("When", "text"), ("Hook", "code"), ("Time", "number"), ("Result", "text")),
            rows,
            note=f"{len(ran)} ran, {sum(not row['ok'] for row in ran)} failed{more}.",
        )


HOOKS: Part = {"ending": _hooks_ending, "sections": _hooks_sections, "ledger": {"hooks": hooks_data}}


def shard_data(state: RunState) -> dict[str, Any]:
    """Return what `planrun merge` compares: the number of the shard, of how many, and what runs where."""
    found = facts.shard_of(state)
    number, _, of = found["shard"][0].partition("/")
    lists = {name: list(found[name]) for name in ("steps", "each", "after")}
    return {"number": int(number), "of": int(of), "split": found["shard"][1], **lists}


def _shard_sentence(state: RunState) -> str:
    data = shard_data(state)
    own = len(data["steps"])
    text = f"shard {data['number']} of {data['of']}: {own} step{'' if own == 1 else 's'} of its own"
    if data["each"]:
        text += f", {len(data['each'])} that run in each shard that needs them"
    return text + (f"; {len(data['after'])} are left for after all shards" if data["after"] else "")


SHARD: Part = {
    "opening": lambda state: [_shard_sentence(state)],
    "summary": lambda state: [("Shard", _shard_sentence(state).partition(" ")[2])],
    "ledger": {"shard": shard_data},
}


def _sandbox_of(step: StepState) -> dict[str, Any]:
    return step.attempts[-1].started.sandbox if step.attempts else {}


def _sandbox_warnings(state: RunState) -> Iterator[str]:
    found = facts.option(state, "sandbox")
    if isinstance(found, dict) and found.get("backend") == "none":
        yield f"steps run WITHOUT a sandbox, since `require` is false: {line(str(found.get('missing', '')))}"


def _sandbox_sections(state: RunState) -> Iterator[Section]:
    confined = [(step.step.id, found) for step in facts.listed(state) if (found := _sandbox_of(step))]
    if confined:
        rows = [(name, described(found)) for name, found in confined]
        yield table("Sandboxes", (("Step", "step"), ("Sandbox", "text")), rows)


SANDBOXES: Part = {
    "warnings": _sandbox_warnings,
    "sections": _sandbox_sections,
    "ledger": {
        "sandboxes": lambda state: {
            name: found for name, step in state.steps.items() if (found := _sandbox_of(step))
        }
    },
}


def of_notes(heading: str, title: str, *starts: str) -> Part:
    """Return the part that shows notes of last attempts that begin so, everywhere; `title`: behind a step's name."""

    def found(state: RunState) -> Iterator[tuple[StepState, str]]:
        for step in state.steps.values():
            last = facts.last(step)
            if last is not None and last.ended is not None:
                yield from [(step, line(note)) for note in last.ended.notes if note.startswith(starts)]

    def sections(state: RunState) -> Iterator[Section]:
        if rows := [f"{facts.name(step)}: {note}" for step, note in found(state)]:
            yield Section(heading=heading, lines=lined(rows))

    return {
        "closing": lambda state: [f"  warning: {facts.name(step)}: {note}" for step, note in found(state)],
        "sections": sections,
        "notices": lambda state: [
            (step.step.line, f"{facts.name(step)} {title}", note) for step, note in found(state)
        ],
    }


SENT: Part = {
    "opening": lambda _state: [
        "files: sent to workers; what steps declare in `produces` and `writes` comes back"
    ],
    **of_notes("Files that were left on workers", "leaves files on a worker", "not declared in "),
}
