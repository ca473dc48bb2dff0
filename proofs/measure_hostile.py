"""Read each hostile file in a process of its own and print, as JSON, the most memory that took in MiB by its name.

Run by a test, and not inside pytest: a process made by fork counts what its parent holds.
"""

from __future__ import annotations

import json
import os
import sys

from planrun.plan import load
from planrun.plan.printing import render_text
from proofs.hostile import HOSTILE

_UNIT = 1024 if sys.platform == "linux" else 1024 * 1024  # of ru_maxrss; macOS counts bytes


def main() -> None:
    """Measure all of them, or those named on the command line."""
    most = {}
    for name in sys.argv[1:] or HOSTILE:
        child = os.fork()
        if child == 0:
            data = HOSTILE[name].data
            problems = load.check_bytes(data, name).problems
            os._exit(0 if problems and render_text(problems, {name: data}) else 1)
        _, status, usage = os.wait4(child, 0)
        most[name] = usage.ru_maxrss / _UNIT if status == 0 else None
    print(json.dumps(most))


if __name__ == "__main__":
    main()
