"""A call that is cut off from planrun's side, in the middle of an answer: what it cost so far is not forgotten."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, Any

from planrun.model.call import Usage
from proofs.trials import LIMIT
from tests.fakes.messages import say, status
from tests.fakes.messages.script import as_script

if TYPE_CHECKING:
    from collections.abc import Callable

    from planrun.llm.process import ModelProcess
    from proofs.calls import Stage

SLOW = say("There is no end to it. " * 4000, piece=16, pace=0.02, usage=None)
"""An answer that takes minutes."""
ENOUGH = 20
"""Tokens of the answer that the process has to have told of before it is cut off."""


def cut_off(stage: Stage, how: Callable[[ModelProcess], None], ending: str, rule: str) -> list[str]:
    """Cut off a call whose second attempt is answering; returns what is not as it has to be."""
    from proofs.calls import question  # which imports this

    model = stage.warm()
    stage.api.script = as_script([status(529), SLOW])
    before = len(stage.api.journal.entries)
    model.ask(question(f"{ending} {rule}", seconds=LIMIT, max_tokens=100_000))
    told = _await_some(model)
    how(model)
    answer = model.wait(None)
    stage.api.journal.settle()
    if answer is None:
        return ["no answer"]
    problems = []
    if (answer.ending, answer.rule, answer.text) != (ending, rule, ""):
        problems.append(f"{answer.ending} by {answer.rule}: {answer.message}")
    if not answer.is_estimate or answer.attempts != 2:
        problems.append(f"{answer.attempts} attempts, estimate: {answer.is_estimate}")
    lost = [name for name, count in vars(told).items() if getattr(answer.usage, name) < count]
    if lost or answer.usage.input_tokens != stage.api.journal.told.input - _input(stage, before):
        problems.append(f"{answer.usage} where {told} was told before")
    if stage.api.journal.entries[-1].ended != "left":
        problems.append("the connection to the service stays")
    return [f"a call that is {ending}: {problem}" for problem in problems]


def _input(stage: Stage, before: int) -> int:
    """Return the input tokens of the exchanges before."""
    return sum(entry.told.input for entry in stage.api.journal.entries[:before])


def _await_some(model: ModelProcess) -> Usage:
    """Wait until the process has told of some tokens of the answer, and return what it told."""
    limit = time.monotonic() + LIMIT
    while time.monotonic() < limit:
        if model.wait(0.05) is not None:
            break
        spent: dict[str, Any] = model._call.spent if model._call else {}
        usage = Usage(**spent.get("usage", {}))
        if usage.output_tokens >= ENOUGH:
            return usage
    raise RuntimeError("the process tells nothing of what a call used up")


def stop(model: ModelProcess) -> None:
    """End the call as planrun does when it is told to stop."""
    model.stop()


def kill(model: ModelProcess) -> None:
    """End the process as the system does that runs out of memory."""
    os.kill(model.pid, signal.SIGKILL)


CUTS: dict[str, tuple[Callable[[ModelProcess], None], str, str]] = {
    "stopped": (stop, "stopped", "process:stopped"),
    "killed": (kill, "unavailable", "process:lost"),
}
"""Ways to cut off a call, with the ending and the rule of its answer."""
