"""The interface to an executor, as plain data: a Job goes out, an Outcome comes back.

Names of the copies of reviewed scripts, `.planrun-<16 hexadecimal digits>-x.sh`, and of their originals.
"""

from __future__ import annotations

from planrun.model.record import Record

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any, Literal

    from planrun.model.events import GateAnswered, GateOpened
    from planrun.model.plan import Sandbox

    ErrorClass = Literal["transient", "logic", "fatal", "unknown"]


class Job(Record):
    """One attempt of one step as a process to start; times in seconds, paths absolute."""

    step: str
    attempt: int
    argv: tuple[str, ...]  # argv[0] is looked up on the PATH in `env` when it has no slash
    env: dict[str, str]
    cwd: str
    log: str  # stdout and stderr go here; its folder is made by the executor when missing
    timeout: float
    idle_timeout: float | None = None
    call: dict[str, Any] = {}  # noqa: RUF012 - never written; of a tool: its name, and args
    scripts: tuple[Script, ...] = ()  # put in place before it starts, and deleted when it ended
    following: tuple[
        Job, ...
    ] = ()  # its post-checks: the same attempt runs them one after the other while they complete
    container: dict[str, Any] = {}  # noqa: RUF012 - never written; what it runs in: engine, name, options, image
    inside: tuple[str, ...] = ()  # of a job in a container, what runs there
    may_omit_shell: bool = (
        False  # argv ends with a script for bash, which is not needed for one plain command
    )
    private: str = ""  # the folder of its attempt, where there is one
    agent: dict[str, Any] = {}  # noqa: RUF012 - never written; of an agent: who it is, or its `patch` to apply
    hook: str = ""  # when it runs, if it is a hook: before, after
    part: int = 0  # 0: the action of its step; n: the command that comes n-th after it
    sandbox: Sandbox | None = None  # what it may reach, enforced by the kernel; None: no sandbox
    copy: str = ""  # of an agent's process: the copy that its sandbox shows instead of the workspace
    shown: tuple[tuple[str, str], ...] = ()  # what else its sandbox shows of planrun's files: ro or rw, path

    def confined(self, sandbox: Sandbox) -> Job:
        """Return the job, and what follows it, in a sandbox."""
        following = tuple([each.confined(sandbox) for each in self.following])
        return self.but(sandbox=sandbox, following=following) if following else self.but(sandbox=sandbox)


class Script(Record):
    """A reviewed script of the workspace, run from a copy beside it; paths absolute.

    `words`: where argv names it, each an index, start and end of the word in that argument, and where the last
    component of the path begins in it.
    """

    source: str  # the run's own copy of its bytes
    sha256: str
    file: str  # in the workspace
    name: str  # the same for people, as seen from the workspace
    words: tuple[tuple[int, int, int, int], ...]
    kind: Literal["text", "argument"]  # whether the words are parts of a script, where a path may need quotes


class Outcome(Record):
    """How an attempt ended.

    status completed: exit 0. failed: reason exit | timeout | idle_timeout | spawn | verify | outputs | refused.
    cancelled: it was stopped because of the run, not because of itself.
    """

    status: Literal["completed", "failed", "cancelled"]
    reason: str
    exit_code: int | None = None  # 128 + n after signal n, as shells say
    signal: int | None = None
    duration: float = 0.0  # seconds
    message: str = ""  # one line, for people
    log_bytes: int = 0
    log_sha256: str = ""  # of its log; empty: it printed nothing, or more than is hashed
    notes: tuple[str, ...] = ()  # e.g. "1 background process ended"
    outputs: dict[str, Any] = {}  # noqa: RUF012 - never written
    checks: tuple[dict[str, Any], ...] = ()  # of a validate step: name, ok, message
    hooks: tuple[dict[str, Any], ...] = ()  # that ran: name, when, ok, message, exit_code, duration, log
    tools: tuple[dict[str, Any], ...] = ()  # that were called: id, name, args (shortened), ok, duration
    files: tuple[dict[str, Any], ...] = ()  # what it read, made and changed: path, op, sha256, bytes
    cache: dict[str, Any] = {}  # noqa: RUF012 - of a cached step: key, why no earlier result was used, whether it is kept
    reports: dict[str, dict[str, Any]] = {}  # noqa: RUF012 - that it wrote itself: `junit`, see planrun.actions.reported
    resources: tuple[dict[str, Any], ...] = ()  # what it created, used and deleted: kind, id, action
    usage: dict[str, float] = {}  # noqa: RUF012 - of an agent: tokens and usd
    patch: dict[str, Any] = {}  # noqa: RUF012 - of an agent: what it changed in its copy
    proposed: dict[str, Any] = {}  # noqa: RUF012 - of an agent in plan mode: the plan that is to be approved
    tail: str = ""  # the last output of a failed attempt
    stderr: tuple[
        int, ...
    ] = ()  # where in its log the last of stderr stands, in bytes; from -1: both outputs, mixed
    errors: str = ""  # what stands there: what its error is classified by
    program: str = ""  # the path of what started in place of bash; empty: what argv says
    worker: str = ""  # the worker of a cluster that had it
    passing: bool = False  # it could not be started for lack of processes, memory or descriptors


class Passage(Record):
    """The answer of a gate to a step that is about to start, with the rule behind it.

    `opened`: what is asked, for `ask`; `answered`: the answer, where one was known at once. `job`: what is to be
    started instead of what was judged; None: that itself. `seconds`: how long an answer is waited for.
    """

    answer: Literal["allow", "ask", "deny", "skip"]
    risk: str = ""
    rule: str = ""
    reason: str = ""
    job: Job | None = None
    opened: GateOpened | None = None
    answered: GateAnswered | None = None
    seconds: float | None = None
    is_late: bool = False  # denied because no response came in time


class Failure(Record):
    """Why an attempt failed: its class, the rule that said so, and a line for people."""

    error_class: ErrorClass
    rule: str
    message: str


class Prepared(Record):
    """A step made ready for one attempt: a job for an executor, or at once its outcome."""

    fingerprint: str
    job: Job | None = None
    outcome: Outcome | None = None


def as_fields(outcome: Outcome, failure: Failure | None) -> dict[str, Any]:
    """Return the fields of AttemptEnded from an outcome.

    Only what it knows, since every field is a few bytes a step.
    """
    known = outcome.__dict__
    fields: dict[str, Any] = {
        "status": outcome.status,
        "reason": outcome.reason,
        "duration": round(outcome.duration, 4),
    }
    for name in (
        "exit_code",
        "log_bytes",
        "log_sha256",
        "outputs",
        "checks",
        "hooks",
        "tools",
        "notes",
        "files",
        "cache",
        "resources",
        "reports",
        "stderr",
        "program",
        "patch",
        "proposed",
        "worker",
    ):
        if name in known:
            fields[name] = known[name]
    if failure:
        fields["error"] = {"class": failure.error_class, "rule": failure.rule, "message": failure.message}
    return fields


PREFIX = ".planrun-"
DIGITS = 16
_HEX = frozenset("0123456789abcdef")


def original(text: str) -> str:
    """Return a text in which copies have the names of their originals, which users know."""
    if PREFIX not in text:
        return text
    first, *rest = text.split(PREFIX)
    parts = [first]
    for part in rest:
        is_copy = part[DIGITS : DIGITS + 1] == "-" and _HEX.issuperset(part[:DIGITS])
        parts.append(part[DIGITS + 1 :] if is_copy else PREFIX + part)
    return "".join(parts)
