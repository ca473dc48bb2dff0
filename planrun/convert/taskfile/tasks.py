"""Tasks as steps: what a task needs comes first, its commands are one step, or several around calls of other tasks."""

from __future__ import annotations

import os
import posixpath
import re
import shlex
from itertools import product

from planrun.convert.draft import DraftStep, quoted, source_text, step_path
from planrun.convert.reader import UntranslatableError, data_of, is_nothing, text_of, truth_of
from planrun.convert.recipes.scripts import NAME, Piece, ShellText, Value, is_plain, joined, script_of
from planrun.convert.taskfile.templates import Template, Text, fixed, pieces_of, shown
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from planrun.convert.draft import DraftPlan
    from planrun.convert.reader import Reader

    Call = tuple[str, dict[str, Any]]

MAX_STEPS = 1000
MAX_DEPTH = 40  # of tasks that call each other
MAX_ITEMS = 100  # of one loop
_TASK = frozenset((
    "cmds", "cmd", "deps", "desc", "summary", "label", "aliases", "silent", "interactive", "internal", "vars", "env",
    "dir", "sources", "generates", "method", "status", "preconditions", "requires", "prompt", "run", "ignore_error",
    "platforms", "set", "shopt", "if", "prefix", "watch", "failfast",
))  # fmt: skip
_COMMAND = frozenset(
    ("cmd", "task", "vars", "silent", "ignore_error", "for", "defer", "platforms", "if", "interactive")
)
_OPTIONS = {"e": "errexit", "u": "nounset", "f": "noglob", "x": "xtrace", "a": "allexport", "n": "noexec"}
_OF_TASK = frozenset((
    "CHECKSUM", "TIMESTAMP", "EXIT_CODE", "CLI_FORCE", "CLI_SILENT", "CLI_VERBOSE", "CLI_ARGS_LIST",
    "TASK_VERSION", "TASK_EXE", "TASK", "ALIAS", "MATCH", "ITEM", "KEY", "TASKFILE", "ROOT_TASKFILE",
))  # fmt: skip
_SIMPLE = re.compile(r"\[\[ [^;&|\n]+ \]\]|\[ [^;&|\n]+ \]|! [\w-][^;&|$`()\n]*")


class File:
    """One Taskfile: its root, and what its includer gives it."""

    def __init__(
        self, root: Node, reader: Reader, outer: File | None, prefix: str = "", folder: str = ""
    ) -> None:
        self.root, self.reader, self.outer, self.prefix, self.folder = root, reader, outer, prefix, folder
        self.given: dict[str, Node] = {}
        self.is_internal = False
        self.top: File = outer.top if outer is not None else self
        self.unsure: str = outer.unsure if outer is not None else ""
        self.outputs: dict[int, str] = {}  # of commands, by the nodes of their variables, as expressions
        self.params: dict[str, Any] = outer.params if outer is not None else {}

    def members(self, name: str) -> dict[str, Node]:
        """Return the members of a mapping at the top of the file."""
        return self.reader.mapping(self.root.get(name), f"`{name}`")

    def scope(self) -> Scope:
        """Return the variables of the file, and of those that include it."""
        outer = [(self.given, self.outer), *self.outer.scope().layers] if self.outer is not None else []
        layers = [(self.members("vars"), self), *outer]
        if self.given:  # what the includer gives wins over the file's own
            layers[:2] = [layers[1], layers[0]]
        return Scope(self, layers, {})

    def fixed(self, text: str) -> str:
        """Return a text that has to be known now, filled in; raises UntranslatableError."""
        return shown(fixed(self.scope().fill(text)))


