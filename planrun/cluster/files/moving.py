"""The files of attempts, seen from planrun: what a step finds on a worker, and what comes back from it."""

from __future__ import annotations

import os
import shutil
from stat import S_ISDIR

from planrun.cluster.files.entries import LINK, PROGRAM, has_linked_folder, is_inside, umask
from planrun.cluster.files.tree import Tree, entry_of
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from planrun.actions.files import Patterns
    from planrun.cluster.files.entries import Entry
    from planrun.model.job import Job, Outcome


class NotPlaced(Exception):
    """A product that cannot be placed; the message is a line for people."""


def place(
    root: str,
    rows: Sequence[tuple[str, Entry]],
    arrived: Mapping[str, str],
    is_declared: Callable[[str], bool],
) -> None:
    """Place files, each at once; `arrived`: the file that has the content, by digest. Raises NotPlaced.

    A worker names the paths: only those that the step declares are taken, and none through a link.
    """
    left = [entry[0] for _, entry in rows]
    for path, entry in rows:
        if not is_inside(path) or not is_declared(path) or has_linked_folder(root, path):
            raise NotPlaced(f"the worker sent {path}, which the step does not declare")
        left.remove(entry[0])
        try:
            _place(os.path.join(root, path), entry, arrived.get(entry[0], ""), is_last=entry[0] not in left)
        except OSError as error:
            raise NotPlaced(f"{path} cannot be placed in the workspace: {error.strerror}") from None


def _place(target: str, entry: Entry, arrived: str, *, is_last: bool) -> None:
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.lexists(target) and S_ISDIR(os.lstat(target).st_mode):
        os.rmdir(target)
    draft = os.path.join(os.path.dirname(target), f".planrun-{os.urandom(8).hex()}-placing")
    try:
        if entry[2] == LINK:
            os.symlink(entry[3], draft)
        else:
            if is_last:
                os.rename(arrived, draft)
            else:
                shutil.copyfile(arrived, draft)
            os.chmod(draft, (0o777 if entry[2] == PROGRAM else 0o666) & ~umask())
            os.utime(draft, ns=(entry[3], entry[3]))
        os.rename(draft, target)
    except OSError:
        if os.path.lexists(draft):
            os.unlink(draft)
        raise


def remove(root: str, paths: Sequence[str], is_declared: Callable[[str], bool]) -> None:
    """Remove declared files that a step deleted."""
    for path in paths:
        if is_inside(path) and is_declared(path) and not has_linked_folder(root, path):
            try:
                os.unlink(os.path.join(root, path))
            except OSError:  # it is gone, or a folder took its place
                continue


_RECORDS = ".planrun/"  # what is below belongs to an attempt, and to no tree
_ENDINGS = ("", ".progress")  # of the files in which a step writes its outputs


class Declared(Record):
    """The files that an attempt declares: which of them are there before it, and patterns of what it makes."""

    there: tuple[str, ...] = ()
    made: tuple[Patterns, ...] = ()

    def takes(self, path: str) -> bool:
        """Return whether an attempt may make or change a file."""
        return any(each.takes(path) for each in self.made)


class Sources(Record):
    """What files are known by: `declared` gives those of a step, `named` those that the run has had so far.

    `reader`: the step that still reads a file, as it declares; empty for none.
    """

    declared: Callable[[str], Declared]
    named: Callable[[], Iterable[str]]
    reader: Callable[[str], str]


