"""The loop of one agent: ask the model, run the tools that it calls, and so on until it finishes or has to end.

It is a state machine that `planrun.agents.executor` advances: nothing in it waits. The model is a process that is
polled, a tool is a job of the executor.
"""

from __future__ import annotations

import os

from planrun.agents import compacting, prompts
from planrun.agents.budgeting import OverrunError, Purse
from planrun.agents.calls import Calls
from planrun.agents.ending import Ending
from planrun.agents.transcript import Transcript
from planrun.errors import PlanrunError
from planrun.llm.entries import key_of
from planrun.model import events as ev
from planrun.model.agenttools import MAX_RESULT, SPECS, as_offer
from planrun.model.agenttypes import FINISH, NOT_OFFERED
from planrun.model.call import Request
from planrun.model.job import Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.agents.context import AgentContext, Processes, Recorder
    from planrun.agents.executor import AttemptLog
    from planrun.agents.judging import Verdict
    from planrun.llm.budget import Budget, Held
    from planrun.model.call import Answer
    from planrun.model.job import Job
    from planrun.model.plan import Step
    from planrun.ports import Model

STOP_TIMEOUT = 3.0
"""Seconds that a stopped call to a model has to end."""
_LATE = 6.0  # seconds that its process may be late with an answer
_POLL = 0.05  # seconds, where no descriptor reports an answer
_PAUSE = 0.25  # seconds between two tries for budget that others hold
_LONGEST = 1000  # characters of a message
_LEAST_RESULT = 2048  # bytes of one result
_TRANSIENT = ("late", "limited", "overloaded", "unavailable")  # ends of a call after which a retry may help


