"""Runs whose models use up what they may: the real command, the real process that calls, a real server on loopback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from planrun.plan.load import load
from tests.app.replans import Shop, newest, planrun
from tests.app.replans import draft as reply_of
from tests.app.replans import step as step_of
from tests.conftest import LIMIT
from tests.fakes.messages import FakeMessages, broken, draft, say, step

if TYPE_CHECKING:
    from pathlib import Path

    from planrun.app.session import Result
    from planrun.model.state import RunState

PLAN = """\
version: 1
name: shop
goal: The shop is packed.
llm: {model: claude-opus-5-5, plan_max_tokens: 1000}
limits: {LIMITS}
steps:
  - {id: 1, run: echo 1 >> ran}
  - {id: 2, depends_on: [1], run: echo 2 >> ran; echo Permission denied; exit 77}
  - {id: 3, depends_on: [2], run: echo 3 >> ran}
"""
GOOD = draft([step("4", "echo 4 >> ran", replaces=["2"], depends_on=["1"])], keep=["3"])
PRICES = """\
version: 1
as_of: 2026-01-31
source: our contract
models:
  house-model: {input: 1, output: 2, cache_read: 0.1, cache_write: 1.25}
"""


class Workshop:
    """A folder with a plan, and the real command in it."""

    def __init__(self, folder: Path, api: FakeMessages) -> None:
        self.folder = folder
        self.env = api.env

    def plan(self, limits: str) -> Workshop:
        """Write the plan."""
        (self.folder / "plan.yml").write_text(PLAN.replace("{LIMITS}", limits), encoding="utf-8")
        return self

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        return planrun(self.folder, *words, **self.env)

    @property
    def state(self) -> RunState:
        """The newest run, from its ledger."""
        return newest(self.folder)[1]

    @property
    def llm(self) -> dict[str, Any]:
        """What the report says of models."""
        data = json.loads((self.folder / "planrun-out" / "ledger.json").read_bytes())
        figures: dict[str, Any] = data["llm"]
        return figures


def used(llm: dict[str, Any]) -> dict[str, float]:
    """Return what was used by resource."""
    return {each["resource"]: each["used"] for each in llm["budget"]}


@pytest.mark.shows("V-67", "V-70")
def test_a_run_without_budget_for_a_call_pauses_and_continues_with_more(tmp_path: Path) -> None:
    """Exit code 5 with advice; without more it pauses again and asks nothing; with more it continues."""
    with FakeMessages([say("no JSON"), GOOD]) as api:
        shop = Workshop(tmp_path, api).plan("{max_turns: 1}")
        first = shop("execute", "plan.yml")
        assert first.returncode == 5, first.stderr
        assert "the turns of the run are used up: 1 of 1; nothing more is asked" in first.stderr
        assert "--max-turns N (N must allow another call; 1 did not)" in first.stderr
        again = shop("resume", "last")
        assert again.returncode == 5, again.stderr
        assert len(api.journal.entries) == 1
        more = shop("resume", "last", "--max-turns", "3")
        assert more.returncode == 0, more.stderr
        assert api.journal.verdicts() == []
    planning = shop.state.planning
    assert planning is not None
    assert [event.outcome for event in planning.ended] == ["budget", "budget", "revised"]
    levels = [(event.level, event.limit) for event in planning.crossed if event.scope == "plan"]
    assert levels == [(80, 1), (95, 1), (100, 1)]  # once, though it was refused twice
    assert [event.options["budget"]["limits"] for event in shop.state.resumed] == [{"turns": 1}, {"turns": 3}]
    assert used(shop.llm)["turns"] == 2


def quick(folder: Path, patch: pytest.MonkeyPatch, limits: str) -> Shop:
    """Return the same in this process, with a scripted model."""
    return Shop(folder, patch, PLAN.replace("{LIMITS}", limits))


def ended(result: Result | None) -> int:
    """Return the exit code of a resumed run."""
    assert result is not None
    return result.exit_code


REPLY = reply_of(step_of("4", "echo 4 >> ran", replaces=["2"], depends_on=["1"]), keep=["3"])


def test_what_an_option_gave_holds_when_the_run_is_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An option of the start is in force until there is a new one."""
    shop = quick(tmp_path, monkeypatch, "{max_turns: 9}")
    assert shop.run("no JSON", max_turns=1).exit_code == 5
    assert ended(shop.resume()) == 5
    assert shop.model.requests == []
    assert ended(shop.resume("no JSON", max_turns=2)) == 5
    assert ended(shop.resume(REPLY, max_turns=9)) == 0


