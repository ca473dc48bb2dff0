"""A Taskfile as a plan: the wanted tasks with what they call, of the file and of those that it includes."""

from __future__ import annotations

import os
import posixpath
import re

from planrun.convert.draft import DraftPlan, DraftStep
from planrun.convert.reader import Findings, Reader, UntranslatableError, is_nothing, text_of, truth_of
from planrun.convert.recipes.scripts import env_files
from planrun.convert.recipes.sequence import emit, is_known
from planrun.convert.taskfile.tasks import Emission, Task
from planrun.convert.taskfile.values import File
from planrun.errors import InvalidInput
from planrun.plan.yaml.document import read_tree
from planrun.plan.yaml.file import read_source
from planrun.plan.yaml.node import MAPPING, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

MAX_FILES = 100  # that one Taskfile includes, with those that they include
NAMES = tuple(
    f"{name}.{ending}"
    for name in ("Taskfile", "taskfile", "Taskfile.dist", "taskfile.dist")
    for ending in ("yml", "yaml")
)  # what go-task looks for in a folder
_KNOWN = frozenset((
    "version", "output", "method", "includes", "vars", "env", "tasks", "silent", "dotenv", "run", "interval", "set",
    "shopt", "failfast", "use_gitignore",
))  # fmt: skip
_OF_INCLUDE = frozenset((
    "taskfile", "dir", "optional", "internal", "flatten", "aliases", "vars", "excludes", "checksum", "use_gitignore",
))  # fmt: skip
_LISTS = re.compile(
    r"(?:@?(?:go-)?task|['\"]?\{\{ *\.TASK_EXE *\}\}['\"]?)"
    r"(?: +(?:-l|-a|-la|--list|--list-all|--sort[ =]\w+|--color(?:[ =]\w+)?|-[tfds] \S+))+"
)


class Gathered:
    """All tasks by their full names, other names for them, and beginnings of names whose files cannot be read."""

    def __init__(self) -> None:
        self.tasks: dict[str, Task] = {}
        self.aliases: dict[str, str] = {}
        self.lost: dict[str, str] = {}
        self.files = 0

    def add(self, file: File, chain: tuple[str, ...], excluded: Collection[str] = ()) -> None:
        """Add the tasks of a file and of what it includes; `chain` are the files that lead to it."""
        reader, root = file.reader, file.root
        reader.ignored(reader.mapping(root, "a Taskfile"), _KNOWN, root, "the Taskfile")
        tasks = root.get("tasks") or root
        for name, node in reader.mapping(root.get("tasks"), "`tasks`").items():
            if name in excluded:
                continue
            place, full = tasks.key(name), f"{file.prefix}{name}"
            self.tasks.setdefault(full, Task(full, node, place, file))
            for alias in reader.texts(node.get("aliases"), "`aliases`") if node.kind == MAPPING else ():
                self.aliases[f"{file.prefix}{alias}"] = full
        for name, node in reader.mapping(root.get("includes"), "`includes`").items():
            members = node.value if node.kind == MAPPING else {}
            reader.ignored(members, _OF_INCLUDE, node, f"the include {name}")
            prefix = file.prefix if truth_of(members.get("flatten")) else f"{file.prefix}{name}:"
            for alias in reader.texts(members.get("aliases"), "`aliases`"):
                self.aliases[f"{file.prefix}{alias}"] = f"{file.prefix}{name}"
            try:
                self._include(node, prefix, file, chain)
            except UntranslatableError as why:
                self.lost[prefix] = why.message
                if prefix == file.prefix or not truth_of(members.get("optional")):
                    reader.found.todo("includes", f"the include {name}: {why.message}", node)

    def _include(self, node: Node, prefix: str, file: File, chain: tuple[str, ...]) -> None:
        """Add one included file; raises UntranslatableError."""
        members = node.value if node.kind == MAPPING else {}
        text = file.fixed(text_of(members.get("taskfile", node)))
        if "://" in text or text.startswith("git@"):
            raise UntranslatableError("includes", f"it is in a file that is fetched from elsewhere: {text}")
        path = os.path.normpath(os.path.join(os.path.dirname(chain[-1]), os.path.expanduser(text)))
        if os.path.isdir(path):
            path = next((each for end in NAMES if os.path.isfile(each := os.path.join(path, end))), path)
        if not os.path.isfile(path):
            if truth_of(members.get("optional")):
                return
            raise UntranslatableError("includes", f"it is in a file that is not there: {text}")
        self.files += 1
        if self.files > MAX_FILES or any(os.path.realpath(path) == os.path.realpath(each) for each in chain):
            message = f"it is in a file that includes itself, or too many: {text}"
            raise UntranslatableError("includes", message)
        try:
            root, problems, complete = read_tree(read_source(path, "file"), path, "file")
        except InvalidInput as error:
            raise UntranslatableError("includes", f"it is in a file that cannot be read: {error}") from None
        if root is None or problems or not complete:
            raise UntranslatableError("includes", f"it is in a file that is no valid YAML: {path}")
        folder = posixpath.join(file.folder, file.fixed(text_of(members.get("dir"))))
        folder = posixpath.normpath(folder) if folder else ""
        inner = File(root, Reader(file.reader.found.of(path)), file, prefix=prefix, folder=folder)
        inner.given = dict(file.reader.mapping(members.get("vars"), "`vars`"))
        inner.is_internal = truth_of(members.get("internal")) is True or file.is_internal
        if not is_nothing(root.get("dotenv")):
            inner.unsure = "its file has `dotenv`"
        self.add(inner, (*chain, path), file.reader.texts(members.get("excludes"), "`excludes`"))


