"""What files of other tools hand on from step to step."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.convert.conftest import Workspace


PIPELINE = """\
    stages: [a, b, c]
    variables: {TAG: v1, MODE: base}
    mk:
      stage: a
      script: ['echo "VER=1 2 = 3" > build.env', 'echo N=x >> build.env']
      artifacts: {reports: {dotenv: build.env}}
    use:
      stage: b
      script: echo "$VER|$N|$MODE" >> said
      rules:
        - {if: $TAG == "v0"}
        - {changes: [src/**/*, "*.{md,txt}"]}
    never:
      stage: b
      script: echo never >> said
      rules: [{changes: [docs/*]}, {exists: ["missing*.x"]}]
    there: {stage: b, script: echo there >> said, rules: [{exists: ["src/*.py"]}]}
    apart: {stage: c, dependencies: [], script: 'echo "[$VER]" >> said'}
    twice: {stage: c, script: [exit 1], script: ['echo two >> said']}
    """


def test_jobs_of_gitlab_read_reports_changes_and_files(there: Workspace) -> None:
    """Variables of reports, changed and existing files, and doubled keys."""
    (there.folder / "src").mkdir()
    git = ["git", "-C", str(there.folder), "-c", "user.email=a@b", "-c", "user.name=a"]
    subprocess.run([*git, "init", "-q"], check=True)
    for number in "12":
        (there.folder / "src" / "a.py").write_text(number)
        subprocess.run([*git, "add", "src"], check=True)
        subprocess.run([*git, "commit", "-qm", number], check=True)
    before = subprocess.run(
        [*git, "rev-parse", "HEAD~1"], check=True, capture_output=True, text=True
    ).stdout.strip()
    ended = there.convert(PIPELINE, "--from", "gitlab")
    assert ended.code == 0, ended.err
    assert 'differs[duplicate]: duplicate key "script"' in ended.err
    ended = there.execute(CI_COMMIT_BEFORE_SHA=before)
    assert ended.code == 0, ended.out + ended.err
    assert there.said == ["1 2 = 3|x|base", "there", "[]", "two"]


def test_a_rule_of_make_need_not_make_its_file(there: Workspace) -> None:
    """What waits for it is out of date then; a recipe of comments does nothing."""
    (there.folder / "Makefile").write_text("all: a\n\t# only said\n\techo all >> said\na:\n\t# nothing\n")
    assert there.planrun("convert", "Makefile", "-o", "plan.yml").code == 0
    assert there.execute().code == 0
    assert there.said == ["all"]
