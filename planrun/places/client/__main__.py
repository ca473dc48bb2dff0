"""Where the process begins: `python -I …/planrun/places/client/__main__.py`, with a socket as its input.

It is started by its path, since under -I nothing else says which planrun started it.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    _home = os.path.dirname(os.path.abspath(__file__))
    for _ in ("client", "places", "planrun"):
        _home = os.path.dirname(_home)
    sys.path.insert(0, _home)
    from planrun.places.client.serve import main

    sys.path.remove(_home)
    if _home not in sys.path:
        sys.path.append(_home)
    sys.exit(main())
