"""What a workflow does on GitHub, its plan does here: converted and executed by the command line."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest
import yaml

if TYPE_CHECKING:
    from tests.convert.conftest import Workspace


# Machines.


def test_instances_for_other_systems_of_include_are_left_out(there: Workspace) -> None:
    """`os` that only `include` names decides, too; what is left has its values."""
    said = there.play("""\
        jobs:
          t:
            runs-on: ${{ matrix.os || 'ubuntu-latest' }}
            strategy:
              matrix:
                build: [linux, win, mac, plain]
                include:
                  - {build: linux, os: ubuntu-22.04, target: gnu}
                  - {build: win, os: windows-latest, target: msvc}
                  - {build: mac, os: macos-14, target: darwin}
                  - {build: extra, os: windows-2022, target: extra}
            steps:
              - run: echo "${{ matrix.build }} ${{ matrix.os }} ${{ matrix.target }}" >> said
        """)
    assert sorted(said) == ["linux ubuntu-22.04 gnu", "plain  "]


def test_axes_of_mappings_keep_their_values(there: Workspace) -> None:
    """A mapping beside another axis is unfolded, less the instances for other systems."""
    said = there.play("""\
        jobs:
          t:
            runs-on: ${{ matrix.os.runner }}
            strategy:
              matrix:
                os: [{name: linux, runner: ubuntu-latest}, {name: win, runner: windows-latest}]
                n: [1, 2]
            steps: [{run: 'echo "${{ matrix.os.name }} ${{ matrix.n }}" >> said'}]
        """)
    assert sorted(said) == ["linux 1", "linux 2"]


ELSEWHERE = """\
    jobs:
      a: {runs-on: macos-latest, steps: [{run: echo never >> said}, {run: echo never >> said}]}
      b:
        runs-on: ${{ matrix.os }}
        strategy: {matrix: {os: [windows-latest, macos-13]}}
        steps: [{run: echo never >> said}]
      c:
        runs-on: ${{ github.ref == 'x' && 'macos-15' || 'ubuntu-latest' }}
        needs: [a, b]
        steps: [{run: echo never >> said}]
    """


def test_a_job_for_another_system_never_runs_here(there: Workspace) -> None:
    """It is one step that has to be written before anything runs."""
    assert there.convert(ELSEWHERE).err.count("todo[runs-on]") == 3
    assert {name: "run" in step for name, step in there.steps.items()} == {"a": False, "b": False, "c": False}
    assert there.execute().code == 2
    assert there.said == []


def test_a_job_for_another_system_that_nothing_needs_is_left_out(there: Workspace) -> None:
    """It is named."""
    ended = there.convert("""\
        jobs:
          mac: {runs-on: macos-latest, steps: [{run: echo never >> said}]}
          linux: {runs-on: ubuntu-latest, steps: [{run: echo linux >> said}]}
        """)
    assert (
        "ci.yml:2:8: differs[other-machines]: the plan is for one machine with Linux: the job mac"
        in ended.err
    )
    assert (list(there.steps), there.execute().code, there.said) == (["linux"], 0, ["linux"])


# Artifacts.

ARTIFACT = """\
    jobs:
      a:
        runs-on: ubuntu-latest
        steps:
          - run: echo made >> said
          - uses: actions/upload-artifact@v4
            if: {condition}
            with: {{path: missing.log, if-no-files-found: {word}}}
    """


@pytest.mark.parametrize(
    ("condition", "word", "code"),
    [
        ("", "warn", 0),
        ("", "ignore", 0),
        ("failure()", "error", 0),
        ("always()", "error", 0),
        ("", "error", 1),
    ],
)
def test_missing_artifacts_fail_only_what_they_fail_there(
    there: Workspace, condition: str, word: str, code: int
) -> None:
    """Only an upload without a condition that says `error` needs the files."""
    assert there.convert(ARTIFACT.format(condition=condition, word=word)).code == 0
    assert there.execute().code == code


# Containers.


def test_the_steps_of_a_job_share_its_container(there: Workspace) -> None:
    """One container for all scripts of the job, of each instance; they run by `sh -e`, as there."""
    text = """\
        jobs:
          a:
            runs-on: ubuntu-latest
            container: {image: "alpine:3.20", env: {A: b}}
            steps: [{run: apk add git}, {run: git init, working-directory: sub}, {run: cat log, if: always()}]
        """
    ended = there.convert(text)
    assert ended.code == 0, ended.err
    plan = yaml.safe_load((there.folder / "plan.yml").read_text())
    assert plan["containers"] == {"a": {"image": "alpine:3.20", "env": {"A": "b"}}}
    assert [step["container"] for step in there.steps.values()] == [{"shared": "a"}] * 3
    assert {step["shell"] for step in there.steps.values()} == {"sh -e"}
    matrix = text.replace("alpine:3.20", "alpine:${{ matrix.v }}").replace(
        "steps:", "strategy: {matrix: {v: ['3.20', '3.21']}}\n            steps:"
    )
    assert there.convert(matrix).code == 0
    plan = yaml.safe_load((there.folder / "plan.yml").read_text())
    assert plan["containers"]["a"]["per"] == "instance"
    assert [step["container"] for step in there.steps.values()] == [{"shared": "a"}] * 3


def test_what_a_script_in_a_container_adds_to_the_path_reaches_the_next(there: Workspace) -> None:
    """The PATH inside is the image's: the folders are put before it there."""
    ended = there.convert("""\
        jobs:
          a:
            runs-on: ubuntu-latest
            container: alpine:3.20
            steps: [{run: echo /opt/bin >> $GITHUB_PATH}, {run: tool}]
        """)
    assert ended.code == 0, ended.err
    first, second = there.steps.values()
    assert first["container"] == second["container"] == {"shared": "a"}
    assert second["env"]["FOLDERS"] == "${{ default(steps['a.1'].outputs.github_path, '') }}"
    assert second["run"] == 'export PATH="$FOLDERS$PATH"\ntool'


