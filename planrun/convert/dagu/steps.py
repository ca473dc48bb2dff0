"""One step of a Dagu file: its script, where it runs a command; anything else becomes an abstract step."""

from __future__ import annotations

import re
import shlex

from planrun.convert.dagu.values import Keys, Variables, whole
from planrun.convert.draft import DraftStep, literal_text
from planrun.convert.reader import UntranslatableError, is_nothing, text_of, truth_of
from planrun.convert.recipes.scripts import NAME, POSIX, is_plain, joined, shell_of
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from planrun.convert.reader import Reader

KNOWN = frozenset((
    "id", "name", "description", "command", "args", "script", "run", "shell", "shellargs", "with", "dir", "workingdir",
    "env", "depends", "continueon", "retrypolicy", "preconditions", "precondition", "output", "stdout", "stderr",
    "timeoutsec", "container", "approval", "dotenv", "outputs", "action", "executor", "type", "call", "params",
    "signalonstop", "mailonerror", "logoutput", "workerselector", "tags",
))  # fmt: skip
_TOLD = {
    "signalonstop": "a step that is stopped gets SIGTERM, then SIGKILL",
    "mailonerror": "no mail is sent",
    "workerselector": "the plan runs on this machine",
}
_INTERPRETERS = re.compile(r"(?:python[\d.]*|node|perl|ruby)\Z")
_MATCHED = re.compile(r"[\w .,:/^$|()*+\[\]-]*\Z")  # patterns that grep -E reads as Go does


