"""Merge the records of shards: one `ledger.json`, one JUnit file and one page, with every step once and one verdict.

What is merged comes from other machines and is checked first: it must be the same plan, the same split, and each shard
once. A shard that is missing makes the verdict `failed`.
"""

from __future__ import annotations

import errno
import json
import os
from types import NoneType
from xml.etree import ElementTree as ET

from planrun.app.sharding import MOST
from planrun.errors import InvalidInput
from planrun.model.record import Record
from planrun.opening import read_record
from planrun.reports.escape import code, fitting, inline, line
from planrun.reports.facts import ICONS, epoch, seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any
    from xml.etree.ElementTree import Element


FILE = "junit.xml"

_JUNIT_MAX_BYTES = 64 << 20


def merge_junit(files: Iterable[str]) -> bytes:
    """Return one file with the suites of all; of a case that several have, the one that ran, and of those the failed.

    Raises InvalidInput for a file that is no JUnit file.
    """
    suites: dict[str, dict[tuple[str, str], Element]] = {}
    heads: dict[str, Element] = {}
    for file in files:
        for suite in _suites(file):
            name = suite.get("name", "")
            heads.setdefault(name, suite)
            cases = suites.setdefault(name, {})
            for case in suite.iter("testcase"):
                key = case.get("classname", ""), case.get("name", "")
                if key not in cases or _weight(case) > _weight(cases[key]):
                    cases[key] = case
    root = ET.Element("testsuites")
    for name, cases in suites.items():
        root.append(_suite(heads[name], list(cases.values())))
    _count(root, root.iter("testcase"))
    text: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _suites(file: str) -> list[Element]:
    try:
        data = read_record(file, _JUNIT_MAX_BYTES)
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise InvalidInput(f"{file} is too large for a JUnit file") from None
        raise InvalidInput(f"cannot read {file}: {error.strerror}") from None
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:  # planrun writes none, and they can expand without bounds
        raise InvalidInput(f"{file} is no JUnit file of planrun: it declares entities")
    try:
        root = ET.fromstring(data)  # noqa: S314 - without entities, which were refused
    except ET.ParseError as error:
        raise InvalidInput(f"{file} is no JUnit file: {error}") from None
    return [root] if root.tag == "testsuite" else [each for each in root if each.tag == "testsuite"]


def _weight(case: Element) -> int:
    tags = {child.tag for child in case}
    if tags & {"failure", "error"}:
        return 2
    return 0 if "skipped" in tags else 1


def _suite(head: Element, cases: list[Element]) -> Element:
    suite = ET.Element("testsuite", dict(head.attrib))
    _count(suite, cases)
    suite.text = "\n"
    for case in cases:
        case.tail = "\n"
        suite.append(case)
    suite.tail = "\n"
    return suite


def _count(element: Element, cases: Iterable[Element]) -> None:
    found = list(cases)
    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        element.set(name, str(sum([case.find(tag) is not None for case in found])))
    element.set("tests", str(len(found)))
    element.set("time", f"{sum([_time(case) for case in found]):.3f}")


def _time(case: Element) -> float:
    try:
        return float(case.get("time", "0"))
    except ValueError:
        return 0.0


_BYTES = 200_000  # of one table
_SHOWN = ("failed", "blocked", "cancelled")


def sentence(found: Merged) -> str:
    """Return the verdict in one line."""
    counts = found.ledger["summary"]
    parts = [f"{counts[name]} {name}" for name in ("completed", *_SHOWN, "skipped") if counts[name]]
    number = sum([part.shard is not None for part in found.parts])
    shards = f"{number} shard{'' if number == 1 else 's'}"
    text = f"{found.verdict}: {shards}, {counts['total']} steps: {', '.join(parts) or 'none'}"
    if not found.missing:
        return text
    numbers = ", ".join([str(number) for number in found.missing])
    return f"{text}; missing: shard{'s' if len(found.missing) > 1 else ''} {numbers}"


def rows(found: Merged) -> Iterator[str]:
    """Yield the lines of the console: the verdict, each shard, and the steps that failed."""
    yield f"{ICONS.get(found.verdict, ICONS['waiting'])} {sentence(found)}"
    for part in found.parts:
        took = seconds(part.data["duration_s"]) if part.data["duration_s"] else "no end"
        yield f"  shard {part.label}: {line(part.became)} in {took}, run {line(part.data['run_id'])}"
    for step in _bad(found):
        yield f"  {ICONS[step['status']]} {line(step['id'])}: {step['status']} ({line(step['reason'])})"
    for name in found.left_out:
        yield f"  {ICONS['failed']} {line(name)}: left out by every run; if that is meant: --skip {line(name)}"
    for name in not_run(found):
        yield f"  {ICONS['skipped']} {line(name)}: left for after all shards, and not run"


