"""Settings of the model, through the command line and a real service on loopback."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.fakes.messages import FakeMessages, draft

if TYPE_CHECKING:
    from tests.conftest import Command

PLAN = "version: 1\ngoal: It works.\nllm: {model: m}\nsteps: [{id: a, run: exit 77}]\n"
REPLACEMENT = draft([{"id": "2", "run": "echo fixed", "replaces": ["a"]}])


@pytest.mark.shows("D-38")
@pytest.mark.parametrize("how", ["option", "variable", "plan"])
def test_planning_by_models_can_be_switched_off(planrun: Command, how: str) -> None:
    """--no-llm, PLANRUN_NO_LLM and llm.enabled: false stop model calls in a run, generate, expand and replan."""
    plan = PLAN.replace("model: m", "model: m, enabled: false") if how == "plan" else PLAN
    words = ["--no-llm"] if how == "option" else []
    (planrun.folder / "plan.yml").write_text(plan)
    (planrun.folder / "open.yml").write_text(plan.replace("run: exit 77", "title: Build it"))
    with FakeMessages([REPLACEMENT]) as api:
        env = {**api.env, **({"PLANRUN_NO_LLM": "1"} if how == "variable" else {})}
        done = planrun("execute", "plan.yml", *words, env=env)
        again = planrun("replan", "last", *words, env=env)
        opened = planrun("expand", "open.yml", "-o", "x.yml", *words, env=env)
        if how != "plan":
            made = planrun("generate", "ship it", "--llm-model", "m", "-o", "y.yml", *words, env=env)
            assert made.returncode == 2, made.stderr
        assert api.journal.entries == []
    assert done.returncode == 1
    assert (again.returncode, opened.returncode) == (2, 2)
    assert "llm.enabled: false" in again.stderr or "--no-llm" in again.stderr


@pytest.mark.shows("D-42")
def test_effort_and_more_fields_are_in_the_request(planrun: Command) -> None:
    """`effort` and `extra_body` are sent as written; fields that planrun decides are refused."""
    text = PLAN.replace(
        "model: m",
        "model: m, effort: low, extra_body: {service_tier: standard_only, metadata: {user_id: ci}}",
    )
    (planrun.folder / "plan.yml").write_text(text)
    with FakeMessages([REPLACEMENT]) as api:
        planrun("execute", "plan.yml", env=api.env)
        (entry,) = api.journal.entries
    assert entry.body["output_config"]["effort"] == "low"
    assert entry.body["service_tier"] == "standard_only"
    assert entry.body["metadata"] == {"user_id": "ci"}
    assert "temperature" not in entry.body
    (planrun.folder / "plan.yml").write_text(
        PLAN.replace("model: m", "model: m, extra_body: {max_tokens: 9}")
    )
    with FakeMessages([REPLACEMENT]) as api:
        done = planrun("execute", "plan.yml", env=api.env)
        assert api.journal.entries == []
    assert done.returncode == 1
    assert "llm.extra_body may not set max_tokens" in done.stderr


@pytest.mark.shows("D-43")
def test_an_answer_that_is_too_long_gets_twice_the_tokens_once(planrun: Command) -> None:
    """max_tokens of the plan, then twice as much, then an error that says so; no third call."""
    (planrun.folder / "plan.yml").write_text(PLAN.replace("model: m", "model: m, plan_max_tokens: 30"))
    with FakeMessages([REPLACEMENT, REPLACEMENT]) as api:
        done = planrun("execute", "plan.yml", env=api.env)
        assert [entry.body["max_tokens"] for entry in api.journal.entries] == [30, 60]
    assert done.returncode == 1
    assert "the answer was cut off at max_tokens" in done.stderr


@pytest.mark.shows("X-12", "D-48")
def test_the_fallback_is_a_plan_of_three_steps(planrun: Command) -> None:
    """Where the model gives no valid plan three times: research, design and code, in this order, and marked."""
    bad = draft([{"id": "a", "run": "ls", "depends_on": ["zzz"]}])
    with FakeMessages([bad] * 3) as api:
        env = {**api.env, "PLANRUN_LLM_MODEL": "m"}
        done = planrun("generate", "add a login", "--fallback", "template", env=env)
    assert done.returncode == 0, done.stderr
    assert "this plan is planrun's own pattern, not the model's" in done.stderr
    assert "review it, then planrun expand plan.yml" in done.stdout
    rows = [
        line.split("|")[2].split(":")[0].strip()
        for line in done.stdout.splitlines()
        if line.startswith("|   ")
    ]
    assert rows[1:] == ["research", "design", "code"]
    assert "Risk: read-only" in done.stdout
    assert planrun("validate", "plan.yml").returncode == 0


@pytest.mark.shows("GP-26")
def test_what_a_step_used_is_on_its_record(planrun: Command) -> None:
    """Tokens of the planning for a failed step stand in `usage` of that step and of the run."""
    import json

    (planrun.folder / "plan.yml").write_text(PLAN)
    with FakeMessages([REPLACEMENT]) as api:
        planrun("execute", "plan.yml", env=api.env)
        (entry,) = api.journal.entries
    ledger = json.loads((planrun.folder / "planrun-out" / "ledger.json").read_text())
    used = {step["id"]: step["usage"] for step in ledger["steps"]}
    assert used["a"]["output_tokens"] == ledger["usage"]["output_tokens"] > 0
    assert used["2"]["output_tokens"] == 0
    assert entry.body["model"] == "m"


@pytest.mark.shows("V-69")
def test_the_generation_is_part_of_what_the_run_used(planrun: Command) -> None:
    """After `generate --execute` the ledger, the report as JSON and `status` count the calls that wrote the plan."""
    import json

    with FakeMessages([draft([{"id": "1", "run": "ls"}])]) as api:
        env = {**api.env, "PLANRUN_LLM_MODEL": "m"}
        done = planrun("generate", "look around", "--execute", "--json", env=env)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    used = said["usage"]["output_tokens"]
    assert used > 0
    for text in (
        (planrun.folder / "planrun-out" / "ledger.json").read_text(),
        planrun("report", "last", "--format", "json").stdout,
    ):
        found = json.loads(text)
        assert found["usage"]["output_tokens"] == used
        assert found["plan"]["goal"] == "look around"
        assert [(step["id"], step["status"]) for step in found["steps"]] == [("1", "completed")]
        assert found["summary"]["total"] == found["summary"]["completed"] == 1
    status = json.loads(planrun("status", "last", "--json").stdout)
    assert (status["metrics"]["percentage"], status["progress"]["completed"]) == (100.0, 1)
    for verb in ("verify", "replay"):
        again = planrun(verb, "last")
        assert again.returncode == 0, again.stderr
