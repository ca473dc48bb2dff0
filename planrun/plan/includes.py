"""The check of a plan file, with the files that it uses and extends.

`check` reads one file, and checks its shape and its meaning. A file that a plan uses is found inside the plan's root,
read once, checked by itself and kept. A plan that extends another one is merged with it into one tree, in which each
node keeps its own file; a template is filled with the values that the plan gives before it is merged.
"""

from __future__ import annotations

import os

from planrun.errors import InvalidPlan
from planrun.plan.check.validate import validate, validated
from planrun.plan.compile.compile import Compiler
from planrun.plan.compile.risks import TOO_MUCH
from planrun.plan.keys.formulas import OPEN
from planrun.plan.keys.outline import Outline, Used, members
from planrun.plan.keys.table import PLAN
from planrun.plan.problems import Problem, in_order, limited
from planrun.plan.readers import SHIPPED, Disk, NotIncluded, copies, shown
from planrun.plan.schema import shape
from planrun.plan.schema.forms import to_data
from planrun.plan.tables import ACTIONS, COMPANIONS
from planrun.plan.yaml.document import parse, read_tree
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE, Node, Origins
from planrun.risk.levels import rank

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from planrun.model.plan import Plan, Step
    from planrun.plan.keys.checked import Checked
    from planrun.plan.keys.outline import RawStep
    from planrun.plan.readers import Reader
    from planrun.plan.templates import Template

KEY = "extends"
MAX_CHAIN = 5  # files in a chain of `extends`, the last one included
_BY_KEY = frozenset([key for key, row in PLAN.items() if row.merged])
_SECTIONS = ("steps", "finally")


class Extended:
    """What a plan with `extends` becomes: `root` and `origins` are of the merged tree, None without a valid base."""

    __slots__ = ("origins", "problems", "root")

    def __init__(self, root: Node | None, origins: Origins | None, problems: list[Problem]) -> None:
        self.root = root
        self.origins = origins
        self.problems = problems


def extended(root: Node, file: str, data: bytes, included: IncludedPlans) -> Extended:
    """Return the tree of a plan merged with that of its base; the base's own problems are added to `included`."""
    own = Outline(root, file, data)
    place = root.value[KEY]
    found = included.base(own, place)
    if found is None:
        return Extended(None, None, own.problems)
    base, origins = found
    if "policy" in base.value and "policy" in root.value:
        message = "the base plan has a policy, which cannot be replaced"
        hint = "remove it; pass a stricter one by `--policy`"
        own.report("E294", message, root.keys["policy"], hint)
    return Extended(_plan(base, root), origins, own.problems)


def origins_of(base: Node, place: tuple[str, str, str], data: bytes, inner: Origins | None) -> Origins:
    """Return the files of all nodes below `base`; `inner` has those that its own base brought along."""
    places = dict(inner.places) if inner else {}
    for node in _nodes(base):
        places.setdefault(id(node), place)
    sources = {**(inner.sources if inner else {}), place[1]: data}
    return Origins(places, sources, (base, *(inner.kept if inner else ())))


def _nodes(root: Node) -> Iterator[Node]:
    waiting, seen = [root], set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        if node.kind == MAPPING:
            yield from node.keys.values()
            waiting += node.value.values()
        elif node.kind == SEQUENCE:
            waiting += node.value


def _plan(base: Node, own: Node) -> Node:
    """Return the merged tree of two plans; it stands where `own` does."""
    found = _merged(base, own)
    for key in own.value:
        theirs, ours = base.get(key), own.value[key]
        if theirs is None:
            continue
        if key in _BY_KEY and theirs.kind == ours.kind == MAPPING:
            found.value[key] = _merged(theirs, ours)
        elif key in _SECTIONS and theirs.kind == ours.kind == SEQUENCE:
            found.value[key] = _steps(theirs, ours)
        elif key == "secrets" and theirs.kind == ours.kind == SEQUENCE:
            known = {_secret(node) for node in ours.value}
            kept = [node for node in theirs.value if _secret(node) not in known]
            found.value[key] = Node(SEQUENCE, [*kept, *ours.value], ours.line, ours.col)
    return found


