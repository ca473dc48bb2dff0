"""Which files `planrun convert` reads, and what it says of those that it cannot: by the command line."""

from __future__ import annotations

from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from planrun.convert.convert import Order, convert

if TYPE_CHECKING:
    from pathlib import Path

    from tests.convert.conftest import Workspace

# Other files of the repository.

CALLED = {
    ".github/workflows/main.yml": """\
        jobs:
          first: {runs-on: ubuntu-latest, steps: [{run: echo first >> said}]}
          call:
            needs: first
            uses: ./.github/workflows/test.yml
            with: {word: hello, loud: true}
            secrets: {TOKEN: "${{ secrets.MAIN_TOKEN }}"}
          many:
            needs: call
            strategy: {matrix: {n: [1, 2]}}
            uses: ./.github/workflows/small.yml
            with: {n: "${{ matrix.n }}"}
          never: {if: github.ref == 'none', uses: ./.github/workflows/small.yml, with: {n: never}}
          behind: {needs: never, runs-on: ubuntu-latest, steps: [{run: echo never >> said}]}
          last:
            needs: [call, many]
            runs-on: ubuntu-latest
            steps: [{run: 'echo "last ${{ needs.call.outputs.said }} ${{ needs.call.result }}" >> said'}]
        """,
    ".github/workflows/test.yml": """\
        on:
          workflow_call:
            inputs: {word: {type: string}, loud: {type: boolean}, times: {type: number, default: 3}}
            outputs: {said: {value: "${{ jobs.b.outputs.x }}"}}
            secrets: {TOKEN: {required: true}}
        env: {OWN: "own-${{ inputs.word }}"}
        jobs:
          a:
            runs-on: ubuntu-latest
            steps:
              - run: echo "a ${{ inputs.word }} ${{ inputs.times }} $OWN ${#T}" >> said
                env: {T: "${{ secrets.TOKEN }}"}
          b:
            needs: a
            if: inputs.loud
            runs-on: ubuntu-latest
            outputs: {x: "${{ steps.s.outputs.x }}"}
            steps: [{id: s, run: 'echo "x=from-b" >> $GITHUB_OUTPUT'}, {run: echo b >> said}]
        """,
    ".github/workflows/small.yml": """\
        on: {workflow_call: {inputs: {n: {type: string}}}}
        jobs: {s: {runs-on: ubuntu-latest, steps: [{run: 'echo "small ${{ inputs.n }}" >> said'}]}}
        """,
}


