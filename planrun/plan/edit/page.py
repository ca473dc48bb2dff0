"""Edits of a plan's text that leave every other byte as it is.

Steps are added or replaced in whatever style the file is written: lists in lines or between brackets, any indentation
and line end, comments, anchors, a byte order mark. Each edit is read back and compared with what it should be; one that
cannot be made without another change is refused. Two things are written besides, where the meaning of the rest needs
them: the id of a step that has none and would be counted otherwise, and `-` behind the `|` of a text that ends the file
without a line end.
"""

from __future__ import annotations

import json
import re

from planrun.errors import InvalidInput
from planrun.model.plan import Step
from planrun.plan.compile.canonical import plain
from planrun.plan.edit.extents import SECTIONS, Entry, Listing, line_end, line_start, listings, next_line
from planrun.plan.keys.outline import Outline
from planrun.plan.load import load_bytes
from planrun.plan.schema.forms import to_data
from planrun.plan.yaml.document import parse
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from planrun.model.plan import Plan

    Change = tuple[int, int, str]  # from one offset to another, and the text that is to stand there

# What stands plain in a file and holds none of the marks of a list or mapping in one line.
_BARE = re.compile(r"(?!.*(?:: |:$| #))[^\s,\[\]{}][^,\[\]{}\n\r\t]*")
_JSON = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?|true|false|null")
_SHORT = {"\n": "\\n", "\t": "\\t", '"': '\\"', "\\": "\\\\"}


def flow(node: Node, *, is_json: bool = False) -> str:
    """Return a value in one line: what stands plain in the file stays so where it can, all other text is in quotes.

    `is_json`: as JSON, where words are in quotes, too.
    """
    if node.kind == SCALAR:
        return _scalar(node, is_json=is_json)
    if node.kind == MAPPING:
        pairs = [
            f"{_scalar(node.keys[name], is_json=is_json)}: {flow(value, is_json=is_json)}"
            for name, value in node.value.items()
        ]
        return f"{{{', '.join(pairs)}}}"
    return f"[{', '.join([flow(item, is_json=is_json) for item in node.value])}]"


def quoted(text: str) -> str:
    """Return a text in double quotes, whatever is in it."""
    return f'"{"".join([_SHORT.get(character) or _visible(character) for character in text])}"'


def _scalar(node: Node, *, is_json: bool) -> str:
    text: str = node.value
    if node.plain and (not text or (_JSON if is_json else _BARE).fullmatch(text)):
        return text or "null"
    return quoted(text)


def _visible(character: str) -> str:
    if character.isprintable():
        return character
    number = ord(character)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def check_edit(before: Plan, root: Node, data: bytes, gone: Sequence[str], new: Sequence[Node]) -> str:
    """Return what an edit changed that it should not have, in words; empty: it did what it was to do.

    `before` and `root` are the plan as it was, `data` the text as it is now; the steps in `gone` are replaced, those in
    `new` are to be there. Raises InvalidPlan when the text can be read and is no plan any more.
    """
    tree, problems = parse(data, before.file)
    if tree is None or problems:
        return f"line {problems[0].line}: {problems[0].message}"
    found = _other_keys(root, tree)
    if found:
        return f"`{found}` would change"
    count = len(_listed(tree)) - len(_listed(root))
    if count != len(new) - len(gone):
        return f"there would be {count} more steps, not {len(new) - len(gone)}"
    written = [to_data(node) for node in _listed(tree)]
    wanted = [to_data(node) for node in new]
    if not any(written[at : at + len(wanted)] == wanted for at in range(len(written) - len(wanted) + 1)):
        return "the new steps would be parsed differently than they were written"
    return _others(before, load_bytes(data, before.file, cache=False), set(gone), new)


def _other_keys(old: Node, new: Node) -> str:
    """Return the first key beside the lists of steps that differs."""
    for name in (*old.value, *new.value):
        if name in ("steps", "finally"):
            continue
        if name not in old.value or name not in new.value or not _same(old.value[name], new.value[name]):
            return str(name)
    return ""


