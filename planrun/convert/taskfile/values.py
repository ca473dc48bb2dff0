"""Variables of a Taskfile: what is known of each, and how it is read in a script."""

from __future__ import annotations

import re
from itertools import pairwise

from planrun.convert.draft import literal_text
from planrun.convert.reader import UntranslatableError, data_of, text_of, truth_of
from planrun.convert.taskfile.templates import (
    Branch,
    Call,
    Loop,
    Reference,
    Value,
    chosen,
    evaluate,
    in_shell,
    parse,
    pieces_of,
    test_of,
    words_of,
)
from planrun.plan.check.quoting import open_quotes
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from planrun.convert.draft import DraftPlan
    from planrun.convert.reader import Findings
    from planrun.convert.taskfile.templates import Expression, Known, Piece
    from planrun.plan.yaml.node import Node

MAX_NESTING = 20
MAX_CHOICES = 3
_READ = re.compile(r"\$\{[A-Za-z_]\w*(?::-)?\}")
_PARTS = re.compile(r"\$\{[A-Za-z_]\w*(?::-)?\}|(?:(?!\$\{[A-Za-z_]\w*(?::-)?\}).)+", re.DOTALL)
_SAFE = re.compile(r"[A-Za-z0-9._/@:+=,-]*\Z")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}\Z")
_HERE = frozenset(("ROOT_DIR", "TASKFILE_DIR", "USER_WORKING_DIR"))
_OWN = frozenset(("CHECKSUM", "TIMESTAMP", "TASK_VERSION", "MATCH"))
# What a text must not hold that is put between double quotes of a shell.
_UNQUOTABLE = re.compile(r"""["`\\]|\$(?!\{)""")


_OF_CALLER = re.compile(r"\$\{([A-Za-z_]\w*):-([\w./:-]*)\}")


class UnquotableError(UntranslatableError):
    """A part with quotes, which only a run can choose; `test` is what it chooses by."""

    def __init__(self, test: Value) -> None:
        super().__init__("template", "a part with quotes, which only a run can choose")
        self.test = test


