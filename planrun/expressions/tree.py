"""The shape of expressions: nested tuples of plain data, so that `marshal` can keep them in a cache.

A node is `(kind, offset, length, …)`; offset and length say where it stands in the text, in characters.

    ("const", o, n, value)               str, int, float, bool or None
    ("path", o, n, (name, part, …))      params.target, steps['my-id'].status; parts are str or int
    ("item", o, n, base, index)          a subscript that is computed, or of something computed
    ("list", o, n, (item, …))
    ("and" | "or", o, n, (operand, …))
    ("not" | "neg", o, n, operand)
    ("compare", o, n, operator, left, right)
    ("math", o, n, operator, left, right)
    ("concat", o, n, (operand, …))
    ("if", o, n, test, then, otherwise)
    ("call", o, n, function, (argument, …))   filters too: the piped value is the first argument
    ("sh", o, n, operand)                     only as the outermost node of an interpolation in a script

A template is `("template", (part, …))`; a part is a text or `(tree, source)` with the text between the braces.

What can be wrong with the text of an expression; a value at run time raises planrun.errors.EvaluationError.

From a tree back to the text of an expression: one spelling of each meaning, whatever was written.

Values as expressions see them: their type, their equality, their text. No type is ever turned into another.
"""

from __future__ import annotations

from planrun.errors import EvaluationError, InvalidInput
from planrun.model import jsontext

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal

    Tree = tuple[Any, ...]
    Template = tuple[Any, ...]
    Path = tuple[str | int, ...]
    Type = Literal["string", "integer", "number", "boolean", "array", "object", "null", "any"]


MAX_TEXT = 8192  # characters of one expression
MAX_PLACES = 1000  # interpolations in one text
MAX_DEPTH = 32  # nodes, and brackets, inside each other
MAX_SIZE = 1 << 20  # characters of a text that an expression makes, and of a value that it writes as JSON
MAX_RENDERED = 16 << 20  # characters of a text with all its values put in
MAX_INTEGER = (1 << 63) - 1  # beyond this, readers of JSON disagree about a number

ROOTS = ("params", "env", "matrix", "item", "steps", "run", "step")

# Name -> fewest and most arguments, the piped one included.
FUNCTIONS: dict[str, tuple[int, int]] = {
    "len": (1, 1),
    "contains": (2, 2),
    "startswith": (2, 2),
    "endswith": (2, 2),
    "default": (2, 2),
    "join": (1, 2),
    "fromjson": (1, 1),
    "tojson": (1, 1),
    "hash_files": (1, 16),
}

# The key of the scope under which `hash_files` finds its root; no name in an expression can reach it.
ROOT_KEY = "<root>"


def spelled(path: Path) -> str:
    """Return a path as it is written in an expression: `steps['my-id'].outputs.sha`."""
    text = str(path[0])
    for part in path[1:]:
        if type(part) is str and part.isidentifier():
            text += "." + part
        else:
            text += f"[{part!r}]"
    return text


