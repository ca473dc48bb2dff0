"""The files that a step reads, creates and changes: matched by patterns and compared by content.

A symbolic link is a file whose content is its target; links are not followed. Other file types are ignored. Times are
not compared, since they do not show the content.

The files of a step are scanned before it starts and after it ended; its record lists the changes.

For plans with `track_files` two scans of the tree, before and after, list all files that a step changed, named or not.
A file counts as changed when its time, size or inode did; its hash is that of its content when the step ended. The hash
before is known if an earlier step of the same process left the file in that state. Branches and tags are compared, too.
"""

from __future__ import annotations

import hashlib
import os
from errno import EACCES, ELOOP, ENOENT, ENOTDIR
from stat import S_IMODE, S_ISDIR, S_ISLNK, S_ISREG  # os has loaded it already

from planrun.errors import EvaluationError
from planrun.expressions.render import render_pattern
from planrun.model.globs import BadGlob, fits, is_hidden, matches, parse
from planrun.model.record import Record
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from planrun.model.globs import Glob
    from planrun.model.job import Outcome
    from planrun.model.plan import Step, Text
    from planrun.model.state import RunState

    State = tuple[int, int, int]  # mtime in ns, size, inode
    Tree = dict[str, State]


KINDS = {"heads": "branch", "tags": "tag"}
"""What the refs below these folders of `refs` are called."""
MOST = 1000
"""Rows of one attempt."""


def refs_of(root: str) -> dict[tuple[str, str], str]:
    """Return what each branch and tag of the repository in a folder points at, by kind and name."""
    git = os.path.join(root, ".git")
    try:
        if os.path.isfile(git):  # of a worktree, whose refs are those of the main one
            with open(git, encoding="utf-8", errors="surrogateescape") as file:
                git = os.path.join(root, file.read().removeprefix("gitdir:").strip())
            with open(f"{git}/commondir", encoding="utf-8", errors="surrogateescape") as file:
                git = os.path.join(git, file.read().strip())
        found = dict(_packed(git))
    except OSError:
        found = {}
    for folder, kind in KINDS.items():
        found.update(_loose(f"{git}/refs/{folder}", kind))
    return found


def _packed(git: str) -> Iterator[tuple[tuple[str, str], str]]:
    try:
        with open(f"{git}/packed-refs", encoding="utf-8", errors="surrogateescape") as file:
            rows = file.read().splitlines()
    except FileNotFoundError:
        return
    for row in rows:
        target, _, name = row.partition(" ")
        _, folder, short = (*name.split("/", 2), "", "")[:3]
        if folder in KINDS and short and not row.startswith(("#", "^")):
            yield (KINDS[folder], short), target


def _loose(top: str, kind: str) -> Iterator[tuple[tuple[str, str], str]]:
    for folder, _, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            try:
                with open(path, encoding="utf-8", errors="surrogateescape") as file:
                    yield (kind, os.path.relpath(path, top)), file.read().strip()
            except OSError:  # it is being written, or gone
                continue


def changes(
    before: Mapping[tuple[str, str], str], after: Mapping[tuple[str, str], str]
) -> tuple[dict[str, Any], ...]:
    """Return a row for each branch or tag that was created, moved or deleted."""
    rows = []
    for kind, name in sorted({*before, *after}):
        old, new = before.get((kind, name)), after.get((kind, name))
        if old != new:
            action = "created" if old is None else "deleted" if new is None else "changed"
            rows.append({"kind": kind, "id": name, "action": action})
    return tuple(rows[:MOST])


CHUNK = 1 << 20  # bytes that are read at a time
LARGE = 1 << 18  # bytes from which OpenSSL's implementation is worth its 3 ms of loading
DEEPEST = 200  # levels of nested folders
_GONE = (EACCES, ELOOP, ENOENT, ENOTDIR)
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Seen(Record):
    """One file: the sha256 of its bytes, or of the text of a link; its mode (of a link 0), and how many bytes."""

    sha256: str
    bytes: int
    mode: int
    link: bool = False

    @property
    def same(self) -> tuple[str, bool, bool]:
        """A key that is equal exactly for interchangeable files."""
        return self.sha256, self.link, bool(self.mode & 0o100)


