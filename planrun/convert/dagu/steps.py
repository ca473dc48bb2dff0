"""One step of a Dagu file: its script, where it runs a command; anything else becomes an abstract step."""

from __future__ import annotations

import re
import shlex

from planrun.convert.dagu.values import Keys, Variables, whole
from planrun.convert.draft import DraftStep, literal_text
from planrun.convert.reader import UntranslatableError, text_of, truth_of
from planrun.convert.recipes.scripts import INTERPRETERS, NAME, POSIX, is_plain, joined, shell_of
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from planrun.convert.reader import Reader

KNOWN = frozenset((
    "id", "name", "description", "command", "args", "script", "run", "shell", "shellargs", "dir", "workingdir",
    "env", "depends", "continueon", "retrypolicy", "preconditions", "precondition", "output",
    "timeoutsec", "container", "approval", "outputs", "action", "executor", "type", "call",
    "signalonstop", "mailonerror", "logoutput", "workerselector", "tags",
))  # fmt: skip
_TOLD = {
    "signalonstop": "a step that is stopped gets SIGTERM, then SIGKILL",
    "mailonerror": "no mail is sent",
    "workerselector": "the plan runs on this machine",
}
_MATCHED = re.compile(r"[\w .,:/^$|()*+\[\]-]*\Z")  # patterns that grep -E reads as Go does


