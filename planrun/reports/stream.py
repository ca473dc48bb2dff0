"""What happens in a run, for programs: one JSON object for each event, to a file, a descriptor or a function."""

from __future__ import annotations

import os
import select
import time
from stat import S_ISREG

from planrun.clock import SystemClock
from planrun.errors import InvalidInput
from planrun.model import events as ev
from planrun.model.jsontext import dumps
from planrun.reports.facts import duration, epoch, status_of
from planrun.reports.progress import Tally, jobs_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from planrun.model.events import Event
    from planrun.model.progress import StepState
    from planrun.model.state import RunState

EVERY = 1.0  # seconds between two progress events while nothing else happens
_PIECE = 4096  # bytes that a pipe takes at once when it says that it is ready (PIPE_BUF of Linux)
_MOST = 1 << 20  # bytes that wait for a slow reader; more than that, and nothing more is sent
_LAST = 1.0  # seconds for a slow reader at the end
# The activities of a run are `planning` and `executing_plan`; those of a step are by what it does.
_STEP_EVENTS = (ev.AttemptStarted, ev.AttemptEnded, ev.StepMoved, ev.StepOpened, ev.StepRestored, ev.StepHeld)


_STREAMED: dict[type[Event], str] = {
    ev.ToolCalled: "tool_call",
    ev.ToolReturned: "tool_result",
    ev.AgentProgressed: "agent_progress",
}
"""Events that have another name for programs than in the ledger: a call of a tool is the same, whoever makes it."""


class EventStream:
    """A sink that hands on what happens; `send` takes one event as plain data, and never ends a run."""

    def __init__(self, send: Callable[[dict[str, Any]], None], state: RunState) -> None:
        self._send = send
        self._planning = False
        self._state = state
        self._known: dict[str, str] = {}
        self._tally = Tally((), jobs_of(state))
        self._start = epoch(state.started.at) if state.started else time.time()
        self._next = time.monotonic() + EVERY
        self._broken = False
        self._add(state)
        self._begin(state)

    def on_event(self, event: Event, state: RunState) -> None:
        """Hand an event on that `state` holds already."""
        if self._broken:
            return
        try:
            if isinstance(event, ev.PlanningStarted | ev.PlanningEnded):
                self._planning = isinstance(event, ev.PlanningStarted)
            if isinstance(event, _STEP_EVENTS):
                self._step(event, state)
            else:
                fields = {name: value for name, value in vars(event).items() if name != "at"}
                kind = _STREAMED.get(type(event)) or ev.NAMES[type(event)]
                self._put(kind, event.at, state, activity=self._activity, **fields)
            self._progress(event.at, state)
        except Exception:  # noqa: BLE001 - a reader of events must not end a run
            self._broken = True

    def tick(self) -> float | None:
        """Send the progress of the run once in EVERY seconds; returns the seconds after which to be called again."""
        now = time.monotonic()
        if self._broken:
            return None
        if now >= self._next:
            self._next = now + EVERY
            try:
                self._progress(SystemClock().stamp(), self._state)
            except Exception:  # noqa: BLE001 - as above
                self._broken = True
        return self._next - now

    def _add(self, state: RunState) -> None:
        """Take note of steps that were not known before: all at first, later members of groups and new versions."""
        for name, step in state.steps.items():
            if name not in self._known:
                self._known[name] = "pending"
                if step.step.kind != "group":
                    self._tally.add(name)
                self._moved(step)

    def _moved(self, step: StepState) -> str:
        """Count a step by its status now, and return the one it had."""
        name = step.step.id
        old, self._known[name] = self._known[name], step.status
        if step.step.kind != "group" and old != step.status:
            if step.ended:
                self._tally.end(name, duration(step) if step.tries else None)
            elif step.status == "running":
                self._tally.start(name, time.time())
        return old

    def _begin(self, state: RunState) -> None:
        resumed = bool(state.resumed)
        opening = state.resumed[-1] if resumed else state.started
        steps = [
            {"id": name, "title": step.step.label, "status": step.status}
            for name, step in state.steps.items()
        ]
        self._put(
            "run_resumed" if resumed else "run_started",
            opening.at if opening else "",
            state,
            plan={"name": state.plan.name, "version": state.plan.version, "digest": state.plan.digest},
            goal=state.plan.goal,
            steps=steps,
            activity="executing_plan",
        )
        self._progress(opening.at if opening else "", state)

    @property
    def _activity(self) -> str:
        return "planning" if self._planning else "executing_plan"

    def _step(self, event: Any, state: RunState) -> None:
        step = state.steps[event.step]
        tool = step.step.action.name
        named = {"step": event.step, "title": step.step.label, "activity": activity_of(step)}
        if tool and isinstance(event, ev.AttemptStarted):
            self._put("tool_call", event.at, state, call_id=f"{event.step}/{event.n}", tool=tool, **named)
        if tool and isinstance(event, ev.AttemptEnded):
            for call in event.tools:
                call_fields = {"tool": call.get("name"), "args": call.get("args"), "ok": call.get("ok")}
                call_id = f"{event.step}/{event.n}"
                self._put(
                    "tool_result",
                    event.at,
                    state,
                    call_id=call_id,
                    **call_fields,
                    status=event.status,
                    **named,
                )
        if len(state.steps) != len(self._known):
            self._add(state)
        old = self._moved(step)
        message = getattr(event, "message", "") or (getattr(event, "error", None) or {}).get("message", "")
        notes = [*filter(None, [message]), *getattr(event, "notes", ())]
        self._put(
            "step_status",
            event.at,
            state,
            **named,
            old_status=old,
            new_status=step.status,
            reason=""
            if isinstance(event, ev.AttemptStarted)
            else getattr(event, "reason", "") or step.reason,
            notes=notes,
            attempt=len(step.attempts),
        )

    def _progress(self, at: str, state: RunState) -> None:
        tally, now = self._tally, time.time()
        current = tally.current()
        self._put(
            "progress",
            at,
            state,
            current_step_id=current,
            current_title=state.steps[current].step.label if current else "",
            total_steps=tally.total,
            completed=tally.done,
            progress=round(tally.share(), 4),
            status=status_of(state),
            activity=self._activity,
            metrics={
                "completed_steps": tally.done,
                "total_steps": tally.total,
                "percentage": round(100 * tally.share(), 1),
                "current_step": current,
                "eta": tally.eta(now),
                "average_step_duration": tally.average(),
                "elapsed_time": round(max(0.0, now - self._start), 3),
            },
        )

    def _put(self, kind: str, at: str, state: RunState, /, **fields: Any) -> None:
        run = state.started.run if state.started else ""
        self._send({"type": kind, "at": at, "run": run, "plan_id": state.plan.name, **fields})


