"""Earlier results of steps that are used again, in runs with real processes and real stores."""

from __future__ import annotations

import os
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import planrun
from planrun.app.caching import own_store
from planrun.model.state import RunState
from planrun.plan.load import load_bytes
from planrun.store.entries import YOUNG, Store, clear_store, prune, rows, size, verify
from tests.conftest import Command

PLAN = """version: 1
params: {word: {type: string, default: one}}
steps:
  - id: make
    run: cat src/* > out.txt; echo "$WORD" >> out.txt; echo size=$(wc -c < out.txt) >> "$PLANRUN_OUTPUT"; echo x >> ran
    env: {WORD: "${{ params.word }}"}
    outputs: {size: integer}
    inputs: src
    produces: out.txt
    cache: true
  - id: use
    depends_on: [make]
    run: mkdir -p deep/er; cp out.txt deep/er/copy; chmod +x deep/er/copy; ln -sf copy deep/er/link; echo y >> ran
    produces: deep
    cache: true
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A workspace and a store of their own."""
    (tmp_path / "w" / "src").mkdir(parents=True)
    (tmp_path / "w" / "src" / "a").write_text("a\n")
    monkeypatch.chdir(tmp_path / "w")
    monkeypatch.setenv("PLANRUN_CACHE_DIR", str(tmp_path / "cache"))


def run(text: str = PLAN, params: dict[str, Any] | None = None, **options: Any) -> RunState:
    """Execute a plan and return how it ended."""
    plan = load_bytes(text.encode(), "plan.yml", cache=False)
    return planrun.execute(plan, params=params, **options)


def reasons(state: RunState) -> dict[str, str]:
    """Return the reason with which each step ended."""
    return {name: step.reason for name, step in state.steps.items()}


def why(state: RunState, step: str) -> str:
    """Return why a step ran."""
    ended = state.steps[step].attempts[-1].ended
    assert ended is not None
    return str(ended.cache.get("why"))


def ran() -> str:
    """Return which steps really ran so far, a letter each."""
    return Path("ran").read_text().replace("\n", "")


def test_the_second_run_runs_nothing() -> None:
    """Results are used again with outputs and files, and the processes did not run."""
    first, second = run(), run()
    assert reasons(second) == {"make": "cached", "use": "cached"}
    assert second.steps["make"].outputs == first.steps["make"].outputs == {"size": 6}
    assert not second.steps["make"].attempts
    assert ran() == "xy"


