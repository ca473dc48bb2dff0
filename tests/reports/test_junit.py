"""The JUnit file is valid for its readers, and reports the run."""

from __future__ import annotations

import io
from pathlib import Path
from xml.etree import ElementTree as ET

import junitparser
import pytest
from junit_xml import TestCase as JunitCase
from junit_xml import TestSuite as JunitSuite
from lxml import etree

from planrun.model.plan import Retry
from planrun.reports.elements import DIALECTS
from planrun.reports.junit import TOTAL_BYTES, write_junit
from planrun.reports.policies import NO_POLICY
from tests.reports.runs import DIGEST, HEAD, RUN, Story, mixed_run, step

SCHEMAS = Path(__file__).parent.parent / "data" / "junit"
STRICT = {
    "jenkins-xunit": "jenkins-xunit-junit-10.xsd",
    "surefire": "surefire-test-report.xsd",
    "ant": "windyroad-JUnit.xsd",
}


def junit(state: object, rundir: Path, dialect: str = "default") -> bytes:
    """The file as bytes."""
    out = io.BytesIO()
    write_junit(state, str(rundir), out, dialect, head=HEAD)  # type: ignore[arg-type]
    return out.getvalue()


def cases(data: bytes) -> dict[str, ET.Element]:
    """The test cases by name."""
    return {case.attrib["name"]: case for case in ET.fromstring(data).iter("testcase")}


@pytest.mark.parametrize("dialect", STRICT)
def test_strict_dialects_are_valid(dialect: str, tmp_path: Path) -> None:
    """Each strict dialect validates against the schema of its reader."""
    schema = etree.XMLSchema(etree.parse(SCHEMAS / STRICT[dialect]))
    schema.assertValid(etree.fromstring(junit(mixed_run(tmp_path), tmp_path, dialect)))


@pytest.mark.parametrize("sample", ["ok-default", "ok-jenkins", "ok-surefire", "ok-ant"])
def test_the_samples_validate_as_their_notes_say(sample: str) -> None:
    """The schemas in the test data are live: each accepts the samples it should and refuses the others."""
    root = etree.parse(SCHEMAS / "samples" / f"{sample}.xml").getroot()
    accepted = {
        dialect
        for dialect, name in STRICT.items()
        if etree.XMLSchema(etree.parse(SCHEMAS / name)).validate(root)
    }
    expected = {"ok-default": set(), "ok-jenkins": {"jenkins-xunit"}, "ok-surefire": {"surefire"}}
    assert accepted == expected.get(sample, {"jenkins-xunit", "ant"})


@pytest.mark.parametrize("dialect", DIALECTS)
def test_counts_agree_with_the_cases(dialect: str, tmp_path: Path) -> None:
    """Totals are those of the tree, as junitparser counts them."""
    data = junit(mixed_run(tmp_path), tmp_path, dialect)
    root = ET.fromstring(data)
    suite = next(root.iter("testsuite"))
    found = {
        "tests": len(list(suite.iter("testcase"))),
        "failures": len(list(suite.iter("failure"))),
        "errors": len(list(suite.iter("error"))),
        "skipped": len(list(suite.iter("skipped"))),
    }
    assert found == {"tests": 9, "failures": 1, "errors": 1, "skipped": 4}
    assert {name: int(suite.attrib[name]) for name in found} == found
    parsed = junitparser.JUnitXml.fromstring(data)
    if isinstance(parsed, junitparser.JUnitXml):
        assert (parsed.tests, parsed.failures, parsed.errors, parsed.skipped) == (9, 1, 1, 4)


def test_default_dialect_carries_place_and_time(tmp_path: Path) -> None:
    """Every case names file and line of its step, its start and its duration; the suite is wall clock."""
    data = junit(mixed_run(tmp_path), tmp_path)
    suite = next(ET.fromstring(data).iter("testsuite"))
    build = cases(data)["build"]
    assert build.attrib == {
        "classname": "release",
        "name": "build",
        "time": "12.300",
        "timestamp": "2026-01-31T09:00:00",
        "file": "plans/release.yml",
        "line": "10",
    }
    assert suite.attrib["time"] == "52.100"
    assert suite.attrib["hostname"] == "runner-1"
    properties = {item.attrib["name"]: item.attrib["value"] for item in suite.iter("property")}
    assert properties == {
        "planrun.run_id": RUN,
        "planrun.plan_digest": DIGEST,
        "planrun.policy": NO_POLICY,
        "planrun.head": HEAD,
        "planrun.status": "failed",
        "planrun.verdict": "failed",
        "planrun.step_seconds": "52.100",
    }


