"""`planrun lint` on the command line: forms, exit codes, what is left out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Said

PLAN = "version: 1\nsteps:\n  - id: lint\n    run: ruff check . || true\n"
CLEAN = "version: 1\nsteps:\n  - {id: a, run: ruff check .}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write a plan with one piece of advice, one without, and one that is none."""
    (tmp_path / "plan.yml").write_text(PLAN)
    (tmp_path / "clean.yml").write_text(CLEAN)
    (tmp_path / "bad.yml").write_text("version: 1\nsteps: []\n")
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.shows("X-08", "N-70")
def test_advice_is_never_an_error(say: Callable[..., Said]) -> None:
    """Advice is shown with its line and ends with 0, under --strict with 1; an invalid plan ends with 2."""
    said = say("lint", "plan.yml", "clean.yml")
    assert (said.code, said.err) == (0, "")
    assert "plan.yml:4:5: advice[L417]:" in said.out
    assert "clean.yml: no findings\n" in said.out
    assert say("lint", "plan.yml", "--strict").code == 1
    assert say("lint", "clean.yml", "--strict").code == 0
    assert say("validate", "plan.yml").out == "plan.yml: ok, 1 step\n"
    bad = say("lint", "plan.yml", "bad.yml", "--fix")
    assert bad.code == 2
    assert "bad.yml:2:8: error[" in bad.out


@pytest.mark.usefixtures("folder")
def test_forms_for_programs(say: Callable[..., Said]) -> None:
    """JSON, SARIF (a note) and GitHub (a notice) carry the same advice."""
    found = json.loads(say("lint", "plan.yml", "--json").out)
    assert found["valid"]
    assert [(each["code"], each["severity"], each["line"]) for each in found["problems"]] == [
        ("L417", "advice", 4)
    ]
    (run,) = json.loads(say("lint", "plan.yml", "--format", "sarif").out)["runs"]
    assert [each["level"] for each in run["results"]] == ["note"]
    assert run["tool"]["driver"]["rules"] == [
        {"id": "L417", "shortDescription": {"text": "a hidden failure"}}
    ]
    assert say("lint", "plan.yml", "--format", "github").out.startswith("::notice file=plan.yml,line=4,")


@pytest.mark.usefixtures("folder")
def test_advice_is_left_out_by_its_code(say: Callable[..., Said]) -> None:
    """`--ignore` leaves a code out; one that there is not is a usage error with the nearest."""
    assert say("lint", "plan.yml", "--ignore", "L417", "--strict").out == "plan.yml: no findings\n"
    said = say("lint", "plan.yml", "--ignore", "L471")
    assert said.code == 2
    assert 'unknown code of advice: "L471"' in said.err


HABITS = {
    'echo "a=1" >> "$GITHUB_OUTPUT"': ["L427"],
    "echo a=1 >>${GITHUB_ENV}": ["L427"],
    'echo "$HOME/bin" >> $GITHUB_PATH': ["L427"],
    "echo a=1 | tee -a $GITHUB_OUTPUT": ["L427"],
    "echo '::set-output name=a::1'": ["L427"],
    "GITHUB_OUTPUT=/dev/null\necho a=1 >> $GITHUB_OUTPUT": [],
    "echo $GITHUB_OUTPUT": [],
    "echo $FIRST": ["L428"],
    "echo ${FIRST:-none}": ["L428"],
    "echo $FIRSTLY": [],
    "FIRST=2 && echo $FIRST": [],
    "export FIRST=2; echo $FIRST": [],
    "echo $OWN": [],
}


