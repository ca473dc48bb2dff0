"""Tasks as steps: what a task needs comes first, its commands are one step, or several around calls of other tasks."""

from __future__ import annotations

import os
import posixpath
import re
import shlex
from itertools import product

from planrun.convert.draft import DraftStep, quoted
from planrun.convert.reader import UntranslatableError, data_of, is_nothing, text_of, truth_of
from planrun.convert.recipes.scripts import (
    NAME,
    SAFE,
    Command,
    Param,
    Piece,
    Shell,
    give,
    is_plain,
    joined,
    script_of,
)
from planrun.convert.taskfile.templates import Template, Text, pieces_of, shown
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from planrun.convert.draft import DraftPlan
    from planrun.convert.reader import Reader
    from planrun.convert.taskfile.templates import Budget

MAX_STEPS = 1000
MAX_DEPTH = 40  # of tasks that call each other
MAX_ITEMS = 100  # of one loop
_TASK = frozenset((
    "cmds", "cmd", "deps", "desc", "summary", "label", "aliases", "silent", "interactive", "internal", "vars", "env",
    "dir", "sources", "generates", "method", "status", "preconditions", "requires", "prompt", "run", "ignore_error",
    "platforms", "set", "shopt", "if", "prefix", "watch", "failfast", "dotenv", "use_gitignore",
))  # fmt: skip
_COMMAND = frozenset(
    ("cmd", "task", "vars", "silent", "ignore_error", "for", "defer", "platforms", "if", "interactive")
)
_NOT_KEPT = ("dotenv", "use_gitignore")
_OPTIONS = {"e": "errexit", "u": "nounset", "f": "noglob", "x": "xtrace", "a": "allexport", "n": "noexec"}


class File:
    """One Taskfile: its root, and what its includer gives it."""

    frozen: set[str]
    budget: Budget
    plan: DraftPlan

    def __init__(
        self, root: Node, reader: Reader, outer: File | None, *, prefix: str = "", folder: str = ""
    ) -> None:
        self.root, self.reader, self.outer = root, reader, outer
        self.prefix, self.folder = prefix, folder
        self.given: dict[str, Node] = {}
        self.is_internal = False
        self.unsure = outer.unsure if outer is not None else ""
        self.dynamic: dict[int, Param] = {}  # outputs of commands, by the nodes of their variables
        if outer is not None:
            self.frozen, self.budget, self.plan = outer.frozen, outer.budget, outer.plan

    def scope(self) -> Scope:
        """Return the variables of the file, and of those that include it."""
        layers = [(dict(self.reader.mapping(self.root.get("vars"), "`vars`")), self)]
        if self.outer is not None:
            outer = self.outer.scope()
            return Scope(self, [(self.given, self.outer), *layers, *outer.layers], {})
        return Scope(self, layers, {})

    def fixed(self, text: str) -> str:
        """Return a text that has to be known now, filled in; raises UntranslatableError."""
        scope = self.scope()
        return shown(scope.freeze(scope.fill(text)))


class Task:
    """A task, where it stands, and its file."""

    def __init__(self, name: str, node: Node, place: Node, file: File) -> None:
        self.name, self.node, self.place, self.file = name, node, place, file
        hidden = node.kind == MAPPING and truth_of(node.get("internal"))
        self.is_internal = bool(hidden) or file.is_internal


