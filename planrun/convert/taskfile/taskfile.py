"""The tasks of a Taskfile and of those that it includes, by the names that they are called by.

A Taskfile as a plan: the wanted tasks, and what they call.
"""

from __future__ import annotations

import os
import posixpath
import re

from planrun.convert.choice import choose, tell
from planrun.convert.draft import DraftPlan, DraftStep
from planrun.convert.reader import Reader, UntranslatableError, is_nothing, text_of, truth_of
from planrun.convert.taskfile.commands import Call, options_of
from planrun.convert.taskfile.tasks import Emission, Known, Source
from planrun.convert.taskfile.values import Scope, joined, outside, value_of
from planrun.errors import InvalidInput
from planrun.plan.yaml.document import read_tree
from planrun.plan.yaml.file import read_source
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from planrun.convert.reader import Findings
    from planrun.plan.yaml.node import Node

MAX_FILES = 100
"""Files that one Taskfile includes, with those that they include."""
NAMES = tuple(
    f"{name}.{ending}"
    for name in ("Taskfile", "taskfile", "Taskfile.dist", "taskfile.dist")
    for ending in ("yml", "yaml")
)
"""What go-task looks for in a folder, in its order but for the endings."""
_KNOWN = frozenset((
    "version", "output", "method", "includes", "vars", "env", "tasks", "silent", "dotenv", "run", "interval", "set",
    "shopt", "failfast", "use_gitignore",
))  # fmt: skip
_OF_INCLUDE = frozenset((
    "taskfile", "dir", "optional", "internal", "flatten", "aliases", "vars", "excludes", "checksum", "use_gitignore",
))  # fmt: skip


class Gathered:
    """All tasks by their full names, other names for them, and names whose files cannot be read, with the reason."""

    def __init__(self) -> None:
        self.tasks: dict[str, Known] = {}
        self.aliases: dict[str, str] = {}
        self.lost: dict[str, str] = {}
        self.files = 0


def gather(
    root: Node, source: Source, gathered: Gathered, chain: tuple[str, ...], leave_out: tuple[str, ...] = ()
) -> None:
    """Add the tasks of a file and of what it includes; `chain` are the files that lead to it."""
    reader = source.reader
    reader.ignored(reader.mapping(root, "a Taskfile"), _KNOWN, root, "the Taskfile")
    version = text_of(root.get("version"))
    if not version.startswith("3"):
        message = f"version {version or 'unknown'} of the Taskfile; planrun knows 3"
        reader.found.refuse("version", message, root.key("version"))
    if truth_of(root.get("use_gitignore")):
        message = "`use_gitignore`: files that git ignores are not left out of `inputs`"
        reader.found.differs("use-gitignore", message, root.key("use_gitignore"))
    for name, node in reader.mapping(root.get("tasks"), "`tasks`").items():
        if name in leave_out:
            continue
        gathered.tasks.setdefault(f"{source.prefix}{name}", Known(node=node, source=source))
        if node.kind == MAPPING:
            for alias in reader.texts(node.get("aliases"), "`aliases`"):
                gathered.aliases[f"{source.prefix}{alias}"] = f"{source.prefix}{name}"
    for name, node in reader.mapping(root.get("includes"), "`includes`").items():
        _include(name, node, source, gathered, chain)