def not_run(found: Merged) -> list[str]:
    """Return the steps that no shard runs and that no run after them has."""
    shard = found.parts[0].shard or {"after": []}
    after = set(shard["after"])
    skipped = [step for step in found.ledger["steps"] if step["reason"] == "not_selected"]
    return [step["id"] for step in skipped if step["id"] in after]


def _bad(found: Merged) -> list[dict[str, Any]]:
    return [step for step in found.ledger["steps"] if step["status"] in _SHOWN and not step["members"]]


def markdown(found: Merged) -> str:
    """Return the page: the verdict, the shards, the steps that failed, and every step."""
    name = inline(found.ledger["plan"]["name"])
    page = f"# {ICONS.get(found.verdict, ICONS['waiting'])} {name}: {inline(sentence(found))}\n\n"
    page += "| Shard | Verdict | Exit code | Duration | Run |\n| --- | --- | --- | --- | --- |\n"
    for part in found.parts:
        took = seconds(part.data["duration_s"]) if part.data["duration_s"] else ""
        ended = part.data["exit_code"]
        cells = (
            part.label,
            inline(part.became),
            "" if ended is None else str(ended),
            took,
            code(part.data["run_id"]),
        )
        page += f"| {' | '.join(cells)} |\n"
    if bad := _bad(found):
        lines = [
            f"- {ICONS[step['status']]} {code(step['id'])}: {step['status']} ({inline(step['reason'])})\n"
            for step in bad
        ]
        page += f"\n## What failed\n\n{fitting(lines, _BYTES, '- and {} more' + chr(10))}"
    for title, left in (
        ("Left out by every run", found.left_out),
        ("Left for after all shards", not_run(found)),
    ):
        if left:
            lines = [f"- {code(name)}\n" for name in left]
            page += f"\n## {title}\n\n{fitting(lines, _BYTES, '- and {} more' + chr(10))}"
    lines = [_table_row(step) for step in found.ledger["steps"]]
    table = fitting(lines, _BYTES, "\n{} more steps are in ledger.json.\n")
    return f"{page}\n## Steps\n\n| Step | Status | Attempts | Duration |\n| --- | --- | --- | --- |\n{table}"


def _table_row(step: dict[str, Any]) -> str:
    spent = sum([attempt.get("duration_s") or 0 for attempt in step["attempts"]])
    took = seconds(spent) if step["attempts"] else ""
    icon = ICONS.get(step["status"], "")
    return f"| {code(step['id'])} | {icon} {inline(step['status'])} | {len(step['attempts'])} | {took} |\n"


LEDGER = "ledger.json"
_MAX_BYTES = 256 << 20  # of one ledger
_DEPTH = 3  # folders below an argument in which ledgers are searched
_SEVERITY = ("completed", "partial", "cancelled", "waiting", "failed")
_STATUSES = ("skipped", "completed", "cancelled", "blocked", "failed")  # of a step that ran in several shards
_COUNTED = ("completed", "failed", "skipped", "blocked", "cancelled")
_JOINED = ("gates", "approvals", "agents", "notifications")


class Ledger(Record):
    """One ledger: its file, its data, and the shard in it (None: a run of what all shards left for after them)."""

    file: str
    data: dict[str, Any]

    @property
    def shard(self) -> dict[str, Any] | None:
        """What the ledger says of its shard."""
        found: dict[str, Any] | None = self.data.get("shard")
        return found

    @property
    def label(self) -> str:
        """`2/4`, or `after`."""
        return f"{self.shard['number']}/{self.shard['of']}" if self.shard else "after"

    @property
    def became(self) -> str:
        """The verdict; `waiting` for a run that is paused, `failed` for one that was killed."""
        if self.data["verdict"]:
            return str(self.data["verdict"])
        return "waiting" if self.data["exit_code"] == 5 else "failed"


class Merged(Record):
    """The result: one ledger, and the numbers of the shards that are missing."""

    ledger: dict[str, Any]
    parts: tuple[Ledger, ...]
    missing: tuple[int, ...] = ()
    left_out: tuple[str, ...] = ()  # steps that no run selected

    @property
    def verdict(self) -> str:
        """The verdict of all shards together."""
        lacks = self.missing or self.left_out
        return "failed" if lacks else max([part.became for part in self.parts], key=_SEVERITY.index)


def find_ledgers(places: Iterable[str]) -> list[str]:
    """Return the ledgers at these places: files, or folders with ledgers in them or up to three folders below."""
    found: dict[str, None] = {}
    for place in places:
        if os.path.isdir(place):
            inside = sorted(_below(place, _DEPTH))
            if not inside:
                raise InvalidInput(f"no {LEDGER} in {place}")
            found.update(dict.fromkeys(inside))
        else:
            found[place] = None
    return list(found)


