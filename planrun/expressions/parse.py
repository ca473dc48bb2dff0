"""From text to the tree of an expression: Jinja2 parses, and an allow-list of nodes decides what is accepted.

The text is scanned first: where `${{ … }}` ends, which characters and how many brackets it has. Jinja2's parser calls
itself for every bracket, so the nesting is limited before it starts.

Jinja2 is imported with the first expression: it takes as long as everything else that validating a small plan needs.
It only parses; nothing here renders or compiles a template.
"""

from __future__ import annotations

from planrun.expressions import grammar
from planrun.expressions.grammar import Grammar
from planrun.expressions.tree import MAX_DEPTH, MAX_PLACES, MAX_TEXT, ExpressionError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from jinja2.lexer import Token

    from planrun.expressions.tree import Template, Tree

OPEN = "${{"
CLOSE = "}}"

_DELETE = 0x7F

_BRACKETS = {"(": ")", "[": "]"}
_OPERATORS = "+-*/%~.,|:<>"
_COMPARISONS = ("==", "!=", "<=", ">=")
# What people write who come from other languages, the longest first.
_FOREIGN = {
    OPEN: "write `${{` and `}}` around the whole expression, or remove both",
    "===": "unknown operator `===`; use `==`",
    "!==": "unknown operator `!==`; use `!=`",
    "&&": "unknown operator `&&`; use `and`",
    "||": "unknown operator `||`; use `or`",
    "??": "unknown operator `??`; use `default(value, otherwise)`",
    "{%": "template statements (`{%`) are not supported; use an expression",
    "{#": "comments are not supported in expressions",
    "=~": "regular expressions are not supported; use contains, startswith or endswith",
    "=": "unknown operator `=`; use `==`",
    "!": "unknown operator `!`; use `not`",
    "&": "unknown operator `&`; use `and`",
    "?": "unknown operator `?`; use `a if test else b`",
    "{": "object literals are not supported in expressions",
    "}": "object literals are not supported in expressions",
    "$": "unexpected `$`; write the name without it",
    "`": "unexpected backtick; write a string in '…' or \"…\"",
}


def pieces(text: str) -> list[str | tuple[int, int]]:
    """Split a template into texts and the (start, end) of what stands between `${{` and `}}`.

    `$${{` is a literal `${{`. Raises ExpressionError for an interpolation or a string that is not closed.
    """
    found: list[str | tuple[int, int]] = []
    plain: list[str] = []
    at = 0
    places = 0
    while (start := text.find(OPEN, at)) >= 0:
        if text[max(at, start - 1) : start] == "$":
            plain += (text[at : start - 1], OPEN)
            at = start + len(OPEN)
            continue
        places += 1
        if places > MAX_PLACES:
            raise ExpressionError(f"more than {MAX_PLACES} interpolations in one string", start, len(OPEN))
        if before := "".join((*plain, text[at:start])):
            found.append(before)
        plain.clear()
        end = closing(text, start)
        found.append((start + len(OPEN), end))
        at = end + len(CLOSE)
    if after := "".join((*plain, text[at:])):
        found.append(after)
    return found


def bounds(text: str) -> tuple[int, int]:
    """Return where a bare expression starts and ends: inside of `${{ }}` where that is around the whole text.

    Raises ExpressionError for an interpolation or a string that is not closed.
    """
    start = len(text) - len(text.lstrip())
    if text.startswith(OPEN, start):
        end = closing(text, start)
        if not text[end + len(CLOSE) :].strip():
            return start + len(OPEN), end
    return 0, len(text)


def bare(text: str) -> str:
    """Return a bare expression as people read it, without the `${{ }}` that may be around it."""
    return text[slice(*bounds(text))].strip()