def _same(old: Node, new: Node) -> bool:
    if old.kind != new.kind:
        return False
    if old.kind == SCALAR:
        return bool(old.value == new.value and old.plain == new.plain)
    if old.kind == MAPPING:
        return list(old.value) == list(new.value) and all(
            _same(old.value[name], new.value[name]) for name in old.value
        )
    return len(old.value) == len(new.value) and all(map(_same, old.value, new.value))


def _listed(root: Node) -> list[Node]:
    found: list[Node] = []
    for section in ("steps", "finally"):
        node = root.get(section)
        if node is not None and node.kind == SEQUENCE:
            found += node.value
    return found


def _others(before: Plan, after: Plan, gone: set[str], new: Sequence[Node]) -> str:
    """Compare what is not replaced in its canonical form; edges may lead to steps that replace others."""
    if plain(before) != plain(after):
        return "keys beside the steps would change"
    edges = not any("replaces" in node.value for node in new if node.kind == MAPPING)
    old = {step.id: _form(step, edges=edges) for step in before.steps if step.id not in gone}
    now = {step.id: _form(step, edges=edges) for step in after.steps}
    for name, form in old.items():
        if now.get(name) != form:
            return f'step "{name}" would change'
    ids = [step.id for step in before.steps if step.id in old]
    if [step.id for step in after.steps if step.id in old] != ids:
        return "the order of the steps would change"
    return ""


def _form(step: Step, *, edges: bool) -> object:
    return plain(step if edges else step.but(edges=()))


__all__ = ["EditError", "Page", "append_steps", "replace_step", "with_comments"]

_BOM = b"\xef\xbb\xbf"
_COMMENT = re.compile(r"(?:(?<=\s)|^)#[^\r\n]*", re.MULTILINE)


class EditError(InvalidInput):
    """A plan's text that cannot be changed without changing what it says elsewhere; nothing was written."""


def append_steps(data: bytes, file: str, text_of_steps: str) -> bytes:
    """Return a plan's text with steps added at the end of its list `steps`.

    `text_of_steps` is a list in lines (`- id: a`, and below it `  run: b`) as a file has it, not indented, comments
    above each step included; each step has an id. Raises InvalidPlan when the plan, before or after, is none, and
    EditError when the text does not lend itself to it.
    """
    page = Page(data, file)
    new = _Fragment(text_of_steps)
    listing, last = page.listing("steps"), page.listing("steps").entries[-1]
    changes = page.appended(listing, last, new)
    changes += page.pinned("steps", len(listing.entries), len(new.nodes))
    return page.checked(changes, {}, new)


def replace_step(data: bytes, file: str, step: str, texts: Sequence[str]) -> bytes:
    """Return a plan's text with other steps in the place of one.

    `texts` are their texts in order, each as in `append_steps`. Comments inside the replaced step are kept above the
    first of them. Raises as `append_steps` does, EditError also for a step that is not there.
    """
    page = Page(data, file)
    new = _Fragment("".join(text if text.endswith("\n") else text + "\n" for text in texts))
    section, at = page.find(step)
    listing = page.listing(section)
    changes = page.replaced(listing, listing.entries[at], new)
    changes += page.pinned(section, at + 1, len(new.nodes) - 1)
    return page.checked(changes, {step: section}, new)


