"""The four classes of risk and what one finding about a command says."""

from __future__ import annotations

from planrun.model.record import Record

LEVELS = ("read-only", "low", "medium", "high")
READ_ONLY, LOW, MEDIUM, HIGH = LEVELS
EFFECTS = ("code", "destroys", "network", "privilege", "publishes", "secrets", "unknown", "writes")
_RANKS = {level: rank for rank, level in enumerate(LEVELS)}


class Finding(Record):
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
    """Return a finding of class high; without effects, what it would do is unknown."""
    return Finding(level=HIGH, reason=reason, effects=effects or ("unknown",))


def together(findings: list[Finding]) -> Finding:
    """Return the class of the worst finding, its reason, and the effects of all."""
    if not findings:
        return Finding(level=READ_ONLY, reason="only reads and prints")
    if len(findings) == 1 and len(findings[0].effects) < 2:
        return findings[0]
    decides = max(findings, key=lambda finding: _RANKS[finding.level])
    effects = {effect for finding in findings for effect in finding.effects}
    return Finding(level=decides.level, reason=decides.reason, effects=tuple(sorted(effects)))
