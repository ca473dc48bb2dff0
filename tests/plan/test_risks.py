"""The risk that a compiled step has: found once, by all that the plan says about it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from planrun.errors import InvalidPlan
from planrun.plan.compile import risks
from planrun.plan.load import check_bytes, load_bytes
from planrun.risk import actions

if TYPE_CHECKING:
    from planrun.model.plan import Plan, Step

HEAD = "version: 1\nparams: {target: {type: string, default: out}}\n"


def compiled(text: str) -> Plan:
    """Compile a plan without the cache."""
    return load_bytes((HEAD + text).encode(), "plan.yml", cache=False)


def only(step: str, top: str = "") -> Step:
    """Compile a plan of one step."""
    return compiled(f"{top}steps:\n  - {{id: a, {step}}}\n").steps[0]


FOUND = {
    "a reader": ("run: ls -l", "", "read-only", False),
    "a question": ("ask: {question: q}", "", "read-only", False),
    "checks": ("validate: [{files_exist: x}]", "", "read-only", False),
    "a program without a shell": ("exec: [ls, -l]", "", "read-only", False),
    "an output": ("run: 'echo x=1 >> \"$PLANRUN_OUTPUT\"'", "", "low", False),
    "a file of the workspace": ("run: 'echo x > \"$PLANRUN_WORKSPACE/y\"'", "", "low", False),
    "the folder of the step": ("run: 'echo x > ${{ step.dir }}/y'", "", "low", False),
    "the folder of the step, quoted": ("run: 'echo x > ${{ step.dir | sh }}/y'", "", "low", False),
    "a path above the workspace": ("run: 'echo x > ../y'", "", "high", False),
    "a path below the folder": ("run: 'echo x > ../y', workdir: sub", "", "low", False),
    "a folder that is not known": ("run: 'echo x > y', workdir: '${{ params.target }}'", "", "high", True),
    "a folder of the defaults": ("run: 'echo x > ../y'", "defaults: {workdir: a/b}\n", "low", False),
    "a value that is printed": ("run: 'echo ${{ params.target }}'", "", "read-only", True),
    "a value that is quoted": ("run: 'echo ${{ params.target | sh }}'", "", "read-only", True),
    "a value that decides": ("run: 'echo x > ${{ params.target }}'", "", "high", True),
    "a value in an argument": ("exec: [ls, '${{ params.target }}']", "", "", True),
    "a constant": ("run: \"echo x > ${{ 'y.txt' }}\"", "", "low", False),
    "a constant that would be refused": (
        "run: \"echo ${{ '; rm -rf /' }}\", condition: run.id == 'x'",
        "",
        "read-only",
        True,
    ),
    "another program": ("run: 'print(1)', shell: python3", "", "high", False),
    "the usual shell with options": ("run: ls, shell: sh -eu", "", "read-only", False),
    "the shell of the defaults": ("run: ls", "defaults: {shell: node}\n", "high", False),
    "a variable that changes programs": ("run: ls, env: {LD_PRELOAD: ./x.so}", "", "high", False),
    "such a variable of the plan": ("run: ls", "env: {PATH: ./bin}\n", "high", False),
    "a variable that is known": (
        "run: 'echo x > \"$OUT\"', env: {OUT: y}",
        "env: {OUT: /etc/x}\n",
        "low",
        False,
    ),
    "a variable of the plan": ("run: 'echo x > \"$OUT\"'", "env: {OUT: y}\n", "low", False),
    "a variable that is not known": (
        "run: 'echo x > \"$OUT\"'",
        "env: {OUT: '${{ params.target }}'}\n",
        "high",
        True,
    ),
    "an unknown variable without a part in it": (
        "run: ls",
        "env: {OUT: '${{ params.target }}'}\n",
        "read-only",
        False,
    ),
    "a file of variables": ("run: ls, env_file: a.env", "", "high", True),
    "a file of variables of the plan": ("run: ls", "env_file: a.env\n", "high", True),
    "our own names in a plan": ("run: 'echo x > /planrun-places/dir/y'", "", "high", False),
    "our own names beside the folder": (
        "run: 'echo x > ${{ step.dir }}/y; ls /planrun-places'",
        "",
        "high",
        False,
    ),
    "our own names in a variable of the plan": (
        "run: 'echo x > \"$A\"'",
        "env: {A: /planrun-places/dir/y}\n",
        "high",
        False,
    ),
    "our own names as a folder": ("run: 'echo x > y', workdir: /planrun-places/dir", "", "high", False),
}


@pytest.mark.parametrize("name", FOUND)
def test_the_risk_is_that_of_the_whole_action(name: str) -> None:
    """Text, folder, shell and variables count; what is not known counts as the worst, and leaves the risk open."""
    step, top, level, is_open = FOUND[name]
    found = only(step, top)
    assert level in ("", found.risk), found.risk_reason
    assert found.open_risk == is_open
    assert found.risk_reason
    assert "planrun-places" not in found.risk_reason or "planrun-places" in step
    assert found.risk_reason.isascii() or "…" in found.risk_reason


def test_effects_are_kept() -> None:
    """What an action does is known to rules of policies."""
    assert "writes" in only("run: 'echo x > y'").effects
    assert only("run: ls").effects == ()


def test_what_is_found_out_is_no_part_of_the_digest() -> None:
    """A later version may know more about a command; the plan that was reviewed stays the same."""
    from planrun.plan.compile.canonical import digest

    plan = compiled("steps: [{id: a, run: ls}]\n")
    changed = plan.but(
        steps=(plan.steps[0].but(risk="high", risk_reason="?", effects=("code",), open_risk=True),)
    )
    assert digest(changed) == plan.digest


DECLARED = {
    "higher": ("run: ls, risk: medium", ""),
    "equal": ("run: ls, risk: read-only", ""),
    "high is always enough": ("run: 'x ${{ params.target }}', risk: high", ""),
    "lower": ("run: 'echo x > /etc/y', risk: medium", "planrun finds high; `echo x > /etc/y`"),
    "lower, without a shell": ("exec: [tee, /etc/y], risk: low", "planrun finds high"),
    "lower than what is not known": (
        "run: 'echo x > ${{ params.target }}', risk: low",
        "remove `risk` to have the step classified again when all values are known",
    ),
    "lower than inline code": ("run: x, shell: python3, risk: low", "inline code of python3"),
    "lower by an environment": ("run: ls, env: {PATH: x}, risk: low", "its environment sets PATH"),
}


@pytest.mark.parametrize("name", DECLARED)
def test_a_step_cannot_declare_less_than_it_is(name: str) -> None:
    """A higher risk is taken over; a lower one is an error that names what was found, and why."""
    step, part = DECLARED[name]
    data = f"{HEAD}steps:\n  - {{id: a, {step}}}\n".encode()
    problems = check_bytes(data, "plan.yml").problems
    assert [each.code for each in problems] == ["E260"] * bool(part)
    assert all(part in each.text for each in problems)
    if not part:
        found = only(step)
        assert found.risk == found.declared_risk


def test_a_declared_risk_is_checked_together_with_all_else() -> None:
    """One pass reports it beside every other problem, also in a step with another error."""
    text = (
        "steps:\n  - {id: a, run: 'x > /y', risk: low, depends_on: [q]}\n"
        "  - {id: b, run: x, shell: 'sh \"', risk: low}\n"
    )
    problems = check_bytes((HEAD + text).encode(), "plan.yml").problems
    assert [each.code for each in problems] == ["E260", "E202", "E231"]


def test_what_a_failure_means_can_follow_from_the_risk() -> None:
    """Tolerated at low risk, fatal otherwise; a step and `defaults` override it, and gates ask no question."""
    policy = "policy: {on_failure: {read-only: continue, low: skip, otherwise: abort}}\n"
    steps = (
        "steps:\n  - {id: a, run: ls}\n  - {id: b, run: 'echo x > y'}\n  - {id: c, run: 'echo x > /etc/y'}\n"
        "  - {id: d, run: ls, on_failure: block}\n  - {id: e, ask: {question: q}}\n  - {id: f, run: ls, risk: high}\n"
    )
    words = [step.on_failure for step in compiled(policy + steps).steps]
    assert words == ["continue", "skip", "abort", "block", "block", "abort"]
    words = [step.on_failure for step in compiled("defaults: {on_failure: block}\n" + policy + steps).steps]
    assert words == ["block"] * 6


def test_equal_texts_in_other_surroundings_are_others() -> None:
    """The same text in another folder, environment or shell is another action."""
    steps = compiled(
        "steps:\n  - {run: 'echo x > ../y'}\n  - {run: 'echo x > ../y', workdir: sub}\n"
        "  - {run: 'echo x > ../y', workdir: sub, env: {PATH: x}}\n"
        "  - {run: 'echo x > ../y', workdir: sub, shell: node}\n"
        "  - {run: 'echo x > ../y', workdir: sub, env_file: x}\n  - {run: 'echo x > ../y', workdir: sub}\n"
        "  - {exec: [ls]}\n  - {run: ls}\n  - {run: ls, shell: node}\n"
    ).steps
    found = [step.risk for step in steps]
    assert found == ["high", "low", "high", "high", "high", "low", "read-only", "read-only", "high"]


def test_equal_actions_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand times the same command cost one classification."""
    asked: list[str] = []
    classify = actions.of_script

    def counted(script: str, *rest: object) -> object:
        asked.append(script)
        return classify(script, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(actions, "of_script", counted)
    compiled("steps:\n" + "".join(f"  - {{id: s{number}, run: make test}}\n" for number in range(50)))
    assert asked == ["make test"]


def test_validation_looks_at_declared_risks_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checking a plan classifies the steps that declare a risk, and no other."""
    asked: list[str] = []
    classify = actions.of_script

    def counted(script: str, *rest: object) -> object:
        asked.append(script)
        return classify(script, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(actions, "of_script", counted)
    check_bytes(b"version: 1\nsteps:\n  - {id: a, run: x}\n  - {id: b, run: y, risk: high}\n", "p")
    assert asked == ["y"]


def test_more_than_can_be_looked_into_is_high_until_it_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first commands of a file are looked into; what is beyond the limit is high, open, and no error."""
    monkeypatch.setattr(risks, "MAX_LOOKED_AT", 2 * (len("ls 0") + 1 + risks.ACTION))
    steps = "steps: [{run: ls 0}, {run: ls 1}, {run: ls 2, risk: low}, {run: ls 1}]\n"
    found = compiled(steps).steps
    assert [step.risk for step in found] == ["read-only", "read-only", "high", "read-only"]
    assert [step.open_risk for step in found] == [False, False, True, False]
    many = "steps: [{run: ls 0, risk: low}, {run: ls 1, risk: low}, {run: x > /y, risk: low}]\n"
    assert check_bytes((HEAD + many).encode(), "p").problems == ()


def test_a_plan_in_the_cache_needs_no_classifier(tmp_path: object) -> None:
    """The findings are cached with the plan: a second start loads nothing of the risk package."""
    program = (
        "import sys\nfrom planrun.plan import load\n"
        "steps = load.load_bytes(b'version: 1\\npolicy: {auto_approve: low}\\nsteps: [{run: ls}]', 'p').steps\n"
        "print(steps[0].risk, sorted(name for name in sys.modules if name.startswith('planrun.risk')) == [])"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
            env={"PLANRUN_CACHE_DIR": str(tmp_path), "PYTHONPATH": ":".join(sys.path)},
        ).stdout
        for _ in range(2)
    ]
    assert said == ["read-only False\n", "read-only True\n"]


def test_no_text_makes_the_loader_fail() -> None:
    """Every step has a risk, whatever it runs: an unknown command is high."""
    for text in (
        "'",
        "$(",
        "\\ue000",
        "a\\u200bb",
        "((((",
        "x" * 20_000,
        "${{ params.target }}${{ params.target }}",
    ):
        data = f'{HEAD}steps: [{{run: "{text}"}}]\n'.encode()
        try:
            plan = load_bytes(data, "p", cache=False)
        except InvalidPlan:
            continue
        assert plan.steps[0].risk == "high"
