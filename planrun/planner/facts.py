"""From steps to the problem of a search: facts, costs and probabilities, and what a run has reached."""

from __future__ import annotations

from dataclasses import replace

from planrun.model import graph
from planrun.model.record import Record
from planrun.model.search import PRESETS, Search
from planrun.records.history import History
from planrun.search.space import Action, Problem, weight
from planrun.search.tree import Limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from planrun.model.plan import Plan, Step
    from planrun.model.state import RunState
    from planrun.settings import Settings

# Where neither a run nor the plan shows it: seconds and probability of an attempt, by the kind of tree action.
TIMES = {"toolcall": 10.0, "delegate": 120.0, "decompose": 300.0, "verify": 5.0}
PRIORS = {"toolcall": 0.9, "delegate": 0.75, "decompose": 0.7, "verify": 0.95}
BY_CLASS = {"transient": 0.7, "unknown": 0.5, "logic": 0.3, "fatal": 0.1}
"""The probability that a step succeeds which failed with an error of this class in this run."""
ANSWER_TIME = 300.0
"""Seconds until a person answers a question."""
_DONE, _UNUSED = (
    "step:",
    "unused:",
)  # facts that the search itself needs; no name of a fact can be one of them


class Estimates(Record):
    """What is known of durations and results: the history of a plan, and classes of errors by step."""

    history: History = History()
    classes: Mapping[str, str] = {}

    def of(self, step: Step) -> tuple[float, float]:
        """Return the seconds of an attempt, and the probability that it succeeds."""
        kind = kind_of(step)
        samples = self.history.samples(step.id)
        seconds = sorted([past.seconds for past in samples if past.ending != "failed"])
        time = step.estimated_time if step.estimated_time is not None else TIMES[kind]
        if step.action.asks and step.estimated_time is None:
            time = ANSWER_TIME
        if seconds:
            time = seconds[(len(seconds) - 1) // 2]
        return time, self._success(step, kind, [past.ending for past in samples])

    def _success(self, step: Step, kind: str, endings: list[str]) -> float:
        if step.id in self.classes:
            return BY_CLASS.get(self.classes[step.id], BY_CLASS["unknown"])
        given = step.estimated_success if step.estimated_success is not None else PRIORS[kind]
        if not endings:
            return given
        passed = endings.count("completed") + endings.count("flaky") / 2
        return (passed + 2 * given) / (len(endings) + 2)  # what was expected counts as much as two runs


def kind_of(step: Step) -> str:
    """Return the kind of tree action that a step is."""
    if step.action.is_agent:
        return "delegate"
    if step.kind in ("abstract", "group"):
        return "decompose"
    return "verify" if step.kind == "validate" or step.action.asks else "toolcall"


def action_of(step: Step, estimates: Estimates, **more: Any) -> Action:
    """Return a step as an action; `more`: fields that differ from what the step says."""
    seconds, success = estimates.of(step)
    cost, parts = weight(seconds, step.estimated_tokens, step.risk)
    fields: dict[str, Any] = {
        "requires": frozenset(step.requires),
        "provides": frozenset(step.provides),
        "deletes": frozenset(step.deletes),
        "cost": max(cost, 0.001),
        "success": success,
        "kind": kind_of(step),
        "parts": parts,
    }
    return Action(step.id, **{**fields, **more})


def limits_of(plan: Plan, settings: Settings) -> Limits:
    """Return the limits of a search for a plan; the command line wins over the plan."""
    search = plan.search or Search()
    if settings.thoroughness:
        preset = PRESETS[settings.thoroughness]
        search = search.but(**{name: value for name, value in preset.items() if name != "max_replans"})
    names = ("beam_width", "mcts_iterations", "max_tree_depth", "max_tree_nodes", "planning_timeout", "seed")
    found = Limits(
        algorithm=settings.algorithm or search.algorithm, **{name: getattr(search, name) for name in names}
    )
    return found if settings.seed is None else replace(found, seed=settings.seed)


def goal_of(plan: Plan) -> frozenset[str]:
    """Return the facts that are wanted: those of the plan, else all that its steps provide and none deletes."""
    if plan.search and plan.search.goal:
        return frozenset(plan.search.goal)
    provided = frozenset([fact for step in plan.main() for fact in step.provides])
    return provided - frozenset([fact for step in plan.main() for fact in step.deletes])


def facts_of(state: RunState) -> frozenset[str]:
    """Return the facts that hold in a run: what its completed steps provided and did not delete, in their order."""
    plan = state.plan
    found = set(plan.search.start if plan.search else ())
    waits = graph.waits(plan.main())
    for name in graph.order(waits):
        step_state = state.steps.get(name)
        if step_state is not None and step_state.status == "completed":
            found -= set(step_state.step.deletes)
            found |= set(step_state.step.provides)
    return frozenset(found)


class Situation(Record):
    """Where a search begins: the facts that hold, steps that have ended, and those that failed and have no turn again.

    `banned`: parts that may not be taken. `strict`: a step waits for the very steps that it depends on; else for the
    facts that those provide, so that a part can take the place of each.
    """

    facts: frozenset[str]
    done: frozenset[str] = frozenset()
    failed: tuple[str, ...] = ()
    banned: frozenset[str] = frozenset()
    strict: bool = False


def beginning(plan: Plan) -> Situation:
    """Return the situation before a run."""
    return Situation(facts=frozenset(plan.search.start if plan.search else ()))


def problem_of(
    plan: Plan, situation: Situation, estimates: Estimates, offered: Iterable[Action] = ()
) -> Problem:
    """Return what is searched: every step that has not run, every part, and what a model offered, once each."""
    steps = {step.id: step for step in plan.main()}
    parts = {step.id: step for step in (plan.search.parts if plan.search else ())}
    gone = {name for step in plan.main() for name in step.replaces}
    left = [name for name in steps if name not in situation.done and name not in gone]
    left = [name for name in left if name not in situation.failed]
    actions = [
        action_of(steps[name], estimates, source="step", **_links(steps, name, situation)) for name in left
    ]
    taken = {*steps}
    for name, step in parts.items():
        if step.kind != "abstract" and name not in situation.banned and name not in taken:
            actions.append(action_of(step, estimates, source="part"))
    actions += [action for action in offered if action.name not in {*situation.banned, *taken}]
    start = {*situation.facts, *[_DONE + name for name in situation.done]}
    if any(action.deletes for action in actions):  # else no state makes a second time worthwhile
        start |= {_UNUSED + action.name for action in actions}
        actions = [_once(action) for action in actions]
    return Problem(frozenset(start), goal_of(plan), tuple(actions))


def _links(steps: Mapping[str, Step], name: str, situation: Situation) -> dict[str, frozenset[str]]:
    """Return what a step of the plan requires and provides, with its edges as facts.

    A step that waits for a failed one waits for what that was to provide.
    """
    step = steps[name]
    requires = set(step.requires)
    for on in _waits_for(step):
        if on not in steps:
            continue
        if on in situation.failed or (
            steps[on].provides and not situation.strict and on not in situation.done
        ):
            requires |= set(steps[on].provides)
        else:
            requires.add(_DONE + on)
    return {"requires": frozenset(requires), "provides": frozenset({*step.provides, _DONE + name})}


def _waits_for(step: Step) -> Iterator[str]:
    for edge in step.edges:
        if edge.kind in ("ok", "completed", "open", "same"):
            yield edge.on


def _once(action: Action) -> Action:
    fact = frozenset({_UNUSED + action.name})
    return replace(action, requires=action.requires | fact, deletes=action.deletes | fact)


def plain_facts(facts: Iterable[str]) -> tuple[str, ...]:
    """Return facts without those that the search itself needs, sorted."""
    return tuple(sorted([fact for fact in facts if not fact.startswith((_DONE, _UNUSED))]))
