"""Every expression and template of a step, wherever it stands."""

from __future__ import annotations

from planrun.model.plan import Ask, Decide, Exec, Run, Tool, Validate

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
    elif isinstance(action, Validate):
        for check in action.checks:
            yield from _of_check(check.kind, check.value)
    elif isinstance(action, Ask | Decide):
        yield action.question
        if isinstance(action, Decide):
            yield from (option.when for option in action.options if option.when is not None)
    yield from _of_proofs(step)
    yield from (*step.env.values(), *step.env_file, *step.inputs, *step.produces, *step.writes)
    yield from (*step.cache.inputs, step.cache.key) if step.cache else ()
    if step.workdir is not None:
        yield step.workdir


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
