"""Scripts of sed: which of them only edit text. A script that is not read exactly is refused."""

from __future__ import annotations

_DIGITS = frozenset("0123456789")
_BLANK = frozenset(" \t")
_ALONE = frozenset("dDgGhHnNpPxz=F")
_NUMBERED = frozenset("qQlL")
_TEXT = frozenset("aic")
_LABEL = frozenset("btT:")
_FLAGS = frozenset("gpiIMm0123456789")


class _Unread(Exception):
    """A script that is not understood; its text says what stands in the way."""


def harm(script: str) -> str:
    """Say what a script of sed does besides editing text; "" when it does nothing else."""
    try:
        _Script(script).read()
    except _Unread as unread:
        return f"sed: {unread}"
    return ""


class _Script:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def read(self) -> None:
        while self._skip(" \t\n;{}"):
            self._address()
            self._skip(" \t!")
            self._command()

    def _skip(self, chars: str) -> bool:
        """Go past some characters; True when anything is left."""
        while self.at < len(self.text) and self.text[self.at] in chars:
            self.at += 1
        return self.at < len(self.text)

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def _address(self) -> None:
        while True:
            char = self._peek()
            if char == "/" or (char == "\\" and self.text[self.at + 1 : self.at + 2] not in ("", "\n", "\\")):
                self.at += 1 if char == "/" else 2
                self._delimited(self.text[self.at - 1], 1)
                self._skip("IM")
            elif char in _DIGITS or char == "$":
                self._skip("0123456789$")
            else:
                return
            self._skip(" \t")
            if self._peek() in ("~", ","):
                self.at += 1
                self._skip(" \t+~")
            else:
                return

    def _delimited(self, sign: str, count: int) -> None:
        """Go past `count` parts that each end with a sign which no backslash precedes."""
        while count:
            if self.at >= len(self.text):
                raise _Unread("a pattern without an end")
            char = self.text[self.at]
            if char == "[" and "[" in self._class(sign):
                raise _Unread("a pattern that is not covered")
            self.at += 2 if char == "\\" else 1
            count -= char == sign

    def _class(self, sign: str) -> str:
        """Return "[" when a bracket expression holds the sign that would end the pattern."""
        stop = self.text.find("]", self.at + 2)
        return "[" if stop > 0 and sign in self.text[self.at : stop] else ""

    def _command(self) -> None:
        char = self._peek()
        self.at += 1
        if char in _ALONE:
            self._end()
        elif char in _NUMBERED:
            self._skip(" \t0123456789")
            self._end()
        elif char == "s":
            self._substitute()
        elif char == "y":
            self._delimited(self._sign(), 2)
            self._end()
        elif char in _TEXT:
            self._text_lines()
        elif char in _LABEL or char == "#":
            stop = self.text.find("\n", self.at)
            label = self.text[self.at : len(self.text) if stop < 0 else stop]
            # GNU sed ends a label at `;` or `}`, others do not.
            if char != "#" and set(label) & set(";{}"):
                self._label(label)
                return
            self.at += len(label)
        elif char in ("{", "}"):
            return
        else:
            raise _Unread(f"`{char}`: a command that is not known, or that reads, writes or runs something")

    def _label(self, label: str) -> None:
        name = label.strip().partition(";")[0].partition("}")[0].strip()
        if not name.isalnum() and name:
            raise _Unread("a label that is not covered")
        self.at += len(label.partition(";")[0].partition("}")[0])

    def _sign(self) -> str:
        sign = self._peek()
        if not sign or sign in "\n\\":
            raise _Unread("a command that is not covered")
        self.at += 1
        return sign

    def _substitute(self) -> None:
        self._delimited(self._sign(), 2)
        while self._peek() in _FLAGS and self._peek():
            self.at += 1
        if self._peek() in ("e", "w"):
            raise _Unread("`s///e` or `s///w`, which runs or writes what it made")
        self._end()

    def _text_lines(self) -> None:
        """Go past the text of `a`, `i` or `c`: to the end of a line that no backslash goes on from."""
        while self.at < len(self.text):
            char = self.text[self.at]
            self.at += 2 if char == "\\" else 1
            if char == "\n":
                return

    def _end(self) -> None:
        self._skip(" \t")
        if self._peek() not in ("", ";", "\n", "}", "#"):
            raise _Unread(f"`{self._peek()}` after a command")
