"""What an editor offers at a place of a plan: keys, words, steps, parameters, outputs, tools, files."""

from __future__ import annotations

import os
import re

from lsprotocol import types

from planrun.expressions.tree import FUNCTIONS, ROOTS
from planrun.lsp.context import Context, context_at
from planrun.lsp.schema import keys_at, words_at
from planrun.model.record import Record
from planrun.model.tools import CATALOGUE
from planrun.plan.check.references import FIELDS, RUN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from planrun.lsp.analysis import Analysis
    from planrun.plan.keys.checked import Checked

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
