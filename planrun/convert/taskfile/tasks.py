"""Tasks as steps: what a task needs comes first, its commands are one step, or several around calls of other tasks."""

from __future__ import annotations

import os
import posixpath
import re

from planrun.convert.draft import DraftStep, step_path
from planrun.convert.reader import UntranslatableError, is_nothing, text_of, truth_of
from planrun.convert.taskfile.commands import (
    Call,
    Commands,
    Entry,
    call_of,
    items_of,
    options_of,
    runs_here,
    script_of,
)
from planrun.convert.taskfile.templates import Value
from planrun.convert.taskfile.values import joined, outside, value_of
from planrun.model.record import Record
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from planrun.convert.draft import DraftPlan
    from planrun.convert.reader import Reader
    from planrun.convert.taskfile.values import Scope

MAX_DEPTH = 50
MAX_STEPS = 2000
_KNOWN = frozenset((
    "aliases", "cmd", "cmds", "deps", "desc", "dir", "dotenv", "env", "failfast", "generates", "if", "ignore_error",
    "interactive", "internal", "label", "method", "platforms", "preconditions", "prefix", "prompt", "requires", "run",
    "set", "shopt", "silent", "sources", "status", "summary", "use_gitignore", "vars", "watch",
))  # fmt: skip


class Source(Record):
    """A Taskfile, or one that another includes: how it is read, what its tasks see, and where they run.

    `prefix`: what stands before the names of its tasks, as `docs:`. `folder`: where they run, "" for the workspace.
    `first`: lines for every script that set variables which a shell works out.
    """

    reader: Reader
    top: Scope
    prefix: str = ""
    folder: str = ""
    first: tuple[str, ...] = ()


class Known(Record):
    """A task that can be called, and the file that it stands in."""

    node: Node
    source: Source


class Emission:
    """Puts tasks into a plan; `lost` are the beginnings of names whose files cannot be read, with the reason."""

    def __init__(
        self,
        plan: DraftPlan,
        tasks: Mapping[str, Known],
        aliases: Mapping[str, str],
        lost: Mapping[str, str],
        root: str = ".",
    ) -> None:
        self.root = root  # the folder of the first file
        self.plan = plan
        self.tasks = tasks
        self.aliases = aliases
        self.lost = lost
        self.is_choice = (
            False  # whether a run takes one of several tasks: only those without steps before are shared
        )
        self._done: dict[object, list[str]] = {}
        self._open: list[object] = []

    def call(self, call: Call, entry: list[str], source: Source, parent: str = "") -> list[str]:
        """Emit a task and return the steps that it has ended with.

        `source`: the file that calls it, whose names need no prefix there. `parent`: the task that calls it as a
        command.
        """
        name = self.meant(call.task, source.prefix)
        known = self.tasks.get(name)
        if known is None:
            return self._missing(name, call, entry, source)
        key: tuple[object, ...] = (
            name,
            tuple(sorted((key, value.text) for key, value in call.given.items())),
        )
        if self.is_choice:
            key = (*key, parent, *entry)
        done = self._done.get(key)
        if done is not None and (not parent or self.is_choice or text_of(known.node.get("run")) == "once"):
            return done
        if key in self._open or len(self._open) > MAX_DEPTH or len(self.plan.steps) > MAX_STEPS:
            found = source.reader.found
            found.refuse("shape", f"the task {name} calls itself, or too many others", call.place)
            return entry
        self._open.append(key)
        is_copy = done is not None or (self.is_choice and bool(parent or entry))
        preferred = f"{parent or entry[-1]}.{name}" if is_copy else name
        ends = Task(self, name, known, call.given).emit(self.plan.name(preferred.replace(":", ".")), entry)
        self._open.pop()
        self._done[key] = ends
        return ends

    def apart(self, call: Call, entry: list[str], source: Source, parent: str) -> list[str]:
        """Emit a task with steps of its own for all that it needs, since they run under a condition."""
        before, self._done = self._done, {}
        try:
            return self.call(call, entry, source, parent)
        finally:
            self._done = before

    def meant(self, name: str, prefix: str) -> str:
        """Return the full name of the task that a name means in a file: its own tasks come first."""
        if name.startswith(":"):
            return self._resolved(name[1:])
        own = self._resolved(f"{prefix}{name}")
        return own if own in self.tasks else self._resolved(name)

    def _resolved(self, name: str) -> str:
        if name in self.tasks:
            return name
        name = self.aliases.get(name, name)
        owner, _, rest = name.partition(":")
        if rest and owner in self.aliases:
            name = f"{self.aliases[owner]}:{rest}"
            name = self.aliases.get(name, name)
        return name if name in self.tasks or f"{name}:default" not in self.tasks else f"{name}:default"

    def _missing(self, name: str, call: Call, entry: list[str], source: Source) -> list[str]:
        lost = next((why for prefix, why in self.lost.items() if name.startswith(prefix)), "")
        step = DraftStep(self.plan.name(call.task.replace(":", ".")))
        found = source.reader.found
        if lost:
            step.make_abstract(found.refuse("includes", f"the task {call.task}: {lost}", call.place, step.id))
        elif not self._open:
            step.make_abstract(
                found.refuse("task", f"the task {call.task}: there is none", call.place, step.id)
            )
        else:
            message = f"the task {call.task} is not there: its step fails, as the call does in go-task"
            step.notes.append(found.todo("task", message, call.place, step.id))
            step.keys["run"] = f"echo {_shell_quoted(f'the task {call.task} is not there')} >&2; exit 200"
        for other in entry:
            step.wait(other)
        self.plan.add(step)
        return [step.id]


