"""What Dagu puts into texts: `${params.x}`, `${steps.a.outputs.b}`, `${a.stdout}`, `${context.run.id}` and the like.

A value becomes a variable of the step, which the shell reads where it stands. In single quotes, in a here-document
with a quoted word and in other languages it is put in by the plan.
"""

from __future__ import annotations

import os
import re

from planrun.convert.draft import literal_text, step_path
from planrun.convert.reader import UntranslatableError
from planrun.plan.check.quoting import SHELLS, open_quotes
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from planrun.convert.draft import DraftPlan, DraftStep
    from planrun.convert.reader import Reader

REFERENCE = re.compile(r"\$\{([A-Za-z_][\w-]*\.[^}]*)\}")
_FIELD = re.compile(r"(?:steps\.)?([A-Za-z_][\w-]*)\.outputs?\.([A-Za-z_]\w*)((?:\.[\w-]+|\[\d+\])*)\Z")
_STATE = re.compile(r"(?:steps\.)?([A-Za-z_][\w-]*)\.(stdout|stderr|exit_code|exitCode)\Z")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}\Z")
_WORK = "${TMPDIR:-/tmp}/dagu-$PLANRUN_RUN"
# Variables that Dagu sets for every step, as values for a shell.
BUILT_IN = {
    "DAG_RUN_ID": "$PLANRUN_RUN",
    "DAG_REQUEST_ID": "$PLANRUN_RUN",
    "DAG_EXECUTION_ID": "$PLANRUN_RUN",
    "DAG_RUN_STEP_NAME": "$PLANRUN_STEP",
    "DAG_STEP_NAME": "$PLANRUN_STEP",
    "DAGU_OUTPUT_FILE": "$PLANRUN_OUTPUT",
    "DAG_RUN_WORK_DIR": f"{_WORK}/work",
    "DAG_RUN_ARTIFACTS_DIR": f"{_WORK}/artifacts",
}
_USUAL = ("HOME", "USER", "PATH", "PWD", "TMPDIR", "LANG")  # that no file of variables sets
_FOLDERS = ("DAG_RUN_WORK_DIR", "DAG_RUN_ARTIFACTS_DIR")
_MISSING = re.compile(
    r"\$\{?(DAG_PARAMS_JSON|DAGU_PARAMS_JSON|DAG_RUN_STEP_STDOUT_FILE|DAG_RUN_STEP_STDERR_FILE"
    r"|DAG_PUSHBACK|DAG_WAITING_STEPS|DAG_SCHEDULER_LOG_PATH|DAG_STEP_LOG_PATH|DAG_EXECUTION_LOG_PATH)\b"
)
_CONTEXT = {
    "context.run.id": "DAG_RUN_ID",
    "context.dag.name": "DAG_NAME",
    "context.step.name": "DAG_RUN_STEP_NAME",
    "context.step.id": "DAG_RUN_STEP_NAME",
    "context.run.status": "DAG_RUN_STATUS",
    "context.paths.work_dir": "DAG_RUN_WORK_DIR",
    "context.paths.artifacts_dir": "DAG_RUN_ARTIFACTS_DIR",
    "context.paths.step_output_file": "DAGU_OUTPUT_FILE",
    "context.paths.log_file": "DAG_RUN_LOG_FILE",
}


