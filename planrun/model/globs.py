r"""Patterns of paths: what they may look like, which paths they match, and whether two of them can match the same one.

A pattern is relative to the workspace, its parts parted by `/`. `*` is any number of characters of one part, `?` one,
`[a-z]` one of a set and `[!a-z]` one that is not in it, `{a,b}` either, `**` as a part of its own any number of parts.
`\` takes the meaning of the next character away. A name that begins with a dot is a name as any other. A pattern that
matches a folder matches everything in it.
"""

from __future__ import annotations

from planrun.model.job import PREFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    # A letter; "any" one; "star": any number; "in" a set or "out" of it, followed by two letters for each range.
    Token = tuple[str, ...]
    Part = tuple[Token, ...] | None  # None: any number of parts
    Glob = tuple[Part, ...]

MAX_CHARS = 1000  # of one pattern
MAX_WAYS = 256  # that the braces of one pattern may mean
_NEVER = frozenset((".planrun", ".git"))  # records and version control are not data of steps
_SETS = ("in", "out")
_ANY: Token = ("any",)
_STAR: Token = ("star",)


class BadGlob(ValueError):
    """A text that is no pattern; the message is a clause about it."""


def is_hidden(name: str) -> bool:
    """Say whether no pattern matches a file or folder of this name, since it is planrun's or git's own."""
    return name in _NEVER or name.startswith(PREFIX)


def is_literal(text: str) -> bool:
    """Say whether a pattern means one path, or all that is in one folder."""
    return not any(letter in text for letter in "*?[]{}\\")


def literal_path(glob: Glob) -> tuple[str, ...] | None:
    """Return the names of the one path that a glob means, None where it may mean several."""
    names = []
    for part in glob:
        if part is None or any(len(token) > 1 or len(token[0]) > 1 for token in part):
            return None
        names.append("".join([str(token[0]) for token in part]))
    return tuple(names)


def parse(text: str) -> tuple[Glob, ...]:
    """Return the alternatives of a pattern, as globs; raises BadGlob."""
    if len(text) > MAX_CHARS:
        raise BadGlob(f"has more than {MAX_CHARS} characters")
    return tuple([_glob(way) for way in _ways(text)])


def _glob(text: str) -> Glob:
    if not text.strip():
        raise BadGlob("is empty")
    if "\0" in text:
        raise BadGlob("has a NUL character")
    if text.startswith(("/", "~")):
        raise BadGlob("is not relative to the workspace")
    parts: list[Part] = []
    found, start, position = [], 0, 0
    while position < len(text):
        letter = text[position]
        if letter == "\\":
            position += 1
        elif letter == "/":
            found.append(text[start:position])
            start = position + 1
        position += 1
    for word in [*found, text[start:]]:
        if word == "..":
            raise BadGlob("leaves the workspace with `..`")
        if word in ("", "."):
            continue
        if word == "**":
            if not parts or parts[-1] is not None:
                parts.append(None)
        else:
            parts.append(_part(word))
    return tuple(parts)


def _part(word: str) -> tuple[Token, ...]:
    tokens: list[Token] = []
    position = 0
    while position < len(word):
        letter = word[position]
        position += 1
        if letter == "*":
            if not tokens or tokens[-1] is not _STAR:
                tokens.append(_STAR)
        elif letter == "?":
            tokens.append(_ANY)
        elif letter == "[":
            token, position = _set(word, position)
            tokens.append(token)
        else:
            if letter == "\\":
                if position == len(word):
                    raise BadGlob("ends with a backslash")
                letter = word[position]
                position += 1
            tokens.append((letter,))
    return tuple(tokens)


def _set(word: str, start: int) -> tuple[Token, int]:
    """Return the set that begins behind a bracket, and where it ends."""
    negated = word[start : start + 1] in ("!", "^")
    start += negated
    end = word.find("]", start + 1)
    if end < 0:
        raise BadGlob("has a `[` without `]`")
    letters = word[start:end]
    ranges: list[str] = []
    at = 0
    while at < len(letters):
        if letters[at + 1 : at + 2] == "-" and at + 2 < len(letters):
            ranges += [letters[at], letters[at + 2]]
            at += 3
        else:
            ranges += [letters[at]] * 2
            at += 1
    return ("out" if negated else "in", *ranges), end + 1


def _ways(text: str) -> list[str]:
    """Return the texts that the braces of a pattern mean."""
    open_ = _find(text, "{")
    if open_ < 0:
        if _find(text, "}") >= 0:
            raise BadGlob("has a `}` without `{`")
        return [text]
    depth, at = 0, open_
    while True:
        opening, closing = _find(text, "{", at), _find(text, "}", at)
        if closing < 0:
            raise BadGlob("has a `{` without `}`")
        depth += 1 if 0 <= opening < closing else -1
        at = (opening if 0 <= opening < closing else closing) + 1
        if not depth:
            break
    found: list[str] = []
    for choice in _choices(text[open_ + 1 : at - 1]):
        found += _ways(text[:open_] + choice + text[at:])
        if len(found) > MAX_WAYS:
            raise BadGlob(f"expands to more than {MAX_WAYS} patterns")
    return found