def _merged(base: Node, own: Node) -> Node:
    """Return a mapping with the keys of two; those of `own` win."""
    found = Node(MAPPING, {**base.value, **own.value}, own.line, own.col)
    found.keys = {**base.keys, **own.keys}
    return found


def _steps(base: Node, own: Node) -> Node:
    """Return the steps of a base, those with an id of `own` changed, and behind them the other ones of `own`."""
    changes: dict[str, Node] = {}
    known = {_id(step) for step in base.value} - {""}
    added = []
    for step in own.value:
        name = _id(step)
        if name in known and name not in changes:
            changes[name] = step
        else:
            added.append(step)
    steps = [_step(step, changes[_id(step)]) if _id(step) in changes else step for step in base.value]
    return Node(SEQUENCE, [*steps, *added], own.line, own.col)


def _step(base: Node, own: Node) -> Node:
    """Return a step with keys replaced; another action takes the place of the base's and of what belongs to it."""
    acts = set(ACTIONS)
    left = dict(members(base))
    if not acts.isdisjoint(own.value):
        gone = acts.difference(own.value)
        gone |= {key for key, of in COMPANIONS.items() if of in acts and of not in own.value}
        left = {key: node for key, node in left.items() if key not in gone}
    bare = Node(MAPPING, left, base.line, base.col)
    bare.keys = {key: base.keys[key] for key in left}
    return _merged(bare, own)


def _secret(node: Node) -> str:
    named = node.get("name") if node.kind == MAPPING else node
    return str(named.value) if named is not None and named.kind == SCALAR else ""


def _id(step: Node) -> str:
    node = step.get("id")
    return str(node.value) if node is not None and node.kind == SCALAR else ""