class StepReading:
    """Reads the steps of a file; `shell` is that of all of them."""

    def __init__(self, reader: Reader, variables: Variables) -> None:
        self.reader, self.found, self.variables = reader, reader.found, variables
        self.shell, self.strict = "bash -e", True

    def fill(self, step: DraftStep, keys: Keys, before: Collection[str]) -> None:
        """Give a step its action and surroundings; raises UntranslatableError for what is not certain."""
        for name in keys.unknown(KNOWN):
            raise UntranslatableError(f"key:{name}", f"`{name}`")
        for name, difference in _TOLD.items():
            if keys.get(name) is not None:
                self.found.differs(name, difference, keys.place(name))
        self._surroundings(step, keys)
        commands = self._commands(keys)
        strict = self.strict
        words = self._shell_words(keys)
        program = ""
        if words and words[0].rpartition("/")[2] not in POSIX:
            program = words[0]
            if len(words) > 1 or not _INTERPRETERS.match(program) or len(commands) > 1:
                raise UntranslatableError("shell", f"the program `{' '.join(words)}` runs it")
            step.keys["shell"] = program
        elif words:
            shell, strict = shell_of(words)
            step.keys["shell"] = shlex.join(shell)
        texts = [
            self.variables.script(text, before, step) if not program else self._text(text)
            for text in commands
        ]
        first = [] if program else self._first("\n".join(commands), keys, step)
        if program and (keys.get("output") is not None or first):
            raise UntranslatableError("output", "an output of another language than that of a shell")
        name = self._output_name(keys)
        script = texts[0] + "\n" if program else joined([(text, False) for text in texts], strict=strict)
        if name:
            inner = script.strip("\n")
            inner = inner if is_plain(inner) else f"\n{'set -e' if strict else ':'}\n{inner}\n"
            script = f"{name}=$({inner}){'' if strict else ' || exit'}\n"
            script += f'echo "${name}"\nprintf \'{name}<<END\\n%s\\nEND\\n\' "${name}" >> "$PLANRUN_OUTPUT"\n'
            step.keys["outputs"] = {**step.keys.get("outputs", {}), name: "string"}
        step.keys["run"] = "\n".join([*first, script])
        self._policies(step, keys)

    def _commands(self, keys: Keys) -> list[str]:
        """Return the commands of a step, each for a shell of its own; raises UntranslatableError."""
        if (node := keys.get("action", "executor", "type")) is not None:
            name = text_of(node) or text_of(node.get("type") if node.kind == MAPPING else None) or "executor"
            if name not in ("exec", "shell", "command", "local"):
                raise UntranslatableError(f"action:{name}", f"the action or executor `{name}`")
            own = Keys(keys.get("with"), "`with`", self.reader)
            if name == "exec" and own.get("command") is not None:
                parts = [own.text("command"), *self.reader.texts(own.get("args"), "`args`")]
                if any(re.search(r"[$`]", each) for each in parts):
                    raise UntranslatableError("action:exec", "words that Dagu fills in")
                return [shlex.join(parts)]
        found = keys.get("run", "command", "script")
        if keys.get("call") is not None or found is None:
            raise UntranslatableError("action", "it runs no command")
        if keys.get("command") is not None and keys.get("script") is not None:
            return [text_of(keys.get("script"))]
        if found.kind == SEQUENCE:
            texts = [text_of(each) for each in found.value]
            if keys.get("run") is None and len(texts) > 1:
                raise UntranslatableError(
                    "command", "a list, which is words for some versions and commands for others"
                )
            return texts
        text = self.reader.text(found, "a command")
        if (args := keys.get("args")) is not None:
            text = " ".join([text, *self.reader.texts(args, "`args`")])
        return [text]

    def _shell_words(self, keys: Keys) -> list[str]:
        """Return the words of the program that runs a step, none for that of the file."""
        own = Keys(keys.get("with"), "`with`", self.reader)
        node = keys.get("shell") or own.get("shell")
        words = (
            shlex.split(text_of(node))
            if node is not None and node.kind == SCALAR
            else self.reader.texts(node, "`shell`")
        )
        words += self.reader.texts(keys.get("shellargs") or own.get("shellargs"), "`shell_args`")
        if keys.get("command") is not None and keys.get("script") is not None:
            words = shlex.split(keys.text("command"))
        script = keys.text("run", "script")
        if not words and script.startswith("#!"):
            words = shlex.split(script.split("\n", 1)[0][2:])
            words = words[2:] if words[1:2] == ["-S"] else words[1:] if words[0].endswith("/env") else words
        if own.get("shellpackages") is not None:
            raise UntranslatableError("shell", "a shell with packages")
        return words

    def _text(self, text: str) -> str:
        if re.search(r"\$\{[\w-]+\.", text):
            raise UntranslatableError("reference", "a reference in another language than that of a shell")
        return literal_text(text)

    def _first(self, text: str, keys: Keys, step: DraftStep) -> list[str]:
        """Return the lines that a script begins with."""
        lines = []
        if self.variables.positions and re.search(r"\$\{?[1-9@*#]", text):
            words = " ".join(f'"${{P{number}}}"' for number in range(1, self.variables.positions + 1))
            lines.append(f"set -- {words}")
        for name, value in (("DAG_RUN_ID", "PLANRUN_RUN"), ("DAG_RUN_STEP_NAME", "PLANRUN_STEP")):
            if re.search(rf"\b{name}\b", text):
                lines.append(f'export {name}="${value}"')
        if (node := keys.get("outputs")) is not None:
            for item in self.reader.items(node, "`outputs`"):
                own = Keys(item, "an output", self.reader)
                if list(own.unknown(("name", "type"))) or not NAME.match(own.text("name")):
                    raise UntranslatableError("output", "an output with more than a name")
                step.keys["outputs"] = {**step.keys.get("outputs", {}), own.text("name"): "string"}
            lines.append('export DAGU_OUTPUT_FILE="$PLANRUN_OUTPUT"')
        elif "DAGU_OUTPUT_FILE" in text:
            raise UntranslatableError("output", "it writes outputs that it does not declare")
        for name, sign in (("stdout", ">"), ("stderr", "2>")):
            path = keys.get(name)
            if path is not None and (path.kind != SCALAR or re.search(r"[$`\"\\]", text_of(path))):
                raise UntranslatableError(name, f"`{name}`")
            if path is not None:
                lines.append(f'exec {sign} "{text_of(path)}"')
                self.found.differs(name, f"what goes to the file of `{name}` is not in the step's log", path)
        return lines

    def _output_name(self, keys: Keys) -> str:
        node = keys.get("output")
        if node is None:
            return ""
        name = text_of(node).removeprefix("$").strip("{}")
        if not NAME.match(name) or name.startswith("PLANRUN_") or keys.get("stdout") is not None:
            raise UntranslatableError("output", "an output in several parts")
        return name

    def _surroundings(self, step: DraftStep, keys: Keys) -> None:
        if description := " ".join(keys.text("description").split()):
            step.keys["description"] = description
        if folder := keys.text("workingdir", "dir"):
            step.keys["workdir"] = self.variables.template(folder)
            if folder.startswith("~"):
                raise UntranslatableError("path", f"the folder {folder}")
        if seconds := whole(keys.get("timeoutsec")):
            step.keys["timeout"] = f"{seconds}s"
        elif keys.get("timeoutsec") is not None and seconds is None:
            raise UntranslatableError("timeout", "a time that Dagu works out")
        if keys.get("dotenv") is not None:
            raise UntranslatableError("dotenv", "`dotenv` of a step")
        if env := self.variables.environment(keys.get("env")):
            step.keys["env"] = env
        if (container := keys.get("container")) is not None:
            step.keys["container"] = self.container(container)

    def container(self, node: Node) -> dict[str, Any]:
        """Return the container that a mapping or the name of an image describes; raises UntranslatableError."""
        if node.kind == SCALAR:
            return {"image": self.variables.template(text_of(node))}
        keys = Keys(node, "a container", self.reader)
        unknown = list(
            keys.unknown(
                ("image", "env", "volumes", "user", "network", "pullpolicy", "keepcontainer", "name")
            )
        )
        if unknown or not keys.text("image"):
            raise UntranslatableError("container", f"a container with `{(unknown or ['no image'])[0]}`")
        found: dict[str, Any] = {"image": self.variables.template(keys.text("image"))}
        if env := self.variables.environment(keys.get("env")):
            found["env"] = env
        if volumes := self.reader.texts(keys.get("volumes"), "`volumes`"):
            found["volumes"] = [literal_text(each) for each in volumes]
        found |= {name: literal_text(keys.text(name)) for name in ("user", "network") if keys.text(name)}
        return found

    def _policies(self, step: DraftStep, keys: Keys) -> None:
        """Read what happens after a failure; raises UntranslatableError."""
        if (node := keys.get("continueon")) is not None and "failure" in self.continues(node):
            step.keys["on_failure"] = "continue"
        if (node := keys.get("retrypolicy")) is None:
            return
        own = Keys(node, "`retryPolicy`", self.reader)
        limit, interval = whole(own.get("limit")), whole(own.get("intervalsec") or Node(SCALAR, "0", 1, 1))
        backoff = own.get("backoff")
        factor = "1" if backoff is None else "2" if truth_of(backoff) else text_of(backoff)
        codes = self.reader.texts(own.get("exitcode"), "`exitCode`")
        fits = re.fullmatch(r"\d{1,3}(\.\d{1,3})?", factor) and all(
            each.isdecimal() and len(each) < 4 and int(each) < 256 for each in codes
        )
        unknown = list(own.unknown(("limit", "intervalsec", "backoff", "maxintervalsec", "exitcode")))
        if limit is None or limit > 1000 or interval is None or not fits or unknown:
            raise UntranslatableError("retry-policy", "a `retryPolicy` that Dagu works out")
        most = whole(own.get("maxintervalsec")) or (interval if float(factor) == 1 else 3600)
        number = float(factor)
        wait = {"initial": f"{interval}s", "factor": max(1, int(number) if number.is_integer() else number),
                "max": f"{max(most, interval)}s", "jitter": 0}  # fmt: skip
        step.keys["retries"] = {"max": limit, "backoff": wait}
        if codes:
            step.keys["retries"]["on"] = [{"exit": [int(each) for each in codes]}]

    def continues(self, node: Node) -> set[str]:
        """Return after which ends of a step others go on: `failure`, `skipped`; raises UntranslatableError."""
        if node.kind == MAPPING:
            own = Keys(node, "`continueOn`", self.reader)
            if list(own.unknown(("failure", "failed", "skipped", "marksuccess"))) or truth_of(
                own.get("marksuccess")
            ):
                raise UntranslatableError(
                    "continue-on", "`continueOn` with more than `failure` and `skipped`"
                )
            words = {name for name in ("failure", "failed", "skipped") if truth_of(own.get(name))}
        else:
            words = {each.lower() for each in self.reader.texts(node, "`continueOn`")}
        return {"failure" if word == "failed" else word for word in words}

    def check(self, name: str, node: Node | None, before: Collection[str]) -> DraftStep | None:
        """Return the step that finds out whether preconditions hold, None without any; raises UntranslatableError."""
        if node is None or is_nothing(node):
            return None
        step = DraftStep(name, outputs={"met": "boolean"})
        items = node.value if node.kind == SEQUENCE else [node]
        asked = [self._asked(item, before, step) for item in items]
        lines = [f"if {' && '.join(asked)}; then", '  echo met=true >> "$PLANRUN_OUTPUT"', "else"]
        step.keys["run"] = "\n".join([*lines, '  echo met=false >> "$PLANRUN_OUTPUT"', "fi"]) + "\n"
        return step

    def _asked(self, item: Node, before: Collection[str], step: DraftStep) -> str:
        """Return a command of the shell that passes where a precondition holds; raises UntranslatableError."""
        keys = Keys(item, "a precondition", self.reader) if item.kind == MAPPING else None
        text, expected = (
            (text_of(item), "")
            if keys is None
            else (keys.text("condition", "command"), keys.text("expected"))
        )
        if (
            keys is not None and list(keys.unknown(("condition", "command", "expected", "negate")))
        ) or not text:
            raise UntranslatableError("precondition", "a precondition with other keys")
        if expected:
            script = (
                self.variables.script(f'"{text}"', before, step)
                if '"' not in text and "\\" not in text
                else ""
            )
            if not script or (expected.startswith("re:") and not _MATCHED.match(expected[3:])):
                raise UntranslatableError("precondition", f"the comparison of `{text[:60]}`")
            found = f"[ {script} = {shlex.quote(expected)} ]"
            if expected.startswith("re:"):
                found = f"printf '%s\\n' {script} | grep -Eq -e {shlex.quote(expected[3:])}"
        else:
            text = (
                text[1:-1] if text.startswith("`") and text.endswith("`") and "`" not in text[1:-1] else text
            )
            found = self.variables.script(text, before, step).strip()
            found = found if is_plain(found) or re.fullmatch(r"\[ [^;&|\n]+ \]", found) else f"(\n{found}\n)"
        return f"! {found}" if keys is not None and keys.text("negate").lower() == "true" else found
