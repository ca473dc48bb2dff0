"""When an agent hands its work to another one: six rules as data, their scores, and what holds them back.

Everything here is a pure function of what it is given. A book keeps what an agent and those below it delegated; each of
its changes is a plain mapping for the journal, so it is rebuilt from the ledger of its run.
"""

from __future__ import annotations

from planrun.agents.metrics import Result, path_key
from planrun.clock import later
from planrun.model.collaboration import Rows
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Literal

    from planrun.agents.metrics import Metrics
    from planrun.model.collaboration import Change, Delegation, Journal

    When = Literal["unavailable", "category", "empty", "stuck"]

ANY = "*"
SPECIALISED = "!general"
GENERAL = "general"
MAX_SAME = 2
"""How often an agent and those below it may delegate from one type to the same other one: more is a loop."""
LEAST_TURNS = 5
BUSY = 5
"""Running agents that count as a full load."""
LONGEST_QUERY = 2000  # characters
BASE_SHARE, HISTORY_SHARE, TREND_SHARE = 0.4, 0.6, 0.1
_DIGITS = 6


class Rule(Record):
    """One rule: which agents it is for, when it fires, and whom it delegates to.

    `when` unavailable: the agent called one of `tools` and may not; category: the last error is of `category`;
    empty: one of `tools` succeeded and found nothing; stuck: so many turns went by without progress.
    """

    id: str
    source: str  # a type of agent, ANY or SPECIALISED
    when: When
    target: str
    context: str  # of the path in the metrics
    reason: str
    tools: tuple[str, ...] = ()
    category: str = ""
    turns: int = 0


RULES = (
    Rule(
        id="explore-needs-bash",
        source="explore",
        when="unavailable",
        tools=("bash",),
        target="bash",
        context="tool_unavailable",
        reason="an explore agent cannot run commands",
    ),
    Rule(
        id="compilation-error",
        source="bash",
        when="category",
        category="compilation_error",
        target="explore",
        context="compilation_error",
        reason="a compilation error needs a look at the code",
    ),
    Rule(
        id="general-stuck",
        source=GENERAL,
        when="stuck",
        turns=5,
        target="plan",
        context="stuck",
        reason="no progress for 5 turns: the work needs to be divided",
    ),
    Rule(
        id="nothing-found",
        source="plan",
        when="empty",
        tools=("glob", "grep"),
        target="explore",
        context="empty_result",
        reason="the search found nothing: it needs a deeper look",
    ),
    Rule(
        id="file-not-found",
        source=ANY,
        when="category",
        category="file_not_found",
        target="explore",
        context="file_not_found",
        reason="a file was not found: the right path is needed",
    ),
    Rule(
        id="specialised-stuck",
        source=SPECIALISED,
        when="stuck",
        turns=7,
        target=GENERAL,
        context="stuck",
        reason="no progress for 7 turns: an agent with all tools is needed",
    ),
)
"""The rules in their order, which decides between equal scores."""


class Situation(Record):
    """An agent after a result of a tool.

    `unavailable`: the tool exists and the agent may not call it. `found`: how much a search found; None for other
    tools. `category`: of the error, as `reflection` names it; "" without one. `allowed`: the types that the policy of
    the step allows; None: all. `running`: the other agents at work; those that wait for a reply, as this one will, are
    not.
    """

    agent: str  # the type
    tool: str = ""
    is_error: bool = False
    unavailable: bool = False
    found: int | None = None
    category: str = ""
    stuck_turns: int = 0
    depth: int = 0
    running: int = 0
    task: str = ""
    detail: str = ""
    allowed: frozenset[str] | None = None


class Candidate(Record):
    """A rule that fired: its score with the parts of it, and why it was not taken; "" when it could be."""

    rule: str
    source: str
    target: str
    context: str
    reason: str
    score: float
    score_parts: dict[str, float]
    refused: str = ""


