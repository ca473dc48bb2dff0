"""Advice about time: unneeded dependencies, and a step order that delays the longest path."""

from __future__ import annotations

from planrun.model import graph
from planrun.model.globs import BadGlob, meet, parse
from planrun.plan.edit.reorder import by_longest_path, makespan, savings
from planrun.risk.levels import rank

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from planrun.lint.subject import Subject
    from planrun.model.globs import Glob
    from planrun.model.plan import Step, Text
    from planrun.plan.problems import Problem

WORTH = 1.0  # seconds that another order has to save to be worth a word
PLACES = 4  # steps at once that are reckoned with where the plan names no number: as on the runners of most CI systems
_EARLY = frozenset(("network", "publishes", "destroys", "privilege", "secrets", "unknown"))


def needless_waits(subject: Subject) -> Iterator[Problem]:
    """L411: a step that depends on another one without reading its results, where starting early is safe."""
    needless = [
        (step, other)
        for step, other in _waits(subject)
        if (step.id, other.id) not in subject.read and _is_needless(subject, step, other)
    ]
    edges = [(step.id, other.id) for step, other in needless]
    implied = graph.implied(subject.before, edges)
    known = all(name in subject.seconds for name in subject.before)
    saved = savings(subject.before, subject.seconds, edges) if known else {}
    for step, other in needless:
        if (step.id, other.id) in implied or (known and saved[step.id, other.id] < GRAIN):
            continue
        worth = f"about {saved[step.id, other.id]:.1f} s a run" if known else "unknown, no durations recorded"
        yield subject.advice(
            "L411",
            f'step "{step.id}" waits for "{other.id}" but reads none of its results: both could run in parallel',
            step,
            "depends_on",
            f"time saved: {worth}",
        )


def _waits(subject: Subject) -> Iterator[tuple[Step, Step]]:
    """Yield the edges that are written as a plain list: the step and the one that it waits for."""
    for step in subject.steps():
        if step.section != "steps" or step.condition is not None or step.group:
            continue
        draft = subject.draft(step)
        for link in draft.links if draft is not None else ():
            other = subject.by_id.get(link.on)
            if other is not None and link.form == "list":
                yield step, other


GRAIN = 0.1  # seconds; less is noise


def hidden_path(subject: Subject) -> Iterator[Problem]:
    """L412: a file order by which a run that knows no durations starts the longest path late.

    CI systems bring no records along: there the order of the file decides between steps that look alike.
    """
    plan = subject.plan
    if plan.schedule != "dag" or any(step.kind == "group" for step in plan.steps):
        return
    names = [step.id for step in plan.main()]
    if len(names) < 3 or any(name not in subject.seconds for name in names):
        return
    places = plan.limits.max_parallel or PLACES
    now = makespan(subject.before, names, subject.seconds, places)
    better = by_longest_path(subject.before, names, subject.seconds)
    then = makespan(subject.before, better, subject.seconds, places)
    if now - then < WORTH:
        return
    yield subject.advice(
        "L412",
        f"the step order delays the longest path: without records {places} at once take {now:.0f} s, and "
        f"{then:.0f} s when it comes first",
        key="steps",
        hint=f"`planrun lint --fix` reorders the steps: {', '.join(better)}",
    )


def _is_needless(subject: Subject, step: Step, other: Step) -> bool:
    if any(each.action.asks or each.kind == "group" for each in (step, other)):
        return False
    if "abstract" in (step.kind, other.kind) or other.kind == "validate" or other.on_failure == "abort":
        return False
    if (
        step.section != other.section
        or step.lock
        or step.conflicts
        or step.recovers
        or step.open_risk
        or _EARLY & set(step.effects)
    ):
        return False
    if rank(step.risk) == rank(other.risk) == 0 and not other.open_risk:
        return not (step.verify or other.outputs) and subject.works(step) and subject.works(other)
    return rank(step.risk) < rank("high") and _are_apart(step, other)


def _are_apart(step: Step, other: Step) -> bool:
    """Whether both name their files, and neither writes files of the other."""
    made, read = _globs((*other.makes, *other.writes)), _globs(step.inputs)
    own, theirs = _globs((*step.makes, *step.writes)), _globs(other.inputs)
    if not made or not read or None in (own, theirs):
        return False
    return not (_meet(made, read) or _meet(own or [], theirs or []) or _meet(own or [], made))


def _globs(texts: tuple[Text, ...]) -> list[tuple[Glob, ...]] | None:
    """Return patterns, None where some are not known yet."""
    try:
        return (
            [parse(text) for text in texts if isinstance(text, str)]
            if all(isinstance(text, str) for text in texts)
            else None
        )
    except BadGlob:
        return None


def _meet(left: list[tuple[Glob, ...]], right: list[tuple[Glob, ...]]) -> bool:
    return any(meet(one, two) for one in left for two in right)
