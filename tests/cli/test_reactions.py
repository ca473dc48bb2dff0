"""What is done about a failure follows its class: repeated, left alone, or replanned by a model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.fakes.messages import FakeMessages, draft

if TYPE_CHECKING:
    from tests.conftest import Command

PLAN = """\
version: 1
goal: It works.
llm: {model: m}
defaults: {retries: {on: auto, backoff: {initial: 0s}}}
steps:
  - {id: a, run: "SCRIPT"}
"""
REPLACEMENT = draft([{"id": "2", "run": "echo fixed", "replaces": ["a"]}])


UNPLANNED = "no model replans it, since its class comes from its output alone"


def ran(planrun: Command, api: FakeMessages, script: str) -> tuple[int, dict[str, Any]]:
    """Run a step with a model at hand; return the exit code and the step's record."""
    (planrun.folder / "plan.yml").write_text(PLAN.replace("SCRIPT", script))
    done = planrun("execute", "plan.yml", env=api.env)
    assert (UNPLANNED in done.stderr) is ("denied" in script)
    return done.returncode, json.loads((planrun.folder / "planrun-out" / "ledger.json").read_text())["steps"][
        0
    ]


@pytest.mark.shows("GP-55", "GP-42", "GP-38")
@pytest.mark.parametrize(
    ("script", "attempts", "found"),
    [
        ("echo 'ok 1 - returns 404 when page not found'; echo 'not ok 2 - adds'; exit 1", 1, "unknown"),
        ("echo 'cat: x: Permission denied' >&2; exit 1", 1, "fatal"),
        ("cat denied/no-such-file", 1, "fatal"),
        ("echo 'SyntaxError: invalid' >&2; exit 1", 1, "logic"),
        ("echo 'curl: (6) Could not resolve host: x' >&2; exit 6", 3, "transient"),
    ],
)
def test_no_model_is_asked_without_a_typed_fact(
    planrun: Command, script: str, attempts: int, found: str
) -> None:
    """Without a typed fact no model is asked; transient errors are repeated, others are not."""
    with FakeMessages([]) as api:
        code, step = ran(planrun, api, script)
        assert api.journal.entries == []
    assert code == 1
    assert len(step["attempts"]) == attempts
    assert step["attempts"][-1]["error"]["class"] == found
    report = planrun("report", "last", "--format", "markdown").stdout
    assert (UNPLANNED in report) is (found == "fatal")


@pytest.mark.shows("GP-39", "GP-44", "GP-55")
def test_a_fatal_fact_is_replanned_and_not_repeated(planrun: Command) -> None:
    """Exit code 127 has the model asked once, after a single attempt."""
    with FakeMessages([REPLACEMENT]) as api:
        code, step = ran(planrun, api, "no-such-program-anywhere")
        assert len(api.journal.entries) == 1
    assert code == 1  # nothing that was reviewed checks what took its place
    assert len(step["attempts"]) == 1
