"""Approvals as files: what `approve PLAN` writes, what is accepted, what one covers, and how uses are counted."""

from __future__ import annotations

import json
import os
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from planrun.approval.approvals import USES, Approvals, expiry, read_approvals
from planrun.approval.policies import Approval
from planrun.errors import InvalidInput, InvalidPlan

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    Run = Callable[..., subprocess.CompletedProcess[str]]

SCHEMA: Any = json.loads((Path(__file__).parents[2] / "schemas" / "approval.schema.json").read_bytes())
DIGEST, OTHER = "a" * 64, "b" * 64
GOOD: dict[str, Any] = {
    "version": 1,
    "id": "a-1",
    "digest": DIGEST,
    "steps": ["publish"],
    "approver": "ann",
    "expires": "2026-01-31T09:30:00Z",
    "uses": 1,
}
BEFORE, AFTER = 1_700_000_000.0, 1_900_000_000.0  # seconds around that moment


def write(folder: Path, **changes: Any) -> Path:
    """Write an approval file, one key a line."""
    path = folder / "approval.json"
    fields = {key: value for key, value in {**GOOD, **changes}.items() if value is not ...}
    path.write_text(json.dumps(fields, indent=1))
    return path


def home(folder: Path) -> str:
    """Make the folder in which uses are counted."""
    path = folder / ".planrun"
    path.mkdir(exist_ok=True)
    return str(path)


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown key": (
        {"use": 3},
        ':11:2: error[E104]: unknown key "use" in an approval; did you mean "uses"?',
    ),
    "no digest": ({"digest": ...}, ':1:1: error[E102]: "digest" is missing in the approval'),
    "another version": ({"version": 2}, ':2:13: error[E106]: "version" must be 1'),
    "a version as text": ({"version": "1"}, ':2:13: error[E106]: "version" must be 1'),
    "a digest that is none": ({"digest": "A" * 64}, '"digest" is a SHA-256'),
    "no steps": ({"steps": []}, '"steps" is a list of ids'),
    "steps and all": ({"steps": ["a", "*"]}, '"steps" names steps, or "*" alone'),
    "a step twice": ({"steps": ["a", "a"]}, '"steps" names a step twice'),
    "a date": ({"expires": "2026-01-31"}, '"expires" is a time with its zone'),
    "no zone": ({"expires": "2026-01-31T09:30:00"}, '"expires" is a time with its zone'),
    "a month 13": ({"expires": "2026-13-31T09:30:00Z"}, '"expires" is a time with its zone'),
    "a number as time": ({"expires": 5}, '"expires" is a time with its zone'),
    "no use": ({"uses": 0}, '"uses" is a number from 1 up'),
    "half a use": ({"uses": 1.5}, '"uses" is a number from 1 up'),
    "uses as text": ({"uses": "1"}, '"uses" is a number from 1 up'),
    "true uses": ({"uses": True}, '"uses" is a number from 1 up'),
    "an id with a path": ({"id": "../x"}, '"id" consists of letters'),
    "no approver": ({"approver": "  "}, '"approver" is a line'),
    "two lines": ({"approver": "a\nb"}, '"approver" is a line'),
}
# What the schema cannot say: that a time exists, and what may be printed.
LOOSE = {"a month 13", "two lines"}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_approval_is_refused_at_its_place(planrun: Run, tmp_path: Path, name: str) -> None:
    """Exit code 2 with file, line and column before anything runs; the schema agrees."""
    changes, message = BAD[name]
    path = write(tmp_path, **changes)
    with pytest.raises(InvalidPlan):
        read_approvals([str(path)])
    if name not in LOOSE:
        assert not jsonschema.Draft7Validator(SCHEMA).is_valid(json.loads(path.read_bytes()))
    (tmp_path / "plan.yml").write_text("version: 1\nsteps:\n  - run: touch ran\n")
    done = planrun("execute", "plan.yml", "--approval", "approval.json")
    assert done.returncode == 2
    assert message in done.stderr
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"version": 1, "version": 1}', "version: 1", "{'a': 1}", "\ufeff{}"]
)
def test_what_is_no_approval_is_refused(tmp_path: Path, text: str) -> None:
    """Neither half a file nor YAML nor a key that is there twice."""
    path = tmp_path / "approval.json"
    path.write_text(text)
    with pytest.raises(InvalidInput):
        read_approvals([str(path)])


