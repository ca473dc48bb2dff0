"""`planrun diff` says which steps of the new plan need an approval, which do not any more, and how it is written."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.test_diff import git

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Said

HEAD = "version: 1\nname: release\n"
STEPS = """\
steps:
  - {id: build, run: make all}
  - {id: push, run: git push --force origin main}
  - {id: publish, run: twine upload dist/*, depends_on: [build]}
"""
STRICT = 'policy:\n  rules:\n    - deny: {command: "git push*"}\n    - require: {step: publish}\n'
MILD = "policy:\n  rules:\n    - require: {step: build}\n"


def approvals(say: Callable[..., Said], old: str, new: str, *options: str) -> dict[str, Any]:
    """Return the approvals of the second of two plans from the JSON document."""
    for name, text in (("old.yml", old), ("new.yml", new)):
        with open(name, "w", encoding="utf-8") as file:
            file.write(text)
    said = say("diff", "old.yml", "new.yml", "--json", *options)
    assert said.code == 0, said.err
    found: dict[str, Any] = json.loads(said.out)["approvals"]
    return found


def test_gated_and_denied_steps_are_shown_with_their_rules(say: Callable[..., Said]) -> None:
    """Each with the rule that says so, and the command approves those that can be approved."""
    found = approvals(say, HEAD + STEPS, HEAD + STRICT + STEPS)
    assert [(gate["step"], gate["answer"], gate["rule"]) for gate in found["needed"]] == [
        ("push", "deny", "plan:rules.1"),
        ("publish", "ask", "plan:rules.2"),
    ]
    assert {gate["before"] for gate in found["needed"]} == {"allowed by default:auto_approve"}
    assert found["command"] == "planrun approve new.yml --step publish"
    assert found["lifted"] == []


def test_a_step_that_is_replaced_needs_no_approval(say: Callable[..., Said]) -> None:
    """It never starts, so it needs no approval, here and in `show`, which names its replacement."""
    steps = "steps:\n  - {id: a, run: ./a.sh}\n  - {id: b, run: ls, replaces: a}\n  - {id: c, run: ./c.sh}\n"
    found = approvals(say, HEAD + STEPS, HEAD + "policy: {auto_approve: low}\n" + steps)
    assert [gate["step"] for gate in found["needed"]] == ["c"]
    shown = say("show", "new.yml").out
    assert "| a (replaced by b) " in shown
    assert "\nNeeds approval: c (plan:auto_approve)\n" in shown


def test_the_command_writes_the_approval_that_is_shown(say: Callable[..., Said], tmp_path: Path) -> None:
    """Run as it stands, it writes a file that names the steps, and the digest that the difference named."""
    found = approvals(say, HEAD + STEPS, HEAD + STRICT + STEPS)
    assert say(*shlex.split(found["command"])[1:]).code == 0
    written = json.loads((tmp_path / "new.approval.json").read_text())
    assert (written["digest"], written["steps"]) == (found["digest"], ["publish"])


def test_required_parameters_stand_in_the_command(say: Callable[..., Said]) -> None:
    """An approval covers values, too: parameters without a default are named, and no digest is printed."""
    params = "params: {version: {type: string, required: true}, target: {type: string, default: a}}\n"
    found = approvals(say, HEAD + STEPS, HEAD + params + STRICT + STEPS)
    assert found["command"] == "planrun approve new.yml --step publish --param version=VALUE"
    assert (found["digest"], found["missing_params"]) == (None, ["version"])


def test_gates_that_the_new_policy_removes_are_shown(say: Callable[..., Said]) -> None:
    """The old plan's policy is asked about the new plan's steps."""
    found = approvals(say, HEAD + STRICT + STEPS, HEAD + MILD + STEPS)
    assert [(gate["step"], gate["before"]) for gate in found["lifted"]] == [
        ("push", "denied by plan:rules.1"),
        ("publish", "asked for by plan:rules.2"),
    ]
    out = say("diff", "old.yml", "new.yml").out
    assert "the policy allows more: what rules.1 (deny) restricted may now run more freely" in out
    assert "No longer asked for or denied" in out


def test_a_ceiling_overrides_the_plan(say: Callable[..., Said], tmp_path: Path) -> None:
    """--policy is asked as well, and no plan lifts it, so nothing is lifted that it asks for."""
    (tmp_path / "ceiling.yml").write_text("rules:\n  - require: {step: [push, publish]}\n")
    found = approvals(say, HEAD + STRICT + STEPS, HEAD + STEPS, "--policy", "ceiling.yml")
    assert [(gate["step"], gate["rule"]) for gate in found["needed"]] == [
        ("push", "ceiling:rules.1"),
        ("publish", "ceiling:rules.1"),
    ]
    assert found["lifted"] == []
    assert "(ceiling.yml)" in found["policy"]


def test_a_ceiling_is_read_from_a_commit(say: Callable[..., Said], tmp_path: Path) -> None:
    """`--policy COMMIT:PATH` is the committed policy, not that of the checkout; a missing one is an error."""
    (tmp_path / "ceiling.yml").write_text("rules:\n  - require: {step: publish}\n")
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "add", "ceiling.yml")
    git(tmp_path, "commit", "-q", "-m", "one")
    (tmp_path / "ceiling.yml").write_text("auto_approve: high\n")
    found = approvals(say, HEAD + STEPS, HEAD + STEPS, "--policy", "main:ceiling.yml")
    assert [gate["step"] for gate in found["needed"]] == ["publish"]
    for name in ("main:other.yml", "other.yml", "nowhere:ceiling.yml"):
        assert say("diff", "old.yml", "new.yml", "--policy", name).code == 2


def test_unanswered_questions_are_shown(say: Callable[..., Said]) -> None:
    """Yes and no can be approved, other answers cannot, and a question that a policy answers does not wait."""
    gates = (
        "  - {id: sure, ask: {question: Sure?}}\n"
        "  - {id: known, ask: {question: Sure?}}\n"
        "  - {id: count, ask: {question: How many?, type: integer}}\n"
        "  - {id: which, decide: {question: Which?, options: [{label: a}, {label: b}]}}\n"
    )
    found = approvals(say, HEAD + STEPS, HEAD + "policy: {decisions: {known: true}}\n" + STEPS + gates)
    assert [(gate["step"], gate["answer"]) for gate in found["needed"]] == [
        ("sure", "answer"),
        ("count", "answer"),
        ("which", "answer"),
    ]
    assert found["command"] == "planrun approve new.yml --step sure"


def test_a_plan_that_is_asked_for_as_a_whole_is_approved_as_that(say: Callable[..., Said]) -> None:
    """Under `ask_for: plan` the command names no steps, whether a step is asked for or not."""
    found = approvals(say, HEAD + STEPS, HEAD + "policy: {ask_for: plan, auto_approve: low}\n" + STEPS)
    assert (found["whole_plan"], found["command"]) == (True, "planrun approve new.yml")
    assert "the plan as a whole, before anything starts" in say("diff", "old.yml", "new.yml").out
    found = approvals(say, HEAD + STEPS, HEAD + "policy: {ask_for: plan, auto_approve: high}\n" + STEPS)
    assert (found["whole_plan"], found["command"]) == (True, "planrun approve new.yml")


def test_the_command_can_be_copied_into_a_shell(say: Callable[..., Said], tmp_path: Path) -> None:
    """A path with a quote in it is quoted."""
    name = "it's; $(touch sprung).yml"
    (tmp_path / name).write_text(HEAD + MILD + STEPS)
    (tmp_path / "old.yml").write_text(HEAD + STEPS)
    found = json.loads(say("diff", "old.yml", f"./{name}", "--json").out)["approvals"]
    assert found["command"] == """planrun approve './it'"'"'s; $(touch sprung).yml' --step build"""


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_every_form_has_the_policy_the_steps_and_the_command(say: Callable[..., Said], form: str) -> None:
    """In text and in markdown stand the same answers as in the JSON document."""
    approvals(say, HEAD + STEPS, HEAD + STRICT + STEPS)
    out = say("diff", "old.yml", "new.yml", "--format", form).out
    assert "Policy in force: auto-approve high" in out.replace("\\", "")
    assert "denied by plan:rules.1" in out
    assert "planrun approve new.yml --step publish" in out


def test_a_plan_that_is_gone_needs_nothing(say: Callable[..., Said], tmp_path: Path) -> None:
    """Without a new plan there is no approval."""
    (tmp_path / "old.yml").write_text(HEAD + STRICT + STEPS)
    assert json.loads(say("diff", "old.yml", "/dev/null", "--json").out)["approvals"] is None
