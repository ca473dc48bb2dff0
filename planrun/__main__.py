"""`python -m planrun`: the command line without the installed script."""

from __future__ import annotations

import sys

from planrun.cli import main

sys.exit(main())
