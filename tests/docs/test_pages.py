"""Every block, link and command on the pages is real."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

import click
import pytest
import yaml

from planrun.cli.group import VERBS, planrun
from planrun.cli.verbs import resolved
from planrun.llm.prices import prices_in
from planrun.plan.load import check_bytes
from planrun.plan.printing import render_text
from tests.docs.pages import ROOT, Block, anchors, blocks, pages

if TYPE_CHECKING:
    from pathlib import Path

OUTPUT = re.compile(r"^````text\n.*?^````$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
SHELL = blocks("sh", "console", "")


def as_plan(text: str) -> str:
    """Return a whole plan that holds a block: a plan as it is, steps and parts of a plan with what is missing."""
    if re.search(r"^version: 1\b", text, re.MULTILINE):
        return text
    if text.lstrip().startswith("- "):
        return f"version: 1\nsteps:\n{text}"
    if re.search(r"^steps:", text, re.MULTILINE):
        return f"version: 1\n{text}"
    return f"version: 1\nsteps:\n  - run: 'true'\n{text}"


@pytest.mark.parametrize("block", blocks("yaml"), ids=lambda block: block.name)
def test_a_yaml_block_is_a_valid_plan(block: Block) -> None:
    """A block of YAML is a plan that `validate` accepts, or is marked as something else, and is YAML at least."""
    if block.mark == "file":
        return  # tests/docs/test_played_pages.py runs these
    if block.mark == "other":
        assert yaml.safe_load(block.text) is not None
        if "as_of:" in block.text:
            prices_in(block.text.encode(), "prices.yml")
        return
    text = as_plan(block.text)
    data = text.encode()
    problems = [each for each in check_bytes(data, "plan.yml").problems if each.severity == "error"]
    if block.mark == "wrong":
        return  # tests/docs/test_errors_page.py holds these
    assert problems == [], render_text(problems, {"plan.yml": data})


def commands(block: Block) -> list[list[str]]:
    """Return the words of each planrun command in a block of shell; of a session, those that somebody types."""
    found = []
    text = block.text
    if block.mark == "session":
        text = "\n".join(row for row in text.splitlines() if row.startswith("$ "))
    for row in text.replace("\\\n", " ").splitlines():
        for part in re.split(r"[;&|]+", row.removeprefix("$ ")):
            words = shlex.split(part, comments=True) if "planrun" in part and part.count("'") % 2 == 0 else []
            program = next((at for at, word in enumerate(words[:2]) if word.endswith("planrun")), None)
            if program is not None and words[program + 1 :]:
                found.append(words[program + 1 :])
    return found


@pytest.mark.parametrize("block", [block for block in SHELL if commands(block)], ids=lambda block: block.name)
def test_a_documented_command_exists(block: Block) -> None:
    """Each planrun command in a block has a verb and options that there are."""
    for line in commands(block):
        words = line[2:] if line[0] == "-C" else line
        verb, *rest = resolved(words)[0]
        if verb.startswith("-"):
            assert verb in ("--version", "--help", "-V", "-h"), words
            continue
        assert verb in VERBS, words
        context = click.Context(planrun)
        command = planrun.get_command(context, verb)
        if isinstance(command, click.Group):  # a verb with verbs of its own
            name, *rest = rest
            command = command.commands.get(name)
        assert command is not None, words
        known = {flag for option in command.params for flag in option.opts} | {"--help", "-h"}
        for word in rest:
            if word.startswith("-") and word != "-":
                assert word.partition("=")[0] in known, f"{verb} has no {word}"


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    """A link to a file of this repository names one that is there, and a heading that it has."""
    text = page.read_text("utf-8")
    for link in LINK.findall(OUTPUT.sub("", text)):
        if "://" in link or link.startswith("mailto:"):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{page.name}: {link}"
        assert target.is_relative_to(ROOT), f"{page.name}: {link}"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target.read_text("utf-8")), f"{page.name}: {link}"


def test_readme_is_short_and_leads_to_the_index() -> None:
    """README has at most 120 lines, and a link to the index, which names every page (`test_played_pages`)."""
    text = (ROOT / "README.md").read_text("utf-8")
    assert len(text.splitlines()) <= 120
    assert "(docs/README.md)" in text
