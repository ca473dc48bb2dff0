"""Where the process of a call begins: `python -I -S …/planrun/tools/__main__.py NAME JSON`.

See planrun/actions/tool.py.

It is started by its path, since under -I nothing else says where the planrun is that asks.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    _home = os.path.dirname(os.path.abspath(__file__))
    for _ in ("tools", "planrun"):
        _home = os.path.dirname(_home)
    sys.path.append(_home)  # the standard library comes first
    from planrun.tools.calling import main

    sys.exit(main(sys.argv[1:]))
