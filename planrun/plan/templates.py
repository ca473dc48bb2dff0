"""Templates: files with a head of variables and requirements, of which plans are made, tree for tree.

The variables of a template, put into its tree: a value is data, and never read as YAML or as an expression.
"""

from __future__ import annotations

import os
import re

from planrun.errors import InvalidPlan
from planrun.expressions.parse import CLOSE, OPEN, closing, pieces
from planrun.expressions.tree import ExpressionError
from planrun.model.jsontext import dumps
from planrun.model.record import Record
from planrun.plan.check.quoting import open_quotes
from planrun.plan.keys.fragments import check_fragments
from planrun.plan.keys.outline import Outline, entries
from planrun.plan.problems import in_order
from planrun.plan.schema import shape
from planrun.plan.yaml.document import read_tree
from planrun.plan.yaml.file import read_source
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any


REQUIREMENTS = "template-requirements"  # the id of the step that looks whether all that is needed is there
HEAD = "template"


class Template(Record):
    """A template that was read: `vars` are fragments by name, `requires` commands, `prerequisites` files."""

    file: str
    data: bytes
    root: Node
    outline: Outline
    description: str = ""
    vars: Mapping[str, dict[str, Any]] = {}
    requires: tuple[str, ...] = ()
    prerequisites: tuple[str, ...] = ()


def read_template(data: bytes, file: str) -> Template:
    """Return the template in a file; raises InvalidPlan with what is wrong with its YAML or its head."""
    root, problems, complete = read_tree(data, file)
    if root is None or not complete:
        raise InvalidPlan(problems, sources={file: data})
    outline = Outline(root, file, data)
    head = root.get(HEAD)
    if head is None:
        hint = "add `template: {vars: …}` at the top level"
        outline.report("E298", "not a template", root, hint)
        raise InvalidPlan(outline.problems, sources={file: data})
    problems += shape.check(head, file, "Template") if head.kind == MAPPING else shape.check(root, file)
    outline.sound = not problems
    declared = head.get("vars")
    fragments = check_fragments(outline, declared, "variable")
    for name, fragment in fragments.items():
        found = value_problem(fragment.get("default", ""))
        if found and declared is not None:
            outline.report("E299", f'the default of the variable "{name}" {found}', declared.key(name))
    if problems or outline.problems:
        raise InvalidPlan(in_order([*problems, *outline.problems]), sources={file: data})
    description = head.get("description")
    return Template(
        file=file,
        data=data,
        root=root,
        outline=outline,
        description=description.value if description is not None else "",
        vars=fragments,
        requires=tuple(word.value for word in entries(head.get("requires"))),
        prerequisites=tuple(word.value for word in entries(head.get("prerequisites"))),
    )


PROJECT = "plans/templates"  # a project's own, seen from the folder that planrun runs in
SHIPPED = os.path.join(os.path.dirname(os.path.dirname(__file__)), "templates")
ENDINGS = (".yml", ".yaml")


class TemplateFile(Record):
    """Where a template is: `source` is project or shipped; `hides`: a shipped one has the same name."""

    name: str
    file: str
    source: str
    hides: bool = False


def known() -> dict[str, TemplateFile]:
    """Return all templates by name, in the order of their names; a project's own comes before a shipped one."""
    shipped, own = _in_folder(SHIPPED), _in_folder(PROJECT)
    templates = {name: TemplateFile(name=name, file=file, source="shipped") for name, file in shipped.items()}
    for name, file in own.items():
        templates[name] = TemplateFile(name=name, file=file, source="project", hides=name in shipped)
    return {name: templates[name] for name in sorted(templates)}


def opened(file: TemplateFile) -> Template:
    """Return a template, read; raises InvalidPlan."""
    return read_template(read_source(file.file), file.file)


def _in_folder(folder: str) -> dict[str, str]:
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return {}
    return {
        name.rpartition(".")[0]: os.path.join(folder, name)
        for name in names
        if name.endswith(ENDINGS) and not name.startswith(".")
    }


def filled(template: Template, values: Mapping[str, Any]) -> Node:
    """Return the tree of the plan that a template becomes with values of its variables; raises InvalidPlan."""
    before = len(template.outline.problems)
    keys = {key: node for key, node in template.root.value.items() if key != HEAD}
    bare = Node(MAPPING, keys, template.root.line, template.root.col)
    bare.keys = {key: template.root.keys[key] for key in keys}
    tree = Filling(template.outline, values).filled(bare)
    steps = tree.get("steps")
    for step in steps.value if steps is not None and steps.kind == SEQUENCE else ():
        if step.kind == MAPPING and "id" not in step.value:
            template.outline.report("E298", "a step of a template requires an `id`", step)
    if len(template.outline.problems) > before:
        raise InvalidPlan(
            in_order(template.outline.problems[before:]), sources={template.file: template.data}
        )
    if (template.requires or template.prerequisites) and steps is not None and steps.kind == SEQUENCE:
        head = template.root.keys[HEAD]
        checks = [_mapping(head, {kind: _list(head, names)}) for kind, names in requirement_checks(template)]
        listed = Node(SEQUENCE, checks, head.line, head.col)
        whole = [
            _mapping(head, {"id": _text(head, REQUIREMENTS), "validate": listed}),
            *[_after_requirements(step) for step in steps.value],
        ]
        tree.value["steps"] = Node(SEQUENCE, whole, steps.line, steps.col)
    return tree