class Task:
    """A task, where it stands, and its file."""

    def __init__(self, name: str, node: Node, place: Node, file: File) -> None:
        self.name, self.node, self.place, self.file = name, node, place, file
        self.is_internal = file.is_internal or truth_of(self.get("internal")) is True

    def get(self, name: str) -> Node | None:
        """Return the value of a key; None where the task has none."""
        found = self.node.get(name) if self.node.kind == MAPPING else None
        return None if is_nothing(found) else found


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
        return Template(text, self.lookup, self.file.reader.found).value() if "{{" in text else text

    def lookup(self, name: str) -> Any:
        """Return a variable; one that is set nowhere is a variable of the environment."""
        if name in self.own:
            return self.own[name]
        for at, (variables, file) in enumerate(self.layers):
            if name in variables:  # it sees those that stand before it
                earlier = dict(list(variables.items())[: list(variables).index(name)])
                outer = Scope(self.file, [(earlier, file), *self.layers[at + 1 :]], {})
                return outer.value(name, variables[name], file)
        env = self.file.top.members("env").get(name)
        if env is not None and env.kind == SCALAR:
            return self.fill(text_of(env))
        if name in ("ROOT_DIR", "USER_WORKING_DIR", "TASKFILE_DIR", "TASK_DIR"):
            inner = (
                f"/{self.file.folder}" if name in ("TASKFILE_DIR", "TASK_DIR") and self.file.folder else ""
            )
            return Text(pieces=(ShellText(text=f"${{PLANRUN_WORKSPACE}}{inner}"),))
        if name == "CLI_ARGS":
            self.file.params["CLI_ARGS"] = {"type": "array", "items": {"type": "string"}, "default": []}
            return Text(pieces=(ShellText(text="${{ params.CLI_ARGS | sh }}", is_bare=True),))
        if not NAME.match(name) or name in _OF_TASK:
            raise UntranslatableError("template", f"`.{name}` is known to go-task alone")
        return Text(pieces=(ShellText(text=f"${{{name}}}", reads=name),))

    def value(self, name: str, node: Node, file: File) -> Any:
        """Return what a variable is set to; raises UntranslatableError."""
        if node.kind == SEQUENCE:
            return [self.value(name, each, file) for each in node.value]
        if node.kind == SCALAR:
            value = data_of(node)
            return self.fill(value) if isinstance(value, str) else "" if value is None else value
        if "sh" in node.value and id(node) in file.outputs:
            return Text(pieces=(ShellText(text=f"${{{name}}}", reads=name, given=file.outputs[id(node)]),))
        if "map" in node.value:
            return {
                key: self.value(key, each, file)
                for key, each in file.reader.mapping(node.value["map"], "`map`").items()
            }
        if "ref" in node.value:
            return Template(
                f"{{{{{text_of(node.value['ref'])}}}}}", self.lookup, self.file.reader.found
            ).reference()
        raise UntranslatableError("vars", f"the variable {name}")


