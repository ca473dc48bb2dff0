"""The text of a template with its variables filled in where they stand: what is written means what was checked."""

from __future__ import annotations

import re

from planrun import __version__
from planrun.errors import InvalidPlan
from planrun.llm.writing import comment, flow_text, line_text
from planrun.plan.schema.forms import to_data
from planrun.plan.templates import (
    HEAD,
    REQUIREMENTS,
    inserted,
    needs_edge,
    requirement_checks,
    text_of,
    uses_in,
)
from planrun.plan.yaml.document import parse
from planrun.plan.yaml.node import MAPPING, SCALAR, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from planrun.plan.templates import Template, Use

_MODELINE = re.compile(r"#\s*(yaml-language-server:|\$schema:)")
_SCHEMA = "plan.schema.json"


def plan_text(template: Template, tree: Node, name: str, values: Mapping[str, Any]) -> str:
    """Return the template as a plan; `tree` is what it must mean. Raises InvalidPlan where text cannot say that."""
    text = template.data.decode("utf-8-sig").replace("\r\n", "\n")
    text = _Text(text, template, values).filled()
    given = ", ".join([f"{key}={text_of(value)}" for key, value in values.items()])
    heading = [f"yaml-language-server: $schema={_SCHEMA}", f"$schema: {_SCHEMA}"]
    told = f"Made of the template {name} by planrun {__version__}{f': {given}' if given else ''}"
    lines = text.lstrip("\n").split("\n")
    while lines and _MODELINE.match(lines[0]):
        lines.pop(0)
    top = "\n".join([*map(comment, heading), "#", comment(told)])
    whole = f"{top}\n" + "\n".join(lines)
    found, problems = parse(whole.encode(), name)
    if found is None or problems or repr(to_data(found)) != repr(to_data(tree)):
        message = "a value cannot be written where it stands in this template"
        hint = "give its variable a whole value, in double quotes or none, or fewer signs"
        template.outline.report("E299", message, _culprit(found, tree) or template.root, hint)
        raise InvalidPlan(template.outline.problems[-1:], sources={template.file: template.data})
    return whole


def _culprit(found: Node | None, wanted: Node) -> Node | None:
    """Return the first value of a tree that is another one in the text that was written."""
    if found is None or found.kind != wanted.kind:
        return wanted
    if wanted.kind == SCALAR:
        return None if repr(to_data(found)) == repr(to_data(wanted)) else wanted
    if wanted.kind == MAPPING:
        pairs = [(found.value.get(key), value) for key, value in wanted.value.items()]
    else:
        pairs = list(zip([*found.value, *[None] * len(wanted.value)], wanted.value, strict=False))
    return next((culprit for one, other in pairs if (culprit := _culprit(one, other))), None)


class _Text:
    """A template's text, changed place by place from its end on, so that places before stay where they are."""

    def __init__(self, text: str, template: Template, values: Mapping[str, Any]) -> None:
        self._text = text
        self._template = template
        self._values = values
        self._starts = [0]
        for line in text.split("\n"):
            self._starts.append(self._starts[-1] + len(line) + 1)

    def filled(self) -> str:
        changes = {change[0]: change for change in [*self._variables(), *self._requirements()]}
        text = self._text
        for start in sorted(changes, reverse=True):
            _, end, new = changes[start]
            text = text[:start] + new + text[end:]
        return self._without_head(text)

    def _at(self, line: int, col: int = 1) -> int:
        return self._starts[min(line, len(self._starts)) - 1] + col - 1

    def _variables(self) -> Iterator[tuple[int, int, str]]:
        keys = {key: node for key, node in self._template.root.value.items() if key != HEAD}
        for node in _scalars(keys):
            uses = list(uses_in(node.value))
            if uses:
                yield from self._in_scalar(node, uses)

    def _in_scalar(self, node: Node, uses: list[Use]) -> Iterator[tuple[int, int, str]]:
        text: str = node.value
        at = self._at(node.line, node.col)
        quote = self._text[at] if self._text[at] in "'\"|>&" else ""
        width = len(text) + 2 * (quote in ("'", '"') and bool(quote))
        written = self._text[at : at + width]
        is_whole = len(uses) == 1 and uses[0].end - uses[0].start == len(text) and not uses[0].quoted
        if is_whole and written in (text, f"'{text}'", f'"{text}"'):
            yield at, at + width, flow_text(self._values[uses[0].name])
            return
        if not quote and written == text:
            yield at, at + width, line_text(self._joined(text, uses))
            return
        for use in uses:
            raw = text[use.start : use.end]
            start = self._text.find(raw, at)
            while start > 0 and self._text[start - 1] == "$":  # `$${{` is text
                start = self._text.find(raw, start + 1)
            if start < 0:
                return
            at = start + len(raw)
            yield start, at, _within(inserted(self._values[use.name], quoted=use.quoted), quote)

    def _joined(self, text: str, uses: list[Use]) -> str:
        for use in reversed(uses):
            value = inserted(self._values[use.name], quoted=use.quoted)
            text = text[: use.start] + value + text[use.end :]
        return text

    def _requirements(self) -> Iterator[tuple[int, int, str]]:
        """Yield the step that looks what is there, and an edge to it for each step that waits for nothing."""
        checks = requirement_checks(self._template)
        steps = self._template.root.get("steps")
        if not checks or steps is None or not steps.value:
            return
        listed = self._at(steps.line, steps.col)
        if self._text[listed] == "[":
            looks = ", ".join([f"{{{kind}: {flow_text(list(names))}}}" for kind, names in checks])
            yield listed + 1, listed + 1, f"{{id: {REQUIREMENTS}, validate: [{looks}]}}, "
        else:
            margin = " " * (steps.value[0].col - 3)
            rows = [f"{margin}- id: {REQUIREMENTS}", f"{margin}  validate:"]
            rows += [f"{margin}    - {kind}: {flow_text(list(names))}" for kind, names in checks]
            first = self._at(self._template.root.keys["steps"].line + 1)
            yield first, first, "\n".join([*rows, "", ""])
        for step in steps.value:
            if not needs_edge(step) or "id" not in step.value:
                continue
            if self._text[self._at(step.line, step.col)] == "{":
                name = step.value["id"]
                after = self._at(name.line, name.col) + len(name.value) + (0 if name.plain else 2)
                yield after, after, f", depends_on: {flow_text([REQUIREMENTS])}"
            else:
                after = self._at(step.value["id"].line + 1)
                yield after, after, f"{' ' * (step.col - 1)}depends_on: {flow_text([REQUIREMENTS])}\n"

    def _without_head(self, text: str) -> str:
        """Return a text without the key that makes it a template, and what stands under it."""
        lines = text.split("\n")
        heads = [at for at, line in enumerate(lines) if re.match(rf"['\"]?{HEAD}['\"]?\s*:", line)]
        if not heads:  # a file in braces: what is made of it says too much, and is refused
            return text
        start = heads[0]
        end = start + 1
        while end < len(lines) and (not lines[end].strip() or lines[end][0] in " \t-"):
            end += 1
        return "\n".join([*lines[:start], *lines[end:]])


def _within(text: str, quote: str) -> str:
    """Return a text as it is written inside of a scalar of a kind, by the sign that this begins with."""
    if quote == "'":
        return text.replace("'", "''")
    return flow_text(f"{text}\n")[1:-3] if quote == '"' else text


def _scalars(keys: Mapping[str, Node]) -> Iterator[Node]:
    """Yield every scalar of some values, once each."""
    waiting = list(keys.values())
    seen = set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if node.kind == SCALAR:
            yield node
        else:
            waiting += node.value.values() if node.kind == MAPPING else node.value
