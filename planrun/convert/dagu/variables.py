"""Keys of Dagu files, which are written `retryPolicy` in older ones and `retry_policy` in newer ones.

Parameters and variables of a Dagu file: `params` and `env`, which its shell commands read as `${NAME}`.

Preconditions of Dagu: a step that finds out whether they hold, and a condition that reads what it found.
"""

from __future__ import annotations

import re
import shlex

from planrun.convert.dagu.references import References
from planrun.convert.draft import DraftStep, literal_text, step_path
from planrun.convert.reader import UntranslatableError, is_nothing, text_of
from planrun.plan.yaml.node import MAPPING, SCALAR, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterator
    from typing import Any

    from planrun.convert.draft import DraftPlan
    from planrun.convert.reader import Reader
    from planrun.plan.yaml.node import Node


class Keys:
    """The members of a mapping under names in small letters without underscores."""

    def __init__(self, node: Node | None, what: str, reader: Reader) -> None:
        self.node = node if node is not None else Node(MAPPING, {}, 1, 1)
        self.reader = reader
        self.what = what
        self._members: dict[str, tuple[str, Node]] = {}
        for name, value in reader.mapping(node, what).items():
            if not is_nothing(value):
                self._members.setdefault(plain(name), (name, value))

    def get(self, name: str) -> Node | None:
        """Return the value of a key, None for none."""
        found = self._members.get(name)
        return found[1] if found else None

    def first(self, *names: str) -> Node | None:
        """Return the value of the first of several keys that is there."""
        return next((self._members[name][1] for name in names if name in self._members), None)

    def text(self, *names: str) -> str:
        """Return the text of the first of several keys that is there."""
        return text_of(self.first(*names))

    def place(self, name: str) -> Node:
        """Return where a key stands."""
        found = self._members.get(name)
        return self.node.key(found[0]) if found and self.node.kind == MAPPING else self.node

    def has(self, name: str) -> bool:
        """Say whether a key has a value."""
        return name in self._members

    def below(self, name: str) -> Keys:
        """Return the members of a mapping under a key, none where it has no value."""
        return Keys(self.get(name), f"`{name}`", self.reader)

    def members(self) -> Iterator[tuple[str, Node]]:
        """Yield the keys that have a value, as they are written."""
        yield from self._members.values()

    def refuse_unknown(self, known: Container[str]) -> None:
        """Refuse every key that is not known."""
        for name, (written, _) in self._members.items():
            if name not in known:
                message = f"{self.what}: unknown key `{written}`"
                self.reader.found.refuse(f"key:{written}", message, self.place(name))


def plain(name: str) -> str:
    """Return the name of a key as it is looked up."""
    return name.replace("_", "").lower()


def pairs_of(node: Node | None, what: str, reader: Reader) -> Iterator[tuple[str, Node]]:
    """Yield names and values of a mapping, or of a list of mappings and of texts `NAME=value`."""
    if node is None or is_nothing(node):
        return
    if node.kind == MAPPING:
        yield from node.value.items()
        return
    for item in reader.either(node, what):
        if item.kind == SCALAR:
            name, sign, value = text_of(item).partition("=")
            if sign:
                yield name.strip(), Node(SCALAR, value, item.line, item.col)
            else:
                reader.found.refuse("shape", f"{what} has entries NAME=value", item)
        else:
            yield from reader.mapping(item, what).items()


def whole(node: Node | None) -> int | None:
    """Return a whole number that is not negative; None for anything else."""
    text = text_of(node)
    return int(text) if text.isdecimal() and len(text) < 10 else None


def is_number(text: str) -> bool:
    """Say whether a text is a number that is not negative, as of a factor."""
    return bool(re.fullmatch(r"\d{1,6}(\.\d{1,6})?", text))


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}\Z")
_WORKED_OUT = re.compile(r"[`$]")


