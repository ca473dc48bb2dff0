"""Actions and matrices of workflows that become steps of their own, and workflows that are refused as a whole."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
import yaml

from planrun.convert.github.commands import COMMANDS
from planrun.convert.github.programs import TOOLS
from planrun.convert.github.reporting import LEFT_OUT, TALKERS
from planrun.convert.github.setups import SETUPS, Setup
from planrun.convert.github.tokens import LOGINS, TOKENS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
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


def test_a_workflow_that_only_talks_to_github_is_refused_by_one_finding(made: Made) -> None:
    """It has the line of the action, and can be accepted; a command beside it makes it a workflow like any other."""
    stale = HEAD + "      - uses: actions/checkout@v4\n      - uses: actions/stale@v9\n"
    refused = made(stale)
    assert said(refused) == (
        "7: refused[only-github]: this workflow only talks to GitHub (actions/stale), and runs nothing else: "
        "keep it as a workflow"
    )
    assert "only-github" in said(made(stale, "only-github", "uses:*"), "refused")
    both = made(stale + "      - run: make\n")
    assert "7: refused[uses:actions/stale]" in said(both, "refused")
    called = made("on: push\njobs:\n  one: {uses: other/repo/.github/workflows/a.yml@v1}\n")
    assert "refused[workflow-call]" in said(called, "refused")


def test_an_action_that_only_shows_results_is_left_out_with_its_line(made: Made) -> None:
    """Its outputs cannot be read: an empty text would change the meaning."""
    text = HEAD + (
        "      - run: make\n"
        "      - {uses: peter-evans/create-or-update-comment@v4, id: note, with: {issue-number: 1, body: done}}\n"
    )
    converted = made(text)
    assert [*steps_of(converted)] == ["one"]
    message = "left out: no comment is written on the pull request"
    assert f"7: differs[left-out]: peter-evans/create-or-update-comment is {message}" in said(converted)
    read = made(text + "      - run: echo ${{ steps.note.outputs.comment-id }}\n")
    assert "refused[action-output]: `steps.note.outputs.comment-id`: peter-evans" in said(read, "refused")


def test_a_workflow_for_macos_becomes_a_plan_for_macos(made: Made) -> None:
    """Its first step checks the machine, for which the first jobs wait; one for Windows only is refused by name."""
    mac = "on: push\njobs:\n  one: {runs-on: macos-14, steps: [{run: 'echo ${{ runner.os }}'}]}\n"
    steps = steps_of(made(mac))
    assert ([*steps], steps["one"]["depends_on"]) == (["machine", "one"], ["machine"])
    assert "Darwin" in steps["machine"]["run"]
    assert steps["one"]["run"] == "echo macOS"
    windows = made(mac.replace("macos-14", "windows-2025"))
    assert "3: refused[only-windows]: every job of this workflow is for Windows" in said(windows, "refused")


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


def test_tags_of_images_are_those_of_the_action(there: Workspace) -> None:
    """A tag with a version gives `latest`, a branch its name, and names are in small letters."""
    ended = there.convert("""\
        on: push
        jobs:
          one:
            runs-on: ubuntu-latest
            steps:
              - uses: docker/metadata-action@v5
                id: meta
                with:
                  images: ghcr.io/Own/App
                  tags: |
                    type=ref,event=branch
                    type=semver,pattern={{version}}
                    type=semver,pattern={{major}}.{{minor}}
                    type=raw,value=beta,enable=${{ github.ref == 'refs/heads/a/b' }}
              - env: {TAGS: "${{ steps.meta.outputs.tags }}", WHICH: "${{ steps.meta.outputs.version }}"}
                run: echo $WHICH $TAGS >> said
        """)
    assert ended.code == 0, ended.err
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com"]
    for words in (["init", "-q"], ["add", "ci.yml"], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], cwd=there.folder, check=True)
    for ref in ("refs/tags/v1.2.3", "refs/tags/v2.0.0-rc.1", "refs/heads/a/b"):
        done = there.execute(GITHUB_REF=ref, GITHUB_ACTIONS="true")
        assert done.code == 0, done.out + done.err
    image = "ghcr.io/own/app"
    assert there.said == [
        f"1.2.3 {image}:1.2.3 {image}:1.2 {image}:latest",
        f"2.0.0-rc.1 {image}:2.0.0-rc.1",
        f"a-b {image}:a-b {image}:beta",
    ]


def test_a_setup_names_what_nothing_uses_and_runs_what_the_action_runs(made: Made) -> None:
    """`bundler-cache` installs gems there, and does so here."""
    converted = made(
        HEAD
        + "      - {uses: ruby/setup-ruby@v1, with: {ruby-version: '3.3', bundler-cache: true}}\n"
        + "      - {uses: shivammathur/setup-php@v2, with: {php-version: '8.3', extensions: intl}}\n"
        + "      - {uses: gradle/gradle-build-action@v3, with: {arguments: build --info}}\n"
    )
    scripts = [str(step.get("run", "")) for step in steps_of(converted).values()]
    assert any("bundle install" in script for script in scripts)
    assert any("./gradlew build --info" in script for script in scripts)
    assert "the version of php and composer that is there is checked; not used: extensions" in said(converted)


def test_a_token_of_an_action_is_a_secret_of_the_plan(made: Made) -> None:
    """It is read where the output was; a program that is not known stays refused."""
    converted = made(
        HEAD
        + "      - {uses: actions/create-github-app-token@v2, id: app, with: {app-id: 1, private-key: k}}\n"
        + "      - {run: gh pr list, env: {GH_TOKEN: '${{ steps.app.outputs.token }}'}}\n"
    )
    (step,) = steps_of(converted).values()
    assert (step["secrets"], 'GH_TOKEN="${APP_TOKEN}"' in step["run"]) == (["APP_TOKEN"], True)
    assert "todo[token]: actions/create-github-app-token gets no token here" in said(converted, "todo")


def test_codeql_becomes_its_command_line(made: Made) -> None:
    """It watches the commands of a build; steps with conditions are refused."""
    init = (
        HEAD
        + "      - {uses: github/codeql-action/init@v3, with: {languages: python, queries: security-extended}}\n"
    )
    end = "      - uses: github/codeql-action/analyze@v3\n"
    (step,) = steps_of(made(init + end)).values()
    assert "codeql database create" in step["run"]
    assert "codeql-suites/$short-security-extended.qls" in step["run"]
    built = init.replace("python", "c-cpp") + "      - {run: make all, working-directory: src}\n"
    (step,) = steps_of(made(built + end)).values()
    assert "(\ncd -- src\nmake all\n)\n" in step["run"]
    assert '--command "bash -eo pipefail $folder/build.sh"' in step["run"]
    traced = made(built.replace("run: make", "if: github.actor == 'me', run: make") + end)
    assert "it watches the build by one.2" in said(traced, "refused")


def test_a_script_of_github_script_runs_in_node(made: Made) -> None:
    """Its outputs may have dashes; what only GitHub's runner reads is refused."""
    text = HEAD + (
        "      - run: make\n"
        "      - {uses: actions/github-script@v7, id: s, with: {script: \"core.setOutput('is-new', 1); return 2\"}}\n"
        "      - run: echo ${{ steps.s.outputs.is-new }} ${{ steps.s.outputs.result }}\n"
    )
    steps = steps_of(made(text))
    assert "core.setOutput('is_new', 1)" in steps["one.s"]["run"]
    assert [*steps["one.s"]["outputs"]] == ["is_new", "result"]
    saved = made(text.replace("return 2", "core.exportVariable('A', 1)"))
    assert "its script calls `exportVariable`" in said(saved, "refused")


