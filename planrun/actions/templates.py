"""Every expression and template of a step, wherever it stands."""

from __future__ import annotations

from planrun.model.plan import Ask, Decide, Exec, Group, Run, Tool, Validate

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
    if isinstance(action, Run):
        yield action.script
    elif isinstance(action, Exec):
        yield from action.argv
    elif isinstance(action, Tool):
        yield from texts_in(action.args)
    elif isinstance(action, Group):
        yield from _of_group(action)
    elif isinstance(action, Validate | Ask | Decide):
        yield from _of_checks(action)
    yield from _of_proofs(step)
    yield from (*step.env.values(), *step.env_file, *step.inputs, *step.makes, *step.writes)
    yield from (*step.cache.inputs, step.cache.key) if step.cache else ()
    yield from step.reports.junit if step.reports else ()
    if step.workdir is not None:
        yield step.workdir
    if step.container is not None:
        box = step.container
        yield from (box.image, box.user, *box.env.values(), *box.volumes)


def _of_checks(action: Validate | Ask | Decide) -> Iterator[Any]:
    if isinstance(action, Validate):
        for check in action.checks:
            yield from _of_check(check.kind, check.value)
        return
    yield action.question
    if isinstance(action, Decide):
        yield from (option.when for option in action.options if option.when is not None)


def _of_group(group: Group) -> Iterator[Any]:
    """Yield what a group is made of, and what those of its members say that are not known yet."""
    if group.items:
        yield group.items
    yield from (values for values in group.axes.values() if isinstance(values, tuple))
    if group.template is not None:
        yield from formulas(group.template)


def texts_in(value: Any) -> Iterator[Any]:
    """Yield the templates and texts in the arguments of a tool."""
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from texts_in(part)
    elif isinstance(value, str | tuple):
        yield value


def _of_proofs(step: Step) -> Iterator[Any]:
    for check in step.expect:
        yield from _of_check(check.kind, check.value)
    for proof in step.verify:
        yield from (proof.script,) if isinstance(proof, Run) else proof.argv


def _of_check(kind: str, value: Any) -> Iterator[Any]:
    if kind == "that":
        yield value
    elif kind == "json_schema":
        yield from (part for part in value.values() if isinstance(part, str | tuple))
    else:
        yield from value