class Patterns(Record):
    """The parsed patterns of a plan: each text with its globs, and the excluding ones."""

    texts: tuple[str, ...]
    wanted: tuple[tuple[Glob, ...], ...]
    unwanted: tuple[tuple[Glob, ...], ...] = ()
    without: tuple[str, ...] = ()  # the texts of the excluding ones

    def takes(self, path: str) -> bool:
        """Return whether a path matches."""
        return any(matches(globs, path) for globs in self.wanted) and not self.leaves(path)

    def leaves(self, path: str) -> bool:
        """Return whether a path is excluded."""
        return any(matches(globs, path) for globs in self.unwanted)


def patterns(texts: Sequence[Text], scope: dict[str, Any]) -> Patterns:
    """Return the parsed patterns of a step, values filled in; raises EvaluationError."""
    return patterns_of([rendered(text, scope) for text in texts])


def patterns_of(texts: Sequence[str]) -> Patterns:
    """Return the parsed patterns of texts; raises EvaluationError."""
    wanted: dict[str, tuple[Glob, ...]] = {}
    unwanted: dict[str, tuple[Glob, ...]] = {}
    for text in texts:
        try:
            if text.startswith("!"):
                unwanted[text[1:]] = parse(text[1:])
            else:
                wanted[text] = parse(text)
        except BadGlob as error:
            raise EvaluationError(f'the pattern "{text}" {error}') from None
    return Patterns(
        texts=tuple(wanted),
        wanted=tuple(wanted.values()),
        unwanted=tuple(unwanted.values()),
        without=tuple(unwanted),
    )


def rendered(text: Text, scope: dict[str, Any]) -> str:
    """Return a pattern with its values, which match literally; raises EvaluationError."""
    if isinstance(text, str):
        return text
    return render_pattern(text, scope)


def snapshot(root: str, wanted: Patterns, hidden: Sequence[str] = ()) -> dict[str, Seen]:
    """Return the states of all files of a workspace that match patterns, by path, in order.

    `hidden`: planrun's own folders, which no pattern matches. Raises OSError for a file that cannot be read.
    """
    seen = {path: look(os.path.join(root, path)) for path in matching(root, wanted, hidden)}
    return {path: each for path, each in seen.items() if each is not None}


def matching(root: str, wanted: Patterns, hidden: Sequence[str] = ()) -> list[str]:
    """Return the paths in a folder that match patterns, in order; raises OSError for folders too deep."""
    found: dict[str, None] = {}
    for globs in wanted.wanted:
        for glob in globs:
            found.update(dict.fromkeys(_found(root, glob)))
    return [
        path
        for path in sorted(found)
        if not wanted.leaves(path)
        and not any(path == folder or path.startswith(folder + "/") for folder in hidden)
    ]


def unmatched(wanted: Patterns, seen: Mapping[str, Seen]) -> list[str]:
    """Return the texts of the patterns without a match among some files."""
    return [
        text
        for text, globs in zip(wanted.texts, wanted.wanted, strict=True)
        if not any(matches(globs, path) for path in seen)
    ]


def look(path: str) -> Seen | None:
    """Return the state of a file; None if there is neither a file nor a link. Raises OSError."""
    try:
        fd = os.open(path, _READ)
    except OSError:
        try:
            mode = os.lstat(path).st_mode
            if not S_ISLNK(mode):
                if S_ISREG(mode):
                    raise PermissionError(13, "Permission denied", path)
                return None
            text = os.fsencode(os.readlink(path))
        except FileNotFoundError:
            return None
        return Seen(sha256=sha256(text).hexdigest(), bytes=len(text), mode=0, link=True)
    try:
        status = os.fstat(fd)
        if not S_ISREG(status.st_mode):
            return None
        return Seen(sha256=hash_of(fd, status.st_size), bytes=status.st_size, mode=S_IMODE(status.st_mode))
    finally:
        os.close(fd)


