"""A Taskfile as a plan: the wanted tasks with what they call, of the file and of those that it includes."""

from __future__ import annotations

import os
import posixpath
import re

from planrun.convert.choice import choose, tell
from planrun.convert.draft import DraftPlan, DraftStep
from planrun.convert.reader import Findings, Reader, UntranslatableError, is_nothing, text_of, truth_of
from planrun.convert.recipes.scripts import TOP_FINDINGS
from planrun.convert.taskfile.tasks import Emission, File, Task
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

_SIMPLE_LINE = re.compile(  # of a file of variables: what planrun reads as go-task does
    r"""\s*(?:\#.*)?|\s*(?:export\s+)?\w+=(?:[^\s'"$`\\#]*|'[^'$]*'|"[^"$\\`]*")\s*(?:\s\#.*)?"""
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
            place = tasks.key(name)
            self.tasks.setdefault(f"{file.prefix}{name}", Task(f"{file.prefix}{name}", node, place, file))
            for alias in reader.texts(node.get("aliases"), "`aliases`") if node.kind == MAPPING else ():
                self.aliases[f"{file.prefix}{alias}"] = f"{file.prefix}{name}"
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
            raise UntranslatableError(
                "includes", f"it is in a file that includes itself, or too many: {text}"
            )
        try:
            root, problems, complete = read_tree(read_source(path, "file"), path, "file")
        except InvalidInput as error:
            raise UntranslatableError("includes", f"it is in a file that cannot be read: {error}") from None
        if root is None or problems or not complete:
            raise UntranslatableError("includes", f"it is in a file that is no valid YAML: {path}")
        folder = posixpath.join(file.folder, file.fixed(text_of(members.get("dir"))))
        inner = File(
            root,
            Reader(file.reader.found.of(path)),
            file,
            prefix=prefix,
            folder=posixpath.normpath(folder) if folder else "",
        )
        inner.given = dict(file.reader.mapping(members.get("vars"), "`vars`"))
        inner.is_internal = truth_of(members.get("internal")) is True or file.is_internal
        if not is_nothing(root.get("dotenv")):
            inner.unsure = "its file has `dotenv`"
        self.add(inner, (*chain, path), file.reader.texts(members.get("excludes"), "`excludes`"))


def convert_taskfile(root: Node, found: Findings, jobs: Collection[str] = ()) -> DraftPlan:
    """Return the plan that a Taskfile becomes; `jobs` are the wanted tasks, none: `default`."""
    found.differs(
        "shell", "commands are for bash; go-task has a shell of its own that is nearly the same", root
    )
    for code, message in TOP_FINDINGS:
        found.differs(code, message.format("go-task"), root)
    plan = DraftPlan()
    try:
        _convert(root, found, jobs, plan)
    except (RecursionError, UntranslatableError) as why:
        found.refuse("too-large", str(why) or "the file is nested too deeply", root)
    return plan


def _convert(root: Node, found: Findings, jobs: Collection[str], plan: DraftPlan) -> None:
    reader = Reader(found)
    file = File(root, reader, None)
    file.params = plan.params
    gathered = Gathered()
    gathered.add(file, (found.file,))
    version = text_of(root.get("version"))
    if not version.startswith("3"):
        file.unsure = f"the version of the Taskfile is {version or 'unknown'}; planrun knows 3"
    emission = Emission(plan, gathered.tasks, gathered.aliases, gathered.lost)
    plan.keys["defaults"] = {"shell": "bash -e", "timeout": "24h"}
    _variables_of_files(file, plan)
    tasks = gathered.tasks
    name = "default" if "default" in tasks else gathered.aliases.get("default", "")
    callable_ = [
        each for each, task in tasks.items()
        if not task.is_internal and each != name and "*" not in each
    ]  # fmt: skip
    emission.is_choice = not jobs and (not name or _only_lists(tasks[name].node))
    emission.begin(file)
    if not emission.is_choice:
        for each in jobs or [name]:
            if emission.find(each) is None and not any(each.startswith(prefix) for prefix in gathered.lost):
                found.refuse(
                    "task", f'there is no task "{each}"; there are {", ".join(list(tasks)[:30])}', root
                )
                return
            emission.top(each)
        if callable_ and not jobs:
            others = f"{', '.join(callable_[:20])}{' …' if len(callable_) > 20 else ''}"
            found.differs("task", f"only {name} is converted; --job converts {others}", root.key("tasks"))
    else:
        ends = {each: emission.top(each) for each in callable_}
        if len(ends) > 1:
            why = "the task `default` only lists the others" if name else "there is no task `default`"
            tell(found, choose(plan, ends), why, root.key("tasks"))
    for prefix, why in gathered.lost.items() if not tasks else ():  # all tasks are elsewhere
        step = DraftStep(plan.name(prefix.strip(":") or "includes"))
        step.make_abstract(
            found.todo(
                "includes", f"the tasks of {prefix or 'an include'}: {why}", root.key("includes"), step.id
            )
        )
        plan.add(step)


def _variables_of_files(file: File, plan: DraftPlan) -> None:
    """Give the plan the files of variables: the first of several counts, as in go-task."""
    names = file.reader.texts(file.root.get("dotenv"), "`dotenv`")
    place, found = file.root.key("dotenv") if names else file.root, file.reader.found
    kept = []
    try:
        for name in map(file.fixed, names):
            path = os.path.join(os.path.dirname(found.file), os.path.expanduser(name))
            if not os.path.isfile(path):
                found.todo(
                    "dotenv",
                    f"the file {name} is not there: where it is to be read, add it to `env_file`",
                    place,
                )
                continue
            lines = read_source(path, "file").decode("utf-8", "replace").split("\n")
            if not all(map(_SIMPLE_LINE.fullmatch, lines)):
                raise UntranslatableError(
                    "dotenv", f"{name} has lines that go-task reads otherwise than planrun"
                )
            kept.append(name)
    except (UntranslatableError, InvalidInput) as why:
        file.unsure = getattr(why, "message", str(why))
        found.todo("dotenv", f"it makes all tasks uncertain: {file.unsure}", place)
        return
    if kept:
        plan.keys["env_file"] = kept[::-1]
        found.differs(
            "dotenv", "a file of variables has to be there, and wins over the caller's environment", place
        )


def _only_lists(task: Node) -> bool:
    commands = task.value if task.kind == SEQUENCE else [task]
    if task.kind == MAPPING:
        if not is_nothing(task.get("deps")):
            return False
        found = task.get("cmds") or task.get("cmd")
        commands = [] if found is None else found.value if found.kind == SEQUENCE else [found]
    texts = [text_of(each.get("cmd") if each.kind == MAPPING else each).strip() for each in commands]
    return bool(texts) and all(map(_LISTS.fullmatch, texts))
