"""The loop of one agent: ask the model, run the tools that it calls, and so on until it finishes or has to end.

It is a state machine that `planrun.agents.executor` advances: nothing in it waits. The model is a process that is
polled, a tool is a job of the executor.
"""

from __future__ import annotations

import os
import re

from planrun.agents import carrying, compacting, handing, planmode, prompts
from planrun.agents.asking import Asking
from planrun.agents.budgeting import Purse
from planrun.agents.calls import Calls
from planrun.agents.ending import Ending
from planrun.agents.followups import Followups
from planrun.agents.logs import SubLog
from planrun.agents.patches import Refused, facts_of, line_of
from planrun.agents.servers import START, Servers
from planrun.agents.team import Team
from planrun.agents.transcript import Transcript
from planrun.errors import PlanrunError
from planrun.model import events as ev
from planrun.model.agenttools import MAX_RESULT
from planrun.model.agenttypes import FINISH, NOT_OFFERED, is_offered
from planrun.model.call import Request
from planrun.model.job import Outcome
from planrun.opening import read_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from planrun.agents.context import AgentContext, Processes, Recorder
    from planrun.agents.judging import Verdict
    from planrun.agents.logs import Log
    from planrun.agents.shared import Shared
    from planrun.llm.budget import Budget
    from planrun.model.call import Answer
    from planrun.model.job import Job
    from planrun.model.plan import Step
    from planrun.risk.classifier import Risk

STOP_TIMEOUT = 3.0
"""Seconds that a stopped call to a model has to end."""
_POLL = 0.05  # seconds, where no descriptor reports an answer
_LONGEST = 1000  # characters of a message
_LAST_TOKENS = 16_000  # left for an answer, from which on an agent has to end
_LEAST_RESULT = 2048  # bytes of one result
_LEAST_OWN = 20.0  # seconds for a process of planrun's own at the end of the time
_NO_WORK = ("copy", "patch", "secrets")  # failures after which there is no patch of it
_TRANSIENT = ("late", "limited", "overloaded", "unavailable")  # ends of a call after which a retry may help