def test_failure_and_error_are_kept_apart(tmp_path: Path) -> None:
    """A command that returned false is a failure, one that could not be judged an error; both have a reason in text."""
    found = cases(junit(mixed_run(tmp_path), tmp_path))
    failure, error = found["integration"].find("failure"), found["fetch"].find("error")
    assert failure is not None
    assert error is not None
    assert failure.attrib == {"type": "ExitStatus", "message": "error: no"}  # the last error
    assert (failure.text or "").startswith("exit status 2\n")
    assert "first try" in (failure.text or "")
    assert error.attrib == {"type": "Timeout", "message": "ran longer than 30.0s"}
    assert "error class transient, by rule reason:timeout" in (error.text or "")
    assert (error.text or "").endswith("\n50%\n")


def test_retries_are_one_case(tmp_path: Path) -> None:
    """Passed after a failure is flaky; failed after retries is the first failure and the others as reruns."""
    found = cases(junit(mixed_run(tmp_path), tmp_path))
    flaky = found["test"].find("flakyFailure")
    assert flaky is not None
    assert flaky.attrib["type"] == "ExitStatus"
    assert "connection reset" in (flaky.findtext("stackTrace") or "")
    assert found["test"].findtext("system-out") == "2 passed\n"
    assert [child.tag for child in found["integration"]] == ["failure", "rerunFailure"]
    assert "first try" in (found["integration"].findtext("failure") or "")
    assert "second" in (found["integration"].findtext("rerunFailure/stackTrace") or "")


def test_steps_that_did_not_run_have_a_reason(tmp_path: Path) -> None:
    """Skipped, blocked, not selected and tolerated steps are skipped cases with message and text."""
    found = cases(junit(mixed_run(tmp_path), tmp_path))
    said = {
        name: (skipped.attrib["type"], skipped.attrib["message"], (skipped.text or "").strip() != "")
        for name, case in found.items()
        if (skipped := case.find("skipped")) is not None
    }
    assert said == {
        "lint": ("Tolerated", "tolerated: E501 line too long", True),
        "deploy": ("Blocked", "blocked: a step it depends on failed: integration failed (exit)", True),
        "notify": ("Skipped", "skipped: its condition is false: params.target == 'prod'", True),
        "docs": ("Skipped", "skipped: not selected", True),
    }


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_tolerated_failure_fails_no_case(dialect: str, tmp_path: Path) -> None:
    """When planrun ends with 0 no case is a failure: it is skipped, with all that a failure would say."""
    story = Story(tmp_path, step("lint", on_failure="continue", retries=Retry(max=1)))
    story.run("lint", "waiting", log=b"first line\n").run("lint", "failed", log=b"last line\n", exit_code=2)
    data = junit(story.end(), tmp_path, dialect)
    case = cases(data)["lint"]
    assert [child.tag for child in case if child.tag != "system-out"] == ["skipped"]
    assert (case.findtext("skipped") or "").splitlines() == [
        "exit status 1",
        "tolerated: the run does not fail because of it",
        "first line",
        "",
        "exit status 2",
        "last line",
    ]
    if dialect in STRICT:
        etree.XMLSchema(etree.parse(SCHEMAS / STRICT[dialect])).assertValid(etree.fromstring(data))


def test_a_recovered_failure_is_tolerated(tmp_path: Path) -> None:
    """A failure that another step put right is not red either."""
    story = Story(tmp_path, step("a"), step("fix", "failed:a", recovers=("a",)))
    story.run("a", "failed").run("fix")
    skipped = cases(junit(story.end(), tmp_path))["a"].find("skipped")
    assert skipped is not None
    assert skipped.attrib["type"] == "Tolerated"


