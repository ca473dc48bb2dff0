"""Which files have the value of a secret: they go over the connection to a worker, and into no store."""

from __future__ import annotations

import hashlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.ports import Masks

_CHUNK = 1 << 20


def has_secret(masks: Masks, path: str) -> bool:
    """Return whether anything in a file would be masked; raises OSError."""
    stream, masked, plain = masks.stream(), hashlib.sha256(), hashlib.sha256()
    with open(path, "rb", buffering=0) as file:
        while data := file.read(_CHUNK):
            plain.update(data)
            masked.update(stream.feed(data))
    masked.update(stream.finish())
    return masked.digest() != plain.digest()
