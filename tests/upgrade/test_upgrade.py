"""What earlier versions left on disk is read by this one; what a later one wrote is refused by name.

The folders beside this file are recordings of real runs of real earlier states of planrun, made by `record`: a whole
run, one that waits for an answer, a killed and a failed one, runs with a model and with agents, a queue, a history,
cached results, compiled plans, a lock and an approval. The oldest knows no queue, cache, history and rollback yet.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from planrun import __version__, replay
from planrun.plan import cache
from planrun.records import history
from planrun.records.reading import read_ledger

if TYPE_CHECKING:
    from tests.conftest import Command

HERE = Path(__file__).parent
PLANS = HERE / "plans"
VERSIONS = sorted(path.parent.name for path in HERE.glob("*/commit"))
WITH_QUEUE = [version for version in VERSIONS if (HERE / version / "state" / "queue").exists()]
OLDEST, LAST = VERSIONS[0], VERSIONS[-1]
SECRET = {"DEPLOY_TOKEN": "dep-0123456789"}


class Place:
    """A folder as the earlier version left it, with the plans and the user's cache."""

    def __init__(self, folder: Path, version: str, command: Command) -> None:
        self.folder = folder
        self._command = command
        shutil.copytree(PLANS, folder, dirs_exist_ok=True)
        for path in (HERE / version).iterdir():
            target = {"state": ".planrun", "cache": "caches/planrun"}.get(path.name, path.name)
            (shutil.copytree if path.is_dir() else shutil.copy)(path, folder / target)
        for path in (folder / "caches").rglob("*"):
            path.chmod(
                0o700 if path.is_dir() else 0o600
            )  # git keeps no modes, and planrun reads no other cache
        self.runs = {}
        for ledger in sorted((folder / ".planrun" / "runs").glob("*/ledger.jsonl")):
            begun = json.loads(ledger.read_text("utf-8").partition("\n")[0])
            self.runs[begun["plan"]["name"]] = ledger

    def __call__(self, *words: str, expect: int = 0) -> str:
        """Run planrun here; return what it printed."""
        done = self._command(
            *words,
            cwd=self.folder,
            env={"XDG_CACHE_HOME": str(self.folder / "caches"), "PLANRUN_JOBS": "1", **SECRET},
        )
        said = done.stdout + done.stderr
        assert done.returncode == expect, said
        return said

    def id_of(self, plan: str) -> str:
        """Return the id of the run of a plan."""
        return self.runs[plan].parent.name


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path, planrun: Command) -> Place:
    """Lay out what a version left."""
    return Place(tmp_path / "workspace", request.param, planrun)


def every(versions: list[str]) -> pytest.MarkDecorator:
    """Run a test with what each of some versions left."""
    return pytest.mark.parametrize("place", versions, indirect=True)


@every(VERSIONS)
def test_ledgers_of_an_earlier_version_are_sound(place: Place) -> None:
    """Each line is read, and the end of each run is known."""
    conditions = {name: read_ledger(str(path)).condition for name, path in place.runs.items()}
    expected = {"asks": "unfinished", "failed": "intact", "full": "intact", "killed": "unfinished"}
    assert conditions == {name: word for name, word in expected.items() if name in conditions}
    assert {"asks", "killed"} <= set(conditions)


@pytest.mark.parametrize(
    "ledger", sorted(HERE.glob("*/models/*/ledger.jsonl")), ids=lambda path: path.parts[-4]
)
def test_runs_with_models_of_an_earlier_version_are_replayed(ledger: Path) -> None:
    """Plannings, versions of the plan, agents and their calls lead to the same end as then."""
    end = json.loads(ledger.read_text("utf-8").splitlines()[-1])
    state = replay(str(ledger))
    assert end["type"] == "run_ended"
    assert state.verdict() == end["verdict"]
    ended = [step.status for step in state.steps.values()]
    assert ended.count("completed") == end["summary"]["completed"]
    assert state.planning is not None
    assert state.planning.calls


@every([OLDEST, LAST])
def test_runs_of_an_earlier_version_are_continued(place: Place) -> None:
    """A killed run repeats no ended step, and a waiting one takes its answer."""
    place("resume", place.id_of("killed"), "--adopt", "--quiet")
    place("resume", place.id_of("asks"), "--adopt", "--quiet", "--decide", "sure=yes", expect=5)
    place("approve", place.id_of("asks"), "deploy", "--resume")
    ran = (place.folder / "ran").read_text("utf-8").split()
    made = ["made", "undone"] if "failed" in place.runs else []
    assert ran == ["built", "done", *made, "lost", "after", "deployed"]
    for name in ("killed", "asks"):
        assert read_ledger(str(place.runs[name])).condition == "intact"


