"""What an editor offers at a place of a plan: keys, words, steps, parameters, outputs, tools, files."""

from __future__ import annotations

import os
import re

from lsprotocol import types

from planrun.expressions.tree import FUNCTIONS, ROOTS
from planrun.lsp.schema import keys_at, words_at
from planrun.model.record import Record
from planrun.model.tools import CATALOGUE
from planrun.plan.check.references import FIELDS, RUN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from planrun.lsp.analysis import Analysis
    from planrun.lsp.text import Text
    from planrun.plan.keys.checked import Checked

    Path = tuple[str | int, ...]


_LINE = re.compile(
    r"(?P<lead>[ \t]*(?:-[ \t]+)*)(?P<key>[\w$.-]+|\"[^\"]*\"|'[^']*')[ \t]*:(?=[ \t]|$)(?P<rest>.*)"
)
_DASHES = re.compile(r"[ \t]*(?:-(?:[ \t]+|$))*")
_BLOCK = re.compile(r"[ \t]*[|>][-+0-9]*[ \t]*(#.*)?")
_MOST = 5000  # lines above that are looked at
_OPEN = "${{"


class Context(Record):
    """`path`: of the mapping whose key, or the value, that is being typed; `typed`: what is there of it already.

    `present`: keys that the mapping has. `expression`: what of an expression stands before the place, None outside of
    one. `is_text`: the place is in a script or another text of several lines.
    """

    path: Path
    is_key: bool
    typed: str = ""
    present: tuple[str, ...] = ()
    expression: str | None = None
    is_text: bool = False


def context_at(text: Text, line: int, col: int) -> Context:
    """Return what is being typed at a place."""
    row = text.line(line)[: col - 1]
    start = row.rfind(_OPEN)
    inside = row[start + len(_OPEN) :] if start >= 0 and "}}" not in row[start:] else None
    if inside is not None:
        return Context(
            path=_above(text, line, len(row) - len(row.lstrip()) + 1)[0], is_key=False, expression=inside
        )
    lead = _DASHES.match(row)
    start = len(lead[0]) if lead else 0
    found = _LINE.match(row)
    key_col = len(found["lead"]) if found else start
    above, is_text = _above(text, line, key_col, lead[0] if lead else "")
    if is_text:
        return Context(path=above, is_key=False, is_text=True)
    if found is None:
        return _flow(row[start:], above, _siblings(text, line, key_col))
    key, rest = found["key"].strip("\"'"), found["rest"]
    return _flow(rest.lstrip(), (*above, key), (), at_value=True)


def _above(text: Text, line: int, limit: int, lead: str = "") -> tuple[Path, bool]:
    """Return the path of what a key at a column belongs to, and whether that is a text of several lines."""
    path: list[str | int] = []
    pending = False  # an entry of a list was left: its key may stand at the same column as the dash
    for at in reversed([number for number, char in enumerate(lead) if char == "-"]):
        path.append(0)
        limit, pending = at, True
    for number in range(line - 1, max(0, line - _MOST), -1):
        if limit <= 0 and not pending:
            break
        row = text.line(number)
        if not row.strip() or row.lstrip().startswith("#"):
            continue
        found = _LINE.match(row)
        before = found["lead"] if found else _DASHES.match(row)[0]  # type: ignore[index]
        dashes = [index for index, char in enumerate(before) if char == "-"]
        key_col = len(before)
        if found and (key_col < limit or (pending and key_col == limit and not dashes)):
            if _BLOCK.fullmatch(found["rest"]) and not path:
                return (*_above(text, number, key_col, before)[0], found["key"].strip("\"'")), True
            path.append(found["key"].strip("\"'"))
            limit, pending = key_col, False
        for at in reversed(dashes):
            if at < limit and key_col <= max(limit, at + 2):
                path.append(0)
                limit, pending = at, True
    return tuple(reversed(path)), False


def _siblings(text: Text, line: int, key_col: int) -> tuple[str, ...]:
    """Return the keys that the mapping of a key at a column has on other lines."""
    found: list[str] = []
    for step in (-1, 1):
        number = line + (0 if step < 0 else 1)
        while 0 < number <= len(text.starts) and abs(number - line) < _MOST:
            row = text.line(number)
            match = _LINE.match(row)
            indent = len(row) - len(row.lstrip())
            if row.strip() and indent < key_col and not (match and len(match["lead"]) == key_col):
                break
            is_other_entry = step > 0 and match is not None and "-" in match["lead"]
            if match and len(match["lead"]) == key_col and not is_other_entry and number != line:
                found.append(match["key"].strip("\"'"))
            dash = match is not None and "-" in match["lead"] and len(match["lead"]) == key_col
            if (dash and step < 0) or is_other_entry:
                break
            number += step
    return tuple(found)


