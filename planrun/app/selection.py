"""Which steps a run is about: `--only`, `--from`, `--until`, `--tag`, less `--skip`."""

from __future__ import annotations

from planrun.errors import InvalidInput
from planrun.model import graph
from planrun.source.problems import did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from planrun.model.plan import Plan, Step


def select(plan: Plan, wanted: Mapping[str, Sequence[str]]) -> frozenset[str] | None:
    """Return the ids of the steps to run, or None for all of them.

    `wanted` maps only, from, until, skip and tag to what was asked for; several add up, `skip` takes away.
    Steps under `finally` always run, unless `skip` names them. Raises InvalidInput for a name that no step has.
    """
    if not any(wanted.values()):
        return None
    main, every = plan.main(), {step.id for step in plan.steps}
    for option in ("only", "from", "until", "skip"):
        for name in wanted.get(option, ()):
            if name not in every:
                raise InvalidInput(f'--{option}: no step "{name}" in the plan{_hint(name, every)}')
    chosen = _chosen(main, wanted)
    if chosen is None:
        chosen = {step.id for step in main}
    chosen |= {step.id for step in plan.cleanup()}
    return frozenset(chosen - set(wanted.get("skip", ())))


def _chosen(main: tuple[Step, ...], wanted: Mapping[str, Sequence[str]]) -> set[str] | None:
    """Return what the adding options name together, or None when none is given."""
    if not any(wanted.get(option) for option in ("only", "from", "until", "tag")):
        return None
    chosen = set(wanted.get("only", ()))
    before = graph.waits(main)
    if wanted.get("from"):
        chosen |= graph.descendants(before, wanted["from"])
    if wanted.get("until"):
        chosen |= graph.ancestors(before, wanted["until"])
    for tag in wanted.get("tag", ()):
        tagged = {step.id for step in main if tag in step.tags}
        if not tagged:
            known = {tag for step in main for tag in step.tags}
            raise InvalidInput(f'--tag: no step has the tag "{tag}"{_hint(tag, known)}')
        chosen |= tagged
    return chosen


def _hint(name: str, known: set[str]) -> str:
    found = did_you_mean(name, sorted(known))  # sorted: of two near words always the same one
    return f"; {found}" if found else ""
