"""Steps that run in a container: checked, compiled, and what a container adds to the risk of a step."""

from __future__ import annotations

from planrun.model.plan import Container
from planrun.plan.keys.formulas import container_places
from planrun.plan.keys.outline import Link, entries, members, scalar
from planrun.plan.yaml.node import MAPPING, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.model.plan import Text
    from planrun.plan.keys.checked import Checked
    from planrun.plan.keys.outline import Included, Outline, RawStep

_ACTS = ("run", "exec")
_DIGEST = "@sha256:"
_PULLS = "an image that is not there is fetched from a registry"


def take(outline: Outline, _included: Included) -> None:
    """Put what stands under `containers` into the steps that name it, and report names that are not there."""
    known = dict(members(outline.root.get("containers")))
    for name, each in known.items():
        _check_setup(outline, name, each)
    for raw in outline.steps:
        node, named = raw.keys.get("container"), _name_of(raw)
        if node is None or named is None:
            continue
        held = known.get(named.value)
        if held is None or held.kind != MAPPING:
            hint = outline.nearest(named.value, known) or "declare it at the top level: `containers: {…}`"
            outline.report("E293", f'unknown container "{named.value}"', named, hint)
        elif len(node.value) > 1:
            other = next(key for key in node.value if key != "shared")
            message = f'`{other}` is not allowed with `shared` in step "{raw.id}"'
            outline.report(
                "E293", message, node.key(other), "write it under `containers`: its steps share it"
            )
        else:
            whole = Node(MAPPING, {**held.value, "shared": named}, node.line, node.col)
            whole.keys = {**held.keys, **node.keys}
            outline.stands_like(whole, node)
            raw.keys = {**raw.keys, "container": whole}
            _wait_for_setup(outline, raw, held, named)


def _name_of(raw: RawStep | None) -> Node | None:
    """Return the name of the shared container that a step runs in."""
    node = raw.keys.get("container") if raw is not None else None
    return scalar(node.get("shared")) if node is not None else None


def _wait_for_setup(outline: Outline, raw: RawStep, held: Node, named: Node) -> None:
    """Have a step wait for those that prepare its container; what waits for them in turn is a cycle."""
    before = [node.value for node in entries(held.get("setup"))]
    if raw.id in before or raw.section != "steps":
        return
    known = {link.on for link in raw.links}
    for name in before:
        other = _name_of(outline.by_id.get(name))
        if name not in known and other is not None and other.value == named.value:
            per = scalar(held.get("per"))
            both = all(
                not each.keys.keys().isdisjoint(("matrix", "foreach")) for each in (raw, outline.by_id[name])
            )
            same = both and per is not None and per.value == "instance"
            raw.links.append(Link(name, "ok", named, "same" if same else "map"))


def _check_setup(outline: Outline, name: str, held: Node) -> None:
    """Report steps that are to prepare a container and do not run in it."""
    for node in entries(held.get("setup")):
        raw = outline.by_id.get(node.value)
        named = _name_of(raw)
        if named is None or named.value != name:
            message = f'no step "{node.value}" runs in the container "{name}"'
            outline.report("E293", message, node, "" if raw else outline.suggest(node.value))


def check(checked: Checked) -> None:
    """Report containers of steps that start no process of their own, and what goes with none or with no shared one."""
    outline = checked.outline
    of_instances = {
        id(formula.node)
        for formula in checked.formulas.listed
        if any(reference.path[0] in ("matrix", "item") for reference in formula.references)
    }
    for raw in outline.steps:
        node = raw.keys.get("container")
        if node is None:
            continue
        if not any(action in raw.keys for action in _ACTS):
            what = "a tool runs inside planrun" if "tool" in raw.keys else "it starts no process"
            message = f'step "{raw.id}" cannot run in a container: {what}'
            outline.report("E293", message, raw.node.key("container"), "`container` requires `run` or `exec`")
        if node.get("shared") is not None:
            _check_shared(outline, raw, node, of_instances)
        elif node.kind == MAPPING and node.get("image") is None:
            message = f'"image" is missing in "container" of step "{raw.id}"'
            outline.report("E102", message, node, "or name a container under `containers` by `shared`")


def _check_shared(outline: Outline, raw: RawStep, node: Node, of_instances: set[int]) -> None:
    """Report what cannot go with a container that outlives the step."""
    for key, why in (
        ("service", "a service has a container of its own: write its image here"),
        ("cache", "changes inside the container cannot be restored"),
    ):
        said = raw.keys.get(key)
        if said is not None and (said.kind == MAPPING or said.value.lower() != "false"):
            message = f'`{key}` is not allowed with a shared container in step "{raw.id}"'
            outline.report("E293", message, raw.node.key(key), why)
    per = scalar(node.get("per"))
    if per is None or per.value != "instance":
        for place, _ in container_places(node):
            if id(place) in of_instances:
                name = node.value["shared"].value
                message = f'the container "{name}" reads values of an instance, but all instances share it'
                outline.report("E293", message, place, "add `per: instance`")


def _container(checked: Checked, step: RawStep, node: Node) -> dict[str, Any]:
    """Return the field about a container; a scalar is the image alone, and an empty one none."""
    formulas = checked.formulas
    image = node if node.kind != MAPPING else node.value["image"]
    if not image.value:
        return {}
    if node.kind != MAPPING:
        return {"container": Container(image=formulas.text(node))}
    fields: dict[str, Any] = {"image": formulas.text(node.value["image"])}
    if "env" in node.value:
        fields["env"] = formulas.texts(node.value["env"])
    if "volumes" in node.value:
        fields["volumes"] = formulas.words(node.value["volumes"])
    if "user" in node.value:
        fields["user"] = formulas.text(node.value["user"])
    if "network" in node.value:
        fields["network"] = node.value["network"].value
    for key in ("shared", "per"):
        if key in node.value:
            fields[key] = node.value[key].value
    if step.id in [each.value for each in entries(node.get("setup"))]:
        fields["setup"] = True
    return {"container": Container(**fields)}


COMPILE = {"container": _container}


def least(container: Container) -> tuple[str, str]:
    """Return the least risk of a step in a container, and why; what is known only later counts as the worst."""
    for volume in container.volumes:
        if _is_of_host(volume):
            return "high", "its container gets files of this machine"
    if container.network not in ("", "none", "bridge"):
        return "high", "its container is on a network of this machine"
    if isinstance(container.image, str) and _DIGEST in container.image:
        return "read-only", ""
    return "medium", _PULLS


def _is_of_host(volume: Text) -> bool:
    """Say whether a volume is, or may be, a path of this machine; a name of letters and digits is a volume's own."""
    if not isinstance(volume, str):
        return True
    source = volume.partition(":")[0] if ":" in volume else ""
    return not source.replace("-", "").replace("_", "").replace(".", "a").isalnum() or source.startswith(".")