class Variables:
    """What the commands of a file see: `env` for the plan's top, `lines` for every script, `count` of positions."""

    def __init__(self, plan: DraftPlan, reader: Reader) -> None:
        self.plan = plan
        self.reader = reader
        self.env: dict[str, str] = {}
        self.lines: list[str] = []
        self.count = 0
        self.references = References(plan, reader)

    def params(self, node: Node | None) -> None:
        """Declare the parameters of a file."""
        for name, value in _params(node, self.reader):
            default = text_of(value)
            if not name:
                self.count += 1
            own = name or f"P{self.count}"
            if not _NAME.match(own):
                self.reader.found.refuse("params", f"`{own}` cannot be the name of a parameter", value)
                continue
            fragment: dict[str, Any] = {"type": "string", "default": default}
            if _WORKED_OUT.search(default):
                message = (
                    f"the default of the parameter {own} is worked out by Dagu: {' '.join(default.split())}"
                )
                self.reader.found.todo("params", message, value)
                fragment = {"type": "string", "required": True}
            self.plan.params[own] = fragment
            self.env[own] = f"${{{{ params.{own} }}}}"
        if self.count:
            words = " ".join(f'"${{P{number}}}"' for number in range(1, self.count + 1))
            self.lines.append(f"set -- {words}")

    def consts(self, node: Node | None) -> None:
        """Read the constants at the top of a file."""
        for name, value in pairs_of(node, "`consts`", self.reader):
            self._const(f"consts.{name}", value)

    def _const(self, name: str, node: Node) -> None:
        if node.kind == MAPPING:
            for inner, value in node.value.items():
                self._const(f"{name}.{inner}", value)
        else:
            self.references.fixed[name] = text_of(node)

    def environment(self, node: Node | None) -> None:
        """Read the variables at the top of a file."""
        env, lines = split_environment(node, self.references)
        self.env |= env
        self.lines += lines
        given = dict(pairs_of(node, "`env`", self.reader))
        self.references.worked_out |= {
            name: text_of(value) for name, value in given.items() if name not in env
        }


def split_environment(node: Node | None, references: References) -> tuple[dict[str, str], list[str]]:
    """Return variables that are text, and lines for a shell that set those that it has to work out.

    From the first that is worked out on all are set by the shell, since later ones may read it.
    """
    env: dict[str, str] = {}
    lines: list[str] = []
    reader = references.reader
    for name, value in pairs_of(node, "`env`", reader):
        if not _NAME.match(name):
            reader.found.refuse("env", f"`{name}` cannot be the name of a variable here", value)
            continue
        text = reader.text(value, f"the variable {name}")
        if references.is_of_steps(text):
            env[name] = references.template(text)
        elif _WORKED_OUT.search(text):
            lines += references.built_in(text)
            lines.append(f'export {name}="{_in_quotes(references.words(text))}"')
        else:
            env[name] = literal_text(text)
    return env, lines


def _in_quotes(text: str) -> str:
    """Return a text for double quotes; backquotes and `$(…)` in it are commands, with their own quotes."""
    parts = re.split(r"(`[^`]*`|\$\([^)]*\))", text)
    return "".join(part if at % 2 else re.sub(r'(["\\])', r"\\\1", part) for at, part in enumerate(parts))


def _params(node: Node | None, reader: Reader) -> Iterator[tuple[str, Node]]:
    """Yield name, "" for one without, and default of each parameter."""
    if node is None:
        return
    if node.kind == SCALAR:
        yield from _words(node, reader)
        return
    if node.kind == MAPPING:
        for name, value in node.value.items():
            yield name, _default(value)
        return
    for item in node.value:
        if item.kind == SCALAR:
            yield from _words(item, reader)
        elif item.kind == MAPPING and "name" in item.value:
            yield text_of(item.value["name"]), _default(item)
        else:
            for name, value in reader.mapping(item, "a parameter").items():
                yield name, _default(value)


def arguments_of(node: Node | None, reader: Reader) -> list[tuple[str, str]]:
    """Return names, "" for none, and values of the parameters that a step gives to another DAG."""
    if node is None:
        return []
    if node.kind == MAPPING:
        return [(name, text_of(value)) for name, value in node.value.items()]
    found: list[tuple[str, str]] = []
    for item in reader.either(node, "`params`"):
        if item.kind == MAPPING:
            found += arguments_of(item, reader)
            continue
        for word in shlex.split(text_of(item)):
            name, sign, value = word.partition("=")
            found.append((name, value) if sign else ("", word))
    return found


def _default(node: Node) -> Node:
    if node.kind != MAPPING:
        return node
    found = node.get("default")
    return found if found is not None else Node(SCALAR, "", node.line, node.col)


def _words(node: Node, reader: Reader) -> Iterator[tuple[str, Node]]:
    try:
        words = shlex.split(text_of(node))
    except ValueError:
        reader.found.refuse("shape", "`params` has a quote that is not closed", node)
        return
    for word in words:
        name, sign, value = word.partition("=")
        is_named = bool(sign) and bool(_NAME.match(name))
        yield (name if is_named else ""), Node(SCALAR, value if is_named else word, node.line, node.col)


