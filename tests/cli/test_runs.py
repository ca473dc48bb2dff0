"""`status`, `runs`, `verify`, `report` and `explain` on runs that ended, go on, were killed or were altered."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from planrun.app import inspect
from planrun.records import reading

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from planrun.records.reading import Reading
    from tests.cli.conftest import Said

    Say = Callable[..., Said]


def lines_of(run: Path) -> list[bytes]:
    """Return the lines of a run's ledger with their ends."""
    return (run / "ledger.jsonl").read_bytes().splitlines(keepends=True)


def put(run: Path, lines: list[bytes]) -> None:
    """Write a run's ledger anew."""
    (run / "ledger.jsonl").write_bytes(b"".join(lines))


# A run that ended.


@pytest.mark.shows("V-48", "D-24", "D-33")
def test_status_is_a_panel_with_bar_icons_and_reasons(say: Say, mixed: Path) -> None:
    """`status` shows title and verdict, how many steps ended, each step with its icon, and why some did not run."""
    said = say("status")
    assert (said.code, said.err) == (0, "")
    head, bar, *rows = said.out.split("\n")
    assert head == 'Plan v1: "mixed" [Failed]'
    assert bar.startswith(f"[####################] 8/8  run {mixed.name}, ")
    steps = [row.partition(" (")[0] for row in rows if row.startswith(tuple("✓✗⊘■"))]
    assert steps == [
        "✗ Step lint: Look at the code",
        "✗ Step test",
        "✓ Step build",
        "■ Step pack",
        "■ Step ship",
        "⊘ Step prod",
        "✓ Step mourn",
        "✓ Step tidy",
    ]
    assert said.out.count("    test failed (exit 75), and its failure is not tolerated") == 2
    assert "    its condition is false: params.target == 'prod' and steps.build.outputs.size > 2" in rows