class Emission:
    """Puts tasks into a plan as steps."""

    def __init__(
        self, plan: DraftPlan, tasks: Mapping[str, Task], aliases: Mapping[str, str], lost: Mapping[str, str]
    ) -> None:
        self.plan, self.tasks, self.aliases, self.lost = plan, tasks, aliases, lost
        self.is_choice = False
        self.first: list[str] = []  # the step that all others wait for
        self._pool: dict[tuple[Any, ...], list[list[str]]] = {}  # ends of what was emitted, for other tops
        self._used: dict[tuple[Any, ...], int] = {}
        self._once: dict[tuple[Any, ...], list[str]] = {}
        self._open: list[str] = []

    def begin(self, top: File) -> None:
        """Emit the steps that run the commands of the files' variables: go-task runs each once, before all."""
        for each in dict.fromkeys([top, *(task.file for task in self.tasks.values())]):
            members = {**each.members("vars"), **each.members("env")}
            try:
                self.first = self.commands(f"{each.prefix}variables", each.scope(), members, self.first, {})
            except UntranslatableError as why:
                each.unsure = each.unsure or why.message

    def commands(
        self, name: str, scope: Scope, variables: Mapping[str, Node], after: list[str], keys: dict[str, Any]
    ) -> list[str]:
        """Emit the step that runs the commands of variables; returns what later steps wait for."""
        nodes = {key: node for key, node in variables.items() if node.kind == MAPPING and "sh" in node.value}
        if not nodes:
            return after
        step, lines = DraftStep(self.plan.name(name.replace(":", ".")), **keys), []
        env: dict[str, str] = dict(keys.get("env", {}))
        for key, node in nodes.items():
            if not NAME.match(key):
                raise UntranslatableError("vars", f"the name of the variable {key}")
            script = script_of(pieces_of(scope.fill(text_of(node.value["sh"]))), env).strip()
            lines.append(f"{key}=$({script})" if is_plain(script) else f"{key}=$(\nset -e\n{script}\n)")
            lines.append(f'printf \'{key}<<END\\n%s\\nEND\\n\' "${key}" >> "$PLANRUN_OUTPUT"')
            path = f"{step_path(step.id, 'outputs')}.{key}"
            scope.file.outputs[id(node)] = f"default({path}, '')" if self.is_choice else path
        env = {key: value for key, value in env.items() if key not in nodes}
        step.keys |= {
            "run": "\n".join(lines) + "\n",
            "outputs": dict.fromkeys(nodes, "string"),
            **({"env": env} if env else {}),
        }
        return self.add(step, after)

    def add(self, step: DraftStep, after: list[str]) -> list[str]:
        """Append a step that waits for others; returns its id."""
        for each in after:
            step.wait(each)
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
        self._used, self._once = {}, {}
        ends = self.call(name, {}, self.first, None)
        if ends == self.first:
            step = DraftStep(self.plan.name(name.replace(":", ".")), validate=[{"that": True}])
            ends = self.add(step, self.first)
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
            why = next(
                (self.lost[each] for each in self.lost if full.startswith(each)), "there is no such task"
            )
            task = caller or next(iter(self.tasks.values()))
            return self.leave(full, task, UntranslatableError("task", why), after)
        task, match = found
        if len(self._open) > MAX_DEPTH or len(self.plan.steps) > MAX_STEPS or task.name in self._open:
            raise UntranslatableError(
                "too-large", f"the task {full} calls itself, or there are too many steps"
            )
        values = sorted(
            (key, repr(each) if isinstance(each, Text) else shown(each)) for key, each in given.items()
        )
        key = (task.name, tuple(match), tuple(values))
        run = text_of(task.get("run")) or text_of(task.file.root.get("run"))
        once = {"once": (task.name,), "when_changed": key}.get(run)
        if once in self._once:
            return self._once[once]
        place = (*key, tuple(after))
        pool = self._pool.setdefault(place, [])
        number = self._used.get(place, 0)
        self._used[place] = number + 1
        if number == len(pool):
            self._open.append(task.name)
            pool.append(self._emit(task, match, given, after))
            self._open.pop()
        if once is not None:
            self._once[once] = pool[number]
        return pool[number]

    def _emit(self, task: Task, match: list[str], given: Mapping[str, Any], after: list[str]) -> list[str]:
        found = task.file.reader.found
        platforms = task.file.reader.texts(task.get("platforms"), "`platforms`")
        if platforms and not _runs_here(platforms):
            found.differs("other-machines", f"the task {task.name} is not for Linux", task.place)
            return after
        own = task.name.replace(":", ".").replace("*", "-".join(match) or "x")
        label = self.plan.name(own)
        self.plan.give_back(label)
        if len(self._open) > 1 and (self.is_choice or label != own):
            label = f"{self._open[-2]}.{own}".replace(":", ".")
        count = len(self.plan.steps)
        try:
            if task.file.unsure:
                raise UntranslatableError("task", task.file.unsure)
            return _Reading(self, task, match, given, label).emit(after)
        except UntranslatableError as why:
            if why.code == "too-large":
                raise
            gone = {step.id for step in self.plan.steps[count:]}
            for each in gone:
                self.plan.give_back(each)
            del self.plan.steps[count:]
            self._once = {key: ends for key, ends in self._once.items() if not gone & set(ends)}
            self._pool = {
                key: ends for key, ends in self._pool.items() if not any(gone & set(each) for each in ends)
            }
            self._used = {key: number for key, number in self._used.items() if key in self._pool}
            return self.leave(
                label,
                task,
                why,
                after,
                source_text(task.file.reader.found.file, task.place, is_key=True) or task.name,
            )

    def leave(
        self, label: str, task: Task, why: UntranslatableError, after: list[str], description: str = ""
    ) -> list[str]:
        """Leave a task to a person or a model: a step without an action."""
        step = DraftStep(self.plan.name(label.replace(":", ".")))
        step.node = task.place
        message = f"the task {label}: {why.message}"
        step.make_abstract(task.file.reader.found.todo(why.code, message, task.place, step.id))
        if description:
            step.keys["description"] = description
        return self.add(step, after)


