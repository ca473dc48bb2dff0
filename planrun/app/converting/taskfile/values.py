"""Variables of a Taskfile: what is known of each, and how it is read in a script."""

from __future__ import annotations

import re
from itertools import pairwise

from planrun.app.converting.draft import literal_text
from planrun.app.converting.findings import UntranslatableError
from planrun.app.converting.reading import data_of, text_of
from planrun.app.converting.taskfile.templates import Reference, pieces_of
from planrun.model.record import Record
from planrun.source.node import MAPPING, SCALAR, SEQUENCE
from planrun.source.quoting import open_quotes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from planrun.app.converting.draft import DraftPlan
    from planrun.app.converting.findings import Findings
    from planrun.source.node import Node

MAX_NESTING = 20
_READ = re.compile(r"\$\{[A-Za-z_]\w*(?::-)?\}")
_SAFE = re.compile(r"[A-Za-z0-9._/@:+=,-]*\Z")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}\Z")
_HERE = frozenset(("ROOT_DIR", "TASKFILE_DIR", "USER_WORKING_DIR"))


class Value(Record):
    """What a variable is: text that may hold `${{ … }}`, or something that only a shell knows.

    `lines` are what a script has to say first, and `text` then reads a variable of the shell, when `is_shell`.
    `items`: the members of a list.
    """

    text: str = ""
    is_shell: bool = False
    lines: tuple[str, ...] = ()
    items: tuple[str, ...] | None = None


class Scope:
    """The variables that one call of a task sees: its own, those it was called with, those of the file."""

    def __init__(self, plan: DraftPlan, found: Findings, shared: Mapping[str, Node], task: str = "") -> None:
        self.plan = plan
        self.found = found
        self.shared = shared
        self.task = task
        self.given: dict[str, Value] = {}
        self.own: Mapping[str, Node] = {}
        self._open: list[str] = []

    def inner(self, task: str, given: Mapping[str, Value], own: Mapping[str, Node]) -> Scope:
        """Return the scope of a task that is called."""
        scope = Scope(self.plan, self.found, self.shared, task)
        scope.given = dict(given)
        scope.own = own
        return scope

    def with_item(self, name: str, value: Value, parts: Mapping[str, Value]) -> Scope:
        """Return the same scope with the item of a loop."""
        scope = self.inner(self.task, self.given, self.own)
        scope.given |= {name: value, **{f"{name}.{part}": each for part, each in parts.items()}}
        return scope

    def value(self, reference: Reference, place: Node) -> Value:
        """Return what a reference reads; raises UntranslatableError."""
        name = reference.name
        if len(self._open) > MAX_NESTING:
            raise UntranslatableError("template", f"`{name}` is put together from too many others")
        if name in self.own and f"own {name}" not in self._open:
            return self._read(f"own {name}", name, self.own[name])
        if name in self.given:
            return self.given[name]
        if name in self.shared and f"shared {name}" not in self._open:
            found = self._read(f"shared {name}", name, self.shared[name])
            return self._as_param(name, found, place)
        return self._unknown(reference, place)

    def _read(self, mark: str, name: str, node: Node) -> Value:
        self._open.append(mark)
        try:
            return value_of(name, node, self)
        finally:
            self._open.pop()

    def _as_param(self, name: str, found: Value, place: Node) -> Value:
        """Return a variable of the file as a parameter, where a script can take its value."""
        if found.is_shell or found.items is not None or "${{" in found.text:
            return found
        if not _SAFE.match(found.text) or not _NAME.match(name):
            message = f"the variable {name} stands in the plan as its text, and cannot be given to a run"
            self.found.differs("vars", message, place)
            return found
        self.plan.params.setdefault(name, {"type": "string", "default": found.text})
        return Value(text=f"${{{{ params.{name} }}}}")

    def _unknown(self, reference: Reference, place: Node) -> Value:
        name = reference.name
        if name == "TASK":
            return Value(text=literal_text(self.task))
        if name in _HERE:
            return Value(text="${PLANRUN_WORKSPACE}", is_shell=True)
        if name == "CLI_ARGS":
            message = (
                "what stands behind `--` is the parameter CLI_ARGS; the shell splits it and reads no quotes"
            )
            self.found.differs("cli-args", message, place)
            self.plan.params.setdefault(name, {"type": "string", "default": ""})
            return Value(text="${CLI_ARGS}", is_shell=True)
        if "." in name or name in (
            "CHECKSUM",
            "TIMESTAMP",
            "TASK_VERSION",
            "EXIT_CODE",
            "MATCH",
            "ALIAS",
            "TASK_EXE",
        ):
            raise UntranslatableError("template", f"`{{{{.{name}}}}}` is known to go-task alone")
        if not _NAME.match(name):
            raise UntranslatableError("template", f"`{{{{.{name}}}}}`")
        if reference.otherwise is not None and _SAFE.match(reference.otherwise):
            self.plan.params.setdefault(name, {"type": "string", "default": reference.otherwise})
            return Value(text=f"${{{{ params.{name} }}}}")
        if reference.otherwise is not None:
            message = f"{name} stands in the plan as its default, and cannot be given to a run"
            self.found.differs("vars", message, place)
            return Value(text=literal_text(reference.otherwise))
        self.found.differs(
            "env-vars", f"{name} is set nowhere in the file: it is a variable of the environment", place
        )
        return Value(text=f"${{{name}:-}}", is_shell=True)


