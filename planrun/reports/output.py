"""The output of steps on its way from their logs to the screen: followed while it is written, and complete at the end.

A log is read in chunks and cut into lines. Of a line that carriage returns overwrite, its last state is kept. Colours
stay where the screen has them; every other control sequence is removed. At most LONGEST bytes of a line without an end
are held.
"""

from __future__ import annotations

import os

from planrun.model.job import PREFIX, original
from planrun.reports.escape import last_state, without_controls
from planrun.reports.escape import line as clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from planrun.ports import Masks
    from planrun.reports.ci import Look
    from planrun.reports.screen import Piece

    # The id of a step, the same clean, the heading of the attempt, its log, and the number of the step in its plan.
    Source = tuple[str, str, str, str, int]
    Read = Callable[[str, int, int], bytes | None]

CHUNK = 1 << 16  # bytes read at once
LONGEST = 1 << 14  # bytes of a line without an end; a longer one gets line ends
AT_ONCE = 16  # chunks of a step between two turns of the engine's loop
SHOWN_AT_ONCE = 1 << 20  # bytes that are still shown of a step whose run was interrupted
LAST = 1 << 14  # bytes from the end of a longer rest
MOST_PENDING = 1 << 18  # bytes that wait to be written
_KEPT = 1 << 20  # bytes: half of the free memory that is kept for the next chunks
WIDEST = 24  # cells of the ids in front of lines, to which they are aligned
PERIOD = 0.05  # seconds between two looks at logs that grow
QUIET_PERIOD = 0.1  # and at logs that do not
_MARKS = b":#"  # of commands to CI systems: searched among what remains, which is several times faster
_SAFE = bytes([code for code in range(0x20, 0x7F) if code not in _MARKS]) + b"\t\n"
_HIGH = bytes(range(0x80, 0x100))
# What `escape` replaces beyond ASCII, in UTF-8, by what it begins with: C1, line separators, direction overrides,
# noncharacters.
_ODD = {
    b"\xc2": [b"\xc2" + bytes([code]) for code in range(0x80, 0xA0)],
    b"\xe2\x80": [b"\xe2\x80" + bytes([code]) for code in range(0xA8, 0xAF)],
    b"\xe2\x81": [b"\xe2\x81" + bytes([code]) for code in range(0xA6, 0xAA)],
    b"\xef\xbf": [b"\xef\xbf\xbe", b"\xef\xbf\xbf"],
}
# How characters begin that are not shown (planrun.model.hidden): they may stand inside of a command.
_UNSEEN = {
    b"\xc2": [b"\xc2\xad"],
    b"\xcd": [b"\xcd\x8f"],
    b"\xd8": [b"\xd8\x9c"],
    b"\xe1": [b"\xe1\x85", b"\xe1\x9e", b"\xe1\xa0"],
    b"\xe2\x80": [b"\xe2\x80" + bytes([code]) for code in (*range(0x8B, 0x90), *range(0xA8, 0xAF))],
    b"\xe2\x81": [b"\xe2\x81" + bytes([code]) for code in range(0xA0, 0xB0)],
    b"\xe2\xa0": [b"\xe2\xa0\x80"],
    b"\xe3": [b"\xe3\x85"],
    b"\xef": [b"\xef\xb7", b"\xef\xb8", b"\xef\xbb", b"\xef\xbe", b"\xef\xbf"],
    b"\xf0": [b"\xf0\x9b\xb2", b"\xf0\x9d\x85"],
    b"\xf3": [b"\xf3\xa0"],
}
# White space beyond ASCII: a command may stand behind it.
_BLANKS = {
    b"\xc2": [b"\xc2\x85", b"\xc2\xa0"],
    b"\xe1": [b"\xe1\x9a\x80"],
    b"\xe2": [b"\xe2\x80", b"\xe2\x81\x9f"],
    b"\xe3": [b"\xe3\x80\x80"],
}
RESET = "\x1b[0m"
COLOURS = ("36", "33", "35", "32", "34", "96", "93", "95", "92", "94")  # of ids: neither red nor grey
_PARAMETERS = "0123456789;:"
_LONGEST_SEQUENCE = 64  # bytes
_MOST_OPEN = 64  # characters of colours that a line passes on to the next one
_COPY = PREFIX.encode()  # how the names of copied scripts begin


