"""The keys of one step as text, as they are written, to stand in other steps, too."""

from __future__ import annotations

from planrun.plan.edit.editing import Page, flow
from planrun.plan.edit.extents import line_start
from planrun.plan.yaml.document import parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from planrun.plan.edit.extents import Entry
    from planrun.plan.yaml.node import Node

_MERGE = "<<"


def copied_keys(data: bytes, file: str, step: str, left_out: Collection[str]) -> dict[str, list[str]]:
    """Return the keys of a step but those that are `left_out`, each as the text that it may stand as in another one.

    There are two texts of each, lines at no indentation: the first one with anchors, for one place alone, the second
    one without. Raises as `planrun.plan.edit.editing.replace_step` does.
    """
    page = Page(data, file)
    section, at = page.find(step)
    entry = page.listing(section).entries[at]
    node = page.nodes(section)[at]
    slices: dict[str, list[str]] = {}
    if not entry.is_flow and all(name != _MERGE for name, *_ in entry.keys):
        slices = _slices(page.text, entry)
    found = {}
    for name, value in node.value.items():
        if name in left_out:
            continue
        written = slices.get(name, [])
        if not written or any(not _says(text, name, value) for text in written[1:]):
            written = [f"{flow(node.keys[name])}: {flow(value)}\n"] * 2
        found[name] = written
    return found


def _slices(text: str, entry: Entry) -> dict[str, list[str]]:
    found = {}
    for name, start, end, is_kept in entry.keys:
        marks = [mark for mark in entry.anchors if start <= mark[0] < end]
        plain, at = "", start
        for first, last in marks:
            plain += text[at:first]
            at = last + (text[last : last + 1] == " ")
        plain += text[at:end]
        column = start - line_start(text, start)
        found[name] = [_dedented(each, column, is_kept=is_kept) for each in (text[start:end], plain)]
    return found


def _dedented(text: str, column: int, *, is_kept: bool) -> str:
    """Return lines as they stand `column` characters further left; "" when one of them begins left of that."""
    rows = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if any(row[:column].strip() for row in rows[1:]):
        return ""
    shown = "\n".join([rows[0], *[row[column:] for row in rows[1:]]])
    return shown if is_kept else shown.rstrip("\n") + "\n"


def _says(text: str, name: str, value: Node) -> bool:
    """Say whether a text says of a key what it says in the file, as far as it can be read alone."""
    if "*" in text:  # an alias, perhaps: what it names stands elsewhere
        return bool(text)
    root, problems = parse(text.encode(), "")
    found = root.value.get(name) if root is not None and not problems else None
    return found is not None and repr_of(found) == repr_of(value)


def repr_of(node: Node) -> object:
    """Return a value with whether each of its texts is plain: what two places have to share to mean the same."""
    if isinstance(node.value, str):
        return (node.value, node.plain)
    if isinstance(node.value, dict):
        return {key: repr_of(value) for key, value in node.value.items()}
    return [repr_of(item) for item in node.value]