def _include(name: str, node: Node, source: Source, gathered: Gathered, chain: tuple[str, ...]) -> None:
    reader, members = source.reader, node.value if node.kind == MAPPING else {}
    if node.kind == MAPPING:
        reader.ignored(members, _OF_INCLUDE, node, f"the include {name}")
    prefix = source.prefix if truth_of(members.get("flatten")) else f"{source.prefix}{name}:"
    place = members.get("taskfile", node)
    try:
        path = _path(place, source, chain[-1])
        if path is None and truth_of(members.get("optional")):
            return
        root, own = _read(path, place, source, chain, gathered)
        folder = members.get("dir")
        where = source.folder
        if not is_nothing(folder) and folder is not None:
            where = posixpath.join(where, outside(joined(folder, source.top, text_of(folder)), "a folder"))
        top = _scope(
            root,
            members,
            own,
            source,
            os.path.dirname(os.path.relpath(own.found.file, os.path.dirname(chain[0]))),
        )
        first = [*source.first, *_environment(root, own, top)]
    except UntranslatableError as why:
        gathered.lost[prefix] = why.message
        if prefix == source.prefix:  # no name shows which tasks are missing
            reader.found.refuse("includes", f"the include {name}: {why.message}", node)
        return
    inner = Source(
        reader=own,
        top=top,
        prefix=prefix,
        folder=posixpath.normpath(where) if where else "",
        first=tuple(first),
    )
    for alias in reader.texts(members.get("aliases"), "`aliases`"):
        gathered.aliases[f"{source.prefix}{alias}"] = f"{source.prefix}{name}"
    excluded = tuple(reader.texts(members.get("excludes"), "`excludes`"))
    gather(root, inner, gathered, (*chain, own.found.file), excluded)


def _path(place: Node, source: Source, includer: str) -> str | None:
    """Return the file that an include names, None where there is none; raises UntranslatableError."""
    if place.kind != SCALAR:
        raise UntranslatableError("includes", "an include names a file")
    text = outside(joined(place, source.top.fixed(), text_of(place)), "the name of an included file")
    if "://" in text or text.startswith("git@") or "${{" in text:
        raise UntranslatableError("includes", f"it is in a file that is fetched from elsewhere: {text}")
    path = os.path.join(os.path.dirname(includer), os.path.expanduser(text))
    if os.path.isdir(path):
        path = next(
            (os.path.join(path, name) for name in NAMES if os.path.isfile(os.path.join(path, name))), path
        )
    return path if os.path.isfile(path) else None


def _read(
    path: str | None, place: Node, source: Source, chain: tuple[str, ...], gathered: Gathered
) -> tuple[Node, Reader]:
    """Return the tree of an included file and a reader for it; raises UntranslatableError."""
    if path is None:
        raise UntranslatableError("includes", f"it is in a file that is not there: {text_of(place)}")
    gathered.files += 1
    if gathered.files > MAX_FILES or any(
        os.path.realpath(path) == os.path.realpath(other) for other in chain
    ):
        raise UntranslatableError(
            "includes", f"it is in a file that includes itself, or too many: {text_of(place)}"
        )
    path = os.path.normpath(path)
    try:
        root, problems, complete = read_tree(read_source(path, "file"), path, "file")
    except InvalidInput as error:
        raise UntranslatableError("includes", f"it is in a file that cannot be read: {error}") from None
    if root is None or problems or not complete:
        raise UntranslatableError("includes", f"it is in a file that is no valid YAML: {path}")
    return root, Reader(source.reader.found.of(path))


def _scope(root: Node, members: Mapping[str, Node], own: Reader, source: Source, folder: str) -> Scope:
    """Return what the tasks of an included file see: what it is given, its own variables, and those of its includer."""
    top = Scope(source.top.plan, own.found, {**source.top.shared, **own.mapping(root.get("vars"), "`vars`")})
    top.folder = folder
    top.given = dict(source.top.given)
    top.choices = source.top.choices
    top.by_shell = {*source.top.by_shell, *own.mapping(root.get("env"), "`env`")}
    for name, node in source.reader.mapping(members.get("vars"), "`vars`").items():
        top.given[name] = value_of(name, node, source.top)
    return top


def _environment(root: Node, reader: Reader, top: Scope) -> list[str]:
    """Return the lines that set the environment of an included file; what is known now goes into the plan."""
    lines: list[str] = []
    for name, node in reader.mapping(root.get("env"), "`env`").items():
        value = value_of(name, node, top)
        lines += value.lines
        quoted = re.sub(r'(["\\`])', r"\\\1", value.text)
        lines.append(f'export {name}="{value.text if value.is_shell else quoted}"')
    return lines