class Scope:
    """The variables that one call of a task sees: its own, those it was called with, those of the file."""

    folder = ""  # of the Taskfile, from the one that is converted
    has_files = False  # whether files give variables to the task
    is_fixed = False  # whether a plan needs the text of a variable now

    def __init__(self, plan: DraftPlan, found: Findings, shared: Mapping[str, Node], task: str = "") -> None:
        self.plan = plan
        self.found = found
        self.shared = shared
        self.task = task
        self.given: dict[str, Value] = {}
        self.own: Mapping[str, Node] = {}
        self.choices: dict[str, bool] = {}  # tests whose result is taken for given
        self.by_shell: set[str] = set()  # variables of the environment that scripts work out
        self._open: list[str] = []

    def inner(self, task: str, given: Mapping[str, Value], own: Mapping[str, Node]) -> Scope:
        """Return the scope of a task that is called."""
        scope = Scope(self.plan, self.found, self.shared, task)
        scope.folder = self.folder
        scope.choices = self.choices
        scope.has_files = self.has_files
        scope.by_shell = self.by_shell
        scope.given = {**self.given, **given}
        scope.own = own
        return scope

    def fixed(self) -> Scope:
        """Return the same scope where variables of the file are their text, not parameters."""
        scope = self.inner(self.task, self.given, self.own)
        scope.is_fixed = True
        return scope

    def with_item(
        self, name: str, value: Value, parts: Mapping[str, Value], more: Mapping[str, Value] | None = None
    ) -> Scope:
        """Return the same scope with the item of a loop, its parts by their names, and other variables."""
        scope = self.inner(self.task, self.given, self.own)
        scope.given |= {
            name: value,
            **{f"{name}.{part}": each for part, each in parts.items()},
            **(more or {}),
        }
        return scope

    def value(self, reference: Reference, place: Node) -> Value:
        """Return what a reference reads, as a parameter where a run may get another; raises UntranslatableError."""
        found = self._declared(reference.name, place, is_computed=False)
        return self._unknown(reference.name.removeprefix("$."), place) if found is None else found

    def known(self, reference: Reference, place: Node) -> Known | Value:
        """Return what a template computes with; raises UntranslatableError."""
        found = self._declared(reference.name, place, is_computed=True)
        if found is None:
            found = self._unknown(reference.name.removeprefix("$."), place)
        if found.items is not None:
            return list(found.items)
        return found if found.is_shell or "${{" in found.text else found.text

    def value_or(self, reference: Reference, otherwise: str, place: Node) -> Value:
        """Return what a reference reads, or a text where it is empty; raises UntranslatableError."""
        name = reference.name.removeprefix("$.")
        found = self._declared(name, place, is_computed=False)
        if found is not None:
            if found.is_shell:
                result = evaluate(Call(name="default", args=(otherwise, reference)), lambda _reference: found)
                return result if isinstance(result, Value) else Value(text=literal_text(words_of(result)))
            return found if found.text else Value(text=literal_text(otherwise))
        if (
            name in _HERE
            or name in ("TASK", "ALIAS", "TASK_EXE", "CLI_ARGS")
            or name in _OWN
            or not _NAME.match(name)
        ):
            return self._unknown(name, place)
        if self.is_fixed:
            return Value(text=literal_text(otherwise))
        if _SAFE.match(otherwise):
            self.plan.params.setdefault(name, {"type": "string", "default": otherwise})
            return Value(text=f"${{{{ params.{name} }}}}")
        message = f"{name} is written into the plan as its default, and cannot be given to a run"
        self.found.differs("vars", message, place)
        return Value(text=literal_text(otherwise))

    def _declared(self, name: str, place: Node, *, is_computed: bool) -> Value | None:
        """Return a variable that the file or a caller sets; None where there is none."""
        name = name.removeprefix("$.")
        if len(self._open) > MAX_NESTING:
            raise UntranslatableError("template", f"`{name}` is put together from too many others")
        if name in self.own and f"own {name}" not in self._open:
            return self._read(f"own {name}", name, self.own[name])
        if name in self.given:
            later = self.given[name].later
            return later() if later else self.given[name]
        if name in self.shared and f"shared {name}" not in self._open:
            found = self._read(f"shared {name}", name, self.shared[name])
            if not is_computed and not self.is_fixed:
                return self._as_param(name, found, place)
            if not found.is_shell and found.items is None and "${{" not in found.text:
                message = (
                    f"the variable {name} is written into the plan: a template works something out of it"
                )
                self.found.differs("vars", message, place)
            return found
        owner, _, member = name.partition(".")
        members = (self.own.get(owner) or self.shared.get(owner)) if member else None
        mapping = members.get("map") if members is not None and members.kind == MAPPING else None
        node = mapping.get(member) if mapping is not None and mapping.kind == MAPPING else None
        return None if node is None else self._read(f"map {name}", name, node)

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
            message = (
                f"the variable {name} is written into the plan as its text, and cannot be given to a run"
            )
            self.found.differs("vars", message, place)
            return found
        self.plan.params.setdefault(name, {"type": "string", "default": found.text})
        return Value(text=f"${{{{ params.{name} }}}}")

    def _unknown(self, name: str, place: Node) -> Value:
        if name in ("TASK", "ALIAS"):
            return Value(text=literal_text(self.task))
        if name == "TASK_EXE":
            self.found.differs("task-exe", "`{{.TASK_EXE}}` is `task`: go-task has to be there", place)
            return Value(text="task")
        if name in _HERE:
            folder = f"/{self.folder}" if name == "TASKFILE_DIR" and self.folder else ""
            return Value(text="${PLANRUN_WORKSPACE}" + folder, is_shell=True)
        if name == "EXIT_CODE":
            return Value(text="${EXIT_CODE:-}", is_shell=True)
        if name == "CLI_ARGS":
            message = (
                "what stands behind `--` is the parameter CLI_ARGS; the shell splits it and reads no quotes"
            )
            self.found.differs("cli-args", message, place)
            self.plan.params.setdefault(name, {"type": "string", "default": ""})
            return Value(text="${CLI_ARGS}", is_shell=True)
        if "." in name or name in _OWN:
            raise UntranslatableError("template", f"`{{{{.{name}}}}}` is known to go-task alone")
        if not _NAME.match(name):
            raise UntranslatableError("template", f"`{{{{.{name}}}}}`")
        self.found.differs(
            "env-vars", f"{name} is set nowhere in the file: it is a variable of the environment", place
        )
        # No expression can stand for variables of files, or for those that a shell works out.
        is_hidden = self.has_files or "env_file" in self.plan.keys or name in self.by_shell
        sign = "-" if is_hidden else ":-"
        return Value(text=f"${{{name}{sign}}}", is_shell=True)


