"""Templates with their values put in; what was put in is data and never looked at again.

Hot: imported by every run.
"""

from __future__ import annotations

from planrun.errors import AbsentError, EvaluationError
from planrun.expressions.evaluate import evaluate
from planrun.expressions.tree import MAX_RENDERED, json_text, text_of, type_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from planrun.expressions.tree import Template, Tree

    Scope = dict[str, Any]

# None of them means anything to a shell, so a value made of them is one word or a part of one.
_SAFE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/@:+=,-")
_MAX_SHOWN = 80  # characters of an expression in a message


def render(value: str | Template, scope: Scope) -> Any:
    """Return the value of a template: of any type when it is one interpolation and nothing else, else text."""
    if isinstance(value, str):
        return value
    parts = value[1]
    if len(parts) == 1:
        return _value(parts[0], scope, evaluate)
    return _joined(parts, scope, _text)


def render_text(value: str | Template, scope: Scope) -> str:
    """Return the text of a template: numbers and booleans as in JSON, lists and objects as compact JSON."""
    return value if isinstance(value, str) else _joined(value[1], scope, _text)


def render_script(value: str | Template, scope: Scope) -> str:
    """Return the text of a script; raises EvaluationError for a value that a shell would not take as it is."""
    return value if isinstance(value, str) else _joined(value[1], scope, _word)


def render_pattern(value: str | Template, scope: Scope) -> str:
    """Return a pattern of paths; what is put in stands for itself, whatever signs are in it."""
    return value if isinstance(value, str) else _joined(value[1], scope, _letters)


def pattern_of(part: tuple[Tree, str], scope: Scope) -> str:
    """Return one interpolation as a part of such a pattern."""
    return str(_value(part, scope, _letters))


def _letters(tree: Tree, scope: Scope) -> str:
    from planrun.model.globs import escaped  # few plans name files

    return escaped(_text(tree, scope))


def quoted(text: str) -> str:
    """Return one word of a POSIX shell that stands for `text`; raises EvaluationError for a NUL."""
    if "\0" in text:
        raise EvaluationError("a word of a shell cannot contain NUL")
    return "'" + text.replace("'", "'\"'\"'") + "'"


def _joined(parts: tuple[Any, ...], scope: Scope, write: Callable[[Tree, Scope], str]) -> str:
    texts: list[str] = []
    size = 0
    for part in parts:
        texts.append(part if isinstance(part, str) else _value(part, scope, write))
        size += len(texts[-1])
        if size > MAX_RENDERED:
            raise EvaluationError(f"the rendered string has more than {MAX_RENDERED} characters")
    return "".join(texts)


def _value(part: tuple[Tree, str], scope: Scope, write: Callable[[Tree, Scope], Any]) -> Any:
    """Return what `write` makes of one interpolation; its errors name the expression."""
    tree, source = part
    try:
        return write(tree, scope)
    except EvaluationError as error:
        shown = source if len(source) <= _MAX_SHOWN else source[:_MAX_SHOWN] + "…"
        kind = AbsentError if isinstance(error, AbsentError) else EvaluationError
        raise kind(f"${{{{ {shown} }}}}: {error}") from None


def _text(tree: Tree, scope: Scope) -> str:
    return _written(evaluate(tree, scope))


def _written(value: Any) -> str:
    return json_text(value) if type_of(value) in ("array", "object") else text_of(value)


def unsafe_in(text: str) -> str:
    """Return the first character of a text that a shell may read as code; empty for none."""
    return "" if _SAFE.issuperset(text) else next(char for char in text if char not in _SAFE)


def _word(tree: Tree, scope: Scope) -> str:
    """Return what an interpolation in a script becomes; arrays after `| sh` are one word an item."""
    if tree[0] == "sh":
        value = evaluate(tree[3], scope)
        words = value if type_of(value) == "array" else (value,)
        return " ".join([quoted(_written(word)) for word in words])
    text = _text(tree, scope)
    if bad := unsafe_in(text):
        raise EvaluationError(
            f"the value contains {bad!a}, which a shell may read as code;"
            " write `| sh` after the expression to quote it, or pass the value in `env:`"
        )
    return text
