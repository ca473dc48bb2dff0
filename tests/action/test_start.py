"""How the action's inputs become the words of one command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from action.origin import Origin, UnusableInputError
from action.start import Inputs, RefusedError, command
from tests.conftest import LIMIT

ROOT = Path(__file__).parents[2]
START = ROOT / "action" / "start.py"


def words(**inputs: str) -> list[str]:
    """Return the words that these inputs make, with plan.yml as the plan."""
    given = {"PLANRUN_INPUT_PLAN": "plan.yml"} | {f"PLANRUN_INPUT_{k.upper()}": v for k, v in inputs.items()}
    return command(Inputs(given), Origin())


def test_only_the_plan_is_needed() -> None:
    """Inputs that were left out, or are empty, add no word."""
    assert words(jobs="", strict="", params="\n", args="  ") == ["execute", "--", "plan.yml"]


def test_each_input_becomes_its_option() -> None:
    """Every option of the action reaches planrun by its name, and lists give one option a line."""
    assert words(
        jobs="4",
        strict="true",
        params="a=1\n\n  b=two words\n",
        only="x\ny",
        skip="z",
        report_dir="out",
        junit_dialect="ant",
        args="--tag 'a b' --no-rollback",
        policy="ci/policy.yml",
        approvals="approvals/*.json\n  a:b.json\n",
        auto_approve="medium",
        decide="auth=jwt\nsure=yes ",
        locked="true",
        upload="true",
    ) == [
        "execute",
        "--report-dir=out",
        "--auto-approve=medium",
        "--param=a=1",
        "--param=b=two words",
        "--policy=ci/policy.yml",
        "--approval=approvals/*.json",
        "--approval=./a:b.json",
        "--jobs=4",
        "--junit-dialect=ant",
        "--only=x",
        "--only=y",
        "--skip=z",
        "--decide=auth=jwt",
        "--decide=sure=yes ",
        "--strict",
        "--locked",
        "--html",
        "--tag",
        "a b",
        "--no-rollback",
        "--",
        "plan.yml",
    ]


@pytest.mark.parametrize(
    "text", ["$(id)", "`id`", "; id", "--policy=mine", "a=${{ github.token }}", "\x00", "*"]
)
def test_a_value_is_never_interpreted(text: str) -> None:
    """Shell syntax, patterns and option-like text in an input stay one word, and a plan is no option."""
    assert f"--param={text}" in words(params=text)
    assert words(plan=text)[-2:] == ["--", text]


def test_a_value_is_one_parameter_whatever_it_holds() -> None:
    """Only a line end begins the next parameter, and blanks at the end of a value belong to it."""
    given = "title=a\u2028release=true\x85b=c\x0bd=e\x1cf  \r\n  second=x\ty \n"
    assert [word for word in words(params=given) if word.startswith("--param")] == [
        "--param=title=a\u2028release=true\x85b=c\x0bd=e\x1cf  ",
        "--param=second=x\ty ",
    ]


def test_args_expand_nothing() -> None:
    """More arguments are split as a shell would, and nothing in them is looked up or run."""
    assert words(args="$HOME '$(id)' *")[1:-2] == ["$HOME", "$(id)", "*"]


@pytest.mark.parametrize(
    ("inputs", "reason"),
    [
        ({"plan": " "}, "input plan is empty"),
        ({"strict": "yes"}, "input strict must be true or false, not 'yes'"),
        ({"llm": "yes"}, "input llm must be true or false, not 'yes'"),
        ({"args": "'open"}, "input args: No closing quotation"),
        (
            {"mode": "look"},
            "input mode must be execute or review or comment or approve or shard or merge, not 'look'",
        ),
        ({"mode": "shard"}, "mode shard needs the input shard"),
        ({"mode": "merge"}, "mode merge needs the input reports"),
        ({"mode": "approve", "digest": "ab"}, "mode approve needs the input pull-request or environment"),
    ],
)
def test_an_unusable_input_is_named(inputs: dict[str, str], reason: str) -> None:
    """What cannot become part of the command is refused with the input's name."""
    with pytest.raises(UnusableInputError, match=reason):
        words(**inputs)


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ({"mode": "comment", "plan": ""}, "comment -- planrun-out/review.json"),
        ({"mode": "comment", "reports": "r.json", "pull_request": "7"}, "comment --pull-request=7 -- r.json"),
        (
            {"mode": "shard", "shard": "4", "legs": "test\nlint"},
            "shard --matrix --legs=test --legs=lint -- 4 plan.yml",
        ),
        ({"mode": "merge", "reports": "a\nb", "report_dir": "out"}, "merge --report-dir=out -- a b"),
        (
            {"mode": "approve", "environment": "release", "digest": "ab"},
            "approve --digest=ab --environment=release --output=planrun-approval.json -- plan.yml",
        ),
        (
            {"mode": "approve", "pull_request": "auto", "params": "a=1", "approval_file": "x.json"},
            "approve --param=a=1 --pull-request=auto --output=x.json -- plan.yml",
        ),
        (
            {"shard": "2/4", "legs": "test", "timings": "t.json"},
            "execute --shard=2/4 --timings=t.json --legs=test -- plan.yml",
        ),
    ],
)
def test_the_other_modes(inputs: dict[str, str], expected: str) -> None:
    """Each mode becomes the words of one command."""
    assert words(**inputs) == expected.split(" ")


