"""A template as the base of a plan: filled with the values that the plan gives, and checked as a plan.

The files that a plan uses: each is found inside the plan's root, read once, checked by itself and kept.

The outlines of a plan's files, read again: for what is said of a plan that was loaded.
"""

from __future__ import annotations

import os

from planrun.errors import InvalidPlan
from planrun.plan.extends import extended
from planrun.plan.file import check_filled
from planrun.plan.included import Disk, NotIncluded, copies, shown
from planrun.plan.keys.formulas import OPEN
from planrun.plan.keys.fragments import check_within
from planrun.plan.keys.outline import Outline, members
from planrun.plan.problems import in_order, limited
from planrun.plan.schema.forms import to_data
from planrun.plan.templates import Template, filled, read_template, value_problem
from planrun.plan.yaml.document import parse
from planrun.plan.yaml.node import SCALAR, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.model.plan import Plan, Step
    from planrun.plan.check.validate import Checked
    from planrun.plan.included import Reader
    from planrun.plan.keys.outline import Origins, Outline
    from planrun.plan.problems import Problem
    from planrun.plan.yaml.node import Node


def check_filled_base(
    outline: Outline, node: Node, text: tuple[bytes, str], shelf: Shelf
) -> tuple[Checked | None, list[Problem]]:
    """Check the plan that the template of an `extends` becomes; `text`: its bytes and what people call it."""
    try:
        template = read_template(*text)
        if template.root.get("extends") is not None:
            template.outline.report("E298", "a template cannot extend a plan", template.root.keys["extends"])
            return None, template.outline.problems
        values = _values(outline, node, template)
        if values is None:
            return None, []
        return check_filled(filled(template, values), *text, shelf)
    except InvalidPlan as error:
        return None, list(error.problems)


def _values(outline: Outline, node: Node, template: Template) -> dict[str, Any] | None:
    """Return the values of the variables; None when one does not fit, which is reported where it is given."""
    before = len(outline.problems)
    given = node.get("with")
    values: dict[str, Any] = {}
    for name, value in members(given):
        assert given is not None
        fragment = template.vars.get(name)
        if fragment is None:
            hint = outline.nearest(name, template.vars) or f"there are {', '.join(template.vars) or 'none'}"
            outline.report("E291", f'the template has no variable "{name}"', given.key(name), hint)
            continue
        data = to_data(value, fragment["type"])
        why = check_within(outline, fragment, data) or value_problem(data)
        if why:
            outline.report("E291", f'the variable "{name}" {why}', value)
        values[name] = data
    for name, fragment in template.vars.items():
        if name in values:
            continue
        if "default" in fragment:
            values[name] = fragment["default"]
        elif fragment.get("required") is True:
            message = f'the template requires the variable "{name}"'
            outline.report("E291", message, node, f"give it: `with: {{{name}: …}}`")
    return None if len(outline.problems) > before else values


MAX_DEPTH = 16  # plans inside each other, the outermost one included
MAX_FILES = 256
MAX_TOGETHER = 8 << 20  # bytes of all files that a plan uses, each counted once
MAX_EMBEDDED = 10_000  # steps of used plans, those of a plan that is used twice counted twice


class Used:
    """A file that was read and checked; `path` as `planrun.plan.included` has it, `checked` None: it is no plan.

    `sound`: it has no errors. `count`: its steps, with those of the plans that it uses itself. `height`: how many plans
    stand inside each other in it, itself included.
    """

    __slots__ = ("checked", "count", "height", "path", "sound")

    def __init__(self, path: str, checked: Checked | None, *, sound: bool) -> None:
        inside = [draft.used for draft in checked.outline.drafts if draft.used] if checked else []
        self.path = path
        self.checked = checked
        self.sound = sound
        self.count: int = checked.count if checked else 0
        self.height: int = 1 + max([used.height for used in inside], default=0)


