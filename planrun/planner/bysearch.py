"""Replan failures of a run by search, without a model: another way through its steps and the parts of its plan.

The next version of the plan has parts added, exactly as the reviewer wrote them; only ids, edges and what they replace
are new. It passes the same comparison with the reviewed text as what a model writes. A part that a policy denies is
left out, and another way is searched.
"""

from __future__ import annotations

import json
import os
from time import monotonic

from planrun.errors import InvalidInput, InvalidPlan
from planrun.llm.drafts import Fault
from planrun.llm.plantext import entry_text
from planrun.model.planning import Llm
from planrun.model.policy import REVIEWED
from planrun.plan.edit.page import append_steps
from planrun.plan.keys.search import parts_of
from planrun.plan.schema.forms import to_data
from planrun.plan.yaml.document import parse
from planrun.planner.conversation import Result
from planrun.planner.facts import Estimates, Situation, facts_of, limits_of, plain_facts, problem_of
from planrun.planner.inspect import Bounds, inspect_parts
from planrun.planner.replan import Replanner, Revision, as_written
from planrun.planner.trees import headline, record_of
from planrun.search.find import find
from planrun.search.relaxed import INFINITE
from planrun.search.space import waits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence
    from typing import Any

    from planrun.model import events as ev
    from planrun.model.plan import Plan
    from planrun.model.state import RunState
    from planrun.planner.replan import Adoption
    from planrun.records.history import History
    from planrun.search.space import Action, Problem
    from planrun.search.tree import Found, Limits
    from planrun.settings import Settings

_AT_ONCE = 0.05  # seconds; most searches take less
FILE = "search-{}.json"
"""The record of a search in the folder of its run, by the number of the replan."""


def by_search(algorithm: str) -> Llm:
    """Return in the place of a model what events name."""
    return Llm(model=f"search: {algorithm}")


class SearchReplanner(Replanner):
    """Replans failures by search; `history`: of the plan, read before any step ran; `keeps`: it records its trees."""

    keeps: bool
    history: History
    settings: Settings

    def ask(self, steps: tuple[str, ...], state: RunState) -> Generator[ev.Event | None, None, Result]:
        """Return the next version and an explanation, or why there is none; yields None while it searches."""
        revision = Revision(state, steps, self._text(state))
        banned: frozenset[str] = frozenset()
        strict = False
        while True:
            problem = self._problem(state, steps, banned, strict=strict)
            found = yield from self._found(problem, limits_of(state.plan, self.settings))
            if self._stopped:
                return Result(outcome="stopped", message="the search was stopped")
            record = record_of(found, "replan", steps)
            self._keep(record, state)
            if not found.solved:
                return Result(outcome="infeasible", message=_why_none(found, headline(record), banned))
            draft = _Draft(found.actions, revision, state)
            if not draft.new:
                message = "no part takes their place: the steps that are left reach the goal without them"
                return Result(outcome="infeasible", message=message)
            result = self._checked(draft, state, revision)
            denied = {
                draft.part_of[each["step"]] for each in result.refusals if each["step"] in draft.part_of
            }
            if result.outcome == "denied" and denied:
                banned |= denied
            elif result.outcome == "invalid" and not strict:  # a step would wait for one that waits for it
                strict = True
            else:
                return result.but(value=(result.value, headline(record))) if result.value else result

    def _found(self, problem: Problem, limits: Limits) -> Generator[ev.Event | None, None, Found]:
        """Search beside the loop of the run, which goes on with signals and its console."""
        from threading import Thread  # few runs search

        results: list[Found | Exception] = []

        def clock() -> float:
            return INFINITE if self._stopped else monotonic()

        def search() -> None:
            try:
                results.append(find(problem, limits, clock))
            except Exception as error:  # noqa: BLE001 - raised below, where the run handles it
                results.append(error)

        thread = Thread(target=search, daemon=True)
        thread.start()
        thread.join(_AT_ONCE)
        while thread.is_alive():
            yield None
            thread.join(_AT_ONCE)
        [found] = results
        if isinstance(found, Exception):
            raise found
        return found

    def _problem(
        self, state: RunState, steps: tuple[str, ...], banned: frozenset[str], *, strict: bool
    ) -> Problem:
        lost = {*steps, *state.replaced}
        done = frozenset([name for name, each in state.steps.items() if each.ended and name not in lost])
        classes = {name: str((state.steps[name].error or {}).get("class", "unknown")) for name in steps}
        situation = Situation(facts=facts_of(state), done=done, failed=steps, banned=banned, strict=strict)
        return problem_of(state.plan, situation, Estimates(history=self.history, classes=classes))

    def _checked(self, draft: _Draft, state: RunState, revision: Revision) -> Result:
        try:
            plan = draft.plan(self._adoption)
        except InvalidPlan as error:
            problem = error.problems[0]
            fault = Fault(path="steps", rule=problem.code, message=problem.text)
            return Result(outcome="invalid", message=problem.text, faults=(fault,))
        except InvalidInput as error:
            return Result(outcome="invalid", message=str(error))
        bounds = Bounds(
            before=as_written(state, revision.text, self._adoption),
            layers=self._context.layers,
            context=self._context.context,
            failed=frozenset(revision.failed),
            pending=frozenset(revision.pending),
            inherited=self._inherited,
            parts=draft.texts,
        )
        refusals = inspect_parts(plan, draft.new, bounds)
        if refusals:
            named = "; ".join([f"{each['step']}: {each['reason']}" for each in refusals[:3]])
            return Result(outcome="denied", message=named, refusals=refusals)
        return Result(outcome="accepted", value=plan)

    def _keep(self, record: Mapping[str, Any], state: RunState) -> None:
        """Write the record of the search beside the ledger; it explains, and nothing else is read from it."""
        if not self.keeps:
            return
        ended = [
            each for each in (state.planning.ended if state.planning else ()) if each.purpose == "replan"
        ]
        path = os.path.join(self._place.rundir, FILE.format(len(ended) + 1))
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
            with open(fd, "w", encoding="utf-8") as file:
                json.dump(record, file, ensure_ascii=False)
        except OSError:
            return

    def _text(self, state: RunState) -> bytes:
        from planrun.app.copies import stored_text

        return stored_text(self._place.rundir, state.named)