class Decision(Record):
    """What to do: `chosen` is None when nothing is delegated; `considered` has every rule that fired, best first."""

    chosen: Candidate | None = None
    considered: tuple[Candidate, ...] = ()
    query: str = ""


def fires(rule: Rule, now: Situation) -> bool:
    """Whether a rule is for this situation. An agent never delegates to its own type."""
    if rule.source not in (ANY, now.agent) and not (rule.source == SPECIALISED and now.agent != GENERAL):
        return False
    if rule.target == now.agent:
        return False
    if rule.when == "unavailable":
        return now.unavailable and now.tool in rule.tools
    if rule.when == "category":
        return now.is_error and now.category == rule.category
    if rule.when == "empty":
        return not now.is_error and now.tool in rule.tools and now.found == 0
    return now.stuck_turns >= rule.turns


def score(parts: dict[str, float]) -> float:
    """Return (base x 0.4 + history x 0.6) x weight + trend x 0.1, less the share that `load` takes."""
    rates = parts["base"] * BASE_SHARE + parts["history"] * HISTORY_SHARE
    found = rates * parts["weight"] + parts["trend"] * TREND_SHARE
    return round(found * (1 - parts["load"]), _DIGITS)


def score_parts(rule: Rule, now: Situation, metrics: Metrics, settings: Delegation) -> dict[str, float]:
    """Return what the score of a rule is made of."""
    stats = metrics.of(path_key(now.agent, rule.target, rule.context))
    return {
        "base": round(metrics.base_rate(rule.target), _DIGITS),
        "history": round(stats.rate, _DIGITS),
        "weight": stats.weight,
        "trend": round(stats.trend, _DIGITS),
        "load": round(settings.load_penalty * min(now.running / BUSY, 1.0), _DIGITS),
    }


def turns_at(base: int, depth: int, settings: Delegation) -> int:
    """Return how many turns an agent has at a depth: base - depth x penalty, at least 5."""
    return max(LEAST_TURNS, base - depth * settings.depth_penalty)


def decide(now: Situation, metrics: Metrics, book: DelegationBook) -> Decision:
    """Return whether an agent delegates, to whom, and every rule that fired; the highest score wins."""
    rules = [rule for rule in RULES if fires(rule, now)] if book.settings.enabled else []
    if not rules:
        return Decision()
    candidates = [_candidate(rule, now, metrics, book) for rule in rules]
    ranked = tuple(sorted(candidates, key=lambda each: -each.score))
    chosen = next((each for each in ranked if not each.refused), None)
    return Decision(chosen=chosen, considered=ranked, query=_query(chosen, now) if chosen else "")


def _candidate(rule: Rule, now: Situation, metrics: Metrics, book: DelegationBook) -> Candidate:
    parts = score_parts(rule, now, metrics, book.settings)
    return Candidate(
        rule=rule.id,
        source=now.agent,
        target=rule.target,
        context=rule.context,
        reason=rule.reason,
        score=score(parts),
        score_parts=parts,
        refused=_refusal(rule, now, book),
    )


def _refusal(rule: Rule, now: Situation, book: DelegationBook) -> str:
    settings = book.settings
    if now.depth >= settings.max_depth:
        return f"depth {settings.max_depth} is reached"
    if now.allowed is not None and rule.target not in now.allowed:
        return f"the step does not allow {rule.target} agents"
    if now.running >= settings.max_parallel_agents:
        return f"{settings.max_parallel_agents} agents are at work already"
    if until := book.suppressed_until(rule.id):
        return f"the rule is suppressed until {until}"
    if book.count(now.agent, rule.target) >= MAX_SAME:
        return f"{now.agent} has delegated to {rule.target} {MAX_SAME} times: more would be a loop"
    return ""


def _query(chosen: Candidate, now: Situation) -> str:
    """Return the task of the other agent, without the result of the tool, which is untrusted."""
    lines = [f"A {now.agent} agent needs help: {chosen.reason}."]
    if now.tool:
        lines.append(f"Tool: {now.tool}")
    if now.task:
        lines.append(f"Its task: {now.task}")
    if now.detail:
        lines.append(now.detail)
    return "\n".join(lines)[:LONGEST_QUERY]


