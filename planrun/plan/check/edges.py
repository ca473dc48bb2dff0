"""Which values of other steps a step may read, and which of them are certain to be there.

A step may read `outputs`, `exit_code` and `attempts` of the steps that it depends on, directly or through others,
and their `status`. A `finally` step may read the `status` of every step; the plan's own outputs read all steps.

An output is certain when its step must have completed before the reader runs (a completed step has written every
output that it declares). The reader y knows that of x

- over an edge `completed` on x;
- over an edge `ok` on x, if x cannot be skipped benignly (it has no condition, no `failed` edge, and no `completed`
  edge on a step that can be) and its failure cannot be tolerated (`on_failure: continue`, or a step recovers it);
- if y's condition is, or joins by `and`, `step_x_succeeded`: in what follows there, and in everything y runs;
- through another step z, as z knew it: over any edge but `done` that says that z was started.

Everything else needs `default(…)`. What `--only` and its like leave out is not looked at here: reading its outputs
then fails the step that reads.

The edges of all steps: what `depends_on`, `recovers` and conditions add, and whether they lead anywhere.
"""

from __future__ import annotations

from planrun.model import graph
from planrun.plan.keys.outline import Link, Outline, RawStep, members

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from planrun.expressions.tree import Tree
    from planrun.plan.keys.formulas import Formulas

    Question = tuple[str, str]  # reader, read


class Availability:
    """Answers for the questions it is given; steps on or behind a cycle are taken to know everything."""

    def __init__(self, outline: Outline, questions: Iterable[Question]) -> None:
        undos = {raw.id: raw for raw in outline.undos}
        self._drafts = {**outline.by_id, **undos} if undos else outline.by_id
        self._tolerated = _tolerated(outline)
        before = {
            raw.id: [link.on for link in raw.links if link.on in self._drafts]
            for raw in (*outline.unique, *undos.values())
        }
        sequence = graph.order(before)
        self._settled = frozenset(sequence)
        self._skipped: set[str] = set()
        for name in sequence:
            if self._may_be_skipped(self._drafts[name]):
                self._skipped.add(name)
        wanted: dict[str, list[str]] = {}
        places = replacers(outline)
        for reader, read in questions:
            wanted.setdefault(reader, []).extend(_and_places(read, places) if places else [read])
        every = {name: [(other, True) for other in others] for name, others in before.items()}
        self._behind = graph.reach(sequence, every, wanted)
        sure = {name: self._certain(self._drafts[name]) for name in sequence} if wanted else {}
        self._sure = graph.reach(sequence, sure, wanted)

    def is_behind(self, reader: str, read: str) -> bool:
        """Say whether the reader depends on the step that it reads."""
        return reader not in self._settled or (reader, read) in self._behind

    def is_sure(self, reader: str, read: str) -> bool:
        """Say whether the step that is read must have completed when the reader runs."""
        return reader not in self._settled or (reader, read) in self._sure

    def survives(self, read: str) -> bool:
        """Say whether a step must have completed when the whole plan has."""
        return read not in self._settled or (read not in self._skipped and read not in self._tolerated)

    def _may_be_skipped(self, raw: RawStep) -> bool:
        """Say whether a step can be skipped although nothing failed; asked in topological order."""
        if "foreach" in raw.keys or "matrix" in raw.keys:
            return not raw.instances or self._is_conditional(raw)
        return self._is_conditional(raw)

    def _is_conditional(self, raw: RawStep) -> bool:
        if raw.condition is not None and raw.condition[::3] != ("const", True):
            return True
        return any(
            link.kind == "failed" or (link.kind == "completed" and link.on in self._skipped)
            for link in raw.links
        )

    def _may_lack(self, link: Link) -> bool:
        """Say whether what an edge leads to can be skipped; an instance of the same name is there for certain."""
        if link.form == "same":
            return self._is_conditional(self._drafts[link.on])
        return link.on in self._skipped

    def _certain(self, raw: RawStep) -> list[tuple[str, bool]]:
        """Return the links over which certainty comes, and whether that of the linked step itself comes too."""
        found: list[tuple[str, bool]] = []
        for link in raw.links:
            if link.kind == "completed":
                found.append((link.on, True))
            elif link.kind == "failed":
                found.append((link.on, False))
            elif link.kind == "ok" and not self._may_lack(link):
                found.append((link.on, link.on not in self._tolerated))
        found += [(name, True) for name in succeeded(raw.condition)]
        return found


def succeeded(condition: Tree | None) -> dict[str, int]:
    """Return the steps that must have completed for a condition to hold, and where that is known from."""
    if condition is None:
        return {}
    parts = condition[3] if condition[0] == "and" else (condition,)
    found: dict[str, int] = {}
    for part in parts:
        if part[0] == "compare" and part[3] == "==":
            sides = {side[0]: side[3] for side in part[4:6] if side[0] in ("path", "const")}
            path = sides.get("path", ())
            if len(path) == 3 and path[::2] == ("steps", "status") and sides.get("const") == "completed":
                found.setdefault(path[1], part[1] + part[2])
    return found


