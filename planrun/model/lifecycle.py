"""Which moves are legal, what an edge makes of an ended step, and the verdict: pure functions and two tables."""

from __future__ import annotations

from planrun.errors import InternalError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Literal

    PlanStatus = Literal[
        "draft", "awaiting_approval", "approved", "executing", "paused", "completed", "failed", "cancelled"
    ]
    StepStatus = Literal[
        "pending",
        "running",
        "waiting",
        "paused",
        "completed",
        "failed",
        "skipped",
        "blocked",
        "cancelled",
    ]
    Verdict = Literal["completed", "partial", "failed", "cancelled"]
    # None: the failure counts; otherwise what dependents with an `ok` edge do.
    Tolerance = Literal["continue", "skip"] | None
    # What an edge says of its dependent: go on, or why not.
    Judgement = Literal["satisfied", "blocked", "approval", "tolerated", "upstream"]

PLAN_MOVES: dict[str, frozenset[str]] = {
    "draft": frozenset({"awaiting_approval", "cancelled"}),
    "awaiting_approval": frozenset({"approved", "cancelled"}),
    "approved": frozenset({"executing", "cancelled"}),
    "executing": frozenset({"paused", "completed", "failed", "cancelled"}),
    "paused": frozenset({"executing", "cancelled"}),
    "completed": frozenset(),
    "failed": frozenset({"approved", "cancelled"}),
    "cancelled": frozenset(),
}

STEP_MOVES: dict[str, frozenset[str]] = {
    "pending": frozenset({"running", "waiting", "completed", "failed", "skipped", "blocked", "cancelled"}),
    # Skipped or blocked is what a group can be that was opened, when all its members are.
    "running": frozenset({"waiting", "paused", "completed", "failed", "skipped", "blocked", "cancelled"}),
    "waiting": frozenset({"running", "paused", "completed", "failed", "skipped", "cancelled"}),
    "paused": frozenset({"running", "failed", "skipped", "cancelled"}),
    "completed": frozenset(),
    "failed": frozenset(),
    "skipped": frozenset(),
    "blocked": frozenset(),
    "cancelled": frozenset(),
}

ENDED = frozenset({"completed", "failed", "skipped", "blocked", "cancelled"})


def move_plan(old: str, new: str) -> str:
    """Return `new`; raises InternalError when a plan may not go from `old` to `new`."""
    if new not in PLAN_MOVES[old]:
        raise InternalError(f"a plan cannot go from {old} to {new}")
    return new


def move_step(step: str, old: str, new: str) -> str:
    """Return `new`; raises InternalError when a step may not go from `old` to `new`."""
    if new not in STEP_MOVES[old]:
        raise InternalError(f'step "{step}" cannot go from {old} to {new}')
    return new


def judge(edge: str, status: str, reason: str, tolerance: Tolerance) -> Judgement:
    """Say what an edge of kind `edge` makes of an ended step or, for `open`, of one that was opened.

    `tolerance` is that of the ended step's failure: `continue` also stands for a recovered one.
    A fault upstream blocks; a tolerated fault and everything that it skipped is passed on as `tolerated`, a step that
    the approver left out, or a question that the caller left out, as `approval`; whatever else does not
    satisfy the edge, as a `failed` edge on what a tolerated fault skipped, is a benign `upstream`.
    """
    if edge in ("done", "same") or (edge == "open" and status == "running"):
        return "satisfied"
    if status in ("blocked", "cancelled"):
        return "blocked"
    if status == "failed":
        if edge == "failed":
            return "satisfied"
        if tolerance is None:
            return "blocked"
        return "satisfied" if edge in ("ok", "open") and tolerance == "continue" else "tolerated"
    if status == "completed":
        return "upstream" if edge == "failed" else "satisfied"
    if reason == "approval":
        return "approval"
    if reason == "tolerated" and edge != "failed":
        return "tolerated"
    return "satisfied" if edge in ("ok", "open") else "upstream"


def weigh(judgements: Iterable[Judgement]) -> Judgement:
    """Combine the judgements of all edges: a fault wins, then a step that a person left out, then a tolerated fault."""
    found = set(judgements)
    for judgement in ("blocked", "approval", "tolerated", "upstream"):
        if judgement in found:
            return judgement
    return "satisfied"


def verdict(ends: Iterable[tuple[str, Tolerance]], ending: str | None) -> Verdict:
    """Return the verdict of a run from the end statuses of its steps and what ended it early.

    `ends` holds status and tolerance of every step; `ending` is None, "abort", "deadline", "cancel" or "records".
    Where nothing ended the run early, a step was cancelled before a resume that reran only others.
    """
    if ending in ("abort", "deadline", "records"):
        return "failed"
    tolerated = False
    for status, tolerance in ends:
        if status in ("blocked", "cancelled") or (status == "failed" and tolerance is None):
            return "failed" if ending is None else "cancelled"
        tolerated = tolerated or status == "failed"
    if ending == "cancel":
        return "cancelled"
    return "partial" if tolerated else "completed"
