"""A Taskfile as a plan: the wanted tasks, and what they call."""

from __future__ import annotations

from planrun.app.converting.draft import DraftPlan
from planrun.app.converting.findings import UntranslatableError
from planrun.app.converting.reading import Reader, truth_of
from planrun.app.converting.taskfile.commands import Call, options_of
from planrun.app.converting.taskfile.including import Gathered, gather
from planrun.app.converting.taskfile.tasks import Emission, Source
from planrun.app.converting.taskfile.values import Scope, joined, outside, value_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from planrun.app.converting.findings import Findings
    from planrun.source.node import Node

DEFAULT = "default"
# As near as a plan comes to a shell without options: each command has to say itself that its failure counts.
SHELL = "bash --norc"


def convert_taskfile(root: Node, found: Findings, jobs: Collection[str] = ()) -> DraftPlan:
    """Return the plan that a Taskfile becomes; `jobs` are the wanted tasks, none: `default`."""
    reader, plan = Reader(found), DraftPlan()
    top = Scope(plan, found, reader.mapping(root.get("vars"), "`vars`"))
    first = _head(root, plan, reader, top)
    source = Source(reader=reader, top=top, first=tuple(first))
    gathered = Gathered()
    gather(root, source, gathered, (found.file,))
    emission = Emission(plan, gathered.tasks, gathered.aliases, gathered.lost)
    ends: list[str] = []
    for name in jobs or _wanted(root, emission, found):
        ends += emission.call(Call(task=name, place=root.key("tasks")), [], source)
    if "CLI_ARGS" in plan.params:
        plan.keys.setdefault("env", {})["CLI_ARGS"] = "${{ params.CLI_ARGS }}"
    return plan


def _wanted(root: Node, emission: Emission, found: Findings) -> list[str]:
    if DEFAULT in emission.tasks or DEFAULT in emission.aliases:
        return [DEFAULT]
    shown = [
        name for name, known in emission.tasks.items() if truth_of(known.node.get("internal")) is not True
    ]
    names = ", ".join(shown[:30]) + (f" and {len(shown) - 30} more" if len(shown) > 30 else "")
    message = f"there is no task `{DEFAULT}`: name the tasks that you want by --job; there are {names}"
    found.refuse("shape", message, root.key("tasks"))
    return []


def _head(root: Node, plan: DraftPlan, reader: Reader, top: Scope) -> list[str]:
    """Convert what stands above the tasks; returns the lines that every script begins with."""
    found = reader.found
    plan.keys["defaults"] = {"shell": SHELL, "timeout": "24h"}
    found.differs(
        "shell", "commands are for bash; go-task has a shell of its own that is nearly the same", root
    )
    found.differs("timeout", "a step has 24 hours; go-task lets a command run as long as it takes", root)
    message = "`env` wins over the caller's variables here; and what looks like a credential is not inherited"
    found.differs("environment", message, root)
    first = options_of(root, reader)
    env: dict[str, str] = {}
    for name, node in reader.mapping(root.get("env"), "`env`").items():
        try:
            value = value_of(name, node, top)
            if value.is_shell:
                first += [line for line in value.lines if line not in first]
                same = value.text == f"${{{name}}}"
                first.append(f"export {name}" if same else f'export {name}="{value.text}"')
            else:
                env[name] = value.text
        except UntranslatableError as why:
            found.refuse(why.code, f"{why.message} (variable {name})", node)
    if env:
        plan.keys["env"] = env
    files = []
    for text in reader.texts(root.get("dotenv"), "`dotenv`"):
        try:
            files.append(outside(joined(root, top, text), "a file"))
        except UntranslatableError as why:
            found.refuse(why.code, f"{why.message} (dotenv)", root.key("dotenv"))
    if files:
        plan.keys["env_file"] = files
        message = "a file of variables has to be there, and wins over the caller's environment"
        found.differs("dotenv", message, root.key("dotenv"))
    return first
