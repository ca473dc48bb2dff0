"""A question in pieces, cut to a number of tokens: what matters least is shortened or left out first."""

from __future__ import annotations

from planrun.llm.untrusted import data_block
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

MAX_CONTEXT_TOKENS = 100_000
"""Tokens of one question, where no setting says another number."""
LEAST_CONTEXT_TOKENS = 10_000
BYTES_A_TOKEN = 2  # as budgets count
_LEAST = 200  # bytes of a piece that is worth keeping
_JOIN = "\n\n"


class Piece(Record):
    """A part of a question. `rank`: what has the highest is cut first; 0: it is never cut.

    `name`: of a block of data with at most `limit` bytes of `text`. A piece with `rows` is a table below `text`: the
    last rows are left out first.
    """

    text: str
    name: str = ""
    limit: int = 0
    rank: int = 0
    rows: tuple[str, ...] = ()
    lead: str = ""  # lines before the block, which are never cut

    @property
    def label(self) -> str:
        """What it is called where it is cut."""
        return self.name or self.text.split("\n", 1)[0].rstrip(":")

    @property
    def size(self) -> int:
        """The bytes of its content, before it is cut."""
        if self.rows:
            return _bytes("\n".join(self.rows))
        size = _bytes(self.text)
        return min(size, self.limit) if self.name else size

    def rendered(self, limit: int | None = None) -> str:
        """Return it with at most `limit` bytes of content, None: with all it may have."""
        if self.rows:
            return "\n".join([self.text, *self._fitting(limit)])
        if not self.name:
            return self.text
        most = self.limit if limit is None else min(limit, self.limit)
        if not most:
            return self.lead.rstrip("\n")
        return f"{self.lead}{data_block(self.name, self.text, most)}"

    def _fitting(self, limit: int | None) -> list[str]:
        if limit is None:
            return list(self.rows)
        kept: list[str] = []
        for row in self.rows:
            limit -= _bytes(row) + 1
            if limit < 0:
                break
            kept.append(row)
        return [*kept, f"[{len(self.rows) - len(kept)} rows left out]"]


class Fitted(Record):
    """A question that fits; `cut`: name, bytes and what is kept of each piece that was cut; `over`: tokens too many."""

    text: str
    cut: tuple[dict[str, Any], ...] = ()
    over: int = 0


def whole(pieces: Sequence[Piece]) -> str:
    """Return a question of which nothing is cut."""
    return _JOIN.join([piece.rendered() for piece in pieces])


def fitted(pieces: Sequence[Piece], tokens: int) -> Fitted:
    """Return a question of at most so many tokens, by the estimate of budgets; `over` where even the rest is longer."""
    texts = [piece.rendered() for piece in pieces]
    over = _bytes(_JOIN.join(texts)) - max(tokens, 0) * BYTES_A_TOKEN
    cut: list[dict[str, Any]] = []
    order = sorted(range(len(pieces)), key=lambda at: (-pieces[at].rank, -at))
    for at in order:
        piece = pieces[at]
        if over <= 0 or not piece.rank:
            break
        before, size = _bytes(texts[at]), piece.size
        kept = size - over
        texts[at] = piece.rendered(kept) if kept >= _LEAST else piece.lead.rstrip("\n")
        cut.append({"name": piece.label, "bytes": size, "kept": kept if kept >= _LEAST else 0})
        over -= before - _bytes(texts[at]) + (0 if texts[at] else len(_JOIN))
    text = _JOIN.join([each for each in texts if each])
    return Fitted(text=text, cut=tuple(cut), over=-(-max(over, 0) // BYTES_A_TOKEN))


def told(cut: Sequence[dict[str, Any]]) -> str:
    """Return what was cut as a line: `file README.md (0 of 3,000 bytes)`."""
    return ", ".join([f"{each['name']} ({each['kept']:,} of {each['bytes']:,} bytes)" for each in cut])


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