def test_times_count_for_nothing() -> None:
    """Other times of inputs and produced files change nothing; content does, as old as it may look."""
    run()
    for name in ("src/a", "out.txt"):
        os.utime(name, (1, 1))
    assert reasons(run())["make"] == "cached"
    stamp = Path("src/a").stat()
    Path("src/a").write_text("b\n")
    os.utime("src/a", ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert reasons(run())["make"] == "ran"


def test_what_is_missing_is_put_back() -> None:
    """Files that are gone or altered come back with content, rights and links, and the step does not run."""
    run()
    Path("out.txt").write_text("altered")
    shutil.rmtree("deep")
    assert reasons(run()) == {"make": "cached", "use": "cached"}
    assert Path("out.txt").read_text() == "a\none\n"
    assert os.access("deep/er/copy", os.X_OK)
    assert os.readlink("deep/er/link") == "copy"
    assert ran() == "xy"


@pytest.mark.parametrize(
    ("change", "params", "reason"),
    [
        (lambda: Path("src/a").write_text("b\n"), {}, "input src/a changed"),
        (lambda: Path("src/b").write_text("b\n"), {}, "input src/b is new"),
        (lambda: Path("src/a").chmod(0o755), {}, "input src/a changed"),
        (lambda: None, {"word": "two"}, "env WORD changed"),
        (lambda: None, {"plan": PLAN.replace("echo x", "echo z")}, "its command changed"),
        (lambda: None, {"plan": PLAN.replace("cache: true\n  -", "cache: {key: v2}\n  -")}, "key is new"),
        (lambda: None, {"plan": PLAN.replace("size: integer", "size: number")}, "its output size changed"),
    ],
)
def test_the_first_difference_is_named(change: Any, params: dict[str, str], reason: str) -> None:
    """Each part of the key has the step run again, and is what it is said to run because of."""
    run()
    change()
    text = params.pop("plan", PLAN)
    state = run(text, params)
    assert state.steps["make"].reason == "ran"
    assert reason in why(state, "make") or reason.split(" is ", maxsplit=1)[0] in why(state, "make")
    assert reasons(run(text, params))["make"] == "cached"


def test_only_what_depends_on_a_change_runs() -> None:
    """A change upstream that produces the same files and outputs changes nothing downstream."""
    run()
    state = run(PLAN.replace("echo x", "echo w"))
    assert reasons(state) == {"make": "ran", "use": "cached"}
    state = run(params={"word": "three"})
    assert reasons(state) == {"make": "ran", "use": "ran"}
    assert why(state, "use").startswith("upstream output size of make")


def test_what_must_not_be_kept_is_not() -> None:
    """Failed and flaky attempts, and those whose inputs changed meanwhile, leave no result."""
    text = "version: 1\nsteps: [{{id: a, run: {}, retries: 1, inputs: src, cache: true}}]\n"
    flaky = text.format("'test -e seen || { touch seen; exit 1; }'")
    assert reasons(run(flaky))["a"] == "flaky"
    assert reasons(run(flaky))["a"] == "ran"
    moving = text.format("'date +%N > src/a'")
    state = run(moving)
    ended = state.steps["a"].attempts[-1].ended
    assert ended is not None
    assert ended.cache["because"] == "input src/a changed while it ran"


def test_no_cache_runs_and_keeps() -> None:
    """With --no-cache every step runs, and what it leaves is used by the next run."""
    run()
    assert reasons(run(cache=False)) == {"make": "ran", "use": "ran"}
    assert reasons(run()) == {"make": "cached", "use": "cached"}


def test_a_shared_store_serves_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user with another workspace and a private store gets the results of the shared one."""
    shared = str(tmp_path / "shared")
    run(cache_store=shared)
    monkeypatch.setenv("PLANRUN_CACHE_DIR", str(tmp_path / "other"))
    shutil.copytree("src", tmp_path / "w2" / "src")
    monkeypatch.chdir(tmp_path / "w2")
    assert reasons(run(cache_store=shared)) == {"make": "cached", "use": "cached"}
    assert Path("deep/er/link").read_text() == "a\none\n"
    assert not Path("ran").exists()


def test_secrets_stay_out_of_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No value of a secret is in the store: outputs are masked, and a file that holds one is not kept."""
    monkeypatch.setenv("API_TOKEN", "correct-horse-battery")
    text = (
        "version: 1\nsecrets: [API_TOKEN]\nsteps:\n"
        "  - {id: a, run: 'echo t=$API_TOKEN >> $PLANRUN_OUTPUT', outputs: {t: string}, secrets: [API_TOKEN],"
        " inputs: src, cache: true}\n"
        "  - {id: b, run: 'echo $API_TOKEN > out', produces: out, secrets: [API_TOKEN], inputs: src, cache: true}\n"
    )
    run(text)
    state = run(text)
    assert reasons(state) == {"a": "cached", "b": "ran"}
    assert "correct-horse" not in str(state.steps["a"].outputs)
    for folder, _, names in os.walk(tmp_path / "cache"):
        for name in names:
            assert b"correct-horse" not in (Path(folder) / name).read_bytes()


def test_the_store_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was not used for longest goes first, at the end of a run that added something."""
    store = own_store()
    assert store is not None
    monkeypatch.setenv("PLANRUN_CACHE_MAX_SIZE", "6000")
    text = (
        "version: 1\nsteps: [{id: a, run: 'head -c 4000 src/a > o', inputs: src, produces: o, cache: true}]\n"
    )
    for letter in "abc":
        Path("src/a").write_text(letter * 5000)
        run(text)
    assert len(rows(store)) == 1
    assert size(store) == 4000
    assert prune(store, 0).entries == 1
    assert clear_store(store).entries == 0


def test_only_ones_own_folder_is_believed(tmp_path: Path) -> None:
    """Nothing is taken from a store of one's own that others can write."""
    run()
    (tmp_path / "cache" / "store").chmod(0o777)
    assert reasons(run()) == {"make": "ran", "use": "ran"}


def test_damage_is_found_and_goes_away() -> None:
    """Damaged entries and bytes are named by `verify`, taken out, and steps run."""
    run()
    store = own_store()
    assert store is not None
    for kind in ("entries", "blobs"):
        for path in (Path(store.path) / kind).glob("*/*"):
            path.chmod(0o600)
            path.write_bytes(path.read_bytes()[:-1] + b"!")
    Path("out.txt").unlink()
    assert reasons(run())["make"] == "ran"
    sound, damaged = verify(Store(store.path))
    assert sound
    assert reasons(run()) == {"make": "cached", "use": "cached"}
    assert not verify(store)[1]
    assert isinstance(damaged, list)


def test_a_forged_entry_reaches_no_other_file() -> None:
    """An entry that names files outside of `produces`, or outside of the workspace, is none."""
    run()
    store = own_store()
    assert store is not None
    for row in rows(store):
        for path in ("../evil", "/tmp/evil", "src/evil", ".git/config"):
            files = tuple([each.but(path=path) for each in row.entry.files])
            assert store.write(row.entry.but(files=files))
            Path("out.txt").unlink(missing_ok=True)
            state = run()
            assert "cached" not in reasons(state).values() or not Path("src/evil").exists()
    assert not Path("../evil").exists()
    assert not Path("src/evil").exists()


def test_what_was_not_proven_is_not_kept() -> None:
    """A result is kept once `expect` and `verify` hold; until then the step runs again."""
    text = (
        "version: 1\nsteps: [{id: a, run: 'cp src/a o', inputs: src, produces: o, cache: true,"
        " expect: [{files_exist: [o]}], verify: test -e allowed}]\n"
    )
    assert reasons(run(text))["a"] == "verify"
    assert run(text).steps["a"].status == "failed"
    Path("allowed").touch()
    assert reasons(run(text))["a"] == "ran"
    assert reasons(run(text))["a"] == "cached"


@pytest.mark.parametrize(("age", "stays"), [(0.0, True), (YOUNG - 60, True), (YOUNG + 60, False)])
def test_young_bytes_without_an_entry_stay(tmp_path: Path, age: float, *, stays: bool) -> None:
    """A run writes the bytes of a result before the entry that names them, and pruning must not come in between."""
    store = Store(str(tmp_path / "store"))
    store.open()
    (tmp_path / "made").write_bytes(b"made")
    digest = sha256(b"made").hexdigest()
    with (tmp_path / "made").open("rb") as made:
        assert store.add(made.fileno(), digest, 4)
    blob = next(path for path in (tmp_path / "store").rglob(f"*{digest[2:]}*") if path.is_file())
    then = blob.stat().st_mtime - age
    os.utime(blob, (then, then))
    pruned = prune(store, 1 << 30)
    assert (store.has(digest, 4), pruned.bytes) == (stays, 0 if stays else 4)


INSTANCES = """version: 1
steps:
  - {id: b, matrix: {p: [a, b]}, run: "SLOW echo ${{ matrix.p }} > ${{ matrix.p }}.t", produces: "${{ matrix.p }}.t"}
  - {id: u, matrix: {p: [a, b]}, depends_on: {b: {instance: ok}}, cache: true, run: "cat ${{ matrix.p }}.t"}
"""


def test_of_instances_only_the_own_one_is_part_of_the_key() -> None:
    """Siblings that happen to have ended change nothing; the own one does."""
    users = ["u[p=a]", "u[p=b]"]
    run(INSTANCES.replace("SLOW", "test ${{ matrix.p }} = a || sleep 0.5;"), jobs=2)
    second = run(INSTANCES.replace("SLOW", ""), jobs=1)
    assert [second.steps[name].reason for name in users] == ["cached", "cached"]
    third = run(INSTANCES.replace("SLOW echo", "echo new"), jobs=1)
    assert [why(third, name) for name in users] == [
        "upstream files of b[p=a] changed",
        "upstream files of b[p=b] changed",
    ]


def test_a_retry_that_was_requested_runs_the_step() -> None:
    """`planrun retry` does not answer from the store."""
    run()
    done = Command(Path.cwd())("retry", "last", "make")
    assert done.returncode == 0, done.stderr
    assert ran() == "xyx"


FORGED = [
    ({"size": "6"}, "an output has another type"),
    ({"size": 6, "more": 1}, "other outputs"),
    ({}, "other outputs"),
]


@pytest.mark.parametrize(("outputs", "reason"), FORGED)
def test_a_forged_entry_brings_no_output_of_another_type(outputs: dict[str, Any], reason: str) -> None:
    """The step runs, and says what is wrong with the entry."""
    run()
    store = own_store()
    assert store is not None
    for row in rows(store):
        if row.entry.step == "make":
            assert store.write(row.entry.but(outputs=outputs))
    state = run()
    assert state.steps["make"].outputs == {"size": 6}
    assert reason in why(state, "make")


CASES = """version: 1
steps:
  - id: test
    cache: true
    reports: {junit: out.xml}
    run: |
      echo '<testsuite name="s"><testcase name="a" classname="c"/>' > out.xml
      echo '<testcase name="b" classname="c"/></testsuite>' >> out.xml
"""


def test_an_earlier_result_brings_its_test_cases() -> None:
    """They are in junit.xml of the second run, whether their file is there or not."""
    run(CASES)
    Path("out.xml").unlink()
    state = run(CASES, html=False)
    assert state.steps["test"].reason == "cached"
    assert state.steps["test"].restored is not None
    assert state.steps["test"].restored.reports["junit"]["tests"] == 2
    assert Path("planrun-out/junit.xml").read_text().count('classname="c"') == 2


BAD_CASES = [
    None,
    "x",
    "[]",
    '{"name":"a","class":"c","time":0}',
    '{"suite":"s","time":0}\n{"name":1,"class":"c","time":0}',
    '{"suite":"s","time":0}\n{"name":"a","class":"c","time":"0"}',
    '{"suite":"s","time":0}\n{"name":"a","class":"c","time":0,"result":["odd","","",""]}',
    '{"suite":"s","time":0}\n{"name":"a","class":"c","time":0,"result":["failure",[],"",""]}',
    '{"suite":"s","time":NaN}\n',
]


@pytest.mark.parametrize("cases", BAD_CASES)
def test_a_forged_entry_without_sound_test_cases_is_none(cases: str | None) -> None:
    """The step runs."""
    run(CASES)
    store = own_store()
    assert store is not None
    (row,) = rows(store)
    assert store.write(row.entry.but(cases=cases))
    state = run(CASES)
    assert state.steps["test"].reason == "ran"
    assert "test cases" in why(state, "test")


def test_logs_of_an_earlier_result_are_those_of_its_run() -> None:
    """As long as that run is there."""
    text = "version: 1\nsteps: [{id: a, cache: true, run: echo shown}]\n"
    run(text)
    assert reasons(run(text))["a"] == "cached"
    shown = Command(Path.cwd())("logs", "last", "a")
    assert (shown.returncode, shown.stdout) == (0, "shown\n")
    assert "a is cached; this is its log of run" in shown.stderr
    shutil.rmtree(min(Path(".planrun/runs").iterdir()))
    gone = Command(Path.cwd())("logs", "last", "a")
    assert (gone.stdout, "its result was taken from the cache" in gone.stderr) == ("", True)
