"""`planrun fmt`: what it writes, what it refuses, and its exit codes."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.conftest import LIMIT
from tests.docs.pages import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Said

UGLY = "version:  1\nsteps:\n- run: make   # builds\n  id: build\n"
GOOD = "version: 1\nsteps:\n  - id: build\n    run: make   # builds\n"
BROKEN = "version: 1\nsteps:\n  - title: a: b\n"


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """Return a plan that is not formatted."""
    path = tmp_path / "plan.yml"
    path.write_text(UGLY)
    return path


def test_a_file_is_formatted_in_place(say: Callable[..., Said], plan: Path) -> None:
    """The file is named once; a second time there is nothing to do and nothing to say."""
    plan.chmod(0o640)
    told = say("fmt", "plan.yml")
    assert (told.code, told.out, told.err) == (0, "plan.yml: formatted\n", "")
    assert plan.read_text() == GOOD
    assert stat.S_IMODE(plan.stat().st_mode) == 0o640
    assert [path.name for path in plan.parent.iterdir()] == ["plan.yml"]
    changed = plan.stat().st_mtime_ns
    assert say("fmt", "plan.yml") == told._replace(out="")
    assert plan.stat().st_mtime_ns == changed


def test_the_target_of_a_link_is_formatted(say: Callable[..., Said], plan: Path) -> None:
    """A link stays a link."""
    (plan.parent / "link.yml").symlink_to("plan.yml")
    assert say("fmt", "link.yml").code == 0
    assert (plan.parent / "link.yml").is_symlink()
    assert plan.read_text() == GOOD


@pytest.mark.usefixtures("plan")
def test_without_a_plan_the_default_plan_is_formatted(say: Callable[..., Said], plan: Path) -> None:
    """No operand: the plan that `planrun run` would run."""
    told = say("fmt")
    assert told.code == 0
    assert "plan.yml: formatted\n" in told.out
    assert plan.read_text() == GOOD


def test_check_names_files_and_writes_nothing(say: Callable[..., Said], plan: Path) -> None:
    """Exit code 1 and the names of the files that would change; 0 without a word when there are none."""
    (plan.parent / "good.yml").write_text(GOOD)
    told = say("fmt", "--check", "good.yml", "plan.yml")
    assert (told.code, told.out) == (1, "plan.yml: would be formatted\n")
    assert plan.read_text() == UGLY
    told = say("fmt", "--check", "good.yml")
    assert (told.code, told.out, told.err) == (0, "", "")


def test_diff_shows_what_would_change(say: Callable[..., Said], plan: Path) -> None:
    """A unified diff, and the file stays as it is; the exit code is that of --check if both are given."""
    told = say("fmt", "--diff", "plan.yml")
    assert told.code == 0
    assert told.out == (
        "--- plan.yml\n+++ plan.yml (formatted)\n@@ -1,4 +1,4 @@\n-version:  1\n+version: 1\n steps:\n"
        "-- run: make   # builds\n-  id: build\n+  - id: build\n+    run: make   # builds\n"
    )
    assert plan.read_text() == UGLY
    assert say("fmt", "--diff", "--check", "plan.yml").code == 1
    assert plan.read_text() == UGLY


def test_diff_shows_a_missing_line_end(say: Callable[..., Said], plan: Path) -> None:
    """A last line without a line end is shown as git shows it."""
    plan.write_text(GOOD.removesuffix("\n"))
    assert say("fmt", "--diff", "plan.yml").out.endswith(
        "\n-    run: make   # builds\n\\ No newline at end of file\n+    run: make   # builds\n"
    )


@pytest.mark.usefixtures("plan")
def test_diff_in_colour(say: Callable[..., Said], monkeypatch: pytest.MonkeyPatch) -> None:
    """Removed lines are red, added ones green."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    out = say("fmt", "--diff", "plan.yml").out
    assert "\x1b[31m-version:  1\x1b[0m\n\x1b[32m+version: 1\x1b[0m\n" in out


def test_what_is_not_yaml_stays(say: Callable[..., Said], plan: Path) -> None:
    """The usual error, exit code 2, the file untouched; the other files are formatted all the same."""
    broken = plan.parent / "broken.yml"
    broken.write_text(BROKEN)
    told = say("fmt", "broken.yml", "plan.yml", "missing.yml")
    assert told.code == 2
    assert "broken.yml:3:13: error[E010]" in told.err
    assert "missing.yml:1:1: error[E001]" in told.err
    assert broken.read_text() == BROKEN
    assert plan.read_text() == GOOD


def test_a_plan_with_errors_is_formatted(say: Callable[..., Said], plan: Path) -> None:
    """A plan that is YAML and has other problems can be formatted: its values stay."""
    plan.write_text(UGLY.replace("id: build", "retires: 2\n  id: build"))
    assert say("fmt", "plan.yml").code == 0
    assert plan.read_text() == GOOD + "    retires: 2\n"
    assert say("validate", "plan.yml").code == 2


def piped(data: bytes, *words: str) -> subprocess.CompletedProcess[bytes]:
    """Run planrun with bytes on standard input."""
    return subprocess.run(
        [sys.executable, "-m", "planrun", *words], input=data, capture_output=True, timeout=LIMIT, check=False
    )


def test_standard_input() -> None:
    """`-` reads standard input and writes standard output, as editors do it."""
    done = piped(UGLY.encode(), "fmt", "-")
    assert (done.returncode, done.stdout, done.stderr) == (0, GOOD.encode(), b"")
    done = piped(GOOD.encode(), "fmt", "-")
    assert done.stdout == GOOD.encode()
    done = piped(UGLY.encode(), "fmt", "--check", "-")
    assert (done.returncode, done.stdout) == (1, b"standard input: would be formatted\n")
    done = piped(BROKEN.encode(), "fmt", "-")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"standard input:3:13: error[E010]" in done.stderr


def test_the_digest_stays(say: Callable[..., Said], plan: Path) -> None:
    """A formatted plan is the same plan: `diff` finds no difference."""
    (plan.parent / "old").mkdir()
    (plan.parent / "old" / "plan.yml").write_text(UGLY)
    say("fmt", "plan.yml")
    assert say("diff", "old/plan.yml", "plan.yml", "--exit-code").code == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written(say: Callable[..., Said], plan: Path) -> None:
    """An error names the file, which stays as it is."""
    plan.parent.chmod(0o555)
    try:
        told = say("fmt", "plan.yml")
    finally:
        plan.parent.chmod(0o755)
    assert told.code == 2
    assert "cannot write plan.yml" in told.err
    assert plan.read_text() == UGLY


def test_the_pre_commit_hook_runs_it() -> None:
    """The hook `planrun-fmt` takes the same files as `planrun-validate`."""
    hooks = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
    assert hooks["planrun-fmt"]["entry"] == "planrun fmt"
    assert hooks["planrun-fmt"]["files"] == hooks["planrun-validate"]["files"]


def test_the_first_plan_of_init_has_this_layout(say: Callable[..., Said]) -> None:
    """Whoever begins with `planrun init` has nothing to format."""
    assert say("init").code == 0
    checked = say("fmt", "--check", "plan.yml")
    assert (checked.code, checked.out) == (0, "")
