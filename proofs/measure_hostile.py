"""Read each hostile file in a process of its own and print, as JSON, the most memory that took and what was wrong.

Run by a test, and not inside pytest: a process made by fork counts what its parent holds.
"""

from __future__ import annotations

import json
import os
import sys

from proofs.hostile import HOSTILE, wrong

_UNIT = 1024 if sys.platform == "linux" else 1024 * 1024  # of ru_maxrss; macOS counts bytes


def main() -> None:
    """Measure all of them, or those named on the command line: name, MiB, and the problems of each."""
    found = {}
    for name in sys.argv[1:] or HOSTILE:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(writing, json.dumps(wrong(name)).encode()[:60_000])  # a pipe holds more
            os._exit(0)
        os.close(writing)
        _, status, usage = os.wait4(child, 0)
        with os.fdopen(reading, encoding="utf-8") as said:
            found[name] = (
                usage.ru_maxrss / _UNIT,
                json.loads(said.read()) if status == 0 else [f"{name}: {status}"],
            )
    print(json.dumps(found))


if __name__ == "__main__":
    main()
