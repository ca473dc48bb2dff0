"""docs/reference/semantics.md: what the functions answer that decide about edges, groups, moves and schedules."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, cast

from planrun.engine.queue import Queue
from planrun.model.graph import waits
from planrun.model.groups import gather
from planrun.model.lifecycle import ENDED, PLAN_MOVES, STEP_MOVES, judge, verdict, weigh
from planrun.model.plan import Abstract, Edge, Group, Step
from tests.docs.pages import NOTHING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from planrun.model.lifecycle import Judgement, Tolerance
    from planrun.model.plan import Schedule
    from planrun.model.state import RunState

HEAD = """\
# Rules as tables

Results of the functions that decide about edges, groups, status changes and schedules, for every case.
[Semantics](../semantics.md) explains the rules, each with a plan that shows it.

"""
EDGES = """\
## Effect of an edge

The first column is the end of the dependency. A plan cannot contain `open`: it leads from an instance to its step.

"""
SEVERAL = """
## Several edges

Two edges of one step, one by the row and one by the column; more than two combine in the same way.

"""
IN_ORDER = """
## One step, in order

The first rule that applies decides. [`order-of-one-step`](../../tests/cases/order-of-one-step/plan.yml)
[`order-of-checks`](../../tests/cases/order-of-checks/plan.yml)

"""
GROUPS = """
## Steps with instances or an included plan

By the ends of its members. A failure that is tolerated within the plan of `uses` does not count there.

"""
SCHEDULES = """
## Schedules

One plan under each schedule, with `max_parallel: 2` and known durations.

"""
VERDICTS = """
## The verdict

By the ends of the steps, and by the cause of the end of the run.

"""
MOVES = """
## Status changes

Allowed status changes of a run and of a step.
"""
FORMS: tuple[Literal["matrix"], Literal["uses"]] = ("matrix", "uses")
KINDS = ("ok", "completed", "failed", "done", "open")
ENDS: tuple[tuple[str, str, Tolerance, str], ...] = (
    ("completed", "ran", None, "`completed` (`ran`, `flaky`, `cached`)"),
    ("failed", "exit", None, "`failed`"),
    ("failed", "exit", "continue", "`failed`, tolerated by `continue`, or recovered"),
    ("failed", "exit", "skip", "`failed`, tolerated by `skip`"),
    (
        "skipped",
        "condition",
        None,
        "`skipped` (`condition`, `upstream`, `not_selected`, `empty`, `replaced_by_replan`)",
    ),
    ("skipped", "tolerated", None, "`skipped` (`tolerated`)"),
    ("skipped", "approval", None, "`skipped` (`approval`)"),
    ("blocked", "upstream", None, "`blocked`"),
    ("cancelled", "abort", None, "`cancelled`"),
    ("running", "", None, "open, not ended"),
)
BECOMES: dict[str, str] = {
    "satisfied": "satisfied",
    "blocked": "blocked (upstream)",
    "approval": "skipped (approval)",
    "tolerated": "skipped (tolerated)",
    "upstream": "skipped (upstream)",
}
ORDER = (
    (
        "edges",
        "the ends of its dependencies satisfy its edges",
        "`blocked (upstream)`, `skipped (upstream, tolerated, approval)`",
    ),
    (
        "selection",
        "the selection includes it",
        "`skipped (not_selected)`, of a question `skipped (approval)`",
    ),
    ("condition", "the condition is true", "`skipped (condition)`"),
    ("cache", "there is no cached result", "`completed (cached)`"),
    ("values", "all values can be filled in", "`failed (refused)`"),
    ("gate", "a policy or an approval allows it", "`failed (denied)`, `skipped (approval)`"),
    ("action", "its action succeeds", "`failed (exit, timeout, idle_timeout, spawn, lost)`"),
    ("outputs", "outputs and files match their declarations", "`failed (outputs)`"),
    ("checks", "`expect`, then `verify` pass", "`failed (verify)`"),
)
# A plan for the comparison of schedules: id, seconds, what it waits for, and its `parallel`.
WORK = (
    ("a", 1, "", True),
    ("b", 4, "", True),
    ("c", 1, "a", None),
    ("d", 3, "a", True),
    ("e", 1, "b", True),
    ("f", 2, "c", None),
)


def page() -> str:
    """Return docs/reference/semantics.md."""
    return "".join(
        [HEAD, *_edges(), *_weights(), *_order(), *_groups(), *_schedules(), *_verdicts(), *_moves()]
    )


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table in Markdown."""
    names = list(head)
    lines = [names, ["---"] * len(names), *[list(row) for row in rows]]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _edges() -> list[str]:
    rows = [
        [name, *[_judged(kind, status, reason, tolerance) for kind in KINDS]]
        for status, reason, tolerance, name in ENDS
    ]
    return [EDGES, table(["It ended", *[f"`{kind}`" for kind in KINDS]], rows)]


