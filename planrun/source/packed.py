"""A plan as plain data and back, for the cache. HOT: unpacking is most of what starting a large plan costs.

The data are dicts of the fields that were given, with records inside replaced by plain tuples. What depends on
where the plan was read from (`file`, `source`) is left out and given again by the reader.
"""

from __future__ import annotations

from planrun.model.plan import Abstract, Check, Edge, Exec, Limits, Param, Plan, Retry, Run, Step, Validate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ACTIONS: dict[str, type[Run | Exec | Validate | Abstract]] = {
    "run": Run,
    "exec": Exec,
    "validate": Validate,
    "abstract": Abstract,
}


def pack(plan: Plan) -> dict[str, Any]:
    """Return a plan as plain data."""
    fields = {name: value for name, value in vars(plan).items() if name not in ("file", "source")}
    fields["steps"] = [_pack_step(step) for step in plan.steps]
    if "params" in fields:
        fields["params"] = [vars(param) for param in plan.params]
    if "limits" in fields:
        fields["limits"] = vars(plan.limits)
    return fields


def _pack_step(step: Step) -> dict[str, Any]:
    fields = dict(vars(step))
    action = dict(vars(step.action))
    if isinstance(step.action, Validate):
        action["checks"] = tuple([vars(check) for check in step.action.checks])
    fields["action"] = action
    if "edges" in fields:
        fields["edges"] = tuple([(edge.on, edge.kind) for edge in step.edges])
    if "retries" in fields:
        fields["retries"] = vars(step.retries)
    return fields


def unpack(data: dict[str, Any], file: str, source: bytes) -> Plan:
    """Return the plan that was packed; takes `data` over and changes it."""
    edges: dict[tuple[str, str], Edge] = {}
    steps = []
    for fields in data["steps"]:
        action = fields["action"]
        if "checks" in action:
            action["checks"] = tuple([Check(**check) for check in action["checks"]])
        fields["action"] = _ACTIONS[fields["kind"]](**action)
        if "edges" in fields:
            fields["edges"] = tuple([edges.get(pair) or _edge(edges, pair) for pair in fields["edges"]])
        if "retries" in fields:
            fields["retries"] = Retry(**fields["retries"])
        steps.append(Step(**fields))
    data["steps"] = tuple(steps)
    if "params" in data:
        data["params"] = tuple([Param(**param) for param in data["params"]])
    if "limits" in data:
        data["limits"] = Limits(**data["limits"])
    return Plan(file=file, source=source, **data)


def _edge(edges: dict[tuple[str, str], Edge], pair: tuple[str, str]) -> Edge:
    found = edges[pair] = Edge(on=pair[0], kind=pair[1])  # type: ignore[arg-type]  # packed from an edge
    return found
