"""Where a new policy allows more than the old one, in sentences."""

from __future__ import annotations

from planrun.model.policy import Policy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from planrun.model.plan import Plan
    from planrun.model.policy import Match, Rule

LEVELS = ("none", "read-only", "low", "medium", "high")
_STRICT = {"deny": 2, "require": 1, "allow": 0}


def laxer(old: Plan, new: Plan) -> Iterator[str]:
    """Yield a sentence for each way in which the policy of the new plan allows what that of the old one did not."""
    before, after = old.policy or Policy(), new.policy or Policy()
    if old.policy is not None and new.policy is None:
        yield "the plan has no policy any more"
    for name in ("auto_approve", "llm_auto_approve"):
        was, now = getattr(before, name), getattr(after, name)
        if LEVELS.index(now) > LEVELS.index(was):
            yield f"{name} goes from {was} to {now}"
    if before.ask_for == "plan" and after.ask_for != "plan":
        yield "the plan as a whole is not asked for any more"
    yield from _of_rules(before, after)
    for name in after.decisions:
        if name not in before.decisions:
            yield f'the policy now answers "{name}"'
        elif after.decisions[name] != before.decisions[name]:
            yield f'the policy now answers "{name}" in another way'


def _of_rules(before: Policy, after: Policy) -> Iterator[str]:
    for rule in before.rules:
        if rule.verb != "allow" and not any(_keeps(other, rule) for other in after.rules):
            yield f"what {rule.name} ({rule.verb}) was about may run more freely now"
    for rule in after.rules:
        if rule.verb == "allow" and not any(_allows(other, rule) for other in before.rules):
            yield f"{rule.name} (allow) lets steps run that were not allowed by a rule before"


def _keeps(other: Rule, rule: Rule) -> bool:
    """Whether a rule is at least as strict, about at least the same steps."""
    return _STRICT[other.verb] >= _STRICT[rule.verb] and _covers(other.match, rule.match)


def _allows(other: Rule, rule: Rule) -> bool:
    return other.verb == "allow" and _covers(other.match, rule.match)


def _covers(wide: Match, narrow: Match) -> bool:
    """Whether whatever fits `narrow` surely fits `wide`: each of its matchers is the same, or one with more words."""
    for name, words in vars(wide).items():
        if not words:
            continue
        others = getattr(narrow, name)
        if name == "risk":
            # One level stands for a range, several for exactly these.
            if words != others:
                return False
        elif not others or not set(others) <= set(words):
            return False
    return True