def hash_of(fd: int, size: int) -> str:
    """Return the sha256 of the rest of a file, hex; `size`: its approximate number of bytes."""
    found = sha256() if size <= LARGE else hashlib.sha256()
    while block := os.read(fd, CHUNK):
        found.update(block)
    return str(found.hexdigest())


def _found(root: str, glob: Glob) -> Iterator[str]:
    """Yield the files that a glob matches, and all files in the folders that it matches."""
    try:
        fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        yield from _below(fd, "", glob, frozenset((0,)))
    finally:
        os.close(fd)


def _below(folder: int, before: str, glob: Glob, places: frozenset[int]) -> Iterator[str]:
    """Walk an open folder with all positions in the glob that its name can match."""
    if before.count("/") > DEEPEST:
        raise OSError(ELOOP, f"more than {DEEPEST} folders in each other", before)
    at = _beyond(glob, places)
    for name, is_folder in _names(folder, glob, at):
        ahead = frozenset(
            place if place == len(glob) or glob[place] is None else place + 1
            for place in at
            if place == len(glob) or glob[place] is None or fits(glob[place] or (), name)
        )
        if not ahead:
            continue
        if not is_folder:
            if len(glob) in _beyond(glob, ahead):
                yield before + name
            continue
        try:
            inner = os.open(name, _FOLDER, dir_fd=folder)
        except OSError as error:
            if error.errno in _GONE:  # or it is unreadable, for the step as well
                continue
            raise
        try:
            yield from _below(inner, f"{before}{name}/", glob, ahead)
        finally:
            os.close(inner)


def _beyond(glob: Glob, places: frozenset[int]) -> frozenset[int]:
    """Add the positions after a `**` that matches nothing."""
    return places | {place + 1 for place in places if place < len(glob) and glob[place] is None}


def _names(folder: int, glob: Glob, at: frozenset[int]) -> Iterator[tuple[str, bool]]:
    """Yield the names in a folder that can match, and whether each is a folder; a single name is looked up."""
    if len(at) == 1 and (place := next(iter(at))) < len(glob):
        part = glob[place]
        if part is not None and all(len(token) == 1 and len(token[0]) == 1 for token in part):
            name = "".join([str(token[0]) for token in part])
            try:
                mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
            except (OSError, ValueError):
                return
            if not is_hidden(name):
                yield name, S_ISDIR(mode)
            return
    with os.scandir(folder) as listed:
        rows = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in listed]
    yield from [row for row in sorted(rows) if not is_hidden(row[0])]


MAX_LISTED = 1000
"""The maximum of files in the record of one attempt, created ones first; for the others their number and list hash."""
MADE = ("created", "changed", "unchanged", "restored")
_NAMED = 3  # patterns in a message


class Before(Record):
    """The files of a step as they were before it started; `kept`: patterns by when their files are kept."""

    inputs: Patterns
    produces: Patterns
    kept: Mapping[str, Patterns]
    writes: Patterns
    read: Mapping[str, Seen]
    made: Mapping[str, Seen]
    others: Mapping[str, Seen]

    def takes(self, path: str, *, failed: bool) -> bool:
        """Return whether a file is an output of the step, given whether the step failed."""
        return any(each.takes(path) for each in self.wanted(failed=failed))

    def wanted(self, *, failed: bool) -> list[Patterns]:
        """Return the patterns of the output files of the step, given whether it failed."""
        return [self.produces, *[each for when, each in self.kept.items() if failed or when != "failed"]]


class After(Record):
    """The files that a step made, those in its record, and the problem with them, "" for none."""

    made: Mapping[str, Seen]
    listed: tuple[dict[str, Any], ...]
    problem: str = ""


