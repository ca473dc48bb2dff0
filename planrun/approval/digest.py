"""The digest over plan, parameters and files: only what was reviewed runs; and the files that there are. HOT."""

from __future__ import annotations

import os
from stat import S_ISDIR, S_ISREG

from planrun.model.jsontext import dumps
from planrun.model.record import Record
from planrun.plan import cache as kept
from planrun.plan.yaml.file import NotRegular, read_script
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from planrun.model.plan import Plan

FORM = "planrun-reviewed-1"  # changes when the same input gets another digest


class Reviewed(Record):
    """What a run may execute: scripts by workspace-relative path, each with its sha256, read once.

    `uncovered`: files that steps run and that could not be read, and why. `later`: steps whose scripts depend on values
    that are known only during the run. `contents`: bytes by sha256.
    """

    digest: str
    scripts: Mapping[str, str] = {}
    uncovered: Mapping[str, str] = {}
    later: tuple[str, ...] = ()
    contents: Mapping[str, bytes] = {}


def review(plan: Plan, params: Mapping[str, Any], workspace: str, *, recalls: bool = False) -> Reviewed:
    """Read each file that a plan can name, once, and return what a run of it may execute.

    `recalls`: what was found before is taken as long as no file changed its name, size, time or number; without it
    every file is read. Raises InvalidInput for a script that is no regular file or leads out of the workspace.
    """
    if not plan.notify and not any(step.action.starts_process for step in plan.reviewed()):
        return Reviewed(digest=digest_of(plan.digest, params, {}))
    listing = Listing(workspace)
    key = ""
    if recalls:
        facts = (FORM, plan.digest, plan.file, dumps(_ordered(params)), workspace, listing.stamp)
        key = kept.key_of(repr(facts).encode("utf-8", "surrogatepass"), "scripts")
        known = kept.read(key)
        if (
            known is not None
            and listing.says_no_more(known["names"], known["words"])
            and all(
                [listing.state(path) == state for path, state in known["seen"].items()]  # noqa: C419 - half the time
            )
        ):
            contents = _contents(workspace, known["ran"])
            if contents is not None:
                return Reviewed(**known["fields"], contents=contents)
    from planrun.approval.scripts import collect  # once for each state of the files

    found = collect(plan, params, workspace, listing)
    fields: dict[str, Any] = {
        "digest": digest_of(plan.digest, params, found.known),
        "scripts": found.known,
        "uncovered": found.uncovered,
        "later": found.later,
    }
    if key:
        ran = {path: digest for path, digest in found.known.items() if digest in found.contents}
        names = None if listing.is_git else listing.names
        kept.write(
            key, {"seen": found.seen, "ran": ran, "fields": fields, "names": names, "words": found.words}
        )
    return Reviewed(**fields, contents=found.contents)


def _contents(workspace: str, ran: Mapping[str, str]) -> dict[str, bytes] | None:
    found: dict[str, bytes] = {}
    for path, digest in ran.items():
        try:
            data = read_script(os.path.realpath(os.path.join(workspace, path)))
        except (OSError, ValueError, NotRegular):
            return None
        if sha256(data).hexdigest() != digest:
            return None
        found[digest] = data
    return found


def gaps(reviewed: Reviewed) -> dict[str, str]:
    """Return what may run and is no part of the digest, sorted, with the reason."""
    later = {
        f"{name}: a value of another step": "it is known when the step starts" for name in reviewed.later
    }
    return dict(sorted({**reviewed.uncovered, **later}.items()))


def named_plan(plan: Plan, reviewed: Reviewed) -> dict[str, Any]:
    """Return the ledger's record of a run's plan and of its review."""
    named: dict[str, Any] = {
        "name": plan.name,
        "version": plan.version,
        "digest": reviewed.digest,
        "sha256": sha256(plan.source).hexdigest(),  # of the copy in the run's folder
        "file": plan.file,
    }
    if plan.goal:
        named["goal"] = plan.goal
    if plan.files:
        named["files"] = files_of(plan)
    if reviewed.scripts:
        named["scripts"] = dict(sorted(reviewed.scripts.items()))
    if uncovered := gaps(reviewed):
        named["uncovered"] = uncovered
    # The author of a step is not part of the text; in a plan that a model wrote, every step has a model as author.
    if plan.version > 1 or plan.steps[0].origin != "file":
        origins = {step.id: step.origin for step in plan.steps if step.origin != "file"}
        if origins:
            named["origins"] = origins
    return named


def files_of(plan: Plan) -> dict[str, str]:
    """Return the sha256 of each file that a plan uses, by its path from the plan's folder."""
    return {path: str(sha256(data).hexdigest()) for path, data in sorted(plan.files.items())}


def digest_of(canonical: str, params: Mapping[str, Any], scripts: Mapping[str, str]) -> str:
    """Return the digest of what was reviewed, hex; `canonical` is that of the plan alone."""
    parts = [FORM, canonical, _ordered(params), sorted(scripts.items())]
    return str(sha256(dumps(parts).encode()).hexdigest())


