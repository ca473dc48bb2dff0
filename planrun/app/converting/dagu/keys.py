"""Keys of Dagu files, which are written `retryPolicy` in older ones and `retry_policy` in newer ones."""

from __future__ import annotations

import re

from planrun.app.converting.reading import is_nothing, text_of
from planrun.source.node import MAPPING, SCALAR, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from planrun.app.converting.reading import Reader


class Keys:
    """The members of a mapping under names in small letters without underscores."""

    def __init__(self, node: Node | None, what: str, reader: Reader) -> None:
        self.node = node if node is not None else Node(MAPPING, {}, 1, 1)
        self.reader = reader
        self.what = what
        self._members: dict[str, tuple[str, Node]] = {}
        for name, value in reader.mapping(node, what).items():
            if not is_nothing(value):
                self._members.setdefault(plain(name), (name, value))

    def get(self, name: str) -> Node | None:
        """Return the value of a key, None for none."""
        found = self._members.get(name)
        return found[1] if found else None

    def first(self, *names: str) -> Node | None:
        """Return the value of the first of several keys that is there."""
        return next((self._members[name][1] for name in names if name in self._members), None)

    def text(self, *names: str) -> str:
        """Return the text of the first of several keys that is there."""
        return text_of(self.first(*names))

    def place(self, name: str) -> Node:
        """Return where a key stands."""
        found = self._members.get(name)
        return self.node.key(found[0]) if found and self.node.kind == MAPPING else self.node

    def has(self, name: str) -> bool:
        """Say whether a key has a value."""
        return name in self._members

    def refuse_unknown(self, known: Container[str]) -> None:
        """Refuse every key that is not known."""
        for name, (written, _) in self._members.items():
            if name not in known:
                message = f"{self.what}: planrun does not know the key `{written}`"
                self.reader.found.refuse(f"key:{written}", message, self.place(name))


def plain(name: str) -> str:
    """Return the name of a key as it is looked up."""
    return name.replace("_", "").lower()


def pairs_of(node: Node | None, what: str, reader: Reader) -> Iterator[tuple[str, Node]]:
    """Yield names and values of a mapping, or of a list of mappings and of texts `NAME=value`."""
    if node is None or is_nothing(node):
        return
    if node.kind == MAPPING:
        yield from node.value.items()
        return
    for item in reader.either(node, what):
        if item.kind == SCALAR:
            name, sign, value = text_of(item).partition("=")
            if sign:
                yield name.strip(), Node(SCALAR, value, item.line, item.col)
            else:
                reader.found.refuse("shape", f"{what} has entries NAME=value", item)
        else:
            yield from reader.mapping(item, what).items()


def whole(node: Node | None) -> int | None:
    """Return a whole number that is not negative; None for anything else."""
    text = text_of(node)
    return int(text) if text.isdecimal() and len(text) < 10 else None


def is_number(text: str) -> bool:
    """Say whether a text is a number that is not negative, as of a factor."""
    return bool(re.fullmatch(r"\d{1,6}(\.\d{1,6})?", text))
