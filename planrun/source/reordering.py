"""Another order of the steps in a plan's text: whole lines move, and no byte of them changes.

A step takes the comments directly above it along. What would mean something else afterwards is refused: a file whose
steps stand between brackets, count by position, or share anchors across the new order.
"""

from __future__ import annotations

from planrun.source.canonical import plain
from planrun.source.document import parse
from planrun.source.editing import EditError, Page, with_comments
from planrun.source.load import load_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def reorder_steps(data: bytes, file: str, names: Sequence[str]) -> bytes:
    """Return a plan's text with the steps under `steps:` in the order of `names`, which has each of them once.

    Raises InvalidPlan when the plan is none, and EditError when its text does not lend itself to it.
    """
    page = Page(data, file)
    listing = page.listing("steps")
    drafts = page.drafts["steps"]
    if listing.is_flow:
        raise EditError(
            f"{file}: the steps stand between brackets; write one below the other, and they can move"
        )
    for draft in drafts:
        if "id" not in draft.keys:
            raise EditError(
                f'{file}:{draft.at.line}: step "{draft.id}" has no id and would be counted otherwise; give it one'
            )
    if sorted(names) != sorted(draft.id for draft in drafts):
        raise EditError(f"{file}: the order names other steps than the file has")
    made = _bom(data) + _moved(page, [draft.id for draft in drafts], names).encode("utf-8")
    _check(page, made, names)
    return made


def _moved(page: Page, now: Sequence[str], names: Sequence[str]) -> str:
    text, entries = page.text, page.listing("steps").entries
    starts = [with_comments(text, entry.dash) for entry in entries]
    ends = [*starts[1:], page.end_of_steps()]
    if any(end < start for start, end in zip(starts, ends, strict=True)):
        raise EditError(f"{page.file}: two steps stand in one line")
    chunks = {name: text[start:end] for name, start, end in zip(now, starts, ends, strict=True)}
    gaps = {name: chunk[len(chunk.rstrip()) :] for name, chunk in chunks.items()}
    bodies = {name: chunk.rstrip() for name, chunk in chunks.items()}
    # The empty lines stay where they are: they part places of the list, not steps.
    shown = [bodies[name] + gaps[place] for name, place in zip(names, now, strict=True)]
    return text[: starts[0]] + "".join(shown) + text[ends[-1] :]


def _check(page: Page, made: bytes, names: Sequence[str]) -> None:
    """Raise EditError unless every step, and all beside the steps, is what it was, in the order of `names`."""
    tree, problems = parse(made, page.file)
    what = problems[0].message if tree is None or problems else ""
    if not what:
        plan = load_bytes(made, page.file, cache=False)
        before = {step.id: plain(step) for step in page.plan.everything()}
        after = {step.id: plain(step) for step in plan.everything()}
        written = [step.id for step in plan.main() if step.id in set(names)]
        if before != after or plain(page.plan) != plain(plan):
            what = "a step would change"
        elif written != list(names):
            what = "the order would be another one"
    if what:
        raise EditError(f"{page.file}: the steps cannot be moved: {what}; nothing was written")


def _bom(data: bytes) -> bytes:
    return data[:3] if data.startswith(b"\xef\xbb\xbf") else b""