class Lines:
    """Turns the bytes of a log into clean lines, however they are cut.

    `colour`: colours are kept, and end with their line. `inert`: commands to CI systems are broken. `masks` find
    secrets that had control sequences in between, so that the masks of the log did not.
    """

    __slots__ = ("_colour", "_inert", "_masks", "_rest")

    def __init__(self, *, colour: bool = False, inert: bool = True, masks: Masks | None = None) -> None:
        self._masks = masks
        self._colour = colour
        self._inert = inert
        self._rest = b""

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes and return the lines that are complete."""
        end = data.rfind(b"\n") + 1
        if end:
            block = self._clean(b"".join((self._rest, memoryview(data)[:end])))
            self._rest = _last_state(data[end:])
        else:
            block = b""
            self._rest = _last_state(self._rest + data)
        while len(self._rest) > LONGEST:
            cut = _cut(self._rest)
            block += self._clean(self._rest[:cut] + b"\n")
            self._rest = self._rest[cut:]
        return block

    def finish(self) -> bytes:
        """Return the line without an end, with one; nothing if it would be empty."""
        rest, self._rest = self._rest, b""
        block = self._clean(rest + b"\n") if rest else b""
        return b"" if block == b"\n" else block

    def unfinished(self) -> str:
        """Return the line that has no end yet, as plain text."""
        return clean(resolved(original(self._rest.decode("utf-8", "replace")))) if self._rest else ""

    def _clean(self, block: bytes) -> bytes:
        if block.rfind(_COPY) >= 0:  # three times as fast as `in`
            block = original(block.decode("utf-8", "replace")).encode("utf-8", "replace")
        odd = block.translate(None, _SAFE)
        if odd:
            marks, odd = odd, odd.translate(None, _MARKS)
            if self._inert and _may_command(block, marks):
                odd = b"\0"
        if not odd or (not (odd.translate(None, _HIGH) or _holds(odd, _ODD)) and _is_text(block)):
            return block
        rows = block[:-1].decode("utf-8", "replace").split("\n")
        return "".join([f"{self._row(row)}\n" for row in rows]).encode("utf-8", "replace")

    def _row(self, row: str) -> str:
        if row[-1:] == "\r" and row[:-1].isprintable() and row[:-1].strip():
            row = row[:-1]  # an end of a line as Windows has it
        if row.isprintable() and not (
            self._inert
            and ("::" in row or "##" in row if row.isascii() else row.count(":") > 1 or row.count("#") > 1)
        ):
            return row
        row = resolved(row)
        text = without_controls(row).replace("\n", " ")
        masked = self._masks.mask_text(text) if self._masks else text
        if masked != text:
            text = row = masked  # without colours, which may be what was in between
        if self._inert:
            from planrun.model.commands import broken

            inert = broken(text)
            if inert != text:
                return inert  # without colours, between which a command could be hidden
        return coloured(row)[0] if self._colour and "\x1b[" in row else text


def _may_command(block: bytes, marks: bytes) -> bool:
    """Whether a line may hold a command to a CI system: `std::vector` is none; `marks`: the colons and such of it."""
    if (b"##" in marks and b"##" in block) or (
        (marks.count(b":") > 1 or marks.count(b"#") > 1) and _holds(marks, _UNSEEN)
    ):
        return True
    if b"::" not in marks or b"::" not in block:
        return False
    begins = block.startswith(b"::") or any(mark in block for mark in (b"\n::", b" ::", b"\t::", b"\r::"))
    return begins or _holds(marks, _BLANKS)


def _holds(data: bytes, sequences: Mapping[bytes, Sequence[bytes]]) -> bool:
    """Whether one of these is in the data; nearly always the search for how they begin is all it takes."""
    return any(
        first in data and any(sequence in data for sequence in each) for first, each in sequences.items()
    )


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _last_state(rest: bytes) -> bytes:
    """Drop what carriage returns have overwritten; those at the end may be part of a line end."""
    if b"\r" not in rest:
        return rest
    states = rest.split(b"\r")
    last = len(states) - 1
    while last and not without_controls(states[last].decode("utf-8", "replace")).strip():
        last -= 1
    return b"\r".join(states[last:])


def _cut(rest: bytes) -> int:
    """Return where to cut a long line: not inside of a character or of a control sequence."""
    escape = rest.rfind(b"\x1b", LONGEST - _LONGEST_SEQUENCE, LONGEST)
    if escape > 0:
        return escape
    at = LONGEST
    while at > LONGEST - 4 and 0x80 <= rest[at] < 0xC0:
        at -= 1
    return at


def resolved(row: str) -> str:
    """Return the last state of a line that carriage returns and backspaces have overwritten."""
    for column in ("\x1b[G", "\x1b[0G", "\x1b[1G"):  # to the first column
        if column in row:
            row = row.replace(column, "\r")
    row = last_state(row)
    if "\b" not in row:
        return row
    from planrun.model.hidden import without_erased

    return without_erased(row)


def coloured(row: str, on: str = "") -> tuple[str, str]:
    """Return a line without control characters, in its colours, which end with it, and those that it leaves on.

    `on`: those that the line before left on.
    """
    parts = [on]
    plain, *rest = row.split("\x1b")
    for part in rest:
        end = 1
        while end < len(part) and part[end] in _PARAMETERS:
            end += 1
        if part[:1] == "[" and part[end : end + 1] == "m":
            sequence = f"\x1b{part[: end + 1]}"
            parts += [without_controls(plain), sequence]
            plain = part[end + 1 :]
            kept = on if len(on) < _MOST_OPEN else ""
            on = kept + sequence if part[1:end].strip("0") else ""
        else:
            plain += f"\x1b{part}"
    parts += [without_controls(plain), RESET if on else ""]
    return "".join(parts).replace("\n", " "), on


def left_out(count: int, label: str, run: str) -> bytes:
    """Return the line that stands for bytes that are not shown."""
    from shlex import quote  # ids of instances have brackets

    return f"… {count} bytes left out; planrun logs {run} {quote(label)} shows all …\n".encode()


def _never() -> bool:
    return False


def _from_file(path: str, start: int, size: int) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:  # it does not exist yet, or its step printed nothing
        return b""
    try:
        return os.pread(fd, size, start)
    except OSError:  # a folder or a named pipe in its place
        return b""
    finally:
        os.close(fd)


class Attempt:
    """One attempt whose log is followed."""

    __slots__ = ("at", "beside", "colour", "label", "lines", "log", "step", "title")

    def __init__(self, source: Source, lines: Lines) -> None:
        self.step, self.label, self.title, self.log, number = source
        self.lines = lines
        self.at = 0  # bytes read
        self.beside = False  # its lines have ids in front, since it ran beside others
        self.colour = COLOURS[number % len(COLOURS)]


class Output:
    """Follows the logs of all running attempts and gives their lines to `say`, under headings or with ids in front.

    `read` reads the log of a running attempt. `flush` writes what `say` got. `run`: the id of the run, for
    what shows the whole output. `masks` mask it. When the run `is_interrupted`, the rest of a long log is left out.
    """

    def __init__(
        self,
        say: Callable[[Piece], None],
        flush: Callable[[], None],
        *,
        look: Look,
        run: str = "",
    ) -> None:
        self.masks: Masks | None = None
        self.read: Read | None = None
        self.is_interrupted: Callable[[], bool] = _never
        self._run = run
        self._say = say
        self._flush = flush
        self._look = look
        self._live: dict[str, Attempt] = {}
        self._source: Attempt | None = None  # whose lines were the last, without ids
        self._pending = 0  # bytes since the last flush
        self._width = 0
        # glibc keeps twice as much free memory as the largest block that it has mapped and unmapped. Else it returns
        # the memory of each flush to the kernel, and the page faults of the next cost more than all else.
        bytes(_KEPT)

    def start(self, source: Source) -> None:
        """Follow the log of an attempt."""
        attempt = Attempt(
            source, Lines(colour=self._look.output_colour, inert=self._look.inert, masks=self.masks)
        )
        self._live[attempt.step] = attempt
        self._width = max(self._width, min(len(attempt.label), WIDEST))

    @property
    def live(self) -> bool:
        """Whether any attempt runs."""
        return bool(self._live)

    def look(self) -> float:
        """Read what is new; return the seconds until the next look."""
        self._pending = 0
        grown = more = False
        for attempt in list(self._live.values()):
            for _ in range(AT_ONCE):
                data = self._next(attempt)
                if not data:
                    break
                grown = True
                self._show(attempt, attempt.lines.feed(data))
            else:
                more = True
        if more:
            return 0.0
        return PERIOD if grown else QUIET_PERIOD

    def _next(self, attempt: Attempt, size: int = CHUNK) -> bytes:
        """Return the next bytes of a log, from its file when its process has ended."""
        data = self.read(attempt.step, attempt.at, size) if self.read else None
        if data is None:
            data = _from_file(attempt.log, attempt.at, size)
        attempt.at += len(data)
        return data

    def size(self, attempt: Attempt) -> int:
        """Return how many bytes the log of an attempt that ended has."""
        try:
            return os.stat(attempt.log, follow_symlinks=False).st_size
        except OSError:  # it printed nothing
            return 0

    def close(self, step: str, _title: str) -> bool:
        """Show the rest of an attempt that ended; True when the title was shown."""
        attempt = self._live.get(step)
        if attempt is None:
            return False
        end = self.size(attempt)  # a process that planrun could not end may write for ever
        while attempt.at < end and (data := self._next(attempt)):
            self._show(attempt, attempt.lines.feed(data))
            if attempt.at < end and self.is_interrupted():
                self._skip(attempt)
        self._show(attempt, attempt.lines.finish())
        del self._live[step]
        if self._source is attempt:
            self._source = None
        return False

    def _skip(self, attempt: Attempt) -> None:
        """Go to the last part of a log: a user who interrupts a run does not wait for a slow terminal."""
        rest = self.size(attempt) - attempt.at
        if rest > SHOWN_AT_ONCE:
            self._show(attempt, attempt.lines.finish())
            attempt.at += rest - LAST
            data = self._next(attempt)
            start = data.find(b"\n") + 1
            self._show(attempt, left_out(rest - LAST + start, attempt.label, self._run))
            self._show(attempt, attempt.lines.feed(data[start:]))

    def pause(self) -> None:
        """Prepare for a line of planrun."""

    def unfinished(self, step: str) -> str:
        """Return the line of a step that has no end yet."""
        attempt = self._live.get(step)
        return attempt.lines.unfinished() if attempt else ""

    def colour(self, step: str) -> str:
        """Return the colour of a step's id, as parameters of a control sequence."""
        attempt = self._live.get(step)
        return attempt.colour if attempt else ""

    def _show(self, attempt: Attempt, block: bytes) -> None:
        if not block:
            return
        if attempt.beside or len(self._live) > 1:
            attempt.beside, self._source = True, None
            prefix = self._prefix(attempt)
            block = prefix + block[:-1].replace(b"\n", b"\n" + prefix) + b"\n"
        elif self._source is not attempt:
            self._source = attempt
            self._put(attempt.title)
        self._put(block)

    def _put(self, piece: Piece) -> None:
        self._say(piece)
        self._pending += len(piece)
        if self._pending > MOST_PENDING:
            self._flush()
            self._pending = 0

    def _prefix(self, attempt: Attempt) -> bytes:
        padding = " " * (self._width - len(attempt.label))
        if self._look.output_colour:
            text = f"\x1b[{attempt.colour}m{attempt.label}{padding} | {RESET}"
        else:
            text = f"{attempt.label}{padding} | "
        return text.encode("utf-8", "replace")