def test_a_pipe_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    """At once, and with their names."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidInput, match="it is a pipe"):
        read_approvals([str(tmp_path / "pipe")])
    with pytest.raises(InvalidInput, match="No such file"):
        read_approvals([str(tmp_path / "missing")])


def test_the_good_one_is_taken_and_the_schema_agrees(tmp_path: Path) -> None:
    """With every form of a time that has a zone."""
    for text in ("2026-01-31T09:30:00Z", "2026-01-31t09:30:00.5+02:00", "2026-01-31T09:30:00-00:00"):
        path = write(tmp_path, expires=text)
        assert read_approvals([str(path)])[0].expires == text
        jsonschema.validate(json.loads(path.read_bytes()), SCHEMA)


def given(folder: Path, run: str, now: float = BEFORE, **changes: Any) -> Approvals:
    """The approvals of a run that was given one file."""
    return Approvals(read_approvals([str(write(folder, **changes))]), home(folder), run, lambda: now)


def test_an_approval_covers_what_it_names_and_nothing_else(tmp_path: Path) -> None:
    """The digest, the step, the time and the uses have to fit, and it is said which one does not."""
    approvals = given(tmp_path, "one")
    assert approvals.covers("publish", DIGEST)
    assert not approvals.covers("test", DIGEST)
    assert "it does not name this step" in approvals.why_not("test", DIGEST)
    assert not approvals.covers("", DIGEST)
    assert "it does not approve the whole plan" in approvals.why_not("", DIGEST)
    assert not approvals.covers("publish", OTHER)
    assert "it approves aaaaaaaaaaaa; this plan is bbbbbbbbbbbb" in approvals.why_not("publish", OTHER)
    late = given(tmp_path, "one", AFTER)
    assert late.cover("publish", DIGEST) == ""
    assert "it expired at 2026-01-31T09:30:00Z" in late.why_not("publish", DIGEST)
    everything = given(tmp_path, "one", steps=["*"])
    assert everything.covers("", DIGEST)
    assert everything.covers("anything", DIGEST)


@pytest.mark.parametrize("late", [0.0, 0.001, 1.0, 59.0, 60.0, 61.0])
def test_an_approval_ends_at_its_moment(tmp_path: Path, late: float) -> None:
    """Not a moment later: it covers until right before the time that it names."""
    at = datetime.fromisoformat("2026-01-31T09:30:00+00:00").timestamp()
    assert given(tmp_path, "one", at - 0.001).cover("publish", DIGEST) == "a-1"
    assert given(tmp_path, "one", at + late).cover("publish", DIGEST) == ""


def test_a_use_is_a_run(tmp_path: Path) -> None:
    """Several steps and a resume of one run count once; a copied file is no new approval."""
    one = given(tmp_path, "one", steps=["*"])
    assert one.cover("a", DIGEST) == one.cover("b", DIGEST) == "a-1"
    assert given(tmp_path, "one", steps=["*"]).cover("a", DIGEST) == "a-1"
    assert len((tmp_path / ".planrun" / USES).read_text().splitlines()) == 1
    two = given(tmp_path, "two", steps=["*"])
    assert two.cover("a", DIGEST) == ""
    assert "it was valid for 1 run, and is used up" in two.why_not("a", DIGEST)
    copy = tmp_path / "copy.json"
    copy.write_bytes((tmp_path / "approval.json").read_bytes())
    assert not Approvals(read_approvals([str(copy)]), home(tmp_path), "two", lambda: BEFORE).covers(
        "a", DIGEST
    )
    assert given(tmp_path, "two", steps=["*"], id="a-2").cover("a", DIGEST) == "a-2"
    assert given(tmp_path, "three", steps=["*"], uses=2).cover("a", DIGEST) == "a-1"
    assert not given(tmp_path, "four", steps=["*"], uses=2).covers("a", DIGEST)


@pytest.mark.parametrize("length", range(1, 60))
def test_a_torn_line_is_no_free_use(tmp_path: Path, length: int) -> None:
    """Wherever the line was cut off, it counts; and what is written after it stands on a line of its own."""
    given(tmp_path, "one").cover("publish", DIGEST)
    path = tmp_path / ".planrun" / USES
    path.write_bytes(path.read_bytes()[:length])
    assert not given(tmp_path, "two").covers("publish", DIGEST)
    assert given(tmp_path, "two", uses=2).cover("publish", DIGEST) == "a-1"
    assert not given(tmp_path, "three", uses=2).covers("publish", DIGEST)


def test_two_files_with_one_id_must_be_the_same(tmp_path: Path) -> None:
    """Twice the same is once; two different ones are refused."""
    first = write(tmp_path)
    second = tmp_path / "second.json"
    second.write_bytes(first.read_bytes())
    assert len(read_approvals([str(first), str(second)])) == 1
    second.write_text(json.dumps({**GOOD, "uses": 9}))
    with pytest.raises(InvalidInput, match="have the same id and different contents"):
        read_approvals([str(first), str(second)])


@pytest.mark.shows("GP-53")
def test_approve_writes_what_it_shows(planrun: Run, tmp_path: Path) -> None:
    """Steps with their risk, the scripts and the digest; the file is what execute reads, and is never overwritten."""
    (tmp_path / "x.sh").write_text("#!/bin/sh\n")
    (tmp_path / "plan.yml").write_text(
        "version: 1\nsteps:\n  - {id: publish, run: bash x.sh}\n  - {id: test, run: bash missing.sh}\n"
    )
    env = {"GITHUB_ACTOR": "ann"}
    done = planrun("approve", "plan.yml", "--step", "publish", "--expires", "7d", "--uses", "2", env=env)
    assert done.returncode == 0, done.stderr
    (approvals,) = read_approvals([str(tmp_path / "plan.approval.json")])
    assert isinstance(approvals, Approval)
    assert (approvals.steps, approvals.approver, approvals.uses) == (("publish",), "ann", 2)
    for expected in (
        approvals.digest,
        "publish: ",
        "script x.sh",
        "not part of it: missing.sh",
        "by ann, for 2 runs, until",
    ):
        assert expected in done.stdout
    shown = json.loads(planrun("show", "plan.yml", "--json").stdout)
    assert shown["plan"]["digest"] == approvals.digest
    assert planrun("approve", "plan.yml").returncode == 2
    done = planrun("approve", "plan.yml", "-o", "-", "--approver", "bob")
    assert json.loads(done.stdout)["steps"] == ["*"]
    assert json.loads(done.stdout)["approver"] == "bob"
    done = planrun("approve", "plan.yml", "--step", "publsh", "-o", "-")
    assert (done.returncode, "did you mean" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    "text", ["", "7", "-1h", "0s", "2020-01-01T00:00:00Z", "d", "1000000d", "2026-01-31", "1y"]
)
def test_times_that_are_none_are_refused(text: str) -> None:
    """A duration needs a unit, a time its zone, and neither may be over."""
    with pytest.raises(InvalidInput):
        expiry(text)


def test_times_are_spans_or_moments() -> None:
    """`168h`, `7d`, `1d12h` and RFC 3339; what is written is UTC."""
    assert expiry("2099-01-31T09:30:00+02:00") == "2099-01-31T07:30:00Z"
    assert expiry("7d")[:16] in (expiry("168h")[:16], expiry("168h1m")[:16])
    assert expiry("1d12h")[-1] == "Z"


def test_what_is_given_counts_also_when_it_is_nothing(planrun: Run, tmp_path: Path) -> None:
    """No use and no approver are refused, and not taken for what is left out; the folder of the file is made."""
    (tmp_path / "plan.yml").write_text('version: 1\nsteps: [{id: a, run: "true"}]\n')
    done = planrun("approve", "plan.yml", "--uses", "0", "-o", "-")
    assert (done.returncode, done.stdout) == (2, "")
    assert "an approval has from 1 to " in done.stderr
    assert planrun("approve", "plan.yml", "--approver", "", "-o", "-").returncode == 2
    done = planrun("approve", "plan.yml", "--by", "Ann", "-o", "-")
    assert (done.returncode, "--approver" in done.stderr) == (2, True)
    assert planrun("approve", "plan.yml", "-o", "approvals/of/plan.json").returncode == 0
    assert planrun("lock", "plan.yml", "-o", "locks/plan.json").returncode == 0


def test_approve_shows_the_risk_with_parameters(planrun: Run, tmp_path: Path) -> None:
    """The risk is that of the command with its parameters, not the worst that a parameter could cause."""
    (tmp_path / "plan.yml").write_text(
        "version: 1\nparams: {to: {type: string, default: out}}\n"
        'steps: [{id: a, run: "mkdir -p ${{ params.to }}"}]\n'
    )
    assert "\n  a: low, `mkdir -p out`: " in planrun("approve", "plan.yml", "-o", "a.json").stdout
    assert "\n  a: high, `mkdir -p /" in planrun("approve", "plan.yml", "-o", "b.json", "-p", "to=/x").stdout


def test_the_schema_can_be_printed(planrun: Run) -> None:
    """`planrun schema approval` is the file in schemas/."""
    assert json.loads(planrun("schema", "approval").stdout) == SCHEMA