def requirement_checks(template: Template) -> list[tuple[str, tuple[str, ...]]]:
    """Return the checks of the first step by kind."""
    checks = [("commands_on_path", template.requires), ("files_exist", template.prerequisites)]
    return [(kind, names) for kind, names in checks if names]


def needs_edge(step: Node) -> bool:
    """Say whether a step of a template waits for nothing by itself."""
    return step.kind == MAPPING and "depends_on" not in step.value


def _after_requirements(step: Node) -> Node:
    if not needs_edge(step):
        return step
    found = Node(MAPPING, {}, step.line, step.col)
    found.keys = {**step.keys, "depends_on": _text(step, "depends_on")}
    for key, value in step.value.items():
        found.value[key] = value
        if key == "id":  # where it is written, too
            found.value["depends_on"] = _list(step, (REQUIREMENTS,))
    return found


def _text(place: Node, text: str) -> Node:
    return Node(SCALAR, text, place.line, place.col)


def _list(place: Node, texts: tuple[str, ...]) -> Node:
    return Node(SEQUENCE, [_text(place, text) for text in texts], place.line, place.col)


def _mapping(place: Node, parts: dict[str, Node]) -> Node:
    found = Node(MAPPING, parts, place.line, place.col)
    found.keys = {name: _text(place, name) for name in parts}
    return found


CODE = "E299"
_VARIABLE = re.compile(r"\s*vars\.([A-Za-z_][A-Za-z0-9_]*)\s*(\|\s*sh\s*)?")
_SAFE = re.compile(r"[A-Za-z0-9._/@:+=,-]*")  # what no shell reads as anything but itself
# By the key a text stands under: those that a shell or planrun reads as code.
_SCRIPTS = frozenset(("run", "verify", "shell", "command", "commands"))
_EXPRESSIONS = frozenset(("condition", "that", "when", "key"))


class Use:
    """A variable in a text: where it stands there, and whether `| sh` follows."""

    __slots__ = ("end", "name", "quoted", "start")

    def __init__(self, start: int, end: int, found: re.Match[str]) -> None:
        self.start = start
        self.end = end
        self.name = found[1]
        self.quoted = bool(found[2])


def uses_in(text: str) -> Iterator[Use]:
    """Yield the variables of a text; `$${{` is text. Raises ExpressionError for what is never closed."""
    at = 0
    while (start := text.find(OPEN, at)) >= 0:
        if text[max(at, start - 1) : start] == "$":
            at = start + len(OPEN)
            continue
        end = closing(text, start)
        at = end + len(CLOSE)
        if found := _VARIABLE.fullmatch(text, start + len(OPEN), end):
            yield Use(start, at, found)