def test_a_container_of_some_instances(there: Workspace) -> None:
    """An instance whose image is empty runs on the machine."""
    ended = there.convert("""\
        jobs:
          a:
            runs-on: ubuntu-latest
            container: ${{ matrix.image }}
            strategy: {matrix: {include: [{n: 1}, {n: 2, image: "alpine:3.20"}]}}
            steps: [{run: echo ran >> said}]
        """)
    assert ended.code == 0, ended.err
    assert there.execute("--only", "a.1").code == 0
    assert there.said == ["ran"]


def test_an_empty_container_is_none(there: Workspace) -> None:
    """`container: ${{ matrix.image }}` without a value runs on the machine."""
    said = there.play("""\
        jobs:
          a:
            runs-on: ubuntu-latest
            container: ${{ matrix.image }}
            strategy: {matrix: {include: [{n: 1}, {n: 2, image: ""}]}}
            steps: [{run: echo ran >> said}]
        """)
    assert said == ["ran", "ran"]


# The background.

SERVED = """\
    jobs:
      a:
        runs-on: ubuntu-latest
        steps:
          - run: (sleep 1; echo up > up; exec sleep 100) &
          - {name: wait, run: "while [ ! -f up ]; do sleep 0.1; done; cat up >> said", LATER}
    """


def test_a_server_in_the_background_is_left(there: Workspace) -> None:
    """It would end with its step, so later scripts would miss it; what no script follows is kept."""
    ended = there.convert(SERVED.replace(", LATER", ""))
    assert "todo[background]" in ended.err
    assert "service: true" in ended.err
    assert [("run" in step) for step in there.steps.values()] == [False, True]
    alone = SERVED.partition("          - {name: wait")[0]
    assert "background" not in there.convert(alone).err


@pytest.mark.parametrize("script", ["a && b", "a 2>&1", "a &> log", "a & wait", 'curl "x?a=1&b=2"', "# a &"])
def test_what_only_looks_like_the_background_is_not_reported(there: Workspace, script: str) -> None:
    """Signs that mean something else, and jobs that are waited for."""
    steps = [{"run": script.replace("& wait", "&\nwait")}, {"run": "true"}]
    text = yaml.safe_dump({"jobs": {"a": {"runs-on": "ubuntu-latest", "steps": steps}}})
    assert "background" not in there.convert(text).err


# Variables, PATH, outputs.