class References:
    """Reads what texts of one file refer to; `needed` are the variables of the step that is being read."""

    def __init__(self, plan: DraftPlan, reader: Reader) -> None:
        self.plan = plan
        self.reader = reader
        self.dag_name = ""
        self.fixed: dict[str, str] = {}  # constants by their paths
        self.outputs: dict[str, list[str]] = {}  # variables that steps hand on, as expressions
        self.worked_out: dict[str, str] = {}  # variables that a shell works out, with their texts
        self.own: dict[str, str] = {}  # variables of the step that is being read, as templates
        self.has_files = False  # whether files give variables to steps
        self.item = ""  # the expression of the item of an instance
        self.place = Node(MAPPING, {}, 1, 1)  # of the step that is being read
        self.named: dict[str, DraftStep] = {}  # by id and by name
        self.answers: dict[
            tuple[str, str], str
        ] = {}  # outputs of forms: a step's id and a field, as an expression
        self.results: dict[str, dict[str, str]] = {}  # results of sub-DAGs: names of outputs, as expressions
        self.streams: dict[str, set[str]] = {}  # steps whose stdout or stderr others read from a file
        self.paths: dict[str, str] = {}  # files of a step that builds some: `inputs.x`, `outputs.y`
        self.needed: dict[str, str] = {}
        self.is_handler = False

    def hand_on(self, name: str, expression: str) -> None:
        """Note the variable of a step that others read."""
        self.outputs.setdefault(name, []).append(expression)

    def is_of_steps(self, text: str) -> bool:
        """Say whether a text refers to what steps hand on, and to nothing else that a shell has to work out."""
        rest = REFERENCE.sub(lambda match: "" if _is_steps(match[1]) else match[0], text)
        return rest != text and "$" not in rest and "`" not in rest

    def script(self, text: str, shell: str) -> str:
        """Return a script with its references read by the shell, or put in by the plan; raises UntranslatableError."""
        matches = list(REFERENCE.finditer(text))
        if not matches:
            return literal_text(text)
        if shell not in SHELLS | {""}:
            return _joined(text, matches, [self._plain(match[1]) for match in matches])
        parts = list(_cut(text, matches))
        frames = open_quotes(parts)
        shown = []
        for match, frame in zip(matches, frames, strict=True):
            if text[: match.start()].endswith("\\"):
                raise UntranslatableError("reference", f"`\\{match[0]}`: a reference that is meant as text")
            shown.append(self._in(match[1], frame, text[: match.start()]))
        return _joined(text, matches, shown)

    def _in(self, path: str, frame: str, before: str) -> str:
        if frame == "single":
            word = self.variable(path)
            return word if not word.startswith("$") else f"'\"{word}\"'"
        if frame in ("command", "double", "brace", "member", "back") or (
            frame == "document" and not _is_quoted_document(before)
        ):
            return self.variable(path)
        return "${" + path + "}" if frame == "comment" else self._plain(path)

    def words(self, text: str) -> str:
        """Return a text for double quotes of a shell, with variables for its references."""
        return literal_text(REFERENCE.sub(lambda match: self.variable(match[1]), text))

    def template(self, text: str) -> str:
        """Return a text that no shell reads as a template; raises UntranslatableError."""
        if "`" in text or re.search(r"\$[(\d@*#]|\$\{[\d@*#]", text):
            raise UntranslatableError("path", f"a text that is worked out: {text}")
        found = ""
        for at, part in enumerate(re.split(r"\$(?:\{([A-Za-z_][\w.-]*(?:\[\d+\])?)\}|([A-Za-z_]\w*))", text)):
            if part is None:
                continue
            found += literal_text(part) if at % 3 == 0 else self._plain(part)
        return found

    def _plain(self, path: str) -> str:
        """Return a reference as a template of the plan, or its text."""
        if path in self.fixed or path in self.paths:
            return self.variable(path)
        expression = self._expression(path)
        if expression is None:
            root, _, rest = path.partition(".")
            if root == "ITEM" and self.item and _NAME.match(rest):
                return f"${{{{ {self.item}.{rest} }}}}"
            if root == "params" and _NAME.match(rest):
                self._declare(rest)
            name = rest if root in ("params", "env") and _NAME.match(rest) else path
            if not _NAME.match(name):
                raise UntranslatableError("reference", f"`${{{path}}}` is put in by Dagu")
            if name in self.own:
                return self.own[name]
            if name in self.worked_out and name not in self.outputs:
                return self.template(self._text_of(name))
            expression = self._named(name)
        return f"${{{{ {expression} }}}}" if not expression.startswith("'") else expression[1:-1]

    def _text_of(self, name: str) -> str:
        """Return the text of a variable that a shell works out; raises UntranslatableError."""
        text = self.worked_out[name]
        if re.search(rf"\$\{{?{name}\b", text) or "`" in text or "$(" in text:
            raise UntranslatableError("reference", f"`{name}` is known to a shell alone")
        return text

    def _named(self, name: str) -> str:
        """Return the expression for a variable."""
        if name == "DAG_NAME":
            return f"'{self.dag_name}'"
        if name in ("DAG_RUN_ID", "DAG_REQUEST_ID", "DAG_EXECUTION_ID"):
            return "run.id"
        if name in BUILT_IN:
            raise UntranslatableError("reference", f"`{name}` where no shell reads it")
        if name == "ITEM" and self.item:
            return self.item
        if name in self.plan.params:
            return f"params.{name}"
        if name in self.outputs:
            return f"default({self.outputs[name][-1]}, '')"
        if self.has_files and name not in self.plan.keys.get("env", {}) and name not in _USUAL:
            raise UntranslatableError(
                "reference", f"`{name}` may stand in a file of variables, which only a shell reads"
            )
        return f"default(env.{name}, '')"

    def variable(self, path: str) -> str:
        """Return what a shell reads for a reference, or its text; raises UntranslatableError."""
        if path in self.fixed or path in self.paths:
            return literal_text(self.fixed[path] if path in self.fixed else self.paths[path])
        root, _, rest = path.partition(".")
        if root == "params" and _NAME.match(rest):
            self._declare(rest)
            return f"${{{rest}}}"
        if root == "ITEM" and self.item and _NAME.match(rest):
            name = f"ITEM_{rest}"
            self.needed[name] = f"${{{{ {self.item}.{rest} }}}}"
            return f"${{{name}}}"
        if root == "env" and _NAME.match(rest):
            return f"${{{rest}}}"
        if path in _CONTEXT:
            return f"${{{_CONTEXT[path]}}}"
        expression = self._expression(path)
        if expression is not None:
            name = re.sub(r"\W", "_", path.removeprefix("steps."))
            self.needed[name] = f"${{{{ {expression} }}}}"
            return f"${{{name}}}"
        if root in self.outputs and re.fullmatch(r"[\w.\[\]-]+", rest) and not rest.startswith("outputs"):
            return self._member(root, rest)
        match = _FIELD.match(path)
        if match and match[3] and self._expression(path[: match.start(3)]) is not None:
            return self._member(self.variable(path[: match.start(3)])[2:-1], match[3].lstrip("."))
        raise UntranslatableError("reference", f"`${{{path}}}` is put in by Dagu")

    def _declare(self, name: str) -> None:
        """Declare a parameter that the file reads and does not declare."""
        if name not in self.plan.params:
            self.reader.found.todo(
                "params", f"`${{params.{name}}}` is not declared: give it by --param", self.place
            )
            self.plan.params[name] = {"type": "string", "required": True}
            self.plan.keys.setdefault("env", {})[name] = f"${{{{ params.{name} }}}}"

    def _expression(self, path: str) -> str | None:
        """Return the expression of a step's output, exit code or stream; None for anything else."""
        root, _, rest = path.partition(".")
        if root in self.results and rest.removeprefix("outputs.") in self.results[root]:
            return f"default({self.results[root][rest.removeprefix('outputs.')]}, '')"
        if match := _STATE.match(path):
            step = self.named.get(match[1])
            if step is None:
                return None
            if match[2].startswith("exit"):
                return f"default({step_path(step.id, 'exit_code')}, '')"
            self.streams.setdefault(step.id, set()).add(match[2])
            return f"default({step_path(step.id, 'outputs')}.{match[2]}_file, '')"
        match = _FIELD.match(path)
        step = self.named.get(match[1]) if match else None
        if match is None or step is None or match[3]:
            return None
        answer = self.answers.get((step.id, match[2]))
        return answer or f"default({step_path(step.id, 'outputs')}.{match[2]}, '')"

    def _member(self, name: str, path: str) -> str:
        message = f"`${{{name}.…}}` is read by jq, which has to be there"
        self.reader.found.differs("json", message, self.place)
        words = re.findall(r"[\w-]+", path)
        keys = "".join(f"[{each}]" if each.isdecimal() else f'["{each}"]' for each in words)
        return f"$(printf %s \"${{{name}}}\" | jq -r '.{keys}')"

    def built_in(self, text: str) -> Iterator[str]:
        """Yield lines that set the variables of Dagu that a script reads; raises UntranslatableError."""
        if match := _MISSING.search(text):
            raise UntranslatableError("reference", f"`{match[1]}` is a variable of Dagu")
        if re.search(r"\bDAG_NAME\b", text):
            yield f"export DAG_NAME='{self.dag_name}'"
        if re.search(r"\bDAG_RUN_STATUS\b", text):
            if not self.is_handler:
                raise UntranslatableError("reference", "`DAG_RUN_STATUS` outside of handlers")
            self.needed["DAG_RUN_STATUS"] = (
                "${{ 'succeeded' if run.status == 'completed' else "
                "'partially_succeeded' if run.status == 'partial' else "
                "'aborted' if run.status == 'cancelled' else run.status }}"
            )
        if re.search(r"\bDAG_RUN_LOG_FILE\b", text):
            yield 'export DAG_RUN_LOG_FILE="$(mktemp)"'
            yield 'planrun logs "$PLANRUN_RUN" > "$DAG_RUN_LOG_FILE"'
        for name, value in BUILT_IN.items():
            if re.search(rf"\b{name}\b", text):
                yield f'export {name}="{value}"'
                if name in _FOLDERS:
                    yield f'mkdir -p "${name}"'


