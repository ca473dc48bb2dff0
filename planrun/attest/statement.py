"""In-toto statements from the state of a run: the predicates of test results and of SLSA provenance.

A statement is plain data and not signed. Subjects are the files that the run made, as their last step left them, or
the commit that it ran on. https://in-toto.io/Statement/v1 has the form.
"""

from __future__ import annotations

from planrun.actions.files import MADE
from planrun.errors import InvalidInput
from planrun.model.record import Record
from planrun.reports.testcases import kept, reported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from planrun.model.progress import StepState
    from planrun.model.state import RunState

STATEMENT = "https://in-toto.io/Statement/v1"
TEST_RESULT = "https://in-toto.io/attestation/test-result/v0.1"
PROVENANCE = "https://slsa.dev/provenance/v1"
BUILD_TYPE = "urn:planrun:plan:1"
"""What external parameters mean: a plan of version 1 of the plan language, and its parameters."""
_RESULTS = {"completed": "PASSED", "partial": "WARNED"}


class Source(Record):
    """A run that a statement is about; `commit` and `repository`: what the caller says of where it ran."""

    state: RunState
    rundir: str
    ledger: str  # sha256 of the ledger
    commit: str = ""
    repository: str = ""


def statement(source: Source, kind: str) -> dict[str, Any]:
    """Return the statement of a kind, `test-result` or `provenance`; raises InvalidInput for a run without an end."""
    if source.state.ended is None:
        raise InvalidInput("the run has no end yet, and a statement is about the whole run")
    if kind == "test-result":
        state = source.state
        assert state.ended is not None
        passed, warned, failed = _sorted_out(source)
        result = _RESULTS.get(state.ended.verdict, "FAILED")
        if result == "PASSED" and (warned or failed):
            result = "WARNED"
        test_result = {
            "result": result,
            "configuration": _configuration(state),
            "passedTests": passed,
            "warnedTests": warned,
            "failedTests": failed,
        }
        predicate, uri = test_result, TEST_RESULT
        subjects = _commit(source) or made(source.state) or [_plan(source.state)]
    else:
        predicate, uri = _provenance(source), PROVENANCE
        subjects = made(source.state)
        if not subjects:
            raise InvalidInput(
                "the run made no files that its steps list under `produces`, so there is nothing whose provenance "
                "could be stated"
            )
    return {"_type": STATEMENT, "subject": subjects, "predicateType": uri, "predicate": predicate}


def made(state: RunState) -> list[dict[str, Any]]:
    """Return the files that steps produced, as the last of them left each, without those that were removed."""
    found: dict[str, str] = {}
    ends = [(step.ended_at, row) for step in state.steps.values() for row in _files(step)]
    for _, row in sorted(ends, key=lambda pair: pair[0]):
        path = str(row.get("path", ""))
        if row.get("op") == "more":
            raise InvalidInput(
                f"a step made {row.get('count')} more files than the ledger lists, so a statement would be incomplete"
            )
        if row.get("op") in MADE and row.get("sha256"):
            found[path] = str(row["sha256"])
        elif row.get("op") == "deleted":
            found.pop(path, None)
    return [{"name": path, "digest": {"sha256": digest}} for path, digest in sorted(found.items())]


def _files(step: StepState) -> Iterable[Mapping[str, Any]]:
    """Return what a completed step did to files; of one that was used again, what was restored."""
    if step.status != "completed":
        return ()
    if step.restored:
        return [{**row, "op": "restored"} for row in step.restored.files]
    last = step.attempts[-1].ended if step.attempts else None
    return last.files if last else ()


def _commit(source: Source) -> list[dict[str, Any]]:
    started = source.state.started
    commit = source.commit or (str(started.context.get("sha", "")) if started else "")
    if not commit:
        return []
    found: dict[str, Any] = {"digest": {"gitCommit": commit}}
    return [{"name": f"git+{source.repository}" if source.repository else "git", **found}]


def _plan(state: RunState) -> dict[str, Any]:
    return {"name": str(state.named["file"]), "digest": {"sha256": str(state.named["sha256"])}}


def _configuration(state: RunState) -> list[dict[str, Any]]:
    """Return the plan, whose digest covers all that was reviewed, and the plans that it uses."""
    plan = {**_plan(state), "annotations": {"planrun.digest": state.plan.digest}}
    used = dict(state.named.get("files", {}))
    return [plan, *[{"name": name, "digest": {"sha256": digest}} for name, digest in sorted(used.items())]]


def _sorted_out(source: Source) -> tuple[list[str], list[str], list[str]]:
    """Return the names of what passed, passed with a warning and failed: steps, and the test cases they report.

    A warning: a step that needed a retry, or whose failure the plan tolerates. Steps that did not run are in none.
    """
    passed: list[str] = []
    warned: list[str] = []
    failed: list[str] = []
    for name, step in source.state.steps.items():
        if step.step.kind == "group":
            continue
        if step.status == "completed":
            (warned if step.flaky else passed).append(name)
        elif step.status == "failed":
            (warned if source.state.tolerance(name) else failed).append(name)
        for case, result in _cases(source, step):
            {"passed": passed, "flaky": warned}.get(result, failed).append(f"{name} / {case}")
    return passed, warned, failed


def _cases(source: Source, step: StepState) -> Iterable[tuple[str, str]]:
    """Return the test cases that a step reported and that were not skipped: passed, flaky or failed."""
    file = str(reported(step).get("file", ""))
    if not file:
        return
    try:
        for _, cases in kept(source.rundir, file):
            for case in cases:
                result = str((case.get("result") or [""])[0])
                if result != "skipped":
                    name = "::".join(filter(None, [str(case.get("class", "")), str(case.get("name", ""))]))
                    good = "flaky" if case.get("again") else "passed"
                    yield name, "failed" if result in ("failure", "error") else good
    except OSError:
        raise InvalidInput(f"the test cases of the run are not in its folder any more: {file}") from None


def _provenance(source: Source) -> dict[str, Any]:
    state = source.state
    started, ended = state.started, state.ended
    assert started is not None
    assert ended is not None
    return {
        "buildDefinition": {
            "buildType": BUILD_TYPE,
            "externalParameters": {
                "plan": str(state.named["file"]),
                "params": dict(state.params),
                "selection": dict(started.options.get("selection", {})),
            },
            "internalParameters": {"planDigest": state.plan.digest, "jobs": started.options.get("jobs")},
            "resolvedDependencies": _materials(source),
        },
        "runDetails": {
            "builder": {"id": f"urn:planrun:host:{started.host}", "version": {"planrun": started.planrun}},
            "metadata": {
                "invocationId": started.run,
                "startedOn": started.at,
                "finishedOn": ended.at,
            },
            "byproducts": [{"name": "ledger.jsonl", "digest": {"sha256": source.ledger}}],
        },
    }


def _materials(source: Source) -> list[dict[str, Any]]:
    """Return what went into the run: commit, plan and the plans it uses, scripts, and files that steps read."""
    state = source.state
    commit = [{"uri": each["name"], "digest": each["digest"]} for each in _commit(source)]
    scripts = dict(state.named.get("scripts", {}))
    own = {each["name"] for each in made(state)}
    read = {
        str(row["path"]): str(row["sha256"])
        for step in state.steps.values()
        for row in _files(step)
        if row.get("op") == "read" and row.get("sha256") and row["path"] not in own
    }
    named = [
        {"name": name, "digest": {"sha256": digest}} for name, digest in sorted({**scripts, **read}.items())
    ]
    return [*commit, *_configuration(state), *named]
