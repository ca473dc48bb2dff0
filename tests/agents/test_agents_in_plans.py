"""Types and modes of agents, their tools and limits, and what a plan may say of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from planrun.model.agenttypes import BY_NAME, MODES, NOT_OFFERED, TOOLS, TYPES
from planrun.plan.load import load_bytes
from tests.agents.worlds import HEAD, agent, finish, ledger, repository
from tests.fakes.messages import FakeMessages, answer, draft, use

if TYPE_CHECKING:
    from tests.conftest import Command
    from tests.fakes.messages import Asked, Reply

LISTS = {
    "explore": "read glob grep tree list_dir tools_list request_tool ask_agent",
    "bash": "bash read glob tools_list request_tool ask_agent",
    "general": " ".join(TOOLS),
    "plan": (
        "read glob grep tree list_dir diff todo web_fetch web_search ask_user env tools_list request_tool ask_agent "
        "enter_plan_mode exit_plan_mode update_plan_progress get_plan_status"
    ),
    "claude-code-guide": "glob grep read web_fetch web_search tools_list request_tool ask_agent",
}
LIMITS = {
    "code": (75, 480_000, ""),
    "test": (60, 400_000, ""),
    "research": (40, 320_000, "write edit apply_patch bash"),
    "design": (50, 360_000, "write edit apply_patch bash"),
    "docs": (40, 320_000, "bash"),
    "run": (30, 240_000, "write edit apply_patch"),
}


@pytest.mark.shows("GM-01", "GM-02", "GM-03", "GM-04", "GM-05", "GM-08")
def test_the_five_types_have_their_exact_tools(planrun: Command) -> None:
    """`planrun agents` lists the five types with the tools of their sources, and those that are not offered yet."""
    done = planrun("agents", "--json")
    listed = {each["name"]: each for each in json.loads(done.stdout)["agents"]}
    assert {name: sorted(each["tools"]) for name, each in listed.items()} == {
        name: sorted(tools.split()) for name, tools in LISTS.items()
    }
    assert all(each["builtin"] for each in listed.values())
    assert json.loads(done.stdout)["not_offered"] == NOT_OFFERED
    assert "explore" in planrun("agents").stdout


@pytest.mark.shows("V-27", "V-28", "V-29", "V-30", "V-31", "V-32", "V-33", "V-72")
def test_the_six_modes_have_guidance_limits_and_tools(planrun: Command) -> None:
    """`planrun modes` lists turns, tokens and denied tools of each mode; each has guidance for plans and agents."""
    listed = {each["name"]: each for each in json.loads(planrun("modes", "--json").stdout)["modes"]}
    found = {
        name: (each["max_turns"], each["max_tokens"], " ".join(each["without"]))
        for name, each in listed.items()
    }
    assert found == LIMITS
    assert all(each["planner"] and each["agent"] and each["title"] for each in listed.values())
    assert len({each["icon"] for each in listed.values()}) == 6
    table = planrun("modes").stdout
    assert "75 | 480000" in table
    assert all(f"{each['icon']} {name} " in table for name, each in listed.items())


@pytest.mark.shows("V-27", "V-28", "V-29", "V-30", "V-31", "V-32", "V-72")
def test_an_agent_of_each_mode_has_its_guidance_its_tools_and_its_limits(planrun: Command) -> None:
    """The guidance of its mode and of no other, no tool that the mode denies; one that never finishes is ended."""
    asked: dict[str, Asked] = {}

    def model(request: Asked) -> Reply:
        [mode] = [name for name in LIMITS if f"Task of {name}." in request.text]
        asked.setdefault(mode, request)
        return use(("read", {"path": "calc.py"})) if mode == "run" else finish()

    repository(planrun.folder)
    steps = [
        f"  - {{id: {mode}, on_failure: continue, agent: {{prompt: Task of {mode}., mode: {mode}}}}}\n"
        for mode in LIMITS
    ]
    (planrun.folder / "plan.yml").write_text(f"version: 1\nllm: {{model: model-a}}\nsteps:\n{''.join(steps)}")
    with FakeMessages(model) as api:
        planrun("execute", "plan.yml", env=api.env)
    agents = {each["id"]: each for each in ledger(planrun.folder)["agents"]}
    for mode, (turns, tokens, without) in LIMITS.items():
        assert agents[f"{mode}.1"]["budget"] == {"tokens": tokens, "turns": turns}, mode
        tools = {tool["name"] for tool in asked[mode].body["tools"]}
        denied = set(without.split())
        assert tools & {"write", "edit", "bash"} == {"write", "edit", "bash"} - denied
        known = [name for name, each in MODES.items() if each.agent in asked[mode].system]
        assert known == [mode]
    assert (agents["run.1"]["turns"], agents["run.1"]["reason"]) == (30, "turns")


@pytest.mark.shows("V-33")
def test_a_model_that_writes_a_plan_is_told_when_to_use_each_mode(planrun: Command) -> None:
    """The guidance is in its prompt; the mode that it names stands above the step, another one is a fault."""
    seen: list[Asked] = []

    def model(asked: Asked) -> Reply:
        seen.append(asked)
        mode = "design" if len(seen) > 1 else "desing"
        return answer(draft([{"id": "think", "title": "Compare ways", "mode": mode}]))

    repository(planrun.folder)
    with FakeMessages(model) as api:
        words = ("generate", "a way to add", "--llm-model", "model-a", "-o", "new.yml")
        assert planrun(*words, env=api.env).returncode == 0
    assert all(f"{name} ({mode.planner})" in seen[0].system for name, mode in MODES.items())
    assert "not a mode" in json.dumps(seen[1].body["messages"])
    assert "for an agent: `agent: {mode: design, prompt: ...}`" in (planrun.folder / "new.yml").read_text()


@pytest.mark.parametrize("mode", MODES)
def test_a_mode_sets_limits_and_takes_tools_away(mode: str) -> None:
    """A general agent in a mode has the limits of the mode and none of the tools that it denies."""
    plan = load_bytes(agent(mode=mode).encode(), "plan.yml", cache=False)
    action = plan.steps[0].action
    turns, tokens, without = LIMITS[mode]
    assert (action.max_turns, action.max_tokens) == (turns, tokens)  # type: ignore[attr-defined]
    assert set(action.tools) == set(TOOLS) - BY_NAME - set(without.split())  # type: ignore[attr-defined]


def test_a_mode_tells_the_model_its_guidance(planrun: Command) -> None:
    """What the mode is for stands in the beginning of the conversation."""
    seen: list[Asked] = []

    def model(asked: Asked) -> Reply:
        seen.append(asked)
        return finish()

    repository(planrun.folder)
    (planrun.folder / "plan.yml").write_text(agent(mode="research"))
    with FakeMessages(model) as api:
        assert planrun("execute", "plan.yml", env=api.env).returncode == 0
    assert MODES["research"].agent in seen[0].system
    assert [tool["name"] for tool in seen[0].body["tools"]].count("write") == 0


WRONG = {
    "{type: explor, prompt: x}": 'E272]: unknown type of agent "explor" in step "1"; did you mean "explore"?',
    "{mode: cde, prompt: x}": "must be code, test, research, design, docs or run",
    "{prompt: x, tools: {allow: [red]}}": 'E273]: unknown tool "red" in step "1"; did you mean "read"?',
    "{prompt: x, tools: {deny: [red]}}": 'E273]: unknown tool "red"',
    "{type: bash}": '"agent" in step "1" needs `prompt`',
    "{prompt: x, task: y}": 'E118]: "prompt" and "task" of step "1" are the same',
    "{prompt: x, apply: maybe}": "must be auto, ask or never",
}


@pytest.mark.parametrize("written", WRONG)
def test_what_is_wrong_with_an_agent_is_an_error_of_the_plan(planrun: Command, written: str) -> None:
    """Unknown types, modes and tools are found when the plan is read, with their places."""
    (planrun.folder / "plan.yml").write_text(f"{HEAD}  - agent: {written}\n")
    done = planrun("validate", "plan.yml")
    assert done.returncode == 2
    assert WRONG[written] in done.stderr + done.stdout
    assert "plan.yml:5:" in done.stderr + done.stdout


@pytest.mark.parametrize("key", ["outputs: {a: string}", "shell: sh", "workdir: src", "service: true"])
def test_keys_of_processes_do_not_apply_to_agents(planrun: Command, key: str) -> None:
    """A key that would mean nothing for an agent is refused, with what to do instead."""
    (planrun.folder / "plan.yml").write_text(f"{HEAD}  - agent: {{prompt: x}}\n    {key}\n")
    done = planrun("validate", "plan.yml")
    assert done.returncode == 2
    assert "E275" in done.stdout + done.stderr


CUSTOM = """\
version: 1
llm: {model: model-a}
agents:
  reviewer: {description: Reviews changes., tools: [read, grep], prompt: You review., mode: research, max_turns: 3}
