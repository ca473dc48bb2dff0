"""Whatever is changed in a ledger is found, and the right line named.

In the ledger of a real run every byte is changed, some to each other value; every line is exchanged with the next one,
left out and doubled; the file is cut at every byte. A ledger that was written anew with all hashes right, and one that
was cut between two lines, are told apart by the head.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import re
import tempfile
import time
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

from planrun.records import reading
from proofs.crashing import Scene

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from planrun.records.reading import Reading

LINES = 200
AT_ONCE = 2000
"""How many changes one piece of work is about."""


@dataclass(frozen=True)
class Change:
    """A ledger that was changed; `line`: which one has to be named, 0 for none; `sound`: how many are as they were.

    `silent`: without the head it cannot be found.
    """

    what: str
    data: bytes
    line: int
    sound: int
    silent: bool = False


def real_ledger(folder: Path, lines: int = LINES) -> bytes:
    """Run a plan whose ledger has so many lines, and return it."""
    steps = "".join(f"  - {{id: s{n}, run: 'echo {n}'}}\n" for n in range((lines - 5) // 2))
    left = "".join(f"  - {{id: n{n}, condition: 'false', run: 'true'}}\n" for n in range((lines - 5) % 2))
    scene = Scene(folder / "run", folder, f"version: 1\ndefaults: {{shell: sh}}\nsteps:\n{steps}{left}")
    if scene.planrun("execute", "plan.yml", "-q"):
        raise RuntimeError("".join(scene.said))
    return scene.ledger().read_bytes()


def flips(data: bytes, places: range, seed: int) -> Iterator[Change]:
    """Change one byte in each place to some other value."""
    chance = random.Random(seed + places.start)
    for place in places:
        yield _flip(data, place, data[place] ^ chance.randrange(1, 256))


def values(data: bytes, places: range, seed: int) -> Iterator[Change]:
    """Change a byte to each other value, in one of 1000 places."""
    chance = random.Random(seed + places.start)
    for place in chance.sample(places, max(1, len(places) // 1000)):
        yield from (_flip(data, place, value) for value in range(256) if value != data[place])


def cuts(data: bytes, places: range, seed: int) -> Iterator[Change]:
    """Cut the file at each place."""
    del seed
    for place in places:
        sound = data.count(b"\n", 0, place)
        whole = not place or data[place - 1] == 10
        yield Change(f"cut at {place}", data[:place], 0 if whole else sound + 1, sound)


def moves(data: bytes, places: range, seed: int) -> Iterator[Change]:
    """Exchange, leave out, double and write anew each line that begins there."""
    chance = random.Random(seed + places.start)
    lines = data.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    for place, start in enumerate(starts[:-1]):
        if start not in places:
            continue
        number = place + 1
        before, line, after = lines[:place], lines[place], lines[number:]
        if after:
            other = chance.randrange(len(after))
            far = [*after[:other], line, *after[other + 1 :]]
            yield Change(
                f"lines {number}, {number + 1 + other} exchanged",
                _glue(before, after[other], far),
                number,
                place,
            )
            yield Change(f"line {number} exchanged", _glue(before, after[0], line, after[1:]), number, place)
            yield Change(f"line {number} left out", _glue(before, after), number, place)
        yield Change(f"line {number} doubled", _glue(before, line, line, after), number + 1, number)
        anew = _rewritten(lines, place)
        yield Change(f"all written anew from line {number} on", anew, len(lines), len(lines), silent=True)


KINDS: dict[str, Callable[[bytes, range, int], Iterator[Change]]] = {
    "one byte": flips,
    "every value": values,
    "lines": moves,
    "cuts": cuts,
}


def _flip(data: bytes, place: int, value: int) -> Change:
    line = data.count(b"\n", 0, place) + 1
    return Change(
        f"byte {place} to {value}", data[:place] + bytes([value]) + data[place + 1 :], line, line - 1
    )


def _glue(*parts: bytes | list[bytes]) -> bytes:
    return b"".join(part if isinstance(part, bytes) else b"".join(part) for part in parts)


def _rewritten(lines: Sequence[bytes], place: int) -> bytes:
    """Change a time on a line and make every hash right from there on."""
    head = "0" * 64 if not place else json.loads(lines[place - 1])["hash"]
    made = list(lines[:place])
    for number, line in enumerate(lines[place:], place):
        body = line[: line.rindex(b',"hash":"')]
        if number == place:
            body = re.sub(rb'"at":"\d{4}', b'"at":"1999', body, count=1)
        head = sha256(head.encode() + body).hexdigest()
        made.append(body + f',"hash":"{head}"}}\n'.encode())
    return b"".join(made)


def wrong(change: Change, head: str) -> str:
    """Say what verify does not find out about a change, or finds out wrongly, without and with the head."""
    for known in ("", head):
        found = reading.verify(change.data, known)
        told = (
            f"{change.what}, {'with' if known else 'without'} the head: {found.condition}, line {found.line}"
        )
        if change.silent and not known:
            if found.condition != "intact":
                return f"{told}, and every hash is right"
            continue
        if found.condition == "intact":
            return f"{told}: not found"
        if change.line and found.line != change.line:
            return f"{told}, not {change.line}"
        if len(found.events) != change.sound:
            return f"{told}: {len(found.events)} sound lines, not {change.sound}"
        if known and not change.line and found.condition != "truncated" and change.data:
            return f"{told}: it was cut"
    return ""


def check(data: bytes, kind: str, places: range, seed: int) -> tuple[str, int, list[str]]:
    """Make all changes of a kind in some places; returns how many there were and what was wrong.

    What is read from a line depends on nothing but the line, its number and the hash before: it is kept, so that of
    each changed ledger only what was changed has to be read.
    """
    head = json.loads(data.splitlines()[-1])["hash"]
    with mock.patch.object(reading, "_event", cache(reading._event)):
        found = [wrong(change, head) for change in KINDS[kind](data, places, seed)]
    return kind, len(found), [text for text in found if text]


def _check(work: tuple[bytes, str, range, int]) -> tuple[str, int, list[str]]:
    return check(*work)


_verify, _event, _finish = reading.verify, reading._event, reading._finish


def _trusting(line: bytes, number: int, previous: str) -> object:
    """Believe that a line that can be read is as it was written."""
    del previous
    try:
        body = line[: line.rindex(b',"hash":"')]
        line[-66:-2].decode()
    except ValueError:
        raise ValueError("no hash") from None
    return _event(body + f',"hash":"{sha256(body).hexdigest()}"}}'.encode(), number, "")


def _without_head(found: object, events: object, _head: str, previous: str) -> Reading:
    return _finish(found, events, "", previous)  # type: ignore[arg-type]


def _late(data: bytes, head: str = "") -> Reading:
    """Name the line after the one that was changed."""
    found = _verify(data, head)
    return found.but(line=found.line + 1) if found.line else found


def _content(data: bytes, head: str = "") -> Reading:
    """Take a ledger without an end for a whole one."""
    found = _verify(data, head)
    return found.but(condition="intact") if found.condition == "unfinished" else found


FAULTS: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "": nullcontext,
    "hashes not compared": lambda: mock.patch.object(reading, "_event", _trusting),
    "head not compared": lambda: mock.patch.object(reading, "_finish", _without_head),
    "the next line named": lambda: mock.patch.object(reading, "verify", _late),
    "no end needed": lambda: mock.patch.object(reading, "verify", _content),
}
"""Faults to plant; the empty name is planrun as it is."""
CAUGHT_BY = {
    "hashes not compared": "one byte",
    "head not compared": "lines",
    "the next line named": "one byte",
    "no end needed": "cuts",
}
"""By which changes each is found."""


def is_caught(fault: str, data: bytes) -> bool:
    """Plant a fault and make some of the changes that are to show it."""
    with FAULTS[fault]():
        _, count, found = check(data, CAUGHT_BY[fault], range(len(data) // 2, len(data) // 2 + 600), 1)
    print(f"planted fault: {fault}: {(*found, 'NOT CAUGHT')[0]} ({len(found)} of {count})")
    return bool(found)


def main(words: Sequence[str]) -> int:
    """Run the proof; 1 when a change was not found, a wrong line named, or a fault was not caught."""
    parser = argparse.ArgumentParser(prog="python -m proofs tamper", description=__doc__)
    parser.add_argument("--lines", type=int, default=LINES, help="of the ledger")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    chosen = parser.parse_args(words)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tamper-") as folder:
        data = real_ledger(Path(folder).resolve(), chosen.lines)
    print(f"a ledger of {len(data.splitlines())} lines and {len(data)} bytes, seed {chosen.seed}")
    work = [
        (data, kind, range(start, min(start + AT_ONCE, len(data))), chosen.seed)
        for kind in KINDS
        for start in range(0, len(data), AT_ONCE)
    ]
    counts: Counter[str] = Counter()
    problems: list[str] = []
    with multiprocessing.get_context("spawn").Pool() as pool:
        for kind, count, found in pool.imap_unordered(_check, work):
            counts[kind] += count
            problems += found
    for kind, count in counts.items():
        print(f"{kind}: {count} changes, each verified without and with the head")
    print(f"{len(problems)} not found, or found in the wrong line", *problems[:20], sep="\n")
    missed = [fault for fault in CAUGHT_BY if not is_caught(fault, data)]
    print(f"{time.monotonic() - began:.0f} s")
    return int(bool(problems or missed))