class _Fragment:
    """The text of new steps: its lines, its nodes, and which lines belong to each."""

    def __init__(self, text: str) -> None:
        whole = "steps:\n" + text
        root, problems = parse(whole.encode("utf-8", "replace"), "")
        listing = listings(whole).get("steps") if root is not None and not problems else None
        if root is None or listing is None or listing.is_flow or root.value["steps"].kind != SEQUENCE:
            detail = f": {problems[0].text}" if problems else ""
            raise EditError(f"the text of the new steps is not a list of steps{detail}")
        self.nodes: list[Node] = root.value["steps"].value
        starts = [with_comments(whole, entry.dash) for entry in listing.entries]
        starts[0] = len("steps:\n")
        self.parts = [whole[a:b].rstrip("\n") for a, b in zip(starts, [*starts[1:], len(whole)], strict=True)]
        self.kept = [entry.is_kept for entry in listing.entries]

    def lines(self, indent: int, newline: str, *, spaced: bool) -> str:
        """Return all of them indented, an empty line between two if they are to be `spaced`; no line end at last."""
        margin = " " * indent
        shown = [
            newline.join([margin + line if line.strip() else line for line in part.split("\n")])
            for part in self.parts
        ]
        return (newline * 2 if spaced else newline).join(shown)

    def rows(self, *, is_json: bool) -> list[list[str]]:
        """Return the lines of each as a mapping between braces, with the comments above it; JSON has none."""
        found = []
        for part, node in zip(self.parts, self.nodes, strict=True):
            lines = part.split("\n")
            upto = 0 if is_json else next(at for at, line in enumerate(lines) if line.startswith("-"))
            comments = [line.strip() for line in lines[:upto] if line.strip()]
            found.append([*comments, flow(node, is_json=is_json)])
        return found


