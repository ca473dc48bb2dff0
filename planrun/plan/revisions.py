"""One side of a comparison: a plan in a file, on standard input, or in a commit, as git keeps it.

A commit is read by git's plumbing: no hook, filter, pager or alias has a part in it, the checkout is not looked at,
and nothing is fetched.
"""

from __future__ import annotations

import os
import subprocess
import sys
from hashlib import new

from planrun.errors import InvalidInput, InvalidPlan
from planrun.model.record import Record
from planrun.plan.load import load_bytes
from planrun.plan.readers import SHIPPED, NotIncluded, shipped
from planrun.plan.yaml.file import BOUNDS, MAX_BYTES, read_source, too_large

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from planrun.model.plan import Plan
    from planrun.plan.readers import Reader

NOWHERE = os.devnull
"""The name of a plan that is not there, on purpose."""
_LIMIT = 60  # seconds; git reads local files
_GIT = (
    *("git", "--no-pager", "--literal-pathspecs", "--no-replace-objects"),
    # What git may start by itself while it reads, were it to look at the checkout or at other repositories.
    *("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "protocol.allow=never"),
)


class Side(Record):
    """What was named: as it was written, its bytes (None: there is no such plan), and the plan in them."""

    name: str
    path: str  # of the file, without the commit
    commit: str = ""  # the full name of the commit; empty for a file
    plan: Plan | None = None


def read_side(name: str, stand_in: str = "") -> Side:
    """Return the plan that a word of the command line names.

    `COMMIT:PATH` is read from git, and there may be no such file in the commit. `-` is standard input, called
    `stand_in`. Anything else is a file; one whose name has a colon is written `./a:b.yml`.
    Raises InvalidPlan for a plan with problems, InvalidInput for what cannot be read.
    """
    if name == NOWHERE:
        return Side(name=name, path=name)
    if name == "-":
        path = (stand_in if is_file(stand_in) else stand_in.partition(":")[2]) or "plan.yml"
        try:
            data = b"" if sys.stdin is None else sys.stdin.buffer.read((BOUNDS.size or MAX_BYTES) + 1)
        except (OSError, ValueError) as error:
            raise InvalidInput(
                f"cannot read standard input: {getattr(error, 'strerror', None) or error}"
            ) from None
        if len(data) > (BOUNDS.size or MAX_BYTES):
            raise too_large("standard input")
        return Side(name=name, path=path, plan=_load(data, path, "standard input"))
    if not is_file(name):
        commit, path, data = in_commit(name)
        plan = None if data is None else _load(data, path, name, _files_of_commit(commit, path))
        return Side(name=name, path=path, commit=commit, plan=plan)
    return Side(name=name, path=name, plan=_load(read_source(name), name, name))


def is_file(name: str) -> bool:
    """Say whether a name is one of a file: what has a colon is one only when it begins as a path does."""
    # Not whether such a file exists: a writer of the checkout could create one named like a commit.
    return ":" not in name or name.startswith(("./", "../", "/"))


def path_of(name: str) -> str:
    """Return what a name says without its commit."""
    return name if is_file(name) else name.partition(":")[2]


def _load(data: bytes, path: str, shown: str, read: Reader | None = None) -> Plan:
    """Return the plan in bytes; its problems are reported under the name that the user wrote."""
    try:
        return load_bytes(data, path, cache=False, read=read)
    except InvalidPlan as error:
        problems = [each.but(file=shown) if each.file == path else each for each in error.problems]
        raise InvalidPlan(problems, sources={**error.sources, shown: data}) from None


def _files_of_commit(commit: str, path: str) -> Reader:
    """Return a reader of the files that a plan of a commit uses: they are of the same commit."""
    folder = os.path.dirname(path_from_root(path))

    def read(name: str) -> bytes:
        if name.startswith(SHIPPED):
            return shipped(name)
        found = os.path.normpath(os.path.join(folder, name))
        if found.startswith("../"):
            raise NotIncluded("it is outside the repository")
        try:
            data = in_commit(f"{commit}:{found}")[2]
        except (InvalidInput, InvalidPlan) as error:
            raise NotIncluded(str(error)) from None
        if data is None:
            raise NotIncluded("no such file in the commit")
        return data

    return read


def in_commit(name: str) -> tuple[str, str, bytes | None]:
    """Return the full name of the commit, the path, and the bytes of the file; None where there is no such file."""
    ref, _, path = name.partition(":")
    if not path or not path.isprintable() or path.endswith("/"):
        raise InvalidInput(f'expected COMMIT:path/to/plan.yml, got "{name}"')
    commit = commit_of(ref)
    found = _entry(commit, path)
    if not found:
        return commit, path, None
    mode, kind, blob = found
    if kind != "blob" or mode not in ("100644", "100755"):
        what = {"tree": "a directory", "commit": "a submodule"}.get(kind, "a symbolic link")
        raise InvalidInput(f"{name}: must be a regular file, got {what}")
    return commit, path, _blob(name, blob)


def commit_of(ref: str) -> str:
    """Return the full name of a commit that is there; raises InvalidInput."""
    # A search through all commits is no name either.
    searches = "^{" in ref or any(char in ref for char in " ?*[\\")
    if not ref or ref.startswith("-") or not ref.isprintable() or searches:
        raise InvalidInput(f'invalid commit name "{ref}"; a file with a colon in its name is ./{ref}:…')
    # With that warning off, git silently prefers a tag over a branch of the same name: many may push a tag.
    code, out, why = _git("-c", "core.warnAmbiguousRefs=true", "rev-parse", "--verify", f"{ref}^{{commit}}")
    if not code and "ambiguous" in why:
        raise InvalidInput(f'ambiguous name "{ref}"; write refs/heads/…, refs/remotes/… or refs/tags/…')
    if code:
        code, out, why = _git("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
    commit = out.decode("ascii", "replace").strip()
    if code or not commit.isalnum():
        hint = "fetch it first; a shallow checkout has one commit only"
        raise InvalidInput(f'unknown commit "{ref}": {why or hint}')
    return commit


def _entry(commit: str, path: str) -> tuple[str, str, str] | None:
    """Return mode, kind and object of a path in a commit; None when there is no such path."""
    # A path is counted from the root of the repository, and from this folder when it begins with a dot.
    here = path.startswith(("./", "../"))
    code, out, why = _git("ls-tree", "-z", *([] if here else ["--full-tree"]), commit, "--", path)
    if code:
        raise InvalidInput(f"git cannot look for {path}: {why}")
    row = out.split(b"\0")[0].decode("utf-8", "replace")
    if not row:
        return None
    mode, kind, blob = row.partition("\t")[0].split(" ")
    return mode, kind, blob


def find_entries(folder: str) -> list[str]:
    """Return the paths in a folder of a commit, `COMMIT:PATH/`, from the root; none where there is no such folder."""
    ref, _, path = folder.partition(":")
    words = [path_from_root(path) + "/"] if path_from_root(path) else []
    code, out, why = _git("ls-tree", "-z", "--full-tree", "--name-only", commit_of(ref), "--", *words)
    if code:
        raise InvalidInput(f"git cannot look into {folder}: {why}")
    return [row.decode("utf-8", "surrogateescape") for row in out.split(b"\0") if row]


def listed_files(folder: str) -> list[str] | None:
    """Return the files of a folder in a checkout, committed or not, without those that git ignores; from that folder.

    None where git has no answer: no repository, no git, or the repository belongs to another user.
    """
    words = ("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
    try:
        code, out, _ = _git("-C", folder, *words)
    except InvalidInput:
        return None
    found = [row.decode("utf-8", "surrogateescape") for row in out.split(b"\0") if row]
    return None if code or not found else found


def tracked_files(folder: str) -> list[str]:
    """Return the files of a checkout that git tracks, from that folder; raises InvalidInput."""
    code, out, why = _git("-C", folder, "ls-files", "-z", "--cached", "--deduplicate")
    if code:
        raise InvalidInput(f"git cannot list the files of {folder}: {why}")
    return [row.decode("utf-8", "surrogateescape") for row in out.split(b"\0") if row]


def files_of_commit(commit: str) -> list[str]:
    """Return the files of a commit below this folder, from there; raises InvalidInput."""
    code, out, why = _git("ls-tree", "-r", "-z", "--name-only", commit)
    if code:
        raise InvalidInput(f"git cannot list the files of {commit}: {why}")
    return [row.decode("utf-8", "surrogateescape") for row in out.split(b"\0") if row]


def ignored_files(folder: str, paths: list[str]) -> set[str]:
    """Return those of some paths in a checkout that git ignores; none where git has no answer."""
    given = "".join([f"./{path}\0" for path in paths]).encode("utf-8", "surrogateescape")
    plain = [word for word in _GIT if word != "--literal-pathspecs"]  # which this subcommand refuses
    try:
        _, out, _ = _git("-C", folder, "check-ignore", "-z", "--stdin", given=given, program=plain)
    except InvalidInput:
        return set()
    return {path.removeprefix("./") for path in out.decode("utf-8", "surrogateescape").split("\0")} - {""}


def path_from_root(path: str) -> str:
    """Return a path of the repository from its root; one that begins with a dot counts from this folder."""
    if not path.startswith(("./", "../")):
        return path.rstrip("/")
    code, out, why = _git("rev-parse", "--show-prefix")
    if code:
        raise InvalidInput(f"not a git repository: {why}")
    prefix = out.decode("utf-8", "surrogateescape").removesuffix("\n")
    found = os.path.normpath(os.path.join(prefix, path))
    if found == ".." or found.startswith("../"):
        raise InvalidInput(f"{path} is outside the repository")
    return "" if found == "." else found


def blobs(commit: str, paths: list[str]) -> dict[str, str]:
    """Return git's names for the contents of files in a commit, as far as it has them; paths count from this folder."""
    asked = [path for path in paths if "\n" not in path]
    lines = "".join([f"{commit}:./{path}\n" for path in asked]).encode("utf-8", "surrogateescape")
    code, out, why = _git("cat-file", "--batch-check", given=lines)
    if code:
        raise InvalidInput(f"git cannot look for scripts: {why}")
    rows = [row.split(" ") for row in out.decode("utf-8", "replace").split("\n")]
    # `NAME blob SIZE`, or the word that was asked for and `missing`, one row for each path.
    found = zip(asked, rows, strict=False)
    return {path: row[0] for path, row in found if len(row) == 3 and row[0].isalnum() and row[1] == "blob"}


def blob_name(data: bytes, like: str) -> str:
    """Return git's name for a content; `like`: another name, whose length shows the kind of hash."""
    head = f"blob {len(data)}\0".encode()
    return new("sha256" if len(like) == 64 else "sha1", head + data, usedforsecurity=False).hexdigest()


def _blob(name: str, blob: str) -> bytes:
    code, size, why = _git("cat-file", "-s", blob)
    if not code and int(size) > (BOUNDS.size or MAX_BYTES):
        raise too_large(name)
    if not code:
        code, out, why = _git("cat-file", "blob", blob)
        if not code:
            return out
    raise InvalidInput(
        f"git cannot read {name}: {why or 'a partial clone may lack it, and planrun fetches nothing'}"
    )


def _git(*words: str, given: bytes = b"", program: Sequence[str] = _GIT) -> tuple[int, bytes, str]:
    """Run git with something to read, and return its exit code, what it says, and the first line of its complaint."""
    try:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        ours = (
            "GIT_NO_LAZY_FETCH=1",
            "GIT_TERMINAL_PROMPT=0",
            "GIT_OPTIONAL_LOCKS=0",
            "GIT_ALLOW_PROTOCOL=none",
            "LC_ALL=C",
        )
        done = subprocess.run(
            [*program, *words],
            env={**kept, **dict([word.split("=") for word in ours])},
            input=given,
            capture_output=True,
            timeout=_LIMIT,
            check=False,
        )
    except OSError as error:
        raise InvalidInput(f"cannot run git: {(error.strerror or 'unknown error').lower()}") from None
    except subprocess.TimeoutExpired:
        raise InvalidInput(f"git did not answer within {_LIMIT} seconds") from None
    why = done.stderr.decode("utf-8", "replace").strip().split("\n")[0]
    return done.returncode, done.stdout, why.removeprefix("fatal: ")
