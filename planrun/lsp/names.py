"""Where steps and parameters of a plan are named: where they are defined, and every place that refers to them."""

from __future__ import annotations

import re
from functools import lru_cache

from planrun.expressions.check import references
from planrun.expressions.parse import parse, parse_script
from planrun.expressions.tree import ExpressionError
from planrun.model.record import Record
from planrun.plan.keys.formulas import BARE, OPEN, of_plan, of_step
from planrun.plan.keys.outline import Outline, RawStep, entries, members, scalar
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Literal

    from planrun.expressions.check import Reference
    from planrun.lsp.text import Text

    What = Literal["step", "param"]

_LISTED = ("recovers", "replaces")
_ROOTS: dict[str, What] = {"steps": "step", "params": "param"}


class Name(Record):
    """One place where something is named; `quote` is what may stand around it there, in an expression.

    `is_definition`: where it is defined. `form`: "plain" as a YAML value or key; "dot" as in `steps.build`;
    "bracket" as in `steps['build']`, without the quotes; "word" as in `step_build_failed`.
    """

    what: What
    name: str
    line: int
    col: int
    length: int
    form: Literal["plain", "dot", "bracket", "word"] = "plain"
    quote: str = "'"
    is_definition: bool = False

    def covers(self, line: int, col: int) -> bool:
        """Whether a place is in it, or at its end."""
        return self.line == line and self.col <= col <= self.col + self.length


def names_in(root: Node, text: Text) -> list[Name]:
    """Return all names in the tree of a file, in the order of the text."""
    outline = Outline(root, "", b"")
    found = [*_params(root, text), *_steps(outline, text), *_read(outline, text)]
    places = {(name.line, name.col): name for name in found}
    return [places[place] for place in sorted(places)]


def passed_in(root: Node, text: Text) -> list[tuple[str, Name]]:
    """Return the parameters that steps pass to other plans, each with the file that `uses` names."""
    found: list[tuple[str, Name]] = []
    for raw in Outline(root, "", b"").steps:
        used, given = scalar(raw.keys.get("uses")), raw.keys.get("with")
        if used is not None and given is not None and given.kind == MAPPING:
            for name, key in given.keys.items():
                found += [(used.value, each) for each in _written(key, "param", name, text)]
    return found


def _params(root: Node, text: Text) -> Iterator[Name]:
    params = root.get("params")
    if params is not None and params.kind == MAPPING:
        for name, key in params.keys.items():
            yield from _written(key, "param", name, text, is_definition=True)


def _steps(outline: Outline, text: Text) -> Iterator[Name]:
    for raw in outline.steps:
        written = scalar(raw.keys.get("id"))
        if written is not None:
            yield from _written(written, "step", raw.id, text, is_definition=True)
        depends_on = raw.keys.get("depends_on")
        if depends_on is not None and depends_on.kind == MAPPING:
            for name, key in depends_on.keys.items():
                yield from _written(key, "step", name, text)
        for node in _links(raw, depends_on):
            yield from _written(node, "step", node.value, text)
        yield from _completed(raw, text)
    root = outline.root
    policy = root.get("policy")
    rules = policy.get("rules") if policy is not None else None
    for rule in rules.value if rules is not None and rules.kind == SEQUENCE else ():
        for _, matcher in members(rule):
            for node in entries(matcher.get("step")):
                yield from _written(node, "step", node.value, text)


def _links(raw: RawStep, depends_on: Node | None) -> list[Node]:
    found = entries(depends_on)
    for key in _LISTED:
        found += entries(raw.keys.get(key))
    return found


def _completed(raw: RawStep, text: Text) -> Iterator[Name]:
    """Yield the steps that a check `dependencies_completed` lists."""
    for key in ("validate", "expect"):
        checks = raw.keys.get(key)
        for check in checks.value if checks is not None and checks.kind == SEQUENCE else ():
            for node in entries(check.get("dependencies_completed")):
                yield from _written(node, "step", node.value, text)


def _written(node: Node, what: What, name: str, text: Text, *, is_definition: bool = False) -> Iterator[Name]:
    """Yield a name that is a YAML scalar of its own; of an instance, as in `build[py=3.11]`, the step's part."""
    name = name.partition("[")[0]
    row = text.line(node.line)
    at = node.col - 1 + (1 if row.startswith("\ufeff") else 0)
    shift = 0 if node.plain else 1
    if name and row[at + shift : at + shift + len(name)] == name:
        yield Name(
            what=what, name=name, line=node.line, col=node.col + shift, length=len(name),
            is_definition=is_definition,
        )  # fmt: skip


def _read(outline: Outline, text: Text) -> Iterator[Name]:
    """Yield what expressions read."""
    for node, kind in _expressions(outline):
        if kind in BARE or OPEN in node.value:
            found_in = _references(node.value, is_bare=kind in BARE)
            begin = text.offset(node.line, node.col)
            mark = text.whole[begin : begin + 1]
            quote = '"' if mark == "'" else "'"
            for reference in found_in:
                what = _ROOTS.get(str(reference.path[0]))
                if what is None or len(reference.path) < 2 or not isinstance(reference.path[1], str):
                    continue
                part = node.value[reference.offset : reference.offset + reference.length]
                earlier = node.value.count(part, 0, reference.offset)
                found = _find(text.whole, part, begin, earlier)
                if found >= 0:
                    yield from _of_path(part, (what, reference.path[1], quote), found, text)


def _expressions(outline: Outline) -> Iterator[tuple[Node, str]]:
    seen: set[int] = set()
    places = [*of_plan(outline.root)]
    for raw in (*outline.steps, *outline.undos):
        run = raw.keys.get("run")
        places += [(run, "script")] if run is not None and run.kind == SCALAR else []
        places += of_step(raw)
    for node, kind in places:
        if id(node) not in seen:
            seen.add(id(node))
            yield node, kind


@lru_cache(maxsize=4096)  # steps share many expressions, and most stay as they are while others are typed
def _references(text: str, *, is_bare: bool) -> tuple[Reference, ...]:
    try:
        return references(parse(text) if is_bare else parse_script(text))
    except ExpressionError:
        return ()


def _find(whole: str, part: str, begin: int, earlier: int) -> int:
    """Return where a part of a scalar stands in the file, after as many that are equal."""
    at = begin
    for _ in range(earlier):
        at = whole.find(part, at)
        if at < 0:
            return -1
        at += len(part)
    return whole.find(part, at)


_WORD = "step_"
_NAMED = re.compile(r"\w+\s*(?:\.\s*(?P<dot>\w+)|\[\s*(?P<quote>['\"])(?P<inside>[^'\"]*)(?P=quote)\s*\])")


def _of_path(part: str, about: tuple[What, str, str], at: int, text: Text) -> Iterator[Name]:
    what, name, quote = about
    if part.startswith(f"{_WORD}{name}_"):
        line, col = text.place_of(at + len(_WORD))
        yield Name(what=what, name=name, line=line, col=col, length=len(name), form="word")
    found = _NAMED.match(part)
    if found is None:
        return
    group = "dot" if found["dot"] is not None else "inside"
    written = found[group]
    if written.partition("[")[0] != name.partition("[")[0]:
        return
    line, col = text.place_of(at + found.start(group))
    yield Name(
        what=what,
        name=name.partition("[")[0],
        line=line,
        col=col,
        length=len(name.partition("[")[0]),
        form="dot" if group == "dot" else "bracket",
        quote=quote,
    )


def at_place(names: Sequence[Name], line: int, col: int) -> Name | None:
    """Return the name at a place."""
    return next((name for name in names if name.covers(line, col)), None)
