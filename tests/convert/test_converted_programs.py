"""GitHub actions that become the script of a program, run with programs that say what they were given."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.convert.conftest import Workspace

WORKFLOW = """\
    jobs:
      release:
        runs-on: ubuntu-latest
        env: {TAG: v1.2}
        steps:
          - uses: docker/login-action@v3
            with: {registry: ghcr.io, username: me, password: "${{ secrets.TOKEN }}"}
          - id: image
            uses: Docker/Build-Push-Action@v6
            with:
              context: app
              push: true
              tags: |
                me/app:latest
                me/app:${{ env.TAG }}
              cache-from: type=gha
          - run: echo "digest ${{ steps.image.outputs.digest }}" >> said
          - uses: nick-fields/retry@v3
            with:
              command: |
                echo try >> said
                test -e third || { test -e second && touch third; touch second; false; }
              max_attempts: 3
              retry_wait_seconds: 0
              timeout_seconds: 60
          - uses: softprops/action-gh-release@v2
            with: {tag_name: "${{ env.TAG }}", files: "dist/*.txt", generate_release_notes: true}
    """
FAKES = {
    "docker": """\
        #!/bin/sh
        echo "docker $*" >> said
        [ "$1" != login ] || cat > password
        [ "$1" != buildx ] || echo '"containerimage.digest": "sha256:1f"' > build-metadata.json
        """,
    "gh": """\
        #!/bin/sh
        echo "gh $* with $GH_TOKEN" >> said
        [ "$2" != view ]
        """,
}


@pytest.fixture
def programs(tmp_path: Path) -> str:
    """Make programs that write down how they are called; gives the PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in FAKES.items():
        path = folder / name
        path.write_text("\n".join(line.strip() for line in text.split("\n")))
        path.chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def test_programs_get_what_the_actions_were_given(there: Workspace, programs: str) -> None:
    """Inputs become options, secrets are read from standard input or the environment, outputs are outputs."""
    assert there.convert(WORKFLOW).code == 0
    (there.folder / "dist").mkdir()
    for name in ("a.txt", "b.txt"):
        (there.folder / "dist" / name).touch()
    ended = there.execute(PATH=programs, TOKEN="t0k3n-value", GITHUB_TOKEN="gh-token-value")
    assert ended.code == 0, ended.out + ended.err
    assert (there.folder / "password").read_text() == "t0k3n-value"
    build = "--tag me/app:latest --tag me/app:v1.2 --push --metadata-file build-metadata.json app"
    assert there.said == [
        "docker login ghcr.io --username me --password-stdin",
        f"docker buildx build {build}",
        "digest sha256:1f",
        *["try"] * 3,
        "gh release view v1.2 with gh-token-value",
        "gh release create v1.2 --title v1.2 --generate-notes with gh-token-value",
        "gh release upload v1.2 --clobber dist/a.txt dist/b.txt with gh-token-value",
    ]


@pytest.mark.parametrize(
    ("uses", "given", "message"),
    [
        ("docker/build-push-action", "{secrets: a=b}", "its input `secrets` has no equivalent here"),
        ("docker/login-action", "{username: me}", "it has no user name and password"),
        ("nick-fields/retry", "{command: x, retry_on: error}", "its input `retry_on: error`"),
    ],
)
def test_inputs_without_an_equivalent_refuse_the_action(
    there: Workspace, uses: str, given: str, message: str
) -> None:
    """Nothing that an action is told is lost."""
    ended = there.convert(f"jobs: {{a: {{runs-on: x, steps: [{{uses: {uses}@v1, with: {given}}}]}}}}\n")
    assert ended.code == 2
    assert f"refused[uses:{uses}]: the action {uses} cannot run here: {message}" in ended.err


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
