"""`planrun attest`: in-toto statements about a run, with the digests of what was really made."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import Command

if TYPE_CHECKING:
    from pathlib import Path

COMMIT = "a" * 40
PLAN = """\
version: 1
params: {target: {type: string, default: test}}
steps:
  - {id: build, inputs: [src], produces: [out.txt], run: "cat src > out.txt; echo built >> out.txt"}
  - {id: again, run: test "$PLANRUN_ATTEMPT" = 2, retries: {max: 1, backoff: {initial: 10ms}}}
  - {id: skip, condition: 1 == 2, run: exit 0}
  - id: cases
    reports: {junit: [j.xml]}
    run: |
      cat > j.xml <<'END'
      <testsuite name="s"><testcase classname="c" name="good"/>
      <testcase classname="c" name="bad"><failure message="x"/></testcase>
      <testcase classname="c" name="left"><skipped/></testcase></testsuite>
      END
  - {id: tolerated, run: exit 3, on_failure: continue}
"""


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def statement(planrun: Command, *words: str) -> Any:
    """Return what `planrun attest` prints."""
    done = planrun("attest", *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """A run of the plan in a CI system that names its commit."""
    folder = tmp_path_factory.mktemp("attested")
    (folder / "plan.yml").write_text(PLAN, "utf-8")
    (folder / "src").write_text("source\n", "utf-8")
    planrun = Command(folder)
    assert (
        planrun("execute", "plan.yml", "--param", "target=prod", env={"GIT_COMMIT": COMMIT}).returncode == 0
    )
    return planrun


def test_test_results_name_what_passed_and_what_did_not(ran: Command) -> None:
    """Steps and test cases, of the commit; a retry and a tolerated failure are warnings, what was skipped is absent."""
    found = statement(ran, "--repository", "https://example.org/shop")
    assert found["_type"] == "https://in-toto.io/Statement/v1"
    assert found["predicateType"] == "https://in-toto.io/attestation/test-result/v0.1"
    assert found["subject"] == [{"name": "git+https://example.org/shop", "digest": {"gitCommit": COMMIT}}]
    predicate = found["predicate"]
    assert predicate["result"] == "WARNED"
    assert predicate["passedTests"] == ["build", "cases", "cases / c::good"]
    assert predicate["warnedTests"] == ["again", "tolerated"]
    assert predicate["failedTests"] == ["cases / c::bad"]
    (plan,) = predicate["configuration"]
    assert plan["digest"] == {"sha256": sha256(ran.folder / "plan.yml")}
    report = json.loads((ran.folder / "planrun-out" / "ledger.json").read_text("utf-8"))
    assert plan["annotations"]["planrun.digest"] == report["plan"]["digest"]


def test_provenance_names_files_and_what_went_into_them(ran: Command) -> None:
    """Subjects are the files that were made, dependencies the commit, the plan and the files that steps read."""
    found = statement(ran, "--type", "provenance")
    assert found["predicateType"] == "https://slsa.dev/provenance/v1"
    assert found["subject"] == [{"name": "out.txt", "digest": {"sha256": sha256(ran.folder / "out.txt")}}]
    definition = found["predicate"]["buildDefinition"]
    assert definition["externalParameters"]["params"] == {"target": "prod"}
    names = {each.get("name") or each["uri"]: each["digest"] for each in definition["resolvedDependencies"]}
    assert names["git"] == {"gitCommit": COMMIT}
    assert names["src"] == {"sha256": sha256(ran.folder / "src")}
    details = found["predicate"]["runDetails"]
    (ledger,) = ran.folder.glob(".planrun/runs/*/ledger.jsonl")
    assert details["byproducts"] == [{"name": "ledger.jsonl", "digest": {"sha256": sha256(ledger)}}]
    assert details["metadata"]["invocationId"] == ledger.parent.name
    assert statement(ran, "--type", "provenance", "--predicate") == found["predicate"]


def test_no_statement_without_an_intact_ledger(tmp_path: Path) -> None:
    """A changed ledger, a run without files and a commit that is none are refused with exit code 2."""
    planrun = Command(tmp_path)
    (tmp_path / "plan.yml").write_text("version: 1\nsteps:\n  - {id: a, run: exit 1}\n")
    assert planrun("execute", "plan.yml").returncode == 1
    bare = planrun("attest", "--type", "provenance")
    assert (bare.returncode, "produces" in bare.stderr) == (2, True)
    assert statement(planrun)["predicate"]["result"] == "FAILED"
    assert (
        statement(planrun)["subject"][0]["name"] == "plan.yml"
    )  # without a commit and files, the plan itself
    assert planrun("attest", "--commit", "main").returncode == 2
    (ledger,) = tmp_path.glob(".planrun/runs/*/ledger.jsonl")
    ledger.write_text(ledger.read_text("utf-8").replace('"failed"', '"completed"'), "utf-8")
    altered = planrun("attest")
    assert (altered.returncode, "altered" in altered.stderr) == (2, True)
