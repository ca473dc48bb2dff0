"""Keys of Dagu files, which are written `retryPolicy` in older ones and `retry_policy` in newer ones.

Parameters and variables of a Dagu file: `params` and `env`, which its shell commands read as `${NAME}`.

Preconditions of Dagu: a step that finds out whether they hold, and a condition that reads what it found.
"""

from __future__ import annotations

import re
import shlex

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
# `${step.stdout}`, `${NAME.key}`, `${steps.a.outputs.b}`: what Dagu itself puts in.
_INNER = re.compile(r"\$\{([A-Za-z_][\w-]*\.[^}]*)\}")


class Variables:
    """What the commands of a file see: `env` for the plan's top, `lines` for every script, `count` of positions."""

    def __init__(self, plan: DraftPlan, reader: Reader) -> None:
        self.plan = plan
        self.reader = reader
        self.env: dict[str, str] = {}
        self.lines: list[str] = []
        self.count = 0
        self.fixed: dict[str, str] = {}  # constants by their paths
        self.outputs: set[str] = set()  # names of the outputs of steps
        self.place = Node(MAPPING, {}, 1, 1)

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
            self.fixed[name] = text_of(node)

    def filled(self, text: str) -> str:
        """Return a text for a shell in which what Dagu puts in is read by the shell.

        `${params.X}`, `${env.X}`: a variable; `${consts.X}`: its text; `${NAME.key}` of an output that is JSON: jq.
        Raises UntranslatableError for any other.
        """

        def read(match: re.Match[str]) -> str:
            path = match[1]
            root, _, rest = path.partition(".")
            if path in self.fixed:
                return self.fixed[path]
            if root in ("params", "env") and _NAME.match(rest):
                return f"${{{rest}}}"
            if root in self.outputs and re.fullmatch(r"[\w.\[\]-]+", rest) and not rest.startswith("outputs"):
                message = f"`${{{root}.…}}` is read by jq, which has to be there"
                self.reader.found.differs("json", message, self.place)
                words = re.findall(r"[\w-]+", rest)
                keys = "".join(f"[{each}]" if each.isdecimal() else f'["{each}"]' for each in words)
                return f"$(printf %s \"${{{root}}}\" | jq -r '.{keys}')"
            raise UntranslatableError("reference", f"`${{{path}}}` is put in by Dagu")

        return _INNER.sub(read, text)

    def environment(self, node: Node | None) -> None:
        """Read the variables at the top of a file."""
        env, lines = split_environment(node, self.reader)
        self.env |= env
        self.lines += lines


def split_environment(node: Node | None, reader: Reader) -> tuple[dict[str, str], list[str]]:
    """Return variables that are text, and lines for a shell that set those that it has to work out.

    From the first that is worked out on all are set by the shell, since later ones may read it.
    """
    env: dict[str, str] = {}
    lines: list[str] = []
    for name, value in pairs_of(node, "`env`", reader):
        if not _NAME.match(name):
            reader.found.refuse("env", f"`{name}` cannot be the name of a variable here", value)
            continue
        text = reader.text(value, f"the variable {name}")
        check_references(text)
        if _WORKED_OUT.search(text):
            escaped = re.sub(r'(["\\])', r"\\\1", text)
            lines.append(f'export {name}="{literal_text(escaped)}"')
        else:
            env[name] = literal_text(text)
    return env, lines


def check_references(text: str) -> None:
    """Raise UntranslatableError for what Dagu puts in by itself and no shell knows."""
    if match := _INNER.search(text):
        raise UntranslatableError("reference", f"`${{{match[1]}}}` is put in by Dagu")


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
        if keys.text("provider") != "env" or not _NAME.match(name):
            reader.found.refuse("secret", f"the secret {name} is not the variable of this name", item)
            continue
        plan.secret(name)
        found.append(name)
    return found


_KNOWN = frozenset(("condition", "command", "expected", "negate", "name", "test"))


def commands_of(node: Node | None, reader: Reader) -> list[str]:
    """Return a command of the shell for each precondition; raises UntranslatableError."""
    if node is None:
        return []
    items = [node] if node.kind == MAPPING else reader.either(node, "`preconditions`")
    return [_command(item, reader) for item in items]


def _command(item: Node, reader: Reader) -> str:
    if item.kind != MAPPING:
        command, expected, negated = text_of(item), "", False
    else:
        keys = Keys(item, "a precondition", reader)
        keys.refuse_unknown(_KNOWN)
        command, expected = keys.text("condition", "command"), keys.text("expected")
        negated = keys.text("negate").lower() == "true"
    text = command_of(command, expected)
    return f"! {text}" if negated else text


def command_of(command: str, expected: str) -> str:
    """Return a command of the shell that passes where a condition of Dagu holds; raises UntranslatableError."""
    check_references(command)
    if expected:
        command = _compared(command, expected)
    elif command.startswith("`") and command.endswith("`"):
        command = command[1:-1]
    return f"{{ {literal_text(command.strip())}\n}}"


def _compared(command: str, expected: str) -> str:
    """Return a command that passes when a text is the expected one, or matches `re:…`."""
    found = f'"{re.sub(chr(34), chr(92) + chr(34), command)}"'
    if not expected.startswith("re:"):
        return f"[ {found} = {_quoted(expected)} ]"
    if re.search(r"\\[^.\-/+*?()|^$\[\]{}]", expected):
        raise UntranslatableError("precondition", f"`{expected}`: a pattern that grep reads otherwise")
    return f"printf '%s\\n' {found} | grep -Eq -e {_quoted(expected[3:])}"


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