def test_variables_and_path_reach_later_steps(there: Workspace) -> None:
    """A skipped step changes nothing, whatever way a script writes them; the PATH grows at its front."""
    said = there.play("""\
        jobs:
          a:
            runs-on: ubuntu-latest
            steps:
              - run: |
                  mkdir tools
                  printf '#!/bin/sh\\necho tool\\n' > tools/my-tool
                  chmod +x tools/my-tool
                  echo "$PWD/tools" >> "$GITHUB_PATH"
              - run: echo "V=$(my-tool)" >> $GITHUB_ENV
              - {run: 'echo "V=never" >> $GITHUB_ENV', if: github.ref == 'refs/heads/none'}
              - run: |
                  if true; then echo "W=computed" >> "$GITHUB_ENV"; fi
                  { echo 'L<<END'; echo one; echo two; echo END; } >> $GITHUB_ENV
              - run: echo "$V ${{ env.V }} $W ${{ env.W }} ${U-unset}" >> said; echo "$L" >> said
        """)
    assert said == ["tool tool computed computed unset", "one", "two"]


def test_instances_have_variables_folders_and_conditions_of_their_own(there: Workspace) -> None:
    """Each step of an instance has its own environment, shell options, folder and `if`."""
    (there.folder / "sub").mkdir()
    said = there.play("""\
        jobs:
          a:
            runs-on: ubuntu-latest
            strategy: {matrix: {x: [1, 2]}}
            steps:
              - {run: 'echo "A=one-${{ matrix.x }}" >> $GITHUB_ENV', env: {LOCAL: here}}
              - {run: 'echo "A=changed" >> $GITHUB_ENV', if: matrix.x == 1}
              - {run: exit 3, continue-on-error: true}
              - run: echo "${{ env.A }} ${LOCAL-unset} $OWN ${PWD##*/}" >> ../said
                env: {OWN: "own-${{ matrix.x }}"}
                working-directory: sub
              - {run: "false | true; echo never >> said", shell: bash, continue-on-error: true}
        """)
    assert said == ["changed unset own-1 sub", "one-2 unset own-2 sub"]


def test_a_secret_reaches_only_the_step_that_lists_it(there: Workspace) -> None:
    """Other steps of the same instance do not see it."""
    ended = there.convert("""\
        jobs:
          a:
            runs-on: ubuntu-latest
            strategy: {matrix: {x: [1]}}
            steps:
              - {run: 'echo "first ${TOKEN-unset}" >> said'}
              - {run: '[ "$TOKEN" = value-of-it ] && echo second >> said', env: {TOKEN: "${{ secrets.TOKEN }}"}}
        """)
    assert ended.code == 0, ended.err
    assert there.execute(TOKEN="value-of-it").code == 0
    assert there.said == ["first unset", "second"]


def test_instances_go_their_own_way_through_several_steps(there: Workspace) -> None:
    """A failed instance keeps back only its own later steps; outputs and statuses are those of the same instance."""
    ended = there.convert("""\
        jobs:
          a:
            runs-on: ubuntu-latest
            strategy: {fail-fast: false, matrix: {x: [1, 2, 3]}}
            steps:
              - {id: o, run: 'echo "v=out-${{ matrix.x }}" >> $GITHUB_OUTPUT; [ ${{ matrix.x }} != 2 ]'}
              - run: echo "read ${{ steps.o.outputs.v }}" >> said
              - {if: "steps.o.outputs.v == 'out-3'", run: 'echo "three ${{ matrix.x }}" >> said'}
              - {if: failure(), run: 'echo "failed ${{ matrix.x }}" >> said'}
              - {if: always(), run: 'echo "always ${{ matrix.x }}" >> said'}
        """)
    assert ended.code == 0, ended.err
    assert there.execute().code == 1
    assert sorted(there.said) == sorted(
        ["read out-1", "read out-3", "three 3", "failed 2", "always 1", "always 2", "always 3"]
    )


# Names and values.


def test_long_names_of_instances_are_numbered(there: Workspace) -> None:
    """An instance whose values are too long for an id gets a number; its values stay."""
    long = "x" * 150
    said = there.play(f"""\
        jobs:
          a:
            runs-on: ubuntu-latest
            strategy: {{matrix: {{include: [{{a: {long}, b: {long}1}}, {{a: {long}, b: {long}2}}]}}}}
            steps: [{{run: 'echo "${{{{ matrix.b }}}}" | tail -c 3 >> said'}}]
        """)
    assert said == ["x1", "x2"]


def test_what_the_loader_rejects_is_a_finding(there: Workspace) -> None:
    """A step that would make no valid plan is left to a person."""
    text = """\
        jobs:
          a:
            runs-on: ubuntu-latest
            steps:
              - {run: echo ok >> said}
              - {run: echo never >> said, env: {PLANRUN_X: "1"}}
        """
    ended = there.convert(text)
    assert (ended.code, "ci.yml:6:9: todo[not-valid]" in ended.err) == (0, True), ended.err
    assert ["run" in step for step in there.steps.values()] == [True, False]