def closing(text: str, start: int) -> int:
    """Return where the `}}` of the `${{` at `start` stands; braces in strings and in braces do not count."""
    at = start + len(OPEN)
    braces = 0
    # One more than an expression may have, so that the end of a text that is not closed is found soon.
    limit = min(len(text), at + MAX_TEXT + 1)
    while at < limit:
        char = text[at]
        if char in "'\"":
            at = string_end(text, at, limit)
            continue
        if char == "{":
            braces += 1
        elif char == "}" and braces:
            braces -= 1
        elif text.startswith(CLOSE, at):
            return at
        at += 1
    if at < len(text):
        raise ExpressionError(f"the expression has more than {MAX_TEXT} characters", start, len(OPEN))
    raise ExpressionError("unclosed `${{`: expected `}}`; write `$${{` for a literal `${{`", start, len(OPEN))


def string_end(text: str, start: int, limit: int) -> int:
    """Return the index after the string that begins at `start`."""
    quote = text[start]
    at = start + 1
    while at < limit:
        char = text[at]
        if char == quote:
            return at + 1
        at += 2 if char == "\\" else 1
    raise ExpressionError(f"unclosed string: expected {quote}", start)


def brackets(text: str, start: int, end: int) -> dict[int, int]:
    """Return where each opening bracket in `text[start:end]` is closed.

    Raises ExpressionError for what no expression contains, and for brackets that do not match or are too deep.
    """
    if end - start > MAX_TEXT:
        raise ExpressionError(f"the expression has more than {MAX_TEXT} characters", start)
    for at in range(start, end):
        code = ord(text[at])
        if (code < ord(" ") and text[at] not in "\n\t") or code == _DELETE or 0xD800 <= code < 0xE000:
            raise ExpressionError(f"an expression cannot contain U+{code:04X}", at)
    closed: dict[int, int] = {}
    opened: list[int] = []
    at = start
    while at < end:
        char = text[at]
        if char in "'\"":
            at = string_end(text, at, end)
            continue
        if char in "([":
            opened.append(at)
            if len(opened) > MAX_DEPTH:
                raise ExpressionError(f"brackets are nested more than {MAX_DEPTH} levels deep", at)
        elif char in ")]":
            if not opened or _BRACKETS[text[opened[-1]]] != char:
                raise ExpressionError(f"unmatched `{char}`", at)
            closed[opened.pop()] = at
        at += _width(text, at, end)
    if opened:
        raise ExpressionError(f"unclosed `{text[opened[-1]]}`", opened[-1])
    return closed


def _width(text: str, at: int, end: int) -> int:
    """Return how many characters the operator or character at `at` has, if it may stand in an expression."""
    char = text[at]
    if char.isalnum() or char in "_ \n\t()[]":
        return 1
    three = text[at : min(at + 3, end)]
    if three[:2] in _COMPARISONS and three not in _FOREIGN:
        return 2
    for foreign, hint in _FOREIGN.items():
        if three.startswith(foreign):
            raise ExpressionError(hint, at, len(foreign))
    if char in _OPERATORS:
        return 1
    name = char if char.isprintable() else f"U+{ord(char):04X}"
    raise ExpressionError(f"an expression cannot contain `{name}` outside a string", at)


# More signs or negations in a row than this mean nothing, and each is a call of Jinja2's parser inside another.
_MAX_PREFIX = 3
_WORDS = {"and", "or", "not", "in", "if", "else", "true", "false", "none"}
_ENVIRONMENT: list[Any] = []  # one Jinja2 environment, once it is needed


def parse(text: str) -> Tree:
    """Return the tree of a bare expression, which may stand in one `${{ }}`; raises ExpressionError."""
    return _expression(text, *bounds(text), Grammar.bare)


def parse_template(text: str) -> str | Template:
    """Return a template, or text without interpolation with every `$${{` made `${{`; raises ExpressionError."""
    return _template(text, Grammar.bare)


def parse_script(text: str) -> str | Template:
    """Return a template for `run:`, where an interpolation may end in `| sh`; raises ExpressionError."""
    return _template(text, Grammar.word)


def _template(text: str, read: Any) -> str | Template:
    if OPEN not in text:
        return text
    found = pieces(text)
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

    closed = brackets(text, start, end)
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
    if text[:start].endswith(OPEN):
        start, end = start - len(OPEN), end + len(CLOSE)
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
