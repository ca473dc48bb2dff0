"""One step of a Dagu file: its script, or what its executor or action becomes."""

from __future__ import annotations

import re

from planrun.convert.dagu.actions import Actions
from planrun.convert.dagu.outputs import Fields, captured, name_of, repeated, with_streams
from planrun.convert.dagu.variables import Keys, is_number, pairs_of, pattern_of, split_environment, whole
from planrun.convert.draft import DraftStep, literal_text, step_path
from planrun.convert.reader import UntranslatableError, text_of, truth_of
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.convert.dagu.references import References
    from planrun.convert.dagu.subdags import Inlining
    from planrun.convert.dagu.variables import Variables
    from planrun.convert.reader import Reader

KNOWN = frozenset((
    "id", "name", "description", "command", "args", "script", "run", "shell", "shellargs", "with", "dir",
    "workingdir", "env", "depends", "executor", "type", "config", "continueon", "retrypolicy",
    "preconditions", "precondition", "output", "stdout", "stderr", "timeoutsec", "signalonstop",
    "mailonerror", "container", "repeatpolicy", "call", "action", "parallel", "params", "approval", "tags",
    "logoutput", "workerselector", "dotenv", "cmdwithargs", "outputschema", "shellpackages", "outputs", "inputs",
    "exec", "messages", "llm", "agent", "value", "routes",
))  # fmt: skip
_REFUSED = {
    "outputschema": ("output", "an output with a schema"),
    "shellpackages": ("shell", "a shell with packages that are fetched"),
}
_TOLD = {
    "signalonstop": "a step that is stopped gets SIGTERM, then SIGKILL",
    "mailonerror": "no mail is sent",
    "logoutput": "what a step prints is in one log",
    "workerselector": "the plan runs on this machine",
    "tags": "",
}
_SCRIPT = "PLANRUN_SCRIPT_END"
_LANGUAGES = ("python", "python3", "node", "perl", "ruby")
_SHELLS = ("", "sh", "bash", "dash", "zsh", "ash", "ksh")
_PROGRAM = re.compile(r"#!\s*(?:/usr/bin/env\s+)?(\S+)")