# Actions.


def test_python_is_a_virtual_environment_of_the_version(there: Workspace) -> None:
    """`python`, `python3` and `pip` are of one environment, of the version that was asked for."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    text = f"""\
        jobs:
          a:
            runs-on: ubuntu-latest
            steps:
              - {{uses: actions/setup-python@v5, with: {{python-version: "{version}"}}}}
              - run: |
                  python -c 'import sys; print("%d.%d" % sys.version_info[:2], sys.prefix != sys.base_prefix)' >> said
                  [ "$(command -v python)" = "$(dirname "$(command -v python3)")/python" ] && echo same >> said
        """
    assert there.play(text) == [f"{version} True", "same"]
    matrix = text.replace('"' + version + '"', '"${{ matrix.v }}"').replace(
        "steps:", f'strategy: {{matrix: {{v: ["{version}"]}}}}\n            steps:'
    )
    (there.folder / "said").unlink()
    assert there.play(matrix) == [f"{version} True", "same"]


@pytest.mark.parametrize(
    ("wanted", "code"), [("20", 0), ("20.x", 0), ("v20.11.1", 0), ("2", 1), ("18", 1), ("lts/*", 0)]
)
def test_the_version_of_a_language_is_checked(there: Workspace, wanted: str, code: int) -> None:
    """Another version than the one that was asked for fails the step, in plain words."""
    tools = there.folder / "tools"
    tools.mkdir()
    for name in ("node", "npm"):
        (tools / name).write_text("#!/bin/sh\necho v20.11.1\n")
        (tools / name).chmod(0o755)
    text = f"""\
        jobs:
          a:
            runs-on: ubuntu-latest
            strategy: {{matrix: {{v: ["{wanted}"]}}}}
            steps: [{{uses: actions/setup-node@v4, with: {{node-version: "{wanted}"}}}}, {{run: echo ran >> said}}]
        """
    for each in (text, text.replace(f'node-version: "{wanted}"', 'node-version: "${{ matrix.v }}"')):
        if wanted == "lts/*" and each is not text:
            continue
        assert there.convert(each).code == 0
        ended = there.execute(PATH=f"{tools}:{os.environ['PATH']}")
        assert ended.code == code, ended.out + ended.err
        assert (f"node {wanted} is needed, and 20.11.1 is here" in ended.out + ended.err) == bool(code)


GREEN = """\
    jobs:
      a: {runs-on: ubuntu-latest, steps: [{run: CODE}]}
      b: {runs-on: ubuntu-latest, if: github.ref == 'none', steps: [{run: "true"}]}
      green:
        needs: [a, b]
        if: always()
        runs-on: ubuntu-latest
        steps:
          - {if: "needs.a.result != 'success' || needs.b.result == 'failure'", run: exit 1}
      told:
        needs: [a, b]
        if: always() && contains(needs.*.result, 'failure')
        runs-on: ubuntu-latest
        steps: [{run: echo failure >> said}]
    """


@pytest.mark.parametrize(("script", "said"), [("true", []), ("false", ["failure"])])
def test_results_of_all_needed_jobs(there: Workspace, script: str, said: list[str]) -> None:
    """`needs.*.result` and `needs.a.result` see how each job ended."""
    ended = there.convert(GREEN.replace("CODE", f'"{script}"'))
    assert ended.code == 0, ended.err
    assert there.execute().code == (1 if said else 0)
    assert there.said == said


def test_the_result_of_a_job_of_tolerated_steps(there: Workspace) -> None:
    """A job none of whose steps counts is a success."""
    said = there.play("""\
        jobs:
          a: {runs-on: ubuntu-latest, steps: [{run: "false", continue-on-error: true}]}
          b:
            needs: a
            if: always()
            runs-on: ubuntu-latest
            steps: [{run: 'echo "${{ needs.a.result }}" >> said'}]
        """)
    assert said == ["success"]


def test_labels_of_a_pull_request_are_a_parameter(there: Workspace) -> None:
    """A list that is empty where nothing is given."""
    text = """\
        jobs:
          a:
            runs-on: ubuntu-latest
            if: contains(github.event.pull_request.labels.*.name, 'full')
            steps: [{run: echo full >> said}]
        """
    assert there.play(text) == []
    assert there.execute("--param", 'event_pull_request_labels_name=["full"]').code == 0
    assert there.said == ["full"]


def test_an_output_of_a_cache_says_that_nothing_was_found(there: Workspace) -> None:
    """What is installed only without a cache is installed."""
    said = there.play("""\
        jobs:
          a:
            runs-on: ubuntu-latest
            steps:
              - {id: cache, uses: actions/cache@v4, with: {path: x, key: y}}
              - {run: echo install >> said, if: steps.cache.outputs.cache-hit != 'true'}
        """)
    assert said == ["install"]


def test_names_of_jobs_are_kept(there: Workspace) -> None:
    """As the title of the only step, or as a tag by which the steps of a job are chosen."""
    text = """\
        jobs:
          a: {name: The first job, runs-on: ubuntu-latest, steps: [{run: echo a >> said}]}
          b: {name: The second, runs-on: ubuntu-latest, steps: [{run: echo b1 >> said}, {run: echo b2 >> said}]}
        """
    assert there.convert(text).code == 0
    assert there.steps["a"]["title"] == "The first job"
    assert "# b: The second" in (there.folder / "plan.yml").read_text()
    assert there.execute("--tag", "b").code == 0
    assert there.said == ["b1", "b2"]


HANDED = {  # a script that sets V, and whether its text shows all names
    'echo "V=$(echo "a|b" | tr "|" -)" | tee -a "$GITHUB_ENV"': True,
    "{ echo V=a-b; } >> $GITHUB_ENV": True,
    "{\n  echo 'V<<END'\n  echo a-b\n  echo END\n} >> ${GITHUB_ENV}": True,
    "cat >> $GITHUB_ENV <<EOF\nV=a-b\nEOF": True,
    "if true; then printf 'V=a-b' >> $GITHUB_ENV; fi": True,
    "echo X=1 > log; echo V=a-b >> $GITHUB_ENV": True,
    'for name in V; do echo "$name=a-b" >> "$GITHUB_ENV"; done': False,
    "cat some.env >> $GITHUB_ENV": False,
    "echo V=a-b >> $GITHUB_ENV; cat some.env >> $GITHUB_ENV": False,
    "echo V=a >> $GITHUB_ENV; echo V=b >> $GITHUB_OUTPUT": False,
}


@pytest.mark.parametrize("script", HANDED)
def test_variables_whose_names_a_text_shows_reach_later_steps(there: Workspace, script: str) -> None:
    """A script that may set others is left to a person."""
    steps = [{"run": script}, {"run": "echo $V ${{ env.V }} >> said"}]
    ended = there.convert(
        yaml.safe_dump({"jobs": {"a": {"runs-on": "x", "env": {"V": "old"}, "steps": steps}}})
    )
    assert (ended.code, "todo[github-env]" in ended.err) == (0, not HANDED[script]), ended.err
    assert ("run" in there.steps["a.1"]) == HANDED[script]
    if HANDED[script]:
        ended = there.execute()
        assert (ended.code, there.said) == (0, ["a-b a-b"]), ended.out + ended.err


def test_success_looks_at_all_jobs_before(there: Workspace) -> None:
    """A job does not run when a job further up failed or was skipped, whatever ran in between."""
    ended = there.convert("""\
        on: push
        jobs:
          test: {runs-on: ubuntu-latest, steps: [{run: echo test >> said}, {run: exit 1}]}
          report: {needs: test, if: always(), runs-on: ubuntu-latest, steps: [{run: echo report >> said}]}
          deploy: {needs: report, runs-on: ubuntu-latest, steps: [{run: echo deploy >> said}]}
          further:
            {needs: deploy, if: "!cancelled()", runs-on: ubuntu-latest, steps: [{run: echo further >> said}]}
          good:
            needs: test
            if: always() && needs.test.result == 'success'
            runs-on: ubuntu-latest
            steps: [{run: echo good >> said}]
          bad:
            needs: test
            if: always() && needs.test.result == 'failure'
            runs-on: ubuntu-latest
            steps: [{run: echo bad >> said}]
          off: {if: github.ref == 'none', runs-on: ubuntu-latest, steps: [{run: echo off >> said}]}
          anyway: {needs: off, if: always(), runs-on: ubuntu-latest, steps: [{run: echo anyway >> said}]}
          behind: {needs: anyway, runs-on: ubuntu-latest, steps: [{run: echo behind >> said}]}
          may: {continue-on-error: true, runs-on: ubuntu-latest, steps: [{run: exit 1}, {run: echo rest >> said}]}
          after: {needs: may, runs-on: ubuntu-latest, steps: [{run: echo after >> said}]}
        """)
    assert ended.code == 0, ended.err
    there.execute()
    assert sorted(there.said) == ["after", "anyway", "bad", "further", "report", "test"]


def test_an_environment_is_a_question(there: Workspace) -> None:
    """A job of an environment waits for an answer, and what needs it waits too."""
    ended = there.convert("""\
        on: push
        jobs:
          release: {environment: pypi, runs-on: ubuntu-latest, steps: [{run: echo released >> said}]}
          tell: {needs: release, runs-on: ubuntu-latest, steps: [{run: echo told >> said}]}
        """)
    assert ended.code == 0, ended.err
    assert there.execute().code == 5
    assert there.said == []
    assert there.execute("--decide", "release.approve=yes").code == 0
    assert there.said == ["released", "told"]


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("success() || failure()", []),
        ("!failure()", ["last"]),
        ("always() && (success() || failure())", []),
        ("!success()", ["last"]),
    ],
)
def test_a_job_that_was_skipped_neither_succeeded_nor_failed(
    there: Workspace, condition: str, said: list[str]
) -> None:
    """GitHub's `success()` of a job wants success of all before it, through others too."""
    assert (
        there.play(f"""\
        jobs:
          skipped: {{runs-on: x, if: github.ref == 'never', steps: [{{run: echo never >> said}}]}}
          between: {{runs-on: x, needs: skipped, if: always(), steps: [{{run: "true"}}]}}
          last: {{runs-on: x, needs: between, if: "{condition}", steps: [{{run: echo last >> said}}]}}
        """)
        == said
    )


