"""One process that makes inputs and judges them: it may be ended by any of them, and then another one goes on.

Started with its orders as JSON in the first argument; writes a JSON object a line for each complaint and one at its
end, and keeps the input that it is at in a file, so that what ends it is known.
"""

from __future__ import annotations

import base64
import json
import os
import resource
import sys
import time
import warnings
from collections import Counter
from random import Random
from typing import Any

from planrun import values
from planrun.plan.keys import fragments
from proofs.fuzzing import agreement, corpus, faults, formulas, mutations, oracle, structures
from proofs.fuzzing.lines import Lines, missing
from proofs.fuzzing.memory import most_memory

SECONDS = 8
"""Of processor time for one input, which is read five times; one reading has two, says the oracle."""
MEMORY = 150 << 20
"""Bytes, for one input together with everything that this process needs."""
_MATCHING = 0.1
"""Seconds instead of one for patterns that take for ever: each input is checked some times over."""
_TRIES = 150


def main() -> None:
    """Do what the orders say."""
    orders: dict[str, Any] = json.loads(sys.argv[1])
    warnings.simplefilter("error")  # a warning would be a line on stderr that nobody can explain
    resource.setrlimit(resource.RLIMIT_AS, (4 * MEMORY, 4 * MEMORY))
    values.PATTERN_SECONDS = fragments.MAX_MATCHING = _MATCHING
    faults.plant(orders["fault"])
    if orders["only"]:
        kind, name, data = read_input(orders["only"])
        tell(_Worker(orders).judged(kind, data, name))
        return
    _Worker(orders).work()


class _Worker:
    """Makes inputs from what it knows, and keeps those that reach new lines."""

    def __init__(self, orders: dict[str, Any]) -> None:
        self.orders = orders
        self.chance = Random(orders["seed"])
        self.marks: Counter[str] = Counter()
        self.progress = os.open(orders["progress"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        self.lines = Lines()
        self.slowest = 0.0

    def work(self) -> None:
        """Make and judge inputs until enough were made, or the time is over."""
        seeds = corpus.seeds()
        self.seeds = seeds
        self.documents = corpus.documents(corpus.plans())
        self.found: list[bytes] = []
        accepted = done = agreed = 0
        codes: set[str] = set()
        end = time.monotonic() + self.orders["seconds"]
        while (
            done < self.orders["files"] and time.monotonic() < end and len(self.marks) < self.orders["most"]
        ):
            kind, data = self.make(done)
            name = self.chance.choice(oracle.NAMES)
            before = self.lines.reached
            verdict = self.judged(kind, data, name)
            # What has grown would grow on, until to watch its lines takes longer than an input may take.
            if self.lines.reached > before and kind == "plan" and len(data) <= corpus.LARGEST:
                self.found.append(data)
            if not verdict.complaint and kind == "plan" and self.chance.random() < self.orders["agree"]:
                agreed += 1
                verdict = agreement.judge(data)
            accepted += verdict.accepted
            codes.update(verdict.codes)
            done += 1
            if verdict.complaint:
                self.complain(kind, name, data, verdict)
        memory = most_memory()
        lines = {"reached": self.lines.reached, "lines": self.lines.total, "missing": missing(self.lines)}
        end_of_it = {
            "done": done,
            "accepted": accepted,
            "agreed": agreed,
            "codes": sorted(codes),
            "kept": len(self.found),
        }
        print(json.dumps({**end_of_it, **lines, "memory": memory, "slowest": self.slowest}), flush=True)

    def make(self, number: int) -> tuple[str, bytes]:
        """Return kind and bytes of the next input; the first ones are the seeds as they are."""
        chance = self.chance
        if self.orders["whole"] and number < len(self.seeds):
            return "plan", self.seeds[number]
        what = chance.random()
        if what < 0.42:
            pool = self.found if self.found and chance.random() < 0.4 else self.seeds
            data = chance.choice(pool)
            if what < 0.04:
                data = mutations.splice(chance, data, chance.choice(self.seeds))
            return "plan", mutations.changed(chance, data)
        if what < 0.85:
            made = structures.made(chance, self.documents)
            return "plan", mutations.changed(chance, made, 2) if what > 0.75 else made
        if what < 0.93:
            return "condition", formulas.text(chance).encode("utf-8", "surrogatepass")
        return chance.choice(("text", "script")), formulas.template(chance).encode("utf-8", "surrogatepass")

    def judged(self, kind: str, data: bytes, name: str) -> oracle.Verdict:
        """Judge an input within the limits; what ends the process is told by its progress file."""
        header = f"{kind} {base64.b64encode(os.fsencode(name)).decode()} {len(data)}\n".encode()
        os.pwrite(self.progress, header + data, 0)
        began = time.process_time()
        resource.setrlimit(resource.RLIMIT_CPU, (int(began) + SECONDS + 1, resource.RLIM_INFINITY))
        verdict = oracle.judge(kind, data, name, self.lines)
        spent = time.process_time() - began
        resource.setrlimit(resource.RLIMIT_CPU, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        self.slowest = max(self.slowest, spent)
        if verdict.complaint:
            return verdict
        used = most_memory()
        if used > MEMORY:
            return oracle.Verdict(complaint=f"{used >> 20} MiB of memory", mark="large")
        return verdict

    def complain(self, kind: str, name: str, data: bytes, verdict: oracle.Verdict) -> None:
        """Tell a complaint with the smallest input that still brings it about, the first time it comes."""
        self.marks[verdict.mark] += 1
        if self.marks[verdict.mark] > 1:
            return
        if self.orders["most"] > 1:
            data = smallest(data, lambda some: self._judged_again(kind, some, name).mark == verdict.mark)
        tell(verdict, kind, name, data)

    def _judged_again(self, kind: str, data: bytes, name: str) -> oracle.Verdict:
        verdict = self.judged(kind, data, name)
        return agreement.judge(data) if kind == "plan" and not verdict.complaint else verdict


def smallest(data: bytes, fails: Any, tries: int = _TRIES) -> bytes:
    """Take lines, then pieces, then bytes away as long as what is left still fails."""
    for cut in (b"\n", None):
        parts = data.split(cut) if cut else [data[at : at + 1] for at in range(len(data))]
        joint = cut or b""
        size = max(1, len(parts) // 2)
        while tries > 0:
            at = 0
            while at < len(parts) and tries > 0:
                fewer = parts[:at] + parts[at + size :]
                tries -= 1
                if fewer and fails(joint.join(fewer)):
                    parts = fewer
                else:
                    at += size
            if size == 1:
                break
            size = max(1, size // 2)
        data = joint.join(parts)
    return data


def tell(verdict: oracle.Verdict, kind: str = "", name: str = "", data: bytes = b"") -> None:
    """Write a complaint as one line of JSON."""
    found = {"complaint": verdict.complaint, "mark": verdict.mark, "kind": kind, "name": ascii(name)}
    print(json.dumps({**found, "data": base64.b64encode(data).decode()}), flush=True)


def read_input(path: str) -> tuple[str, str, bytes]:
    """Return kind, file name and bytes of the input in a progress file."""
    with open(path, "rb") as file:
        kind, name, size = file.readline().decode().split()
        return kind, os.fsdecode(base64.b64decode(name)), file.read(int(size))


if __name__ == "__main__":
    main()