def test_a_tolerated_failure_that_fails_the_run_is_a_failure(tmp_path: Path) -> None:
    """With --strict, also of a resumed run, and for what a deadline ended, planrun does not end with 0."""
    strict = Story(tmp_path, step("a", on_failure="continue"), options={"strict": True})
    strict.run("a", "failed").end(1)
    late = Story(tmp_path, step("a", on_failure="continue"))
    late.start("a")
    late.ending("deadline").run_out("a").end(124)
    resumed = Story(tmp_path, step("a", on_failure="continue"), step("b"))
    resumed.run("a", "failed").run("b", "failed").end(1)
    resumed.resume("b", strict=True).run("b").end(1)
    for text in (strict, late, resumed):
        found = {child.tag for child in cases(junit(text.state, tmp_path))["a"]}
        assert found & {"failure", "error"}


def test_a_resumed_step_is_a_case_of_its_new_attempts(tmp_path: Path) -> None:
    """Time, start and output are those since the run was resumed."""
    story = Story(tmp_path, step("a"))
    story.run("a", "failed", took=60.0, log=b"old\n").end(1)
    story.resume("a").run("a", took=2.0, log=b"new\n").end()
    case = cases(junit(story.state, tmp_path))["a"]
    assert (case.attrib["time"], case.attrib["timestamp"]) == ("2.000", "2026-01-31T09:01:00")
    assert [(child.tag, child.text) for child in case] == [("system-out", "new\n")]


