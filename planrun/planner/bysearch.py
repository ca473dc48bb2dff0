"""Replan failures of a run by search: another way through its steps and the parts of its plan.

The next version of the plan has parts added, exactly as the reviewer wrote them; only ids, edges and what they replace
are new. It passes the same comparison with the reviewed text as what a model writes. A part that a policy denies is
left out, and another way is searched. A model may offer further steps, which count as written by it.
"""

from __future__ import annotations

from dataclasses import replace
from time import monotonic

from planrun.errors import InvalidInput, InvalidPlan
from planrun.llm import prompts
from planrun.llm.drafts import CANDIDATES, Fault
from planrun.llm.plantext import entry_text
from planrun.model import graph
from planrun.model.planning import Llm
from planrun.model.policy import REVIEWED
from planrun.plan.edit.page import append_steps
from planrun.plan.keys.outline import Outline
from planrun.plan.keys.search import parts_of
from planrun.plan.schema.forms import to_data
from planrun.plan.yaml.document import parse
from planrun.planner.candidates import Ground, Offer, Wanted, offer_of, question
from planrun.planner.conversation import Conversation, Result
from planrun.planner.facts import Estimates, Situation, facts_of, limits_of, plain_facts, problem_of
from planrun.planner.inspect import inspect_parts
from planrun.planner.replan import Replanner, Revision
from planrun.planner.trees import headline, offered, record_of
from planrun.reports.searches import write_search
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


def by_search(algorithm: str) -> Llm:
    """Return in the place of a model what events name."""
    return Llm(model=f"search: {algorithm}")


class SearchReplanner(Replanner):
    """Replans failures by search; `history`: of the plan, read before any step ran; `keeps`: it records its trees."""

    keeps: bool
    history: History
    settings: Settings
    offers: Llm | None = None  # the model that offers candidates; its steps are the most that it may offer

    def ask(self, steps: tuple[str, ...], state: RunState) -> Generator[ev.Event | None, None, Result]:
        """Return the next version and an explanation, or why there is none; yields None while it searches."""
        revision = Revision(state, steps, self._text(state))
        offer = yield from self._offered(steps, state, revision)
        banned: frozenset[str] = frozenset()
        strict = False
        while True:
            problem = self._problem(state, steps, banned, offer.actions, strict=strict)
            found = yield from self._found(problem, limits_of(state.plan, self.settings))
            if self._stopped:
                return Result(outcome="stopped", message="the search was stopped")
            record = record_of(found, "replan", steps, offer)
            self._keep(record, state)
            if not found.solved:
                why = _why_none(found, headline(record), banned)
                failed = offer.model and offer.outcome != "accepted"
                told = f"{why}; candidates: {offered(offer.recorded())}" if failed else why
                return Result(outcome="infeasible", message=told)
            draft = _Draft(found.actions, revision, state, offer)
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

    def _offered(
        self, steps: tuple[str, ...], state: RunState, revision: Revision
    ) -> Generator[ev.Event | None, None, Offer]:
        """Return what a model offers for the search; nothing where none is asked, or it gives no usable answer."""
        if self.offers is None:
            return Offer()
        self._model = self._model or self._context.open_model()
        calls = len(state.planning.calls) if state.planning else 0
        conversation = self._conversation = Conversation(
            self._model, self.offers, self._budget(state), self._context.clock, call=calls
        )
        problem = self._problem(state, steps, frozenset(), (), strict=False)
        shown = tuple([replace(each, **_plain(each)) for each in problem.actions])
        wanted = Wanted(
            start=frozenset(plain_facts(problem.start)),
            goal=problem.goal,
            actions=shown,
            most=self.offers.max_generated_steps,
        )
        about = prompts.question(self._situation(steps, state, revision))[:-1]  # without how ids are numbered
        try:
            result = yield from conversation.ask(
                question("replan", wanted, about, self._ground(state, revision, problem))
            )
        finally:
            self._conversation = None
        return offer_of(result, self.offers.model)

    def _ground(self, state: RunState, revision: Revision, problem: Problem) -> Ground:
        plan = state.plan
        steps = (*plan.main(), *(plan.search.parts if plan.search else ()))
        left = {fact for name in revision.pending for fact in state.steps[name].step.provides}
        facts = problem.goal.union(*[(*step.requires, *step.provides) for step in steps])
        return Ground(
            text=revision.text,
            file=plan.file,
            load=lambda data, new: self._adoption.next_version(data, state, "replanned", new),
            bounds=self._bounds(state, revision).but(form=CANDIDATES),
            facts=facts | frozenset(plain_facts(problem.start)),
            taken=frozenset([*state.steps, *state.dropped, *[step.id for step in steps]]),
            reserved=frozenset(left),
            verify=self._verify(revision, state),
            confinement=self._place.confinement,
            estimates=Estimates(history=self.history),
        )

    def _verify(self, revision: Revision, state: RunState) -> dict[str, list[Any]]:
        """Return the commands that verified failed steps, by the facts that these were to provide."""
        root, _ = parse(revision.text, state.plan.file)
        assert root is not None  # it has been loaded
        found: dict[str, list[Any]] = {}
        for raw in Outline(root, state.plan.file, revision.text).steps:
            if raw.id in revision.failed and (node := raw.keys.get("verify")) is not None:
                data = to_data(node)
                for fact in state.steps[raw.id].step.provides:
                    found.setdefault(fact, []).extend(data if isinstance(data, list) else [data])
        return found

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
        self,
        state: RunState,
        steps: tuple[str, ...],
        banned: frozenset[str],
        offered: Sequence[Action],
        *,
        strict: bool,
    ) -> Problem:
        lost = {*steps, *state.replaced}
        done = frozenset([name for name, each in state.steps.items() if each.ended and name not in lost])
        classes = {name: str((state.steps[name].error or {}).get("class", "unknown")) for name in steps}
        situation = Situation(facts=facts_of(state), done=done, failed=steps, banned=banned, strict=strict)
        estimates = Estimates(history=self.history, classes=classes)
        return problem_of(state.plan, situation, estimates, offered)

    def _checked(self, draft: _Draft, state: RunState, revision: Revision) -> Result:
        try:
            plan = draft.plan(self._adoption)
        except InvalidPlan as error:
            problem = error.problems[0]
            fault = Fault(path="steps", rule=problem.code, message=problem.text)
            return Result(outcome="invalid", message=problem.text, faults=(fault,))
        except InvalidInput as error:
            return Result(outcome="invalid", message=str(error))
        bounds = self._bounds(state, revision).but(parts=draft.parts, checks=draft.checks, form=CANDIDATES)
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
        write_search(self._place.rundir, len(ended) + 1, record)

    def _text(self, state: RunState) -> bytes:
        from planrun.app.copies import stored_text

        return stored_text(self._place.rundir, state.named)