def _below(folder: str, depth: int) -> Iterator[str]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise InvalidInput(f"cannot read {folder}: {error.strerror}") from None
    for entry in entries:
        if entry.name == LEDGER and entry.is_file(follow_symlinks=False):
            yield entry.path
        elif depth and entry.is_dir(follow_symlinks=False):
            yield from _below(entry.path, depth - 1)


def read_ledger(file: str) -> Ledger:
    """Read one ledger and check what merging relies on; raises InvalidInput."""
    try:
        data = json.loads(read_record(file, _MAX_BYTES))
        _check(data)
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise InvalidInput(f"{file} is too large for a {LEDGER}") from None
        raise InvalidInput(f"cannot read {file}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InvalidInput(f"{file} is no {LEDGER} of this version of planrun") from None
    return Ledger(file=file, data=data)


def _check(data: Any) -> None:
    """Raise ValueError, KeyError or TypeError for data that is no ledger, as far as merging reads it."""
    _expect(dict, data, data["plan"], data["usage"], data["outputs"])
    if data["schema_version"] != 1 or data["verdict"] not in (
        "completed",
        "partial",
        "cancelled",
        "failed",
        None,
    ):
        raise ValueError
    _expect(str, data["run_id"], data["plan"]["digest"], data["plan"]["name"], data["status"])
    _expect((str, NoneType), data["started_at"], data["ended_at"])
    _expect((int, float, NoneType), data["exit_code"], data["duration_s"], *data["usage"].values())
    _expect(list, data["steps"], data["lifecycle"], *[data[name] for name in _JOINED])
    for step in data["steps"]:
        _expect(dict, step)
        _expect(str, *[step[name] for name in ("id", "status", "reason", "section", "kind")])
        _expect((str, NoneType), step["group"])
        _expect(list, step["attempts"], step["members"])
        _expect((int, float, NoneType), *[attempt["duration_s"] for attempt in step["attempts"]])
    shard = data.get("shard")
    if shard is not None:
        _expect(str, shard["split"], *shard["steps"], *shard["each"], *shard["after"])
        _expect(list, shard["steps"], shard["each"], shard["after"])
        _expect(int, shard["number"], shard["of"])
        if not 1 <= shard["number"] <= shard["of"] <= MOST:
            raise ValueError


def _expect(kind: type | tuple[type, ...], *values: Any) -> None:
    """Raise TypeError for a value of another type."""
    if not all(isinstance(value, kind) for value in values):
        raise TypeError


def merge(ledgers: Sequence[Ledger], skipped: Sequence[str] = ()) -> Merged:
    """Merge the ledgers of one split; raises InvalidInput where they do not belong together.

    `skipped`: the steps that may have been left out of every run.
    """
    shards = sorted(
        [ledger for ledger in ledgers if ledger.shard], key=lambda each: each.data["shard"]["number"]
    )
    rest = [ledger for ledger in ledgers if not ledger.shard]
    if not shards:
        raise InvalidInput("none of these runs is a shard: `planrun execute --shard N/M` makes one")
    first = shards[0]
    seen: dict[int, str] = {}
    for ledger in (*shards, *rest):
        if ledger.data["plan"]["digest"] != first.data["plan"]["digest"]:
            raise InvalidInput(
                f"{ledger.file} is of another plan, or of other parameters or scripts, than {first.file}"
            )
    for ledger in shards:
        shard, other = ledger.data["shard"], first.data["shard"]
        if (shard["of"], shard["split"]) != (other["of"], other["split"]):
            raise InvalidInput(
                f"{ledger.file} (shard {ledger.label}) is of another split than {first.file} (shard {first.label}): "
                "give every shard the same --legs and --timings"
            )
        if shard["number"] in seen:
            raise InvalidInput(f"shard {ledger.label} is there twice: {seen[shard['number']]}, {ledger.file}")
        seen[shard["number"]] = ledger.file
    first = shards[0].data["shard"]
    numbers = [ledger.data["shard"]["number"] for ledger in shards]
    missing = tuple([number for number in range(1, first["of"] + 1) if number not in numbers])
    steps = list(_steps(shards, rest))
    _refuse_gaps(steps, shards, missing)
    parts = (*shards, *rest)
    outer = {step["id"]: step["group"] for step in steps}
    if strange := [name for name in skipped if name not in outer]:
        raise InvalidInput(f'--skip: no step "{strange[0]}" in these runs')
    expected = {*first["after"], *skipped}
    left_out: list[str] = []
    for step in steps:
        if step["reason"] == "not_selected" and not _is_known(step["id"], outer, {*expected, *left_out}):
            left_out.append(step["id"])
    found = Merged(ledger={}, parts=parts, missing=missing, left_out=() if missing else tuple(left_out))
    return found.but(ledger=_ledger(found, steps))


def _steps(shards: Sequence[Ledger], rest: Sequence[Ledger]) -> Iterator[dict[str, Any]]:
    """Yield every step once, in the order of the plan: that of its shard if it ran there, else the worst of all."""
    owners = {name: ledger for ledger in shards for name in ledger.data["shard"]["steps"]}
    rows = {id(ledger): {step["id"]: step for step in ledger.data["steps"]} for ledger in (*shards, *rest)}
    order: dict[str, None] = {}
    for ledger in (*shards, *rest):
        order.update(dict.fromkeys([step["id"] for step in ledger.data["steps"]]))
    for name in order:
        owner = owners.get(name)
        own = rows[id(owner)].get(name) if owner is not None else None
        if own is not None and own["reason"] != "not_selected":
            yield own
            continue
        yield max(
            [found[name] for found in rows.values() if name in found],
            key=lambda step: (
                _STATUSES.index(step["status"]) if step["status"] in _STATUSES else len(_STATUSES)
            ),
        )


def _refuse_gaps(steps: Sequence[dict[str, Any]], shards: Sequence[Ledger], missing: Sequence[int]) -> None:
    """Raise InvalidInput where a step is in no shard or in two, though no shard is missing."""
    counts: dict[str, int] = {}
    for ledger in shards:
        for name in ledger.data["shard"]["steps"]:
            counts[name] = counts.get(name, 0) + 1
    twice = [name for name, count in counts.items() if count > 1]
    if twice:
        raise InvalidInput(f'step "{twice[0]}" is in two shards')
    shard = shards[0].data["shard"]
    known = {*counts, *shard["each"], *shard["after"]}
    outer = {step["id"]: step["group"] for step in steps}
    main = [step["id"] for step in steps if step["section"] == "steps" and step["kind"] != "group"]
    lost = [name for name in main if not _is_known(name, outer, known)]
    if lost and not missing:
        raise InvalidInput(f'step "{lost[0]}" is in no shard')


def _is_known(name: str | None, outer: dict[str, str | None], known: set[str]) -> bool:
    """Whether a step, or a group around it, has a place in the split: members of a run's own are in no plan."""
    seen = set()
    while name is not None and name not in seen:
        if name in known:
            return True
        seen.add(name)
        name = outer.get(name)
    return False


def _ledger(found: Merged, steps: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the merged ledger in the form of one run."""
    first, worst = found.parts[0].data, _worst(found)
    begun = min([part.data["started_at"] for part in found.parts if part.data["started_at"]], default=None)
    ends = [part.data["ended_at"] for part in found.parts]
    ended = max(ends) if all(ends) else None
    summary = {
        name: sum(
            [
                bool(step["status"] == name and step["kind"] != "group" and step["section"] != "rollback")
                for step in steps
            ]
        )
        for name in _COUNTED
    }
    merged = {
        **first,
        "status": worst.data["status"],
        "verdict": found.verdict if found.verdict != "waiting" else None,
        "exit_code": exit_code(found),
        "started_at": begun,
        "ended_at": ended,
        "duration_s": round(epoch(ended) - epoch(begun), 3) if begun and ended else None,
        "lifecycle": worst.data["lifecycle"],
        "usage": {
            name: sum([part.data["usage"].get(name, 0) for part in found.parts]) for name in first["usage"]
        },
        "outputs": found.parts[-1].data["outputs"] if found.parts[-1].shard is None else {},
        "summary": {"total": sum(summary.values()), **summary},
        "shard": None,
        "shards": [_row(part) for part in found.parts],
        "missing_shards": list(found.missing),
    }
    return (
        merged
        | {name: [row for part in found.parts for row in part.data[name]] for name in _JOINED}
        | {"steps": steps}
    )


def _worst(found: Merged) -> Ledger:
    return max(found.parts, key=lambda part: _SEVERITY.index(part.became))


def exit_code(found: Merged) -> int:
    """Return the exit code of the whole: that of the shard that went worst; 1 where a shard or step is missing."""
    code = _worst(found).data["exit_code"]
    if (found.missing or found.left_out) and not code:
        return 1
    return code if isinstance(code, int) else 1


def _row(part: Ledger) -> dict[str, Any]:
    return {
        "shard": part.label,
        "run_id": part.data["run_id"],
        "verdict": part.data["verdict"],
        "exit_code": part.data["exit_code"],
        "duration_s": part.data["duration_s"],
    }
