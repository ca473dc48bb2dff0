"""Tasks as steps: what a task needs comes first, its commands are one step, or several around calls of other tasks."""

from __future__ import annotations

import os
import posixpath
import re
import shlex
from collections import Counter
from itertools import product

from planrun.convert.draft import DraftStep, quoted, source_text, step_path
from planrun.convert.reader import UntranslatableError, is_nothing, text_of, truth_of
from planrun.convert.recipes.scripts import NAME, Piece, ShellText, Value, is_plain, joined, script_of
from planrun.convert.taskfile.values import Text, fixed, pieces_of, shown
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from planrun.convert.draft import DraftPlan
    from planrun.convert.taskfile.values import File, Scope

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
    ("cmd", "task", "vars", "silent", "ignore_error", "for", "platforms", "if", "interactive")
)
_SIMPLE = re.compile(r"\[\[ [^;&|\n]+ \]\]|\[ [^;&|\n]+ \]|! [\w-][^;&|$`()\n]*")
_NOT_OF_TASK = re.compile(r"(?:^|[;&|(\n])\s*(umask|ulimit|bg|fg|jobs|times|hash|fc|enable)\b")


class Task:
    """A task, where it stands, and its file."""

    def __init__(self, name: str, node: Node, place: Node, file: File) -> None:
        self.name, self.node, self.place, self.file = name, node, place, file
        self.is_internal = file.is_internal or truth_of(self.get("internal")) is True

    def get(self, name: str) -> Node | None:
        """Return the value of a key; None where the task has none."""
        found = self.node.get(name) if self.node.kind == MAPPING else None
        return None if is_nothing(found) else found

    def runs_here(self, node: Node | None, what: str) -> bool:
        """Say whether something is for Linux, and report what is not."""
        names = self.file.reader.texts(node, "`platforms`")
        here = not names or any(each.startswith("linux") or each in ("amd64", "arm64") for each in names)
        if not here:
            self.file.reader.found.differs(
                "other-machines", f"{what} of {self.name} is not for Linux", self.place
            )
        return here


