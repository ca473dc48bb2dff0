"""Steps and plans as plain data in the words of the plan language, defaults that say nothing left out."""

from __future__ import annotations

from planrun.expressions.spelling import spell
from planrun.model.plan import Exec, Group, Run, Shell, Tool, Validate
from planrun.model.record import Record
from planrun.plan.compile.canonical import plain
from planrun.reports.describe import duration, source_args, source_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from planrun.model.plan import Param, Plan, Retry, Step

# Not told: where a thing stands, what follows from the rest, and what has a place of its own in a difference.
_OF_STEP = frozenset(("", "id", "kind", "action", "needs_dir", "on_failure", "replan", "group", "instance"))
_OF_PLAN = frozenset(("", "policy"))
# What every step has, whether the plan says it or not: a change from the default is a change of a value.
_ALWAYS = ("timeout", "on_failure", "section")


def of_step(step: Step) -> dict[str, Any]:
    """Return a step by the keys of the plan language; its id, place and risk are not among them."""
    found: dict[str, Any] = dict(_action(step))
    fields = plain(step)
    for name in dict.fromkeys((*_ALWAYS, *fields)):
        if name not in _OF_STEP and not (step.group and name == "edges"):
            found[key(name)] = _FORMS[name](getattr(step, name)) if name in _FORMS else fields.get(name)
    if isinstance(step.action, Tool):  # they are the tool's
        found.pop("outputs", None)
    if step.service is not None:
        ready = {"run": found.pop("verify")[0]} if step.verify else {}
        found["service"] = True
        found["ready"] = {**ready, **{name: duration(value) for name, value in vars(step.service).items()}}
    found["on_failure"] = _on_failure(step)
    if step.condition is not None:
        found["condition"] = step.condition_text.strip()
    return found


def _on_failure(step: Step) -> str:
    """Return what a failure means, by the key of the step or by what the plan says of its model."""
    if step.replan == "fatal":
        return f"replan when fatal, else {step.on_failure}"
    return "replan" if step.replan else step.on_failure


def said(step: Step) -> dict[str, Any]:
    """Return what a step says that is not what every step has that says nothing."""
    return {
        name: value
        for name, value in of_step(step).items()
        if name not in _ALWAYS or getattr(step, name) != getattr(type(step), name)
    }


def of_plan(plan: Plan) -> dict[str, Any]:
    """Return the head of a plan by the keys of the plan language, without steps and policy."""
    found: dict[str, Any] = {"schedule": plan.schedule}
    for name, value in plain(plan).items():
        if name not in _OF_PLAN:
            found[key(name)] = _HEAD[name](getattr(plan, name)) if name in _HEAD else value
    return found


def key(name: str) -> str:
    """Return the key of the plan language for a field of a step or plan."""
    return _KEYS.get(name, name)


def of_policy(plan: Plan) -> dict[str, Any]:
    """Return the policy of a plan by the keys of the plan language; without one, nothing."""
    policy = plan.policy
    if policy is None:
        return {}
    names = ("auto_approve", "llm_auto_approve", "ask_for")
    found: dict[str, Any] = {name: getattr(policy, name) for name in names}
    for name, value in vars(policy).items():
        if name not in (*names, "line", "rules") and value:
            found[name] = plain(value)
    if any(not rule.label for rule in policy.rules):
        found["rules"] = [{rule.verb: _words(rule.match)} for rule in policy.rules if not rule.label]
    return found


def _words(match: Record) -> dict[str, Any]:
    """Return matchers as the plan has them: one word, or a list of words."""
    return {
        name: list(value) if len(value) != 1 else value[0] for name, value in vars(match).items() if value
    }


def _action(step: Step) -> dict[str, Any]:
    what = step.action
    if isinstance(what, Shell):
        return {"tool": what.name, "args": {"command": source_text(what.script)}}
    if isinstance(what, Run):
        return {"run": source_text(what.script)}
    if isinstance(what, Tool):
        return {"tool": what.name, **({"args": source_args(what.args)} if what.args else {})}
    if isinstance(what, Exec):
        return {"exec": [source_text(word) for word in what.argv]}
    if isinstance(what, Validate):
        return {"validate": [_check(check) for check in what.checks]}
    if isinstance(what, Group):
        return {"group": _group(what)}
    return {step.kind: _record(what)} if step.kind != "abstract" else {}


def _group(group: Group) -> dict[str, Any]:
    """Return what stands for several steps; those that are known are told themselves."""
    found: dict[str, Any] = {"form": group.form}
    for name, value in vars(group).items():
        if name == "members":
            found["instances"] = list(value)
        elif name in ("items", "key"):
            found[name] = spell(value)
        elif name == "axes":
            found |= {axis: spell(each) if isinstance(each, tuple) else each for axis, each in value.items()}
        elif name not in ("form", "params", "template"):
            found[name] = plain(value)
    return found | (said(group.template) if group.template else {})


