"""Nothing of a secret gets through the masks: forty secrets, printed in every way, cut at every place.

A leak is anything of what a tool printed that is left when the masks are taken out, but quotes, addresses of
dumps, and characters of base64 that neighbours have a part in. Each planted fault must make a check fail.
"""

from __future__ import annotations

import argparse
import base64
import itertools
import random
import re
import subprocess
import sys
import sysconfig
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

from planrun.secrets import encodings, masker
from planrun.secrets.masker import MARK, Masker, MultiPatternSearch
from proofs.printing import PRINTERS, Printer
from proofs.treasure import SECRETS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

SLOW = ("jq", "node")
"""Tools that take long to start."""
BEFORE, AFTER = b"[09:12:44] result: ", b" <- done\n"
LOG = 10_000_000
"""Bytes of ordinary log."""


def everything() -> Masker:
    """Return what masks all the secrets."""
    return Masker({f"SECRET_{number}": value for number, value in enumerate(SECRETS)})


def printed(printers: Sequence[Printer] = PRINTERS, every: int = 1) -> Iterator[tuple[str, Printer, bytes]]:
    """Yield each secret as each printer prints it, with the name of the case; slow tools get each so manyth."""
    for printer in printers:
        if not printer.missing:
            step = every if printer.tool in SLOW else 1
            for number, secret in list(enumerate(SECRETS))[::step]:
                yield f"secret {number}, {printer.name}", printer, printer.write(secret)


def leaks(masks: Masker, cases: Sequence[tuple[str, Printer, bytes]]) -> list[str]:
    """Return in which cases something else than what a printer may leave got through."""
    found = []
    for name, printer, text in cases:
        left = masks.mask(text).replace(MARK, b"")
        if not re.fullmatch(printer.left, left):
            found.append(f"{name}: {left[:80]!r} is left of {text[:80]!r}")
    return found


def splits(masks: Masker, cases: Sequence[tuple[str, Printer, bytes]], most: int) -> tuple[int, list[str]]:
    """Feed each case in two pieces, cut at each place (at most so many places), and byte by byte.

    Return the number of streams, and which of them did not say what the whole text comes to.
    """
    found = []
    count = 0
    for name, _, secret in cases:
        text = BEFORE + secret + AFTER
        whole = masks.mask(text)
        step = max(1, len(text) // most)
        pieces = [[text[:at], text[at:]] for at in range(0, len(text) + 1, step)]
        pieces.append([text[at : at + 1] for at in range(len(text))])
        for some in pieces:
            stream = masks.stream()
            if b"".join([*map(stream.feed, some), stream.finish()]) != whole:
                found.append(f"{name}: {len(some)} pieces, the first of {len(some[0])} bytes")
        count += len(pieces)
    return count, found


def ordinary_log() -> bytes:
    """Return ten megabytes that hold no secret: sources, listings, installers, compilers, tests, dumps, blobs."""
    chance = random.Random(7)
    library = Path(sysconfig.get_path("stdlib"))
    sources = b"".join(path.read_bytes() for path in sorted(library.glob("*.py")))
    blob = chance.randbytes(250_000) + Path(sys.executable).read_bytes()[:250_000]
    listing = "".join(
        f"-rw-r--r-- 1 root root {path.stat().st_size:>8} {path}\n" for path in library.glob("*/*")
    )
    log = bytearray(sources[:3_000_000])
    log += base64.encodebytes(blob) + base64.b64encode(blob[::-1]) + blob.hex().encode()
    log += subprocess.run([sys.executable, "-c", _DUMP], input=blob, capture_output=True, check=True).stdout
    log += listing.encode()
    said = _lines(chance)
    while len(log) < LOG:
        log += next(said).encode()
    return bytes(log)


_DUMP = """\
import sys
data = sys.stdin.buffer.read()
for at in range(0, len(data), 16):
    row = data[at : at + 16]
    print(f"{at:08x}: {row.hex(' ', -2)}  {''.join(chr(b) if 32 <= b < 127 else '.' for b in row)}")
"""


def _lines(chance: random.Random) -> Iterator[str]:
    """Yield what tools say all day."""
    for number in itertools.count():
        digest = f"{chance.getrandbits(256):064x}"
        yield f"Collecting package-{number}=={chance.randrange(9)}.{number}.0 --hash=sha256:{digest}\r\n"
        yield f"  Downloading package_{number}-py3-none-any.whl ({chance.random() * 99:.1f} kB)\r"
        yield f"tests/test_{number}.py::test_case[{number}-True] PASSED     [ {number % 100}%]\n"
        yield f"npm warn deprecated left-pad@1.{number}.0: use String.prototype.padStart()\n"
        yield f"src/main{number}.c:{number}:{number % 80}: warning: unused variable 'x{number}' [-Wunused-variable]\n"
        yield f"   {digest[:7]}..{digest[7:14]}  feature/{number} -> origin/feature/{number}\n"
        yield f"\x1b[32m✓\x1b[0m built in {number} ms  ████████░░  {'=' * (number % 70)}>\n"
        yield f'{{"time":"2026-01-02T03:04:05Z","level":"info","msg":"request","id":"{digest[:32]}"}}\n'


def false_masks(masks: Masker, log: bytes) -> int:
    """Return how many masks are in what holds no secret."""
    stream = masks.stream()
    out = b"".join(stream.feed(log[at : at + 65536]) for at in range(0, len(log), 65536)) + stream.finish()
    return out.count(MARK) - log.count(MARK) if out != log else 0


class _Forgetful(masker.MaskedStream):
    """Looks at each piece alone."""

    __slots__ = ()

    def feed(self, data: bytes) -> bytes:
        return super().feed(data) + super().finish()


def _near(_: Masker, text: encodings.Unbroken) -> int:
    """Hold back a fixed number of bytes, as if no secret were longer."""
    return max(0, len(text.flat) - 16)


def _once(data: bytes) -> Iterator[bytes]:
    """Forget that base64 depends on what stands before."""
    yield base64.b64encode(data)


_spans = MultiPatternSearch.spans


def _three_of_four(search: MultiPatternSearch, text: bytes) -> list[tuple[int, int]]:
    """Forget one of the ways in which a string can lie across the words of a text."""
    return [span for span in _spans(search, text) if span[0] % 4]


def _greedy(value: str) -> frozenset[bytes]:
    """Take two letters of a secret for all of it."""
    return frozenset({value.encode()[:2]})


FAULTS: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "": nullcontext,
    "each piece alone": lambda: mock.patch.object(masker, "MaskedStream", _Forgetful),
    "a fixed tail": lambda: mock.patch.object(Masker, "undecided", _near),
    "base64 in one place": lambda: mock.patch.multiple(encodings, inner_base64s=_once, base64s=_once),
    "one alignment missing": lambda: mock.patch.object(MultiPatternSearch, "spans", _three_of_four),
    "broken lines not mended": lambda: mock.patch.object(encodings, "flatten", bytes),
    "two letters are enough": lambda: mock.patch.multiple(masker, SHORTEST=2, variants=_greedy),
}
"""Faults to plant; the empty name is planrun as it is."""
CAUGHT_BY = {
    "each piece alone": "cuts",
    "a fixed tail": "cuts",
    "base64 in one place": "leaks",
    "one alignment missing": "leaks",
    "broken lines not mended": "leaks",
    "two letters are enough": "false_masks",
}
"""Which check must fail with each."""
_TELLING = ("as it is", "base64", "base64 behind 1")


