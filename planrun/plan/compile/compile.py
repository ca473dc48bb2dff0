"""From a checked node tree to a Plan: every default resolved, nothing left to look up.

When a failed attempt is repeated, as a plan says it.

What the failure of a step means where the step itself does not say it.
"""

from __future__ import annotations

import os

from planrun.model.plan import (
    DEFAULT_TIMEOUT,
    Abstract,
    Edge,
    Exec,
    Param,
    Plan,
    Retry,
    Run,
    Step,
    Validate,
)
from planrun.plan.check.validate import Checked, shell_words
from planrun.plan.compile.canonical import digest
from planrun.plan.compile.risks import Names, Risks
from planrun.plan.keys.outline import RawStep, entries, members
from planrun.plan.keys.top import declared_secrets, limits_of, optional_secrets, params_of
from planrun.plan.schema.forms import as_bool, as_duration, as_int, as_number
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from planrun.model.plan import Text
    from planrun.model.planning import Llm
    from planrun.model.policy import Policy

NAMING_FILES = frozenset(("inputs", "produces", "writes", "cache", "reports"))
_LINES = ("title", "description", "owner", "notes")
# All that most steps say.
_SIMPLE = frozenset(
    ("id", "run", "exec", "validate", "ask", "decide", "depends_on", "condition", "recovers", "replaces")
)
GATES = ("ask", "decide")


def compile_plan(checked: Checked) -> Plan:
    """Return the plan of a tree in which neither shape nor meaning had a problem."""
    return Compiler(checked).plan()


