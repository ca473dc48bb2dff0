"""Other users to run as, where the tests run as root."""

from __future__ import annotations

import subprocess
import sys
from functools import cache

NOBODY = 65534
"""An ordinary user whom every system has, as a number."""
IMPORTS = "import sys; sys.path[:] = {path!r}; import planrun.cli"


@cache
def admitted(user: int) -> bool:
    """Whether this user may read planrun and run this Python: both may lie in a folder that is its owner's alone."""
    words = [sys.executable, "-c", IMPORTS.format(path=sys.path)]
    try:
        done = subprocess.run(
            words, cwd="/", env={}, user=user, group=user, extra_groups=[], check=False, capture_output=True
        )
    except OSError:
        return False
    return done.returncode == 0
