"""From a raw step whose shape and meaning are right to a step of the plan, by the table of keys."""

from __future__ import annotations

from planrun.model.plan import DEFAULT_TIMEOUT, Abstract, Edge, Retry, Rollback, Step
from planrun.plan.check.validate import shell_words
from planrun.plan.compile.risks import Risks
from planrun.plan.keys.outline import entries, members
from planrun.plan.keys.table import STEP, fields_with, module
from planrun.plan.keys.top import llm_of
from planrun.plan.kinds import KINDS, module_of
from planrun.plan.schema.forms import as_bool, as_duration, as_int, as_number
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from planrun.model.plan import Hook, Text
    from planrun.model.policy import Policy
    from planrun.plan.keys.checked import Checked
    from planrun.plan.keys.outline import RawStep

    Compiled = Callable[[Checked, RawStep, Node], dict[str, Any]]

# All that most steps say.
_SIMPLE = frozenset(("id", *KINDS, "args", "depends_on", "condition", "recovers", "replaces"))
# What the risk of a step is found from, besides its action.
_SURFACE = ("expect", "verify", "service", "shell", "workdir", "env", "env_file")
_UNDONE = fields_with("undone")


class StepCompiler:
    """Compiles the steps of one plan, whose shape is right; what a step does not say is asked of `defaults`."""

    def __init__(self, checked: Checked, around: StepCompiler | None = None) -> None:
        self.around = around
        self.checked = checked
        self.outline = checked.outline
        self.root = checked.outline.root
        self.formulas = checked.formulas
        policy, llm = self.root.get("policy"), self.root.get("llm")
        self.policy = None if policy is None or around else self._policy(policy)
        self.llm = None if llm is None or around else llm_of(llm)
        search = None if around else self.root.get("search")
        self.searches = search is not None and module("search").search_of(search).replan_on_failure
        defaults = self.root.get("defaults")
        self.defaults: dict[str, Node] = (
            defaults.value if defaults is not None and defaults.kind == MAPPING else {}
        )
        self.edges: dict[tuple[str, str], Edge] = {}  # many steps want the same of the same one
        self.private = {
            id(formula.owner)
            for formula in self.formulas.listed
            if any(reference.path[0] == "step" for reference in formula.references)
        }
        self.general: dict[str, Any] = {}
        for key, node in self.defaults.items():
            if key in STEP and STEP[key].general:
                self.read(None, key, self.general, node)
        self.hooks: tuple[Hook, ...] = ()
        if "hooks" in self.root.value:
            self.hooks = module("hooks").hooks_of(self.root)
        self.undoes = "rollback" not in self.defaults or as_bool(self.defaults["rollback"])
        self.env: dict[str, Text] = {
            **(around.env if around else {}),
            **self.formulas.texts(self.root.get("env")),
        }
        self.env_file: tuple[Text, ...] = (
            *(around.env_file if around else ()),
            *self.formulas.words(self.root.get("env_file")),
        )
        self.risks: Risks = Risks(self.env, self.env_file, around.risks if around else None)
        if around:
            self.policy = around.policy

    def _policy(self, node: Node) -> Policy:
        policy: Policy = module("policy").policy_of(node, self.checked.gates)
        if self.outline.path_of(node):  # its lines are those of another file than the plan's
            policy = policy.but(line=0, rules=tuple([rule.but(line=0) for rule in policy.rules]))
        return policy

    def step(self, raw: RawStep) -> Step:
        """Return one step; fields that say no more than the class's defaults are left out."""
        return self.finished(self.fields(raw))

    def fields(self, raw: RawStep) -> dict[str, Any]:
        """Return what the file says of a step."""
        keys = raw.keys
        fields = self.place(raw)
        self.action(raw, fields)
        # For gates nothing of it: they start no process, and a `no` that is tolerated would be none.
        if not fields["action"].asks:
            fields.update(self.general)
        if id(raw) in self.private:
            fields["needs_dir"] = True
        if not _SIMPLE.issuperset(keys):
            self.details(raw, fields)
        if self.hooks and fields["action"].starts_process and "service" not in fields:
            fields["hooks"] = self.hooks
        if raw.undos and self.undoes:
            fields["rollback"] = self.rollback(raw, fields)
        if fields.get("timeout") == DEFAULT_TIMEOUT:
            del fields["timeout"]
        if "sandbox" in fields and not _has_sandbox(fields):
            del fields["sandbox"]
        return fields

    def finished(self, fields: dict[str, Any]) -> Step:
        """Return the step with these fields, and with what is found out about it."""
        fields.update(self.risks.of(fields))
        if "rollback" in fields:
            fields["rollback"] = with_undos(
                fields["rollback"],
                [undo.but(**self.risks.of(vars(undo))) for undo in fields["rollback"].undos],
            )
        meaning_of_failure(self, fields)
        return Step(**fields)

    def place(self, raw: RawStep) -> dict[str, Any]:
        """Return the fields of a step that say who it is, and what it waits for."""
        fields: dict[str, Any] = {"id": raw.id, "line": raw.at.line, "col": raw.at.col}
        if self.outline.origins and (path := self.outline.path_of(raw.at)):
            fields["file"] = path
        if raw.section != "steps":
            fields["section"] = raw.section
        self.links(raw, fields)
        if raw.condition is not None:
            from planrun.expressions.parse import bare

            fields["condition"] = raw.condition
            fields["condition_text"] = bare(raw.keys["condition"].value)
        return fields

    def links(self, raw: RawStep, fields: dict[str, Any]) -> None:
        """Fill in what the step wants of others, and what it means for them."""
        if raw.links:
            known = self.edges
            wanted = [(link.on, "same" if link.form == "same" else link.kind) for link in raw.links]
            if self.checked.services:
                wanted = module("services").edges_of(self.checked, raw)
            fields["edges"] = tuple([known.get(pair) or self.edge(*pair) for pair in wanted])
        if raw.recovers:
            fields["recovers"] = tuple([link.on for link in raw.recovers])
        if raw.replaces:
            fields["replaces"] = tuple([link.on for link in raw.replaces])

    def words_of(self, raw: RawStep, fields: dict[str, Any]) -> None:
        """Fill in what a group says of itself: texts for people, tags, and what its failure means."""
        for key in _OF_GROUP:
            if key in raw.keys:
                self.read(raw, key, fields)
        word = raw.keys.get("on_failure") or self.defaults.get("on_failure")
        if word is not None and word.value not in ("ask", "replan"):  # of `defaults`, for steps that can
            fields["on_failure"] = word.value

    def details(self, raw: RawStep, fields: dict[str, Any]) -> None:
        """Fill in what only some steps say."""
        for key in raw.keys:
            if key not in _SIMPLE:
                self.read(raw, key, fields)

    def read(self, raw: RawStep | None, key: str, fields: dict[str, Any], node: Node | None = None) -> None:
        """Fill in the fields that a key becomes, by its row in the table of keys; `node`: its value in `defaults`."""
        row = STEP[key]
        value = raw.keys[key] if raw is not None else node
        if row.form in READ and not row.special:
            fields[row.field] = READ[row.form](self, raw, value)  # type: ignore[arg-type]
        elif compiled := _compiled(key):
            fields.update(compiled(self.checked, raw, value))  # type: ignore[arg-type]

    def surface(self, raw: RawStep) -> dict[str, Any]:
        """Return the fields of a step that its risk is found from; raises ValueError for a shell with an open quote."""
        fields: dict[str, Any] = {"id": raw.id, "kind": "validate", "action": Abstract()}
        if "validate" not in raw.keys:
            self.action(raw, fields)
        fields.update({key: self.general[key] for key in ("shell", "workdir") if key in self.general})
        for key in _SURFACE:
            if key in raw.keys:
                self.read(raw, key, fields)
        return fields

    def rollback(self, raw: RawStep, step: dict[str, Any]) -> Rollback:
        """Return what undoes a step; `step` are the fields of that step."""
        first, *others = [self.undo(undo, step) for undo in raw.undos]
        on_failed = any("on_failed" in each.keys and as_bool(each.keys["on_failed"]) for each in raw.undos)
        more: dict[str, Any] = {"on_failed": True} if on_failed else {}
        if others:
            more["more"] = tuple(others)
        return Rollback(undo=first, **more)

    def undo(self, undo: RawStep, step: dict[str, Any]) -> Step:
        """Return one action that undoes a step; `step` are the fields of that step."""
        keys = undo.keys
        fields: dict[str, Any] = {name: step[name] for name in _UNDONE if name in step}
        fields |= {"id": undo.id, "section": "rollback", "line": undo.at.line, "col": undo.at.col}
        if "file" in step:
            fields["file"] = step["file"]
        self.action(undo, fields)
        for key in ("workdir", "shell", "idempotent"):
            if key in keys:
                self.read(undo, key, fields)
        if "env" in keys:
            fields["env"] = {**fields.get("env", {}), **self.formulas.texts(keys["env"])}
        if "timeout" in keys or "timeout" in self.defaults:
            fields["timeout"] = as_duration((keys.get("timeout") or self.defaults["timeout"]).value)
        if fields.get("timeout") == DEFAULT_TIMEOUT:
            del fields["timeout"]
        if id(undo) in self.private:
            fields["needs_dir"] = True
        return Step(**fields)

    def action(self, raw: RawStep, fields: dict[str, Any]) -> None:
        """Fill in what the step does."""
        for kind in KINDS:
            if kind in raw.keys:
                fields["kind"] = kind
                compiled = _compiled(kind)
                assert compiled is not None
                fields.update(compiled(self.checked, raw, raw.keys[kind]))
                return
        fields["kind"] = "abstract"
        fields["action"] = Abstract()

    def edge(self, on: str, kind: str) -> Edge:
        """Make an edge, and keep it for all that want the same."""
        found = self.edges[on, kind] = Edge(on=on, kind=kind)  # type: ignore[arg-type]  # one of EDGE_KINDS
        return found


