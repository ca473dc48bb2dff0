"""Who stands in for whom: what steps are called that take the place of others."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.model.plan import Plan


def lineage(plan: Plan) -> dict[str, str]:
    """Return what the steps are called that take the place of others, by id.

    A step is called as the one that it replaces, with one more prime: 3', and 3'' when that was replaced, too.
    """
    found: dict[str, str] = {}
    replacing = {step.id: step.replaces[0] for step in plan.steps if step.replaces}
    for name in replacing:
        at, primes = name, ""
        while at in replacing and len(primes) <= len(replacing):
            at, primes = replacing[at], primes + "'"
        found[name] = at + primes
    return found
