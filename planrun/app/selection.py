"""Select steps of a run: `--only`, `--from`, `--until`, `--tag`, less `--skip`."""

from __future__ import annotations

from planrun.errors import InvalidInput
from planrun.expressions.check import references
from planrun.model import graph
from planrun.plan.check.edges import succeeded
from planrun.plan.problems import name_hint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from planrun.model.plan import Plan, Step


def select(plan: Plan, wanted: Mapping[str, Sequence[str]]) -> frozenset[str] | None:
    """Return the ids of the steps to run, or None for all of them.

    `wanted` maps only, from, until, skip and tag to their values; several add up, `skip` removes.
    Steps under `finally` always run, unless `skip` names them. Raises InvalidInput for a name that no step has, when
    nothing is left to run, and when a step would fail because it reads an output of a step that is left out.
    """
    if not any(wanted.values()):
        return None
    main, every = plan.main(), {step.id for step in plan.steps}
    for option in ("only", "from", "until", "skip"):
        for name in wanted.get(option, ()):
            if name not in every:
                raise InvalidInput(f'--{option}: no step "{name}" in the plan{_hint(name, every, "steps")}')
    chosen = _chosen(main, wanted)
    if chosen is None:
        chosen = {step.id for step in main}
    by_id = {step.id: step for step in plan.steps}
    skipped = {each for name in wanted.get("skip", ()) for each in (name, *members(by_id[name]))}
    chosen = set(with_groups(plan, chosen))
    if not chosen - skipped and not wanted.get("shard"):  # a shard of a small plan may have nothing to do
        raise InvalidInput("nothing is selected: every step that was chosen is skipped")
    chosen |= {step.id for step in plan.cleanup()}
    selected = frozenset(chosen - skipped)
    idle = {step.id for step in plan.steps if step.id not in selected}
    by_id = {step.id: step for step in plan.steps}
    for name in graph.order(graph.waits(plan.steps)):
        step = by_id[name]
        if name in idle:
            continue
        if _is_skipped(step, idle):
            idle.add(name)
            continue
        for read, output in unguarded_outputs(step):
            if read in idle:
                raise InvalidInput(
                    f'step "{name}" reads the output "{output}" of step "{read}", which this selection leaves out;'
                    f' select "{read}" too, or write default(steps.{read}.outputs.{output}, otherwise) in the plan'
                )
    return selected


def members(step: Step) -> tuple[str, ...]:
    """Return the known members of a group; none of any other step."""
    return step.grouping.members if step.kind == "group" else ()


def with_groups(plan: Plan, chosen: Iterable[str]) -> frozenset[str]:
    """Return steps with the groups around them: a member starts when its group is open."""
    by_id = {step.id: step for step in plan.steps}
    names = set(chosen)
    for name in chosen:
        while name in by_id and (name := by_id[name].group):
            names.add(name)
    return frozenset(names)


def _is_skipped(step: Step, idle: set[str]) -> bool:
    """Return whether a step is certainly skipped when the steps in `idle` do not run."""
    if any(edge.on in idle and edge.kind in ("completed", "failed") for edge in step.edges):
        return True
    return not idle.isdisjoint(succeeded(step.condition))


def _chosen(main: tuple[Step, ...], wanted: Mapping[str, Sequence[str]]) -> set[str] | None:
    """Return the steps that the adding options name together, or None when none is given."""
    if not any(wanted.get(option) for option in ("only", "from", "until", "tag", "shard")):
        return None
    by_id = {step.id: step for step in main}
    named = {
        option: [
            each
            for name in wanted.get(option, ())
            for each in (name, *(members(by_id[name]) if name in by_id else ()))
        ]
        for option in ("only", "from")
    }
    chosen = set(named["only"])
    before = graph.waits(main)
    if named["from"]:
        chosen |= graph.descendants(before, named["from"])
    if wanted.get("until"):
        chosen |= graph.ancestors(before, wanted["until"])
    for tag in wanted.get("tag", ()):
        tagged = {step.id for step in main if tag in step.tags}
        if not tagged:
            known = {tag for step in main for tag in step.tags}
            raise InvalidInput(f'--tag: no step has the tag "{tag}"{_hint(tag, known, "tags")}')
        chosen |= tagged
    return chosen


def unguarded_outputs(step: Step) -> Iterator[tuple[str, str]]:
    """Yield the outputs, as step and name, that a step needs in order to run.

    Outputs of a step whose status is read in the same expression, or in the condition, are not among them.
    """
    asked = _asked(step.condition) if step.condition is not None else set()
    for value in step.formulas():
        known = asked | _asked(value)
        for reference in references(value):
            path = reference.path
            reads = path[0] == "steps" and len(path) > 3 and path[2] == "outputs"
            if reads and not reference.guarded and path[1] not in known:
                yield str(path[1]), str(path[3])


def _asked(value: Any) -> set[str]:
    """Return the steps whose status an expression or template reads."""
    paths = [reference.path for reference in references(value)]
    return {str(path[1]) for path in paths if path[0] == "steps" and path[2:3] == ("status",)}


def _hint(name: str, known: set[str], noun: str) -> str:
    hint = name_hint(name, known, noun)
    return f"; {hint}" if hint else ""


def with_expanded(plan: Plan, selected: frozenset[str] | None) -> frozenset[str] | None:
    """Return the selected steps, plus those into which a model split selected steps, minus those of others."""
    if selected is None:
        return None
    made = [step.id for step in plan.steps if step.origin == "expanded"]
    names = set(selected)
    for name in made:
        whole = max(
            [other for other in made if name.startswith((f"{other}-", f"{other}."))], key=len, default=name
        )
        if whole != name:
            (names.add if whole in selected else names.discard)(name)
    return frozenset(names)
