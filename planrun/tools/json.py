"""JSON files that keep their format when changed: numbers as written, keys in order, the same indentation.

The operations of RFC 6902 on JSON data; a document changes only if all of them succeed.

json_patch.
"""

from __future__ import annotations

import json
from copy import deepcopy
from decimal import Decimal

from planrun.model.record import Record
from planrun.sha256 import sha256
from planrun.tools.files import check_expected, encoded, text_of
from planrun.tools.ground import Refusal, existing, permissions, plural, put, read_whole, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from planrun.tools.ground import Ground


class Number(str):
    """A number as written in a file."""

    __slots__ = ()


class Style(Record):
    """The style of a file: `indent` of a level ("" for all on one line), and what follows a colon and a comma."""

    indent: str
    colon: str
    comma: str  # of a file on one line
    ending: str  # of the file
    line_end: str
    is_ascii: bool


def read(text: str) -> Any:
    """Return the data of a JSON text; raises Refusal with the place of the error."""
    if text.startswith("\ufeff"):
        raise Refusal("it begins with a byte order mark, which is no JSON")
    try:
        return json.loads(
            text, parse_int=Number, parse_float=Number, parse_constant=_refuse, object_pairs_hook=_object
        )
    except json.JSONDecodeError as error:
        is_yaml = not text.lstrip().startswith(("{", "[")) and ":" in text
        hint = "; YAML cannot be changed without losing its comments" if is_yaml else ""
        raise Refusal(f"it is no JSON: {error.msg} at {error.lineno}:{error.colno}{hint}") from None


def style_of(text: str) -> Style:
    """Return the style of a text, by its first lines; comments and other spaces between values are lost."""
    body = text.strip()
    line_end = "\r\n" if "\r\n" in text else "\n"
    lines = body.splitlines()
    second = next((line for line in lines[1:] if line.strip()), "")
    indent = second[: len(second) - len(second.lstrip())]
    return Style(
        indent=indent or ("  " if len(lines) > 1 else ""),
        colon=": " if '": ' in body or '":' not in body else ":",
        comma=", " if '", "' in body or ", " in body or "," not in body else ",",
        ending=text[len(text.rstrip()) :],
        line_end=line_end,
        is_ascii=text.isascii() and "\\u" in text,
    )


def written(value: Any, style: Style) -> str:
    """Return data as a text in a style."""
    text = "".join(_pieces(value, style, style.line_end))
    return text + style.ending


def _pieces(value: Any, style: Style, start: str) -> Iterator[str]:
    """Yield the text of a value; `start` is the newline and indentation of a line at its level."""
    if not isinstance(value, dict | list) or not value:
        yield _scalar(value, style)
        return
    inner = start + style.indent if style.indent else ""
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    yield opening
    for position, item in enumerate(value):
        if position:
            yield "," if style.indent else style.comma
        yield inner
        if isinstance(value, dict):
            yield json.dumps(item, ensure_ascii=style.is_ascii) + style.colon
            yield from _pieces(value[item], style, inner)
        else:
            yield from _pieces(item, style, inner)
    yield (start if style.indent else "") + closing


def _scalar(value: Any, style: Style) -> str:
    if isinstance(value, Number):
        return str(value)
    return json.dumps(value, ensure_ascii=style.is_ascii, allow_nan=False)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise Refusal(f"the key {twice!r} stands twice in one object")
    return found


def _refuse(word: str) -> Any:
    raise Refusal(f"{word} is no JSON")


if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Operation = dict[str, Any]


def patched(document: Any, operations: list[Operation]) -> Any:
    """Return the result of operations on a document, which is not modified; raises Refusal naming the first failure."""
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
    """Return the parts of a JSON Pointer (RFC 6901), unescaped."""
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
    """Return the container of the value at a pointer, and its key or index, which may be one past the last."""
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
    """Return an existing value; raises Refusal for a missing one."""
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
    """Compare as JSON does: numbers by value, true is no number, the order of keys is ignored."""
    if isinstance(one, bool) or isinstance(other, bool) or one is None or other is None:
        return one is other
    if _is_number(one) and _is_number(other):
        return Decimal(str(one)) == Decimal(str(other))
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(same(*pair) for pair in zip(one, other, strict=True))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return type(one) is type(other) and bool(one == other)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Number)


MAX_FILE = 8 << 20  # bytes


def json_patch(ground: Ground, args: dict[str, Any]) -> dict[str, Any]:
    """Change a JSON file by operations; unchanged data is not written."""
    operations = args["operations"]
    with ground.writable(args["file"]) as place:
        if place.name.lower().endswith((".yml", ".yaml")):
            raise Refusal(f"{place.path}: only JSON can be patched; YAML would lose its comments")
        status = existing(place)
        data = read_whole(place, MAX_FILE)
        check_expected(place, args)
        text = text_of(place, data)
        try:
            document = read(text)
            changed = patched(document, operations)
        except Refusal as refusal:
            raise Refusal(f"{place.path}: {refusal}") from None
        if same(document, changed) and _order(document) == _order(changed):
            say(f"{place.path} stays as it is")
            return {"changed": False, "sha256": str(sha256(data).hexdigest())}
        new = encoded(written(changed, style_of(text)))
        _, digest = put(place, (new,), permissions(status, executable=False), replace=True)
        say(f"changed {place.path} by {plural(len(operations), 'operation')}")
    return {"changed": True, "sha256": digest}


def _order(value: Any) -> Any:
    """Return the keys of data in order, which a move may change."""
    if isinstance(value, dict):
        return [(name, _order(part)) for name, part in value.items()]
    return [_order(part) for part in value] if isinstance(value, list) else None
