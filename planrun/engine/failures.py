"""Classify failures, by typed facts first, else by the last lines of stderr; decide retries.

A wrong class costs more than none: a false `transient` retries in vain, a false `fatal` prevents a retry. So a line
counts only near the end, only when a rule matches the phrase as a program prints it, and never when it is the line of
a test, a warning or a trace of the shell.
"""

from __future__ import annotations

import os
import re

from planrun.model.job import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from planrun.model.job import ErrorClass, Outcome
    from planrun.model.plan import Retry, Step

RESOURCES = "reason:no resources"
"""The rule for an attempt that could not be started since processes, memory or descriptors were short."""

# Typed rules come first: our own facts beat the output of a program.
_REASONS: dict[str, ErrorClass] = {
    "timeout": "transient",
    "idle_timeout": "transient",
    "lost": "transient",
    "not_ready": "transient",
    "refused": "logic",
    "verify": "logic",
    "hook": "unknown",
    "outputs": "logic",
    "budget": "logic",
    "turns": "logic",
    "incomplete": "logic",
    "reported": "logic",
    "patch": "logic",
    "mcp": "logic",
    "secrets": "logic",
    "conflict": "transient",
    "copy": "unknown",
    "model": "unknown",
    "spawn": "fatal",
    "denied": "fatal",
}
# sysexits(3), codes of shells, and 128 + n after signal n: a program that was killed may succeed the next time, one
# that crashed has a bug.
_EXITS: dict[int, tuple[ErrorClass, str]] = {
    64: ("logic", "EX_USAGE"),
    65: ("logic", "EX_DATAERR"),
    69: ("transient", "EX_UNAVAILABLE"),
    75: ("transient", "EX_TEMPFAIL"),
    77: ("fatal", "EX_NOPERM"),
    124: ("transient", "timeout(1)"),
    126: ("fatal", "not executable"),
    127: ("fatal", "command not found"),
    129: ("transient", "SIGHUP"),
    130: ("transient", "SIGINT"),
    132: ("logic", "SIGILL"),
    134: ("logic", "SIGABRT"),
    136: ("logic", "SIGFPE"),
    137: ("transient", "SIGKILL"),
    139: ("logic", "SIGSEGV"),
    141: ("logic", "SIGPIPE"),
    143: ("transient", "SIGTERM"),
}
_NOT_FOUND = frozenset({126, 127})  # a shell reports that the program is missing or not executable

