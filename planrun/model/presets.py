"""Sets of rules that a policy names by one word."""

from __future__ import annotations

from planrun.model.policy import Match, Rule

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