steps:
  - id: fix
    agent: {type: reviewer, task: Review it., prompt_suffix: Be short.}
"""


@pytest.mark.shows("GM-07", "GM-09", "N-32", "V-39")
def test_a_plan_defines_types_of_agents(planrun: Command) -> None:
    """Types of the plan are listed and used, with their prompt, tools and limits; one that is taken away is unknown."""
    seen: list[Asked] = []

    def model(asked: Asked) -> Reply:
        seen.append(asked)
        return finish()

    repository(planrun.folder)
    (planrun.folder / "plan.yml").write_text(CUSTOM)
    assert "reviewer" in planrun("agents", "plan.yml").stdout
    with FakeMessages(model) as api:
        assert planrun("execute", "plan.yml", env=api.env).returncode == 0
    assert [tool["name"] for tool in seen[0].body["tools"]] == ["read", "grep", "finish"]
    assert "You review." in seen[0].system
    assert "Review it." in seen[0].text
    assert "Be short." in seen[0].text
    assert ledger(planrun.folder)["agents"][0]["budget"] == {"tokens": 320_000, "turns": 3}
    (planrun.folder / "plan.yml").write_text(CUSTOM.replace("  reviewer:", "  another:"))
    assert 'unknown type of agent "reviewer"' in planrun("validate", "plan.yml").stdout


@pytest.mark.shows("N-32")
def test_an_agent_without_a_prompt_is_told_the_title_and_the_description(planrun: Command) -> None:
    """The digest covers them then; as formulas they are not read; without both, the step is refused."""
    asked: list[Asked] = []
    repository(planrun.folder)
    plan = planrun.folder / "plan.yml"
    text = "version: 1\nllm: {model: model-a}\nsteps:\n  - {id: a, TOLD agent: {type: explore}}\n"
    plan.write_text(text.replace("TOLD", "title: Tidy up, description: 'Drop ${{ dead }} code.',"))
    digest = json.loads(planrun("show", "plan.yml", "--json").stdout)["plan"]["digest"]

    def model(request: Asked) -> Reply:
        asked.append(request)
        return finish()

    with FakeMessages(model) as api:
        done = planrun("execute", "plan.yml", env=api.env)
    assert done.returncode == 0, done.stderr
    assert "Tidy up\n\nDrop ${{ dead }} code." in asked[0].text
    plan.write_text(plan.read_text().replace("Drop", "Keep"))
    assert json.loads(planrun("show", "plan.yml", "--json").stdout)["plan"]["digest"] != digest
    plan.write_text(text.replace("TOLD", ""))
    assert 'error[E102]: "agent" in step "a" needs `prompt`' in planrun("validate", "plan.yml").stdout


@pytest.mark.shows("GM-07")
def test_a_built_in_type_cannot_be_replaced(planrun: Command) -> None:
    """A type of the plan with the name of a built-in one is an error."""
    (planrun.folder / "plan.yml").write_text(CUSTOM.replace("reviewer", "explore"))
    done = planrun("validate", "plan.yml")
    assert 'error[E274]: the type of agent "explore" is built in' in done.stdout
    assert TYPES["explore"].prompt


@pytest.mark.shows("V-36")
def test_tools_of_a_step_are_filtered_and_deny_wins(planrun: Command) -> None:
    """`allow` names the only tools, `deny` takes some of them away again."""
    seen: list[Asked] = []

    def model(asked: Asked) -> Reply:
        seen.append(asked)
        return finish()

    repository(planrun.folder)
    tools = {"allow": ["read", "grep", "bash"], "deny": ["bash"]}
    (planrun.folder / "plan.yml").write_text(agent(tools=tools))
    with FakeMessages(model) as api:
        assert planrun("execute", "plan.yml", env=api.env).returncode == 0
    assert [tool["name"] for tool in seen[0].body["tools"]] == ["read", "grep", "finish"]
