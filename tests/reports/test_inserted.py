"""Text above a question on a terminal, as a terminal shows it."""

from __future__ import annotations

import io

import pyte
from hypothesis import given
from hypothesis import strategies as st

from planrun.reports.inserted import Place, inserted, without_area
from planrun.reports.screen import Screen

COLUMNS, ROWS = 30, 12
WORDS = st.text(alphabet="abc é", max_size=70)
TURN = st.tuples(
    st.lists(WORDS, max_size=8),
    st.lists(st.text(alphabet="xyz", max_size=20), max_size=3),
    st.sampled_from("ny"),
)


class Terminal(Screen):
    """A screen on a terminal of a known size."""

    size = (COLUMNS, ROWS)


def shown(data: str) -> list[str]:
    """Return what a terminal shows, history included, without empty lines at the end."""
    terminal = pyte.HistoryScreen(COLUMNS, ROWS, history=1000)
    terminal.set_mode(pyte.modes.LNM)
    pyte.Stream(terminal).feed(data)
    history = ["".join(row[x].data for x in range(COLUMNS)).rstrip() for row in terminal.history.top]
    rows = history + [row.rstrip() for row in terminal.display]
    while rows and not rows[-1]:
        rows.pop()
    return rows


@given(st.lists(TURN, max_size=8))
def test_what_is_typed_stays_while_text_and_area_change(
    turns: list[tuple[list[str], list[str], str]],
) -> None:
    """After each turn the terminal shows the text so far, the area, the question and all that was typed."""
    out = io.StringIO()
    screen = Terminal(out)
    screen.show(["begin\n"])
    screen.ask_lines = ["sure?", "[y/n] "]
    screen.show([])
    text, typed = "begin\n", ""
    for lines, area, letter in turns:
        out.write(letter)  # the terminal's echo
        typed += letter
        piece = "".join(f"{line}\n" for line in lines)
        screen.show([piece] if piece else [], area)
        text += piece
        expected = text + "".join(f"{row}\n" for row in area) + "sure?\n[y/n] " + typed
        assert shown(out.getvalue())[-ROWS + 1 :] == shown(expected)[-ROWS + 1 :]


def test_a_line_that_is_longer_than_the_terminal_is_not_inserted() -> None:
    """Then the question is drawn anew below it."""
    place = Place(area=0, question=1, columns=10, rows=5)
    assert inserted(b"x" * 100 + b"\n", [], place) is None


def test_the_area_goes_when_the_line_of_the_question_ends() -> None:
    """What follows stands below the answer."""
    out = io.StringIO()
    screen = Terminal(out)
    screen.show(["begin\n"])
    screen.ask_lines = ["[y/n] "]
    screen.show([], ["one", "two"])
    out.write("y\n")
    screen.entered("y")
    screen.ask_lines = []
    screen.show(["end\n"])
    assert shown(out.getvalue()) == ["begin", "[y/n] y", "end"]


def test_an_answer_that_the_terminal_has_wrapped_removes_no_line() -> None:
    """Where the rows are not known for certain, the area stays as text."""
    assert without_area(["area", "[y/n] "], 1, "x" * 40, COLUMNS) == b""


def test_tabs_become_blanks() -> None:
    """A tab does not wrap at the end of a line, so that its rows could not be counted."""
    place = Place(area=0, question=1, columns=30, rows=12)
    assert b"a       b" in (inserted(b"a\tb\n", [], place) or b"")
    assert b"\x1b[31ma    b" in (inserted(b"\x1b[31ma\tb\x1b[0m\n", [], place) or b"")
