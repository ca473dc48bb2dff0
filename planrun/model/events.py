"""Everything that can happen in a run, as a closed set of records: state changes by nothing else.

Times (`at`) are RFC 3339 UTC texts with milliseconds, durations seconds.
"""

from __future__ import annotations

from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class RunStarted(Record):
    """First event of a ledger: which plan, with which values, by which planrun."""

    at: str
    run: str
    planrun: str  # version of the program
    plan: dict[str, Any]  # name, version, digest, file
    params: dict[str, Any]
    context: dict[str, Any]  # the `run` names of expressions: ci, ref, sha, event
    options: dict[str, Any]  # jobs, schedule, selection, strict …
    pid: int
    host: str
    status: str = "draft"  # of the plan: what was loaded, and neither reviewed nor approved yet


class RunResumed(Record):
    """The same run continues: the steps in `rerun` are pending again, all others keep their ends.

    `plan` names the copy it continues with, which may be a later one than before.
    """

    at: str
    planrun: str
    plan: dict[str, Any]
    params: dict[str, Any]
    context: dict[str, Any]
    options: dict[str, Any]
    rerun: tuple[str, ...]
    lost: tuple[str, ...]  # steps whose last attempt has no end
    pid: int
    host: str
    why: dict[str, str] = {}  # noqa: RUF012 - never written; of the steps in `rerun`, in words
    finishes: bool = (
        False  # what comes after `steps` is completed, rollback and `finally`, and nothing else starts
    )
    retry: tuple[str, ...] = ()  # steps that the caller named, finished or not
    # Of the broken end of the ledger that the user dropped: line, bytes, sha256, file.
    discarded: dict[str, Any] = {}  # noqa: RUF012 - never written


class PlanMoved(Record):
    """The plan has a new lifecycle status."""

    at: str
    status: str
    exit_code: int = 5  # of planrun, when the run is paused


class AttemptStarted(Record):
    """A step is running; written before its process exists."""

    at: str
    step: str
    n: int
    fingerprint: str = ""  # of what is about to run, in parts: `argv:… env:…`
    log: str = ""  # relative to the run directory; empty: the step has no process
    risk: str = ""  # of what is about to run; empty: as in the plan
    rule: str = ""  # of the policy that let it run; empty: the run's level did
    sandbox: dict[str, Any] = {}  # noqa: RUF012 - what confines it: backend, level, network; empty: nothing


class AttemptEnded(Record):
    """An attempt ended and moved its step to `step_status`: an end status, or waiting for the next one."""

    at: str
    step: str
    n: int
    status: str  # completed, failed, cancelled, lost
    step_status: str
    reason: str = ""
    exit_code: int | None = None
    duration: float = 0.0
    log_bytes: int = 0
    log_sha256: str = ""
    error: dict[str, str] | None = None  # class, rule, message
    outputs: dict[str, Any] = {}  # noqa: RUF012 - never written
    checks: tuple[dict[str, Any], ...] = ()
    hooks: tuple[dict[str, Any], ...] = ()  # that ran: name, when, ok, message, exit_code, duration, log
    notes: tuple[str, ...] = ()
    delay: float = 0.0  # until the next attempt, when step_status is waiting
    step_reason: str = ""
    usage: dict[str, float] = {}  # noqa: RUF012 - input_tokens, output_tokens, usd; empty: no model was asked
    files: tuple[dict[str, Any], ...] = ()  # what it read, made and changed: path, op, sha256, bytes
    cache: dict[str, Any] = {}  # noqa: RUF012 - of a cached step: key, why, kept; see planrun.ports.Cache
    tools: tuple[dict[str, Any], ...] = ()  # what it called: id, name, args, ok, duration
    reports: dict[str, dict[str, Any]] = {}  # noqa: RUF012 - that it wrote: `junit`; see planrun.actions.reported
    resources: tuple[dict[str, Any], ...] = ()  # kind, id, action: containers, images, locks
    stderr: tuple[
        int, ...
    ] = ()  # of a failed one: where in its log the last of stderr stands; from -1: mixed
    program: str = ""  # the path of what started in place of bash, for a script that is one plain command
    worker: str = ""  # of a cluster, that had it
    # Of an agent: path in the run's folder, sha256, names, files, insertions, deletions, risk, risk_reason.
    patch: dict[str, Any] = {}  # noqa: RUF012
    proposed: dict[str, Any] = {}  # noqa: RUF012 - of an agent in plan mode: text, sha256, risk, risk_reason of its plan