class Emission:
    """Puts tasks into a plan as steps."""

    def __init__(
        self, plan: DraftPlan, tasks: Mapping[str, Task], aliases: Mapping[str, str], lost: Mapping[str, str]
    ) -> None:
        self.plan, self.tasks, self.aliases, self.lost = plan, tasks, aliases, lost
        self.is_choice = False
        self.first: list[str] = []  # the step that all others wait for
        self._ends: dict[tuple[Any, ...], list[str]] = {}  # of what was emitted, for other tops
        self._used: Counter[tuple[Any, ...]] = Counter()
        self._once: dict[tuple[Any, ...], list[str]] = {}
        self._open: list[str] = []

    def begin(self, top: File) -> None:
        """Emit the steps that run the commands of the files' variables: go-task runs each once, before all."""
        for each in dict.fromkeys([top, *(task.file for task in self.tasks.values())]):
            members = {**each.members("vars"), **each.members("env")}
            try:
                step = self.commands(f"{each.prefix}variables", each.scope(), members, {})
            except UntranslatableError as why:
                each.unsure = each.unsure or why.message
            else:
                self.first = self.add(step, self.first) if step is not None else self.first

    def commands(
        self, name: str, scope: Scope, variables: Mapping[str, Node], keys: dict[str, Any]
    ) -> DraftStep | None:
        """Return the step that runs the commands of variables, None without any; raises UntranslatableError."""
        nodes = {
            key: node for key, node in variables.items() if node.kind == MAPPING and set(node.value) == {"sh"}
        }
        if not nodes:
            return None
        env: dict[str, str] = dict(keys.get("env", {}))
        step, lines = DraftStep("", **keys, outputs=dict.fromkeys(nodes, "string")), []
        for key, node in nodes.items():
            if not NAME.match(key):
                raise UntranslatableError("vars", f"the name of the variable {key}")
            script = script_of(pieces_of(scope.fill(text_of(node.value["sh"]))), env).strip()
            lines.append(f"{key}=$({script})" if is_plain(script) else f"{key}=$(\nset -e\n{script}\n)")
            lines.append(f'printf \'{key}<<END\\n%s\\nEND\\n\' "${key}" >> "$PLANRUN_OUTPUT"')
            step.id = step.id or self.plan.name(name.replace(":", "."))
            path = f"{step_path(step.id, 'outputs')}.{key}"
            scope.file.outputs[id(node)] = f"default({path}, '')" if self.is_choice else path
        step.keys |= {
            "run": "\n".join(lines) + "\n",
            "env": {key: env[key] for key in env if key not in nodes},
        }
        return step

    def add(self, step: DraftStep, after: list[str]) -> list[str]:
        """Append a step that waits for others; returns its id."""
        for each in after:
            step.wait(each)
        return [self.plan.add(step).id]

    def find(self, name: str) -> Task | None:
        """Return the task of a name or of an alias."""
        head, sign, rest = name.partition(":")
        full = f"{self.aliases[head]}:{rest}" if sign and head in self.aliases else name
        return self.tasks.get(self.aliases.get(name, full))

    def top(self, name: str) -> list[str]:
        """Emit a task that a run names; returns the steps that it ends with."""
        self._used, self._once = Counter(), {}
        ends = self.call(name, {}, self.first, None)
        if ends == self.first:
            step = DraftStep(self.plan.name(name.replace(":", ".")), validate=[{"that": True}])
            ends = self.add(step, self.first)
        return ends

    def call(self, name: str, given: Mapping[str, Any], after: list[str], caller: Task | None) -> list[str]:
        """Emit a task with the variables that it is given; returns the steps that it ends with."""
        full = name.removeprefix(":")
        if not name.startswith(":") and caller is not None:
            full = f"{caller.file.prefix}{name}"
        task = self.find(full)
        if task is None:
            usual = "there is no such task, or only by a pattern"
            why = next((self.lost[each] for each in self.lost if full.startswith(each)), usual)
            return self.leave(
                full, caller or next(iter(self.tasks.values())), UntranslatableError("task", why), after
            )
        if len(self._open) > MAX_DEPTH or len(self.plan.steps) > MAX_STEPS or task.name in self._open:
            message = f"the task {full} calls itself, or there are too many steps"
            raise UntranslatableError("too-large", message)
        values = [
            (name, repr(each) if isinstance(each, Text | list | dict) else shown(each))
            for name, each in given.items()
        ]
        key = (task.name, *sorted(values))
        run = text_of(task.get("run")) or text_of(task.file.root.get("run"))
        once = {"once": key[:1], "when_changed": key}.get(run)
        if once in self._once:
            return self._once[once]
        place = (key, *after)
        self._used[place] += 1
        at = (place, self._used[place])
        if at not in self._ends:
            self._open.append(task.name)
            self._ends[at] = self._emit(task, given, after)
            self._open.pop()
        if once is not None:
            self._once[once] = self._ends[at]
        return self._ends[at]

    def _emit(self, task: Task, given: Mapping[str, Any], after: list[str]) -> list[str]:
        if not task.runs_here(task.get("platforms"), "the task"):
            return after
        own = task.name.replace(":", ".")
        label = self.plan.name(own)
        self.plan.give_back(label)
        if len(self._open) > 1 and (self.is_choice or label != own):
            label = f"{self._open[-2]}.{own}".replace(":", ".")
        reading = _Reading(self, task, given, label)
        parts: list[DraftStep | Call] = []
        reason: UntranslatableError | None = None
        try:
            parts = reading.parts()
        except UntranslatableError as why:
            reason = why
            reading.give_up()
        for step in reading.variables:
            after = self.add(step, after)
        ends: list[str] = []
        for call in reading.deps:
            ends += self.call(*call, after, task)
        # A task that runs once may have run long before.
        behind = set() if reading.env else self._behind(ends)
        after = list(dict.fromkeys([*ends, *(each for each in after if each not in behind)]))
        for part in parts:
            after = self.add(part, after) if isinstance(part, DraftStep) else self.call(*part, after, task)
        if reason is None:
            return after
        if task.get("prompt") is not None:
            ask = {"question": f"Run the task {task.name}?"}
            after = self.add(DraftStep(self.plan.name(f"{label}.ask"), ask=ask), after)
        text = source_text(task.file.reader.found.file, task.place, is_key=True)
        return self.leave(label, task, reason, after, text or task.name)

    def _behind(self, names: list[str]) -> set[str]:
        edges = {step.id: step.edges for step in self.plan.steps}
        for each in (found := list(names)):  # grows while it is read
            found += [name for name in edges.get(each, ()) if name not in found]
        return set(found)

    def leave(
        self, label: str, task: Task, why: UntranslatableError, after: list[str], text: str = ""
    ) -> list[str]:
        """Leave a task to a person or a model: a step without an action."""
        step = DraftStep(self.plan.name(label.replace(":", ".")))
        step.leave(
            task.file.reader.found, why.code, f"the task {label}: {why.message}", task.place, text or label
        )
        step.node = task.place
        return self.add(step, after)


