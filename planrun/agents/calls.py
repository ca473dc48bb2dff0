"""The calls of tools in one answer of a model: judged, recorded before they start, run, recorded when they ended."""

from __future__ import annotations

import os

from planrun.actions.tool import process_of, shortened
from planrun.actions.tracing import tool_span, within
from planrun.agents import planmode, web
from planrun.agents.own import OWN, OwnCall
from planrun.agents.servers import is_of_server
from planrun.llm.untrusted import result_block
from planrun.model import events as ev
from planrun.model.agenttools import BASH_TIMEOUT, FILE_TIMEOUT, MAX_RESULT, MEMORY_CHANGES, SPECS
from planrun.model.agenttypes import FINISH
from planrun.model.job import Job
from planrun.model.jsontext import dumps
from planrun.model.tools import faults, place
from planrun.opening import open_record
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.agents.loop import AgentRun
    from planrun.model.job import Outcome

_BASH = ("bash", "-euo", "pipefail", "-c")
_TOGETHER = 4  # processes of read-only calls at once
_MORE = {
    "read": "name `offset` and `limit`, or `column`, for the rest",
    "bash": "print parts with sed -n, head, tail or grep",
    "grep": "search in fewer files, or with `limit`",
    "diff": "name a `path`",
}
"""How the rest of a long result can be seen."""
_UNKNOWN = (
    "planrun was killed while this ran, so it is not known whether it had its effect. It was not run again. "
    "Look at what it may have changed before you go on."
)


