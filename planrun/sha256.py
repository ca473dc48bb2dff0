"""SHA-256 without `hashlib`, which loads OpenSSL and costs 3 ms at every start."""

from __future__ import annotations

import sys

try:
    if sys.version_info >= (3, 12):
        from _sha2 import sha256
    else:  # looking for the other one first would search every folder of sys.path
        from _sha256 import sha256
except ImportError:  # not CPython
    from hashlib import sha256

__all__ = ["sha256", "span_id"]


def span_id(*parts: str) -> str:
    """Return the id of the span of something in a run, so that steps, and who reads the ledger later, agree on it."""
    return str(sha256("/".join(parts).encode()).hexdigest()[:16])
