"""The copy of the workspace that an agent works on, and the patch that its work results in.

A copy has the files of the workspace that git does not ignore, or all of them where there is no git, without records of
planrun, without links that lead out of it, and without files that look like secrets unless the step names them: what an
agent reads goes to the service of its model. In it is a repository of its own with the history of the workspace, so
that no command of git in it reaches the repository of the workspace. The base that the patch is made against is in a
second repository beside it, which the agent is not told of, with settings of planrun alone.
"""

from __future__ import annotations

import json
import os
import shutil
import stat

from planrun.folders import dependencies, write_atomically
from planrun.risk.sensitive import looks_secret
from planrun.sha256 import sha256
from planrun.tools.git import Git, decoded
from planrun.tools.ground import GIT, RECORDS, Refusal, plural, say
from planrun.tools.walking import is_hidden

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from planrun.tools.ground import Ground

TREE, BASE = "tree", "base.git"
BASE_VARIABLE = "PLANRUN_AGENT_BASE"
"""Where the base of a copy is, for the tool `diff`."""
MOST_FILES = 100_000
MOST_BYTES = 4 << 30
MOST_PATCH = 16 << 20
_FILE, _EXECUTABLE, _LINK, _REPOSITORY = "100644", "100755", "120000", "160000"
# Content counts byte by byte: no setting of the workspace may change what the patch says.
_ATTRIBUTES = "* !text !eol !crlf !filter !ident !working-tree-encoding !diff !merge\n"
_EXCLUDED = "__pycache__/\n*.pyc\n.pytest_cache/\n.mypy_cache/\n.ruff_cache/\n.planrun/\nnode_modules/\n"
_SETTINGS = (
    *("-c", "core.autocrlf=false", "-c", "core.safecrlf=false", "-c", "core.fileMode=true"),
    *("-c", "core.symlinks=true", "-c", "core.excludesFile=/dev/null", "-c", "core.attributesFile=/dev/null"),
    *("-c", "core.precomposeUnicode=false", "-c", "core.ignoreCase=false", "-c", "core.quotePath=true"),
    *("-c", "diff.noprefix=false", "-c", "diff.mnemonicPrefix=false", "-c", "advice.addEmbeddedRepo=false"),
)


def make(ground: Ground, args: dict[str, Any]) -> dict[str, Any]:
    """Copy the workspace to `folder`, which is made, and remember it as the base of a patch.

    `read`: the paths in the workspace of secrets that the copy has all the same.
    """
    folder: str = args["folder"]
    if os.path.lexists(folder):  # of a planrun that was killed before the copy was complete
        shutil.rmtree(folder)
    tree = os.path.join(folder, TREE)
    os.makedirs(tree, 0o700)
    source = Git(ground.top)
    count, size, links, secrets = 0, 0, 0, 0
    for path in _files(ground, source):
        if is_hidden(path):
            continue
        if looks_secret(path) and not any(f"{path}/".startswith(f"{each}/") for each in args.get("read", ())):
            secrets += 1
            continue
        taken = _taken(ground.top, tree, path)
        links += taken < 0
        count += taken >= 0
        size += max(taken, 0)
        if count > MOST_FILES or size > MOST_BYTES:
            raise Refusal(
                f"the workspace has more than {MOST_FILES:,} files or {MOST_BYTES >> 30} GiB to copy"
            )
    _base(folder)
    _history(source, ground.top, tree)
    top = ground.top
    linked = []  # folders of installed packages, which git ignores and a sandbox shows
    for path in dependencies(top):
        target = os.path.join(tree, path)
        if not os.path.lexists(target) and os.path.isdir(os.path.dirname(target)):
            os.symlink(os.path.join(top, path), target)
            linked.append(path)
    # A pattern of `.gitignore` with a slash at its end fits no link: both repositories ignore these by name.
    for repository in (os.path.join(folder, BASE), os.path.join(tree, GIT)):
        os.makedirs(os.path.join(repository, "info"), exist_ok=True)
        with open(os.path.join(repository, "info", "exclude"), "a", encoding="utf-8") as file:
            file.writelines(f"/{path}\n" for path in linked if "\n" not in path)
    say(f"copied {plural(count, 'file')}, {size:,} bytes")
    if links:
        say(f"left out {plural(links, 'link')} that lead out of the workspace")
    if secrets:
        say(f"left out {plural(secrets, 'file')} that may hold secrets; `sandbox: {{read: […]}}` shows them")
    return {}


