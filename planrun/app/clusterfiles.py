"""The files of a run whose workers do not share its workspace: which ones steps name, and which the run has made."""

from __future__ import annotations

from functools import partial

from planrun.actions.files import MADE, matching, patterns_of
from planrun.cluster.files.moving import Declared, Moving, Sources
from planrun.cluster.files.secrecy import has_secret
from planrun.cluster.files.tree import Tree
from planrun.errors import EvaluationError, InvalidInput
from planrun.model.lifecycle import ENDED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from planrun.actions.prepare import Steps
    from planrun.model.plan import Text
    from planrun.model.state import RunState

MOST = 1 << 30
"""Bytes of a workspace that are sent over the connections to workers; more needs a store."""


def moving_of(steps: Steps, state: RunState, folder: str, *, has_store: bool) -> Moving:
    """Return the files of a run; raises InvalidInput when the workspace cannot be read or is too large."""
    place = steps.place
    masks = place.masks if has_store else None
    tree = Tree(place.workspace, place.hidden, partial(has_secret, masks) if masks else None)
    known = _Known(steps, state)
    try:
        tree.scan()
        tree.name(known.from_before())
    except OSError as error:
        raise InvalidInput(
            f"the workspace cannot be sent to workers: {error.filename}: {error.strerror}"
        ) from None
    if tree.bytes > MOST and not has_store:
        raise InvalidInput(
            f"the workspace has {tree.bytes / (1 << 30):.1f} GiB, and at most {MOST >> 30} GiB are sent over the "
            f"connections to workers: have them share the folder, or name a store by --cluster-store"
        )
    sources = Sources(declared=known.declared, named=known.restored, reader=known.reader)
    return Moving(tree, place.workspace, folder, sources)


class _Known:
    """What the plan and the state of a run say of files."""

    def __init__(self, steps: Steps, state: RunState) -> None:
        self._steps = steps
        self._state = state
        self._seen: set[str] = set()  # restored steps whose files were named
        self._is_cached = any(step.cache or step.kind == "group" for step in state.plan.steps)

    def declared(self, name: str) -> Declared:
        """Return the files that a running step declares."""
        step = self._state.steps[name].step
        begun = (
            self._steps.filing.begun(name) if step.inputs or step.makes or step.writes or step.cache else None
        )
        made = () if begun is None else (begun.produces, *begun.kept.values(), begun.writes)
        if step.reports:
            made = (*made, *self._steps.reported().begun(name))
        there = (*begun.read, *begun.made, *begun.others) if begun else ()
        return Declared(there=there, made=tuple([each for each in made if each.texts]))

    def from_before(self) -> Iterator[str]:
        """Yield the files that completed steps of a resumed run made."""
        for each in self._state.steps.values():
            for attempt in each.attempts:
                if attempt.ended:
                    yield from [row["path"] for row in attempt.ended.files if row["op"] in MADE]
            if each.status == "completed":  # the ledger lists a thousand of them at most
                texts = _plain([*each.step.makes, *each.step.writes])
                yield from matching(self._steps.place.workspace, patterns_of(texts), self._steps.place.hidden)
        yield from self.restored()

    def restored(self) -> Iterator[str]:
        """Yield the files that came from the cache of results since the last call."""
        if not self._is_cached:
            return
        for name, each in self._state.steps.items():
            if each.restored is not None and name not in self._seen:
                self._seen.add(name)
                yield from [row["path"] for row in each.restored.files if "path" in row]

    def reader(self, path: str) -> str:
        """Return a step that has not ended and declares that it reads a file; empty for none."""
        for name, each in self._state.steps.items():
            inputs = _plain(each.step.inputs)
            if inputs and each.status not in (*ENDED, "running"):
                try:
                    if patterns_of(inputs).takes(path):
                        return name
                except EvaluationError:
                    continue
        return ""


def _plain(texts: Sequence[Text]) -> list[str]:
    return [text for text in texts if isinstance(text, str)]
