"""Actions and matrices of workflows that become steps of their own, and what is left to a person."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
import yaml

from planrun.convert.github.setups import SETUPS, Setup

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from planrun.convert.convert import Converted
    from tests.convert.conftest import Workspace

    Made = Callable[..., Converted]

HEAD = "on: push\njobs:\n  one:\n    runs-on: ubuntu-latest\n    steps:\n"


def steps_of(converted: Converted) -> dict[str, dict[str, Any]]:
    """Return the steps of a plan by their ids."""
    assert converted.text, [each.text for each in converted.findings if each.kind == "refused"]
    return {str(step["id"]): step for step in yaml.safe_load(converted.text)["steps"]}


def said(converted: Converted, *kinds: str) -> str:
    """Return the findings of some kinds as lines."""
    return "\n".join(
        f"{each.line}: {each.text}" for each in converted.findings if not kinds or each.kind in kinds
    )


def test_a_workflow_for_macos_becomes_a_plan_for_macos(made: Made) -> None:
    """Its first step checks the machine, for which the first jobs wait; jobs for Windows only are left to a person."""
    mac = "on: push\njobs:\n  one: {runs-on: macos-14, steps: [{run: 'echo ${{ runner.os }}'}]}\n"
    steps = steps_of(made(mac))
    assert ([*steps], steps["one"]["depends_on"]) == (["machine", "one"], ["machine"])
    assert "Darwin" in steps["machine"]["run"]
    assert steps["one"]["run"] == "echo macOS"
    windows = made(mac.replace("macos-14", "windows-2025"))
    assert "3: differs[only-windows]: every job of this workflow is for Windows" in said(windows, "differs")
    (step,) = steps_of(windows).values()
    assert step["description"] == "one: {runs-on: windows-2025, steps: [{run: 'echo ${{ runner.os }}'}]}"
    assert "run" not in step


def test_instances_are_converted_one_by_one_where_the_matrix_cannot_be_kept(there: Workspace) -> None:
    """Lists and words of an instance are put in, and each instance tolerates its own failure."""
    ended = there.convert("""\
        on: push
        jobs:
          build:
            runs-on: ubuntu-latest
            continue-on-error: ${{ matrix.experimental == true }}
            outputs: {name: "${{ steps.o.outputs.name }}"}
            strategy:
              fail-fast: false
              max-parallel: 1
              matrix:
                include:
                  - {name: a, parts: [x, y], flags: --one --two}
                  - {name: b, parts: [z], experimental: true, flags: "--three"}
            steps:
              - id: o
                run: |
                  set -- ${{ matrix.flags }}
                  echo "${{ matrix.name }} ${{ join(matrix.parts, '+') }} $# ${{ strategy.job-index }}" >> said
                  echo "name=${{ matrix.name }}" >> "$GITHUB_OUTPUT"
              - {if: matrix.name == 'b', run: exit 3}
              - run: echo "end ${{ matrix.name }} [${{ matrix.missing }}]" >> said
          after:
            needs: build
            if: always()
            runs-on: ubuntu-latest
            steps: [{run: "echo after ${{ needs.build.outputs.name }} >> said"}]
        """)
    assert ended.code == 0, ended.err
    assert "the output of the last instance in the file counts" in ended.err
    done = there.execute()
    assert (there.said, done.code) == (["a x+y 2 0", "end a []", "b z 1 1", "after b"], 0)


def test_words_of_older_workflows_keep_their_meaning(there: Workspace) -> None:
    """`::set-output`, text beside `${{ }}`, a choice of secrets, and variables that a script may or may not set."""
    ended = there.convert("""\
        on: push
        env: {OUTER: base, FLAGS: -a}
        jobs:
          one:
            runs-on: ubuntu-latest
            env:
              TOKEN: ${{ secrets.MISSING || secrets.SPARE }}
              URL: https://${{ github.job }}:${{ secrets.SPARE }}@host
            steps:
              - {id: old, run: 'echo "::set-output name=word::hello"'}
              - run: |
                  if [ -n "$OUTER" ]; then
                    echo "TAG=tagged" >> "$GITHUB_ENV"
                  fi
              - if: env.TAG == 'tagged'
                env: {FLAGS: "${{ env.FLAGS }} -b"}
                run: echo "${{ steps.old.outputs.word }} $TAG $FLAGS ${{ env.OUTER }}" >> said
              - if: ${{ false }} == 'never'
                run: |
                  [ "$TOKEN" = s3cret-value ] && echo "token" >> said
                  [ "$URL" = "https://one:s3cret-value@host" ] && echo "url" >> said
                  [ "${{ secrets.MISSING || secrets.SPARE }}" = s3cret-value ] && echo "inline" >> said
        """)
    assert ended.code == 0, ended.err
    done = there.execute(SPARE="s3cret-value")
    assert (there.said, done.code) == (["hello tagged -a -b base", "token", "url", "inline"], 0), done.err


def test_a_setup_names_what_nothing_uses_and_runs_what_the_action_runs(made: Made) -> None:
    """`bundler-cache` installs gems there, and does so here."""
    converted = made(
        HEAD
        + "      - {uses: ruby/setup-ruby@v1, with: {ruby-version: '3.3', bundler-cache: true}}\n"
        + "      - {uses: shivammathur/setup-php@v2, with: {php-version: '8.3', extensions: intl}}\n"
    )
    scripts = [str(step.get("run", "")) for step in steps_of(converted).values()]
    assert any("bundle install" in script for script in scripts)
    assert "the version of php and composer that is there is checked; not used: extensions" in said(converted)


def test_the_checks_of_versions_are_scripts() -> None:
    """A shell reads them, each in a function of its own."""
    setups = [Setup(action, {key: "1.2"} if key else {}) for action, (_, key, _) in SETUPS.items()]
    assert all(setup.programs for setup in setups)
    text = "".join(f"check_{at}() {{\n{setup.script or ':'}\n}}\n" for at, setup in enumerate(setups))
    subprocess.run(["bash", "-n"], input=text, text=True, check=True)


def test_outputs_with_dashes_are_written_under_other_names(there: Workspace) -> None:
    """Writer and reader agree, and the value arrives."""
    said = there.play("""\
        jobs:
          a:
            runs-on: ubuntu-latest
            steps:
              - {id: one, run: 'echo "a-b=value" >> "$GITHUB_OUTPUT"'}
              - run: echo "${{ steps.one.outputs.a-b }}" >> said
        """)
    assert said == ["value"]


LEFT = """\
    jobs:
      build: {runs-on: ubuntu-latest, steps: [{run: echo build >> said}]}
      publish:
        needs: build
        runs-on: ubuntu-latest
        steps:
          - run: echo before >> said
          - name: Send it
            id: sent
            uses: some/thing@v1
            if: github.ref != 'x'
            with: {to: everybody, text: "${{ github.sha }}"}
          - run: echo "after ${{ steps.sent.outputs.place }}" >> said
    """


def test_an_action_is_left_with_its_text_its_edges_and_its_condition(there: Workspace) -> None:
    """Nothing runs before somebody wrote the step; `validate` and `show` name it, and its outputs are declared."""
    ended = there.convert(LEFT)
    assert (
        ended.code,
        "ci.yml:8:9: todo[uses:some/thing]: the action some/thing is left to you" in ended.err,
    ) == (0, True)
    step = there.steps["publish.sent"]
    assert step["description"].startswith("name: Send it\nid: sent\nuses: some/thing@v1\n")
    assert (step["title"], step["depends_on"], step["condition"]) == (
        "Send it",
        ["publish.1"],
        "run.ref != 'x'",
    )
    assert not {"run", "exec", "validate"} & {*step}
    checked = there.planrun("validate", "plan.yml")
    assert "publish.sent" in checked.out + checked.err
    assert "Status: draft, without an action: publish.sent" in there.planrun("show", "plan.yml").out
    assert (there.execute().code, there.said) == (2, [])


KINDS = {
    "a workflow elsewhere": "jobs: {a: {uses: own/er/.github/workflows/x.yml@v1, with: {b: c}}}",
    "an image": "jobs: {a: {runs-on: x, steps: [{uses: 'docker://alpine:3', with: {args: echo}}]}}",
    "an action in another language": "jobs: {a: {runs-on: x, steps: [{uses: ./tools/act}]}}",
    "a shell that is not known": "jobs: {a: {runs-on: x, steps: [{run: echo, shell: odd}]}}",
    "an unknown function": "jobs: {a: {runs-on: x, steps: [{run: 'echo ${{ novel(1) }}'}]}}",
    "an unknown key of a step": "jobs: {a: {runs-on: x, steps: [{run: echo, parallel: 3}]}}",
    "a matrix that is worked out": (
        "jobs: {a: {runs-on: x, strategy: {matrix: '${{ fromJSON(vars.M) }}'}, steps: [{run: echo}]}}"
    ),
    "a condition that is not known": "jobs: {a: {runs-on: x, if: novel(), steps: [{run: echo}]}}",
    "a variable that is not known": "env: {A: '${{ novel(1) }}'}\njobs: {a: {runs-on: x, steps: [{run: echo $A}]}}",
    "another system": "jobs: {a: {runs-on: windows-latest, steps: [{run: echo}]}}",
}


@pytest.mark.parametrize("text", KINDS.values(), ids=KINDS)
def test_what_is_not_certain_is_an_abstract_step(made: Made, text: str) -> None:
    """The file becomes a plan, and the step in question has its text and no action."""
    (step,) = steps_of(made(f"on: push\n{text}\n")).values()
    assert step["description"]
    assert not {"run", "exec", "validate", "uses"} & {*step}
