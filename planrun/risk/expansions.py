"""What `$` and backticks stand for, told apart without being evaluated."""

from __future__ import annotations

from planrun.risk.cursor import Cursor
from planrun.risk.tokens import DIGITS, HOLES, NAME, NAME_START, NotUnderstood

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.risk.tokens import Part

_SUM = frozenset("0123456789 \t+-*/%<>=!&|^?:,")
_PLAIN_DEFAULT = NAME | frozenset("./ :@+=,-*?#%^!")
_ODD_PARAMETERS = {
    "@": "all arguments, of which nobody knows how many there are",
    "*": "all arguments, of which nobody knows what they are",
    "!": "the process last started",
    "-": "the options of the shell",
}


class Expansions(Cursor):
    """Reads the expansions of a text."""

    def _dollar(self) -> None:
        inside = self.frame.quoted >= 0
        follows = self._after() if self.at + 1 < self.frame.end else ""
        if follows == "(":
            self._parenthesis(inside=inside)
        elif follows == "{":
            self._brace(inside=inside)
        elif follows and follows in NAME_START:
            at = self.at + 1
            while at < self.frame.end and self.text[at] in NAME:
                at += 1
            if self.text[at : at + 1] in ("\\", *HOLES):
                raise NotUnderstood("a name that may go on", self.at)
            self._expansion(("name", self.text[self.at + 1 : at], inside), at)
        elif follows and follows in "?#$":
            self._expansion(("number", "", inside), self.at + 2)
        elif follows and (follows in _ODD_PARAMETERS or follows in DIGITS):
            meaning = _ODD_PARAMETERS.get(follows, "an argument of the script")
            self._expansion(("strange", f"${follows}: {meaning}", inside), self.at + 2)
        elif follows and (follows in "[" + HOLES or self.text.startswith("\\\n", self.at + 1)):
            raise NotUnderstood("an expansion that is not covered", self.at)
        elif follows and follows in "'\"" and not inside:
            self._ansi(follows)
        else:
            self._add(("text", "$", inside))
            self.at += 1

    def _expansion(self, part: Part, end: int) -> None:
        self._add(part)
        self.at = end

    def _ansi(self, quote: str) -> None:
        if quote == '"':
            self._expansion(("strange", '$"…": a text that depends on the language', False), self.at + 1)
            return
        at = self.at + 2
        while at < self.frame.end and self.text[at] != "'":
            at += 2 if self.text[at] == "\\" else 1
        if at >= self.frame.end:
            raise NotUnderstood("an unterminated quote", self.at)
        self._expansion(("strange", "$'…': escapes that hide what they mean", False), at + 1)

    def _parenthesis(self, *, inside: bool) -> None:
        text, start = self.text, self.at
        if text[start + 2 : start + 3] != "(":
            self._push(")", self.frame.end)
            self.at += 2
            return
        at = start + 3
        names = False
        while at < self.frame.end and (text[at] in _SUM or text[at] in NAME):
            names = names or text[at] in NAME_START
            at += 1
        if text[at : at + 2] != "))" or at + 2 > self.frame.end:
            raise NotUnderstood("arithmetic that is not covered", start)
        meaning = "$((…)): a name in arithmetic, whose value is evaluated in turn"
        part: Part = ("strange", meaning, inside) if names else ("number", "", inside)
        self._expansion(part, at + 2)

    def _brace(self, *, inside: bool) -> None:
        text, at = self.text, self.at + 2
        while at < self.frame.end and text[at] in NAME:
            at += 1
        name = text[self.at + 2 : at]
        if at >= self.frame.end or not name or name[0] in DIGITS:
            raise NotUnderstood("an expansion that is not covered", self.at)
        if text[at] == "}":
            self._expansion(("name", name, inside), at + 1)
            return
        close = at
        while close < self.frame.end and text[close] in _PLAIN_DEFAULT:
            close += 1
        if text[close : close + 1] != "}" or text[at] not in ":-+?#%":
            raise NotUnderstood("an expansion that is not covered", self.at)
        shown = text[self.at : close + 1]
        self._expansion(("strange", f"{shown}: an expansion that is not followed", inside), close + 1)

    def _backtick(self) -> None:
        close = self.text.find("`", self.at + 1, self.frame.end)
        if close < 0:
            raise NotUnderstood("an unterminated substitution", self.at)
        inner = self.text[self.at + 1 : close]
        if "\\" in inner or (self.frame.quoted >= 0 and '"' in inner):
            raise NotUnderstood("quotes inside backticks", self.at)
        self._push("`", close)
        self.at += 1
