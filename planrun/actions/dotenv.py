"""Env files as dotenv users write them; loaded only for steps with `env_file`."""

from __future__ import annotations

import os
import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from stat import S_ISREG

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_BYTES = 1 << 20  # of a file, and of what its placeholders expand to
_HEAD = re.compile(r"(?:export[ \t]++)?([A-Za-z_][A-Za-z0-9_]*+)[ \t]*+(?:=|:(?=[ \t\n]|\Z))[ \t]*+")
_QUOTED = {
    "'": re.compile(r"'([^']*+)'"),
    '"': re.compile(r'"((?:[^"\\]|\\.)*+)"', re.DOTALL),
}
_REST = re.compile(r"[ \t]*+(?:#[^\n]*+)?(?:\n|\Z)")
_COMMENT = re.compile(r"(?:^|[ \t])#.*")
# Between double quotes an escape, else what stands there; `${NAME}`, `${NAME-default}`, `${NAME:-default}`.
_PLACEHOLDER = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*+)(?:(:?-)([^}]*+))?\}")
_ESCAPE_OR_PLACEHOLDER = re.compile(rf"\\([nrt\"\\$])|{_PLACEHOLDER.pattern}")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


def read_env_file(path: str) -> str:
    """Return the text of an env file, without a byte order mark and with LF as line ends.

    Raises OSError when it cannot be opened, ValueError when it is no regular file (a pipe would block),
    larger than 1 MiB or not UTF-8.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with open(fd, "rb") as file:
        if not S_ISREG(os.fstat(fd).st_mode):
            raise ValueError("not a regular file")
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ValueError("larger than 1 MiB")
    if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        raise ValueError("it is UTF-16; save it as UTF-8")
    if b"\0" in data:
        raise ValueError("it contains a NUL character")
    try:
        text = data.removeprefix(BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(f"line {line} is not UTF-8") from None
    return text.replace("\r\n", "\n")


def parse_env_file(text: str, known: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a dotenv text.

    `known`: the variables that `${NAME}` finds besides earlier ones of the text. Raises ValueError naming the line.
    """
    return _Parsing(text, known).variables()


class _Parsing:
    """One file: what was found in it, and how many characters placeholders may still become."""

    def __init__(self, text: str, known: Mapping[str, str]) -> None:
        self.text = text
        self.known = known
        self.found: dict[str, str] = {}
        self.left = MAX_BYTES

    def variables(self) -> dict[str, str]:
        at = 0
        while at < len(self.text):
            end = self.text.find("\n", at)
            end = len(self.text) if end < 0 else end
            line = self.text[at:end].strip(" \t\r")
            if not line or line.startswith("#"):
                at = end + 1
                continue
            at += len(self.text[at:end]) - len(self.text[at:end].lstrip(" \t\r"))
            head = _HEAD.match(self.text, at, end)
            if head is None:
                raise ValueError(f"line {self._line(at)} is not NAME=value")
            at = self._value(head[1], head.end(), end)
        return self.found

    def _value(self, name: str, at: int, end: int) -> int:
        """Take the value at an offset, of a line with this end; returns where the next line begins."""
        quote = self.text[at : at + 1]
        if quote not in _QUOTED:
            # With the character in front: `NAME= # none` is empty.
            value = _COMMENT.sub("", self.text[at:end], count=1).strip(" \t\r")
            self.found[name] = _PLACEHOLDER.sub(self._expanded, value)
            return end + 1
        quoted = _QUOTED[quote].match(self.text, at)
        if quoted is None:
            raise ValueError(f"line {self._line(at)} has an unclosed quote")
        rest = _REST.match(self.text, quoted.end())
        if rest is None:
            raise ValueError(f"line {self._line(quoted.end() - 1)} has text after its closing quote")
        self.found[name] = (
            quoted[1] if quote == "'" else _ESCAPE_OR_PLACEHOLDER.sub(self._unescaped, quoted[1])
        )
        return rest.end()

    def _unescaped(self, found: re.Match[str]) -> str:
        if found[1]:
            return _ESCAPES.get(found[1], found[1])
        return self._looked_up(found[2], found[3], found[4])

    def _expanded(self, found: re.Match[str]) -> str:
        return self._looked_up(found[1], found[2], found[3])

    def _looked_up(self, name: str, sign: str | None, default: str | None) -> str:
        value = self.found.get(name, self.known.get(name))
        if value is None or (sign == ":-" and not value):
            value = default or ""
        self.left -= len(value)
        if self.left < 0:
            raise ValueError("its placeholders expand to more than 1 MiB")
        return value

    def _line(self, offset: int) -> int:
        return self.text.count("\n", 0, offset) + 1