class AgentRun:
    """One agent at work for one attempt of a step."""

    def __init__(
        self, job: Job, context: AgentContext, recorder: Recorder, processes: Processes, log: Log
    ) -> None:
        self.job = job
        self.parent: AgentRun | None = None  # the agent that waits for it
        self.root = self
        self.name = job.step  # with which the names of its processes begin
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
        self._number = self._turns_before = 0
        folder = os.path.join(context.place.rundir, "agents", self.step.folder or self.step.id)
        self.transcript_path = os.path.join(folder, f"{self.agent['session']}.jsonl")
        verify = tuple([" ".join(action.written().split("\n")) for action in self.step.verify])
        first = [prompts.task_of(self.agent, () if self.depth else verify)]
        first += prompts.project_memory(models.project)
        self.carried, earlier = carrying.before(self)
        if not self.depth and not carrying.carries(self):
            first += [block] if (block := handing.for_step(self)) else []
        self.task = prompts.words_of(self.agent)
        self.transcript = Transcript(self.transcript_path, "\n\n".join(first), earlier)
        self._asking = Asking(self)
        self._calls = Calls(self)
        self.follow = Followups(self)
        self.team = Team(self)
        self.servers = Servers(self)
        self.memory = self.shared.memory_tool(self.step.id, self.id)
        self.summary = ""  # its report
        self._children = 0
        self._ending: Ending | None = None  # it has finished, and its patch is made
        self._purse: Purse | None = None
        self._copying = False
        self._partial: tuple[Outcome, str, tuple[str, ...]] | None = None  # how it ends once its work is kept

    # What it has.

    @property
    def id(self) -> str:
        """Its id in the run."""
        return str(self.agent["id"])

    @property
    def depth(self) -> int:
        """How many agents are above it."""
        return int(self.agent.get("depth", 0))

    @property
    def scope(self) -> str:
        """What the delegations of its step are counted under; the same after a resume."""
        return f"{self.step.id}.{self.root.agent['session']}"

    @property
    def shared(self) -> Shared:
        """What the agents of the run share."""
        assert self.context.shared is not None
        return self.context.shared

    @property
    def purse(self) -> Purse:
        """What it may use; there is one once it has begun."""
        assert self._purse is not None
        return self._purse

    def act(self) -> None:
        """Be the agent that changes what is shared from now on."""
        self.shared.acting(self.step.id, self.id)

    def next_child(self) -> int:
        """Return the number of the next agent below the agent of the step."""
        self._children += 1
        return self._children

    def above(self, role: str) -> AgentRun | None:
        """Return the nearest agent of a type among those that wait for it."""
        found = self.parent
        while found is not None and found.agent["type"] != role:
            found = found.parent
        return found

    def child_of(self, agent: dict[str, Any]) -> AgentRun:
        """Return an agent that works for this one, within what is left of its time."""
        job = self.job.but(agent=agent, timeout=max(1.0, self.seconds_left()))
        child = AgentRun(job, self.context, self.recorder, self._processes, SubLog(self._log, agent["type"]))
        child.parent, child.root = self, self.root
        child.name = f"{self.step.id}:a{self.root._children}"
        return child

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools that it may use now, `finish` left out."""
        waiting = self.grantable
        return planmode.usable(self, tuple([name for name in self.offered if name not in waiting]))

    @property
    def offered(self) -> tuple[str, ...]:
        """The tools that the model is offered, the same in every request, `finish` left out."""
        named = (*self.agent["tools"], *self.agent["grantable"])
        own = [name for name in named if name not in NOT_OFFERED or self._has_key(name)]
        return (*own, *self.servers.tools)

    @property
    def grantable(self) -> tuple[str, ...]:
        """The tools that it may still ask for."""
        return tuple([name for name in self.agent["grantable"] if name not in self.transcript.granted])

    def _has_key(self, name: str) -> bool:
        """Whether the step has the key that goes with a tool."""
        agent = self.agent
        return is_offered(name, plan_mode=bool(agent.get("plan_mode")), web=tuple(agent.get("web", ())))

    @property
    def is_planning(self) -> bool:
        """Whether it is in plan mode."""
        found = self.transcript.plan_mode
        return bool(self.agent.get("plan_mode")) if found is None else found

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
        if self.team.child is not None:
            return self.team.child.fd
        return self._asking.fd

    @property
    def jobs(self) -> tuple[str, ...]:
        """The names of its processes."""
        own = (f"{self.step.id}:copy",) if self._copying else ()
        own = (f"{self.step.id}:partial",) if self._partial and self.outcome is None else own
        below = self.team.child.jobs if self.team.child is not None else ()
        ending = self._ending.running if self._ending else ()
        return (*own, *self._calls.running, *ending, *self.servers.running, *below)

    def wake(self) -> float:
        """Return when it has something to do, on the monotonic clock, if nothing happens before."""
        if self._partial is not None:
            return self.context.clock.monotonic() + STOP_TIMEOUT
        due = [self._deadline, *self.team.wake()]
        if self.is_stopping:
            due.append(self._stop_by)
        if self._asking.is_busy:
            by = self._asking.answer_by
            due.append(self.context.clock.monotonic() + _POLL if self.fd < 0 else by)
        if self._asking.not_before:
            due.append(self._asking.not_before)
        return min(due)

    def seconds_left(self) -> float:
        """Return the seconds until the attempt has to end."""
        return self._deadline - self.context.clock.monotonic()

    @property
    def result_limit(self) -> int:
        """The bytes of one result: no more than a quarter of the tokens that the agent has left."""
        left = self.purse.limits["tokens"] - self.purse.used("tokens")
        most = self.recorder.state.plan.limits.output_bytes or MAX_RESULT
        return int(min(most, max(min(most, _LEAST_RESULT), left / 4 * compacting.BYTES_A_TOKEN)))

    def next_number(self) -> int:
        """Return the number of the next process."""
        self._number += 1
        return self._number

    # What it does.

    def begin(self, budget: Budget | Purse) -> None:
        """Start the work, or go on with that of an earlier process; `budget`: of the run, or of who waits for it."""
        agent, state = self.agent, self.recorder.state
        before = [
            call for call in _calls_of(state, self.step.id) if _is_of(call.asked.agent, agent["counted"])
        ]
        known = state.planning.crossed if before and state.planning else []
        crossed = [event for event in known if event.step == self.step.id]
        if agent["continues"]:
            self.transcript.load()
        whole = budget.whole if isinstance(budget, Purse) else budget
        own = [call for call in before if call.asked.agent in agent["counted"] and call.answered is not None]
        counted = sum(call.answered.ending == "answered" for call in own)
        self._turns_before = self.transcript.turns - counted
        self._purse = Purse(agent, whole, before, counted, crossed)
        if not self.depth:
            self.shared.roster.start(self.id, agent["type"], waiting=self.shared.post.waiting())
        if agent["continues"]:
            self._number = sum(
                len(found.tools) for name in agent["earlier"] if (found := state.agents.get(name))
            )
        self.emit(
            ev.AgentStarted,
            n=self.job.attempt,
            agent_type=agent["type"],
            model=agent["model"],
            tools=self.tools,
            budget=self.purse.limits,
            workspace=agent["workspace"],
            **({"carries": self.carried} if self.carried else {}),
            **({"project": models.project.sha256} if (models := self.context.models).project else {}),
            **{name: agent[name] for name in ("mode", "continues", "parent", "depth") if agent.get(name)},
        )
        mode = f", mode {agent['mode']}" if agent["mode"] else ""
        self.say(f"agent {agent['type']}{mode}: {', '.join(self.tools)}")
        try:
            self._asking.open()  # the process of the model loads its libraries while the copy is made
        except PlanrunError as error:
            self.fail("model", f"no model can be asked: {error}")
            return
        if agent["copy"] and not agent["continues"] and not self.depth:
            self._copying = True
            args = {"folder": agent["copy"], "read": self._shown_secrets()}
            self._start_own("copy", "copies.make", args, self.context.place.workspace)
        elif agent["continues"]:
            self._recover()
            self._go_on()

    @property
    def turns(self) -> int:
        """Answers of the model that count against its limit."""
        return self.transcript.turns - self._turns_before

    def _go_on(self) -> None:
        """Tell an agent whose attempt failed why it goes on, where it had ended its work."""
        if not self.agent["failed"]:
            return
        text, ended = (
            prompts.again(self.agent["failed"]),
            [call for call in self.transcript.calls if call["name"] == FINISH],
        )
        for call in ended:
            if call["id"] not in self.transcript.results:
                self.transcript.result(call["id"], text, failed=False)
        if not ended and self.transcript.messages[-1]["role"] == "assistant" and not self.transcript.calls:
            self.transcript.told(text, again=True)

    def _recover(self) -> None:
        """Settle the calls of an earlier process whose ends are not known."""
        calls, known = {call["id"]: call for call in self.transcript.calls}, self.transcript.results
        agents = self.recorder.state.agents
        of_step = [name for name, found in agents.items() if found.started.step == self.step.id]
        for name in [name for name in of_step if _is_of(name, self.agent["earlier"])]:
            for tool in list(agents[name].tools):
                called = tool.called
                if tool.returned is not None:
                    continue
                if called.call in known:  # planrun was killed before it recorded the end
                    self._calls.kept(called, failed=known[called.call]["failed"])
                elif called.effects and called.call in calls:
                    self._calls.unknown(called, calls[called.call])
                elif called.effects:  # of an agent that it had asked
                    self.emit(
                        ev.ToolReturned,
                        call=called.call,
                        name=called.name,
                        status="unknown",
                        message="planrun was killed while it ran",
                        agent=name,
                    )

    def advance(self) -> None:
        """Do what can be done without waiting."""
        while self.outcome is None and self._partial is None and self._step_once():
            pass

    def _step_once(self) -> bool:
        """Make one move; whether another one may follow at once."""
        now = self.context.clock.monotonic()
        if now >= self._deadline and not self.is_stopping:
            self.stop("timeout")
        if self.is_stopping:
            return self._wind_up(now)
        if self._copying or (self._ending and self._ending.running) or now < self._asking.not_before:
            return False
        self._asking.not_before = 0.0
        if self.team.child is not None:
            return self.team.advance()
        if self._asking.is_busy:
            return self._asking.poll()
        if not self.servers.advance():
            return False
        if self.outcome is not None:
            return False
        if self.transcript.calls:
            if not self._calls.advance() or self.outcome is not None:
                return False
            return self._finish_or_go_on()
        return self._asking.ask()

    def _finish_or_go_on(self) -> bool:
        known = self.transcript.results
        found = [call for call in self.transcript.calls if call["name"] == FINISH and call["id"] not in known]
        if not found:
            if not self.follow.advance():
                return bool(self.team.child) or not (self._asking.is_busy or self._calls.running)
            self.transcript.note(self._left())
            self.transcript.close_turn()
            return True
        if not self.servers.close():  # nothing changes the copy any more
            return False
        call = found[-1]
        self.follow.clear()
        self._ending = self._ending or Ending(self)
        return self._ending.finish(call)

    def _left(self) -> str:
        """Return what it is told of what is left of its budget."""
        turns, limit = self.agent["max_turns"] - self.turns, self.purse.limits["tokens"]
        tokens = max(0.0, limit - self.purse.used("tokens"))
        room = tokens - self.transcript.tokens  # a question is reserved as if nothing of it were cached
        return prompts.left(turns, tokens, is_last=turns <= 1 or room < min(_LAST_TOKENS, limit / 5))

    # What its parts have it do.

    def ask_aside(self, request: Request, take: Callable[[Answer], None]) -> bool:
        """Ask the model something that is no turn of the conversation; whether the budget allows it."""
        return self._asking.aside(request, take)

    def repeat(self, call: dict[str, Any]) -> None:
        """Make a corrected call of a reading tool."""
        self._calls.repeat(call)

    def answered_by_agent(self, call: dict[str, Any], text: str, *, failed: bool) -> None:
        """Take the reply to a call of `ask_agent`."""
        self._calls.settle(call, text, "failed" if failed else "done", message=text[:400] if failed else "")

    # Processes.

    def start(self, job: Job) -> None:
        """Start a process."""
        self._processes.start(job)

    def stop_job(self, name: str) -> None:
        """End a process."""
        self._processes.stop(name, "cancelled")

    def _shown_secrets(self) -> list[str]:
        """Return the paths in the workspace of files that the step shows its agent although they look like secrets."""
        confinement, top = self.context.place.confinement, f"{self.context.place.workspace}/"
        sandbox = confinement.of_agent(self.step.sandbox, "medium") if confinement else None
        named = map(str, sandbox.read) if sandbox else ()
        return [path[len(top) :] for path in named if path.startswith(top)]

    def confined(self, job: Job, risk: str, shown: tuple[tuple[str, str], ...], named: str = "") -> Job:
        """Return the process of a tool in its sandbox, which sees `shown` of planrun's own files.

        `named`: the file that a call of high risk names and that was allowed to be read.
        """
        confinement = self.context.place.confinement
        sandbox = confinement.of_agent(self.step.sandbox, risk) if confinement else None
        if sandbox is None:  # a policy turned it off
            return job
        path = os.path.join(job.cwd, named)
        if named and not self.agent["copy"] and os.path.exists(path):
            sandbox = sandbox.but(read=(*sandbox.read, os.path.normpath(path)))
        return job.but(sandbox=sandbox, copy=self.job.cwd if self.agent["copy"] else "", shown=shown)

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
            timeout=max(_LEAST_OWN, self.seconds_left()),
            agent={},
            following=(),
            may_omit_shell=False,
            sandbox=None,  # it is planrun's own program
        )
        self._processes.start(job)

    def make_patch(self, out: str) -> None:
        """Start the process that makes the patch."""
        args = {"folder": self.agent["copy"], "out": out}
        self._start_own("patch", "copies.patch", args, self.context.place.workspace)

    def job_ended(self, job: Job, outcome: Outcome) -> None:
        """Take the end of one of its processes."""
        if self.team.child is not None and job.step in self.team.child.jobs:
            self.team.child.job_ended(job, outcome)
        elif job.step == f"{self.step.id}:partial":
            assert self._partial is not None
            failed, summary, evidence = self._partial
            self._end(self._kept(failed) if outcome.status == "completed" else failed, summary, evidence)
        elif job.step == f"{self.step.id}:copy":
            self._copying = False
            if outcome.status != "completed" and not self.is_stopping:
                self.fail("copy", f"the workspace cannot be copied: {self.last_line(job) or outcome.message}")
        elif self._ending and job.step in self._ending.running:
            self._ending.made(job, outcome)
        elif not self.servers.ended(job, outcome):
            self._calls.ended(job, outcome)

    def last_line(self, job: Job) -> str:
        """Return the last line that a process printed."""
        try:
            text = read_record(job.log).decode("utf-8", "replace")
            return text.strip().rpartition("\n")[2][:_LONGEST]
        except OSError:
            return ""

    def judge(self, call: dict[str, Any], job: Job | None, known: Risk | None = None) -> Verdict:
        """Return what the policies decide about a call; `known`: its risk, where that does not follow from the call."""
        on_copy = self.agent["workspace"] == "copy"
        if known is None and call["name"] in self.servers.tools:
            known = self.servers.risk_of(call["name"])
        verdict = self.context.judge.verdict(self.step, call, job, on_copy=on_copy, known=known)
        if verdict.answer == "ask" and on_copy and self._is_check(call):
            return verdict.but(answer="allow", rule="step:verify", reason="the step is verified by it")
        return verdict

    def _is_check(self, call: dict[str, Any]) -> bool:
        """Whether a call runs a reviewed `verify` command of the step, and no file that it names was changed.

        It runs in the same copy when the agent has finished, so this grants nothing that the step does not have.
        """
        if call["name"] != "bash":
            return False
        text = call["input"]["command"].strip()
        places = (self.context.place.workspace, self.job.cwd)
        return text in [action.written().strip() for action in self.step.verify] and all(
            _same(*[os.path.join(place, word) for place in places])
            for word in re.findall(r"[\w./+@-]+", text)
        )

    # The end.

    def stop(self, reason: str) -> None:
        """End the work: `cancelled`, or `timeout` when its time is over."""
        if self.is_stopping or self._partial is not None:
            return
        self.is_stopping, self._stop_reason = True, reason
        self._stop_by = self.context.clock.monotonic() + STOP_TIMEOUT
        self._asking.stop()
        self.team.stop()
        for name in self.jobs:
            self._processes.stop(name, "cancelled")

    def _wind_up(self, now: float) -> bool:
        if self.team.child is not None:
            return self.team.advance()
        if self._asking.is_busy:
            if now < self._stop_by:
                return self._asking.poll()
            self._asking.drop()
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
        """End with an outcome, once what it changed is kept where it failed; nothing of it runs any more."""
        has_work = bool(self.agent["copy"]) and not self.depth and not self._copying
        if (
            outcome.status == "failed"
            and has_work
            and self._partial is None
            and outcome.reason not in _NO_WORK
        ):
            self.servers.close()
            self._partial = (outcome, summary, evidence)
            self._start_own("partial", "copies.patch", self._partial_args(), self.context.place.workspace)
            return False
        return self._end(outcome, summary, evidence)

    def _partial_args(self) -> dict[str, str]:
        folder = os.path.join(self.context.place.rundir, "patches", self.step.folder or self.step.id)
        return {
            "folder": self.agent["copy"],
            "out": os.path.join(folder, f"{self.job.attempt}.partial.patch"),
        }

    def _kept(self, outcome: Outcome) -> Outcome:
        """Return how an attempt failed, with the place of its patch, which nobody has verified."""
        out = self._partial_args()["out"]
        try:
            patch = facts_of(out, self.context.place.rundir, self.context.masks)
        except (Refused, OSError):  # it would show a secret, and is deleted, or there is none
            return outcome
        if not patch:
            return outcome
        self.say(f"partial patch, not verified: {line_of(patch)}")
        place = os.path.relpath(out, self.context.place.workspace)
        return outcome.but(
            message=f"{outcome.message}; what it changed so far is kept, not verified: {place}"
        )

    def _end(self, outcome: Outcome, summary: str, evidence: tuple[str, ...]) -> bool:
        self.summary = summary
        self.servers.close()
        self._leave()
        duration = self.context.clock.monotonic() - self.began
        message = {"message": outcome.message} if outcome.message else {}
        tools = self.recorder.state.agents[self.agent["id"]].tools
        statuses = [tool.status for tool in tools if not tool.called.call.startswith(START)]
        stats = {
            "prompt_tokens": int(self._asking.usage["input"]),
            "completion_tokens": int(self._asking.usage["output"]),
            "tool_calls": len(statuses),
            "tool_successes": statuses.count("done"),
            "tool_failures": len(statuses) - statuses.count("done"),
            "duration_seconds": round(duration, 3),
        }
        self.emit(
            ev.AgentEnded,
            status=outcome.status,
            reason=outcome.reason,
            summary=summary,
            evidence=evidence,
            stats=stats,
            **message,
        )
        if outcome.status != "completed":
            self.say(f"{outcome.status}: {outcome.message or outcome.reason}")
        size, digest = self._log.close()
        logged = {"log_bytes": size, "log_sha256": digest} if size else {}
        self.outcome = outcome.but(duration=duration, **logged)
        self.close()
        return False

    def _leave(self) -> None:
        """Take part in nothing that is shared any more."""
        self.act()
        if not self.depth:
            self.shared.post.agent_ended(self.id)
        self.shared.roster.end(self.id)
        self.shared.feedback.agent_ended(self.id)
        self.memory.close()

    def close(self) -> None:
        """Leave no process of the model running."""
        if self.team.child is not None:
            self.team.child.close()
        self._asking.close()

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
        turn = self.turns
        self.emit(
            ev.AgentProgressed,
            turn=turn,
            turns=self.agent["max_turns"],
            percent=percent,
            message=" ".join(message.split())[:200],
        )

    def progressed(self, turn: int) -> None:
        """Record that it begins a turn."""
        self.emit(
            ev.AgentProgressed,
            turn=turn,
            turns=self.agent["max_turns"],
            percent=self.purse.percent(),
            message="",
        )

    def say(self, text: str) -> None:
        """Write a line into the log of the attempt."""
        self._log.write(text)


def _same(reviewed: str, copied: str) -> bool:
    """Whether a file of the workspace, if there is one, has the same bytes in the copy."""
    if not os.path.isfile(reviewed):
        return True
    try:
        with open(reviewed, "rb") as one, open(copied, "rb") as other:
            return one.read() == other.read()
    except OSError:
        return False


def _is_of(name: str, agents: list[str]) -> bool:
    """Whether an id is that of one of some agents of steps, or of an agent that worked for one."""
    return any(name == agent or name.startswith(f"{agent}.") for agent in agents)


def _calls_of(state: Any, step: str) -> list[Any]:
    return [call for call in state.planning.calls if call.asked.step == step] if state.planning else []