# Lines that say nothing of why an attempt failed: of tests, whatever became of them; comments of TAP; what `set -x`
# prints; warnings and advice. One that a package manager gave its last try is a warning, too, and says a lot.
_SAYS_NOTHING = (
    r"\s*(?:(?:not )?ok \d+|[✓✔√✕✖✗\u00d7●○]|PASS(?:ED)?\b|FAIL(?:ED)?\b|--- (?:PASS|FAIL|SKIP)|=== "
    r"|\[ +(?:OK|PASSED|FAILED|RUN) +\]"
    r"|test \S.* \.\.\. |E {3}|#|\++ |>|\d+ \||\| )"
    r"|.*\b(?:PASSED|FAILED|SKIPPED|XFAIL)\b(?:\s+\[ *\d+%\])?\s*$"
    r"|.* \.\.\. (?:ok|FAIL|ERROR|skipped.*)$"
    r"|\s*(?:npm WARN|npm warn|warn(?:ing)?\b|WARN(?:ING)?\b|W: |hint: |note: |help: |DEBUG|debug|INFO|info\b"
    r"|\[INFO\]|\[WARN)"
)
_LAST_TRY = r"WARNING: Retrying \(Retry\(total=0\b"
_STATUS = (
    r"(?:http(?:/[\d.]+)?|status(?: code)?|error|code|response|returned(?: error)?|got|with)"
    r"(?: status(?: code)?)?[ :=]{1,3}['\"]?"
)
# Class, name, patterns of which one is enough. Each line is held against them in this order, the last line first.
_TEXTS: tuple[tuple[ErrorClass, str, tuple[str, ...]], ...] = (
    (
        "logic",
        "panic",
        (
            r"^thread '.*' panicked at\b",
            r"^panic: ",
            r"^exception in thread\b",
        ),
    ),
    (
        "logic",
        "assertion",
        (
            r"\bassert(?:ion)?(?:error| failed|ionfailederror)\b",
            r"^assertion\b",
        ),
    ),
    (
        "logic",
        "tests failed",
        (
            (
                r"^\s*(?:tests?(?: suites)?: +[1-9]\d* failed|FAILED \((?:failures|errors)=|"
                r"error: test failed\b|# fail [1-9]|\d+ failing$|error: there were failing tests\b|"
                r"npm (?:ERR!|error) test failed)"
            ),
        ),
    ),
    (
        "transient",
        "rate limit",
        (
            r"\brate[ -]?limit(?:ed|s|ing)?\b(?! (?:test|option|setting|config|must|is not))",
            r"\btoomanyrequests\b",
            r"\btoo many requests\b",
            r"\bthrottl(?:ed|ing)(?:exception)?\b",
        ),
    ),
    (
        "transient",
        "deadline",
        (
            r"\bcontext deadline exceeded\b",
            r"\bdeadline exceeded\b",
            r"\bdeadline_exceeded\b",
        ),
    ),
    (
        "transient",
        "tls handshake",
        (
            r"\btls handshake timeout\b",
            r"\bssl connection timeout\b",
        ),
    ),
    (
        "transient",
        "timed out",
        (
            (
                r"\b(?:operation|connection|connect|request|read|write|dial|lookup|handshake|resolving|"
                r"transfer|i/o|socket|gateway|network|session)\b[^.;]{0,40}\btime(?:d[ -]?out|out)\b"
            ),
            r"\b(?:e(?:sock)?timedout|read ?timeout|connect ?timeout|timeouterror|etimeout)\b",
            r"\btimed out(?: after \d.*)?\.?$",
            r"\btimed? ?out (?:waiting|while|trying|connecting|reading)\b",
        ),
    ),
    (
        "transient",
        "connection",
        (
            (
                r"\bconnection (?:was )?(?:refused|reset|timed out|aborted|broken|closed by remote host|"
                r"unexpectedly closed)\b"
            ),
            r"\bconn(?:ection)?(?:refused|reset|aborted)error\b",
            r"\be(?:connreset|connrefused|connaborted|pipe|hostunreach|netunreach)\b",
            r"\bnetwork is unreachable\b",
            r"\bno route to host\b",
            r"\bbroken pipe\b",
            r"\bthe connection to the server \S+ was refused\b",
            r"\bfailed to connect to \S+ port \d+",
            r"\bsocket hang up\b",
            r"\bremote end hung up unexpectedly\b",
            r"\bempty reply from server\b",
            r"\bunexpected eof while reading\b",
            r"\bunexpected eof\b(?=.*\bhttp)",
            r"\bearly eof\b",
            r"\brpc failed\b",
            r"\bremote end closed connection\b",
        ),
    ),
    (
        "transient",
        "name resolution",
        (
            r"\btemporary failure (?:in name resolution|resolving)\b",
            r"""\bcould(?: not|n['\u2019]t) resolve (?:host|hostname|proxy|address|'|\")""",
            r"\bunable to resolve host(?: address|name)?\b",
            r"\bno such host\b",
            r"\be(?:notfound|ai_again)\b",
            r"\beai_again\b",
            r"\bname or service not known\b",
            r"\bname resolution (?:failed|error)\b",
            r"\bnameresolutionerror\b",
            r"\bserver misbehaving\b",
            r"\bnodename nor servname provided\b",
            r"""\bfailed to resolve ['\"]""",
            r"\bdns (?:error|lookup failed)\b",
        ),
    ),
    ("transient", "http status", (rf"\b{_STATUS}(?:429|502|503|504)\b",)),
    (
        "transient",
        "http reason",
        (
            (
                r"\b(?:429:? too many requests|502:? bad gateway|503:? service (?:temporarily )?unavailable|"
                r"504:? gateway time-?out)\b"
            ),
            r"^\W*(?:\w+: )*(?:bad gateway|service unavailable|gateway time-?out)\W*$",
        ),
    ),
    (
        "transient",
        "resource busy",
        (
            r"\bcould not get lock\b",
            r"\bunable to acquire\b(?!.*are you root).*\block\b",
            r"\berror acquiring the state lock\b",
            r"\bdatabase is locked\b",
            r"\bresource temporarily unavailable\b",
            r"\bindex\.lock': file exists",
            r"\bthe object has been modified; please apply\b",
            r"\bdeadlock detected\b",
        ),
    ),
    ("transient", "last try of a download", (_LAST_TRY,)),
    (
        "fatal",
        "permission denied",
        (
            r"\bpermission denied\b",
            r"\baccess denied\b",
            r"\baccessdenied(?:exception)?\b",
            r"\beacces\b",
            r"\boperation not permitted\b",
        ),
    ),
    (
        "fatal",
        "unauthorized",
        (
            (
                r"\b(?:unauthorized|authentication (?:failed|required)|invalid credentials|bad credentials|"
                r"could not read username|no basic auth credentials)\b"
            ),
            r"\brequested access to the resource is denied\b",
        ),
    ),
    (
        "fatal",
        "forbidden",
        (
            r"\bforbidden\b",
            rf"\b{_STATUS}(?:401|403)\b",
        ),
    ),
    (
        "fatal",
        "no such file",
        (
            r"\bno such file or directory\b",
            r"\benoent\b",
            r"^\W*(?:[\w./-]+: )*no such file\b",
        ),
    ),
    (
        "fatal",
        "no space",
        (
            r"\bno space left on device\b",
            r"\benospc\b",
            r"\bdisk quota exceeded\b",
        ),
    ),
    (
        "fatal",
        "command not found",
        (
            r":\s*(?:command )?not found$",
            r"\bexecutable file not found in \$path\b",
            r"\bis not recognized as an internal or external command\b",
        ),
    ),
    (
        "fatal",
        "not found",
        (
            r"\b404:? not found\b",
            rf"\b{_STATUS}404\b",
            (
                r"\b(?:repository|package|image|manifest|remote branch|remote ref|chart|crate|namespaces?|"
                r"pods?|deployments?\S*|secrets?|services?|page|e404)\b[^;]{0,120}\bnot found\b"
            ),
            r"\bmanifest unknown\b",
            r"\bno matching distribution found\b",
            r"\bunable to locate package\b",
            r"\bcould not find remote branch\b",
            r"\bnotfound\b(?=.*error from server)",
            r"\berror from server \(notfound\)",
        ),
    ),
    (
        "logic",
        "validation error",
        (
            r"\bvalidation ?error\b",
            r"\bdid not validate\b",
            r"\berror validating data\b",
        ),
    ),
    (
        "logic",
        "invalid argument",
        (
            r"\binvalid (?:argument|option|choice|value)\b",
            r"\bunrecogni[sz]ed (?:argument|option)s?\b",
            r"\bunknown (?:option|flag|shorthand flag|command|argument|subcommand)\b",
            r"\bunexpected argument\b",
            r"\bno such option\b",
            r"\billegal option\b",
        ),
    ),
    (
        "logic",
        "syntax error",
        (
            r"\bsyntax ?error\b",
            r"\bindentationerror\b",
        ),
    ),
    (
        "logic",
        "parse error",
        (
            r"\b(?:parse|parsing) error\b",
            r"\berror parsing\b",
            r"\bparseerror\b",
        ),
    ),
    (
        "logic",
        "program error",
        (
            (
                r"^(?:\w+\.)*(?:typeerror|nameerror|attributeerror|keyerror|indexerror|valueerror|"
                r"zerodivisionerror|recursionerror|referenceerror|rangeerror|notimplementederror)\b"
            ),
        ),
    ),
    (
        "logic",
        "compile error",
        (
            r"\berror: could not compile\b",
            r"\berror ts\d+:",
            r":\d+:\d+: (?:fatal )?error: (?!.*\bno such file)",
            r"\bundefined reference to\b",
            r"\bld returned \d+ exit status\b",
            r"^\S+\.go:\d+:\d+: ",
            r"\berror\[e\d{4}\]",
        ),
    ),
    (
        "logic",
        "conflict",
        (
            r"\bcould not resolve dependency\b",
            r"\beresolve\b",
            r"\bresolutionimpossible\b",
            r"\bautomatic merge failed\b",
            r"\(non-fast-forward\)",
            r"\bpathspec '.*' did not match\b",
        ),
    ),
)
# How many of the last lines that say anything count: programs add advice behind a cause, and the more they add the
# older the cause may be.
_NEAR: dict[ErrorClass, int] = {"transient": 12, "logic": 12, "fatal": 5}
# Where stdout and stderr are one stream, only a line counts that names a program or an error at its beginning.
_NAMES_ITSELF = (
    r"\s*[│╷]?\s*(?:[\w./@-]+(?:\[\d+\])?: |npm (?:ERR!|error) |\(?error\b|fatal\b|E: |Err:|ERROR\b|curl: "
    r"|The requested URL |Unable to connect |The connection to )|[\w.]+(?:Error|Exception|Timeout)\b"
)


