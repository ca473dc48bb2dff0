"""The objects at a URL, by fsspec: what each backend offers for whole writes, and for creating only what is absent.

S3 and GCS replace whole objects, and create by a conditional put. SFTP writes under a temporary name: OpenSSH renames
by a hard link, which fails where there is a file. Others create after a look, which two processes may do at once.
"""

from __future__ import annotations

import datetime as dt
import importlib
import os
import uuid

from fsspec.core import url_to_fs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_CONDITIONAL = ("s3", "s3a", "gs", "gcs", "abfs", "az")
_SSH = ("sftp", "ssh")
_PACKAGES = {
    "s3": "s3fs",
    "s3a": "s3fs",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "abfs": "adlfs",
    "az": "adlfs",
    "sftp": "paramiko",
    "ssh": "paramiko",
    "http": "aiohttp",
    "https": "aiohttp",
}
_CHUNK = 1 << 20
_TEMPORARY = ".new-"


class Unusable(Exception):
    """A URL that nothing installed can open."""


class Objects:
    """The objects below one URL."""

    def __init__(self, url: str, limit: float) -> None:
        scheme = url.partition("://")[0]
        self._is_ssh = scheme in _SSH
        self._is_conditional = scheme in _CONDITIONAL
        self.atomic = self._is_ssh or self._is_conditional
        try:
            files, root = url_to_fs(url, **_options(scheme, limit))
        except ImportError as error:
            package = _PACKAGES.get(scheme, "")
            hint = f"pip install {package}" if package else str(error)
            raise Unusable(f"{scheme}:// needs one more package: {hint}") from None
        except ValueError as error:
            if "Protocol not known" in str(error):
                raise Unusable(
                    f"fsspec knows no {scheme}://; use a folder, s3://, gs:// or sftp://"
                ) from None
            raise
        self._files: Any = files
        self._root = root.rstrip("/")
        self._made: set[str] = set()

    def read(self, key: str, most: int) -> bytes | None:
        """Return the bytes of an object, None for none; raises ValueError for more than `most`."""
        path = self._path(key)
        try:
            data: bytes = (
                self._files.cat_file(path, end=most + 1) if self._is_ssh else self._files.cat_file(path)
            )
        except FileNotFoundError:
            return None
        if len(data) > most:
            raise ValueError(f"{key} has more than {most:,} bytes")
        return data

    def write(self, key: str, data: bytes) -> None:
        """Create or replace an object."""
        if not self._is_ssh:
            self._prepare(key)
            self._files.pipe_file(self._path(key), data)
            return
        draft = self._drafted(key, data)
        self._files.ftp.posix_rename(draft, self._path(key))

    def create(self, key: str, data: bytes) -> bool:
        """Create an object if there is none; return whether it was created."""
        if self._is_ssh:
            draft = self._drafted(key, data)
            try:
                self._files.ftp.rename(draft, self._path(key))
            except OSError:
                self._files.ftp.remove(draft)
                if self._files.exists(self._path(key)):
                    return False
                raise
            return True
        self._prepare(key)
        try:
            self._files.pipe_file(self._path(key), data, mode="create")
        except FileExistsError:
            return False
        except Exception as error:
            # Whether a conditional put was refused since the object exists: 412, or 409 for two at once
            text = f"{type(error).__name__} {error} {error.__cause__}"
            is_refused_condition = any(
                word in text for word in ("PreconditionFailed", "pre-conditions", "412", "conditionNotMet")
            )
            if is_refused_condition:
                return False
            raise
        return True

    def fetch(self, key: str, target: int, most: int) -> bool:
        """Write an object into an open file; False when there is none or it has more than `most` bytes."""
        path = self._path(key)
        try:
            if self._files.size(path) > most:
                return False
            if self._is_ssh:
                with _opened(target, "wb") as file:
                    self._files.ftp.getfo(path, file)  # asks for many blocks at once
                return True
            with self._files.open(path, "rb", block_size=_CHUNK * 5) as source, _opened(target, "wb") as file:
                while block := source.read(_CHUNK):
                    most -= len(block)
                    if most < 0:
                        return False
                    file.write(block)
        except FileNotFoundError:
            return False
        return True

    def send(self, key: str, source: int) -> None:
        """Create or replace an object by the bytes of an open file."""
        path = self._path(key)
        self._prepare(key)
        with _opened(source, "rb") as file:
            file.seek(0)
            if self._is_ssh:
                draft = self._draft(key)
                self._files.ftp.putfo(file, draft)
                self._files.ftp.posix_rename(draft, path)
                return
            with self._files.open(path, "wb") as target:
                while block := file.read(_CHUNK):
                    target.write(block)

    def list(self, prefix: str) -> list[tuple[str, int, float]]:
        """Return key, size and time of all objects below a prefix."""
        base = f"{self._root}/{prefix}" if prefix else self._root
        self._files.invalidate_cache()
        try:
            found = self._files.find(base, detail=True)
        except FileNotFoundError:
            return []
        start = len(self._root) + 1
        rows = []
        for path, info in sorted(found.items()):
            key = path[start:]
            if path.startswith(f"{base}/") and not key.rpartition("/")[2].startswith(_TEMPORARY):
                rows.append((key, int(info["size"] or 0), _time(info)))
        return rows

    def find(self, key: str) -> tuple[int, float] | None:
        """Return size and time of an object; None when there is none."""
        try:
            info = self._files.info(self._path(key))
        except FileNotFoundError:
            return None
        return (int(info["size"] or 0), _time(info)) if info["type"] == "file" else None

    def remove(self, key: str) -> None:
        """Remove an object, if it exists."""
        try:
            self._files.rm_file(self._path(key))
        except FileNotFoundError:
            return

    def now(self) -> float:
        """Return the time that the backend gives to a new object."""
        key = f"clock/{uuid.uuid4().hex}"
        self.write(key, b"")
        try:
            self._files.invalidate_cache()
            return _time(self._files.info(self._path(key)))
        finally:
            self.remove(key)

    def _path(self, key: str) -> str:
        return f"{self._root}/{key}"

    def _prepare(self, key: str) -> None:
        """Make the folders of a key, where a backend has folders; a bucket is not created."""
        folder = self._path(key).rpartition("/")[0]
        if folder not in self._made:
            if not self._is_conditional:
                self._files.makedirs(folder, exist_ok=True)
            self._made.add(folder)

    def _draft(self, key: str) -> str:
        folder = self._path(key).rpartition("/")[0]
        return f"{folder}/{_TEMPORARY}{uuid.uuid4().hex}"

    def _drafted(self, key: str, data: bytes) -> str:
        self._prepare(key)
        draft = self._draft(key)
        self._files.pipe_file(draft, data)
        return draft