class StepReading:
    """Reads the steps of a file; what all of them share stands in `variables`."""

    def __init__(self, reader: Reader, variables: Variables, top: Keys) -> None:
        self.reader = reader
        self.found = reader.found
        self.variables = variables
        self.references: References = variables.references
        self.actions = Actions(self, top)
        self.inlining: Inlining | None = None
        self.inside: dict[str, list[DraftStep]] = {}  # steps that come right before another one, by its id
        self.routes: dict[
            str, list[tuple[str, str]]
        ] = {}  # what a router chooses, with the router and its output

    def fill(self, step: DraftStep, keys: Keys) -> None:
        """Give a step its action and surroundings; raises UntranslatableError."""
        keys.refuse_unknown(KNOWN)
        for name, (code, message) in _REFUSED.items():
            if keys.has(name):
                raise UntranslatableError(code, message)
        for name, difference in _TOLD.items():
            if keys.has(name) and difference:
                self.found.differs(name, difference, keys.place(name))
        self.references.needed = {}
        self.references.place = keys.node
        env, lines = split_environment(keys.get("env"), self.references)
        if env:
            step.keys["env"] = env
        step.prelude = [*self.variables.lines, *lines]
        self.references.own = dict(env)
        shared = self.references.worked_out
        given = {name: text_of(value) for name, value in pairs_of(keys.get("env"), "`env`", self.reader)}
        self.references.worked_out = {
            **shared,
            **{name: text for name, text in given.items() if name not in env},
        }
        try:
            self._read(step, keys)
        finally:
            self.references.worked_out, self.references.own = shared, {}

    def _read(self, step: DraftStep, keys: Keys) -> None:
        self._files(step, keys)
        self._surroundings(step, keys)
        self.actions.read(step, keys)
        self._tolerance(step, keys)
        self._retries(step, keys)
        if self.references.needed:
            step.keys["env"] = {**step.keys.get("env", {}), **self.references.needed}
        if (container := keys.get("container")) is not None:
            self.enter(step, self.running_container(container))

    def running_container(self, node: Node) -> str:
        """Return the words that run a shell in a container that runs already; "" for one that has to be started."""
        keys = Keys(node, "a container", self.reader) if node.kind == MAPPING else None
        if keys is None or not keys.has("exec"):
            return ""
        keys.refuse_unknown({"exec", "user", "workingdir", "env", "shell"})
        words = ["docker exec --interactive"]
        for key, option in (("user", "--user"), ("workingdir", "--workdir")):
            if keys.has(key):
                words.append(f'{option} "{self.references.words(keys.text(key))}"')
        env, lines = split_environment(keys.get("env"), self.references)
        if lines:
            raise UntranslatableError("container", "variables of a container that are worked out")
        words += [f'--env "{name}={value}"' for name, value in env.items()]
        shell = keys.get("shell")
        program = (
            text_of(shell.value[0]) if shell is not None and shell.kind == SEQUENCE and shell.value else "sh"
        )
        return " ".join([*words, f'"{self.references.words(keys.text("exec"))}"', program, "-e"])

    def enter(self, step: DraftStep, words: str) -> None:
        """Let a step run its script in a container that runs already."""
        if not words or "run" not in step.keys:
            return
        script = str(step.keys["run"])
        if "PLANRUN_" in script or "shell" in step.keys:
            raise UntranslatableError(
                "container", "outputs or another language in a container that runs already"
            )
        self.found.differs(
            "container",
            "docker runs the script in the container, which has to be there",
            self.references.place,
        )
        names = sorted({*self.variables.env, *step.keys.get("env", {})})
        options = "".join(f" --env {name}" for name in names)
        words = words.replace("docker exec", f"docker exec{options}", 1)
        step.keys["run"] = f"{words} <<'{_SCRIPT}'\n{script.rstrip(chr(10))}\n{_SCRIPT}\n"

    def _files(self, step: DraftStep, keys: Keys) -> None:
        """Read the files of a step of a build: it runs only where they have changed."""
        self.references.paths = {}
        for name, key in (("inputs", "inputs"), ("outputs", "produces")):
            node = keys.get(name)
            for item in node.value if node is not None and node.kind == SEQUENCE else ():
                path = item.get("path") if item.kind == MAPPING else None
                if path is not None:
                    step.keys.setdefault(key, []).append(self.references.template(text_of(path)))
                    self.references.paths[f"{name}.{text_of(item.get('name'))}"] = text_of(path)
        if "inputs" in step.keys and "produces" in step.keys:
            step.keys["cache"] = True

    def _surroundings(self, step: DraftStep, keys: Keys) -> None:
        description = " ".join(keys.text("description").split())
        if description:
            step.keys["description"] = description
        folder = keys.text("dir", "workingdir")
        if folder:
            step.keys["workdir"] = self.path(folder)
        seconds = whole(keys.get("timeoutsec"))
        if seconds:
            step.keys["timeout"] = f"{seconds}s"
        files = self.reader.texts(keys.get("dotenv"), "`dotenv`")
        if files:
            step.keys["env_file"] = [literal_text(file) for file in files]
        container = keys.get("container")
        if container is not None and not self.running_container(container):
            step.keys["container"] = self.container(container)

    def path(self, text: str) -> str:
        """Return a path as a template; `${NAME}` in it is a variable; raises UntranslatableError."""
        return self.references.template(f"${{HOME}}/{text[2:]}" if text.startswith("~/") else text)

    def container(self, node: Node) -> dict[str, Any]:
        """Return the container that a mapping or the name of an image describes; raises UntranslatableError."""
        if node.kind == SCALAR and text_of(node):
            return {"image": literal_text(text_of(node))}
        keys = Keys(node, "a container", self.reader)
        if not keys.text("image"):
            raise UntranslatableError("container", "a container without an image")
        found: dict[str, Any] = {"image": self.references.template(keys.text("image"))}
        env, lines = split_environment(keys.get("env"), self.references)
        if lines:
            raise UntranslatableError("container", "variables of a container that are worked out")
        if env:
            found["env"] = env
        volumes = [literal_text(text) for text in self.reader.texts(keys.get("volumes"), "`volumes`")]
        if volumes:
            found["volumes"] = volumes
        for name in ("user", "network"):
            if keys.text(name):
                found[name] = literal_text(keys.text(name))
        others = {
            "pullpolicy", "pull", "keepcontainer", "autoremove", "name", "containername", "ports", "workingdir",
            "platform", "host", "container", "waitfor", "healthcheck", "startup", "logpattern", "restartpolicy",
        }  # fmt: skip
        for name in sorted(others):
            if keys.has(name):
                self.found.differs("container", f"a container's `{name}` is not kept", keys.place(name))
        return found

    def script(self, step: DraftStep, text: str, keys: Keys, *, is_ready: bool = False) -> None:
        """Give a step a script; `is_ready`: its references are in words of the shell already."""
        match = None if is_ready else _PROGRAM.match(text)
        if match and "shell" not in step.keys:
            step.keys["shell"] = match[1].rpartition("/")[2]
        shell = str(step.keys.get("shell", "")).split(" ")[0].rpartition("/")[2]
        script = text.rstrip("\n") if is_ready else self.references.script(text.rstrip("\n"), shell)
        lines = [*self.references.built_in("\n".join([*step.prelude, script])), *step.prelude]
        lines += self._streams(keys)
        if re.search(r"\$\{?[1-9@*#]", text) is None:
            lines = [line for line in lines if not line.startswith("set -- ")]
        lines += self._declared(step, keys)
        output, policy = keys.get("output"), keys.get("repeatpolicy")
        name = name_of(output, self.reader)
        fields = output if output is not None and not name else self._of_stream(keys)
        if (lines or name or fields or policy) and shell not in _SHELLS:
            script = _piped(script, str(step.keys.pop("shell")))
        if policy is not None:
            script = repeated(script, policy, self.references, name)
        script = self._counted(script, keys)
        if name:
            self.references.hand_on(name, f"{step_path(step.id, 'outputs')}.{name}")
            script = script if policy is not None else captured(script, name)
            step.keys["outputs"] = {**step.keys.get("outputs", {}), name: "string"}
        elif fields is not None:
            script = self.with_fields(step, fields, script)
        body = "\n".join([*lines, script])
        step.keys["run"] = body + ("\n" if "\n" in body else "")

    def _streams(self, keys: Keys) -> list[str]:
        """Return lines that write the output of a script to the files that `stdout` and `stderr` name."""
        lines = []
        for name, sign in (("stdout", ">"), ("stderr", "2>")):
            path = keys.get(name)
            if path is not None and path.kind != MAPPING:
                lines.append(f'exec {sign}"{self.references.words(text_of(path))}"')
                self.found.differs(name, f"what goes to the file of `{name}` is not in the step's log", path)
        return lines

    def _declared(self, step: DraftStep, keys: Keys) -> list[str]:
        """Declare the outputs that a step writes to a file; return the line that names the file."""
        node = keys.get("outputs")
        if node is None or self.references.paths:
            return []
        for item in self.reader.items(node, "`outputs`"):
            own = Keys(item, "an output", self.reader)
            own.refuse_unknown({"name", "type"})
            name = own.text("name")
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,99}", name):
                raise UntranslatableError("output", f"`{name}` cannot be the name of an output")
            step.keys["outputs"] = {**step.keys.get("outputs", {}), name: "string"}
        return ['export DAGU_OUTPUT_FILE="$PLANRUN_OUTPUT"']

    def _of_stream(self, keys: Keys) -> Node | None:
        """Return the fields that are cut out of what a step prints, `stdout: {outputs: {fields: …}}`."""
        node = keys.get("stdout")
        if node is None or node.kind != MAPPING:
            return None
        own = Keys(node, "`stdout`", self.reader)
        own.refuse_unknown({"outputs"})
        fields = own.below("outputs").get("fields")
        if fields is None or fields.kind != MAPPING:
            raise UntranslatableError("output", "`stdout` as a mapping")
        return fields

    def with_fields(self, step: DraftStep, node: Node, script: str) -> str:
        """Return a script that publishes the outputs that a mapping describes."""
        if node.kind != MAPPING:
            raise UntranslatableError("output", "an output in several parts")
        fields = Fields(self.references, self.reader).read(node)
        step.keys["outputs"] = {**step.keys.get("outputs", {}), **dict.fromkeys(fields.names, "string")}
        if fields.streams:
            self.references.needed["step_dir"] = "${{ step.dir }}"
        return fields.around(script)

    def _counted(self, script: str, keys: Keys) -> str:
        """Return a script whose failure counts only with exit codes and outputs that `continueOn` does not name."""
        node = keys.get("continueon")
        if node is None or node.kind != MAPPING:
            return script
        own = Keys(node, "`continueOn`", self.reader)
        if not own.has("exitcode") and not own.has("output"):
            return script
        codes = self.reader.texts(own.get("exitcode"), "`exitCode`")
        if not all(code.isdecimal() for code in codes):
            raise UntranslatableError("continue-on", "exit codes that are worked out")
        patterns = self.reader.texts(own.get("output"), "`output`")
        message = "a failure that `continueOn` names by exit code or output counts as success"
        self.found.differs("continue-on", message, node)
        lines = ["code=0", "set +e", "(", "set -e", script.rstrip("\n"), ")", "code=$?", "set -e"]
        if patterns:
            lines[2] = "{ ("
            lines[5:7] = [') 2>&1; echo $? > "$kept.code"; } | tee "$kept"', 'read -r code < "$kept.code"']
            lines.insert(0, 'kept=$(mktemp)\ntrap \'rm -f "$kept" "$kept.code"\' EXIT')
        if codes:
            lines.append(f"case $code in {'|'.join(codes)}) exit 0 ;; esac")
        for pattern in patterns:
            is_pattern = pattern.startswith("re:")
            option, text = ("E", pattern_of(pattern[3:], "continue-on")) if is_pattern else ("F", pattern)
            quoted = "'" + text.replace("'", "'\\''") + "'"
            lines.append(f'if grep -q{option} -e {quoted} "$kept"; then exit 0; fi')
        return "\n".join([*lines, 'exit "$code"'])

    def _tolerance(self, step: DraftStep, keys: Keys) -> None:
        node = keys.get("continueon")
        if node is None:
            return
        if node.kind == SCALAR:
            words = {text_of(node).lower()}
        elif node.kind == SEQUENCE:
            words = {text.lower() for text in self.reader.texts(node, "`continueOn`")}
        else:
            own = Keys(node, "`continueOn`", self.reader)
            if truth_of(own.get("marksuccess")):
                self.found.differs(
                    "mark-success", "a tolerated failure stays a failure: the verdict is `partial`", node
                )
            words = {name for name in ("failure", "failed", "skipped") if truth_of(own.get(name))}
        if words & {"failure", "failed"}:
            step.keys["on_failure"] = "continue"

    def _retries(self, step: DraftStep, keys: Keys) -> None:
        node = keys.get("retrypolicy")
        if node is None:
            return
        own = Keys(node, "`retryPolicy`", self.reader)
        limit, interval = whole(own.get("limit")), whole(own.get("intervalsec")) or 0
        if limit is None or limit > 1000:
            raise UntranslatableError("retry-policy", "a number of repeats that is worked out")
        factor: float = 1
        backoff = own.get("backoff")
        if backoff is not None:
            factor = 2 if truth_of(backoff) else float(text_of(backoff)) if is_number(text_of(backoff)) else 1
        most = whole(own.get("maxintervalsec")) or (interval if factor == 1 else 3600)
        wait = {
            "initial": f"{interval}s",
            "factor": max(1, factor),
            "max": f"{max(most, interval)}s",
            "jitter": 0,
        }
        retries: dict[str, Any] = {"max": limit, "backoff": wait}
        codes = [
            int(text) for text in self.reader.texts(own.get("exitcode"), "`exitCode`") if text.isdecimal()
        ]
        if codes:
            known = [code for code in codes if code <= 255]
            if len(known) < len(codes):
                message = "exit codes above 255 are left out: no process has them"
                self.found.differs("retry-policy", message, keys.place("retrypolicy"))
            if not known:
                return
            retries["on"] = [{"exit": known}]
        step.keys["retries"] = retries


