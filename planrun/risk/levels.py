"""The four classes of risk and what one finding about a command says."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self, dataclass_transform
else:

    def dataclass_transform(**_options):  # a decorator for type checkers; at run time it returns the class
        return lambda cls: cls


LEVELS = ("read-only", "low", "medium", "high")
READ_ONLY, LOW, MEDIUM, HIGH = LEVELS
EFFECTS = ("code", "destroys", "network", "privilege", "publishes", "secrets", "unknown", "writes")
_RANKS = {level: rank for rank, level in enumerate(LEVELS)}


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Value:
    """A record with named fields. A field that is not given has the default of the class.

    It stands here because this package imports nothing of planrun, and because `dataclasses` costs more to import than
    the classification of a command.
    """

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.__dict__ == self.__dict__

    def __hash__(self) -> int:
        return hash(tuple(sorted((name, repr(value)) for name, value in self.__dict__.items())))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items())
        return f"{type(self).__name__}({fields})"

    def but(self, **changes: Any) -> Self:
        """Return the same value with some fields changed."""
        return type(self)(**{**self.__dict__, **changes})


class Finding(Value):
    """What one part of a command means: its class, why, and its effects (a subset of EFFECTS)."""

    level: str
    reason: str
    effects: tuple[str, ...] = ()


def rank(level: str) -> int:
    """Return 0 for read-only to 3 for high; raises KeyError for a word that is no class."""
    return _RANKS[level]


def worst(*levels: str) -> str:
    """Return the highest of some classes; `read-only` when there is none."""
    return max(levels, key=rank, default=READ_ONLY)


def high(reason: str, *effects: str) -> Finding:
    """Return a finding of class high. Code that is not the project's, and a write elsewhere, may do anything."""
    if not {"code", "writes"}.isdisjoint(effects) or not effects:
        effects = (*[effect for effect in effects if effect not in ("code", "writes")], "unknown")
    return Finding(level=HIGH, reason=reason, effects=effects)


def together(findings: list[Finding]) -> Finding:
    """Return the class of the worst finding, its reason, and the effects of all."""
    if not findings:
        return Finding(level=READ_ONLY, reason="only reads and prints")
    if len(findings) == 1 and len(findings[0].effects) < 2:
        return findings[0]
    decides = max(findings, key=lambda finding: _RANKS[finding.level])
    effects = {effect for finding in findings for effect in finding.effects}
    return Finding(level=decides.level, reason=decides.reason, effects=tuple(sorted(effects)))
