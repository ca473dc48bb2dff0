"""Entry point of the process of a call: `python -I -S …/planrun/tools/__main__.py NAME JSON`.

See planrun/actions/tool.py.

It is started by its path, since with -I Python could not find the calling planrun otherwise.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    _home = os.path.dirname(os.path.abspath(__file__))
    for _ in ("tools", "planrun"):
        _home = os.path.dirname(_home)
    sys.path.append(_home)  # after the standard library
    from planrun.tools.calling import main

    sys.exit(main(sys.argv[1:]))
