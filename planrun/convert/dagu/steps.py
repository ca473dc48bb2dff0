"""One step of a Dagu file: its script, or the program of its executor (http: curl, jq: jq, ssh: ssh).

A step that repeats itself becomes a loop in its script.
"""

from __future__ import annotations

import re

from planrun.convert.dagu.subdags import command_for
from planrun.convert.dagu.variables import (
    Keys,
    check_references,
    command_of,
    is_number,
    split_environment,
    whole,
)
from planrun.convert.draft import DraftStep, literal_text, step_path
from planrun.convert.reader import UntranslatableError, text_of, truth_of
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from planrun.convert.dagu.subdags import Inlining
    from planrun.convert.dagu.variables import Variables
    from planrun.convert.reader import Reader
    from planrun.plan.yaml.node import Node

_INPUT = "PLANRUN_INPUT_END"


def script_of(kind: str, command: str, text: str, config: Keys, reader: Reader) -> str:
    """Return the command line of an executor; `text` is the step's `script`. Raises UntranslatableError."""
    return _PROGRAMS[kind](command, text, config, reader)


def _http(command: str, _text: str, config: Keys, reader: Reader) -> str:
    method, _, url = command.strip().partition(" ")
    if not url:
        raise UntranslatableError("executor:http", f"a request `METHOD URL`, not `{command}`")
    words = ["curl --silent --show-error --location --fail-with-body", f"--request {_quoted(method)}"]
    for name, value in reader.mapping(config.get("headers"), "`headers`").items():
        words.append(f"--header {_quoted(f'{name}: {text_of(value)}')}")
    query = reader.mapping(config.get("query"), "`query`")
    if query:
        words.append(
            "--url-query " + " --url-query ".join(_quoted(f"{k}={text_of(v)}") for k, v in query.items())
        )
    if config.has("body"):
        words.append(f"--data-raw {_quoted(config.text('body'))}")
    if config.has("timeout"):
        words.append(f"--max-time {_quoted(config.text('timeout'))}")
    if truth_of(config.get("skiptlsverify")):
        words.append("--insecure")
    return " ".join([*words, _quoted(url.strip())])


def _jq(command: str, text: str, config: Keys, _reader: Reader) -> str:
    option = " --raw-output" if truth_of(config.get("raw")) else ""
    query = "'" + command.strip().replace("'", "'\\''") + "'"
    return f"jq{option} {query} <<'{_INPUT}'\n{text}\n{_INPUT}"


def _ssh(command: str, text: str, config: Keys, _reader: Reader) -> str:
    if config.has("password") or config.has("bastion"):
        raise UntranslatableError("executor:ssh", "a connection by a password or over another host")
    host, user = config.text("host", "ip"), config.text("user")
    if not host:
        raise UntranslatableError("executor:ssh", "a connection without a host")
    words = ["ssh -o BatchMode=yes"]
    if config.has("port"):
        words.append(f"-p {_quoted(config.text('port'))}")
    if config.has("key"):
        words.append(f"-i {_key(config.text('key'))}")
    if truth_of(config.first("stricthostkey", "stricthostkeychecking")) is False:
        words.append("-o StrictHostKeyChecking=no")
    words.append(_quoted(f"{user}@{host}" if user else host))
    if text.strip():
        return " ".join([*words, f"sh -e <<'{_INPUT}'\n{text}\n{_INPUT}"])
    return " ".join([*words, _quoted(command)])


def _key(path: str) -> str:
    return f'"$HOME"/{_quoted(path[2:])}' if path.startswith("~/") else _quoted(path)


