"""The pages under docs/ as data: code blocks, tables and the marks that say what they are about.

A mark is an HTML comment, which no reader sees. `<!-- keys: Step -->` before a table names the part of the schema whose
keys its first column lists. A block of YAML is a plan, a list of steps or a part of a plan, whatever fits, and is
checked as such; `<!-- other: … -->` before it says that it is something else. A line ``File `plan.yml`:`` above a
block, and the language `console`, are visible marks (`file`, `session`): `tests.docs.playing` writes and runs these.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARK = re.compile(r"<!-- ([a-z]+)(?:: (.*?))? -->\n?\Z")
FILE = re.compile(r"^File `([^`\n]+)`:\n\n\Z", re.MULTILINE)
TABLE = re.compile(r"^<!-- keys: (.+?) -->\n((?:\|.*\n)+)", re.MULTILINE)
NOTHING = "\N{EN DASH}"
"""What stands in a cell of a table that has nothing to say."""
CODE = re.compile(r"`([^`]+)`")


class Block(NamedTuple):
    """A fenced block: its page, the line of its fence, its language, its text, the mark before it, and what about."""

    page: str
    line: int
    language: str
    text: str
    mark: str
    about: str = ""

    @property
    def name(self) -> str:
        """What a test is called by."""
        return f"{self.page}:{self.line}"


def pages() -> list[Path]:
    """Return README and every page under docs/, those in folders included."""
    return [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def text_of(name: str) -> str:
    """Return a page under docs/."""
    return (DOCS / name).read_text("utf-8")


def blocks(*languages: str) -> list[Block]:
    """Return the fenced blocks in these languages, page by page."""
    found = []
    for page in pages():
        text = page.read_text("utf-8")
        for match in FENCE.finditer(text):
            before = MARK.search(text[: match.start()])
            file = FILE.search(text[: match.start()])
            line = text.count("\n", 0, match.start()) + 1
            name = str(page.relative_to(ROOT))
            mark, about = (before[1], before[2] or "") if before else ("file", file[1]) if file else ("", "")
            if match[1] == "console":
                mark = "session"
            if match[1] in languages:
                found.append(Block(name, line, match[1], match[2], mark, about))
    return found


def tables(text: str) -> list[tuple[tuple[str, ...], list[list[str]]]]:
    """Return each table that has a mark: the names in the mark, and its rows without the head."""
    return [
        (tuple(mark.split()), [_cells(row) for row in rows.splitlines()[2:]])
        for mark, rows in TABLE.findall(text)
    ]


def _cells(row: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", row.strip().strip("|"))]


def keys_of(cell: str) -> list[str]:
    """Return what stands in code spans in a cell."""
    return CODE.findall(cell)


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.+)$", FENCE.sub("", text), re.MULTILINE):
        plain = re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower()).replace(" ", "-")
        found.add(plain)
    return found
