"""The form of the data files of `tests/frozen`: JSON, with one line for each entry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

HERE = Path(__file__).parent


def table(found: Mapping[str, Any]) -> str:
    """Return entries as a data file holds them, sorted."""
    lines = [f"{json.dumps(key)}: {json.dumps(found[key], sort_keys=True)}" for key in sorted(found)]
    return "{\n" + ",\n".join(lines) + "\n}\n"
