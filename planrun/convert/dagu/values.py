"""Keys, parameters and variables of Dagu files, and what Dagu fills in: `${params.x}`, `${steps.a.outputs.b}`."""

from __future__ import annotations

import re
import shlex

from planrun.convert.draft import literal_text, step_path
from planrun.convert.reader import Reader, UntranslatableError, is_nothing, text_of
from planrun.convert.recipes.scripts import NAME, Piece, ShellText, Value, script_of, template_of
from planrun.plan.yaml.node import MAPPING, SCALAR, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import Any

    from planrun.convert.draft import DraftPlan, DraftStep

_REFERENCE = re.compile(r"(\\*)\$\{([A-Za-z_][\w-]*(?:\.[\w-]+)+(?:\[\d+\])?)\}")
_OUTPUT = re.compile(r"(?:steps\.)?([A-Za-z_][\w-]*)\.outputs?\.([A-Za-z_]\w*)\Z")
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))")
_OF_DAGU = re.compile(r"\bDAGU?_(?!OUTPUT_FILE|NAME\b|RUN_ID\b|RUN_STEP_NAME\b)[A-Z_]+")


class Keys:
    """The members of a mapping under names in small letters without underscores: `retryPolicy` is `retry_policy`."""

    def __init__(self, node: Node | None, what: str, reader: Reader) -> None:
        self.node = node if node is not None else Node(MAPPING, {}, 1, 1)
        self._members: dict[str, tuple[str, Node]] = {}
        for name, value in reader.mapping(node, what).items():
            if not is_nothing(value):
                self._members.setdefault(name.replace("_", "").lower(), (name, value))

    def get(self, *names: str) -> Node | None:
        """Return the value of the first of several keys that is there."""
        return next((self._members[name][1] for name in names if name in self._members), None)

    def text(self, *names: str) -> str:
        """Return the text of the first of several keys that is there."""
        return text_of(self.get(*names))

    def place(self, name: str) -> Node:
        """Return where a key stands."""
        found = self._members.get(name)
        return self.node.key(found[0]) if found and self.node.kind == MAPPING else self.node

    def unknown(self, known: Collection[str]) -> list[str]:
        """Return the keys that are not known, as they are written."""
        return [written for name, (written, _) in self._members.items() if name not in known]


def pairs_of(node: Node | None, what: str, reader: Reader) -> Iterator[tuple[str, Node]]:
    """Yield names and values of a mapping, or of a list of mappings and of texts `NAME=value`."""
    if node is None or is_nothing(node):
        return
    if node.kind == MAPPING:
        yield from node.value.items()
        return
    for item in reader.either(node, what):
        if item.kind == SCALAR:
            name, _, value = text_of(item).partition("=")
            yield name.strip(), Node(SCALAR, value, item.line, item.col)
        else:
            yield from reader.mapping(item, what).items()


def whole(node: Node | None) -> int | None:
    """Return a whole number that is not negative; None for anything else."""
    text = text_of(node)
    return int(text) if text.isdecimal() and len(text) < 10 else None


