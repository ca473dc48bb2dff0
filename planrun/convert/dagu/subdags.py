"""Sub-DAGs: another document of the file, or a file beside it, as steps of the plan; others are run by Dagu."""

from __future__ import annotations

import os
import re
import shlex

from planrun.convert.dagu.references import mentions
from planrun.convert.dagu.variables import arguments_of
from planrun.convert.draft import DraftStep, literal_text, step_path
from planrun.convert.reader import Reader, UntranslatableError, text_of
from planrun.errors import PlanrunError
from planrun.plan.yaml.document import read_tree
from planrun.plan.yaml.file import read_source
from planrun.plan.yaml.node import MAPPING, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from planrun.convert.dagu.dag import Dag
    from planrun.convert.dagu.variables import Keys
    from planrun.convert.reader import Findings

    Items = tuple[
        Mapping[str, Any], str, str
    ]  # keys of the step, and the item as a text and as an expression

MAX_DEPTH = 5
_ALONE = ("retrypolicy", "repeatpolicy", "continueon", "preconditions", "precondition")
_BREAK = re.compile(rb"^---[ \t]*(?:#.*)?$", re.MULTILINE)


def documents(data: bytes) -> list[bytes]:
    """Return the documents of a file, each after as many empty lines as stand before it."""
    starts = [0, *(match.end() for match in _BREAK.finditer(data))]
    ends = [*(match.start() for match in _BREAK.finditer(data)), len(data)]
    found = []
    for start, end in zip(starts, ends, strict=True):
        if data[start:end].strip() and re.search(rb"^[^\s#]", data[start:end], re.MULTILINE):
            found.append(b"\n" * data.count(b"\n", 0, start) + data[start:end])
    return found or [data]


def names_of(nodes: list[Node]) -> dict[str, Node]:
    """Return the documents behind the first by their names."""
    return {
        text_of(node.get("name")): node
        for node in nodes[1:]
        if node.kind == MAPPING and node.get("name") is not None
    }


def command_for(name: str, params: str) -> str:
    """Return the command by which Dagu runs another file."""
    words = f" -- {params}" if params else ""
    return f"dagu start {shlex.quote(name)}{words}"


def beside(file: str, name: str) -> tuple[str, Node | None]:
    """Return path and content of a file beside another one; None where there is none that can be read."""
    folder = os.path.dirname(file)
    for path in (name, f"{name}.yaml", f"{name}.yml"):
        whole = os.path.join(folder, path)
        if not path.endswith((".yaml", ".yml")) or not os.path.isfile(whole):
            continue
        try:
            root, problems, complete = read_tree(read_source(whole, "file"), whole, "file")
        except PlanrunError:
            return "", None
        return (
            (whole, root)
            if root is not None and not problems and complete and root.kind == MAPPING
            else ("", None)
        )
    return "", None