def _files(ground: Ground, source: Git) -> Iterator[str]:
    answer = source.ask("ls-files", "-z", "--cached", "--others", "--exclude-standard", quietly=True)
    if answer.code == 0:
        for path in dict.fromkeys(decoded(answer.out).split("\0")):
            if path and not {RECORDS, GIT} & {part.lower() for part in path.split("/")}:
                yield path
        return
    for within, folders, files in os.walk(ground.top):
        folders[:] = [name for name in folders if name.lower() not in (RECORDS, GIT)]
        linked = [name for name in folders if os.path.islink(os.path.join(within, name))]
        for name in (*files, *linked):
            yield os.path.relpath(os.path.join(within, name), ground.top)


def _taken(top: str, tree: str, path: str) -> int:
    """Copy one file and return its bytes; -1 for a link that leads outside."""
    source, target = os.path.join(top, path), os.path.join(tree, path)
    try:
        mode = os.lstat(source).st_mode
    except OSError:  # deleted, and still in the index
        return 0
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if stat.S_ISLNK(mode):
        goal = os.readlink(source)
        if leads_out(path, goal):
            return -1
        os.symlink(goal, target)
        return 0
    if not stat.S_ISREG(mode):
        return 0
    if os.path.realpath(os.path.dirname(source)) != os.path.join(top, os.path.dirname(path)).rstrip("/"):
        return -1
    shutil.copyfile(source, target, follow_symlinks=False)
    os.chmod(target, mode & 0o777 | 0o600)
    return os.path.getsize(target)


def leads_out(path: str, goal: str) -> bool:
    """Whether a link at a path of the workspace leads out of it, or into records or the inside of git."""
    if goal.startswith("/"):
        return True
    parts: list[str] = []
    for part in [*path.split("/")[:-1], *goal.split("/")]:
        if part == "..":
            if not parts:
                return True
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return bool({RECORDS, GIT} & {part.lower() for part in parts})


def _base(folder: str) -> None:
    """Make the repository that has the copy as it was."""
    base = os.path.join(folder, BASE)
    Git(folder, "drivers").need("init", "--quiet", "--bare", "--template=", base)
    for name, text in (("attributes", _ATTRIBUTES), ("exclude", _EXCLUDED)):
        os.makedirs(os.path.join(base, "info"), exist_ok=True)
        with open(os.path.join(base, "info", name), "w", encoding="ascii") as file:
            file.write(text)
    git = _of_copy(folder, os.path.join(base, "index"))
    git.need(*_SETTINGS, "add", "--all", "--force", "--", ".")
    tree = decoded(git.need(*_SETTINGS, "write-tree")).strip()
    with open(os.path.join(folder, "base"), "w", encoding="ascii") as file:
        file.write(tree)


def _of_copy(folder: str, index: str) -> Git:
    return Git(os.path.join(folder, TREE), "drivers").in_place(os.path.join(folder, BASE), index)


def _history(source: Git, top: str, tree: str) -> None:
    """Give the copy a repository of its own; it borrows the objects of that of the workspace."""
    git = Git(tree, "drivers")
    git._env = {**git._env, "GIT_CEILING_DIRECTORIES": os.path.dirname(tree)}
    git.need("init", "--quiet", "--template=")
    shown = source.line("rev-parse", "--show-toplevel")
    head = source.line("rev-parse", "--verify", "HEAD^{commit}")
    if head and shown and os.path.realpath(shown) == top:
        objects = source.line("rev-parse", "--path-format=absolute", "--git-path", "objects")
        with open(os.path.join(tree, GIT, "objects", "info", "alternates"), "w", encoding="utf-8") as file:
            file.write(f"{objects}\n")
        shallow = source.line("rev-parse", "--path-format=absolute", "--git-path", "shallow")
        if os.path.isfile(shallow):
            shutil.copyfile(shallow, os.path.join(tree, GIT, "shallow"))
        git.need("update-ref", "HEAD", head)
        git.need("read-tree", "HEAD")


