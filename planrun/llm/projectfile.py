"""The files with what models should know of a project: written and reviewed by people, told to models as data."""

from __future__ import annotations

import os
import stat

from planrun.errors import InvalidInput
from planrun.model.record import Record
from planrun.sha256 import sha256

DEFAULT = ("PLANRUN.md", "AGENTS.md", "CLAUDE.md")
"""The files that are read where the settings name none, those that there are."""
MAX_BYTES = 32 * 1024
BLOCK = "project memory"


class ProjectFile(Record):
    """Its name, its text, of which the beginning is told, and the hash of what is told; several are one text."""

    name: str
    text: str
    sha256: str


def project_file(named: str, folder: str = "") -> ProjectFile | None:
    """Return the file that the settings name, or those of `DEFAULT` in one; None where there is none.

    Raises InvalidInput for one that is outside of the folder or no file, and for a named one that cannot be read.
    """
    found: dict[str, bytes] = {}
    for name in (named,) if named else DEFAULT:
        data = _read(name, os.path.realpath(folder or "."), is_named=bool(named))
        if data is not None and data not in found.values():  # some projects have one text under two names
            found[name] = data
    if not found:
        return None
    texts = [data.decode("utf-8", "replace") for data in found.values()]
    whole = texts[0] if len(texts) == 1 else "\n\n".join(map("# {}\n\n{}".format, found, texts))
    text = whole.encode()[:MAX_BYTES].decode("utf-8", "ignore") if len(texts) > 1 else whole
    told = next(iter(found.values())) if len(texts) == 1 else text.encode()
    return ProjectFile(name=", ".join(found), text=text, sha256=sha256(told).hexdigest())


def _read(name: str, root: str, *, is_named: bool) -> bytes | None:
    try:
        real = os.path.realpath(os.path.join(root, name))
        if not real.startswith(root.rstrip("/") + "/"):
            raise InvalidInput(f"{name}, the memory of the project, is outside of its folder")
        fd = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise InvalidInput(f"{name}, the memory of the project, is no file")
            return file.read(MAX_BYTES)
    except OSError as error:
        if not is_named:
            return None
        raise InvalidInput(f"cannot read {name}, the memory of the project: {error.strerror}") from None