class Moving:
    """The files of one run's attempts; `folder`: where products arrive."""

    def __init__(self, tree: Tree, workspace: str, folder: str, sources: Sources) -> None:
        self._tree = tree
        self._workspace = workspace
        self._folder = folder
        self._sources = sources
        self._declared: dict[str, Declared] = {}  # of running steps
        self.is_stale = False  # something ran on this machine since the tree was scanned

    def begin(self, job: Job) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what changed in the tree, if anything, and the files of an attempt that starts; raises OSError."""
        if self.is_stale:
            self._tree.scan()
            self.is_stale = False
        declared = Declared() if job.part else self._sources.declared(job.step)
        self._declared[job.step] = declared
        self._tree.name([*self._sources.named(), *declared.there])
        data = {
            "own": self._own(job),
            "declared": [[*each.texts, *[f"!{text}" for text in each.without]] for each in declared.made],
            "results": [self._inside(path) for path in _results(job)],
        }
        changes = self._tree.changes()
        return {"tree": changes, "secret": sorted(self._tree.secret)} if changes else {}, data

    def _inside(self, path: str) -> str:
        return os.path.relpath(path, self._workspace)

    def _own(self, job: Job) -> dict[str, Entry]:
        """Return the files of planrun's records that an attempt reads."""
        output = job.env.get("PLANRUN_OUTPUT", "")
        paths = [script.source for script in job.scripts]
        paths += [f"{output}.script"] if output else []
        if job.private:
            paths += [
                os.path.join(folder, name) for folder, _, names in os.walk(job.private) for name in names
            ]
        own: dict[str, Entry] = {}
        for path in paths:
            if os.path.lexists(path) and (entry := entry_of(path, os.lstat(path))):
                own[self._inside(path)] = entry
        return own

    def end(self, job: Job, outcome: Outcome, said: Mapping[str, Any]) -> Outcome:
        """Place what an attempt made into the workspace; returns its outcome."""
        declared = self._declared.pop(job.step, Declared())
        files = said.get("files")
        if files is None:
            self.is_stale = True  # a file may have changed while it was sent
            return outcome
        if said["refused"]:
            return _failed(outcome, said["refused"])
        results = tuple([self._inside(path) for path in _results(job)])

        def is_declared(path: str) -> bool:
            if path.startswith(_RECORDS):
                return any(path == each or path.startswith(f"{each}/") for each in results)
            return declared.takes(path)

        rows: list[tuple[str, Entry]] = [(path, entry) for path, entry in files["made"]]
        arrived = {
            entry[0]: os.path.join(self._folder, f"made-{said['end']}-{entry[0]}") for _, entry in rows
        }
        try:
            place(self._workspace, rows, arrived, is_declared)
        except NotPlaced as error:
            return _failed(outcome, str(error))
        remove(self._workspace, files["deleted"], is_declared)
        self._tree.name([path for path, _ in rows if not path.startswith(_RECORDS)])
        self._tree.look(files["deleted"])
        return outcome if job.part else self._noted(outcome, files)

    def _noted(self, outcome: Outcome, files: Mapping[str, Any]) -> Outcome:
        """Return an outcome with notes of what was not declared; it fails if another step reads that."""
        if files["unreadable"]:
            outcome = _failed(outcome, f"what it made cannot be read: {files['unreadable']}")
        if not files["left"]:
            return outcome
        read = [(path, reader) for path in files["undeclared"] if (reader := self._sources.reader(path))]
        if read and outcome.status == "completed":
            path, reader = read[0]
            message = (
                f"it writes {path}, which the step {reader} reads, and does not declare it: "
                f"add it to `produces` or `writes`"
            )
            return outcome.but(status="failed", reason="outputs", message=message)
        note = f"not declared in `produces` or `writes`, so no other step finds it: {files['left']}"
        return outcome.but(notes=(*outcome.notes, note))

    def drop(self, step: str) -> None:
        """Forget an attempt that ended without its worker."""
        self._declared.pop(step, None)


def _failed(outcome: Outcome, why: str) -> Outcome:
    """Return an outcome that failed, unless it has failed already."""
    if outcome.status == "completed":
        return outcome.but(status="failed", reason="outputs", message=why)
    return outcome.but(notes=(*outcome.notes, why))


def _results(job: Job) -> list[str]:
    """Return the files and folders in which an attempt leaves its results."""
    output = job.env.get("PLANRUN_OUTPUT", "")
    return [
        *([output + ending for ending in _ENDINGS] if output else []),
        *([job.private] if job.private else []),
    ]
