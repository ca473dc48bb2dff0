"""The output of each step as a whole: in a section where the CI system has them, else indented below its line.

A section is written while its step runs when no other step runs; the section of any other step is copied from its log
when the step ends. A line of planrun closes a section that is open, and what its step prints next goes into a further
one. Of an attempt that printed more than HEAD + TAIL bytes, both ends are shown.
"""

from __future__ import annotations

from planrun.reports.output import AT_ONCE, CHUNK, PERIOD, QUIET_PERIOD, Output, left_out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Set as AbstractSet

    from planrun.reports.ci import Look, Sections
    from planrun.reports.output import Attempt
    from planrun.reports.screen import Piece

HEAD = 3 << 20  # bytes from the beginning of a log
TAIL = (
    1 << 20
)  # bytes from its end; GitLab keeps 4 MiB of the log of a job, unless its runner is configured otherwise


class Indented:
    """Sections for a log that has none."""

    indent = b"  | "

    def begin(self, title: str, *, live: bool = False) -> str:  # noqa: ARG002 - as sections have it
        """Return the line above."""
        return f"{title}\n"

    def end(self) -> str:
        """Return nothing."""
        return ""


class Grouped(Output):
    """Follows the log of a step that runs alone, and copies the others when their steps end.

    `aside`: services that are ready, which are not counted. `run`: the id of the run, for what shows the whole output.
    `apart`: lines of planrun go elsewhere, so the output has the names of steps itself.
    """

    def __init__(
        self,
        say: Callable[[Piece], None],
        flush: Callable[[], None],
        *,
        look: Look,
        aside: AbstractSet[str],
        run: str,
    ) -> None:
        super().__init__(say, flush, look=look, run=run)
        self._sections: Sections | Indented = look.sections or Indented()
        self._follows = look.sections is not None
        self._aside = aside
        self.apart = False
        self._owner: Attempt | None = None  # whose section is written while it runs
        self._open: Attempt | None = None  # whose section is open
        self._titled: set[Attempt] = set()  # those that have had a section

    def look(self) -> float:
        """Read what the step that runs alone has printed; return the seconds until the next look."""
        self._pending = 0
        if self._owner and self._owner.step in self._aside:
            self.pause()
            self._owner = None
        owner = self._owner or self._only()
        if owner is None or not self._follows:
            return QUIET_PERIOD
        for number in range(AT_ONCE):
            data = self._next(owner, min(CHUNK, HEAD - owner.at)) if owner.at < HEAD else b""
            if not data:
                return PERIOD if number else QUIET_PERIOD
            self._owner = owner
            self._show(owner, owner.lines.feed(data))
        return 0.0

    def _only(self) -> Attempt | None:
        alone = [attempt for attempt in self._live.values() if attempt.step not in self._aside]
        return alone[0] if len(alone) == 1 else None

    def close(self, step: str, title: str) -> bool:
        """Show the rest of an attempt that ended; True when `title` was shown as that of a section."""
        attempt = self._live.pop(step, None)
        if attempt is None:
            return False
        owned = attempt is self._owner
        if owned:
            self._owner = None
        else:
            attempt.title = title
        self._copy(attempt)
        self._show(attempt, attempt.lines.finish())
        shown = attempt in self._titled
        self._titled.discard(attempt)
        self.pause()
        return shown and not owned

    def _copy(self, attempt: Attempt) -> None:
        size = self.size(attempt)
        end = HEAD if size > HEAD + TAIL else size
        while attempt.at < end and (data := self._next(attempt, min(CHUNK, end - attempt.at))):
            self._show(attempt, attempt.lines.feed(data))
        if size <= HEAD + TAIL:
            return
        self._show(attempt, attempt.lines.finish())
        left_at, attempt.at = attempt.at, size - TAIL
        data = self._next(attempt, CHUNK)
        start = data.find(b"\n") + 1
        count = size - TAIL + start - left_at
        self._show(attempt, left_out(count, attempt.label, self._run))
        self._show(attempt, attempt.lines.feed(data[start:]))
        while attempt.at < size and (data := self._next(attempt, CHUNK)):
            self._show(attempt, attempt.lines.feed(data))

    def pause(self) -> None:
        """Close the section that is open."""
        if self._open:
            self._open = None
            self._put(self._sections.end())

    def _show(self, attempt: Attempt, block: bytes) -> None:
        if not block:
            return
        if self._open is not attempt:
            self.pause()
            again = " (continued)" if attempt in self._titled else ""
            self._titled.add(attempt)
            title = f"{attempt.title.removesuffix(chr(10))}{again}"
            self._put(self._sections.begin(title, live=attempt is self._owner))
            self._open = attempt
            if self.apart:
                self._put(f"{attempt.label}{again}:\n".encode())
        if indent := self._sections.indent:
            block = indent + block[:-1].replace(b"\n", b"\n" + indent) + b"\n"
        self._put(block)
