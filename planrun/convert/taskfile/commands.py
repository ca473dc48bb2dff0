"""The commands of a task: shell commands as one script, calls of other tasks between them, loops unrolled.

Each command has a shell of its own there, and the first that fails ends the task: here each stands in brackets.
"""

from __future__ import annotations

import re

from planrun.convert.draft import says_nothing
from planrun.convert.reader import UntranslatableError, is_nothing, text_of, truth_of
from planrun.convert.taskfile.templates import Reference, Value
from planrun.convert.taskfile.values import arms_of, joined, outside, passed
from planrun.model.record import Record
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from planrun.convert.reader import Reader
    from planrun.convert.taskfile.values import Scope
    from planrun.plan.yaml.node import Node

_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}
_DEFAULT = re.compile(
    r"\$\{(\w+):-([\w.:-]*)\}"
)  # a variable of the environment, or a text where it is not set
MAX_ITEMS = 100  # of one loop
_KNOWN = frozenset((
    "cmd", "task", "vars", "silent", "ignore_error", "for", "defer", "platforms", "set", "shopt", "if", "interactive",
    "timeout",
))  # fmt: skip


class Entry(Record):
    """One command of a script; `lines` come before it, `after` is run when the task ends."""

    text: str
    lines: tuple[str, ...] = ()
    is_tolerated: bool = False
    only_if: str = ""
    after: bool = False


class Call(Record):
    """A call of another task, with the variables that it is given."""

    task: str
    place: Node
    given: Mapping[str, Value] = {}
    only_if: str = ""  # a command of the shell that has to pass, and the lines before it
    lines: tuple[str, ...] = ()


class Commands:
    """Reads the commands of one task in one scope."""

    def __init__(
        self,
        scope: Scope,
        reader: Reader,
        files: Mapping[str, list[str] | None],
        inlined: Callable[[Call], Entry],
    ) -> None:
        self.inlined = inlined  # the commands of another task as one
        self.scope = scope
        self.reader = reader
        self.files = files  # patterns of `sources` and `generates`, which a command can go through

    def read(self, nodes: list[Node], *, is_tolerated: bool = False) -> list[Entry | Call]:
        """Return the commands in order; raises UntranslatableError."""
        found: list[Entry | Call] = []
        for node in nodes:
            if node.kind == SCALAR:
                found.append(self._entry(node, node, self.scope).but(is_tolerated=is_tolerated))
            elif node.kind == MAPPING:
                found += self._described(node, is_tolerated=is_tolerated)
            elif not is_nothing(node):
                self.reader.text(node, "a command")
        return found

    def _described(self, node: Node, *, is_tolerated: bool) -> Iterator[Entry | Call]:
        self.reader.ignored(node.value, _KNOWN, node, "a command")
        if not runs_here(self.reader.texts(node.get("platforms"), "`platforms`")):
            self.scope.found.differs(
                "other-machines", "commands for other systems than Linux are left out", node
            )
            return
        loop = node.get("for")
        shell = self._shell_loop(loop, node) if loop is not None else None
        if shell is not None:
            yield shell.but(is_tolerated=is_tolerated or truth_of(node.get("ignore_error")) is True)
            return
        scopes = [self.scope] if loop is None else items_of(loop, self.scope, self.reader)
        for scope in scopes:
            if not is_nothing(node.get("task")) and node.get("defer") is None:
                yield from self._calls(node, scope)
                continue
            found = self._one(node, scope)
            yield found.but(is_tolerated=is_tolerated or truth_of(node.get("ignore_error")) is True)

    def _calls(self, node: Node, scope: Scope) -> Iterator[Call]:
        """Yield the call of a task; one for each where a test of the shell chooses which."""
        asked = node.get("if")
        lines: tuple[str, ...] = ()
        only_if = ""
        if asked is not None and not is_nothing(asked):
            found = joined(asked, scope, text_of(asked), in_script=True)
            lines, only_if = found.lines, f"(\n{found.text.rstrip()}\n)"
        for call in calls_of(node, scope, self.reader):
            tests = " && ".join(filter(None, (only_if, call.only_if)))
            yield call.but(only_if=tests, lines=tuple(dict.fromkeys((*lines, *call.lines))))

    def _shell_loop(self, loop: Node, node: Node) -> Entry | None:
        """Return a command that a loop of the shell repeats, where only a run knows the items; None for other loops."""
        name = text_of(loop.get("as")) or "ITEM"
        lines: tuple[str, ...] = ()
        if loop.kind == SCALAR:
            patterns = self.files.get(text_of(loop))
            if patterns is None:
                return None
            words, lines = " ".join(patterns), ("shopt -s globstar nullglob",)
        else:
            source = loop.get("var")
            found = self.scope.value(Reference(name=text_of(source)), loop) if source is not None else None
            if (
                found is None
                or found.items is not None
                or not found.is_shell
                or loop.get("split") is not None
            ):
                return None
            words, lines = found.text, found.lines
        command = node.get("cmd")
        if command is None or is_nothing(command):
            return None
        entry = self._entry(
            command, node, self.scope.with_item(name, Value(text=f"${{{name}}}", is_shell=True), {})
        )
        body = f"if (\n{entry.only_if}\n); then\n{entry.text}\nfi" if entry.only_if else entry.text
        text = f"for {name} in {words}; do (\n{body}\n) || exit; done"
        return Entry(text=text, lines=tuple(dict.fromkeys((*lines, *entry.lines))))

    def _one(self, node: Node, scope: Scope) -> Entry:
        after = node.get("defer")
        if after is not None:
            if after.kind == MAPPING:
                return self.inlined(call_of(after, scope, self.reader)).but(after=True)
            return self._entry(after, node, scope).but(after=True)
        command = node.get("cmd")
        if command is None or is_nothing(command):
            raise UntranslatableError("shape", "a command has `cmd`, `task` or `defer`")
        return self._entry(command, node, scope)

    def _entry(self, command: Node, node: Node, scope: Scope) -> Entry:
        found = joined(command, scope, text_of(command), in_script=True)
        lines = list(found.lines)
        if node.kind == MAPPING:
            lines += options_of(node, self.reader)
        condition = node.get("if")
        only_if = ""
        if condition is not None and not is_nothing(condition):
            asked = joined(condition, scope, text_of(condition), in_script=True)
            lines += [line for line in asked.lines if line not in lines]
            only_if = asked.text
        text = found.text.rstrip("\n")
        if node.kind == MAPPING and not is_nothing(node.get("timeout")):
            text = self._limited(text, text_of(node.get("timeout")), lines)
        return Entry(text=text, lines=tuple(lines), only_if=only_if)

    def _limited(self, text: str, limit: str, lines: list[str]) -> str:
        """Return a command that ends after a time; raises UntranslatableError."""
        spans = re.findall(r"(\d+(?:\.\d+)?)(ms|s|m|h)", limit)
        if "".join(map("".join, spans)) != limit or lines:
            raise UntranslatableError(
                "timeout", f"the time `{limit}` of a command, or variables of the shell in it"
            )
        seconds = sum(float(number) * _UNITS[unit] for number, unit in spans)
        quoted = "'" + text.replace("'", "'\\''") + "'"
        return f"timeout --kill-after=5 {seconds:g} bash --norc -c {quoted}"


