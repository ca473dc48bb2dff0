"""docs/errors.md is the catalogue of problem codes, with an example for each that a few lines can show."""

from __future__ import annotations

import re

import pytest

from planrun.plan.load import check_bytes
from planrun.plan.printing import render_text
from planrun.plan.problems import CODES
from tests.docs.pages import Block, blocks, text_of

PAGE = "errors.md"
# What takes a file of its own: bytes that are no text, sizes, things that are no file.
NOT_IN_A_BLOCK = {
    "E001", "E002", "E003", "E004", "E005", "E011", "E012", "E017", "E020", "E021", "E199", "E207",
    "E235", "E241", "E298", "E299", "W304",
}  # fmt: skip
MARK = re.compile(r"<!-- (wrong|instead): ([EW]\d{3}) -->\n\Z")


def examples(kind: str = "wrong") -> list[tuple[str, Block]]:
    """Return each block of a wrong plan, or of the plan to write instead, with the code that it is about."""
    text = text_of(PAGE)
    found = []
    for block in blocks("yaml"):
        if block.page.endswith(PAGE):
            before = "".join(text.splitlines(keepends=True)[: block.line - 1])
            match = MARK.search(before)
            assert match, block.name
            if match[1] == kind:
                found.append((match[2], block))
    return found


def test_every_code_is_in_the_catalogue() -> None:
    """Each code that planrun knows has its section, in order, and each section is about a code."""
    assert re.findall(r"^### ([EW]\d{3})$", text_of(PAGE), re.MULTILINE) == sorted(CODES)


def test_every_code_has_its_example() -> None:
    """Each code that a short plan can show is shown by one, under its own heading."""
    assert {code for code, _block in examples()} == set(CODES) - NOT_IN_A_BLOCK
    sections = re.split(r"^### ", text_of(PAGE), flags=re.MULTILINE)[1:]
    for section in sections:
        assert set(re.findall(r"<!-- (?:wrong|instead): (\w+) -->", section)) <= {section[:4]}
        # What is wrong comes first, then what to write instead.
        kinds = re.findall(r"<!-- (wrong|instead): \w+ -->", section)
        assert kinds in ([], ["wrong", "instead"]), section[:4]


@pytest.mark.parametrize(
    ("code", "block"), examples(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_an_example_shows_its_code(code: str, block: Block) -> None:
    """The plan under a code has that problem, and no other."""
    data = block.text.encode()
    found = check_bytes(data, "plan.yml").problems
    assert {each.code for each in found} == {code}, render_text(found, {"plan.yml": data})


@pytest.mark.parametrize(
    ("code", "block"), examples("instead"), ids=lambda value: value if isinstance(value, str) else ""
)
def test_what_to_write_instead_is_valid(code: str, block: Block) -> None:
    """The second plan under a code has no problem at all, not even a warning."""
    data = block.text.encode()
    found = check_bytes(data, "plan.yml").problems
    assert found == (), f"{code}: {render_text(found, {'plan.yml': data})}"


def test_the_page_shows_a_finding_as_it_is_printed() -> None:
    """The finding at the head of the page is what `validate` prints for such a file."""
    data = b"version: 1\nsteps:\n  - id: test\n    run: x\n    retires: 2\n"
    text = render_text(check_bytes(data, "release.yml").problems, {"release.yml": data})
    assert text.rstrip("\n") in text_of(PAGE)