def convert_taskfile(root: Node, found: Findings, jobs: Collection[str] = ()) -> DraftPlan:
    """Return the plan that a Taskfile becomes; `jobs` are the wanted tasks, none: `default`."""
    message = "commands are for bash; go-task has a shell of its own that is nearly the same"
    found.differs("shell", message, root)
    plan = DraftPlan()
    file = File(root, Reader(found), None)
    file.params = plan.params
    gathered = Gathered()
    gathered.add(file, (found.file,))
    tasks = gathered.tasks
    version = text_of(root.get("version"))
    if not version.startswith("3"):
        file.unsure = f"the version of the Taskfile is {version or 'unknown'}; planrun knows 3"
    plan.keys["defaults"] = {"shell": "bash -e", "timeout": "24h"}
    place = root.key("dotenv") if root.get("dotenv") is not None else root
    try:  # the first of several files counts, as in go-task
        names = list(map(file.fixed, file.reader.texts(root.get("dotenv"), "`dotenv`")))
        if files := env_files(found, names, place):
            plan.keys["env_file"] = files[::-1]
    except UntranslatableError as why:
        file.unsure = why.message
        found.todo("dotenv", f"it makes all tasks uncertain: {why.message}", place)
    emission = Emission(plan, tasks, gathered.aliases, gathered.lost)
    default = emission.find("default")
    names = [*jobs] or ([] if default is None or _only_lists(default.node) else [default.name])
    others = [
        each for each, task in tasks.items()
        if not jobs and not task.is_internal and task is not default and "*" not in each
    ]  # fmt: skip
    known = [*tasks, *gathered.aliases]
    known += [name for name in names if name not in known and (
        emission.find(name) or any(map(name.startswith, gathered.lost)))]  # fmt: skip
    if not is_known(found, "task", names, known, root):
        return plan
    emission.is_choice = not names
    emission.begin(file)
    emit(plan, found, "task", wanted=names, others=others, run=emission.top, place=root.key("tasks"))
    for prefix, reason in gathered.lost.items() if not tasks else ():  # all tasks are elsewhere
        step = DraftStep(plan.name(prefix.strip(":") or "includes"))
        place = root.key("includes")
        step.leave(found, "includes", f"the tasks of {prefix or 'an include'}: {reason}", place)
        plan.add(step)
    return plan


def _only_lists(task: Node) -> bool:
    commands = task.value if task.kind == SEQUENCE else [task]
    if task.kind == MAPPING:
        if not is_nothing(task.get("deps")):
            return False
        found = task.get("cmds") or task.get("cmd")
        commands = [] if found is None else found.value if found.kind == SEQUENCE else [found]
    texts = [text_of(each.get("cmd") if each.kind == MAPPING else each).strip() for each in commands]
    return bool(texts) and all(map(_LISTS.fullmatch, texts))