def _options(scheme: str, limit: float) -> dict[str, Any]:
    """Return options that bound how long a backend waits, and that keep it from caching listings."""
    common: dict[str, Any] = {"skip_instance_cache": True}
    if scheme in ("s3", "s3a"):
        times = {"connect_timeout": min(limit, 10), "read_timeout": limit, "retries": {"max_attempts": 2}}
        return {**common, "use_listings_cache": False, "config_kwargs": times}
    if scheme in _SSH:
        return {**common, "timeout": limit, "host_key_policy": _known_hosts()}
    return common


def _known_hosts() -> Any:
    """Return what accepts the hosts that ssh knows, and no others; raises ImportError."""
    paramiko: Any = importlib.import_module("paramiko")
    known = paramiko.HostKeys()
    for path in (os.path.expanduser("~/.ssh/known_hosts"), "/etc/ssh/ssh_known_hosts"):
        if os.path.exists(path):
            known.load(path)

    class Known(paramiko.MissingHostKeyPolicy):  # type: ignore[misc] # a library without types
        def missing_host_key(self, _client: object, hostname: str, key: object) -> None:
            """Raise SSHException for a host with another key, and for one without."""
            if not known.check(hostname, key):
                raise paramiko.SSHException(f"the key of {hostname} is not in known_hosts")

    return Known()


def _opened(fd: int, mode: str) -> Any:
    return open(fd, mode, closefd=False)


def _time(info: dict[str, Any]) -> float:
    for name in ("LastModified", "mtime", "updated", "last_modified", "created"):
        value = info.get(name)
        if isinstance(value, dt.datetime):
            return value.timestamp()
        if isinstance(value, int | float):
            return float(value)
        if isinstance(value, str):
            return dt.datetime.fromisoformat(value).timestamp()
    return 0.0
