"""git.apply_patch."""

from __future__ import annotations

import os

from planrun.tools.files import encoded
from planrun.tools.git import Git, decoded, repository
from planrun.tools.ground import GIT, RECORDS
from planrun.tools.refusal import Refusal
from planrun.tools.results import listed, plural, say
from planrun.tools.writing import read_whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from planrun.tools.ground import Ground

MAX_PATCH = 16 << 20  # bytes
_HEADS = (b"--- ", b"+++ ", b"rename from ", b"rename to ", b"copy from ", b"copy to ", b"diff --git ")


def apply_patch(ground: Ground, args: dict[str, Any]) -> dict[str, Any]:
    """Apply a patch: all of it, or nothing."""
    patch = _text(ground, args)
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


def _text(ground: Ground, args: dict[str, Any]) -> bytes:
    if "file" in args:
        with ground.readable(args["file"]) as place:
            return read_whole(place, MAX_PATCH)
    text = encoded(args["patch"])
    return text if text.endswith(b"\n") else text + b"\n"  # YAML takes it away as easily as it leaves it


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
    """Return the files that a patch changes, as seen from where it is applied."""
    answer = git.ask("apply", *words, "--numstat", "-z", "-", given=patch)
    if answer.code:
        raise Refusal("it is no patch that git can read")
    entries = decoded(answer.out).split("\0")
    return [entry.split("\t", 2)[-1] for entry in entries if entry]


def _check(ground: Ground, top: str, patch: bytes, files: list[str]) -> None:
    """Raise Refusal for files that are not for tools; git itself refuses links and what lies above."""
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
    """Yield every name that stands in the heads of a patch, old ones included; some of them twice."""
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


def _check_merge(git: Git, patch: bytes, words: list[str]) -> None:
    """Raise Refusal when a merge would leave conflicts: it is tried on a copy of the index, without the files."""
    index = git.line("rev-parse", "--path-format=absolute", "--git-path", "index")
    copy = f"{os.environ.get('PLANRUN_OUTPUT') or index}.{os.urandom(6).hex()}.index"
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
