"""Signatures of entries in a shared store: who does not have the key can read results, and add none that are used.

The signature covers the whole entry: key, outputs, and the hash of every file.
"""

from __future__ import annotations

import hmac
import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.store.entries import Entry

VARIABLE = "PLANRUN_CACHE_SIGNATURE_KEY"
LEAST = 16
"""Bytes of a key: a shorter one could be guessed."""


def signature_of(entry: Entry, secret: bytes) -> str:
    """Return the HMAC-SHA-256 of an entry."""
    fields = {**vars(entry), "files": [vars(each) for each in entry.files]}
    fields.pop("signature", None)
    data = json.dumps(fields, sort_keys=True).encode()
    return hmac.new(secret, b"planrun result 1\n" + data, "sha256").hexdigest()


def is_signed(entry: Entry, secret: bytes) -> bool:
    """Return whether the signature of an entry was made with this key."""
    return hmac.compare_digest(entry.signature.encode(), signature_of(entry, secret).encode())
