"""Steps of Dagu that repeat themselves, as a loop in their script."""

from __future__ import annotations

from planrun.app.converting.dagu.checks import command_of
from planrun.app.converting.dagu.keys import Keys, is_number, whole
from planrun.app.converting.findings import UntranslatableError
from planrun.app.converting.reading import text_of, truth_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.app.converting.reading import Reader
    from planrun.source.node import Node

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
    """Return `while`, `until`, or "" for a policy that repeats nothing, as Dagu tells them apart."""
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
