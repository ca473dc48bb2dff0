"""The questions of a run on its terminal: one at a time, while other steps run; the answers become events.

Each answer passes the same checks as one from another shell. A question is withdrawn when its gate is closed by
something else. What was typed before a question was shown does not answer it.
"""

from __future__ import annotations

import sys

from planrun.approval.questions import Question, key_of
from planrun.approval.responses import events_of
from planrun.errors import PlanrunError
from planrun.reports.escape import line
from planrun.reports.gates import answer, gates, open_gates
from planrun.reports.policies import name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, Protocol

    from planrun.approval.terminal import Terminal
    from planrun.model.events import Event, GateAnswered, GateOpened
    from planrun.model.state import RunState
    from planrun.ports import Clock

    class Board(Protocol):
        """What shows the questions: the console of the run."""

        def say(self, lines: Iterable[str]) -> None:
            """Write lines above the question."""

        def ask(self, *parts: str) -> None:
            """Keep a line at the end of the output, the cursor behind it; without parts it is taken away."""

        def entered(self, typed: str = "") -> None:
            """Take note that the user ended the line: the cursor is below it."""

    class Waker(Protocol):
        """What waits for the events of the run."""

        def listen(self, descriptor: int) -> None:
            """End a wait when a descriptor can be read."""

        def ignore(self, descriptor: int) -> None:
            """Stop listening to a descriptor."""

    class Subject(Protocol):
        """What an approval is about."""

        def commands(self, step: str) -> str:
            """Return the text of what a step would run."""

        def details(self, step: str, state: RunState) -> list[str]:
            """Return all that is known of it; of the plan for ""."""


AFTER_ANOTHER = 1.0
"""Seconds between a question that was withdrawn and the next one: a line that is just being typed is for the former."""


class Prompt:
    """Asks about the open gates of one run; also a sink of its events."""

    def __init__(
        self,
        terminal: Terminal,
        board: Board,
        subject: Subject,
        clock: Clock,
        checks: tuple[str, Callable[[Mapping[str, Any]], None] | None],
    ) -> None:
        """`checks`: the name of the user, and what refuses answers with secrets."""
        self._terminal = terminal
        self._board = board
        self._subject = subject
        self._clock = clock
        self._by, self._refuse_secrets = checks
        self._waker: Waker | None = None
        self._listening = False
        self._question: Question | None = None
        self._waits: set[tuple[str, str, str]] = set()  # gates that the user left open
        self._has_quit = False
        self._not_before = 0.0  # when the next question may be shown
        self._state: RunState | None = None  # set when something happened since the last tick
        self._gates: list[GateOpened] | None = None  # the open ones; None: they may have changed
        terminal.open()

    def attach(self, waker: Waker) -> None:
        """Let a typed line end the waits of `waker`."""
        self._waker = waker

    def close(self) -> None:
        """Ask no more."""
        self._drop()
        self._terminal.close()

    def is_asking(self, state: RunState) -> bool:
        """Return whether the user may still answer an open gate here."""
        if self._has_quit or not self._terminal.is_foreground:
            return False
        return bool(self._open(state))

    def _open(self, state: RunState) -> list[GateOpened]:
        if self._gates is None:
            self._gates = open_gates(state)
        return [opened for opened in self._gates if key_of(opened) not in self._waits]

    # What happens in the run.

    def on_event(self, _event: Event, state: RunState) -> None:
        """Take note that a gate may be closed."""
        self._state, self._gates = state, None

    def tick(self) -> float | None:
        """Withdraw the question of a gate that is closed."""
        state, self._state = self._state, None
        if state is not None and self._question is not None:
            self._check(self._question, state)
        return None

    def _check(self, question: Question, state: RunState) -> None:
        if any(key_of(opened) == question.key for opened in self._open(state)):
            return
        self._drop()
        if state.ending is None or state.pausing:
            self._board.say(
                [f"The question about {name_of(question.opened)} is withdrawn{_why(question, state)}"]
            )
        self._not_before = self._clock.monotonic() + AFTER_ANOTHER

    # What the user types.

    def poll(self, state: RunState) -> list[GateAnswered]:
        """Ask the next question, or return the answer to the current one; never waits."""
        try:
            return self._poll(state)
        except Exception as error:  # noqa: BLE001 - a question must not end a run: others can still answer it
            self._board.say([f"planrun cannot ask here: {line(f'{type(error).__name__}: {error}')}"])
            self._quit()
            return []

    def _poll(self, state: RunState) -> list[GateAnswered]:
        if self._question is not None:
            self._check(self._question, state)
        if not self.is_asking(state):
            self._drop()
            return []
        if self._question is None:
            waiting = self._open(state)
            if waiting and self._clock.monotonic() >= self._not_before:
                opened = waiting[0]
                commands = self._subject.commands(opened.step) if opened.kind == "approval" else ""
                self._question = Question(opened, state, commands)
                self._board.say(self._question.lines())
                self._show(state)
        elif self._terminal.continued:  # the shell wrote below the question
            self._board.entered()
            self._show(state)
        if self._question is None or (text := self._terminal.line()) is None:
            return []
        if text:
            self._board.entered(text.rstrip("\n"))
        if not text:
            self._quit()
            return []
        return self._act(self._question, text.removesuffix("\n"), state)

    def _show(self, state: RunState) -> None:
        """Show the prompt of the current question; only what is typed from now on answers it."""
        assert self._question is not None
        self._terminal.continued = False
        self._terminal.flush()
        self._board.ask(*self._question.prompt(len(self._open(state)) - 1))
        self._listen(wanted=True)

    def _drop(self) -> None:
        if self._question is not None:
            self._question = None
            self._board.ask()
        self._listen(wanted=False)

    def _listen(self, *, wanted: bool) -> None:
        # poll() of macOS does not know terminals: there a line is noticed by the next poll for replies.
        if self._waker is not None and wanted != self._listening and sys.platform != "darwin":
            (self._waker.listen if wanted else self._waker.ignore)(self._terminal.descriptor)
            self._listening = wanted

    def _quit(self) -> None:
        self._drop()
        self._has_quit = True
        self._board.say(["No more questions: what waits for an answer stays open"])

    def _act(self, question: Question, text: str, state: RunState) -> list[GateAnswered]:
        said = question.understand(text)
        if said.act == "quit":
            self._quit()
            return []
        if said.act == "later":
            self._waits.add(question.key)
            self._drop()
            return []
        if said.reply is not None:
            try:
                found = events_of(said.reply.but(by=self._by), state, self._clock.stamp(), via="terminal")
                if self._refuse_secrets:
                    self._refuse_secrets({event.step: event.answer for event in found})
            except PlanrunError as error:
                self._board.say([f"  {error}"])
            else:
                self._drop()
                return found
        elif said.act == "show":
            self._board.say(self._subject.details(question.opened.step, state))
        else:
            self._board.say(question.help() if said.act == "help" else [f"  {said.message}"])
        self._show(state)
        return []


def _why(question: Question, state: RunState) -> str:
    step = question.opened.step
    for _, gate in gates(state):
        if gate.opened is not None and gate.answered is not None and key_of(gate.opened) == question.key:
            return f": {answer(gate.answered)}"
    message = state.steps[step].message if step else ""
    return f": {message}" if message else ""
