"""An object in a listing of a shared place."""

from __future__ import annotations

from planrun.model.record import Record


class Found(Record):
    """An object in a listing; `modified`: seconds since 1970, by the clock of the place; 0.0 when it reports none."""

    bytes: int
    modified: float
