"""Templates: files with a head of variables and requirements, of which plans are made, tree for tree."""

from __future__ import annotations

from planrun.errors import InvalidPlan
from planrun.model.record import Record
from planrun.source import shape
from planrun.source.document import read_tree
from planrun.source.filling import Filling, value_problem
from planrun.source.fragments import check_fragments
from planrun.source.node import MAPPING, SCALAR, SEQUENCE, Node
from planrun.source.outline import Outline, entries
from planrun.source.problems import in_order

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
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
        hint = "it begins with `template: {vars: …}` at the top level"
        outline.report("E298", "this file is no template", root, hint)
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
    told = head.get("description")
    return Template(
        file=file,
        data=data,
        root=root,
        outline=outline,
        description=told.value if told is not None else "",
        vars=fragments,
        requires=tuple(word.value for word in entries(head.get("requires"))),
        prerequisites=tuple(word.value for word in entries(head.get("prerequisites"))),
    )


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
            template.outline.report("E298", "a step of a template needs an `id`", step)
    if len(template.outline.problems) > before:
        raise InvalidPlan(
            in_order(template.outline.problems[before:]), sources={template.file: template.data}
        )
    if (template.requires or template.prerequisites) and steps is not None and steps.kind == SEQUENCE:
        whole = [_requirements(template), *[_after_requirements(step) for step in steps.value]]
        tree.value["steps"] = Node(SEQUENCE, whole, steps.line, steps.col)
    return tree


def requirement_checks(template: Template) -> list[tuple[str, tuple[str, ...]]]:
    """Return the checks of the first step by kind."""
    checks = [("commands_on_path", template.requires), ("files_exist", template.prerequisites)]
    return [(kind, names) for kind, names in checks if names]


def _requirements(template: Template) -> Node:
    head = template.root.keys[HEAD]
    checks = [_mapping(head, {kind: _list(head, names)}) for kind, names in requirement_checks(template)]
    listed = Node(SEQUENCE, checks, head.line, head.col)
    return _mapping(head, {"id": _text(head, REQUIREMENTS), "validate": listed})


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
