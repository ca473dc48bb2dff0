"""Git's configuration files: what they say, and which of it runs a program.

The syntax is that of `git_parse_source` in git's config.c, and nothing is taken for good that git would refuse.
"""

from __future__ import annotations

from planrun.risk.words import names_in

MAX_CONFIG = 1 << 20  # bytes of one file; real ones have less than 100 KiB
_SPACES = b" \t\r\n"
_LETTERS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_IN_NAMES = _LETTERS + b"0123456789-"
_ESCAPES = {b"t": b"\t", b"b": b"\b", b"n": b"\n", b"\\": b"\\", b'"': b'"'}

# Keys that run something during commands that stay in the repository; first and last part, in lower case.
# "" stands for any section, since tools and new versions of git bring sections of their own.
_RUNS = {
    "core": ("alternaterefscommand",),
    "diff": ("textconv", "command", "external"),
    "filter": ("clean", "smudge", "process"),
    "merge": ("driver",),
    "browser": ("path",),
    "man": ("path",),
    "mergetool": ("path",),
    "difftool": ("path",),
    "interactive": ("difffilter",),
    "extensions": ("partialclone",),
    "remote": ("promisor",),
}
_RUNS_ANYWHERE = ("command", "cmd", "program", "hook")  # how the last part ends
# What the environment switches off, or what only a connection to elsewhere would run: there is none.
_OFF = frozenset(
    (
        *("core.fsmonitor", "core.hookspath", "core.pager", "core.editor", "core.askpass", "core.gitproxy"),
        *("core.sshcommand", "sequence.editor", "uploadpack.packobjectshook"),
    )
)
_NAMES_ONLY = names_in(
    "rev-parse show-ref ls-tree merge-base symbolic-ref branch tag rev-list for-each-ref remote"
)
# What never looks at files of the working tree, and what never shows a difference.
_WITHOUT = {
    "filter": _NAMES_ONLY | {"log", "shortlog", "reflog"},
    "diff": _NAMES_ONLY | {"ls-files", "describe"},
}
_WRITES = frozenset(("core.worktree", "format.outputdirectory"))  # values: folders that git then works in


def settings(data: bytes) -> list[tuple[str, str | None]]:
    """Return what a file sets as pairs of full name and value; None: the name stands alone, which means true.

    Section and key are in lower case, a subsection is as written. White space within a value stays as written (git
    before 2.45 has a blank for each). Raises ValueError for what git refuses, and for NUL characters.
    """
    if b"\0" in data:
        raise ValueError("a NUL character")
    data = data.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n")
    found: list[tuple[str, str | None]] = []
    section = b""
    at, end = 0, len(data)
    while at < end:
        char = data[at : at + 1]
        if char in _SPACES:
            at += 1
        elif char in b"#;":
            at = _line_end(data, at)
        elif char == b"[":
            section, at = _section(data, at + 1)
        elif char in _LETTERS:
            name, value, at = _setting(data, at)
            found.append((_text(section + name), None if value is None else _text(value)))
        else:
            raise _refusal(data, at)
    return found


def runs_program(name: str, value: str | None, subcommand: str = "") -> bool:
    """Whether a setting runs a program in commands that only read or change the repository itself.

    `subcommand`: of git, where it is known; "": any.
    """
    if name in _OFF or name.startswith("advice."):
        return False
    section, _, rest = name.partition(".")
    if subcommand in _WITHOUT.get(section, ()):
        return False
    last = rest.rpartition(".")[2]
    if section == "remote" and last == "promisor":
        return (value or "true").lower() not in ("false", "no", "off", "0")
    if section == "submodule" and last == "update":
        return (value or "").startswith("!")
    return last in _RUNS.get(section, ()) or last.endswith(_RUNS_ANYWHERE)


def is_folder(name: str) -> bool:
    """Whether the value of a setting is a folder that git then writes in."""
    return name in _WRITES


def included(name: str) -> bool:
    """Whether the value of a setting is a further file, be it under a condition."""
    return name == "include.path" or (name.startswith("includeif.") and name.endswith(".path"))


def alias(name: str) -> str:
    """Return the command that a setting gives another meaning; empty for other settings."""
    section, _, rest = name.partition(".")
    return rest.removesuffix(".command").lower() if section == "alias" else ""


def _line_end(data: bytes, at: int) -> int:
    found = data.find(b"\n", at)
    return len(data) if found < 0 else found


def _section(data: bytes, at: int) -> tuple[bytes, int]:
    """Read behind `[`; returns the section with its dot, and where it ended."""
    start = at
    while data[at : at + 1] and data[at : at + 1] in _IN_NAMES + b".":
        at += 1
    name = data[start:at].lower()
    char = data[at : at + 1]
    if char == b"]" and name:
        return name + b".", at + 1
    if not char or char not in _SPACES:
        raise _refusal(data, at)
    while data[at : at + 1] and data[at : at + 1] in b" \t\r":
        at += 1
    if data[at : at + 1] != b'"':
        raise _refusal(data, at)
    subsection, at = _quoted(data, at + 1)
    if data[at : at + 1] != b"]":
        raise _refusal(data, at)
    return name + b"." + subsection + b".", at + 1


def _quoted(data: bytes, at: int) -> tuple[bytes, int]:
    parts: list[bytes] = []
    while True:
        char = data[at : at + 1]
        if char == b"\\":
            at += 1
            char = data[at : at + 1]
        elif char == b'"':
            return b"".join(parts), at + 1
        if char in (b"", b"\n"):
            raise _refusal(data, at)
        parts.append(char)
        at += 1


def _setting(data: bytes, at: int) -> tuple[bytes, bytes | None, int]:
    """Read a name and perhaps a value; returns where the line ended."""
    start = at
    while data[at : at + 1] and data[at : at + 1] in _IN_NAMES:
        at += 1
    name = data[start:at].lower()
    while data[at : at + 1] and data[at : at + 1] in b" \t":
        at += 1
    if data[at : at + 1] in (b"", b"\n"):
        return name, None, at
    if data[at : at + 1] != b"=":
        raise _refusal(data, at)
    value, at = _value(data, at + 1)
    return name, value, at


def _value(data: bytes, at: int) -> tuple[bytes, int]:
    parts: list[bytes] = []
    spaces: list[bytes] = []
    quoted = False
    while True:
        char = data[at : at + 1]
        if char in (b"", b"\n"):
            if quoted:
                raise _refusal(data, at)
            return b"".join(parts), at
        if not quoted and char in b" \t\r":
            if parts:
                spaces.append(char)
            at += 1
            continue
        if not quoted and char in b"#;":
            return b"".join(parts), _line_end(data, at)
        parts += spaces
        spaces = []
        at += 1
        if char == b'"':
            quoted = not quoted
        elif char != b"\\":
            parts.append(char)
        else:
            parts += [escaped] if (escaped := _escaped(data, at)) else []
            at += 1


def _escaped(data: bytes, at: int) -> bytes:
    """Return what stands for the character behind a backslash; nothing for the end of a line."""
    char = data[at : at + 1]
    if char in (b"", b"\n"):
        return b""
    if char not in _ESCAPES:
        raise _refusal(data, at)
    return _ESCAPES[char]


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _refusal(data: bytes, at: int) -> ValueError:
    line = data.count(b"\n", 0, at) + 1
    return ValueError(f"line {line} is none that git reads")
