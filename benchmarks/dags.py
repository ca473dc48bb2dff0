"""The graphs that every tool runs: steps with a shell command and the numbers of the steps they wait for."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass

SEED = 20  # the same random edges in every run and for every tool
MARKS = "order.txt"  # in the workspace; what `marking` steps write


@dataclass(frozen=True)
class Step:
    """One shell command; `needs` holds positions of earlier steps."""

    name: str
    command: str
    needs: tuple[int, ...] = ()


@dataclass(frozen=True)
class Dag:
    """Steps in an order in which every step comes after all it needs."""

    name: str
    steps: tuple[Step, ...]

    def sinks(self) -> tuple[Step, ...]:
        """The steps that nothing waits for."""
        needed = {need for step in self.steps for need in step.needs}
        return tuple(step for index, step in enumerate(self.steps) if index not in needed)


Command = Callable[[int], str]


def silent(_index: int) -> str:
    """A step that prints nothing; every shell has it built in."""
    return "true"


def program(_index: int) -> str:
    """A step that starts a program; `true` by its path, so that no tool's shell does it itself."""
    return shutil.which("true") or "/usr/bin/true"


def printing(index: int) -> str:
    """A step that prints one line."""
    return f"echo step {index} has something to say"


def marking(index: int) -> str:
    """A step that appends its number to `MARKS`.

    The brackets keep marks apart even when two steps write between each other's bytes; `>>` is O_APPEND.
    """
    return f"printf '<{index}>' >> {MARKS}"


def witnessing(index: int) -> str:
    """A step that keeps what the run's ledger held when it started."""
    return f"cat .planrun/runs/*/ledger.jsonl > seen.{index}"


def one(command: str) -> Dag:
    """A single step."""
    return Dag("one", (Step("s0", command),))


def chain(length: int, command: Command) -> Dag:
    """Steps that each wait for the one before."""
    steps = [Step(f"s{index}", command(index), (index - 1,) if index else ()) for index in range(length)]
    return Dag(f"chain{length}", tuple(steps))


def fan(width: int, command: Command) -> Dag:
    """`width` independent steps and one that waits for all of them."""
    steps = [Step(f"s{index}", command(index)) for index in range(width)]
    join = Step(f"s{width}", command(width), tuple(range(width)))
    return Dag(f"fan{width}", (*steps, join))


def layers(depth: int, width: int, command: Command) -> Dag:
    """`depth` layers of `width` steps; a step waits for 3 random steps of the layer before."""
    draw = random.Random(SEED)
    steps = []
    for index in range(depth * width):
        first = index - index % width - width
        needs = sorted(draw.sample(range(first, first + width), min(3, width))) if first >= 0 else ()
        steps.append(Step(f"s{index}", command(index), tuple(needs)))
    return Dag(f"layer{depth * width}", tuple(steps))