def _has_sandbox(fields: dict[str, Any]) -> bool:
    """Whether a sandbox says anything: not if it is off, nor of a container or a step without a process."""
    starts = fields["action"].starts_process and fields.get("container") is None
    return bool(starts and fields["sandbox"].is_on)


# By key, what returns the fields that it becomes: from `COMPILE` of the module that the table names, or of its kind.
_COMPILED: dict[str, Compiled | None] = {}


def _compiled(key: str) -> Compiled | None:
    """Return what compiles a key; None for one that other keys read."""
    if key not in _COMPILED:
        name = STEP[key].module
        where = module(name) if name else module_of(key) if key in KINDS else None
        _COMPILED[key] = getattr(where, "COMPILE", {}).get(key)
    return _COMPILED[key]


def _words(_compiler: StepCompiler, _step: RawStep | None, node: Node) -> tuple[str, ...]:
    return tuple([item.value for item in entries(node)])


def _command(_compiler: StepCompiler, _step: RawStep | None, node: Node) -> tuple[str, ...]:
    if node.kind == SEQUENCE:
        return tuple([word.value for word in node.value])
    return shell_words(node.value)


def _retries(compiler: StepCompiler, _step: RawStep | None, node: Node) -> Retry:
    """Return a number of extra attempts, or the mapping with its backoff and filters."""
    errors = compiler.defaults.get("errors")
    unknown = errors.get("unknown") if errors is not None else None
    return retry_of(node, "fail" if unknown is None else unknown.value)


