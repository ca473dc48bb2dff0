"""The limits of what steps are made into: instances, services, files that steps name, plans that plans use."""

from __future__ import annotations

import os
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from planrun.plan import load
from proofs.bounds import BOUNDS, MIB, Bound

if TYPE_CHECKING:
    from collections.abc import Callable

    Files = dict[str, bytes]

_STEP = "- {id: s%d, run: x"


def _said(make: Callable[[int], Files], size: int) -> Callable[[], str]:
    def said() -> str:
        files = make(size)
        with tempfile.TemporaryDirectory() as folder:
            for name, data in files.items():
                Path(folder, name).write_bytes(data)
            before = Path.cwd()
            os.chdir(folder)
            try:
                found = load.check_bytes(files["plan.yml"], "plan.yml")
            finally:
                os.chdir(before)
        return "; ".join(each.text for each in found.problems)

    return said


def _bound(what: str, names: str, says: str, make: Callable[[int], Files], most: int) -> Bound:
    """Return a limit on plans and the files beside them: `make` gives these for a size."""
    return Bound(what, tuple(names.split()), _said(make, most), _said(make, most + 1), says)


def _plan(*steps: str) -> bytes:
    return "\n".join(["version: 1", "steps:", *steps, ""]).encode()


def _instances(size: int) -> Files:
    full, rest = divmod(size, 250)
    sizes = [250] * full + ([rest] if rest else [])
    steps = [f"{_STEP % n}, foreach: {list(range(count))}}}" for n, count in enumerate(sizes)]
    return {"plan.yml": _plan(*steps)}


def _compared(size: int) -> Files:
    full, rest = divmod(size, 10_000)
    values, more = list(range(100)), ", ".join([f"{{a: 1, b: {n}}}" for n in range(99)])
    steps = [f"{_STEP % n}, matrix: {{a: {values}, include: [{more}]}}}}" for n in range(full)]
    return {"plan.yml": _plan(*steps, *[f"{_STEP % (full + n)}, matrix: {{a: [1]}}}}" for n in range(rest)])}


def _services(size: int) -> Files:
    steps = [f"{_STEP % n}, service: true}}" for n in range(size)]
    return {
        "plan.yml": _plan(
            *steps, f"- {{id: end, run: x, depends_on: [{', '.join(f's{n}' for n in range(size))}]}}"
        )
    }


def _changed(size: int) -> Files:
    return {"plan.yml": _plan(*[f'{_STEP % n}, writes: ["f"]}}' for n in range(size)])}


def _inside(size: int) -> Files:
    names = ["plan.yml", *[f"p{n}.yml" for n in range(1, size)]]
    files = {name: _plan(f"- {{id: a, uses: ./{other}}}") for name, other in pairwise(names)}
    return {**files, names[-1]: _plan("- {id: a, run: x}")}


def _used(size: int) -> Files:
    files = {f"p{n}.yml": _plan("- {id: a, run: x}") for n in range(size)}
    return {**files, "plan.yml": _plan(*[f"- {{id: s{n}, uses: ./p{n}.yml}}" for n in range(size)])}


def _together(size: int) -> Files:
    own = _plan("- {id: a, uses: ./p.yml}", "- {id: b, uses: ./q.yml}")
    half = _plan("- {id: a, run: x}") + b"#"
    left = size - 4 * MIB
    return {
        "plan.yml": own,
        "p.yml": half.ljust(4 * MIB, b"#"),
        "q.yml": half.ljust(left, b"#"),
    }


def _embedded(size: int) -> Files:
    inner = _plan(*[f"{_STEP % n}}}" for n in range(size)])
    return {"plan.yml": _plan("- {id: a, uses: ./p.yml}"), "p.yml": inner}


def _extended(size: int) -> Files:
    names = ["plan.yml", *[f"p{n}.yml" for n in range(1, size)]]
    files = {name: f"version: 1\nextends: ./{other}\n".encode() for name, other in pairwise(names)}
    return {**files, names[-1]: _plan("- {id: a, run: x}")}


def _ruled(size: int) -> Files:
    rules = ", ".join(["{deny: {step: a}}"] * size)
    return {"plan.yml": f"policy: {{rules: [{rules}]}}\n".encode() + _plan("- {id: a, run: x}")}


def _notified(size: int) -> Files:
    targets = ", ".join(["{webhook: https://a.b/c}"] * size)
    return {"plan.yml": _plan("- {id: a, run: x}") + f"notify: [{targets}]\n".encode()}


def _addressed(size: int) -> Files:
    address = "https://a.b/".ljust(size, "c")
    return {"plan.yml": _plan("- {id: a, run: x}") + f"notify: [{{webhook: {address}}}]\n".encode()}


GROWN: tuple[Bound, ...] = (
    _bound(
        "instances of a plan", "instances:MAX_INSTANCES", "more than 20,000 instances", _instances, 20_000
    ),
    _bound(
        "combinations with entries",
        "instances:MAX_COMPARED",
        "too many combinations and entries",
        _compared,
        1_000_000,
    ),
    _bound("services of a plan", "services:MAX_SERVICES", "more than 100 services", _services, 100),
    _bound("steps that change one file", "files:MAX_CHANGED", "too many steps change", _changed, 1_000),
    _bound("plans inside each other", "includes:MAX_DEPTH", "nested more than 16 levels deep", _inside, 16),
    _bound(
        "plans that extend each other",
        "includes:MAX_CHAIN",
        "more than 5 plans in a chain of `extends`",
        _extended,
        5,
    ),
    _bound("rules of a policy", "policy:MAX_RULES", "too many rules: 1,001", _ruled, 1_000),
    _bound("targets of notifications", "notify:MAX_TARGETS", "too many targets: 21", _notified, 20),
    _bound("characters of an address", "notify:_MAX_URL", "the address is too long", _addressed, 2_000),
    _bound("files that a plan uses", "includes:MAX_FILES", "more than 256 files", _used, 256),
    _bound("bytes of them", "includes:MAX_TOGETHER", "larger than 8 MiB in total", _together, 8 * MIB),
    _bound("steps of used plans", "includes:MAX_EMBEDDED", "more than 10,000 steps", _embedded, 10_000),
)

LIMITS = (*BOUNDS, *GROWN)