class AgentRun:
    """One agent at work for one attempt of a step."""

    def __init__(
        self, job: Job, context: AgentContext, recorder: Recorder, processes: Processes, log: AttemptLog
    ) -> None:
        self.job = job
        models = context.models
        model = models.override or job.agent["model"] or models.llm.model
        self.agent: dict[str, Any] = {**job.agent, "model": model}
        self.context = context
        self.recorder = recorder
        self.step: Step = recorder.state.steps[job.step].step
        self._processes = processes
        self._log = log
        self.outcome: Outcome | None = None
        self.is_stopping = False
        self._stop_reason = ""
        self._stop_by = 0.0
        self.began = context.clock.monotonic()
        self._deadline = self.began + job.timeout
        self._number = 0
        folder = os.path.join(context.place.rundir, "agents", self.step.folder or self.step.id)
        self.transcript_path = os.path.join(folder, f"{self.agent['session']}.jsonl")
        verify = tuple([" ".join(action.written().split("\n")) for action in self.step.verify])
        self.transcript = Transcript(self.transcript_path, prompts.task_of(self.agent, verify))
        self._system = prompts.system_of(self.agent)
        self._calls = Calls(self)
        self._ending: Ending | None = None  # it has finished, and its patch is made
        self._model: Model | None = None
        self._purse: Purse | None = None
        self._request: tuple[Request, Held] | None = None  # under way
        self._call = 0
        self._answer_by = 0.0  # when the process of the model is asked again, even if it reported nothing
        self._copying = False
        self._grown = False  # the longest answer was doubled once
        self._cuts = 0  # answers that were cut off in a row
        self._compacted_at = -compacting.APART
        self._not_before = 0.0
        self._usage = {"input": 0.0, "output": 0.0}

    # What it has.

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools that the model is offered now, `finish` left out."""
        return tuple(
            [name for name in (*self.agent["tools"], *self.transcript.granted) if name not in NOT_OFFERED]
        )

    @property
    def grantable(self) -> tuple[str, ...]:
        """The tools that it may still ask for."""
        return tuple(
            [name for name in self.agent["grantable"] if name not in self.tools and name not in NOT_OFFERED]
        )

    @property
    def variables(self) -> dict[str, str]:
        """What its commands get besides the environment of the step."""
        copy = self.agent["copy"]
        hidden = ":".join([*self.context.place.hidden, *self.context.models.hidden])
        found = {"GIT_CEILING_DIRECTORIES": os.path.dirname(self.job.cwd)} if copy else {}
        return {**found, "PLANRUN_AGENT_HIDDEN": hidden, **({"PLANRUN_AGENT_BASE": copy} if copy else {})}

    @property
    def fd(self) -> int:
        """A descriptor that can be read when the model has answered; -1: there is none."""
        return int(getattr(self._model, "fd", -1)) if self._request else -1

    @property
    def jobs(self) -> tuple[str, ...]:
        """The names of its processes."""
        own = (f"{self.step.id}:copy",) if self._copying else ()
        return (*own, *self._calls.running, *(self._ending.running if self._ending else ()))

    def wake(self) -> float:
        """Return when it has something to do, on the monotonic clock, if nothing happens before."""
        due = [self._deadline]
        if self.is_stopping:
            due.append(self._stop_by)
        if self._request:
            due.append(self.context.clock.monotonic() + _POLL if self.fd < 0 else self._answer_by)
        if self._not_before:
            due.append(self._not_before)
        return min(due)

    def seconds_left(self) -> float:
        """Return the seconds until the attempt has to end."""
        return self._deadline - self.context.clock.monotonic()

    @property
    def result_limit(self) -> int:
        """The bytes of one result: no more than a quarter of the tokens that the agent has left."""
        assert self._purse is not None
        left = self._purse.limits["tokens"] - self._purse.budget.account.used("tokens")
        return int(min(MAX_RESULT, max(_LEAST_RESULT, left / 4 * compacting.BYTES_A_TOKEN)))

    def next_number(self) -> int:
        """Return the number of the next process."""
        self._number += 1
        return self._number

    # What it does.

    def begin(self, budget: Budget) -> None:
        """Start the work, or go on with that of an earlier process."""
        agent, state = self.agent, self.recorder.state
        before = [call for call in _calls_of(state, self.step.id) if call.asked.agent in agent["earlier"]]
        crossed = [event for event in _crossed(state) if event.step == self.step.id] if before else []
        self._purse = Purse(agent, budget, before, crossed)
        if agent["continues"]:
            self.transcript.load()
            self._number = sum(
                len(found.tools) for name in agent["earlier"] if (found := state.agents.get(name))
            )
        self.emit(
            ev.AgentStarted,
            n=self.job.attempt,
            agent_type=agent["type"],
            model=agent["model"],
            tools=self.tools,
            budget=self._purse.limits,
            workspace=agent["workspace"],
            **{name: agent[name] for name in ("mode", "continues") if agent[name]},
        )
        mode = f", mode {agent['mode']}" if agent["mode"] else ""
        self.say(f"agent {agent['type']}{mode}: {', '.join(self.tools)}")
        try:
            self._model = self.context.models.opened()  # it loads its libraries while the copy is made
        except PlanrunError as error:
            self.fail("model", f"no model can be asked: {error}")
            return
        if agent["copy"] and not agent["continues"]:
            self._copying = True
            self._start_own("copy", "copies.make", {"folder": agent["copy"]}, self.context.place.workspace)
        elif agent["continues"]:
            self._recover()

    def _recover(self) -> None:
        """Settle the calls of an earlier process whose ends are not known."""
        calls, known = {call["id"]: call for call in self.transcript.calls}, self.transcript.results
        for name in self.agent["earlier"]:
            found = self.recorder.state.agents.get(name)
            for tool in list(found.tools) if found else ():
                called = tool.called
                if tool.returned is not None:
                    continue
                if called.call in known:  # planrun was killed before it recorded the end
                    self._calls.kept(called, failed=known[called.call]["failed"])
                elif called.effects and called.call in calls:
                    self._calls.unknown(called, calls[called.call])

    def advance(self) -> None:
        """Do what can be done without waiting."""
        while self.outcome is None and self._step_once():
            pass

    def _step_once(self) -> bool:
        """Make one move; whether another one may follow at once."""
        now = self.context.clock.monotonic()
        if now >= self._deadline and not self.is_stopping:
            self.stop("timeout")
        if self.is_stopping:
            return self._wind_up(now)
        if self._copying or (self._ending and self._ending.running) or now < self._not_before:
            return False
        self._not_before = 0.0
        if self._request:
            return self._poll()
        if self.transcript.calls:
            if not self._calls.advance():
                return False
            return self._finish_or_go_on()
        return self._ask()

    def _finish_or_go_on(self) -> bool:
        found = [call for call in self.transcript.calls if call["name"] == FINISH]
        if not found:
            self.transcript.close_turn()
            return True
        call = found[-1]
        self._ending = self._ending or Ending(self)
        return self._ending.finish(call)

    # The model.

    def _ask(self) -> bool:
        last = self.transcript.messages[-1]
        if last["role"] == "assistant":  # it ended its answer without a call
            if self.transcript.reminded:
                return self.fail(
                    "incomplete", "the model ended without a call of `finish`, although it was reminded"
                )
            self.transcript.told(prompts.REMINDER)
        assert self._purse is not None
        if self.transcript.turns >= self.agent["max_turns"]:
            return self.fail(
                "turns", f"all {self.agent['max_turns']} turns are used, and the agent has not finished"
            )
        self._compact()
        offers = tuple([as_offer(SPECS[name]) for name in (*self.tools, FINISH)])
        llm = self.context.models.llm
        request = Request(
            purpose="agent",
            model=self.agent["model"],
            system=self._system,
            messages=tuple(self.transcript.messages),
            max_tokens=llm.plan_max_tokens * (2 if self._grown else 1),
            schema=None,  # as a recording has it
            effort=llm.effort,
            retries=llm.retries,
            tools=offers,
        )
        if llm.extra_body:
            request = request.but(extra_body=dict(llm.extra_body))
        try:
            request, tokens = self._purse.fitting(request, self._known_tokens())
            held = self._purse.reserve(request, self.stamp(), tokens)
        except OverrunError as over:
            return self._over(over)
        self._send(request, held)
        return False

    def _known_tokens(self) -> int:
        """Return the tokens of the next question from what the service counted; 0 before the first answer."""
        known = self.transcript.tokens
        return known + compacting.size_of(self.transcript.messages[-1:]) + 64 if known else 0

    def _over(self, over: OverrunError) -> bool:
        if over.waits:  # others hold what may come free
            self._not_before = self.context.clock.monotonic() + _PAUSE
            return False
        if over.crossed:
            self.recorder.emit(over.crossed)
        return self.fail("budget", str(over))

    def _send(self, request: Request, held: Held) -> None:
        assert self._model is not None
        assert self._purse is not None
        turn = self.transcript.turns + 1
        self._progressed(turn)
        planning = self.recorder.state.planning
        self._call = len(planning.calls) + 1 if planning else 1
        self.emit(
            ev.ModelAsked,
            call=self._call,
            purpose="agent",
            model=request.model,
            request=key_of(request),
            reserved=held.recorded,
        )
        self.recorder.sync()  # before anything leaves this machine
        llm = self.context.models.llm
        sent = request.but(seconds=max(0.001, min(llm.timeout, self.seconds_left())))
        self._model.ask(sent if held.paid == request.paid else sent.but(paid=held.paid))
        self._request = (request, held)
        self._answer_by = self.context.clock.monotonic() + sent.seconds + _LATE

    def _poll(self) -> bool:
        assert self._model is not None
        answer = self._model.wait(0)
        for repeat in self._model.repeats():
            self.emit(ev.ModelRepeated, call=self._call, **vars(repeat))
        if answer is None:
            return False
        self._answered(answer)
        return True

    def _answered(self, answer: Answer) -> None:
        assert self._request is not None
        assert self._purse is not None
        (request, held), self._request = self._request, None
        if answer.ending == "answered":
            self.transcript.said(list(answer.content), answer.usage.total)
        known = ("model", "request_id", "message", "rule", "is_estimate", "replayed")
        usage = self._purse.budget.usage(request, answer)
        answered = ev.ModelAnswered(
            at=self.stamp(),
            call=self._call,
            ending=answer.ending,
            usage=usage,
            duration=round(answer.duration, 3),
            attempts=answer.attempts,
            step=self.step.id,
            agent=self.agent["id"],
            **{name: value for name in known if (value := getattr(answer, name))},
        )
        self.recorder.emit(answered)
        self._usage["output"] += usage.get("output_tokens", 0)
        self._usage["input"] += sum(
            value for name, value in usage.items() if name not in ("usd", "output_tokens")
        )
        for event in self._purse.budget.settle(held, answered):
            self.recorder.emit(event)
        self._read(answer)

    def _read(self, answer: Answer) -> None:
        """Go on from an answer: it calls tools, it is only text, or it cannot be used."""
        if answer.ending == "answered":
            self._grown, self._cuts = False, 0
            text = " ".join(block["text"] for block in answer.content if block["type"] == "text")
            if text:
                self.say(f"> {' '.join(text.split())[:300]}")
        elif answer.ending == "truncated" and answer.stop_reason == "max_tokens" and not self._cuts:
            self._grown, self._cuts = True, 1  # a cut-off answer is never read
        elif not self.is_stopping:
            message = answer.message or answer.ending
            self.fail(
                "model", f"the model gave no answer that can be used: {message}"[:_LONGEST], answer.ending
            )

    def _compact(self) -> None:
        before = self.transcript.tokens or compacting.size_of(self.transcript.messages)
        bound = compacting.CONTEXT
        turn = self.transcript.turns
        if before < compacting.BOUND * bound or turn - self._compacted_at < compacting.APART:
            return
        # The service counts other tokens than an estimate does: what is left out is a share.
        goal = int(compacting.size_of(self.transcript.messages) * compacting.GOAL * bound / before)
        messages, count = compacting.compacted(self.transcript.messages, goal)
        if not count:
            return
        self._compacted_at = turn
        self.transcript.messages = messages
        self.transcript.tokens = 0
        self.emit(ev.AgentCompacted, before=before, after=compacting.size_of(messages), left_out=count)

    # Processes.

    def start(self, job: Job) -> None:
        """Start a process."""
        self._processes.start(job)

    def _start_own(self, name: str, tool: str, args: dict[str, Any], cwd: str) -> None:
        from planrun.actions.tool import process_of

        folder = os.path.dirname(self.transcript_path)
        base = os.path.join(folder, f"{self.agent['session']}.{name}")
        job = self.job.but(
            step=f"{self.step.id}:{name}",
            argv=process_of({"name": tool, "args": args}, f"{base}.args"),
            cwd=cwd,
            env={**self.job.env, **self.variables, "PLANRUN_WORKSPACE": cwd, "PLANRUN_OUTPUT": ""},
            log=f"{base}.log",
            timeout=max(1.0, self.seconds_left()),
            agent={},
            following=(),
            may_omit_shell=False,
        )
        self._processes.start(job)

    def make_patch(self, out: str) -> None:
        """Start the process that makes the patch."""
        args = {"folder": self.agent["copy"], "out": out}
        self._start_own("patch", "copies.patch", args, self.context.place.workspace)

    def job_ended(self, job: Job, outcome: Outcome) -> None:
        """Take the end of one of its processes."""
        if job.step == f"{self.step.id}:copy":
            self._copying = False
            if outcome.status != "completed" and not self.is_stopping:
                self.fail("copy", f"the workspace cannot be copied: {self.last_line(job) or outcome.message}")
        elif self._ending and job.step in self._ending.running:
            self._ending.made(job, outcome)
        else:
            self._calls.ended(job, outcome)

    def last_line(self, job: Job) -> str:
        """Return the last line that a process printed."""
        try:
            with open(job.log, encoding="utf-8", errors="replace") as file:
                return file.read().strip().rpartition("\n")[2][:_LONGEST]
        except OSError:
            return ""

    def judge(self, call: dict[str, Any], job: Job) -> Verdict:
        """Return what the policies decide about a call."""
        on_copy = self.agent["workspace"] == "copy"
        return self.context.judge.verdict(self.step, call, job, on_copy=on_copy)

    # The end.

    def stop(self, reason: str) -> None:
        """End the work: `cancelled`, or `timeout` when its time is over."""
        if self.is_stopping:
            return
        self.is_stopping, self._stop_reason = True, reason
        self._stop_by = self.context.clock.monotonic() + STOP_TIMEOUT
        if self._request and self._model:
            self._model.stop()
        for name in self.jobs:
            self._processes.stop(name, "cancelled")

    def _wind_up(self, now: float) -> bool:
        if self._request:
            if now < self._stop_by:
                return self._poll()
            self._request = None  # its cost counts as reserved
        if self.jobs:
            return False
        if self._stop_reason == "timeout":
            return self.fail("timeout", f"the agent did not finish within {self.job.timeout:g} s")
        return self.end(Outcome(status="cancelled", reason="cancelled"))

    def fail(self, reason: str, message: str, detail: str = "") -> bool:
        """End as failed."""
        outcome = Outcome(status="failed", reason=reason, message=message)
        return self.end(outcome.but(passing=True) if detail in _TRANSIENT else outcome)

    def end(self, outcome: Outcome, summary: str = "", evidence: tuple[str, ...] = ()) -> bool:
        """End with an outcome; nothing of it runs any more."""
        duration = self.context.clock.monotonic() - self.began
        message = {"message": outcome.message} if outcome.message else {}
        self.emit(
            ev.AgentEnded,
            status=outcome.status,
            reason=outcome.reason,
            summary=summary,
            evidence=evidence,
            stats=self._stats(duration),
            **message,
        )
        if outcome.status != "completed":
            self.say(f"{outcome.status}: {outcome.message or outcome.reason}")
        size, digest = self._log.close()
        logged = {"log_bytes": size, "log_sha256": digest} if size else {}
        self.outcome = outcome.but(duration=duration, **logged)
        self.close()
        return False

    def _stats(self, duration: float) -> dict[str, float]:
        tools = self.recorder.state.agents[self.agent["id"]].tools
        statuses = [tool.status for tool in tools]
        return {
            "prompt_tokens": int(self._usage["input"]),
            "completion_tokens": int(self._usage["output"]),
            "tool_calls": len(statuses),
            "tool_successes": statuses.count("done"),
            "tool_failures": len(statuses) - statuses.count("done"),
            "duration_seconds": round(duration, 3),
        }

    def close(self) -> None:
        """Leave no process of the model running."""
        if self._model is not None:
            self._model.close()
            self._model = None
        self._request = None

    # Records.

    def stamp(self) -> str:
        """Return the time for an event."""
        return self.context.clock.stamp()

    def emit(self, event: type[Any], /, **fields: Any) -> None:
        """Record an event of this agent."""
        own = {"step": self.step.id, "agent": self.agent["id"]}
        self.recorder.emit(event(at=self.stamp(), **{**own, **fields}))

    def progress(self, message: str, percent: int) -> None:
        """Record how far the agent says that it is."""
        turn = self.transcript.turns
        self.emit(
            ev.AgentProgressed,
            turn=turn,
            turns=self.agent["max_turns"],
            percent=percent,
            message=" ".join(message.split())[:200],
        )

    def _progressed(self, turn: int) -> None:
        assert self._purse is not None
        self.emit(
            ev.AgentProgressed,
            turn=turn,
            turns=self.agent["max_turns"],
            percent=self._purse.percent(),
            message="",
        )

    def say(self, text: str) -> None:
        """Write a line into the log of the attempt."""
        self._log.write(text)


def _calls_of(state: Any, step: str) -> list[Any]:
    return [call for call in state.planning.calls if call.asked.step == step] if state.planning else []


def _crossed(state: Any) -> list[ev.BudgetCrossed]:
    return state.planning.crossed if state.planning else []