class Filing:
    """The files of a run's steps, in a workspace; `hidden` are folders in it that no pattern matches."""

    def __init__(self, workspace: str, hidden: Sequence[str]) -> None:
        self._workspace = workspace
        self._hidden = hidden
        self._looked: dict[str, Before] = {}  # for steps that are about to start
        self._begun: dict[str, Before] = {}
        self._ended: dict[str, tuple[Before, After]] = {}  # for steps whose post-checks may still run
        self.on_end: Callable[[Step, Before, After, Outcome], Outcome] | None = (
            None  # for the reuse of results
        )

    def look(self, step: Step, scope: dict[str, Any]) -> Before:
        """Scan the files of a step; an attempt that is prepared right after uses the result. Raises EvaluationError."""
        found = self._looked[step.id] = before(step, scope, self._workspace, self._hidden)
        return found

    def again(self, known: Before) -> Mapping[str, Seen]:
        """Scan again the files that a step reads; raises EvaluationError."""
        return _look(self._workspace, known.inputs, self._hidden)

    def reading(self, step: Step, scope: dict[str, Any]) -> dict[str, str]:
        """Return the SHA-256 of each file that a step would read now, by path; raises EvaluationError."""
        wanted = patterns((*step.inputs, *(step.cache.inputs if step.cache else ())), scope)
        return {path: seen.sha256 for path, seen in _look(self._workspace, wanted, self._hidden).items()}

    def begin(self, step: Step, scope: dict[str, Any]) -> None:
        """Scan the files of a step that starts, unless just done; raises EvaluationError."""
        found = self._looked.pop(step.id, None)
        self._begun[step.id] = found or before(step, scope, self._workspace, self._hidden)

    def begun(self, step: str) -> Before | None:
        """Return the files of a running step as they were before it started; None if it names none."""
        return self._begun.get(step)

    def ended(self, step: Step, outcome: Outcome) -> Outcome:
        """Return the outcome of an attempt with the changes of its files; missing ones make it failed(outputs)."""
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
        """Keep the reusable files once all checks of an attempt passed; returns its outcome with them."""
        seen = self._ended.pop(step.id, None)
        if (
            seen and outcome.status == "failed" and "failed" in seen[0].kept
        ):  # a check after its action failed
            try:
                found = after(seen[0], self._workspace, self._hidden, failed=True)
                outcome = outcome.but(files=found.listed) if found.listed else outcome
            except EvaluationError:  # the failure itself is more important
                pass
        return self.on_end(step, *seen, outcome) if seen and self.on_end else outcome


def before(step: Step, scope: dict[str, Any], root: str, hidden: Sequence[str]) -> Before:
    """Scan the files of a step that is about to start; raises EvaluationError."""
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
    """Scan them again when the step ended; raises EvaluationError for a file that cannot be read."""
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
        problem = f"it did not create what it declares under `produces`: no file matches {named}{more}"
    return After(made=made, listed=listing(rows), problem=problem)


