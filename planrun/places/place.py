"""What a shared place offers, and how one is opened: a folder here, any other URL through a process that knows fsspec.

Keys are names as `runs/20260131/record.json`: relative, with `/`, without `..`. Every method but `close` raises
RemoteError when the place does not answer within its limit.
"""

from __future__ import annotations

import os

from planrun.errors import InvalidInput
from planrun.places.addresses import is_url, masked
from planrun.places.folder import Folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Protocol

    from planrun.places.keys import Found

    class Place(Protocol):
        """Objects by key; `url`, for messages, has no credentials."""

        url: str

        @property
        def atomic(self) -> bool:
            """Whether of several concurrent `create` calls of one key one alone succeeds."""

        def require(self) -> None:
            """Raise InvalidInput when a package is missing; a place that does not answer is no error here."""

        def read(self, key: str, most: int = ...) -> bytes | None:
            """Return the bytes of an object; None when there is none. Raises RemoteError above `most` bytes."""

        def write(self, key: str, data: bytes) -> None:
            """Create or replace an object; readers see the old bytes or the new ones."""

        def create(self, key: str, data: bytes) -> bool:
            """Create an object if there is none; return whether it was created."""

        def fetch(self, key: str, target: int, most: int) -> bool:
            """Write the bytes of an object into an open file; False when there is none or it has more than `most`."""

        def send(self, key: str, source: int) -> None:
            """Create or replace an object by the bytes of an open file, from its beginning."""

        def list(self, prefix: str) -> Mapping[str, Found]:
            """Return the objects whose keys begin with `prefix` and a slash, at any depth; "" means all."""

        def find(self, key: str) -> Found | None:
            """Return size and age of an object; None when there is none."""

        def remove(self, key: str) -> None:
            """Remove an object; one that does not exist is no error."""

        def now(self) -> float:
            """Return the time by the clock of the place, comparable with `Found.modified`."""

        def close(self) -> None:
            """Release what the place holds; may be called again."""


def open_place(url: str, *, limit: float = 30.0, stopped: Callable[[], bool] | None = None) -> Place:
    """Return the place at a path or URL, without connecting to it; raises InvalidInput for a wrong one.

    `limit`: seconds that one call may take, and more for the bytes of large objects. `stopped`: asked several times
    a second while a call waits; when it returns True the call ends with RemoteError.
    """
    scheme, _, rest = url.partition("://")
    if not is_url(url) or scheme == "file":
        path = rest if is_url(url) else url
        if not path:
            raise InvalidInput(
                "the address of a shared place is empty: use a folder or a URL such as s3://BUCKET/NAME"
            )
        return Folder(os.path.abspath(path))
    if not rest.strip("/"):
        raise InvalidInput(f"{masked(url)} names no bucket or host: use a URL such as {scheme}://NAME/FOLDER")
    from planrun.places.remote import Remote  # few use a URL

    return Remote(url, limit, stopped)