class StepHeld(Record):
    """A ready step waits for a lock that another step or run holds; a new event follows if the lock changes."""

    at: str
    step: str
    lock: str  # its locks, separated by commas
    message: str  # who holds it


class StepMoved(Record):
    """A step ended without an attempt: skipped, blocked, cancelled or refused; or it was paused between two."""

    at: str
    step: str
    status: str
    reason: str
    message: str = ""
    rule: str = ""  # of the policy that denied it
    outputs: dict[str, Any] = {}  # noqa: RUF012 - never written; of a group that is another plan


class StepOpened(Record):
    """What waits for a step to be open may start: a group lets its members start, or a service is ready.

    `items`: of a group whose members were not known before, one mapping each: `instance`, and `matrix` or `item`.
    `params`: of a group that is another plan, its parameters.
    """

    at: str
    step: str
    items: tuple[dict[str, Any], ...] = ()
    params: dict[str, Any] = {}  # noqa: RUF012 - never written


class StepRestored(Record):
    """A step completed without an attempt: an earlier result of the same was used again.

    `key`: of the entry it came from; `source`: the run that made it.
    """

    at: str
    step: str
    key: str
    source: str = ""
    outputs: dict[str, Any] = {}  # noqa: RUF012
    files: tuple[dict[str, Any], ...] = ()  # what it produced: path, sha256, bytes
    fingerprint: str = ""
    reports: dict[str, Any] = {}  # noqa: RUF012 - of test cases in these files, as of an attempt


class RollbackStarted(Record):
    """The run failed, and what it did is undone: the named steps, in this order as far as one waits for another."""

    at: str
    steps: tuple[str, ...]


class RoundStarted(Record):
    """Steps failed for passing reasons, and the run goes on by itself: those in `rerun` are pending again.

    They start `delay` seconds later. `n`: which round it is, of at most `most`. `steps`: those that failed so.
    """

    at: str
    n: int
    most: int
    delay: float
    steps: tuple[str, ...]
    rerun: tuple[str, ...]
    why: dict[str, str]  # of the steps in `rerun`, in words


class CleanupResumed(Record):
    """The pending cleanup of an interrupted run starts: the rest of its rollback, and its `finally` steps.

    Nothing of `steps` starts any more. `lost`: steps whose last attempt has no end. `rerun`: those of the `finally` and
    undo steps among them and others that are pending again.
    """

    at: str
    planrun: str
    options: dict[str, Any]
    lost: tuple[str, ...]
    rerun: tuple[str, ...]
    pid: int
    host: str


class GateOpened(Record):
    """A step, or the whole plan (`step` is empty), waits for an approval, an answer or a decision."""

    at: str
    step: str
    kind: str  # approval, ask, decide, or failure: what is to become of a step that failed
    question: str = ""
    header: str = ""
    options: tuple[dict[str, Any], ...] = ()  # of a decision: label, value, description
    multi: bool = False  # several of them may be chosen
    schema: dict[str, Any] | None = None  # of the value that is asked for; None: yes or no
    default: tuple[Any, ...] = ()  # the answer when the time is over; empty: there is none
    until: str = ""  # when the time is over
    risk: str = ""  # of an approval: of what would run
    rule: str = ""  # which rule or level asks for it
    reason: str = ""


class GateAnswered(Record):
    """A gate has its response, from a person, a policy, a file or a default.

    An approval is `approved` or `rejected`, a question has the value itself; a step that was left out when its run was
    approved has `skipped`.
    """

    at: str
    step: str
    answer: Any
    via: str  # command, terminal, option, file, policy, criteria, timeout, approval
    by: str = ""  # who says so
    reason: str = ""  # why, as they put it
    approval: str = ""  # id of the approval file
    digest: str = ""  # of what was approved


