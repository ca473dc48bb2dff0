"""The records of searches in the folder of a run: one file each, by the number of the replan."""

from __future__ import annotations

import json
import os

from planrun.opening import read_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

FILE = "search-{}.json"
_MOST_BYTES = 64 << 20


def write_search(rundir: str, number: int, record: Mapping[str, Any]) -> None:
    """Write the record of a search beside the ledger; it explains, so a full disk loses nothing else."""
    try:
        fd = os.open(_path(rundir, number), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with open(fd, "w", encoding="utf-8") as file:
            json.dump(record, file, ensure_ascii=False)
    except OSError:
        return


def read_searches(rundir: str, most: int) -> Iterator[dict[str, Any]]:
    """Yield the records of searches up to a number of replans, in their order; damaged ones are left out."""
    for number in range(1, most + 1):
        try:
            data = json.loads(read_record(_path(rundir, number), _MOST_BYTES))
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(data, dict):
            yield data


def _path(rundir: str, number: int) -> str:
    return os.path.join(rundir, FILE.format(number))
