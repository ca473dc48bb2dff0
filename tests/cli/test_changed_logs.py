"""Logs that a step, or anyone, changed after their attempt ended are found by `planrun verify`."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Command

PLAN = """\
version: 1
steps:
  - {id: a, run: echo one}
  - {id: b, depends_on: [a], run: "CHANGE"}
"""


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("true", ""),
        ("rm .planrun/runs/*/logs/a/1.log", "logs/a/1.log cannot be read: No such file or directory"),
        ("echo more >> .planrun/runs/*/logs/a/1.log", "logs/a/1.log has "),
        (
            "printf 'ONE\\n' > $(ls .planrun/runs/*/logs/a/1.log)",
            "differs from the record of its attempt",
        ),
    ],
)
@pytest.mark.shows("GP-25")
def test_verify_notices_a_log_that_a_later_step_changed(
    planrun: Command, tmp_path: Path, change: str, expected: str
) -> None:
    """Exit code 13 and the log's name; the ledger has size and digest of what each attempt printed."""
    text = PLAN.replace('"CHANGE"', json.dumps(change))
    (tmp_path / "plan.yml").write_text(text, encoding="utf-8")
    assert planrun("execute", "plan.yml").returncode == 0
    ledger = json.loads((tmp_path / "planrun-out" / "ledger.json").read_text(encoding="utf-8"))
    (attempt,) = ledger["steps"][0]["attempts"]
    assert (attempt["log_bytes"], attempt["log_sha256"]) == (4, hashlib.sha256(b"one\n").hexdigest())
    said = planrun("verify")
    assert said.returncode == (13 if expected else 0)
    assert expected in said.stdout
