"""The ports of the engine: protocols that other packages implement; `planrun.app` chooses the implementations.

Only type checkers import this module.
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
            """Start an attempt; a failure to start is its outcome."""

        def wait(self, timeout: float | None) -> list[tuple[Job, Outcome]]:
            """Return the ended attempts; empty after `timeout` seconds or when a signal arrived."""

        def attend(self) -> None:
            """Do what is due of the running attempts without waiting: time limits and masks; wait() returns ends."""

        def output(self, step: str, start: int, size: int) -> bytes | None:
            """Return what a running attempt has in its log from byte `start` on, at most `size` bytes.

            None: it does not run, or its log is complete.
            """

        def stop(self, step: str, reason: Literal["cancelled", "timeout"]) -> None:
            """End an attempt with TERM, and KILL after the grace time."""

        def signal_all(self, signum: int) -> None:
            """Forward a signal once to each attempt, and KILL the rest after the grace time."""

        def kill_all(self) -> None:
            """End every attempt at once."""

        def close(self) -> None:
            """Leave nothing running."""

    class StepRunner(Protocol):
        """Prepares the attempts of steps, and reads their outcomes."""

        def prepare(self, step: Step, attempt: int, state: RunState) -> Prepared:
            """Render the step for one attempt."""

        def opening(self, group: Step, state: RunState) -> dict[str, Any]:
            """Return the fields of StepOpened with the current items of a group; raises EvaluationError."""

        def gathered(self, group: Step, state: RunState) -> dict[str, Any]:
            """Return the outputs of a group that completed; raises EvaluationError."""

        def conclude(self, step: Step, job: Job, outcome: Outcome) -> Outcome:
            """Read the outputs of a completed attempt, or the last output lines of a failed one."""

        def plan_outputs(self, state: RunState) -> tuple[dict[str, Any], str]:
            """Return the outputs of the plan by name, and why others could not be evaluated; "" when all could."""

    class Locks(Protocol):
        """Locks on this host, for all runs of this user; the system releases them when the process dies."""

        @property
        def retry_after(self) -> float:
            """Seconds until the next try for a lock that was taken."""

        def claim(self, step: str, names: tuple[str, ...]) -> str:
            """Give a step all these locks and return "", or return why it waits; it keeps its place in the queue."""

        def release(self, step: str) -> None:
            """Release the locks of a step, or its place in the queue."""

        def close(self) -> None:
            """Release all locks."""

    class Cache(Protocol):
        """Earlier results of steps."""

        def find(self, step: Step, state: RunState) -> dict[str, Any] | None:
            """Restore an earlier result of a step; returns the fields of StepRestored, None when there is none.

            The attempt that follows records in `cache`: `key`, `why` it runs, whether its result was `kept`, and the
            reason in `because` if not.
            """

    class Gates(Protocol):
        """Decides which steps may start: policies, approvals, and answers."""

        def judge(self, step: Step, state: RunState, job: Job | None) -> Passage:
            """Return whether a step may start `job`; None: it starts no process."""

        def failed(self, step: Step, state: RunState) -> Passage:
            """Return the decision on a step failed under `on_failure: ask`; its answer is in `answered` or recorded."""

        def poll_replies(self, state: RunState) -> list[GateAnswered]:
            """Return the checked answers since the last call."""

        def is_asking(self, state: RunState) -> bool:
            """Return whether a person at the terminal of this process may still answer: then the run waits."""

    class Model(Protocol):
        """A language model; one call at a time, without blocking."""

        def ask(self, request: Request) -> None:
            """Begin a call; a failure is its answer."""

        def wait(self, timeout: float | None) -> Answer | None:
            """Return the answer; None after `timeout` seconds or when a signal arrived. None as timeout: no limit."""

        def repeats(self) -> list[Repeat]:
            """Return the failed attempts of the current call since the last call of this method."""

        def stop(self) -> None:
            """End the current call; its answer has the cost so far."""

        def close(self) -> None:
            """Leave nothing running."""

    class Replanner(Protocol):
        """Has a model replan failures during a run."""

        def wants(self, step: Step, state: RunState) -> bool:
            """Return whether the failure of an ended step is to be replanned."""

        def begin(self, steps: tuple[str, ...], state: RunState) -> None:
            """Begin to replan failed steps; no step runs meanwhile."""

        def events(self, state: RunState) -> list[Event]:
            """Return the events since the last call, without waiting; PlanningEnded is the last of a planning."""

        def stop(self) -> None:
            """End the current planning; its end is among the next events."""

    class MaskedStream(Protocol):
        """Output on its way to a log, in pieces of any size."""

        def feed(self, data: bytes) -> bytes:
            """Take the next piece and return the masked output so far that is complete."""

        def finish(self) -> bytes:
            """Return the rest, masked."""

    class Masks(Protocol):
        """Masks secrets in everything that is written."""

        def stream(self) -> MaskedStream:
            """Return a stream of its own for the output of one attempt."""

        def mask_text(self, text: str) -> str:
            """Return a text masked."""

        def mask_value(self, value: Any) -> Any:
            """Return plain data masked throughout."""

        def mask_event(self, event: Event) -> Event:
            """Return an event with all texts of users and steps masked; the event itself when nothing is masked."""

    class Journal(Protocol):
        """The ledger, as the engine uses it."""

        @property
        def records(self) -> int:
            """How many events it holds."""

        @property
        def lost(self) -> RecordsLost | None:
            """Why the ledger cannot be written any more; None while it can."""

        def append(self, event: Event) -> None:
            """Write the event to the file, after those that are held; see `lost`."""

        def hold(self, event: Event) -> None:
            """Take an event that nothing depends on yet; it is written with the next one."""

        def flush(self) -> None:
            """Write the events that are held to the file; see `lost`."""

        def sync(self) -> None:
            """Sync the file to the disk; see `lost`."""

    class Sink(Protocol):
        """A receiver of events; its errors never end a run."""

        def on_event(self, event: Event, state: RunState) -> None:
            """Receive an event after it was recorded."""

        def tick(self) -> float | None:
            """Redraw; returns the seconds after which to be called again, or None."""

    class Clock(Protocol):
        """Time of day for records, and a monotonic clock for everything else."""

        def stamp(self) -> str:
            """RFC 3339 UTC with milliseconds."""

        def monotonic(self) -> float:
            """Seconds since an arbitrary moment."""

    class Inbox(Protocol):
        """Signals to planrun."""

        def take(self) -> list[int]:
            """Return the numbers that arrived since the last call, in order."""
