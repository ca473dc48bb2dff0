"""The head that a run prints is the one that `verify` takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planrun.records.ledger import Ledger
from planrun.records.reading import read_ledger

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Command


def test_the_printed_head_finds_a_ledger_that_was_written_anew(planrun: Command, tmp_path: Path) -> None:
    """A forged ledger with all hashes right, which nothing inside it can tell, is found with the head from the log."""
    (tmp_path / "plan.yml").write_text("version: 1\nsteps: [{run: 'true'}]\n")
    head = planrun("execute", "plan.yml", "--verbose").stderr.split("ledger head ")[1].split()[0]
    assert planrun("verify", "last", "--head", head).returncode == 0
    (ledger,) = tmp_path.glob(".planrun/runs/*/ledger.jsonl")
    *events, end = read_ledger(str(ledger)).events
    ledger.unlink()
    forged = Ledger(str(ledger))
    for event in (*events, end.but(duration=99.0)):
        forged.append(event)
    forged.close()
    assert planrun("verify", "last").returncode == 0
    said = planrun("verify", "last", "--head", head)
    assert (said.returncode, "altered" in said.stdout) == (13, True)
