"""Patterns in the rules of a policy: `*` stands for any text, everything else for itself."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


_GLOBS = frozenset("*?[")


def fits(pattern: str, text: str) -> bool:
    """Say whether a whole text fits a pattern."""
    first, *rest = pattern.split("*")
    if not rest:
        return first == text
    last = rest.pop()
    if len(text) < len(first) + len(last) or not text.startswith(first) or not text.endswith(last):
        return False
    at, end = len(first), len(text) - len(last)
    for part in rest:
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


def any_fits(patterns: Iterable[str], texts: Iterable[str]) -> bool:
    """Say whether one of several texts fits one of several patterns."""
    known = list(texts)
    return any(fits(pattern, text) for pattern in patterns for text in known)


def in_command(pattern: str, words: Sequence[str | None]) -> bool:
    """Say whether a command may be what a pattern means, or hand it on: `timeout 5 git push` is `git push*`, too.

    It errs on the side of yes: every word may begin the command that is meant, and where a word is not known before
    the command runs (None, or what a shell may take for names of files) its first one is enough.
    """
    words = [None if word is not None and _GLOBS.intersection(word) else word for word in words]
    return any(_from_here(pattern, words[at:]) for at, word in enumerate(words) if word is not None or not at)


def _from_here(pattern: str, words: Sequence[str | None]) -> bool:
    known = [word for word in words if word is not None]
    if len(known) == len(words):
        text = " ".join(known)
        return fits(pattern, text) or fits(pattern, f"{text} ")
    first = words[0]
    return first is None or fits(pattern.split(" ", maxsplit=1)[0], first)


def is_command(pattern: str, words: Sequence[str | None]) -> bool:
    """Say whether a command is certainly what a pattern means."""
    known = [word for word in words if word is not None]
    return len(known) == len(words) and fits(pattern, " ".join(known))


def has_words(wanted: str, text: str) -> bool:
    """Say whether a text has a word, or several in a row, whatever their case: `deploy` is in `Deploy-to-prod`."""
    found = _words(text)
    sought = _words(wanted)
    if not sought:
        return False
    length = len(sought)
    return any(found[at : at + length] == sought for at in range(len(found) - length + 1))


def _words(text: str) -> list[str]:
    return "".join([char if char.isalnum() else " " for char in text.lower()]).split()
