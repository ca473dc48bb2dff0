"""The params of a run: `name=value` texts given by the caller, typed and checked by what the plan declares."""

from __future__ import annotations

from planrun.errors import InvalidInput
from planrun.plan.problems import did_you_mean
from planrun.values import check_value, read_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from planrun.model.plan import Plan

MAX_TEXT = 1 << 20  # characters of one value


def parse_params(plan: Plan, given: Iterable[str]) -> dict[str, Any]:
    """Return the value of every parameter from `name=value` texts; raises InvalidInput with all that is wrong."""
    texts: dict[str, str] = {}
    problems: list[str] = []
    for word in given:
        name, equals, text = word.partition("=")
        if not equals:
            problems.append(f'expected a parameter as name=value, got "{word[:60]}"')
        elif name in texts:
            problems.append(f'duplicate parameter "{name}"')
        else:
            texts[name] = text
    return resolve_params(plan, texts, problems)


def resolve_params(plan: Plan, given: Mapping[str, str], problems: Iterable[str] = ()) -> dict[str, Any]:
    """Return the value of every parameter that has one, in the order of the plan; defaults fill in the others.

    Raises InvalidInput naming every unknown, missing and unfitting parameter, after the `problems` found before.
    """
    found = list(problems)
    values: dict[str, Any] = {}
    declared = {param.name: param for param in plan.params}
    if not found:
        found += [_unknown(name, declared) for name in given if name not in declared]
    for name, param in declared.items():
        if name in given:
            try:
                values[name] = _read(param.schema, given[name])
            except ValueError as error:
                found.append(f'the parameter "{name}" {error}')
        elif "default" in param.schema:
            values[name] = param.schema["default"]
        elif param.required:
            found.append(f'the parameter "{name}" is required; pass --param {name}=VALUE')
    if found:
        raise InvalidInput("; ".join(found))
    return values


def keep_params(
    plan: Plan, recorded: Mapping[str, Any], given: Iterable[str], texts: Iterable[str]
) -> dict[str, Any]:
    """Return the parameters of a run that continues with another version of its plan.

    A recorded value stays where its name is declared and its schema still takes it; `texts` are new ones, as
    `name=value`. Where the recorded value was not given by the user (its name is not in `given`) the new default
    replaces one that no longer fits. Raises InvalidInput with all that is wrong.
    """
    words = tuple(texts)
    named = {word.partition("=")[0] for word in words}
    before = frozenset(given)
    kept: dict[str, Any] = {}
    problems: list[str] = []
    for param in plan.params:
        if param.name in named or param.name not in recorded:
            continue
        problem = check_value(param.schema, recorded[param.name])
        if problem is None:
            kept[param.name] = recorded[param.name]
        elif param.name in before:
            problems.append(
                f'the parameter "{param.name}" {problem}, which is its value in this run; '
                f"pass another by --param {param.name}=VALUE"
            )
    if problems:
        raise InvalidInput("; ".join(problems))
    needed = tuple(param for param in plan.params if param.name not in kept)
    values = {**kept, **parse_params(plan.but(params=needed), words)}
    return {param.name: values[param.name] for param in plan.params if param.name in values}


def _read(schema: Mapping[str, Any], text: str) -> Any:
    if len(text) > MAX_TEXT:
        raise ValueError(f"is longer than {MAX_TEXT} characters")
    return read_value(schema, text)


def _unknown(name: str, declared: Iterable[str]) -> str:
    names = list(declared)
    hint = did_you_mean(name, names) or (
        f"known parameters: {', '.join(names)}" if names else "the plan has no parameters"
    )
    return f'unknown parameter "{name}"; {hint}'
