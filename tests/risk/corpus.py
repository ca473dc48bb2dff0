"""The labelled commands of tests/data/risk, read as the classes are defined; a row is data and is never run."""

from __future__ import annotations

from pathlib import Path

FILES = sorted((Path(__file__).parents[1] / "data" / "risk").glob("*.tsv"))
FILE = FILES[0].with_name("commands.tsv")
_SIGNS = {"\\": "\\", "n": "\n", "t": "\t", "r": "\r"}
_DIGITS = {"x": 2, "u": 4}


def decoded(line: str) -> str:
    """Return a command whose escapes are what they stand for."""
    found = []
    at = 0
    while at < len(line):
        if line[at] != "\\":
            found.append(line[at])
            at += 1
        elif line[at + 1] in _SIGNS:
            found.append(_SIGNS[line[at + 1]])
            at += 2
        else:
            digits = _DIGITS[line[at + 1]]
            found.append(chr(int(line[at + 2 : at + 2 + digits], 16)))
            at += 2 + digits
    return "".join(found)


def rows(*files: Path) -> list[tuple[str, str]]:
    """Return (expected class, command) of every row of some files, of all without one."""
    lines = [line for file in files or FILES for line in file.read_text("utf-8").split("\n")[1:]]
    return [(line.split("\t", 1)[0], decoded(line.split("\t", 1)[1])) for line in lines if line]
