"""What a step of a Dagu file does: commands, executors, actions, questions, routers and other DAGs."""

from __future__ import annotations

import re

from planrun.convert.dagu.calls import Call
from planrun.convert.dagu.files import ADDED, REMOVED
from planrun.convert.dagu.models import agent_of
from planrun.convert.dagu.outputs import name_of
from planrun.convert.dagu.programs import NEEDED, PROGRAMS
from planrun.convert.dagu.subdags import command_for
from planrun.convert.dagu.variables import Keys, arguments_of, command_of, plain, whole
from planrun.convert.draft import DraftStep, literal_text, step_path
from planrun.convert.reader import UntranslatableError, data_of, text_of, truth_of
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Protocol

    from planrun.convert.dagu.references import References
    from planrun.convert.dagu.subdags import Inlining
    from planrun.convert.dagu.variables import Variables
    from planrun.convert.reader import Reader

    class Reading(Protocol):
        """What actions need of the reading of steps."""

        reader: Reader
        variables: Variables
        references: References
        inlining: Inlining | None
        inside: dict[str, list[DraftStep]]
        routes: dict[str, list[tuple[str, str]]]

        def container(self, node: Node) -> dict[str, Any]:
            """Return a container."""

        def script(self, step: DraftStep, text: str, keys: Keys, *, is_ready: bool = False) -> None:
            """Give a step a script."""

        def with_fields(self, step: DraftStep, node: Node, script: str) -> str:
            """Return a script that publishes outputs."""


_MODEL = "claude-sonnet-5-5"
# Settings of the whole file that executors take over.
_TOP = {
    "ssh": "ssh", "sftp": "ssh", "s3": "s3", "redis": "redis", "kubernetes": "kubernetes", "k8s": "kubernetes",
    "chat": "llm", "harness": "harness",
}  # fmt: skip
_STEP = {"chat": ("llm",), "agent": ("agent",)}  # keys of a step with settings of its executor