def _tolerated(outline: Outline) -> frozenset[str]:
    """Return the steps whose failure may let others go on as if they were completed."""
    healed = {link.on for raw in outline.steps for link in raw.recovers}
    return lenient(outline, ("continue", "ask")) | healed | _lenient_by_policy(outline)


def lenient(outline: Outline, wanted: tuple[str, ...] = ("continue",)) -> frozenset[str]:
    """Return the steps with `on_failure: continue`, their own or, unless they are gates, that of `defaults`."""
    defaults = outline.root.get("defaults")
    general = defaults.get("on_failure") if defaults is not None else None
    words = ((raw.id, raw.keys.get("on_failure", None if raw.is_gate else general)) for raw in outline.steps)
    return frozenset(name for name, word in words if word is not None and word.value in wanted)


def _lenient_by_policy(outline: Outline) -> frozenset[str]:
    """Return the steps that may be lenient because the policy allows it for their risk, whatever its level."""
    policy = outline.root.get("policy")
    rules = policy.get("on_failure") if policy is not None else None
    defaults = outline.root.get("defaults")
    if rules is None or (defaults is not None and defaults.get("on_failure") is not None):
        return frozenset()
    if not any(word.value in ("continue", "ask") for _, word in members(rules)):
        return frozenset()
    return frozenset(raw.id for raw in outline.steps if not raw.is_gate and "on_failure" not in raw.keys)


MAX_HANDLERS = 50  # of one step: whatever needs that step waits for each of them
MAX_REROUTED = 1000  # steps that stand in for one
MAX_SHOWN = 12  # steps of a cycle that are named in its message


def check_links(outline: Outline) -> None:
    """Report references to nothing, to oneself and between the sections, and drop them; join `recovers`."""
    healers: dict[str, int] = {}
    for raw in outline.steps:
        if raw.links:
            sound = _sound(outline, raw, raw.links, "depends on")
            raw.links = sound if len(sound) < 2 else list({link.on: link for link in sound}.values())
        if raw.recovers:
            raw.recovers = _sound(outline, raw, raw.recovers, "recovers")
            _join_recovered(outline, raw)
            for link in raw.recovers:
                healers[link.on] = healers.get(link.on, 0) + 1
                if healers[link.on] == MAX_HANDLERS + 1:
                    message = f'more than {MAX_HANDLERS} steps recover "{link.on}"'
                    outline.report("E207", message, link.node)
                    outline.tangled = True
        if raw.replaces:
            raw.replaces = _sound(outline, raw, raw.replaces, "replaces")
    reroute(outline)


def replacers(outline: Outline) -> dict[str, list[str]]:
    """Return the ids of the steps that replace each step."""
    places: dict[str, list[str]] = {}
    if "replaces" in outline.keys:
        for raw in outline.steps:
            for link in raw.replaces:
                places.setdefault(link.on, []).append(raw.id)
    return places


