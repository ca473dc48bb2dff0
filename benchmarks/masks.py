"""How fast masks let output through: `python -m benchmarks.masks`. One process, pieces of 64 KiB, best of five.

P7 promises 150 MB/s with twenty secrets, reading and writing included; the masks must leave time for both.
"""

from __future__ import annotations

import base64
import random
import string
import sys
import time

from planrun.secrets.masker import Masker

PIECE = 65536
SIZE = 16 * 2**20
ROUNDS = 5
_CHANCE = random.Random(3)
_LETTERS = string.ascii_letters + string.digits
_LINE = "Collecting package-{0}=={1}.0 from https://files.example/p/{0} (9 kB) \x1b[32mok\x1b[0m in /usr/lib/python3\n"


def token(length: int) -> str:
    """Return letters and digits."""
    return "".join(_CHANCE.choice(_LETTERS) for _ in range(length))


def key(size: int) -> str:
    """Return what looks like a private key of so many bytes."""
    body = base64.encodebytes(_CHANCE.randbytes(size)).decode()
    return f"-----BEGIN PRIVATE KEY-----\n{body}-----END PRIVATE KEY-----"


def secrets() -> dict[str, list[str]]:
    """Return sets of twenty secrets: the shorter the shortest, the more places of a text are searched."""
    tokens = [token(_CHANCE.choice((20, 32, 40, 64))) for _ in range(20)]
    urls = [f"postgres://app:{token(24)}@db.internal:5432/app", f"https://hooks.example.com/{token(30)}"]
    return {
        "tokens of 20 and more": tokens,
        "and 3 keys, 2 URLs": [*tokens[:15], key(1200), key(600), key(121), *urls],
        "tokens of 12 and more": [*tokens[:10], *(token(12) for _ in range(10))],
        "with 3 of 8": [*tokens[:17], *(token(8) for _ in range(3))],
        "all of 8": [token(8) for _ in range(20)],
    }


def logs(secret: str) -> dict[str, bytes]:
    """Return texts of one size: lines, the same with a secret in each, base64, dumps."""
    lines = "".join(_LINE.format(_CHANCE.randrange(10**6), _CHANCE.randrange(100)) for _ in range(20_000))
    blob = _CHANCE.randbytes(2**20)
    dump = "".join(f"{at:08x}: {blob[at : at + 16].hex(' ', -2)}\n" for at in range(0, len(blob), 16))
    texts = {
        "lines": lines.encode(),
        "base64": base64.encodebytes(blob),
        "dump": dump.encode(),
        "a secret in each line": lines.replace(" in ", f" {secret} in ").encode(),
    }
    return {name: (text * (SIZE // len(text) + 1))[:SIZE] for name, text in texts.items()}


def speed(masks: Masker, log: bytes) -> float:
    """Return MB/s of the fastest round."""
    best = float("inf")
    for _ in range(ROUNDS):
        stream = masks.stream()
        began = time.perf_counter()
        for at in range(0, len(log), PIECE):
            stream.feed(log[at : at + PIECE])
        stream.finish()
        best = min(best, time.perf_counter() - began)
    return len(log) / best / 1e6


def main() -> int:
    """Print a table; the first column is the time in ms to make the masks."""
    for number, (name, values) in enumerate(secrets().items()):
        texts = logs(values[0])
        if not number:
            print(f"{'MB/s':24}{'made in':>10}" + "".join(f"{text:>24}" for text in texts))
        began = time.perf_counter()
        masks = Masker({f"SECRET_{number}": value for number, value in enumerate(values)})
        made = (time.perf_counter() - began) * 1e3
        cells = [speed(masks, text) for text in texts.values()]
        print(f"{name:24}{made:>7.0f} ms" + "".join(f"{cell:>24.0f}" for cell in cells), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
