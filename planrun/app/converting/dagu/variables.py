"""Parameters and variables of a Dagu file: `params` and `env`, which its shell commands read as `${NAME}`."""

from __future__ import annotations

import re
import shlex

from planrun.app.converting.dagu.keys import Keys, pairs_of
from planrun.app.converting.draft import literal_text
from planrun.app.converting.findings import UntranslatableError
from planrun.app.converting.reading import text_of
from planrun.source.node import MAPPING, SCALAR, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from planrun.app.converting.draft import DraftPlan
    from planrun.app.converting.reading import Reader

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


def secrets_of(node: Node | None, reader: Reader, plan: DraftPlan) -> list[str]:
    """Return the names of the secrets that a file declares, which are variables of the environment."""
    found = []
    for item in reader.items(node, "`secrets`"):
        keys = Keys(item, "a secret", reader)
        name = keys.text("name")
        if keys.text("provider") != "env" or keys.text("key") not in ("", name) or not _NAME.match(name):
            reader.found.refuse("secret", f"the secret {name} is not the variable of this name", item)
            continue
        plan.secret(name)
        found.append(name)
    return found