class Task:
    """One call of a task while it is being emitted."""

    def __init__(self, emission: Emission, name: str, known: Known, given: Mapping[str, Value]) -> None:
        self.emission = emission
        self.plan = emission.plan
        self.source = known.source
        self.reader = known.source.reader
        self.found = self.reader.found
        self.name = name
        self.node = node = known.node
        self.members: dict[str, Node] = node.value if node.kind == MAPPING else {}
        own = self.reader.mapping(self.members.get("vars"), "`vars`")
        self.scope = known.source.top.inner(name, given, own)
        self.scope.by_shell = {*self.scope.by_shell, *self.reader.mapping(self.members.get("env"), "`env`")}
        self.scope.has_files = not is_nothing(self.members.get("dotenv"))
        self.made: list[DraftStep] = []
        self.last: list[str] = []
        self.folder = ""  # that it runs in, where the plan knows it
        self.is_elsewhere = False  # whether only a shell knows the folder that it runs in

    def emit(self, step_name: str, entry: list[str]) -> list[str]:
        """Put the steps of the task into the plan; returns those that it ends with."""
        self.reader.ignored(self.members, _KNOWN, self.node, f"the task {self.name}")
        self.last = list(entry)
        if not runs_here(self.reader.texts(self.members.get("platforms"), "`platforms`")):
            self.found.differs("other-machines", "tasks for other systems than Linux are left out", self.node)
            return self.last
        try:
            self._needed()
            self._asked(step_name)
            self._checked(step_name)
            parts = self.parts()
            self._commands(step_name, parts)
        except UntranslatableError as why:
            self._abstract(step_name, why)
        self._told()
        return self.last

    def _add(self, step: DraftStep) -> DraftStep:
        for other in self.last:
            step.wait(other)
        self.last = [step.id]
        self.made.append(step)
        return self.plan.add(step)

    def _abstract(self, step_name: str, why: UntranslatableError) -> None:
        step = DraftStep(step_name if not self.made else self.plan.name(f"{step_name}.rest"))
        note = self.found.refuse(why.code, f"{why.message} (task {self.name})", self.node, step.id)
        step.make_abstract(note)
        commands = self.members.get("cmds")
        if commands is not None and commands.kind == SEQUENCE:
            texts = [text_of(node) or text_of(node.get("cmd")) for node in commands.value]
            if 0 < len("".join(texts)) <= 4000:
                step.keys["notes"] = "\n".join(filter(None, texts))
        self._add(step)

    def _needed(self) -> None:
        """Emit what the task depends on; all of it may run at the same time."""
        ends: list[str] = []
        before = list(self.last)
        nodes = self.reader.items(self.members.get("deps"), "`deps`")
        for node in nodes:
            for call in self._calls(node):
                count = len(self.plan.steps)
                ends += [name for name in self.emission.call(call, before, self.source) if name not in ends]
                if (
                    len(self.plan.steps) == count
                ):  # it was there before, and waits for nothing of what comes here
                    ends += [name for name in before if name not in ends]
        if nodes:
            message = "a task that several need runs once; and when one fails, what does not need it goes on"
            self.found.differs("deps", message, self.node.key("deps"))
            self.last = ends or before

    def _calls(self, node: Node) -> list[Call]:
        if node.kind == SCALAR:
            wrapped = Node(MAPPING, {"task": node}, node.line, node.col)
            wrapped.keys = {"task": node}
            return [call_of(wrapped, self.scope, self.reader)]
        self.reader.mapping(node, "an entry of `deps`")
        loop = node.get("for")
        scopes = [self.scope] if loop is None else items_of(loop, self.scope, self.reader)
        return [call_of(node, scope, self.reader) for scope in scopes]

    def _asked(self, step_name: str) -> None:
        """Make a question of `prompt`, and parameters of `requires`."""
        for node in self.reader.either(self.members.get("prompt"), "`prompt`"):
            found = joined(node, self.scope, text_of(node))
            text = (
                self._worked_out(step_name, found)
                if found.lines
                else outside(found, "a question") or "Go on?"
            )
            self._add(DraftStep(self.plan.name(f"{step_name}.ask"), ask={"question": text}))
        wanted = self.reader.mapping(self.members.get("requires"), "`requires`").get("vars")
        missing: list[str] = []
        for node in self.reader.items(wanted, "`vars`"):
            name = text_of(node) or text_of(node.get("name"))
            if name in self.scope.given or name in self.scope.own or name in self.scope.shared:
                continue
            values = self.reader.texts(node.get("enum"), "`enum`") if node.kind == MAPPING else []
            fragment: dict[str, object] = {"type": "string", "required": True}
            if self.emission.is_choice:  # other tasks do not need it
                fragment, values = {"type": "string", "default": ""}, ["", *values] if values else []
            if values:
                fragment["enum"] = list(dict.fromkeys(values))
            if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,99}", name):
                self.plan.params.setdefault(name, fragment)
                missing += [name] if self.emission.is_choice else []
                self.source.top.given.setdefault(name, Value(text=f"${{{{ params.{name} }}}}"))
                self.scope.given.setdefault(name, Value(text=f"${{{{ params.{name} }}}}"))
        if missing:  # a run of another task need not give them
            checks = [{"that": f"params.{name} != ''"} for name in missing]
            self._add(DraftStep(self.plan.name(f"{step_name}.requires"), validate=checks))

    def _worked_out(self, step_name: str, found: Value) -> str:
        """Make a step that works a text out, and return the expression that reads it."""
        quoted = re.sub(r'(["\\`])', r"\\\1", found.text)
        lines = [
            *self.source.first,
            *found.lines,
            f'printf \'text<<END_OF_TEXT\\n%s\\nEND_OF_TEXT\\n\' "{quoted}" >> "$PLANRUN_OUTPUT"',
        ]
        step = self._scripted(f"{step_name}.text", "\n".join(lines) + "\n", is_named=False)
        step.keys["outputs"] = {"text": "string"}
        self._add(step)
        return f"${{{{ default({step_path(step.id, 'outputs')}.text, '') }}}}"

    def _checked(self, step_name: str) -> None:
        """Make a step of what has to hold before the task."""
        lines: list[str] = []
        for node in self.reader.items(self.members.get("preconditions"), "`preconditions`"):
            check = node if node.kind == SCALAR else node.get("sh")
            if check is None:
                raise UntranslatableError("shape", "a precondition has `sh`")
            found = joined(check, self.scope, text_of(check), in_script=True)
            message = (
                outside(joined(node, self.scope, text_of(node.get("msg"))), "a message")
                or "precondition not met"
            )
            lines += [line for line in found.lines if line not in lines]
            lines.append(f"(\n{found.text.rstrip()}\n) || {{ echo {_shell_quoted(message)} >&2; exit 1; }}")
        if lines:
            self._add(self._scripted(f"{step_name}.pre", "\n".join(lines) + "\n", is_named=False))

    def parts(self) -> list[Entry | Call]:
        """Return the commands of the task in order; raises UntranslatableError."""
        nodes: list[Node]
        if self.node.kind == SCALAR:
            nodes = [] if is_nothing(self.node) else [self.node]
        elif self.node.kind == SEQUENCE:
            nodes = list(self.node.value)
        else:
            single = self.members.get("cmd")
            nodes = [single] if single is not None else self.reader.items(self.members.get("cmds"), "`cmds`")
        tolerated = truth_of(self.members.get("ignore_error")) is True
        files = {name: self._patterns(name) for name in ("sources", "generates")}
        return Commands(self.scope, self.reader, files, self._inlined).read(nodes, is_tolerated=tolerated)

    def _inlined(self, call: Call) -> Entry:
        """Return the commands of a task that is called when this one ends; raises UntranslatableError."""
        name = self.emission.meant(call.task, self.source.prefix)
        known = self.emission.tasks.get(name)
        if known is None:
            raise UntranslatableError("defer", f"the task {call.task}, which runs at the end, is not there")
        task = Task(self.emission, name, known, call.given)
        if set(task.members) - {
            "cmd",
            "cmds",
            "desc",
            "summary",
            "silent",
            "internal",
            "vars",
            "aliases",
            "ignore_error",
        }:
            raise UntranslatableError(
                "defer", f"the task {name}, which runs at the end, has more than commands"
            )
        parts = [part for part in task.parts() if isinstance(part, Entry)]
        if len(parts) != len(task.parts()):
            raise UntranslatableError("defer", f"the task {name}, which runs at the end, calls others")
        return Entry(text=script_of(parts, list(known.source.first)).rstrip("\n"))

    def _patterns(self, key: str) -> list[str] | None:
        """Return the patterns under a key for a loop of the shell; None where a shell has no words for them."""
        found = []
        for node in self.reader.items(self.members.get(key), f"`{key}`"):
            text = joined(node, self.scope, text_of(node)).text if node.kind == SCALAR else ""
            if not re.fullmatch(r"[A-Za-z0-9._/@+=,*?{}\[\]-]+", text):
                return None
            found.append(text)
        return found or None

    def _commands(self, step_name: str, parts: list[Entry | Call]) -> None:
        groups = _grouped(parts)
        _check_deferred(groups)
        own = [group for group in groups if isinstance(group, list)]
        for number, group in enumerate(groups, 1):
            if isinstance(group, Call) and group.only_if:
                self._maybe(group, f"{step_name}.{number}")
            elif isinstance(group, Call):
                self.last = self.emission.call(group, self.last, self.source, step_name)
            else:
                is_only = len(own) == 1 and len(groups) == 1
                step = self._scripted(
                    step_name if is_only else f"{step_name}.{number}", self._script(group), is_named=is_only
                )
                self._add(step)
                if is_only:
                    self._files(step)
        if len(groups) != 1 and self.members.get("sources") is not None:
            message = f"the task {self.name} is several steps: say what each reads (`inputs`) and makes (`produces`)"
            note = self.found.todo("sources", message, self.node.key("sources"))
            if self.made:
                self.made[-1].notes.append(note)

    def _maybe(self, call: Call, step_name: str) -> None:
        """Emit a call that a test of the shell decides on: a step does the test, and all steps of the call read it."""
        lines = [*self.source.first, *self._environment_lines(), *call.lines]
        test = f'if {call.only_if}; then met=true; else met=false; fi\necho "met=$met" >> "$PLANRUN_OUTPUT"\n'
        check = self._scripted(f"{step_name}.if", "\n".join([*lines, test]), is_named=False)
        check.keys["outputs"] = {"met": "boolean"}
        self._add(check)
        count = len(self.plan.steps)
        ends = self.emission.apart(call, [check.id], self.source, step_name)
        for step in self.plan.steps[count:]:
            step.wait(check.id, "completed")
            step.demand(f"{step_path(check.id, 'outputs')}.met")
        self.last = list(dict.fromkeys((check.id, *ends)))

    def _script(self, entries: list[Entry]) -> str:
        condition = self.members.get("if")
        first = (
            [*self.source.first, *options_of(self.node, self.reader)]
            if self.members
            else [*self.source.first]
        )
        first += self._environment_lines()
        if condition is not None and not is_nothing(condition):
            asked = joined(condition, self.scope, text_of(condition), in_script=True)
            first += [*asked.lines, f"(\n{asked.text.rstrip()}\n) || exit 0"]
        return script_of(entries, first)

    def _environment_lines(self) -> list[str]:
        lines: list[str] = []
        for name, node in self.reader.mapping(self.members.get("env"), "`env`").items():
            found = value_of(name, node, self.scope)
            if found.is_shell:
                lines += [line for line in found.lines if line not in lines]
                lines.append(
                    f"export {name}" if found.text == f"${{{name}}}" else f'export {name}="{found.text}"'
                )
        return lines

    def _scripted(self, preferred: str, script: str, *, is_named: bool) -> DraftStep:
        """Return a step with a script and the surroundings of the task."""
        name = preferred if is_named else self.plan.name(preferred)
        step = DraftStep(name, run=script)
        title = " ".join(text_of(self.members.get("desc")).split())
        if is_named and title and title.isprintable() and "{{" not in title:
            step.keys["title"] = title[:200]
        folder = self.members.get("dir")
        where = self.source.folder
        if folder is not None and not is_nothing(folder):
            where = self._inside(step, joined(folder, self.scope, text_of(folder)), where)
        if where:
            step.keys["workdir"] = where
        env = {}
        for key, node in self.reader.mapping(self.members.get("env"), "`env`").items():
            found = value_of(key, node, self.scope)
            if not found.is_shell:
                env[key] = found.text
        if env:
            step.keys["env"] = env
        files = self.reader.texts(self.members.get("dotenv"), "`dotenv`")
        if files:
            step.keys["env_file"] = [outside(joined(self.node, self.scope, file), "a file") for file in files]
            self.found.differs(
                "dotenv",
                "a file of variables has to be there, and wins over the caller's environment",
                self.node,
            )
        return step

    def _inside(self, step: DraftStep, found: Value, where: str) -> str:
        """Let a step run in a folder, which it makes where it is not there; returns the folder that it starts in."""
        if found.is_shell and not found.text.startswith("${PLANRUN_WORKSPACE}"):
            self.is_elsewhere = True
            lines, path = list(found.lines), found.text
        else:
            path = outside(found, "a folder")
            self.folder = posixpath.join(where, path)
            if "${{" not in self.folder and os.path.isdir(os.path.join(self.emission.root, self.folder)):
                return self.folder
            lines = []
        step.keys["run"] = "\n".join(
            [*lines, f'mkdir -p "{path}" && cd "{path}" || exit', str(step.keys["run"])]
        )
        return where

    def _files(self, step: DraftStep) -> None:
        """Say what a step reads and makes, and that it need not run again."""
        folder = (self.folder or str(step.keys.get("workdir", ""))).removeprefix("./").rstrip("/")
        read = self._globs("sources", folder, step)
        made = self._globs("generates", folder, step)
        if made and self.plan.claim(step.id, made):
            step.keys["produces"] = made
            message = "a file under `generates` that is missing after the task fails the step"
            self.found.differs("generates", message, self.node.key("generates"))
        elif made:
            message = f"several steps make {', '.join(made)}; only the first says so by `produces`"
            self.found.differs("generates", message, self.node.key("generates"))
        if not read:
            return
        step.keys["inputs"] = read
        method = text_of(self.members.get("method"))
        if method == "none":
            return
        step.keys["cache"] = True
        message = "up to date by the content of what it reads and makes, of its script and variables; never by times"
        self.found.differs("sources", message, self.node.key("sources"))

    def _globs(self, key: str, folder: str, step: DraftStep) -> list[str]:
        found = []
        for node in self.reader.items(self.members.get(key), f"`{key}`"):
            excluded = node.get("exclude") if key == "sources" else None
            place = excluded if excluded is not None else node
            found_text = joined(place, self.scope, text_of(place)) if place.kind == SCALAR else Value(text="")
            if found_text.is_shell:
                message = f"`{key}` of {self.name} has `{text_of(place)}`, which only a shell knows: it is left to you"
                step.notes.append(self.found.todo(key, message, node))
                continue
            text = outside(found_text, "a file")
            sign = "!" if key == "sources" and (excluded is not None or text.startswith("!")) else ""
            text = text.removeprefix(sign).removeprefix("./")
            path = f"{folder}/{text}" if folder else text
            outside_of_it = self.is_elsewhere or text.startswith(("!", "/", "~")) or ".." in path.split("/")
            if not text or outside_of_it or "${{" in path:
                message = f"`{key}` of {self.name} has `{text}`, which is left to you"
                step.notes.append(self.found.todo(key, message, node))
            else:
                found.append(f"{sign}{path}")
        return list(dict.fromkeys(found))

    def _told(self) -> None:
        """Leave to a person what a plan does not know."""
        notes = []
        status = self.members.get("status")
        if status is not None and not is_nothing(status):
            checks = " && ".join(" ".join(text.split()) for text in self.reader.texts(status, "`status`"))
            message = f"the task {self.name} is up to date where this passes: {checks}; see `cache:`"
            notes.append(self.found.todo("status", message, self.node.key("status")))
        for key in ("interactive", "watch"):
            if truth_of(self.members.get(key)):
                message = f"`{key}`: a step has no terminal and runs once"
                self.found.differs(key, message, self.node.key(key))
        if self.made and notes:
            self.made[0].notes += notes


def _grouped(parts: list[Entry | Call]) -> list[list[Entry] | Call]:
    """Return the calls, and between them the commands that are one script."""
    groups: list[list[Entry] | Call] = []
    for part in parts:
        if isinstance(part, Call):
            groups.append(part)
        elif groups and isinstance(groups[-1], list):
            groups[-1].append(part)
        else:
            groups.append([part])
    return groups


def _check_deferred(groups: list[list[Entry] | Call]) -> None:
    """Raise UntranslatableError for a command that is deferred before the script that ends the task."""
    early = [each for group in groups[:-1] if isinstance(group, list) for each in group]
    if any(each.after for each in early):
        raise UntranslatableError(
            "defer", "a command that runs when the task ends, in a task that calls others after it"
        )


def _shell_quoted(text: str) -> str:
    """Return a message for a shell: in single quotes, unless the plan fills something in."""
    plain = " ".join(text.split())
    if "${{" in plain:
        return '"' + re.sub(r'(["\\`])', r"\\\1", plain) + '"'
    return "'" + plain.replace("'", "'\\''") + "'"