def _plain(action: Action) -> dict[str, Any]:
    """Return the facts of an action without those that the search itself needs."""
    return {
        name: frozenset(plain_facts(getattr(action, name))) for name in ("requires", "provides", "deletes")
    }


def _why_none(found: Found, headline_: str, banned: frozenset[str]) -> str:
    given = found.problem.start.union(*[action.provides for action in found.problem.actions])
    missing = plain_facts(found.problem.goal - given)
    denied = f"; a policy denies {', '.join(sorted(banned))}" if banned else ""
    if missing:
        return f"no step or part that is left provides {', '.join(missing)}{denied}"
    return f"{headline_}{denied}"


class _Draft:
    """The next version from the actions of a way: `new` are the ids of its new steps, `texts` their keys as data.

    `parts`: the texts of those that are parts of the plan; a model wrote the others.
    """

    def __init__(self, actions: Sequence[Action], revision: Revision, state: RunState, offer: Offer) -> None:
        self._revision = revision
        self._state = state
        root, _ = parse(revision.text, state.plan.file)
        assert root is not None  # it has been loaded
        written = {part.value["id"].value: to_data(part) for part in parts_of(root)} | dict(offer.keys)
        pending = set(revision.pending)
        self._actions = actions
        self._ids = [
            self._id(action.name) if action.name not in pending else action.name for action in actions
        ]
        chosen = [at for at, action in enumerate(actions) if action.name not in pending]
        self.new = tuple([self._ids[at] for at in chosen])
        self.part_of = {self._ids[at]: actions[at].name for at in chosen}
        self.texts: dict[str, dict[str, Any]] = {self._ids[at]: written[actions[at].name] for at in chosen}
        self.parts = {name: text for name, text in self.texts.items() if self.part_of[name] not in offer.keys}
        self.checks = {
            name: text["verify"]
            for name, text in self.texts.items()
            if name not in self.parts and "verify" in text
        }
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
        by_model = [name for name in self.new if name not in self.parts]
        kept |= dict.fromkeys(self._behind(plan, by_model), "replanned")
        return plan.but(
            steps=tuple([step.but(origin=kept[step.id]) if step.id in kept else step for step in plan.steps])
        )

    def _behind(self, plan: Plan, names: Sequence[str]) -> set[str]:
        """Return steps that a model wrote, and all that come after them and have not run."""
        found, waiting = set(names), graph.waits(plan.main())
        open_steps = {*self.new, *self._revision.pending} - {
            name for step in plan.steps for name in step.replaces
        }
        for name in graph.order(waiting) if found else ():
            if name in open_steps and not found.isdisjoint(waiting[name]):
                found.add(name)
        return found

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
