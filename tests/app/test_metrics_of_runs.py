"""`planrun stats --prometheus`: metrics for the textfile collector, held against the rules of the text format."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.conftest import Command

if TYPE_CHECKING:
    from pathlib import Path

PLAN = """\
version: 1
name: 'a "quoted" \\ name'
steps:
  - {id: again, run: test "$PLANRUN_ATTEMPT" = 2, retries: {max: 1, backoff: {initial: 10ms}}}
  - {id: bad, depends_on: [again], run: test -e mended}
  - {id: behind, depends_on: [bad], run: exit 0}
"""
NAME = r"[a-z_][a-z0-9_]*"
LABELS = rf'(?:{NAME}="(?:[^"\\\n]|\\[\\"n])*",?)*'
SAMPLE = re.compile(rf"(?P<name>{NAME})(?:\{{(?P<labels>{LABELS})\}})? (?P<value>-?\d+(?:\.\d+)?(?:e-?\d+)?)")
LABEL = re.compile(rf'({NAME})="((?:[^"\\]|\\.)*)"')
SUFFIXES = {"summary": ("", "_sum", "_count"), "gauge": ("",)}

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def read(text: str) -> tuple[dict[str, str], Samples]:
    """Return types and samples of a metrics file; fails for what promtool and the format do not allow."""
    assert text.endswith("\n")
    types: dict[str, str] = {}
    samples: Samples = {}
    current, helped = "", ""
    for line in text.splitlines():
        if line.startswith("# HELP "):
            helped, about = line.removeprefix("# HELP ").split(" ", 1)
            assert about
            continue
        if line.startswith("# TYPE "):
            current, kind = line.removeprefix("# TYPE ").split(" ")
            assert current == helped, "TYPE follows the HELP of the same metric"
            assert current not in types, "each metric is one group"
            assert not current.endswith(("_total", "_count", "_sum", "_bucket", "_info"))
            assert not re.search(r"_(ms|milliseconds|minutes|hours|percent)\b", current), "base units"
            types[current] = kind
            continue
        found = SAMPLE.fullmatch(line)
        assert found, line
        labels = dict(LABEL.findall(found["labels"] or ""))
        names = [current + suffix for suffix in SUFFIXES[types[current]]]
        assert found["name"] in names, "samples stand below their metric"
        assert ("quantile" in labels) == (types[current] == "summary" and found["name"] == current)
        key = (found["name"], frozenset(labels.items()))
        assert key not in samples, "a series has one sample"
        samples[key] = float(found["value"])
    return types, samples


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run that failed and one that completed, and a ledger that is broken."""
    folder = tmp_path_factory.mktemp("metrics")
    planrun = Command(folder)
    (folder / "plan.yml").write_text(PLAN, "utf-8")
    assert planrun("execute", "plan.yml").returncode == 1
    (folder / "mended").touch()
    assert planrun("execute", "plan.yml").returncode == 0
    broken = folder / ".planrun" / "runs" / "20200101-000000-abcdef"
    broken.mkdir()
    (broken / "ledger.jsonl").write_text("no ledger\n", "utf-8")
    return folder


def test_the_file_is_valid_and_counts_runs_and_steps(folder: Path) -> None:
    """Runs by verdict, durations as summaries, failures, flakiness and retries of steps, and unreadable runs."""
    done = Command(folder)("stats", "--prometheus", "out/planrun.prom")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    types, samples = read((folder / "out" / "planrun.prom").read_text("utf-8"))
    plan = {"plan": 'a \\"quoted\\" \\\\ name', "file": "plan.yml"}

    def value(name: str, **labels: str) -> float:
        return samples[name, frozenset({**plan, **labels}.items())]

    assert types["planrun_step_duration_seconds"] == "summary"
    assert [value("planrun_runs", verdict=each) for each in ("completed", "failed", "cancelled")] == [1, 1, 0]
    assert value("planrun_last_run_success") == 1
    assert value("planrun_last_run_timestamp_seconds") > 1_700_000_000
    assert value("planrun_run_duration_seconds_count") == 2
    assert value("planrun_run_duration_seconds", quantile="0.5") > 0
    assert value("planrun_step_flaky_runs", step="again") == 2
    assert value("planrun_step_retries", step="again") == 2
    assert [value("planrun_step_runs", step="bad", outcome=each) for each in ("completed", "failed")] == [
        1,
        1,
    ]
    assert value("planrun_step_runs", step="behind", outcome="left_out") == 1
    assert samples["planrun_runs_unreadable", frozenset()] == 1


def test_it_is_replaced_at_once_and_printed_on_request(folder: Path) -> None:
    """`-` prints the same; a file that exists is replaced and keeps its mode, and nothing else is left beside it."""
    target = folder / "kept" / "planrun.prom"
    target.parent.mkdir()
    target.write_text("old\n")
    target.chmod(0o640)
    planrun = Command(folder)
    assert planrun("stats", "--prometheus", str(target)).returncode == 0
    assert target.stat().st_mode & 0o777 == 0o640
    assert [each.name for each in target.parent.iterdir()] == ["planrun.prom"]
    printed = planrun("stats", "--prometheus", "-").stdout
    assert printed == target.read_text("utf-8")
    assert planrun("stats", "--prometheus", "plan.yml/x.prom").returncode == 2
