"""The files that steps name, in runs with real processes."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest

import planrun
from planrun.actions.files import MAX_LISTED, digest, listing, patterns, snapshot
from planrun.errors import InvalidPlan
from planrun.plan.load import load_bytes

if TYPE_CHECKING:
    from pathlib import Path


def run(folder: Path, steps: str, **options: Any) -> dict[str, dict[str, Any]]:
    """Execute steps in a folder and return the steps of ledger.json."""
    (folder / "plan.yml").write_text(f"version: 1\nsteps:\n{steps}", encoding="utf-8")
    planrun.execute(planrun.load(str(folder / "plan.yml")), **options)
    ledger = json.loads((folder / "planrun-out" / "ledger.json").read_text("utf-8"))
    return {step["id"]: step for step in ledger["steps"]}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_changes_of_files_are_recorded(tmp_path: Path) -> None:
    """The record lists files with their change, by content, whatever their times are."""
    for name in ("kept", "edited", "gone"):
        (tmp_path / f"{name}.out").write_text("1")
    (tmp_path / "in.txt").write_text("x")
    (tmp_path / "other.md").write_text("y")
    found = run(
        tmp_path,
        "  - id: a\n    inputs: '*.txt'\n    produces: '*.out'\n    writes: '*.md'\n"
        "    run: touch kept.out; echo 2 > edited.out; rm gone.out; echo 3 > new.out; echo z > other.md\n",
    )
    (attempt,) = found["a"]["attempts"]
    rows = {row["path"]: row for row in attempt["files"]}
    assert {path: row["op"] for path, row in rows.items()} == {
        "edited.out": "changed",
        "gone.out": "deleted",
        "in.txt": "read",
        "kept.out": "unchanged",
        "new.out": "created",
        "other.md": "changed",
    }
    assert rows["new.out"]["sha256"] == hashlib.sha256(b"3\n").hexdigest()
    assert rows["edited.out"]["before"] == hashlib.sha256(b"1").hexdigest()
    assert rows["other.md"]["key"] == "writes"


def test_a_missing_file_fails_the_step(tmp_path: Path) -> None:
    """A step that completed without its declared outputs is failed(outputs), and the message names the file."""
    found = run(tmp_path, "  - {id: a, run: touch x.o, produces: ['*.o', dist/app, 'lib/**']}\n")
    (attempt,) = found["a"]["attempts"]
    assert (found["a"]["status"], found["a"]["reason"]) == ("failed", "outputs")
    assert 'no file matches "dist/app", "lib/**"' in attempt["error"]["message"]


def test_values_in_patterns_stand_for_themselves(tmp_path: Path) -> None:
    """A value with the signs of patterns matches the file of that name, and one that leads out is refused."""
    text = (
        "version: 1\nparams: {name: {type: string, default: x}}\n"
        "steps: [{id: a, exec: [touch, '${{ params.name }}'], produces: '${{ params.name }}'}]\n"
    )
    (tmp_path / "aa").touch()
    plan = load_bytes(text.encode(), "plan.yml", cache=False)
    state = planrun.execute(plan, params={"name": "a*"})
    assert [row["path"] for row in state.steps["a"].attempts[0].ended.files] == ["a*"]  # type: ignore[union-attr]
    state = planrun.execute(plan, params={"name": "../a"})
    assert state.steps["a"].reason == "refused"


def test_paths_stay_inside_the_workspace(tmp_path: Path) -> None:
    """Links are files of their own and are not followed; records and version control are never matched."""
    outside = tmp_path / "outside"
    (outside / "deep").mkdir(parents=True)
    (outside / "deep" / "secret").touch()
    root = tmp_path / "root"
    for folder in (".git", ".planrun", "planrun-out", "src"):
        (root / folder).mkdir(parents=True)
        (root / folder / "file").touch()
    (root / "link").symlink_to(outside)
    seen = snapshot(str(root), patterns(("**", "link/deep/*", "link/**/secret"), {}), ("planrun-out",))
    assert list(seen) == ["link", "src/file"]
    assert seen["link"].link


@pytest.mark.parametrize(
    "among", ["foreach: [1, 2, 3]", 'foreach: "${{ steps.l.outputs.l }}"', "matrix: {a: [1, 2, 3]}"]
)
def test_steps_that_change_the_same_files_run_one_at_a_time(among: str, tmp_path: Path) -> None:
    """Steps and instances whose `writes` can match the same file never run at the same time; others do not wait."""
    alone = "mkdir turn; sleep 0.1; rmdir turn"
    found = run(
        tmp_path,
        "  - {id: l, run: \"echo 'l=[1,2,3]' >> $PLANRUN_OUTPUT\", outputs: {l: array}}\n"
        f"  - {{id: many, {among}, depends_on: [l], run: '{alone}', writes: 'docs/**'}}\n"
        f"  - {{id: one, depends_on: [l], run: '{alone}', writes: docs/index.md}}\n",
        jobs=4,
    )
    assert {step["status"] for step in found.values()} == {"completed"}


def test_copies_of_scripts_belong_to_no_step(tmp_path: Path) -> None:
    """While a script runs from a copy beside it, no pattern of another step and no `hash_files` sees that copy."""
    (tmp_path / "hold.py").write_text("import os, time\nwhile not os.path.exists('seen'): time.sleep(0.05)\n")
    found = run(
        tmp_path,
        "  - {id: hold, run: python3 hold.py}\n"
        "  - {id: wait, run: 'until ls .planrun-*-hold.py; do sleep 0.05; done'}\n"
        "  - {id: look, depends_on: [wait], run: 'touch seen; echo $H', inputs: '**/*.py',"
        " env: {H: \"${{ hash_files('*.py') }}\"}, cache: true}\n"
        "  - {id: again, depends_on: [hold, look], run: 'echo $H', env: {H: \"${{ hash_files('*.py') }}\"}}\n",
        jobs=4,
    )
    assert [file["path"] for file in found["look"]["attempts"][0]["files"]] == ["hold.py"]
    assert found["look"]["cache"]["kept"] is True
    logs = [next(tmp_path.glob(f".planrun/runs/*/logs/{name}/1.log")) for name in ("look", "again")]
    assert len({log.read_text("utf-8") for log in logs}) == 1


def test_of_many_files_the_record_holds_the_first() -> None:
    """More than 1,000 files stand as one entry with their number, and no file can change behind it unseen."""
    rows = [
        {"path": f"f{n}", "op": "created", "sha256": f"{n:064}", "bytes": 1} for n in range(MAX_LISTED + 5)
    ]
    listed = listing(rows)
    assert len(listed) == MAX_LISTED + 1
    assert (listed[-1]["op"], listed[-1]["count"], listed[-1]["bytes"]) == ("more", 5, 5)
    other = listing([*rows[:-1], {**rows[-1], "sha256": "f" * 64}])
    assert digest(other) != digest(listed)


@pytest.mark.parametrize("schedule", ["dag", "levels", "batches", "sequential"])
def test_groups_that_change_the_same_files_do_not_wait_for_each_other_for_ever(
    schedule: str, tmp_path: Path
) -> None:
    """Neither two groups whose instances are found during the run, nor a group and an earlier step."""
    alone = "mkdir turn; sleep 0.05; rmdir turn"
    listed = 'foreach: "${{ steps.l.outputs.l }}"'
    found = run(
        tmp_path,
        "  - {id: l, run: \"echo 'l=[1,2]' >> $PLANRUN_OUTPUT\", outputs: {l: array}}\n"
        "  - {id: z, depends_on: [l], run: 'true'}\n"
        f"  - {{id: x, depends_on: [z], run: '{alone}', writes: 'd/**'}}\n"
        f"  - {{id: t, depends_on: [l], {listed}, run: '{alone}', writes: 'd/**'}}\n"
        f"  - {{id: u, depends_on: [l], {listed}, run: '{alone}', writes: 'd/a'}}\n"
        f"schedule: {schedule}\n",
        jobs=4,
    )
    assert {step["status"] for step in found.values()} == {"completed"}


def test_only_instances_run_one_at_a_time(tmp_path: Path) -> None:
    """Also where no other step of the plan names a file."""
    found = run(
        tmp_path,
        "  - {id: many, foreach: \"${{ fromjson('[1, 2, 3]') }}\", "
        "run: 'mkdir turn; sleep 0.1; rmdir turn', writes: shared}\n",
        jobs=4,
    )
    assert {step["status"] for step in found.values()} == {"completed"}


_MANY = ", ".join([f"n{number}" for number in range(16)])


@pytest.mark.parametrize(
    "written",
    [
        "".join(
            f"  - {{id: a{n}, matrix: {{p: [{_MANY}], q: [{_MANY}]}}, run: 'true', "
            "writes: '**/${{ matrix.p }}-${{ matrix.q }}'}\n"
            for n in range(4)
        ),
        "".join(f"  - {{id: s{n}, run: 'true', writes: shared}}\n" for n in range(1001)),
    ],
    ids=["patterns", "files"],
)
def test_files_of_too_many_steps_are_an_error(written: str, tmp_path: Path) -> None:
    """Patterns of instances count each for itself, and so does one file that very many steps change."""
    (tmp_path / "plan.yml").write_text(f"version: 1\nsteps:\n{written}")
    with pytest.raises(InvalidPlan) as caught:
        planrun.load(str(tmp_path / "plan.yml"))
    assert {problem.code for problem in caught.value.problems} == {"E241"}


@pytest.mark.parametrize("among", ["[10, 20]", "\"${{ fromjson('[10, 20]') }}\""])
def test_two_instances_do_not_make_the_same_file(among: str, tmp_path: Path) -> None:
    """If a pattern gives the same name for two instances, the group is refused and none of them starts."""
    produces = "'out-${{ len(tojson(item)) }}'"
    found = run(
        tmp_path, f"  - {{id: t, foreach: {among}, run: echo x > out-2; touch ran, produces: {produces}}}\n"
    )
    assert (found["t"]["status"], found["t"]["reason"]) == ("failed", "refused")
    assert not (tmp_path / "ran").exists()
