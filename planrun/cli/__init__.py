"""The command line."""

from __future__ import annotations

import sys


def main() -> int:
    """Answer the version and nothing else."""
    from planrun import __version__

    sys.stdout.write(f"planrun {__version__}\n")
    return 0