def value_of(name: str, node: Node, scope: Scope) -> Value:
    """Return what a variable is declared as; raises UntranslatableError."""
    if node.kind == SCALAR:
        return joined(node, scope, text_of(node) if isinstance(data_of(node), str) else _plain(node))
    if node.kind == SEQUENCE:
        if any(item.kind != SCALAR for item in node.value):
            raise UntranslatableError("vars", f"{name} is a list of lists or mappings")
        items = tuple(_static(joined(item, scope, text_of(item)), name) for item in node.value)
        return Value(text=" ".join(items), items=items)
    reference = node.get("ref")
    if reference is not None:
        return _shown(parse(text_of(reference)), node, scope)
    command = node.get("sh")
    if truth_of(node.get("secret")):
        message = f"the variable {name} is secret: its value is not masked in the log; see `secrets`"
        scope.found.differs("secret", message, node)
    if command is None and (value := node.get("value")) is not None:
        return value_of(name, value, scope)
    if command is None:
        raise UntranslatableError("vars", f"{name} is made by `{', '.join(node.value)}`")
    script = joined(command, scope, text_of(command), in_script=True)
    message = f"{name} is evaluated again by each step that reads it; the shell splits it, and reads no quotes in it"
    scope.found.differs("dynamic-vars", message, node)
    return Value(
        text=f"${{{name}}}", is_shell=True, lines=(*script.lines, f'{name}="$({script.text.strip()})"')
    )


def passed(name: str, node: Node, scope: Scope) -> Value:
    """Return a variable that a call hands on; raises UntranslatableError."""
    try:
        return value_of(name, node, scope)
    except UnquotableError as why:
        return Value(text=f"{name} by {why.test.test}", later=lambda: value_of(name, node, scope))


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
    return _joined(pieces_of(text), place, scope, in_script=in_script)


def _joined(pieces: Sequence[Piece], place: Node, scope: Scope, *, in_script: bool) -> Value:
    if not in_script:
        return _put_together(pieces, place, scope, in_script=False)
    if len(pieces) == 1 and isinstance(pieces[0], Branch):
        return _commands(pieces[0], place, scope)
    try:
        return _put_together(pieces, place, scope, in_script=True)
    except UnquotableError as why:
        return _twofold(why.test, pieces, place, scope)


def _twofold(test: Value, pieces: Sequence[Piece], place: Node, scope: Scope) -> Value:
    """Return a script that stands there twice, once for each result of a test."""
    if len(scope.choices) >= MAX_CHOICES:
        raise UntranslatableError(
            "template", f"more than {MAX_CHOICES} parts with quotes, which only a run can choose"
        )
    found = []
    for choice in (True, False):
        scope.choices[test.test] = choice
        try:
            found.append(_joined(pieces, place, scope, in_script=True))
        finally:
            del scope.choices[test.test]
    yes, no = found
    text = f"if {test.test}; then\n{yes.text.strip() or ':'}\nelse\n{no.text.strip() or ':'}\nfi\n"
    return Value(text=text, is_shell=True, lines=tuple(dict.fromkeys((*test.lines, *yes.lines, *no.lines))))


