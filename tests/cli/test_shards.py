"""One plan on several machines: the split into shards, their runs, and one verdict."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from planrun.app.sharding import request
from planrun.errors import InvalidInput
from planrun.shards.merging import merge_junit, read_ledger

if TYPE_CHECKING:
    from tests.conftest import Command

SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "ledger.schema.json").read_bytes())
PLAN = """\
version: 1
name: suite
steps:
  - {id: setup, run: echo ready > ready}
  - id: test
    depends_on: [setup]
    matrix: {part: [a, b, c, d]}
    run: test -e ready && echo r >> "ran-${{ matrix.part }}" && test ! -e "bad-${{ matrix.part }}"
  - {id: report, depends_on: [test], run: echo r >> ran-report}
  - {id: lint, run: echo r >> ran-lint}
  - {id: docs, run: echo r >> ran-docs}
  - {id: links, depends_on: [docs], run: echo r >> ran-links}
finally:
  - {id: clean, run: "true"}
"""


def split(planrun: Command, *words: str) -> dict[str, Any]:
    """Return a split as JSON."""
    done = planrun("shard", *words, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def shards(found: dict[str, Any]) -> list[list[str]]:
    """Return the steps of each shard."""
    return [shard["steps"] for shard in found["shards"]]


def lay(planrun: Command) -> None:
    """Write the plan."""
    (planrun.folder / "plan.yml").write_text(PLAN)


def run(planrun: Command, number: int, of: int, *words: str) -> int:
    """Run one shard as a machine of its own would: nothing of the others is there."""
    shutil.rmtree(planrun.folder / ".planrun", ignore_errors=True)
    (planrun.folder / "ready").unlink(missing_ok=True)
    shard = ("--shard", f"{number}/{of}", "--legs", "test")
    code: int = planrun("execute", *shard, "--report-dir", f"shards/{number}", *words).returncode
    return code


def test_every_step_is_in_exactly_one_shard(planrun: Command) -> None:
    """Of any number of shards; what the legs need runs in each, what needs the legs in none."""
    lay(planrun)
    whole = split(planrun, "3", "--legs", "test")
    steps = [step for steps in shards(whole) for step in steps]
    legs = [f"test[part={part}]" for part in "abcd"]
    assert sorted(steps) == sorted([*legs, "lint", "docs", "links"])
    assert (whole["each"], whole["after"]) == (["setup"], ["report"])
    assert any({"docs", "links"} <= set(shard) for shard in shards(whole))
    assert split(planrun, "3", "--legs", "test") == whole
    assert planrun("shard", "2/3", "--legs", "test").stdout.splitlines() == shards(whole)[1]


def test_without_legs_what_depends_on_each_other_stays_together(planrun: Command) -> None:
    """A plan with fewer parts than shards leaves shards empty, and the output says how to split further."""
    lay(planrun)
    done = planrun("shard", "4")
    assert "the plan has 3 parts that can be split; --legs STEP splits the instances of a step" in done.stdout
    sizes = sorted(map(len, shards(split(planrun, "4"))))
    assert sizes == [0, 1, 2, 7]  # the group `test` counts beside its instances


def test_known_durations_balance_the_shards(planrun: Command) -> None:
    """The longest leg gets a shard of its own, by a ledger of an earlier run."""
    lay(planrun)
    spent = {"test[part=a]": 30.0, "test[part=b]": 10.0, "test[part=c]": 10.0, "test[part=d]": 9.0}
    steps = [
        {"id": name, "status": "completed", "attempts": [{"duration_s": seconds}]}
        for name, seconds in {**spent, "lint": 0.1, "docs": 0.1, "links": 0.1}.items()
    ]
    (planrun.folder / "timings.json").write_text(json.dumps({"steps": steps}))
    found = split(planrun, "2", "--legs", "test", "--timings", "timings.json")
    assert ["test[part=a]"] in [[step for step in shard if "[" in step] for shard in shards(found)]
    assert abs(found["shards"][0]["seconds"] - found["shards"][1]["seconds"]) < 1


def test_the_shards_of_a_run_are_merged_into_one_verdict(planrun: Command) -> None:
    """Each step ran once, a failed leg fails the whole, JUnit and ledger have every step, and readers accept both."""
    lay(planrun)
    (planrun.folder / "bad-c").touch()
    codes = [run(planrun, number, 3) for number in (1, 2, 3)]
    assert sorted(codes) == [0, 0, 1]
    ran = {path.name: path.read_text().count("r") for path in planrun.folder.glob("ran-*")}
    assert ran == dict.fromkeys(["ran-a", "ran-b", "ran-c", "ran-d", "ran-lint", "ran-docs", "ran-links"], 1)
    done = planrun("merge", "shards")
    assert done.returncode == 1
    assert "✗ test[part=c]: failed (exit)" in done.stdout
    assert "■ report: blocked (upstream)" in done.stdout
    ledger = json.loads((planrun.folder / "planrun-out" / "ledger.json").read_bytes())
    jsonschema.validate(ledger, SCHEMA)
    assert ledger["verdict"] == "failed"
    assert ledger["summary"] == {
        "total": 10,
        "completed": 8,
        "failed": 1,
        "skipped": 0,
        "blocked": 1,
        "cancelled": 0,
    }
    cases = list(ET.parse(planrun.folder / "planrun-out" / "junit.xml").getroot().iter("testcase"))
    assert len({case.get("name") for case in cases}) == len(cases) == 10
    assert [case.get("name") for case in cases if case.find("failure") is not None] == ["test[part=c]"]
    assert [case.get("name") for case in cases if case.find("skipped") is not None] == ["report"]


def test_a_missing_shard_and_shards_of_another_split_are_no_success(planrun: Command) -> None:
    """What was left for after all shards can be added; a lost, a doubled or a strange shard cannot pass."""
    lay(planrun)
    assert [run(planrun, number, 2) for number in (1, 2)] == [0, 0]
    merged = planrun("merge", "shards", "--report-dir", "out")
    assert merged.returncode == 0
    assert "report: left for after all shards, and not run" in merged.stdout
    planrun("execute", "--only", "report", "--report-dir", "shards/after")
    done = planrun("merge", "shards", "--report-dir", "out")
    assert done.returncode == 0
    assert "not run" not in done.stdout
    assert json.loads((planrun.folder / "out" / "ledger.json").read_bytes())["summary"]["skipped"] == 0
    missing = planrun("merge", "shards/1", "shards/after", "--report-dir", "out")
    assert (missing.returncode, "missing: shard 2" in missing.stdout) == (1, True)
    twice = planrun("merge", "shards", "shards/1/../1", "--report-dir", "out")
    assert (twice.returncode, "is there twice" in twice.stderr) == (2, True)
    planrun("execute", "--shard", "2/2", "--report-dir", "shards/2")
    strange = planrun("merge", "shards", "--report-dir", "out")
    assert (strange.returncode, "give every shard the same --legs and --timings" in strange.stderr) == (
        2,
        True,
    )


@pytest.mark.parametrize("skipped", ["lint", "clean", "test"])
def test_what_no_shard_ran_is_no_success(planrun: Command, skipped: str) -> None:
    """A step that every run left out fails the whole, under `finally` or not; a later run or `--skip` mends that."""
    lay(planrun)
    assert [run(planrun, number, 2, "--skip", skipped) for number in (1, 2)] == [0, 0]
    done = planrun("merge", "shards", "--report-dir", "out")
    assert done.returncode == 1
    assert done.stdout.count("left out by every run") == 1
    assert f"  ✗ {skipped}: left out by every run; if that is meant: --skip {skipped}\n" in done.stdout
    assert json.loads((planrun.folder / "out" / "ledger.json").read_bytes())["verdict"] == "failed"
    assert f"## Left out by every run\n\n- `{skipped}`\n" in (planrun.folder / "out/report.md").read_text()
    assert planrun("merge", "shards", "--skip", skipped, "--report-dir", "out").returncode == 0
    wrong = planrun("merge", "shards", "--skip", "nothing")
    assert (wrong.returncode, '--skip: no step "nothing" in these runs' in wrong.stderr) == (2, True)
    only = ("--only", "setup") if skipped == "clean" else ("--only", skipped, "--only", "setup")
    assert planrun("execute", *only, "--report-dir", "shards/after").returncode == 0
    assert planrun("merge", "shards", "--report-dir", "out").returncode == 0


def test_the_exit_code_is_that_of_the_worst_shard_and_no_step_may_be_lost(planrun: Command) -> None:
    """The first shard completed, the second did not; a step that both ledgers disown is an error."""
    lay(planrun)
    own = {number: run(planrun, number, 2) for number in (1, 2)}
    assert own == {1: 0, 2: 0}
    file = planrun.folder / "shards" / "2" / "ledger.json"
    text = file.read_text()
    data = json.loads(text)
    file.write_text(json.dumps({**data, "verdict": "failed", "exit_code": 1}))
    assert planrun("merge", "shards", "--report-dir", "out").returncode == 1
    lost = data["shard"]["steps"].pop()
    file.write_text(json.dumps(data))
    done = planrun("merge", "shards", "--report-dir", "out")
    assert (done.returncode, f'step "{lost}" is in no shard' in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"duration_s":', '"duration_s":"x","was":'),
        ('"verdict":"completed"', '"verdict":"great"'),
        ('"steps":[', '"steps":[5,'),
        ('"shard":{"number":1', '"shard":{"number":"1"'),
        ('"members":[', '"members":0,"was":['),
        ('"schema_version":1', '"schema_version":2'),
    ],
)
def test_a_ledger_of_another_form_is_refused(planrun: Command, old: str, new: str) -> None:
    """It comes from another machine: whatever it holds, the message names the file, and there is no traceback."""
    ledger = planrun.folder / "ledger.json"
    step = dict.fromkeys(("id", "status", "reason", "section", "kind"), "steps")
    whole: dict[str, Any] = dict.fromkeys(("gates", "approvals", "agents", "notifications", "lifecycle"), ())
    whole |= {"schema_version": 1, "run_id": "r", "plan": {"digest": "d", "name": "n"}, "status": "completed"}
    whole |= {"verdict": "completed", "exit_code": 0, "started_at": None, "ended_at": None, "duration_s": 1}
    whole |= {"shard": {"number": 1, "of": 1, "split": "x", "steps": [], "each": [], "after": []}}
    whole |= {"usage": {}, "outputs": {}, "steps": [{**step, "group": None, "attempts": [], "members": []}]}
    text = json.dumps(whole, separators=(",", ":"))
    ledger.write_text(text)
    assert read_ledger(str(ledger)).label == "1/1"
    assert text.count(old)
    ledger.write_text(text.replace(old, new))
    with pytest.raises(InvalidInput, match=r"ledger\.json is no ledger\.json"):
        read_ledger(str(ledger))


@pytest.mark.parametrize(
    ("variables", "shard"),
    [
        ({"CI_NODE_INDEX": "2", "CI_NODE_TOTAL": "3"}, "2/3"),
        ({"CIRCLE_NODE_INDEX": "1", "CIRCLE_NODE_TOTAL": "3"}, "2/3"),
        ({"BUILDKITE_PARALLEL_JOB": "1", "BUILDKITE_PARALLEL_JOB_COUNT": "3"}, "2/3"),
        ({"SYSTEM_JOBPOSITIONINPHASE": "2", "SYSTEM_TOTALJOBSINPHASE": "3"}, "2/3"),
    ],
)
def test_a_job_that_is_one_of_several_knows_its_shard(variables: dict[str, str], shard: str) -> None:
    """`auto` reads the variables of GitLab, CircleCI, Buildkite and Azure, two of which count from zero."""
    assert request("auto", (), "", variables).name == shard


def test_auto_on_the_command_line(planrun: Command) -> None:
    """A job of GitLab with `parallel: 3` runs its own shard."""
    lay(planrun)
    job = {"GITLAB_CI": "true", "CI_NODE_INDEX": "2", "CI_NODE_TOTAL": "3"}
    own = planrun("shard", "auto", "--legs", "test", env=job)
    assert own.stdout == planrun("shard", "2/3", "--legs", "test").stdout


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("shard", "0/2"), "--shard takes N/M with N from 1 to M"),
        (("shard", "auto"), "no variable says which of several jobs this is"),
        (
            ("shard", "2", "--legs", "lint"),
            'step "lint" has no instances that are known before it runs; steps that have: test',
        ),
        (("shard", "2", "--legs", "tes"), 'no step "tes" in the plan; did you mean "test"'),
        (("shard", "2", "--timings", "plan.yml"), "plan.yml is no ledger.json of a run"),
        (("execute", "--shard", "1/2", "--only", "lint"), "--shard selects the steps itself"),
        (("merge", "."), "no ledger.json in ."),
        (("merge", "plan.yml"), "plan.yml is no ledger.json"),
    ],
)
def test_wrong_requests_are_refused(planrun: Command, words: tuple[str, ...], why: str) -> None:
    """Exit code 2, with the reason and a hint."""
    lay(planrun)
    done = planrun(*words)
    assert done.returncode == 2
    assert why in done.stderr


def test_the_matrix_of_github(planrun: Command) -> None:
    """The output `matrix` has a value that fromJSON reads, with one entry for each shard."""
    lay(planrun)
    output = planrun.folder / "output"
    done = planrun(
        "shard",
        "2",
        "--legs",
        "test",
        "--matrix",
        env={"GITHUB_ACTIONS": "true", "GITHUB_OUTPUT": str(output)},
    )
    rows = [{"shard": "1/2", "number": 1}, {"shard": "2/2", "number": 2}]
    assert json.loads(done.stdout) == {"include": rows}
    assert output.read_text() == f"matrix={done.stdout}"


def test_a_junit_file_with_entities_is_refused(tmp_path: Path) -> None:
    """The files come from other machines, and entities can expand without bounds."""
    bomb = tmp_path / "junit.xml"
    bomb.write_text('<!DOCTYPE x [<!ENTITY a "b">]><testsuites>&a;</testsuites>')
    with pytest.raises(InvalidInput, match="declares entities"):
        merge_junit([str(bomb)])
