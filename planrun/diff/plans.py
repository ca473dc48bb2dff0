"""Steps and plans as plain data in the terms of the plan language, without defaults.

Where a new policy allows more than the old one, in sentences.

Compares two plans step by step and key by key; no other module does.

It compares the canonical forms, so a difference is exactly what changes the digest. Then it converts the difference to
the terms of the plan language.

A difference in one line for each step and part of the head: the output of a run that is resumed with an edited plan.
"""

from __future__ import annotations

from planrun.diff.differences import (
    PROSE,
    Change,
    Difference,
    StepChange,
    changes,
    edges_of,
    joined,
    moved,
    old_names,
)
from planrun.expressions.tree import spell
from planrun.model.plan import Group, source_text
from planrun.model.policy import Policy
from planrun.model.record import Record
from planrun.model.sandbox import tightened
from planrun.plan.compile.canonical import plain
from planrun.plan.keys.table import PLAN_FIELDS, STEP_FIELDS
from planrun.values import duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from planrun.model.plan import Param, Plan, Retry, Step
    from planrun.model.policy import Match

# Keys that every step has, with or without a value in the plan: a change from the default is a change of a value.
_ALWAYS = ("timeout", "on_failure", "section")


def of_step(step: Step) -> dict[str, Any]:
    """Return a step by the keys of the plan language; its id, place and risk are not among them."""
    is_group = step.kind == "group"
    found: dict[str, Any] = {"group": _group(step.grouping)} if is_group else step.action.by_keys()
    fields = plain(step)
    for name in dict.fromkeys((*_ALWAYS, *fields)):
        row = STEP_FIELDS.get(name)
        if row is not None and row.diff and not (step.group and name == "edges"):
            value = getattr(step, name)
            found[key(name)] = (
                _FORMS[row.form](value) if row.form in _FORMS else _spelled(fields.get(name, value))
            )
    if step.action.is_agent or (step.action.name and not step.action.is_script):  # they are the action's own
        found.pop("outputs", None)
    if step.service is not None:
        ready = {"run": found.pop("verify")[0]} if step.verify else {}
        found["service"] = True
        found["ready"] = {**ready, **{name: duration(value) for name, value in vars(step.service).items()}}
    if step.replan == "fatal":
        found["on_failure"] = f"replan when fatal, else {step.on_failure}"
    else:
        found["on_failure"] = "replan" if step.replan else step.on_failure
    if step.condition is not None:
        found["condition"] = step.condition_text.strip()
    return found


def _spelled(value: Any) -> Any:
    """Return data of the canonical form as a plan writes it: records without their names, one without keys as true."""
    if isinstance(value, list):
        return [_spelled(item) for item in value]
    if not isinstance(value, dict):
        return value
    found = {name: _spelled(item) for name, item in value.items() if name}
    return found if found or "" not in value else True


def said(step: Step) -> dict[str, Any]:
    """Return the keys of a step whose values are not the defaults."""
    return {
        name: value
        for name, value in of_step(step).items()
        if name not in _ALWAYS or getattr(step, name) != getattr(type(step), name)
    }


def of_plan(plan: Plan) -> dict[str, Any]:
    """Return the head of a plan by the keys of the plan language, without steps and policy."""
    found: dict[str, Any] = {"schedule": plan.schedule}
    for name, value in plain(plan).items():
        row = PLAN_FIELDS.get(name)
        if row is not None and row.diff:
            found[key(name)] = (
                _FORMS[row.form](getattr(plan, name)) if row.form in _FORMS else _spelled(value)
            )
    return found


def key(name: str) -> str:
    """Return the key of the plan language for a field of a step or plan."""
    row = STEP_FIELDS.get(name) or PLAN_FIELDS.get(name)
    return (row.under or row.key or name) if row is not None else name


def of_policy(plan: Plan) -> dict[str, Any]:
    """Return the policy of a plan by the keys of the plan language; without one, nothing."""
    policy = plan.policy
    if policy is None:
        return {}
    names = ("auto_approve", "llm_auto_approve", "ask_for")
    found: dict[str, Any] = {name: getattr(policy, name) for name in names}
    for name, value in vars(policy).items():
        if name not in (*names, "line", "rules", "notify", "plan_notify") and value:
            found[name] = _spelled(plain(value))
    if any(not rule.label for rule in policy.rules):
        found["rules"] = [{rule.verb: _words(rule.match)} for rule in policy.rules if not rule.label]
    return found


