"""A checked plan: what its keys mean, for the checks that follow and for the compiler."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.expressions.tree import Type
    from planrun.plan.keys.formulas import Formulas
    from planrun.plan.keys.outline import Outline
    from planrun.plan.problems import Problem


class Checked:
    """A plan after validation: all problems in file order, and the input of the compiler."""

    __slots__ = (
        "formulas", "gates", "gives", "groups", "outline", "outputs", "params", "parts", "problems",
        "services",
    )  # fmt: skip

    def __init__(
        self,
        outline: Outline,
        formulas: Formulas,
        params: dict[str, dict[str, Any]],
        outputs: dict[str, dict[str, dict[str, Any]]],
    ) -> None:
        self.outline = outline
        self.formulas = formulas
        self.params = params
        self.outputs = outputs
        # By the id of a step: what `planrun.plan.keys.gates` and `planrun.plan.keys.instances` found.
        self.gates: dict[str, Any] = {}
        self.groups: dict[str, Any] = {}
        self.gives: dict[str, Type] = {}  # the types of the plan's own outputs, as far as they are known
        self.services: frozenset[str] = frozenset()
        self.problems: list[Problem] = []
        self.parts: Checked | None = None  # the plan with the steps that a search may take

    @property
    def count(self) -> int:
        """How many steps run at most, as far as that is known; instances that are not known count as one step."""
        return step_count(self.outline)

    @property
    def known(self) -> int:
        """How many steps are known to run: those that reports count, each instance and no group."""
        return self.count - len(self.later)

    @property
    def later(self) -> tuple[str, ...]:
        """The steps whose instances are known when they run."""
        found = [raw.id for raw in self.outline.steps if raw.id in self.groups and not raw.instances]
        for raw in self.outline.steps:
            if raw.used is not None and raw.used.checked is not None:
                found += [f"{raw.id}/{name}" for name in raw.used.checked.later]
        return tuple(found)


def step_count(outline: Outline) -> int:
    """Return how many steps run at most; instances that are not known count as one step."""
    return sum([step.used.count if step.used else step.instances or 1 for step in outline.steps])