def _and_places(name: str, places: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a step and all that stand in its place, over several revisions if need be."""
    found = {name: None}
    for each in (todo := [name]):
        fresh = [other for other in places.get(each, ()) if other not in found]
        found |= dict.fromkeys(fresh)
        todo += fresh
    return list(found)


def reroute(outline: Outline) -> None:
    """Have what waits for a replaced step wait for those that take its place, and each of them for no such step."""
    places = replacers(outline)
    if not places:
        return
    for raw in outline.steps:
        own = {link.on for link in raw.replaces}
        for link in raw.links:
            if link.on in own:
                message = f'step "{raw.id}" replaces "{link.on}" and depends on it'
                outline.report(
                    "E203", message, link.node, "a replaced step does not run; remove one of the two"
                )
        if any(link.on in places for link in raw.links):
            raw.links = _rerouted(outline, raw.links, places, own)


def _rerouted(outline: Outline, links: list[Link], places: dict[str, list[str]], own: set[str]) -> list[Link]:
    """Follow each edge to where its work is done now, over several revisions if need be."""
    found: dict[str, Link] = {}
    for link in links:
        if link.on in own or outline.tangled:
            continue
        ends, seen = [link.on], {link.on}
        while any(name in places for name in ends):
            ends = [
                other
                for name in ends
                for other in places.get(name, [name])
                if other not in seen or name not in places
            ]
            seen.update(ends)
            if len(seen) > MAX_REROUTED + 1:
                message = f'more than {MAX_REROUTED:,} steps replace "{link.on}"'
                outline.report("E207", message, link.node)
                outline.tangled = True
                break
        for name in ends:
            found.setdefault(name, link if name == link.on else Link(name, link.kind, link.node, link.form))
    return list(found.values())


def _sound(outline: Outline, raw: RawStep, links: Sequence[Link], verb: str) -> list[Link]:
    """Return the links that lead to another step of the same section; report the others."""
    known, section, own = outline.by_id, raw.section, raw.id
    found = []
    for link in links:
        other = known.get(link.on)
        if other is not None and other.section == section and other.id != own:
            found.append(link)
            if link.form == "same":
                lacking = next(
                    (each for each in (raw, other) if each.keys.keys().isdisjoint(("matrix", "foreach"))),
                    None,
                )
                if lacking is not None:
                    hint = f"write `{{{link.on}: {link.kind}}}`"
                    outline.report("E286", f'step "{lacking.id}" has no instances', link.node, hint)
                    link.form = "map"
        else:
            _report_link(outline, raw, link, verb)
    return found


def _report_link(outline: Outline, raw: RawStep, link: Link, verb: str) -> None:
    other = outline.by_id.get(link.on)
    if other is None:
        message = f'step "{raw.id}" {verb} unknown step "{link.on}"'
        outline.report("E202", message, link.node, outline.suggest(link.on))
    elif other.id == raw.id:
        outline.report("E203", f'step "{raw.id}" {verb} itself', link.node)
    elif raw.section == "finally":
        message = f'step "{raw.id}" under `finally:` {verb} "{link.on}"'
        outline.report("E205", message, link.node, "it starts after all other steps; remove the dependency")
    else:
        message = f'step "{raw.id}" {verb} "{link.on}" under `finally:`'
        outline.report("E205", message, link.node, "steps under `finally:` run after all others")


def _join_recovered(outline: Outline, raw: RawStep) -> None:
    """Make `recovers: [x]` the edge {x: failed}; any edge that wants more of x than its end contradicts it."""
    written = {link.on: link for link in raw.links}
    for link in raw.recovers:
        other = written.get(link.on)
        if other is None or other.kind == "done":
            raw.links.append(link)
        elif other.kind != "failed":
            hint = f"`recovers` implies {{{link.on}: failed}}; remove it from `depends_on`"
            message = f'step "{raw.id}" recovers "{link.on}" and also depends on it as `{other.kind}`'
            outline.report("E206", message, other.node, hint)
            other.kind = "failed"  # one mistake, one finding: as it stands it would also wait for itself


def add_condition_links(outline: Outline, formulas: Formulas) -> None:
    """A status that a condition reads is an edge `done`; a plain list edge becomes one, another stays as it is."""
    for formula in formulas.listed:
        raw = formula.owner
        if formula.kind != "condition" or raw is None:
            continue
        written = {link.on: link for link in raw.links}
        for reference in formula.references:
            path = reference.path
            if len(path) < 3 or path[0] != "steps" or path[2] != "status":
                continue
            name = str(path[1])
            other = outline.by_id.get(name)
            if other is None or other is raw or other.section != raw.section:
                continue  # reported when the reference is checked
            link = written.get(name)
            if link is None:
                link = written[name] = Link(name, "done", formula.node, "condition")
                raw.links.append(link)
            elif link.form == "list":
                link.kind = "done"


def check_cycles(outline: Outline) -> None:
    """Report one cycle for each knot of steps that wait for each other, recovery included."""
    if outline.tangled:
        return
    for section in ("steps", "finally"):
        steps = [raw for raw in outline.unique if raw.section == section]
        if _is_in_order(steps):
            continue
        handlers: dict[str, list[str]] = {}
        for raw in steps:
            for link in raw.recovers:
                handlers.setdefault(link.on, []).append(raw.id)
        if handlers:  # no step waits for a handler of a failure that `continue` tolerates anyway
            tolerated = lenient(outline)
            handlers = {name: ids for name, ids in handlers.items() if name not in tolerated}
        links = {raw.id: [(link.on, link.kind) for link in raw.links] for raw in steps}
        for path in graph.find_cycles(graph.wait_links(links, handlers)):
            _report_cycle(outline, path)


def _is_in_order(steps: list[RawStep]) -> bool:
    """Say whether every edge leads back in the file, as most do: then there is no cycle."""
    seen: set[str] = set()
    for raw in steps:
        if raw.recovers or any([link.on not in seen for link in raw.links]):  # noqa: C419 - half the time
            return False
        seen.add(raw.id)
    return True


def _report_cycle(outline: Outline, path: list[str]) -> None:
    ring = [*path, path[0]]
    shown = ring if len(ring) <= MAX_SHOWN + 1 else [*ring[: MAX_SHOWN - 1], "…", *ring[-2:]]
    related = []
    implied = []
    places = []
    for name, other in zip(path, ring[1:], strict=True):
        raw = outline.by_id[name]
        link = next((link for link in raw.links if link.on == other), None)
        if link is None:
            wanted = {each.on for each in raw.links}
            healed = next(link for link in outline.by_id[other].recovers if link.on in wanted)
            implied.append(f'"{name}" depends on "{other}" because it recovers "{healed.on}"')
            link = healed
        places.append(link.node)
        related.append((link.node.line, link.node.col, f'"{name}" depends on "{other}" here'))
    message = f"dependency cycle: {' → '.join(shown)}"
    outline.report("E204", message, places[0], "; ".join(implied[:2]), related=tuple(related[1:MAX_SHOWN]))
