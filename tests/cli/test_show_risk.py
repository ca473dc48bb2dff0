"""`planrun show` and `planrun explain PLAN STEP`: risk, policy in force, and its decision on each step."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Said

    Say = Callable[..., Said]

PLAN = """\
version: 1
name: release
params:
  target: {type: string, enum: [build, dist], required: true}
policy:
  auto_approve: medium
  rules:
    - deny: {command: "rm -rf dist*"}
    - require: {step: publish}
    - allow: {command: "mkdir *"}
  decisions: {known: true}
steps:
  - {id: look, run: ls}
  - id: make
    title: Make | it
    run: mkdir ${{ params.target }} && echo x > ${{ params.target }}/y
    depends_on: [look]
  - {id: tidy, run: "rm -rf ${{ params.target }}", depends_on: [look]}
  - {id: fetch, run: curl -fsS https://example.org/data.json -o data.json}
  - {id: publish, run: sudo make install, depends_on: [make]}
  - {id: really, ask: {question: "Publish?"}}
  - {id: known, ask: {question: "Known?"}}
"""


@pytest.fixture
def plan(tmp_path: Path) -> str:
    """Write PLAN into the test's folder and return its name."""
    (tmp_path / "plan.yml").write_text(PLAN)
    return "plan.yml"


def document(said: Said) -> Any:
    """Return the JSON document that was printed."""
    assert said.code == 0, said.err
    return json.loads(said.out)


@pytest.mark.shows("X-11", "N-11")
def test_show_has_the_class_of_each_step_and_of_the_plan(say: Say, plan: str) -> None:
    """A column, the totals, the policy in force and what it stops; why each step has its class."""
    said = say("show", plan, "--param", "target=build")
    assert said.code == 0
    cells = [
        [cell.strip() for cell in row.strip("|").split(" | ")]
        for row in said.out.splitlines()
        if row[:1] == "|"
    ]
    assert {row[1].partition(":")[0]: row[-1] for row in cells[2:]} == {
        "look": "read-only",
        "make": "low",
        "tidy": "medium",
        "fetch": "medium",
        "publish": "high",
        "really": "read-only",
        "known": "read-only",
    }
    assert "\nRisk: high, 1 destructive, 3 modify files, 1 external call, 1 not fully known" in said.out
    assert "\nPolicy: auto-approve medium, model-written low, 3 rules (plan.yml:6)\n" in said.out
    assert "\nNeeds approval: publish (plan:rules.2)\nAsks: really, known\n" in said.out
    assert "Denied" not in said.out
    assert "\n  publish: high (privilege, unknown), `sudo make install`: " in said.out


def test_values_that_are_not_known_count_as_the_worst(say: Say, plan: str) -> None:
    """Without a required parameter a class is in brackets; with it, rules see the actual command."""
    open_ones = {step["id"]: step for step in document(say("show", plan, "--json"))["steps"]}
    assert (open_ones["tidy"]["risk"], open_ones["tidy"]["open_risk"]) == ("high", True)
    assert open_ones["tidy"]["decision"]["answer"] != "allow"
    assert "| (high)" in say("show", plan).out
    assert "\nDenied: tidy (plan:rules.1)\n" in say("show", plan, "--param", "target=dist").out
    known = {
        step["id"]: step for step in document(say("show", plan, "--param", "target=build", "--json"))["steps"]
    }
    assert (known["tidy"]["risk"], known["tidy"]["decision"]["answer"]) == ("medium", "allow")
    assert known["tidy"]["action"] == "rm -rf ${{ params.target }}"
    said = say("show", plan, "--param", "target=elsewhere")
    assert said.code == 2
    assert 'the parameter "target"' in said.err


@pytest.mark.shows("X-11")
def test_show_as_json(say: Say, plan: str) -> None:
    """Policy and totals as in ledger.json; each step with its decision, its commands and what is missing."""
    found = document(say("show", plan, "--param", "target=build", "--json"))
    assert found["risk"] == {
        "overall": "high",
        "destructive": ["tidy"],
        "modifies": ["make", "tidy", "fetch"],
        "external": ["fetch"],
        "unknown": ["publish"],
    }
    assert (found["policy"]["source"], found["policy"]["auto_approve"], found["policy"]["rules"]) == (
        "plan",
        "medium",
        3,
    )
    steps = {step["id"]: step["decision"] for step in found["steps"]}
    assert (steps["publish"]["answer"], steps["publish"]["rule"]) == ("ask", "plan:rules.2")
    assert steps["publish"]["missing"] == "an approval of publish"
    assert steps["really"]["missing"] == "an answer (--decide really=VALUE)"
    assert steps["known"]["missing"] is None


def test_a_ceiling_and_a_level_judge_as_well(say: Say, plan: str, tmp_path: Path) -> None:
    """`--policy` takes away, `--auto-approve` stands for the plan's level; both are named."""
    (tmp_path / "ci.yml").write_text("auto_approve: low\n")
    said = say("show", plan, "--param", "target=build", "--policy", "ci.yml")
    assert "; at most low, model-written low (ci.yml)\n" in said.out
    assert (
        "\nNeeds approval: tidy (ceiling:auto_approve), fetch (ceiling:auto_approve), publish (ceiling:auto_approve)\n"
        in said.out
    )
    said = say("show", plan, "--param", "target=build", "--auto-approve", "none")
    assert "look (option:auto_approve)" in said.out
    assert say("show", plan, "--policy", "missing.yml").code == 2
    assert say("show", plan, "--auto-approve", "all").code == 2


@pytest.mark.shows("N-11")
def test_the_markdown_page_lists_steps_that_need_approval(say: Say, plan: str) -> None:
    """The policy in force, and of each step that it stops why; risks are those with the parameters that are known."""
    said = say("show", plan, "--param", "target=build", "--format", "markdown")
    assert said.code == 0
    head, _, table = said.out.partition("\n| | Step")
    assert "- policy: auto-approve medium, model-written low, 3 rules (plan.yml:6)\n" in head
    stopped = head.split("**Needs an approval or an answer, or is denied**\n\n")[1].splitlines()
    assert stopped[0].startswith("- ✋ `publish` needs an approval: rule 2 (plan.yml:9) requires an approval")
    assert stopped[1:3] == ["- ✋ `really` asks a question", "- ✋ `known` asks a question"]
    assert "💥 1 destructive: `tidy`" in head
    assert "| `rm -rf ${{ params.target }}` | look | 5m | medium: " in table
    denied = say("show", plan, "--param", "target=dist", "--format", "markdown").out
    assert "- ⛔ `tidy` is denied: rule 1 (plan.yml:8) denies it" in denied


def test_explain_shows_the_class_of_commands_and_the_result_of_rules(say: Say, plan: str) -> None:
    """The commands with their classes, the rules in the order in which they are looked at, and what is missing."""
    output = say("explain", plan, "publish", "--param", "target=build").out
    assert "\nRisk: high, `sudo make install`: " in output
    assert "\n  high: sudo make install: " in output
    policy = output.split("\nPolicy: ")[1].split("\n\n")[0].splitlines()
    assert policy == [
        "auto-approve medium, model-written low, 3 rules (plan.yml:6)",
        "  rule 1 (line 8) would deny: does not match",
        "  rule 2 (line 9) would require: matches",
        policy[3],
        "  Result: asked for (plan:rules.2)",
        "  Needs an approval of publish",
    ]
    assert policy[3].startswith("  asked for by plan:rules.2: rule 2 (plan.yml:9) requires an approval")
    output = say("explain", plan, "tidy", "--param", "target=dist").out
    assert "  Result: denied (plan:rules.1)\n" in output
    assert "  | rm -rf ${{ params.target }}\n" in output
    assert "  Needs an answer (--decide really=VALUE)\n" in say("explain", plan, "really").out


def test_explain_as_json(say: Say, plan: str, tmp_path: Path) -> None:
    """The decision of each policy, ceilings first; a step of a model has no place in the file yet."""
    (tmp_path / "ci.yml").write_text("rules: [{deny: {risk: high}}]\n")
    found = document(say("explain", plan, "publish", "--policy", "ci.yml", "--json"))
    decision = found["decision"]
    assert (decision["answer"], decision["rule"]) == ("deny", "ceiling:rules.1")
    assert [one["answer"] for one in decision["policies"]] == ["deny", "ask"]
    assert [(look["policy"], look["rule"], look["fits"]) for look in decision["rules"]] == [
        ("ci.yml", 1, True),
        ("plan", 1, False),
        ("plan", 2, True),
    ]
    assert found["step"]["origin"] == "file"
    assert found["gate"] is None
    made = document(say("explain", plan, "make", "--param", "target=build", "--json"))["decision"]
    assert [command["words"] for command in made["commands"]] == [["mkdir", "build"], ["echo", "x"]]


UNDONE = """\
version: 1
steps:
  - {id: look, run: ls, rollback: {run: "WORDS"}}
"""


def test_what_undoes_a_step_is_reviewed_with_it(say: Say, tmp_path: Path) -> None:
    """Its risk and the decision of a policy are in `show`, as text, markdown and JSON, and in `diff`."""
    worse, better = tmp_path / "worse.yml", tmp_path / "better.yml"
    worse.write_text(UNDONE.replace("WORDS", "rm -rf /tmp/other"), encoding="utf-8")
    better.write_text(UNDONE.replace("WORDS", "ls -l"), encoding="utf-8")
    ceiling = tmp_path / "ceiling.yml"
    ceiling.write_text("rules: [{deny: {command: 'rm *'}}]\n", encoding="utf-8")
    shown = say("show", str(worse), "--policy", str(ceiling)).out
    assert "Risk: high, 1 destructive" in shown
    assert "look: high, `rm -rf /tmp/other`" in shown
    assert "Denied: undo:look" in shown
    assert json.loads(say("show", str(worse), "--json").out)["risk"]["destructive"] == ["undo:look"]
    page = say("show", str(worse), "--format", "markdown", "--policy", str(ceiling)).out
    assert "1 step ·" in page
    assert "`undo:look` is denied" in page
    output = say("diff", str(better), str(worse)).out
    assert "highest risk of the changes: high; of the plan: read-only → high" in output
    assert "rollback.run: ls -l → rm -rf /tmp/other" in output
    assert "its rollback high: `rm -rf /tmp/other`" in output
