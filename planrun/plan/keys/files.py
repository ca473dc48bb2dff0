"""The keys about files and about using results again: inputs, produces, writes, cache and reports.

The checks report patterns that are invalid, and files that two steps may make at the same time.
"""

from __future__ import annotations

from planrun.model import graph
from planrun.model.globs import BadGlob, is_literal, meet, parse
from planrun.model.plan import Cache, Kept, Reports
from planrun.plan.keys.formulas import OPEN
from planrun.plan.keys.outline import entries, produced
from planrun.plan.schema.forms import as_bool
from planrun.plan.yaml.node import MAPPING, SCALAR, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.model.globs import Glob
    from planrun.plan.keys.checked import Checked
    from planrun.plan.keys.outline import Outline, RawStep

KEYS = ("inputs", "produces", "writes", "cache", "reports")
MAX_MET = 100_000
"""Pairs of patterns that are held against each other to report them: half a second."""
MAX_CHANGED = 1_000_000
"""Pairs of patterns of files that steps change, those of each instance counted; of most of them little is looked at.

Those with `*` and its like count, and the same file named by several.
"""
# What a step does of which planrun knows no files, and why.
_STRANGERS = {
    "validate": "its checks declare no files",
    "uses": "declare files in the steps of that plan",
    "ask": "no process is started",
    "decide": "no process is started",
}
# What cannot be done once for all, by the key that says so.
_ALWAYS = {
    "agent": "a model answers differently each time",
    "writes": "a cache cannot restore changed files; list files that the step creates under `produces`",
}


class _Named:
    """A pattern of a step: `kind` is the key it stands under, `globs` what it means, () where values are missing."""

    __slots__ = ("globs", "kind", "node", "raw")

    def __init__(self, raw: RawStep, kind: str, node: Node, globs: tuple[Glob, ...]) -> None:
        self.raw = raw
        self.kind = kind
        self.node = node
        self.globs = globs


def check(checked: Checked) -> None:
    """Report what is wrong with the files that steps name, and with steps whose results are to be used again."""
    outline = checked.outline
    steps = [raw for raw in outline.unique if not raw.keys.keys().isdisjoint(KEYS)]
    named: list[_Named] = []
    for raw in steps:
        _check_kind(outline, raw)
        if "cache" in raw.keys:
            _check_cache(outline, raw)
        for pattern, _ in produced(raw.keys.get("produces")):
            named += _read(outline, raw, "produces", pattern)
        for key in ("inputs", "writes"):
            for node in entries(raw.keys.get(key)):
                named += _read(outline, raw, key, node)
        cache = raw.keys.get("cache")
        for node in entries(cache.get("inputs") if cache is not None else None):
            named += _read(outline, raw, "inputs", node)
        reports = raw.keys.get("reports")
        for node in entries(reports.get("junit") if reports is not None else None):
            _read(outline, raw, "reports", node)
    _check_amount(outline, named)
    if any(each.kind == "produces" for each in named):
        _check_makers(outline, [each for each in named if each.kind == "produces"])
        _check_readers(outline, named)


def _check_amount(outline: Outline, named: list[_Named]) -> None:
    """Report patterns that are too many to be held against each other, those of instances each for itself."""
    changing = [each for each in named if each.kind != "inputs"]
    wide = [each for each in changing if not is_literal(each.node.value)]
    patterns, every = _count(wide), _count(changing)
    if patterns * every > MAX_CHANGED:
        message = f"too many file patterns of steps that change files: {patterns:,} with wildcards, {every:,} in total"
        outline.report("E241", message, wide[-1].node, "name single files or folders")
        return
    same: dict[str, list[_Named]] = {}
    for each in changing:
        same.setdefault(each.node.value, []).append(each)
    for text, found in same.items():
        if _count(found) ** 2 > MAX_CHANGED:
            message = f'too many steps change "{text}": {_count(found):,}'
            outline.report("E241", message, found[-1].node, "give them a `lock`")


def _count(named: list[_Named]) -> int:
    return sum([max(1, each.raw.instances) for each in named])


def _check_kind(outline: Outline, raw: RawStep) -> None:
    for action, why in _STRANGERS.items():
        if action in raw.keys:
            for key in KEYS:
                if key in raw.keys:
                    message = f'`{key}` does not apply to `{action}` in step "{raw.id}"'
                    outline.report("E267", message, raw.node.key(key), why)


def _check_cache(outline: Outline, raw: RawStep) -> None:
    node = raw.keys["cache"]
    if node.kind == SCALAR and node.value.lower() == "false":
        return
    place = raw.node.key("cache")
    for key, why in _ALWAYS.items():
        if key in raw.keys:
            message = f'step "{raw.id}" cannot be cached: it has `{key}`'
            outline.report("E268", message, place, why)
    for key, word, why in (
        ("idempotent", "false", "it must run each time"),
        ("service", "true", "it must run while other steps need it"),
    ):
        said = raw.keys.get(key)
        if said is not None and said.kind == SCALAR and said.value.lower() == word:
            message = f'step "{raw.id}" cannot be cached: it has `{key}: {word}`'
            outline.report("E268", message, place, why)
    own = node.get("inputs") is not None or node.get("key") is not None
    if not own and "inputs" not in raw.keys and not raw.links:
        message = f'step "{raw.id}" is cached without inputs'
        hint = "list the files that it reads under `inputs`"
        outline.report("W311", message, place, hint, severity="warning")


