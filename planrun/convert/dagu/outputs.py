"""What a step of a Dagu file hands on: its output, fields of it, files of its streams; and repetitions."""

from __future__ import annotations

import re

from planrun.convert.dagu.variables import Keys, command_of, is_number, whole
from planrun.convert.reader import UntranslatableError, is_nothing, text_of, truth_of
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.convert.dagu.references import References
    from planrun.convert.reader import Reader

_END = "PLANRUN_OUTPUT_END"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}\Z")
_SELECT = re.compile(r"[\w.\[\]\"| ()'-]{1,200}\Z")
_KNOWN = frozenset(
    ("repeat", "intervalsec", "limit", "condition", "expected", "exitcode", "backoff", "maxintervalsec")
)
LONGEST = 3600
"""Seconds between two runs where a growing interval has no limit of its own, as Dagu has it for retries."""


def captured(script: str, name: str) -> str:
    """Return a script whose output is printed and handed on."""
    return "\n".join(
        (
            f'{name}="$(',
            "set -e",
            script,
            ')"',
            f"printf '%s\\n' \"${name}\"",
            published(name),
        )
    )


def published(name: str) -> str:
    """Return the line that hands on a variable of the shell as an output."""
    return f'printf \'{name}<<{_END}\\n%s\\n{_END}\\n\' "${name}" >> "$PLANRUN_OUTPUT"'


def name_of(node: Node | None, reader: Reader) -> str:
    """Return the name of the variable that gets a step's output; "" for none and for fields."""
    if node is None:
        return ""
    if node.kind == MAPPING:
        keys = Keys(node, "`output`", reader)
        if not keys.has("name") or node.value.keys() - {"name", "key", "omit"}:
            return ""
        return _name(keys.text("name"))
    return _name(text_of(node))


def _name(text: str) -> str:
    name = text.lstrip("$").strip("{}")
    if not _NAME.match(name):
        raise UntranslatableError("output", "an output in several parts")
    return name


class Fields:
    """Outputs of a step that are cut out of what it prints: `output: {name: {select: …}}`, `stdout.outputs`."""

    def __init__(self, references: References, reader: Reader) -> None:
        self.references = references
        self.reader = reader
        self.names: list[str] = []
        self.streams: set[str] = set()
        self.lines: list[str] = []

    def read(self, node: Node) -> Fields:
        """Read a mapping of fields; raises UntranslatableError."""
        for name, value in node.value.items():
            if not _NAME.match(name):
                raise UntranslatableError("output", f"`{name}` cannot be the name of an output")
            self.names.append(name)
            if value.kind == SCALAR:
                self._line(name, f'"{_escaped(self.references.words(text_of(value)))}"')
            elif value.kind == SEQUENCE:
                raise UntranslatableError("output", f"a list as the output {name}")
            else:
                self._cut(name, Keys(value, "an output", self.reader))
        return self

    def _cut(self, name: str, keys: Keys) -> None:
        keys.refuse_unknown({"from", "decode", "select", "path", "value"})
        if keys.has("value"):
            self._line(name, f'"{_escaped(self.references.words(keys.text("value")))}"')
            return
        source = keys.text("from") or "stdout"
        decode, select = keys.text("decode") or "text", keys.text("select")
        if source in ("stdout", "stderr"):
            self.streams.add(source)
            file = f'"$kept_{source}"'
        elif source == "file" and keys.has("path"):
            file = f'"{_escaped(self.references.words(keys.text("path")))}"'
        else:
            raise UntranslatableError("output", f"an output from {source}")
        if decode == "text" and not select:
            self._line(name, f'"$(cat {file})"')
            return
        if decode != "json" or not (select == "" or _SELECT.match(select)):
            raise UntranslatableError(
                "output", f"an output that is decoded as {decode}, or cut by `{select}`"
            )
        self.reader.found.differs(
            "json", "fields of JSON are cut out by jq, which has to be there", keys.node
        )
        query = f'({select or "."}) | if . == null then error("{name} is not there") else . end'
        quoted = "'" + query.replace("'", "'\\''") + "'"
        self._line(name, f'"$(jq -r {quoted} < {file})"')

    def _line(self, name: str, value: str) -> None:
        self.lines += [f"field={value}", published(name).replace(f"${name}", "$field")]

    def around(self, script: str) -> str:
        """Return a script that publishes the fields after it has succeeded."""
        return "\n".join([*with_streams(script, self.streams), *self.lines])


def with_streams(script: str, streams: set[str]) -> list[str]:
    """Return lines that run a script, and keep what it prints in the files `$kept_stdout` and `$kept_stderr`."""
    if not streams:
        return [script]
    kept = sorted(streams)
    into = " ".join(f'{"2" if each == "stderr" else ""}> "$kept_{each}"' for each in kept)
    shown = [f'cat "$kept_{each}"{" >&2" if each == "stderr" else ""}' for each in kept]
    files = [f'kept_{each}="$step_dir/{each}"' for each in kept]
    return [
        *files,
        "set +e",
        "(",
        "set -e",
        script.rstrip("\n"),
        f") {into}",
        "kept_code=$?",
        "set -e",
        *shown,
        '[ "$kept_code" = 0 ] || exit "$kept_code"',
    ]


def _escaped(text: str) -> str:
    return re.sub(r'(["\\])', r"\\\1", text)


def repeated(script: str, node: Node, references: References, name: str = "") -> str:
    """Return a script that repeats another one as a `repeatPolicy` says; raises UntranslatableError.

    `while` repeats as long as the condition holds, the exit code is a listed one, or else the script succeeds; `until`
    repeats as long as that is not so. The exit code is that of the last repetition, and so is the output `name`.
    """
    reader = references.reader
    keys = Keys(node, "`repeatPolicy`", reader)
    keys.refuse_unknown(_KNOWN)
    mode = _mode(keys)
    if not mode:
        return captured(script, name) if name else script
    test = _test(keys, node, references)
    again = test if mode == "while" else f"! {{ {test}; }}"
    most = whole(keys.get("limit"))
    if keys.has("limit") and not most:
        raise UntranslatableError("repeat-policy", "a number of repetitions that is worked out")
    bound = f"[ $repeated -lt {most} ] && " if most else ""
    pause = whole(keys.get("intervalsec"))
    if pause is None and not is_nothing(keys.get("intervalsec")):
        raise UntranslatableError("repeat-policy", "an interval that is worked out")
    pause = pause or 0
    first, last, shown = (f'{name}="$(', ')"', [f"printf '%s\\n' \"${name}\""]) if name else ("(", ")", [])
    return "\n".join([
        f"repeated=0 pause={pause}",
        "while :; do",
        "set +e",
        first,
        "set -e",
        script.rstrip("\n"),
        last,
        "code=$?",
        *shown,
        "repeated=$((repeated + 1))",
        f"if {bound}{again}; then again=yes; else again=no; fi",
        *(["[ $again = yes ] || break"] if name else ["[ $again = yes ] || exit $code"]),
        'sleep "$pause"',
        *_growth(keys, pause),
        "done",
        *([published(name), "exit $code"] if name else []),
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


def _test(keys: Keys, node: Node, references: References) -> str:
    if keys.has("condition"):
        return command_of(keys.text("condition"), keys.text("expected"), references)
    reader = references.reader
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
    hundreds = round(factor * 100)
    grown = f"pause * {int(factor)}" if factor.is_integer() else f"(pause * {hundreds} + 50) / 100"
    return [f"pause=$(({grown})); [ $pause -le {most} ] || pause={most}"]
