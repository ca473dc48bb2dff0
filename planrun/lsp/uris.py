"""Paths and the URIs that editors name files by."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit


def path_of(uri: str) -> str:
    """Return the path of a `file:` URI; of another one, a name in the current folder."""
    parts = urlsplit(uri)
    if parts.scheme == "file":
        return os.path.normpath(unquote(parts.path))
    return os.path.abspath(os.path.basename(unquote(parts.path)) or "plan.yml")


def uri_of(path: str) -> str:
    """Return the `file:` URI of a path."""
    return Path(path).as_uri()