def call_of(node: Node, scope: Scope, reader: Reader) -> Call:
    """Return the call that an entry of `cmds` or `deps` describes; raises UntranslatableError."""
    found = joined(node, scope.fixed(), text_of(node.get("task")))
    if found.is_shell and not found.lines and (text := _DEFAULT.sub(r"\2", found.text)) != found.text:
        names = ", ".join(match[1] for match in _DEFAULT.finditer(found.text))
        scope.found.differs(
            "task", f"which task is called is decided now, as if {names} were not set: {text}", node
        )
        found = Value(text=text, is_shell="$" in text)
    name = outside(found, "the name of a task")
    if "${{" in name:
        raise UntranslatableError("task", f"which task is called is not known before the run: {name}")
    given = {
        key: passed(key, value, scope) for key, value in reader.mapping(node.get("vars"), "`vars`").items()
    }
    return Call(task=name, place=node, given=given)


def calls_of(node: Node, scope: Scope, reader: Reader) -> list[Call]:
    """Return the call that an entry describes: several where `{{if …}}` chooses the task by a test of the shell."""
    place = node.get("task")
    arms = arms_of(text_of(place), place or node, scope)
    if arms is None:
        return [call_of(node, scope, reader)]
    given = {
        key: passed(key, value, scope) for key, value in reader.mapping(node.get("vars"), "`vars`").items()
    }
    found = []
    before: list[str] = []
    lines: list[str] = []
    for test, name in arms:
        lines += test.lines
        asked = [*(f"! {{ {each}; }}" for each in before), *([test.test] if test.test else [])]
        if name:
            found.append(
                Call(task=name, place=node, given=given, only_if=" && ".join(asked), lines=tuple(lines))
            )
        before += [test.test] if test.test else []
    return found


