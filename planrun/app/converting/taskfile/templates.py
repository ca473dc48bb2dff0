"""The templates of Taskfiles, `{{…}}`: the grammar of Go's text/template as far as Taskfiles use it, as a small tree.

`values` works out what a tree means: some variables are known while a file is converted, others when a shell runs.
"""

from __future__ import annotations

import re

from planrun.app.converting.findings import UntranslatableError
from planrun.model.record import Record

_BRACES = re.compile(
    r"\{\{(-\s)?(/\*.*?\*/|(?:\"(?:[^\"\\]|\\.)*\"|`[^`]*`|[^\"`}]|\}(?!\}))*?)(\s-)?\}\}", re.DOTALL
)
_TOKEN = re.compile(
    r"""\s*(?:(?P<text>"(?:[^"\\]|\\.)*"|`[^`]*`)|(?P<number>-?\d+)|(?P<field>\.[A-Za-z_]\w*(?:\.\w+)*|\.(?![\w.]))"""
    r"""|(?P<variable>\$\w*(?:\.\w+)*)|(?P<word>[A-Za-z_]\w*)|(?P<sign>:=|[()|,]))"""
)
_WORDS: dict[str, str | bool] = {"true": True, "false": False, "nil": ""}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
MAX_PARTS = 10_000
"""Pieces of one template: a file of nothing but braces must not take long."""


class Reference(Record):
    """A value that a template asks for, by its name: `.NAME`, `.NAME.FIELD`, `.` as "", `$name` with its sign."""

    name: str


class Call(Record):
    """A function with its arguments; the argument that a pipe hands on is the last one."""

    name: str
    args: tuple[Expression, ...] = ()


class Branch(Record):
    """`if`, its `else if`s and its `else`, whose condition is None."""

    arms: tuple[tuple[Expression | None, tuple[Piece, ...]], ...]


class Loop(Record):
    """`range`: the names of `$index, $item` ("" for none), what is gone through, and the body."""

    index: str
    item: str
    over: Expression
    body: tuple[Piece, ...]


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    Expression = str | int | bool | Reference | Call
    Piece = str | Reference | Call | Branch | Loop


def pieces_of(text: str) -> list[Piece]:
    """Return the pieces of a template in order; raises UntranslatableError for what is no template."""
    reader = _Pieces(list(_cut(text)))
    found, end = reader.until_end()
    if end:
        raise UntranslatableError("template", f"`{{{{{end}}}}}` without its beginning")
    return found


def _cut(text: str) -> Iterator[tuple[bool, str]]:
    """Yield texts and what stands between braces, with the blanks that `{{-` and `-}}` take away gone."""
    at, trims = 0, False
    for count, match in enumerate(_BRACES.finditer(text)):
        if count > MAX_PARTS:
            raise UntranslatableError("template", f"more than {MAX_PARTS:,} templates in one text")
        before = text[at : match.start()]
        before = before.lstrip() if trims else before
        yield False, before.rstrip() if match[1] else before
        yield True, match[2].strip()
        trims, at = bool(match[3]), match.end()
    rest = text[at:]
    yield False, rest.lstrip() if trims else rest


class _Pieces:
    """Reads the pieces of one template from front to back."""

    def __init__(self, parts: list[tuple[bool, str]]) -> None:
        self.parts = parts
        self.at = 0

    def until_end(self) -> tuple[list[Piece], str]:
        """Return pieces up to an `else` or `end`, and that word with what follows it; "" at the end of the text."""
        found: list[Piece] = []
        while self.at < len(self.parts):
            is_action, text = self.parts[self.at]
            self.at += 1
            word = text.split(None, 1)[0] if is_action and text else ""
            if word in ("else", "end"):
                return found, text
            if not is_action:
                found += [text] if text else []
            elif word == "if":
                found.append(self._branch(text[2:]))
            elif word == "range":
                found.append(self._loop(text[5:]))
            elif not text.startswith("/*"):
                found.append(_shown(parse(text)))
        return found, ""

    def _branch(self, condition: str) -> Branch:
        arms: list[tuple[Expression | None, tuple[Piece, ...]]] = []
        test: Expression | None = parse(condition)
        while True:
            body, end = self.until_end()
            arms.append((test, tuple(body)))
            if end == "end":
                return Branch(arms=tuple(arms))
            if not end.startswith("else") or test is None:
                raise UntranslatableError("template", "an `if` without its `end`")
            rest = end.removeprefix("else").strip()
            test = parse(rest[2:]) if rest.startswith("if ") else None

    def _loop(self, head: str) -> Loop:
        names, sign, over = head.rpartition(":=")
        given = [name.strip().removeprefix("$") for name in names.split(",")] if sign else []
        body, end = self.until_end()
        if end != "end" or len(given) > 2:
            raise UntranslatableError("template", "a `range` without its `end`, or with an `else`")
        index, item = ("", *given)[-2:] if given else ("", "")
        return Loop(index=index, item=item, over=parse(over), body=tuple(body))


def _shown(found: Expression) -> Piece:
    return found if isinstance(found, Reference | Call | str) else _word(found)


def _word(value: int | bool) -> str:  # noqa: FBT001 - a value, not a switch
    return str(value).lower() if isinstance(value, bool) else str(value)


def parse(text: str) -> Expression:
    """Return the expression of an action, as `.NAME | default "x"`; raises UntranslatableError."""
    tokens, at = [], 0
    text = text.strip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _unreadable(text)
        tokens.append((match.lastgroup or "", match[match.lastgroup or 0]))
        at = match.end()
    parser = _Parser(tokens, text)
    found = parser.pipeline()
    if parser.tokens:
        raise _unreadable(text)
    return found


class _Parser:
    """A pipeline of commands, read from a list of tokens that gets shorter."""

    def __init__(self, tokens: list[tuple[str, str]], text: str, depth: int = 0) -> None:
        self.tokens = tokens
        self.text = text
        self.depth = depth

    def pipeline(self) -> Expression:
        """Read commands with `|` between them."""
        found = self._command(())
        while self.tokens and self.tokens[0][1] == "|":
            self.tokens.pop(0)
            found = self._command((found,))
        return found

    def _command(self, piped: tuple[Expression, ...]) -> Expression:
        if not self.tokens:
            raise _unreadable(self.text)
        kind, word = self.tokens[0]
        if kind == "word" and word not in _WORDS:
            self.tokens.pop(0)
            args = []
            while self.tokens and self.tokens[0] not in (("sign", "|"), ("sign", ")")):
                args.append(self._operand())
            return Call(name=word, args=(*args, *piped))
        found = self._operand()
        if piped or (self.tokens and self.tokens[0] not in (("sign", "|"), ("sign", ")"))):
            raise _unreadable(self.text)
        return found

    def _operand(self) -> Expression:
        kind, word = self.tokens.pop(0)
        if kind == "text":
            return _literal(word)
        if kind == "number":
            return int(word)
        if kind == "field":
            return Reference(name=word[1:])
        if kind == "variable":
            return Reference(name=word)
        if kind == "word":
            return _WORDS[word] if word in _WORDS else Call(name=word)
        if word == "(" and self.depth < 50:
            inner = _Parser(self.tokens, self.text, self.depth + 1)
            found = inner.pipeline()
            if self.tokens and self.tokens.pop(0)[1] == ")":
                return found
        raise _unreadable(self.text)


def _literal(word: str) -> str:
    if word.startswith("`"):
        return word[1:-1]
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), word[1:-1], flags=re.DOTALL)


def _unreadable(text: str) -> UntranslatableError:
    return UntranslatableError("template", f"`{{{{{' '.join(text.split())}}}}}` is worked out by go-task")
