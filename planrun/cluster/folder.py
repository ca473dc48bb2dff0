"""The folder in a workspace by which planrun and workers know each other, and what an earlier planrun left in it."""

from __future__ import annotations

import os
import shutil
import time

from planrun import cluster
from planrun.folders import make_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

NAME = "cluster"  # in the folder of planrun's records
_LOOK = 0.05  # seconds between two looks


def make(home: str, session: str) -> tuple[str, str]:
    """Make the folder of one session; returns its path and the text of its marker. Raises OSError."""
    folder = os.path.join(home, NAME, session)
    make_private(folder)
    marker = os.urandom(16).hex()
    with open(os.path.join(folder, "marker"), "w", encoding="ascii") as file:
        file.write(marker)
    return folder, marker


def remove(folder: str) -> None:
    """Remove the folder of a session when no runner of it is left; else it stays for the next planrun."""
    if not _runners(folder):
        shutil.rmtree(folder, ignore_errors=True)
        try:
            os.rmdir(os.path.dirname(folder))
        except OSError:  # it has another session's, or is gone
            return


def clear(home: str, is_woken: Callable[[], bool]) -> None:
    """Wait until no step of an earlier planrun can run on a worker, and remove what it left.

    A runner ends its steps and removes its file when its planrun is gone. One that says nothing any more had no lease
    for longer than LEASE seconds. `is_woken`: whether to give up waiting.
    """
    above = os.path.join(home, NAME)
    limit = time.monotonic() + cluster.LEASE + cluster.SETTLING
    folders = [os.path.join(above, name) for name in _names(above)]
    while any(_runners(folder) for folder in folders) and time.monotonic() < limit and not is_woken():
        time.sleep(_LOOK)
    for folder in folders:
        listings = [name for name in _names(folder) if name.startswith("placed-")]
        if listings:
            from planrun.executors.scriptcopies import clear as clear_copies  # few runs have scripts

            for name in listings:
                clear_copies(os.path.join(folder, name))
        shutil.rmtree(folder, ignore_errors=True)
    try:
        os.rmdir(above)
    except OSError:
        return


def _runners(folder: str) -> list[str]:
    return [name for name in _names(folder) if name.startswith("runner-")]


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
