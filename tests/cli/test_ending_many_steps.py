"""Many steps that end at the same moment are searched for together, so that searching leaves time for cleanup."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.conftest import LIMIT

if TYPE_CHECKING:
    from pathlib import Path

STEPS = 20
# The command line, with every listing of all processes counted.
COUNTING = """\
import sys
listings = []
sys.addaudithook(lambda event, args: event == "os.listdir" and args[0] == "/proc" and listings.append(1))
from planrun.cli import main
code = main(sys.argv[1:])
print("listings", len(listings), file=sys.stderr)
sys.exit(code)
"""


def plan(*, timeout: str, fails: bool) -> str:
    """Return a plan of steps with a child each, with or without one whose failure ends the others."""
    lines = ["version: 1", f"limits: {{max_parallel: {STEPS + 1}}}", "steps:"]
    lines += [f'  - {{id: s{n}, {timeout}run: "touch up{n}; sleep 300 & sleep 301"}}' for n in range(STEPS)]
    if fails:
        wait = "while test ! -e go; do sleep 0.05; done; exit 1"
        lines.append(f'  - {{id: bad, on_failure: abort, run: "{wait}"}}')
    return "\n".join([*lines, "finally:", "  - {id: fin, run: touch fin}", ""])


@pytest.mark.skipif(sys.platform != "linux", reason="processes are searched for in /proc")
@pytest.mark.parametrize("how", ["signal", "second signal", "abort", "timeout"])
def test_steps_that_end_together_are_searched_for_together(tmp_path: Path, how: str) -> None:
    """Fewer listings of all processes than steps, where each step used to cost two or more; and `finally` runs."""
    timeout = "timeout: 4s, " if how == "timeout" else ""
    (tmp_path / "plan.yml").write_text(plan(timeout=timeout, fails=how == "abort"), encoding="utf-8")
    words = [sys.executable, "-c", COUNTING, "execute", "plan.yml", "--jobs", str(STEPS + 1)]
    with subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, encoding="utf-8") as process:
        limit = time.monotonic() + LIMIT
        while how != "timeout" and len(list(tmp_path.glob("up*"))) < STEPS:
            assert time.monotonic() < limit
            time.sleep(0.02)
        if how == "abort":
            (tmp_path / "go").touch()
        elif how != "timeout":
            process.send_signal(signal.SIGTERM)
        if how == "second signal":
            process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=LIMIT)
    assert process.returncode == (143 if "signal" in how else 1)
    assert (tmp_path / "fin").exists() or how == "second signal"
    # Each timeout counts from its step's own start: where starts were slow, they are due one after the other.
    assert int(said.rpartition("listings ")[2]) < (2 * STEPS if how == "timeout" else STEPS)
