"""file.read, file.write, file.replace, file.copy."""

from __future__ import annotations

import os

from planrun.sha256 import sha256
from planrun.tools.refusal import Refusal
from planrun.tools.results import plural, say
from planrun.tools.writing import blocks, existing, permissions, put, read_whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.tools.ground import Ground, Place


def read(ground: Ground, args: dict[str, Any]) -> dict[str, Any]:
    """Return the text of a file, which is printed as well."""
    with ground.readable(args["path"]) as place:
        data = read_whole(place, args.get("max_bytes", 65_536))
        text = text_of(place, data)
    os.write(1, data)
    return {"text": text, "size": len(data), "sha256": _hash(data)}


def write(ground: Ground, args: dict[str, Any]) -> dict[str, Any]:
    """Write, make or lengthen a file."""
    data = encoded(args["content"])
    mode = args.get("mode", "overwrite")
    with ground.writable(args["path"], "make") as place:
        status = existing(place)
        check_expected(place, args)
        before = read_whole(place) if mode == "append" and status else b""
        rights = permissions(status, executable=args.get("executable", False))
        size, digest = put(place, (before, data), rights, replace=mode != "create")
        was = "made" if status is None else "lengthened" if mode == "append" else "replaced"
        say(f"{was} {place.path}, {plural(size, 'byte')}")
    return {"size": size, "sha256": digest}


def replace(ground: Ground, args: dict[str, Any]) -> dict[str, Any]:
    """Replace an exact text in a file."""
    old, new, wanted = args["old"], args["new"], args.get("count", 1)
    with ground.writable(args["path"]) as place:
        status = existing(place)
        text = text_of(place, read_whole(place))
        found = text.count(old)
        if found == 0 or (wanted and found != wanted):
            times = "once" if wanted == 1 else f"{wanted:,} times"
            told = f"stands there {found:,} times, not {times}" if found else "does not stand there"
            raise Refusal(f"{place.path}: the text {told}")
        data = encoded(text.replace(old, new))
        _, digest = put(place, (data,), permissions(status, executable=False), replace=True)
        say(f"replaced {plural(found, 'place')} in {place.path}")
    return {"replaced": found, "sha256": digest}


def copy(ground: Ground, args: dict[str, Any]) -> dict[str, Any]:
    """Copy a file with its permissions."""
    with ground.readable(args["path"]) as source, ground.writable(args["to"], "make") as place:
        existing(place)
        fd = source.open_file()
        try:
            mode = os.fstat(fd).st_mode & 0o777
            size, digest = put(place, blocks(fd), mode, replace=args.get("overwrite", False))
        finally:
            os.close(fd)
        say(f"copied {source.path} to {place.path}, {plural(size, 'byte')}")
    return {"size": size, "sha256": digest}


def text_of(place: Place, data: bytes) -> str:
    """Return bytes as text; raises Refusal for what is none."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Refusal(f"{place.path}: it is no UTF-8 text: byte {error.start}") from None


def encoded(text: str) -> bytes:
    """Return a text as UTF-8; raises Refusal for one that is half a character."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise Refusal("the text has a half of a character, which cannot be written") from None


def check_expected(place: Place, args: dict[str, Any]) -> None:
    """Raise Refusal when a file is not the one that `expected` names."""
    wanted = args.get("expected")
    if wanted is not None:
        found = _hash(read_whole(place))
        if found != wanted:
            raise Refusal(f"{place.path}: it is not what was expected, but {found}")


def _hash(data: bytes) -> str:
    return str(sha256(data).hexdigest())