@dataclass(frozen=True)
class Findings:
    """What the checks found: nothing, if all is well."""

    leaks: list[str]
    cuts: list[str]
    false_masks: int

    def __bool__(self) -> bool:
        return bool(self.leaks or self.cuts or self.false_masks)


def prove(printers: Sequence[Printer], *, most: int, log: bytes, every: int = 1, fault: str = "") -> Findings:
    """Make all checks, cutting `every` so manyth case at `most` places, and print how much was tried.

    Slow tools print each so manyth secret, too.
    """
    with FAULTS[fault]():
        masks = everything()
        cases = list(printed(printers, every))
        count, cuts = splits(masks, cases[::every], most)
        found = Findings(leaks(masks, cases), cuts, false_masks(masks, log))
    ways = len({printer.name for _, printer, _ in cases})
    print(f"{len(SECRETS)} secrets printed in {ways} ways, {len(cases)} texts: {len(found.leaks)} leaks")
    print(f"{count} streams cut in pieces: {len(cuts)} differ from the whole")
    print(f"{len(log)} bytes of ordinary log: {found.false_masks} false masks")
    return found


def is_caught(fault: str, log: bytes) -> bool:
    """Plant a fault where few cases show it; return whether the check that is made for it failed."""
    print(f"planted fault: {fault}")
    telling = [printer for printer in PRINTERS if printer.name in _TELLING]
    return bool(getattr(prove(telling, most=20, log=log[-1_000_000:], fault=fault), CAUGHT_BY[fault]))


def main(words: Sequence[str]) -> int:
    """Run the proof; 1 when there is a leak or a false mask, or a fault was not caught."""
    parser = argparse.ArgumentParser(prog="python -m proofs masks", description=__doc__)
    parser.add_argument(
        "--most", type=int, default=sys.maxsize, help="cut each text at so many places at most"
    )
    parser.add_argument("--fault", choices=list(CAUGHT_BY), default="", help="plant one")
    chosen = parser.parse_args(words)
    for printer in PRINTERS:
        if printer.missing:
            print(f"left out, {printer.tool} is not installed: {printer.name}")
    log = ordinary_log()
    found = prove(PRINTERS, most=chosen.most, log=log, fault=chosen.fault)
    print(*found.leaks[:20], *found.cuts[:20], sep="\n")
    missed = [] if chosen.fault else [fault for fault in CAUGHT_BY if not is_caught(fault, log)]
    for fault in missed:
        print(f"NOT CAUGHT: {fault}")
    return int(bool(found or missed))
