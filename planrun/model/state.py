"""The state of a run, as the fold of its events; the only writer is `RunState.apply`."""

from __future__ import annotations

from planrun.errors import (
    EXIT_DEADLINE,
    EXIT_DENIED,
    EXIT_FAILED,
    EXIT_OK,
    EXIT_RECORDS,
    EXIT_WAITING,
    InternalError,
)
from planrun.model import events as ev
from planrun.model.groups import answered, chain, unfold
from planrun.model.lifecycle import ENDED, move_plan, move_step, verdict
from planrun.model.planning import fold_planning
from planrun.model.progress import (
    AttemptState,
    RunValues,
    StepState,
    StepStates,
    StepValues,
    fold_gate,
    names_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from planrun.model.agents import AgentEvent, AgentState
    from planrun.model.collaboration import Noted
    from planrun.model.lifecycle import Tolerance, Verdict
    from planrun.model.plan import Plan, Step
    from planrun.model.planning import Planning, PlanningEvent
    from planrun.model.progress import Gate

_END_CODES = {"abort": EXIT_FAILED, "deadline": EXIT_DEADLINE, "records": EXIT_RECORDS}
_SIGTERM = 15  # the signal on record for a run that had no process when it was cancelled
SUMMARY = ("total", "completed", "failed", "skipped", "blocked", "cancelled")


class RunState:
    """A run and its steps; changed by `apply` alone, so that replaying a ledger gives the same state."""

    def __init__(self, plan: Plan, versions: Mapping[int, Plan] | None = None) -> None:
        self.plan = plan
        self.versions = versions or {plan.version: plan}  # every plan that an event may name
        self.undoing: dict[str, StepState] = {}  # what undoes steps, by its own id; `steps` finds it, too
        self.rollback: ev.RollbackStarted | None = None  # since the start or the last resume
        self.steps = self.states({step.id: StepState(step) for step in plan.steps})
        self.dropped: dict[str, StepState] = {}  # of steps that earlier versions of the plan had
        self.handlers, self.replaced = _handlers(plan)
        self.status = "draft"
        self.moves: list[tuple[str, str]] = []  # every status of the plan, with its time
        self.started: ev.RunStarted | None = None
        self.resumed: list[ev.RunResumed] = []
        self.rounds: list[ev.RoundStarted] = []  # by which the run went on by itself, since then
        self.options: Mapping[str, Any] = {}  # the caller's options at the start or the last resume
        self.began = False  # whether it ever started steps
        self.cut_short = False  # by a signal, since the start or the last resume
        self.ending: ev.RunEnding | None = None
        self.pausing = False  # asked to pause, or paused
        self.paused_by = ""  # while it is pausing or paused: pause, gates or budget
        self.paused_with = EXIT_WAITING  # the exit code, while it is paused
        self.gate: Gate | None = None  # of the plan as a whole
        self.answers: dict[
            str, Any
        ] = {}  # that the caller gave before anything was asked, by step: value, via
        self.planning: Planning | None = None  # None: no model was asked
        self.agents: dict[str, AgentState] = {}  # by id, in the order in which they started
        self.named: Mapping[str, Any] = {}  # what the ledger says of the current plan
        self.ended: ev.RunEnded | None = None
        self.noted: Noted | None = None  # what agents shared; None: nothing
        self.params: dict[str, Any] = {}
        self.events = 0

    def apply(self, event: ev.Event) -> None:
        """Fold one event; raises InternalError when it is not a legal next one."""
        self.events += 1
        _FOLDS[type(event)](self, event)

    def replay(self, events: Iterable[ev.Event]) -> RunState:
        """Fold all events and return the state itself."""
        for event in events:
            self.apply(event)
        return self

    def states(self, known: Mapping[str, StepState]) -> dict[str, StepState]:
        """Return what is known of the steps of the plan as `steps` has it: what undoes them is found in it, too."""
        found = StepStates(self.undoing)
        found.update(known)
        return found

    def of_section(self, section: str) -> list[Step]:
        """Return the steps of a section in their order; of `rollback` what undoes the steps that are undone now."""
        if section == "rollback":
            names = self.rollback.steps if self.rollback else ()
            if not names:
                return []
            from planrun.model.rollback import undo_ids  # few runs undo anything

            return [self.undoing[each].step for name in names for each in undo_ids(self, name)]
        return [step for step in self.plan.steps if step.section == section]

    def tolerance(self, step_id: str) -> Tolerance:
        """How the failure of a step is tolerated: by its `on_failure`, a handler that completed, or its group's."""
        found = self.tolerated_within(step_id)
        if found is None and self.steps[step_id].step.group and self.steps[step_id].reason != "denied":
            around = (self.tolerated_within(name) for name in chain(self, step_id))
            return next((each for each in around if each is not None), None)
        return found

    def tolerated_within(self, step_id: str) -> Tolerance:
        """How the failure of a step is tolerated without regard to the group that it is a member of."""
        state = self.steps[step_id]
        if state.status != "failed" or state.reason == "denied":
            return None
        if state.on_failure == "continue" or any(map(self._is_done, self.handlers.get(step_id, ()))):
            return "continue"
        if state.reason == "members" and state.step.on_failure == "ask":
            return answered(self, state.step)
        return "skip" if state.on_failure == "skip" else None

    def _is_done(self, name: str) -> bool:
        """Whether a step completed, or failed while what took its place did, maybe at the third try."""
        status = self.steps[name].status
        again = status == "failed" and name in self.replaced
        return status == "completed" or (again and any(map(self._is_done, self.handlers[name])))

    def outputs_of(self, name: str) -> dict[str, Any]:
        """The outputs of a step; those of a replaced one are written by what took its place."""
        found = dict(self.steps[name].outputs)
        for other in self.handlers.get(name, ()) if name in self.replaced else ():
            found |= self.outputs_of(other)
        return found

    def scope(self, fixed: Mapping[str, Any], step: Step | None = None) -> dict[str, Any]:
        """The names an expression of a step can read; `fixed` holds what does not change in a run: env, run, step."""
        if step is not None and step.undoes:
            from planrun.model.rollback import names_of_undo

            return names_of_undo(self, step, fixed)
        if step is not None and step.section == "finally":
            fixed = {**fixed, "run": RunValues(self, fixed["run"])}
        if step is not None and (step.group or step.matrix or step.item):
            return {**fixed, **names_of(self, step)}
        return {"params": self.params, "steps": StepValues(self), **fixed}

    def verdict(self, section: str = "") -> Verdict:
        """The current verdict over every step, or over those of a section; a group speaks for its members."""
        why = self.ending.why if self.ending else None
        ends = (
            (state.status, self.tolerated_within(name))
            for name, state in self.steps.items()
            if not state.step.group and section in ("", state.step.section)
        )
        return verdict(ends, why)

    def exit_code(self, verdict: str, *, strict: bool, fail_on_flaky: bool) -> int:
        """The exit code that belongs to a verdict and to what ended the run early."""
        denies = self.planning.denies(self) if self.planning else False
        if denies or any(step.reason == "denied" for step in self.steps.values()):
            return EXIT_DENIED
        if self.ending is not None:
            why = self.ending.why
            return 128 + (self.ending.signal or _SIGTERM) if why == "cancel" else _END_CODES[why]
        flaky = fail_on_flaky and any(step.flaky for step in self.steps.values())
        if verdict == "failed" or (verdict == "partial" and (strict or self.unproven())) or flaky:
            return EXIT_FAILED
        return EXIT_OK

    def unproven(self) -> list[str]:
        """The failed steps in whose place a model's ran, if no reviewed step that waits for these completed or may."""
        if not self.replaced or self.planning is None:
            return []
        from planrun.model import graph  # few runs have steps of a model

        first = {step.id for step in self.versions[min(self.versions)].steps}
        waits = graph.waits(self.plan.main())
        behind: dict[str, set[str]] = {}
        for name in graph.order(waits):
            behind[name] = {*waits[name]}.union(*[behind[other] for other in waits[name]])
        proofs = [
            name
            for name in behind
            if name in first and (self.steps[name].status == "completed" or not self.steps[name].ended)
        ]
        found = []
        for name in self.replaced:
            new = [self.steps[other] for other in self.handlers[name] if other not in first]
            # The probe of a service stands under `verify`, and a model may write it.
            written = [
                state
                for state in new
                if state.step.origin == "replanned" and (state.step.service or not state.step.verify)
            ]
            if (
                self.steps[name].status != "failed"
                or self.steps[name].on_failure == "continue"
                or not written
            ):
                continue
            if not any(state.step.id in behind[proof] for state in written for proof in proofs):
                found.append(name)
        return found

    @property
    def exit_status(self) -> int | None:
        """The exit code of planrun; None during the run and after a kill.

        A paused run has 5, or that of its failure; one whose plan needs an approval has 5.
        """
        if self.ended is not None:
            return self.ended.exit_code
        if self.status == "paused":
            return self.paused_with
        asked = self.status == "awaiting_approval" and self.gate is not None and self.gate.opened is not None
        return EXIT_WAITING if asked else None

    @property
    def settled(self) -> Verdict | None:
        """The verdict once nothing can change it: of a run that ended, or that failed and waits for approvals."""
        if self.ended is not None:
            return self.ended.verdict  # type: ignore[return-value]  # as it was recorded
        return self.verdict() if self.status == "paused" and self.paused_with != EXIT_WAITING else None

    def exit_code_at_gates(self, *, strict: bool, fail_on_flaky: bool) -> int:
        """The exit code of a run that waits for responses alone: 5, unless it failed already."""
        if any(self._may_recover(name) for name in self.steps):
            return EXIT_WAITING
        return self.exit_code(self.verdict(), strict=strict, fail_on_flaky=fail_on_flaky) or EXIT_WAITING

    def _may_recover(self, name: str) -> bool:
        """Whether a step failed and a step that recovers it has not ended."""
        handlers = self.handlers.get(name, ()) if self.steps[name].status == "failed" else ()
        return self.tolerance(name) is None and any(not self.steps[each].ended for each in handlers)

    def summary(self) -> dict[str, int]:
        """How many steps ended how; the parts add up to `total` once every step has ended."""
        counts = dict.fromkeys(SUMMARY, 0)
        for state in self.counted():
            counts["total"] += 1
            if state.status in counts:
                counts[state.status] += 1
        return counts

    def counted(self) -> list[StepState]:
        """The steps that people count: members and no groups, except those that ended without members."""
        return [
            state
            for state in self.steps.values()
            if state.step.kind != "group" or (state.ended and not state.step.grouping.members)
        ]

    # Folds. Each is called by `apply` alone.

    def _run_started(self, event: ev.RunStarted) -> None:
        self.started = event
        self.options = event.options
        self.answers = dict(event.options.get("answers", ()))
        self.params = event.params
        self._note(event.at)
        self._bind(event.plan)

    def _run_resumed(self, event: ev.RunResumed) -> None:
        if self.status == "completed" and not event.rerun:
            raise InternalError("a completed run cannot be resumed")
        is_over = self.ended is not None
        # A paused run continues by a transition of its own; one that was killed before its approval still needs it.
        if self.status != "paused":
            self.status = "awaiting_approval" if self.status in ("draft", "awaiting_approval") else "approved"
        self._note(event.at)
        self.resumed.append(event)
        self.rounds = []
        self.options = event.options
        self.params = event.params
        if not event.finishes:
            self.ending, self.rollback, self.cut_short = None, None, False
        if self.planning:
            self._planned(event)
        self._go_on(event)
        if event.plan.get("digest", self.plan.digest) != self.plan.digest:
            self.status = "awaiting_approval"  # what was approved is another plan
        self.revise(event.plan)
        for name in event.rerun:
            self.steps[name].reset(is_lost=name in event.lost)
            if is_over or name in event.retry:
                self.answers.pop(name, None)
        for name, step in self.steps.items() if event.retry else ():
            if step.step.action.is_agent and not {name, *chain(self, name)}.isdisjoint(event.retry):
                step.begin_anew()
        self.answers.update(event.options.get("answers", ()))
        self.ask_anew()

    def _round_started(self, event: ev.RoundStarted) -> None:
        self.rounds.append(event)
        if self.ending is not None and self.ending.why == "abort":
            self.ending = None
        for name in event.rerun:
            self.steps[name].reset(is_round=True)

    def _cleanup_resumed(self, event: ev.CleanupResumed) -> None:
        """Start the pending cleanup; the recorded cause of the end stays."""
        self.status = "approved"
        self._note(event.at)
        self.options = event.options
        self._go_on(event)
        for name in event.rerun:
            self.steps[name].reset(is_lost=name in event.lost)

    def _go_on(self, event: ev.RunResumed | ev.CleanupResumed) -> None:
        """Note that a run continues, and that the ends of its last attempts are unknown."""
        self.ended = None
        self.pausing, self.paused_by = False, ""
        for name in event.lost:
            attempt = self.steps[name].attempts[-1]
            attempt.ended = ev.AttemptEnded(
                at=event.at, step=name, n=attempt.n, status="lost", step_status="pending", reason="lost"
            )

    def _rollback_started(self, event: ev.RollbackStarted) -> None:
        from planrun.model.rollback import take_up  # few runs undo anything

        take_up(self, event.steps)
        self.rollback = event

    def ask_anew(self) -> None:
        """Evaluate the gates of waiting steps again; an open question stands if it still applies."""
        for step in self.steps.values():
            if step.at_gate and step.after is None:
                step.status = "pending"

    def revise(self, named: Mapping[str, Any]) -> None:
        """Continue with the plan that an event names; approvals of another one are dropped."""
        version = named.get("version", self.plan.version)
        if version != self.plan.version:
            self.go_over(version)
        elif named.get("digest", self.plan.digest) != self.plan.digest:
            self._forget_approvals()
        self._bind(named)

    def go_over(self, version: int) -> None:
        """Switch to another version of the plan; the state of a step stays with its id."""
        if version not in self.versions:
            raise InternalError(f"version {version} of the plan is not at hand")
        self.plan = self.versions[version]
        opened = [found.opened for found in self.steps.values() if found.opened and found.opened.items]
        known, back = {**self.dropped, **self.steps}, self.dropped
        self.steps = self.states({})
        for step in self.plan.steps:
            found = known.pop(step.id, None) or StepState(step)
            found.step = step
            if step.id in back:
                found.reset()  # what it was about may have changed since
            self.steps[step.id] = found
        self.dropped = known
        for event in opened:
            self._open_again(event)
        self.handlers, self.replaced = _handlers(self.plan)
        self._forget_approvals()

    def _open_again(self, event: ev.StepOpened) -> None:
        """Give a group of another version of the plan the members that it had, as far as it is still such a group."""
        found = self.steps.get(event.step)
        if found and found.step.kind == "group" and found.step.grouping.template:
            plan = unfold(self.plan, found.step, event.items)
            self.steps |= {
                step.id: self.dropped.pop(step.id) for step in plan.steps if step.id in self.dropped
            }
            self._take_up(plan)

    def _forget_approvals(self) -> None:
        """Drop approvals that were given for another version of the plan or for other scripts."""
        self.gate = None
        for step in self.steps.values():
            if not step.ended:
                step.gate = None

    def _bind(self, named: Mapping[str, Any]) -> None:
        """Have the plan name the digest of all that was reviewed with it: parameters and scripts, too."""
        self.named = named
        digest = named.get("digest", self.plan.digest)
        if digest != self.plan.digest:
            self.plan = self.plan.but(digest=digest)

    def _plan_moved(self, event: ev.PlanMoved) -> None:
        self.status = move_plan(self.status, event.status)
        self._note(event.at)
        self.began = self.began or self.status == "executing"
        self.paused_with = event.exit_code

    def _attempt_started(self, event: ev.AttemptStarted) -> None:
        state = self.steps[event.step]
        state.status = move_step(event.step, state.status, "running")
        state.attempts.append(AttemptState(event))
        state.after = None
        if state.step.undoes:
            self.steps[state.step.undoes].undone = "running"

    def _attempt_ended(self, event: ev.AttemptEnded) -> None:
        state = self.steps[event.step]
        state.status = move_step(event.step, state.status, event.step_status)
        state.reason = event.step_reason or event.reason
        state.attempts[-1].ended = event
        state.opened = None
        if (event.patch or event.proposed) and state.status == "waiting":
            state.gate = None  # an approval from before the patch or the plan is none of it
        if state.status in ENDED:
            state.ended_at = event.at
            state.outputs = event.outputs
            if state.step.undoes:
                name = state.step.undoes
                parts = [found for found in self.undoing.values() if found.step.undoes == name]
                if all(found.ended for found in parts):
                    done = all(found.status == "completed" for found in parts)
                    self.steps[name].undone = "completed" if done else "failed"

    def _step_moved(self, event: ev.StepMoved) -> None:
        state = self.steps[event.step]
        state.status = move_step(event.step, state.status, event.status)
        state.reason = event.reason
        state.message = event.message
        state.rule = event.rule
        if state.ended:
            state.ended_at = event.at
            state.outputs = event.outputs

    def _step_held(self, event: ev.StepHeld) -> None:
        self.steps[event.step].held = event.message

    def _step_opened(self, event: ev.StepOpened) -> None:
        state = self.steps[event.step]
        if state.step.kind == "group":
            state.status = move_step(event.step, state.status, "running")
            if state.step.grouping.template:  # the action of a group
                self._take_up(unfold(self.plan, state.step, event.items))
        state.opened = event

    def _step_restored(self, event: ev.StepRestored) -> None:
        state = self.steps[event.step]
        state.status = move_step(event.step, state.status, "completed")
        state.reason, state.restored = "cached", event
        state.ended_at, state.outputs = event.at, event.outputs

    def _take_up(self, plan: Plan) -> None:
        """Continue with the same plan in which a group has other members; the state of a step stays with its id."""
        self.plan = plan
        known = self.steps
        self.steps = self.states({})
        for step in plan.steps:
            found = self.steps[step.id] = known.get(step.id) or StepState(step)
            found.step = step

    def _gate(self, event: ev.GateOpened | ev.GateAnswered) -> None:
        fold_gate(self, event)

    def _agent_noted(self, event: ev.AgentNoted) -> None:
        from planrun.model.collaboration import Noted  # few runs have agents

        self.noted = self.noted or Noted()
        self.noted.apply(event)

    def _planned(self, event: PlanningEvent | ev.RunResumed) -> None:
        fold_planning(self, event)

    def _by_agent(self, event: AgentEvent) -> None:
        from planrun.model.agents import fold_agent  # few runs have agents

        fold_agent(self, event)

    def _run_ending(self, event: ev.RunEnding) -> None:
        self.pausing = event.why in ("pause", "gates", "budget")
        self.paused_by = event.why if self.pausing else ""
        self.cut_short = self.cut_short or event.why == "cancel"
        if not self.pausing:
            # A second cause (a signal during an abort) does not change why the run ended.
            self.ending = self.ending or event

    def _run_ended(self, event: ev.RunEnded) -> None:
        self.status = move_plan(self.status, event.status)
        self._note(event.at)
        self.ended = event

    def _note(self, at: str) -> None:
        """Keep the status that the plan has since `at`."""
        if not self.moves or self.moves[-1][0] != self.status:
            self.moves.append((self.status, at))


def _handlers(plan: Plan) -> tuple[dict[str, tuple[str, ...]], frozenset[str]]:
    """Return which steps recover each step, or take its place; and those whose place is taken."""
    found: dict[str, tuple[str, ...]] = {}
    for step in plan.steps:
        for failed in (*step.recovers, *step.replaces):
            found[failed] = (*found.get(failed, ()), step.id)
    return found, frozenset([name for step in plan.steps for name in step.replaces] if found else ())


_FOLDS: dict[type[ev.Event], Any] = {
    ev.RunStarted: RunState._run_started,
    ev.RunResumed: RunState._run_resumed,
    ev.PlanMoved: RunState._plan_moved,
    ev.AttemptStarted: RunState._attempt_started,
    ev.AttemptEnded: RunState._attempt_ended,
    ev.StepHeld: RunState._step_held,
    ev.StepMoved: RunState._step_moved,
    ev.StepOpened: RunState._step_opened,
    ev.StepRestored: RunState._step_restored,
    ev.RollbackStarted: RunState._rollback_started,
    ev.RoundStarted: RunState._round_started,
    ev.CleanupResumed: RunState._cleanup_resumed,
    ev.GateOpened: RunState._gate,
    ev.GateAnswered: RunState._gate,
    ev.AgentNoted: RunState._agent_noted,
    ev.PlanningStarted: RunState._planned,
    ev.ModelAsked: RunState._planned,
    ev.ModelRepeated: RunState._planned,
    ev.ModelAnswered: RunState._planned,
    ev.BudgetCrossed: RunState._planned,
    ev.PlanningEnded: RunState._planned,
    ev.AgentStarted: RunState._by_agent,
    ev.AgentProgressed: RunState._by_agent,
    ev.ToolCalled: RunState._by_agent,
    ev.ToolReturned: RunState._by_agent,
    ev.AgentCompacted: RunState._by_agent,
    ev.AgentEnded: RunState._by_agent,
    ev.RunEnding: RunState._run_ending,
    ev.RunEnded: RunState._run_ended,
}