def write(folder: Path, files: dict[str, str]) -> None:
    """Write files into a folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))


def test_workflows_of_the_repository_are_put_in(there: Workspace) -> None:
    """Inputs, secrets, outputs, matrices and conditions of a call are those of its jobs."""
    write(there.folder, CALLED)
    ended = there.planrun("convert", ".github/workflows/main.yml", "-o", "plan.yml")
    assert ended.code == 0, ended.err
    ended = there.execute(MAIN_TOKEN="value-of-it")
    assert ended.code == 0, ended.out + ended.err
    assert there.said == ["first", "a hello 3 own-hello 11", "b", "small 1", "small 2", "last from-b success"]


def test_a_call_that_is_skipped_skips_what_needs_it(there: Workspace) -> None:
    """Also when a job that it needs was skipped."""
    main = """\
        jobs:
          off: {if: github.ref == 'none', runs-on: x, steps: [{run: echo never >> said}]}
          call: {needs: off, uses: ./.github/workflows/small.yml, with: {n: never}}
          after: {needs: call, runs-on: x, steps: [{run: echo never >> said}]}
          always: {needs: call, if: always(), runs-on: x, steps: [{run: "echo ${{ needs.call.result }} >> said"}]}
        """
    write(there.folder, {**CALLED, ".github/workflows/main.yml": main})
    assert there.planrun("convert", ".github/workflows/main.yml", "-o", "plan.yml").code == 0
    assert (there.execute().code, there.said) == (0, ["skipped"])


def test_findings_name_the_file_in_which_they_are(there: Workspace) -> None:
    """What a called workflow leaves is told at its own line; one that calls itself ends."""
    broken = "on: workflow_call\njobs: {s: {runs-on: ubuntu-latest, steps: [{uses: some/thing@v1}]}}\n"
    write(there.folder, {**CALLED, ".github/workflows/small.yml": broken})
    ended = there.planrun("convert", ".github/workflows/main.yml")
    assert (ended.code, ".github/workflows/small.yml:2:" in ended.err) == (0, True), ended.err
    itself = "on: workflow_call\njobs: {s: {uses: ./.github/workflows/small.yml}}\n"
    write(there.folder, {".github/workflows/small.yml": itself})
    ended = there.planrun("convert", ".github/workflows/main.yml")
    assert (ended.code, "workflows call each other too deeply" in ended.err) == (0, True), ended.err


def test_copies_for_other_systems_are_left_out(there: Workspace) -> None:
    """Of a workflow that is called for several systems the copies for Linux stay."""
    write(
        there.folder,
        {
            ".github/workflows/main.yml": """\
                jobs:
                  a:
                    strategy: {matrix: {os: [ubuntu-latest, windows-latest, macos-14]}}
                    uses: ./.github/workflows/t.yml
                    with: {os: "${{ matrix.os }}"}
                """,
            ".github/workflows/t.yml": """\
                on: {workflow_call: {inputs: {os: {type: string}}}}
                jobs: {t: {runs-on: "${{ inputs.os }}", steps: [{run: 'echo "${{ inputs.os }}" >> said'}]}}
                """,
        },
    )
    ended = there.planrun("convert", ".github/workflows/main.yml", "-o", "plan.yml")
    assert (ended.code, "differs[other-machines]" in ended.err) == (0, True), ended.err
    assert there.execute().code == 0
    assert there.said == ["ubuntu-latest"]


ACTION = {
    ".github/actions/greet/action.yml": """\
        inputs: {who: {default: world}, loud: {required: false}}
        outputs: {said: {value: "${{ steps.say.outputs.what }}"}}
        runs:
          using: composite
          steps:
            - {id: say, shell: bash, run: 'echo "what=hi-${{ inputs.who }}" >> $GITHUB_OUTPUT; echo "$E" >> said'}
            - {if: inputs.loud == 'yes', shell: bash, run: 'echo "V=set" >> $GITHUB_ENV'}
        """,
    ".github/workflows/ci.yml": """\
        jobs:
          a:
            runs-on: ubuntu-latest
            steps:
              - {id: g, uses: ./.github/actions/greet, with: {who: me, loud: "yes"}, env: {E: e}}
              - {uses: ./.github/actions/greet, if: github.ref == 'none'}
              - run: echo "${{ steps.g.outputs.said }} $V" >> said
          b:
            runs-on: ubuntu-latest
            strategy: {matrix: {x: [1, 2]}}
            steps: [{uses: ./.github/actions/greet, with: {loud: "yes"}, env: {E: e2}}, {run: echo "b $V" >> said}]
        """,
}


def test_actions_of_the_repository_are_put_in(there: Workspace) -> None:
    """Steps of a composite action have its inputs and hand outputs and variables on, in a matrix too."""
    write(there.folder, ACTION)
    ended = there.planrun("convert", ".github/workflows/ci.yml", "-o", "plan.yml")
    assert ended.code == 0, ended.err
    ended = there.execute()
    assert ended.code == 0, ended.out + ended.err
    assert sorted(there.said) == ["b set", "b set", "e", "e2", "e2", "hi-me set"]


# The command line.

REFUSED = """\
    novel: 1
    jobs:
      a: {runs-on: ubuntu-latest, some: 1, thing: 2, steps: [{run: echo}]}
    """


def test_names_to_accept(there: Workspace) -> None:
    """A name under which nothing is refused is an error with the valid ones; patterns and `all` accept several."""
    ended = there.convert(REFUSED, "--accept", "key:nove")
    assert (ended.code, 'did you mean "key:novel"' in ended.err) == (2, True)
    ended = there.convert(REFUSED, "--accept", "x")
    assert "refused are key:novel, key:some, key:thing" in ended.err
    assert "what cannot be converted: key:novel" in there.convert(REFUSED, "--accept", "key:[st]*").err
    assert there.convert(REFUSED, "--accept", "key:[st]*", "--accept", "key:novel").code == 0
    assert there.convert(REFUSED, "--accept", "all").code == 0
    assert there.convert(REFUSED, "--accept", "*").code == 0


@pytest.mark.parametrize(
    ("name", "text", "tool"),
    [
        ("tox.ini", "[tox]\n", "tox"),
        ("x.yml", "trigger: [main]\npool: {vmImage: x}\nsteps: [{script: make}]\n", "Azure Pipelines"),
        ("x.yml", "jobs: [{job: a, steps: [{script: make}]}]\n", "Azure Pipelines"),
        ("x.yml", "version: 2.1\njobs: {a: {docker: [{image: x}], steps: [checkout]}}\n", "CircleCI"),
        ("x.yml", "steps: [{label: a, command: make}]\n", "Buildkite"),
    ],
)
def test_files_of_other_tools_are_named(there: Workspace, name: str, text: str, tool: str) -> None:
    """They are no broken YAML and no file of another tool."""
    (there.folder / name).write_text(text)
    ended = there.planrun("convert", name)
    assert ended.code == 2
    assert f"{name}: no converter for {tool} yet; planrun converts files of GitHub Actions" in ended.err


@pytest.mark.parametrize(
    ("name", "text", "source"),
    [
        ("Makefile", "all:\n\ttrue\n", "make"),
        ("justfile", "a:\n  true\n", "just"),
        (".gitlab-ci.yml", "a: {script: [make]}\n", "gitlab"),
        ("x.yml", "stages: [a]\nb: {stage: a, script: [make]}\n", "gitlab"),
        ("x.yml", "b: {script: make}\n", "gitlab"),
    ],
)
def test_files_of_known_tools_are_recognised(tmp_path: Path, name: str, text: str, source: str) -> None:
    """By their names, and by their content."""
    (tmp_path / name).write_text(text)
    found = convert(Order(file=str(tmp_path / name)))
    assert (found.source, found.steps) == (source, 1)


def test_a_plan_is_not_converted(there: Workspace) -> None:
    """A plan is one already."""
    (there.folder / "x.yml").write_text("version: 1\nsteps: [{run: make}]\n")
    assert "x.yml is a plan of planrun already" in there.planrun("convert", "x.yml").err
