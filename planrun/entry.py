"""Where the processes begin that planrun starts beside itself: `python -I …/planrun/entry.py MODULE WORD…`.

It is started by its path, since under -I nothing else says which planrun started it. Libraries come from where Python
has them installed, and only in the last place from the folder that this planrun lies in.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

PATH = os.path.abspath(__file__)


def command(module: str, *words: str, flags: Sequence[str] = ("-I",)) -> tuple[str, ...]:
    """Return the argv of a process that calls `main(words)` of a module, and ends with the code that it returns."""
    # Who keeps Python from writing bytecode means all processes.
    quiet = ("-B",) if sys.dont_write_bytecode else ()
    return (sys.executable, *flags, *quiet, PATH, module, *words)


if __name__ == "__main__":
    _home = os.path.dirname(os.path.dirname(PATH))
    sys.path.insert(0, _home)
    import planrun  # noqa: F401 - from here on its modules come from its folder, whatever the path says

    sys.path.remove(_home)
    if _home not in sys.path:
        sys.path.append(_home)
    _module, *_words = sys.argv[1:]
    sys.exit(__import__(_module, fromlist=["main"]).main(_words))
