"""From a plan file to a Plan: out of the cache, or read, checked and compiled. HOT: the first thing a run does."""

from __future__ import annotations

import gc
from posixpath import lexists

from planrun.errors import InvalidPlan
from planrun.model.record import Record
from planrun.plan import cache as kept
from planrun.plan.packed import pack, unpack
from planrun.plan.yaml.file import BOUNDS, read_plan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from planrun.model.plan import Plan
    from planrun.plan.problems import Problem
    from planrun.plan.readers import Reader


PROJECT_FILE = ".planrun.yml"


def load(path: str, *, cache: bool = True, warnings: list[Problem] | None = None) -> Plan:
    """Return the plan in a file, or in standard input for `-`.

    Raises InvalidPlan with every problem, in file order, then those of plans it uses.
    Findings of severity `warning` are appended to `warnings`; they never keep a plan from being loaded.
    """
    take_bounds()
    data, file = read_plan(path)
    return load_bytes(data, file, cache=cache, warnings=warnings)


def take_bounds() -> None:
    """Have the limits of the project count, where the current folder has settings; raises InvalidPlan."""
    if lexists(PROJECT_FILE):
        from planrun.plan import project  # few folders have settings

        project.take_bounds()


def load_bytes(
    data: bytes,
    file: str,
    *,
    cache: bool = True,
    warnings: list[Problem] | None = None,
    read: Reader | None = None,
) -> Plan:
    """Return the plan in bytes that were read before; `file` names them in problems and gives the default name.

    `read` gives the plans that it uses; None: they are files, as seen from `file`.
    """
    with NoCollection():
        key = kept.key_of(data, f"{BOUNDS.depth} {BOUNDS.steps} {_name(file)}") if cache else ""
        found = kept.read(key) if cache else None
        if found is not None:
            plan = _restored(found, file, data, (warnings, read))
            if plan is not None:
                return plan
        plan, noted, is_lasting = _compile(data, file, read)
        if warnings is not None:
            warnings += noted
        if cache and is_lasting:
            entry: dict[str, Any] = {"plan": pack(plan)}
            entry["warnings"] = [{**vars(each), "file": ""} for each in noted if each.file == plan.file]
            if plan.files:
                from planrun.plan.readers import hashes, paths

                entry["files"] = hashes(plan.files)
                names = paths(plan.file, plan.files)
                entry["warnings"] += [
                    {**vars(each), "file": names[each.file]} for each in noted if each.file in names
                ]
            kept.write(key, entry)
        return plan


class Findings(Record):
    """What a check found: every problem, warnings too, in file order.

    `steps` is the number of steps of a valid plan, and None for another; `later`: steps whose instances, which are not
    counted, are known when they run; `sources`: what was read of plans it uses.
    """

    problems: tuple[Problem, ...] = ()
    steps: int | None = None
    later: tuple[str, ...] = ()
    sources: Mapping[str, bytes] = {}


def check_bytes(data: bytes, file: str) -> Findings:
    """Check a plan; nothing is compiled or written, which takes two thirds of the time of loading it."""
    from planrun.plan.includes import IncludedPlans, check

    included = IncludedPlans(file)
    with NoCollection():
        checked, problems = check(data, file, included)
        problems = [*problems, *included.problems]
    sources = included.sources()
    if checked is None or any(problem.severity == "error" for problem in problems):
        return Findings(problems=tuple(_recognised(problems, data, file)), sources=sources)
    return Findings(problems=tuple(problems), steps=checked.known, later=checked.later, sources=sources)


def _name(file: str) -> str:
    return file[file.rfind("/") + 1 :]


def _restored(
    found: Any, file: str, data: bytes, wanted: tuple[list[Problem] | None, Reader | None]
) -> Plan | None:
    """Return the plan of an entry; None when the entry is not what this version writes, or of other bytes."""
    warnings, read = wanted
    try:
        files: dict[str, bytes] | None = None
        if "files" in found:
            from planrun.plan.readers import Disk, read_again  # few plans use others

            files = read_again(found["files"], read or Disk(file))
            if files is None:
                return None
        plan = unpack(found["plan"], file, data, files)
        if found["warnings"] and warnings is not None:
            from planrun.plan.problems import Problem

            for fields in found["warnings"]:
                named = _shown(file, fields["file"]) if fields["file"] else file
                warnings.append(Problem(**{**fields, "file": named}))
    except (LookupError, TypeError, AttributeError, ValueError, ImportError):
        return None
    return plan


def _shown(file: str, path: str) -> str:
    from planrun.plan.readers import shown

    return shown(file, path)


def _compile(data: bytes, file: str, read: Reader | None) -> tuple[Plan, list[Problem], bool]:
    # From here on everything is for plans that were never seen.
    from planrun.plan.compile.compile import compile_plan
    from planrun.plan.includes import IncludedPlans, check

    included = IncludedPlans(file, read)
    checked, problems = check(data, file, included)
    problems = [*problems, *included.problems]
    if checked is None or any(problem.severity == "error" for problem in problems):
        raise InvalidPlan(_recognised(problems, data, file), sources={file: data, **included.sources()})
    plan = compile_plan(checked).but(source=data)
    return (
        plan.but(files=included.contents) if included.contents else plan,
        problems,
        not included.named_template,
    )


def _recognised(problems: list[Problem], data: bytes, file: str) -> list[Problem]:
    from planrun.plan.foreign import recognised  # for a file that is no plan

    return recognised(problems, data, file)


class NoCollection:
    """Keeps Python from looking for garbage where none is made: that costs as much again as the work."""

    def __enter__(self) -> None:
        self._was_on = gc.isenabled()
        gc.disable()

    def __exit__(self, *_exception: object) -> None:
        if self._was_on:
            gc.enable()
