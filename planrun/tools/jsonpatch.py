"""The operations of RFC 6902 on JSON data; nothing of a document is changed unless all of them can be done."""

from __future__ import annotations

from copy import deepcopy

from planrun.tools.jsontexts import Number
from planrun.tools.refusal import Refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Operation = dict[str, Any]


def patched(document: Any, operations: list[Operation]) -> Any:
    """Return what operations make of a document, which stays as it is; raises Refusal naming the first that fails."""
    root = [deepcopy(document)]
    for number, operation in enumerate(operations, 1):
        try:
            _OPERATIONS[operation["op"]](root, operation)
        except Refusal as refusal:
            raise Refusal(
                f"operation {number} ({operation['op']} {operation['path']!r}): {refusal}"
            ) from None
    return root[0]


def words(pointer: str) -> list[str]:
    """Return the parts of a JSON Pointer (RFC 6901), escapes undone."""
    if not pointer:
        return []
    if not pointer.startswith("/"):
        raise Refusal("a path begins with `/`, or is empty")
    parts = pointer[1:].split("/")
    for part in parts:
        rest = part.replace("~0", "").replace("~1", "")
        if "~" in rest:
            raise Refusal("`~` stands for itself as `~0`, and `~1` for `/`")
    return [part.replace("~1", "/").replace("~0", "~") for part in parts]


def _holder(root: list[Any], pointer: str) -> tuple[Any, Any]:
    """Return what holds the value at a pointer, and its key or index there; an index may be the one after the last."""
    parts = words(pointer)
    holder: Any = root
    key: Any = 0
    for part in parts:
        holder = _at(holder, key)
        key = _key(holder, part)
    return holder, key


def _key(holder: Any, part: str) -> Any:
    if isinstance(holder, dict):
        return part
    if not isinstance(holder, list):
        raise Refusal(f"there is nothing below a value that is no list and no object: {part!r}")
    if part == "-":
        return len(holder)
    if not (part.isascii() and part.isdigit()) or (part != "0" and part.startswith("0")) or len(part) > 9:
        raise Refusal(f"{part!r} is no index of a list")
    if int(part) > len(holder):
        raise Refusal(f"the list has {len(holder)} items, and no place {part}")
    return int(part)


def _at(holder: Any, key: Any) -> Any:
    """Return a value that has to be there."""
    if isinstance(holder, dict):
        if key not in holder:
            raise Refusal(f"there is no {key!r}")
    elif key >= len(holder):
        raise Refusal(f"the list has {len(holder)} items, and no item {key}")
    return holder[key]


def _value(operation: Operation) -> Any:
    if "value" not in operation:
        raise Refusal("it has no `value`")
    return operation["value"]


def _source(operation: Operation) -> str:
    if "from" not in operation:
        raise Refusal("it has no `from`")
    return str(operation["from"])


def _put(root: list[Any], pointer: str, value: Any) -> None:
    holder, key = _holder(root, pointer)
    if holder is root:
        root[0] = value
    elif isinstance(holder, dict):
        holder[key] = value
    else:
        holder.insert(key, value)


def _take(root: list[Any], pointer: str) -> Any:
    holder, key = _holder(root, pointer)
    if holder is root:
        raise Refusal("the whole document cannot be taken away")
    _at(holder, key)
    return holder.pop(key)


def _add(root: list[Any], operation: Operation) -> None:
    _put(root, operation["path"], deepcopy(_value(operation)))


def _remove(root: list[Any], operation: Operation) -> None:
    _take(root, operation["path"])


def _replace(root: list[Any], operation: Operation) -> None:
    holder, key = _holder(root, operation["path"])
    _at(holder, key)
    holder[key] = deepcopy(_value(operation))


def _move(root: list[Any], operation: Operation) -> None:
    source, target = words(_source(operation)), words(operation["path"])
    if target[: len(source)] == source and target != source:
        raise Refusal("nothing can be moved into itself")
    _at(*_holder(root, operation["from"]))
    if source != target:
        _put(root, operation["path"], _take(root, operation["from"]))


def _copy(root: list[Any], operation: Operation) -> None:
    _put(root, operation["path"], deepcopy(_at(*_holder(root, _source(operation)))))


def _test(root: list[Any], operation: Operation) -> None:
    if not same(_at(*_holder(root, operation["path"])), _value(operation)):
        raise Refusal("the value there is another one")


_OPERATIONS: dict[str, Callable[[list[Any], Operation], None]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}


def same(one: Any, other: Any) -> bool:
    """Compare as JSON does: numbers by what they are worth, true is no number, the order of keys says nothing."""
    if isinstance(one, bool) or isinstance(other, bool) or one is None or other is None:
        return one is other
    if _is_number(one) and _is_number(other):
        from decimal import Decimal  # few patches test numbers

        return Decimal(str(one)) == Decimal(str(other))
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(same(*pair) for pair in zip(one, other, strict=True))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return type(one) is type(other) and bool(one == other)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Number)