@pytest.mark.parametrize(
    "origin", [Origin(proposed=True), Origin(doubtful="a comment"), Origin(fork="m/a", proposed=True)]
)
def test_no_approval_is_taken_in_a_pull_request(origin: Origin) -> None:
    """A pull request does not approve itself, whatever its comments say."""
    given = {
        "PLANRUN_INPUT_PLAN": "plan.yml",
        "PLANRUN_INPUT_MODE": "approve",
        "PLANRUN_INPUT_PULL_REQUEST": "7",
    }
    with pytest.raises(RefusedError, match="merged plans only"):
        command(Inputs(given), origin)


def test_a_plan_of_a_fork_does_not_run() -> None:
    """The refusal names its source, and what works."""
    with pytest.raises(RefusedError, match=r"comes from mallory/app.*`mode: review` works"):
        command(Inputs({"PLANRUN_INPUT_PLAN": "plan.yml"}), Origin(fork="mallory/app"))


def test_a_missing_folder_is_an_annotation_and_exit_2(tmp_path: Path) -> None:
    """A wrong working-directory is reported as GitHub shows errors, without a traceback."""
    ran = subprocess.run(
        [sys.executable, "-I", START],
        env=os.environ
        | {
            "GITHUB_WORKSPACE": str(tmp_path),
            "PLANRUN_INPUT_PLAN": "plan.yml",
            "PLANRUN_INPUT_WORKING_DIRECTORY": "gone",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 2
    assert ran.stdout == f"::error title=planrun::input working-directory: {tmp_path / 'gone'} is no folder\n"
    assert ran.stderr == ""


def test_the_runners_interrupt_cancels_the_run(tmp_path: Path) -> None:
    """SIGINT to the shell that the runner started, and to nothing else, is planrun's to handle: 130, with reports."""
    (tmp_path / "planrun-venv").symlink_to(sys.prefix)
    plan = tmp_path / "plan.yml"
    plan.write_text("version: 1\nsteps:\n  - id: long\n    run: touch started; sleep 300\n", "utf-8")
    steps = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))["runs"]["steps"]
    script = tmp_path / "script.sh"
    script.write_text(next(step["run"] for step in steps if step.get("id") == "planrun"), "utf-8")
    runner = {"GITHUB_WORKSPACE": tmp_path, "GITHUB_ACTION_PATH": ROOT, "RUNNER_TEMP": tmp_path}
    shell = subprocess.Popen(
        ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", script],
        env=os.environ
        | {name: str(path) for name, path in runner.items()}
        | {"PLANRUN_INPUT_PLAN": "plan.yml"},
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        while not (tmp_path / "started").exists():
            assert shell.poll() is None
            time.sleep(0.02)
        shell.send_signal(signal.SIGINT)
        assert shell.wait(LIMIT) == 130
    finally:
        shell.terminate()  # it has become planrun, which ends the step
        shell.wait()
    assert "cancelled" in (tmp_path / "planrun-out" / "ledger.json").read_text("utf-8")
