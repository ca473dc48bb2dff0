"""The kinds of operands and values that rules name, each with what makes it class high."""

from __future__ import annotations

from planrun.risk import environment, paths
from planrun.risk.levels import LOW, MEDIUM, Finding
from planrun.risk.options import Refused
from planrun.risk.words import HOME, names_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from planrun.risk.table import Use

_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+@/[],~^:#=<>!{}")
_UNITS = frozenset("0123456789.+-smhdkKMGTPBb%")
_HOST = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:[]")
_METADATA = names_in(
    "metadata metadata.google.internal metadata.goog instance-data instance-data.ec2.internal"
    " 100.100.100.200 168.63.129.16"
)
_FETCHED = Finding(level=MEDIUM, reason="fetches over the network", effects=("network",))


def examine(kind: str, value: str, use: Use) -> Finding | None:
    """Return what an operand or a value of a kind adds to a command's class; raises Refused."""
    if kind.startswith("{"):
        if value not in kind[1:-1].split(","):
            raise Refused(f"{value}: a value that is not known")
        return None
    return KINDS[kind](value, use)


def _text(_value: str, _use: Use) -> None:
    return None


def _arg(value: str, use: Use) -> None:
    """Refuse what looks like a path outside or to secrets, also behind `=` or `:`."""
    # In their order, so that the reason is the same in every process.
    for piece in dict.fromkeys((value, *value.split("="), *value.split(":"))):
        pathlike = piece.startswith(("/", HOME)) or ".." in piece.split("/")
        if (
            pathlike
            and not piece.startswith("//")
            and paths.locate(piece, use.cwd, use.ground)[0] == "outside"
        ):
            raise Refused(f"{value}: a path outside the workspace")
        if paths.secret(piece):
            raise Refused(f"{value}: may hold secrets", "secrets")


def _name(value: str, use: Use) -> None:
    if not value or value[0] in "-/" or not _NAME.issuperset(value) or "://" in value or "::" in value:
        raise Refused(f"{value}: no plain name")
    _arg(value, use)


def _number(value: str, _use: Use) -> None:
    if not value or not _UNITS.issuperset(value):
        raise Refused(f"{value}: no number")


def _checked(
    question: Callable[[str, str | None, paths.Ground], str], *effects: str
) -> Callable[[str, Use], None]:
    def check(value: str, use: Use) -> None:
        if "://" in value:
            raise Refused(f"{value}: an address where a path was expected", "network")
        reason = question(value, use.cwd, use.ground)
        if reason:
            raise Refused(reason, *(("secrets",) if "secrets" in reason else effects))

    return check


_look = _checked(paths.reading)
_inside_path = _checked(paths.inside)
_writable = _checked(paths.writing, "writes")
_deletable = _checked(paths.deleting, "destroys")


def _read(value: str, use: Use) -> None:
    """Refuse the root of the system as well: what descends from there meets every secret."""
    _look(value, use)
    if paths.locate(value, use.cwd, use.ground) == ("outside", "/"):
        raise Refused(f"{value}: everything that there is", "secrets")


def _inside(value: str, use: Use) -> None:
    """Refuse what is outside, and `@file`, which many programs read more options from."""
    if value.startswith("@"):
        raise Refused(f"{value}: options from a file")
    _inside_path(value, use)


def _write(value: str, use: Use) -> Finding | None:
    found = _make(value, use)
    if found is not None:
        use.trace.overwrites.append(paths.locate(value, use.cwd, use.ground)[1])
    return found


def _make(value: str, use: Use) -> Finding | None:
    _writable(value, use)
    if value == "/dev/null":
        return None
    use.trace.writes.append(paths.locate(value, use.cwd, use.ground)[1])
    return Finding(level=LOW, reason=f"writes {value}", effects=("writes",))


def _delete(value: str, use: Use) -> Finding:
    _deletable(value, use)
    return Finding(level=MEDIUM, reason=f"deletes {value}", effects=("destroys",))


def _run(value: str, use: Use) -> Finding:
    where, place = paths.locate(value, use.cwd, use.ground)
    if where != "inside" or value[:1] in ("-", "+", "") or "://" in value:
        raise Refused(f"{value}: code from outside the workspace", "code")
    if paths.secret(place):
        raise Refused(f"{value}: may hold secrets", "secrets", "code")
    if paths.control(place) and not place.startswith(".github/"):
        raise Refused(f"{value}: a file that belongs to git or to the runner", "code")
    use.trace.runs.append(place)
    return Finding(level=MEDIUM, reason=f"runs {value}", effects=("code",))


def _folder(value: str, use: Use) -> None:
    reason = paths.inside(value, use.cwd, use.ground)
    where = paths.folder(value, use.cwd, use.ground)
    if reason or where is None:
        raise Refused(reason or f"{value}: no folder inside the workspace")
    use.cwd = where


def _gives_credentials(host: str) -> bool:
    """Whether a host is the service of a cloud that hands out credentials, or an address written in an odd way."""
    name = host.lower().rstrip(".")
    if not name.startswith("["):
        name = name.partition(":")[0].rstrip(".")
    parts = name.split(".")
    numeric = all(part and (part.isdigit() or part.startswith("0x")) for part in parts)
    odd = numeric and (len(parts) != 4 or any(len(part) > 1 and part[0] == "0" for part in parts))
    return odd or name in _METADATA or name.startswith(("169.254.", "[fd00:ec2", "[fe80", "[::ffff:", "[0:"))


def _url(value: str, _use: Use) -> Finding:
    scheme, found, rest = value.partition("://")
    host = rest.partition("/")[0].partition("?")[0]
    if not found or scheme.lower() not in ("http", "https") or not host or not _HOST.issuperset(host):
        raise Refused(f"{value}: no plain http address", "network")
    if _gives_credentials(host):
        raise Refused(f"{value}: a service that hands out credentials", "network", "secrets")
    if set("{}[]*") & set(rest) or any(
        word in rest.lower() for word in ("token=", "key=", "secret=", "password=")
    ):
        raise Refused(f"{value}: an address that carries more than a place", "network")
    return _FETCHED


def _remote(value: str, use: Use) -> Finding:
    if "://" in value:
        return _url(value, use)
    if ":" in value or "." in value:
        raise Refused(f"{value}: no plain remote", "network")
    _name(value, use)
    return _FETCHED


def _assign(value: str, use: Use) -> None:
    name, sign, content = value.partition("=")
    reason = environment.harm(name, content, use.cwd, use.ground) if sign else "no assignment"
    if reason:
        raise Refused(reason, "code")


KINDS: dict[str, Callable[[str, Use], Finding | None]] = {
    "text": _text,
    "arg": _arg,
    "name": _name,
    "number": _number,
    "look": _look,
    "read": _read,
    "inside": _inside,
    "write": _write,
    "make": _make,
    "delete": _delete,
    "run": _run,
    "folder": _folder,
    "url": _url,
    "remote": _remote,
    "assign": _assign,
    "module": _name,
    "package": _text,
}
"""Name of a kind -> what looks at a value of it."""
