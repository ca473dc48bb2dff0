"""Commands that CI agents execute when a log contains them: untrusted text must contain none."""

from __future__ import annotations

from planrun.model.hidden import TAGS, UNSEEN

# Agents of GitHub, Azure and TeamCity look for these anywhere in a line, some of them in any case.
_ANYWHERE = ("##[", "##vso[", "##teamcity[")
_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}  # str.lower() may change the length
# Not shown, and passed over by who compares text as people read it, as .NET and so the agents of GitHub and Azure may
# do. They are needed in emoji and in some scripts, and stay where they cannot form a command.
_UNSEEN: dict[int, None] = dict.fromkeys((*UNSEEN, *TAGS))


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
