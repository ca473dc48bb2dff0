"""What a person writes about what only so many may have at a time."""

from __future__ import annotations

from typing import Annotated

from planrun.source.schema.words import ID_PATTERN, Id, Ids, Keys, Positive

Locks = Id | Ids
Slots = Annotated[dict[str, Positive], Keys(ID_PATTERN)]