def test_a_tolerant_job_stops_others_only_where_it_was_skipped(there: Workspace) -> None:
    """Its failure is none for those that need it; that it was skipped counts, through others too."""
    assert there.play("""\
        jobs:
          fails: {runs-on: x, if: github.ref != 'never', continue-on-error: true, steps: [{run: exit 1}]}
          after: {runs-on: x, needs: fails, steps: [{run: echo after >> said}]}
          skipped: {runs-on: x, if: github.ref == 'never', continue-on-error: true, steps: [{run: "true"}]}
          between: {runs-on: x, needs: skipped, if: always(), steps: [{run: "true"}]}
          never: {runs-on: x, needs: between, continue-on-error: true, steps: [{run: echo never >> said}]}
        """) == ["after"]


def test_the_steps_of_a_tolerant_job_see_its_failure(there: Workspace) -> None:
    """What runs after a failure runs, the rest is skipped, and the jobs that need it go on."""
    assert there.play("""\
        jobs:
          a:
            runs-on: x
            continue-on-error: true
            steps:
              - {id: one, run: exit 1}
              - {run: echo never >> said}
              - {if: failure(), run: echo failed >> said}
              - {if: "always() && steps.one.conclusion == 'failure'", run: echo seen >> said}
          b: {runs-on: x, needs: a, steps: [{run: echo after >> said}]}
        """) == ["failed", "seen", "after"]


def test_a_script_after_a_failure_sets_variables_in_a_matrix(there: Workspace) -> None:
    """Each instance has its own."""
    said = there.play("""\
        jobs:
          a:
            runs-on: x
            strategy: {matrix: {v: [1, 2]}}
            steps:
              - {if: "!failure()", run: 'echo V=${{ matrix.v }} >> $GITHUB_ENV'}
              - {run: echo "got $V" >> said}
        """)
    assert sorted(said) == ["got 1", "got 2"]


def test_a_job_whose_first_step_has_nothing_to_do_is_not_skipped(there: Workspace) -> None:
    """Its result is success; without a condition of the job nothing skips it."""
    assert there.play("""\
        jobs:
          a: {runs-on: x, steps: [{if: failure(), run: echo never >> said}, {run: "true"}]}
          b: {runs-on: x, needs: a, if: needs.a.result == 'skipped', steps: [{run: echo never >> said}]}
          c: {runs-on: x, needs: a, if: needs.a.result == 'success', steps: [{run: echo good >> said}]}
        """) == ["good"]
