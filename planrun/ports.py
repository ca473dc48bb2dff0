"""What the engine wants of the rooms around it; every implementation is chosen in `planrun.app`.

For type checkers alone: no run imports it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal, Protocol

    from planrun.errors import RecordsLost
    from planrun.model.call import Answer, Repeat, Request
    from planrun.model.events import Event, GateAnswered
    from planrun.model.job import Job, Outcome, Passage, Prepared
    from planrun.model.plan import Step
    from planrun.model.state import RunState

    class Executor(Protocol):
        """Where attempts run."""

        @property
        def running(self) -> tuple[str, ...]:
            """The steps whose attempt has no outcome yet."""

        @property
        def lost(self) -> RecordsLost | None:
            """Why a log cannot be written; None as long as all can."""

        def start(self, job: Job) -> None:
            """Start an attempt; what goes wrong comes back as its outcome."""

        def wait(self, timeout: float | None) -> list[tuple[Job, Outcome]]:
            """Return what ended; empty after `timeout` seconds or when a signal arrived."""

        def stop(self, step: str, reason: Literal["cancelled", "timeout"]) -> None:
            """End an attempt with TERM, and KILL after the grace time."""

        def signal_all(self, signum: int) -> None:
            """Forward a signal once to every attempt, and KILL what is left after the grace time."""

        def kill_all(self) -> None:
            """End every attempt at once."""

        def close(self) -> None:
            """Leave nothing running."""

    class StepRunner(Protocol):
        """What a step is to do, and what its end means."""

        def prepare(self, step: Step, attempt: int, state: RunState) -> Prepared:
            """Render the step for one attempt."""

        def opening(self, group: Step, state: RunState) -> dict[str, Any]:
            """Return the fields of StepOpened that say what a group is made of now; raises EvaluationError."""

        def gathered(self, group: Step, state: RunState) -> dict[str, Any]:
            """Return the outputs of a group that completed; raises EvaluationError."""

        def conclude(self, step: Step, job: Job, outcome: Outcome) -> Outcome:
            """Read the outputs of a completed attempt, or the last words of a failed one."""

        def plan_outputs(self, state: RunState) -> tuple[dict[str, Any], str]:
            """Return the outputs of the plan by name, and why others could not be evaluated; "" when all could."""

    class Locks(Protocol):
        """Locks that count on this host, for all runs of this user; they are given back when the process dies."""

        @property
        def retry_after(self) -> float:
            """Seconds until it is worth asking again for what could not be had."""

        def claim(self, step: str, names: tuple[str, ...]) -> str:
            """Give a step all these locks and return "", or say why it has to wait; it keeps its place in the line."""

        def release(self, step: str) -> None:
            """Take back the locks of a step, or its place in the line."""

        def close(self) -> None:
            """Take everything back."""

    class Cache(Protocol):
        """Earlier results of steps."""

        def find(self, step: Step, state: RunState) -> dict[str, Any] | None:
            """Put an earlier result of a step into place; returns the fields of StepRestored, None when there is none.

            What it found out stands in `cache` of the attempt that follows: `key`, `why` it runs, whether its result
            was `kept`, and if not `because` of what.
            """

    class Gates(Protocol):
        """Who may start: policy, approvals, and what people answer."""

        def judge(self, step: Step, state: RunState, job: Job | None) -> Passage:
            """Say whether a step may start as `job` says; None: it starts no process."""

        def failed(self, step: Step, state: RunState) -> Passage:
            """Say what is to become of a failed step that asks for it; the answer stands in `answered` or on record."""

        def poll_replies(self, state: RunState) -> list[GateAnswered]:
            """Return what people answered since the last call, checked."""

    class Model(Protocol):
        """Where a language model answers; one call at a time, and nobody has to wait for it."""

        def ask(self, request: Request) -> None:
            """Begin a call; what goes wrong comes back as its answer."""

        def wait(self, timeout: float | None) -> Answer | None:
            """Return the answer; None after `timeout` seconds or when a signal arrived. None as timeout: no limit."""

        def repeats(self) -> list[Repeat]:
            """Return which attempts of the call that is under way were in vain since this was asked last."""

        def stop(self) -> None:
            """End the call that is under way; its answer says what it cost so far."""

        def close(self) -> None:
            """Leave nothing running."""

    class Replanner(Protocol):
        """Has a model replan failures during a run."""

        def wants(self, step: Step, state: RunState) -> bool:
            """Say whether the failure of a step, which has ended, is planned anew."""

        def begin(self, steps: tuple[str, ...], state: RunState) -> None:
            """Begin to plan anew for failed steps; nothing else runs meanwhile."""

        def events(self, state: RunState) -> list[Event]:
            """Return what happened since the last call, without waiting; PlanningEnded is the last of a planning."""

        def stop(self) -> None:
            """End the planning that is under way; its end is among the next events."""

    class MaskedStream(Protocol):
        """Output on its way to a log, in pieces of any size."""

        def feed(self, data: bytes) -> bytes:
            """Take the next piece and return what can be told of all so far, masked."""

        def finish(self) -> bytes:
            """Return what was held back, masked."""

    class Masks(Protocol):
        """What must not be shown, as far as the rooms that write are concerned."""

        def stream(self) -> MaskedStream:
            """Return a stream of its own for the output of one attempt."""

        def mask_text(self, text: str) -> str:
            """Return a text masked."""

        def mask_value(self, value: Any) -> Any:
            """Return plain data masked throughout."""

        def mask_event(self, event: Event) -> Event:
            """Return an event with all that people or steps wrote masked; the event itself when there is nothing."""

    class Journal(Protocol):
        """The ledger, as far as the engine is concerned."""

        @property
        def records(self) -> int:
            """How many events it holds."""

        @property
        def lost(self) -> RecordsLost | None:
            """Why the ledger cannot be written any more; None as long as it can."""

        def append(self, event: Event) -> None:
            """Hand the event to the operating system; see `lost`."""

        def sync(self) -> None:
            """Make what was appended survive a power cut; see `lost`."""

    class Sink(Protocol):
        """Somebody who watches; what goes wrong here never ends a run."""

        def on_event(self, event: Event, state: RunState) -> None:
            """See an event after it was recorded."""

        def tick(self) -> float | None:
            """Redraw; returns the seconds after which to be called again, or None."""

    class Clock(Protocol):
        """Time of day for people, and a clock that never jumps for everything else."""

        def stamp(self) -> str:
            """RFC 3339 UTC with milliseconds."""

        def monotonic(self) -> float:
            """Seconds since some moment."""

    class Inbox(Protocol):
        """Signals that people and CI systems send to planrun."""

        def take(self) -> list[int]:
            """Return the numbers that arrived since the last call, in order."""