def _find(text: str, wanted: str, start: int = 0) -> int:
    """Return the position of a character that no backslash escapes, -1 when there is none."""
    position = start
    while position < len(text):
        if text[position] == "\\":
            position += 1
        elif text[position] == wanted:
            return position
        position += 1
    return -1


def _choices(text: str) -> list[str]:
    """Split the content of braces at the commas that are not in inner braces."""
    found, depth, start, position = [], 0, 0, 0
    while position < len(text):
        letter = text[position]
        if letter == "\\":
            position += 1
        elif letter in "{}":
            depth += 1 if letter == "{" else -1
        elif letter == "," and not depth:
            found.append(text[start:position])
            start = position + 1
        position += 1
    return [*found, text[start:]]


def escaped(text: str) -> str:
    """Return a pattern that means exactly this text."""
    return "".join([f"\\{letter}" if letter in "*?[]{}\\!," else letter for letter in text])


def matches(globs: Sequence[Glob], path: str) -> bool:
    """Say whether one of some globs matches a path, or a folder that it is in."""
    names = path.split("/")
    return any(_reaches(glob, names) for glob in globs)


def _reaches(glob: Glob, names: Sequence[str]) -> bool:
    """Walk a path with all positions in the glob that it may have reached."""
    at = _skipped(glob, {0})
    for name in names:
        if len(glob) in at:  # a folder above
            return True
        ahead: set[int] = set()
        for place in at:
            part = glob[place]
            if part is None:
                ahead.add(place)
            elif fits(part, name):
                ahead.add(place + 1)
        at = _skipped(glob, ahead)
        if not at:
            return False
    return len(glob) in at


def _skipped(glob: Glob, places: set[int]) -> set[int]:
    """Add the places after a `**` that matches nothing."""
    return places | {place + 1 for place in places if place < len(glob) and glob[place] is None}


def fits(part: Sequence[Token], name: str) -> bool:
    """Return whether a name matches one part of a glob."""
    at = _further(part, {0})
    for letter in name:
        at = _further(
            part,
            {place if part[place] is _STAR else place + 1 for place in at if _takes(part, place, letter)},
        )
        if not at:
            return False
    return len(part) in at


def _takes(part: Sequence[Token], place: int, letter: str) -> bool:
    if place == len(part):
        return False
    token = part[place]
    if len(token) == 1 and len(token[0]) == 1:
        return token[0] == letter
    return token[0] not in _SETS or _within(token, letter)


def _within(token: Token, letter: str) -> bool:
    within = any(low <= letter <= high for low, high in zip(token[1::2], token[2::2], strict=True))
    return within is (token[0] == "in")


def _further(part: Sequence[Token], places: set[int]) -> set[int]:
    return places | {place + 1 for place in places if place < len(part) and part[place][0] == "star"}


def meet(left: Sequence[Glob], right: Sequence[Glob]) -> bool:
    """Say whether two patterns can match the same path; of two sets of letters it takes the worst for granted.

    What is matched by a pattern such as `*.c` counts as a file, so that `src/**/*.h` does not meet it.
    """
    return any(_overlap(one, other) for one in left for other in right)


def _overlap(left: Glob, right: Glob) -> bool:
    seen: set[tuple[int, int]] = set()
    stack = [(0, 0)]
    while stack:
        here = stack.pop()
        if here in seen:
            continue
        seen.add(here)
        at, by = here
        if at == len(left) or by == len(right):
            # What is left of the other one would be in a folder that this one means as a whole.
            if here == (len(left), len(right)) or _means_folders(left if at == len(left) else right):
                return True
            continue
        one, other = left[at], right[by]
        if one is None:
            stack += [(at + 1, by), (at, by + 1)]
        if other is None:
            stack += [(at, by + 1), (at + 1, by)]
        if one is not None and other is not None and _alike(one, other):
            stack.append((at + 1, by + 1))
    return False


def _means_folders(glob: Glob) -> bool:
    """Return whether the matches of a glob may be folders: a name, or all names; `*.c` are files."""
    last = glob[-1] if glob else None
    return last is None or all(len(token[0]) == 1 for token in last) or last == (_STAR,)


def _alike(left: Sequence[Token], right: Sequence[Token]) -> bool:
    """Say whether two parts can be the same name."""
    seen: set[tuple[int, int]] = set()
    stack = [(0, 0)]
    while stack:
        here = stack.pop()
        if here in seen:
            continue
        seen.add(here)
        at, by = here
        if here == (len(left), len(right)):
            return True
        one = left[at] if at < len(left) else None
        other = right[by] if by < len(right) else None
        if one is not None and one[0] == "star":
            stack += [(at + 1, by), *([(at, by + 1)] if other is not None else [])]
        if other is not None and other[0] == "star":
            stack += [(at, by + 1), *([(at + 1, by)] if one is not None else [])]
        if one is not None and other is not None and _same(one, other):
            stack.append((at + 1, by + 1))
    return False


def _same(one: Token, other: Token) -> bool:
    if len(one[0]) == 1 and len(other[0]) == 1:
        return one == other
    if one[0] in _SETS and len(other[0]) == 1:
        return _within(one, other[0])
    if other[0] in _SETS and len(one[0]) == 1:
        return _within(other, one[0])
    return True