def base_of(folder: str) -> str:
    """Return the tree that the copy in a folder was made as."""
    with open(os.path.join(folder, "base"), encoding="ascii") as file:
        return file.read().strip()


def changes(ground: Ground, path: str) -> str:
    """Return what changed in a copy, or in the workspace since its last commit, as a diff for a model."""
    folder = os.environ.get(BASE_VARIABLE, "")
    only = ["--", path] if path.strip("./") else []
    if not folder:
        git = Git(ground.top)
        return decoded(git.need("diff", "--no-ext-diff", "--no-textconv", "HEAD", *only))
    git = _with_changes(folder, "diff.index")
    return decoded(git.need(*_SETTINGS, *_DIFF, base_of(folder), *only))


_DIFF = ("diff", "--cached", "--no-ext-diff", "--no-textconv", "--no-renames", "--no-color")


def _with_changes(folder: str, name: str) -> Git:
    """Return git with an index that has the copy as it is now."""
    index = os.path.join(folder, name)
    shutil.copyfile(os.path.join(folder, BASE, "index"), index)
    git = _of_copy(folder, index)
    git.need(*_SETTINGS, "add", "--all", "--", ".")
    return git


def patch(ground: Ground, args: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG001 - the form of a tool
    """Write what changed in the copy in `folder` to the file `out`, and what is in it to `out`.json."""
    folder, out = args["folder"], args["out"]
    git = _with_changes(folder, "patch.index")
    base = base_of(folder)
    files = list(_changed(git, base))
    data = git.need(*_SETTINGS, *_DIFF, "--binary", "--full-index", base) if files else b""
    if len(data) > MOST_PATCH:
        raise Refusal(f"the changes make a patch of more than {MOST_PATCH >> 20} MiB")
    insertions, deletions = _counted(git, base)
    facts = {
        "sha256": str(sha256(data).hexdigest()),
        "bytes": len(data),
        "base": base,
        "insertions": insertions,
        "deletions": deletions,
        "files": files,
    }
    os.makedirs(os.path.dirname(out), 0o700, exist_ok=True)
    write_atomically(out, data, mode=0o600, sync=True)
    write_atomically(f"{out}.json", json.dumps(facts).encode(), mode=0o600, sync=True)
    say(f"{plural(len(files), 'file')} changed, {insertions} insertions, {deletions} deletions")
    return {}


def _changed(git: Git, base: str) -> Iterator[dict[str, Any]]:
    """Yield each changed file; raises Refusal for what no patch may hold."""
    words = ("diff-index", "--cached", "--no-renames", "--full-index", "--raw", "-z", base)
    parts = decoded(git.need(*_SETTINGS, *words)).split("\0")
    for head, path in zip(parts[::2], parts[1::2], strict=False):
        old, new, before, after, letter = head.removeprefix(":").split(" ")
        if _REPOSITORY in (old, new):
            raise Refusal(f"{path}: it is a repository in the copy; a patch cannot have it")
        content = git.need("cat-file", "blob", after) if new != "000000" else b""
        if new == _LINK and leads_out(path, os.fsdecode(content)):
            raise Refusal(f"{path}: it is a link that leads out of the workspace")
        known = git.need("cat-file", "blob", before) if old != "000000" else b""
        yield {
            "path": path,
            "op": {"A": "added", "D": "deleted"}.get(letter[:1], "modified"),
            "mode": new,
            "before": str(sha256(known).hexdigest()) if old != "000000" else "",
            "after": str(sha256(content).hexdigest()) if new != "000000" else "",
        }


def _counted(git: Git, base: str) -> tuple[int, int]:
    insertions = deletions = 0
    for line in decoded(git.need(*_SETTINGS, *_DIFF, "--numstat", "-z", base)).split("\0"):
        added, _, rest = line.partition("\t")
        removed = rest.partition("\t")[0]
        insertions += int(added) if added.isdecimal() else 0
        deletions += int(removed) if removed.isdecimal() else 0
    return insertions, deletions