def _put_together(pieces: Sequence[Piece], place: Node, scope: Scope, *, in_script: bool) -> Value:
    values = list(_flat(pieces, place, scope))
    if in_script:
        values = _requoted(values)
    shell = any(isinstance(value, Value) and value.is_shell for value in values)
    if len(values) == 1 and isinstance(values[0], Value):
        return values[0]
    lines = [line for value in values if isinstance(value, Value) for line in value.lines]
    body = "".join(_text(value) for value in values)
    if any(_ends_with_dollar(one, two) for one, two in pairwise(values)):
        raise UntranslatableError("template", "`$` right before a template cannot be written in a plan")
    return Value(text=body, is_shell=shell, lines=tuple(dict.fromkeys(lines)))


def _flat(pieces: Sequence[Piece], place: Node, scope: Scope) -> Iterator[Value | str]:
    """Yield texts and values of a template, its branches and loops gone through."""
    for piece in pieces:
        if isinstance(piece, str):
            yield piece
        elif isinstance(piece, Branch):
            yield from _branch(piece, place, scope)
        elif isinstance(piece, Loop):
            yield from _loop(piece, place, scope)
        else:
            yield _shown(piece, place, scope)


def _shown(piece: Expression, place: Node, scope: Scope) -> Value:
    """Return what an action prints."""
    if isinstance(piece, Reference):
        return scope.value(piece, place)
    if isinstance(piece, Call) and piece.name == "default" and len(piece.args) == 2:
        otherwise = evaluate(piece.args[0], lambda reference: scope.known(reference, place))
        if isinstance(piece.args[1], Reference) and not isinstance(otherwise, Value | list):
            return scope.value_or(piece.args[1], words_of(otherwise), place)
    found = evaluate(piece, lambda reference: scope.known(reference, place))
    if isinstance(found, Value):
        return in_shell(found) if found.test else found
    if isinstance(found, list):
        return Value(text=literal_text(" ".join(found)), items=tuple(found))
    return Value(text=literal_text(words_of(found)))


def _branch(branch: Branch, place: Node, scope: Scope) -> Iterator[Value | str]:
    for at, (condition, body) in enumerate(branch.arms):
        test = True if condition is None else _test(condition, place, scope)
        if isinstance(test, Value):
            yield from _chosen(test, Branch(arms=branch.arms[at:]), place, scope)
            return
        if test:
            yield from _flat(body, place, scope)
            return


def _chosen(test: Value, branch: Branch, place: Node, scope: Scope) -> Iterator[Value | str]:
    """Yield what a run chooses; raises UnquotableError where a variable of the shell could not hold it."""
    if test.test in scope.choices:
        yield from (
            _flat(branch.arms[0][1], place, scope)
            if scope.choices[test.test]
            else _branch(Branch(arms=branch.arms[1:]), place, scope)
        )
        return
    rest = Branch(arms=branch.arms[1:])
    yes = _joined(branch.arms[0][1], place, scope, in_script=False)
    no = _joined((rest,) if rest.arms else (), place, scope, in_script=False)
    if _UNQUOTABLE.search(re.sub(r"\$\{\{.*?\}\}", "", yes.text + no.text)):
        raise UnquotableError(test)
    found = chosen(test, yes.text, no.text)
    yield found.but(lines=tuple(dict.fromkeys((*test.lines, *yes.lines, *no.lines, *found.lines))))