def listing(rows: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    """Return rows for a record, the last one for all that exceed the limit."""
    if len(rows) <= MAX_LISTED:
        return tuple(rows)
    left = rows[MAX_LISTED:]
    size = sum([row["bytes"] for row in left])
    return (*rows[:MAX_LISTED], {"op": "more", "count": len(left), "bytes": size, "sha256": digest(left)})


def digest(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return a digest that is equal exactly when the steps made the same files, by any operation."""
    nothing = sha256().hexdigest()  # of the unlisted files, if these are other files
    lines = [
        f"{row.get('path', '')}\0{row['sha256']}\n"
        for row in rows
        if row["op"] in (*MADE, "more") and "key" not in row and row["sha256"] != nothing
    ]
    return str(sha256("".join(lines).encode("utf-8", "surrogatepass")).hexdigest())


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


MAX_FILES = 20_000  # of a tree; a larger one is not scanned, and the record says so
MAX_CHANGES_LISTED = 1000  # rows of one attempt
MAX_HASHED = 16 << 20  # bytes of one file: hashing happens between two steps
ALL_HASHED = 64 << 20  # bytes of one attempt
KEY = "tracked"  # distinguishes such a row from those of files that a step names
_NEVER = (".git", ".planrun", "planrun-out")


class TooMany(Exception):
    """The tree has more than MAX_FILES files."""


class Tracking:
    """What changed in the tree of a run; `hidden`: folders in it that hold reports."""

    def __init__(self, root: str, hidden: Sequence[str]) -> None:
        self._root = root
        self._hidden = frozenset((*_NEVER, *hidden))
        self._begun: dict[str, Tree | None] = {}  # None: too many files
        self._refs: dict[str, Mapping[tuple[str, str], str]] = {}
        self._beside: dict[str, dict[str, None]] = {}  # the steps that ran at the same time
        self._hashes: dict[str, tuple[State, str]] = {}

    def begin(self, step: Step, state: RunState) -> None:
        """Scan the tree before an attempt starts."""
        running = [name for name, each in state.steps.items() if each.status == "running" and name != step.id]
        running = [name for name in running if state.steps[name].step.kind != "group"]
        self._beside[step.id] = dict.fromkeys(running)
        for name in running:
            if name in self._beside:
                self._beside[name][step.id] = None
        self._begun[step.id] = self._tree()
        self._refs[step.id] = refs_of(self._root)

    def ended(self, step: Step, outcome: Outcome) -> Outcome:
        """Return the outcome of an attempt with a row for each changed file that has none yet, branch and tag."""
        if step.id not in self._begun:
            return outcome
        before, after, beside = self._begun.pop(step.id), self._tree(), self._beside.pop(step.id)
        also = {"also": list(beside)} if beside else {}
        if moved := changes(self._refs.pop(step.id), refs_of(self._root)):
            outcome = outcome.but(resources=(*outcome.resources, *[{**row, **also} for row in moved]))
        if before is None or after is None:
            note = f"its changes are not recorded: the tree has more than {MAX_FILES:,} files"
            return outcome.but(notes=(*outcome.notes, note))
        known = {row.get("path") for row in outcome.files}
        changed = [path for path, state in after.items() if before.get(path) != state]
        paths = sorted({*changed, *[path for path in before if path not in after]} - known)
        left, budget = len(paths) - MAX_CHANGES_LISTED, ALL_HASHED
        rows: list[dict[str, Any]] = []
        for path in paths[:MAX_CHANGES_LISTED]:
            row = self._row(path, before.get(path), after.get(path), budget)
            budget -= row["bytes"] if row["sha256"] else 0
            rows.append({**row, "key": KEY, **also})
        if left > 0:
            rows.append({"op": "more", "count": left, "bytes": 0, "sha256": "", "key": KEY})
        return outcome.but(files=(*outcome.files, *rows)) if rows else outcome

    def _row(self, path: str, old: State | None, new: State | None, budget: int) -> dict[str, Any]:
        """Return one row; `budget`: the bytes that may still be hashed. An empty hash is unknown."""
        state, sha256 = self._hashes.pop(path, (None, ""))
        before = {"before": sha256} if sha256 and state == old else {}
        if new is None:
            return {"path": path, "op": "deleted", "sha256": "", "bytes": 0, **before}
        found = self._hash(path) if new[1] <= min(MAX_HASHED, budget) else ""
        if found:
            self._hashes[path] = new, found
        op = "created" if old is None else "changed"
        return {"path": path, "op": op, "sha256": found, "bytes": new[1], **before}

    def _hash(self, path: str) -> str:
        try:
            seen = look(os.path.join(self._root, path))
        except OSError:
            return ""
        return seen.sha256 if seen else ""

    def _tree(self) -> Tree | None:
        found: Tree = {}
        try:
            self._walk(self._root, "", found)
        except TooMany:
            return None
        return found

    def _walk(self, folder: str, before: str, found: Tree) -> None:
        """Add all files below a folder; skip unreadable ones."""
        inner: list[str] = []
        try:
            with os.scandir(folder) as listed:
                for entry in listed:
                    name = entry.name
                    if name in _NEVER or before + name in self._hidden:
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        inner.append(name)
                        continue
                    status = entry.stat(follow_symlinks=False)
                    found[before + name] = status.st_mtime_ns, status.st_size, status.st_ino
        except OSError:
            pass
        if len(found) > MAX_FILES:
            raise TooMany
        for name in inner:
            self._walk(f"{folder}/{name}", f"{before}{name}/", found)
