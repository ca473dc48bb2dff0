"""The keys that a place accepts, each naming one object below its address on every backend, and what it finds."""

from __future__ import annotations

from planrun.errors import InternalError
from planrun.model.record import Record


class Found(Record):
    """An object in a listing; `modified`: seconds since 1970, by the clock of the place; 0.0 when it reports none."""

    bytes: int
    modified: float


_MOST = 900  # bytes; S3 allows 1,024 with the folder


def check_key(key: str) -> None:
    """Raise InternalError for a key that could name something else."""
    parts = key.split("/")
    if not {"", ".", ".."}.isdisjoint(parts) or not key.isprintable() or len(key.encode()) > _MOST:
        raise InternalError(f"not a key of a shared place: {key[:200]!r}")
    if any(part.startswith(".new-") for part in parts):  # temporary files
        raise InternalError(f"not a key of a shared place: {key[:200]!r}")