class Filling:
    """Makes a tree without variables of one that has them; what cannot be is reported to `outline`."""

    def __init__(self, outline: Outline, values: Mapping[str, Any]) -> None:
        self._outline = outline
        self._values = values
        self._made: dict[tuple[int, str], Node] = {}  # what an alias names stays one value

    def filled(self, node: Node, key: str = "") -> Node:
        """Return a value with its variables filled in; `key`: what it stands under."""
        made = self._made.get((id(node), key))
        if made is None:
            made = self._made[id(node), key] = self._fill(node, key)
        return made

    def _fill(self, node: Node, key: str) -> Node:
        if node.kind == SCALAR:
            return self._scalar(node, key) if OPEN in node.value else node
        found = Node(node.kind, None, node.line, node.col)
        if node.kind == SEQUENCE:
            # Words of a command are no code, each by itself.
            found.value = [self.filled(item, "" if key == "exec" else key) for item in node.value]
            return found
        found.keys = node.keys
        for name in node.value:
            if OPEN in name:
                self._outline.report(CODE, "a key cannot contain a variable", node.keys[name])
        found.value = {name: self.filled(value, name) for name, value in node.value.items()}
        return found

    def _scalar(self, node: Node, key: str) -> Node:
        text: str = node.value
        try:
            uses = list(uses_in(text))
        except ExpressionError as error:
            self._outline.report_in(node, "E210", error)
            return node
        if not uses or not self._known(node, uses):
            return node
        if len(uses) == 1 and (uses[0].start, uses[0].end) == (0, len(text)) and not uses[0].quoted:
            value = self._values[uses[0].name]
            self._refuse(node, key, uses)
            return node_of(value, node)
        if key in _EXPRESSIONS:
            message = "a variable cannot be part of an expression: its value would be evaluated"
            self._outline.report(CODE, message, node, "pass the value by a parameter of the plan")
            return node
        self._refuse(node, key, uses)
        return self._joined(node, uses)

    def _known(self, node: Node, uses: list[Use]) -> bool:
        missing = [use.name for use in uses if use.name not in self._values]
        for name in dict.fromkeys(missing):
            hint = self._outline.nearest(name, self._values)
            self._outline.report(
                CODE, f'unknown variable "{name}" of the template, or a variable without a value', node, hint
            )
        return not missing

    def _refuse(self, node: Node, key: str, uses: list[Use]) -> None:
        """Report values that would be read as code where they stand."""
        is_script = key in _SCRIPTS or key == "exec"
        frames = _frames(node.value, uses) if any(use.quoted for use in uses) else []
        for place, use in enumerate(uses):
            value = self._values[use.name]
            if key in _EXPRESSIONS and isinstance(value, str):
                message = f'the value of the variable "{use.name}" would be evaluated as an expression'
                self._outline.report(CODE, message, node, "pass the value by a parameter of the plan")
            elif use.quoted and frames[place] not in ("command", "brace"):
                message = f'`| sh` does not protect the variable "{use.name}" inside quotes'
                self._outline.report(CODE, message, node, "move it out of the quotes")
            elif is_script and not use.quoted and not _SAFE.fullmatch(text_of(value)):
                message = f'the value of the variable "{use.name}" would be read as code by a shell'
                hint = (
                    f"write `${{{{ vars.{use.name} | sh }}}}` outside quotes in the template, or use `env:`"
                )
                self._outline.report(CODE, message, node, hint)

    def _joined(self, node: Node, uses: list[Use]) -> Node:
        text, at, parts = node.value, 0, []
        for use in uses:
            parts += [text[at : use.start], inserted(self._values[use.name], quoted=use.quoted)]
            at = use.end
        found = Node(SCALAR, "".join([*parts, text[at:]]), node.line, node.col)
        if _interpolations(found.value) != _interpolations(text, without=uses):
            message = "the value and the text around it would form an expression"
            self._outline.report(CODE, message, node)
        return found


def inserted(value: Any, *, quoted: bool) -> str:
    """Return the text that a value becomes inside of another; `quoted`: as one word of a shell."""
    from shlex import quote

    return quote(text_of(value)) if quoted else text_of(value)


def text_of(value: Any) -> str:
    """Return a value as text: JSON for what is no text."""
    return value if isinstance(value, str) else str(dumps(value))


def value_problem(value: Any) -> str:
    """Return why a value can be that of no variable, as a clause; empty for one that can."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            waiting += [*part, *part.values()]
        elif isinstance(part, list):
            waiting += part
        elif isinstance(part, str):
            if OPEN in part:
                return f"contains `{OPEN}`, and values are not evaluated"
            if not all(char.isprintable() or char in "\n\t" for char in part):
                return "contains an invisible character"
    return ""


def node_of(value: Any, place: Node) -> Node:
    """Return a value as a node at another one's place; texts are quoted ones, so that they stay texts."""
    if isinstance(value, dict):
        found = Node(MAPPING, {name: node_of(part, place) for name, part in value.items()}, *_at(place))
        found.keys = {name: node_of(name, place) for name in value}
        return found
    if isinstance(value, list):
        return Node(SEQUENCE, [node_of(part, place) for part in value], *_at(place))
    return Node(SCALAR, text_of(value), *_at(place), not isinstance(value, str))


def _at(place: Node) -> tuple[int, int]:
    return place.line, place.col


def _frames(text: str, uses: list[Use]) -> list[str]:
    """Return for each variable inside of what quotes it stands."""
    parts: list[object] = []
    at = 0
    for use in uses:
        parts += [text[at : use.start], use]
        at = use.end
    return open_quotes([*parts, text[at:]])


def _interpolations(text: str, without: list[Use] | None = None) -> list[str] | None:
    """Return what stands between `${{` and `}}` in a text, but for variables; None when that cannot be determined."""
    names = {text[use.start + len(OPEN) : use.end - len(CLOSE)] for use in without or ()}
    try:
        found = [text[piece[0] : piece[1]] for piece in pieces(text) if isinstance(piece, tuple)]
    except ExpressionError:
        return None
    return [part for part in found if part not in names]
