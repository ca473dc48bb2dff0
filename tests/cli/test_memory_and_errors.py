"""`memory` and `errors`: what the agents of a run shared, in every report of it, and what they learned."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import jsonschema
import pytest

from planrun.agents.learned import FILE, ErrorStore
from planrun.agents.memory import Author
from planrun.agents.reflection import Failure
from planrun.agents.shared import Shared
from planrun.agents.snapshot import Snapshot
from planrun.model.collaboration import Collaboration
from planrun.model.events import AgentNoted, RunEnded
from planrun.records.ledger import Ledger
from planrun.records.reading import read_ledger
from tests.agents.moments import START, Moments
from tests.agents.test_shared import Run
from tests.docs.pages import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Said

    Say = Callable[..., Said]

PLAN = 'version: 1\nname: together\nsteps: [{id: fix, run: "true"}]\n'


def runs_of(folder: Path) -> list[Path]:
    """Return the folders of the runs."""
    return sorted((folder / ".planrun" / "runs").iterdir())


def note(run: Path, events: list[AgentNoted]) -> None:
    """Write the ledger of a run anew, as if agents had noted this before its end."""
    path = run / "ledger.jsonl"
    reading = read_ledger(str(path))
    path.unlink()
    ledger = Ledger(str(path))
    for event in [*reading.events[:-1], *events]:
        ledger.append(event)
    ended = reading.events[-1]
    assert isinstance(ended, RunEnded)
    ledger.append(ended.but(events=ledger.records + 1))
    ledger.close()


@pytest.fixture
def together(tmp_path: Path, say: Say) -> Path:
    """Give a run in which two agents used everything that they share, and more of the memory."""
    (tmp_path / "plan.yml").write_text(PLAN)
    assert say("run", "plan.yml", "--quiet").code == 0
    [run] = runs_of(tmp_path)
    shared = Run(tmp_path)
    shared.work()
    by = Author(step="fix", agent="fix")
    shared.memory.write("db", "decision", {"name": "redis", "why": ["fast"]}, by)
    shared.memory.write("db", "decision", {"name": "sqlite", "why": ["simple"]}, by)
    shared.memory.write("gone", "fact", 1, by)
    shared.memory.delete("gone", by)
    shared.memory.write_with_ttl("short", "fact", 1, by, ttl=5)
    shared.clock.pass_by(60)
    shared.memory.write("hostile", "insight", "::error::x | y\x1b[2J\n\n| a | b |", by)
    shared.memory.write_with_ttl("late", "fact", 1, by, ttl=5)
    shared.clock.pass_by(60)
    shared.snapshot(Snapshot())  # the last event: by its time the entry is expired, and nobody removed it
    note(run, shared.events)
    return run


def test_the_memory_of_a_run_is_listed(say: Say, together: Path) -> None:
    """Live entries by their keys: type, version, who wrote it, the value in one line that steers nothing."""
    said = say("memory")
    assert (said.code, said.err) == (0, "")
    assert [[cell.strip() for cell in row.strip("|").split(" | ")] for row in said.out.splitlines()[2:]] == [
        ["cause", "fact", "1", "fix.a1", "x is missing"],
        ["db", "decision", "2", "fix", '{"name":"sqlite","why":["simple"]}'],
        ["hostile", "insight", "1", "fix", r": :error::x \| y\x1b[2J \| a \| b \|"],
    ]
    assert say("memory", together.name[:12], "--type", "decision").out.count("\n") == 3
    assert say("model", "memory").out == said.out


def test_one_entry_is_printed(say: Say, together: Path) -> None:
    """Its value alone, or all about it as JSON."""
    assert say("memory", "last", "cause").out == "x is missing\n"
    assert say("memory", "last", "db").out == '{"name":"sqlite","why":["simple"]}\n'
    document = json.loads(say("memory", "last", "db", "--json").out)
    entry = document["entry"]
    assert (document["run"], entry["value"], entry["version"]) == (
        together.name,
        {"name": "sqlite", "why": ["simple"]},
        2,
    )
    assert (entry["step"], entry["agent"], entry["trust"], entry["expires_at"]) == (
        "fix",
        "fix",
        "model",
        None,
    )
    for words, why in (
        (("gone",), f'no entry "gone" in the memory of the run {together.name}'),
        (("short",), 'no entry "short"'),
        (("db", "--type", "fact"), 'no entry "db" of type fact'),
    ):
        said = say("memory", "last", *words)
        assert (said.code, said.out) == (2, "")
        assert why in said.err


def test_the_memory_is_listed_as_json(say: Say, together: Path) -> None:
    """All entries with all their fields, or those of a type."""
    document = json.loads(say("memory", "--json").out)
    assert document["run"] == together.name
    assert [entry["key"] for entry in document["entries"]] == ["cause", "db", "hostile"]
    facts = json.loads(say("memory", "--json", "--type", "fact").out)["entries"]
    assert [entry["key"] for entry in facts] == ["cause"]


def test_a_run_without_agents_has_no_memory(say: Say, tmp_path: Path) -> None:
    """It says so, and as JSON it has no entries."""
    (tmp_path / "plan.yml").write_text(PLAN)
    assert say("run", "plan.yml", "--quiet").code == 0
    [run] = runs_of(tmp_path)
    assert say("memory").out == f"no entries in the memory of the run {run.name}\n"
    assert json.loads(say("memory", "--json").out)["entries"] == []
    assert json.loads(say("report", "--format", "json").out)["collaboration"] is None
    assert say("memory", "nothing").code == 2


def test_every_report_has_what_agents_shared(say: Say, together: Path) -> None:
    """The ledger verifies, ledger.json has all of it, the page the delegations, the summary the numbers."""
    assert say("verify").code == 0
    document = json.loads(say("report", "--format", "json").out)
    jsonschema.validate(document, json.loads((ROOT / "schemas" / "ledger.schema.json").read_text()))
    found = document["collaboration"]
    assert set(found) == {"memory", "delegations", "messages", "reflections", "snapshots"}
    assert [entry["key"] for entry in found["memory"]["entries"]] == ["cause", "db", "hostile"]
    [delegation] = found["delegations"]
    assert (delegation["rule"], delegation["from"], delegation["to"]) == (
        "compilation-error",
        "bash",
        "explore",
    )
    assert set(delegation) >= {"id", "reason", "score", "score_parts", "result", "depth", "step", "agent"}
    assert found["messages"][0]["reply"] == "Declare x."
    assert found["reflections"][0]["category"] == "compilation_error"
    assert found["snapshots"][0]["discoveries"] == ["x is missing"]
    page = say("report", "--format", "markdown").out
    assert "<summary>Delegations</summary>" in page
    assert "| `fix` | bash | explore | `compilation-error` | 0.5 | completed | 3.0s |" in page
    counts = "1 delegation, 1 message, 1 reflection, 3 memory entries"
    assert counts in page
    assert counts in say("report", "--format", "text").out
    assert together.exists()


# What was learned.


def learn(folder: Path) -> None:
    """Let agents learn from two errors in a folder."""
    clock = Moments()
    shared = Shared(
        Collaboration().but(memory=Collaboration.memory.but(store="write", dir=str(folder))),
        clock.stamp,
        lambda _: None,
        "/",
    )
    for path in ("src/a.py", "src/a.py", "lib/a.py"):
        shared.feedback.failed(
            "fix", Failure(tool="read", args={"path": "a.py"}, message="a.py: there is no such file")
        )
        shared.feedback.succeeded("fix", "read", {"path": path})
    shared.save()


def test_what_was_learned_is_listed_best_first(say: Say, tmp_path: Path) -> None:
    """Each error with what was tried, its weight, and how often it helped."""
    learn(tmp_path / "kept")
    said = say("errors", "list", "--dir", "kept")
    assert (said.code, said.err) == (0, "")
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in said.out.splitlines()[2:]]
    fix = 'read: path "{}" instead of "a.py"'
    error = "<path>: there is no such file"
    assert cells == [
        ["0.76", "2 of 2", "file_not_found", error, fix.format("src/a.py")],
        ["0.65", "1 of 1", "file_not_found", error, fix.format("lib/a.py")],
    ]
    document = json.loads(say("errors", "--dir", "kept", "--json").out)
    assert document["folder"] == str(tmp_path / "kept")
    assert [(entry["weight"], entry["count"], entry["last_at"]) for entry in document["errors"]] == [
        (0.755, 2, START),
        (0.65, 1, START),
    ]


def test_what_was_learned_is_cleared(say: Say, tmp_path: Path) -> None:
    """Everything, and it says how much; a second time there is nothing."""
    learn(tmp_path / "kept")
    assert say("errors", "clear", "--dir", "kept").out == f"removed 2 errors from {tmp_path}/kept\n"
    assert say("errors", "--dir", "kept").out == f"nothing was learned yet, in {tmp_path}/kept\n"
    assert json.loads(say("errors", "clear", "--dir", "kept", "--json").out)["removed"] == 0
    store = ErrorStore()
    store.load(str(tmp_path / "kept"))
    assert len(store) == 0


def test_the_default_folder_is_that_for_caches(
    say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading creates nothing."""
    monkeypatch.setenv("PLANRUN_CACHE_DIR", str(tmp_path / "cache"))
    assert say("errors").out == f"nothing was learned yet, in {tmp_path}/cache/agents\n"
    assert say("errors", "clear").out == f"removed 0 errors from {tmp_path}/cache/agents\n"
    assert not os.path.exists(tmp_path / "cache" / "agents")
    learn(tmp_path / "cache" / "agents")
    assert say("model", "errors").out.count("\n") == 4
    said = say("errors", "--dir", "nowhere")
    assert (said.code, said.err) == (2, "planrun: error: no such folder: nowhere\n")


def test_a_damaged_file_is_shown_as_empty_and_cleared(say: Say, tmp_path: Path) -> None:
    """No run depends on it."""
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / FILE).write_bytes(b"\xff{")
    assert say("errors", "--dir", "kept").out.startswith("nothing was learned yet")
    assert say("errors", "clear", "--dir", "kept").code == 0
    assert json.loads((kept / FILE).read_text())["errors"] == []