class Variables:
    """What the steps of one DAG see: `env` as templates of the plan, `lost` names that only Dagu works out."""

    def __init__(self, plan: DraftPlan, reader: Reader) -> None:
        self.plan, self.reader = plan, reader
        self.env: dict[str, str] = {}
        self.consts: dict[str, str] = {}
        self.lost: dict[str, str] = {}
        self.has_positions = False  # whether parameters have no names
        self.producers: dict[tuple[str, str], DraftStep] = {}  # by the id or name of a step, and an output

    def params(self, node: Node | None) -> None:
        """Declare the parameters of a file."""
        for name, value in _params(node, self.reader):
            default = text_of(value)
            if not name:
                self.has_positions = True
            elif not NAME.match(name) or name.startswith("PLANRUN_"):
                self._lose(name, "it cannot be the name of a parameter", value)
            else:
                fragment: dict[str, Any] = {"type": "string", "default": default}
                if re.search(r"[`$]", default) or value.kind == MAPPING:
                    message = f"the default of the parameter {name} is worked out by Dagu: {' '.join(default.split())}"
                    self.reader.found.todo("params", message, value)
                    fragment = {"type": "string", "required": True}
                self.plan.params[name] = fragment
                self.env[name] = f"${{{{ params.{name} }}}}"

    def environment(self, node: Node | None) -> dict[str, str]:
        """Return variables as templates, later ones with the values of earlier ones."""
        found: dict[str, str] = {}
        for name, value in pairs_of(node, "`env`", self.reader):
            if not NAME.match(name) or name.startswith("PLANRUN_"):
                self._lose(name, "it cannot be the name of a variable here", value)
                continue
            try:
                found[name] = self.template(self.reader.text(value, f"the variable {name}"), found)
            except UntranslatableError as why:
                self._lose(name, why.message, value)
        return found

    def _lose(self, name: str, why: str, place: Node) -> None:
        self.lost[name] = why
        self.reader.found.todo("env", f"the variable {name} is left out: {why}", place)

    def template(self, text: str, own: dict[str, str] | None = None) -> str:
        """Return a text that no shell reads as a template of the plan; raises UntranslatableError."""
        if re.search(r"`|\$\(|\$[\d@*#!?-]|\\\$|'[^']*\$|\$\{\w+[^\w}.]", text):
            raise UntranslatableError("reference", f"Dagu works `{text[:60]}` out")
        found, at = "", 0
        known = {**self.env, **(own or {})}
        for match in re.finditer(rf"{_REFERENCE.pattern}|{_VARIABLE.pattern}", text):
            found += literal_text(text[at : match.start()])
            at = match.end()
            name = match[3] or match[4]
            if match[2]:
                found += template_of(self._referred(match[2], ()), "a reference")
            elif name in self.lost:
                raise UntranslatableError("reference", f"Dagu works `{name}` out")
            else:
                found += known.get(name, f"${{{{ default(env.{name}, '') }}}}")
        return found + literal_text(text[at:])

    def script(self, text: str, before: Collection[str], step: DraftStep) -> str:
        """Return a script with its references filled in; `before` are the steps that it may read."""
        if (match := _OF_DAGU.search(text)) is not None:
            raise UntranslatableError("reference", f"`{match[0]}` is a variable of Dagu")
        if self.has_positions and re.search(r"\$\{?[1-9@*#]", text):
            raise UntranslatableError("params", "it takes parameters by position")
        for name in self.lost:
            if re.search(rf"\b{re.escape(name)}\b", text):
                raise UntranslatableError("env", f"it reads {name}: {self.lost[name]}")
        pieces: list[Piece] = []
        at = 0
        for match in _REFERENCE.finditer(text):
            if match[1]:
                raise UntranslatableError("reference", f"`{match[0]}`: a reference that is meant as text")
            pieces += [text[at : match.start()], *self._referred(match[2], before)]
            at = match.end()
        env: dict[str, str] = {}
        script = script_of([*pieces, text[at:]], env)
        step.keys |= {"env": {**step.keys.get("env", {}), **env}} if env else {}
        return script

    def _referred(self, path: str, before: Collection[str]) -> list[Piece]:
        """Return what Dagu puts in for a reference; raises UntranslatableError."""
        root, _, rest = path.partition(".")
        if path in self.consts:
            return [self.consts[path]]
        if root == "params" and rest in self.plan.params:
            return [Value(expression=f"params.{rest}")]
        if root == "env" and NAME.match(rest) and rest not in self.lost:
            return [ShellText(text=f"${{{rest}}}", reads=rest)]
        match = _OUTPUT.match(path)
        step = self.producers.get((match[1], match[2])) if match else None
        if match is None or step is None or step.id not in before:
            raise UntranslatableError("reference", f"`${{{path}}}` is known to Dagu alone")
        name = f"{match[1]}_{match[2]}".replace("-", "_")
        value = f"default({step_path(step.id, 'outputs')}.{match[2]}, '')"
        return [ShellText(text=f"${{{name}}}", reads=name, given=value)]

    def secrets(self, node: Node | None) -> list[str]:
        """Return the names of the secrets that a file declares, which are variables of the environment."""
        found = []
        for item in self.reader.items(node, "`secrets`"):
            keys = Keys(item, "a secret", self.reader)
            name = keys.text("name")
            if keys.text("provider") != "env" or not NAME.match(name) or keys.text("key") not in ("", name):
                self._lose(name or "secret", "its secret is not the variable of this name", item)
                continue
            self.plan.secret(name)
            found.append(name)
        return found


def _params(node: Node | None, reader: Reader) -> Iterator[tuple[str, Node]]:
    """Yield name, "" for one without, and default of each parameter; a mapping as default is worked out by Dagu."""
    if node is None or is_nothing(node):
        return
    for item in [node] if node.kind in (SCALAR, MAPPING) else node.value:
        if item.kind == MAPPING:
            named = item.value.get("name") if item is not node else None
            for name, value in [(text_of(named), item)] if named is not None else item.value.items():
                is_plain = value.kind != MAPPING or value.get("eval") is not None
                default = value if is_plain else value.get("default")
                yield name, default if default is not None else Node(SCALAR, "", value.line, value.col)
            continue
        try:
            words = shlex.split(text_of(item))
        except ValueError:
            reader.found.todo("params", "`params` has a quote that is not closed", item)
            words = []
        for word in words:
            name, sign, value = word.partition("=")
            is_named = bool(sign) and bool(NAME.match(name))
            yield name if is_named else "", Node(SCALAR, value if is_named else word, item.line, item.col)
