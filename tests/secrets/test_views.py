"""No view of a run shows a secret printed with hidden bytes inside; no verb prints hidden characters raw."""

from __future__ import annotations

import re
import subprocess
import sys
import unicodedata
from typing import TYPE_CHECKING

from planrun.records.rundir import HOME

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "horsebattery-staple91"
PLAN = r"""
version: 1
name: views
secrets: [PASSWORD]
steps:
  - id: coloured
    secrets: [PASSWORD]
    run: 'echo "password=$PASSWORD" | grep --color=always horse'
  - id: titled
    secrets: [PASSWORD]
    run: 'printf "%.5s\033]0;t\007%s\n%.5s\302\255%s\n" "$PASSWORD" "${PASSWORD#?????}" "$PASSWORD" "${PASSWORD#?????}"'
  - id: failing
    secrets: [PASSWORD]
    run: 'printf "%.5s\342\200\213\033(B%sX\b%s\n" "$PASSWORD" "" "${PASSWORD#?????}" >&2; exit 3'
"""
HOSTILE = r"""
version: 1
name: "n\u3164\uffa0x"
description: "d\u115f\u034f\u2800\ufffc e"
steps:
  - id: a
    title: "t\u3164\ufffc\u115f\uffa0\u2800\u034f"
    run: "echo hi\u3164\u2800\ufffc\u034f"
"""
UNSEEN = "\u3164\uffa0\u115f\u034f\u2800\ufffc\u200b\u202e\x1b\x9b\x00"
_SEQUENCE = re.compile(
    "(?:\x1b|\\\\u001b)(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b\n]*?(?:\x07|\x1b\\\\|\\\\u0007)|[ -/]*[0-Z\\\\^-~])"
)


def planrun(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
    """Run a verb."""
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(folder), **variables}
    return subprocess.run(
        [sys.executable, "-m", "planrun", *words],
        cwd=folder,
        env=env,
        capture_output=True,
        check=False,
        timeout=60,
    )


def seen(data: bytes) -> str:
    """Return what an eye can see of bytes, by Python's tables of Unicode."""
    text = _SEQUENCE.sub("", data.decode("utf-8", "replace"))
    return "".join(char for char in text if unicodedata.category(char) not in ("Cc", "Cf", "Mn"))


def test_no_view_shows_a_secret(tmp_path: Path) -> None:
    """Console, logs, reports, step summary, events and all that the run left behind."""
    (tmp_path / "plan.yml").write_text(PLAN)
    summary = tmp_path / "summary.md"
    ci = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(summary)}
    views = {"console": planrun(tmp_path, "execute", "plan.yml", PASSWORD=SECRET, **ci)}
    assert views["console"].returncode == 1
    verbs = [("logs",), ("status",), ("show", "last", "failing"), ("runs",), ("trace", "last")]
    verbs += [("report", "last", "--format", form) for form in ("text", "markdown", "html", "junit", "json")]
    for words in verbs:
        views[" ".join(words)] = planrun(tmp_path, *words)
    for name, done in views.items():
        assert SECRET not in seen(done.stdout + done.stderr), name
    assert b"***" in views["logs"].stdout
    files = [path for path in (tmp_path / HOME).rglob("*") if path.is_file()]
    assert len(files) > 5
    for path in (*files, summary):
        assert SECRET not in seen(path.read_bytes()), path


def test_no_verb_prints_what_is_not_shown(tmp_path: Path) -> None:
    """Names, titles and commands of a stranger's plan are printed with escapes."""
    (tmp_path / "plan.yml").write_text(HOSTILE)
    (tmp_path / "other.yml").write_text(HOSTILE.replace("echo hi", "echo ho"))
    planrun(tmp_path, "execute", "plan.yml")
    of_plans = ["show", "review", "validate", "lint", "tree"]
    for words in (
        *((verb, "plan.yml") for verb in of_plans),
        ("diff", "plan.yml", "other.yml"),
        ("execute", "plan.yml", "--dry-run"),
        ("runs",),
        ("status",),
        ("verify",),
        ("report", "last", "--format", "text"),
    ):
        done = planrun(tmp_path, *words)
        printed = (done.stdout + done.stderr).decode()
        assert done.returncode in (0, 1, 2), words
        assert [hex(ord(char)) for char in UNSEEN if char in printed] == [], words