def _why_none(found: Found, headline_: str, banned: frozenset[str]) -> str:
    given = found.problem.start.union(*[action.provides for action in found.problem.actions])
    missing = plain_facts(found.problem.goal - given)
    denied = f"; a policy denies {', '.join(sorted(banned))}" if banned else ""
    if missing:
        return f"no step or part that is left provides {', '.join(missing)}{denied}"
    return f"{headline_}{denied}"


class _Draft:
    """The next version from the actions of a way: `new` are the ids of its new steps, `texts` their parts as data."""

    def __init__(self, actions: Sequence[Action], revision: Revision, state: RunState) -> None:
        self._revision = revision
        self._state = state
        root, _ = parse(revision.text, state.plan.file)
        assert root is not None  # it has been loaded
        written = {part.value["id"].value: to_data(part) for part in parts_of(root)}
        pending = set(revision.pending)
        self._actions = actions
        self._ids = [
            self._id(action.name) if action.name not in pending else action.name for action in actions
        ]
        chosen = [at for at, action in enumerate(actions) if action.name not in pending]
        self.new = tuple([self._ids[at] for at in chosen])
        self.part_of = {self._ids[at]: actions[at].name for at in chosen}
        self.texts: dict[str, dict[str, Any]] = {self._ids[at]: written[actions[at].name] for at in chosen}
        self._chosen = chosen

    def _id(self, name: str) -> str:
        taken, number, found = {*self._state.steps, *self._state.dropped}, 1, name
        while found in taken:
            number += 1
            found = f"{name}-{number}"
        return found

    def plan(self, adoption: Adoption) -> Plan:
        """Return the next version of the plan; raises InvalidPlan, InvalidInput."""
        text = "\n".join([entry_text(self._keys(at), 0) for at in self._chosen])
        state, file = self._state, self._state.plan.file
        data = append_steps(self._revision.text, file, text)
        plan = adoption.next_version(data, state, "searched", self.new)
        moved = self._revision.later(plan, self.new)
        before = {step.id: step.origin for step in state.plan.steps}
        plan = adoption.next_version(data, state, "searched", moved)
        kept = {name: origin for name, origin in before.items() if origin not in REVIEWED}
        return plan.but(
            steps=tuple([step.but(origin=kept[step.id]) if step.id in kept else step for step in plan.steps])
        )

    def _keys(self, at: int) -> dict[str, Any]:
        name = self._ids[at]
        keys: dict[str, Any] = {"id": name}
        if depends_on := self._edges(at):
            keys["depends_on"] = depends_on
        if replaced := self._replaced(at):
            keys["replaces"] = replaced
        return keys | {key: value for key, value in self.texts[name].items() if key != "id"}

    def _edges(self, at: int) -> list[str]:
        """Return what a new step waits for: steps of the way, those that completed, and the rest of what replaces."""
        found = [self._ids[before] for before in waits(self._actions)[at]]
        if self._replaced(at):
            found += [
                self._ids[before] for before in self._chosen if before < at and self._takes_over(before)
            ]
        facts = self._actions[at].requires
        done = [
            name
            for name, each in self._state.steps.items()
            if each.status == "completed" and facts & set(each.step.provides) and each.step.section == "steps"
        ]
        return list(dict.fromkeys([*done, *found]))

    def _takes_over(self, at: int) -> bool:
        """Return whether a new step provides what failed steps, or those that are redundant now, were for."""
        names = (*self._revision.failed, *self._redundant())
        lost = {fact for name in names for fact in self._state.steps[name].step.provides}
        return bool(lost & self._actions[at].provides)

    def _replaced(self, at: int) -> list[str]:
        """Return what a new step replaces: the last one that does what failed steps were for replaces all of them."""
        last = max([each for each in self._chosen if self._takes_over(each)], default=self._chosen[-1])
        return [*self._revision.failed, *self._redundant()] if at == last else []

    def _redundant(self) -> list[str]:
        """Return pending steps off the way all whose facts hold, or come from new steps; guards stay."""
        way = {action.name for action in self._actions}
        new = [self._actions[at].provides for at in self._chosen]
        given = set(facts_of(self._state)).union(*new)
        found = []
        for name in self._revision.pending:
            step = self._state.steps[name].step
            if name not in way and step.provides and set(step.provides) <= given and not step.action.guards:
                found.append(name)
        return found