class Actions:
    """Gives steps their actions."""

    def __init__(self, reading: Reading, top: Keys) -> None:
        self.reading = reading
        self.reader = reading.reader
        self.found = reading.reader.found
        self.references = reading.references
        self.top = top

    def read(self, step: DraftStep, keys: Keys) -> None:
        """Give a step its action; raises UntranslatableError."""
        if keys.has("call"):
            self._subdag(step, keys.text("call"), keys, keys.get("params"))
            return
        if self._executor(step, keys) or self._named(step, keys):
            return
        settings = keys.below("with")
        shell = keys.first("shell") or settings.first("shell")
        script = keys.get("script")
        command = keys.first("run", "command", "cmdwithargs")
        if keys.has("exec") and command is None and script is None:
            self._exec(step, keys.below("exec"))
            return
        if command is None and script is None:
            if not keys.has("output") and not keys.has("approval") and keys.text("type") != "noop":
                raise UntranslatableError("shape", "a step has `command`, `script`, `run` or `action`")
            command = Node(SCALAR, "true", keys.node.line, keys.node.col)
        if keys.has("run") and _is_file(text_of(command), keys):
            self._subdag(step, text_of(command), keys, keys.get("params"))
            return
        if shell is not None and text_of(shell):
            options = self.reader.texts(settings.get("shellargs"), "`shell_args`")
            step.keys["shell"] = " ".join([text_of(shell), *options])
        self._commands(step, keys, script, command)

    def _commands(self, step: DraftStep, keys: Keys, script: Node | None, command: Node | None) -> None:
        """Give a step a script, or the words of a command."""
        if script is not None:
            if text_of(command):
                step.keys["shell"] = text_of(command)
            self.reading.script(step, text_of(script), keys)
        elif command is not None and command.kind == SEQUENCE:
            words = self.reader.texts(command, "`command`") or [""]
            is_list = keys.has("run") or " " in words[0]  # commands, and no words of one
            self.reading.script(step, "\n".join(words) if is_list else " ".join(map(_word, words)), keys)
        else:
            words = self.reader.texts(keys.get("args"), "`args`")
            self.reading.script(step, " ".join([text_of(command), *map(_word, words)]), keys)

    def _executor(self, step: DraftStep, keys: Keys) -> bool:
        """Convert an executor; returns whether that is the whole action."""
        node = keys.first("executor", "type")
        if node is None:
            return False
        own = Keys(node, "`executor`", self.reader) if node.kind == MAPPING else None
        kind = own.text("type") if own else text_of(node)
        config = own.get("config") if own else keys.first("config", "with")
        if kind in ("docker", "container"):
            if config is None and not keys.has("container"):
                raise UntranslatableError("executor:docker", "a container without an image")
            if config is not None:
                step.keys["container"] = self.reading.container(config)
            return False
        if kind in ("", "command", "shell", "bash", "sh", "noop"):
            return False
        if kind == "dag":
            self._subdag(step, text_of(keys.first("command", "run")), keys, keys.get("params"))
            return True
        self._call(step, keys, (kind, ""), config)
        return True

    def _named(self, step: DraftStep, keys: Keys) -> bool:
        """Convert an action; returns whether there is one."""
        if not keys.has("action"):
            return False
        name = keys.text("action")
        kind, _, op = name.partition(".")
        given = keys.below("with")
        if name == "exec":
            self._exec(step, given)
        elif name == "noop":
            self.reading.script(step, "true", keys)
        elif name in ("docker.run", "container.run"):
            step.keys["container"] = self.reading.container(given.node)
            self.reading.script(step, " ".join(self.reader.texts(given.get("command"), "`command`")), keys)
        elif name == "dag.run":
            self._subdag(step, given.text("dag"), keys, given.get("params"))
        elif name == "human.task":
            self._form(step, given)
        elif name == "outputs.write":
            self._written(step, given)
        else:
            self._call(step, keys, (kind, op), keys.get("with"))
        return True

    def _exec(self, step: DraftStep, given: Keys) -> None:
        """Give a step a program without a shell."""
        words = [given.text("command"), *self.reader.texts(given.get("args"), "`args`")]
        step.keys["exec"] = [self.references.template(word) for word in words]

    def _written(self, step: DraftStep, given: Keys) -> None:
        values = given.get("values")
        if values is None or values.kind != MAPPING:
            raise UntranslatableError("shape", "`values` are missing")
        lines = [*self.references.built_in(str(values)), *step.prelude]
        step.keys["run"] = "\n".join([*lines, self.reading.with_fields(step, values, "true")]) + "\n"

    def _form(self, step: DraftStep, given: Keys) -> None:
        """Give a step a question for each field of a form, one after the other."""
        prompt = self.references.template(given.text("prompt")) or "Go on?"
        form = given.below("form")
        fields = self.reader.mapping(form.get("properties"), "`properties`")
        if not fields:
            step.keys["ask"] = {"question": prompt}
            return
        if truth_of(form.get("additionalproperties")):
            raise UntranslatableError("action:human.task", "a form with fields of any name")
        message = "each field of a form is a question that has to be answered; none is optional"
        self.found.differs("form", message, given.node)
        before: list[DraftStep] = []
        for at, (name, node) in enumerate(fields.items(), 1):
            own = (
                step
                if at == len(fields)
                else DraftStep(self.reading.variables.plan.name(f"{step.id}.{name}"))
            )
            own.keys["ask"] = _question(prompt, name, Keys(node, "a field", self.reader))
            self.references.answers[(step.id, name)] = f"{step_path(own.id, 'outputs')}.answer"
            if before:
                own.wait(before[-1].id)
            before.append(own)
        self.reading.inside[step.id] = before[:-1]

    def _call(self, step: DraftStep, keys: Keys, names: tuple[str, str], config: Node | None) -> None:
        """Give a step what an executor or action becomes; raises UntranslatableError."""
        kind, op = names
        settings = Keys(self._merged(kind, keys, config), f"the executor {kind}", self.reader)
        texts = (
            "\n".join(self.reader.texts(keys.first("command", "run"), "`command`")),
            text_of(keys.get("script")),
        )
        call = Call(kind, op, settings, self.references, texts)
        if kind == "router":
            self._route(step, call)
        elif kind == "agent":
            self._agent(step, keys, call)
        elif kind in PROGRAMS:
            self._program(step, keys, call)
        else:
            code = f"action:{keys.text('action')}" if keys.has("action") else f"executor:{kind}"
            raise UntranslatableError(code, f"the {code.replace(':', ' ')}")

    def _program(self, step: DraftStep, keys: Keys, call: Call) -> None:
        if call.kind == "git" and "." in call.op:
            step.keys["outputs"] = dict.fromkeys(ADDED if call.op.endswith("add") else REMOVED, "string")
        script = PROGRAMS[call.kind](call)
        if program := NEEDED.get(call.kind, call.kind):
            message = f"the program {program} does it, which has to be there"
            self.found.differs(f"executor:{call.kind}", message, keys.node)
        plan = self.reading.variables.plan
        for secret in call.secrets:
            if secret not in plan.secrets:
                plan.secret(secret)
                plan.optional.add(secret)
            step.keys["secrets"] = [*step.keys.get("secrets", []), secret]
        self.reading.script(step, script, keys, is_ready=True)

    def _agent(self, step: DraftStep, keys: Keys, call: Call) -> None:
        step.keys["agent"] = agent_of(call)
        plan = self.reading.variables.plan
        plan.keys.setdefault("llm", {"model": step.keys["agent"].get("model", _MODEL)})
        if name := name_of(keys.get("output"), self.reader):
            self.references.hand_on(name, f"{step_path(step.id, 'outputs')}.summary")

    def _merged(self, kind: str, keys: Keys, config: Node | None) -> Node:
        """Return the settings of an executor over those of the whole file."""
        place = keys.node
        merged = Node(MAPPING, {}, place.line, place.col)
        merged.keys = {}
        nodes = [self.top.get(_TOP.get(kind, "")), config, *(keys.get(name) for name in _STEP.get(kind, ()))]
        for node in nodes:
            for name, value in self.reader.mapping(node, f"the settings of {kind}").items():
                for other in [each for each in merged.value if plain(each) == plain(name)]:
                    del merged.value[other], merged.keys[other]
                merged.value[name], merged.keys[name] = value, node.key(name) if node is not None else value
        own = [(name, keys.get(name)) for name in ("messages", "value", "routes")]
        own += [("harnesses", self.top.get("harnesses"))] if kind == "harness" else []
        for name, given in own:
            if given is not None:
                merged.value[name] = merged.keys[name] = given
        return merged

    def _route(self, step: DraftStep, call: Call) -> None:
        """Give a step the tests of a router; the steps that it chooses have conditions."""
        value = call.settings.text("value")
        if not value:
            raise UntranslatableError("executor:router", "a router without a value")
        tests, outputs = [], {}
        routes = self.reader.mapping(call.settings.get("routes"), "`routes`")
        for at, (pattern, targets) in enumerate(routes.items(), 1):
            test = command_of(value, pattern, self.references)
            tests += [
                f"if {test}",
                "then met=true",
                "else met=false",
                "fi",
                f'echo "route_{at}=$met" >> "$PLANRUN_OUTPUT"',
            ]
            outputs[f"route_{at}"] = "boolean"
            for target in self.reader.texts(targets, "a route"):
                self.reading.routes.setdefault(target, []).append((step.id, f"route_{at}"))
        lines = [*self.references.built_in("\n".join(tests)), *step.prelude]
        step.keys |= {"run": "\n".join([*lines, *tests]) + "\n", "outputs": outputs}

    def _subdag(self, step: DraftStep, name: str, keys: Keys, params: Node | None) -> None:
        """Give a step the steps of a sub-DAG, or the command by which Dagu runs it; raises UntranslatableError."""
        inlining = self.reading.inlining
        assert inlining is not None  # the file sets it
        if "$" in name or not name:
            raise UntranslatableError("sub-dag", "a DAG whose name is worked out")
        items = self._items(keys)
        inside = inlining.steps(
            name, step, keys, params, (items, _shown(items), _item_of(items)) if items else None
        )
        if inside is not None:
            self.reading.inside[step.id] = inside
            return
        if keys.has("output"):
            raise UntranslatableError("sub-dag", f"the result of a DAG that is in another file: {name}")
        message = f"the DAG {name} is not in this folder: Dagu runs it, and has to be there"
        self.found.differs("sub-dag", message, keys.node)
        step.keys |= items
        if items:
            self.references.item = _item_of(items)
            step.keys["env"] = {**step.keys.get("env", {}), "ITEM": f"${{{{ {_shown(items)} }}}}"}
        given = arguments_of(params, self.reader)
        words = " ".join(f"{name}={_word(value)}" if name else _word(value) for name, value in given)
        self.reading.script(step, command_for(name, words or ('"$ITEM"' if items else "")), keys)
        self.references.item = ""

    def _items(self, keys: Keys) -> dict[str, Any]:
        """Return the keys of a step for each item of `parallel`; raises UntranslatableError for what it cannot have."""
        node = keys.get("parallel")
        if node is None:
            return {}
        most: int | None = 10
        if node.kind == MAPPING:
            own = Keys(node, "`parallel`", self.reader)
            node, most = own.get("items"), whole(own.get("maxconcurrent")) or most
        if node is not None and node.kind == SCALAR:
            match = re.fullmatch(r"\$\{?([\w.-]+)\}?", text_of(node))
            if match is None:
                raise UntranslatableError("sub-dag", "items that are worked out")
            message = "the items are a list as JSON when the plan runs"
            self.found.differs("sub-dag", message, keys.node)
            text = self.references.template(text_of(node)).removeprefix("${{ ").removesuffix(" }}")
            return {"foreach": {"items": f"${{{{ fromjson({text}) }}}}", "max_parallel": most}}
        items = node.value if node is not None else []
        texts = [text_of(item) for item in items if item.kind == SCALAR]
        if not items or any("$" in text or "`" in text for text in texts):
            raise UntranslatableError("sub-dag", "items that are worked out")
        if len(texts) == len(items) and len(set(texts)) == len(texts):
            return {"matrix": {"item": texts, "max_parallel": most}}
        if any(item.kind != MAPPING for item in items):
            raise UntranslatableError("sub-dag", "items of several kinds")
        rows = [{name: text_of(value) for name, value in item.value.items()} for item in items]
        if any("$" in text or "`" in text for row in rows for text in row.values()):
            raise UntranslatableError("sub-dag", "items that are worked out")
        names = [name for name in rows[0] if len({row.get(name, "") for row in rows}) == len(rows)]
        if not names:
            raise UntranslatableError("sub-dag", "items that no value of their own tells apart")
        return {"foreach": {"items": rows, "key": f"item.{names[0]}", "max_parallel": most}}


