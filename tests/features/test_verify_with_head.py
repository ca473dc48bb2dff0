"""The head that a run prints is the one that `verify` takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Command


def test_the_printed_head_finds_a_change_in_the_last_line(planrun: Command, tmp_path: Path) -> None:
    """A changed last line, which no hash inside the ledger can tell, is found with the head from the log."""
    (tmp_path / "plan.yml").write_text("version: 1\nsteps: [{run: 'true'}]\n")
    head = planrun("execute", "plan.yml").stderr.split("ledger head ")[1].split()[0]
    assert planrun("verify", "last", "--head", head).returncode == 0
    (ledger,) = tmp_path.glob(".planrun/runs/*/ledger.jsonl")
    ledger.write_bytes(ledger.read_bytes().replace(b'"exit_code":0,"duration"', b'"exit_code":1,"duration"'))
    assert planrun("verify", "last").returncode == 0
    said = planrun("verify", "last", "--head", head)
    assert (said.returncode, "altered" in said.stdout) == (1, True)