def activity_of(step: StepState) -> str:
    """Return what a step does, in one word: executing_plan, analyzing, reading, writing or synthesizing."""
    if step.step.action.name:
        return "reading" if step.step.risk == "read-only" else "writing"
    return step.step.action.activity


class Lines:
    """JSON Lines to a file or an open descriptor; a reader that is too slow or gone loses what comes, and no more."""

    def __init__(self, target: str) -> None:
        """Open a file, or take the descriptor that `target` is the number of, as 3 or fd:3; raises InvalidInput."""
        try:
            number = target.removeprefix("fd:")
            if number.isdecimal():
                self._fd = os.dup(int(number))
            else:
                self._fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
            self._waits = not S_ISREG(os.fstat(self._fd).st_mode)
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise InvalidInput(f"cannot write events to {target}: {why}") from None
        self._held = b""

    def send(self, event: dict[str, Any]) -> None:
        """Write one event as a line."""
        if self._fd >= 0:
            self._held += dumps(event).encode("utf-8", "backslashreplace") + b"\n"
            self._flush(0.0)
            if len(self._held) > _MOST:
                self._give_up()

    def close(self) -> None:
        """Write what waits for a slow reader, for a short while."""
        if self._fd >= 0:
            self._flush(_LAST)
            self._give_up()

    def _flush(self, seconds: float) -> None:
        poll = select.poll()
        poll.register(self._fd, select.POLLOUT)
        try:
            while self._held:
                if self._waits and not poll.poll(seconds * 1000):
                    return
                self._held = self._held[os.write(self._fd, self._held[:_PIECE]) :]
        except OSError:  # no reader any more, or the disk is full
            self._give_up()

    def _give_up(self) -> None:
        os.close(self._fd)
        self._fd, self._held = -1, b""