class Compiler:
    """One plan on its way, of a tree whose shape is right; what a step does not say is asked of `defaults`."""

    def __init__(self, checked: Checked, around: Compiler | None = None) -> None:
        self.around = around
        self.outline = checked.outline
        self.root = checked.outline.root
        self.formulas = checked.formulas
        self.params = checked.params
        self.outputs = checked.outputs
        self.gates = checked.gates
        self.groups = checked.groups
        self.services = checked.services
        policy, llm = self.root.get("policy"), self.root.get("llm")
        self.policy = None if policy is None or around else self._policy(policy)
        self.llm = None if llm is None or around else self._llm(llm)
        found = self.root.get("defaults")
        self.defaults: dict[str, Node] = found.value if found is not None and found.kind == MAPPING else {}
        self.edges: dict[tuple[str, str], Edge] = {}  # many steps want the same of the same one
        self.private = {
            id(formula.owner)
            for formula in self.formulas.listed
            if any(reference.path[0] == "step" for reference in formula.references)
        }
        self.general = self.settings({}, self.defaults)
        self.names: Names = around.names if around else Names()
        self.env: dict[str, Text] = {**(around.env if around else {}), **self.texts(self.root.get("env"))}
        self.env_file: tuple[Text, ...] = (
            *(around.env_file if around else ()),
            *self.words(self.root.get("env_file")),
        )
        self.risks: Risks = Risks(self.env, self.env_file, around.risks if around else None)
        if around:
            self.policy = around.policy

    def _policy(self, node: Node) -> Policy:
        from planrun.plan.keys.policy import policy_of  # most plans have none

        found = policy_of(node, self.gates)
        if self.outline.path_of(node):  # its lines are those of another file than the plan's
            found = found.but(line=0, rules=tuple([rule.but(line=0) for rule in found.rules]))
        return found

    def _llm(self, node: Node) -> Llm:
        from planrun.plan.keys.top import llm_of  # most plans have none

        return llm_of(node)

    def plan(self) -> Plan:
        """Put everything together."""
        root = self.root
        fields: dict[str, Any] = {
            "name": root.value["name"].value if "name" in root.value else stem(self.outline.file),
            "file": self.outline.file,
            "steps": tuple(self.steps()),
            "params": self.param_list(),
            "outputs": self.texts(root.get("outputs")),
            "env": self.texts(root.get("env")),
            "env_file": self.words(root.get("env_file")),
            "secrets": tuple(declared_secrets(root)),
            "optional_secrets": optional_secrets(root),
            "limits": limits_of(root.get("limits")),
        }
        if self.policy is not None:
            fields["policy"] = self.policy
        if self.llm is not None:
            fields["llm"] = self.llm
        for key in ("description", "goal", "schedule", "concurrency"):
            if key in root.value:
                fields[key] = root.value[key].value
        if "inherit_env" in self.defaults:
            fields["inherit_env"] = self.defaults["inherit_env"].value
        if any([step.makes or step.writes or step.kind == "group" for step in fields["steps"]]):  # noqa: C419
            from planrun.plan.compile.conflicts import with_conflicts  # most plans say nothing of files

            fields["steps"] = with_conflicts(fields["steps"])
        plan = Plan(
            **{name: value for name, value in fields.items() if value not in ((), {}) or name == "steps"}
        )
        return plan.but(digest=digest(plan))

    def steps(self) -> list[Step]:
        """Return every step, with all that those become which have instances, or use a plan."""
        if not self.groups and not any([draft.used for draft in self.outline.drafts]):  # noqa: C419 - half the time
            return [self.step(draft) for draft in self.outline.drafts]
        from planrun.plan.compile.groups import (
            embedded,  # few plans have any
            unfolded,
        )

        found: list[Step] = []
        for draft in self.outline.drafts:
            if draft.used is not None:
                assert draft.used.checked is not None
                inner = Compiler(draft.used.checked, self)
                found += embedded(self, draft, inner, draft.used.path)
            elif draft.id in self.groups:
                found += unfolded(self, self.groups[draft.id])
            else:
                found.append(self.step(draft))
        return found

    def step(self, draft: RawStep) -> Step:
        """Return one step; fields that say no more than the class's defaults are left out."""
        return self.finished(self.fields(draft))

    def fields(self, draft: RawStep) -> dict[str, Any]:
        """Return what the file says of a step."""
        keys = draft.keys
        fields = self.place(draft)
        self.action(keys, fields)
        # For gates nothing of it: they start no process, and a `no` that is tolerated would be none.
        if fields["kind"] not in GATES:
            fields.update(self.general)
        if id(draft) in self.private:
            fields["needs_dir"] = True
        if not _SIMPLE.issuperset(keys):
            self.details(draft, fields)
        if draft.undo is not None or "reversible" in keys:
            from planrun.plan.keys.rollback import undoing_of  # few steps say anything about it

            fields.update(undoing_of(self, draft, fields))
        if fields.get("timeout") == DEFAULT_TIMEOUT:
            del fields["timeout"]
        return fields

    def finished(self, fields: dict[str, Any]) -> Step:
        """Return the step with these fields, and with what is found out about it."""
        fields.update(self.risks.of(fields))
        if "rollback" in fields:
            from planrun.plan.keys.rollback import finished

            fields["rollback"] = finished(self, fields["rollback"])
        meaning_of_failure(self, fields)
        return self.names.given(Step(**fields))

    def place(self, draft: RawStep) -> dict[str, Any]:
        """Return the fields of a step that say who it is, and what it waits for."""
        fields: dict[str, Any] = {"id": draft.id, "line": draft.at.line, "col": draft.at.col}
        if self.outline.origins and (path := self.outline.path_of(draft.at)):
            fields["file"] = path
        if draft.section != "steps":
            fields["section"] = draft.section
        self.links(draft, fields)
        if draft.condition is not None:
            from planrun.expressions.scan import bare  # few steps have a condition

            fields["condition"] = draft.condition
            fields["condition_text"] = bare(draft.keys["condition"].value)
        return fields

    def links(self, draft: RawStep, fields: dict[str, Any]) -> None:
        """Fill in what the step wants of others, and what it means for them."""
        if draft.links:
            known = self.edges
            wanted = [(link.on, "same" if link.form == "same" else link.kind) for link in draft.links]
            if self.services:
                from planrun.plan.keys.services import edges_of  # few plans have any

                wanted = edges_of(self, draft)
            fields["edges"] = tuple([known.get(pair) or self.edge(*pair) for pair in wanted])
        if draft.recovers:
            fields["recovers"] = tuple([link.on for link in draft.recovers])
        if draft.replaces:
            fields["replaces"] = tuple([link.on for link in draft.replaces])

    def surface(self, draft: RawStep) -> dict[str, Any]:
        """Return the fields of a step that its risk is found from; raises ValueError for a shell with an open quote."""
        keys = draft.keys
        fields: dict[str, Any] = {"id": draft.id, "kind": "validate", "action": Abstract()}
        if "validate" not in keys:
            self.action(keys, fields)
        fields.update(self.proofs(keys, draft.id))
        for key in ("shell", "workdir"):
            node = keys.get(key) or self.defaults.get(key)
            if node is not None:
                fields[key] = getattr(self, key)(node)
        if "env" in keys:
            fields["env"] = self.texts(keys["env"])
        if "env_file" in keys:
            fields["env_file"] = self.words(keys["env_file"])
        return fields

    def words_of(self, draft: RawStep, fields: dict[str, Any]) -> None:
        """Fill in what a group says of itself: texts for people, tags, and what its failure means."""
        for key in _LINES:
            if key in draft.keys:
                fields[key] = draft.keys[key].value
        if "tags" in draft.keys:
            fields["tags"] = _names(draft.keys["tags"])
        word = draft.keys.get("on_failure") or self.defaults.get("on_failure")
        if word is not None and word.value not in ("ask", "replan"):  # of `defaults`, for steps that can
            fields["on_failure"] = self.on_failure(word)

    def details(self, draft: RawStep, fields: dict[str, Any]) -> None:
        """Fill in what only some steps say."""
        keys = draft.keys
        for key in _LINES:
            if key in keys:
                fields[key] = keys[key].value
        for key, read in _READ.items():
            if key in keys:
                fields[key] = read(keys[key])
        self.around_it(draft, fields)
        if "outputs" in keys:
            fields["outputs"] = self.outputs[draft.id]
        fields.update(self.proofs(keys, draft.id))
        if "risk" in keys:
            fields["declared_risk"] = keys["risk"].value
        if not NAMING_FILES.isdisjoint(keys):
            from planrun.plan.keys.files import file_fields  # most steps name none

            fields.update(file_fields(self, keys))
        fields.update(self.settings(keys, {} if draft.is_gate else self.defaults))

    def around_it(self, draft: RawStep, fields: dict[str, Any]) -> None:
        """Fill in what surrounds the processes of a step."""
        keys = draft.keys
        if "env" in keys:
            fields["env"] = self.texts(keys["env"])
        if "env_file" in keys:
            fields["env_file"] = self.words(keys["env_file"])
        if "container" in keys:
            from planrun.plan.keys.containers import container_of  # few steps run in one

            fields["container"] = container_of(self, keys["container"], draft.id)

    def proofs(self, keys: dict[str, Node], name: str) -> dict[str, Any]:
        """Return the fields about what has to hold when its action has completed, or when a service is ready."""
        if name in self.services:
            from planrun.plan.keys.services import service_fields

            return service_fields(self, keys)
        if "expect" not in keys and "verify" not in keys:
            return {}
        from planrun.plan.keys.checks import proof_fields  # most plans have none

        return proof_fields(self, keys, name)

    def settings(self, keys: dict[str, Node], defaults: dict[str, Node]) -> dict[str, Any]:
        """Return the fields that a step shares with `defaults`, as far as one of the two has them."""
        found: dict[str, Any] = {}
        for key in (
            "timeout",
            "idle_timeout",
            "verify_timeout",
            "retries",
            "shell",
            "on_failure",
            "workdir",
            "track_files",
        ):
            node = keys.get(key) or defaults.get(key)
            if node is not None:
                found[key] = getattr(self, key)(node)
        return found

    def timeout(self, node: Node) -> float:
        """Seconds of a duration."""
        return as_duration(node.value)

    idle_timeout = verify_timeout = timeout

    def track_files(self, node: Node) -> bool:
        """Whether what a step changes is recorded."""
        return as_bool(node)

    def on_failure(self, node: Node) -> str:
        """The word as it is."""
        return str(node.value)

    def workdir(self, node: Node) -> Text:
        """A path, or a template of one."""
        return self.formulas.text(node)

    def shell(self, node: Node) -> tuple[str, ...]:
        """The words of a command line, or of a list."""
        if node.kind == SEQUENCE:
            return tuple([word.value for word in node.value])
        return shell_words(node.value)

    def retries(self, node: Node) -> Retry:
        """A number of extra attempts, or the mapping with its backoff and filters."""
        errors = self.defaults.get("errors")
        unknown = errors.get("unknown") if errors is not None else None
        return retry_of(node, "fail" if unknown is None else unknown.value)

    def action(self, keys: dict[str, Node], fields: dict[str, Any]) -> None:
        """Fill in what the step does."""
        if "run" in keys:
            fields["kind"] = "run"
            fields["action"] = Run(script=self.formulas.text(keys["run"], script=True))
        elif "exec" in keys:
            fields["kind"] = "exec"
            fields["action"] = Exec(argv=self.words(keys["exec"]))
        elif "tool" in keys:
            from planrun.plan.keys.tools import call  # few plans call tools

            fields["kind"] = "tool"
            fields["action"] = call(keys["tool"], keys.get("args"), self.formulas)
            if self.outputs.get(fields["id"]):
                fields["outputs"] = self.outputs[fields["id"]]
        elif "validate" in keys:
            fields["kind"] = "validate"
            from planrun.plan.keys.checks import checks_of  # most plans have none

            fields["action"] = Validate(checks=checks_of(self, keys["validate"], fields["id"]))
        elif "ask" in keys or "decide" in keys:
            fields["kind"] = "ask" if "ask" in keys else "decide"
            fields["action"] = self.gates[fields["id"]].record(
                self.formulas, self.defaults.get("decision_timeout")
            )
        else:
            fields["kind"] = "abstract"
            fields["action"] = Abstract()

    def edge(self, on: str, kind: str) -> Edge:
        """Make an edge, and keep it for all that want the same."""
        found = self.edges[on, kind] = Edge(on=on, kind=kind)  # type: ignore[arg-type]  # one of EDGE_KINDS
        return found

    def texts(self, node: Node | None) -> dict[str, Text]:
        """Return the texts of a mapping by name."""
        return {name: self.formulas.text(value) for name, value in members(node)}

    def words(self, node: Node | None) -> tuple[Text, ...]:
        """Return the texts of a list."""
        return tuple([self.formulas.text(item) for item in entries(node)])

    def param_list(self) -> tuple[Param, ...]:
        """Return the params in file order."""
        return params_of(self.params)


