"""Where a console writes: the lines of planrun, the output of steps, and on a terminal a status area below them.

The area has several lines; it is erased before the next text and drawn again below it, in one write. The cursor stays
visible, behind the last line. Text and output are written by one writer in their order. Where stdout and stderr are the
same terminal, pipe or file, all goes through one of them.
"""

from __future__ import annotations

import os
import time
from stat import S_ISREG

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TextIO

    from planrun.ports import Masks

    Piece = str | bytes  # a text of planrun; the output of a step, masked already

_SIZE = (80, 24)  # columns and rows of a terminal that does not know them
_RETRY = 0.1  # seconds until the next try to write to a full terminal or pipe
_IDLE = 0.5  # seconds that an interrupted run waits for a reader that takes nothing
_GRACE = 2.0  # seconds in all that it waits for its reader


class Screen:
    """Writes text above a status area. Never raises because of a stream.

    `ask_lines` are the last lines of the area, for a question while steps run: the next turn of the console draws them.
    `can_erase`: the stream is a terminal with sequences that do that. `stream` gets the lines of planrun, `out` the
    output of steps (None: the same stream). `now` is a clock that never jumps, in seconds. `keeps_waiting` is called
    several times a second while no one reads; when it returns False, the reader has a short while left, and what it
    does not take then is left out.
    """

    def __init__(
        self,
        stream: TextIO | None,
        now: Callable[[], float] = time.monotonic,
        masks: Masks | None = None,
        out: TextIO | None = None,
    ) -> None:
        self.now = now
        self.masks = masks
        self._stream = stream
        self._out = stream if out is None or _are_one(stream, out) else out
        self._drawn: list[str] = []  # the lines of the area on the terminal
        self._columns = 0  # of the terminal when they were drawn
        self.ask_lines: list[str] = []
        self.can_erase = True
        self.keeps_waiting: Callable[[], bool] = _always
        self._grace = _GRACE
        self._left_out: dict[int, int] = {}  # bytes that nobody took, by descriptor
        self._descriptors: dict[int, int] = {}  # those of the streams, and those that writes do not block on

    @property
    def together(self) -> bool:
        """Whether the output of steps and the lines of planrun are on one stream."""
        return self._out is self._stream

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows of the terminal, which may change at any time."""
        try:
            size = os.get_terminal_size(self._stream.fileno()) if self._stream else _SIZE
        except (OSError, ValueError):
            size = _SIZE
        return size[0] or _SIZE[0], size[1] or _SIZE[1]

    def write(self, text: str) -> None:
        """Write whole lines of planrun, and erase the area."""
        self.show([text] if text else [])

    def show(self, pieces: Sequence[Piece], area: Sequence[str] = ()) -> None:
        """Write whole lines in their order, then the area; an unchanged area costs nothing."""
        if self.ask_lines:
            area = [*area, *self.ask_lines]
        columns = self.size[0] if area or self._drawn else 0
        drawn = self._fitted(area, columns) if area else []
        if not pieces and drawn == self._drawn and columns == self._columns:
            return
        if self.ask_lines and self._insert(pieces, drawn, columns):
            return
        erasure = self._erasure(columns)
        self._drawn, self._columns = drawn, columns
        self._replace(erasure, pieces, drawn)

    def _replace(self, erasure: bytes, pieces: Sequence[Piece], drawn: list[str]) -> None:
        """Erase the area, write whole lines, and draw the new area; one write for each stream."""
        apart = not self.together
        lines: list[bytes] = []
        out: list[bytes] = [] if apart else lines
        for piece in pieces:
            if isinstance(piece, bytes):
                out.append(piece)
            else:
                lines.append(self._masked(piece))
        if drawn:
            lines.append("\n".join(drawn).encode("utf-8", "replace"))
        if out and apart:  # what steps printed, then what is said of them
            if erasure:
                self._put(self._stream, erasure)
                erasure = b""
            self._put(self._out, b"".join(out))
        if erasure:
            lines.insert(0, erasure)
        if lines:
            self._put(self._stream, b"".join(lines))  # one part is not copied

    def entered(self, typed: str) -> None:
        """Take note that the user ended the line of the question: it is text now, and the area above it goes."""
        drawn, self._drawn = self._drawn, []
        count = len(self.ask_lines)
        if len(drawn) > count and self.can_erase:
            from planrun.reports.inserted import without_area

            self._put(self._stream, without_area(drawn, count, typed, self.size[0]))

    def _insert(self, pieces: Sequence[Piece], drawn: list[str], columns: int) -> bool:
        """Write above the question without touching what is being typed; False where it cannot be done so."""
        count = len(self.ask_lines)
        same = drawn[-count:] == self._drawn[-count:] and columns == self._columns
        if not (same and self.can_erase and self.together):
            return False
        from planrun.reports.inserted import Place, inserted

        text = b"".join([piece if isinstance(piece, bytes) else self._masked(piece) for piece in pieces])
        place = Place(area=len(self._drawn) - count, question=count, columns=columns, rows=self.size[1])
        data = inserted(text, drawn[:-count], place)
        if data is None:
            return False
        self._drawn = drawn
        self._put(self._stream, data)
        return True

    def _erasure(self, columns: int) -> bytes:
        """Return what erases the area; a terminal that became narrower has wrapped its lines."""
        if not self._drawn:
            return b""
        if not self.can_erase:
            return b"\n"
        rows = len(self._drawn)
        if columns < self._columns:
            from planrun.reports.area import height  # loaded already, since an area was drawn

            rows = height(self._drawn, columns)
        return b"\r\x1b[J" if rows == 1 else b"\r\x1b[%dA\x1b[J" % (rows - 1)

    def _fitted(self, area: Sequence[str], columns: int) -> list[str]:
        from planrun.reports.area import fitted  # few runs draw one

        # The last column stays empty: after a character there terminals differ in where the cursor is.
        return [fitted(self._masked(line).decode(), max(columns - 1, 1)) for line in area]

    def _masked(self, text: str) -> bytes:
        """Return a text of planrun; records and logs are masked already, but paths of this machine are not."""
        return (self.masks.mask_text(text) if self.masks else text).encode("utf-8", "replace")

    def _put(self, stream: TextIO | None, data: bytes) -> None:
        """Write UTF-8 to a stream, in its own encoding."""
        if stream is None:
            return
        encoding = getattr(stream, "encoding", None) or "utf-8"
        try:
            try:
                fd = stream.fileno()
            except (
                OSError,
                ValueError,
                AttributeError,
            ):  # a buffer in memory; a closed stream, which write() reports
                fd = -1
            if fd < 0:
                text = data.decode("utf-8", "replace")
                stream.write(text.encode(encoding, "replace").decode(encoding))
                stream.flush()
                return
            stream.flush()
            if encoding.lower() not in ("utf-8", "utf8"):
                data = data.decode("utf-8", "replace").encode(encoding, "replace")
            if fd not in self._descriptors:
                # It is opened anew: other programs share the flags of this one. A socket, or the terminal of another
                # user, cannot be.
                try:
                    if S_ISREG(os.fstat(fd).st_mode):
                        self._descriptors[fd] = fd
                    else:
                        flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
                        self._descriptors[fd] = os.open(f"/proc/self/fd/{fd}", flags)
                except OSError:
                    self._descriptors[fd] = fd
            self._write(self._descriptors[fd], data)
        except (OSError, ValueError):  # closed, or no reader: EPIPE
            self._stop(stream)

    def _write(self, fd: int, data: bytes) -> None:
        """Write all of it; of an interrupted run what is taken in time, and how much was not."""
        missing = self._left_out.get(fd, 0)
        rest = memoryview(
            b"\n... %d bytes left out: no one read them\n%b" % (missing, data) if missing else data
        )
        idle = 0.0
        while rest:
            try:
                rest = rest[os.write(fd, rest) :]
                self._left_out.pop(fd, None)
                idle = 0.0
            except BlockingIOError:
                is_ending = not self.keeps_waiting()
                if is_ending and (idle >= _IDLE or self._grace <= 0):
                    self._grace = 0
                    self._left_out[fd] = self._left_out.get(fd, 0) + min(len(rest), len(data))
                    return
                import select  # loaded already where a run waits for processes

                before = self.now()
                select.select([], [fd], [], _RETRY)
                if is_ending:  # a reader that takes the output makes this wait short
                    waited = self.now() - before
                    idle += waited
                    self._grace -= waited

    def _stop(self, stream: TextIO) -> None:
        """Redirect the stream's buffered output to /dev/null: the interpreter would report an error when it exits."""
        if self._stream is stream:
            self._stream = None
        if self._out is stream:
            self._out = None
        try:
            other = self._descriptors.pop(stream.fileno(), -1)
            if other not in (-1, stream.fileno()):
                os.close(other)
            nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.dup2(nowhere, stream.fileno())
            finally:
                os.close(nowhere)
        except (OSError, ValueError):
            return


def _are_one(stream: TextIO | None, out: TextIO) -> bool:
    """Return whether two streams are the same terminal, pipe or file."""
    if stream is None or stream is out:
        return stream is out
    try:
        return os.path.samestat(os.fstat(stream.fileno()), os.fstat(out.fileno()))
    except (OSError, ValueError):
        return False


def _always() -> bool:
    return True
