"""What two versions of a plan do not have in common, one line each."""

from __future__ import annotations

from planrun.source.canonical import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from planrun.model.plan import Plan, Step

# Fields by the keys of the plan language; the others have the same name.
_KEYS = {"edges": "depends_on", "section": "finally"}
# Of the plan: what it is called and how it is told, its steps, and what has a line of its own.
_APART = frozenset(("", "name", "version", "title", "description", "goal", "params", "limits"))
_TOLD = frozenset(("", "title", "description", "owner", "notes", "needs_dir"))


def differences(old: Plan, new: Plan) -> Iterator[str]:
    """Yield a line for each step that is new, gone or changed, and for each part of the head that changed."""
    before = {step.id: step for step in old.steps}
    after = {step.id: step for step in new.steps}
    yield from [f'+ step "{name}" is new' for name in after if name not in before]
    yield from [f'- step "{name}" is gone' for name in before if name not in after]
    for name, step in after.items():
        parts = _parts(before[name], step) if name in before else []
        if parts:
            yield f'~ step "{name}": {", ".join(parts)}'
    yield from _of_head(old, new)


def _parts(old: Step, new: Step) -> list[str]:
    """Return the keys of the plan language under which two steps differ; titles and notes do not count."""
    before, after = plain(old), plain(new)
    names = [
        name for name in _joined(before, after) if before.get(name) != after.get(name) and name not in _TOLD
    ]
    return list(dict.fromkeys([_key(name, new) for name in names]))


def _key(name: str, step: Step) -> str:
    return step.kind if name in ("action", "kind") else _KEYS.get(name, name)


def _of_head(old: Plan, new: Plan) -> Iterator[str]:
    before, after = _head(old), _head(new)
    for name in _joined(before, after):
        if before.get(name) == after.get(name):
            continue
        if isinstance(before.get(name, {}), dict) and isinstance(after.get(name, {}), dict):
            yield from _entries(name, before.get(name, {}), after.get(name, {}))
        else:
            yield f"~ {name}"


def _entries(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    for key in _joined(before, after):
        if before.get(key) != after.get(key):
            sign = "+" if key not in before else "-" if key not in after else "~"
            yield f"{sign} {name}.{key}"


def _head(plan: Plan) -> dict[str, Any]:
    fields = {name: value for name, value in plain(plan).items() if name not in _APART}
    fields["params"] = {param.name: plain(param) for param in plan.params}
    fields["limits"] = {key: value for key, value in vars(plan.limits).items() if value is not None}
    return fields


def _joined(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    return list({**before, **after})
