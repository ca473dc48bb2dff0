"""The file with what models should know of a project: written and reviewed by people, told to models as data."""

from __future__ import annotations

import os
import stat

from planrun.errors import InvalidInput
from planrun.model.record import Record
from planrun.sha256 import sha256

DEFAULT = "PLANRUN.md"
MAX_BYTES = 32 * 1024
BLOCK = "project memory"


class ProjectFile(Record):
    """Its name, its text, of which the beginning is told, and the hash of what is told."""

    name: str
    text: str
    sha256: str


def project_file(named: str, folder: str = "") -> ProjectFile | None:
    """Return the file that the settings name, or PLANRUN.md; None where there is none.

    Raises InvalidInput for a named one that cannot be read or is outside of the folder.
    """
    root = os.path.realpath(folder or ".")
    path = os.path.join(root, named or DEFAULT)
    try:
        real = os.path.realpath(path)
        if not real.startswith(root.rstrip("/") + "/"):
            raise InvalidInput(f"{named or DEFAULT}, the memory of the project, is outside of its folder")
        fd = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise InvalidInput(f"{named or DEFAULT}, the memory of the project, is no file")
            data = file.read(MAX_BYTES)
    except OSError as error:
        if not named:
            return None
        raise InvalidInput(f"cannot read {named}, the memory of the project: {error.strerror}") from None
    text = data.decode("utf-8", "replace")
    return ProjectFile(name=named or DEFAULT, text=text, sha256=sha256(data).hexdigest())
