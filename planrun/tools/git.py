"""git.status and git.diff, and how git is started: without programs that the repository configures.

The configuration of the machine and the user applies. Any process may have written that of the repository, so the
read-only tools must not run its programs.

git.commit.

git.apply_patch.
"""

from __future__ import annotations

import os
import sys

from planrun.model.record import Record
from planrun.tools.files import each, encoded
from planrun.tools.ground import GIT, RECORDS, Refusal, listed, plural, read_whole, say, words_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from planrun.tools.ground import Ground

# Environment variables passed to git: the committer, and where the configuration of user and machine is.
_KEPT = (
    *("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE"),
    *("GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "GIT_COMMITTER_DATE"),
    *("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_COUNT"),
    *("GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM"),
)
_KEPT_STARTS = ("GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_")
_PLACED = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",  # otherwise status writes the index and runs a hook
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_EDITOR": "false",
    "GIT_PAGER": "cat",
    "LC_ALL": "C.UTF-8",
}
# Settings that run programs, whatever file sets them.
_OFF = (
    ("core.fsmonitor", "false"),
    ("core.hooksPath", os.devnull),
    ("core.pager", "cat"),
    ("core.editor", "false"),
    ("commit.gpgSign", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
)
# The last parts of settings that run a program on the content of files; their names contain a driver's name.
_DRIVERS = {"filter": ("clean", "smudge", "process"), "diff": ("command", "textconv"), "merge": ("driver",)}
_OWN = ("local", "worktree")  # the scopes that belong to a repository
_BLOCK = 1 << 16


class Answer(Record):
    """The exit code and output of a git command."""

    code: int
    out: bytes


class Git:
    """git in one folder. Flags: `hooks` runs those of the repository, `drivers` its filters."""

    def __init__(self, folder: str, *flags: str) -> None:
        self._folder = folder
        off = [pair for pair in _OFF if pair[0] != "core.hooksPath" or "hooks" not in flags]
        self._env = _environment(off)
        if "drivers" not in flags:
            self._env = _environment([*off, *self._drivers()])

    def with_index(self, file: str) -> Git:
        """Return the same git with a different index."""
        found = Git.__new__(Git)
        found._folder, found._env = self._folder, {**self._env, "GIT_INDEX_FILE": file}
        return found

    def in_place(self, git_dir: str, index: str) -> Git:
        """Return git for the files of this folder and a repository elsewhere; the filters of neither are run."""
        found = Git.__new__(Git)
        found._folder = self._folder
        place = {"GIT_DIR": git_dir, "GIT_WORK_TREE": self._folder, "GIT_INDEX_FILE": index}
        found._env = {**self._env, **place}
        found._env = {**_environment([*_OFF, *found._drivers()]), **place}
        return found

    def ask(self, *words: str, given: bytes | None = None, quietly: object = False) -> Answer:
        """Run a git command and return its result; its stderr goes to the log, unless `quietly`."""
        argv = ("git", "--no-pager", "--literal-pathspecs", "-C", self._folder, *words)
        return _run(argv, self._env, given, quietly)

    def need(self, *words: str, given: bytes | None = None) -> bytes:
        """Return the output of a command; raises Refusal when it fails."""
        answer = self.ask(*words, given=given)
        if answer.code:
            raise Refusal(f"git {words[0]} failed with exit code {answer.code}")
        return answer.out

    def line(self, *words: str) -> str:
        """Return the one line that a command prints; empty when it fails."""
        answer = self.ask(*words, quietly=True)
        return "" if answer.code else decoded(answer.out).removesuffix("\n")

    def _drivers(self) -> list[tuple[str, str]]:
        """Return settings that switch off the filters that the repository itself configures."""
        answer = self.ask("config", "--list", "--show-scope", "--name-only", "-z", quietly=True)
        words = decoded(answer.out).split("\0")
        found: dict[str, str] = {}
        for scope, name in zip(words[::2], words[1::2], strict=False):
            section, _, rest = name.partition(".")
            driver, _, last = rest.rpartition(".")
            if scope in _OWN and driver and last in _DRIVERS.get(section, ()):
                found[name] = ""
                if section == "filter":
                    found[f"filter.{driver}.required"] = "false"
                say(f"{name} of the repository is not run: what it would change may show as a difference")
        return list(found.items())


def repository(ground: Ground, *flags: str) -> tuple[Git, str]:
    """Return git in the folder of the step, and the top of its repository; raises Refusal if it is elsewhere."""
    git = Git(ground.cwd, "drivers", *flags)
    answer = git.ask("rev-parse", "--show-toplevel")
    if answer.code:
        raise Refusal(f"{ground.cwd}: there is no repository that git works with")
    top = os.path.realpath(decoded(answer.out).removesuffix("\n"))
    if not (_below(top, ground.top) or _below(ground.top, top)):
        raise Refusal(f"the repository works in {top}, which is not in the workspace")
    return (git if "drivers" in flags else Git(ground.cwd, *flags)), top


def status(ground: Ground, args: dict[str, Any]) -> dict[str, Any]:
    """Report the changed files."""
    git, _ = repository(ground)
    untracked = "normal" if args.get("untracked", True) else "no"
    out = git.need(
        *("status", "--porcelain=v2", "--branch", "-z", "--ignore-submodules=dirty"),
        f"--untracked-files={untracked}",
    )
    head, files = _parsed(decoded(out))
    for state, path in files:
        say(f"{state} {path}")
    branch = head.get("branch.head", "")
    branch = "" if branch == "(detached)" else branch
    sha = head.get("branch.oid", "")
    sha = "" if sha == "(initial)" else sha
    say(
        f"{branch or 'no branch'}, {plural(len(files), 'file')} changed"
        if files
        else f"{branch or sha}: clean"
    )
    names = list(dict.fromkeys([path for _, path in files]))
    return {
        "branch": branch,
        "sha": sha,
        "clean": not names,
        "changed": len(names),
        "files": listed(names),
    }


def diff(ground: Ground, args: dict[str, Any]) -> dict[str, Any]:
    """Print a patch."""
    git, _ = repository(ground)
    words = ["--no-ext-diff", "--no-textconv", "--submodule=short", "--ignore-submodules=dirty", "--no-color"]
    words += ["--cached"] * bool(args.get("staged", False))
    if "base" in args:
        words.append(revision(git, args["base"]))
    paths = ["/".join(words_of(path)) for path in each(args.get("paths", []))]
    names = decoded(git.need("diff", "--name-only", "-z", *words, "--", *paths)).split("\0")
    patch = git.need("diff", *words, "--", *paths)
    sys.stdout.flush()
    _write_all(1, patch)
    files = [name for name in names if name]
    return {"changed": len(files), "files": listed(files), "size": len(patch)}


def revision(git: Git, name: str) -> str:
    """Return the full hash of the commit that a name resolves to; raises Refusal when it resolves to none."""
    found = git.line("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    if not found:
        raise Refusal(f"{name}: there is no such commit")
    return found


def decoded(data: bytes) -> str:
    """Return the output of git as text; invalid bytes become escapes."""
    return data.decode("utf-8", "backslashreplace")


def _parsed(text: str) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Return the branch line of a status, and each file with its two status letters; a renamed one by its new name."""
    head: dict[str, str] = {}
    files: list[tuple[str, str]] = []
    entries = iter(text.split("\0"))
    for entry in entries:
        kind, _, rest = entry.partition(" ")
        if kind == "#":
            name, _, value = rest.partition(" ")
            head[name] = value
        elif kind == "?":
            files.append(("??", rest))
        elif kind in ("1", "2", "u"):
            fields = rest.split(" ", {"1": 7, "2": 8, "u": 9}[kind])
            files.append((fields[0], fields[-1]))
            if kind == "2":
                next(entries, "")  # the old name
    return head, files


def _environment(settings: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return the environment of git with further settings, which override every file."""
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name in _KEPT or name.startswith(_KEPT_STARTS)
    }
    count = env.get("GIT_CONFIG_COUNT", "0")
    first = int(count) if count.isascii() and count.isdigit() else 0
    for number, (name, value) in enumerate(settings, first):
        env[f"GIT_CONFIG_KEY_{number}"], env[f"GIT_CONFIG_VALUE_{number}"] = name, value
    env["GIT_CONFIG_COUNT"] = str(first + len(settings))
    return {**env, **_PLACED}


def _run(argv: tuple[str, ...], env: dict[str, str], given: bytes | None, quietly: object) -> Answer:
    """Run a program with a text as its input, and collect its output."""
    taken = _input(given)
    out, child = os.pipe()
    actions: list[tuple[Any, ...]] = [(os.POSIX_SPAWN_DUP2, taken, 0), (os.POSIX_SPAWN_DUP2, child, 1)]
    if quietly:
        actions.append((os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0))
    try:
        pid = os.posix_spawnp(argv[0], argv, env, file_actions=actions)
    except FileNotFoundError:
        raise Refusal("git is not on the PATH of the step") from None
    finally:
        os.close(child)
        os.close(taken)
    blocks = []
    while block := os.read(out, _BLOCK):
        blocks.append(block)
    os.close(out)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return Answer(code=code if code >= 0 else 128 - code, out=b"".join(blocks))


def _input(given: bytes | None) -> int:
    """Return a descriptor to read a text from: an unnamed file, since writing to a pipe could block."""
    if given is None:
        return os.open(os.devnull, os.O_RDONLY)
    name = _own_file("./planrun", "input")
    fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    os.unlink(name)
    _write_all(fd, given)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def commit(ground: Ground, args: dict[str, Any]) -> dict[str, Any]:
    """Make a commit; raises Refusal when it would be empty."""
    hooks = args.get("hooks", False)
    git, _ = repository(ground, "drivers", *["hooks"] * bool(hooks))
    paths = ["/".join(words_of(path)) for path in each(args.get("paths", []))]
    if paths and args.get("all", False):
        raise Refusal("`paths` and `all` exclude each other")
    if paths:
        git.need("add", "--all", "--", *paths)
    empty = args.get("allow_empty", False)
    if not empty and not _changes(git, paths, all_of_them=args.get("all", False)):
        where = f" in {', '.join(paths[:5])}" if paths else ""
        raise Refusal(
            f"there is nothing to commit{where}" if paths or args.get("all") else "nothing is staged"
        )
    words = ["--file=-", "--cleanup=whitespace", "--no-gpg-sign", "--no-status", "--quiet", "--no-edit"]
    words += ["--no-verify"] * (not hooks) + ["--all"] * bool(args.get("all", False))
    words += ["--allow-empty"] * bool(empty)
    if "author" in args:
        words.append(f"--author={args['author']}")
    if paths:
        words += ["--only", "--", *paths]
    git.need("commit", *words, given=args["message"].encode("utf-8", "replace"))
    return _made(git)


def _changes(git: Git, paths: list[str], *, all_of_them: object) -> bool:
    """Return whether a commit would contain a change."""
    against = "HEAD" if git.line("rev-parse", "--verify", "--quiet", "HEAD") else ""
    words = ["--quiet", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty"]
    if not all_of_them or not against:
        words.append("--cached")
    elif against:
        words.append(against)
    return git.ask("diff", *words, "--", *paths).code != 0


def _made(git: Git) -> dict[str, Any]:
    sha = git.line("rev-parse", "HEAD")
    branch = git.line("symbolic-ref", "--quiet", "--short", "HEAD")
    out = git.need("diff-tree", "--no-commit-id", "--name-only", "--root", "-r", "-z", "HEAD")
    files = [name for name in decoded(out).split("\0") if name]
    say(f"{branch or 'no branch'}: {sha}, {plural(len(files), 'file')}")
    return {"sha": sha, "branch": branch, "files": listed(files)}


MAX_PATCH = 16 << 20  # bytes
_HEADS = (b"--- ", b"+++ ", b"rename from ", b"rename to ", b"copy from ", b"copy to ", b"diff --git ")


def apply_patch(ground: Ground, args: dict[str, Any]) -> dict[str, Any]:
    """Apply a patch: all of it, or nothing."""
    if "file" in args:
        with ground.readable(args["file"]) as place:
            patch = read_whole(place, MAX_PATCH)
    else:
        text = encoded(args["patch"])
        patch = text if text.endswith(b"\n") else text + b"\n"  # YAML block scalars may strip it
    git, top = _place(ground)
    words = [f"-p{args.get('strip', 1)}", "--whitespace=nowarn"]
    words += ["--reverse"] * bool(args.get("reverse", False))
    files = _names(git, patch, words)
    _check(ground, top, patch, files)
    if args.get("threeway", False):
        _check_merge(git, patch, words)
        words.append("--3way")
    else:
        _do(git, patch, [*words, "--check"], "it does not fit; nothing was changed")
    _do(git, patch, words, "it could not be applied")
    for name in files:
        say(f"patched {name}")
    say(plural(len(files), "file"))
    return {"files": listed(files)}


def _place(ground: Ground) -> tuple[Git, str]:
    """Return git at the top of the repository, as patches name files; without one, in the step's folder."""
    probe = Git(ground.cwd, "drivers")
    if not probe.line("rev-parse", "--show-toplevel"):
        return probe, ground.cwd
    _, top = repository(ground, "drivers")
    return Git(top, "drivers"), top


def _do(git: Git, patch: bytes, words: list[str], complaint: str) -> None:
    if git.ask("apply", *words, "-", given=patch).code:
        raise Refusal(complaint)


def _names(git: Git, patch: bytes, words: list[str]) -> list[str]:
    """Return the files that a patch changes, relative to where it is applied."""
    answer = git.ask("apply", *words, "--numstat", "-z", "-", given=patch)
    if answer.code:
        raise Refusal("it is no patch that git can read")
    entries = decoded(answer.out).split("\0")
    return [entry.split("\t", 2)[-1] for entry in entries if entry]


def _check(ground: Ground, top: str, patch: bytes, files: list[str]) -> None:
    """Raise Refusal for files that tools must not touch; git itself refuses links and paths above."""
    for name in [*files, *_spelled(patch)]:
        parts = [part.lower() for part in name.split("/")]
        if RECORDS in parts or GIT in parts:
            raise Refusal(f"{name}: a patch must not change records of planrun, or the inside of git")
        if ".." in parts or name.startswith("/"):
            raise Refusal(f"{name}: a path must not lead upwards")
    for name in files:
        real = os.path.realpath(os.path.join(top, os.path.dirname(name)))
        if real != ground.top and not real.startswith(ground.top.rstrip("/") + "/"):
            raise Refusal(f"{name}: it lies outside of the workspace")


def _spelled(patch: bytes) -> Iterator[str]:
    """Yield every file name in the headers of a patch, old ones included, with duplicates."""
    for line in patch.split(b"\n"):
        head = next((head for head in _HEADS if line.startswith(head)), b"")
        if not head:
            continue
        text = line[len(head) :].split(b"\t")[0].rstrip(b"\r").decode("utf-8", "backslashreplace")
        if text == "/dev/null":
            continue
        if '"' in text:  # a quoted name, with escapes
            text = text.encode("ascii", "backslashreplace").decode("unicode_escape", "replace")
        for part in text.replace('"', " ").split(" "):
            yield part.lstrip("/") if head.startswith((b"---", b"+++")) else part


def _own_file(otherwise: str, ending: str) -> str:
    """Return the path of a file that does not exist, outside of the workspace where that is possible."""
    beside = os.environ.get("PLANRUN_OUTPUT") or otherwise
    if not os.access(
        os.path.dirname(beside), os.W_OK
    ):  # a sandbox, whose temporary folder is the attempt's own
        beside = os.path.join(os.environ.get("TMPDIR", "/tmp"), os.path.basename(beside))  # noqa: S108
    return f"{beside}.{os.urandom(6).hex()}.{ending}"


def _check_merge(git: Git, patch: bytes, words: list[str]) -> None:
    """Raise Refusal when a merge would leave conflicts, tried on a copy of the index without the files."""
    index = git.line("rev-parse", "--path-format=absolute", "--git-path", "index")
    copy = _own_file(index, "index")
    try:
        with open(index, "rb") as old, open(copy, "xb") as new:
            new.write(old.read())
        answer = git.with_index(copy).ask("apply", *words, "--3way", "--cached", "-", given=patch)
    except FileNotFoundError:
        raise Refusal("there is no index to merge with") from None
    finally:
        for name in (copy, f"{copy}.lock"):
            if os.path.exists(name):
                os.unlink(name)
    if answer.code:
        raise Refusal("it does not fit, not even by merging; nothing was changed")
