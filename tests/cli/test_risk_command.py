"""`planrun risk` on the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.risk.corpus import FILE, rows

if TYPE_CHECKING:
    from pathlib import Path


def asked(*words: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run `planrun risk`."""
    return subprocess.run(
        [sys.executable, "-m", "planrun", "risk", *words], input=given, capture_output=True, check=False
    )


def test_a_command_is_shown_with_class_and_reason() -> None:
    """One part: one line; several: a table of them; the exit code is 0 whatever the class is."""
    one = asked("rm -rf *")
    assert (one.returncode, one.stdout) == (0, b"high: `rm -rf *`: deletes files\n")
    several = asked("ls && pytest -q").stdout.decode()
    assert several.startswith("medium: `pytest -q`: runs the project's tests\n")
    assert "| read-only | ls " in several


def test_json_has_every_part() -> None:
    """Level, reason, effects, and each command with its words."""
    found = json.loads(asked('ls "$X" && pwd', "--json").stdout)
    assert (found["schema_version"], found["level"], found["understood"]) == (1, "high", True)
    assert [part["words"] for part in found["commands"]] == [["ls", None], ["pwd"]]


def test_lines_are_answered_in_their_order(tmp_path: Path) -> None:
    """Every line gets one class, those that hold no command included; stderr says which those are."""
    file = tmp_path / "commands"
    file.write_bytes(b"ls\nls\\n-la\n\n\\q\n\xff\nls \\xA0\nls \\u200b\ntouch a\\\\b\nrm x")
    done = asked("--lines", str(file))
    assert done.stdout.split() == [b"read-only", *[b"high"] * 6, b"low", b"medium"]
    assert f"{file}:4: no escape at character 1: \\q".encode() in done.stderr
    assert done.returncode == 0


def test_the_labelled_commands_are_answered_from_standard_input() -> None:
    """The output is the classes, line by line; none is too low."""
    wanted = [level for level, _ in rows(FILE)]
    lines = [line.split("\t", 1)[1] for line in FILE.read_text("utf-8").split("\n")[1:] if line]
    found = asked("--lines", "-", given="\n".join(lines).encode()).stdout.decode().split()
    order = ["read-only", "low", "medium", "high"]
    assert len(found) == len(wanted)
    assert all(order.index(got) >= order.index(level) for got, level in zip(found, wanted, strict=True))


def test_a_wrong_use_is_an_error(tmp_path: Path) -> None:
    """No command, two of them, or a file that is not there: exit code 2."""
    assert asked().returncode == asked("ls", "--lines", "-").returncode == 2
    assert b"No such file" in asked("--lines", str(tmp_path / "none")).stderr
