"""The questions of one agent to its model: built, paid for, sent, and their answers read."""

from __future__ import annotations

from planrun.agents import compacting, prompts
from planrun.agents.budgeting import OverrunError
from planrun.llm.entries import key_of
from planrun.llm.recordings import ReplayModel
from planrun.model import events as ev
from planrun.model.agenttools import SPECS, as_offer
from planrun.model.agenttypes import FINISH
from planrun.model.call import BOUND, Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from planrun.agents.loop import AgentRun
    from planrun.llm.budget import Held
    from planrun.model.call import Answer
    from planrun.ports import Model

_LATE = 6.0  # seconds that its process may be late with an answer
_PAUSE = 0.25  # seconds between two tries for budget that others hold
_LONGEST = 1000  # characters of a message
_MOST_GROWTH = 4  # times the first length of an answer
_LEAST_LONGEST = 16_000  # tokens of an answer, thoughts included
_BUSY = (
    "limited",
    "overloaded",
    "unavailable",
)  # ends of a call after which the same question is asked again
_BROKEN = ("connection:", "stream:")  # the same, as rules of answers that broke off
_PAUSE_BUSY = 2.0  # seconds before the first such question, twice as long before each other one


class Asking:
    """Asks a model for one agent, one question at a time."""

    def __init__(self, run: AgentRun) -> None:
        self._run = run
        self._model: Model | None = None
        self._request: tuple[Request, Held] | None = None  # under way
        self._aside: Callable[[Answer], None] | None = None  # takes its answer, when it is no turn
        self._call = 0
        self._growth = 1  # by which the longest answer grows while answers are cut off
        self._repeats = 0  # of the last question
        self._compacted_at: float | None = None  # on the monotonic clock
        self.not_before = 0.0  # on the monotonic clock; 0: now
        self.answer_by = (
            0.0  # when the process of the model is asked again, whether it reported something or not
        )
        self.usage = {"input": 0.0, "output": 0.0}

    @property
    def is_busy(self) -> bool:
        """Whether a question is under way."""
        return self._request is not None

    @property
    def fd(self) -> int:
        """A descriptor that can be read when the model has answered; -1: there is none."""
        return int(getattr(self._model, "fd", -1)) if self._request else -1

    def open(self) -> None:
        """Start the process of the model, which loads its libraries meanwhile; raises PlanrunError."""
        self._model = self._run.context.models.opened()

    def stop(self) -> None:
        """Stop the question that is under way."""
        if self._request and self._model:
            self._model.stop()

    def drop(self) -> None:
        """Give up the question that is under way: its cost counts as reserved."""
        self._request = None

    def close(self) -> None:
        """Leave no process of the model running."""
        if self._model is not None:
            self._model.close()
            self._model = None
        self._request = None

    def ask(self) -> bool:
        """Ask for the next turn, or end the agent; whether it goes on at once."""
        run = self._run
        last = run.transcript.messages[-1]
        if last["role"] == "assistant":  # it ended its answer without a call
            if run.transcript.reminded:
                return run.fail(
                    "incomplete", "the model ended without a call of `finish`, although it was reminded"
                )
            run.transcript.told(prompts.REMINDER)
        if run.turns >= run.agent["max_turns"]:
            return run.fail(
                "turns", f"all {run.agent['max_turns']} turns are used, and the agent has not finished"
            )
        self._compact()
        try:
            request, tokens = self._question()
            held = run.purse.reserve(request, run.stamp(), tokens)
        except OverrunError as over:
            return self._over(over)
        run.progressed(run.turns + 1)
        self._send(request, held)
        return False

    def _question(self) -> tuple[Request, int]:
        """Return the next question as the budget allows it, with its tokens; raises OverrunError."""
        run = self._run
        if not run.transcript.began:
            own = [name for name in run.offered if name not in run.servers.tools]
            offers = [as_offer(SPECS[name]) for name in (*own, FINISH)]
            offers += [run.servers.offer(name) for name in run.servers.tools]
            run.transcript.begin(prompts.system_of(run.agent), offers)
        llm = run.context.models.llm
        request = Request(
            purpose="agent",
            model=run.agent["model"],
            system=tuple(run.transcript.began["system"]),
            messages=tuple(run.transcript.messages),
            max_tokens=max(_LEAST_LONGEST, llm.plan_max_tokens) * self._growth,
            schema=None,  # as a recording has it
            effort=llm.effort,
            retries=llm.retries,
            tools=tuple(run.transcript.began["tools"]),
        )
        if llm.extra_body:
            request = request.but(extra_body=dict(llm.extra_body))
        known = run.transcript.tokens
        known_tokens = known + compacting.size_of(run.transcript.messages[-1:]) + 64 if known else 0
        return run.purse.fitting(request, known_tokens)

    def aside(self, request: Request, take: Callable[[Answer], None]) -> bool:
        """Ask the model something that is no turn of the conversation; whether the budget allows it."""
        run = self._run
        try:
            request, tokens = run.purse.fitting(request, 0)
            held = run.purse.whole.reserve(request, run.stamp(), tokens)
        except OverrunError:
            return False
        self._aside = take
        self._send(request, held)
        return True

    def _over(self, over: OverrunError) -> bool:
        run = self._run
        if over.waits:  # others hold what may come free
            self.not_before = run.context.clock.monotonic() + _PAUSE
            return False
        if over.crossed:
            run.recorder.emit(over.crossed)
        return run.fail("budget", str(over))

    def _send(self, request: Request, held: Held) -> None:
        run = self._run
        assert self._model is not None
        planning = run.recorder.state.planning
        self._call = len(planning.calls) + 1 if planning else 1
        run.emit(
            ev.ModelAsked,
            call=self._call,
            purpose="agent",
            model=request.model,
            request=key_of(request),
            reserved=held.recorded,
        )
        run.recorder.sync()  # before anything leaves this machine
        llm = run.context.models.llm
        sent = request.but(seconds=max(0.001, min(llm.timeout, run.seconds_left())))
        self._model.ask(sent if held.paid == request.paid else sent.but(paid=held.paid))
        self._request = (request, held)
        self.answer_by = run.context.clock.monotonic() + sent.seconds + _LATE

    def poll(self) -> bool:
        """Take the answer if there is one; whether there was."""
        run = self._run
        assert self._model is not None
        answer = self._model.wait(0)
        for repeat in self._model.repeats():
            run.emit(ev.ModelRepeated, call=self._call, **vars(repeat))
        if answer is None:
            return False
        self._answered(answer)
        return True

    def _answered(self, answer: Answer) -> None:
        run = self._run
        assert self._request is not None
        (request, held), self._request = self._request, None
        aside, self._aside = self._aside, None
        if answer.ending == "answered" and aside is None:
            run.transcript.said(list(answer.content), answer.usage.total)
        known = ("model", "request_id", "message", "rule", "is_estimate", "replayed")
        usage = run.purse.budget.usage(request, answer)
        answered = ev.ModelAnswered(
            at=run.stamp(),
            call=self._call,
            ending=answer.ending,
            usage=usage,
            duration=round(answer.duration, 3),
            attempts=answer.attempts,
            step=run.step.id,
            agent=run.agent["id"],
            **{name: value for name in known if (value := getattr(answer, name))},
        )
        run.recorder.emit(answered)
        self.usage["output"] += usage.get("output_tokens", 0)
        self.usage["input"] += sum(
            value for name, value in usage.items() if name not in ("usd", "output_tokens")
        )
        budget = run.purse.whole if aside else run.purse.budget
        for event in budget.settle(held, answered):
            run.recorder.emit(event)
        if aside:
            aside(answer)
        else:
            self._read(answer)

    def _read(self, answer: Answer) -> None:
        """Go on from an answer: it calls tools, it is only text, or it cannot be used."""
        run = self._run
        if answer.ending == "answered":
            self._growth, self._repeats = 1, 0
            text = " ".join(block["text"] for block in answer.content if block["type"] == "text")
            if text:
                run.say(f"> {' '.join(text.split())[:300]}")
        elif answer.stop_reason == "max_tokens" and self._growth < _MOST_GROWTH:
            self._growth *= 2  # a cut-off answer is never read
        elif self._repeats < run.context.models.llm.retries and (
            answer.ending in _BUSY or answer.rule.startswith(_BROKEN)
        ):
            self.not_before = run.context.clock.monotonic() + _PAUSE_BUSY * 2**self._repeats
            self._repeats += 1
            run.say(f"asks again: {answer.message}")
        elif answer.rule.startswith(BOUND) and run.transcript.shed():
            run.say("the service does not take thoughts of the model back; they are left out")
        elif not run.is_stopping:
            message = answer.message or answer.ending
            run.fail(
                "model", f"the model gave no answer that can be used: {message}"[:_LONGEST], answer.ending
            )

    def _compact(self) -> None:
        run = self._run
        before = run.transcript.tokens or compacting.size_of(run.transcript.messages)
        bound = run.context.models.llm.max_context_tokens or compacting.CONTEXT
        if before < compacting.BOUND * bound or not self._may_compact():
            return
        # The service counts other tokens than an estimate does: what is left out is a share.
        size = compacting.size_of(run.transcript.messages)
        goal = int(size * compacting.GOAL * bound / before)
        if count := run.transcript.compact(goal):
            self._compacted_at = run.context.clock.monotonic()
            after = int(before * compacting.size_of(run.transcript.messages) / max(size, 1))
            run.emit(ev.AgentCompacted, before=before, after=after, left_out=count)

    def _may_compact(self) -> bool:
        """Return whether the last compaction was long enough ago; a replay does what was done when it was recorded."""
        if self._compacted_at is None:
            return True
        if isinstance(self._model, ReplayModel):
            try:
                return not self._model.knows(self._question()[0])
            except OverrunError:
                return True
        return self._run.context.clock.monotonic() - self._compacted_at >= compacting.APART
