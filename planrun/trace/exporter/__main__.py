"""Where the process begins: `python …/planrun/trace/exporter/__main__.py`; see planrun/trace/beside.py.

It is started by its path, so that it is the planrun that runs, from wherever that was started.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    _home = os.path.dirname(os.path.abspath(__file__))
    for _ in ("exporter", "trace", "planrun"):
        _home = os.path.dirname(_home)
    sys.path.insert(0, _home)
    from planrun.trace.exporter.work import main

    sys.path.remove(_home)
    if _home not in sys.path:
        sys.path.append(_home)
    main()