@every([WITH_QUEUE[0], LAST])
def test_lock_cache_and_history_of_an_earlier_version_hold(place: Place) -> None:
    """The locked plan runs, the step with a kept result does not run again, and the durations are still known."""
    (past,) = [
        found
        for path in (place.folder / ".planrun" / "history").iterdir()
        if "words" in (found := history.read(str(path))).cells
    ]
    (place.folder / "words.txt").unlink()
    # The digest covers more files than in that version, so its lock has to be made anew, and says so.
    assert "script in.txt is new" in place("execute", "full.yml", "--locked", expect=3)
    said = place("execute", "full.yml")
    assert f"words (cached, of run {place.id_of('full')})" in said
    assert (place.folder / "words.txt").read_text("utf-8") == "ONE TWO\n"
    assert past.runs == (place.id_of("full"),)
    assert past.samples("flaky")[0].ending == "flaky"


@every([LAST])
def test_the_queue_of_an_earlier_version_runs(place: Place) -> None:
    """Its entries keep their order and options; an entry whose plan fails is named."""
    said = place("queue", "run", expect=1)
    assert "entry 2, failed.yml: failed" in said
    entries = json.loads(place("queue", "list", "--json"))["entries"]
    assert [(entry["plan"], entry["status"]) for entry in entries] == [
        ("full.yml", "completed"),
        ("failed.yml", "failed"),
    ]
    begun = [
        json.loads(path.read_text("utf-8").partition("\n")[0])
        for path in (place.folder / ".planrun" / "runs").glob("*/ledger.jsonl")
    ]
    assert {"who": "queue"} in [event["params"] for event in begun]


@every([LAST])
def test_the_approval_of_an_earlier_version_counts_for_the_same_plan_only(place: Place) -> None:
    """It approves the digest that it names; a changed plan is not run."""
    approved = ("execute", "asks.yml", "--quiet", "--decide", "sure=yes", "--approval", "asks.approval.json")
    place(*approved)
    plan = place.folder / "asks.yml"
    plan.write_text(plan.read_text("utf-8").replace("deployed", "destroyed"), "utf-8")
    place(*approved, "--no-input", expect=5)
    assert "destroyed" not in (place.folder / "ran").read_text("utf-8")


@every(VERSIONS)
def test_a_compiled_plan_of_an_earlier_version_is_never_read(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also under the key of this version: its first line names its form."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(place.folder / "caches"))
    entries = list(Path(cache.folder()).glob("*.plan"))
    assert entries
    for entry in entries:
        key = cache.key_of(entry.read_bytes(), "plan")
        shutil.copy(entry, entry.with_name(f"{key}.plan"))
        assert cache.read(key) is None
    key = cache.key_of(b"this version's own", "plan")
    cache.write(key, ("data",))
    assert cache.read(key) == ("data",)


def append(ledger: Path, event: dict[str, object]) -> None:
    """Add a sound line, as a later version would write it."""
    last = json.loads(ledger.read_text("utf-8").splitlines()[-1])
    body = json.dumps({"seq": last["seq"] + 1, **event}, separators=(",", ":"))[:-1]
    digest = hashlib.sha256((last["hash"] + body).encode()).hexdigest()
    with ledger.open("a", encoding="utf-8") as file:
        file.write(f'{body},"hash":"{digest}"}}\n')


@every([LAST])
def test_what_a_later_version_wrote_is_refused_by_name(place: Place) -> None:
    """An unknown event or field in a sound ledger is no damage: the version is named, and nothing can drop it."""
    ledger, run = place.runs["killed"], place.id_of("killed")
    append(ledger, {"type": "run_moved", "planrun": "9.1.0", "to": "elsewhere"})
    before = ledger.read_bytes()
    reason = (
        f'newer at line 8: an event "run_moved", which planrun {__version__} does not know; use planrun 9.1.0'
    )
    assert reason in place("verify", run, expect=14)
    for words in (("resume", run, "--adopt"), ("resume", run, "--adopt", "--discard")):
        assert "use planrun 9.1.0, which wrote it" in place(*words, expect=2)
    assert ledger.read_bytes() == before
    append(place.folder / ".planrun" / "queue" / "queue.jsonl", {"type": "queue_moved"})
    assert "of a later version: " in place("queue", "list", expect=2)


@every([LAST])
def test_a_lock_and_an_approval_of_another_form_are_refused(place: Place) -> None:
    """The message names the version that is expected."""
    for name in ("full.lock.json", "asks.approval.json"):
        path = place.folder / name
        path.write_text(path.read_text("utf-8").replace('"version": 1', '"version": 2'), "utf-8")
    assert "has version 2, which is not supported; expected 1" in place(
        "execute", "full.yml", "--locked", expect=2
    )
    assert "must be 1" in place("execute", "asks.yml", "--approval", "asks.approval.json", expect=2)


def test_each_recording_is_of_a_commit_of_its_own() -> None:
    """There are several, from commits that differ."""
    commits = [(HERE / version / "commit").read_text("utf-8").strip() for version in VERSIONS]
    assert len(set(commits)) == len(commits) >= 4
    assert os.access(HERE / "record", os.X_OK)
