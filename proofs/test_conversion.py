"""Files that somebody damaged: a plan that is valid, or a refusal, and never anything else."""

from __future__ import annotations

import copy
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from planrun.convert.convert import Order, convert
from planrun.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator

FILES = sorted((Path(__file__).parents[1] / "tests" / "convert" / "files").glob("*.yml"))
ROUNDS = 25
"""Damages of each file."""
ODD = (
    "null", "[]", "{}", "''", "-1", "${{ }}", "${{ a.b[", "${{ matrix.x }}", "${{ secrets.A }}",
    "{{.X | y}}", "{{", "${{ '' }}", "[a, [b]]", "{a: {b: c}}", "99999999999999999999", "1e999",
    "$${{ github.ref }}", "'\"\\'", "é\u2028", "!", "{{.A}}{{.A}}", "${a.b}", "`",
    "always() && failure() || x", "${{ fromJSON('[[1]]') }}", "${{ format('{9}', 1) }}", "*x", "a\\nb",
)  # fmt: skip


def damaged(rows: list[str], chance: random.Random) -> str:
    """Return lines of which one is gone, twice, moved, or has another word."""
    rows = list(rows)
    at = chance.randrange(len(rows))
    kind = chance.randrange(4)
    if kind == 0:
        del rows[at]
    elif kind == 1:
        rows.insert(at, rows[at])
    elif kind == 2:
        rows.insert(chance.randrange(len(rows)), rows.pop(at))
    else:
        words = rows[at].split(" ")
        words[chance.randrange(len(words))] = chance.choice(ODD)
        rows[at] = " ".join(words)
    return "\n".join(rows)


def twisted(tree: Any, chance: random.Random) -> str:
    """Return a file in which up to three values are others: odd ones, those of other places, or none."""
    tree = copy.deepcopy(tree)
    for _ in range(chance.randint(1, 3)):
        places = list(places_of(tree))
        if not places:
            break
        owner, key = chance.choice(places)
        kind = chance.randrange(4)
        if kind == 0:
            del owner[key]
        elif kind == 1:
            other, name = chance.choice(places)
            owner[key] = copy.deepcopy(other[name])
        elif kind == 2 and isinstance(owner, dict):
            name = chance.choice(list(owner))
            owner[name] = owner.pop(key)
        else:
            owner[key] = chance.choice([*ODD, [], {}, ["a", ["b"]], {"a": {"b": "c"}}])
    text: str = yaml.safe_dump(tree, sort_keys=False, allow_unicode=True)
    return text


def places_of(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every place of a tree that holds a value: its list or mapping, and its index or key."""
    for key, value in list(tree.items() if isinstance(tree, dict) else enumerate(tree)):
        yield tree, key
        if isinstance(value, dict | list):
            yield from places_of(value)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_damaged_file_is_converted_or_refused(file: Path, tmp_path: Path, seed: int) -> None:
    """Drawn damages of each file, with what they refuse given up: no other error, no plan that is not valid."""
    chance = random.Random(f"{seed} {file.stem}")
    text = file.read_text("utf-8")
    tree = yaml.load(text, yaml.BaseLoader)
    tried = tmp_path / "tried.yml"
    ends = {"plan": 0, "refused": 0, "unreadable": 0}
    for _ in range(ROUNDS):
        drawn = twisted(tree, chance) if chance.random() < 0.8 else damaged(text.splitlines(), chance)
        tried.write_text(drawn, encoding="utf-8")
        try:
            found = convert(Order(file=str(tried)))
            names = tuple({finding.code for finding in found.findings if finding.kind == "refused"})
            again = convert(Order(file=str(tried), accepted=names))
        except InvalidInput:
            ends["unreadable"] += 1
            continue
        ends["plan" if again.text else "refused"] += 1
        assert not found.is_refused or names
    assert ends["plan"] > ROUNDS // 10, ends