class _Reading:
    """One task with its variables, while its steps are made."""

    def __init__(
        self, emission: Emission, task: Task, match: list[str], given: Mapping[str, Any], label: str
    ) -> None:
        self.emission, self.task, self.label, self.reader = emission, task, label, task.file.reader
        self.keys: dict[str, Any] = {}
        self.env: dict[str, str] = {}
        self.first: list[str] = []  # lines that a script begins with
        self.scope = task.file.scope().with_values(
            {"TASK": task.name, "MATCH": match, "ALIAS": task.name, **given}
        )

    def emit(self, after: list[str]) -> list[str]:
        """Emit the steps; raises UntranslatableError where something is not certain."""
        node, get = self.task.node, self.task.get
        for key in node.value if node.kind == MAPPING else ():
            if key not in _TASK:
                raise UntranslatableError(f"key:{key}", f"it has `{key}`")
        self._folder()
        after = self._variables(after)
        self._environment()
        tolerated = truth_of(get("ignore_error")) is True
        guards = self._guards()
        if get("if") is not None and get("deps") is not None:
            raise UntranslatableError("if", "a condition of a task that needs others")
        ends: list[str] = []
        for each in self.reader.items(get("deps"), "`deps`"):
            for name, given in self._calls(each):
                ends += self.emission.call(name, given, after, self.task)
        after = (
            list(dict.fromkeys([*ends, *after])) if self.env and ends else list(dict.fromkeys(ends)) or after
        )
        prompts = self.reader.texts(get("prompt"), "`prompt`")
        for text in prompts:
            ask = {"question": " ".join(self._known(text).split())}
            after = self.emission.add(DraftStep(self._name("ask"), ask=ask), after)
        nodes = node.value if node.kind == SEQUENCE else [node] if node.kind == SCALAR else [
            *self.reader.either(get("cmd"), "`cmd`"), *self.reader.items(get("cmds"), "`cmds`")
        ]  # fmt: skip
        groups = list(self._groups(nodes, tolerated=tolerated)) or ([[]] if guards or prompts else [])
        is_single = len(groups) == 1 and isinstance(groups[0], list)
        if not is_single and (guards or any(isinstance(each, list) and _deferred(each) for each in groups)):
            raise UntranslatableError("status", "conditions or `defer` beside calls of other tasks")
        for at, group in enumerate(groups):
            if not isinstance(group, list):
                after = self.emission.call(*group, after, self.task)
                continue
            script = _script(group, [*self._options(), *self.first, *guards])
            step = DraftStep(self._name("" if is_single else str(at + 1)), run=script, **self.keys)
            if self.env:
                step.keys["env"] = self.env
            title = " ".join(self._known(text_of(get("desc"))).split())
            if title and title.isprintable():
                step.keys["title"] = title[:200]
            step.node = self.task.place
            after = self.emission.add(step, after)
        return after

    def _name(self, part: str) -> str:
        return self.emission.plan.name(f"{self.label}.{part}" if part else self.label)

    def _known(self, text: str, scope: Scope | None = None) -> str:
        return shown(fixed((scope or self.scope).fill(text)))

    def _text(self, text: str, scope: Scope | None = None) -> str:
        if match := re.search(r"(?:^|[;&|(\n])\s*(umask|ulimit|bg|fg|jobs|times|hash|fc|enable)\b", text):
            raise UntranslatableError("shell", f"the shell of go-task has no `{match[1]}`")
        return script_of(pieces_of((scope or self.scope).fill(text)), self.env)

    def _folder(self) -> None:
        """Set the folder of the task; one that is not there is made, as by go-task."""
        own, top = self.task.get("dir"), self.task.file.top
        given = self.scope.fill(text_of(own))
        folder = self.task.file.folder
        if isinstance(given, Text) and given.pieces[0] == ShellText(text="${PLANRUN_WORKSPACE}"):
            given, folder = f".{''.join(each for each in given.pieces[1:] if isinstance(each, str))}", ""
        folder = posixpath.normpath(posixpath.join(folder, shown(fixed(given))) or ".")
        if folder != "." and (
            own is None or os.path.isdir(os.path.join(os.path.dirname(top.reader.found.file), folder))
        ):
            self.keys["workdir"] = folder
        elif folder != ".":
            self.first = [f"mkdir -p {shlex.quote(folder)}", f"cd {shlex.quote(folder)}"]

    def _variables(self, after: list[str]) -> list[str]:
        """Set the task's own variables, those that commands give by steps of their own."""
        own, env = (self.reader.mapping(self.task.get(name), f"`{name}`") for name in ("vars", "env"))
        if self.first and any(
            node.kind == MAPPING and "sh" in node.value for node in (*own.values(), *env.values())
        ):
            raise UntranslatableError("dir", "commands of variables in a folder that is not there")
        requires = self.task.get("requires")
        for each in self.reader.items(requires.get("vars") if requires is not None else None, "`requires`"):
            name = text_of(each.get("name") if each.kind == MAPPING else each)
            choices = each.get("enum") if each.kind == MAPPING else None
            if name in self.scope.own or name in own or any(name in layer for layer, _ in self.scope.layers):
                if choices is not None:
                    raise UntranslatableError("requires", f"which values {name} may have")
                continue
            if not NAME.match(name) or self.emission.is_choice:
                raise UntranslatableError("requires", f"it needs the variable {name}")
            enum = {"enum": self.reader.texts(choices, "`enum`")} if choices is not None else {}
            self.task.file.params[name] = {"type": "string", **enum, "required": True}
            self.scope = self.scope.with_values({name: Text(pieces=(Value(expression=f"params.{name}"),))})
        for name, node in own.items():
            after = self.emission.commands(
                f"{self.label}.variables", self.scope, {name: node}, after, self.keys
            )
            self.scope = self.scope.with_values({name: self.scope.value(name, node, self.task.file)})
        return self.emission.commands(f"{self.label}.environment", self.scope, env, after, self.keys)

    def _environment(self) -> None:
        """Set `env`: the caller's variables win, as in go-task."""
        nodes: dict[str, Node] = self.reader.mapping(self.task.get("env"), "`env`")
        file: File | None = self.task.file
        while file is not None:
            nodes = {**file.members("env"), **nodes}
            file = file.outer
        for name, node in nodes.items():
            parts = map(_expression, pieces_of(self.scope.value(name, node, self.task.file)))
            if not NAME.match(name):
                raise UntranslatableError("env", f"the variable {name}")
            self.env[name] = f"${{{{ default(env.{name}, {' ~ '.join(parts)}) }}}}"

    def _guards(self) -> list[str]:
        """Return the lines that end a script at once: `if`, preconditions, `status`; raises UntranslatableError."""
        lines = []
        if (asked := self.task.get("if")) is not None:
            lines.append(f"{self._test(text_of(asked))} || exit 0")
        for each in self.reader.items(self.task.get("preconditions"), "`preconditions`"):
            text, message = (
                text_of(each.get(name)) if each.kind == MAPPING else "" for name in ("sh", "msg")
            )
            test = self._test(text or text_of(each))
            told = shlex.quote(" ".join(self._known(message).split()) or "a precondition is not met")
            lines.append(f"{test} || {{ echo {told} >&2; exit 1; }}")
        if self.task.get("sources") is not None:
            message = f"the task {self.task.name} runs each time; where its files say whether it is done, add `cache`"
            self.reader.found.differs("sources", message, self.task.place)
            return lines
        status = [self._test(text) for text in self.reader.texts(self.task.get("status"), "`status`")]
        return [*lines, f"if {' && '.join(status)}; then exit 0; fi  # it is up to date"] if status else lines

    def _test(self, text: str) -> str:
        script = self._text(text).strip()
        if not is_plain(script) and not _SIMPLE.fullmatch(script):
            raise UntranslatableError("status", f"a condition that is more than one command: {text[:60]}")
        return script

    def _options(self) -> list[str]:
        nodes = [(self.task.file.root.get(name), self.task.get(name)) for name in ("set", "shopt")]
        options, shopts = (
            [text for each in pair for text in self.reader.texts(each, "`set`")] for pair in nodes
        )
        lines = [f"set -o {_OPTIONS.get(name, name)}" for name in options] + [
            f"shopt -s {name}" for name in shopts
        ]
        if not all(re.fullmatch(r"(set -o|shopt -s) [a-z_]+", line) for line in lines):
            raise UntranslatableError("set", "an option of the shell")
        return list(dict.fromkeys(lines))

    def _groups(self, nodes: list[Node], *, tolerated: bool) -> Iterator[list[tuple[str, bool, bool]] | Call]:
        """Yield the commands between two calls of other tasks together, and the calls."""
        group: list[tuple[str, bool, bool]] = []
        for node in nodes:
            for each in self._commands(node, tolerated=tolerated):
                if len(each) == 3:
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

    def _commands(self, node: Node, *, tolerated: bool) -> Iterator[tuple[str, bool, bool] | Call]:
        """Yield commands, with whether a failure is tolerated and whether it is deferred, and calls."""
        if node.kind == SCALAR:
            yield self._text(text_of(node)), tolerated, False
            return
        if node.kind != MAPPING or (unknown := sorted(set(node.value) - _COMMAND)):
            raise UntranslatableError(
                "cmds", f"a command with `{unknown[0] if node.kind == MAPPING else 'a list'}`"
            )
        tolerated = tolerated or truth_of(node.get("ignore_error")) is True
        platforms = self.reader.texts(node.get("platforms"), "`platforms`")
        deferred, asked = node.get("defer"), node.get("if")
        if platforms and not _runs_here(platforms):
            self.reader.found.differs(
                "other-machines", "commands for other systems than Linux are left out", node
            )
        elif not is_nothing(node.get("task")):
            if asked is not None or tolerated or deferred is not None:
                raise UntranslatableError("if", "a condition of a call")
            yield from self._calls(node)
        elif deferred is not None and deferred.kind != SCALAR:
            raise UntranslatableError("defer", "a task that runs at the end")
        else:
            for scope in self._scopes(node.get("for")):
                text = self._text(text_of(deferred if deferred is not None else node.get("cmd")), scope)
                if asked is not None:
                    text = f"if {self._test(text_of(asked))}; then\n{text.rstrip()}\nfi"
                yield text, tolerated, deferred is not None

    def _calls(self, node: Node) -> Iterator[Call]:
        """Yield the calls that an entry of `cmds` or `deps` describes; raises UntranslatableError."""
        if node.kind == SCALAR:
            yield self._known(text_of(node)), {}
            return
        for scope in self._scopes(node.get("for")):
            variables = self.reader.mapping(node.get("vars"), "`vars`").items()
            yield (
                self._known(text_of(node.get("task")), scope),
                {name: scope.value(name, value, self.task.file) for name, value in variables},
            )

    def _scopes(self, loop: Node | None) -> list[Scope]:
        """Return a scope for each item of a loop, one without a loop; raises UntranslatableError."""
        if loop is None or is_nothing(loop):
            return [self.scope]
        if loop.kind == SCALAR:
            raise UntranslatableError("for", f"a loop over the {text_of(loop)}, which are found when it runs")
        name = (text_of(loop.get("as")) if loop.kind == MAPPING else "") or "ITEM"
        if loop.kind == SEQUENCE:
            items = self.scope.value("ITEM", loop, self.task.file)
        elif not is_nothing(loop.get("matrix")):
            members = self.reader.mapping(loop.get("matrix"), "`matrix`")
            axes = {key: fixed(self.scope.value(key, each, self.task.file)) for key, each in members.items()}
            total = 1
            for values in axes.values():
                total *= len(values) if isinstance(values, list) else MAX_ITEMS + 1
            if total > MAX_ITEMS:
                raise UntranslatableError("for", f"a loop over more than {MAX_ITEMS} items")
            items = [dict(zip(axes, row, strict=True)) for row in product(*axes.values())]
        else:
            value = fixed(self.scope.lookup(text_of(loop.get("var"))))
            items = (
                value if isinstance(value, list) else shown(value).split(text_of(loop.get("split")) or None)
            )
        if len(items) > MAX_ITEMS:
            raise UntranslatableError("for", f"a loop over more than {MAX_ITEMS} items")
        return [self.scope.with_values({name: item}) for item in items]