class _Level:
    """A mapping or list in braces that is open: its kind, the key whose value is due, the keys so far."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.key: str | None = None
        self.keys: list[str] = []


def _flow(rest: str, above: Path, present: tuple[str, ...], *, at_value: bool = False) -> Context:
    """Return the context of the end of a text that may have braces; `at_value`: the value of a key begins there."""
    levels: list[_Level] = []
    token, at = "", 0
    while at < len(rest):
        char = rest[at]
        if char in "\"'" and not token.strip():
            end = rest.find(char, at + 1)
            token += rest[at + 1 : end if end >= 0 else len(rest)]
            at = end if end >= 0 else len(rest)
        elif char in "{[" and not token.strip():
            levels.append(_Level(char))
            token = ""
        elif char in "}]" and levels:
            levels.pop()
            token = ""
        elif char == "," and levels:
            levels[-1].key, token = None, ""
        elif char == ":" and levels and levels[-1].kind == "{" and rest[at + 1 : at + 2] in ("", " "):
            levels[-1].key = token.strip()
            levels[-1].keys.append(token.strip())
            token = ""
        else:
            token += char
        at += 1
    path = list(above)
    for level in levels:
        path += [0] if level.kind == "[" else [level.key] if level.key is not None else []
    if not levels:
        return Context(path=tuple(path), is_key=not at_value, typed=token.strip(), present=present)
    last = levels[-1]
    is_key = last.kind == "{" and last.key is None
    return Context(
        path=tuple(path), is_key=is_key, typed=token.strip(), present=tuple(last.keys) if is_key else ()
    )


_IDS = re.compile(r"(?:^[ \t]*(?:-[ \t]+)*|[{,][ \t]*)id:[ \t]*[\"']?([A-Za-z0-9_][\w.-]*)", re.MULTILINE)
_LINKS = ("depends_on", "recovers", "replaces", "dependencies_completed")
_BARE = ("condition", "that", "when")  # keys whose value is an expression without braces
_PATH = re.compile(r"[\w.\[\]'\"-]*$")
_STEP_OUTPUTS = re.compile(r"steps(?:\.|\[['\"])([\w.-]+?)(?:['\"]\])?\.outputs\.\w*$")
_STEP_FIELDS = re.compile(r"steps(?:\.[\w-]+|\[['\"][^'\"]+['\"]\])\.\w*$")
_FILES = (".yml", ".yaml")


class Known(Record):
    """The newest version of a document, and the last one that was valid, whose meaning is known."""

    now: Analysis
    valid: Analysis | None

    @property
    def steps(self) -> list[str]:
        """The ids of steps: also of those that were typed since the document was valid."""
        listed = [name.name for name in self.now.names if name.is_definition and name.what == "step"]
        extends = self.now.root is not None and "extends" in self.now.root.value
        extended = [raw.id for raw in self._checked.outline.steps] if extends and self._checked else []
        return list(dict.fromkeys([*listed, *_IDS.findall(self.now.text.whole), *extended]))

    @property
    def params(self) -> list[str]:
        """The names of parameters."""
        listed = [name.name for name in self.now.names if name.is_definition and name.what == "param"]
        return list(dict.fromkeys([*listed, *(self._checked.params if self._checked else ())]))

    def outputs(self, step: str) -> list[str]:
        """Return the declared outputs of a step."""
        return list(self._checked.outputs.get(step, ())) if self._checked else []

    @property
    def secrets(self) -> list[str]:
        """The names of declared secrets."""
        listed = self.now.root.get("secrets") if self.now.root is not None else None
        values = listed.value if listed is not None and isinstance(listed.value, list) else []
        found = [each if isinstance(each.value, str) else each.get("name") for each in values]
        return [str(each.value) for each in found if each is not None]

    @property
    def _checked(self) -> Checked | None:
        if self.now.checked is not None or self.valid is None:
            return self.now.checked
        return self.valid.checked


def completion(known: Known, line: int, col: int) -> list[types.CompletionItem]:
    """Return what may be typed at a place."""
    context = context_at(known.now.text, line, col)
    if context.is_text:
        return []
    row = known.now.text.line(line)[: col - 1]
    own = _own_id(known, line) if context.path[:1] in (("steps",), ("finally",)) else ""
    if context.expression is not None:
        return list(_expression(known, context.expression, own))
    keys = [step for step in context.path if isinstance(step, str)]
    last = keys[-1] if keys else ""
    if not context.is_key and last in _BARE:
        return list(_expression(known, row.rpartition(f"{last}:")[2], own))
    if last in _LINKS:
        steps = [name for name in known.steps if name != own and name not in context.present]
        more = ": " if context.is_key else ""
        return [_item(name, types.CompletionItemKind.Reference, "step", more) for name in steps]
    if context.is_key:
        return list(_keys(context))
    return list(_values(known, context, last))


def _own_id(known: Known, line: int) -> str:
    """Return the id of the step that a line belongs to: the last one that is written above or on it."""
    text = known.now.text
    above = _IDS.findall(text.whole[: text.offset(line, len(text.line(line)) + 1)])
    return above[-1] if above else ""


def _keys(context: Context) -> Iterator[types.CompletionItem]:
    for number, (name, about) in enumerate(keys_at(context.path).items()):
        if name in context.present:
            continue
        yield types.CompletionItem(
            label=name,
            kind=types.CompletionItemKind.Property,
            detail=about.type or None,
            documentation=types.MarkupContent(types.MarkupKind.Markdown, about.description),
            insert_text=f"{name}: ",
            sort_text=f"{number:03d}",
            deprecated=about.deprecated or None,
        )


def _values(known: Known, context: Context, last: str) -> Iterator[types.CompletionItem]:
    offered: list[str] = []
    if last == "tool":
        yield from (
            _item(name, types.CompletionItemKind.Function, CATALOGUE[name].description) for name in CATALOGUE
        )
        return
    if last == "secrets":
        offered = known.secrets if context.path[:1] != ("secrets",) else []
    elif last in ("uses", "extends"):
        offered = list(_plans_beside(known.now.path))
    elif last == "template":
        offered = list(_templates())
    yield from (_item(name, types.CompletionItemKind.Value, "") for name in offered)
    yield from (_item(word, types.CompletionItemKind.EnumMember, "") for word in words_at(context.path))


def _expression(known: Known, before: str, own: str) -> Iterator[types.CompletionItem]:
    typed = _PATH.search(before)
    path = typed[0] if typed else ""
    if found := _STEP_OUTPUTS.search(path):
        yield from _all(known.outputs(found[1]), types.CompletionItemKind.Field, "output")
    elif _STEP_FIELDS.search(path):
        yield from _all(FIELDS, types.CompletionItemKind.Field, "")
    elif path.startswith(("steps.", "steps[")):
        yield from (_step(name, dotted=path.startswith("steps.")) for name in known.steps if name != own)
    elif path.startswith("params."):
        yield from _all(known.params, types.CompletionItemKind.Variable, "parameter")
    elif path.startswith(("run.", "step.")):
        yield from _all(RUN if path.startswith("run.") else ("dir",), types.CompletionItemKind.Field, "")
    elif "." not in path and "[" not in path:
        yield from _all(ROOTS, types.CompletionItemKind.Variable, "")
        yield from (_item(name, types.CompletionItemKind.Function, "function", "(") for name in FUNCTIONS)


def _step(name: str, *, dotted: bool) -> types.CompletionItem:
    """Return the item of a step in an expression: after a dot one whose id is no name needs brackets instead."""
    item = _item(name, types.CompletionItemKind.Reference, "step")
    if dotted and not (name.isidentifier() and name.isascii()):
        item.detail = f"step; write steps['{name}']"
    return item


def _all(names: Iterable[str], kind: types.CompletionItemKind, detail: str) -> Iterator[types.CompletionItem]:
    return (_item(name, kind, detail) for name in names)


def _item(name: str, kind: types.CompletionItemKind, detail: str, more: str = "") -> types.CompletionItem:
    return types.CompletionItem(
        label=name, kind=kind, detail=detail or None, insert_text=f"{name}{more}" if more else None
    )


def _plans_beside(path: str) -> Iterator[str]:
    folder = os.path.dirname(path)
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return
    yield from (f"./{name}" for name in names if name.endswith(_FILES) and name != os.path.basename(path))


def _templates() -> Iterator[str]:
    shipped = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "templates")
    for folder in (os.path.join(os.getcwd(), "plans", "templates"), shipped):
        try:
            yield from (
                name.rpartition(".")[0] for name in sorted(os.listdir(folder)) if name.endswith(_FILES)
            )
        except OSError:
            continue
