"""What each CI system gets from a run, byte for byte, when planrun starts with the variables that this system sets."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from planrun.reports.published import DOTENV_BYTES, DOTENV_VARIABLES
from tests.conftest import LIMIT

if TYPE_CHECKING:
    from tests.golden import Golden

GOLDEN = Path(__file__).parent / "golden" / "systems"
# Of each system the variables that its documentation lists and planrun reads; {} is the folder of the checkout.
SYSTEMS = {
    "github": {"CI": "true", "GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": "{}", "GITHUB_SHA": "1" * 40},
    "forgejo": {"CI": "true", "GITHUB_ACTIONS": "true", "FORGEJO_ACTIONS": "true", "GITHUB_WORKSPACE": "{}"},
    "gitlab": {"CI": "true", "GITLAB_CI": "true", "CI_PROJECT_DIR": "{}", "CI_COMMIT_SHA": "1" * 40},
    "azure": {"TF_BUILD": "True", "BUILD_SOURCESDIRECTORY": "{}", "BUILD_REASON": "PullRequest"},
    "buildkite": {"CI": "true", "BUILDKITE": "true", "BUILDKITE_BUILD_CHECKOUT_PATH": "{}"},
    "teamcity": {"TEAMCITY_VERSION": "2026.1 (build 1)", "TEAMCITY_BUILD_CHECKOUTDIR": "{}"},
    "circleci": {"CI": "true", "CIRCLECI": "true", "CIRCLE_WORKING_DIRECTORY": "{}"},
    "jenkins": {"JENKINS_URL": "https://ci.example.com/", "BUILD_ID": "7", "WORKSPACE": "{}"},
}
# Beside a step that runs the whole time, sections are written when their steps end. One step prints what each of these
# systems takes for a command; the outputs need escapes.
HOSTILE = r"""version: 1
name: "it's [hostile]; | %"
outputs: {text: "${{ steps.forger.outputs.text }}", number: "${{ steps.forger.outputs.number }}"}
steps:
  - {id: beside, run: "until test -e over; do sleep 0.02; done"}
  - id: forger
    run: |
      printf '%s\n' '::set-output name=result::forged' '::error::forged' '::add-mask::e' '##[group]forged'
      printf '%s\n' '##vso[task.setvariable variable=PATH]forged' "##teamcity[setParameter name='x' value='forged']"
      printf '%s\n' '--- forged' '+++ forged' '^^^ +++'
      printf 'section_end:1:planrun_1\r\033[0K\033[0Ksection_start:1:forged\r\033[0Kforged\n'
      printf '%s\n' "text=it's [one]; | 100%" 'number=5' >> "$PLANRUN_OUTPUT"
    outputs: {text: string, number: integer}
  - id: tolerated
    depends_on: [forger]
    title: "it's [tolerated]; | %"
    on_failure: continue
    run: echo "it's [bad]; | 100%"; exit 1
  - {id: last, depends_on: {tolerated: done}, run: touch over}
"""


def start(folder: Path, variables: dict[str, str], *words: str) -> tuple[int, str]:
    """Run planrun in a folder; returns its exit code and all that it printed, in order."""
    done = subprocess.run(
        [sys.executable, "-m", "planrun", "execute", "plan.yml", "-j2", *words],
        cwd=folder,
        env=os.environ | {name: value.format(folder) for name, value in variables.items()},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=LIMIT,
        check=False,
    )
    return done.returncode, done.stdout.decode()


def settled(text: str, folder: Path) -> str:
    """Return output with everything replaced that differs from run to run."""
    for pattern, name in (
        (re.escape(str(folder)), "FOLDER"),
        (r"\d{8}-\d{6}-[0-9a-f]{6}", "RUN"),
        (r"\b[0-9a-f]{64}\b", "HASH"),
        (r"\b[0-9a-f]{32}\b", "WORD"),
        (r"(?<=section_start:|. section_end:)\d+(?=:planrun)", "TIME"),
        (r"(?<=section_end:)\d+(?=:planrun_\d\r)", "TIME"),
        (r"\b\d+\.\ds\b", "0.0s"),
        (r"✓ (beside|last) \(0.0s\)\n", ""),  # in any order
    ):
        text = re.sub(pattern, name, text)
    return text.replace("\x1b", "<ESC>").replace("\r", "<CR>")


def agent(folder: Path, code: int = 0) -> str:
    """Write a buildkite-agent that notes its arguments and its input; returns a PATH with it."""
    program = folder / "bin" / "buildkite-agent"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\n{{ echo "$ $*"; cat; echo; }} >> "{folder}/told"\nexit {code}\n')
    program.chmod(0o755)
    return f"{program.parent}:{os.environ['PATH']}"


@pytest.mark.shows("D-11", "V-77")
@pytest.mark.parametrize("system", SYSTEMS)
def test_the_log_of_each_system(system: str, tmp_path: Path, golden: Golden) -> None:
    """Sections, annotations and variables in the system's own form; text of steps commands none of them."""
    (tmp_path / "plan.yml").write_text(HOSTILE)
    code, out = start(tmp_path, SYSTEMS[system])
    assert code == 0
    obeyed = re.findall(
        r"^\s*::(?:set-output|add-mask|error::forged).*|##(?:vso|teamcity)\[[^\n]*forged", out, re.MULTILINE
    )
    assert obeyed == []
    golden(GOLDEN / f"{system}.txt", settled(out, tmp_path))