class ExpressionError(InvalidInput):
    """An expression that cannot be accepted.

    `offset` and `length` say where, in characters of the text that was parsed; -1 when not known yet: what
    raises without a place (a callback that looks up names) gets the place of the node it was asked about.
    """

    def __init__(self, message: str, offset: int = -1, length: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.length = length

    def moved(self, offset: int, length: int) -> ExpressionError:
        """Return the same error at another place."""
        return type(self)(self.message, offset, length)


_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
# What needs no brackets as a part of something else.
_ATOMS = ("const", "path", "item", "list", "call")


def spell(tree: Tree) -> str:
    """Return an expression that is parsed to the same tree, places left aside."""
    return _SPELLINGS[tree[0]](*tree[3:])


def _part(tree: Tree) -> str:
    text = spell(tree)
    negative = tree[0] == "const" and text.startswith("-")
    return text if tree[0] in _ATOMS and not negative else f"({text})"


def _const(value: Any) -> str:
    if isinstance(value, str):
        return f"'{''.join([_ESCAPES.get(char) or _escape(char) for char in value])}'"
    if value is None:
        return "none"
    return repr(value).lower() if isinstance(value, bool) else repr(value)


def _escape(char: str) -> str:
    if char.isprintable():
        return char
    number = ord(char)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _joined(word: str) -> Callable[[tuple[Tree, ...]], str]:
    return lambda operands: f" {word} ".join([_part(operand) for operand in operands])


def _infix(operator: str, left: Tree, right: Tree) -> str:
    return f"{_part(left)} {operator} {_part(right)}"


def _listed(items: tuple[Tree, ...]) -> str:
    return ", ".join([spell(item) for item in items])


_SPELLINGS: dict[str, Callable[..., str]] = {
    "const": _const,
    "path": spelled,
    "item": lambda base, index: f"{_part(base)}[{spell(index)}]",
    "list": lambda items: f"[{_listed(items)}]",
    "and": _joined("and"),
    "or": _joined("or"),
    "not": lambda operand: f"not {_part(operand)}",
    "neg": lambda operand: f"-{_part(operand)}",
    "compare": _infix,
    "math": _infix,
    "concat": _joined("~"),
    "if": lambda test, then, otherwise: f"{_part(then)} if {_part(test)} else {_part(otherwise)}",
    "call": lambda name, arguments: f"{name}({_listed(arguments)})",
    "sh": lambda operand: f"{_part(operand)} | sh",
}


_TYPES: dict[type, Type] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "array",
    tuple: "array",
    dict: "object",
    type(None): "null",
}
_ARTICLES = {"integer": "an integer", "array": "an array", "object": "an object", "null": "null"}
NUMBERS = ("integer", "number")


def type_of(value: Any) -> Type:
    """Return the type of a value; raises EvaluationError for what is no value of the language."""
    found = _TYPES.get(type(value))
    if found is None:
        if isinstance(value, dict):  # the engine's lazily filled ones
            return "object"
        raise EvaluationError(f"unsupported type of value: {type(value).__name__}")
    return found


def called(name: str) -> str:
    """Return a type's name with its article."""
    return _ARTICLES.get(name, f"a {name}")


def same(left: Any, right: Any) -> bool:
    """Return whether two values are equal; other than Python's, True is not 1, at no depth."""
    try:
        return _same(left, right)
    except RecursionError:
        raise EvaluationError("the value is nested too deeply") from None


def _same(left: Any, right: Any) -> bool:
    first, second = type_of(left), type_of(right)
    if first in NUMBERS and second in NUMBERS:
        return bool(left == right)
    if first != second:
        return False
    if first == "array":
        return len(left) == len(right) and all(map(_same, left, right))
    if first == "object":
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    return bool(left == right)


def text_of(value: Any) -> str:
    """Return the text of a string, number or boolean, the latter as in JSON; raises EvaluationError."""
    found = type_of(value)
    if found == "string":
        return bounded(value)
    if found in ("array", "object"):
        raise EvaluationError(f"{called(found)} cannot be converted to a string; use tojson or join")
    if found == "null":
        raise EvaluationError("null cannot be converted to a string; use default(value, '')")
    return json_text(value)


def json_text(value: Any) -> str:
    """Return compact JSON; raises EvaluationError for what is too large, too deep or no JSON."""
    try:
        _measure(value)
        return bounded(jsontext.dumps(value))
    except (TypeError, ValueError) as error:
        raise EvaluationError(str(error)) from None
    except RecursionError:
        raise EvaluationError("the value is nested too deeply") from None


def bounded(text: str) -> str:
    """Return `text` when it is within the limit for one value; raises EvaluationError."""
    if len(text) > MAX_SIZE:
        raise EvaluationError(f"the string has more than {MAX_SIZE} characters")
    return text


def _measure(value: Any) -> None:
    """Raise EvaluationError when the JSON of `value` would be too large, before any of it is made."""
    size = 0
    waiting = [value]
    while waiting:
        value = waiting.pop()
        size += len(value) if isinstance(value, str) else 1
        if size + len(waiting) > MAX_SIZE:
            raise EvaluationError(f"the value has more than {MAX_SIZE} characters as JSON")
        if isinstance(value, dict):
            waiting.extend(value.keys())
            waiting.extend(value.values())
        elif isinstance(value, (list, tuple)):
            waiting.extend(value)
