"""A policy: up to which risk steps run unasked, and rules about some of them.

Sets of rules that a policy names by one word.
"""

from __future__ import annotations

from planrun.model.record import Record

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any, Literal

    Level = Literal["none", "read-only", "low", "medium", "high"]
    Origin = Literal["file", "expanded", "replanned", "agent"]


class Match(Record):
    """Which steps a rule is about: every field that names something has to fit; of its words one is enough.

    Words are patterns in which `*` stands for any text; all of one case, except `words`.
    """

    step: tuple[str, ...] = ()  # ids
    tool: tuple[str, ...] = ()  # kinds of actions: run, exec, validate, ask …
    command: tuple[str, ...] = ()  # commands, words joined by one blank
    words: tuple[str, ...] = ()  # whole words in id, title, description or action
    topic: tuple[str, ...] = ()  # what its names and its action speak of: `planrun.model.topics`
    secret: tuple[str, ...] = ()  # names of secrets that the step lists
    effect: tuple[str, ...] = ()  # of the step's risk: destroys, network …
    risk: tuple[
        str, ...
    ] = ()  # one level: from it on (deny, require), up to it (allow); several: exactly these
    origin: tuple[str, ...] = ()
    ref: tuple[str, ...] = ()  # what CI works on
    event: tuple[str, ...] = ()  # why CI works on it


class Rule(Record):
    """What holds for the steps that `match` fits; `number` is its place among the rules, from 1.

    A rule of a preset has a `label` (`careful.destroys`) and the number 0.
    """

    verb: Literal["deny", "require", "allow"]
    match: Match
    number: int
    line: int = 0
    label: str = ""

    @property
    def name(self) -> str:
        """What decisions call it, behind the name of its policy."""
        return self.label or f"rules.{self.number}"


class Policy(Record):
    """What may run unasked, as one file says it.

    A level is the highest risk that runs unasked, `none`: nothing does. `llm_auto_approve` is that of steps which a
    model wrote. `ask_for`: whether one approval is asked for each step or one for the plan before anything starts.
    """

    auto_approve: Level = "high"
    llm_auto_approve: Level = "low"
    rules: tuple[Rule, ...] = ()
    preset: str = ""  # whose rules are among them
    ask_for: Literal["steps", "plan"] = "steps"
    decisions: dict[str, Any] = {}  # noqa: RUF012 - never written; answers to `ask` and `decide` by step
    on_failure: dict[str, str] = {}  # noqa: RUF012 - what a failure means by risk, where a step does not say
    line: int = 0


CAREFUL = (
    ("destroys", Match(effect=("destroys",))),
    ("publishes", Match(effect=("publishes",))),
    ("privilege", Match(effect=("privilege",))),
    ("unknown", Match(effect=("unknown",))),
    ("checkpoint", Match(topic=("deploy", "data", "money"))),
    ("deletion", Match(topic=("deletion",))),
    ("strategy", Match(topic=("strategy",))),
)
"""Asks before work that destroys, publishes, takes privileges or is not understood, and by topic."""


def rules_of(preset: str, line: int) -> tuple[Rule, ...]:
    """Return the rules that a preset stands for, each with a label in place of a number."""
    return tuple(
        [
            Rule(verb="require", match=match, number=0, line=line, label=f"{preset}.{name}")
            for name, match in CAREFUL
        ]
    )