def _names(node: Node | None) -> tuple[str, ...]:
    return tuple([item.value for item in entries(node)])


_READ: dict[str, Callable[[Node], Any]] = {
    "tags": _names,
    "criteria": _names,
    "estimated_tokens": as_int,
    "parallel": as_bool,
    "idempotent": as_bool,
    "secrets": _names,
    "lock": _names,
}


def stem(file: str) -> str:
    """Return the name of a plan that has none: its file's, without folder and ending."""
    return os.path.splitext(os.path.basename(file))[0] or "plan"


_WORDS = ("any", "timeout", "idle_timeout")  # what `retries: {on: …}` names besides the classes of errors


_MAX = 2  # extra attempts where a mapping does not say it


def retry_of(node: Node, unknown: str = "fail") -> Retry:
    """Return what a number of extra attempts says, or the mapping with its backoff and filters.

    `unknown`: whether `on: auto` repeats what no rule knows (`retry`) or not (`fail`).
    """
    if node.kind != MAPPING:
        return Retry(max=as_int(node))
    fields: dict[str, Any] = {"max": as_int(node.value["max"]) if "max" in node.value else _MAX}
    for key, value in members(node.get("backoff")):
        if key in ("initial", "max"):
            fields["cap" if key == "max" else key] = as_duration(value.value)
        else:
            fields[key] = float(as_number(value))
    if "on" in node.value:
        rules = node.value["on"]
        if rules.kind == SCALAR:
            classes = ("transient", "unknown") if unknown == "retry" else ("transient",)
            fields["on"] = tuple([("class", name) for name in classes])
        else:
            fields["on"] = tuple([_retry_rule(rule) for rule in rules.value])
    return Retry(**fields)


