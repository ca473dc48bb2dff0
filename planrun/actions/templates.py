"""Every expression and template of a step, wherever it stands."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from planrun.model.plan import Step


def formulas(step: Step) -> Iterator[Any]:
    """Yield every template and expression of a step, and texts as well."""
    action = step.action
    if step.condition is not None:
        yield step.condition
    yield from action.formulas()
    if step.kind == "group" and step.grouping.template is not None:
        yield from formulas(step.grouping.template)
    yield from _of_proofs(step)
    yield from (*step.env.values(), *step.env_file, *step.inputs, *step.makes, *step.writes)
    yield from (*step.cache.inputs, step.cache.key) if step.cache else ()
    yield from step.reports.junit if step.reports else ()
    if step.workdir is not None:
        yield step.workdir
    if step.container is not None:
        box = step.container
        yield from (box.image, box.user, *box.env.values(), *box.volumes)


def _of_proofs(step: Step) -> Iterator[Any]:
    for check in step.expect:
        yield from check.formulas()
    for proof in step.verify:
        yield from proof.formulas()
