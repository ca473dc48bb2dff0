"""`python -m planrun`: the command line without the installed script."""

from __future__ import annotations

from planrun.cli import run

run()
