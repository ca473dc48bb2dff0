"""Agents learn from errors: patterns, a model's analysis, paths that may be meant, corrected calls, and what helped."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.agents.test_together import notes, run, shared, together
from tests.agents.worlds import agent, events, finish, git, ledger, repository, results, turns
from tests.fakes.messages import answer, use

if TYPE_CHECKING:
    from tests.conftest import Command
    from tests.fakes.messages import Asked

FAILURES = [
    ("echo 'bash: line 1: ruff: command not found' >&2; exit 127", "command_not_found"),
    ("echo 'main.c:3:5: error: expected ;' >&2; exit 1", "compilation_error"),
    ("echo 'cat: none.txt: No such file or directory' >&2; exit 1", "file_not_found"),
]
PLAN = agent(apply="never").replace("llm: {model: model-a}", together("delegation: {enabled: false}"))


@pytest.mark.shows("GM-67", "GM-71", "GM-72", "GM-73", "GM-74", "GM-75")
def test_errors_of_tools_are_analysed_by_patterns(planrun: Command) -> None:
    """Category, suggestion, whether to retry, a fix and another tool: told to the model, and in the ledger."""
    told: list[str] = []

    def ends(asked: Asked) -> Any:
        told.extend(results(asked))
        return finish()

    calls = [("bash", {"command": command}) for command, _ in FAILURES]
    calls += [("edit", {"path": "calc.py", "old": "no such text", "new": "x"})]
    run(planrun, PLAN, turns(use(*calls), ends))
    rows = shared(planrun.folder)["reflections"]
    categories = [category for _, category in FAILURES] + ["edit_mismatch"]
    assert [row["category"] for row in rows] == categories
    for row, text in zip(rows, told, strict=True):
        assert f"[{row['category']}] {row['suggestion']}" in text
        assert row["source"] == "pattern"
        assert row["rule"]
    assert rows[0]["suggested_fix"] == "command -v ruff"
    assert "Suggested fix: command -v ruff" in told[0]
    assert {row["should_retry"] for row in rows} == {True, False}
    retried = ("Repeating the call after a correction may help", "Mend the cause before you repeat the call")
    assert all(retried[not row["should_retry"]] in text for row, text in zip(rows, told, strict=True))
    [alternative] = {row["alternative"] for row in rows if row["category"] == "edit_mismatch"}
    assert alternative == "read"
    assert f"Alternative: {alternative}" in told[3]
    assert all(row["auto_fix"] is None for row in rows), "autofix is off by default"


def test_reflection_may_be_switched_off(planrun: Command) -> None:
    """`reflection: {enabled: false}`: the model gets the result alone."""
    told: list[str] = []

    def ends(asked: Asked) -> Any:
        told.extend(results(asked))
        return finish()

    settings = together("delegation: {enabled: false}, reflection: {enabled: false}")
    plan = agent(apply="never").replace("llm: {model: model-a}", settings)
    run(planrun, plan, turns(use(("read", {"path": "none.py"})), ends))
    assert "[file_not_found]" not in told[0]
    assert ledger(planrun.folder)["collaboration"] is None


ODD = use(("bash", {"command": "echo 'the flux is off' >&2; exit 3"}))
ANALYSIS = {
    "category": "configuration_error",
    "suggestion": "Turn the flux on.",
    "should_retry": True,
    "alternative": "read",
    "root_cause": "The flux is off.",
}


@pytest.mark.shows("GM-68")
@pytest.mark.parametrize("is_on", [True, False])
def test_a_model_analyses_errors_that_no_pattern_knows(planrun: Command, *, is_on: bool) -> None:
    """Only with `reflection: {llm: true}`: a call with a strict schema, on the budget of the agent."""
    asked_about: list[str] = []
    told: list[str] = []

    def ends(asked: Asked) -> Any:
        told.append(notes(asked) + "".join(results(asked)))
        return finish()

    def model(asked: Asked) -> Any:
        if asked.schema is not None:
            asked_about.append(asked.user)
            return answer(ANALYSIS)
        return turns(ODD, ends)(asked)

    settings = f"delegation: {{enabled: false}}, reflection: {{llm: {json.dumps(is_on)}}}"
    run(planrun, agent(apply="never").replace("llm: {model: model-a}", together(settings)), model)
    [row] = shared(planrun.folder)["reflections"]
    calls = [event for event in events(planrun.folder) if event["type"] == "model_asked"]
    assert {event["agent"] for event in calls} == {"fix.1"}
    if not is_on:
        assert (row["category"], row["source"], len(calls), asked_about) == ("unknown", "none", 2, [])
        return
    assert (row["category"], row["source"], row["root_cause"]) == (
        "configuration_error",
        "model",
        "The flux is off.",
    )
    assert len(calls) == 3
    assert "the flux is off" in asked_about[0]
    assert "[configuration_error] Turn the flux on." in told[0]
    found = ledger(planrun.folder)["agents"][0]
    used = [event["usage"] for event in events(planrun.folder) if event["type"] == "model_answered"]
    assert found["usage"]["output_tokens"] == sum(each["output_tokens"] for each in used)


@pytest.mark.parametrize("reply", ["no JSON", '{"category": "mood"}'])
def test_an_analysis_that_cannot_be_used_changes_nothing(planrun: Command, reply: str) -> None:
    """The agent goes on with what is known."""

    def model(asked: Asked) -> Any:
        return reply if asked.schema is not None else turns(ODD, finish())(asked)

    settings = together("delegation: {enabled: false}, reflection: {llm: true}")
    run(planrun, agent(apply="never").replace("llm: {model: model-a}", settings), model)
    [row] = shared(planrun.folder)["reflections"]
    assert (row["category"], row["source"]) == ("unknown", "none")


@pytest.mark.shows("GM-70", "GM-76")
def test_a_reading_tool_is_called_again_with_the_path_that_was_meant(planrun: Command) -> None:
    """Files that git lists are suggested; with `autofix` the call is made again, and tools that write never are."""
    folder = repository(planrun.folder)
    (folder / "src").mkdir()
    (folder / "src" / "unique.py").write_text("value = 7\n")
    git(folder, "add", "-A")
    told: list[str] = []

    def ends(asked: Asked) -> Any:
        told.append("".join(results(asked)) + notes(asked))
        return finish()

    calls = use(
        ("read", {"path": "lib/unique.py"}), ("edit", {"path": "lib/unique.py", "old": "7", "new": "8"})
    )
    for is_on in (True, False):
        off = "delegation: {enabled: false}"
        settings = together(f"{off}, reflection: {{autofix: {json.dumps(is_on)}}}")
        run(planrun, agent(apply="never").replace("llm: {model: model-a}", settings), turns(calls, ends))
        rows = shared(folder)["reflections"]
        assert [row["suggested_paths"] for row in rows] == [["src/unique.py"]] * 2
        assert "file that may be meant: src/unique.py" in told[-1]
        fix = {"tool": "read", "args": {"path": "src/unique.py"}}
        assert [row["auto_fix"] for row in rows] == [fix if is_on else None, None]
        effects = ledger(folder)["agents"][0]["effects"]
        assert [call["tool"] for call in effects] == ["read", "edit", *(["read"] if is_on else [])]
        assert ("value = 7" in told[-1]) == is_on
        assert rows[0]["fixed"] is (True if is_on else None)


@pytest.mark.shows("GM-69", "GM-77")
def test_what_helped_is_offered_to_the_next_run(planrun: Command) -> None:
    """Identify, fix, record: a success raises the weight of the fix, a failure lowers it, `clear` forgets it."""
    settings = together("delegation: {enabled: false}, memory: {store: write, dir: kept}")
    plan = agent(apply="never").replace("llm: {model: model-a}", settings)
    broken = ("bash", {"command": "echo 'bash: line 1: ruff: command not found' >&2; exit 127"})
    works = ("bash", {"command": "echo fine"})
    worse = ("bash", {"command": "echo fine; echo 'bash: line 1: ruff: command not found' >&2; exit 127"})
    told: list[str] = []

    def ends(asked: Asked) -> Any:
        told.extend(results(asked))
        return finish()

    weights = []
    for second in (works, works, worse):
        told.clear()

        def tries(asked: Asked, call: Any = second) -> Any:
            told.extend(results(asked))
            return use(call)

        run(planrun, plan, turns(use(broken), tries, ends))
        listed = json.loads(planrun("errors", "list", "--dir", "kept", "--json").stdout)
        weights.append({each["solution"]: each["weight"] for each in listed["errors"]})
    fix = next(name for name in weights[0] if "echo fine" in name)
    assert [found[fix] for found in weights[:2]] == [pytest.approx(0.65), pytest.approx(0.755)]
    assert f"helped earlier: {fix}" in told[0].replace("\\n", "\n")
    [failed] = set(weights[2]) - set(weights[1])
    assert weights[2][failed] == pytest.approx(0.35)
    assert planrun("errors", "clear", "--dir", "kept").returncode == 0
    assert json.loads(planrun("errors", "list", "--dir", "kept", "--json").stdout)["errors"] == []