def classify(outcome: Outcome) -> Failure:
    """Return the class of a failure and the rule that decided it (`reason:`, `exit:` or `text:`)."""
    message = outcome.message
    if outcome.passing:
        return Failure(error_class="transient", rule=RESOURCES, message=message)
    if outcome.reason in _REASONS:
        return Failure(error_class=_REASONS[outcome.reason], rule=f"reason:{outcome.reason}", message=message)
    if outcome.exit_code in _EXITS:
        error_class, name = _EXITS[outcome.exit_code]
        return Failure(error_class=error_class, rule=f"exit:{name}", message=message)
    matched = classify_text(outcome.errors, mixed=bool(outcome.stderr) and outcome.stderr[0] < 0)
    if matched:
        return Failure(error_class=matched[0], rule=f"text:{matched[1]}", message=message)
    return Failure(error_class="unknown", rule="none", message=message)


def is_typed(error: dict[str, str] | None) -> bool:
    """Whether the class of an error comes from typed facts, not from text."""
    return error is not None and error["rule"].startswith(("reason:", "exit:"))


def is_program_missing(outcome: Outcome) -> bool:
    """Whether the program is missing or not executable: the next attempt would fail the same way."""
    if outcome.reason == "spawn":
        return not outcome.passing
    return outcome.reason == "exit" and outcome.signal is None and outcome.exit_code in _NOT_FOUND


