"""What an expression reads and of which type it is, found without any value."""

from __future__ import annotations

from planrun.expressions.tree import NUMBERS, ExpressionError, called, type_of
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from planrun.expressions.tree import Path, Template, Tree, Type

_SIZED = ("string", "array", "object")
_SCALAR = ("string", "integer", "number", "boolean")
# Types of the arguments and of the result; `default` has its own rule.
_SIGNATURES: dict[str, tuple[tuple[tuple[str, ...], ...], Type]] = {
    "len": ((_SIZED,), "integer"),
    "contains": ((_SIZED, ()), "boolean"),
    "startswith": ((("string",), ("string",)), "boolean"),
    "endswith": ((("string",), ("string",)), "boolean"),
    "join": ((("array",), ("string",)), "string"),
    "fromjson": ((("string",),), "any"),
    "tojson": (((),), "string"),
    "hash_files": ((("string",),) * 16, "string"),
}


class Reference(Record):
    """A path that is read; `guarded`: it stands inside the first argument of `default`, so it may be absent."""

    path: Path
    offset: int
    length: int
    guarded: bool = False


def references(value: str | Tree | Template) -> tuple[Reference, ...]:
    """Return every path that an expression or template reads, in the order of the text."""
    if isinstance(value, str):
        return ()
    found = [reference for tree in _trees(value) for reference in _read(tree, guarded=False)]
    return tuple(sorted(found, key=lambda reference: reference.offset))


def _trees(value: Tree | Template) -> list[Tree]:
    if value[0] != "template":
        return [value]
    return [part[0] for part in value[1] if not isinstance(part, str)]


def _read(tree: Tree, *, guarded: bool) -> Iterator[Reference]:
    kind, offset, length = tree[:3]
    if kind == "path":
        yield Reference(path=tree[3], offset=offset, length=length, guarded=guarded)
    elif kind == "call" and tree[3] == "default":
        yield from _read(tree[4][0], guarded=True)
        yield from _read(tree[4][1], guarded=guarded)
    elif kind != "const":
        for child in _children(tree):
            yield from _read(child, guarded=guarded)


def _children(tree: Tree) -> Iterator[Tree]:
    """Yield the nodes inside a node: they are tuples that begin with their kind; operators and names are texts."""
    for part in tree[3:]:
        if isinstance(part, tuple):
            if part and isinstance(part[0], tuple):
                yield from part
            elif part:
                yield part


def infer(value: str | Tree | Template, types: Callable[[Path], Type]) -> Type:
    """Return the type of an expression or template; raises ExpressionError where types do not fit.

    `types` gives the type of a path and raises ExpressionError, without a place, for a name that is unknown.
    """
    if isinstance(value, str):
        return "string"
    checker = _Checker(types)
    if value[0] != "template":
        return checker.infer(value)
    found: list[Type] = [checker.infer(tree) for tree in _trees(value)]
    if len(value[1]) == 1:
        return found[0]
    for tree, kind in zip(_trees(value), found, strict=True):
        if kind == "null":
            raise _error("null cannot be converted to a string", tree)
    return "string"


def check_condition(tree: Tree, types: Callable[[Path], Type]) -> None:
    """Raise ExpressionError unless `tree` is boolean, or may be."""
    found = infer(tree, types)
    if found not in ("boolean", "any"):
        raise _error(f"a condition must be boolean, got {called(found)}", tree)


def check_list(value: str | Tree | Template, types: Callable[[Path], Type]) -> None:
    """Raise ExpressionError unless a template is an array, or may be."""
    found = infer(value, types)
    if found in ("array", "any"):
        return
    hint = "; use fromjson(…) to read one from a string" if found == "string" else ""
    raise ExpressionError(f"instances require a list, got {called(found)}{hint}", 0, 1)


def _error(message: str, tree: Tree) -> ExpressionError:
    return ExpressionError(message, tree[1], tree[2])


def _comparable(left: Type, right: Type) -> bool:
    """Return whether two values of these types can be equal."""
    free = ("any", "null")
    return left == right or left in free or right in free or (left in NUMBERS and right in NUMBERS)


def _fit(found: Type, tree: Tree, allowed: tuple[str, ...], where: str) -> Type:
    # A number may be whole: that is seen when there is a value.
    if found in allowed or found == "any" or (found == "number" and "integer" in allowed):
        return found
    wanted = " or ".join([called(name) for name in allowed])
    raise _error(f"{where} requires {wanted}, got {called(found)}", tree)