def skips_on(keys: Keys) -> bool:
    """Say whether dependent steps run when the step was skipped."""
    node = keys.get("continueon")
    if node is None:
        return False
    if node.kind == MAPPING:
        return (
            truth_of(next((value for key, value in node.value.items() if key.lower() == "skipped"), None))
            is True
        )
    return "skipped" in [text_of(item) for item in (node.value if node.kind == SEQUENCE else [node])]


def hand_on(step: DraftStep, before: list[DraftStep], outputs: dict[str, list[str]]) -> None:
    """Let a step read the variables that those before it hand on; `outputs` are their expressions."""
    if "run" not in step.keys and "exec" not in step.keys:
        return
    roots = tuple(f"{step_path(other.id, 'outputs')}." for other in before)
    for name, expressions in outputs.items():
        value = "''"
        for expression in expressions:
            if expression.startswith(roots):
                value = f"default({expression}, {value})"
        if value != "''" and name not in step.keys.get("env", {}):
            step.keys.setdefault("env", {})[name] = f"${{{{ {value} }}}}"


def keep_streams(step: DraftStep, streams: set[str]) -> None:
    """Let a step keep what it prints in files, for the steps that read them."""
    if "run" not in step.keys:
        raise UntranslatableError("reference", f"the output of {step.id} in a file")
    lines = with_streams(str(step.keys["run"]), streams)
    for each in sorted(streams):
        lines.append(f'echo "{each}_file=$kept_{each}" >> "$PLANRUN_OUTPUT"')
        step.keys["outputs"] = {**step.keys.get("outputs", {}), f"{each}_file": "string"}
    step.keys["env"] = {**step.keys.get("env", {}), "step_dir": "${{ step.dir }}"}
    step.keys["run"] = "\n".join(lines) + "\n"


def _piped(script: str, program: str) -> str:
    """Return a script of another language as the input of its program, for a shell that sets variables before."""
    if program.split(" ", maxsplit=1)[0].rpartition("/")[2] not in _LANGUAGES:
        raise UntranslatableError("shell", f"`{program}` is no shell in which variables could be set")
    return f"{program} - <<'{_SCRIPT}'\n{script}\n{_SCRIPT}"