@pytest.mark.parametrize(
    ("files", "expected"),
    [("a.txt", "any_changed=true only_changed=false"), ("*.md", "any_changed=false only_changed=false")],
)
def test_changed_files_are_those_of_git(tmp_path: Path, made: Made, files: str, expected: str) -> None:
    """The last commit counts where nothing says what to compare with."""
    converted = made(
        HEAD
        + f"      - {{uses: tj-actions/changed-files@v45, id: c, with: {{files: '{files}'}}}}\n"
        + "      - run: echo ${{ steps.c.outputs.any_changed }} ${{ steps.c.outputs.only_changed }}\n"
    )
    script = steps_of(converted)["one.c"]["run"]
    git = "git -c user.name=a -c user.email=a@example.com"
    build = f"git init -q && {git} commit -q --allow-empty -m 1 && touch a.txt b.txt && git add . && {git} commit -qm 2"
    subprocess.run(["bash", "-ec", build], cwd=tmp_path, check=True)
    subprocess.run(
        ["bash", "-e"], input=script, text=True, cwd=tmp_path, check=True,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "PLANRUN_OUTPUT": str(tmp_path / "out"), "HOME": str(tmp_path)},
    )  # fmt: skip
    lines = (tmp_path / "out").read_text().splitlines()
    assert [line for line in lines if line.startswith(("any_c", "only_c"))] == expected.split()


def test_the_tables_of_actions_do_not_overlap() -> None:
    """Each action has one meaning, and the names of programs are in small letters, as they are looked up."""
    names = [*map(str.lower, (*SETUPS, *TOKENS, *LOGINS)), *TOOLS, *COMMANDS, *LEFT_OUT]
    assert sorted(name for name in names if names.count(name) > 1) == []
    assert [name for name in (*TOOLS, *COMMANDS, *LEFT_OUT, *TALKERS) if name != name.lower()] == []


def test_the_checks_of_versions_are_scripts() -> None:
    """A shell reads them, each in a function of its own."""
    setups = [Setup(action, {key: "1.2"} if key else {}) for action, (_, key, _) in SETUPS.items()]
    assert all(setup.programs for setup in setups)
    text = "".join(f"check_{at}() {{\n{setup.script or ':'}\n}}\n" for at, setup in enumerate(setups))
    subprocess.run(["bash", "-n"], input=text, text=True, check=True)
