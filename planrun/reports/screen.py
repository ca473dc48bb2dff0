"""A text stream with at most one status line at its end, which falls silent when nobody reads it any more."""

from __future__ import annotations

import os
import time

from planrun.reports.facts import seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

    from planrun.ports import Masks
    from planrun.reports.progress import Tally

_CLEAR = "\r\x1b[K"
_BAR = 20  # cells of the bar
_WIDTH = 80  # of a terminal that does not say
KNOWN = 0.1  # seconds; an ETA below is not shown


class Screen:
    """Writes text; the status line is erased before the next text. Never raises because of the stream.

    `now` is a clock that never jumps, in seconds.
    """

    def __init__(
        self,
        stream: TextIO | None,
        now: Callable[[], float] = time.monotonic,
        masks: Masks | None = None,
    ) -> None:
        self.now = now
        self._masks = masks
        self._stream = stream
        self._drawn = ""
        self._encoding = getattr(stream, "encoding", None) or "utf-8"

    def write(self, text: str, status: str = "") -> None:
        """Write whole lines, then `status` without a line end; an unchanged status line costs nothing."""
        stream = self._stream
        if stream is None or (not text and status == self._drawn):
            return
        if self._masks:  # records and logs are masked already; paths of this machine are not
            text, status = self._masks.mask_text(text), self._masks.mask_text(status)
        shown = self._fitted(status) if status else ""
        raw = (_CLEAR if self._drawn else "") + text + shown
        self._drawn = status
        try:
            stream.write(raw.encode(self._encoding, "replace").decode(self._encoding))
            stream.flush()
        except (OSError, ValueError):  # closed, or nobody reads: EPIPE
            self._fall_silent(stream)

    def _fitted(self, status: str) -> str:
        """Cut the status line to the terminal; anything but ASCII may be two cells wide, so it is left out."""
        try:
            width = os.get_terminal_size(self._stream.fileno()).columns if self._stream else _WIDTH
        except (OSError, ValueError):
            width = _WIDTH
        return status.encode("ascii", "replace").decode()[: max(10, (width or _WIDTH) - 1)]

    def _fall_silent(self, stream: TextIO) -> None:
        """Send what the stream still holds to nowhere, or the interpreter would complain about it at its end."""
        self._stream = None
        try:
            nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.dup2(nowhere, stream.fileno())
            finally:
                os.close(nowhere)
        except (OSError, ValueError):
            return


def status_line(tally: Tally, now: float, began: float) -> str:
    """Return `[######..............] 3/10  12.3s  ETA 20.0s  test, lint`; moments on one clock, in seconds."""
    filled = int(_BAR * tally.share())
    bar = "#" * filled + "." * (_BAR - filled)
    eta = tally.eta(now)
    # A step that takes longer than expected makes it 0, and what is known of steps of a few milliseconds next to
    # 0: neither says anything.
    least = "" if tally.eta_known else "at least "
    ends = f"  ETA {least}{seconds(eta)}" if eta and eta >= KNOWN else ""
    names = sorted(tally.running, key=tally.running.__getitem__)
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    shown = ", ".join([tally.called(name) for name in names[:3]])
    return f"[{bar}] {tally.done}/{tally.total}  {seconds(now - began)}{ends}  {shown}{more}"
