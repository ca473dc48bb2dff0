"""While a model is asked, each repeat is shown, and a warning when the connection is not encrypted."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.fakes.messages import FakeMessages, draft, status

if TYPE_CHECKING:
    from tests.conftest import Command

PLAN = "version: 1\ngoal: It works.\nllm: {model: m}\nsteps: [{id: a, run: exit 77}]\n"
REPLACEMENT = draft([{"id": "2", "run": "echo fixed", "replaces": ["a"]}])
BUSY = status(529, message="come back later", retry_after=0.01)


def test_each_repeat_of_a_call_is_shown_and_recorded(planrun: Command) -> None:
    """Two attempts in vain: two lines on the console and two events, before the answer's own."""
    (planrun.folder / "plan.yml").write_text(PLAN)
    with FakeMessages([BUSY, BUSY, REPLACEMENT]) as api:
        done = planrun("execute", "plan.yml", env=api.env)
    assert done.returncode == 1  # nothing that was reviewed checks what took the place of the failure
    for number in (1, 2):
        assert f"attempt {number} of call 1 failed: the service is overloaded (529" in done.stderr
    (ledger,) = planrun.folder.glob(".planrun/runs/*/ledger.jsonl")
    events = [json.loads(line) for line in ledger.read_text().splitlines()]
    kinds = [event["type"] for event in events if event["type"].startswith("model_")]
    assert kinds == ["model_asked", "model_repeated", "model_repeated", "model_answered"]
    assert planrun("verify", "last").returncode == 0
    assert planrun("replay", "last").returncode == 0


def test_generate_shows_repeats(planrun: Command) -> None:
    """`generate` waits as long and shows as much."""
    with FakeMessages([BUSY, draft([{"id": "a", "run": "make"}])]) as api:
        done = planrun("generate", "ship it", env={**api.env, "PLANRUN_LLM_MODEL": "m"})
    assert done.returncode == 0
    assert "attempt 1 of call 1 failed: the service is overloaded (529" in done.stderr
    assert "next attempt in" in done.stderr


def test_an_unencrypted_address_is_warned_of(planrun: Command) -> None:
    """http:// to another machine is shown with the address; for this machine there is no warning."""
    (planrun.folder / "plan.yml").write_text(PLAN)
    env = {"ANTHROPIC_API_KEY": "sk-not-a-real-key", "ANTHROPIC_BASE_URL": "http://192.0.2.1:9"}
    (planrun.folder / "plan.yml").write_text(PLAN.replace("exit 77", "ls"))
    asked = planrun("execute", "plan.yml", env=env)
    assert "warning: http://192.0.2.1:9 is not encrypted" in asked.stderr
    assert asked.stderr.count("encrypted") == 1
    (planrun.folder / "open.yml").write_text(
        "version: 1\ngoal: It works.\nlimits: {deadline: 1s}\nsteps: [{id: a, title: Build it}]\n"
    )
    expanded = planrun("execute", "open.yml", "--expand", "--llm-model", "m", env=env)
    assert expanded.stderr.count("warning: http://192.0.2.1:9 is not encrypted") == 1
    with FakeMessages([draft([{"id": "a", "run": "make"}])]) as api:
        here = planrun("generate", "ship it", env={**api.env, "PLANRUN_LLM_MODEL": "m"})
    assert "encrypted" not in here.stderr


def test_replan_is_suggested_where_it_may_help(planrun: Command) -> None:
    """Behind a failure that a model may plan for; neither without a model, nor for a fact that the step is wrong."""
    hint = "to ask a model for a recovery plan: planrun replan 2"
    plan = PLAN.replace("llm: {model: m}", "llm: {model: m, replan_on_failure: never}")
    key = {"ANTHROPIC_API_KEY": "sk-not-a-real-key"}
    found = {}
    for name, text, env in (
        ("failed", plan, key),
        ("usage", plan.replace("exit 77", "exit 64"), key),
        ("no credentials", plan, {}),
        ("no model", plan.replace("llm: {model: m, replan_on_failure: never}\n", ""), key),
        ("passed", plan.replace("exit 77", "ls"), key),
    ):
        (planrun.folder / "plan.yml").write_text(text)
        found[name] = hint in planrun("execute", "plan.yml", env=env).stderr
    assert [name for name in found if found[name]] == ["failed"]
