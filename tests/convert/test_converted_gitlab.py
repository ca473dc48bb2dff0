"""GitLab CI files that become plans by the command line, and run as their pipelines would."""

from __future__ import annotations

import subprocess
from shutil import which
from typing import TYPE_CHECKING

import pytest
import yaml

if TYPE_CHECKING:
    from collections.abc import Callable

    from planrun.convert.convert import Converted
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
    """Stages wait for each other, rules read the runner's variables, manual jobs wait for an answer."""
    (there.folder / "shared.yml").write_text(SHARED)
    ended = there.convert(PIPELINE, "--from", "gitlab")
    assert ended.code == 0, ended.err
    always = ["before", "out-app 2app", "unit a", "after", "out-app 2app", "unit b", "after"]
    assert there.execute().code == 5
    assert there.said == always
    no = ("--decide", "manual.approve=false")
    assert piped(there, *no) == always
    assert piped(there, *no, CI_COMMIT_REF_NAME="rel-1", CI_COMMIT_TAG="v12") == [
        *always,
        "tagged",
        "words",
        "deploy",
    ]
    assert piped(there, "--decide", "manual.approve=true", CI_COMMIT_TAG="v1x") == [*always, "manual"]


def test_a_failure_blocks_later_stages_and_starts_what_waits_for_one(there: Workspace) -> None:
    """A job with `when: on_failure` runs after any earlier failure, though the stage between was blocked."""
    (there.folder / "shared.yml").write_text(SHARED)
    there.convert(PIPELINE.replace("mkdir -p $TARGET", "exit 1"), "--from", "gitlab")
    assert there.execute().code == 1
    assert there.said == ["before", "notify"]


CHAIN = "".join(f".e{n}: {{extends: .e{n + 1}}}\n" for n in range(14)) + ".e14: {script: [x]}\n"
NESTED = "".join(f".r{n}: {{s: [!reference [.r{n + 1}, s]]}}\n" for n in range(14)) + ".r14: {s: [x]}\n"
LEFT = {  # the job `a`, with other parts of the file, and the finding with its place
    "a: {trigger: {include: b.yml}}": "1:1: todo[trigger]: `trigger` is not converted (job a)",
    "a: {script: x, release: {tag_name: v1}}": "1:1: todo[release]: `release` is not converted (job a)",
    "a: {script: x, secrets: {A: {vault: b}}}": "1:1: todo[secrets]: `secrets` is not converted (job a)",
    "a: {run: [{name: x, step: y}]}": "1:1: todo[run]: `run` is not converted (job a)",
    "a: {script: x, id_tokens: {T: {aud: x}}}": "1:1: todo[id_tokens]: `id_tokens` is not converted (job a)",
    "a: {script: x, tags: [saas-windows-medium]}": "1:1: todo[tags]: a job for another system: saas-windows-medium",
    "a: {script: x, needs: [b]}": "1:1: todo[needs]: it needs `b`, which is no job of this file (job a)",
    "a: {script: x, stage: b}": '1:1: todo[stage]: there is no stage "b" (job a)',
    "a: {script: x, rules: [{if: '$A =~ /(?=x)/'}]}": "1:1: todo[condition]: the pattern `/(?=x)/` has no",
    "a: {script: x, rules: [{when: always}, {when: on_success}]}": "",
    "a: {script: x, rules: [{if: $A, when: always}, {if: $B}]}": "1:1: todo[rules]: rules with `when` of different",
    "a: {script: x, rules: [{exists: [$A/x]}]}": "1:1: todo[exists]: `exists` of",
    "a: {script: x, rules: [{if: $A, variables: {B: c}}]}": "1:1: todo[rules]: a rule with `variables`",
    "a: {script: x, inherit: {variables: false}}": "1:1: todo[inherit]: `inherit` is not converted (job a)",
    "a: {script: x, allow_failure: {exit_codes: [7]}}": "1:1: todo[allow-failure]: failures that count by their exit codes",
    "variables: {L: 'me:$CI_JOB_TOKEN', M: '[$L]'}\na: {script: 'x $M'}": "2:1: todo[secret]: `M` is a credential of GitLab, or made of",
    "variables: {L: '$CI_REGISTRY_USER/x'}\na: {script: x, image: $L}": "2:1: todo[secret]: `L` is a credential of GitLab",
    "a: {script: x, rules: [{if: $CI_JOB_TOKEN}]}": "1:1: todo[secret]: `CI_JOB_TOKEN` is a credential of GitLab",
    "a: {script: x, when: delayed, start_in: 1h}": "1:1: todo[when]: `when: delayed` (job a)",
    "a: {script: [!reference [.b, script]]}": "1:1: todo[reference]: `!reference [.b, script]` names nothing here",
    "a: {extends: .b, script: x}": "1:1: todo[extends]: a extends `.b`, which is not there (job a)",
    ".b: {extends: .c}\n.c: {extends: .b}\na: {extends: .b, script: x}": "3:1: todo[extends]: .b extends itself",
    f"{CHAIN}a: {{extends: .e0, script: x}}": "16:1: todo[extends]: a extends `.e11` by more than 11 levels (job a)",
    f"{NESTED}a: {{script: [!reference [.r0, s]]}}": "16:1: todo[reference]: `!reference [.r10, s]` stands more than",
    "a: {script: 'echo $[[ inputs.x ]]'}": "1:1: todo[inputs]: it has inputs of `spec` (job a)",
    "a: {parallel: {matrix: [{V: [x]}]}, script: x, rules: [{if: $V}]}": "1:1: todo[condition]: a condition that reads",
    "a: {parallel: {matrix: [{V: [$B]}]}, script: x}": "1:1: todo[parallel]: a matrix with variables",
}