def _is_steps(path: str) -> bool:
    match = _FIELD.match(path)
    return bool(match and not match[3]) or bool(_STATE.match(path))


def mentions(node: Node, pattern: re.Pattern[str]) -> bool:
    """Say whether any text below a node matches."""
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if each.kind == MAPPING:
            waiting += each.value.values()
        elif each.kind == SEQUENCE:
            waiting += each.value
        elif each.kind == SCALAR and pattern.search(str(each.value)):
            return True
    return False


def dag_name(text: str, file: str) -> str:
    """Return the name of a DAG: that of its file where it has none."""
    name = text or os.path.splitext(os.path.basename(file))[0]
    return re.sub(r"[^\w .-]", "-", name)


def _cut(text: str, matches: list[re.Match[str]]) -> Iterator[str | None]:
    end = 0
    for match in matches:
        yield text[end : match.start()]
        yield None
        end = match.end()
    yield text[end:]


def _joined(text: str, matches: list[re.Match[str]], shown: list[str]) -> str:
    found, end = "", 0
    for match, value in zip(matches, shown, strict=True):
        found += literal_text(text[end : match.start()]) + value
        end = match.end()
    return found + literal_text(text[end:])


def _is_quoted_document(before: str) -> bool:
    """Say whether the here-document that is open at the end of a text takes variables for text."""
    for match in reversed(list(re.finditer(r"<<-?[ \t]*(['\"\\]?)(\w+)", before))):
        if not re.search(rf"^[ \t]*{match[2]}$", before[match.end() :], re.MULTILINE):
            return bool(match[1])
    return False
