"""Which steps may not run beside each other because they change the same files: found once, when a plan is compiled."""

from __future__ import annotations

from planrun.errors import EvaluationError
from planrun.expressions.check import references
from planrun.expressions.render import pattern_of
from planrun.model import graph
from planrun.model.globs import BadGlob, literal_path, meet, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from planrun.model.globs import Glob
    from planrun.model.plan import Step, Text

    Patterns = list[tuple[Glob, ...]]


_TOLD = 8  # names at the beginning of a pattern by which it is looked for


def with_conflicts(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Return steps that know which others they may not run beside; ids of groups stand for their members."""
    patterns = {step.id: each for step in steps if (each := _patterns(step))}
    if not patterns:
        return tuple(steps)
    members = {name: step.id for step in steps if step.kind == "group" for name in step.grouping.members}
    section = {step.id: step.section for step in steps}
    meeting = [
        (one, other)
        for one, other in _pairs(patterns)
        if section[one] == section[other] and members.get(one) != other and members.get(other) != one
    ]
    if not meeting:
        behind = set()
    else:
        before = graph.waits(steps)
        wanted: dict[str, list[str]] = {}
        for one, other in meeting:
            wanted.setdefault(one, []).append(other)
            wanted.setdefault(other, []).append(one)
        links = {name: [(on, True) for on in others] for name, others in before.items()}
        behind = graph.reach(graph.order(before), links, wanted)
    found: dict[str, list[str]] = {}
    for one, other in meeting:
        if (one, other) not in behind and (other, one) not in behind:
            found.setdefault(one, []).append(other)
            found.setdefault(other, []).append(one)
    return tuple([_knowing(step, found.get(step.id, [])) for step in steps])


def _knowing(step: Step, others: list[str]) -> Step:
    """Return a step, or a group whose members are not known yet, with what it may not run beside."""
    action = step.grouping if step.kind == "group" else None
    if action and action.template is not None:
        template = action.template
        is_shared = any(
            isinstance(text, str) or not _names_of(text) & {"item", "matrix"}
            for text in (*template.makes, *template.writes)
        )
        own = [step.id] if is_shared else []
        conflicts = (*others, *own)
        return (
            step.but(action=action.but(template=action.template.but(conflicts=conflicts)))
            if conflicts
            else step
        )
    return step.but(conflicts=tuple(others)) if others else step


def _names_of(text: Text) -> set[str]:
    assert not isinstance(text, str)
    return {str(reference.path[0]) for reference in references(text)}


def _patterns(step: Step) -> Patterns:
    """Return what a step changes, or what each member of a group may change."""
    template = step.grouping.template if step.kind == "group" else None
    source = step if template is None else template
    scope: dict[str, Any] = {"matrix": source.matrix, **({"item": source.item[0]} if source.item else {})}
    return [parsed for text in (*source.makes, *source.writes) for parsed in _parsed(text, scope)]


def _parsed(text: Text, scope: dict[str, Any]) -> Iterator[tuple[Glob, ...]]:
    try:
        yield parse(text if isinstance(text, str) else _widened(text[1], scope))
    except BadGlob:  # with its values it may be one; if not, the step is refused
        return


def _widened(parts: Iterable[Any], scope: dict[str, Any]) -> str:
    """Return a template as a pattern for all that it may become: what has no value yet is any path from there on."""
    found = ""
    for part in parts:
        try:
            found += part if isinstance(part, str) else pattern_of(part, scope)
        except (EvaluationError, KeyError):
            folder = found.rpartition("/")[0]
            return f"{folder}/**" if folder else "**"
    return found


def _pairs(patterns: dict[str, Patterns]) -> Iterator[tuple[str, str]]:
    """Yield the steps whose patterns meet, each pair once, in the order of the steps."""
    place = {name: number for number, name in enumerate(patterns)}
    plain: dict[tuple[str, ...], list[str]] = {}
    under: dict[tuple[str, ...], list[tuple[str, Glob]]] = {}  # globs by each beginning of theirs
    others: list[tuple[str, Glob]] = []
    for name, found in patterns.items():
        for glob in [glob for globs in found for glob in globs]:
            path = literal_path(glob)
            if path is None:
                others.append((name, glob))
            else:
                plain.setdefault(path, []).append(name)
            head = _head(glob)
            for length in range(len(head) + 1):
                under.setdefault(head[:length], []).append((name, glob))
    pairs: set[tuple[str, str]] = set()
    for path, names in plain.items():
        for length in range(len(path) + 1):
            pairs |= {(one, other) for one in names for other in plain.get(path[:length], ())}
    for one, glob in others:
        head = _head(glob)
        pairs |= {(one, other) for other, each in under[head] if meet((glob,), (each,))}
        for length in range(len(head)):
            pairs |= {(one, other) for other in plain.get(head[:length], ())}
    ordered = {
        (one, other) if place[one] < place[other] else (other, one) for one, other in pairs if one != other
    }
    yield from sorted(ordered, key=lambda pair: (place[pair[0]], place[pair[1]]))


def _head(glob: Glob) -> tuple[str, ...]:
    """Return the leading names common to all paths that a glob matches, as far as they distinguish globs."""
    found: tuple[str, ...] = ()
    for part in glob[:_TOLD]:
        name = literal_path((part,))
        if name is None:
            break
        found += name
    return found