@pytest.mark.parametrize("text", LEFT)
def test_a_job_that_is_not_certain_is_left_with_its_text(made: Callable[..., Converted], text: str) -> None:
    """The plan has a step without an action, with the text of the job, and nothing is refused."""
    found = made(f"{text}\n", source="gitlab")
    assert found.text
    step = yaml.safe_load(found.text)["steps"][-1]
    told = [f"{each.line}:{each.col}: {each.text}" for each in found.findings if each.kind != "differs"]
    if not LEFT[text]:
        assert not told
        return
    assert "run" not in step
    assert step["description"] == text.splitlines()[-1]
    assert any(each.startswith(LEFT[text]) for each in told), told


INCLUDES = {
    "{remote: 'https://x/y.yml'}": "of what is elsewhere",
    "{project: a/b, file: c.yml}": "of what is elsewhere",
    "{component: a/b@1}": "of what is elsewhere",
    "{local: loop.yml}": "which includes itself",
    "{local: gone.yml}": "which cannot be read",
    "{local: 'deep*.yml'}": "only sometimes",
    "{local: deep0.yml}": "which stands more than 12 levels deep",
    "{local: shared.yml, rules: [{if: $A}]}": "only sometimes",
}


@pytest.mark.parametrize("include", INCLUDES)
def test_an_include_that_is_not_here_is_a_step_that_all_others_wait_for(
    there: Workspace, include: str
) -> None:
    """Its text is the description, and what it says of the reason is true."""
    (there.folder / "loop.yml").write_text("include: loop.yml\n")
    for level in range(15):
        (there.folder / f"deep{level}.yml").write_text(f"include: deep{level + 1}.yml\n")
    ended = there.convert(f"include: {include}\na: {{script: [echo a]}}\n", "--from", "gitlab")
    assert ended.code == 0
    assert INCLUDES[include] in ended.err
    assert there.steps["a"]["depends_on"] == ["include"]
    assert "include: " in there.steps["include"]["description"]


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


CONDITIONS = [  # a rule, the variables of the run, whether the job runs
    ("if: $A =~ /^1\\$/", {"A": "1$"}, True),
    ("if: $A =~ /^1\\$/", {"A": "1$2"}, True),
    ("if: $A =~ /^1\\$/", {"A": "1"}, False),
    ("if: $A =~ /^v1$/", {"A": "v1"}, True),
    ("if: $A =~ /^v1$/", {"A": "v12"}, False),
    ("exists: [gone, there]", {}, True),
    ("exists: ['{gone,there}']", {}, True),
    ("exists: [gone, lost]", {}, False),
    ("if: $A == 'Main'", {"A": "main"}, False),
    ("if: ($A || $B) && !($C)", {"B": "x"}, True),
    ("if: ($A || $B) && !($C)", {"B": "x", "C": "y"}, False),
    ("if: $NAME == 'app-x' && $CI_JOB_NAME == 'job'", {}, True),
]


@pytest.mark.parametrize(("rule", "env", "runs"), CONDITIONS)
def test_a_rule_decides_as_in_gitlab(there: Workspace, rule: str, env: dict[str, str], *, runs: bool) -> None:
    """Texts, patterns, files and variables of the file."""
    (there.folder / "there").touch()
    text = f"variables: {{X: x, NAME: app-$X}}\njob: {{script: [echo job >> said], rules: [{{{rule}}}]}}\n"
    text += "last: {needs: [], script: ['true']}\n"
    ended = there.convert(text, "--from", "gitlab")
    assert ended.code == 0, ended.err
    assert (piped(there, **env) == ["job"]) is runs


