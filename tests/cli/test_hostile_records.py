"""What a stranger wrote into a ledger reaches no terminal as it is: every verb that reads one is tried."""

from __future__ import annotations

import hashlib
import json
import random
import unicodedata
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import Command

PLAN = """\
version: 1
name: demo
goal: Ship it
steps:
  - {id: a, title: Build, run: echo out; echo err >&2}
  - {id: b, title: Test, depends_on: [a], run: echo wrong >&2; exit 3}
  - {id: c, title: Pack, depends_on: [b], run: exit 0}
"""
HOSTILE = (
    "\x1b]0;title\x07",
    "\x1b[2J",
    "\x9b31m",
    "\u202e",
    "\u2066",
    "\x00",
    "\x08",
    "\r",
    "\x7f",
    "\u2028",
    "\ue000",
)
FREE = {"message", "told", "by", "event"}
VERBS = (
    *("status last", "runs", "list", "logs last b", "stats", "explain last b", "verify last", "trace last"),
    *("report last --format text", "report last --format markdown", "show plan.yml"),
    *("watch last --lines", "replay last", "attest last", "show last b --patch"),
)


def spoilt(value: Any, chance: random.Random, key: str = "") -> Any:
    """Return a part of an event with hostile characters in its free texts."""
    if isinstance(value, dict):
        return {name: spoilt(each, chance, name) for name, each in value.items()}
    if isinstance(value, list):
        return [spoilt(each, chance, key) for each in value]
    if not isinstance(value, str) or key not in FREE:
        return value
    at = chance.randrange(len(value) + 1)
    return value[:at] + chance.choice(HOSTILE) + value[at:]


def chained(rows: list[dict[str, Any]]) -> str:
    """Return events as an intact ledger."""
    text, head = "", "0" * 64
    for row in rows:
        body = json.dumps(
            {name: each for name, each in row.items() if name != "hash"}, separators=(",", ":")
        )[:-1]
        head = hashlib.sha256((head + body).encode()).hexdigest()
        text += f'{body},"hash":"{head}"}}\n'
    return text


def steering(text: str) -> set[str]:
    """Return the characters of a text that steer a terminal or hide what stands there."""
    return {each for each in text if each != "\n" and unicodedata.category(each) in ("Cc", "Cf", "Zl", "Zp")}


@pytest.mark.parametrize("seed", range(2))
def test_no_free_text_of_a_ledger_steers_a_terminal(planrun: Command, seed: int) -> None:
    """Whether a verb shows the run or refuses it: no control character, no change of direction, no crash."""
    (planrun.folder / "plan.yml").write_text(PLAN, "utf-8")
    assert planrun("execute", "plan.yml", "-q").returncode == 1
    [ledger] = planrun.folder.glob(".planrun/runs/*/ledger.jsonl")
    rows = [json.loads(line) for line in ledger.read_text("utf-8").splitlines()]
    chance = random.Random(seed)
    ledger.write_text(chained([spoilt(row, chance) for row in rows]), "utf-8")
    shown = 0
    for verb in VERBS:
        done = planrun(*verb.split())
        assert not steering(done.stdout + done.stderr), verb
        assert "Traceback" not in done.stderr, verb
        assert done.returncode in (0, 1, 2, 3, 5, 13, 74), (verb, done.stderr)
        shown += done.returncode < 2
    assert shown > len(VERBS) // 2
