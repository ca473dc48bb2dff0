"""docs/ci.md agrees with the action, the hook and what CI systems are told."""

from __future__ import annotations

import re
from typing import Any

import yaml

from planrun.engine.termination import CANCEL_BUDGET
from planrun.executors.local import ExecutorOptions
from planrun.reports.annotations import COUNTING, OF_JOB, OF_STEP
from tests.docs.pages import ROOT, keys_of, text_of

PAGE = "ci.md"


def rows(mark: str) -> list[list[str]]:
    """Return the rows of the table behind a mark, without its head."""
    (table,) = re.findall(rf"^<!-- {mark} -->\n((?:\|.*\n)+)", text_of(PAGE), re.MULTILINE)
    return [[cell.strip() for cell in row.strip().strip("|").split("|")] for row in table.splitlines()[2:]]


def action() -> dict[str, Any]:
    """Return action.yml."""
    found: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    return found


def test_every_input_is_described_with_its_default() -> None:
    """The table has the inputs of action.yml in their order, and says which is required and what holds otherwise."""
    inputs = action()["inputs"]
    assert [keys_of(row[0])[0] for row in rows("inputs")] == list(inputs)
    for row in rows("inputs"):
        spec = inputs[keys_of(row[0])[0]]
        assert (row[1] == "required") == bool(spec.get("required")), row
        if "default" in spec:
            assert row[1] == f"`{spec['default']}`"


def test_every_output_is_described() -> None:
    """The table has the outputs of action.yml in their order."""
    assert [keys_of(row[0])[0] for row in rows("outputs")] == list(action()["outputs"])


def test_the_hooks_are_those_of_the_page() -> None:
    """The page names the hooks that the repository offers, and no others."""
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    named = re.findall(r"^ +- id: (planrun-[a-z]+)$", text_of(PAGE), re.MULTILINE)
    assert sorted(named) == sorted(hook["id"] for hook in hooks)


def test_times_are_those_of_the_code() -> None:
    """The seconds of a cancellation, and how many annotations there are, are the constants."""
    text = text_of(PAGE)
    assert f"after {ExecutorOptions.grace:g} seconds" in text
    assert f"remains of {CANCEL_BUDGET:g} seconds" in text
    assert (OF_STEP, OF_JOB, COUNTING) == (10, 50, 10)
    assert (
        "after nine of a\nkind the next one counts the others, and all runs of a job together take forty"
        in text
    )


def test_no_workflow_runs_strangers_with_secrets() -> None:
    """`pull_request_target` stands on the page as what not to use, and in no block."""
    text = text_of(PAGE)
    assert "Never use `pull_request_target`" in text
    for block in re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        assert "pull_request_target" not in block