def _words(match: Record) -> dict[str, Any]:
    """Return matchers in the form of the plan: one word, or a list of words."""
    return {
        name: list(value) if len(value) != 1 else value[0] for name, value in vars(match).items() if value
    }


def _group(group: Group) -> dict[str, Any]:
    """Return the name for several steps; known members are shown themselves."""
    found: dict[str, Any] = {"form": group.form}
    for name, value in vars(group).items():
        if name == "members":
            found["instances"] = list(value)
        elif name in ("items", "key"):
            found[name] = spell(value)
        elif name == "axes":
            found |= {axis: spell(each) if isinstance(each, tuple) else each for axis, each in value.items()}
        elif name not in ("form", "params", "template"):
            found[name] = _spelled(plain(value))
    return found | (said(group.template) if group.template else {})


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
    if retry.delays:
        pauses = {"delays": [duration(each) for each in retry.delays], "jitter": retry.jitter}
    found: dict[str, Any] = {"max": retry.max}
    if any(name in vars(retry) for name in ("initial", "factor", "cap", "jitter", "delays")):
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
    return _in_words(vars(llm))


def _in_words(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings of a model with times as durations, those of agents included; extra fields stay as they are."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        if name in ("timeout", "planning_timeout", "suppress_for"):
            found[name] = duration(value)
        else:
            is_group = isinstance(value, dict) and name != "extra_body"
            found[name] = _in_words(value) if is_group else value
    return found


def _notify(targets: Any) -> list[Any]:
    return [target.as_written() for target in targets]


def _mcp(servers: Any) -> dict[str, Any]:
    return {server.name: server.as_written() for server in servers}


def _expected(checks: Any) -> list[str]:
    return [f"{check.kind}: {check.source}" for check in checks]


def _verified(actions: Any) -> list[Any]:
    return [value for action in actions for value in action.by_keys().values()]


def _hooked(hooks: Any) -> list[Any]:
    found = []
    for hook in hooks:
        fields: dict[str, Any] = {f"{hook.when}_step": hook.action.by_keys()}
        if "timeout" in vars(hook):
            fields["timeout"] = duration(hook.timeout)
        found.append({**fields, **({"on_failure": "fail"} if hook.fatal else {})})
    return found


def _undoing(rollback: Any) -> Any:
    """Return what undoes a step under the keys of the plan; its edges and its place follow from the rest."""
    found = [_undo(undo) for undo in rollback.undos]
    if rollback.on_failed:
        found[0]["on_failed"] = True
    return found if len(found) > 1 else found[0]


def _undo(undo: Step) -> dict[str, Any]:
    found: dict[str, Any] = undo.action.by_keys()
    for name in ("timeout", "env", "workdir", "shell"):
        if name in vars(undo):
            found[name] = _FORMS[STEP_FIELDS[name].form](vars(undo)[name])
    return found


# What a field is in the words of the plan language, by its form; everything else is as it is in the canonical form.
_FORMS: dict[str, Callable[[Any], Any]] = {
    "edges": _edges,
    "tree": spell,
    "retries": _retries,
    "seconds": duration,
    "template": source_text,
    "templates": _texts,
    "named": _named,
    "names": sorted,
    "command": " ".join,
    "checks": _expected,
    "commands": _verified,
    "hooks": _hooked,
    "rollback": _undoing,
    "params": _params,
    "limits": _limits,
    "llm": _llm,
    "notify": _notify,
    "mcp": _mcp,
}


LEVELS = ("none", "read-only", "low", "medium", "high")
_STRICT = {"deny": 2, "require": 1, "allow": 0}


def laxer(old: Plan, new: Plan) -> Iterator[str]:
    """Yield a sentence for each way in which the policy of the new plan allows what that of the old one did not."""
    before, after = old.policy or Policy(), new.policy or Policy()
    if old.policy is not None and new.policy is None:
        yield "the plan no longer has a policy"
    for name in ("auto_approve", "llm_auto_approve"):
        was, now = getattr(before, name), getattr(after, name)
        if LEVELS.index(now) > LEVELS.index(was):
            yield f"{name} goes from {was} to {now}"
    if before.ask_for == "plan" and after.ask_for != "plan":
        yield "the plan as a whole no longer needs an approval"
    for rule in before.rules:
        if rule.verb != "allow" and not any(
            _STRICT[other.verb] >= _STRICT[rule.verb] and _covers(other.match, rule.match)
            for other in after.rules
        ):
            yield f"what {rule.name} ({rule.verb}) restricted may now run more freely"
    for rule in after.rules:
        if rule.verb == "allow" and not any(
            other.verb == "allow" and _covers(other.match, rule.match) for other in before.rules
        ):
            yield f"{rule.name} (allow) allows steps that no rule allowed before"
    for name in ("sandbox", "llm_sandbox"):
        was, now = getattr(before, name), getattr(after, name)
        if was is not None and (now is None or tightened(was, now) != now.but(line=was.line)):
            yield f"`{name}` of the policy allows more, or something else"
        elif name == "llm_sandbox" and was is None and now is not None:
            yield "`llm_sandbox` now says how steps of a model are confined, instead of their risk class"
    for name in after.decisions:
        if name not in before.decisions:
            yield f'the policy now answers "{name}"'
        elif after.decisions[name] != before.decisions[name]:
            yield f'the policy now answers "{name}" in another way'


def _covers(wide: Match, narrow: Match) -> bool:
    """Whether whatever fits `narrow` surely fits `wide`: each of its matchers is the same, or one with more words."""
    for name, words in vars(wide).items():
        if not words:
            continue
        others = getattr(narrow, name)
        if name == "risk":
            # One level means a range, several mean exactly these.
            if words != others:
                return False
        elif not others or not set(others) <= set(words):
            return False
    return True


SPELLED = "spelled differently, which changes the digest"
_NAMED = ("env", "outputs")  # texts by name, templates among them
_NOT_SHOWN = frozenset(("", "id", "needs_dir", "group", "instance"))


def compare(old: Plan | None, new: Plan | None, renamed: Mapping[str, str] | None = None) -> Difference:
    """Return the differences; None means an absent plan.

    `renamed`: the old id by the new one of steps that are the same under another id.
    """
    was = dict(renamed or {})
    steps = [*_steps(old, new, was)]
    if old is None or new is None:
        return Difference(steps=tuple(steps), **_whole(old, new))
    head = tuple(_of_head(old, new))
    policy = tuple(_of_policy(old, new))
    return Difference(
        plan=head, policy=policy, laxer=tuple(laxer(old, new)) if policy else (), steps=tuple(steps)
    )


def _whole(old: Plan | None, new: Plan | None) -> dict[str, Any]:
    """Return head and policy of a plan that is new, or gone, as a whole."""
    describers = {"plan": of_plan, "policy": of_policy}
    found = {}
    for name, describe in describers.items():
        before, after = (describe(plan) if plan else {} for plan in (old, new))
        path = ("policy",) if name == "policy" else ()
        found[name] = tuple(changes(before, after, path))
    return found


def _steps(old: Plan | None, new: Plan | None, was: dict[str, str]) -> Iterator[StepChange]:
    before = {step.id: step for step in old.steps} if old else {}
    after = {step.id: step for step in new.steps} if new else {}
    pairs = {name: was.get(name, name) for name in after}
    # A number that another step took over names nothing that stayed.
    taken = set(was.values())
    stayed = {name: now for name, now in pairs.items() if now in before and (name in was or now not in taken)}
    kept = set(stayed.values())
    for step in before.values():
        if step.id not in kept:
            yield StepChange(old=step, new=None, changes=tuple(changes(said(step), {})))
    still = {now: name for name, now in stayed.items() if before[now].section == after[name].section}
    new_order = [name for name, now in stayed.items() if now in still]
    places = moved(new_order, [still[now] for now in before if now in still])
    names = old_names(was) if was else was
    for name, step in after.items():
        if name not in stayed:
            yield StepChange(old=None, new=step, changes=tuple(changes({}, said(step))))
            continue
        found = tuple(_of_steps(before[stayed[name]], step, names))
        if found or name in was or name in places:
            yield StepChange(old=before[stayed[name]], new=step, changes=found, after=places.get(name))


def _of_steps(old: Step, new: Step, was: dict[str, str]) -> Iterator[Change]:
    before, after = plain(old), plain(new)
    names = [
        name for name in joined(after, before) if before.get(name) != after.get(name) and name != "edges"
    ]
    # By their ids edges may look the same and mean another step, or the other way round.
    if edges_of(old, {}) != edges_of(new, was):
        names.append("edges")
    names = [name for name in names if name not in _NOT_SHOWN]
    if not names:
        return
    keys = joined([key for name in names for key in _keys(name, old, new)], ())
    keys_old, keys_new = of_step(old), of_step(new)
    if "edges" in names:
        edges = keys_old.get("depends_on", {})
        now = {old: new for new, old in was.items() if old}
        keys_old["depends_on"] = {now.get(on, on): kind for on, kind in edges.items()}
    yield from _of_keys(keys, (keys_old, keys_new), (before, after))


def _keys(name: str, old: Step, new: Step) -> tuple[str, ...]:
    """Return the keys of a field in the plan language."""
    if name in ("action", "kind"):
        kinds = tuple(kind for kind in (old.kind, new.kind) if kind != "abstract")
        return _of_calls(kinds, old, new) if "tool" in kinds else kinds
    return (key(name),)


def _of_calls(kinds: tuple[str, ...], old: Step, new: Step) -> tuple[str, ...]:
    """Return which of the two keys of a call differ, with the key of another action beside it."""
    before, after = of_step(old), of_step(new)
    return tuple(key for key in (*kinds, "args") if before.get(key) != after.get(key)) or kinds


def _of_keys(
    keys: list[str],
    sides: tuple[dict[str, Any], dict[str, Any]],
    exact: tuple[dict[str, Any], dict[str, Any]],
) -> Iterator[Change]:
    """Yield the changes under keys that are known to differ, each at least once."""
    old, new = ({key: side[key] for key in keys if key in side} for side in sides)
    found = [change for change in changes(old, new) if not _same_text(change, exact)]
    seen = {change.path[0] for change in found}
    found += [
        Change(path=(key,), sign="~", old=old.get(key), new=new.get(key), note=SPELLED)
        for key in keys
        if key not in seen and (key in old or key in new)
    ]
    order = {key: number for number, key in enumerate(keys)}
    yield from sorted(found, key=lambda change: order[change.path[0]])


def _same_text(change: Change, exact: tuple[dict[str, Any], dict[str, Any]]) -> bool:
    """Whether a text by name means the same, and is only spelled another way."""
    if change.sign != "~" or len(change.path) != 2 or change.path[0] not in _NAMED:
        return False
    old, new = (side.get(change.path[0], {}).get(change.path[1]) for side in exact)
    return bool(old == new)


def _of_head(old: Plan, new: Plan) -> Iterator[Change]:
    before, after = plain(old), plain(new)
    names = [name for name in joined(after, before) if before.get(name) != after.get(name)]
    keys = [key(name) for name in names if name != "policy"]
    yield from _of_keys(keys, (of_plan(old), of_plan(new)), (before, after))


def _of_policy(old: Plan, new: Plan) -> Iterator[Change]:
    if plain(old.policy) == plain(new.policy):
        return
    found = list(changes({"policy": of_policy(old)}, {"policy": of_policy(new)}))
    yield from found or [Change(path=("policy",), sign="~", note=SPELLED)]


# Parts of the head that have entries; the run says itself what its plan is called and which version it is.
_PARTS = frozenset(("env", "params", "limits", "llm", "outputs", "policy"))
_APART = frozenset(("name", "version"))


def change_lines(old: Plan, new: Plan) -> Iterator[str]:
    """Yield a line for each step that is new, gone or changed, and for each part of the head that changed.

    What only people read does not count.
    """
    found = compare(old, new)
    for kind in ("added", "removed", "changed"):
        yield from filter(None, map(_line, found.of(kind)))
    yield from dict.fromkeys(
        filter(None, [_lines_of_head(change) for change in (*found.plan, *found.policy)])
    )


def _line(step: StepChange) -> str:
    if step.kind == "added":
        return f'+ step "{step.step.id}" is new'
    if step.kind == "removed":
        return f'- step "{step.step.id}" is gone'
    keys = [change.path[0] for change in step.changes if change.path[0] not in PROSE]
    named = ["finally" if key == "section" else key for key in dict.fromkeys(keys)]
    return f'~ step "{step.step.id}": {", ".join(named)}' if named else ""


def _lines_of_head(change: Change) -> str:
    part = change.path[0]
    if part in PROSE or part in _APART:
        return ""
    if part not in _PARTS or len(change.path) == 1:
        return f"~ {part}"
    sign = change.sign if len(change.path) == 2 else "~"
    return f"{sign} {part}.{change.path[1]}"