def options_of(node: Node, reader: Reader) -> list[str]:
    """Return the lines that set the options of the shell which `set` and `shopt` name."""
    words = [
        *(f"set -o {name}" for name in map(_long_option, reader.texts(node.get("set"), "`set`"))),
        *(f"shopt -s {name}" for name in reader.texts(node.get("shopt"), "`shopt`")),
    ]
    return [word for word in words if re.fullmatch(r"[a-z_ -]+", word)]


def _long_option(name: str) -> str:
    return {
        "e": "errexit",
        "u": "nounset",
        "f": "noglob",
        "x": "xtrace",
        "a": "allexport",
        "n": "noexec",
    }.get(name, name)


def runs_here(platforms: list[str]) -> bool:
    """Say whether a list of platforms, empty for all, has Linux among them."""
    return not platforms or any(name.startswith("linux") or name in ("amd64", "arm64") for name in platforms)


def items_of(loop: Node, scope: Scope, reader: Reader) -> list[Scope]:
    """Return a scope for each item of a loop; raises UntranslatableError for items that are found during a run."""
    if loop.kind == SEQUENCE:
        values = [outside(joined(item, scope, text_of(item)), "an item") for item in loop.value]
        return _scopes("ITEM", values, scope)
    if loop.kind == SCALAR:
        raise UntranslatableError(
            "for", f"a loop over the {text_of(loop)} of the task, which are found when it runs"
        )
    name = text_of(loop.get("as")) or "ITEM"
    matrix = loop.get("matrix")
    if matrix is not None:
        return _combined(name, reader.mapping(matrix, "`matrix`"), scope, reader)
    source = text_of(loop.get("var"))
    found = scope.fixed().value(Reference(name=source), loop)
    if found.items is not None:
        return _scopes(name, list(found.items), scope)
    if found.is_shell or "${{" in found.text:
        raise UntranslatableError("for", f"a loop over {source}, which is known when it runs")
    split = text_of(loop.get("split"))
    return _scopes(name, found.text.split(split) if split else found.text.split(), scope)


def _scopes(name: str, values: list[str], scope: Scope) -> list[Scope]:
    if len(values) > MAX_ITEMS:
        raise UntranslatableError("for", f"a loop over more than {MAX_ITEMS} items")
    return [scope.with_item(name, Value(text=value), {}) for value in values]


def _combined(name: str, axes: Mapping[str, Node], scope: Scope, reader: Reader) -> list[Scope]:
    rows: list[dict[str, str]] = [{}]
    for axis, node in axes.items():
        if node.kind == MAPPING:
            found = scope.value(Reference(name=text_of(node.get("ref")).lstrip(".")), node)
            values = list(found.items or ())
            if not values:
                raise UntranslatableError("for", f"the axis {axis} of a loop is no list")
        else:
            values = [
                outside(joined(item, scope, text_of(item)), "an item") for item in reader.items(node, axis)
            ]
        rows = [{**row, axis: value} for row in rows for value in values]
        if len(rows) > MAX_ITEMS:
            raise UntranslatableError("for", f"a loop over more than {MAX_ITEMS} items")
    return [
        scope.with_item(
            name, Value(text=" ".join(row.values())), {axis: Value(text=text) for axis, text in row.items()}
        )
        for row in rows
    ]


def script_of(entries: list[Entry], first: list[str]) -> str:
    """Return the script that runs commands one after the other; `first` are lines that it begins with."""
    lines = list(first)
    for entry in entries:
        lines += [line for line in entry.lines if line not in lines]
    if len(entries) == 1 and not (entries[0].is_tolerated or entries[0].only_if or entries[0].after):
        return "\n".join([*lines, entries[0].text])
    waiting = 0
    for entry in entries:
        body = "(\n:\n)" if says_nothing(entry.text) else f"(\n{entry.text}\n)"
        if entry.after:
            waiting += 1
            lines.append(f"deferred_{waiting}() {body}")
            calls = "; ".join(f"deferred_{number}" for number in range(waiting, 0, -1))
            code = (
                "EXIT_CODE=$?; test $EXIT_CODE != 0 || EXIT_CODE=; "
                if "${EXIT_CODE" in "".join(lines)
                else ""
            )
            lines.append(f"trap '{code}{calls}' EXIT")
        else:
            text = f"{body} || {'true' if entry.is_tolerated else 'exit'}"
            lines.append(f"if (\n{entry.only_if}\n); then\n{text}\nfi" if entry.only_if else text)
    return "\n".join(lines) + "\n"
