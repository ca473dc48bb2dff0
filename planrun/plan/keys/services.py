"""Steps that go on while others need them: `service` and `ready`, checked and compiled."""

from __future__ import annotations

from planrun.model.graph import find_cycles
from planrun.model.plan import Serving
from planrun.plan.keys.outline import members, scalar
from planrun.plan.kinds.command import Run
from planrun.plan.schema.forms import as_duration
from planrun.plan.yaml.node import MAPPING, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from planrun.plan.keys.checked import Checked
    from planrun.plan.keys.instances import Instances
    from planrun.plan.keys.outline import Outline, RawStep

MAX_SERVICES = 100
"""Services of a plan: for each of them it is worked out who needs it."""
_ACTS = ("run", "exec", "tool")
# Keys that mean nothing for a step that others end, and why.
_FOREIGN = {
    "produces": "a service is stopped when no step needs it, so it has no result",
    "outputs": "a service ends after all steps that need it, so no step can read them",
    "idle_timeout": "a service may be silent for any time",
    "expect": "a service is stopped, so it has no result to check; use `ready`",
    "verify": "a service is stopped, so it has no result to check; use `ready`",
}
_END = "\0end"  # follows the id of a service in what stands for its end


def is_service(raw: RawStep) -> bool:
    """Say whether a step continues to run while others need it."""
    word = scalar(raw.keys.get("service"))
    return word is not None and word.value.lower() == "true"


def check(checked: Checked) -> None:
    """Find the services; report what a service cannot be, and steps that would wait for ever because of one."""
    outline, groups = checked.outline, checked.groups
    checked.services = frozenset([raw.id for raw in outline.steps if is_service(raw)])
    found = [raw for raw in outline.unique if is_service(raw)]
    for raw in outline.steps:
        if "ready" in raw.keys and "service" in raw.keys and not is_service(raw):
            message = f'"ready" in step "{raw.id}", which is not a service'
            outline.report("E295", message, raw.node.key("ready"), "add `service: true`")
    for number, raw in enumerate(found, 1):
        if number > MAX_SERVICES:
            message = f"the plan has more than {MAX_SERVICES} services"
            outline.report("E241", message, raw.node.key("service"))
            return
        _check_keys(outline, raw, groups)
    services = {raw.id: raw for raw in found}
    ends = False
    needed: set[str] = set()
    for raw in outline.unique:
        for link in raw.links:
            if link.on not in services:
                continue
            if link.kind == "completed":
                needed.add(link.on)
                message = f'step "{raw.id}" depends on the service "{link.on}" as `completed`, which never completes'
                hint = "`ok` waits until it is ready, `done` and `failed` until it has ended"
                outline.report("E296", message, link.node, hint)
            elif link.kind == "ok":
                needed.add(link.on)
                _check_locks(outline, raw, services[link.on])
            else:
                ends = True
    for name, raw in services.items():
        if name not in needed:
            message = f'no step needs the service "{name}"'
            hint = "it is stopped when all other steps have ended"
            outline.report("W320", message, raw.node.key("service"), hint, severity="warning")
    if ends and not outline.tangled:
        _check_ends(outline, services)


def _check_keys(outline: Outline, raw: RawStep, groups: Mapping[str, Instances]) -> None:
    at = raw.node.key("service")
    if not any(action in raw.keys for action in _ACTS):
        hint = f"it requires {', '.join(_ACTS[:-1])} or {_ACTS[-1]}"
        outline.report("E295", f'step "{raw.id}" starts no process and cannot be a service', at, hint)
    for key, why in _FOREIGN.items():
        if key in raw.keys:
            message = f'"{key}" does not apply to the service "{raw.id}"'
            outline.report("E295", message, raw.node.key(key), why)
    alone = scalar(raw.keys.get("parallel"))
    if alone is not None and alone.value.lower() == "false":
        message = f'the service "{raw.id}" cannot have `parallel: false`: other steps run beside it'
        outline.report("E295", message, raw.node.key("parallel"))
    group = groups.get(raw.id)
    if group is not None and group.made is None:
        message = f'the instances of the service "{raw.id}" are not known before the run'
        outline.report("E295", message, group.node, "list them in the plan")


def _check_locks(outline: Outline, raw: RawStep, service: RawStep) -> None:
    held = _words(service.keys.get("lock"))
    common = [name for name in _words(raw.keys.get("lock")) if name in held]
    if common:
        message = (
            f'step "{raw.id}" and the service "{service.id}" that it needs have the same lock {common[0]}'
        )
        outline.report("E296", message, raw.node.key("lock"), "give the lock to one of the two")


def _words(node: Node | None) -> list[str]:
    if node is None or node.kind == MAPPING:
        return []
    each = node.value if isinstance(node.value, list) else [node]
    return [word.value for word in each if scalar(word) is not None]


def _check_ends(outline: Outline, services: Mapping[str, RawStep]) -> None:
    """Report steps that wait for the end of a service that runs until they end."""
    waits: dict[str, list[str]] = {}
    after: dict[str, list[str]] = {}
    for raw in outline.unique:
        waits[raw.id] = []
        for link in raw.links:
            if link.on in outline.by_id:
                is_end = link.on in services and link.kind != "ok"
                waits[raw.id].append(f"{link.on}{_END}" if is_end else link.on)
                after.setdefault(link.on, []).append(raw.id)
    for name in services:
        users = dict.fromkeys([other for other in after.get(name, ()) if name in waits[other]])
        waiting = list(users)
        for user in waiting:  # grows while it is walked
            fresh = [other for other in after.get(user, ()) if other not in users]
            users.update(dict.fromkeys(fresh))
            waiting += fresh
        waits[f"{name}{_END}"] = [name, *[f"{user}{_END}" if user in services else user for user in users]]
    for path in find_cycles({name: tuple(dict.fromkeys(found)) for name, found in waits.items()}):
        pairs = zip(path, [*path[1:], path[0]], strict=True)
        name, end = next(
            (name, other) for name, other in pairs if other.endswith(_END) and name in outline.by_id
        )
        service = end.removesuffix(_END)
        link = next(link for link in outline.by_id[name].links if link.on == service)
        message = f'deadlock: the service "{service}" runs until a step that waits for its end has ended'
        outline.report(
            "E296", message, link.node, "wait for another step, or remove the dependency on the service"
        )


def _service(checked: Checked, step: RawStep, _node: Node) -> dict[str, Any]:
    """Return the fields of a service: how its readiness is checked, and by which command."""
    if step.id not in checked.services:
        return {}
    fields: dict[str, Any] = {}
    found: dict[str, Any] = {}
    for key, node in members(step.keys.get("ready")):
        if key == "run":
            found["verify"] = (Run(script=checked.formulas.text(node, script=True)),)
        else:
            fields[key] = as_duration(node.value)
    return {**found, "service": Serving(**fields)}


COMPILE = {"service": _service}


def edges_of(checked: Checked, raw: RawStep) -> list[tuple[str, str]]:
    """Return the edges of a step: instead of the end of a service it waits until that is ready, all its instances."""
    found: dict[tuple[str, str], None] = {}
    for link in raw.links:
        group = checked.groups.get(link.on)
        if link.form == "same":
            found[link.on, "same"] = None
        elif link.on not in checked.services or link.kind != "ok":
            found[link.on, link.kind] = None
        elif group is None:
            found[link.on, "open"] = None
        else:
            found.update({(f"{link.on}[{each['instance']}]", "open"): None for each in group.made or ()})
    return list(found)
