"""A policy file is read by the same reader as a plan, and an empty or unknown key in it is an error."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from planrun.errors import InvalidPlan
from planrun.model.policy import Match, Policy, Rule
from planrun.plan.keys.policy import policy_in
from planrun.plan.printing import render_text
from planrun.plan.yaml.file import read_source

if TYPE_CHECKING:
    from pathlib import Path

    from planrun.plan.problems import Problem


def written(folder: Path, text: str) -> str:
    """Write a policy file and return its path."""
    path = folder / "policy.yml"
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("head", ["", "policy:\n"])
def test_both_forms_are_read(tmp_path: Path, head: str) -> None:
    """The mapping stands at the top, or under the only key `policy`."""
    indent = "  " if head else ""
    text = head + f"{indent}auto_approve: low\n{indent}rules: [{{deny: {{step: [publish, 'a-*']}}}}]\n"
    policy = policy_in(text.encode(), written(tmp_path, text))
    line = 2 if head else 1
    rule = Rule(verb="deny", match=Match(step=("publish", "a-*")), number=1, line=line + 1)
    assert policy == Policy(auto_approve="low", rules=(rule,), line=line)


WRONG = {
    "nothing": ("", "E006", 1, 1, "no policy in this file"),
    "only a comment": ("# none\n", "E006", 1, 1, "no policy in this file"),
    "an empty mapping": ("{}\n", "E113", 1, 1, "the policy is empty"),
    "an empty policy": ("policy: {}\n", "E113", 1, 9, "the policy is empty"),
    "a policy without value": ("policy:\n", "E103", 1, 8, "the policy has no value"),
    "a list": ("- deny: {step: a}\n", "E101", 1, 1, "expected a mapping with keys such as `auto_approve:`"),
    "an unknown key": ("auto_aprove: low\n", "E104", 1, 1, 'did you mean "auto_approve"'),
    "a key beside policy": (
        "policy: {auto_approve: low}\nversion: 1\n",
        "E104",
        1,
        1,
        'unknown key "policy"',
    ),
    "an unknown level": ("auto_approve: all\n", "E105", 1, 15, "must be"),
    "an empty rule": ("rules: [{}]\n", "E113", 1, 9, "write one of deny, require, allow"),
    "a rule without matcher": ("rules: [{deny: {}}]\n", "E113", 1, 16, "is empty"),
    "an unknown rule": ("rules: [{forbid: {step: a}}]\n", "E104", 1, 10, 'unknown key "forbid"'),
    "an unknown matcher": ("rules: [{deny: {stpe: a}}]\n", "E104", 1, 17, 'did you mean "step"'),
    "an unknown tool": ("rules: [{deny: {tool: rnu}}]\n", "E105", 1, 23, 'did you mean "run"'),
    "a plan": ("version: 1\nsteps: [{run: x}]\n", "E104", 1, 1, 'unknown key "version"'),
    "a tag": ("auto_approve: !x low\n", "E014", 1, 15, ""),
    "a key twice": ("auto_approve: low\nauto_approve: high\n", "E018", 2, 1, ""),
    "broken": ("auto_approve: [low\n", "E010", 1, 15, ""),
}


@pytest.mark.parametrize("name", WRONG)
def test_every_error_is_reported_with_its_place(tmp_path: Path, name: str) -> None:
    """No file that is not fully understood is a policy; the error has the form of errors in plans, and exit code 2."""
    text, code, line, col, part = WRONG[name]
    path = written(tmp_path, text)
    with pytest.raises(InvalidPlan) as caught:
        policy_in(read_source(path, "policy"), path)
    first = caught.value.problems[0]
    assert (first.code, first.line, first.col) == (code, line, col), first.text
    assert part in first.text
    assert caught.value.exit_code == 2
    assert render_text(caught.value.problems, caught.value.sources).startswith(
        f"{path}:{line}:{col}: error[{code}]"
    )


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    """Nothing blocks and no memory limit is exceeded: only a regular file of at most 8 MiB is read."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(b"#" * (8 << 20) + b"\n")
    for name, code in (("pipe", "E002"), ("", "E002"), ("large", "E003"), ("absent", "E001")):
        with pytest.raises(InvalidPlan) as caught:
            read_source(str(tmp_path / name), "policy")
        assert [each.code for each in caught.value.problems] == [code]
        assert "policy" in caught.value.problems[0].message


def test_steps_of_plans_are_not_looked_for() -> None:
    """A policy file covers many plans: a step or answer in it applies to the plan that has it."""
    warnings: list[Problem] = []
    text = b"rules: [{allow: {step: x}}]\ndecisions: {sure: true, n: 3}\n"
    policy = policy_in(text, "policy.yml", warnings)
    assert policy.decisions == {"sure": True, "n": 3}
    assert [each.code for each in warnings] == ["W303"]
