"""Scripts of sed: which of them only edit text. A script that is not read exactly is refused.

The programs named sed differ in where a label ends and in whether brackets hide the sign that ends a pattern. A script
is read in each of these ways, and refused where one of them finds what runs a program or names a file.
"""

from __future__ import annotations

_ALONE = frozenset("dDgGhHnNpPxz=F")
_NUMBERED = frozenset("qQlL")
_ENDS = frozenset(("", ";", "\n", "}"))
_BLANK = " \t"
_NAME = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
# Signs that may stand around patterns: no letter, nothing that ends a command or begins a bracket.
_SIGNS = frozenset("/,#|:!@%+=~^_-&*?.<>$()'\"`")


class _Unread(Exception):
    """A script that is not understood; its text says what stands in the way."""


def harm(scripts: list[str]) -> str:
    """Say what scripts of sed do besides editing text; "" when they do nothing else.

    Some programs read each `-e` by itself, and some all of them as lines of one script.
    """
    texts = scripts if len(scripts) == 1 else [*scripts, "\n".join(scripts)]
    try:
        for text in texts:
            for hides in (False, True) if "[" in text else (False,):
                _Script(text, label_is_line=False, bracket_hides=hides).read()
                _Script(text, label_is_line=True, bracket_hides=hides).read()
    except _Unread as unread:
        return f"sed: {unread}"
    return ""


class _Script:
    def __init__(self, text: str, *, label_is_line: bool, bracket_hides: bool) -> None:
        self.text = text
        self.at = 0
        self.label_is_line = label_is_line
        self.bracket_hides = bracket_hides

    def read(self) -> None:
        while self._skip(" \t\n;{}"):
            if self._peek() == "#":
                self._line()
                continue
            self._address()
            self._skip(" \t!")
            self._command()

    def _skip(self, chars: str) -> str:
        """Go past some characters; return the one that follows, "" at the end."""
        while self._peek() and self._peek() in chars:
            self.at += 1
        return self._peek()

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def _take(self) -> str:
        self.at += 1
        return self.text[self.at - 1 : self.at]

    def _line(self) -> None:
        stop = self.text.find("\n", self.at)
        self.at = len(self.text) if stop < 0 else stop

    def _address(self) -> None:
        while True:
            char = self._peek()
            if char in ("/", "\\") and char:
                self.at += char == "\\"
                self._part(self._sign(), is_pattern=True)
                self._skip("IM")
            elif char == "$":
                self.at += 1
            elif char.isdigit():
                self._skip("0123456789")
            else:
                return
            if self._skip(_BLANK) == "~":
                self.at += 1
                self._skip("0123456789 \t")
            if self._peek() != ",":
                return
            self.at += 1
            if self._skip(_BLANK) in ("+", "~"):
                self.at += 1

    def _sign(self) -> str:
        sign = self._take()
        if sign not in _SIGNS:
            raise _Unread("a pattern between signs that are not covered")
        return sign

    def _part(self, sign: str, *, is_pattern: bool) -> None:
        """Go past what a sign ends which no backslash precedes."""
        while True:
            char = self._take()
            if char in ("", "\n"):
                raise _Unread("a pattern without an end")
            if char == sign:
                return
            if char == "\\":
                follows = self._take()
                if not follows or (follows == "\n" and is_pattern):
                    raise _Unread("a pattern without an end")
            elif char == "[" and is_pattern and self.bracket_hides:
                self._bracket()

    def _bracket(self) -> None:
        if self._peek() == "^":
            self.at += 1
        if self._peek() == "]":
            self.at += 1
        while True:
            char = self._take()
            if char in ("", "\n") or self.text[self.at - 1 : self.at + 1] == "\\]":
                raise _Unread("a set of characters that is not covered")
            if char == "]":
                return
            if char == "\\":
                self.at += 1
            elif char == "[" and self._peek() in (":", ".", "="):
                stop = self.text.find(self._peek() + "]", self.at + 1)
                if stop < 0:
                    raise _Unread("a set of characters that is not covered")
                self.at = stop + 2

    def _command(self) -> None:
        char = self._take()
        if char in _ALONE:
            self._end()
        elif char in _NUMBERED:
            self._skip(" \t0123456789")
            self._end()
        elif char in ("s", "y"):
            sign = self._sign()
            if char == "y":
                self.bracket_hides, hides = False, self.bracket_hides
                self._part(sign, is_pattern=True)
                self._part(sign, is_pattern=True)
                self.bracket_hides = hides
            else:
                self._part(sign, is_pattern=True)
                self._part(sign, is_pattern=False)
                self._skip("gpiIMm0123456789")
            self._end()
        elif char in ("a", "i", "c"):
            self._text_lines()
        elif char in (":", "b", "t", "T"):
            self._label(is_named=char == ":")
        elif char not in ("{", "}"):
            raise _Unread(f"`{char}`: a command that is not known, or that reads, writes or runs something")

    def _label(self, *, is_named: bool) -> None:
        if self.label_is_line:
            self._line()
            return
        self._skip(_BLANK)
        start = self.at
        self._skip(_NAME)
        is_empty = start == self.at
        after = self._skip(_BLANK)
        closes = after == "}" and not is_named and self.text[self.at :].lstrip("} \t")[:1] in ("", ";", "\n")
        if (is_named and is_empty) or not (after in ("", ";", "\n") or closes):
            raise _Unread("a label that is not covered")

    def _text_lines(self) -> None:
        """Go past the text of `a`, `i` or `c`: to the end of a line without a continuation."""
        if self._skip(_BLANK) == "\\":
            self.at += 1
            if self._peek() != "\n" and self._skip(_BLANK) in ("", "\n", "\\"):
                raise _Unread("a text that is not covered")
            self.at += self._peek() == "\n"
        elif self._peek() in _ENDS:
            raise _Unread("a text that is not covered")
        while self._peek() and self._peek() != "\n":
            if self._take() == "\\" and self._take() == "\\" and self._peek() in ("", "\n"):
                raise _Unread("a text that is not covered")

    def _end(self) -> None:
        if self._skip(_BLANK) not in _ENDS and self._peek() != "#":
            raise _Unread(f"`{self._peek()}` after a command")
