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
"""

from __future__ import annotations

from planrun.model import graph
from planrun.source.outline import Draft, Link, Outline, members

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from planrun.expressions.tree import Tree

    Question = tuple[str, str]  # reader, read


class Availability:
    """Answers for the questions it is given; steps on or behind a cycle are taken to know everything."""

    def __init__(self, outline: Outline, questions: Iterable[Question]) -> None:
        undos = {draft.id: draft for draft in outline.undos}
        self._drafts = {**outline.by_id, **undos} if undos else outline.by_id
        self._tolerated = _tolerated(outline)
        before = {
            draft.id: [link.on for link in draft.links if link.on in self._drafts]
            for draft in (*outline.unique, *undos.values())
        }
        sequence = graph.order(before)
        self._settled = frozenset(sequence)
        self._skipped: set[str] = set()
        for name in sequence:
            if self._may_be_skipped(self._drafts[name]):
                self._skipped.add(name)
        wanted: dict[str, list[str]] = {}
        for reader, read in questions:
            wanted.setdefault(reader, []).append(read)
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

    def _may_be_skipped(self, draft: Draft) -> bool:
        """Say whether a step can be skipped although nothing failed; asked in topological order."""
        if "foreach" in draft.keys or "matrix" in draft.keys:
            return not draft.instances or self._is_conditional(draft)
        return self._is_conditional(draft)

    def _is_conditional(self, draft: Draft) -> bool:
        if draft.condition is not None and draft.condition[::3] != ("const", True):
            return True
        return any(
            link.kind == "failed" or (link.kind == "completed" and link.on in self._skipped)
            for link in draft.links
        )

    def _may_lack(self, link: Link) -> bool:
        """Say whether what an edge leads to can be skipped; an instance of the same name is there for certain."""
        if link.form == "same":
            return self._is_conditional(self._drafts[link.on])
        return link.on in self._skipped

    def _certain(self, draft: Draft) -> list[tuple[str, bool]]:
        """Return the links over which certainty comes, and whether that of the linked step itself comes too."""
        found: list[tuple[str, bool]] = []
        for link in draft.links:
            if link.kind == "completed":
                found.append((link.on, True))
            elif link.kind == "failed":
                found.append((link.on, False))
            elif link.kind == "ok" and not self._may_lack(link):
                found.append((link.on, link.on not in self._tolerated))
        found += [(name, True) for name in succeeded(draft.condition)]
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
    healed = {link.on for draft in outline.drafts for link in draft.recovers}
    return lenient(outline, ("continue", "ask")) | healed | _lenient_by_policy(outline)


def lenient(outline: Outline, wanted: tuple[str, ...] = ("continue",)) -> frozenset[str]:
    """Return the steps with `on_failure: continue`, their own or, unless they are gates, that of `defaults`."""
    defaults = outline.root.get("defaults")
    general = defaults.get("on_failure") if defaults is not None else None
    words = (
        (draft.id, draft.keys.get("on_failure", None if draft.is_gate else general))
        for draft in outline.drafts
    )
    return frozenset(name for name, word in words if word is not None and word.value in wanted)


def _lenient_by_policy(outline: Outline) -> frozenset[str]:
    """Return the steps that may be lenient because the policy says so of their risk, whichever that is."""
    policy = outline.root.get("policy")
    rules = policy.get("on_failure") if policy is not None else None
    defaults = outline.root.get("defaults")
    if rules is None or (defaults is not None and defaults.get("on_failure") is not None):
        return frozenset()
    if not any(word.value in ("continue", "ask") for _, word in members(rules)):
        return frozenset()
    return frozenset(
        draft.id for draft in outline.drafts if not draft.is_gate and "on_failure" not in draft.keys
    )
