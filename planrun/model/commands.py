"""What CI agents obey when it stands in a log: text that comes from anywhere must hold nothing of it."""

from __future__ import annotations

# Agents of GitHub, Azure and TeamCity look for these anywhere in a line.
_ANYWHERE = ("##[", "##vso[", "##teamcity[")


def broken(text: str) -> str:
    """Break what a CI agent would obey: `::x::` at the start of a line, `##[x]` anywhere."""
    if "##" in text:
        for command in _ANYWHERE:
            text = text.replace(command, "# " + command[1:])
    if "::" not in text:
        return text
    # The GitHub runner skips white space before it looks for the colons.
    return "\n".join(
        [
            row.replace("::", ": :", 1) if "::" in row and row.lstrip().startswith("::") else row
            for row in text.split("\n")
        ]
    )
