"""Commands that CI agents execute when a log contains them: untrusted text must contain none."""

from __future__ import annotations

# Agents of GitHub, Azure and TeamCity look for these anywhere in a line, some of them in any case.
_ANYWHERE = ("##[", "##vso[", "##teamcity[")
_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}  # str.lower() may change the length
# Not shown, and passed over by who compares text as people read it, as .NET and so the agents of GitHub and Azure may
# do. They are needed in emoji and in some scripts, and stay where they cannot form a command.
_UNSEEN: dict[int, None] = dict.fromkeys(
    (
        *(0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFEFF, 0xFFA0),
        *range(0x180B, 0x1810),
        *range(0x200B, 0x2010),
        *range(0x2060, 0x2065),
        *range(0xFE00, 0xFE10),
        *range(0xE0000, 0xE1000),
    )
)


def broken(text: str) -> str:
    """Break commands that a CI agent would execute: `::x::` at the start of a line, `##[x]` anywhere."""
    if not text.isascii():
        bare = text.translate(_UNSEEN)
        if len(bare) != len(text) and ("##" in bare or "::" in bare):
            text = bare
    if "##" in text:
        for command in _ANYWHERE:
            at = text.translate(_LOWER).find(command)
            while at >= 0:
                text = f"{text[: at + 1]} {text[at + 1 :]}"
                at = text.translate(_LOWER).find(command)
    if "::" not in text:
        return text
    # The GitHub runner skips white space before it looks for the colons.
    return "\n".join(
        [
            row.replace("::", ": :", 1) if "::" in row and row.lstrip().startswith("::") else row
            for row in text.split("\n")
        ]
    )