class Calls:
    """The calls of the last answer of one agent; those without a result are still to be made."""

    def __init__(self, run: AgentRun) -> None:
        self._run = run
        self._processes: dict[str, tuple[dict[str, Any], Job]] = {}  # by the name of the job
        self.failures = 0

    @property
    def running(self) -> tuple[str, ...]:
        """The names of the jobs that run."""
        return tuple(self._processes)

    def advance(self) -> bool:
        """Start what may start now; whether every call has its result, `finish` left out."""
        run = self._run
        if run.team.child is not None:
            return False
        waiting = [call for call in run.transcript.calls if call["id"] not in run.transcript.results]
        waiting = [call for call in waiting if call["name"] != FINISH]
        known = {call["id"] for call, _ in self._processes.values()}
        for call in waiting:
            if run.outcome is not None:  # one of them ended the agent
                return False
            if call["id"] in known:
                continue
            running = [each for each, _ in self._processes.values()]
            is_blocked = any(map(self._has_effects, running)) or (running and self._has_effects(call))
            if is_blocked or len(running) >= _TOGETHER or run.team.child is not None:
                return False
            self._begin(call)
        return not self._processes and run.team.child is None

    def repeat(self, call: dict[str, Any]) -> None:
        """Make a corrected call of a reading tool, which its result names; its own result is a note."""
        self._run.say(f"planrun repeats {call['name']} with a corrected path")
        self._begin(call)

    def ended(self, job: Job, outcome: Outcome) -> None:
        """Take the end of a process."""
        call, job = self._processes.pop(job.step)
        is_cut_off = self._run.is_stopping and outcome.status == "cancelled"
        if is_cut_off and not self._has_effects(call):  # it is made again when the run is resumed
            return
        text, message = _result(call, job, outcome, self._run.result_limit)
        failed = outcome.status != "completed"
        facts: dict[str, Any] = {
            "bytes": outcome.log_bytes,
            "message": message,
            "exit_code": outcome.exit_code,
            "duration": round(outcome.duration, 4),
            "log": os.path.relpath(job.log, self._run.context.place.rundir),
        }
        self.settle(call, text, "failed" if failed else "done", **facts)
        if failed:
            self._run.servers.take(call, outcome, message)

    def unknown(self, called: ev.ToolCalled, call: dict[str, Any]) -> None:
        """Record that a call of an earlier process has no known end, and tell the model."""
        message = "planrun was killed while it ran"
        self.settle(call, _UNKNOWN, "unknown", message=message, agent=called.agent)

    def kept(self, called: ev.ToolCalled, *, failed: bool) -> None:
        """Record the end of a call whose result an earlier process kept."""
        status = "failed" if failed else "done"
        self._run.emit(ev.ToolReturned, call=called.call, name=called.name, status=status, agent=called.agent)

    # One call.

    def _begin(self, call: dict[str, Any]) -> None:
        run = self._run
        if why := self._fault(call):
            self.called(call, risk="read-only", answer="deny", reason=why, rule="agent:tools")
            self.settle(call, why, "denied", message=why)
            return
        if call["name"] in OWN:
            changes = call["name"] == "memory" and call["input"]["op"] in MEMORY_CHANGES
            self.called(call, risk="read-only", answer="allow", effects=changes)
            self._own(call)
            return
        if call["name"] == "ask_agent":  # each call of the other agent is judged when it comes
            self.called(call, risk="low", answer="allow", effects=True)
            run.recorder.sync()
            if why := run.team.ask(call):
                self.settle(call, why, "failed", message=why)
            return
        if call["name"] in (planmode.ENTER, planmode.EXIT):
            planmode.call(self, run, call)
            return
        number = run.next_number()
        job = self._job(call, number)
        verdict = run.judge(call, job)
        self.called(
            call,
            risk=verdict.risk,
            answer=verdict.answer,
            rule=verdict.rule,
            reason="" if verdict.answer == "allow" else verdict.reason,
            effects=verdict.effects,
        )
        if verdict.answer != "allow":
            why = f"denied: {verdict.reason} [{verdict.rule}]"
            if verdict.answer == "ask":
                why += ". It needs an approval, and an agent cannot wait for one. "
                why += "Do the task without it, or report what is missing."
            self.settle(call, why, "denied", message=verdict.reason)
            return
        job = verdict.job or job
        if verdict.effects:
            run.recorder.sync()  # a resume after a power cut must know that it started
        if call["name"] == "web_fetch":
            job = web.confined(run, job)
        elif not is_of_server(call["name"]):  # its server has a sandbox
            is_asked = verdict.risk == "high" and call["name"] in ("read", "grep")
            named = str(call["input"].get("path") or "") if is_asked else ""
            job = run.confined(job, verdict.risk, self._shown(call, job), named)
        self._processes[job.step] = (call, job)
        run.start(job)

    def _shown(self, call: dict[str, Any], job: Job) -> tuple[tuple[str, str], ...]:
        """Return what the sandbox of a call shows of planrun's own files."""
        args, copy = f"{job.log.removesuffix('.log')}.args", self._run.agent["copy"]
        found = [("ro", args)] if os.path.isfile(args) else []
        if copy and call["name"] == "diff":  # planrun's own git, which writes an index
            found.append(("rw", copy))
        return tuple(found)

    def _fault(self, call: dict[str, Any]) -> str:
        """Return why a call cannot be made at all."""
        name = call["name"]
        if name not in self._run.tools:
            has = ", ".join(self._run.tools)
            if name in self._run.grantable:
                return f"you do not have {name!r} yet: ask for it by request_tool; you have {has}"
            if name in self._run.offered:
                when = "in plan mode" if self._run.is_planning else "outside of plan mode"
                return f"you do not have {name!r} {when}; you have {has}"
            return f"you do not have a tool {name!r}; you have {has}"
        if is_of_server(name):  # the server looks at the arguments
            return ""
        if name == "web_fetch" and not web.hosts_of(self._run):
            return "a policy allows none of the hosts that the step names"
        return "; ".join(
            [f"{place(fault.path)} {fault.message}" for fault in faults(SPECS[name], call["input"])]
        )

    def _own(self, call: dict[str, Any]) -> None:
        run = self._run
        found = OWN[call["name"]](
            OwnCall(
                memory=run.memory,
                step=run.step.id,
                args=call["input"],
                state=run.recorder.state,
                tools=run.tools,
                grantable=run.grantable,
                env=run.job.env,
                todo=run.transcript.todo,
                decisions=run.context.decisions,
            )
        )
        if found.percent is not None:
            run.progress(call["input"]["message"], found.percent)
        status = "failed" if found.failed else "done"
        self.settle(call, found.text, status, own=found.own, message=found.text if found.failed else "")

    def _job(self, call: dict[str, Any], number: int) -> Job:
        """Return the process of a call, in the folder that the agent works in."""
        run, name, args = self._run, call["name"], call["input"]
        if is_of_server(name):
            return run.servers.job_of(call, number)
        timeout = float(args.get("timeout", BASH_TIMEOUT)) if name == "bash" else FILE_TIMEOUT
        folder = os.path.dirname(run.transcript_path)
        base = os.path.join(folder, f"{run.agent['session']}.tool{number}")
        argv: tuple[str, ...] = (*_BASH, args["command"]) if name == "bash" else ()
        span = tool_span(run.context.place.run, run.agent["id"], call["id"])
        argv = argv or process_of({"name": f"agent.{name}", "args": args}, f"{base}.args")
        return Job(
            step=f"{run.name}:t{number}",
            attempt=run.job.attempt,
            argv=argv,
            env={**run.job.env, **run.variables, **within(run.job.env, span)},
            cwd=run.job.cwd,
            log=f"{base}.log",
            timeout=max(1.0, min(timeout, run.seconds_left())),
            call={} if name == "bash" else {"name": f"agent.{name}"},
        )

    # Records.

    def called(self, call: dict[str, Any], **fields: Any) -> None:
        """Record a call before it is made."""
        run = self._run
        whole = dumps(call["input"])
        run.emit(
            ev.ToolCalled,
            call=call["id"],
            name=call["name"],
            args=shortened(call["input"]),
            sha256=str(sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()),
            **{name: value for name, value in fields.items() if value},
        )
        run.say(f"{call['name']} {_brief(call)}".rstrip())

    def returned(self, call: dict[str, Any], message: str) -> None:
        """Record the end of a call that has no result yet."""
        self._run.emit(ev.ToolReturned, call=call["id"], name=call["name"], status="done", message=message)

    def settle(
        self, call: dict[str, Any], text: str, status: str, own: dict[str, Any] | None = None, **fields: Any
    ) -> None:
        """Keep the result in the transcript, then record it."""
        run = self._run
        text += run.follow.result(call, text, status)
        if "fixes" in call:
            head = f"planrun called {call['name']} again, with {dumps(call['input'])}:"
            run.transcript.note(f"{head}\n{text}")
        else:
            run.transcript.result(call["id"], text, failed=status != "done", **(own or {}))
        self.failures += status != "done"
        run.emit(
            ev.ToolReturned,
            call=call["id"],
            name=call["name"],
            status=status,
            sha256=str(sha256(text.encode("utf-8", "surrogatepass")).hexdigest()),
            files=_files(call) if status == "done" else (),
            **{name: value for name, value in fields.items() if value not in ("", None, 0, 0.0)},
        )
        message = fields.get("message", "")
        run.say(f"  {status}{f': {message}' if message else ''}")

    def _has_effects(self, call: dict[str, Any]) -> bool:
        """Whether a call is made alone: commands, and tools that write."""
        name = call["name"]
        if name in (planmode.ENTER, planmode.EXIT):  # it changes which tools there are
            return True
        if name in self._run.servers.tools:
            return self._run.servers.risk_of(name).level != "read-only"
        return name in SPECS and SPECS[name].risk != "read-only"