class AgentNoted(Record):
    """An agent changed what agents share: the memory, a delegation, a message, a reflection or a snapshot.

    `change` is as `planrun.model.collaboration` folds it; `agent`: the id of the agent, "" of planrun itself.
    """

    at: str
    step: str
    agent: str
    kind: str  # memory, delegation, message, reflection or snapshot
    change: dict[str, Any]


class PlanningStarted(Record):
    """A model is asked for steps: for those that failed (`replan`), or for abstract ones (`expand`)."""

    at: str
    purpose: str
    steps: tuple[str, ...]
    model: str
    n: int = 1  # which planning of this purpose it is in the run


class ModelAsked(Record):
    """A call to a model is about to be made; written before anything leaves this machine."""

    at: str
    call: int  # from 1 in each run
    purpose: str
    model: str
    request: str  # sha256 of what is asked, in its canonical form
    reserved: dict[str, float]  # tokens and, where the price is known, usd
    cut: tuple[dict[str, Any], ...] = ()  # of the question, to fit into the context: name, bytes, kept
    step: str = ""  # whose agent asks
    agent: str = ""


class ModelRepeated(Record):
    """An attempt of a call was in vain, and there is one more, `delay` seconds later."""

    at: str
    call: int
    attempt: int  # that was in vain, from 1
    message: str
    delay: float = 0.0
    step: str = ""  # whose agent asks
    agent: str = ""


class ModelAnswered(Record):
    """A call ended, well or not."""

    at: str
    call: int
    ending: str  # see planrun.model.call
    usage: dict[str, float]  # input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, usd
    attempts: int = 1
    duration: float = 0.0
    model: str = ""
    request_id: str = ""
    message: str = ""
    rule: str = ""
    is_estimate: bool = False
    replayed: bool = False
    step: str = ""  # whose agent asked
    agent: str = ""


class BudgetCrossed(Record):
    """So much of a budget is used up; at 100 per cent nothing more is asked."""

    at: str
    scope: str  # plan, planning, step or call
    resource: str  # tokens, usd, turns or time
    level: int  # 80, 95, 100 per cent
    used: float
    limit: float
    step: str = ""  # whose budget it is, of scope step


class PlanningEnded(Record):
    """The result of a planning.

    outcome revised: the run continues with `plan`. denied: a ceiling denies what the model wrote; `refusals` says which
    step, by which rule and why. invalid: it wrote no plan that may be used, `problems` of its last try. infeasible:
    it says that there is no way. failed: no answer could be had. budget: nothing more may be spent. stopped: the run
    is being ended.
    """

    at: str
    purpose: str
    steps: tuple[str, ...]
    outcome: str
    message: str = ""
    rounds: int = 0  # repairs that were asked for
    plan: dict[str, Any] = {}  # noqa: RUF012 - never written; as in run_started, for `revised`
    refusals: tuple[dict[str, str], ...] = ()
    problems: tuple[str, ...] = ()


class AgentStarted(Record):
    """An agent begins to work for an attempt of a step, or goes on where an earlier one was cut off."""

    at: str
    step: str
    n: int  # the attempt
    agent: str  # its id in the run
    agent_type: str
    model: str
    tools: tuple[str, ...]
    budget: dict[str, float]  # tokens, turns and, where it is limited, usd
    workspace: str  # copy, shared, or read for one that changes nothing
    mode: str = ""
    parent: str = ""  # the agent that delegated to it
    depth: int = 0
    carries: str = ""  # the agent of an earlier step with whose conversation it begins
    project: str = ""  # sha256 of the memory of the project that it is told
    continues: str = ""  # the agent whose work it goes on with


class AgentProgressed(Record):
    """An agent begins another turn: it asks the model once more."""

    at: str
    step: str
    agent: str
    turn: int  # from 1
    turns: int  # that it may take
    percent: int  # of its budget: the highest of turns and tokens
    message: str = ""  # what it did last, in one line


class ToolCalled(Record):
    """An agent calls a tool; written, and synced where it has effects, before anything happens.

    `answer`: what the policies decided. `effects`: whether it may change something. `args`: with long texts cut.
    """

    at: str
    step: str
    agent: str
    call: str  # its id in the conversation
    name: str
    args: dict[str, Any]
    sha256: str  # of the whole arguments
    risk: str
    answer: str  # allow, ask or deny
    rule: str = ""
    reason: str = ""
    effects: bool = False