def test_what_the_runner_sets_comes_from_git_and_the_job(there: Workspace) -> None:
    """The commit, its branch, the folder, the job and its stage; what is not known is named with its line."""
    for words in (["init", "-qb", "rel/One"], ["commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run(
            ["git", "-c", "user.name=x", "-c", "user.email=x@y", *words], cwd=there.folder, check=True
        )
    sha = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=there.folder, check=True, capture_output=True, text=True
    ).stdout.strip()
    text = """\
        variables: {DIR: $CI_PROJECT_DIR/out, OF: for-$CI_JOB_NAME}
        a:
          stage: build
          script:
            - echo $CI_COMMIT_SHA $CI_COMMIT_SHORT_SHA $CI_COMMIT_BRANCH $CI_COMMIT_REF_SLUG >> said
            - echo $DIR $OF $CI_JOB_STAGE $CI $GITLAB_CI [$CI_COMMIT_TAG] >> said
            - echo $CI_PIPELINE_IID >> said
          only: [branches]
        """
    ended = there.convert(text, "--from", "gitlab")
    assert "ci.yml:7:7: differs[variable]: `$CI_PIPELINE_IID` is known to GitLab's runner alone" in ended.err
    assert piped(there, CI_PIPELINE_IID="7") == [
        f"{sha} {sha[:8]} rel/One rel-one",
        f"{there.folder}/out for-a build true true []",
        "7",
    ]


def test_the_question_of_an_environment_has_the_values_of_the_file(there: Workspace) -> None:
    """Those of a matrix stay by name; the image has the value of its instance."""
    text = """\
        variables: {NAME: app}
        a:
          parallel: {matrix: [{V: [eu, us]}]}
          environment: {name: $NAME/$V}
          image: python:$V
          script: [x]
        """
    assert there.convert(text, "--from", "gitlab").code == 0
    question = there.steps["a.approve"]["ask"]["question"]
    assert question == "Run a in the environment app/$V?"
    assert there.steps["a"]["container"]["image"] == "python:${{ matrix.V }}"


STAGES = [  # jobs after `bad: {stage: one, script: [exit 1]}`, and those of them that run
    ("x: {stage: two, when: always, script: S}\ny: {stage: three, script: S}", ["x"]),
    ("x: {stage: two, rules: [{when: on_failure}], script: S}\ny: {stage: three, script: S}", ["x"]),
    ("x: {stage: two, rules: [{if: $NO}], script: S}\ny: {stage: three, script: S}", []),
    ("x: {stage: two, needs: [], script: S}\ny: {stage: three, needs: [x], script: S}", ["x", "y"]),
    ("x: {stage: one, script: S, rules: [{if: $NO}]}\ny: {stage: two, needs: [x], script: S}", []),
    (
        "x: {stage: one, script: S, rules: [{if: $NO}]}\ny: {stage: two, needs: [{job: x, optional: true}], script: S}",
        ["y"],
    ),
    ("x: {stage: one, needs: [], script: S, allow_failure: true}\ny: {stage: two, script: S}", ["x"]),
    ("x: {stage: .post, script: S}\ny: {stage: .pre, script: S}", ["y"]),
    ("x: {stage: two, script: S, allow_failure: true}\ny: {stage: three, script: S}", []),
]


@pytest.mark.parametrize(("jobs", "ran"), STAGES)
def test_stages_beside_needs_after_a_failure(there: Workspace, jobs: str, ran: list[str]) -> None:
    """What GitLab would run although a job of the first stage fails, and nothing else."""
    jobs = jobs.replace("script: S", "script: [echo $CI_JOB_NAME >> said]")
    text = f"stages: [one, two, three]\nbad: {{stage: one, script: [exit 1]}}\n{jobs}\n"
    ended = there.convert(text, "--from", "gitlab")
    assert ended.code == 0, ended.err
    assert there.execute().code == 1
    assert sorted(there.said) == ran


def test_values_of_a_dotenv_report_reach_later_jobs_whole(there: Workspace) -> None:
    """A value may end with `=`, and the last line may lack its end."""
    text = """\
        stages: [one, two]
        a: {stage: one, script: ["printf 'A=eA=\\nB=b c' > x.env"], artifacts: {reports: {dotenv: x.env}}}
        b: {stage: two, script: ['echo "$A|$B" >> said']}
        """
    assert there.convert(text, "--from", "gitlab").code == 0
    assert piped(there) == ["eA=|b c"]


def test_except_leaves_out_for_any_of_its_keys(there: Workspace) -> None:
    """`only` asks for all of its keys, `except` for one."""
    text = """\
        a: {script: [echo a >> said], except: {refs: [tags], variables: [$SKIP]}}
        b: {script: [echo b >> said], only: {refs: [branches], variables: [$SKIP]}}
        """
    assert there.convert(text, "--from", "gitlab").code == 0
    assert piped(there, SKIP="1") == ["b"]
    assert piped(there) == ["a"]


