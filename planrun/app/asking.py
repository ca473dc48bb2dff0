"""The questions of a run on the terminal of its user: whether it asks, and the approval of a whole plan."""

from __future__ import annotations

import os
import select

from planrun.app.ending import record_end
from planrun.approval.prompt import Prompt
from planrun.approval.responses import user_name
from planrun.approval.subjects import Subjects
from planrun.approval.terminal import Terminal, may_ask
from planrun.errors import EXIT_DENIED, EXIT_WAITING
from planrun.executors.wait import PAUSING
from planrun.model import events as ev

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from planrun.actions.environment import RunEnvironment
    from planrun.app.ending import Recorder
    from planrun.approval.gates import PolicyGates
    from planrun.approval.prompt import Board
    from planrun.executors.wait import SignalInbox
    from planrun.model.state import RunState
    from planrun.ports import Clock

_PERIOD = 0.25  # seconds between two polls for answers from other shells


def prompt_of(
    gates: PolicyGates,
    place: RunEnvironment,
    board: Board,
    clock: Clock,
    refuse: Callable[[Mapping[str, Any]], None] | None,
) -> Prompt | None:
    """Return what asks the user of this terminal; None where no person is at it. `refuse`: answers with secrets."""
    if not may_ask(os.environ):
        return None
    subjects = Subjects(place)
    prompt = Prompt(Terminal(), board, subjects, clock, (user_name(), refuse))
    gates.prompt, gates.subjects = prompt, subjects
    return prompt


class _Wait:
    """Waits for a typed line, a signal, or the next poll."""

    def __init__(self, inbox: SignalInbox) -> None:
        self._poll = select.poll()
        if inbox.fd >= 0:
            self._poll.register(inbox.fd, select.POLLIN)

    def listen(self, descriptor: int) -> None:
        """End a wait when a descriptor can be read."""
        self._poll.register(descriptor, select.POLLIN)

    def ignore(self, descriptor: int) -> None:
        """Stop listening to a descriptor."""
        self._poll.unregister(descriptor)

    def wait(self) -> None:
        """Wait for at most one period."""
        self._poll.poll(_PERIOD * 1000)


def ask_for_plan(
    state: RunState, gates: PolicyGates, recorder: Recorder, inbox: SignalInbox, show: Callable[[], object]
) -> int | None:
    """Ask for the approval of a plan that awaits it; `show` writes what is new on the console.

    Returns the exit code where the run does not start: the approval was put off, refused, or a signal arrived.
    """
    prompt = gates.prompt
    if prompt is None:
        return EXIT_WAITING
    wait = _Wait(inbox)
    prompt.attach(wait)
    while state.gate is not None and state.gate.answered is None:
        show()
        signals = inbox.take()
        if signals:
            prompt.close()
            if PAUSING in signals:
                return EXIT_WAITING
            return record_end(state, recorder, signum=signals[0])
        for event in gates.poll_replies(state):
            recorder.record(event)
            prompt.on_event(event, state)
        prompt.tick()
        if state.gate.answered is None:
            if not prompt.is_asking(state):
                return EXIT_WAITING
            wait.wait()
    if (
        state.gate is not None
        and state.gate.answered is not None
        and state.gate.answered.answer == "rejected"
    ):
        return record_end(state, recorder, code=EXIT_DENIED)
    recorder.record(ev.PlanMoved(at=recorder.stamp(), status="approved"))
    return None
