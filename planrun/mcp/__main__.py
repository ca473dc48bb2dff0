"""Where these processes begin: `python -I …/planrun/mcp/__main__.py serve|call|list …`, started by path.

Under -I nothing says where the calling planrun is: its folder is on the path while its own modules are imported.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    _home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    sys.path.insert(0, _home)
    _what, *_words = sys.argv[1:]
    if _what == "call":
        from planrun.mcp import call as _program
    else:
        from planrun.mcp import serve as _program  # type: ignore[no-redef] # the same function `main`
    sys.path.remove(_home)
    if _home not in sys.path:
        sys.path.append(_home)
    sys.exit(_program.main(_what, _words))
