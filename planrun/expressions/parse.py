"""From text to tree: Jinja2 reads the grammar, an allow-list of nodes decides what is an expression.

Jinja2 is imported when the first expression is met: it costs as much time as everything else that validating
a small plan needs. It only ever parses; nothing here renders or compiles a template.
"""

from __future__ import annotations

from planrun.expressions import grammar, scan
from planrun.expressions.grammar import Grammar
from planrun.expressions.tree import MAX_DEPTH, ExpressionError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from jinja2.lexer import Token

    from planrun.expressions.tree import Template, Tree

# More signs or negations in a row than this mean nothing, and each is a call of Jinja2's parser inside another.
_MAX_PREFIX = 3
_WORDS = {"and", "or", "not", "in", "if", "else", "true", "false", "none"}
_ENVIRONMENT: list[Any] = []  # one Jinja2 environment, once it is needed


def parse(text: str) -> Tree:
    """Return the tree of a bare expression, which may stand in one `${{ }}`; raises ExpressionError."""
    return _expression(text, *scan.bounds(text), Grammar.bare)


def parse_template(text: str) -> str | Template:
    """Return a template, or text without interpolation with every `$${{` made `${{`; raises ExpressionError."""
    return _template(text, Grammar.bare)


def parse_script(text: str) -> str | Template:
    """Return a template for `run:`, where an interpolation may end in `| sh`; raises ExpressionError."""
    return _template(text, Grammar.word)


def _template(text: str, read: Any) -> str | Template:
    if scan.OPEN not in text:
        return text
    found = scan.pieces(text)
    if all(type(piece) is str for piece in found):
        return "".join(str(piece) for piece in found)
    return (
        "template",
        tuple(
            piece
            if isinstance(piece, str)
            else (_expression(text, *piece, read), " ".join(text[slice(*piece)].split()))
            for piece in found
        ),
    )


def _expression(text: str, start: int, end: int, read: Any) -> Tree:
    """Return the tree of `text[start:end]`; `read` is the method of Grammar that takes the root."""
    from jinja2 import Environment, TemplateSyntaxError
    from jinja2.lexer import TokenStream
    from jinja2.parser import Parser

    closed = scan.brackets(text, start, end)
    if not text[start:end].strip():
        raise _empty(text, start, end)
    if not _ENVIRONMENT:
        _ENVIRONMENT.append(Environment(autoescape=True))
    environment = _ENVIRONMENT[0]
    tokens: list[Token] = []
    ends: dict[int, int] = {}
    try:
        for token, stop in _tokens(environment, text[start:end], start):
            tokens.append(token)
            ends[token.lineno] = stop
        _bound_prefixes(tokens)
        parser = Parser(environment, "")
        parser.stream = TokenStream(iter(tokens), None, None)
        root = parser.parse_expression()
        if not parser.stream.eos:
            parser.fail("", parser.stream.current.lineno)
    except TemplateSyntaxError as error:
        raise _unexpected(text, error.lineno, ends) from None
    tree: Tree = read(Grammar(ends, closed), root)
    return tree


def _empty(text: str, start: int, end: int) -> ExpressionError:
    """Return the error for nothing; it points to the braces around it, where there are any."""
    if text[:start].endswith(scan.OPEN):
        start, end = start - len(scan.OPEN), end + len(scan.CLOSE)
    return ExpressionError("empty expression", start, max(end - start, 1))


def _tokens(environment: Any, source: str, start: int) -> Iterator[tuple[Token, int]]:
    """Yield Jinja2's tokens with the offset in place of the line number, and where each ends.

    Nodes keep the line number of a token, so they know their offset; Jinja2 itself knows lines only.
    """
    from jinja2.lexer import Token, operators

    at = start
    for _line, kind, raw in environment.lexer.tokeniter(source, None, state="variable"):
        value: Any = raw
        if kind == "operator":
            kind = operators[raw]  # noqa: PLW2901 - the token's own kind
        elif kind == "string":
            value = grammar.string(raw, at)
        elif kind == "integer":
            value = grammar.integer(raw, at)
        elif kind == "float":
            value = grammar.number(raw, at)
        elif kind == "name" and not raw.isidentifier():
            raise ExpressionError(f"invalid name `{grammar.shown(raw)}`", at, len(raw))
        if kind != "whitespace":
            yield Token(at, kind, value), at + len(raw)
        at += len(raw)
    yield Token(at, "eof", ""), at


def _bound_prefixes(tokens: list[Token]) -> None:
    """Refuse what makes Jinja2's parser call itself without brackets, and texts that silently grow together."""
    prefixes = otherwise = 0
    previous = ""
    for token in tokens:
        word = token.value if token.type == "name" else ""
        prefixes = prefixes + 1 if word == "not" or token.type in ("sub", "add") else 0
        otherwise += word == "else"
        if prefixes > _MAX_PREFIX:
            raise ExpressionError("too many signs or negations in a row", token.lineno)
        if otherwise > MAX_DEPTH:
            raise ExpressionError(f"more than {MAX_DEPTH} `else` in one expression", token.lineno, 4)
        if token.type == previous == "string":
            raise ExpressionError(
                "two strings in a row; join them by `~` or separate them by a comma", token.lineno
            )
        previous = token.type


def _unexpected(text: str, offset: int, ends: dict[int, int]) -> ExpressionError:
    """Return the error for a token that the grammar does not want."""
    found = text[offset : ends.get(offset, offset)]
    if not found:
        return ExpressionError("unexpected end of the expression", offset)
    hint = ""
    if found.lower() in _WORDS and found.lower() != found:
        hint = f"; write `{found.lower()}`"
    return ExpressionError(f"unexpected `{grammar.shown(found)}`{hint}", offset, len(found))
