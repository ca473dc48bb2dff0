"""What becomes of files while a step runs: looked at before it starts and when it ended, and told in its record."""

from __future__ import annotations

from planrun.errors import EvaluationError
from planrun.model.record import Record
from planrun.steps.files import Patterns, patterns, snapshot, unmatched

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from planrun.model.job import Outcome
    from planrun.model.plan import Step
    from planrun.steps.files import Seen

MAX_LISTED = 1000
"""Files of one attempt that stand in its record, those it made first; of more, how many and the hash of the list."""
MADE = ("created", "changed", "unchanged", "restored")
_NAMED = 3  # patterns in a message


class Before(Record):
    """The files of a step as they were before it started; `kept`: patterns by when their files are wanted."""

    inputs: Patterns
    produces: Patterns
    kept: Mapping[str, Patterns]
    writes: Patterns
    read: Mapping[str, Seen]
    made: Mapping[str, Seen]
    others: Mapping[str, Seen]

    def takes(self, path: str, *, failed: bool) -> bool:
        """Say whether a file belongs to what the step made, by whether the step failed."""
        return any(each.takes(path) for each in self.wanted(failed=failed))

    def wanted(self, *, failed: bool) -> list[Patterns]:
        """Return the patterns of the files that the step made, by whether it failed."""
        return [self.produces, *[each for when, each in self.kept.items() if failed or when != "failed"]]


class After(Record):
    """The files that a step made, those that stand in its record, and what is wrong with them, "" when nothing is."""

    made: Mapping[str, Seen]
    listed: tuple[dict[str, Any], ...]
    problem: str = ""


class Filing:
    """The files of a run's steps, in a workspace; `hidden` are folders in it that no pattern means."""

    def __init__(self, workspace: str, hidden: Sequence[str]) -> None:
        self._workspace = workspace
        self._hidden = hidden
        self._looked: dict[str, Before] = {}  # of steps that are about to start
        self._begun: dict[str, Before] = {}
        self._ended: dict[
            str, tuple[Before, After]
        ] = {}  # of those that may still have to prove what they did
        self.on_end: Callable[[Step, Before, After, Outcome], Outcome] | None = (
            None  # for results to be used again
        )

    def look(self, step: Step, scope: dict[str, Any]) -> Before:
        """Look at the files of a step; an attempt that is prepared at once goes by it. Raises EvaluationError."""
        found = self._looked[step.id] = before(step, scope, self._workspace, self._hidden)
        return found

    def again(self, known: Before) -> Mapping[str, Seen]:
        """Look once more at what a step reads; raises EvaluationError."""
        return _look(self._workspace, known.inputs, self._hidden)

    def reading(self, step: Step, scope: dict[str, Any]) -> dict[str, str]:
        """Return the SHA-256 of each file that a step would read now, by path; raises EvaluationError."""
        wanted = patterns((*step.inputs, *(step.cache.inputs if step.cache else ())), scope)
        return {path: seen.sha256 for path, seen in _look(self._workspace, wanted, self._hidden).items()}

    def begin(self, step: Step, scope: dict[str, Any]) -> None:
        """Look at the files of a step that starts, unless that was just done; raises EvaluationError."""
        found = self._looked.pop(step.id, None)
        self._begun[step.id] = found or before(step, scope, self._workspace, self._hidden)

    def ended(self, step: Step, outcome: Outcome) -> Outcome:
        """Return the outcome of an attempt with what became of its files; missing ones make it failed(outputs)."""
        known = self._begun.pop(step.id, None)
        if known is None or outcome.status == "cancelled":
            return outcome
        try:
            found = after(known, self._workspace, self._hidden, failed=outcome.status != "completed")
        except EvaluationError as error:
            found = After(made={}, listed=(), problem=str(error))
        if outcome.status == "completed" and found.problem:
            outcome = outcome.but(status="failed", reason="outputs", message=found.problem)
        if found.listed:
            outcome = outcome.but(files=found.listed)
        self._ended[step.id] = known, found
        return outcome

    def settled(self, step: Step, outcome: Outcome) -> Outcome:
        """Keep what is to be used again, once nothing more has to hold of an attempt; returns its outcome with that."""
        seen = self._ended.pop(step.id, None)
        if (
            seen and outcome.status == "failed" and "failed" in seen[0].kept
        ):  # a check after its action failed
            try:
                found = after(seen[0], self._workspace, self._hidden, failed=True)
                outcome = outcome.but(files=found.listed) if found.listed else outcome
            except EvaluationError:  # the failure itself counts more
                pass
        return self.on_end(step, *seen, outcome) if seen and self.on_end else outcome