def _found(compiler: Compiler, raw: RawStep, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the risk of a step; of one with instances, the worst of theirs."""
    group = compiler.checked.groups.get(raw.id)
    if group is None or not group.made:
        return compiler.risks.of(fields)
    from planrun.plan.compile.groups import filled

    every = [compiler.risks.of(filled(fields, made)) for made in group.made]
    return max(every, key=lambda found: rank(found["risk"]) if found else -1)


def check_declared(checked: Checked) -> None:
    """Report every declared risk that is below the detected one; only steps with a declared risk are checked."""
    outline = checked.outline
    compiler = Compiler(checked)
    for raw in outline.steps:
        if outline.is_full:
            break
        if "risk" not in raw.keys or raw.is_gate or "uses" in raw.keys:
            continue
        try:
            fields = compiler.surface(raw)
        except ValueError:  # a shell that cannot be split into words: reported already
            continue
        found = _found(compiler, raw, {**fields, "declared_risk": ""})
        node = raw.keys["risk"]
        if found and found["risk_reason"] != TOO_MUCH and rank(node.value) < rank(found["risk"]):
            message = f'step "{raw.id}" declares risk {node.value}, but planrun finds {found["risk"]}'
            hint = found["risk_reason"]
            if found.get("open_risk"):
                hint += "; remove `risk` to have the step classified again when all values are known"
            outline.report("E260", message, node, hint)
    checked.problems = in_order(outline.problems)


def check(data: bytes, file: str, included: IncludedPlans) -> tuple[Checked | None, list[Problem]]:
    """Return the checked file and its problems in file order; the problems of plans that it uses are in `included`."""
    root, problems, complete = read_tree(data, file)
    if root is not None and complete and "extends" in root.value and "template" not in root.value:
        return _check_extending(root, problems, data, file, included)
    if root is not None:
        problems = shape.with_shape(root, problems, file, complete=complete)
    if root is None or not complete:
        return None, problems
    if "template" in root.value:
        place = root.key("template")
        is_template = Problem(
            code="E297",
            message="the file is a template, not a plan",
            file=file,
            line=place.line,
            col=place.col,
            end_col=place.col + len("template"),
            hint=f"make a plan with `planrun templates render {file} --var NAME=VALUE -o plan.yml`",
        )
        return None, [is_template]
    return _checked(Outline(root, file, data, sound=not problems), problems, included)


def _checked(
    outline: Outline, problems: list[Problem], included: IncludedPlans
) -> tuple[Checked | None, list[Problem]]:
    """Check what a tree means whose shape was checked, with these problems."""
    checked = validated(outline, included)
    if not problems and any(["risk" in raw.keys for raw in checked.outline.steps]):  # noqa: C419 - half the time
        check_declared(checked)
    if not checked.problems:
        return checked, problems
    # A shape error often causes a second error at the same place: one problem per place is enough.
    reported = {(problem.file, problem.line, problem.col) for problem in problems}
    added = [
        problem for problem in checked.problems if (problem.file, problem.line, problem.col) not in reported
    ]
    return checked, limited(in_order([*problems, *added]))


def _check_extending(
    root: Node, problems: list[Problem], data: bytes, file: str, included: IncludedPlans
) -> tuple[Checked | None, list[Problem]]:
    """Check a plan that extends another one, both as one plan; problems of other files are added to `included`."""
    problems = in_order([*problems, *shape.check(root, file, part=True)])
    found = extended(root, file, data, included)
    if found.root is None or problems:
        return None, in_order([*problems, *found.problems])
    before = [*shape.check(found.root, file, "Plan", found.origins), *found.problems]
    outline = Outline(found.root, file, data, sound=not before, origins=found.origins)
    checked, merged = _checked(outline, before, included)
    others = [problem for problem in merged if problem.file != file]
    included.problems += [problem for problem in others if problem not in included.problems]
    if any(problem.severity == "error" for problem in others):
        checked = None
    return checked, [problem for problem in merged if problem.file == file]


def check_filled(
    tree: Node, data: bytes, file: str, included: IncludedPlans
) -> tuple[Checked | None, list[Problem]]:
    """Check the tree that a template in `file` became, as `check` does with a file."""
    problems = shape.check(tree, file)
    return _checked(Outline(tree, file, data, sound=not problems), problems, included)


def check_tree(root: Node, data: bytes, included: IncludedPlans) -> list[Problem]:
    """Return the problems of a tree that was made of the file of `included`; `data` are the bytes of that file."""
    problems = shape.check(root, included.file)
    checked = validate(root, included.file, data, included, sound=not problems)
    return in_order([*problems, *checked.problems, *included.problems])


def check_filled_base(
    outline: Outline, node: Node, text: tuple[bytes, str], included: IncludedPlans
) -> tuple[Checked | None, list[Problem]]:
    """Check the plan that the template of an `extends` becomes; `text`: its bytes and what people call it."""
    from planrun.plan.templates import filled, read_template  # few plans extend one

    try:
        template = read_template(*text)
        if template.root.get("extends") is not None:
            template.outline.report("E298", "a template cannot extend a plan", template.root.keys["extends"])
            return None, template.outline.problems
        values = _values(outline, node, template)
        if values is None:
            return None, []
        return check_filled(filled(template, values), *text, included)
    except InvalidPlan as error:
        return None, list(error.problems)


def _values(outline: Outline, node: Node, template: Template) -> dict[str, Any] | None:
    """Return the values of the variables; None when one does not fit, which is reported where it is given."""
    from planrun.plan.keys.fragments import check_within
    from planrun.plan.templates import value_problem

    before = len(outline.problems)
    given = node.get("with")
    values: dict[str, Any] = {}
    for name, value in members(given):
        assert given is not None
        fragment = template.vars.get(name)
        if fragment is None:
            hint = (
                outline.nearest(name, template.vars)
                or f"known variables: {', '.join(template.vars) or 'none'}"
            )
            outline.report("E291", f'unknown variable "{name}" of the template', given.key(name), hint)
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
            outline.report("E291", message, node, f"add `with: {{{name}: …}}`")
    return None if len(outline.problems) > before else values


MAX_DEPTH = 16  # plans inside each other, the outermost one included
MAX_FILES = 256
MAX_TOGETHER = 8 << 20  # bytes of all files that a plan uses, each counted once
MAX_EMBEDDED = 10_000  # steps of used plans, those of a plan that is used twice counted twice


class IncludedPlans:
    """All files that the plan in `file` uses, directly or not, and the problems found in them."""

    def __init__(self, file: str, read: Reader | None = None, *, inside: str = "") -> None:
        self.file = file
        self.named_template = False  # a template is named: its file depends on which templates exist
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
            outline.report("E290", f"plans are nested more than {MAX_DEPTH} levels deep", node)
            return None
        if len(self._around) == 1:
            self._embedded += used.count
            if self._embedded > MAX_EMBEDDED:
                message = f"the used plans have more than {MAX_EMBEDDED:,} steps in total"
                outline.report("E240", message, node, "steps of a plan that is used twice count twice")
                return None
        return used

    def base(self, outline: Outline, node: Node) -> tuple[Node, Origins] | None:
        """Return the tree of the plan that another one extends; None when it has none, which was reported."""
        template = node.get("template")
        named = template if template is not None else node
        if named.kind != SCALAR or not named.value:
            return None  # its shape is wrong
        path = self._base_path(outline, named, by_name=template is not None)
        if not path:
            return None
        if len(self._chain) >= MAX_CHAIN - 1:
            outline.report("E290", f"more than {MAX_CHAIN} plans in a chain of `extends`", named)
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
            self._around.append(path)
            found = check(data, called, self)
            self._around.pop()
            checked, problems = found
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

    def _base_path(self, outline: Outline, node: Node, *, by_name: bool) -> str:
        """Return the path of a base; a template is given by its path, or by the name that `planrun templates` lists."""
        name: str = node.value
        if not by_name or name.endswith((".yml", ".yaml")) or "/" in name or OPEN in name:
            return self._path(outline, node)
        self.named_template = True
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
        outline.report("E290", f'unknown template "{name}"', node, "`planrun templates` lists all")
        return ""

    def _path(self, outline: Outline, node: Node) -> str:
        """Return the path of a file from the folder of the outermost plan; empty when that was reported as wrong."""
        text: str = node.value
        why, hint = "", "name a file of this repository, relative to the file that uses it"
        if OPEN in text:
            why, hint = (
                "interpolations are not evaluated in the path of a plan",
                "only a reviewed plan can be used",
            )
        elif "://" in text or text.startswith("git@"):
            why = "URLs are not supported: nothing is downloaded"
        elif text.startswith(("/", "~")):
            why = f"{text} is not a path inside the plan's directory"
        elif not text.strip() or not text.isprintable() or text.endswith("/"):
            why = "not a file path"
        if why:
            outline.report("E290", why, node, hint)
            return ""
        path = os.path.normpath(
            os.path.join(os.path.dirname(outline.seen_from(node) or self._around[-1]), text)
        )
        if path in self._around:
            chain = " → ".join([*self._around[self._around.index(path) :], path])
            outline.report("E290", f"plans use each other in a cycle: {chain}", node)
            return ""
        return path

    def _look(self, outline: Outline, node: Node, path: str) -> Used | None:
        try:
            data = self._bytes(path)
        except NotIncluded as error:
            is_action = "@" in node.value or node.value.startswith("docker://")
            hint = "`uses` takes the file of a plan, e.g. `uses: ./build.yml`; planrun runs no GitHub actions"
            outline.report("E290", f"cannot use {node.value}: {error}", node, hint if is_action else "")
            return None
        self.contents[path] = data
        self._around.append(path)
        checked, problems = check(data, shown(self.file, path), self)
        self._around.pop()
        if checked is not None:
            from planrun.plan.keys.uses import warn

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
                f"the files that the plan uses are larger than {MAX_TOGETHER >> 20} MiB in total"
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
    found = extended(root, file, data, IncludedPlans(plan.file, copies(plan.files), inside=path))
    return None if found.root is None else Outline(found.root, file, data, origins=found.origins)


def outline_for(plan: Plan, step: Step) -> Outline | None:
    """Return the outline that a step of a plan stands in: of its file, or of the plan that extends this file."""
    if step.file:
        whole = outline_of(plan)
        if whole is not None and any(whole.path_of(raw.at) == step.file for raw in whole.steps):
            return whole
    return outline_of(plan, step.file)