class Scope:
    """The variables that a text sees: `own` are values, `layers` variables of files, the nearest first."""

    def __init__(
        self, file: File, layers: list[tuple[dict[str, Node], File]], own: Mapping[str, Any]
    ) -> None:
        self.file, self.layers, self.own = file, layers, dict(own)

    def with_values(self, values: Mapping[str, Any]) -> Scope:
        """Return a scope that sees more."""
        return Scope(self.file, self.layers, {**self.own, **values})

    def fill(self, text: str) -> Any:
        """Return a text with its templates filled in; raises UntranslatableError."""
        if "{{" not in text:
            return text
        return Template(text, self.lookup, self.freeze, self.file.budget).value()

    def pieces(self, text: str) -> list[Piece]:
        """Return a text with its templates filled in, in pieces."""
        return pieces_of(self.fill(text))

    def freeze(self, value: Any) -> Any:
        """Return a value that has to be known now: parameters by their defaults; raises UntranslatableError."""
        if not isinstance(value, Text):
            return value
        for piece in value.pieces:
            if isinstance(piece, Param) and not piece.step and piece.name not in self.file.plan.params:
                self.file.frozen.add(piece.name)
        known = [
            piece.text if isinstance(piece, Param) and piece.name in self.file.frozen else piece
            for piece in value.pieces
        ]
        if not all(isinstance(piece, str) for piece in known):
            raise UntranslatableError("template", "what is known only when the plan runs decides it")
        return "".join(map(str, known))

    def lookup(self, name: str) -> Any:
        """Return a variable; one that is set nowhere is a variable of the environment."""
        if name in self.own:
            return self.own[name]
        for at, (variables, file) in enumerate(self.layers):
            if name in variables:  # it sees those that stand before it
                earlier = dict(list(variables.items())[: list(variables).index(name)])
                value = Scope(self.file, [(earlier, file), *self.layers[at + 1 :]], {}).value(
                    name, variables[name], file
                )
                is_root = at == len(self.layers) - 1
                fits = isinstance(value, str) and SAFE.match(value) and NAME.match(name) and is_root
                if fits and name not in self.file.frozen and name not in ("CLI_ARGS", "task"):
                    return Text(pieces=(Param(name=name, text=str(value)),))
                return value
        root = self.file
        while root.outer is not None:
            root = root.outer
        env = self.file.reader.mapping(root.root.get("env"), "`env`")
        if name in env and env[name].kind == SCALAR:
            return self.fill(text_of(env[name]))
        if name in ("ROOT_DIR", "USER_WORKING_DIR", "TASKFILE_DIR", "TASK_DIR"):
            inner = self.file.folder if name in ("TASKFILE_DIR", "TASK_DIR") else ""
            return Text(pieces=(Shell(text="${PLANRUN_WORKSPACE}"), *([f"/{inner}"] if inner else [])))
        if name == "CLI_ARGS":
            self.file.plan.params["CLI_ARGS"] = {"type": "array", "items": {"type": "string"}, "default": []}
            return Text(pieces=(Shell(text="${{ params.CLI_ARGS | sh }}", is_bare=True),))
        if not NAME.match(name) or name in ("CHECKSUM", "TIMESTAMP", "EXIT_CODE", "CLI_FORCE", "CLI_SILENT", "CLI_VERBOSE",
                                            "TASK_VERSION", "TASK_EXE", "TASK", "ALIAS", "MATCH", "ITEM", "KEY", "CLI_ARGS_LIST", "TASKFILE", "ROOT_TASKFILE"):  # fmt: skip
            raise UntranslatableError("template", f"`.{name}` is known to go-task alone")
        return Text(pieces=(Shell(text=f"${{{name}}}", reads=name),))

    def value(self, name: str, node: Node, file: File) -> Any:
        """Return what a variable is set to; raises UntranslatableError."""
        if node.kind == SEQUENCE:
            return [self.value(name, each, file) for each in node.value]
        if node.kind == SCALAR:
            value = data_of(node)
            return self.fill(value) if isinstance(value, str) else "" if value is None else value
        if "sh" in node.value:
            if id(node) not in file.dynamic:
                raise UntranslatableError("vars", f"the command of the variable {name} is not certain")
            return Text(pieces=(file.dynamic[id(node)],))
        if "map" in node.value:
            return {
                key: self.value(key, each, file)
                for key, each in file.reader.mapping(node.value["map"], "`map`").items()
            }
        if "ref" in node.value:
            return Template(
                f"{{{{{text_of(node.value['ref'])}}}}}", self.lookup, self.freeze, self.file.budget
            ).reference()
        if "value" in node.value:
            return self.value(name, node.value["value"], file)
        raise UntranslatableError("vars", f"the variable {name}")


