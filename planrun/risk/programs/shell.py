"""Builtins of bash, the shells themselves, and programs that start another one."""

from __future__ import annotations

from planrun.risk import paths
from planrun.risk.levels import high
from planrun.risk.table import Rule
from planrun.risk.words import names_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.risk.levels import Finding
    from planrun.risk.table import Rules, Use

_SETS = frozenset(("pipefail", "errexit", "nounset", "xtrace", "noglob", "errtrace"))
_UNARY = frozenset(f"-{letter}" for letter in "abcdefghkprstuwxzGLNOSn")
_BINARY = names_in("= == != < > -eq -ne -lt -le -gt -ge -nt -ot -ef")


def _printf(use: Use) -> Finding | None:
    words = [arg.value for arg in use.words[1:]]
    if words and (words[0] or "").startswith("-") and words[0] != "--":
        return high("printf -v: sets a variable by its name")
    form = next((word for word in words if word != "--"), "") or ""
    if any(piece.lstrip("#-+ 0'*.123456789hljztL")[:1] == "n" for piece in form.split("%")[1:]):
        return high("printf %n: sets a variable by its name")
    if len(words) > 1 and words[0] is None:
        return high("a format that is not known may be an option")
    return None


def _test(use: Use) -> Finding | None:
    words = [arg.value for arg in use.words[1:]]
    if use.words[0].value == "[":
        if not words or words[-1] != "]":
            return high("`[` without `]`")
        words.pop()
    if "-v" in words or "-R" in words:
        return high("-v: evaluates the name that it is given")
    while words and words[0] == "!":
        words = words[1:]
    if None not in words or len(words) < 2:
        return None
    if len(words) == 2 and words[0] in _UNARY:
        return None
    if len(words) == 3 and words[1] in _BINARY:
        return None
    return high("a test with unknown values in a form that is not covered")


def _cd(use: Use) -> Finding | None:
    targets = use.operands
    return high("cd: leads to a folder that is not known") if targets[0][:1] in ("", "-") else None


def _set(use: Use) -> Finding | None:
    words = [arg.value or "" for arg in use.words[1:]]
    if not words:
        return high("set: prints every variable", "secrets")
    at = 0
    while at < len(words):
        flags = words[at]
        at += 1
        if flags[:1] not in ("-", "+") or not flags[1:] or not frozenset("euxo").issuperset(flags[1:]):
            return high(f"set {flags}: unknown option")
        if "o" in flags:
            if at >= len(words) or words[at] not in _SETS or not flags.endswith("o"):
                return high("set -o: unknown option")
            at += 1
    return None


def _read(use: Use) -> Finding | None:
    """Setting a variable by `read` or `unset` is setting it."""
    for name in use.operands:
        reason = paths.harm(name, "", use.cwd, use.ground)
        if reason:
            return high(reason, "code")
    return None


def _export(use: Use) -> Finding | None:
    for operand in use.operands:
        name, _, value = operand.partition("=")
        reason = paths.harm(name, value, use.cwd, use.ground)
        if reason:
            return high(reason, "code")
    return None if use.operands else high("export: prints every variable", "secrets")


def _source(use: Use) -> Finding | None:
    name = use.operands[0]
    # A name with an ending is none of a program on an ordinary PATH.
    return (
        None
        if "/" in name or "." in name[1:]
        else high(f"{name}: looked for in PATH before it is here", "code")
    )


PROGRAMS: dict[str, Rules] = {
    ":": Rule("read-only", "text*", style="raw", builtin=True),
    "true": Rule("read-only", "text*", style="raw"),
    "false": Rule("read-only", "text*", style="raw"),
    "echo": Rule("read-only", "text*", style="raw", glob=True, unknown=True),
    "printf": Rule("read-only", "text*", style="raw", unknown=True, check=_printf),
    "test": Rule("read-only", "text*", style="raw", unknown=True, check=_test),
    "[": Rule("read-only", "text*", style="raw", unknown=True, check=_test),
    "cd": Rule("read-only", "folder", "-P -L -e", builtin=True, check=_cd, reason="changes the folder"),
    "pwd": Rule("read-only", "", "-P -L"),
    "export": Rule("read-only", "text+", builtin=True, check=_export, reason="sets variables"),
    "unset": Rule("read-only", "name*", "-v", builtin=True, check=_read, reason="unsets variables"),
    "set": Rule("read-only", "text*", style="raw", builtin=True, check=_set, reason="sets options of the shell"),
    "exit": Rule("read-only", "number?", builtin=True),
    "return": Rule("read-only", "number?", builtin=True),
    "break": Rule("read-only", "number?", builtin=True),
    "continue": Rule("read-only", "number?", builtin=True),
    "shift": Rule("read-only", "number?", builtin=True),
    "umask": Rule("read-only", "", "-S", builtin=True),
    "wait": Rule("read-only", "", builtin=True),
    "read": Rule("read-only", "name*", "-r -s -d=text -t=number -n=number -N=number -p=text", builtin=True, check=_read),
    "sleep": Rule("read-only", "number+"),
    "type": Rule("read-only", "name+", "-a -t -p -P", builtin=True),
    "command": (Rule("read-only", "name+", "-v -V", needs="-v -V", style="posix", builtin=True), Rule("read-only", "command", style="posix", builtin=True)),
    "source": Rule("medium", "run arg*", builtin=True, style="posix", check=_source),
    ".": Rule("medium", "run arg*", builtin=True, style="posix", check=_source),
    "sh": Rule("medium", "run arg*", "-e -u -x -o={pipefail,errexit,nounset,xtrace}", style="posix"),
    "bash": Rule("medium", "run arg*", "-e -u -x -o={pipefail,errexit,nounset,xtrace} --noprofile --norc", style="posix"),
    "dash": Rule("medium", "run arg*", "-e -u -x", style="posix"),
    "timeout": Rule("read-only", "number command", "-k=number -s=name --kill-after=number --signal=name --preserve-status --foreground -v --verbose", style="posix"),
    "nice": Rule("read-only", "command", "-n=number --adjustment=number", style="posix"),
    "env": Rule("read-only", "assign* command?", style="posix", check=lambda use: None if use.rest else high("env: prints every variable", "secrets")),
}  # fmt: skip
