"""What validation calls certain is certain: checked against simulated runs of random plans."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from planrun.model import graph
from planrun.model.lifecycle import judge, weigh
from planrun.plan.check.edges import Availability, lenient
from planrun.plan.check.validate import validate
from planrun.plan.includes import IncludedPlans
from planrun.plan.schema import shape

if TYPE_CHECKING:
    from planrun.model.lifecycle import Tolerance
    from planrun.plan.keys.outline import Outline, RawStep

KINDS = ("ok", "completed", "failed", "done")


@st.composite
def plans(draw: st.DrawFn) -> str:
    """Draw a plan of up to six steps with every kind of edge, conditions, tolerance and recovery."""
    lines = ["version: 1", "steps:"]
    for at in range(draw(st.integers(2, 6))):
        fields = [f"id: s{at}", "run: x"]
        healed = draw(st.sampled_from(range(at))) if at and draw(st.integers(0, 4)) == 0 else None
        if healed is not None:
            fields.append(f"recovers: [s{healed}]")
        edges = {
            other: draw(st.sampled_from(KINDS))
            for other in range(at)
            if other != healed and draw(st.integers(0, 2)) == 0
        }
        if edges:
            fields.append(f"depends_on: {{{', '.join(f's{on}: {kind}' for on, kind in edges.items())}}}")
        condition = draw(st.sampled_from(("", "", "run.ci", "true", "succeeded")))
        if condition == "succeeded" and at:
            fields.append(f"condition: run.ci and step_s{draw(st.integers(0, at - 1))}_succeeded")
        elif condition and condition != "succeeded":
            fields.append(f"condition: {condition}")
        fields.append(f"on_failure: {draw(st.sampled_from(('block', 'block', 'continue', 'skip')))}")
        lines.append(f"  - {{{', '.join(fields)}}}")
    return "\n".join(lines) + "\n"


class Simulation:
    """One possible run: every step that starts completes or fails as drawn, every other condition is drawn too."""

    def __init__(self, outline: Outline, chance: Random) -> None:
        self.outline = outline
        self.chance = chance
        self.ends: dict[str, tuple[str, str]] = {}
        self.started: set[str] = set()

    def run(self) -> None:
        """Decide about all steps in the order of the waiting relation."""
        handlers: dict[str, list[str]] = {}
        for draft in self.outline.steps:
            for link in draft.recovers:
                handlers.setdefault(link.on, []).append(draft.id)
        links = {draft.id: [(link.on, link.kind) for link in draft.links] for draft in self.outline.steps}
        waited = {name: ids for name, ids in handlers.items() if name not in lenient(self.outline)}
        for name in graph.order(graph.wait_links(links, waited)):
            self.ends[name] = self.decide(self.outline.by_id[name], handlers)

    def decide(self, draft: RawStep, handlers: dict[str, list[str]]) -> tuple[str, str]:
        """Return status and reason of one step."""
        found = weigh(
            judge(link.kind, *self.ends[link.on], self.tolerance(link.on, handlers)) for link in draft.links
        )
        if found == "blocked":
            return "blocked", "upstream"
        if found != "satisfied":
            return "skipped", found
        if draft.condition is not None and not self.holds(draft.condition):
            return "skipped", "condition"
        self.started.add(draft.id)
        return self.chance.choice((("completed", "ran"), ("failed", "exit")))

    def holds(self, tree: Any) -> bool:
        """Evaluate a condition of the few forms that are drawn above."""
        if tree[0] == "and":
            return all(self.holds(part) for part in tree[3])
        if tree[0] == "compare":
            return bool(self.ends[tree[4][3][1]][0] == tree[5][3])
        return bool(tree[3]) if tree[0] == "const" else self.chance.random() < 0.7

    def tolerance(self, name: str, handlers: dict[str, list[str]]) -> Tolerance:
        """Return how the failure of a step is tolerated."""
        if any(self.ends.get(each, ("", ""))[0] == "completed" for each in handlers.get(name, ())):
            return "continue"
        word = self.outline.by_id[name].keys["on_failure"].value
        return word if word in ("continue", "skip") else None


@settings(max_examples=300, deadline=None)
@given(plans(), st.integers())
def test_what_is_sure_has_completed_in_every_run(plan: str, seed: int) -> None:
    """Whenever a step starts, every step that is sure for it has completed."""
    root, problems = shape.read(plan.encode(), "plan.yml")
    assert root is not None
    assert not problems
    outline = validate(root, "plan.yml", plan.encode(), IncludedPlans("plan.yml")).outline
    if outline.problems:
        return  # a cycle through recovery: nothing runs
    names = list(outline.by_id)
    available = Availability(outline, [(reader, read) for reader in names for read in names])
    chance = Random(seed)
    for _ in range(30):
        simulation = Simulation(outline, chance)
        simulation.run()
        ends = simulation.ends
        for reader in simulation.started:
            sure = [read for read in names if available.is_sure(reader, read)]
            assert all(ends[read][0] == "completed" and available.is_behind(reader, read) for read in sure)
        if all(
            status == "completed" or reason in ("condition", "upstream") for status, reason in ends.values()
        ):
            assert all(ends[read][0] == "completed" for read in names if available.survives(read))