class Emission:
    """Puts tasks into a plan as steps."""

    def __init__(
        self, plan: DraftPlan, tasks: Mapping[str, Task], aliases: Mapping[str, str], lost: Mapping[str, str]
    ) -> None:
        self.plan, self.tasks, self.aliases, self.lost = plan, tasks, aliases, lost
        self.is_choice = False
        self.first: list[str] = []  # the step that all others wait for
        self._pool: dict[tuple[Any, ...], list[list[str]]] = {}  # ends of tasks that other tops emitted
        self._used: dict[tuple[Any, ...], int] = {}
        self._once: dict[tuple[Any, ...], list[str]] = {}
        self._open: list[str] = []
        self._top = ""

    def begin(self, file: File) -> None:
        """Emit the steps that run the commands of the files' variables: go-task runs each once, before all."""
        for each in dict.fromkeys([file, *(task.file for task in self.tasks.values())]):
            members = [each.reader.mapping(each.root.get(name), f"`{name}`") for name in ("vars", "env")]
            try:
                self.first = self.dynamic(
                    f"{each.prefix}variables", each.scope(), {**members[0], **members[1]}, self.first, {}
                )
            except UntranslatableError as why:
                each.unsure = each.unsure or why.message

    def dynamic(
        self, name: str, scope: Scope, variables: Mapping[str, Node], after: list[str], keys: dict[str, Any]
    ) -> list[str]:
        """Emit the step that runs the commands of variables; returns what later steps wait for."""
        lines, outputs = [], {}
        commands = {
            key: node for key, node in variables.items() if node.kind == MAPPING and "sh" in node.value
        }
        if not commands:
            return after
        step = DraftStep(self.plan.name(name.replace(":", ".")), **keys)
        for key, node in commands.items():
            if not NAME.match(key):
                raise UntranslatableError("vars", f"the name of the variable {key}")
            script = script_of(scope.pieces(text_of(node.value["sh"]))).strip()
            lines.append(f"{key}=$({script})" if is_plain(script) else f"{key}=$(\nset -e\n{script}\n)")
            lines.append(f'printf \'{key}<<END\\n%s\\nEND\\n\' "${key}" >> "$PLANRUN_OUTPUT"')
            outputs[key] = "string"
            scope.file.dynamic[id(node)] = Param(name=key, step=step.id, may_skip=self.is_choice)
        step.keys |= {"run": "\n".join(lines) + "\n", "outputs": outputs}
        return self.add(step, after)

    def add(self, step: DraftStep, after: list[str]) -> list[str]:
        """Append a step that waits for others, with the outputs and parameters that it reads; returns its id."""
        for each in after:
            step.wait(each)
        files = dict.fromkeys(task.file for task in self.tasks.values())
        give(step, [param for file in files for param in file.dynamic.values()])
        root = next((file for file in files if file.outer is None), None)
        known = root.reader.mapping(root.root.get("vars"), "`vars`") if root is not None else {}
        for name in re.findall(r"params\.(\w+)", str(step.keys)):
            if name in known and name not in self.plan.params and root is not None:
                default = shown(root.scope().value(name, known[name], root))
                self.plan.params[name] = {"type": "string", "default": default}
        return [self.plan.add(step).id]

    def find(self, name: str) -> tuple[Task, list[str]] | None:
        """Return the task of a name, and what stands for the `*` of its own."""
        head, sign, rest = name.partition(":")
        name = self.aliases.get(
            name, f"{self.aliases[head]}:{rest}" if sign and head in self.aliases else name
        )
        if name in self.tasks:
            return self.tasks[name], []
        for pattern, task in self.tasks.items():
            match = "*" in pattern and re.fullmatch(re.escape(pattern).replace(r"\*", "(.*)"), name)
            if match:
                return task, list(match.groups())
        return None

    def top(self, name: str) -> list[str]:
        """Emit a task that a run names; returns the steps that it ends with."""
        self._used, self._once, self._top = {}, {}, name
        ends = self.call(name, {}, self.first, None)
        if ends == self.first:
            ends = self.add(
                DraftStep(self.plan.name(name.replace(":", ".")), validate=[{"that": True}]), self.first
            )
        return ends

    def call(self, name: str, given: Mapping[str, Any], after: list[str], caller: Task | None) -> list[str]:
        """Emit a task with the variables that it is given; returns the steps that it ends with."""
        full = (
            name.removeprefix(":")
            if name.startswith(":") or caller is None
            else f"{caller.file.prefix}{name}"
        )
        found = self.find(full)
        if found is None:
            prefix = next((each for each in self.lost if full.startswith(each)), None)
            why = self.lost[prefix] if prefix is not None else "there is no such task"
            step = DraftStep(self.plan.name(full.replace(":", ".")))
            found_in = (
                caller.file.reader.found
                if caller is not None
                else next(iter(self.tasks.values())).file.reader.found
            )
            place = caller.place if caller is not None else Node(SCALAR, "", 1, 1)
            step.make_abstract(found_in.todo("task", f"the task {full}: {why}", place, step.id))
            return self.add(step, after)
        task, match = found
        if len(self._open) > MAX_DEPTH or len(self.plan.steps) > MAX_STEPS or task.name in self._open:
            raise UntranslatableError(
                "too-large", f"the task {full} calls itself, or there are too many steps"
            )
        values = sorted(
            (name, repr(each) if isinstance(each, Text) else shown(each)) for name, each in given.items()
        )
        key = (task.name, tuple(match), tuple(values))
        run = text_of(task.node.get("run")) if task.node.kind == MAPPING else ""
        run = run or text_of(task.file.root.get("run"))
        once = {"once": (task.name,), "when_changed": key}.get(run)
        if once in self._once:
            return self._once[once]
        pool = self._pool.setdefault((*key, tuple(after)), [])
        number = self._used.get((*key, tuple(after)), 0)
        self._used[*key, tuple(after)] = number + 1
        if number == len(pool):
            self._open.append(task.name)
            pool.append(self._emit(task, match, given, after))
            self._open.pop()
        if once is not None:
            self._once[once] = pool[number]
        return pool[number]

    def _emit(self, task: Task, match: list[str], given: Mapping[str, Any], after: list[str]) -> list[str]:
        label = task.name if len(self._open) == 1 else f"{self._open[-2]}.{task.name}"
        label = label.replace(":", ".").replace("*", "-".join(match) or "x")
        if task.node.kind == MAPPING:
            platforms = task.file.reader.texts(task.node.get("platforms"), "`platforms`")
            if platforms and not _runs_here(platforms):
                task.file.reader.found.differs(
                    "other-machines", f"the task {task.name} is not for Linux", task.place
                )
                return after
        names = [task.name.replace(":", ".")] if label != task.name and not self.is_choice else []
        preferred = next(
            (each for each in names if "*" not in each and each.casefold() not in self.plan._taken), label
        )
        count = len(self.plan.steps)
        try:
            if task.file.unsure:
                raise UntranslatableError("task", task.file.unsure)
            return _Task(self, task, match, given, preferred).emit(after)
        except UntranslatableError as why:
            if why.code == "too-large":
                raise
            for step in self.plan.steps[count:]:
                self.plan.give_back(step.id)
            gone = {step.id for step in self.plan.steps[count:]}
            del self.plan.steps[count:]
            for table in (self._pool, self._once):
                for key in [key for key, value in table.items() if gone & {*map(str, _flat(value))}]:
                    del table[key]
            step = DraftStep(self.plan.name(preferred))
            step.node = task.place
            step.make_abstract(
                task.file.reader.found.todo(
                    why.code, f"the task {task.name}: {why.message}", task.place, step.id
                )
            )
            step.keys["description"] = _source(task)
            return self.add(step, after)