class ToolReturned(Record):
    """A call of a tool ended. unknown: planrun was killed meanwhile; the call is not made again."""

    at: str
    step: str
    agent: str
    call: str
    name: str
    status: str  # done, failed, denied or unknown
    duration: float = 0.0
    exit_code: int | None = None
    bytes: int = 0  # of what it printed
    sha256: str = ""  # of what the model is told
    log: str = ""
    message: str = ""  # why it failed, in one line
    files: tuple[dict[str, Any], ...] = ()  # that it named: path, op


class AgentCompacted(Record):
    """Earlier results of tools were left out of the conversation, which came near its limit."""

    at: str
    step: str
    agent: str
    before: int  # tokens
    after: int
    left_out: int  # results


class AgentEnded(Record):
    """An agent ended: its own report, and figures.

    `stats`: prompt_tokens, completion_tokens, tool_calls, tool_successes, tool_failures, duration_seconds.
    """

    at: str
    step: str
    agent: str
    status: str  # completed, failed or cancelled
    reason: str
    summary: str = ""
    evidence: tuple[str, ...] = ()
    stats: dict[str, float] = {}  # noqa: RUF012 - never written
    message: str = ""


BY_COMMAND = "by planrun cancel"


class RunEnding(Record):
    """The run is being ended early.

    `why` is abort, deadline, cancel, records or, for a while only, pause, gates or budget.
    """

    at: str
    why: str
    signal: int = 0
    step: str = ""  # whose failure aborted it
    message: str = ""  # which record or log could not be written, and why; why a signal came

    @property
    def is_final(self) -> bool:
        """Whether a user cancelled the run by `planrun cancel`, so that no resume continues it."""
        return self.why == "cancel" and self.message == BY_COMMAND


class RunEnded(Record):
    """Last event: the verdict, the plan's outputs, and how many events the ledger holds with this one.

    `message`: why outputs could not be evaluated; then the verdict is `failed`.
    """

    at: str
    status: str
    verdict: str
    exit_code: int
    duration: float
    summary: dict[str, int]
    events: int
    outputs: dict[str, Any] = {}  # noqa: RUF012 - never written
    message: str = ""


Event = (
    RunStarted
    | RunResumed
    | PlanMoved
    | AttemptStarted
    | AttemptEnded
    | StepHeld
    | StepMoved
    | StepOpened
    | StepRestored
    | RollbackStarted
    | RoundStarted
    | CleanupResumed
    | GateOpened
    | GateAnswered
    | AgentNoted
    | PlanningStarted
    | ModelAsked
    | ModelRepeated
    | ModelAnswered
    | BudgetCrossed
    | PlanningEnded
    | AgentStarted
    | AgentProgressed
    | ToolCalled
    | ToolReturned
    | AgentCompacted
    | AgentEnded
    | RunEnding
    | RunEnded
)

EVENTS: dict[str, type[Event]] = {
    "run_started": RunStarted,
    "run_resumed": RunResumed,
    "plan_moved": PlanMoved,
    "attempt_started": AttemptStarted,
    "attempt_ended": AttemptEnded,
    "step_held": StepHeld,
    "step_moved": StepMoved,
    "step_opened": StepOpened,
    "step_restored": StepRestored,
    "rollback_started": RollbackStarted,
    "round_started": RoundStarted,
    "cleanup_resumed": CleanupResumed,
    "gate_opened": GateOpened,
    "gate_answered": GateAnswered,
    "agent_noted": AgentNoted,
    "planning_started": PlanningStarted,
    "model_asked": ModelAsked,
    "model_repeated": ModelRepeated,
    "model_answered": ModelAnswered,
    "budget_crossed": BudgetCrossed,
    "planning_ended": PlanningEnded,
    "agent_started": AgentStarted,
    "agent_progressed": AgentProgressed,
    "tool_called": ToolCalled,
    "tool_returned": ToolReturned,
    "agent_compacted": AgentCompacted,
    "agent_ended": AgentEnded,
    "run_ending": RunEnding,
    "run_ended": RunEnded,
}

NAMES: dict[type[Event], str] = {event: name for name, event in EVENTS.items()}
