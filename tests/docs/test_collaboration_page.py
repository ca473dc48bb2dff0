"""docs/collaboration.md has the rules, categories and numbers of the code."""

from __future__ import annotations

import re

from planrun.agents import delegation, learned, memory, metrics, predictor, snapshot
from planrun.agents.memorytool import OPERATIONS
from planrun.agents.messages import TYPES
from planrun.agents.patterns import CATEGORIES, PATTERNS
from planrun.agents.reflection import READING
from planrun.model.collaboration import ENTRY_TYPES, Collaboration
from tests.docs.pages import keys_of, text_of

PAGE = text_of("collaboration.md")


def section(title: str) -> str:
    """Return the text under a heading."""
    return PAGE.split(f"## {title}\n")[1].split("\n## ")[0]


def test_the_table_of_rules_is_that_of_the_code() -> None:
    """Id, source, target and context of each rule, in its order, and the numbers of turns."""
    table = PAGE.split("<!-- rules -->\n")[1].split("\n\n")[0]
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines()[2:]]
    sources = {delegation.ANY: "any", delegation.SPECIALISED: "any but `general`"}
    assert [(keys_of(row[0])[0], row[1], keys_of(row[3])[0], keys_of(row[4])[0]) for row in rows] == [
        (rule.id, sources.get(rule.source, f"`{rule.source}`"), rule.target, rule.context)
        for rule in delegation.RULES
    ]
    for row, rule in zip(rows, delegation.RULES, strict=True):
        assert [int(number) for number in re.findall(r"\d+", row[2])] == ([rule.turns] if rule.turns else [])
        assert set(rule.tools) | ({rule.category} - {""}) == set(keys_of(row[2]))


def test_words_are_those_of_the_code() -> None:
    """Categories, types of entries and messages, operations, fields, and tools that may be called again."""
    assert tuple(keys_of(PAGE.split("<!-- categories -->\n")[1].split("\n\n")[0])) == CATEGORIES
    assert re.findall(r"^\| `(\w+)` \|", section("Shared memory"), re.MULTILINE)[:5] == list(ENTRY_TYPES)
    assert set(OPERATIONS) <= set(keys_of(section("Shared memory")))
    assert set(TYPES) <= set(keys_of(section("Messages")))
    assert tuple(keys_of(section("Snapshots"))) == snapshot.FIELDS
    assert set(READING) <= set(keys_of(section("Learning from errors")))


def test_numbers_are_those_of_the_code() -> None:
    """Each limit in a sentence is the constant that is held."""
    settings = Collaboration()
    for sentence in (
        f"score = ((base x {delegation.BASE_SHARE} + history x {delegation.HISTORY_SHARE}) x weight",
        f" + trend x {delegation.TREND_SHARE}) x (1 - load)",
        f"from {metrics.LEAST_WEIGHT} to {metrics.MOST_WEIGHT}, first {metrics.FIRST_WEIGHT}",
        f"`alpha` ({settings.delegation.alpha})",
        f"the last {metrics.RECENT} results",
        f"0 with fewer than {metrics.TREND_SAMPLES}",
        f"agents at work / {delegation.BUSY}",
        f"the agent is at depth {settings.delegation.max_depth} (`max_depth`)",
        f"{settings.delegation.max_parallel_agents} agents (`max_parallel_agents`) are at work",
        f"failed in the last {settings.delegation.suppress_for / 60:.0f} minutes (`suppress_for`)",
        f"x {settings.delegation.depth_penalty} turns less (`depth_penalty`), and at least {delegation.LEAST_TURNS}",
        f"With {settings.memory.max_entries} entries (`max_entries`)",
        f"at most {settings.memory.max_bytes >> 10} KiB as JSON",
        f"beyond {memory.BUFFER} changes",
        f"within {settings.messenger.timeout / 60:.0f} minutes (`messenger.timeout`)",
        f"at most {snapshot.MOST} texts of at most {snapshot.LONGEST} characters",
        f"a table of {len(PATTERNS)} patterns",
        f"first {learned.FIRST_WEIGHT}, and moves by {learned.ALPHA} of the distance",
        f"{metrics.MAX_PATHS} paths; the least recently used gives way",
        f"{learned.MAX_ERRORS}; the lowest weight gives way",
        f"A weight under {learned.LOW_WEIGHT} is removed after {learned.PRUNE_AFTER / 86400:.0f} days",
    ):
        assert sentence in " ".join(PAGE.split()), sentence
    assert delegation.MAX_SAME == 2
    assert (predictor.MOST, learned.TOP) == (3, 3)
    assert settings.memory.store == "off"
    assert not settings.reflection.llm
    assert not settings.reflection.autofix
