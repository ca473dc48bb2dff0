"""Steps that change inputs of the replanning before they fail: prices, and the run's own plan."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from planrun.plan.load import load
from tests.app.replans import newest, planrun
from tests.fakes.messages import FakeMessages, draft, step

if TYPE_CHECKING:
    from pathlib import Path

PLAN = """\
version: 1
limits: {max_usd: 0.5}
llm: {model: house-model, plan_max_tokens: 1000}
policy: {auto_approve: high, llm_auto_approve: read-only}
steps:
  - {id: test, run: sh tamper.sh; exit 1, on_failure: replan}
  - {id: ship, depends_on: [test], run: echo shipped > shipped}
"""
PRICES = """\
version: 1
as_of: 2026-01-31
source: our contract
models:
  house-model: {input: 20, output: 40, cache_read: 2, cache_write: 25}
"""
REPAIRED = draft([step("again", "true", replaces=["test"])], keep=["ship"])


def execute(folder: Path, tamper: str, **more: str) -> tuple[Any, Any]:
    """Run PLAN with a step that does something first; returns how that ended, and `llm` of the report, if any."""
    (folder / "plan.yml").write_text(PLAN, encoding="utf-8")
    (folder / "prices.yml").write_text(PRICES, encoding="utf-8")
    (folder / "tamper.sh").write_text(tamper, encoding="utf-8")
    with FakeMessages([REPAIRED]) as api:
        done = planrun(folder, "execute", "plan.yml", "--llm-prices", "prices.yml", **{**api.env, **more})
    return done, json.loads((folder / "planrun-out" / "ledger.json").read_bytes())["llm"]


def test_a_step_cannot_make_models_cheap(tmp_path: Path) -> None:
    """Prices are those from before the first step; a resume uses others only when the user names them."""
    done, llm = execute(tmp_path, "sed -i 's/: [0-9]*,/: 0,/g; s/: 25}/: 0}/' prices.yml")
    assert done.returncode == 5, done.stderr
    (call,) = llm["calls"]
    assert call["usd"] > 0
    again = planrun(tmp_path, "resume", "last", ANTHROPIC_API_KEY="fake-key-0123456789abcdef")
    assert again.returncode == 2
    assert "the prices in prices.yml are not those that the run went by any more" in again.stderr
    named = planrun(
        tmp_path,
        "resume",
        "last",
        "--llm-prices",
        "prices.yml",
        ANTHROPIC_API_KEY="fake-key-0123456789abcdef",
    )
    assert named.returncode == 5, named.stderr


@pytest.mark.parametrize(
    ("tamper", "expected"),
    [
        ("sed -i 's/llm_auto_approve: read-only/llm_auto_approve: high/' plan.yml", "was altered"),
        ("sed -i 's/echo shipped/echo other/' plan.yml", "was altered"),
        ("rm plan.yml && mkfifo plan.yml", "it is a pipe"),
        ("rm plan.yml && mkdir plan.yml", "not a regular file"),
        ("cp plan.yml other && rm plan.yml && ln -s other plan.yml", "cannot be read"),
    ],
)
def test_a_changed_copy_of_the_plan_is_not_replanned(tmp_path: Path, tamper: str, expected: str) -> None:
    """No model is asked about a text other than the ledger's, and a pipe does not block the run."""
    done, llm = execute(tmp_path, f"cd .planrun/runs/* && {tamper}")
    assert done.returncode in (1, 74), done.stderr
    assert not (llm and llm["calls"])
    if done.returncode == 1:
        assert expected in done.stderr
    assert not (tmp_path / "shipped").exists()


def test_what_approves_another_version_is_not_proposed(tmp_path: Path) -> None:
    """An approval of the file is none of the version that a model wrote, so only the run itself can be approved."""
    done, _ = execute(tmp_path, "true")
    assert done.returncode == 5, done.stderr
    assert "approve 20" in done.stderr
    assert "planrun approve plan.yml" not in done.stderr
    assert newest(tmp_path)[1].plan.version == 2
    assert load(str(tmp_path / "plan.yml"), cache=False).version == 1