def secrets_of(node: Node | None, reader: Reader, plan: DraftPlan, lines: list[str]) -> list[str]:
    """Return the names of the secrets that a file declares, which are variables of the environment.

    `lines` gets those of a shell that give a secret another name.
    """
    found = []
    for item in reader.items(node, "`secrets`"):
        keys = Keys(item, "a secret", reader)
        name = keys.text("name")
        key = keys.text("key") or name
        if keys.text("provider") == "env" and _NAME.match(name) and _NAME.match(key) and key != name:
            plan.secret(key)
            found.append(key)
            lines.append(f'export {name}="${{{key}}}"')
            continue
        if keys.text("provider") == "file" and _NAME.match(name) and key:
            message = f"the secret {name} is read from a file by each script: it is not masked in the log"
            reader.found.differs("secret", message, item)
            lines.append(f'export {name}="$(cat "{key}")"')
            continue
        if keys.text("provider") != "env" or not _NAME.match(name):
            reader.found.refuse("secret", f"the secret {name} is not the variable of this name", item)
            continue
        plan.secret(name)
        found.append(name)
    return found


_KNOWN = frozenset(("condition", "command", "expected", "negate", "name", "test", "eval"))


def commands_of(node: Node | None, references: References) -> list[str]:
    """Return a command of the shell for each precondition; raises UntranslatableError."""
    if node is None:
        return []
    reader = references.reader
    items = [node] if node.kind == MAPPING else reader.either(node, "`preconditions`")
    return [_command(item, references) for item in items]


def _command(item: Node, references: References) -> str:
    if item.kind != MAPPING:
        command, expected, negated = text_of(item), "", False
    else:
        keys = Keys(item, "a precondition", references.reader)
        keys.refuse_unknown(_KNOWN)
        if keys.has("eval") and (keys.has("condition") or not keys.has("expected")):
            raise UntranslatableError(
                "precondition", "`eval` needs `expected` and has no `condition` beside it"
            )
        command, expected = keys.text("condition", "command", "eval"), keys.text("expected")
        negated = keys.text("negate").lower() == "true"
    text = command_of(command, expected, references)
    return f"! {text}" if negated else text


def command_of(command: str, expected: str, references: References) -> str:
    """Return a command of the shell that passes where a condition of Dagu holds; raises UntranslatableError."""
    if expected:
        command = _compared(references.words(command), expected)
    else:
        if command.startswith("`") and command.endswith("`"):
            command = command[1:-1]
        command = references.script(command, "")
    return f"{{ {command.strip()}\n}}"


def _compared(command: str, expected: str) -> str:
    """Return a command that passes when a text is the expected one, or matches `re:…`."""
    found = f'"{_in_quotes(command)}"'
    if not expected.startswith("re:"):
        return f"[ {found} = {_quoted(expected)} ]"
    return f"printf '%s\\n' {found} | grep -Eq -e {_quoted(pattern_of(expected[3:], 'precondition'))}"


def pattern_of(text: str, code: str) -> str:
    """Return a pattern of Go as grep reads it with -E; raises UntranslatableError."""
    for written, meant in (
        ("\\d", "[0-9]"),
        ("\\s", "[[:space:]]"),
        ("\\S", "[^[:space:]]"),
        ("\\w", "[0-9A-Za-z_]"),
    ):
        text = re.sub(rf"(?<![\\\[]){re.escape(written)}", lambda _, meant=meant: meant, text)  # type: ignore[misc]
    if re.search(r"\\[^.\-/+*?()|^$\[\]{}]|\(\?|[*+?}]\?", text):
        raise UntranslatableError(code, f"`{text}`: a pattern that grep reads otherwise")
    return text


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def check_step(name: str, commands: list[str], lines: list[str]) -> DraftStep:
    """Return the step that writes whether all commands pass."""
    asked = " &&\n".join(commands)
    script = "\n".join(
        [
            *lines,
            f"if {asked}",
            "then met=true",
            "else met=false",
            "fi",
            'echo "met=$met" >> "$PLANRUN_OUTPUT"',
        ]
    )
    return DraftStep(name, run=f"{script}\n", outputs={"met": "boolean"})


def met(step: DraftStep) -> str:
    """Return the expression that says that the preconditions hold."""
    return f"{step_path(step.id, 'outputs')}.met"