class Page:
    """The text of one plan, and where its steps stand in it."""

    def __init__(self, data: bytes, file: str) -> None:
        self.data = data
        self.file = file
        self.plan = load_bytes(data, file, cache=False)
        root, _ = parse(data, file)
        assert root is not None
        self.root = root
        self.text = data.removeprefix(_BOM).decode("utf-8")
        self.listings = listings(self.text)
        steps = Outline(root, file, data).steps
        written = {id(node) for section in SECTIONS for node in self.nodes(section)}
        self.steps = {
            section: [each for each in steps if each.section == section and id(each.node) in written]
            for section in SECTIONS
        }
        self.is_json = _is_json(self.text)
        found = re.search(r"\r\n|\r|\n", self.text)
        self.newline = found.group() if found else "\n"

    def nodes(self, section: str) -> list[Node]:
        """Return the steps of a section as they were read."""
        node = self.root.get(section)
        return node.value if node is not None and node.kind == SEQUENCE else []

    def listing(self, section: str) -> Listing:
        """Return where a section stands; raises EditError when that is elsewhere than below its key."""
        found = self.listings.get(section)
        if found is None or len(found.entries) != len(self.nodes(section)) or not found.entries:
            raise EditError(
                f"{self.file}: `{section}:` is not a block list, so no step can be added; "
                f"write it as a list below its key"
            )
        return found

    def find(self, step: str) -> tuple[str, int]:
        """Return the section of a step, and its place in there; raises EditError."""
        for section, steps in self.steps.items():
            for at, raw in enumerate(steps):
                if raw.id == step:
                    return section, at
        raise EditError(f'{self.file}: no step "{step}" is written under `steps:` or `finally:`')

    def end_of_steps(self) -> int:
        """Return the offset of the line behind the last step under `steps:`."""
        last = self.listing("steps").entries[-1]
        return self._content_end(last, _column(self.text, last.dash))

    # --- changes ------------------------------------------------------------------------------------------------

    def appended(self, listing: Listing, last: Entry, new: _Fragment) -> list[Change]:
        """Return what adds steps behind the last one."""
        if listing.is_flow:
            return self._appended_flow(listing, last, new)
        end = self._content_end(last, _column(self.text, last.dash))
        at = self._behind_comments(end, max(1, _column(self.text, last.dash)))
        spaced = self._is_spaced(listing)
        lines = new.lines(_column(self.text, last.dash), self.newline, spaced=spaced)
        changes: list[Change] = []
        if at == len(self.text) and line_start(self.text, at) != at:  # the file ends within a line
            changes += self._clipped(last)
            return [*changes, (at, at, self.newline * (2 if spaced else 1) + lines + self.newline)]
        before = self.newline if spaced and not last.is_kept else ""
        return [(at, at, before + lines + self.newline)]

    def replaced(self, listing: Listing, entry: Entry, new: _Fragment) -> list[Change]:
        """Return what puts steps in the place of one."""
        kept = [
            comment
            for comment in self._comments_in(entry, is_flow=listing.is_flow)
            if not any(comment in part for part in new.parts)
        ]
        if listing.is_flow:
            rows = new.rows(is_json=self.is_json)
            rows[0] = [*([] if self.is_json else kept), *rows[0]]
            return [(entry.start, entry.end, self._between(entry, rows))]
        indent = _column(self.text, entry.dash)
        end = self._content_end(entry, indent)
        margin = " " * indent
        lines = new.lines(indent, self.newline, spaced=self._is_spaced(listing) and len(listing.entries) > 1)
        shown = "".join(f"{margin}{comment}{self.newline}" for comment in kept) + lines + self.newline
        return [(entry.dash, end, shown[indent:])]

    def _appended_flow(self, listing: Listing, last: Entry, new: _Fragment) -> list[Change]:
        closing = listing.end - 1
        gap = self.text[last.end : closing]
        bare = _COMMENT.sub(lambda found: " " * len(found.group()), gap)
        comma = bare.find(",")
        changes: list[Change] = [] if comma >= 0 else [(last.end, last.end, ",")]
        shown = self._between(last, new.rows(is_json=self.is_json))
        if self._is_alone(last) and self._is_alone(closing):
            at = line_start(self.text, closing)
            ending = "," if comma >= 0 else ""
            margin = " " * _column(self.text, last.start)
            return [*changes, (at, at, f"{margin}{shown}{ending}{self.newline}")]
        at = last.end + comma + 1
        if "#" in gap:  # nothing may come between a comment and the end of its line
            return [*changes, (closing, closing, shown)]
        space = "" if shown.startswith(self.newline) else " "
        return [*changes, (at, at, space + shown)]

    def _is_alone(self, at: Entry | int) -> bool:
        """Say whether nothing stands before it in its line."""
        offset = at if isinstance(at, int) else at.start
        return not self.text[line_start(self.text, offset) : offset].strip()

    def _between(self, entry: Entry, rows: list[list[str]]) -> str:
        """Return steps as they stand between brackets in the place of `entry`, or behind it."""
        if not self._is_alone(entry) and all(len(lines) == 1 for lines in rows):
            return ", ".join([lines[0] for lines in rows])
        margin = self.newline + " " * (_column(self.text, entry.start) if self._is_alone(entry) else 2)
        shown = ("," + margin).join([margin.join(lines) for lines in rows])
        return shown if self._is_alone(entry) else margin + shown

    def pinned(self, section: str, start: int, shift: int) -> list[Change]:
        """Return what writes the ids of those behind `start` that have none, when they are counted otherwise."""
        behind = [(section, at) for at in range(start, len(self.steps[section]))]
        if section == "steps":
            behind += [("finally", at) for at in range(len(self.steps["finally"]))]
        changes: list[Change] = []
        for name, at in behind if shift else ():
            raw = self.steps[name][at]
            if "id" in raw.keys:
                continue
            entry = self.listing(name).entries[at]
            if entry.first < 0:
                raise EditError(
                    f'{self.file}:{raw.at.line}: step "{raw.id}" has no id and would be counted otherwise; '
                    f"give it one"
                )
            gap = ", " if entry.is_flow else self.newline + " " * _column(self.text, entry.first)
            key, value = ('"id"', f'"{raw.id}"') if self.is_json else ("id", raw.id)
            changes.append((entry.first, entry.first, f"{key}: {value}{gap}"))
        return changes

    def checked(self, changes: list[Change], gone: dict[str, str], new: _Fragment) -> bytes:
        """Make the changes, and return the bytes once they are what they were to be."""
        parts, at = [], 0
        for start, end, shown in sorted(
            changes, key=lambda change: change[0]
        ):  # of those at one place, as they came
            parts += [self.text[at:start], shown]
            at = end
        text = "".join(parts) + self.text[at:]
        made = (_BOM if self.data.startswith(_BOM) else b"") + text.encode("utf-8")
        problem = check_edit(self.plan, self.root, made, list(gone), new.nodes)
        if problem:
            raise EditError(
                f"{self.file}: this text cannot be changed step by step: {problem}; nothing was written"
            )
        return made

    # --- places -------------------------------------------------------------------------------------------------

    def _content_end(self, entry: Entry, indent: int) -> int:
        """Return the offset of the line behind the last one of an entry; empty lines behind a text are none of it."""
        end = entry.end
        if entry.block < 0 or line_start(self.text, end) != end:
            return next_line(self.text, end)
        while not entry.is_kept and end:
            above = line_start(self.text, end - 1)
            row = self.text[above : line_end(self.text, above)]
            if row.strip() or len(row) > indent + 2:  # longer ones may be part of the text
                break
            end = above
        return end

    def _behind_comments(self, at: int, indent: int) -> int:
        """Return the offset behind the comments at `at` that stand as deep as the list."""
        while at < len(self.text):
            row = self.text[at : line_end(self.text, at)]
            if not row.lstrip(" ").startswith("#") or len(row) - len(row.lstrip(" ")) < indent:
                break
            at = next_line(self.text, at)
        return at

    def _clipped(self, last: Entry) -> list[Change]:
        """Return what keeps a text that ends the file without a line end from getting one."""
        if last.block < 0 or last.end < len(self.text):
            return []
        header = re.compile(r"([|>][0-9]*)([-+]?)([0-9]*)").match(self.text, last.block)
        assert header is not None
        if header.group(2) == "-":
            return []
        return [(header.start(2), header.end(2), "-")]

    def _is_spaced(self, listing: Listing) -> bool:
        """Say whether an empty line stands between the last two steps."""
        if len(listing.entries) < 2:
            return False
        before = with_comments(self.text, listing.entries[-1].dash)
        above = line_start(self.text, max(before - 1, 0))
        return not self.text[above:before].strip()

    def _comments_in(self, entry: Entry, *, is_flow: bool) -> list[str]:
        """Return the comments that stand in an entry and in its last line."""
        found, at = [], entry.dash
        last = entry.end if entry.block >= 0 or is_flow else line_end(self.text, entry.end)
        ends = [*entry.scalars, (last, last)]
        for start, end in ends:
            found += [match.group() for match in _COMMENT.finditer(self.text, at, max(start, at))]
            at = max(at, end)
        return found


