"""`planrun watch` on a real pseudo-terminal, beside runs of another process."""

from __future__ import annotations

import os
import pwd
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.live.conftest import until
from tests.live.screens import Watched

if TYPE_CHECKING:
    from tests.conftest import Command
    from tests.live.conftest import Going

ME = pwd.getpwuid(os.geteuid()).pw_name
WAIT = "until [ -e {} ]; do sleep 0.05; done"
RELEASE = f"""\
version: 1
name: release
policy: {{auto_approve: high, rules: [{{require: {{step: publish}}}}]}}
steps:
  - {{id: build, title: Build it, run: "echo first line; {WAIT.format("go")}; echo last line"}}
  - {{id: publish, depends_on: [build], risk: high, run: echo published}}
  - id: where
    decide: {{question: Which region?, options: [{{label: Europe, value: eu}}, {{label: US, value: us}}]}}
  - {{id: check, depends_on: [publish], run: "test -e good"}}
"""
SLOW = f"""\
version: 1
name: slow
steps:
  - {{id: one, run: "echo begun; {WAIT.format("go")}"}}
  - {{id: two, depends_on: [one], run: echo done}}
"""


def test_a_run_is_followed_and_answered_from_another_shell(going: Going) -> None:
    """Steps, times and the log of the running step follow; keys ask first, and answer as the verbs do."""
    process = going.starts(RELEASE)
    with Watched(going.folder, size=(100, 24)) as watched:
        watched.sees("first line")
        assert "running" in watched.rows[0]
        assert watched.chosen.startswith("> ◐ build")
        watched.sees("where needs a decision: Which region?")
        watched.types("d")
        watched.sees("where (eu: Europe | us: US)")
        watched.types("eu", "enter")
        watched.sees('where is answered with "eu"')
        (going.folder / "go").touch()
        watched.sees("publish needs approval")
        watched.sees("  echo published")  # what would run
        watched.types("a")
        watched.sees("Approve publish (risk high)? y or n:")
        watched.types("n")
        watched.sees("nothing was changed")
        watched.types("a", "y")
        watched.sees("publish is approved")
        assert process.wait() == 5  # nothing but gates was left
        watched.sees("no process runs it; u resumes it")
        watched.types("u", "y")
        watched.sees("failed  release")
        watched.sees("exit code 1")
        assert going.answers() == [("where", "eu", ME), ("publish", "approved", ME)]
        watched.sees(lambda seen: seen.chosen.startswith("> ✗ check"))
        (going.folder / "good").touch()
        watched.types("t")
        watched.sees("Run check and its dependents again? y or n:")
        watched.types("y")
        watched.sees("completed  release")
        assert going.ends() == "completed"
        watched.types("q")
        assert watched.ends() == 0


def test_a_killed_run_is_shown_resumed_and_deleted(going: Going, planrun: Command) -> None:
    """After kill -9 it says so; a resume of another process is followed; a deleted run is named."""
    process = going.starts(SLOW)
    with Watched(going.folder, size=(80, 24)) as watched:
        watched.sees("begun")
        process.kill()
        process.wait()
        watched.sees("killed  slow")
        watched.sees("u resumes it")
        watched.types("u", "y")
        watched.sees("running  slow")
        watched.types("p", "y")
        watched.sees("pausing")
        (going.folder / "go").touch()
        watched.sees("paused  slow")
        watched.types("c", "y")
        watched.sees("cancelled  slow")
        assert going.ends() == "cancelled"
        assert planrun("prune", "--keep", "0").returncode == 0
        watched.sees("was deleted")
        os.kill(watched.pid, signal.SIGTERM)
        assert watched.ends() == 143


def test_q_and_ctrl_c_leave_the_run_alone(going: Going) -> None:
    """The run goes on, whatever ends the watcher; a rejection is recorded with its reason."""
    process = going.starts(RELEASE.replace("depends_on: [build], risk", "risk"))
    with Watched(going.folder) as watched:
        watched.sees("publish needs approval")
        watched.types("/publ", "enter")
        watched.sees(lambda seen: seen.chosen.startswith("> ◔ publish"))
        watched.types("r")
        watched.sees("Reject publish: a reason or nothing, then enter")
        watched.types("not today", "enter")
        watched.sees("publish is rejected")
        watched.types("\x03")
        assert watched.ends() == 130
    assert process.poll() is None
    assert going.answers() == [("publish", "rejected", ME)]
    assert [event.get("reason") for event in going.events() if event["type"] == "gate_answered"] == [
        "not today"
    ]