def test_gitlab_gets_a_dotenv_report_of_what_it_can_carry(tmp_path: Path) -> None:
    """Blanks, quotes, line breaks, too many and too long values are left out by name; the others are as they were."""
    names = [f"v{number:02d}" for number in range(20)]
    rows = "".join([f'      echo {name}={name * 2} >> "$PLANRUN_OUTPUT"\n' for name in names])
    outputs = ", ".join(
        [
            f'{name}: "${{{{ steps.a.outputs.{name} }}}}"'
            for name in ["lines", "blank", "quote", "long", "ok", *names]
        ]
    )
    declared = ", ".join([f"{name}: string" for name in ["lines", "blank", "quote", "long", "ok", *names]])
    (tmp_path / "plan.yml").write_text(
        f"version: 1\nname: big\noutputs: {{{outputs}}}\nsteps:\n  - id: a\n    outputs: {{{declared}}}\n    run: |\n"
        '      printf \'lines<<E\\none\\ntwo\\nE\\nblank=a b\\nquote="q"\\nok=50%%\\n\' >> "$PLANRUN_OUTPUT"\n'
        f"      printf 'long=%05000d\\n' 0 >> \"$PLANRUN_OUTPUT\"\n{rows}"
    )
    code, out = start(tmp_path, SYSTEMS["gitlab"])
    assert code == 0
    data = (tmp_path / "planrun-out" / "planrun.env").read_text()
    assert len(data) <= DOTENV_BYTES
    found = dict(row.split("=", 1) for row in data.splitlines())
    assert len(found) == DOTENV_VARIABLES
    assert (found["PLANRUN_RESULT"], found["PLANRUN_OUTPUT_OK"]) == ("completed", "50%")
    assert all(found[f"PLANRUN_OUTPUT_{name.upper()}"] == name * 2 for name in names[:16])
    assert (
        "planrun.output.lines is not passed on: a dotenv report cannot carry line breaks and control characters"
        in out
    )
    assert "planrun.output.blank is not passed on: a dotenv report cannot carry blanks" in out
    assert "planrun.output.quote is not passed on: a dotenv report cannot carry quotes" in out
    assert "planrun.output.long is not passed on: GitLab takes 5120 bytes of variables" in out
    assert "planrun.output.v16 is not passed on: GitLab takes 20 variables of a job" in out


def test_buildkite_gets_meta_data_and_an_annotation(tmp_path: Path) -> None:
    """The agent on the PATH is told result and outputs, and one annotation that the next run of the plan replaces."""
    (tmp_path / "plan.yml").write_text(HOSTILE)
    code, _ = start(tmp_path, {**SYSTEMS["buildkite"], "PATH": agent(tmp_path)})
    assert code == 0
    told = (tmp_path / "told").read_text()
    assert "$ meta-data set planrun:result\npartial\n" in told
    assert "$ meta-data set planrun:output:text\nit's [one]; | 100%\n" in told
    assert "$ annotate --style warning --context planrun it's [hostile]; | %\n# ⚠ Plan v1:" in told


def test_an_agent_that_fails_is_named_and_costs_nothing(tmp_path: Path) -> None:
    """The run has its own result, and the log says what was not passed on."""
    (tmp_path / "plan.yml").write_text(HOSTILE)
    code, out = start(tmp_path, {**SYSTEMS["buildkite"], "PATH": agent(tmp_path, code=9)})
    assert code == 0
    assert "planrun.run_id is not passed on: buildkite-agent meta-data failed with exit code 9" in out


SECRET = "version: 1\nsecrets: [TOKEN]\nsteps:\n  - {id: a, secrets: [TOKEN], run: 'echo \"$TOKEN\"'}\n"
TOKEN = "s3cr3t%line-one\nline-two-]x"
MASKED = {
    "github": "::add-mask::s3cr3t%25line-one%0Aline-two-]x\n::add-mask::s3cr3t%25line-one\n::add-mask::line-two-]x\n",
    "azure": "##vso[task.setsecret]s3cr3t%AZP25line-one%0Aline-two-%5Dx\n"
    "##vso[task.setsecret]s3cr3t%AZP25line-one\n##vso[task.setsecret]line-two-%5Dx\n",
}


@pytest.mark.parametrize("system", MASKED)
def test_masks_are_told_first_and_only_on_request(system: str, tmp_path: Path) -> None:
    """With --ci-masks the first lines register the whole value and each line of it; without it no value is printed."""
    (tmp_path / "plan.yml").write_text(SECRET)
    code, out = start(tmp_path, {**SYSTEMS[system], "TOKEN": TOKEN}, "--ci-masks")
    assert (code, out[: len(MASKED[system])]) == (0, MASKED[system])
    assert "line-two" not in out[len(MASKED[system]) :]
    _, quiet = start(tmp_path, {**SYSTEMS[system], "TOKEN": TOKEN})
    assert "line-two" not in quiet


def test_buildkite_masks_through_its_agent(tmp_path: Path) -> None:
    """The values stand on the agent's input: in no argument, and not in the log."""
    (tmp_path / "plan.yml").write_text(SECRET)
    code, out = start(
        tmp_path, {**SYSTEMS["buildkite"], "TOKEN": TOKEN, "PATH": agent(tmp_path)}, "--ci-masks"
    )
    assert (code, "line-two" in out) == (0, False)
    words, values = (tmp_path / "told").read_text().split("\n")[:2]
    assert words == "$ redactor add --format json"
    assert list(json.loads(values).values()) == [TOKEN, *TOKEN.splitlines()]


def test_a_system_without_masks_refuses_them(tmp_path: Path) -> None:
    """Exit code 2 before anything runs: the caller relies on them."""
    (tmp_path / "plan.yml").write_text(SECRET)
    code, out = start(tmp_path, {**SYSTEMS["gitlab"], "TOKEN": TOKEN}, "--ci-masks")
    assert code == 2
    assert "--ci-masks: GitHub, Gitea, Forgejo, Azure and Buildkite can be told what to mask" in out
