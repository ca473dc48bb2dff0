"""The class of a failure, by what real programs write last to stderr: of 173 endings none gets a wrong one."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import Command

TAILS = Path(__file__).parents[1] / "data" / "errors" / "tails.txt"
STDOUT = (
    "ok 1 - returns 404 when page not found\\nconnection refused, as it has to be\\nall 2 tests passed\\n"
)


def labelled() -> list[tuple[str, str, str, str]]:
    """Return class, exit code, title and text of each ending."""
    found = []
    for block in re.split(r"^=== ", TAILS.read_text(), flags=re.MULTILINE)[1:]:
        head, _, text = block.partition("\n")
        label, code, title = re.fullmatch(r"(\w+) (?:\[(\d+)\] )?(.*)", head).groups()  # type: ignore[union-attr] # each
        found.append((label, code or "1", title, text))
    return found


def classes(planrun: Command, top: str = "", **env: str) -> list[dict[str, str]]:
    """Run a plan with a step that ends in each way, and return the error of each."""
    steps = []
    for number, (_, code, _, text) in enumerate(labelled()):
        (planrun.folder / f"{number}.txt").write_text(text)
        steps.append(f"  - {{id: s{number}, run: \"printf '{STDOUT}'; cat {number}.txt >&2; exit {code}\"}}")
    (planrun.folder / "plan.yml").write_text(
        f"version: 1\n{top}defaults: {{on_failure: continue}}\nsteps:\n" + "\n".join(steps) + "\n"
    )
    planrun("execute", "plan.yml", "--quiet", env=env)
    ledger = json.loads((planrun.folder / "planrun-out" / "ledger.json").read_text())
    return [step["attempts"][-1]["error"] for step in ledger["steps"]]


@pytest.mark.shows("GP-37", "GP-38", "GP-39", "GP-40", "GP-41", "GP-42", "GP-43")
def test_every_ending_has_its_class(planrun: Command) -> None:
    """Each of the labelled endings gets the class of its label, whatever was printed to stdout before."""
    tails = labelled()
    assert len(tails) >= 170
    wrong = [
        (title, label, error)
        for (label, _, title, _), error in zip(tails, classes(planrun), strict=True)
        if error["class"] != label
    ]
    assert wrong == []


def test_where_both_outputs_are_one_none_is_wrong(planrun: Command) -> None:
    """In a run with secrets, whose outputs share a pipe, an ending may be unknown and never gets another class."""
    found = classes(planrun, "secrets: [TOKEN]\n", TOKEN="a-long-secret-value")
    tails = labelled()
    wrong = [
        (title, label, error)
        for (label, _, title, _), error in zip(tails, found, strict=True)
        if error["class"] not in (label, "unknown")
    ]
    assert wrong == []
    classified = sum(error["class"] != "unknown" for error in found)
    assert classified > 0.7 * sum(label != "unknown" for label, *_ in tails)


STREAMS: dict[str, tuple[str, str]] = {
    "a passing test on stdout, last": ("echo 'boom' >&2; echo 'ok 1 - returns 404 when page not found'", "none"),
    "stdout alone": ("echo 'fatal: connection refused'", "none"),
    "a passing test on stderr": ("echo 'ok 1 - survives connection refused' >&2", "none"),
    "stdout flushed behind the last line": ("echo 'ssh: connection refused' >&2; echo done", "text:connection"),
    "one line of stderr amid stdout": ("echo a; echo 'Could not resolve host: x' >&2; echo c", "text:name resolution"),
    "stderr into stdout": ("echo 'connection refused' 2>&1", "none"),
    "too far back": ("echo 'connection refused' >&2; for i in $(seq 13); do echo $i >&2; done", "none"),
    "by a child": ("sh -c 'echo out; echo connection refused >&2'", "text:connection"),
    "xtrace": ("set -x; : connection refused; set +x", "none"),
    "colours": (r"printf '\033[31merror\033[0m: connection \033[1mrefused\033[0m\n' >&2", "text:connection"),
}  # fmt: skip


@pytest.mark.shows("GP-42")
@pytest.mark.parametrize("how", STREAMS)
def test_only_the_end_of_stderr_counts(planrun: Command, how: str) -> None:
    """Stdout, a passing test and old output give no class; the log keeps the order of both outputs."""
    script, rule = STREAMS[how]
    plan: dict[str, Any] = {"version": 1, "steps": [{"id": "a", "run": f"{script}; exit 1"}]}
    (planrun.folder / "plan.yml").write_text(json.dumps(plan))
    planrun("execute", "plan.yml")
    ledger = json.loads((planrun.folder / "planrun-out" / "ledger.json").read_text())
    assert ledger["steps"][0]["attempts"][0]["error"]["rule"] == rule


def test_the_log_keeps_the_order_of_both_outputs(planrun: Command) -> None:
    """Two hundred lines, by turns on stdout and stderr, are in the log as they were written."""
    script = "for i in $(seq 100); do echo out $i; echo err $i >&2; done; exit 1"
    (planrun.folder / "plan.yml").write_text(f"version: 1\nsteps: [{{id: a, run: '{script}'}}]\n")
    planrun("execute", "plan.yml")
    (log,) = planrun.folder.glob(".planrun/runs/*/logs/a/1.log")
    assert log.read_text() == "".join(f"out {i}\nerr {i}\n" for i in range(1, 101))