def before(step: Step, scope: dict[str, Any], root: str, hidden: Sequence[str]) -> Before:
    """Look at the files of a step that is about to start; raises EvaluationError."""
    more = step.cache.inputs if step.cache else ()
    inputs, produces, writes = (
        patterns(texts, scope) for texts in ((*step.inputs, *more), step.produces, step.writes)
    )
    kept: dict[str, Patterns] = {
        when: patterns([each.path for each in step.keeps if each.when == when], scope)
        for when in dict.fromkeys([each.when for each in step.keeps])
    }
    read, others = (_look(root, each, hidden) for each in (inputs, writes))
    made = _look_all(root, [produces, *kept.values()], hidden)
    return Before(
        inputs=inputs, produces=produces, kept=kept, writes=writes, read=read, made=made, others=others
    )


def after(known: Before, root: str, hidden: Sequence[str], *, failed: bool) -> After:
    """Look at them again when the step ended; raises EvaluationError for a file that cannot be read."""
    made = _look_all(root, known.wanted(failed=failed), hidden)
    others = _look(root, known.writes, hidden)
    rows = [_changed(path, known.made.get(path), seen) for path, seen in made.items()]
    rows += [
        _row(path, seen, "deleted")
        for path, seen in known.made.items()
        if path not in made and known.takes(path, failed=failed)
    ]
    for path in {**known.others, **others}:
        old, new = known.others.get(path), others.get(path)
        if (
            path not in made
            and path not in known.made
            and (old is None or new is None or old.same != new.same)
        ):
            row = _changed(path, old, new) if new else _row(path, known.others[path], "deleted")
            rows.append({**row, "key": "writes"})
    rows += [_row(path, seen, "read") for path, seen in known.read.items()]
    missing = unmatched(known.produces, made)
    problem = ""
    if missing:
        more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
        named = ", ".join([f'"{text}"' for text in missing[:_NAMED]])
        problem = f"it did not make what it says under `produces`: nothing matches {named}{more}"
    return After(made=made, listed=listing(rows), problem=problem)


def listing(rows: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    """Return rows for a record, the last of them for all that do not fit."""
    if len(rows) <= MAX_LISTED:
        return tuple(rows)
    left = rows[MAX_LISTED:]
    size = sum([row["bytes"] for row in left])
    return (*rows[:MAX_LISTED], {"op": "more", "count": len(left), "bytes": size, "sha256": digest(left)})


def digest(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return what lists have in common exactly when the steps made the same files, however these came to be."""
    from planrun.sha256 import sha256

    nothing = sha256().hexdigest()  # of what is not listed, where that is about other files
    told = [
        f"{row.get('path', '')}\0{row['sha256']}\n"
        for row in rows
        if row["op"] in (*MADE, "more") and "key" not in row and row["sha256"] != nothing
    ]
    return str(sha256("".join(told).encode("utf-8", "surrogatepass")).hexdigest())


def _look(root: str, wanted: Patterns, hidden: Sequence[str]) -> Mapping[str, Seen]:
    if not wanted.texts:
        return {}
    try:
        return snapshot(root, wanted, hidden)
    except OSError as error:
        raise EvaluationError(f"its files cannot be read: {error.filename}: {error.strerror}") from None


def _look_all(root: str, wanted: Sequence[Patterns], hidden: Sequence[str]) -> Mapping[str, Seen]:
    found: dict[str, Seen] = {}
    for each in wanted:
        found.update(_look(root, each, hidden))
    return found


def _changed(path: str, old: Seen | None, new: Seen) -> dict[str, Any]:
    if old is None:
        return _row(path, new, "created")
    if old.same == new.same:
        return _row(path, new, "unchanged")
    return {**_row(path, new, "changed"), "before": old.sha256}


def _row(path: str, seen: Seen, op: str) -> dict[str, Any]:
    return {"path": path, "op": op, "sha256": seen.sha256, "bytes": seen.bytes}
