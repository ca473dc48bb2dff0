"""Record the picture of the README anew: `python -m tests.docs.record_picture`.

It runs a plan in a real terminal of 88 columns, in a folder with a small project whose test fails, and writes what the
terminal shows at the end to docs/images/run.svg.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shutil
import struct
import sys
import tempfile
import termios
from html import escape, unescape
from pathlib import Path
from typing import TYPE_CHECKING

import pyte

from tests.docs.pages import DOCS

if TYPE_CHECKING:
    from pyte.screens import Char

PICTURE = DOCS / "images" / "run.svg"
COLUMNS, ROWS = 88, 40
CELL, LINE, MARGIN = 8.4, 19, 14  # pixels: a character, a row, the border
DARK = "#161b22"
PLAIN = "#d5dbe1"
COLOURS = {
    "black": "#6e7681",
    "red": "#ff7b72",
    "green": "#56d364",
    "brown": "#e3b341",
    "yellow": "#e3b341",
    "blue": "#79c0ff",
    "magenta": "#d2a8ff",
    "cyan": "#56d4dd",
    "white": PLAIN,
}
FILES = {
    "slug.py": 'def slug(title):\n    return title.lower().replace(" ", "-")\n',
    "test_slug.py": "from slug import slug\n\n\ndef test_words():\n    assert slug('A plan') == 'a-plan'\n\n\n"
    "def test_marks():\n    assert slug('Ready?') == 'ready'\n",
    "plan.yml": "version: 1\nname: release\nsteps:\n"
    "  - {id: lint, run: python3 -m compileall -q .}\n"
    "  - {id: test, run: python3 -m pytest -q, timeout: 10m}\n"
    "  - {id: pack, depends_on: [lint], run: tar -cf slug.tar slug.py && echo packed}\n"
    "  - {id: publish, depends_on: [test, pack], run: ./publish.sh, risk: high}\n",
}


def record() -> list[list[Char]]:
    """Run the plan in a terminal and return the cells of the rows that are not empty."""
    folder = Path(tempfile.mkdtemp(prefix="slug-"))
    try:
        for name, text in FILES.items():
            (folder / name).write_text(text, "utf-8")
        screen = pyte.Screen(COLUMNS, ROWS)
        pyte.ByteStream(screen).feed(b"$ planrun run\r\n" + printed(folder))
    finally:
        shutil.rmtree(folder)
    rows = [[screen.buffer[row][column] for column in range(COLUMNS)] for row in range(ROWS)]
    while rows and not text_of(rows[-1]).strip():
        rows.pop()
    return rows


def printed(folder: Path) -> bytes:
    """Return all bytes that `planrun run` writes to a terminal in a folder."""
    child, terminal = pty.fork()
    if not child:
        os.chdir(folder)
        names = {"PATH", "HOME"}
        environ = {name: value for name, value in os.environ.items() if name in names}
        environ |= {
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "PLANRUN_JOBS": "2",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        environ["PATH"] = f"{Path(sys.executable).parent}:{environ['PATH']}"
        os.execve(sys.executable, [sys.executable, "-m", "planrun", "run"], environ)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    data = bytearray()
    try:
        while piece := os.read(terminal, 1 << 16):
            data += piece
    except OSError:  # Linux reports the end of a terminal as an error
        pass
    os.close(terminal)
    os.waitpid(child, 0)
    return bytes(data)


def text_of(row: list[Char]) -> str:
    """Return the text of a row of cells."""
    return "".join([cell.data for cell in row]).rstrip()


def drawn(rows: list[list[Char]]) -> str:
    """Return rows of cells as an SVG without scripts, links or fonts of its own."""
    width, height = round(COLUMNS * CELL + 2 * MARGIN), len(rows) * LINE + 2 * MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        f'<rect width="{width}" height="{height}" rx="8" fill="{DARK}"/>',
        f'<g font-family="ui-monospace,Menlo,Consolas,monospace" font-size="14" fill="{PLAIN}" xml:space="preserve">',
    ]
    for number, row in enumerate(rows):
        y = MARGIN + number * LINE + 14
        spans = "".join([_span(cell, column) for column, cell in enumerate(row[: len(text_of(row))])])
        if spans:
            lines.append(f'<text y="{y}">{_joined(spans)}</text>')
    return "\n".join([*lines, "</g>", "</svg>", ""])


def _span(cell: Char, column: int) -> str:
    """Return one cell; each has its own place, so that no font can shift the columns."""
    colour = COLOURS.get(cell.fg, PLAIN)
    weight = ' font-weight="bold"' if cell.bold else ""
    return f'<tspan x="{MARGIN + column * CELL:.1f}" fill="{colour}"{weight}>{escape(cell.data)}</tspan>'


def _joined(spans: str) -> str:
    """Join neighbours of one style into one span with a list of places."""
    pattern = re.compile(r'<tspan x="([^"]*)" fill="([^"]*)"( font-weight="bold")?>(.*?)</tspan>')
    joined: list[tuple[str, str, list[str], str]] = []
    for place, colour, weight, char in pattern.findall(spans):
        if joined and joined[-1][:2] == (colour, weight):
            joined[-1] = (colour, weight, [*joined[-1][2], place], joined[-1][3] + char)
        else:
            joined.append((colour, weight, [place], char))
    return "".join(
        [
            f'<tspan x="{" ".join(x)}" fill="{colour}"{weight}>{text}</tspan>'
            for colour, weight, x, text in joined
        ]
    )


def shown_in(picture: str) -> str:
    """Return the text of a picture, a line for each row that is not empty."""
    rows = re.findall(r"<text [^>]*>(.*?)</text>", picture)
    return "".join([f"{unescape(re.sub('<[^>]*>', '', row))}\n" for row in rows])


if __name__ == "__main__":
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(drawn(record()), "utf-8")