def _commands(branch: Branch, place: Node, scope: Scope) -> Value:
    """Return a script that is one `if`: the shell decides which commands it runs."""
    text, lines, ends = "", [], False
    for condition, body in branch.arms:
        test = True if condition is None else _test(condition, place, scope)
        if test is False:
            continue
        inner = _joined(body, place, scope, in_script=True)
        lines += [*(test.lines if isinstance(test, Value) else ()), *inner.lines]
        if isinstance(test, Value):
            text += f"{'elif' if text else 'if'} {test.test}; then\n{inner.text.strip() or ':'}\n"
            continue
        text, ends = (f"{text}else\n{inner.text.strip() or ':'}\n" if text else inner.text), not text
        break
    closed = text if ends or not text else f"{text}fi\n"
    return Value(text=closed, is_shell=True, lines=tuple(dict.fromkeys(lines)))


def arms_of(text: str, place: Node, scope: Scope) -> list[tuple[Value, str]] | None:
    """Return the texts among which `{{if …}}` chooses by tests of a shell; None for a text that is no such choice."""
    pieces = pieces_of(text)
    if len(pieces) != 1 or not isinstance(pieces[0], Branch):
        return None
    found: list[tuple[Value, str]] = []
    for condition, body in pieces[0].arms:
        test = True if condition is None else _test(condition, place, scope)
        if test is False:
            continue
        name = outside(_joined(body, place, scope, in_script=False), "the name of a task").strip()
        found.append((test if isinstance(test, Value) else Value(), name))
        if test is True:
            break
    return (
        found
        if any(test.test for test, _ in found) and "${{" not in "".join(name for _, name in found)
        else None
    )


def _test(condition: Expression, place: Node, scope: Scope) -> bool | Value:
    return test_of(evaluate(condition, lambda reference: scope.known(reference, place)))


def _loop(loop: Loop, place: Node, scope: Scope) -> Iterator[Value | str]:
    items = evaluate(loop.over, lambda reference: scope.known(reference, place))
    if not isinstance(items, list):
        raise UntranslatableError("template", "a `range` over what only a run knows")
    for at, item in enumerate(items):
        names = {"": item, f"${loop.index}": str(at), f"${loop.item}": item}
        given = {name: Value(text=literal_text(text)) for name, text in names.items() if name != "$"}
        yield from _flat(loop.body, place, scope.with_item("", given[""], {}, given))


def _requoted(values: Sequence[Value | str]) -> list[Value | str]:
    """Return the pieces of a script with single quotes closed around what only a shell knows.

    Raises UntranslatableError where a shell would take it for text in any other way.
    """
    parts: list[
        tuple[int, str]
    ] = []  # the number of the value, and a read of the shell or the text between two
    for at, value in enumerate(values):
        if isinstance(value, Value) and value.is_shell:
            parts += [(at, part) for part in _PARTS.findall(value.text)]
        else:
            parts.append((at, _text(value)))
    reads = [
        isinstance(values[at], Value) and bool(_READ.fullmatch(part)) and _is_shell(values[at])
        for at, part in parts
    ]
    marks = [None if is_read else part for is_read, (_, part) in zip(reads, parts, strict=True)]
    frames = iter(open_quotes(marks))
    texts = [""] * len(values)
    for is_read, (at, part) in zip(reads, parts, strict=True):
        frame = next(frames) if is_read else "command"
        if frame == "single":
            part = f"'\"{part}\"'"  # noqa: PLW2901 - the same part, in other quotes
        elif frame not in ("command", "double", "brace", "member", "comment"):
            raise UntranslatableError("dynamic-vars", f"a value that only the shell knows stands {frame}")
        texts[at] += part
    return [
        value.but(text=texts[at]) if isinstance(value, Value) and value.is_shell else value
        for at, value in enumerate(values)
    ]


def _is_shell(value: Value | str) -> bool:
    return isinstance(value, Value) and value.is_shell


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
        template = _OF_CALLER.sub(_of_caller, value.text)
        if value.lines or value.test or "$" in template.replace("${{", ""):
            raise UntranslatableError("dynamic-vars", f"{what} is known to a shell alone")
        return template
    return value.text


def _of_caller(match: re.Match[str]) -> str:
    """Return the expression for a variable of the caller's environment."""
    return f"${{{{ default(env.{match[1]}, '{match[2]}') }}}}"