def scope_of(number: str) -> str:
    """Return the scope of a delegation: the id of the agent of a step."""
    return number.rpartition(".")[0]


class DelegationBook:
    """What the agent of one step, and those below it, delegated.

    `scope`: the id of that agent, with which the ids of its delegations begin. `stamp`: the time, as `Clock.stamp`
    gives it. `journal` gets each change after it was applied.
    """

    def __init__(self, scope: str, settings: Delegation, stamp: Callable[[], str], journal: Journal) -> None:
        self.settings = settings
        self._scope = scope
        self._stamp = stamp
        self._journal = journal
        self._rows = Rows()
        self._suppressed: dict[str, str] = {}  # until when, by rule

    def restore(self, changes: Iterable[Change], metrics: Metrics) -> None:
        """Take the changes of this scope from a ledger, results included; nothing is written to the journal."""
        for change in changes:
            if scope_of(change["id"]) == self._scope:
                self._apply(change)
                if change["op"] == "end":
                    self._measure(change, ok=change["result"] == "completed", metrics=metrics)

    def begin(self, chosen: Candidate, agent: str, depth: int) -> str:
        """Record that a delegation begins, before the other agent starts; returns its id.

        `agent`: the id of the one that delegates; `depth`: of the other one.
        """
        number = f"{self._scope}.d{len(self._rows.by_id) + 1}"
        change = {
            "op": "begin",
            "id": number,
            "at": self._stamp(),
            "by": agent,
            "rule": chosen.rule,
            "from": chosen.source,
            "to": chosen.target,
            "context": chosen.context,
            "reason": chosen.reason,
            "depth": depth,
            "score": chosen.score,
            "score_parts": chosen.score_parts,
            "result": "running",
        }
        self._record(change)
        return number

    def end(self, number: str, *, ok: bool, seconds: float, metrics: Metrics) -> None:
        """Record how a delegation ended, here and in the metrics; a failure suppresses its rule for a time."""
        now = self._stamp()
        change: dict[str, Any] = {
            "op": "end",
            "id": number,
            "ended_at": now,
            "seconds": round(seconds, 3),
            "result": "completed" if ok else "failed",
        }
        if not ok and self.settings.suppress_for > 0:
            change["suppressed_until"] = later(now, self.settings.suppress_for)
        self._record(change)
        self._measure(change, ok=ok, metrics=metrics)

    def lost(self) -> list[str]:
        """Return the delegations that began and have no end: after a kill of planrun they are to be ended."""
        return [number for number, row in self._rows.by_id.items() if row["result"] == "running"]

    def suppressed_until(self, rule: str) -> str:
        """Return until when a rule is suppressed; "" when it is not."""
        until = self._suppressed.get(rule, "")
        return until if until > self._stamp() else ""

    def count(self, source: str, target: str) -> int:
        """Return how often one type of agent delegated to another."""
        return sum(row["from"] == source and row["to"] == target for row in self._rows.by_id.values())

    def rows(self) -> list[dict[str, Any]]:
        """Return every delegation as plain data, as it stands in ledger.json."""
        return self._rows.rows()

    def _measure(self, ended: Change, *, ok: bool, metrics: Metrics) -> None:
        row = self._rows.by_id[ended["id"]]
        metrics.record(
            Result(
                path=path_key(row["from"], row["to"], row["context"]),
                strategy=row["to"],
                ok=ok,
                seconds=ended["seconds"],
                at=ended["ended_at"],
            )
        )

    def _record(self, change: Change) -> None:
        self._apply(change)
        self._journal(change)

    def _apply(self, change: Change) -> None:
        self._rows.apply(change)
        if until := change.get("suppressed_until"):
            self._suppressed[self._rows.by_id[change["id"]]["rule"]] = until