@pytest.mark.parametrize("script", HABITS)
def test_habits_of_other_tools_are_found(
    say: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    """What other tools hand on between steps is found where it has no effect, and nowhere else."""
    monkeypatch.chdir(tmp_path)
    steps = [
        {"id": "a", "run": "export FIRST=1 OWN=1; export OWN=2"},
        {"id": "b", "depends_on": ["a"], "env": {"OWN": "3"}, "run": script},
    ]
    (tmp_path / "plan.yml").write_text(json.dumps({"version": 1, "steps": steps}))
    found = json.loads(say("lint", "plan.yml", "--json").out)["problems"]
    assert [each["code"] for each in found if each["code"] in ("L427", "L428")] == HABITS[script]


RELEASES = {
    "{auto_approve: medium}": ["deploy"],
    "{auto_approve: low}": [],
    "{auto_approve: medium, rules: [{require: {step: deploy}}]}": [],
    "{auto_approve: medium, rules: [{deny: {step: deploy}}]}": [],
}


@pytest.mark.parametrize("policy", RELEASES)
def test_a_release_that_the_policy_lets_run_is_found(
    say: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    """A step named deploy that a policy lets run is found; one that only reads, or behind a question, is not."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.yml").write_text(
        f"version: 1\npolicy: {policy}\nsteps:\n"
        "  - {id: deploy, run: ./deploy.sh prod}\n"
        "  - {id: release-notes, run: cat notes.md}\n"
        "  - {id: sure, ask: {question: Really?}}\n"
        "  - {id: publish, depends_on: [sure], run: ./publish.sh}\n"
        "  - {id: undeployed, run: ./x.sh}\n"
    )
    found = json.loads(say("lint", "plan.yml", "--json").out)["problems"]
    assert [each["line"] for each in found if each["code"] == "L429"] == [4 for _ in RELEASES[policy]]


def _codes(said: Said) -> dict[str, str]:
    """The codes of what was found, each with its step."""
    return {each["code"]: each["message"] for each in json.loads(said.out)["problems"]}


@pytest.mark.shows("N-69", "X-08")
def test_each_of_the_best_practices_has_a_rule(
    say: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Validate, approve what is risky, monitor, handle failures, roll back, log, timeouts; and names of steps."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.yml").write_text(
        "version: 1\nsteps:\n"
        "  - {id: publish, run: npm publish}\n"
        "  - {id: long, run: make benchmark, timeout: 45m}\n"
        "  - {id: fetch, run: curl -fsSLO https://example.com/data.csv}\n"
        "  - {id: hidden, run: make docs || true}\n"
        "  - {id: quiet, run: make site > /dev/null 2>&1}\n"
        "  - {run: make clean, verify: 'true'}\n"
    )
    found = _codes(say("lint", "plan.yml", "--json"))
    wanted = {
        *("L423", "L406"),  # validate: what was done is verified, by something that can fail
        *("L401", "L402"),  # approve what is risky, and say how it is undone
        "L424",  # monitor, and time limits that say when it hangs; L416 uses records: see below
        *("L403", "L417"),  # handle failures
        "L418",  # keep logs
        "L405",  # a name for each step
    }
    assert wanted <= set(found)


@pytest.mark.shows("N-69")
def test_a_timeout_close_to_the_usual_time_is_found(
    say: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L416 uses the durations of earlier runs: no finding without a run, nor with a longer timeout."""
    monkeypatch.chdir(tmp_path)
    plan = "version: 1\nsteps:\n  - {id: slow, run: sleep 1.2, timeout: %s}\n  - {id: b, run: ls}\n"
    (tmp_path / "plan.yml").write_text(plan % "1500ms")
    assert "L416" not in _codes(say("lint", "plan.yml", "--json"))
    (tmp_path / "plan.yml").write_text(plan % "1m")
    assert say("execute", "plan.yml").code == 0
    assert "L416" not in _codes(say("lint", "plan.yml", "--json"))
    (tmp_path / "plan.yml").write_text(plan % "1500ms")
    said = say("lint", "plan.yml")
    assert 'plan.yml:3:32: advice[L416]: step "slow" usually takes 1.' in said.out
    assert "; its timeout is 1s500ms\n" in said.out


@pytest.mark.shows("X-08")
def test_a_verification_that_is_missing_or_unsafe_is_found(
    say: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that changes more than the step does; and none at all, until a `validate` step waits for the other."""
    monkeypatch.chdir(tmp_path)
    plan = "version: 1\npolicy: {auto_approve: medium}\nsteps:\n"
    publish = "  - {id: publish, run: npm publish, idempotent: false, reversible: false}\n"
    (tmp_path / "plan.yml").write_text(plan + publish + "  - {id: b, run: ls, verify: rm -rf build}\n")
    assert set(_codes(say("lint", "plan.yml", "--json"))) == {"L423", "L407"}
    (tmp_path / "plan.yml").write_text(
        f"{plan}{publish}  - {{id: c, depends_on: [publish], validate: [{{commands_on_path: [ls]}}]}}\n"
    )
    assert _codes(say("lint", "plan.yml", "--json")) == {}
