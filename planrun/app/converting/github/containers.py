"""`container` and `services` of a job: the image of its steps, and steps that keep running beside them."""

from __future__ import annotations

import re

from planrun.app.converting.draft import DraftStep, slug
from planrun.app.converting.findings import UntranslatableError
from planrun.app.converting.github.texts import template
from planrun.app.converting.github.variables import Variables
from planrun.app.converting.reading import text_of
from planrun.source.node import MAPPING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from planrun.app.converting.github.facts import Job, Workflow
    from planrun.app.converting.github.names import PlaceNames
    from planrun.source.node import Node

# What well-known images start by themselves; a step names its command.
_COMMANDS: Mapping[str, list[str]] = {
    "postgres": ["docker-entrypoint.sh", "postgres"],
    "postgis": ["docker-entrypoint.sh", "postgres"],
    "mysql": ["docker-entrypoint.sh", "mysqld"],
    "mariadb": ["docker-entrypoint.sh", "mariadbd"],
    "redis": ["docker-entrypoint.sh", "redis-server"],
    "valkey": ["docker-entrypoint.sh", "valkey-server"],
    "mongo": ["docker-entrypoint.sh", "mongod"],
    "memcached": ["docker-entrypoint.sh", "memcached"],
    "rabbitmq": ["docker-entrypoint.sh", "rabbitmq-server"],
}
_LEFT = ("ports", "options", "credentials", "command", "entrypoint")


def container_of(workflow: Workflow, node: Node, names: PlaceNames) -> dict[str, Any] | None:
    """Return the container that `container:` or an entry of `services:` describes; raises UntranslatableError."""
    if node.kind != MAPPING:
        image = text_of(node)
        return {"image": template(image, names)} if image else None
    image = text_of(node.get("image"))
    if not image:
        workflow.found.refuse("shape", "a container has an image", node)
        return None
    found: dict[str, Any] = {"image": template(image, names)}
    variables = Variables()
    variables.read(workflow.reader.mapping(node.get("env"), "`env`"), names)
    if variables.lines or variables.secrets:
        raise UntranslatableError("secret", "a secret in the environment of a container")
    if variables.env:
        found["env"] = variables.env
    volumes = [template(text, names) for text in workflow.reader.texts(node.get("volumes"), "`volumes`")]
    if volumes:
        found["volumes"] = volumes
    return found


def told_of(workflow: Workflow, node: Node, what: str) -> list[str]:
    """Return comments on what of a container is left to a person."""
    notes = []
    for key in _LEFT:
        value = node.get(key)
        if value is None:
            continue
        texts = workflow.reader.texts(value, f"`{key}`") if value.kind != MAPPING else list(value.value)
        message = f"{what} has `{key}: {' '.join(' '.join(texts).split())}`, for which a plan has no key"
        notes.append(workflow.found.todo("container", message, node.key(key)))
    return notes


def services_of(workflow: Workflow, job: Job, names: PlaceNames) -> list[DraftStep]:
    """Return a step for each service of a job."""
    found = []
    told = workflow.reader.mapping(job.node.get("services"), "`services`")
    if told and job.matrix is not None:
        message = f"all instances of {job.name} use the same services at the same time; see `lock:` of steps"
        workflow.found.differs("shared-services", message, job.node.key("services"))
    for name, node in told.items():
        step = DraftStep(workflow.plan.name(f"{job.label}.{slug(name) or 'service'}"))
        found.append(step)
        try:
            _fill(workflow, step, node, names)
        except UntranslatableError as why:
            step.make_abstract(workflow.found.refuse(why.code, why.message, node, step.id))
    return found


def _fill(workflow: Workflow, step: DraftStep, node: Node, names: PlaceNames) -> None:
    container = container_of(workflow, node, names)
    if container is None:
        step.make_abstract(workflow.found.todo("service", "a service without an image", node, step.id))
        return
    step.keys.update(service=True, container=container)
    step.notes += told_of(workflow, node, f"the service {step.id}")
    image = re.sub(r"[:@].*", "", container["image"]).rpartition("/")[2]
    command = _COMMANDS.get(image)
    if command is None:
        note = workflow.found.todo(
            "service", f"say what {container['image']} starts, by `exec:`", node, step.id
        )
        step.keys = {"title": step.id, "notes": f"service: image {container['image']}"}
        step.notes.append(note)
        return
    step.keys["exec"] = command
    health = re.search(r"--health-cmd[= ](?:\"([^\"]*)\"|'([^']*)'|(\S+))", text_of(node.get("options")))
    if health:
        step.notes.append(f"todo: its health check was: {' '.join(filter(None, health.groups()))}")
    message = f"say how {step.id} tells that it is ready, by `ready: {{run: …}}`"
    step.notes.append(workflow.found.todo("service", message, node, step.id))