@pytest.mark.usefixtures("mixed")
def test_status_speaks_ascii_where_it_must(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where stdout carries no Unicode, icons are ASCII."""
    monkeypatch.setattr("planrun.cliutil.printing.encoding", lambda: "ascii")
    said = say("status")
    assert said.out.isascii()
    assert "\nx Step test (failed: exit 75)\n" in said.out


@pytest.mark.shows("GP-60", "D-24")
def test_status_json_counts_and_reasons(say: Say, mixed: Path) -> None:
    """`status --json` is one document with progress, counts, next steps and a reason for each step."""
    document = json.loads(say("status", "last", "--json").out)
    assert document["schema_version"] == 1
    assert (document["run"], document["status"], document["exit_code"]) == (mixed.name, "failed", 1)
    assert document["progress"] == {"ended": 8, "completed": 3, "total": 8}
    assert document["next"] == []
    assert document["steps"][4]["because"] == ["test failed (exit 75), and its failure is not tolerated"]


@pytest.mark.shows("GP-75")
def test_runs_lists_what_failed(say: Say, mixed: Path) -> None:
    """`runs` has a row per run with its verdict and the steps that failed; the same as JSON."""
    said = say("runs")
    assert said.code == 0
    row = said.out.split("\n")[2]
    assert row.startswith(f"| {mixed.name} | mixed | failed | 20")
    assert row.endswith("| lint, test |")
    (run,) = json.loads(say("runs", "--json").out)["runs"]
    assert (run["run"], run["failed"], run["exit_code"]) == (mixed.name, ["lint", "test"], 1)


def test_runs_of_an_empty_folder(say: Say) -> None:
    """Without runs there is a sentence, and an empty list as JSON."""
    assert say("runs") == (0, "no runs in this folder\n", "")
    assert json.loads(say("runs", "--json").out) == {"schema_version": 1, "runs": [], "left_out": 0}


def test_a_run_that_cannot_be_read_is_a_row(say: Say, mixed: Path) -> None:
    """Folders without a ledger, with rubbish, or with an event that is none, are listed as what they are."""
    for name, data in (
        ("20200101-rubbish", b"rubbish\n"),
        ("20200102-odd", b'{"seq":1}\n'),
        ("20200103-none", None),
    ):
        folder = mixed.parent / name
        folder.mkdir()
        if data is not None:
            (folder / "ledger.jsonl").write_bytes(data)
    (mixed.parent / "20200104-\x1b[2Jfile").write_text("a file")
    (mixed.parent / "20200105-dir").mkdir()
    (mixed.parent / "20200105-dir" / "ledger.jsonl").mkdir()
    said = say("runs")
    assert (said.code, said.err) == (0, "")
    assert "\x1b" not in said.out
    found = {run["run"]: run["status"] for run in json.loads(say("runs", "--json").out)["runs"]}
    assert found == {
        mixed.name: "failed",
        "20200105-dir": "unreadable",
        "20200104-\x1b[2Jfile": "unreadable",
        "20200103-none": "unreadable",
        "20200102-odd": "altered",
        "20200101-rubbish": "altered",
    }


@pytest.mark.parametrize("words", [("status",), ("verify",), ("report",), ("explain", "a")])
def test_a_run_without_a_ledger_is_named(say: Say, tmp_path: Path, words: tuple[str, ...]) -> None:
    """A run that `runs` lists as unreadable exists: every verb reports what is missing in it."""
    (tmp_path / ".planrun" / "runs" / "20200103-none").mkdir(parents=True)
    assert "20200103-none" in say("runs").out
    for name in ("last", "20200103-none", "2020"):
        said = say(words[0], name, *words[1:])
        assert (said.code, said.out) == (2, "")
        assert said.err.startswith("planrun: error: the run 20200103-none has no ledger.jsonl: ")
    assert say("verify", "19").err == "planrun: error: no runs in this folder\n"


def test_runs_can_be_limited(say: Say, mixed: Path) -> None:
    """`--limit N` shows the newest N and says how many are left out."""
    (mixed.parent / "20200101-old").mkdir()
    assert say("runs", "--limit", "1").out.endswith("1 older runs not shown; --limit 0 shows all\n")
    assert len(json.loads(say("runs", "--limit", "0", "--json").out)["runs"]) == 2


# Reports.


def test_reports_are_rebuilt_byte_for_byte(say: Say, mixed: Path, tmp_path: Path) -> None:
    """`report` prints what `execute` wrote: markdown, JUnit and JSON, to stdout or into a file."""
    for form, file in (("markdown", "report.md"), ("junit", "junit.xml"), ("json", "ledger.json")):
        out = tmp_path / f"again-{file}"
        assert say("report", mixed.name, "--format", form, "--output", out).code == 0
        assert out.read_bytes() == (tmp_path / "planrun-out" / file).read_bytes()


@pytest.mark.usefixtures("mixed")
def test_report_prints_text_by_default(say: Say) -> None:
    """Without options the newest run is printed as text on stdout; --json is --format json."""
    assert say("report").out.startswith('Plan v1: "mixed" [Failed]\n')
    assert json.loads(say("report", "--json").out)["verdict"] == "failed"


@pytest.mark.usefixtures("mixed")
def test_report_knows_the_dialects(say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--junit-dialect` and its variable choose another JUnit form."""
    plain = say("report", "--format", "junit").out
    ant = say("report", "--format", "junit", "--junit-dialect", "ant").out
    monkeypatch.setenv("PLANRUN_JUNIT_DIALECT", "ant")
    again = say("report", "--format", "junit").out
    assert plain != ant == again
    ET.fromstring(ant.encode())


@pytest.mark.usefixtures("mixed")
def test_a_report_that_cannot_be_written_is_exit_74(say: Say) -> None:
    """An output file in a folder that is not there is named."""
    said = say("report", "--output", "no/where.txt")
    assert said.code == 74
    assert said.err == "planrun: error: cannot write no/where.txt: No such file or directory\n"


# Explaining.


@pytest.mark.shows("V-81")
@pytest.mark.usefixtures("mixed")
def test_explain_follows_a_blocked_step_to_the_failure(say: Say) -> None:
    """A step that is blocked through another one names the step that failed, and how."""
    said = say("explain", "last", "ship")
    assert "\nWhy\n  test failed (exit 75), and its failure is not tolerated\n" in said.out
    assert (
        "  pack blocked (upstream): not satisfied, so this step is blocked (required: no failure, or a tolerated one)\n"
        in said.out
    )
    assert "  timeout: 2m (set here, line 15)\n" in said.out
    assert (
        "  on_failure: block (built in): dependent steps are blocked; independent steps continue\n"
        in said.out
    )


@pytest.mark.usefixtures("mixed")
def test_explain_shows_the_values_a_condition_read(say: Say) -> None:
    """A condition is shown with its outcome and what each name in it stood for."""
    said = say("explain", "last", "prod")
    assert (
        "\nCondition: params.target == 'prod' and steps.build.outputs.size > 2\n"
        '  it was false\n  params.target was "staging"\n  steps.build.outputs.size was 3\n'
    ) in said.out


@pytest.mark.usefixtures("mixed")
def test_explain_shows_attempts_with_class_rule_and_log(say: Say) -> None:
    """A failure is shown attempt by attempt: reason, error class and rule, the pause, and the end of its output."""
    said = say("explain", "last", "test")
    assert "  1. failed (exit) after " in said.out
    assert "     error class transient, by rule exit:EX_TEMPFAIL\n     then a pause of " in said.out
    assert said.out.count("     | first line\n     | Connection refused\n") == 2
    assert "  timeout: 30s (from defaults, line 6)\n" in said.out
    assert "\nRequired by: pack, mourn\n" in said.out
    assert "the failure is tolerated and dependent steps run" in say("explain", "last", "lint").out


def test_explain_a_plan_shows_when_a_step_would_run(say: Say, mixed: Path, tmp_path: Path) -> None:
    """For a plan instead of a run: dependencies of the step, its condition, its settings, its action."""
    (tmp_path / "last").write_text("not a plan")
    said = say("explain", "plan.yml", "prod")
    assert said.out.startswith(
        "Step prod\n  plan.yml:16\n\nWhen it runs\n"
        "  It runs after build, unless build fails. A tolerated failure does not stop it.\n"
    )
    assert "  It is skipped unless its condition is true: params.target == 'prod'" in said.out
    document = json.loads(say("explain", "plan.yml", "mourn", "--json").out)
    assert (document["schema_version"], document["run"], document["status"]) == (1, None, None)
    assert document["because"] == ["It runs only if test fails."]
    assert say("explain", mixed.name, "prod", "--json").code == 0


@pytest.mark.parametrize(
    ("keys", "sentences"),
    [
        ("", ["It has no dependencies, so it can start when the run starts."]),
        (", condition: run.ci", [
            "It has no dependencies, so it can start when the run starts.",
            "It is skipped unless its condition is true: run.ci",
        ]),
        (", depends_on: {a: completed, b: done}", [
            "It runs only after a has completed, not if a was skipped or failed.",
            "It runs after b has ended, with any result.",
        ]),
    ],
)  # fmt: skip
def test_explain_a_plan_in_sentences(say: Say, tmp_path: Path, keys: str, sentences: list[str]) -> None:
    """Each edge and the condition is one whole sentence, also in JSON."""
    steps = f"[{{id: a, run: x}}, {{id: b, run: x}}, {{id: c, run: x{keys}}}]"
    (tmp_path / "p.yml").write_text(f"version: 1\nsteps: {steps}\nfinally: [{{id: z, run: x}}]\n")
    assert json.loads(say("explain", "p.yml", "c", "--json").out)["because"] == sentences
    shown = "".join(f"  {each}\n" for each in sentences)
    assert f"\nWhen it runs\n{shown}\n" in say("explain", "p.yml", "c").out
    assert "\n  It runs at the end of the run, whatever the result is.\n" in say("explain", "p.yml", "z").out


@pytest.mark.usefixtures("mixed")
def test_explain_suggests_the_nearest_step(say: Say) -> None:
    """An unknown step is exit 2 with a suggestion."""
    said = say("explain", "last", "shp")
    assert (said.code, said.err) == (2, 'planrun: error: no step "shp" in plan.yml; did you mean "ship"?\n')


# Verifying.


def test_verify_an_intact_ledger(say: Say, mixed: Path) -> None:
    """An intact, finished ledger is exit 0 and gives its head, which can be checked against."""
    said = say("verify", "last")
    head = said.out.split("head ")[1].strip()
    assert (said.code, said.out) == (0, f"{mixed.name}: intact, {len(lines_of(mixed))} events, head {head}\n")
    assert say("verify", "last", "--head", head.upper()).code == 0
    assert (refused := say("verify", "last", "--head", head[:12])).code == 2
    assert "64 hexadecimal digits" in refused.err
    for empty in ("", " "):
        refused = say("verify", "last", "--head", empty)
        assert (refused.code, refused.out) == (2, "")
        assert refused.err.startswith("planrun: error: --head needs the 64 hexadecimal digits")
    document = json.loads(say("verify", "last", "--json").out)
    assert (document["intact"], document["head"], document["line"]) == (True, head, None)


def test_verify_tells_damage_apart(say: Say, mixed: Path) -> None:
    """Altered with its line, torn, unfinished and truncated each have their own words and exit codes."""
    lines = lines_of(mixed)
    count = len(lines)
    altered = [*lines[:4], lines[4].replace(b'"at":"2', b'"at":"1'), *lines[5:]]
    put(mixed, altered)
    said = say("verify")
    assert said.code == 13
    assert said.out.startswith(f"{mixed.name}: altered at line 5: ")
    put(mixed, lines[:-1])
    assert say("verify") == (
        10, f"{mixed.name}: unfinished, {count - 1} events, no end: the run is still running or was killed\n", "",
    )  # fmt: skip
    put(mixed, [*lines[:-1], lines[-1][:20]])
    said = say("verify")
    assert said.code == 11
    assert said.out.startswith(f"{mixed.name}: torn at line {count}: 20 bytes after the last whole line")
    put(mixed, lines[:-2])
    said = say("verify", "--head", "0" * 64)
    assert said.code == 12
    assert said.out.startswith(f"{mixed.name}: truncated: ")
    assert json.loads(say("verify", "--head", "0" * 64, "--json").out)["condition"] == "truncated"
    put(mixed, lines)
    assert say("verify", "--head", "0" * 64).out.startswith(f"{mixed.name}: altered at line {count}: ")


def test_every_verb_bears_a_damaged_ledger(say: Say, mixed: Path) -> None:
    """Status, report and explain use the sound part and report that it is incomplete; nothing is an internal error."""
    lines = lines_of(mixed)
    for damage in ([*lines[:-1], lines[-1][:20]], [*lines[:8], b"rubbish\n", *lines[8:]]):
        put(mixed, damage)
        said = say("report")
        assert said.code == 0
        assert said.err.startswith("planrun: warning: the ledger is ")
        assert say("status").code == 0
        assert say("explain", "last", "ship").code == 0
    for damage in ([], [b"rubbish\n"]):
        put(mixed, damage)
        for words in (["report"], ["status"], ["explain", "last", "ship"]):
            said = say(*words)
            assert (said.code, said.out) == (2, "")
            assert said.err.startswith("planrun: error: the ledger has no first event: ")


def test_a_plan_that_does_not_match_its_ledger_is_reported(say: Say, mixed: Path) -> None:
    """When the run's copy of its plan was replaced or is gone, that is exit 2 with its place."""
    (mixed / "plan.yml").write_text("version: 1\nsteps: [{id: other, run: 'true'}]\n")
    said = say("status")
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("planrun: error: the run's copy of its plan was altered: ")
    (mixed / "plan.yml").unlink()
    assert "the run's copy of its plan cannot be read" in say("status").err


# Runs that have no end.


def test_a_run_that_ends_while_it_is_read_has_ended(
    say: Say, mixed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the last events come after a look at the ledger and before one at the workspace, the run is not killed."""
    seen: list[bytes] = []

    def early(_path: str, _head: str = "") -> Reading:
        data = (mixed / "ledger.jsonl").read_bytes()
        seen.append(b"".join(data.splitlines(keepends=True)[: None if seen else -1]))
        return reading.verify(seen[-1])

    monkeypatch.setattr(inspect, "read_ledger", early)
    assert "[Failed]" in say("status").out
    assert len(seen) == 2


def test_runs_are_found_by_the_beginning_of_their_id(say: Say, mixed: Path) -> None:
    """An id may be cut short as long as only one run begins like it."""
    assert say("verify", mixed.name[:10]).code == 0
    said = say("verify", "1999")
    assert (said.code, said.err) == (
        2,
        f'planrun: error: no run "1999"; the newest is {mixed.name}; to list all: planrun runs\n',
    )
    twin = mixed.parent / (mixed.name[:-1] + "z")
    twin.mkdir()
    (twin / "ledger.jsonl").write_bytes(b"")
    assert "could be 2 runs" in say("verify", mixed.name[:10]).err


def test_members_are_counted_and_no_reason_is_said_twice(say: Say, tmp_path: Path) -> None:
    """A resume counts the steps as the end of the run does: the members of a matrix, not the matrix besides."""
    (tmp_path / "plan.yml").write_text(
        "version: 1\nsteps:\n"
        "  - {id: build, matrix: {py: [a, b]}, run: 'true'}\n"
        "  - {id: other, run: 'true'}\n"
        "  - {id: test, depends_on: [build], run: test -e now}\n"
    )
    ended = say("run", "plan.yml", "--skip", "other")
    assert "4 steps: 2 successful, 1 failed, 1 skipped" in ended.err
    assert say("resume", "last", "--dry-run").err.startswith("planrun: resuming: 3 reused, 1 to rerun\n")
    rows = say("status").out.splitlines()
    after = rows[rows.index("⊘ Step other (skipped: not selected)") + 1]
    assert not after.startswith(" ")


# On a terminal.


@pytest.mark.parametrize(("columns", "has_start"), [(81, False), (82, True)])
def test_the_table_of_runs_fits_into_the_terminal(
    say: Say, tmp_path: Path, *, columns: int, has_start: bool
) -> None:
    """Where the columns do not fit, the time of the start is left out, since the id of a run begins with it."""
    (tmp_path / "plan.yml").write_text(
        "version: 1\nname: deploy\nsteps: [{id: a, run: exit 3}, {id: bc, run: exit 3}]\n"
    )
    assert say("run", "-q").code == 1
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    words = [sys.executable, "-m", "planrun", "runs"]
    assert subprocess.run(words, cwd=tmp_path, stdout=follower, check=False, timeout=60).returncode == 0
    os.close(follower)
    rows = os.read(leader, 65536).decode().splitlines()
    os.close(leader)
    assert ("Started" in rows[0]) is has_start
    assert max(map(len, rows)) <= columns
    assert "deploy" in rows[2]


def test_a_resumed_run_took_the_time_of_all_its_sessions(say: Say, tmp_path: Path) -> None:
    """What lies between them does not count."""
    steps = "{id: a, run: sleep 0.4}, {id: b, depends_on: [a], run: test -e mended}"
    (tmp_path / "plan.yml").write_text(f"version: 1\nsteps: [{steps}]\n")
    os.chdir(tmp_path)
    assert say("execute", "plan.yml").code == 1
    (tmp_path / "mended").touch()
    assert say("resume", "last").code == 0
    (run,) = json.loads(say("runs", "--json").out)["runs"]
    events = [json.loads(line) for line in lines_of(next(tmp_path.glob(".planrun/runs/*")))]
    ends = [event["duration"] for event in events if event["type"] == "run_ended"]
    assert run["duration_s"] >= ends[-1] + 0.4
    assert run["duration_s"] == pytest.approx(sum(ends), abs=1)
