"""GitLab CI files that become plans by the command line, and run as their pipelines would."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from planrun.convert.convert import Order, convert

if TYPE_CHECKING:
    from pathlib import Path

    from tests.convert.conftest import Workspace

PIPELINE = """\
    include: {local: shared.yml}
    stages: [build, test, deploy]
    variables: {NAME: app, TARGET: "out-$NAME"}
    compile:
      extends: .base
      stage: build
      variables: {LEVEL: "2$NAME"}
      script: ["mkdir -p $TARGET", "echo $TARGET $LEVEL > $TARGET/x"]
      artifacts: {paths: [out-app/]}
    lint: {stage: build, script: [exit 3], allow_failure: true, retry: 1}
    unit:
      stage: test
      parallel: {matrix: [{V: [a, b]}]}
      script: ["cat out-app/x >> said", "echo unit $V >> said"]
      after_script: [echo after >> said]
    tagged: {stage: test, script: [echo tagged >> said], rules: [{if: '$CI_COMMIT_TAG =~ /^v\\d+$/'}]}
    manual: {stage: deploy, script: [echo manual >> said], when: manual}
    notify: {stage: deploy, when: on_failure, script: [echo notify >> said]}
    deploy: {stage: deploy, script: [!reference [.words, script], echo deploy >> said], only: [main, /^rel-.*$/]}
    """
SHARED = """\
.base: {before_script: [echo before >> said]}
.words: {script: [echo words >> said]}
"""


def piped(there: Workspace, *words: str, **env: str) -> list[str]:
    """Run the plan; returns what its steps wrote."""
    (there.folder / "said").unlink(missing_ok=True)
    ended = there.execute(*words, **env)
    assert ended.code == 0, ended.out + ended.err
    return there.said


def test_a_pipeline_runs_by_stages_rules_and_matrices(there: Workspace) -> None:
    """Stages wait for each other, rules read the runner's variables, manual jobs wait for a parameter."""
    (there.folder / "shared.yml").write_text(SHARED)
    ended = there.convert(PIPELINE, "--from", "gitlab")
    assert ended.code == 0, ended.err
    always = ["before", "out-app 2app", "unit a", "after", "out-app 2app", "unit b", "after"]
    assert piped(there) == always
    assert piped(there, CI_COMMIT_REF_NAME="rel-1", CI_COMMIT_TAG="v12") == [
        *always,
        "tagged",
        "words",
        "deploy",
    ]
    assert piped(there, "--param", "run_manual=true", CI_COMMIT_TAG="v1x") == [*always, "manual"]


def test_a_failure_blocks_later_stages_and_starts_what_waits_for_one(there: Workspace) -> None:
    """A job with `when: on_failure` runs after any earlier failure, though the stage between was blocked."""
    (there.folder / "shared.yml").write_text(SHARED)
    there.convert(PIPELINE.replace("mkdir -p $TARGET", "exit 1"), "--from", "gitlab")
    assert there.execute().code == 1
    assert there.said == ["before", "notify"]


@pytest.mark.parametrize(
    ("line", "finding"),
    [
        (
            "a: {trigger: {include: b.yml}}",
            "x.yml:1:4: refused[trigger]: a job that starts a pipeline, with `include`",
        ),
        (
            "a: {script: x, needs: [b]}",
            "x.yml:1:24: refused[needs]: a needs `b`, which is no job of this file",
        ),
        (
            "a: {script: x, rules: [{if: '$A =~ /(?=x)/'}]}",
            "refused[condition]: the pattern `/(?=x)/` has no",
        ),
        (
            "include: {remote: 'https://x/y.yml'}\na: {script: x}",
            "refused[include]: `include` of what is elsewhere",
        ),
        ("a: {script: x, id_tokens: {T: {aud: x}}}", "refused[id_tokens]: GitLab's identity tokens"),
        (
            "a: {script: [!reference [.b, script]]}",
            "refused[reference]: `!reference [.b, script]` names nothing",
        ),
    ],
)
def test_what_has_no_equivalent_is_refused_by_name(tmp_path: Path, line: str, finding: str) -> None:
    """With the place in the file."""
    path = tmp_path / "x.yml"
    path.write_text(f"{line}\n")
    found = convert(Order(file=str(path), source="gitlab"))
    texts = [
        f"x.yml:{each.line}:{each.col}: {each.text}" for each in found.findings if each.kind == "refused"
    ]
    assert found.is_refused
    assert any(finding in text for text in texts), texts


def test_a_stage_waits_for_all_before_it(there: Workspace) -> None:
    """A job with `needs` in between waits for no stage, so it does not stand for those before it."""
    ended = there.convert(
        """\
        stages: [test, mid, deploy]
        unit: {stage: test, script: [echo unit >> said, exit 1]}
        mid: {stage: mid, needs: [], script: [echo mid >> said]}
        deploy: {stage: deploy, script: [echo deploy >> said]}
        """,
        "--from",
        "gitlab",
    )
    assert ended.code == 0, ended.err
    assert there.execute().code == 1
    assert sorted(there.said) == ["mid", "unit"]


def test_environments_ask_and_credentials_are_needed(there: Workspace) -> None:
    """A job of an environment waits for an answer, and GitLab's credentials are secrets of the plan, never empty."""
    text = """\
        deploy:
          environment: production
          script: ['echo "[$CI_JOB_TOKEN]" >> said', test "$CI_JOB_TOKEN" = sesame-4711]
        after: {needs: [deploy], script: [echo after >> said]}
        """
    ended = there.convert(text, "--from", "gitlab")
    assert ended.code == 0, ended.err
    assert there.execute("--decide", "deploy.approve=yes").code == 2
    assert there.execute(CI_JOB_TOKEN="sesame-4711").code == 5
    assert there.said == []
    assert there.execute("--decide", "deploy.approve=yes", CI_JOB_TOKEN="sesame-4711").code == 0
    assert there.said == ["[sesame-4711]", "after"]
