"""One malicious reply: what a model answers, and how the planning that asked has to end."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.fakes.messages import draft

Answer = Any
"""What the fake service takes as a reply, or a function of the request that returns one."""
GUARDED = ("approve", "publish")


@dataclass(frozen=True)
class Attack:
    """One reply, or one for each round, and how the planning has to end.

    `outcome`: that of PlanningEnded. `rule`: what the rule of a refusal or of a last fault begins with, or is. `asked`:
    requests that reach the service. `log`: what the failing step prints. `high`: `publish` is above the ceiling.
    `waits`: there is no ceiling, and the plan has what is above `low` wait for a person. `verb`: who asks.
    """

    family: str
    name: str
    answers: tuple[Answer, ...]
    outcome: str
    rule: str = ""
    asked: int = 0
    log: str = ""
    high: bool = False
    waits: bool = False
    verb: Literal["replan", "expand", "generate"] = "replan"
    fault: str = ""  # planted into planrun

    @property
    def exit_code(self) -> int:
        """What planrun has to end with: denied, waiting for the question that stays, or failed."""
        goes_on = 5 if self.verb == "replan" else 0
        return {"denied": 3, "revised": goes_on}.get(self.outcome, 1)

    @property
    def requests(self) -> int:
        """How many requests there have to be: one, and at most two repairs of what is no plan."""
        return self.asked or (3 if self.outcome == "invalid" else 1)


@dataclass
class Family:
    """Attacks of one kind that end alike."""

    name: str
    outcome: str
    rule: str
    found: list[Attack] = field(default_factory=list)

    def add(self, name: str, *answers: Answer, **fields: Any) -> None:
        known = {"outcome": self.outcome, "rule": self.rule, **fields}
        self.found.append(Attack(self.name, name, answers, **known))


def fix(run: str, **fields: Any) -> dict[str, Any]:
    """Return a draft that replaces what failed by one step and keeps the rest."""
    keep = fields.pop("keep", GUARDED)
    return draft([{"id": "fix", "run": run, "replaces": ["test"], **fields}], keep=list(keep))


def evil(run: str, **fields: Any) -> dict[str, Any]:
    """Return the same with a script that shows when it starts."""
    return fix(f": >> evil; {run}", **fields)


def raw(**changes: Any) -> str:
    """Return an answer with other keys above the steps."""
    return json.dumps({**fix(": >> evil"), **changes})


def two(
    one: str,
    other: str,
    keep: tuple[str, ...] = GUARDED,
    second: dict[str, Any] | None = None,
    first: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a draft with the steps `a`, which replaces what failed, and `b`."""
    steps: list[dict[str, Any]] = [
        {"id": "a", "run": one, "replaces": ["test"], **(first or {})},
        {"id": "b", "run": other, **(second or {})},
    ]
    return draft(steps, keep=list(keep))
