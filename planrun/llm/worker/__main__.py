"""Where the process begins: `python -I …/planrun/llm/worker/__main__.py`, on two pipes; see planrun/llm/process.py.

It is started by its path, since under -I nothing else says where the planrun is that asks. Libraries come from where
Python has them installed, and only in the last place from the folder that planrun itself lies in.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    _home = os.path.dirname(os.path.abspath(__file__))
    for _ in ("worker", "llm", "planrun"):
        _home = os.path.dirname(_home)
    sys.path.insert(0, _home)
    from planrun.llm.worker.serve import serve

    sys.path.remove(_home)
    if _home not in sys.path:
        sys.path.append(_home)
    serve()
