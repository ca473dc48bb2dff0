"""The page of a code as plain text for a terminal, with headings and code in colour where that is wanted."""

from __future__ import annotations

import re
import textwrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from planrun.codes.pages import Page

WIDEST = 100  # columns: longer lines are hard to read
_FENCED = re.compile(r"^```\w*\n(.*?)^```\n?", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")
_CODE = re.compile(r"`([^`]+)`")
_BLANK = "\x1f"  # stands for a blank inside of code, where no line is broken
_BOLD, _CYAN, _END = "\x1b[1m", "\x1b[36m", "\x1b[0m"


def render(page: Page, width: int, *, colour: bool) -> str:
    """Return a page as text with lines of at most `width` columns; code keeps its lines."""
    title = f"{page.code}: {page.title} ({page.severity})"
    parts = [_heading(title, colour=colour), *_markdown(page.text, width, colour=colour)]
    for heading, examples in (("Example", page.wrong), ("Instead", page.instead)):
        if examples:
            parts.append(_heading(f"{heading}:", colour=colour))
            parts += [_indented(text) for text in examples]
    if page.silence:
        parts += [_heading("Suppress:", colour=colour), *_markdown(page.silence, width, colour=colour)]
    return "\n\n".join(parts)


def _heading(text: str, *, colour: bool) -> str:
    return f"{_BOLD}{text}{_END}" if colour else text


def _indented(text: str) -> str:
    return textwrap.indent(text.rstrip("\n"), "    ")


def _markdown(text: str, width: int, *, colour: bool) -> Iterator[str]:
    """Yield the paragraphs, lists and blocks of code of a text."""
    at = 0
    for block in _FENCED.finditer(text):
        yield from _paragraphs(text[at : block.start()], width, colour=colour)
        yield _indented(block[1])
        at = block.end()
    yield from _paragraphs(text[at:], width, colour=colour)


def _paragraphs(text: str, width: int, *, colour: bool) -> Iterator[str]:
    for part in re.split(r"\n{2,}", text.strip("\n")):
        items = [item for item in re.split(r"^- ", part, flags=re.MULTILINE) if item.strip()]
        if part.startswith("- "):
            yield "\n".join([_filled(item, width, "- ", colour=colour) for item in items])
        elif part.strip():
            yield _filled(part, width, "", colour=colour)


def _filled(text: str, width: int, bullet: str, *, colour: bool) -> str:
    """Return one paragraph in lines of the width; no line is broken inside of code."""
    plain = _LINK.sub(lambda link: _linked(link[1], link[2]), " ".join(text.split()))
    held = _CODE.sub(lambda code: code[0].replace(" ", _BLANK), plain)
    lines = textwrap.fill(
        held,
        min(width, WIDEST),
        initial_indent=bullet,
        subsequent_indent=" " * len(bullet),
        break_long_words=False,
        break_on_hyphens=False,
    ).replace(_BLANK, " ")
    return _CODE.sub(f"{_CYAN}\\1{_END}", lines) if colour else lines


def _linked(text: str, target: str) -> str:
    """Return a link as text: another code needs only its name, another page the name of its file."""
    page, _, anchor = target.partition("#")
    if not page and text.lower() == anchor:
        return text
    if text == page:
        return f"docs/{page}"
    return f"{text} [docs/{target}]"
