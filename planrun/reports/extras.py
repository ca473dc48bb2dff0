"""Parts of the reports that only some runs have: plan outputs, produced files, secrets, rollback."""

from __future__ import annotations

from planrun.model.jsontext import dumps
from planrun.model.rollback import owed_cleanup, owes, owes_rollback, status, undoable
from planrun.reports import facts
from planrun.reports.escape import code, line
from planrun.reports.facts import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from planrun.model.progress import StepState
    from planrun.model.state import RunState

MAX_SHOWN = 1000  # characters of a value
_HEAD = "\n## Outputs\n\n| Output | Value |\n| --- | --- |\n"


def outputs_section(state: RunState) -> str:
    """Return the markdown table of the outputs; empty when there are none."""
    rows = "".join([f"| {code(name)} | {code(text)} |\n" for name, text in _shown(state).items()])
    return _HEAD + rows if rows else ""


def output_rows(state: RunState) -> list[str]:
    """Return a heading and a line for each output; nothing when there are none."""
    found = _shown(state)
    return ["Outputs", *[f"  {name} = {text}" for name, text in found.items()]] if found else []


def output_properties(state: RunState) -> dict[str, str]:
    """Return the outputs as properties of a JUnit file."""
    return {f"planrun.output.{name}": text for name, text in _shown(state).items()}


def _shown(state: RunState) -> dict[str, str]:
    """Return each value as text of one line."""
    return {name: _cut(value) for name, value in (state.ended.outputs if state.ended else {}).items()}


def _cut(value: Any) -> str:
    text = line(value) if isinstance(value, str) else dumps(value)
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "…"


MAX_OF_STEP = 50  # files of one step that the report lists; the ledger has more
MADE = ("created", "changed", "unchanged", "restored")
_PRODUCED_HEAD = (
    "\n## Produced Files\n\n| Step | File | Bytes | SHA-256 | |\n| --- | --- | --- | --- | --- |\n"
)


def produced_section(state: RunState) -> str:
    """Return the table of all files that steps made; empty when there are none."""
    rows = "".join([_of_step(step) for step in facts.listed(state)])
    return _PRODUCED_HEAD + rows if rows else ""


def _of_step(step: StepState) -> str:
    made = list(_made(step))
    name = code(step.step.id)
    rows = [
        f"| {name} | {code(row['path'])} | {row['bytes']} | {code(row['sha256'])} | {row['op']} |\n"
        for row in made[:MAX_OF_STEP]
        if "path" in row
    ]
    left = sum([row.get("count", 1) for row in made]) - len(rows)
    return "".join(rows) + (f"| {name} | {left} more, see ledger.json | | | |\n" if left else "")


def _made(step: StepState) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of the last attempt about what it made, those of a failed attempt included."""
    if not step.step.makes:
        return
    attempt = facts.last(step)
    ended = attempt.ended if attempt else None
    for row in step.restored.files if step.restored else ended.files if ended else ():
        if row["op"] in (*MADE, "more") and "key" not in row:
            yield row


def secret_warnings(about: Any, file: str) -> Iterator[str]:
    """Yield a line for each thing that people should know; `about` is `options.secrets` of a run, `file` its plan."""
    for secret, steps in about.get("missing", {}).items():
        told = names([line(step) for step in steps])
        yield f"the secret {line(secret)} has no value in planrun's environment; it is needed by: {told}"
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
    """Yield a line for each step that was undone or was to be, then what is owed and how it is done."""
    for found in state.undoing.values():
        step = found.step.undoes
        if found.status == "completed":
            yield f"{step}: undone ({facts.details(found)})"
        elif found.ended:
            yield f"{step}: not undone: {facts.sentence(found)}"
    if status(state) == "failed":
        yield "rollback_failed: not everything was undone"
    yield from pending_rows(state)


def pending_rows(state: RunState) -> Iterator[str]:
    """Yield what a run that nobody works on still owes, and the command that does it."""
    if state.ended is None or not owes(state):
        return
    yield pending(state)


def pending(state: RunState) -> str:
    """Say what a run owes that does not go on, and how it is done."""
    parts = []
    if owes_rollback(state):
        left = [
            found.step.undoes for found in state.undoing.values() if found.status in ("pending", "cancelled")
        ]
        parts.append(f"to undo {facts.names(left if state.rollback else undoable(state))}")
    cleanup = owed_cleanup(state)
    if cleanup:
        parts.append(f"to run {facts.names(cleanup)}")
    run = state.started.run if state.started else ""
    what = f"owed: {' and '.join(parts)}; " if parts else ""
    return f"{what}planrun finalize {run} {'does it' if parts else 'gives it an end'}"


def not_undone(state: RunState) -> str:
    """Name the steps that could not be undone; "" where there are none."""
    found = state.undoing.values()
    return facts.names([each.step.undoes for each in found if each.ended and each.status != "completed"])


def rollback_summary(state: RunState) -> str:
    """Return in a few words what was undone, for one value among others."""
    undone = [found.step.undoes for found in state.undoing.values() if found.status == "completed"]
    left = not_undone(state)
    parts = [
        f"undone: {facts.names(undone)}" if undone else "",
        f"rollback_failed: not undone: {left}" if left else "",
    ]
    return "; ".join([*filter(None, parts), *pending_rows(state)])
