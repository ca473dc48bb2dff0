"""Patterns in the rules of a policy: `*` stands for any text, everything else for itself."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


_GLOBS = frozenset("*?[")
_ADDERS = frozenset(("xargs", "parallel"))  # programs that run another one with words from elsewhere
_MOST = 64  # places of a command that are looked at, and options that are looked behind
_PARTED: dict[str, tuple[list[str], list[tuple[str, list[str]]]]] = {}  # of the last text
_WORDS: dict[str, str] = {}  # of the last texts, and of what rules look for
_KEPT = 8_000
_FOUND: dict[str, bool] = {}  # which patterns fit the last text
_TRIES = [0]  # words of the last text that patterns were held against
_MOST_TRIES = 30_000
"""With more a pattern counts as fitting: it takes a fraction of a second, and no text of a person comes to so many."""
_QUOTING = str.maketrans("", "", "'\"\\")
_PARTING = str.maketrans(dict.fromkeys(";&|(){}`", "\n"))


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

    It errs on the side of yes: every word may begin the command that is meant, wherever its program is and whatever
    options stand before its arguments (`/usr/bin/git -C . push`), and where a word is not known before the command
    runs (None, or what a shell may take for names of files, or what `xargs` adds) its first one is enough.
    """
    pattern = one_blank(pattern)
    head = pattern.partition(" ")[0].partition("*")[0]
    known = [None if word is not None and _GLOBS.intersection(word) else word for word in words]
    places = [at for at, word in enumerate(known) if (head in word if word is not None else not at)]
    if len(places) > _MOST:
        return True  # nobody writes a program so often, but who wants it not to be found
    adds = next((at for at, word in enumerate(known) if word and _name(word) in _ADDERS), len(known))
    return any(_from_here(pattern, _added_to(known[at:]) if at > adds else known[at:]) for at in places)


def _added_to(words: list[str | None]) -> list[str | None]:
    """Return a command as `xargs` may go on with it; what it is to do is known where more than options stand there."""
    is_open = all(word is not None and word[:1] == "-" for word in words[1:])
    return [*words, None] if is_open else words


def _from_here(pattern: str, words: Sequence[str | None]) -> bool:
    first, program = words[0], pattern.partition(" ")[0]
    known = [word for word in words if word is not None]
    is_program = first is None or fits(program, first) or fits(program, _name(first))
    if len(known) < len(words):
        return is_program
    return any(
        _is_text(pattern, [name, *known[1:]]) for name in dict.fromkeys((known[0], _name(known[0])))
    ) or (is_program and _behind_options(pattern, known))


def _is_text(pattern: str, words: Sequence[str]) -> bool:
    text = " ".join(words)
    return fits(pattern, text) or fits(pattern, f"{text} ")


def _behind_options(pattern: str, words: Sequence[str]) -> bool:
    """Say whether a pattern fits without the options before the first argument, each with a value or without one."""
    starts = {1}
    for at in range(1, len(words)):
        if at in starts and words[at][:1] == "-":
            starts |= {at + 1, at + 2}
        if at > _MOST:
            return True
    name = _name(words[0])
    return any(_is_text(pattern, [name, *words[at:]]) for at in starts if 1 < at <= len(words))


def in_text(pattern: str, text: str) -> bool:
    """Say whether a command that a pattern means may stand anywhere in a text, whoever is to read it as one.

    Quotes count for nothing here, so that it is found in `bash -c '…'`, behind `eval`, and in what another shell reads.
    """
    lines, commands = _parted(text)
    found = _FOUND.get(pattern)
    if found is None:
        found = _FOUND[pattern] = _in_parts(one_blank(pattern), lines, commands)
    return found


def _in_parts(pattern: str, lines: list[str], commands: list[tuple[str, list[str]]]) -> bool:
    head = pattern.partition(" ")[0].partition("*")[0]
    if any(fits(f"*{pattern}*", line) for line in lines if head in line):
        return True
    for line, words in commands:
        if head in line:
            _TRIES[0] += len(words)
            if _TRIES[0] > _MOST_TRIES or in_command(pattern, words):
                return True
    return False


def _parted(text: str) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """Return the lines of a text and what may be commands in it, without quotes; for the text before at once."""
    if text not in _PARTED:
        plain = _plain(text)
        pieces = [(piece, piece.split()) for piece in plain.translate(_PARTING).split("\n")]
        _PARTED.clear()
        _FOUND.clear()
        _TRIES[0] = 0
        _PARTED[text] = ([one_blank(line) for line in plain.split("\n")], [one for one in pieces if one[1]])
    return _PARTED[text]


def _plain(text: str) -> str:
    """Return a text without quotes and escapes, and with continued lines in one."""
    return text.replace("\\\n", "").translate(_QUOTING)


def one_blank(text: str) -> str:
    """Return a text with one blank between its words and none around them."""
    return " ".join(text.split())


def _name(program: str) -> str:
    return program.rpartition("/")[2]


def is_command(pattern: str, words: Sequence[str | None]) -> bool:
    """Say whether a command is certainly what a pattern means."""
    known = [word for word in words if word is not None]
    return len(known) == len(words) and fits(one_blank(pattern), " ".join(known))


def has_words(wanted: str, text: str) -> bool:
    """Say whether a text has a word, or several in a row, whatever their case: `deploy` is in `Deploy-to-prod`.

    Quotes do not hide one: `de''ploy` is `deploy` to a shell.
    """
    sought = _words(wanted)
    return bool(sought.strip()) and any(
        sought in _words(plain) for plain in dict.fromkeys((text, _plain(text)))
    )


def _words(text: str) -> str:
    """Return the words of a text with one blank around each; those of the last texts are kept for the next rules."""
    found = _WORDS.get(text)
    if found is None:
        if len(_WORDS) >= _KEPT:
            _WORDS.clear()
        words = "".join([char if char.isalnum() else " " for char in text.lower()]).split()
        found = _WORDS[text] = f" {' '.join(words)} "
    return found