class StepReading:
    """Reads the steps of a file; `shell` is that of all of them."""

    def __init__(self, reader: Reader, variables: Variables) -> None:
        self.reader, self.found, self.variables = reader, reader.found, variables
        self.shell, self.strict = "bash -e", True

    def fill(self, step: DraftStep, keys: Keys, before: Collection[str]) -> None:
        """Give a step its action and surroundings; raises UntranslatableError for what is not certain."""
        commands = self._commands(keys)
        for name in keys.unknown(KNOWN):
            raise UntranslatableError(f"key:{name}", f"`{name}`")
        for name, difference in _TOLD.items():
            if keys.get(name) is not None:
                self.found.differs(name, difference, keys.place(name))
        self._surroundings(step, keys)
        words = self._shell_words(keys)
        output = keys.text("output").removeprefix("$").strip("{}")
        if keys.get("output") is not None and (not NAME.match(output) or output.startswith("PLANRUN_")):
            raise UntranslatableError("output", "an output in several parts")
        first = self._first("\n".join(commands), keys, step)
        if words and words[0].rpartition("/")[2] not in POSIX:
            if len(words) > 1 or not INTERPRETERS.match(words[0]) or len(commands) > 1:
                raise UntranslatableError("shell", f"the program `{' '.join(words)}` runs it")
            if output or first or re.search(r"\$\{[\w-]+\.", commands[0]):
                raise UntranslatableError(
                    "output", "outputs or references in another language than that of a shell"
                )
            step.keys |= {"shell": words[0], "run": f"{literal_text(commands[0])}\n"}
        else:
            strict = self.strict
            if words:
                shell, strict = shell_of(words)
                step.keys["shell"] = shlex.join(shell)
            texts = [self.variables.script(text, before, step) for text in commands]
            script = joined([(text, False) for text in texts], strict=strict)
            if output:
                inner = script.strip("\n")
                inner = inner if is_plain(inner) else f"\n{'set -e' if strict else ':'}\n{inner}\n"
                script = f'{output}=$({inner}){"" if strict else " || exit"}\necho "${output}"\n'
                script += f'printf \'{output}<<END\\n%s\\nEND\\n\' "${output}" >> "$PLANRUN_OUTPUT"\n'
                step.keys["outputs"] = {**step.keys.get("outputs", {}), output: "string"}
            step.keys["run"] = "\n".join([*first, script])
        self._policies(step, keys)

    def _commands(self, keys: Keys) -> list[str]:
        """Return the commands of a step, each for a shell of its own; raises UntranslatableError."""
        if (node := keys.get("action", "executor", "type")) is not None:
            name = text_of(node) or text_of(node.get("type") if node.kind == MAPPING else None) or "executor"
            if name not in ("shell", "command", "local"):
                raise UntranslatableError(f"action:{name}", f"the action or executor `{name}`")
        found = keys.get("run", "command", "script")
        if keys.get("call") is not None or found is None:
            raise UntranslatableError("action", "it runs no command")
        if keys.get("command") is not None and keys.get("script") is not None:
            return [text_of(keys.get("script"))]
        if found.kind == SEQUENCE:
            if keys.get("run") is None and len(found.value) > 1:
                message = "a list, which is words for some versions and commands for others"
                raise UntranslatableError("command", message)
            return [text_of(each) for each in found.value]
        if found.kind != SCALAR:
            raise UntranslatableError("command", "a command that is a mapping")
        return [" ".join([text_of(found), *self.reader.texts(keys.get("args"), "`args`")])]

    def _shell_words(self, keys: Keys) -> list[str]:
        """Return the words of the program that runs a step, none for that of the file."""
        node, script = keys.get("shell"), keys.text("run", "script")
        words = self.reader.texts(node, "`shell`")
        words = shlex.split(words[0]) if node is not None and node.kind == SCALAR else words
        words += self.reader.texts(keys.get("shellargs"), "`shell_args`")
        if keys.get("command") is not None and keys.get("script") is not None:
            words = shlex.split(keys.text("command"))
        if not words and script.startswith("#!"):
            words = shlex.split(script.split("\n", 1)[0][2:])
            if words and words[0].endswith("/env"):
                words = words[2:] if words[1:2] == ["-S"] else words[1:]
        return words

    def _first(self, text: str, keys: Keys, step: DraftStep) -> list[str]:
        """Return the lines that a script begins with."""
        lines = [
            f'export {name}="${value}"'
            for name, value in (("DAG_RUN_ID", "PLANRUN_RUN"), ("DAG_RUN_STEP_NAME", "PLANRUN_STEP"))
            if re.search(rf"\b{name}\b", text)
        ]
        outputs = self.reader.items(keys.get("outputs"), "`outputs`")
        for item in outputs:
            own = Keys(item, "an output", self.reader)
            if own.unknown(("name", "type")) or not NAME.match(own.text("name")):
                raise UntranslatableError("output", "an output with more than a name")
            step.keys["outputs"] = {**step.keys.get("outputs", {}), own.text("name"): "string"}
        if not outputs and "DAGU_OUTPUT_FILE" in text:
            raise UntranslatableError("output", "it writes outputs that it does not declare")
        return [*lines, *(['export DAGU_OUTPUT_FILE="$PLANRUN_OUTPUT"'] if outputs else [])]

    def _surroundings(self, step: DraftStep, keys: Keys) -> None:
        if description := " ".join(keys.text("description").split()):
            step.keys["description"] = description
        if folder := keys.text("workingdir", "dir"):
            step.keys["workdir"] = self.folder(folder)
        if keys.get("timeoutsec") is not None:
            if (seconds := whole(keys.get("timeoutsec"))) is None:
                raise UntranslatableError("timeout", "a time that Dagu works out")
            step.keys |= {"timeout": f"{seconds}s"} if seconds else {}
        if env := self.variables.environment(keys.get("env")):
            step.keys["env"] = env
        if (container := keys.get("container")) is not None:
            step.keys["container"] = self.container(container)

    def folder(self, text: str) -> str:
        """Return a folder as a template; raises UntranslatableError."""
        if text.startswith("~"):
            raise UntranslatableError("path", f"the folder {text}")
        return self.variables.template(text)

    def container(self, node: Node) -> dict[str, Any]:
        """Return the container that a mapping or the name of an image describes; raises UntranslatableError."""
        if node.kind == SCALAR:
            return {"image": self.variables.template(text_of(node))}
        keys = Keys(node, "a container", self.reader)
        known = ("image", "env", "volumes", "user", "network", "pullpolicy", "keepcontainer", "name")
        if (unknown := keys.unknown(known)) or not keys.text("image"):
            raise UntranslatableError("container", f"a container with `{(unknown or ['no image'])[0]}`")
        found: dict[str, Any] = {"image": self.variables.template(keys.text("image"))}
        if env := self.variables.environment(keys.get("env")):
            found["env"] = env
        if volumes := self.reader.texts(keys.get("volumes"), "`volumes`"):
            found["volumes"] = [literal_text(each) for each in volumes]
        return found | {
            name: literal_text(keys.text(name)) for name in ("user", "network") if keys.text(name)
        }

    def _policies(self, step: DraftStep, keys: Keys) -> None:
        """Read what happens after a failure; raises UntranslatableError."""
        if "failure" in self.continues(keys.get("continueon")):
            step.keys["on_failure"] = "continue"
        if (node := keys.get("retrypolicy")) is None:
            return
        own = Keys(node, "`retryPolicy`", self.reader)
        limit, interval = whole(own.get("limit")), whole(own.get("intervalsec") or Node(SCALAR, "0", 1, 1))
        codes = self.reader.texts(own.get("exitcode"), "`exitCode`")
        fits = all(each.isdecimal() and len(each) < 4 and int(each) < 256 for each in codes)
        if (
            limit is None
            or limit > 1000
            or interval is None
            or not fits
            or own.unknown(("limit", "intervalsec", "exitcode"))
        ):
            raise UntranslatableError(
                "retry-policy", "a `retryPolicy` that Dagu works out, or with `backoff`"
            )
        wait = {"initial": f"{interval}s", "factor": 1, "max": f"{interval}s", "jitter": 0}
        step.keys["retries"] = {"max": limit, "backoff": wait}
        if codes:
            step.keys["retries"]["on"] = [{"exit": [int(each) for each in codes]}]

    def continues(self, node: Node | None) -> set[str]:
        """Return after which ends of a step others go on: `failure`, `skipped`; raises UntranslatableError."""
        if node is not None and node.kind == MAPPING:
            own = Keys(node, "`continueOn`", self.reader)
            if own.unknown(("failure", "failed", "skipped", "marksuccess")) or truth_of(
                own.get("marksuccess")
            ):
                message = "`continueOn` with more than `failure` and `skipped`"
                raise UntranslatableError("continue-on", message)
            words = {name for name in ("failure", "failed", "skipped") if truth_of(own.get(name))}
        else:
            words = {each.lower() for each in self.reader.texts(node, "`continueOn`")}
        return {"failure" if word == "failed" else word for word in words}

    def check(self, name: str, node: Node, before: Collection[str]) -> DraftStep:
        """Return the step that finds out whether preconditions hold; raises UntranslatableError."""
        step = DraftStep(name, outputs={"met": "boolean"})
        asked = [
            self._asked(item, before, step) for item in (node.value if node.kind == SEQUENCE else [node])
        ]
        lines = [f"if {' && '.join(asked)}; then", '  echo met=true >> "$PLANRUN_OUTPUT"', "else"]
        step.keys["run"] = "\n".join([*lines, '  echo met=false >> "$PLANRUN_OUTPUT"', "fi"]) + "\n"
        return step

    def _asked(self, item: Node, before: Collection[str], step: DraftStep) -> str:
        """Return a command of the shell that passes where a precondition holds; raises UntranslatableError."""
        keys = Keys(item if item.kind == MAPPING else None, "a precondition", self.reader)
        text, expected = text_of(item) or keys.text("condition", "command"), keys.text("expected")
        if keys.unknown(("condition", "command", "expected", "negate")) or not text:
            raise UntranslatableError("precondition", "a precondition with other keys")
        if expected:
            if (
                '"' in text
                or "\\" in text
                or (expected.startswith("re:") and not _MATCHED.match(expected[3:]))
            ):
                raise UntranslatableError("precondition", f"the comparison of `{text[:60]}`")
            script = self.variables.script(f'"{text}"', before, step)
            found = f"[ {script} = {shlex.quote(expected)} ]"
            if expected.startswith("re:"):
                found = f"printf '%s\\n' {script} | grep -Eq -e {shlex.quote(expected[3:])}"
        else:
            is_quoted = re.fullmatch(r"`[^`]*`", text)
            found = self.variables.script(text[1:-1] if is_quoted else text, before, step).strip()
            found = found if is_plain(found) or re.fullmatch(r"\[ [^;&|\n]+ \]", found) else f"(\n{found}\n)"
        return f"! {found}" if keys.text("negate").lower() == "true" else found