def test_a_thousand_steps_fit_every_width(going: Going, planrun: Command) -> None:
    """Home, end, filter and search go through 1,000 steps; no row is wider than the terminal, which may be resized."""
    steps = "".join(f"  - {{id: step-{n}, exec: [{'false' if n == 777 else 'true'}]}}\n" for n in range(1000))
    (going.folder / "plan.yml").write_text(f"version: 1\nname: many\nsteps:\n{steps}")
    assert planrun("run", "plan.yml", "--output", "quiet").returncode == 1
    with Watched(going.folder, size=(60, 20), variables={"NO_COLOR": "1"}) as watched:
        watched.sees("1000/1000")
        watched.types("end")
        watched.sees(lambda seen: "step-999" in seen.chosen)
        watched.types("f", "f", "f")
        watched.sees("shown: failed")
        watched.sees(lambda seen: "step-777" in seen.chosen)
        watched.types("escape", "/step-55", "enter")
        watched.sees("search: step-55")
        watched.sees("11 steps")
        watched.resize(200, 50)
        watched.sees("11 steps")
        watched.sees(lambda seen: "c cancel" in seen.rows[49])
        watched.types("escape")
        watched.resize(60, 12)
        watched.sees(lambda seen: any("step-" in row for row in seen.rows) and "q quit" in seen.rows[11])
        watched.types("?")
        watched.sees("approve, reject what")
        watched.types("q")
        assert watched.ends() == 0
        assert not re.search(rb"\x1b\[[0-9;]*[1-9][0-9;]*m", watched.raw)  # no colour, whatever else


GROUPS = """\
version: 1
name: groups
steps:
  - {id: build, run: echo built}
  - id: test
    depends_on: [build]
    matrix: {os: [linux, mac], py: ["3.11", "3.12"]}
    run: 'test "${{ matrix.os }} ${{ matrix.py }}" != "mac 3.12"'
  - {id: lint, run: echo fine}
  - {id: publish, depends_on: [lint, test], run: echo published}
"""


def test_a_tree_shows_groups_and_dependencies(going: Going, planrun: Command) -> None:
    """Instances stand below their group, steps below what they wait for; folding, filter and search go together."""
    (going.folder / "plan.yml").write_text(GROUPS)
    assert planrun("run", "plan.yml", "--output", "quiet").returncode == 1

    def tree(seen: Watched) -> list[str]:
        rows = [row[4:].rstrip() for row in seen.rows[2:]]
        end = next(number for number, row in enumerate(seen.rows[2:]) if row.startswith("──"))
        return [re.sub(" *(completed|failed|blocked) .*", "", row) for row in rows[:end]]

    members = [f"    test[os={os},py={py}]" for os in ("linux", "mac") for py in ("3.11", "3.12")]
    with Watched(going.folder, size=(100, 24)) as watched:
        watched.sees(lambda seen: "test[os=mac,py=3.12]" in seen.chosen)
        watched.types("v")
        watched.sees("tree of groups")
        assert tree(watched) == ["  build", "▾ test", *members, "  lint", "  publish"]
        assert "4/4, 1 failed" in watched.text
        watched.types("left", "left")
        watched.sees("▸ test")
        assert tree(watched) == ["  build", "▸ test", "  lint", "  publish"]
        watched.sees("a group: its instances have the logs")
        watched.types("f", "f", "f")
        watched.sees("shown: failed")
        assert tree(watched) == ["▾ test", members[-1], "  publish"]
        watched.types("escape", "/linux", "enter")
        watched.sees("search: linux")
        assert tree(watched) == ["▾ test", *members[:2]]
        watched.types("escape", "right", "v")
        watched.sees("tree of dependencies")
        deeper = [f"  {name}" for name in members]
        assert tree(watched) == ["▾ build", "  ▾ test", *deeper, "      publish", "  lint"]
        watched.types("-")
        watched.sees(lambda seen: tree(seen) == ["▸ build", "  lint"])
        watched.types("+", "v")
        watched.sees(lambda seen: "tree of" not in seen.text and "> ✓ build" in seen.text)
        watched.types("q")
        assert watched.ends() == 0


def test_without_a_terminal_lines_are_printed(going: Going) -> None:
    """Each step that starts or ends is a line, and stderr says why; it ends with the run."""
    going.starts(SLOW)
    lines = subprocess.Popen(
        [sys.executable, "-m", "planrun", "watch"],
        cwd=going.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    assert lines.stdout is not None
    assert lines.stdout.readline() == f"run {going.run}: slow\n"
    (going.folder / "go").touch()
    out, err = lines.communicate()
    assert lines.returncode == 0
    assert err == "planrun: stdin and stdout are no terminal: the run is printed as lines\n"
    rows = [re.sub(r"\d+\.\d+s", "Ts", row) for row in out.splitlines()]
    assert rows[-4:] == [
        "✓ Step one (Ts)",
        "◐ two",
        "✓ Step two (Ts)",
        f"run {going.run}: completed in Ts, exit code 0",
    ]
    until(lambda: going.ends() == "completed")