def test_under_a_policy_only_the_plan_can_be_given_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The option is not taken, planrun says so, and a larger plan lets the run go on."""
    (tmp_path / "policy.yml").write_text("llm_auto_approve: low\n", encoding="utf-8")
    shop = quick(tmp_path, monkeypatch, "{max_turns: 1}")
    assert shop.run("no JSON", policy="policy.yml", max_turns=5).exit_code == 5
    assert "--max-turns 5 is more than the 1 turns of the plan, which hold" in capsys.readouterr().err
    assert ended(shop.resume(max_turns=5)) == 5  # the ceiling stays in force
    assert shop.model.requests == []
    (tmp_path / "plan.yml").write_text(PLAN.replace("{LIMITS}", "{max_turns: 5}"), encoding="utf-8")
    assert ended(shop.resume(REPLY, plan=load("plan.yml", cache=False))) == 0


def test_without_a_price_tokens_are_counted_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is guessed for a model without a known price."""
    shop = quick(tmp_path, monkeypatch, "{max_tokens: 50000}")
    assert shop.run(REPLY, llm_model="house-model").exit_code == 0
    llm = json.loads((tmp_path / "planrun-out" / "ledger.json").read_bytes())["llm"]
    (call,) = llm["calls"]
    assert (call["usd"], call["reserved_usd"]) == (None, None)
    assert used(llm)["tokens"] == 1000
    assert "at no known price" in (tmp_path / "planrun-out" / "report.md").read_text(encoding="utf-8")


def test_dollars_without_a_price_are_an_error_before_anything_runs(tmp_path: Path) -> None:
    """Exit code 2, no run, nothing asked; a table of one's own is the way out, and its costs are on record."""
    with FakeMessages([GOOD]) as api:
        shop = Workshop(tmp_path, api).plan("{max_usd: 0.5}")
        refused = shop("execute", "plan.yml", "--llm-model", "house-model")
        assert refused.returncode == 2
        assert '"house-model" is not in the prices of 2026-10-09' in refused.stderr
        assert "--llm-prices FILE or PLANRUN_LLM_PRICES" in refused.stderr
        assert not (tmp_path / ".planrun").exists()
        assert len(api.journal.entries) == 0
        (tmp_path / "prices.yml").write_text(PRICES.replace("output", "outputs"), encoding="utf-8")
        wrong = shop("execute", "plan.yml", "--llm-model", "house-model", "--llm-prices", "prices.yml")
        assert wrong.returncode == 2
        assert 'prices.yml:5:27: error[E104]: unknown key "outputs" in "house-model"' in wrong.stderr
        (tmp_path / "prices.yml").write_text(PRICES, encoding="utf-8")
        done = shop("execute", "plan.yml", "--llm-model", "house-model", "--llm-prices", "prices.yml")
        assert done.returncode == 0, done.stderr
    (call,) = shop.llm["calls"]
    price = call["input_tokens"] + call["output_tokens"] * 2 + call["cache_write_tokens"] * 1.25
    assert call["usd"] == pytest.approx(price / 1e6)
    assert (shop.llm["prices"]["file"], shop.llm["prices"]["as_of"]) == ("prices.yml", "2026-01-31")


def test_an_answer_that_breaks_off_twice_costs_no_more_than_was_reserved(tmp_path: Path) -> None:
    """One attempt that cost something is repeated, no second one: what is counted stays within what was held."""
    reply = broken("end", at="text")
    with FakeMessages([reply, reply, reply, reply]) as api:
        shop = Workshop(tmp_path, api).plan("{max_tokens: 50000}")
        done = shop("execute", "plan.yml")
        assert done.returncode == 1, done.stderr
        assert len(api.journal.entries) == 2
        due = sum(entry.due.total - entry.due.cache_read for entry in api.journal.entries)
    (call,) = shop.llm["calls"]
    assert call["attempts"] == 2
    assert due <= used(shop.llm)["tokens"] <= call["reserved_tokens"]


def test_a_call_that_was_killed_counts_as_reserved(tmp_path: Path) -> None:
    """A kill -9 in the middle of a call: the resumed run counts what was reserved for it."""
    with FakeMessages([broken("stall", at="text"), GOOD]) as api:
        shop = Workshop(tmp_path, api).plan("{max_tokens: 50000}")
        process = subprocess.Popen(
            [sys.executable, "-m", "planrun", "execute", "plan.yml"],
            cwd=tmp_path,
            env={**os.environ, "PLANRUN_CACHE_DIR": str(tmp_path / "cache"), **api.env},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until = time.monotonic() + LIMIT
        while not api.journal.entries and time.monotonic() < until:
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        process.wait(LIMIT)
        planning = shop.state.planning
        assert planning is not None
        reserved = planning.calls[0].asked.reserved["tokens"]
        assert planning.used("tokens") == reserved
        done = shop("resume", "last")
        assert done.returncode == 0, done.stderr
    first, second = shop.llm["calls"]
    assert (first["ending"], first["confirmed"], second["confirmed"]) == (None, False, True)
    levels = sum(second[name] for name in ("input_tokens", "output_tokens", "cache_write_tokens"))
    assert used(shop.llm)["tokens"] == reserved + levels
    usage = json.loads((tmp_path / "planrun-out" / "ledger.json").read_bytes())["usage"]
    assert usage["unconfirmed_tokens"] == reserved
