"""Whether the reports of a run that was killed say the same as those of one that was not.

Left out are: ids of runs, times, durations, hosts, the head (it is compared with the ledger's last line elsewhere), and
the numbers of attempts. Of a step that was running, or waited for its next attempt, when planrun was killed, its last
attempt alone is compared, and `flaky` counts as completed: its attempts count anew after a resume. A step that must
not be repeated and was running then is left out together with the counts that it is part of.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from proofs.crashing import Scene

_PASSING = {"run_id", "started_at", "ended_at", "duration_s", "lifecycle"}
_VARYING = {"time", "timestamp", "hostname"}
_PROPERTIES = {"planrun.run_id", "planrun.head", "planrun.step_seconds"}
_COUNTS = {"tests", "failures", "errors", "skipped"}
_DURATION = re.compile(r"\b\d+(\.\d+)?(ms|s|m|h)\b")
_RUN = re.compile(r"\d{8}-\d{6}-[0-9a-f]{6}")


@dataclass(frozen=True)
class Reports:
    """What is compared; `touched` and `lost` are the steps that a kill hit, see above."""

    ledger: Any
    junit: Any
    markdown: list[str]


def reports(scene: Scene, touched: frozenset[str], lost: frozenset[str]) -> Reports:
    """Return the reports of a scene in the form in which they are compared.

    Raises ValueError or ElementTree.ParseError for a file that is not whole, AssertionError for wrong counts.
    """
    return Reports(
        _ledger(scene.report("ledger.json"), touched, lost),
        _junit(ET.fromstring(scene.report("junit.xml")), touched, lost),
        list(_markdown(scene.report("report.md"), touched, lost)),
    )


def differences(found: Reports, wanted: Reports) -> list[str]:
    """Name the reports that differ, with the first difference."""
    told = []
    for name in ("ledger", "junit", "markdown"):
        one, other = getattr(found, name), getattr(wanted, name)
        if one != other:
            rows = zip(_rows(one), _rows(other), strict=False)
            first = next(((a, b) for a, b in rows if a != b), ("", "one is longer"))
            told.append(f"{name} differs: {first[0]} instead of {first[1]}")
    return told


def _rows(value: Any) -> list[str]:
    return json.dumps(value, indent=1).splitlines()


def _ledger(text: str, touched: frozenset[str], lost: frozenset[str]) -> Any:
    data = json.loads(text)
    counted = [step["status"] for step in data["steps"]]
    summary = data["summary"]
    assert summary["total"] == len(counted), "ledger.json counts wrong"
    assert all(counted.count(name) == n for name, n in summary.items() if name != "total")
    kept = {name: value for name, value in data.items() if name not in _PASSING}
    if lost:
        del kept["summary"]
    kept["steps"] = [_step(step, step["id"] in touched) for step in data["steps"] if step["id"] not in lost]
    return kept


def _step(step: dict[str, Any], is_touched: bool) -> dict[str, Any]:  # noqa: FBT001 - a fact of the step
    attempts = [
        {name: value for name, value in attempt.items() if name not in {*_PASSING, "n"}}
        | {"log": re.sub(r"\d+\.log$", "N.log", attempt["log"] or "")}
        for attempt in step["attempts"]
    ]
    if not is_touched:
        return step | {"attempts": attempts}
    reason = "ran" if step["reason"] == "flaky" else step["reason"]
    return step | {"attempts": attempts[-1:], "flaky": False, "reason": reason}


def _junit(node: ET.Element, touched: frozenset[str], lost: frozenset[str]) -> Any:
    left_out = {*_VARYING, *(_COUNTS if lost else ())}
    attributes = {name: value for name, value in node.attrib.items() if name not in left_out}
    if node.tag == "testsuite":
        cases = node.findall("testcase")
        for name, tag in (("skipped", "skipped"), ("failures", "failure"), ("errors", "error")):
            assert int(node.attrib[name]) == sum(case.find(tag) is not None for case in cases), node.attrib
        assert int(node.attrib["tests"]) == len(cases), "junit.xml counts wrong"
    children = [child for child in node if child.get("name") not in {*_PROPERTIES, *lost}]
    if node.tag == "testcase" and node.get("name") in touched:
        children = [child for child in children if child.tag != "flakyFailure"]
    return [
        node.tag,
        attributes,
        (node.text or "").strip(),
        [_junit(child, touched, lost) for child in children],
    ]


def _markdown(text: str, touched: frozenset[str], lost: frozenset[str]) -> list[str]:
    other = ("- **Ledger head:**", "- **Started:**")  # of each run its own
    rows = [
        _RUN.sub("RUN", _DURATION.sub("T", row)) for row in text.splitlines() if not row.startswith(other)
    ]
    if lost:  # counts, graph and the section of its failure have it, too
        rows = [row for row in rows if re.match(r"- \S+ Step |\| `", row) and not _names(row, lost)]
    return [_numberless(row) if _names(row, touched) else row for row in rows]


def _names(row: str, steps: frozenset[str]) -> bool:
    found = re.match(r"- \S+ Step (\S+)|\| `([^`]+)`", row)
    return found is not None and (found[1] or found[2]) in steps


def _numberless(row: str) -> str:
    return re.sub(r"\| \d+ \|", "| N |", row.replace(", flaky", ""))