def _result(call: dict[str, Any], job: Job, outcome: Outcome, limit: int) -> tuple[str, str]:
    """Return what the model is told of a process that ended, and a line for the ledger."""
    output = _output(job.log)
    name = str(call["name"])
    more = _MORE.get(name, "ask for less at once")
    shown = result_block(f"output of {name}", output, limit, more) if output else ""
    if outcome.status == "completed":
        return shown or "done, without output", ""
    why = outcome.message or outcome.reason
    if call["name"] != "bash":  # the last line of a tool says why it refused
        last = output.strip().rpartition("\n")[2]
        return (shown or why), last[:400] or why
    return f"{why}\n{shown}".rstrip(), why


def _output(path: str) -> str:
    """Return the output of a process, the beginning and the end of a long one."""
    try:
        with open(open_record(path), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size <= 4 * MAX_RESULT:
                return file.read().decode("utf-8", "replace")
            head = file.read(MAX_RESULT)
            file.seek(size - 2 * MAX_RESULT)
            tail = file.read()
    except OSError:  # it printed nothing
        return ""
    out = size - len(head) - len(tail)
    return f"{head.decode('utf-8', 'replace')}\n[{out} bytes left out]\n{tail.decode('utf-8', 'replace')}"


def _files(call: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """Return the files that a call names."""
    path = call["input"].get("path")
    ops = {"read": "read", "write": "wrote", "edit": "changed"}
    return ({"path": path, "op": ops[call["name"]]},) if path and call["name"] in ops else ()


def _brief(call: dict[str, Any]) -> str:
    """Return the argument of a call that says most, in one line."""
    given = call["input"]
    for name in ("command", "path", "pattern", "name", "question", "message", "url"):
        if isinstance(given.get(name), str):
            text = " ".join(given[name].split())
            return text if len(text) <= 120 else f"{text[:119]}…"
    return ""
