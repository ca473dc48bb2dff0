"""The phrases that every form of a difference shares: counts, values, risks, and changes common to many steps."""

from __future__ import annotations

import json

from planrun.actions.environment import holds_credential, looks_secret
from planrun.approval.rules import LEVELS
from planrun.diff.differences import Change

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from planrun.diff.approvals import Approvals, Gate
    from planrun.diff.differences import Difference, StepChange
    from planrun.diff.report import Report, Script
    from planrun.model.plan import Plan, Step

SAME = "no difference in meaning"
HIDDEN = "(not shown: it is named like a credential)"
_MANY = 3
"""From this number of steps on, a common change is shown once."""
_ACTIONS = frozenset(("run", "exec"))


def counts(found: Difference) -> dict[str, int]:
    """Return the number of steps by kind of change; `order`: the moved ones."""
    kinds = {kind: len(found.of(kind)) for kind in ("added", "removed", "renamed", "changed")}
    return {**kinds, "order": sum(step.after is not None for step in found.steps)}


def summary(report: Report) -> str:
    """Return in one sentence how much is different."""
    found = report.difference
    if not report.differs:
        return SAME
    words = [f"{number} {kind}" for kind, number in counts(found).items() if number and kind != "order"]
    parts = [f"steps: {', '.join(words)}"] if words else []
    parts += ["the head of the plan"] * bool(found.plan) + ["the policy"] * bool(found.policy)
    if report.scripts:
        parts.append(f"scripts: {len(report.scripts)}")
    return "; ".join(parts)


def script(found: Script) -> str:
    """Return the change of a script, and which steps run it."""
    word = {"changed": "changed", "removed": "was removed", "added": "was added"}[found.change]
    return f"{found.path} {word} (run by {names(found.steps)})"


def gate(found: Gate) -> str:
    """Return the decision on a step that is denied or needs an approval, now or under the old policy, and why."""
    before = f"; under the old policy: {found.before}" if found.before else ""
    before = f"; approved {found.approved}{before}" if found.approved else before
    if found.answer == "answer":
        return f"{found.reason}{before}"
    if found.answer == "allow":
        return f"allowed by {found.rule}{before}"
    word = "denied" if found.answer == "deny" else "asked for"
    return f"{word} by {found.rule}: {found.reason}{before}"


def approves(found: Approvals) -> str:
    """Return what the command of an approval covers; empty where it names no digest yet."""
    return "the plan, its parameters as given or else their defaults, its scripts" if found.digest else ""


def highest(steps: Iterable[Step]) -> str:
    """Return the highest risk among steps and what undoes them; empty without any."""
    found = [each.risk for step in steps for each in (step, *(step.rollback.undos if step.rollback else ()))]
    return max(found, key=LEVELS.index, default="")


def highest_changed(found: Difference) -> str:
    """Return the highest risk among the steps that are new or do something else than before."""
    return highest([step.new for step in found.steps if step.new and step.matters])


def risk(step: StepChange) -> str:
    """Return the risk of a step in words, old and new where they differ; empty for a step that is gone."""
    if step.new is None:
        return ""
    now = _risk(step.new)
    return f"{step.old.risk} → {now}" if step.old and step.riskier else now


def _risk(step: Step) -> str:
    reason = f": {step.risk_reason}" if step.risk_reason else ""
    effects = f" ({', '.join(step.effects)})" if step.effects else ""
    undone = "".join(
        [f"; its rollback {_risk(undo)}" for undo in (step.rollback.undos if step.rollback else ())]
    )
    return f"{step.risk}{reason}{effects}{undone}"


def plan_risk(old: Plan | None, new: Plan | None) -> str:
    """Return the highest risk in the whole plan, old and new where they differ."""
    was, now = (highest(plan.steps) if plan else "" for plan in (old, new))
    return f"{was} → {now}" if was and now and was != now else now or was


def once_for_many(found: Difference) -> list[tuple[Change, list[str]]]:
    """Return the changes that several steps share, as after an edit of `defaults`, each with the steps."""
    groups: dict[str, tuple[Change, list[str]]] = {}
    for step in found.steps:
        for change in step.changes if step.kind in ("changed", "renamed") else ():
            groups.setdefault(_same(change), (change, []))[1].append(step.step.id)
    return [group for group in groups.values() if len(group[1]) >= _MANY and not is_action(group[0])]


def one_by_one(
    found: Difference, common: Iterable[tuple[Change, list[str]]]
) -> list[tuple[StepChange, list[Change]]]:
    """Return the steps with changes of their own, with those changes."""
    shared = {_same(change) for change, _steps in common}
    rows = []
    for step in found.steps:
        own = list(step.changes)
        if step.old and step.new:
            own = [change for change in own if _same(change) not in shared]
        if own or step.kind != "changed" or step.after is not None:
            rows.append((step, own))
    return rows


def _same(change: Change) -> str:
    return ascii(sorted(vars(change).items()))


def is_action(change: Change) -> bool:
    """Whether it is a command that changed."""
    return change.path[0] in _ACTIONS and len(change.path) == 1


def is_text(change: Change) -> bool:
    """Whether it is shown line by line: a command, or a text of several lines."""
    sides = [side for side in (change.old, change.new) if isinstance(side, str)]
    return is_action(change) or any("\n" in side.strip() for side in sides)


def hidden(change: Change) -> bool:
    """Whether the values are named like credentials, so that they must not be shown."""
    if len(change.path) < 2:
        return False
    if change.path[0] == "params":
        return holds_credential(change.path[1])
    return change.path[0] == "env" and looks_secret(change.path[1])


def value(found: Any) -> str:
    """Return a value in one line; a text without quotes, where its ends can be seen."""
    if isinstance(found, str) and found and found == found.strip() and found.isprintable():
        return found
    return json.dumps(found, ensure_ascii=False)


def text_of(found: Any) -> str:
    """Return a command as its lines: an `exec` as one, its words so that their ends can be seen."""
    if isinstance(found, list):
        return " ".join([_word(word) for word in found])
    return "" if found is None else str(found)


def _word(word: str) -> str:
    plain = word and word.isprintable() and not set(word) & set(" '\"\\$`|&;<>()*?[]{}#~!")
    return word if plain else json.dumps(word, ensure_ascii=False)


def note(change: Change) -> str:
    """Return the note beside the two values."""
    if change.note:
        return change.note
    if (
        isinstance(change.old, str)
        and isinstance(change.new, str)
        and change.old.split() == change.new.split()
    ):
        return "only white space differs"
    return ""


def place(step: StepChange) -> str:
    """Return the new place of a step that moved in the file."""
    if step.after is None:
        return ""
    return f"moved after {step.after}" if step.after else "moved to the front"


def names(ids: Sequence[str], limit: int = 12) -> str:
    """Return ids in one line, the rest counted."""
    more = f" and {len(ids) - limit} more" if len(ids) > limit else ""
    return ", ".join(ids[:limit]) + more
