"""From a plan file to a Plan: out of the cache, or read, checked and compiled. HOT: the first thing a run does."""

from __future__ import annotations

import gc

from planrun.errors import InvalidPlan
from planrun.model.record import Record
from planrun.source import cache as kept
from planrun.source.file import read_source
from planrun.source.packed import pack, unpack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.model.plan import Plan
    from planrun.source.problems import Problem
    from planrun.source.validate import Checked


def load(path: str, *, cache: bool = True, warnings: list[Problem] | None = None) -> Plan:
    """Return the plan in a file; raises InvalidPlan with every problem, in file order.

    Findings of severity `warning` are appended to `warnings`; they never keep a plan from being loaded.
    """
    return load_bytes(read_source(path), path, cache=cache, warnings=warnings)


def load_bytes(data: bytes, file: str, *, cache: bool = True, warnings: list[Problem] | None = None) -> Plan:
    """Return the plan in bytes that were read before; `file` names them in problems and gives the default name."""
    with _NoCollection():
        key = kept.key_of(data, _name(file)) if cache else ""
        found = kept.read(key) if cache else None
        if found is not None:
            plan = _restored(found, file, data, warnings)
            if plan is not None:
                return plan
        plan, noted = _compile(data, file)
        if warnings is not None:
            warnings += noted
        if cache:
            kept.write(key, {"plan": pack(plan), "warnings": [{**vars(each), "file": ""} for each in noted]})
        return plan


class Findings(Record):
    """What a check found: every problem, warnings too, in file order.

    `steps` is the number of steps of a valid plan, and None for another.
    """

    problems: tuple[Problem, ...] = ()
    steps: int | None = None


def check_bytes(data: bytes, file: str) -> Findings:
    """Check a plan; nothing is compiled or written, which takes two thirds of the time of loading it."""
    with _NoCollection():
        checked, problems = _check(data, file)
    if checked is None or any(problem.severity == "error" for problem in problems):
        return Findings(problems=tuple(problems))
    return Findings(
        problems=tuple(problems), steps=sum([draft.instances or 1 for draft in checked.outline.drafts])
    )


def _name(file: str) -> str:
    return file[file.rfind("/") + 1 :]


def _restored(found: Any, file: str, data: bytes, warnings: list[Problem] | None) -> Plan | None:
    """Return the plan of an entry; None when the entry is not what this version writes."""
    try:
        plan = unpack(found["plan"], file, data)
        if found["warnings"] and warnings is not None:
            from planrun.source.problems import Problem

            warnings += [Problem(**{**fields, "file": file}) for fields in found["warnings"]]
    except (KeyError, TypeError, AttributeError, ValueError):
        return None
    return plan


def _compile(data: bytes, file: str) -> tuple[Plan, list[Problem]]:
    # From here on everything is for plans that were never seen.
    from planrun.source.compile import compile_plan

    checked, problems = _check(data, file)
    if checked is None or any(problem.severity == "error" for problem in problems):
        raise InvalidPlan(problems, sources={file: data})
    return compile_plan(checked).but(source=data), problems


class _NoCollection:
    """Keeps Python from looking for garbage where none is made: that costs as much again as the work."""

    def __enter__(self) -> None:
        self._was_on = gc.isenabled()
        gc.disable()

    def __exit__(self, *_exception: object) -> None:
        if self._was_on:
            gc.enable()


def _check(data: bytes, file: str) -> tuple[Checked | None, list[Problem]]:
    from planrun.source import shape
    from planrun.source.problems import in_order, limited
    from planrun.source.validate import validate

    root, problems = shape.read(data, file)
    if root is None:
        return None, problems
    checked = validate(root, file, data, sound=not problems)
    if not problems and any(["risk" in draft.keys for draft in checked.outline.drafts]):  # noqa: C419 - half the time
        from planrun.source.declared import check_declared  # the whole classifier

        check_declared(checked)
    if not checked.problems:
        return checked, problems
    # What is misshapen is often misunderstood as well: one finding for one place is enough.
    told = {(problem.line, problem.col) for problem in problems}
    added = [problem for problem in checked.problems if (problem.line, problem.col) not in told]
    return checked, limited(in_order([*problems, *added]))