def _retry_rule(node: Node) -> tuple[Any, ...]:
    if node.kind != MAPPING:
        word = node.value
        return (word,) if word in _WORDS else ("class", word)
    for key, value in node.value.items():
        if key == "exit":
            codes = value.value if value.kind == SEQUENCE else [value]
            return ("exit", tuple([as_int(code) for code in codes]))
        return (key, value.value)
    return ("any",)


_GATES = ("ask", "decide")  # their `no` is no failure of anything that ran


def meaning_of_failure(compiler: Compiler, fields: dict[str, Any]) -> None:
    """Fill in what policy and model make of its failures, where neither the step nor `defaults` say it."""
    if compiler.policy is not None and "on_failure" not in fields and fields["kind"] not in _GATES:
        from planrun.plan.keys.policy import failure_word

        reversible = fields.get("reversible", True if "rollback" in fields else None)
        word = failure_word(
            compiler.policy, fields.get("risk", "high"), fields.get("effects", ()), reversible=reversible
        )
        if word:
            fields["on_failure"] = word
    if compiler.around is not None and fields.get("on_failure") == "replan":
        fields["on_failure"] = "block"
    if fields.get("section") == "finally" or fields["kind"] in _GATES or compiler.around is not None:
        return
    if fields.get("on_failure") == "replan":
        fields["replan"] = "any"
    elif (
        compiler.llm is not None and "on_failure" not in fields and compiler.llm.replan_on_failure != "never"
    ):
        fields["replan"] = compiler.llm.replan_on_failure
