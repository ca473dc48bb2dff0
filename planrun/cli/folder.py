"""`planrun -C DIR VERB …`: work in another folder, as make, git and ninja do."""

from __future__ import annotations

import os

from planrun.errors import InvalidInput

_LONG = "--directory"


def entered(words: list[str]) -> list[str]:
    """Change to the folders that the first options name, and return the words after them; raises InvalidInput.

    Several options count from left to right: each folder is seen from the one before.
    """
    while words:
        folder, rest = _folder(words)
        if folder is None:
            break
        words = rest
        try:
            os.chdir(folder)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "invalid name"
            raise InvalidInput(f"-C {folder}: {reason[:1].lower()}{reason[1:]}") from None
    return words


def _folder(words: list[str]) -> tuple[str | None, list[str]]:
    """Return the folder that the first word names, and the words after it; None when it is another word."""
    word, *rest = words
    if word in ("-C", _LONG):
        if not rest:
            raise InvalidInput(f"{word} needs a value: {word} DIR")
        return rest[0], rest[1:]
    if word.startswith("-C"):
        return word[2:].removeprefix("="), rest
    if word.startswith(f"{_LONG}="):
        return word[len(_LONG) + 1 :], rest
    return None, words