def test_places_count_from_the_root_of_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan in a subfolder in which planrun runs has a file where GitLab looks for it."""
    (tmp_path / "service").mkdir()
    monkeypatch.chdir(tmp_path / "service")
    monkeypatch.setenv("GITLAB_CI", "true")
    monkeypatch.setenv("CI_PROJECT_DIR", str(tmp_path))
    story = Story(tmp_path, step("a"), file="./plan.yml")
    assert cases(junit(story.run("a").end(), tmp_path))["a"].attrib["file"] == "service/plan.yml"


def test_cleanup_steps_are_cases(tmp_path: Path) -> None:
    """Steps under `finally` are counted like all others."""
    assert cases(junit(mixed_run(tmp_path), tmp_path))["collect"].attrib["time"] == "0.100"


def test_what_steps_print_is_harmless(tmp_path: Path) -> None:
    """Colours go, carriage returns become newlines, odd bytes U+FFFD, workflow commands are broken."""
    data = junit(mixed_run(tmp_path), tmp_path)
    found = cases(data)
    assert found["build"].findtext("system-out") == "ok built\nbye\n"
    assert "\ufffd" in (found["integration"].findtext("rerunFailure/stackTrace") or "")
    assert not any(row.lstrip().startswith(b"::") for row in data.splitlines())


def test_a_killed_run_is_not_green(tmp_path: Path) -> None:
    """A step without a recorded end is an error, one that never started is skipped."""
    story = Story(tmp_path, step("a"), step("b", "a"), step("c"))
    story.run("c", took=2.0)
    story.start("a", b"half of the w")
    data = junit(story.state, tmp_path)
    found = cases(data)
    error, skipped = found["a"].find("error"), found["b"].find("skipped")
    assert error is not None
    assert skipped is not None
    assert error.attrib["type"] == "WorkerLost"
    assert "half of the w" in (error.text or "")
    assert skipped.attrib["message"] == "not run: the run ended before it"
    assert next(ET.fromstring(data).iter("testsuite")).attrib["time"] == "2.000"


def test_the_file_stays_small(tmp_path: Path) -> None:
    """Cases show head and tail of 64 KiB, the file 8 MiB of logs, and failures are not crowded out."""
    names = [f"s{number}" for number in range(200)]
    story = Story(tmp_path, *(step(name) for name in names))
    log = b"<line & more>\n" * 8000
    for name in names[:-1]:
        story.run(name, log=log)
    story.run("s199", "failed", log=log + b"the reason\n")
    data = junit(story.end(1), tmp_path)
    found = cases(data)
    first = found["s0"].findtext("system-out") or ""
    left = next(row for row in first.splitlines() if "left out" in row)
    kept = len(first.encode()) - len(left.encode()) - 1
    assert left == f"… {len(log) - kept} bytes left out …"
    assert 60 * 1024 < kept <= 64 * 1024
    assert (found["s198"].findtext("system-out") or "").startswith("log left out")
    assert "the reason" in (found["s199"].findtext("failure") or "")
    assert len(data) < TOTAL_BYTES * 1.5


@pytest.mark.parametrize("status", ["completed", "failed"])
def test_logs_never_exceed_their_size(tmp_path: Path, status: str) -> None:
    """The last log that is shown still fits, as it is escaped; passed cases leave half of the space to failures."""
    names = [f"s{number}" for number in range(300)]
    story = Story(tmp_path, *(step(name) for name in names))
    for name in names:
        story.run(name, status, log=b"<" * 15_000 + b"\nError: the reason\n")
    data = junit(story.end(1 if status == "failed" else 0), tmp_path)
    size = len(b"&lt;") * data.count(b"&lt;")
    most = TOTAL_BYTES if status == "failed" else TOTAL_BYTES // 2
    assert 0.95 * most < size <= most


def test_a_missing_log_hurts_nothing(tmp_path: Path) -> None:
    """A log that is gone leaves the reason."""
    story = Story(tmp_path, step("a"))
    story.run("a", "failed", log=b"words\n")
    (tmp_path / "logs/a/1.log").unlink()
    case = cases(junit(story.end(1), tmp_path))["a"]
    assert case.findtext("failure") == "exit status 1\n"


def test_logs_outside_of_the_run_are_not_read(tmp_path: Path) -> None:
    """Neither `..` nor links lead out of the run directory."""
    (tmp_path / "secret").write_text("hidden words")
    rundir = tmp_path / "run"
    (rundir / "logs/a").mkdir(parents=True)
    story = Story(rundir, step("a"), step("../../secret"))
    story.start("../../secret")
    (rundir / "logs/a/1.log").symlink_to(tmp_path / "secret")
    story.start("a")
    assert b"hidden words" not in junit(story.state, rundir)


def test_the_same_suite_from_junit_xml(tmp_path: Path) -> None:
    """The library's own tree for the same run holds the same cases with the same results."""
    state = mixed_run(tmp_path)
    built = []
    for name, found in state.steps.items():
        case = JunitCase(name, classname=state.plan.name, elapsed_sec=found.duration)
        if found.status in ("skipped", "blocked") or state.tolerance(name):
            case.add_skipped_info(message="why")
        elif found.reason == "timeout":
            case.add_error_info(message="why", error_type="Timeout")
        elif found.status == "failed":
            case.add_failure_info(message="why", failure_type="ExitStatus")
        built.append(case)
    oracle = JunitSuite("release", built).build_xml_doc(encoding="utf-8")
    ours = next(ET.fromstring(junit(state, tmp_path)).iter("testsuite"))
    for name in ("name", "tests", "failures", "errors", "skipped"):
        assert oracle.attrib[name] == ours.attrib[name]
    results = ("failure", "error", "skipped")
    for theirs, mine in zip(oracle.iter("testcase"), ours.iter("testcase"), strict=True):
        assert theirs.attrib["name"] == mine.attrib["name"]
        assert theirs.attrib["classname"] == mine.attrib["classname"]
        assert float(theirs.attrib.get("time", 0)) == pytest.approx(float(mine.attrib["time"]), abs=0.001)
        assert [child.tag for child in theirs] == [child.tag for child in mine if child.tag in results]


def test_a_log_attaches_no_file(tmp_path: Path) -> None:
    """GitLab would attach what `[[ATTACHMENT|` names; sequences inside of it are dropped before it is looked for."""
    story = Story(tmp_path, step("a"))
    story.run("a", log=b"[[ATTACHMENT|/etc/passwd]]\n[\x1b[0m[ATTACH\x1b[mMENT|/etc/shadow]]\n")
    data = junit(story.end(), tmp_path)
    assert b"passwd" in data
    assert b"shadow" in data
    assert b"[[ATTACHMENT|" not in data


def test_a_lost_attempt_is_not_flaky(tmp_path: Path) -> None:
    """A step that was lost with its run and passed in the next one counts as no flake; a failure before it does."""
    story = Story(tmp_path, step("a"), step("b"))
    story.run("b")
    story.start("a")
    story.resume("a")
    story.run("a")
    data = junit(story.end(), tmp_path, "surefire")
    assert next(ET.fromstring(data).iter("testsuite")).attrib["flakes"] == "0"
