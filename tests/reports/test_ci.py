"""Which CI system it is, and what a console may do there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from planrun.reports.ci import coloured, from_checkout, sections_of, style, vendor

if TYPE_CHECKING:
    from collections.abc import Mapping


@pytest.mark.parametrize(
    ("environ", "found"),
    [
        ({}, ""),
        ({"CI": "true"}, "other"),
        ({"CI": "woodpecker"}, "other"),
        ({"BUILD_NUMBER": "7"}, "other"),
        ({"GITHUB_ACTIONS": "true", "CI": "true"}, "github"),
        ({"GITHUB_ACTIONS": "true", "GITEA_ACTIONS": "true"}, "gitea"),
        ({"GITHUB_ACTIONS": "true", "FORGEJO_ACTIONS": "true"}, "gitea"),
        ({"GITHUB_ACTIONS": "true", "ACT": "true"}, "github"),
        ({"GITLAB_CI": "true"}, "gitlab"),
        ({"TF_BUILD": "True"}, "azure"),
        ({"BUILDKITE": "true"}, "buildkite"),
        ({"JENKINS_URL": "x", "BUILD_ID": "1"}, "jenkins"),
        ({"CIRCLECI": "true"}, "circleci"),
        ({"TEAMCITY_VERSION": "x"}, "teamcity"),
        ({"GITHUB_ACTIONS": "true", "CI": "false"}, ""),
        ({"CI": "0"}, ""),
    ],
)
def test_detection(environ: Mapping[str, str], found: str) -> None:
    """The vendor's own variable decides, Gitea before GitHub; CI=false means none."""
    assert vendor(environ) == found


@pytest.mark.parametrize(
    ("environ", "choice", "terminal", "expected"),
    [
        ({}, "auto", True, True),
        ({}, "auto", False, False),
        ({"TERM": "dumb"}, "auto", True, False),
        ({"NO_COLOR": "1"}, "auto", True, False),
        ({"NO_COLOR": ""}, "auto", True, True),
        ({"FORCE_COLOR": "1"}, "auto", False, True),
        ({"FORCE_COLOR": "0"}, "auto", True, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, "auto", True, False),
        ({"NO_COLOR": "1"}, "always", False, True),
        ({"FORCE_COLOR": "1"}, "never", True, False),
    ],
)
def test_colours(environ: Mapping[str, str], choice: str, *, terminal: bool, expected: bool) -> None:
    """The flag counts before NO_COLOR, that before FORCE_COLOR, that before the terminal."""
    assert coloured(environ, choice, terminal=terminal) is expected


@pytest.mark.parametrize(
    ("environ", "terminal", "expected"),
    [
        ({"TERM": "xterm"}, True, "live"),
        ({"TERM": "xterm"}, False, "plain"),
        ({"TERM": "dumb"}, True, "plain"),
        ({}, True, "plain"),
        ({"TERM": "xterm", "CI": "1"}, True, "plain"),
        ({"TERM": "xterm", "FORCE_COLOR": "1"}, False, "plain"),
        ({"TERM": "xterm", "GITHUB_ACTIONS": "true"}, True, "groups"),
        ({"GITLAB_CI": "true"}, False, "groups"),
        ({"JENKINS_URL": "x"}, False, "plain"),
    ],
)
def test_styles(environ: Mapping[str, str], expected: str, *, terminal: bool) -> None:
    """Only a person's terminal is animated, and FORCE_COLOR does not make it one."""
    assert style(environ, terminal=terminal) == expected


def test_marks_are_escaped() -> None:
    """Titles and messages cannot leave the mark they stand in."""
    github = sections_of("github").problem("a,b:c.yml", 3, "t:1,\n", "50%\nx" + "y" * 5000)
    assert github.startswith("::error file=a%2Cb%3Ac.yml,line=3,title=t%3A1%2C%0A::50%25%0Axy")
    assert github.count("\n") == 1
    assert len(github) < 4100
    azure = sections_of("azure").problem("a;b].yml", 3, "t", "m]\n")
    assert azure == "##vso[task.logissue type=error;sourcepath=a%3Bb%5D.yml;linenumber=3]t: m%5D%0A\n"


def test_gitlab_sections_have_names_of_their_own() -> None:
    """Two sections never share a name, and each is closed by its own."""
    gitlab = sections_of("gitlab")
    first, second = [f"{gitlab.begin('a')}x\n{gitlab.end()}" for _ in range(2)]
    assert first.count(":planrun_1") == second.count(":planrun_2") == 2
    assert first.startswith("\x1b[0Ksection_start:")
    assert "planrun_1[collapsed=true]\r\x1b[0Ka\nx\n\x1b[0Ksection_end:" in first


@pytest.mark.parametrize(
    ("vendor", "root"),
    [
        ("GITHUB_ACTIONS", "GITHUB_WORKSPACE"),
        ("GITEA_ACTIONS", "GITHUB_WORKSPACE"),
        ("GITLAB_CI", "CI_PROJECT_DIR"),
        ("TF_BUILD", "BUILD_SOURCESDIRECTORY"),
        ("BUILDKITE", "BUILDKITE_BUILD_CHECKOUT_PATH"),
        ("CIRCLECI", "CIRCLE_WORKING_DIRECTORY"),
        ("JENKINS_URL", "WORKSPACE"),
    ],
)
def test_a_path_from_the_root_of_the_checkout(
    vendor: str, root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each system names its checkout; a path inside is relative to it, through any link."""
    (tmp_path / "repo" / "app").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "repo")
    monkeypatch.chdir(tmp_path / "repo" / "app")
    environ = {vendor: "true", root: str(tmp_path / "link")}
    assert from_checkout("./ci/plan.yml", environ) == "app/ci/plan.yml"
    assert from_checkout("../plan.yml", environ) == "plan.yml"
    assert from_checkout(str(tmp_path / "repo" / "plan.yml"), environ) == "plan.yml"
    assert from_checkout("../../other/./plan.yml", environ) == "../../other/plan.yml"
    assert from_checkout("./plan.yml", {root: str(tmp_path / "link")}) == "plan.yml"
    assert from_checkout("", environ) == ""
