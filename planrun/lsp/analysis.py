"""One version of a document: its tree, its problems, its meaning. Each part is computed when it is asked for."""

from __future__ import annotations

import os
import re
from functools import cached_property

from planrun.approval.preview import digest_preview
from planrun.errors import InvalidPlan, PlanrunError
from planrun.lsp.names import Name, names_in, passed_in
from planrun.lsp.text import Text
from planrun.lsp.tree import Tree
from planrun.plan.compile.compile import compile_plan
from planrun.plan.foreign import recognised
from planrun.plan.includes import IncludedPlans, check, check_filled
from planrun.plan.load import NoCollection
from planrun.plan.problems import Problem, in_order
from planrun.plan.templates import filled, read_template
from planrun.plan.yaml.document import read_tree
from planrun.plan.yaml.file import read_source
from planrun.plan.yaml.node import MAPPING, SCALAR, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from planrun.model.plan import Plan, Step
    from planrun.plan.keys.checked import Checked

    # From the bytes of a plan and the name of its file to advice about it.
    Advice = Callable[[bytes, str], tuple[Problem, ...]]

_NAMES = re.compile(r"(^|\.)plan\.ya?ml$")
_MODELINE = re.compile(r"^#.*\$schema[=:]\s*\S*(planrun|plan\.schema)\S*", re.MULTILINE)
_VERSION = re.compile(r"^version:\s*1\s*(#.*)?$", re.MULTILINE)
_SECTION = re.compile(r"^(steps|finally|extends|template):", re.MULTILINE)


def is_plan(path: str, text: str) -> bool:
    """Whether a document is a plan: by its name, its comment for editors, or its first keys."""
    if _NAMES.search(os.path.basename(path)) or _MODELINE.search(text[:2000]):
        return True
    return bool(_VERSION.search(text) and _SECTION.search(text))


class Analysis:
    """What is known of one version of a document."""

    def __init__(self, path: str, text: Text, advice: Advice | None = None) -> None:
        self.path = path
        # What is on record of earlier runs is found by that name
        name = os.path.relpath(path)
        self.file = path if name.startswith("..") else name
        self.text = text
        self.data = text.whole.encode("utf-8", "surrogatepass")
        self._advice = advice

    @cached_property
    def _read(self) -> tuple[Node | None, bool]:
        root, _, complete = read_tree(self.data, self.file)
        return (root if root is not None and root.kind == MAPPING else None), complete

    @property
    def root(self) -> Node | None:
        """The tree as far as it can be read."""
        return self._read[0]

    @property
    def is_whole(self) -> bool:
        """Whether the file can be read to its end."""
        return self._read[1]

    @cached_property
    def tree(self) -> Tree:
        """The same with the places of all its nodes."""
        return Tree(self.root)

    @cached_property
    def names(self) -> list[Name]:
        """Where steps and parameters are named."""
        return names_in(self.root, self.text) if self.root is not None else []

    @cached_property
    def passed(self) -> list[tuple[str, Name]]:
        """The parameters that are passed to other plans, each with the path of its file."""
        found = passed_in(self.root, self.text) if self.root is not None else []
        return [(self.beside(file), name) for file, name in found]

    @property
    def is_template(self) -> bool:
        """Whether the file is a template of plans."""
        return self.root is not None and "template" in self.root.value

    @cached_property
    def _checked(self) -> tuple[Checked | None, list[Problem]]:
        included = IncludedPlans(self.file)
        with NoCollection():
            checked, problems = check(self.data, self.file, included)
        return checked, recognised([*problems, *included.problems], self.data, self.file)

    @property
    def checked(self) -> Checked | None:
        """The checked plan; None where its form is wrong."""
        return self._checked[0]

    @cached_property
    def problems(self) -> list[Problem]:
        """Everything that `validate` and `lint` find, in the order of the file."""
        if self.is_template:
            try:
                template = read_template(self.data, self.file)
                values = {name: fragment.get("default") for name, fragment in template.vars.items()}
                if None in values.values():
                    return []
                root = filled(template, values)
            except InvalidPlan as error:
                return list(error.problems)
            included = IncludedPlans(self.file)
            _, problems = check_filled(root, self.data, self.file, included)
            return [*problems, *included.problems]
        _, found = self._checked
        if self._advice is None or any(each.severity == "error" for each in found):
            return found
        known = {(each.code, each.line, each.col) for each in found}
        advice = [
            each
            for each in self._advice(self.data, self.file)
            if (each.code, each.line, each.col) not in known
        ]
        return in_order([*found, *advice])

    @cached_property
    def plan(self) -> Plan | None:
        """The compiled plan; None where it has errors."""
        checked, problems = (None, []) if self.is_template else self._checked
        if checked is None or any(problem.severity == "error" for problem in problems):
            return None
        with NoCollection():
            return compile_plan(checked).but(source=self.data)

    @property
    def is_compiled(self) -> bool:
        """Whether the plan was compiled already, which takes longer than an answer may."""
        return "plan" in vars(self)

    @cached_property
    def steps(self) -> dict[str, Step]:
        """The steps of the plan by id; empty where it has errors."""
        return {step.id: step for step in self.plan.steps} if self.plan else {}

    @cached_property
    def digest(self) -> str:
        """The digest that approvals name; empty where it is not known."""
        if self.plan is None:
            return ""
        try:
            return digest_preview(self.plan, (), os.getcwd(), recalls=True).reviewed.digest
        except (PlanrunError, OSError):
            return ""

    @cached_property
    def bases(self) -> tuple[str, ...]:
        """The paths of the files that this plan extends, the nearest first."""
        found: list[str] = []
        analysis: Analysis | None = self
        while analysis is not None and len(found) < 16:
            path = analysis.base
            if not path or path in (self.path, *found):
                break
            found.append(path)
            analysis = from_disk(path, self.text.encoding)
        return tuple(found)

    @property
    def base(self) -> str:
        """The path of the file that this plan extends; empty where it extends none, or a template by its name."""
        extends = self.root.get("extends") if self.root is not None else None
        named = extends.get("template") or extends if extends is not None else None
        if named is None or named.kind != SCALAR or not named.value.endswith((".yml", ".yaml")):
            return ""
        return self.beside(named.value)

    def beside(self, name: str) -> str:
        """Return the path of a file that the document names."""
        return os.path.normpath(os.path.join(os.path.dirname(self.path), name))


def from_disk(path: str, encoding: str) -> Analysis | None:
    """Return the analysis of a file that is not open; None where it cannot be read."""
    try:
        return Analysis(path, Text(read_source(path).decode("utf-8"), encoding))
    except (InvalidPlan, UnicodeDecodeError):
        return None
