"""Golden data files of `tests/frozen`: one JSON file for each subject, with one line for each entry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest

HERE = Path(__file__).parent


def hold(name: str, found: Mapping[str, Any], config: pytest.Config) -> None:
    """Compare entries with the data file NAME; with `--update-goldens`, write the file first."""
    path = HERE / name
    lines = [f"{json.dumps(key)}: {json.dumps(found[key], sort_keys=True)}" for key in sorted(found)]
    if config.getoption("update_goldens"):
        path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    held = json.loads(path.read_text("utf-8"))
    now = json.loads(json.dumps(found))
    gone = sorted(held.keys() - now.keys())
    new = sorted(now.keys() - held.keys())
    changed = {
        key: (held[key], now[key]) for key in sorted(held.keys() & now.keys()) if held[key] != now[key]
    }
    told = "\n".join(
        [
            f"tests/frozen/{name} is no longer true:",
            *(f"  gone: {key}" for key in gone),
            *(f"  new: {key}" for key in new),
            *(f"  changed: {key}\n    was {was}\n    is  {now}" for key, (was, now) in changed.items()),
        ]
    )
    assert not gone + new + [*changed], told
