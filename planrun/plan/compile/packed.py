"""A plan as plain data and back, for the cache. HOT: unpacking is most of what starting a large plan costs.

The data are dicts of the fields that were given, with records inside replaced by plain tuples. What depends on
where the plan was read from (`file`, `source`, `files`) is left out and given again by the reader.
"""

from __future__ import annotations

from planrun.model import plan as model
from planrun.model.plan import Edge, Group, Limits, Param, Plan, Rollback, Step
from planrun.model.planning import Llm
from planrun.plan.kinds import kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.model.policy import Policy


def pack(plan: Plan) -> dict[str, Any]:
    """Return a plan as plain data."""
    fields = {name: value for name, value in vars(plan).items() if name not in ("file", "files", "source")}
    fields["records"] = _records()
    fields["steps"] = [_pack_step(step) for step in plan.steps]
    if "params" in fields:
        fields["params"] = [vars(param) for param in plan.params]
    if "limits" in fields:
        fields["limits"] = vars(plan.limits)
    if plan.policy is not None:
        fields["policy"] = _pack_policy(plan.policy)
    if plan.llm is not None:
        fields["llm"] = vars(plan.llm)
    if plan.search is not None:
        fields["search"] = {**vars(plan.search), "parts": [_pack_step(step) for step in plan.search.parts]}
    if plan.notify:
        fields["notify"] = [vars(target) for target in plan.notify]
    if plan.mcp:
        fields["mcp"] = [vars(server) for server in plan.mcp]
    return fields


def _pack_policy(policy: Policy) -> dict[str, Any]:
    fields = dict(vars(policy))
    if "rules" in fields:
        fields["rules"] = [{**vars(rule), "match": vars(rule.match)} for rule in policy.rules]
    for name in ("sandbox", "llm_sandbox"):
        if name in fields:
            fields[name] = vars(fields[name])
    return fields


def _pack_group(action: dict[str, Any], group: Group) -> None:
    if "params" in action:
        action["params"] = tuple([vars(param) for param in group.params])
    if group.template is not None:
        action["template"] = _pack_step(group.template)


def _pack_records(fields: dict[str, Any]) -> None:
    for name, (_, is_list) in _records().items():
        if name in fields:
            fields[name] = [vars(each) for each in fields[name]] if is_list else vars(fields[name])


def _records() -> dict[str, tuple[str, bool]]:
    """Return the fields of a step that are records of plain data: their class, and whether they are lists of such."""
    from planrun.plan.keys.table import RECORDS  # a packed plan has it: unpacking loads no table

    return RECORDS


def _pack_step(step: Step) -> dict[str, Any]:
    fields = dict(vars(step))
    action = step.action.packed()
    if step.kind == "group":
        _pack_group(action, step.grouping)
    fields["action"] = action
    if "edges" in fields:
        fields["edges"] = tuple([(edge.on, edge.kind) for edge in step.edges])
    _pack_records(fields)
    if "verify" in fields:
        fields["verify"] = [(action.kind, vars(action)) for action in step.verify]
    if "hooks" in fields:
        fields["hooks"] = [
            {**vars(hook), "action": (hook.action.kind, vars(hook.action))} for hook in step.hooks
        ]
    if step.rollback is not None:
        first, *others = [_pack_step(undo) for undo in step.rollback.undos]
        fields["rollback"] = {**vars(step.rollback), "undo": first, **({"more": others} if others else {})}
    return fields


def unpack(data: dict[str, Any], file: str, source: bytes, files: dict[str, bytes] | None = None) -> Plan:
    """Return the plan that was packed; takes `data` over and changes it. `files`: of the plans that it uses."""
    steps = _Steps(data.pop("records"))
    data["steps"] = tuple([steps.unpacked(fields) for fields in data["steps"]])
    if "params" in data:
        data["params"] = tuple([Param(**param) for param in data["params"]])
    if "limits" in data:
        data["limits"] = Limits(**data["limits"])
    if "policy" in data:
        data["policy"] = _unpack_policy(data["policy"])
    if "llm" in data:
        data["llm"] = Llm(**data["llm"])
    if "search" in data:
        from planrun.model.search import Search  # few plans search

        parts = tuple([steps.unpacked(fields) for fields in data["search"].pop("parts")])
        data["search"] = Search(**{**data["search"], **({"parts": parts} if parts else {})})
    if "notify" in data:
        from planrun.model.notify import Target  # few plans notify

        data["notify"] = tuple([Target(**target) for target in data["notify"]])
    if "mcp" in data:
        from planrun.model.mcp import Server  # few plans have servers

        data["mcp"] = tuple([Server(**server) for server in data["mcp"]])
    if files:
        data["files"] = files
    return Plan(file=file, source=source, **data)


class _Steps:
    """The steps of one packed plan; equal edges are one edge."""

    def __init__(self, records: dict[str, tuple[str, bool]]) -> None:
        self._edges: dict[tuple[str, str], Edge] = {}
        self._records = {
            name: getattr(model, kind) for name, (kind, is_list) in records.items() if not is_list
        }
        self._lists = {name: getattr(model, kind) for name, (kind, is_list) in records.items() if is_list}

    def unpacked(self, fields: dict[str, Any]) -> Step:
        """Return the step with these fields."""
        action = fields["action"]
        if fields["kind"] == "group":
            self._unpack_group(action)
        fields["action"] = kind_of(fields["kind"]).unpacked(action)
        if "edges" in fields:
            known = self._edges
            fields["edges"] = tuple([known.get(pair) or self._edge(pair) for pair in fields["edges"]])
        for name, record in self._records.items():
            if name in fields:
                fields[name] = record(**fields[name])
        for name, record in self._lists.items():
            if name in fields:
                fields[name] = tuple([record(**each) for each in fields[name]])
        if "verify" in fields:
            fields["verify"] = tuple([kind_of(kind).unpacked(action) for kind, action in fields["verify"]])
        if "hooks" in fields:
            fields["hooks"] = tuple([_unpack_hook(hook) for hook in fields["hooks"]])
        if "rollback" in fields:
            fields["rollback"] = self._unpack_rollback(fields["rollback"])
        return Step(**fields)

    def _unpack_rollback(self, rollback: dict[str, Any]) -> Rollback:
        if "more" in rollback:
            rollback["more"] = tuple([self.unpacked(undo) for undo in rollback["more"]])
        return Rollback(**{**rollback, "undo": self.unpacked(rollback["undo"])})

    def _unpack_group(self, action: dict[str, Any]) -> None:
        if "params" in action:
            action["params"] = tuple([Param(**param) for param in action["params"]])
        if action.get("template") is not None:
            action["template"] = self.unpacked(action["template"])

    def _edge(self, pair: tuple[str, str]) -> Edge:
        edge = self._edges[pair] = Edge(on=pair[0], kind=pair[1])  # type: ignore[arg-type]  # packed from an edge
        return edge


def _unpack_hook(fields: dict[str, Any]) -> model.Hook:
    kind, action = fields["action"]
    return model.Hook(**{**fields, "action": kind_of(kind).unpacked(action)})


def _unpack_policy(fields: dict[str, Any]) -> Policy:
    from planrun.model.policy import Match, Policy, Rule  # most plans have none

    if "rules" in fields:
        fields["rules"] = tuple(
            [Rule(**{**rule, "match": Match(**rule["match"])}) for rule in fields["rules"]]
        )
    for name in ("sandbox", "llm_sandbox"):
        if name in fields:
            fields[name] = model.Sandbox(**fields[name])
    return Policy(**fields)