def _is_json(text: str) -> bool:
    if not text.lstrip().startswith("{"):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _column(text: str, at: int) -> int:
    return at - line_start(text, at)


def with_comments(text: str, at: int) -> int:
    """Return the offset of the first of the comment lines directly above the line that holds `at`."""
    start = line_start(text, at)
    while start > 0:
        above = line_start(text, start - 1)
        if not text[above:start].lstrip().startswith("#"):
            break
        start = above
    return start


_MERGE = "<<"


def copied_keys(data: bytes, file: str, step: str, left_out: Collection[str]) -> dict[str, list[str]]:
    """Return the keys of a step but those that are `left_out`, each as the text that it may stand as in another one.

    There are two texts of each, lines at no indentation: the first one with anchors, for one place alone, the second
    one without. Raises as `planrun.plan.edit.page.replace_step` does.
    """
    page = Page(data, file)
    section, at = page.find(step)
    entry = page.listing(section).entries[at]
    node = page.nodes(section)[at]
    slices: dict[str, list[str]] = {}
    if not entry.is_flow and all(name != _MERGE for name, *_ in entry.keys):
        text = page.text
        slices = {}
        for name, start, end, is_kept in entry.keys:
            marks = [mark for mark in entry.anchors if start <= mark[0] < end]
            plain, at = "", start
            for first, last in marks:
                plain += text[at:first]
                at = last + (text[last : last + 1] == " ")
            plain += text[at:end]
            column = start - line_start(text, start)
            slices[name] = [_dedented(each, column, is_kept=is_kept) for each in (text[start:end], plain)]
    found = {}
    for name, value in node.value.items():
        if name in left_out:
            continue
        written = slices.get(name, [])
        if not written or any(not _says(text, name, value) for text in written[1:]):
            written = [f"{flow(node.keys[name])}: {flow(value)}\n"] * 2
        found[name] = written
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