def _ordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _ordered(value[key]) for key in sorted(value)}
    return [_ordered(item) for item in value] if isinstance(value, list | tuple) else value


_MOST = 20_000  # files of a workspace without git; more are not listed
_INDEX, _POINTER = 256 << 20, 1 << 16  # bytes
_OWN = (".planrun", "planrun-out")
_OTHERS = frozenset((".git", "node_modules", "__pycache__"))  # folders that no plan brings along
_DEEP = 4  # repositories in each other


class Listing:
    """The files of a workspace, `is_git` those that git tracks; `stamp` then changes whenever the names do.

    `note`: why some are missing, "" otherwise.
    """

    def __init__(self, workspace: str) -> None:
        self.note = self.stamp = ""
        self._folder = os.path.realpath(workspace)
        self._top, self._git = _root_of(self._folder)
        self.is_git = bool(self._git)
        self._names: list[str] | None = None
        if not self._git:
            self._names = sorted(self._walk())
        else:
            self.stamp = repr(_state(os.path.join(self._git, "index")))

    @property
    def names(self) -> list[str]:
        """The paths from the workspace, sorted. Raises InvalidInput for an index that cannot be read."""
        if self._names is None:
            inner = os.path.relpath(self._folder, self._top)
            prefix = "" if inner == "." else f"{inner}/"
            found = _tracked(self._top, self._git, _DEEP)
            below = [path[len(prefix) :] for path in found if path.startswith(prefix)] if prefix else found
            self._names = [
                name
                for name in sorted(below)
                if not name.startswith(_OWN) or name.partition("/")[0] not in _OWN
            ]
        return self._names

    def state(self, path: str) -> tuple[int, ...]:
        """Return what changes when a file changes, links followed; empty when there is none."""
        return _state(os.path.join(self._folder, path))

    def says_no_more(self, before: list[str] | None, words: set[str] | None) -> bool:
        """Whether no file is new, compared with an earlier listing, that texts with these words may name."""
        if before is None or self._names is None or before == self._names:
            return True
        new = {*self._names}.difference(before)
        return not new or (words is not None and not any(_is_named(path, words) for path in new))

    def _walk(self) -> Iterator[str]:
        count, folders, cache = 0, [""], os.path.dirname(kept.folder())
        while folders:
            folder = folders.pop()
            try:
                found = sorted(os.scandir(os.path.join(self._folder, folder)), key=lambda entry: entry.name)
            except OSError:
                continue
            for entry in found:
                path = f"{folder}/{entry.name}" if folder else entry.name
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in _OTHERS and path not in _OWN and entry.path != cache:
                        folders.append(path)
                    continue
                count += 1
                if count > _MOST:
                    self.note = (
                        f"the workspace has more than {_MOST} files, and no git that lists those that count"
                    )
                    return
                if not entry.name.startswith(".planrun-"):
                    yield path


def _root_of(folder: str) -> tuple[str, str]:
    """Return the top of the working tree around a folder, and its git folder; empty when there is none."""
    while True:
        git = os.path.join(folder, ".git")
        try:
            if os.path.isfile(git):  # of a linked working tree or a submodule
                with open(git, encoding="utf-8") as file:
                    return folder, os.path.join(
                        folder, file.readline(_POINTER).removeprefix("gitdir: ").rstrip("\r\n")
                    )
            if os.path.lexists(os.path.join(git, "HEAD")):
                return folder, git
        except (OSError, ValueError):
            return "", ""
        above = os.path.dirname(folder)
        if above == folder:
            return "", ""
        folder = above


def _tracked(top: str, git: str, depth: int) -> list[str]:
    from planrun.actions.gitconfig import entries  # known names are not read again

    path = os.path.join(git, "index")
    try:
        with open(path, "rb") as file:
            data = file.read(_INDEX)
        is_split = any(name.startswith("sharedindex.") for name in os.listdir(git))
        found, links = entries(b"" if is_split else data)
    except FileNotFoundError:  # nothing was added yet
        return []
    except (OSError, ValueError):  # a form that only git knows
        from planrun.plan.revisions import tracked_files

        return tracked_files(top)
    for link in links if depth else ():
        inner, inner_git = _root_of(os.path.realpath(os.path.join(top, link)))
        if inner not in ("", top):
            found += [f"{link}/{name}" for name in _tracked(inner, inner_git, depth - 1)]
    return found


def _is_named(path: str, words: set[str]) -> bool:
    base = path.rpartition("/")[2]
    if not (base.isascii() and base.isprintable()) or " " in base or {path, base, *base.split(".")} & words:
        return True
    while path := path.rpartition("/")[0]:
        if path in words:
            return True
    return False


def _state(path: str) -> tuple[int, ...]:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return ()
    kind = 1 if S_ISREG(found.st_mode) else 2 if S_ISDIR(found.st_mode) else 3
    return kind, found.st_ino, found.st_dev, found.st_size, found.st_mtime_ns, found.st_ctime_ns