DEFAULT = "default"
# The closest equivalent of a shell without options: each command has to state itself that its failure counts.
SHELL = "bash --norc"
_LISTS = re.compile(
    r"(?:@?(?:go-)?task|['\"]?\{\{ *\.TASK_EXE *\}\}['\"]?)"
    r"(?: +(?:-l|-a|-la|--list|--list-all|--sort[ =]\w+|--color(?:[ =]\w+)?|-[tfds] \S+))+"
)


def convert_taskfile(root: Node, found: Findings, jobs: Collection[str] = ()) -> DraftPlan:
    """Return the plan that a Taskfile becomes; `jobs` are the wanted tasks, none: `default`."""
    reader, plan = Reader(found), DraftPlan()
    top = Scope(plan, found, reader.mapping(root.get("vars"), "`vars`"))
    first = _head(root, plan, reader, top)
    source = Source(reader=reader, top=top, first=tuple(first))
    gathered = Gathered()
    gather(root, source, gathered, (found.file,))
    emission = Emission(
        plan, gathered.tasks, gathered.aliases, gathered.lost, os.path.dirname(found.file) or "."
    )
    wanted = list(jobs) or _default(emission)
    if wanted:
        for name in wanted:
            emission.call(Call(task=name, place=root.key("tasks")), [], source)
    else:
        _all(root, emission, source)
    if not plan.steps and gathered.lost and not emission.tasks:
        found.refuse(
            "includes", f"all tasks are elsewhere: {next(iter(gathered.lost.values()))}", root.key("includes")
        )
    if not plan.steps and emission.tasks and not found.is_refused:
        name = (wanted or list(emission.tasks))[0]  # tasks that run nothing
        plan.add(DraftStep(plan.name(name.replace(":", ".")), validate=[{"that": True}]))
    if "CLI_ARGS" in plan.params:
        plan.keys.setdefault("env", {})["CLI_ARGS"] = "${{ params.CLI_ARGS }}"
    return plan


def _default(emission: Emission) -> list[str]:
    """Return the task that runs by itself; none where there is none, or one that only lists the others."""
    name = DEFAULT if DEFAULT in emission.tasks else emission.aliases.get(DEFAULT, "")
    known = emission.tasks.get(name)
    if known is None or _only_lists(known.node):
        return []
    return [name]


def _only_lists(task: Node) -> bool:
    commands = task.value if task.kind == SEQUENCE else [task]
    if task.kind == MAPPING:
        if not is_nothing(task.get("deps")):
            return False
        found = task.get("cmds") or task.get("cmd")
        commands = [] if found is None else found.value if found.kind == SEQUENCE else [found]
    texts = [text_of(each.get("cmd") if each.kind == MAPPING else each).strip() for each in commands]
    return bool(texts) and all(map(_LISTS.fullmatch, texts))


def _all(root: Node, emission: Emission, source: Source) -> None:
    """Convert all tasks that can be called; a parameter chooses one."""
    found, plan = source.reader.found, emission.plan
    emission.is_choice = True
    ends: dict[str, list[str]] = {}
    for name, known in emission.tasks.items():
        is_listed = not (known.node.kind == MAPPING and truth_of(known.node.get("internal")))
        if not is_listed or name == DEFAULT:
            continue
        if "*" in name:
            message = f"the task {name}: its name is a pattern; it is left out where no task calls it"
            found.differs("task", message, root.key("tasks"))
            continue
        last = emission.call(Call(task=name, place=root.key("tasks")), [], source)
        if not last:  # a task without commands, or for another system: go-task runs nothing, either
            last = [plan.add(DraftStep(plan.name(name.replace(":", ".")), validate=[{"that": True}])).id]
        ends[name] = last
    if len(ends) > 1:
        why = (
            "the task `default` only lists the others"
            if DEFAULT in emission.tasks
            else "there is no task `default`"
        )
        tell(found, choose(plan, ends), why, root.key("tasks"))


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
                top.by_shell.add(name)
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
