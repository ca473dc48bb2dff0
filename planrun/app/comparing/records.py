"""The difference of two plans, as records: every form in which it is told is made of these."""

from __future__ import annotations

from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    from planrun.model.plan import Step

    Sign = Literal["+", "-", "~"]

# What is said about a plan or a step for people alone: it changes nothing that happens.
PROSE = frozenset(("title", "description", "goal", "owner", "notes", "criteria", "estimated_tokens"))


class Change(Record):
    """One thing that is new (`+`), gone (`-`) or another (`~`), by its place in the plan language.

    `path` are the keys that lead to it: `("env", "LEVEL")`. `old` and `new` are plain data as the plan language
    writes them, durations and expressions as texts; None where there is none.
    """

    path: tuple[str, ...]
    sign: Sign
    old: Any = None
    new: Any = None
    note: str = ""  # what the two values do not show by themselves

    @property
    def key(self) -> str:
        """The path as people write it: `env.LEVEL`."""
        return ".".join(self.path)


class StepChange(Record):
    """A step that is new, gone, or there in both plans and not the same: then `changes` tell what is different.

    `renamed`: it has another id and is the same otherwise, as far as `changes` do not tell. `after`: the step that it
    follows now, where its place among those that stayed is another; "" for the first place; None where it kept its
    place. Of a step that is new or gone, `changes` are all that it says.
    """

    old: Step | None
    new: Step | None
    changes: tuple[Change, ...] = ()
    after: str | None = None

    @property
    def step(self) -> Step:
        """The step as it is, or as it was when it is gone."""
        found = self.new or self.old
        assert found is not None
        return found

    @property
    def kind(self) -> Literal["added", "removed", "renamed", "changed"]:
        """In one word what became of the step."""
        if self.old is None:
            return "added"
        if self.new is None:
            return "removed"
        return "renamed" if self.old.id != self.new.id else "changed"

    @property
    def matters(self) -> bool:
        """Whether more has changed than what is said about the step for people."""
        return self.kind != "changed" or any(change.path[0] not in PROSE for change in self.changes)

    @property
    def riskier(self) -> bool:
        """Whether the class of risk, its reason or what the step affects is another than before."""
        if self.old is None or self.new is None:
            return False
        return (self.old.risk, self.old.effects) != (self.new.risk, self.new.effects)


class Difference(Record):
    """All that is different: `plan` about its head, `policy` about its policy, `steps` in the order of the new plan.

    `laxer` are sentences that say where the new policy allows more than the old one.
    """

    plan: tuple[Change, ...] = ()
    policy: tuple[Change, ...] = ()
    laxer: tuple[str, ...] = ()
    steps: tuple[StepChange, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.plan or self.policy or self.steps)

    def of(self, kind: str) -> list[StepChange]:
        """Return the steps of one kind: added, removed, renamed or changed."""
        return [step for step in self.steps if step.kind == kind]