class Shelf:
    """All files that the plan in `file` uses, directly or not, and the problems found in them."""

    def __init__(self, file: str, read: Reader | None = None, *, inside: str = "") -> None:
        self.file = file
        self.named_template = (
            False  # a template goes by its name: which file that is depends on which there are
        )
        self.contents: dict[str, bytes] = {}
        self.problems: list[Problem] = []
        self._read = read
        self._known: dict[str, Used] = {}
        self._around = [
            inside or os.path.basename(file)
        ]  # the plans that are being checked, the outermost first
        self._size = 0
        self._chain: list[str] = []  # the files that extend each other, without the first
        self._embedded = 0
        # Of budgets that all these files have together, what was used up so far.
        self.schemas = 0
        self.matching = 0.0
        self.parsed = 0

    def sources(self) -> dict[str, bytes]:
        """Return what was read, by what people call it."""
        return {shown(self.file, path): data for path, data in self.contents.items()}

    @property
    def depth(self) -> int:
        """How many plans are being checked, one inside the other."""
        return len(self._around)

    def take(self, outline: Outline, node: Node) -> Used | None:
        """Return the plan that a `uses` names; reports why there is none."""
        path = self._path(outline, node)
        used = self._known.get(path) if path else None
        if path and used is None:
            used = self._look(outline, node, path)
        if used is None:
            return None
        if len(self._around) + used.height > MAX_DEPTH:
            outline.report("E290", f"more than {MAX_DEPTH} plans stand inside each other", node)
            return None
        if len(self._around) == 1:
            self._embedded += used.count
            if self._embedded > MAX_EMBEDDED:
                message = f"the plans that are used have more than {MAX_EMBEDDED:,} steps together"
                outline.report("E240", message, node, "steps of a plan that is used twice count twice")
                return None
        return used

    def base(self, outline: Outline, node: Node) -> tuple[Node, Origins] | None:
        """Return the tree of the plan that another one extends; None when it has none, which was reported."""
        from planrun.plan.extends import MAX_CHAIN, origins_of

        template = node.get("template")
        named = template if template is not None else node
        if named.kind != SCALAR or not named.value:
            return None  # its shape is wrong
        path = self._base_path(outline, named, by_name=template is not None)
        if not path:
            return None
        if len(self._chain) >= MAX_CHAIN - 1:
            outline.report("E290", f"more than {MAX_CHAIN} plans extend each other", named)
            return None
        try:
            data = self.contents[path] if path in self.contents else self._bytes(path)
        except NotIncluded as error:
            is_name = template is None and not named.value.endswith((".yml", ".yaml"))
            hint = f"`extends: {{template: {named.value}}}` extends a template" if is_name else ""
            outline.report("E290", f"cannot extend {named.value}: {error}", named, hint)
            return None
        self.contents[path] = data
        before = len(self.problems)
        self._chain.append(path)
        called = shown(self.file, path)
        if template is None:
            checked, problems = self._check_base(data, path, called)
        else:
            checked, problems = check_filled_base(outline, node, (data, called), self)
        self._chain.pop()
        # Warnings are those of the plan that both become.
        errors = [each for each in [*problems, *self.problems[before:]] if each.severity == "error"]
        self.problems[before:] = [each for each in errors if each not in self.problems[:before]]
        if checked is None or errors:
            return None
        inner = checked.outline
        place = (path, called, path if template is None else self._around[-1])
        return inner.root, origins_of(inner.root, place, data, inner.origins)

    def _check_base(self, data: bytes, path: str, called: str) -> tuple[Checked | None, list[Problem]]:
        from planrun.plan.file import check  # it comes here again for each file

        self._around.append(path)
        found = check(data, called, self)
        self._around.pop()
        return found

    def _base_path(self, outline: Outline, node: Node, *, by_name: bool) -> str:
        """Return the path of a base; a template goes by its path, or by the name that `planrun templates` lists."""
        name: str = node.value
        if not by_name or name.endswith((".yml", ".yaml")) or "/" in name or OPEN in name:
            return self._path(outline, node)
        self.named_template = True
        from planrun.plan.included import SHIPPED

        folder = os.path.dirname(self.file) or "."
        places = [
            os.path.join(os.path.relpath("plans/templates", folder), name + end) for end in (".yml", ".yaml")
        ]
        if self._read is None:
            self._read = Disk(self.file)
        for path in (*places, SHIPPED + name):
            try:
                self._read(path)
            except NotIncluded:
                continue
            return path
        outline.report(
            "E290", f'there is no template "{name}"', node, "`planrun templates` lists those that there are"
        )
        return ""

    def _path(self, outline: Outline, node: Node) -> str:
        """Return the path of a file from the folder of the outermost plan; empty when that was reported as wrong."""
        text: str = node.value
        why, hint = "", "name a file of this repository, as seen from the file that uses it"
        if OPEN in text:
            why, hint = "which plan is used cannot depend on a value", "what was reviewed is what runs"
        elif "://" in text or text.startswith("git@"):
            why = "only files are used, and nothing is fetched"
        elif text.startswith(("/", "~")):
            why = f"{text} is no path inside of the plan's folder"
        elif not text.strip() or not text.isprintable() or text.endswith("/"):
            why = "this is no path of a file"
        if why:
            outline.report("E290", why, node, hint)
            return ""
        path = os.path.normpath(
            os.path.join(os.path.dirname(outline.seen_from(node) or self._around[-1]), text)
        )
        if path in self._around:
            chain = " → ".join([*self._around[self._around.index(path) :], path])
            outline.report("E290", f"plans use each other in a circle: {chain}", node)
            return ""
        return path

    def _look(self, outline: Outline, node: Node, path: str) -> Used | None:
        try:
            data = self._bytes(path)
        except NotIncluded as error:
            outline.report("E290", f"cannot use {node.value}: {error}", node)
            return None
        self.contents[path] = data
        from planrun.plan.check.uses import warn  # few plans use others
        from planrun.plan.file import check  # it comes here again for each file

        self._around.append(path)
        checked, problems = check(data, shown(self.file, path), self)
        self._around.pop()
        if checked is not None:
            before = len(checked.outline.problems)
            warn(checked.outline)
            problems = limited(in_order([*problems, *checked.outline.problems[before:]]))
        self.problems += problems
        sound = checked is not None and not any(each.severity == "error" for each in problems)
        found = self._known[path] = Used(path, checked, sound=sound)
        return found

    def _bytes(self, path: str) -> bytes:
        if len(self.contents) >= MAX_FILES:
            raise NotIncluded(f"the plan uses more than {MAX_FILES} files")
        if self._read is None:
            self._read = Disk(self.file)
        data = self._read(path)
        self._size += len(data)
        if self._size > MAX_TOGETHER:
            raise NotIncluded(
                f"the files that the plan uses have more than {MAX_TOGETHER >> 20} MiB together"
            )
        return data


def outline_of(plan: Plan, path: str = "") -> Outline | None:
    """Return the outline of a file of a plan, merged with what it extends; None when its text is not at hand.

    `path`: of a plan that it uses, as `Plan.files` has it.
    """
    file, data = (shown(plan.file, path), plan.files.get(path)) if path else (plan.file, plan.source)
    root = None if data is None else parse(data, file)[0]
    if root is None or data is None:
        return None
    if "extends" not in root.value or "template" in root.value:
        return Outline(root, file, data)
    found = extended(root, file, data, Shelf(plan.file, copies(plan.files), inside=path))
    return None if found.root is None else Outline(found.root, file, data, origins=found.origins)


def outline_for(plan: Plan, step: Step) -> Outline | None:
    """Return the outline that a step of a plan stands in: of its file, or of the plan that extends this file."""
    if step.file:
        whole = outline_of(plan)
        if whole is not None and any(whole.path_of(draft.at) == step.file for draft in whole.drafts):
            return whole
    return outline_of(plan, step.file)