def value_of(name: str, node: Node, scope: Scope) -> Value:
    """Return what a variable is declared as; raises UntranslatableError."""
    if node.kind == SCALAR:
        return joined(node, scope, text_of(node) if isinstance(data_of(node), str) else _plain(node))
    if node.kind == SEQUENCE:
        if any(item.kind != SCALAR for item in node.value):
            raise UntranslatableError("vars", f"{name} is a list of lists or mappings")
        items = tuple(_static(joined(item, scope, text_of(item)), name) for item in node.value)
        return Value(text=" ".join(items), items=items)
    command = node.get("sh") if node.kind == MAPPING else None
    if command is None:
        raise UntranslatableError("vars", f"{name} is made by `{', '.join(node.value)}`")
    script = joined(command, scope, text_of(command), in_script=True)
    message = (
        f"{name} is found out anew by each step that reads it; the shell splits it, and reads no quotes in it"
    )
    scope.found.differs("dynamic-vars", message, node)
    return Value(
        text=f"${{{name}}}", is_shell=True, lines=(*script.lines, f'{name}="$({script.text.strip()})"')
    )


def _plain(node: Node) -> str:
    value = data_of(node)
    return "" if value is None else str(node.value)


def _static(value: Value, name: str) -> str:
    if value.is_shell:
        raise UntranslatableError("vars", f"{name} is a list of what only a shell knows")
    return value.text


def joined(place: Node, scope: Scope, text: str, *, in_script: bool = False) -> Value:
    """Return a text with its templates filled in; raises UntranslatableError.

    Without `in_script` a text that holds something only a shell knows is wanted as a whole, or not at all.
    """
    pieces = pieces_of(text)
    values = [scope.value(piece, place) if isinstance(piece, Reference) else piece for piece in pieces]
    if in_script:
        _check_quotes(values)
    shell = any(isinstance(value, Value) and value.is_shell for value in values)
    if len(values) == 1 and isinstance(values[0], Value):
        found = values[0]
        if not found.text and isinstance(pieces[0], Reference) and pieces[0].otherwise is not None:
            return Value(text=literal_text(pieces[0].otherwise))
        return found
    lines = [line for value in values if isinstance(value, Value) for line in value.lines]
    body = "".join(_text(value) for value in values)
    if any(_ends_with_dollar(one, two) for one, two in pairwise(values)):
        raise UntranslatableError("template", "`$` right before a template cannot be written in a plan")
    return Value(text=body, is_shell=shell, lines=tuple(dict.fromkeys(lines)))


def _check_quotes(values: Sequence[Value | str]) -> None:
    """Refuse what only a shell knows where the shell would take it for text."""
    marks: list[str | None] = []
    for value in values:
        if isinstance(value, Value) and value.is_shell:
            for at, part in enumerate(_READ.split(value.text)):
                marks += [None, part] if at else [part]
        else:
            marks.append(_text(value))
    if any(frame not in ("command", "double", "brace", "member") for frame in open_quotes(marks)):
        raise UntranslatableError(
            "dynamic-vars", "a value that only the shell knows stands inside of single quotes"
        )


def _ends_with_dollar(first: Value | str, second: Value | str) -> bool:
    return _text(first).endswith("$") and _text(second).startswith("${{")


def _text(value: Value | str) -> str:
    return literal_text(value) if isinstance(value, str) else value.text


def outside(value: Value, what: str) -> str:
    """Return a value for a place that no shell reads; raises UntranslatableError."""
    if value.is_shell and value.text.startswith("${PLANRUN_WORKSPACE}"):
        rest = value.text.removeprefix("${PLANRUN_WORKSPACE}").lstrip("/")
        if "${" not in rest.replace("${{", ""):
            return rest or "."
    if value.is_shell:
        raise UntranslatableError("dynamic-vars", f"{what} is known to a shell alone")
    return value.text
