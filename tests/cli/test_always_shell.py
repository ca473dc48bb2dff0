"""Which scripts start without bash, how that is recorded and explained, and how it is turned off."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Said

pytestmark = pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")

PLAN = """\
version: 1
params: {what: {type: string, default: a b}, where: {type: string, default: sub/x}}
steps:
  - {id: plain, run: env}
  - {id: value, run: "cat ${{ params.what | sh }} ${{ params.where }}", on_failure: continue}
  - {id: list, run: "true; false || true"}
  - {id: own, shell: bash, run: "true"}
  - {id: words, exec: [bash, -euo, pipefail, -c, "true"]}
  - {id: proven, run: ":", verify: ls}
  - {id: script, run: ./check.sh a}
  - {id: long, run: "echo LONG"}
  - {id: again, depends_on: [plain, list, own, words, proven, script, long], run: test -e go}
"""


def started(folder: Path) -> dict[str, str]:
    """Return the program that each step of the last run started without bash; "" with it."""
    ledger = max(folder.glob(".planrun/runs/*/ledger.jsonl"), key=lambda path: path.stat().st_mtime_ns)
    events = [json.loads(line) for line in ledger.read_text("utf-8").splitlines()]
    return {each["step"]: each.get("program", "") for each in events if each["type"] == "attempt_ended"}


def test_the_ledger_says_what_started_without_bash(
    say: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plain commands of the default shell alone; a resumed run keeps --always-shell."""
    monkeypatch.setenv("SHLVL", "1")  # at the top, after ssh, bash may read start-up files
    (tmp_path / "plan.yml").write_text(PLAN.replace("LONG", "x" * 30_000), "utf-8")
    (tmp_path / "check.sh").write_text('#!/bin/sh\necho "$1"\n', "utf-8")
    (tmp_path / "check.sh").chmod(0o755)
    assert say("execute", "plan.yml", "--quiet").code == 1
    found = started(tmp_path)
    assert found["plain"] == shutil.which("env")
    assert found["value"] == shutil.which("cat")
    assert Path(found["script"]).name.endswith("check.sh")
    by_bash = {"list", "own", "words", "proven", "long", "again"}
    assert {name for name, program in found.items() if not program} == by_bash
    assert f"started without bash: {shutil.which('env')}\n" in say("explain", "last", "plain").out
    assert "started without bash" not in say("explain", "last", "list").out

    assert say("execute", "plan.yml", "--quiet", "--always-shell").code == 1
    assert set(started(tmp_path).values()) == {""}
    (tmp_path / "plan.yml").write_text("", "utf-8")
    assert say("retry", "last", "plain", "--quiet").code == 1
    assert started(tmp_path)["plain"] == ""


def test_a_default_shell_of_the_plan_is_respected(say: Callable[..., Said], tmp_path: Path) -> None:
    """`defaults: {shell: …}` counts like `shell` of a step."""
    (tmp_path / "plan.yml").write_text(
        "version: 1\ndefaults: {shell: bash}\nsteps:\n  - {id: a, run: env}\n", encoding="utf-8"
    )
    assert say("execute", "plan.yml", "--quiet").code == 0
    assert started(tmp_path) == {"a": ""}