class Inlining:
    """Puts the steps of a sub-DAG into the plan of the file that calls it."""

    def __init__(self, dag: Dag, make: Callable[[Node, Findings, int], Dag]) -> None:
        self.dag = dag
        self.make = make

    def steps(
        self, name: str, step: DraftStep, keys: Keys, params: Node | None, items: Items | None
    ) -> list[DraftStep] | None:
        """Return the steps that a call becomes, the last of which is the step itself; None for one that Dagu runs."""
        root, found = self.dag.others.get(name), self.dag.found
        if root is None:
            path, root = beside(found.file, name)
            found = found.of(path) if root is not None else found
        if root is None or self.dag.depth >= MAX_DEPTH:
            return None
        for key in _ALONE:
            if keys.has(key):
                raise UntranslatableError("sub-dag", f"a step that runs another DAG, with `{key}`")
        child = self.make(root, found, self.dag.depth + 1)
        references = self.dag.variables.references
        references.item = items[2] if items else ""
        own = "|".join(map(re.escape, step.keys.get("env", {}))) or "^$"
        if any(re.search(rf"\$\{{?({own})\b", value) for value in self._given(params).values()):
            raise UntranslatableError("sub-dag", "parameters of a sub-DAG that read variables of the step")
        given = {key: references.template(value) for key, value in self._given(params).items()}
        references.item = ""
        return self._adopted(child, given, step, keys, items)

    def _given(self, node: Node | None) -> dict[str, str]:
        pairs = arguments_of(node, Reader(self.dag.found))
        return {name or f"P{at}": value for at, (name, value) in enumerate(pairs, 1)}

    def _adopted(
        self, child: Dag, given: Mapping[str, str], step: DraftStep, keys: Keys, items: Items | None
    ) -> list[DraftStep]:
        plan = child.convert()
        if plan.cleanup or "env_file" in plan.keys:
            raise UntranslatableError("sub-dag", "a sub-DAG with handlers or files of variables")
        for secret in plan.secrets:
            self.dag.plan.secret(secret)
        shared = {name: str(value) for name, value in plan.keys.get("env", {}).items()}
        for name, fragment in plan.params.items():
            shared[name] = given.get(name, literal_text(str(fragment.get("default", ""))))
        shared |= {"ITEM": f"${{{{ {items[1]} }}}}"} if items else {}
        names = {each.id: self.dag.plan.name(f"{step.id}.{each.id}") for each in plan.steps}
        for each in plan.steps:
            self._renamed(each, names)
            if "run" in each.keys or "exec" in each.keys:
                each.keys["env"] = {**shared, **each.keys.get("env", {})}
                for key in ("shell", "workdir"):
                    own = plan.keys.get("defaults", {}).get(key)
                    if own and own != self.dag.plan.keys["defaults"].get(key):
                        each.keys.setdefault(key, own)
            if items:
                self._repeat(each, items[0], set(names.values()))
        tips = [each.id for each in plan.steps if not any(each.id in other.edges for other in plan.steps)]
        step.keys.pop("run", None)
        step.keys.pop("env", None)
        step.keys["validate"] = [{"that": True}]
        for tip in tips:
            step.wait(tip)
        self._results(child, keys, names, is_list=bool(items))
        return plan.steps

    def _repeat(self, step: DraftStep, items: Mapping[str, Any], inside: set[str]) -> None:
        """Let a step of a sub-DAG run for each item, after the step before it for the same item."""
        if step.keys.keys() & {"matrix", "foreach", "ask"}:
            raise UntranslatableError(
                "sub-dag", "a sub-DAG with items or questions of its own, for each item"
            )
        step.keys |= items
        for name, kind in step.edges.items():
            if name in inside:
                step.edges[name] = {"instance": kind}

    def _results(self, child: Dag, keys: Keys, names: Mapping[str, str], *, is_list: bool) -> None:
        """Note the outputs of a sub-DAG for the steps that read `${NAME.outputs.x}`; raises UntranslatableError."""
        name = text_of(keys.get("output"))
        if not name:
            return
        pattern = (
            rf"\$\{{?{re.escape(name)}\b" if is_list else rf"\$\{{?{re.escape(name)}\b(?!\.outputs\.\w+\}})"
        )
        if mentions(self.dag.keys.node, re.compile(pattern)):
            raise UntranslatableError("sub-dag", f"the result of a DAG as a whole: {name}")
        found = self.dag.variables.references.results.setdefault(name, {})
        for output, expressions in child.variables.references.outputs.items():
            text = expressions[-1]
            for old, new in names.items():
                text = text.replace(step_path(old, ""), step_path(new, ""))
            found[output] = text

    def _renamed(self, step: DraftStep, names: Mapping[str, str]) -> None:
        step.id = names[step.id]
        step.edges = {names.get(name, name): kind for name, kind in step.edges.items()}
        for old, new in names.items():
            step.condition = step.condition.replace(step_path(old, ""), step_path(new, ""))
            for key in ("env", "run", "exec", "workdir", "agent", "ask", "container"):
                if key in step.keys:
                    step.keys[key] = _replaced(step.keys[key], step_path(old, ""), step_path(new, ""))


def _replaced(value: Any, old: str, new: str) -> Any:
    if isinstance(value, dict):
        return {name: _replaced(each, old, new) for name, each in value.items()}
    if isinstance(value, list):
        return [_replaced(each, old, new) for each in value]
    return value.replace(old, new) if isinstance(value, str) and "${{" in value else value