def _check(check: Any) -> dict[str, Any]:
    if check.kind == "that":
        return {"that": check.source}
    if check.kind != "json_schema":
        return {check.kind: _texts(check.value)}
    schema = check.value["schema"]
    told = plain(schema) if isinstance(schema, dict) else source_text(schema)
    return {check.kind: {"file": source_text(check.value["file"]), "schema": told}}


def _record(record: Record) -> dict[str, Any]:
    """Return an action that is a mapping in the plan, too."""
    return {name: _of_action(name, value) for name, value in vars(record).items() if value is not None}


def _of_action(name: str, value: Any) -> Any:
    if name == "question":
        return source_text(value)
    if name == "timeout":
        return duration(value)
    if name == "options":
        # By label, so that an option that changed is told as one that changed.
        return {option.label: _option(option) for option in value}
    return plain(value)


def _option(option: Any) -> dict[str, Any]:
    found = {
        "value": plain(option.value),
        "description": option.description,
        "when": spell(option.when) if option.when else "",
    }
    return {name: value for name, value in found.items() if value not in (None, "")}


def _edges(edges: Any) -> dict[str, str]:
    kinds: dict[str, list[str]] = {}
    for edge in edges:
        kinds.setdefault(edge.on, []).append("ok" if edge.kind == "open" else edge.kind)
    return {on: " and ".join(sorted(found)) for on, found in sorted(kinds.items())}


def _retries(retry: Retry) -> dict[str, Any]:
    pauses = {
        "initial": duration(retry.initial),
        "factor": retry.factor,
        "max": duration(retry.cap),
        "jitter": retry.jitter,
    }
    found: dict[str, Any] = {"max": retry.max}
    if any(name in vars(retry) for name in ("initial", "factor", "cap", "jitter")):
        found["backoff"] = pauses
    if "on" in vars(retry):
        found["on"] = [_rule(rule) for rule in retry.on]
    return found


def _rule(rule: tuple[Any, ...]) -> Any:
    if rule[0] == "exit":
        return {"exit": list(rule[1])}
    if rule[0] == "match":
        return {"match": rule[1]}
    return rule[1] if rule[0] == "class" else rule[0]


def _texts(values: Any) -> list[str]:
    return [source_text(value) for value in values]


def _named(values: Any) -> dict[str, str]:
    return {name: source_text(value) for name, value in sorted(values.items())}


def _params(params: tuple[Param, ...]) -> dict[str, Any]:
    found = {}
    for param in params:
        required = {"required": True} if param.required else {}
        found[param.name] = plain({**param.schema, **required})
    return found


def _limits(limits: Any) -> dict[str, Any]:
    return {
        name: duration(value) if name == "deadline" else value
        for name, value in vars(limits).items()
        if value is not None
    }


def _llm(llm: Any) -> dict[str, Any]:
    return {
        name: duration(value) if name in ("timeout", "planning_timeout") else value
        for name, value in vars(llm).items()
    }


def _expected(checks: Any) -> list[str]:
    return [f"{check.kind}: {check.source}" for check in checks]


def _verified(actions: Any) -> list[Any]:
    return [
        source_text(action.script) if isinstance(action, Run) else _texts(action.argv) for action in actions
    ]


def _undoing(rollback: Any) -> dict[str, Any]:
    """Return what undoes a step under the keys of the plan; its edges and its place follow from the rest."""
    action = rollback.undo.action
    if isinstance(action, Tool):
        found: dict[str, Any] = {"tool": action.name, "args": dict(action.args)}
    else:
        found = (
            {"run": source_text(action.script)} if isinstance(action, Run) else {"exec": _texts(action.argv)}
        )
    for name in ("timeout", "env", "workdir", "shell"):
        if name in vars(rollback.undo):
            found[name] = _FORMS[name](vars(rollback.undo)[name])
    return {**found, "on_failed": True} if rollback.on_failed else found


# Fields of the records under other names than the keys of the plan.
_KEYS = {
    "edges": "depends_on",
    "declared_risk": "risk",
    "replan": "on_failure",
    "inherit_env": "defaults.inherit_env",
}
_FORMS: dict[str, Callable[[Any], Any]] = {
    "edges": _edges,
    "condition": spell,
    "section": str,
    "retries": _retries,
    "timeout": duration,
    "idle_timeout": duration,
    "verify_timeout": duration,
    "env": _named,
    "env_file": _texts,
    "secrets": sorted,
    "workdir": source_text,
    "shell": " ".join,
    "expect": _expected,
    "verify": _verified,
    "rollback": _undoing,
}
_HEAD: dict[str, Callable[[Any], Any]] = {
    "params": _params,
    "outputs": _named,
    "env": _named,
    "env_file": _texts,
    "secrets": sorted,
    "optional_secrets": sorted,
    "limits": _limits,
    "llm": _llm,
}
