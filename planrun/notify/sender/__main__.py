"""Where the process begins: `python -I …/planrun/notify/sender/__main__.py`; see planrun/notify/sending.py.

It is started by its path, since under -I nothing else says where the planrun is that notifies.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    _home = os.path.dirname(os.path.abspath(__file__))
    for _ in ("sender", "notify", "planrun"):
        _home = os.path.dirname(_home)
    sys.path.insert(0, _home)
    from planrun.notify.sender.deliver import main

    sys.path.remove(_home)
    if _home not in sys.path:
        sys.path.append(_home)
    main()