def _item_of(items: Mapping[str, Any]) -> str:
    return "matrix.item" if "matrix" in items else "item"


def _shown(items: Mapping[str, Any]) -> str:
    """Return the expression for an item as a variable: a mapping is JSON."""
    rows = items.get("foreach", {}).get("items")
    return "tojson(item)" if isinstance(rows, list) else _item_of(items)


def _question(prompt: str, name: str, field: Keys) -> dict[str, Any]:
    """Return the question for one field of a form."""
    ask: dict[str, Any] = {"question": f"{prompt} {literal_text(field.text('title') or name)}?"}
    choices = list(field.reader.items(field.get("enum"), "`enum`"))
    for each in field.reader.items(field.get("oneof"), "`oneOf`"):
        const = each.get("const") if each.kind == MAPPING else None
        choices += [const] if const is not None else []
    if choices:
        ask["enum"] = [data_of(each) for each in choices]
    else:
        ask["type"] = field.text("type") or "string"
    for key in ("pattern", "minimum", "maximum"):
        if (node := field.get(key)) is not None:
            ask[key] = data_of(node)
    return ask


def _is_file(text: str, keys: Keys) -> bool:
    return bool(re.fullmatch(r"\S+\.ya?ml", text)) or (keys.has("params") and " " not in text)


def _word(text: str) -> str:
    """Return a word for a shell that still fills in variables."""
    if re.fullmatch(r"[A-Za-z0-9_./:=@%+,-]+", text):
        return text
    return '"' + re.sub(r'(["\\])', r"\\\1", text) + '"'