class _Task:
    """One task with its variables, while its steps are made."""

    def __init__(
        self, emission: Emission, task: Task, match: list[str], given: Mapping[str, Any], label: str
    ) -> None:
        self.emission, self.task, self.label = emission, task, label
        self.reader, self.node = task.file.reader, task.node
        self.keys: dict[str, Any] = {}
        values: dict[str, Any] = {"TASK": task.name, "MATCH": match, "ALIAS": task.name, **given}
        self.scope = task.file.scope().with_values(values)
        self.edges = 0

    def member(self, name: str) -> Node | None:
        """Return the value of a key of the task; None where it has none."""
        found = self.node.get(name) if self.node.kind == MAPPING else None
        return None if is_nothing(found) else found

    def emit(self, after: list[str]) -> list[str]:
        """Emit the steps; raises UntranslatableError where something is not certain."""
        reader, node = self.reader, self.node
        if node.kind == MAPPING:
            reader.ignored(node.value, _TASK, node, f"the task {self.task.name}")
            for name in _NOT_KEPT:
                if self.member(name) is not None:
                    raise UntranslatableError(name, f"it has `{name}`")
        self._folder()
        after = self._variables(after)
        self._environment()
        tolerated = truth_of(self.member("ignore_error")) is True
        guards = self._guards()
        if guards and self.member("if") is not None and self.member("deps") is not None:
            raise UntranslatableError("if", "a condition of a task that needs others")
        ends: list[str] = []
        for each in reader.items(self.member("deps"), "`deps`"):
            for name, given in self._calls(each):
                ends += self.emission.call(name, given, after, self.task)
        after = list(dict.fromkeys(ends)) or after
        prompts = reader.texts(self.member("prompt"), "`prompt`")
        for text in prompts:
            ask = {"question": " ".join(shown(self.scope.freeze(self.scope.fill(text))).split())}
            after = self._add(DraftStep(self._name("ask"), ask=ask), after)
        nodes = node.value if node.kind == SEQUENCE else [node] if node.kind == SCALAR else [
            *reader.either(self.member("cmd"), "`cmd`"), *reader.items(self.member("cmds"), "`cmds`")
        ]  # fmt: skip
        groups = list(self._groups(nodes, tolerated=tolerated))
        if (guards or prompts) and not groups:
            groups = [[]]
        is_single = len(groups) == 1 and isinstance(groups[0], list)
        files = self._files()
        if not is_single and (guards or files.get("inputs")):
            raise UntranslatableError("status", "whether it is up to date decides about calls of other tasks")
        deferred = any(each.after for group in groups if isinstance(group, list) for each in group)
        if deferred and not is_single:
            raise UntranslatableError("defer", "what is deferred, beside calls of other tasks")
        for at, group in enumerate(groups):
            if isinstance(group, list):
                name = self._name("") if is_single else self._name(str(at + 1))
                step = DraftStep(
                    name, run=_script(group, [*self._options(), *self.made, *guards]), **self.keys, **files
                )
                title = " ".join(
                    shown(self.scope.freeze(self.scope.fill(text_of(self.member("desc"))))).split()
                )
                if title and title.isprintable():
                    step.keys["title"] = title[:200]
                after = self._add(step, after)
            else:
                after = self.emission.call(*group, after, self.task)
        return after

    def _name(self, part: str) -> str:
        return self.emission.plan.name(f"{self.label}.{part}" if part else self.label)

    def _add(self, step: DraftStep, after: list[str]) -> list[str]:
        step.node = self.task.place
        return self.emission.add(step, after)

    def _folder(self) -> None:
        folder = self.task.file.folder
        if (own := self.member("dir")) is not None:
            given = self.scope.fill(text_of(own))
            if isinstance(given, Text) and given.pieces[0] == Shell(text="${PLANRUN_WORKSPACE}"):
                given = Text(pieces=("." if len(given.pieces) == 1 else "./", *given.pieces[1:]))
                folder = ""
            folder = posixpath.join(folder, shown(self.scope.freeze(given)).replace(".//", "./"))
        folder = posixpath.normpath(folder) if folder else ""
        self.made: list[str] = []
        if folder not in ("", "."):
            file = self.task.file
            while file.outer is not None:
                file = file.outer
            if own is None or os.path.isdir(os.path.join(os.path.dirname(file.reader.found.file), folder)):
                self.keys["workdir"] = folder
            else:  # go-task makes it
                self.made = [f"mkdir -p {shlex.quote(folder)}", f"cd {shlex.quote(folder)}"]

    def _variables(self, after: list[str]) -> list[str]:
        """Set the task's own variables, those that commands give by a step of its own."""
        own = self.reader.mapping(self.member("vars"), "`vars`")
        env = self.reader.mapping(self.member("env"), "`env`")
        for required in self.reader.items(self.node.get("requires") and self.node.get("requires").get("vars"), "`requires`") if self.node.kind == MAPPING else ():  # fmt: skip
            name = text_of(required.get("name") if required.kind == MAPPING else required)
            if name in self.scope.own or name in own or any(name in layer for layer, _ in self.scope.layers):
                if required.kind == MAPPING:
                    raise UntranslatableError("requires", f"which values {name} may have")
                continue
            fragment: dict[str, Any] = {"type": "string", "required": True}
            if required.kind == MAPPING and not is_nothing(required.get("enum")):
                fragment["enum"] = self.reader.texts(required.get("enum"), "`enum`")
            if not NAME.match(name) or self.emission.is_choice:
                raise UntranslatableError("requires", f"it needs the variable {name}")
            self.emission.plan.params[name] = fragment
            self.scope = self.scope.with_values({name: Text(pieces=(Param(name=name),))})
        for name, node in own.items():
            if node.kind == MAPPING and "sh" in node.value:
                after = self.emission.dynamic(
                    f"{self.label}.variables", self.scope, {name: node}, after, dict(self.keys)
                )
            value = self.scope.value(name, node, self.task.file)
            self.scope = self.scope.with_values({name: value})
        if self.made and any(
            each.kind == MAPPING and "sh" in each.value for each in (*own.values(), *env.values())
        ):
            raise UntranslatableError("dir", "commands of variables in a folder that is not there")
        return self.emission.dynamic(f"{self.label}.environment", self.scope, env, after, dict(self.keys))

    def _environment(self) -> None:
        """Set `env`: the caller's variables win, as in go-task."""
        chain, file = [], self.task.file
        while file is not None:
            chain.append(file)
            file = file.outer  # type: ignore[assignment]
        nodes: dict[str, Node] = {}
        for each in chain[::-1]:
            nodes |= each.reader.mapping(each.root.get("env"), "`env`")
        nodes |= self.reader.mapping(self.member("env"), "`env`")
        env = {}
        for name, node in nodes.items():
            pieces = pieces_of(self.scope.value(name, node, self.task.file))
            if not NAME.match(name) or any(isinstance(each, Shell) and not each.reads for each in pieces):
                raise UntranslatableError("env", f"the variable {name} is known only to a shell")
            env[name] = (
                f"${{{{ default(env.{name}, {' ~ '.join(map(_expression, pieces)) or quoted('')}) }}}}"
            )
        if env:
            self.keys["env"] = env

    def _guards(self) -> list[str]:
        """Return the lines that end a script at once: `if`, preconditions, `status`; raises UntranslatableError."""
        lines = []
        if (asked := self.member("if")) is not None:
            lines.append(f"{self._plain(text_of(asked))} || exit 0")
        for each in self.reader.items(self.member("preconditions"), "`preconditions`"):
            text = text_of(each.get("sh") if each.kind == MAPPING else each)
            message = text_of(each.get("msg")) if each.kind == MAPPING else ""
            told = script_of(
                ["echo ", shlex.quote(" ".join((message or f"precondition not met: {text}").split()))]
            )
            if "{{" in message:
                raise UntranslatableError("preconditions", "a message with a template")
            lines.append(f"{self._plain(text)} || {{ {told} >&2; exit 1; }}")
        status = [self._plain(text) for text in self.reader.texts(self.member("status"), "`status`")]
        if status:
            lines.append(f"if {' && '.join(status)}; then exit 0; fi  # it is up to date")
        if status and self.member("sources") is not None:
            raise UntranslatableError("status", "`status` beside `sources`")
        return lines

    def _plain(self, text: str) -> str:
        script = script_of(self.scope.pieces(text)).strip()
        if not is_plain(script) and not re.fullmatch(
            r"\[\[ [^;&|\n]+ \]\]|\[ [^;&|\n]+ \]|! [\w-][^;&|$`()\n]*", script
        ):
            raise UntranslatableError("status", f"a condition that is more than one command: {text[:60]}")
        return script

    def _files(self) -> dict[str, Any]:
        """Return the keys for `sources` and `generates`."""
        found: dict[str, Any] = {}
        for key, name in (("inputs", "sources"), ("produces", "generates")):
            patterns = []
            for each in self.reader.items(self.member(name), f"`{name}`"):
                text = text_of(each.get("exclude") if each.kind == MAPPING else each)
                text = shown(self.scope.freeze(self.scope.fill(text)))
                text = posixpath.normpath(posixpath.join(self.keys.get("workdir", ""), text))
                if text.startswith(("/", "..", "~")) or "$" in text:
                    raise UntranslatableError(name, f"the pattern {text}")
                patterns.append(f"!{text}" if each.kind == MAPPING else text)
            if patterns:
                found[key] = patterns
        method = text_of(self.member("method")) or text_of(self.task.file.root.get("method"))
        if "inputs" not in found or method == "none":
            return {}
        if method not in ("", "checksum"):
            raise UntranslatableError("method", f"`method: {method}`")
        if made := [each for each in found.get("produces", ()) if not each.startswith("!")]:
            found["produces"] = [{"path": made, "when": "present"}]
        self.reader.found.differs(
            "sources", "planrun's cache says whether a task is up to date, not .task", self.task.place
        )
        return {**found, "cache": True}

    def _options(self) -> list[str]:
        lines = []
        for root in (self.task.file.root, self.node if self.node.kind == MAPPING else self.task.file.root):
            names = [_OPTIONS.get(name, name) for name in self.reader.texts(root.get("set"), "`set`")]
            lines += [*(f"set -o {name}" for name in names), *(f"shopt -s {name}" for name in self.reader.texts(root.get("shopt"), "`shopt`"))]  # fmt: skip
        if not all(re.fullmatch(r"(set -o|shopt -s) [a-z_]+", line) for line in lines):
            raise UntranslatableError("set", "an option of the shell")
        return list(dict.fromkeys(lines))

    def _groups(
        self, nodes: list[Node], *, tolerated: bool
    ) -> Iterator[list[_Entry] | tuple[str, dict[str, Any]]]:
        """Yield the commands between two calls of other tasks together, and the calls."""
        group: list[_Entry] = []
        for node in nodes:
            for each in self._commands(node, tolerated=tolerated):
                if isinstance(each, _Entry):
                    group.append(each)
                    continue
                if group:
                    yield group
                group = []
                if tolerated:
                    raise UntranslatableError("ignore_error", "`ignore_error` and calls of other tasks")
                yield each
        if group:
            yield group

    def _commands(self, node: Node, *, tolerated: bool) -> Iterator[_Entry | tuple[str, dict[str, Any]]]:
        if node.kind == SCALAR:
            yield _Entry(script_of(self.scope.pieces(text_of(node))), tolerated=tolerated)
            return
        if node.kind != MAPPING:
            raise UntranslatableError("shape", "a command that is neither text nor a mapping")
        for key in node.value:
            if key not in _COMMAND:
                raise UntranslatableError("cmds", f"a command with `{key}`")
        tolerated = tolerated or truth_of(node.get("ignore_error")) is True
        platforms = self.reader.texts(node.get("platforms"), "`platforms`")
        if platforms and not _runs_here(platforms):
            self.reader.found.differs(
                "other-machines", "commands for other systems than Linux are left out", node
            )
            return
        if not is_nothing(node.get("task")):
            if node.get("if") is not None or truth_of(node.get("ignore_error")):
                raise UntranslatableError("if", "a condition of a call")
            yield from self._calls(node)
            return
        deferred = node.get("defer")
        if deferred is not None and deferred.kind != SCALAR:
            raise UntranslatableError("defer", "a task that runs at the end")
        for scope in self._scopes(node.get("for")):
            text = script_of(scope.pieces(text_of(deferred if deferred is not None else node.get("cmd"))))
            if (asked := node.get("if")) is not None:
                test = self._plain(text_of(asked))
                text = f"if {test}; then\n{text.rstrip()}\nfi"
            yield _Entry(text, tolerated=tolerated, after=deferred is not None)

    def _calls(self, node: Node) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the calls that an entry of `cmds` or `deps` describes; raises UntranslatableError."""
        if node.kind == SCALAR:
            yield shown(self.scope.freeze(self.scope.fill(text_of(node)))), {}
            return
        for scope in self._scopes(node.get("for")):
            given = {}
            for name, value in self.reader.mapping(node.get("vars"), "`vars`").items():
                if value.kind == MAPPING and "sh" in value.value:
                    raise UntranslatableError("vars", f"a command gives the variable {name} of a call")
                given[name] = scope.value(name, value, self.task.file)
            yield shown(scope.freeze(scope.fill(text_of(node.get("task"))))), given

    def _scopes(self, loop: Node | None) -> list[Scope]:
        """Return a scope for each item of a loop, one without a loop; raises UntranslatableError."""
        if loop is None or is_nothing(loop):
            return [self.scope]
        name, items = "ITEM", []
        if loop.kind == SEQUENCE:
            items = [self.scope.value("ITEM", each, self.task.file) for each in loop.value]
        elif loop.kind == SCALAR:
            raise UntranslatableError("for", f"a loop over the {text_of(loop)}, which are found when it runs")
        else:
            name = text_of(loop.get("as")) or "ITEM"
            if not is_nothing(loop.get("matrix")):
                axes = {
                    key: self.scope.freeze(self.scope.value(key, each, self.task.file))
                    for key, each in self.reader.mapping(loop.get("matrix"), "`matrix`").items()
                }
                total = 1
                for values in axes.values():
                    total *= len(values) if isinstance(values, list) else MAX_ITEMS + 1
                if total > MAX_ITEMS:
                    raise UntranslatableError("for", f"a loop over more than {MAX_ITEMS} items")
                items = [dict(zip(axes, row, strict=True)) for row in product(*axes.values())]
            else:
                value = self.scope.freeze(self.scope.lookup(text_of(loop.get("var"))))
                split = text_of(loop.get("split"))
                items = value if isinstance(value, list) else shown(value).split(split or None)
        if len(items) > MAX_ITEMS:
            raise UntranslatableError("for", f"a loop over more than {MAX_ITEMS} items")
        return [self.scope.with_values({name: item}) for item in items]


class _Entry:
    """One command of a script; `after`: it runs when the task ends."""

    def __init__(self, text: str, *, tolerated: bool = False, after: bool = False) -> None:
        self.text, self.tolerated, self.after = text.rstrip("\n"), tolerated, after


def _script(entries: list[_Entry], first: list[str]) -> str:
    """Return the script of commands that run one after the other; `first` are lines that it begins with."""
    lines = list(first)
    commands: list[Command] = []
    for at, each in enumerate(entries):
        if each.after:
            raise_if = any("EXIT_CODE" in other.text for other in entries)
            if raise_if or any(other.after for other in entries[:at]) or at:
                raise UntranslatableError("defer", "what is deferred does not stand alone at the beginning")
            lines.append(f"trap {shlex.quote(each.text)} EXIT")
        else:
            commands.append(Command(text=each.text, is_tolerated=each.tolerated))
    if any(re.search(r"\$\([^()]*[;&|\n]|`[^`]*[;&|\n]", each.text) for each in entries):
        lines.insert(0, "shopt -s inherit_errexit")  # as go-task: a failure ends a command in `$(…)`
    return joined(commands, strict=True, first=lines) if commands else "\n".join([*lines, ":"]) + "\n"


def _runs_here(platforms: list[str]) -> bool:
    return any(name.startswith("linux") or name in ("amd64", "arm64") for name in platforms)


def _expression(piece: Piece) -> str:
    if isinstance(piece, Param):
        return piece.path
    if isinstance(piece, Shell):
        match = re.fullmatch(r"\$\{(\w+)(?::?-([^$]*))?\}", piece.text)
        if match is None:
            raise UntranslatableError("env", f"`{piece.text}` in a variable")
        return f"default(env.{match[1]}, {quoted(match[2] or '')})"
    return quoted(piece)


def _flat(value: Any) -> Iterator[str]:
    for each in value:
        if isinstance(each, str):
            yield each
        else:
            yield from _flat(each)


def _source(task: Task) -> str:
    """Return the lines of a task as they stand in its file."""
    try:
        with open(task.file.reader.found.file, encoding="utf-8", errors="replace") as file:
            lines = file.read(2_000_000).split("\n")
    except OSError:
        return task.name
    start = task.place.line - 1
    indent = len(lines[start]) - len(lines[start].lstrip())
    end = start + 1
    while end < len(lines) and (
        not lines[end].strip() or len(lines[end]) - len(lines[end].lstrip()) > indent
    ):
        end += 1
    return "\n".join(line[indent:] for line in lines[start:end]).rstrip()[:4000]