def _judged(kind: str, status: str, reason: str, tolerance: Tolerance) -> str:
    if status not in ENDED and kind != "open":
        return "waits"
    return BECOMES[judge(kind, status, reason, tolerance)]


def _weights() -> list[str]:
    known = cast("tuple[Judgement, ...]", tuple(BECOMES))
    rows = [[BECOMES[one], *[BECOMES[weigh([one, other])] for other in known]] for one in known]
    return [SEVERAL, table(["", *[BECOMES[each] for each in known]], rows)]


def _order() -> list[str]:
    rows = [[str(place), name, wants, f"{ends}"] for place, (name, wants, ends) in enumerate(ORDER, 1)]
    return [IN_ORDER, table(["", "Check", "It continues if", "Otherwise it ends"], rows)]


def _groups() -> list[str]:
    kinds = ("completed", "failed", "cancelled", "blocked", "skipped (condition)", "skipped (tolerated)")
    ends = [(), *itertools.combinations(kinds, 1), *itertools.combinations(kinds, 2)]
    rows = [
        [" and ".join(members) or "none", *[_gathered(members, form) for form in FORMS]] for members in ends
    ]
    return [GROUPS, table(["Its members ended", "`matrix`, `foreach`", "`uses`"], rows)]


def _gathered(members: Sequence[str], form: Literal["matrix", "uses"]) -> str:
    """Return what a group of this form comes to."""
    steps = {}
    for place, end in enumerate(members):
        status, _, reason = end.rstrip(")").partition(" (")
        known = {"completed": "ran", "failed": "exit", "cancelled": "fail_fast", "blocked": "upstream"}
        name = f"m{place}"
        steps[name] = SimpleNamespace(
            status=status, reason=reason or known[status], step=SimpleNamespace(id=name), outputs={}
        )
    state = cast("RunState", SimpleNamespace(steps=steps, tolerated_within=lambda _name: None))
    action: Any = Group(form=form, members=tuple(steps))
    status, reason, _ = gather(state, Step(id="group", action=action, kind="group"))
    return f"{status} ({reason})"


def _schedules() -> list[str]:
    rows = [[f"`{word}`", *timeline(word)] for word in ("dag", "levels", "batches", "sequential")]
    work = [
        [f"`{name}`", f"{seconds} s", f"`{on}`" if on else NOTHING, "`true`" if together else NOTHING]
        for name, seconds, on, together in WORK
    ]
    most = max(len(row) for row in rows)
    return [
        SCHEDULES,
        table(["Step", "Duration", "Depends on", "`parallel`"], work),
        "\nRunning steps in each second:\n\n",
        table(["Schedule", *map(str, range(1, most))], [[*row, *[""] * (most - len(row))] for row in rows]),
    ]


def timeline(schedule: Schedule) -> list[str]:
    """Return which steps run in each second."""
    steps = [
        Step(
            id=name,
            action=Abstract(),
            kind="abstract",
            edges=(Edge(on=on, kind="ok"),) if on else (),
            parallel=together,
        )
        for name, _, on, together in WORK
    ]
    left = {name: float(seconds) for name, seconds, _, _ in WORK}
    queue = Queue(steps, schedule, 2, dict(left))
    missing = {name: set(others) for name, others in waits(steps).items()}
    for name in [name for name, others in missing.items() if not others]:
        queue.add(name)
    running: list[str] = []
    found = []
    while any(left.values()):
        while (taken := queue.take(len(running), 0)) is not None:
            running.append(taken)
        found.append(" ".join(f"`{name}`" for name in sorted(running)))
        for name in running:
            left[name] -= 1
        for name in [name for name in running if not left[name]]:
            running.remove(name)
            queue.release(name)
            queue.settle(name)
            for other in [each for each, others in missing.items() if name in others]:
                missing[other].discard(name)
                if not missing[other]:
                    queue.add(other)
    return found


def _verdicts() -> list[str]:
    ends: dict[str, list[tuple[str, Tolerance]]] = {
        "all completed or skipped": [("completed", None), ("skipped", None)],
        "one failed, tolerated": [("completed", None), ("failed", "continue")],
        "one failed": [("completed", None), ("failed", None)],
        "one blocked": [("blocked", None)],
        "one cancelled": [("cancelled", None)],
    }
    early = (None, "abort", "deadline", "cancel", "records")
    names = ["by itself", "by `abort`", "by the deadline", "by a signal", "by records that cannot be written"]
    rows = [[name, *[verdict(each, why) for why in early]] for name, each in ends.items()]
    return [
        "\n## The verdict\n\nBy the ends of the steps, and by the cause of the end of the run.\n\n",
        table(["", *names], rows),
    ]


def _moves() -> list[str]:
    parts = [MOVES]
    for name, moves in (("Run", PLAN_MOVES), ("Step", STEP_MOVES)):
        rows = [
            [f"`{old}`", ", ".join(f"`{new}`" for new in sorted(news)) or NOTHING]
            for old, news in moves.items()
        ]
        parts.append("\n" + table([name, "may become"], rows))
    return parts
