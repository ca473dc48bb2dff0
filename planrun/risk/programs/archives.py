"""Archives and compression: packing is low, unpacking is medium, looking inside is read-only."""

from __future__ import annotations

from planrun.risk.levels import high
from planrun.risk.table import Rule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.risk.levels import Finding
    from planrun.risk.table import Rules, Use


def _no_host(use: Use) -> Finding | None:
    """Tar takes what stands before a colon for another machine."""
    for name, value in use.options:
        if name in ("-f", "--file") and value is not None and ":" in value:
            return high(f"{value}: a file on another machine", "network")
    return None


def _unpack(use: Use) -> Finding | None:
    if not any(name in ("-f", "--file") and value != "-" for name, value in use.options):
        use.trace.streams = True
    return _no_host(use)


_UNPACKED: dict[str, Any] = {"effects": "writes", "reason": "unpacks an archive"}
_TAR = (
    "-z -j -J -v -a -h -S -p -k -m -O -C=inside -f={0} --file={0} --gzip --bzip2 --xz --zstd --lzma --lzip --verbose"
    " --auto-compress --dereference --sparse --exclude=text --exclude-vcs --exclude-vcs-ignores --directory=inside"
    " --strip-components=number --transform=text --no-same-owner --no-same-permissions --preserve-permissions --numeric-owner"
    " --owner=text --group=text --mtime=text --sort=text --mode=text --format=text --no-recursion --wildcards --no-wildcards"
    " --anchored --one-file-system --totals --keep-old-files --skip-old-files --overwrite --touch --same-permissions"
    " --to-stdout --occurrence[=number] --utc --full-time --clamp-mtime --posix --no-acls --no-xattrs --no-selinux"
)
# Unpacking writes into the folder; what renames files on the way may name anything.
_INTO = (
    _TAR.replace("-C=inside", "-C=write")
    .replace("--directory=inside", "--directory=write")
    .replace(" --transform=text", "")
)
_SQUEEZE = "-k -f -v -q -# -1 -2 -3 -4 -5 -6 -7 -8 -9 --keep --force --verbose --quiet --best --fast"
_LOOK = (
    "-c -d -k -q -v -f --stdout --to-stdout --decompress --uncompress --keep --quiet --force -# --best --fast"
)


def _squeezer(more: str = "") -> tuple[Rule, ...]:
    """Return the rules of a program like gzip: it replaces files, or writes to stdout."""
    return (
        Rule("read-only", "read*", f"{_LOOK} {more}", needs="-c --stdout --to-stdout"),
        Rule(
            "read-only",
            "read+",
            "-l -t -v -q -d --list --test --verbose --quiet",
            needs="-l -t --list --test",
        ),
        Rule(
            "medium",
            "make+",
            f"{_SQUEEZE} -d --decompress --uncompress {more}",
            needs="-d --decompress",
            writes="unpacked",
            **_UNPACKED,
        ),
        Rule("low", "make+", f"{_SQUEEZE} -n -N --no-name --name {more}"),
    )


_UNSQUEEZE = Rule("medium", "make+", "-k -f -v -q -n -N --keep --force --verbose --quiet", writes="unpacked", **_UNPACKED)  # fmt: skip
_PRINT = Rule("read-only", "read+", "-f -v -q --force --quiet")

PROGRAMS: dict[str, Rules] = {
    "tar": (
        Rule("read-only", "text*", f"-t --list {_TAR.format('read')}", style="tar", needs="-t --list", check=_no_host),
        Rule("low", "read+", f"-c --create {_TAR.format('write')}", style="tar", needs="-c --create", check=_no_host, reads="packs", reason="packs an archive"),
        Rule("medium", "text*", f"-x --extract --get {_INTO.format('read')}", style="tar", needs="-x --extract --get", check=_unpack, writes="archive", **_UNPACKED),
    ),
    "gzip": _squeezer(),
    "bzip2": _squeezer("-s --small -z --compress"),
    "xz": _squeezer("-T=number --threads=number -e --extreme -z --compress"),
    "zstd": _squeezer("-T=number --threads=number --long[=number] --ultra -z --compress -o=write"),
    "lz4": (Rule("read-only", "read", f"{_LOOK} -m", needs="-c --stdout --to-stdout"), Rule("medium", "make write?", f"{_SQUEEZE} -d --decompress", needs="-d --decompress", writes="unpacked", **_UNPACKED), Rule("low", "make write?", _SQUEEZE)),
    "gunzip": (Rule("read-only", "read*", "-c -f -k -q -v --stdout --to-stdout", needs="-c --stdout --to-stdout"), Rule("read-only", "read+", "-l -t -v --list --test", needs="-l -t --list --test"), _UNSQUEEZE),
    "bunzip2": (Rule("read-only", "read*", "-c -k -q --stdout", needs="-c --stdout"), _UNSQUEEZE),
    "unxz": (Rule("read-only", "read*", "-c -k -q --stdout", needs="-c --stdout"), _UNSQUEEZE),
    "unzstd": (Rule("read-only", "read*", "-c -k -q --stdout", needs="-c --stdout"), _UNSQUEEZE),
    "zcat": _PRINT,
    "bzcat": _PRINT,
    "xzcat": _PRINT,
    "zstdcat": _PRINT,
    "zip": Rule("low", "write read+", "-r -q -v -j -y -D -X -u -f -o -n=text -x=text -i=text -# -0 -1 -2 -3 -4 -5 -6 -7 -8 -9 -9r --recurse-paths --quiet --junk-paths --symlinks --no-extra --update --freshen --exclude=text --include=text --no-dir-entries", reads="packs", reason="packs an archive"),
    "unzip": (Rule("read-only", "read filter*", "-l -t -v -z -Z -p -c -q -qq -1 -x=text", needs="-l -t -v -z -Z -p -c"), Rule("medium", "read text*", "-o -n -q -qq -u -j -a -L -C -d=write -x=text -DD -D -B", writes="archive", **_UNPACKED)),
    "zipinfo": Rule("read-only", "read text*", "-1 -2 -s -m -l -v -h -t -z -T"),
}  # fmt: skip
