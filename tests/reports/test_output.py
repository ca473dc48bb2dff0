"""How the bytes of a log become lines on a screen, however they are cut."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

import pytest

from planrun.model.commands import broken
from planrun.reports.ci import Look
from planrun.reports.cleaning import CleanLines
from planrun.reports.escape import without_controls
from planrun.reports.output import AT_ONCE, CHUNK, LONGEST, Lines, Output, coloured
from planrun.secrets.masker import Masker
from planrun.secrets.redactor import EventRedactor

if TYPE_CHECKING:
    from pathlib import Path

    from planrun.reports.screen import Piece

TEXTS = {
    "plain": (b"one\ntwo\nthree", "one\ntwo\nthree\n"),
    "empty lines": (b"\n\na\n\n", "\n\na\n\n"),
    "line ends of Windows": (b"one\r\ntwo\r\n", "one\ntwo\n"),
    "a progress bar": (b"start\n 1%\r 50%\r100%\nend\n", "start\n100%\nend\n"),
    "a progress bar without an end": (b"10%\r20%\r", "20%\n"),
    "a bar that is erased": (b"99%\r\x1b[Kdone\n", "done\n"),
    "a bar that erases itself": (b"99%\r\x1b[K\nnext\n", "99%\nnext\n"),
    "a cursor to the first column": (b"1 of 2\x1b[1G2 of 2\n", "2 of 2\n"),
    "a spinner": (b"wait -\b\\\b|\b/ ok\n", "wait / ok\n"),
    "colours": (b"\x1b[31mred\x1b[0m and \x1b[1;32mgreen\n", "red and green\n"),
    "sequences": (b"a\x1b[2Jb\x1b]0;title\x07c\x1b[10;5Hd\x1bMe\n", "abcde\n"),
    "a title without an end": (b"a\x1b]0;title\nb\n", "a\nb\n"),
    "characters of several bytes": ("Grüße, 漢字, 👍🏽\n".encode(), "Grüße, 漢字, 👍🏽\n"),
    "no UTF-8": (b"caf\xe9\nok\n", "caf\ufffd\nok\n"),
    "eight-bit sequences": ("a\x9b2Jb\n".encode(), "ab\n"),
    "line separators": ("a\u2028b\u202ec\n".encode(), "a\ufffdb\ufffdc\n"),
    "a reviewed copy of a script": (b"./.planrun-0123456789abcdef-t.sh: 3: no\n", "./t.sh: 3: no\n"),
    "control characters": (b"a\0b\x07c\td\n", "a\ufffdb\ufffdc\td\n"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_lines_are_the_same_however_they_are_cut(name: str) -> None:
    """Byte by byte, at once, and in pieces of any size."""
    data, expected = TEXTS[name]
    cuts = random.Random(name)
    ways = [[data], [data[at : at + 1] for at in range(len(data))]]
    for _ in range(30):
        places = sorted(cuts.choices(range(len(data) + 1), k=3))
        ways.append([data[start:end] for start, end in zip([0, *places], [*places, len(data)], strict=True)])
    for pieces in ways:
        lines = Lines(inert=False)
        shown = b"".join([lines.feed(piece) for piece in pieces]) + lines.finish()
        assert shown.decode() == expected, pieces


@pytest.mark.parametrize("name", TEXTS)
def test_logs_are_shown_as_the_run_showed_them(name: str) -> None:
    """`planrun logs` cleans lines as the console does."""
    data, expected = TEXTS[name]
    lines = CleanLines(colours=False)
    assert "".join([f"{row}\n" for row in [*lines.feed(data), *lines.finish()]]) == expected


def test_colours_that_a_line_leaves_on_begin_the_next_one() -> None:
    """Each line is whole by itself, so that a prefix before it has no colour of a step."""
    assert coloured("\x1b[31mred") == ("\x1b[31mred\x1b[0m", "\x1b[31m")
    assert coloured("and bold\x1b[1m!\x1b[2J", "\x1b[31m") == (
        "\x1b[31mand bold\x1b[1m!\x1b[0m",
        "\x1b[31m\x1b[1m",
    )
    assert coloured("off\x1b[m", "\x1b[31m") == ("\x1b[31moff\x1b[m", "")


@pytest.mark.parametrize("between", ["\x1b[1m", "x\b", "\x1b]0;t\x07", "\x1b[K"])
@pytest.mark.parametrize("colour", [True, False])
def test_secrets_with_controls_in_between_are_masked(between: str, *, colour: bool) -> None:
    """A tool that marks a part of a token: the log has it in two parts, the screen would show it as a whole."""
    lines = Lines(colour=colour, masks=EventRedactor(Masker({"TOKEN": "Zq81kdPwq0Lm33"})))
    data = f"\x1b[31mto Zq81kd{between}Pwq0Lm33 now\n".encode()
    assert lines.feed(data) == b"to *** now\n"


def test_many_backspaces_take_little_time() -> None:
    """The time grows with the length of a line, not with its square."""
    lines = Lines()
    began = time.process_time()
    for _ in range(16):
        assert lines.feed(b"ab" * (CHUNK // 4) + b"\b" * (CHUNK // 2 - 2) + b"\n") == b"ab\n"
    assert time.process_time() - began < 1.5


def test_colours_end_with_their_line() -> None:
    """Where the screen has colours they stay, and nothing else does; a line that changes them ends without any."""
    lines = Lines(colour=True, inert=False)
    assert lines.feed(b"\x1b[31mred\n\x1b[1mbold\x1b[0m plain\n\x1b[2Jx\x1b[38;5;9my\n").decode() == (
        "\x1b[31mred\x1b[0m\n\x1b[1mbold\x1b[0m plain\nx\x1b[38;5;9my\x1b[0m\n"
    )


def test_no_escape_without_colours() -> None:
    """Random bytes never leave an ESC, a carriage return or an 8-bit control character on a screen without colours."""
    source = random.Random(14)
    for _ in range(300):
        data = bytes(source.choices(b"ab\n\r\x1b[]m;0123\x07\x9b\xc2\\PX^_\b\0 H", k=200))
        lines = Lines(inert=bool(source.getrandbits(1)))
        shown = (lines.feed(data[:70]) + lines.feed(data[70:]) + lines.finish()).decode()
        assert not set(shown) & set("\x1b\r\b\0\x07\x9b"), data


def test_a_long_line_gets_line_ends_and_loses_nothing() -> None:
    """What has no end is held up to a bound, and is never cut inside of a character."""
    data = "ä漢x".encode() * 20_000
    lines = Lines(inert=False)
    shown = b""
    for at in range(0, len(data), 1000):
        shown += lines.feed(data[at : at + 1000])
        assert len(lines.unfinished().encode()) <= LONGEST
    shown += lines.finish()
    assert shown.replace(b"\n", b"") == data
    assert all(row.decode() for row in shown.splitlines())
    assert 8 <= shown.count(b"\n") <= 9


def test_no_line_is_a_command_to_a_ci_system() -> None:
    """Also one that is cut, hidden behind a carriage return, or put together by colours."""
    data = (
        b"::set-output name=a::b\n  ::error::x\nprogress\r::error::y\n\x1b[31m::add-mask::z\n"
        b"##[error]x\n#\x1b[0m#[error]y\n##vso[task.complete]\n##teamcity[x]\nstd::vector a ::b\n"
    )
    for size in (1, 7, len(data)):
        lines = Lines(colour=True)
        pieces = [lines.feed(data[at : at + size]) for at in range(0, len(data), size)]
        rows = (b"".join(pieces) + lines.finish()).decode().splitlines()
        assert not [row for row in rows if row.lstrip().startswith("::")]
        assert not [row for row in rows if "##[" in row or "##vso[" in row or "##teamcity[" in row]
        assert rows[-1] == "std::vector a ::b"


def test_the_quick_look_misses_no_command() -> None:
    """Lines of all that may be in a command, and of what may hide one, are as if each had been looked at."""
    source = random.Random(7)
    parts = (
        "::",
        ":",
        " ",
        "\t",
        "a",
        "\n",
        "#",
        "##[",
        "[",
        "\xa0",
        "\u3000",
        "\u200b",
        "\xad",
        "\ufe0f",
        "\U000e0001",
    )
    found = 0
    for _ in range(20_000):
        text = "".join(source.choices(parts, k=6)) + "\n"
        shown = Lines().feed(text.encode()).decode()
        assert [broken(row) for row in shown.split("\n")] == shown.split("\n"), repr(text)
        found += broken(text) != text
    assert found > 1000


def test_no_character_hides_a_command_or_a_control_from_the_quick_look() -> None:
    """Each one of the planes that have white space, unseen or control characters, before and inside of a command."""
    hidden = replaced = 0
    for code in (*range(0x80, 0x3400), *range(0xF900, 0x10000), *range(0xE0000, 0xE1000)):
        character = chr(code)
        for text in (f"{character}::error::x", f"a\n:{character}:error::x", f"#{character}#[error]x"):
            shown = Lines().feed(f"{text}\n".encode()).decode()
            assert broken(shown) == shown, hex(code)
            hidden += shown != f"{text}\n"
        shown = Lines().feed(f"x{character}y\n".encode()).decode()
        assert shown == f"{without_controls(f'x{character}y')}\n", hex(code)
        replaced += shown != f"x{character}y\n"
    assert hidden > 3 * 0x1000
    assert replaced == 32 + 7 + 4 + 2


@pytest.mark.parametrize("inert", [True, False])
def test_text_of_any_language_is_not_touched(*, inert: bool) -> None:
    """Beside what is replaced, and with the line ends of Windows, which become line ends."""
    text = "Prüfung · 20 °C “ok” … ✓ 漢字。12:30: std::x 👍\n" * 3
    lines = Lines(inert=inert)
    assert lines.feed(text.encode()).decode() == text
    assert lines.feed(text.replace("\n", "\r\n").encode()).decode() == text
    assert lines.feed(b"x\x1b[1m\n" + text.encode()).decode() == f"x\n{text}"


class Screenful:
    """What an Output says, with logs in a folder, of which `running` have a reader."""

    def __init__(self, folder: Path, look: Look | None = None) -> None:
        self.folder = folder
        self.pieces: list[Piece] = []
        self.flushed = 0
        self.output = Output(self.pieces.append, self._flush, look=look or Look(output="stream"))
        self.output.read = self._read
        self.running: set[str] = set()

    def _flush(self) -> None:
        self.flushed += 1

    def _read(self, step: str, start: int, size: int) -> bytes | None:
        if step not in self.running:
            return None
        return (self.folder / step).read_bytes()[start : start + size]

    def start(self, step: str) -> None:
        (self.folder / step).write_bytes(b"")
        self.running.add(step)
        self.output.start((step, step, f"> {step}\n", str(self.folder / step), len(self.running)))

    def write(self, step: str, data: bytes) -> None:
        with (self.folder / step).open("ab") as file:
            file.write(data)

    def end(self, step: str) -> None:
        self.running.discard(step)
        self.output.close(step, "")

    def said(self) -> str:
        text = "".join([piece.decode() if isinstance(piece, bytes) else piece for piece in self.pieces])
        self.pieces.clear()
        return text


def test_one_step_is_plain_and_several_have_ids(tmp_path: Path) -> None:
    """A heading comes with the first line; ids are as wide as the widest; a step that had an id keeps it."""
    screen = Screenful(tmp_path)
    screen.start("a")
    assert screen.output.look() > 0
    assert screen.said() == ""
    screen.write("a", b"one\ntw")
    screen.output.look()
    assert screen.said() == "> a\none\n"
    assert screen.output.unfinished("a") == "tw"
    screen.start("build")
    screen.write("a", b"o\n")
    screen.write("build", b"x\ny\n")
    screen.output.look()
    assert screen.said() == "a     | two\nbuild | x\nbuild | y\n"
    screen.write("a", b"rest")
    screen.end("a")
    screen.write("build", b"z\n")
    screen.output.look()
    assert screen.said() == "a     | rest\nbuild | z\n"
    screen.end("build")
    screen.start("c")
    screen.write("c", b"last\n")
    screen.end("c")
    assert screen.said() == "> c\nlast\n"
    assert not screen.output.live


def test_ids_have_colours_of_their_own(tmp_path: Path) -> None:
    """Each id has the colour of the number of its step in the plan; the line of the step is not coloured."""
    screen = Screenful(tmp_path, Look(output="stream", output_colour=True))
    screen.start("a")
    screen.start("b")
    screen.write("a", b"x\n")
    screen.write("b", b"x\n")
    screen.output.look()
    first, second = screen.said().splitlines()
    assert first.partition("\x1b[0m")[2] == second.partition("\x1b[0m")[2] == "x"
    assert first[:5] != second[:5]


def test_much_output_is_read_in_pieces_and_complete(tmp_path: Path) -> None:
    """A look reads a bounded part and wants the next turn at once; what waits is written before it grows large."""
    screen = Screenful(tmp_path)
    screen.start("a")
    data = b"".join([b"line %d\n" % number for number in range(600_000)])
    screen.write("a", data)
    assert screen.output.look() == 0.0
    assert sum(map(len, screen.pieces)) <= (AT_ONCE + 1) * CHUNK
    screen.end("a")
    assert screen.flushed >= len(data) // 2**20 - 1
    assert screen.said() == "> a\n" + data.decode()


def test_a_log_that_never_ends_is_shown_as_far_as_it_was_at_the_end_of_its_step(tmp_path: Path) -> None:
    """A process that planrun could not end writes faster than the terminal takes: the loop goes on all the same."""
    log = tmp_path / "a.log"
    log.write_bytes(b"x\n" * CHUNK)
    said: list[Piece] = []

    def say(piece: Piece) -> None:
        assert len(said) < 20
        said.append(piece)
        with log.open("ab") as file:
            file.write(b"y\n" * CHUNK)

    output = Output(say, lambda: None, look=Look(output="stream"))
    output.start(("a", "a", "> a\n", str(log), 0))
    output.close("a", "")
    assert b"".join([piece for piece in said if isinstance(piece, bytes)]) == b"x\n" * CHUNK