def test_a_manual_job_that_may_stay_undone_holds_what_needs_it_alone(there: Workspace) -> None:
    """Later stages do not wait for it; a job with `needs` does, and is skipped without it."""
    text = """\
        stages: [one, two]
        hand: {stage: one, when: manual, script: [echo hand >> said]}
        mine: {stage: two, needs: [hand], script: [echo mine >> said]}
        late: {stage: two, script: [echo late >> said]}
        """
    assert there.convert(text, "--from", "gitlab").code == 0
    assert there.execute().code == 5
    assert there.said == ["late"]
    assert piped(there, "--decide", "hand.approve=false") == ["late"]
    assert sorted(piped(there, "--decide", "hand.approve=true")) == ["hand", "late", "mine"]


def test_a_manual_job_of_a_rule_holds_later_stages(there: Workspace) -> None:
    """Its question is asked only where the rule holds, and a refusal fails the run."""
    text = """\
        stages: [one, two]
        hand: {stage: one, script: [echo hand >> said], rules: [{if: $AUTO}, {if: $ASK, when: manual}]}
        late: {stage: two, script: [echo late >> said]}
        """
    assert there.convert(text, "--from", "gitlab").code == 0
    assert piped(there) == ["late"]
    assert piped(there, AUTO="1") == ["hand", "late"]
    assert piped(there, "--decide", "hand.approve=yes", ASK="1") == ["hand", "late"]
    (there.folder / "said").unlink()
    assert there.execute(ASK="1").code == 5
    assert there.execute("--decide", "hand.approve=no", ASK="1").code == 3
    assert there.said == []


NEEDED = [  # the job that `mine` needs, whether it is asked for, and what runs
    ("{stage: one, allow_failure: true, script: S, rules: [{if: $NO}]}", None, ["late"]),
    ("{stage: one, allow_failure: true, script: S}", None, ["hand", "late", "mine"]),
    ("{stage: one, when: manual, script: S}", "true", ["hand", "late", "mine"]),
    ("{stage: one, when: manual, script: S}", "false", ["late"]),
]


@pytest.mark.parametrize(("job", "answer", "ran"), NEEDED)
def test_a_failure_that_does_not_count_stops_nothing_but_a_job_left_out_does(
    there: Workspace, job: str, answer: str | None, ran: list[str]
) -> None:
    """A tolerated job that failed lets run what needs it; one that its rules or an answer leave out does not."""
    job = job.replace("script: S", "script: [echo hand >> said, exit 1]")
    text = f"""\
        stages: [one, two]
        hand: {job}
        mine: {{stage: two, needs: [hand], script: [echo mine >> said]}}
        late: {{stage: two, script: [echo late >> said]}}
        """
    assert there.convert(text, "--from", "gitlab").code == 0
    words = [] if answer is None else ["--decide", f"hand.approve={answer}"]
    assert sorted(piped(there, *words)) == ran


def test_reports_and_questions_are_not_lost_with_an_action(there: Workspace) -> None:
    """An abstract job is still asked for, and its variables still reach later jobs; other reports are told."""
    text = """\
        stages: [one, two]
        a: {stage: one, environment: live, release: {}, script: x, artifacts: {reports: {dotenv: x.env}}}
        b: {stage: two, script: echo $A, artifacts: {reports: {junit: j.xml}}}
        """
    ended = there.convert(text, "--from", "gitlab")
    assert ended.code == 0
    assert there.steps["a"]["depends_on"] == ["a.approve"]
    assert "ask" in there.steps["a.approve"]
    assert "x.env" in there.steps["b"]["run"]
    assert "differs[reports]: GitLab shows the reports of junit" in ended.err


def test_what_is_told_of_retries_images_workflows_and_variables(there: Workspace) -> None:
    """None of these changes its meaning unseen."""
    text = """\
        workflow: {rules: [{if: $A, variables: {B: c}}]}
        a: {image: alpine, retry: {max: 1, when: script_failure}, script: "false | true"}
        b: {image: alpine, script: "[[ -n x ]]"}
        """
    ended = there.convert(text, "--from", "gitlab")
    assert ended.code == 0
    assert "todo[workflow]: the variables that the rules of `workflow` set are missing" in ended.err
    assert "differs[retry]: every failure is tried again" in ended.err
    assert "those of the file win, also over those that start a pipeline" in ended.err
    assert "differs[image]: scripts in images run by `sh -e`" in ended.err
    assert (there.steps["a"]["shell"], there.steps["b"]["shell"]) == ("sh -e", "bash -eo pipefail")
    script = there.steps["a"]["run"].replace("false | true", "false | true; echo end")
    shells = [["busybox", "sh", "-e"], ["bash", "-e"]]
    ran = [
        subprocess.run([*shell, "-c", script], check=False, capture_output=True)
        for shell in shells
        if which(shell[0])
    ]
    assert ran
    assert all(each.returncode == 1 and not each.stdout for each in ran)
