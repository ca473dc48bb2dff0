"""Where the process begins: `python -I …/planrun/cluster/client/__main__.py`, on two pipes from planrun.

As `planrun.llm.worker` it is started by its path, and planrun is the one that it lies in.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    _home = os.path.dirname(os.path.abspath(__file__))
    for _ in ("client", "cluster", "planrun"):
        _home = os.path.dirname(_home)
    sys.path.insert(0, _home)
    from planrun.cluster.client.serve import main

    sys.path.remove(_home)
    if _home not in sys.path:
        sys.path.append(_home)
    sys.exit(main())