def classify_text(text: str, *, mixed: bool = False) -> tuple[ErrorClass, str] | None:
    """Return class and rule of the last line of stderr that a rule knows; None when there is none.

    `mixed`: stdout is in the text, too.
    """
    if not text:
        return None
    rules = [
        (error_class, name, re.compile("|".join(rules), re.IGNORECASE)) for error_class, name, rules in _TEXTS
    ]
    says_nothing, last_try, names_itself = map(re.compile, (_SAYS_NOTHING, _LAST_TRY, _NAMES_ITSELF))
    near = 0
    text = re.sub(r"( panicked at [^\n]*:)\n", r"\1 ", text)  # the message is in the next line
    for raw in reversed(text.splitlines()):
        line = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", raw)[:2000].strip()
        if not line or (says_nothing.match(line) and not last_try.match(line)):
            continue
        near += 1
        if near > max(_NEAR.values()):
            return None
        if mixed and not names_itself.match(line):
            continue
        for error_class, name, rule in rules:
            if near <= _NEAR[error_class] and rule.search(line):
                return error_class, name
    return None


def react(
    step: Step, tries: int, outcome: Outcome, *, repeat: bool, draw: Callable[[], float] | None = None
) -> tuple[Failure, float | None]:
    """Return why attempt number `tries` failed and, when it is to be repeated, after how many seconds.

    `draw` places the delay in its jitter; None: chance.
    """
    failure = classify(outcome)
    if repeat and retries(step, tries, outcome, failure):
        return failure, delay(step.retries, tries, (draw or chance)())
    return failure, None


def retries(step: Step, attempt: int, outcome: Outcome, failure: Failure) -> bool:
    """Whether attempt number `attempt` (1-based, counted since the step last became pending) is repeated.

    Where there is no such program only a filter that names its exit code or text repeats it.
    """
    retry = step.retries
    if attempt > retry.max or not step.idempotent or outcome.reason in ("denied", "refused"):
        return False
    missing = is_program_missing(outcome)
    return any(
        _matches(rule, outcome, failure) for rule in retry.on if not missing or rule[0] in ("exit", "match")
    )


def _matches(rule: tuple[object, ...], outcome: Outcome, failure: Failure) -> bool:
    kind = rule[0]
    if kind == "any":
        return True
    if kind in ("timeout", "idle_timeout"):
        return outcome.reason == kind
    if kind == "class":
        return failure.error_class == rule[1]
    if kind == "exit":
        codes = rule[1]
        return isinstance(codes, tuple) and outcome.exit_code in codes and outcome.reason == "exit"
    return isinstance(rule[1], str) and rule[1] in outcome.tail


def delay(retry: Retry, attempt: int, chance: float) -> float:
    """Return the seconds to wait after failed attempt `attempt`; `chance` in 0…1 places it in the jitter.

    min(initial · factor^(attempt-1), cap), give or take `jitter` of it.
    """
    seconds = middle(retry, attempt)
    return max(0.0, seconds * (1 + retry.jitter * (2 * chance - 1)))


def middle(retry: Retry, attempt: int) -> float:
    """Return the seconds to wait after failed attempt `attempt`, without chance."""
    if retry.delays:
        return retry.delays[min(attempt, len(retry.delays)) - 1]
    return min(retry.initial * retry.factor ** min(attempt - 1, 64), retry.cap)


def chance() -> float:
    """A number in 0…1 for the jitter; `random` would cost every start 1.5 ms."""
    return int.from_bytes(os.urandom(2), "big") / 0xFFFF