class _Reading:
    """One task with its variables, while its steps are made; nothing is in the plan before all of it is certain."""

    def __init__(self, emission: Emission, task: Task, given: Mapping[str, Any], label: str) -> None:
        self.emission, self.task, self.label, self.reader = emission, task, label, task.file.reader
        self.keys: dict[str, Any] = {}
        self.env: dict[str, str] = {}
        self.first: list[str] = []  # lines that a script begins with
        self.steps: list[DraftStep] = []  # all that were made
        self.variables: list[DraftStep] = []  # what runs the commands of its variables
        self.deps: list[Call] = []
        self.scope = task.file.scope().with_values({"TASK": task.name, "ALIAS": task.name, **given})

    def parts(self) -> list[DraftStep | Call]:
        """Return the steps of the commands, and the calls between them; raises UntranslatableError."""
        node, get = self.task.node, self.task.get
        if self.task.file.unsure:
            raise UntranslatableError("task", self.task.file.unsure)
        for key in node.value if node.kind == MAPPING else ():
            if key not in _TASK:
                raise UntranslatableError(f"key:{key}", f"it has `{key}`")
        self._folder()
        self._variables()
        tolerated = truth_of(get("ignore_error")) is True
        guards = self._guards()
        self.deps = [call for each in self.reader.items(get("deps"), "`deps`") for call in self._calls(each)]
        if get("if") is not None and self.deps:
            raise UntranslatableError("if", "a condition of a task that needs others")
        questions = [self._known(text) for text in self.reader.texts(get("prompt"), "`prompt`")]
        found: list[DraftStep | Call] = [
            self._step("ask", ask={"question": " ".join(text.split())}) for text in questions
        ]
        nodes = node.value if node.kind == SEQUENCE else [node] if node.kind == SCALAR else [
            *self.reader.either(get("cmd"), "`cmd`"), *self.reader.items(get("cmds"), "`cmds`")
        ]  # fmt: skip
        groups: list[list[tuple[str, bool]] | Call] = [[]]
        for each in nodes:
            for command in self._commands(each, tolerated=tolerated):
                if isinstance(command[1], dict):
                    groups += [(command[0], command[1]), []]
                else:
                    groups[-1].append((command[0], command[1]))  # type: ignore[union-attr]
        is_single = len(groups) == 1
        if not is_single and (guards or tolerated):
            raise UntranslatableError("status", "conditions or `ignore_error` beside calls of other tasks")
        groups = [each for each in groups if each or (is_single and (guards or found))]
        title = " ".join(self._known(text_of(get("desc"))).split())
        for at, group in enumerate(groups):
            if isinstance(group, tuple):
                found.append(group)
                continue
            step = self._step("" if is_single else str(at + 1), run=self._script(group, guards), **self.keys)
            step.keys |= {"env": self.env, "title": title[:200] if title.isprintable() else ""}
            found.append(step)
        return found

    def give_up(self) -> None:
        """Keep what is certain although the commands are not: the tasks that it needs by their names alone."""
        for step in self.steps:
            self.emission.plan.give_back(step.id)
        self.variables, self.env = [], {}
        nodes = self.reader.items(self.task.get("deps"), "`deps`")
        names = [
            text_of(each.get("task") if each.kind == MAPPING and len(each.value) == 1 else each)
            for each in nodes
        ]
        self.deps = [(name, {}) for name in names if name and "{{" not in name]

    def _step(self, part: str, **keys: Any) -> DraftStep:
        step = DraftStep(self.emission.plan.name(f"{self.label}.{part}" if part else self.label), **keys)
        step.node = self.task.place
        self.steps.append(step)
        return step

    def _script(self, commands: list[tuple[str, bool]], guards: list[str]) -> str:
        first = []
        if any(re.search(r"\$\([^()]*[;&|\n]|`[^`]*[;&|\n]", text) for text, _ in commands):
            first.append("shopt -s inherit_errexit")  # as go-task: a failure ends a command in `$(…)`
        for name, word in (("set", "set -o"), ("shopt", "shopt -s")):
            for each in (self.task.file.root.get(name), self.task.get(name)):
                first += [f"{word} {option}" for option in self.reader.texts(each, f"`{name}`")]
        if not all(re.fullmatch(r"(set -o|shopt -s) [a-z_]{2,}", line) for line in first):
            raise UntranslatableError("set", "an option of the shell")
        return joined(commands or [(":", False)], strict=True, first=[*first, *self.first, *guards])

    def _known(self, text: str, scope: Scope | None = None) -> str:
        return shown((scope or self.scope).fill(text))

    def _text(self, text: str, scope: Scope | None = None) -> str:
        if match := _NOT_OF_TASK.search(text):
            raise UntranslatableError("shell", f"the shell of go-task has no `{match[1]}`")
        return script_of(pieces_of((scope or self.scope).fill(text)), self.env)

    def _folder(self) -> None:
        """Set the folder of the task; one that is not there is made, as by go-task."""
        own, top = self.task.get("dir"), self.task.file.top
        given = self.scope.fill(text_of(own))
        folder = self.task.file.folder
        if isinstance(given, Text) and given.pieces[0] == ShellText(text="${PLANRUN_WORKSPACE}"):
            given, folder = f".{''.join(each for each in given.pieces[1:] if isinstance(each, str))}", ""
        folder = posixpath.normpath(posixpath.join(folder, shown(given)) or ".")
        there = own is None or os.path.isdir(os.path.join(os.path.dirname(top.reader.found.file), folder))
        if folder != "." and there:
            self.keys["workdir"] = folder
        elif folder != ".":
            self.first = [f"mkdir -p {shlex.quote(folder)}", f"cd {shlex.quote(folder)}"]

    def _variables(self) -> None:
        """Set what the task requires, its variables and its environment, those that commands give by their steps."""
        own, env = (self.reader.mapping(self.task.get(name), f"`{name}`") for name in ("vars", "env"))
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
            self._by_command("variables", {name: node})
            self.scope = self.scope.with_values({name: self.scope.value(name, node, self.task.file)})
        self._by_command("environment", env)
        nodes: dict[str, Node] = env
        file: File | None = self.task.file
        while file is not None:
            nodes = {**file.members("env"), **nodes}
            file = file.outer
        for name, node in nodes.items():
            parts = map(_expression, pieces_of(self.scope.value(name, node, self.task.file)))
            if not NAME.match(name):
                raise UntranslatableError("env", f"the variable {name}")
            # The caller's variables win, as in go-task.
            self.env[name] = f"${{{{ default(env.{name}, {' ~ '.join(parts)}) }}}}"

    def _by_command(self, word: str, nodes: dict[str, Node]) -> None:
        step = self.emission.commands(f"{self.label}.{word}", self.scope, nodes, self.keys)
        if step is None:
            return
        self.steps.append(step)
        self.variables.append(step)
        if self.first:
            raise UntranslatableError("dir", "commands of variables in a folder that is not there")

    def _guards(self) -> list[str]:
        """Return the lines that end a script at once: `if`, preconditions, `status`; raises UntranslatableError."""
        lines = []
        if (asked := self.task.get("if")) is not None:
            lines.append(f"{self._test(text_of(asked))} || exit 0")
        for each in self.reader.items(self.task.get("preconditions"), "`preconditions`"):
            text, told = (text_of(each.get(name)) if each.kind == MAPPING else "" for name in ("sh", "msg"))
            told = shlex.quote(" ".join(self._known(told).split()) or "a precondition is not met")
            lines.append(f"{self._test(text or text_of(each))} || {{ echo {told} >&2; exit 1; }}")
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

    def _commands(self, node: Node, *, tolerated: bool) -> Iterator[tuple[str, bool] | Call]:
        """Yield commands, with whether a failure is tolerated, and calls; raises UntranslatableError."""
        if node.kind == SCALAR:
            yield self._text(text_of(node)), tolerated
            return
        if node.kind != MAPPING or (unknown := sorted(set(node.value) - _COMMAND)):
            what = unknown[0] if node.kind == MAPPING else "a list"
            raise UntranslatableError("cmds", f"a command with `{what}`")
        tolerated = tolerated or truth_of(node.get("ignore_error")) is True
        asked = node.get("if")
        if not self.task.runs_here(node.get("platforms"), "a command"):
            return
        if not is_nothing(node.get("task")):
            if asked is not None or tolerated:
                raise UntranslatableError("if", "a condition or `ignore_error` of a call")
            yield from self._calls(node)
            return
        for scope in self._scopes(node.get("for")):
            text = self._text(text_of(node.get("cmd")), scope)
            if asked is not None:
                text = f"if {self._test(text_of(asked))}; then\n{text.rstrip()}\nfi"
            yield text, tolerated

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
        items: Any = None
        if loop.kind == SEQUENCE:
            items = self.scope.value("ITEM", loop, self.task.file)
        elif loop.kind == MAPPING and not is_nothing(loop.get("matrix")):
            members = self.reader.mapping(loop.get("matrix"), "`matrix`")
            axes = {key: fixed(self.scope.value(key, each, self.task.file)) for key, each in members.items()}
            total = 1
            for values in axes.values():
                total *= len(values) if isinstance(values, list) else MAX_ITEMS + 1
            rows = product(*axes.values()) if total <= MAX_ITEMS else ()
            items = [dict(zip(axes, row, strict=True)) for row in rows]
        elif loop.kind == MAPPING and not is_nothing(loop.get("var")):
            value = self.scope.lookup(text_of(loop.get("var")))
            items = (
                value if isinstance(value, list) else shown(value).split(text_of(loop.get("split")) or None)
            )
        if not items or len(items) > MAX_ITEMS:
            raise UntranslatableError(
                "for", f"a loop over nothing, over what a run finds, or over more than {MAX_ITEMS}"
            )
        name = (text_of(loop.get("as")) if loop.kind == MAPPING else "") or "ITEM"
        return [self.scope.with_values({name: item}) for item in items]


def _expression(piece: Piece) -> str:
    """Return a piece as an expression of the plan; raises UntranslatableError."""
    if isinstance(piece, str):
        return quoted(piece)
    if not isinstance(piece, ShellText) or piece.expression:
        return piece.expression
    if not piece.reads or piece.text != f"${{{piece.reads}}}":
        raise UntranslatableError("env", f"`{piece.text}` in a variable")
    return f"default(env.{piece.reads}, '')"