def _read(outline: Outline, raw: RawStep, key: str, node: Node) -> list[_Named]:
    """Return a pattern, or report what is wrong with it; one whose values are missing has no globs."""
    text = node.value
    if OPEN in text:
        return [_Named(raw, key, node, ())]
    try:
        globs = parse(text.removeprefix("!"))
    except BadGlob as error:
        outline.report("E265", f'the pattern "{text}" of step "{raw.id}" {error}', node)
        return []
    negated = text.startswith("!")
    if negated and key != "inputs":
        message = f'the pattern "{text}" of step "{raw.id}" begins with `!`, which only `inputs` accepts'
        outline.report("E265", message, node)
    return [] if negated else [_Named(raw, key, node, globs)]


def _check_makers(outline: Outline, makers: list[_Named]) -> None:
    """Report a file that is made by two steps which may run together, or by each instance of one."""
    first: dict[tuple[str, tuple[Glob, ...]], list[_Named]] = {}
    pairs = []
    for each in makers:
        if not each.globs or not is_literal(each.node.value):
            continue
        if "matrix" in each.raw.keys or "foreach" in each.raw.keys:
            message = f'each instance of step "{each.raw.id}" produces "{each.node.value}"'
            hint = "make the name unique, e.g. with ${{ matrix.os }} or ${{ item }}"
            outline.report("E266", message, each.node, hint)
            continue
        others = first.setdefault((each.raw.section, each.globs), [])
        pairs += [(other, each) for other in others if other.raw is not each.raw]
        others.append(each)
    if not pairs:
        return
    apart = _Apart(outline, pairs)
    for one, other in pairs[:MAX_MET]:
        if apart.may_meet(one, other) and not (one.raw.condition and other.raw.condition):
            names = f'"{one.raw.id}" and "{other.raw.id}"'
            message = f'steps {names} may run in parallel and both produce "{other.node.value}"'
            hint = "make one depend on the other, or name two files"
            related = ((one.node.line, one.node.col, "first defined here"),)
            outline.report("E266", message, other.node, hint, related=related)


def _check_readers(outline: Outline, named: list[_Named]) -> None:
    """Warn of files that a step reads while another one may be making them."""
    makers = [each for each in named if each.kind == "produces" and each.globs]
    readers = [each for each in named if each.kind == "inputs" and each.globs]
    if len(makers) * len(readers) > MAX_MET:  # it is a warning: of very large plans it may be missing
        return
    pairs = [
        (maker, reader)
        for reader in readers
        for maker in makers
        if maker.raw is not reader.raw
        and maker.raw.section == reader.raw.section
        and meet(maker.globs, reader.globs)
    ]
    if not pairs:
        return
    apart = _Apart(outline, pairs)
    for maker, reader in pairs:
        if apart.may_meet(maker, reader):
            message = f'step "{reader.raw.id}" reads files of step "{maker.raw.id}" but does not depend on it'
            related = ((maker.node.line, maker.node.col, "produced here"),)
            outline.report("W310", message, reader.node, severity="warning", related=related)


class _Apart:
    """Which steps wait for each other, over any number of others; asked of the pairs that it is given."""

    def __init__(self, outline: Outline, pairs: list[tuple[_Named, _Named]]) -> None:
        before = {
            raw.id: [link.on for link in raw.links if link.on in outline.by_id] for raw in outline.unique
        }
        sequence = graph.order(before)
        self._known = frozenset(sequence)
        wanted: dict[str, list[str]] = {}
        for one, other in pairs:
            wanted.setdefault(one.raw.id, []).append(other.raw.id)
            wanted.setdefault(other.raw.id, []).append(one.raw.id)
        links = {name: [(on, True) for on in others] for name, others in before.items()}
        self._behind = graph.reach(sequence, links, wanted)

    def may_meet(self, one: _Named, other: _Named) -> bool:
        """Say whether neither step waits for the other; of steps in a circle it is not known."""
        names = one.raw.id, other.raw.id
        if not self._known.issuperset(names):
            return False
        return names not in self._behind and names[::-1] not in self._behind


def is_on(node: Node) -> bool:
    """Say whether what stands under `cache` wants the result to be used again."""
    return node.kind == MAPPING or node.value.lower() != "false"


def _produced(checked: Checked, _step: RawStep, node: Node) -> dict[str, Any]:
    """Return the files that must be there, and those that may."""
    made = [(checked.formulas.text(pattern), when) for pattern, when in produced(node)]
    must = tuple([path for path, when in made if when == "always"])
    may = tuple([Kept(path=path, when=when) for path, when in made if when != "always"])  # type: ignore[arg-type]
    return {**({"produces": must} if must else {}), **({"keeps": may} if may else {})}


def _cache(checked: Checked, _step: RawStep, node: Node) -> dict[str, Any]:
    """Return what the result of a step depends on besides the step; nothing where it is not used again."""
    if node.kind != MAPPING:
        return {"cache": Cache()} if as_bool(node) else {}
    fields: dict[str, Any] = {}
    if "inputs" in node.value:
        fields["inputs"] = checked.formulas.words(node.value["inputs"])
    if "key" in node.value:
        fields["key"] = checked.formulas.text(node.value["key"])
    return {"cache": Cache(**fields)}


def _reports(checked: Checked, _step: RawStep, node: Node) -> dict[str, Any]:
    return (
        {"reports": Reports(junit=checked.formulas.words(node.value["junit"]))}
        if "junit" in node.value
        else {}
    )


COMPILE = {"produces": _produced, "cache": _cache, "reports": _reports}