def _deferred(entries: list[tuple[str, bool, bool]]) -> bool:
    return any(each[2] for each in entries)


def _script(entries: list[tuple[str, bool, bool]], first: list[str]) -> str:
    """Return the script of commands that run one after the other; `first` are lines that it begins with."""
    lines = list(first)
    if any(re.search(r"\$\([^()]*[;&|\n]|`[^`]*[;&|\n]", text) for text, _, _ in entries):
        lines.insert(0, "shopt -s inherit_errexit")  # as go-task: a failure ends a command in `$(…)`
    late = [text.strip() for text, _, is_deferred in entries if is_deferred]
    if _deferred(entries[len(late) :]) or not all(
        is_plain(text) and "EXIT_CODE" not in text for text in late
    ):
        raise UntranslatableError("defer", "what is deferred is no single command at the beginning")
    if late:  # its failure counts for nothing
        lines.append(f"trap {shlex.quote('; '.join(f'{text} || true' for text in reversed(late)))} EXIT")
    commands = [(text, tolerated) for text, tolerated, is_deferred in entries if not is_deferred]
    return joined(commands or [(":", False)], strict=True, first=lines)


def _runs_here(platforms: list[str]) -> bool:
    return any(name.startswith("linux") or name in ("amd64", "arm64") for name in platforms)


def _expression(piece: Piece) -> str:
    """Return a piece as an expression of the plan; raises UntranslatableError."""
    if isinstance(piece, str):
        return quoted(piece)
    if not isinstance(piece, ShellText) or piece.expression:
        return piece.expression
    if not piece.reads or piece.text != f"${{{piece.reads}}}":
        raise UntranslatableError("env", f"`{piece.text}` in a variable")
    return f"default(env.{piece.reads}, '')"