def _quoted(text: str) -> str:
    """Return a word in double quotes: Dagu fills in `$NAME` in it, and so does the shell."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _mail(_command: str, _text: str, config: Keys, reader: Reader) -> str:
    if config.has("attachments"):
        raise UntranslatableError("executor:mail", "a mail with attachments")
    to = ", ".join(reader.texts(config.get("to"), "`to`"))
    body = config.text("message")
    kind = "text/html" if "<html" in body.lower() else "text/plain"
    heads = {"From": config.text("from"), "To": to, "Subject": config.text("subject")}
    lines = [f"{name}: {value}" for name, value in heads.items() if value]
    lines.append(f"Content-Type: {kind}; charset=utf-8")
    text = "\n".join([*lines, "", body.rstrip("\n")])
    return f"sendmail -t <<{_INPUT}\n{text}\n{_INPUT}"


_PROGRAMS: dict[str, Callable[[str, str, Keys, Reader], str]] = {
    "http": _http,
    "jq": _jq,
    "mail": _mail,
    "ssh": _ssh,
}
KINDS = frozenset(_PROGRAMS)
"""The executors that are known here."""


_KNOWN = frozenset(
    ("repeat", "intervalsec", "limit", "condition", "expected", "exitcode", "backoff", "maxintervalsec")
)
LONGEST = 3600
"""Seconds between two runs where a growing interval has no limit of its own, as Dagu has it for retries."""


def repeated(script: str, node: Node, reader: Reader) -> str:
    """Return a script that repeats another one as a `repeatPolicy` says; raises UntranslatableError.

    `while` repeats as long as the condition holds, the exit code is a listed one, or else the script succeeds; `until`
    repeats as long as that is not so. The exit code is that of the last repetition.
    """
    keys = Keys(node, "`repeatPolicy`", reader)
    keys.refuse_unknown(_KNOWN)
    mode = _mode(keys)
    if not mode:
        return script
    test = _test(keys, node, reader)
    again = test if mode == "while" else f"! {{ {test}; }}"
    most = whole(keys.get("limit"))
    if keys.has("limit") and not most:
        raise UntranslatableError("repeat-policy", "a number of repetitions that is worked out")
    bound = f"[ $repeated -lt {most} ] && " if most else ""
    pause = whole(keys.get("intervalsec")) or 0
    return "\n".join([
        f"repeated=0 pause={pause}",
        "while :; do",
        "set +e",
        "(",
        "set -e",
        script.rstrip("\n"),
        ")",
        "code=$?",
        "repeated=$((repeated + 1))",
        f"if {bound}{again}; then again=yes; else again=no; fi",
        "[ $again = yes ] || exit $code",
        'sleep "$pause"',
        *_growth(keys, pause),
        "done",
    ])  # fmt: skip


def _mode(keys: Keys) -> str:
    """Return `while`, `until`, or "" for a policy that repeats nothing, by the rules of Dagu."""
    word = keys.text("repeat")
    if word in ("while", "until"):
        return word
    if truth_of(keys.get("repeat")):
        return "while"
    if keys.has("condition"):
        return "until" if keys.has("expected") else "while"
    return "while" if keys.has("exitcode") else ""


def _test(keys: Keys, node: Node, reader: Reader) -> str:
    if keys.has("condition"):
        return command_of(keys.text("condition"), keys.text("expected"))
    codes = reader.texts(keys.get("exitcode"), "`exitCode`")
    if not codes:
        return "[ $code = 0 ]"
    if not all(code.isdecimal() for code in codes):
        reader.found.refuse("shape", "`exitCode` has numbers", node)
    return f"case $code in {'|'.join(codes)}) true;; *) false;; esac"


def _growth(keys: Keys, pause: int) -> list[str]:
    backoff = keys.get("backoff")
    factor = 2.0 if truth_of(backoff) else float(text_of(backoff)) if is_number(text_of(backoff)) else 1.0
    if factor <= 1 or not pause:
        return []
    most = whole(keys.get("maxintervalsec")) or LONGEST
    if not factor.is_integer():
        raise UntranslatableError("repeat-policy", "an interval that grows by a fraction")
    return [f"pause=$((pause * {int(factor)})); [ $pause -le {most} ] || pause={most}"]


KNOWN = frozenset((
    "id", "name", "description", "command", "args", "script", "run", "shell", "shellargs", "with", "dir",
    "workingdir", "env", "depends", "executor", "type", "config", "continueon", "retrypolicy",
    "preconditions", "precondition", "output", "stdout", "stderr", "timeoutsec", "signalonstop",
    "mailonerror", "container", "repeatpolicy", "call", "action", "parallel", "params", "approval", "tags",
    "logoutput", "workerselector", "dotenv", "cmdwithargs", "outputschema", "shellpackages",
))  # fmt: skip
_REFUSED = {
    "approval": ("approval", "an approval after the step; write an `ask` step behind it"),
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
_END = "PLANRUN_OUTPUT_END"
_SCRIPT = "PLANRUN_SCRIPT_END"


class StepReading:
    """Reads the steps of a file; what all of them share stands in `variables`."""

    def __init__(self, reader: Reader, variables: Variables) -> None:
        self.reader = reader
        self.found = reader.found
        self.variables = variables
        self.inlining: Inlining | None = None
        self.inside: dict[str, list[DraftStep]] = {}  # steps of sub-DAGs, by the step that runs them

    def fill(self, step: DraftStep, keys: Keys) -> None:
        """Give a step its action and surroundings; raises UntranslatableError."""
        keys.refuse_unknown(KNOWN)
        for name, (code, message) in _REFUSED.items():
            if keys.has(name):
                raise UntranslatableError(code, message)
        for name, difference in _TOLD.items():
            if keys.has(name) and difference:
                self.found.differs(name, difference, keys.place(name))
        env, lines = split_environment(keys.get("env"), self.reader)
        if env:
            step.keys["env"] = env
        step.prelude = [*self.variables.lines, *lines]
        self._surroundings(step, keys)
        self._action(step, keys)
        self._tolerance(step, keys)
        self._retries(step, keys)

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
        if container is not None:
            step.keys["container"] = self.container(container)

    def path(self, text: str) -> str:
        """Return a path as a template; `${NAME}` in it is a variable; raises UntranslatableError."""
        check_references(text)
        if "`" in text or "$(" in text:
            raise UntranslatableError("path", f"a path that is worked out: {text}")
        parts = re.split(r"\$\{?([A-Za-z_]\w*)\}?", literal_text(text))
        known = self.variables.plan.params
        named = [
            (f"${{{{ params.{part} }}}}" if part in known else f"${{{{ default(env.{part}, '') }}}}")
            if at % 2
            else part
            for at, part in enumerate(parts)
        ]
        return "".join(named)

    def container(self, node: Node) -> dict[str, Any]:
        """Return the container that a mapping or the name of an image describes; raises UntranslatableError."""
        if node.kind == SCALAR and text_of(node):
            return {"image": literal_text(text_of(node))}
        keys = Keys(node, "a container", self.reader)
        if not keys.text("image"):
            raise UntranslatableError("container", "a container without an image")
        found: dict[str, Any] = {"image": literal_text(keys.text("image"))}
        env, lines = split_environment(keys.get("env"), self.reader)
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
            "pullpolicy",
            "keepcontainer",
            "autoremove",
            "name",
            "ports",
            "workingdir",
            "platform",
            "host",
            "container",
        }
        for name in sorted(others):
            if keys.has(name):
                self.found.differs("container", f"a container's `{name}` is not kept", keys.place(name))
        return found

    def _subdag(self, step: DraftStep, name: str, keys: Keys) -> None:
        """Give a step the steps of a sub-DAG, or the command by which Dagu runs it; raises UntranslatableError."""
        assert self.inlining is not None  # the file sets it
        if keys.has("parallel"):
            self._each(step, name, keys)
            return
        inside = self.inlining.steps(name, step, keys)
        if inside is not None:
            self.inside[step.id] = inside
            return
        if keys.has("output"):
            raise UntranslatableError("sub-dag", f"the result of a DAG that is in another file: {name}")
        message = f"the DAG {name} is not in this folder: Dagu runs it, and has to be there"
        self.found.differs("sub-dag", message, keys.node)
        params = keys.get("params")
        if params is not None and params.kind == MAPPING:
            words = " ".join(f"{key}={_word(text_of(value))}" for key, value in params.value.items())
        else:
            words = " ".join(self.reader.texts(params, "`params`"))
        self._script(step, command_for(name, words), keys)

    def _each(self, step: DraftStep, name: str, keys: Keys) -> None:
        """Give a step an instance for each item of `parallel`, which Dagu runs another file with."""
        assert self.inlining is not None  # the file sets it
        node = keys.get("parallel")
        most = None
        if node is not None and node.kind == MAPPING:
            own = Keys(node, "`parallel`", self.reader)
            node, most = own.get("items"), whole(own.get("maxconcurrent"))
        items = node.value if node is not None and node.kind == SEQUENCE else []
        texts = [text_of(item) for item in items]
        if not texts or any(not text or "$" in text or "`" in text for text in texts) or keys.has("output"):
            raise UntranslatableError(
                "sub-dag", "a step that runs another DAG for each of the items that a run finds"
            )
        if name in self.inlining.dag.others:
            raise UntranslatableError("sub-dag", f"{name}, a DAG of this file, for each item")
        step.keys["matrix"] = {"item": texts, **({"max_parallel": most} if most else {})}
        step.keys["env"] = {**step.keys.get("env", {}), "ITEM": "${{ matrix.item }}"}
        self.found.differs(
            "sub-dag", f"the DAG {name} is run by Dagu for each item, which has to be there", keys.node
        )
        params = " ".join(self.reader.texts(keys.get("params"), "`params`")) if keys.has("params") else ""
        self._script(step, command_for(name, params or '"$ITEM"'), keys)

    def _action(self, step: DraftStep, keys: Keys) -> None:
        if keys.has("call"):
            self._subdag(step, keys.text("call"), keys)
            return
        if self._executor(step, keys):
            return
        if keys.has("action"):
            self._named(step, keys)
            return
        settings = Keys(keys.get("with"), "`with`", self.reader)
        shell = keys.first("shell") or settings.first("shell")
        script = keys.get("script")
        command = keys.first("run", "command", "cmdwithargs")
        if command is None and script is None:
            raise UntranslatableError("shape", "a step has `command`, `script`, `run` or `action`")
        if keys.has("run") and _is_file(text_of(command), keys):
            self._subdag(step, text_of(command), keys)
            return
        if shell is not None and text_of(shell):
            step.keys["shell"] = text_of(shell)
        self._commands(step, keys, script, command)

    def _commands(self, step: DraftStep, keys: Keys, script: Node | None, command: Node | None) -> None:
        """Give a step a script, or the words of a command."""
        if script is not None:
            text = text_of(script)
            if text_of(command):
                step.keys["shell"] = text_of(command)
            match = re.match(r"#!\s*(?:/usr/bin/env\s+)?(\S+)", text)
            if match and "shell" not in step.keys:
                step.keys["shell"] = match[1].rpartition("/")[2]
            self._script(step, text, keys)
        elif command is not None and command.kind == SEQUENCE:
            self._listed(step, command, keys)
        else:
            words = self.reader.texts(keys.get("args"), "`args`")
            self._script(step, " ".join([text_of(command), *map(_word, words)]), keys)

    def _executor(self, step: DraftStep, keys: Keys) -> bool:
        """Convert an executor; returns whether that is the whole action."""
        node = keys.first("executor", "type")
        if node is None:
            return False
        own = Keys(node, "`executor`", self.reader) if node.kind == MAPPING else None
        kind = own.text("type") if own else text_of(node)
        config = own.get("config") if own else keys.first("config", "with")
        if kind == "docker":
            if config is None:
                raise UntranslatableError("executor:docker", "a container without an image")
            step.keys["container"] = self.container(config)
            return False
        if kind in KINDS:
            command, text = text_of(keys.first("command", "run")), text_of(keys.get("script"))
            command, text = self.variables.filled(command), self.variables.filled(text)
            settings = Keys(config, f"the executor {kind}", self.reader)
            program = {"http": "curl", "mail": "sendmail"}.get(kind, kind)
            self.found.differs(
                f"executor:{kind}", f"the program {program} does it, which has to be there", node
            )
            self._script(step, script_of(kind, command, text, settings, self.reader), keys)
            return True
        if kind not in ("", "command", "shell", "bash", "sh"):
            raise UntranslatableError(f"executor:{kind}", f"the executor {kind}")
        return False

    def _named(self, step: DraftStep, keys: Keys) -> None:
        name = keys.text("action")
        given = Keys(keys.get("with"), "`with`", self.reader)
        if name == "exec":
            words = [given.text("command"), *self.reader.texts(given.get("args"), "`args`")]
            step.keys["exec"] = [literal_text(word) for word in words]
            if any("$" in word or "`" in word for word in words):
                raise UntranslatableError("action:exec", "words of a program that Dagu puts together")
        elif name == "human.task":
            step.keys["ask"] = {"question": literal_text(given.text("prompt")) or "Go on?"}
            if given.has("form"):
                raise UntranslatableError("action:human.task", "a form; write an `ask` step for each field")
        else:
            raise UntranslatableError(f"action:{name}", f"the action {name}")

    def _listed(self, step: DraftStep, node: Node, keys: Keys) -> None:
        """Take a list for the words of a command, or for commands where the first one has blanks."""
        words = self.reader.texts(node, "`command`") or [""]
        if keys.has("run") or " " in words[0]:
            self._script(step, "\n".join(words), keys)
        else:
            self._script(step, " ".join(map(_word, words)), keys)

    def _script(self, step: DraftStep, text: str, keys: Keys) -> None:
        self.variables.place = keys.node
        text = self.variables.filled(text)
        script = literal_text(text.rstrip("\n"))
        shell = str(step.keys.get("shell", "")).split(" ")[0].rpartition("/")[2]
        lines = list(step.prelude)
        for name, sign in (("stdout", ">"), ("stderr", "2>")):
            path = keys.get(name)
            if path is not None and path.kind == MAPPING:
                raise UntranslatableError("output", f"`{name}` as a mapping")
            if path is not None:
                lines.append(f'exec {sign}"{text_of(path)}"')
                self.found.differs(name, f"what goes to the file of `{name}` is not in the step's log", path)
        output = keys.get("output")
        name = text_of(output).lstrip("$").strip("{}")
        if output is not None and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,99}", name):
            raise UntranslatableError("output", "an output in several parts")
        if re.search(r"\$\{?[1-9@*#]", text) is None:
            lines = [line for line in lines if not line.startswith("set -- ")]
        if (lines or name) and shell not in ("", "sh", "bash", "dash", "zsh", "ash", "ksh"):
            script = _piped(script, str(step.keys.pop("shell")))
        policy = keys.get("repeatpolicy")
        if policy is not None:
            if name or shell not in ("", "sh", "bash", "dash", "zsh", "ash", "ksh"):
                raise UntranslatableError(
                    "repeat-policy", "a step with an output, or no shell, that repeats itself"
                )
            script = repeated(script, policy, self.reader)
        script = self._counted(script, keys)
        if name:
            self.variables.outputs.add(name)
            script = _captured(script, name)
            step.keys["outputs"] = {name: "string"}
        body = "\n".join([*lines, script])
        step.keys["run"] = body + ("\n" if "\n" in body else "")

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
        if any(re.search(r"\\[^.\-/+*?()|^$\[\]{}]", pattern) for pattern in patterns):
            raise UntranslatableError("continue-on", "a pattern that grep reads otherwise")
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
            option, text = ("E", pattern[3:]) if pattern.startswith("re:") else ("F", pattern)
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
        if codes and max(codes) > 255:
            raise UntranslatableError("retry-policy", "exit codes that no process has")
        if codes:
            retries["on"] = [{"exit": [code for code in codes if code <= 255]}]
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


def hand_on(step: DraftStep, before: list[DraftStep]) -> None:
    """Let a step read the outputs of those before it as variables."""
    for other in before if "run" in step.keys or "exec" in step.keys else ():
        for name, kind in other.keys.get("outputs", {}).items():
            if kind == "string" and name not in step.keys.get("env", {}):
                value = f"${{{{ default({step_path(other.id, 'outputs')}.{name}, '') }}}}"
                step.keys.setdefault("env", {})[name] = value


def _piped(script: str, program: str) -> str:
    """Return a script of another language as the input of its program, for a shell that sets variables before."""
    if program.split(" ", maxsplit=1)[0].rpartition("/")[2] not in (
        "python",
        "python3",
        "node",
        "perl",
        "ruby",
    ):
        raise UntranslatableError("shell", f"`{program}` is no shell in which variables could be set")
    return f"{program} - <<'{_SCRIPT}'\n{script}\n{_SCRIPT}"


def _captured(script: str, name: str) -> str:
    """Return a script whose output is printed and handed on."""
    return "\n".join(
        (
            f'{name}="$(',
            script,
            ')"',
            f"printf '%s\\n' \"${name}\"",
            f'printf \'{name}<<{_END}\\n%s\\n{_END}\\n\' "${name}" >> "$PLANRUN_OUTPUT"',
        )
    )


def _is_file(text: str, keys: Keys) -> bool:
    return bool(re.fullmatch(r"\S+\.ya?ml", text)) or (keys.has("params") and " " not in text)


def _word(text: str) -> str:
    """Return a word for a shell that still fills in variables."""
    if re.fullmatch(r"[A-Za-z0-9_./:=@%+,-]+", text):
        return text
    return '"' + re.sub(r'(["\\])', r"\\\1", text) + '"'