# A node's type is asked for once: asking twice at every level would double the work with each of them.
class _Checker:
    """The rules of types, one method a kind of node."""

    def __init__(self, types: Callable[[Path], Type]) -> None:
        self.types = types

    def infer(self, tree: Tree) -> Type:
        return _RULES[tree[0]](self, tree)

    def want(self, tree: Tree, allowed: tuple[str, ...], where: str) -> Type:
        """Return the type of a node; raises ExpressionError unless it is, or may be, one of `allowed`."""
        return _fit(self.infer(tree), tree, allowed, where)

    def constant(self, tree: Tree) -> Type:
        return type_of(tree[3])

    def path(self, tree: Tree) -> Type:
        try:
            return self.types(tree[3])
        except ExpressionError as error:
            if error.offset >= 0:
                raise
            raise error.moved(tree[1], tree[2]) from None

    def item(self, tree: Tree) -> Type:
        base = self.infer(tree[3])
        if base not in ("array", "object", "any"):
            raise _error(f"{called(base)} has no fields", tree[3])
        allowed = {"array": ("integer",), "object": ("string",)}.get(base, ("integer", "string"))
        self.want(tree[4], allowed, "an index")
        return "any"

    def items(self, tree: Tree) -> Type:
        for item in tree[3]:
            self.infer(item)
        return "array"

    def logic(self, tree: Tree) -> Type:
        for operand in tree[3]:
            self.want(operand, ("boolean",), f"`{tree[0]}`")
        return "boolean"

    def negation(self, tree: Tree) -> Type:
        self.want(tree[3], ("boolean",), "`not`")
        return "boolean"

    def minus(self, tree: Tree) -> Type:
        return self.want(tree[3], NUMBERS, "`-`")

    def comparison(self, tree: Tree) -> Type:
        operator, left, right = tree[3:]
        if operator in ("in", "not in"):
            self.membership(operator, left, right)
            return "boolean"
        first, second = self.infer(left), self.infer(right)
        if operator in ("==", "!="):
            if not _comparable(first, second):
                message = f"cannot compare {called(first)} with {called(second)}: values are not converted"
                raise _error(message, tree)
            return "boolean"
        ordered = (*NUMBERS, "string")
        _fit(first, left, ordered, f"`{operator}`")
        _fit(second, right, ordered, f"`{operator}`")
        if not _comparable(first, second):
            raise _error(f"`{operator}` requires two numbers or two strings, got {first} and {second}", tree)
        return "boolean"

    def membership(self, operator: str, part: Tree, whole: Tree) -> None:
        """Check `in`, and contains with its arguments the other way round."""
        found = self.infer(part)
        if whole[0] != "list":
            if self.want(whole, _SIZED, operator) in ("string", "object"):
                _fit(found, part, ("string",), operator)
            return
        kinds: list[Type] = [self.infer(item) for item in whole[3]]
        if kinds and not any(_comparable(found, kind) for kind in kinds):
            raise _error(
                f"{called(found)} cannot be in a list of other types: values are not converted", part
            )

    def math(self, tree: Tree) -> Type:
        operator, *operands = tree[3:]
        found = [self.want(operand, NUMBERS, f"`{operator}`") for operand in operands]
        if "any" in found:
            return "any"
        return "number" if "number" in found else "integer"

    def concatenation(self, tree: Tree) -> Type:
        for operand in tree[3]:
            self.want(operand, _SCALAR, "`~`")
        return "string"

    def choice(self, tree: Tree) -> Type:
        self.want(tree[3], ("boolean",), "`if`")
        return self.either(tree[4], tree[5])

    def either(self, left: Tree, right: Tree) -> Type:
        """Return the type of a value that is one of two."""
        first, second = self.infer(left), self.infer(right)
        if first in NUMBERS and second in NUMBERS and first != second:
            return "number"
        return first if first == second else "any"

    def call(self, tree: Tree) -> Type:
        name, arguments = tree[3:]
        if name == "default":
            return self.either(*arguments)
        if name == "contains":
            self.membership(name, arguments[1], arguments[0])
            return "boolean"
        wanted, result = _SIGNATURES[name]
        for argument, allowed in zip(arguments, wanted, strict=False):
            if allowed:
                self.want(argument, allowed, name)
            else:
                self.infer(argument)
        return result

    def word(self, tree: Tree) -> Type:
        if self.infer(tree[3]) == "null":
            raise _error("null cannot be converted to a string", tree[3])
        return "string"


_RULES: dict[str, Callable[[_Checker, Tree], Type]] = {
    "const": _Checker.constant,
    "path": _Checker.path,
    "item": _Checker.item,
    "list": _Checker.items,
    "and": _Checker.logic,
    "or": _Checker.logic,
    "not": _Checker.negation,
    "neg": _Checker.minus,
    "compare": _Checker.comparison,
    "math": _Checker.math,
    "concat": _Checker.concatenation,
    "if": _Checker.choice,
    "call": _Checker.call,
    "sh": _Checker.word,
}
