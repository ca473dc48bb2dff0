"""The forms in which logs are printed: bytes as they were logged, clean lines with a prefix or headings, JSON."""

from __future__ import annotations

from planrun.cliutil.printing import encoding, say_bytes, speaks_unicode
from planrun.model.jsontext import dumps, well_formed
from planrun.reports.cleaning import CleanLines, Lines
from planrun.reports.escape import line
from planrun.reports.output import COLOURS, RESET, WIDEST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Protocol

    from planrun.logs.attempts import Attempt

    class Writer(Protocol):
        """Prints the logs of attempts; what it is told of one log belongs to one pair of `begin` and `end`."""

        def begin(self, attempt: Attempt, part: str, /) -> None:
            """A log begins; `part` names that of a check."""

        def write(self, attempt: Attempt, part: str, piece: bytes, /) -> None:
            """Print more of a log."""

        def end(self, attempt: Attempt, part: str, /) -> None:
            """A log has ended."""


class Bytes:
    """Prints the bytes as they were logged."""

    def begin(self, _attempt: Attempt, _part: str) -> None:
        """Print nothing."""

    def write(self, _attempt: Attempt, _part: str, piece: bytes) -> None:
        """Print the bytes."""
        say_bytes(piece)

    def end(self, _attempt: Attempt, _part: str) -> None:
        """Print nothing."""


class Plain:
    """Prints clean lines, and with `headings` a line above each log."""

    def __init__(self, *, colours: bool, headings: bool) -> None:
        self._colours = colours
        self._headings = headings
        self._lines: dict[tuple[str, int, str], CleanLines] = {}
        self._rule = "──" if speaks_unicode() else "--"

    def begin(self, attempt: Attempt, part: str) -> None:
        """Print the heading."""
        self._lines[key_of(attempt, part)] = CleanLines(colours=self._colours)
        if self._headings:
            heading = f"{self._rule} {attempt.heading(part)} {self._rule}"
            _say_lines([f"\x1b[1m{heading}{RESET}" if self._colours else heading])

    def write(self, attempt: Attempt, part: str, piece: bytes) -> None:
        """Print the lines that end in the piece."""
        _say_lines(self._lines[key_of(attempt, part)].feed(piece))

    def pause(self) -> None:
        """Print what has come of lines that have no end yet, as the dots of a test runner."""
        text = "".join([lines.begun() for lines in self._lines.values()])
        if text:
            say_bytes(text.encode(encoding(), "backslashreplace"))

    def end(self, attempt: Attempt, part: str) -> None:
        """Print the last line."""
        _say_lines(self._lines.pop(key_of(attempt, part)).finish())


class Prefixed:
    """Prints clean lines, each behind the name of its step."""

    def __init__(self, steps: Iterable[str], *, colours: bool) -> None:
        self._colours = colours
        self._names = {step: number for number, step in enumerate(steps)}
        self._width = max((len(line(name)) for name in self._names if len(name) <= WIDEST), default=0)
        self._lines: dict[tuple[str, int, str], Lines] = {}

    def begin(self, attempt: Attempt, part: str) -> None:
        """Print nothing."""
        self._lines[key_of(attempt, part)] = CleanLines(colours=self._colours)

    def write(self, attempt: Attempt, part: str, piece: bytes) -> None:
        """Print the lines that end in the piece."""
        self._say(attempt, self._lines[key_of(attempt, part)].feed(piece))

    def end(self, attempt: Attempt, part: str) -> None:
        """Print the last line."""
        self._say(attempt, self._lines.pop(key_of(attempt, part)).finish())

    def _say(self, attempt: Attempt, lines: Iterable[str]) -> None:
        number = self._names.setdefault(attempt.step, len(self._names))
        prefix = f"{line(attempt.step):<{self._width}} | "
        if self._colours:
            prefix = f"\x1b[{COLOURS[number % len(COLOURS)]}m{prefix}{RESET}"
        _say_lines([prefix + text for text in lines])


class JsonLines:
    """Prints a JSON document in each line: one when a log begins, one for each line of it, one when it has ended."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._lines: dict[tuple[str, int, str], Lines] = {}

    def begin(self, attempt: Attempt, part: str) -> None:
        """Print which log begins."""
        self._lines[key_of(attempt, part)] = Lines()
        self.say("log", attempt, part)

    def write(self, attempt: Attempt, part: str, piece: bytes) -> None:
        """Print the lines that end in the piece."""
        self._say_lines(attempt, part, self._lines[key_of(attempt, part)].feed(piece))

    def end(self, attempt: Attempt, part: str) -> None:
        """Print the last line, and how the attempt ended."""
        self._say_lines(attempt, part, self._lines.pop(key_of(attempt, part)).finish())
        ended = attempt.ended
        self.say(
            "end",
            attempt,
            part,
            status=attempt.status,
            reason=ended.reason if ended else "",
            exit_code=ended.exit_code if ended else None,
            duration_s=ended.duration if ended else None,
        )

    def _say_lines(self, attempt: Attempt, part: str, lines: Iterable[str]) -> None:
        for text in lines:
            self.say("line", attempt, part, text=text)

    def say(self, kind: str, attempt: Attempt | None, part: str = "", **more: Any) -> None:
        """Print one document."""
        about: dict[str, Any] = {"type": kind, "run": self._run}
        if attempt:
            about |= {"step": attempt.step, "attempt": attempt.n, "part": part or None}
        say_bytes(dumps(well_formed({**about, **more})).encode() + b"\n")


def key_of(attempt: Attempt, part: str) -> tuple[str, int, str]:
    """Return what tells a log from all others of a run."""
    return attempt.step, attempt.n, part


def _say_lines(lines: Iterable[str]) -> None:
    text = "".join([f"{each}\n" for each in lines])
    if text:
        say_bytes(text.encode(encoding(), "backslashreplace"))
