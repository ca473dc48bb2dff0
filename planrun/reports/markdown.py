"""The document of a run as markdown: `report.md`, and GitHub's step summary within its budget.

The result, the failures, what waits and the steps are read at once; the rest is folded. With a budget what does not fit
is counted, not shown.
"""

from __future__ import annotations

from planrun.reports import facts
from planrun.reports.document import BELOW, LOG_BYTES, document, provenance
from planrun.reports.escape import code, fence, inline, plain
from planrun.reports.facts import ICONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import BinaryIO

    from planrun.model.state import RunState
    from planrun.reports.document import Kind, Section

SUMMARY_BYTES = 900 * 1024  # GitHub shows nothing of a step summary above 1 MiB
_CLOSING_BYTES = 200  # kept for the end of a folded section, and for the line that counts what was left out
_OPEN = frozenset(
    ("Failures", "Next", "Notes", "Outputs")
)  # sections that are not folded, besides those that lead
_OPEN_STEPS = 50  # up to so many steps are not folded
_CELL = 1000  # characters


def write_markdown(
    state: RunState, rundir: str, out: BinaryIO, budget: int | None = None, *, head: str = ""
) -> None:
    """Write the run to a binary file, in at most `budget` bytes where one is given.

    `head` is the hash of the ledger's last line, which `verify` asks for; empty when the ledger has no end.
    Raises OSError when `out` cannot be written.
    """
    page = _Page(out, budget)
    status, heading = facts.status_of(state), facts.heading(state)
    at = heading.rindex(" [")  # the brackets around the status are ours
    title = f"# {ICONS.get(status, ICONS['running'])} {inline(heading[:at], 1100)}{heading[at:]}"
    page.add([f"{title}\n\n## Execution Summary\n\n**{inline(facts.summary(state), 1000)}**\n"])
    logs = LOG_BYTES if page.left is None else page.left // 2
    kept = 0
    if page.left is not None:  # the head of the ledger is there to be compared, however long the rest is
        pieces = _folded(provenance(state, head))
        kept = page.keep(sum([len(piece.encode("utf-8", "replace")) for piece in pieces]))
    for section in document(state, rundir, "markdown", head=head, logs=logs):
        steps = section.lines if section.heading == "Steps" else ()
        if section.heading == "Run":
            page.keep(-kept)
        if section.leads or section.heading in _OPEN or 0 < len(steps) <= _OPEN_STEPS:
            page.add([f"\n## {inline(section.heading)}\n"])
            page.add(_pieces(section, 3))
        else:
            head_of, *pieces, end = _folded(section)
            if page.add([head_of]):
                page.add(pieces)
                out.write(end.encode())
    if page.missing and page.started:
        out.write(f"\n{page.missing} more entries left out: the report ends at its size limit.\n".encode())


_FOLDED = "\n</details>\n"


class _Page:
    """What was written and how much more may be; what does not fit is refused whole."""

    def __init__(self, out: BinaryIO, budget: int | None) -> None:
        self.out = out
        self.left = None if budget is None else max(0, budget - _CLOSING_BYTES)
        self.missing = 0
        self.started = False

    def keep(self, count: int) -> int:
        """Keep so many bytes for later, where there are as many; return how many are kept."""
        if self.left is None or count > self.left:
            return 0
        self.left -= count
        return count

    def add(self, pieces: Sequence[str]) -> bool:
        """Write pieces up to the first that does not fit, and count the others; return whether all did."""
        if self.left is None:
            self.out.write("".join(pieces).encode("utf-8", "replace"))
            return True
        for number, piece in enumerate(pieces):
            data = piece.encode("utf-8", "replace")
            cost = len(data) + (len(_FOLDED) if piece.startswith("\n<details>") else 0)
            if cost > self.left:
                self.missing += len(pieces) - number
                return False
            self.left -= cost
            self.out.write(data)
            self.started = True
        return True


def _folded(section: Section) -> list[str]:
    head = f"\n<details>\n<summary>{inline(section.heading)}</summary>\n"
    return [head, *_pieces(section, 3), _FOLDED]


def _pieces(section: Section, level: int) -> list[str]:
    """Return what stands below the heading of a section, in pieces that are shown or left out as a whole."""
    pieces = []
    if section.text:
        pieces.append(f"\n{inline(section.text, _CELL)}\n")
    if section.facts:
        rows = [f"- **{name}:** {_cell(value, kind)}\n" for name, value, kind in section.facts]
        pieces.append("\n" + "".join(rows))
    if section.lines:
        pieces += ["\n", *[_line(status, text) for status, text in section.lines]]
    if section.code:
        pieces.append("\n" + fence(plain(section.code), section.language))
    if section.rows:
        names, kinds = [name for name, _ in section.columns], [kind for _, kind in section.columns]
        marks = ["---:" if kind == "number" else "---" for kind in kinds]
        pieces.append(f"\n| {' | '.join(names)} |\n| {' | '.join(marks)} |\n")
        columns = [
            _column(texts, kind) for texts, kind in zip(zip(*section.rows, strict=True), kinds, strict=True)
        ]
        pieces += [f"| {' | '.join(cells)} |\n" for cells in zip(*columns, strict=True)]
    for found in section.sections:
        mark = f"{ICONS[found.mark]} " if found.mark else ""
        heading = f"\n{'#' * level} {mark}{inline(found.heading, _CELL)}\n"
        pieces.append(heading + "".join(_pieces(found, level + 1)))
    if section.note:
        pieces.append(f"\n{inline(section.note, _CELL)}\n")
    return pieces


def _line(status: str, text: str) -> str:
    lead = "  -" if status == BELOW else f"- {ICONS[status]}" if status else "-"
    return f"{lead} {inline(text, _CELL)}\n"


def _column(texts: Sequence[str], kind: Kind) -> Sequence[str]:
    """Return cells; each text is escaped once, since large runs have few texts in most columns."""
    if kind == "number":
        return texts
    cells = {text: _cell(text, kind) if text else "" for text in dict.fromkeys(texts)}
    return [cells[text] for text in texts]


def _cell(text: str, kind: Kind) -> str:
    if kind == "number":
        return text
    return code(text, _CELL) if kind in ("code", "step") else inline(text, _CELL)
