"""The name of this machine in what several machines share."""

from __future__ import annotations

import os

VARIABLE = "PLANRUN_MACHINE"


def machine() -> str:
    """Return PLANRUN_MACHINE, which must be unique among the machines, else the host name."""
    return os.environ.get(VARIABLE) or os.uname().nodename