def with_undos(rollback: Rollback, undos: list[Step]) -> Rollback:
    """Return a rollback with other actions."""
    first, *others = undos
    return rollback.but(undo=first, **({"more": tuple(others)} if others else {}))


# How the values of the forms are read that many keys share.
READ: dict[str, Callable[[StepCompiler, RawStep | None, Node], Any]] = {
    "word": lambda _compiler, _step, node: node.value,
    "number": lambda _compiler, _step, node: as_int(node),
    "flag": lambda _compiler, _step, node: as_bool(node),
    "amount": lambda _compiler, _step, node: float(as_number(node)),
    "seconds": lambda _compiler, _step, node: as_duration(node.value),
    "words": _words,
    "names": _words,
    "template": lambda compiler, _step, node: compiler.formulas.text(node),
    "templates": lambda compiler, _step, node: compiler.formulas.words(node),
    "named": lambda compiler, _step, node: compiler.formulas.texts(node),
    "fragments": lambda compiler, step, _node: compiler.checked.outputs[step.id] if step else {},
    "command": _command,
    "retries": _retries,
}
_RISKS = ("risk", "on_failure")  # what a group has of these follows from its members
_OF_GROUP = tuple(
    [key for key, row in STEP.items() if row.grouped and row.form in ("word", "words") and key not in _RISKS]
)


_WORDS = ("any", "timeout", "idle_timeout")  # what `retries: {on: …}` names besides the classes of errors


_MAX = 2  # extra attempts where a mapping does not say it


def retry_of(node: Node, unknown: str = "fail") -> Retry:
    """Return what a number of extra attempts says, or the mapping with its backoff and filters.

    `unknown`: whether `on: auto` repeats what no rule knows (`retry`) or not (`fail`).
    """
    if node.kind != MAPPING:
        return Retry(max=as_int(node))
    fields: dict[str, Any] = {"max": as_int(node.value["max"]) if "max" in node.value else _MAX}
    backoff = node.get("backoff")
    if backoff is not None and "delays" in backoff.value and "max" not in node.value:
        fields["max"] = len(backoff.value["delays"].value)
    for key, value in members(backoff):
        if key in ("initial", "max"):
            fields["cap" if key == "max" else key] = as_duration(value.value)
        elif key == "delays":
            fields[key] = tuple([as_duration(each.value) for each in value.value])
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


def meaning_of_failure(compiler: StepCompiler, fields: dict[str, Any]) -> None:
    """Fill in what policy and model make of its failures, where neither the step nor `defaults` say it."""
    if compiler.policy is not None and "on_failure" not in fields and not fields["action"].asks:
        reversible = fields.get("reversible", True if "rollback" in fields else None)
        word = module("policy").failure_word(
            compiler.policy, fields.get("risk", "high"), fields.get("effects", ()), reversible=reversible
        )
        if word:
            fields["on_failure"] = word
    if compiler.around is not None and fields.get("on_failure") == "replan":
        fields["on_failure"] = "block"
    if fields.get("section") == "finally" or fields["action"].asks or compiler.around is not None:
        return
    if fields.get("on_failure") == "replan" or (
        compiler.searches and "on_failure" not in fields and "provides" in fields
    ):
        fields["replan"] = "any"
    elif (
        compiler.llm is not None and "on_failure" not in fields and compiler.llm.replan_on_failure != "never"
    ):
        fields["replan"] = compiler.llm.replan_on_failure
