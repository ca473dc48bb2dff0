"""A Taskfile as a plan: the wanted tasks, and what they call."""

from __future__ import annotations

from planrun.app.converting.draft import DraftPlan
from planrun.app.converting.findings import UntranslatableError
from planrun.app.converting.reading import Reader, is_nothing, text_of
from planrun.app.converting.taskfile.commands import Call, options_of
from planrun.app.converting.taskfile.tasks import Emission
from planrun.app.converting.taskfile.values import Scope, joined, outside, value_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from planrun.app.converting.findings import Findings
    from planrun.source.node import Node

_KNOWN = frozenset((
    "version", "output", "method", "includes", "vars", "env", "tasks", "silent", "dotenv", "run", "interval", "set",
    "shopt", "failfast",
))  # fmt: skip
DEFAULT = "default"
# As near as a plan comes to a shell without options: each command has to say itself that its failure counts.
SHELL = "bash --norc"


def convert_taskfile(root: Node, found: Findings, jobs: Collection[str] = ()) -> DraftPlan:
    """Return the plan that a Taskfile becomes; `jobs` are the wanted tasks, none: `default`."""
    reader, plan = Reader(found), DraftPlan()
    list(reader.unknown(reader.mapping(root, "a Taskfile"), _KNOWN, root, "the Taskfile"))
    version = text_of(root.get("version"))
    if not version.startswith("3"):
        found.refuse(
            "version", f"version {version or 'unknown'} of the Taskfile; planrun knows 3", root.key("version")
        )
    tasks = reader.mapping(root.get("tasks"), "`tasks`")
    top = Scope(plan, found, reader.mapping(root.get("vars"), "`vars`"))
    emission = Emission(plan, reader, tasks, top)
    emission.has_includes = not is_nothing(root.get("includes"))
    _head(root, emission)
    ends: list[str] = []
    for name in jobs or _wanted(root, emission):
        ends += emission.call(Call(task=name, place=root.key("tasks")), [])
    if "CLI_ARGS" in plan.params:
        plan.keys.setdefault("env", {})["CLI_ARGS"] = "${{ params.CLI_ARGS }}"
    return plan


def _wanted(root: Node, emission: Emission) -> list[str]:
    if DEFAULT in emission.tasks or DEFAULT in emission.aliases:
        return [DEFAULT]
    names = ", ".join(list(emission.tasks)[:30])
    message = f"there is no task `{DEFAULT}`: say by --job which are wanted; there are {names}"
    emission.found.refuse("shape", message, root.key("tasks"))
    return []


def _head(root: Node, emission: Emission) -> None:
    """Convert what stands above the tasks."""
    plan, found, reader = emission.plan, emission.found, emission.reader
    plan.keys["defaults"] = {"shell": SHELL, "timeout": "24h"}
    found.differs(
        "shell", "commands are for bash; go-task has a shell of its own that is nearly the same", root
    )
    found.differs("timeout", "a step has 24 hours; go-task lets a command run as long as it takes", root)
    message = "`env` wins over the caller's variables here; and what looks like a credential is not inherited"
    found.differs("environment", message, root)
    emission.first += options_of(root, reader)
    env: dict[str, str] = {}
    for name, node in reader.mapping(root.get("env"), "`env`").items():
        try:
            value = value_of(name, node, emission.top)
            if value.is_shell:
                emission.first += [line for line in value.lines if line not in emission.first]
                same = value.text == f"${{{name}}}"
                emission.first.append(f"export {name}" if same else f'export {name}="{value.text}"')
            else:
                env[name] = value.text
        except UntranslatableError as why:
            found.refuse(why.code, f"{why.message} (variable {name})", node)
    if env:
        plan.keys["env"] = env
    files = []
    for text in reader.texts(root.get("dotenv"), "`dotenv`"):
        try:
            files.append(outside(joined(root, emission.top, text), "a file"))
        except UntranslatableError as why:
            found.refuse(why.code, f"{why.message} (dotenv)", root.key("dotenv"))
    if files:
        plan.keys["env_file"] = files
        message = "a file of variables has to be there, and wins over the caller's environment"
        found.differs("dotenv", message, root.key("dotenv"))
