"""Variables and functions of make, as far as they are known without running make."""

from __future__ import annotations

import posixpath
import re

from planrun.convert.reader import UntranslatableError
from planrun.convert.recipes.scripts import MAX_TEXT, NAME, SAFE, Param, Piece, Shell
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

# What make itself sets, and the environment overrides.
IMPLICIT = {
    "CC": "cc", "CXX": "g++", "CPP": "cc -E", "AR": "ar", "LD": "ld", "AS": "as", "RM": "rm -f", "LEX": "lex",
    "YACC": "yacc", "ARFLAGS": "rv", "FC": "f77", "CO": "co", "PC": "pc", "TEX": "tex", "MAKEINFO": "makeinfo",
}  # fmt: skip
_OF_MAKE = frozenset(
    ("MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES", "MAKELEVEL", "MAKECMDGOALS", "MAKEFILE_LIST", "MAKEFILES")
)
_DEFAULT = re.compile(r"[\w./@:+=,% -]*\Z")  # what can stand in `${NAME-…}`
MAX_NESTING = 40
MAX_EXPANDED = 50_000  # texts of one file, and of one makefile's functions


class Variable(Record):
    """A variable: its text, or what it was when it was read; `unknown`: why make alone knows it."""

    text: str = ""
    pieces: tuple[Piece, ...] | None = None
    unknown: str = ""
    is_param: bool = False  # whether a run may set it: it is assigned once, and nothing depends on its value


class Expander:
    """Fills in variables; `auto` are those of the recipe that is read.

    `frozen` are variables whose values decide what the plan is: they are no parameters.
    """

    def __init__(self, frozen: set[str]) -> None:
        self.known: dict[str, Variable] = {}
        self.auto: Mapping[str, str] = {}
        self.params: dict[str, str] = {}
        self.frozen = frozen
        self._expanded = 0
        self._open: list[str] = []

    def text(self, text: str) -> str:
        """Return a text that has to be known now; raises UntranslatableError."""
        found = ""
        for piece in self.expand(text):
            if isinstance(piece, Shell):
                raise UntranslatableError("make", f"`{text.strip()[:60]}` depends on the environment")
            if isinstance(piece, Param):
                self.frozen.add(piece.name)
            found += piece.text if isinstance(piece, Param) else piece
        return found

    def expand(self, text: str) -> list[Piece]:
        """Return a text with everything filled in; raises UntranslatableError."""
        self._expanded += 1 + len(text) // 1000
        if self._expanded > MAX_EXPANDED:
            raise UntranslatableError("too-large", "too many texts have to be filled in")
        found: list[Piece] = []
        at = 0
        while 0 <= (dollar := text.find("$", at)) < len(text) - 1:
            found.append(text[at:dollar])
            sign = text[dollar + 1]
            at = dollar + 2
            if sign == "$":
                found.append("$")
            elif sign in "({":
                end = _closing(text, dollar + 1)
                found += self._reference(text[dollar + 2 : end])
                at = end + 1
            else:
                found += self._variable(sign)
        found.append(text[at:])
        size = sum(len(piece) for piece in found if isinstance(piece, str))
        if size > MAX_TEXT:
            raise UntranslatableError("too-large", "a text becomes too long")
        self._expanded += size // 1000
        return _compact(found)

    def _reference(self, inside: str) -> list[Piece]:
        word = re.match(r"\s*([a-z-]+)\s+", inside)
        if word and word[1] in FUNCTIONS:
            return FUNCTIONS[word[1]](self, inside[word.end() :])
        if word:
            raise UntranslatableError("make", f"`$({inside[:60]})` is known to make alone")
        name, colon, change = inside.partition(":")
        if colon and "=" in change and "$" not in name:
            old, _, new = change.partition("=")
            if "%" not in old:
                old, new = f"%{old}", f"%{new}"
            return [_patsubst(self.text(old), self.text(new), self.text(f"$({name})"))]
        return self._variable(self.text(inside).strip())

    def _variable(self, name: str) -> list[Piece]:
        base, kind = (name[:-1], name[-1]) if len(name) == 2 and name[1] in "DF" else (name, "")
        if base in self.auto:
            return [_part(self.auto[base], kind)]
        variable = self.known.get(name)
        if variable is None:
            return self._unset(name)
        if variable.unknown:
            raise UntranslatableError("make", f"`{name}`: {variable.unknown}")
        if variable.pieces is not None:
            found = list(variable.pieces)
        elif name in self._open or len(self._open) > MAX_NESTING:
            raise UntranslatableError("shape", f"the variable {name} is made of itself")
        else:
            self._open.append(name)
            try:
                found = self.expand(variable.text)
            finally:
                self._open.pop()
        text = found[0]
        fits = variable.is_param and name not in self.frozen and len(found) == 1 and NAME.match(name)
        if fits and isinstance(text, str) and SAFE.match(text):
            self.params[name] = text
            return [Param(name=name, text=text)]
        return found

    def _unset(self, name: str) -> list[Piece]:
        if name == "MAKE":
            return ["make"]
        if name == "SHELL":
            return ["/bin/sh"]
        if name in ("CURDIR", "PWD"):
            return [Shell(text="${PLANRUN_WORKSPACE}")]
        if name in _OF_MAKE or name.startswith(".") or name[:1] in "@<^+?*%|":
            raise UntranslatableError("make", f"`$({name})` is known to make alone")
        return [from_environment(name, [IMPLICIT.get(name, "")])] if NAME.match(name) else [""]


def from_environment(name: str, otherwise: Sequence[Piece]) -> Piece:
    """Return a variable that the environment sets, with a default; raises UntranslatableError."""
    text = "".join(
        piece.text
        if isinstance(piece, Shell)
        else piece
        if isinstance(piece, str) and _DEFAULT.match(piece)
        else "\n"
        for piece in otherwise
    )
    if "\n" in text or not NAME.match(name):
        raise UntranslatableError("make", f"the default of `{name}` cannot be written in a shell")
    return Shell(text=f"${{{name}-{text}}}", reads=name)


def _compact(pieces: Sequence[Piece]) -> list[Piece]:
    found: list[Piece] = []
    for piece in pieces:
        if isinstance(piece, str) and found and isinstance(found[-1], str):
            found[-1] += piece
        elif piece != "":
            found.append(piece)
    return found or [""]


def _closing(text: str, start: int) -> int:
    """Return where the bracket at a place is closed; raises UntranslatableError."""
    opening, closing = text[start], ")" if text[start] == "(" else "}"
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] == opening) - (text[at] == closing)
        if not depth:
            return at
    raise UntranslatableError("shape", f"a bracket is not closed: {text[:80]}")


def arguments(text: str, most: int = 99) -> list[str]:
    """Return the arguments of a function; commas in brackets do not part them."""
    found: list[str] = []
    depth = start = 0
    for at, char in enumerate(text):
        depth += (char in "({") - (char in ")}")
        if char == "," and not depth and len(found) < most - 1:
            found.append(text[start:at])
            start = at + 1
    return [*found, text[start:]]


def stem_of(pattern: str, word: str) -> str | None:
    """Return what `%` stands for in a word; None where the pattern does not match."""
    before, sign, after = pattern.partition("%")
    if not sign:
        return "" if word == pattern else None
    fits = word.startswith(before) and word.endswith(after) and len(word) >= len(before) + len(after)
    return word[len(before) : len(word) - len(after)] if fits else None


def _part(words: str, kind: str) -> str:
    if kind == "D":
        return " ".join(posixpath.dirname(word) or "." for word in words.split())
    return " ".join(map(posixpath.basename, words.split())) if kind == "F" else words


def _patsubst(old: str, new: str, words: str) -> str:
    old, new = old.strip(), new.strip()
    stems = [(word, stem_of(old, word)) for word in words.split()]
    return " ".join(
        word if stem is None else new.replace("%", stem, 1) if "%" in old else new for word, stem in stems
    )


def _texts(count: int, work: Callable[..., str]) -> Callable[[Expander, str], list[Piece]]:
    def run(own: Expander, text: str) -> list[Piece]:
        given = [own.text(each) for each in arguments(text, count)]
        if len(given) != count:
            raise UntranslatableError("make", f"a function takes {count} arguments: {text[:60]}")
        return [work(*given)]

    return run


def _words(work: Callable[[list[str]], Sequence[str]]) -> Callable[[Expander, str], list[Piece]]:
    return _texts(1, lambda text: " ".join(work(text.split())))


def _filtered(patterns: str, words: str, *, keeps: bool) -> str:
    fits = [
        (word, any(stem_of(each, word) is not None for each in patterns.split())) for word in words.split()
    ]
    return " ".join(word for word, fit in fits if fit is keeps)


def _word(at: str, words: str) -> str:
    if not at.strip().isdecimal() or not int(at):
        raise UntranslatableError("make", f"`$(word {at.strip()[:20]},…)` is an error of make")
    return (words.split()[int(at) - 1 :] or [""])[0]


def _if(own: Expander, text: str) -> list[Piece]:
    parts = [*arguments(text, 3), ""]
    return own.expand(parts[1] if own.text(parts[0].strip()) else parts[2])


def _or(own: Expander, text: str) -> list[Piece]:
    return [next((found for part in arguments(text) if (found := own.text(part.strip()))), "")]


def _and(own: Expander, text: str) -> list[Piece]:
    found = [own.text(part.strip()) for part in arguments(text)]
    return [found[-1] if all(found) else ""]


def _foreach(own: Expander, text: str) -> list[Piece]:
    parts = arguments(text, 3)
    if len(parts) != 3:
        raise UntranslatableError("make", f"`$(foreach {text[:60]})` is an error of make")
    name, before = own.text(parts[0]).strip(), own.known
    found: list[Piece] = []
    try:
        for word in own.text(parts[1]).split():
            own.known = {**before, name: Variable(pieces=(word,))}
            found += [*([" "] if found else []), *own.expand(parts[2])]
    finally:
        own.known = before
    return _compact(found)


def _call(own: Expander, text: str) -> list[Piece]:
    name, *given = arguments(text)
    name = own.text(name).strip()
    if name not in own.known or own.known[name].pieces is not None or own.known[name].unknown:
        raise UntranslatableError("make", f"`$(call {name[:60]})`: make alone knows this function")
    if len(own._open) > MAX_NESTING:
        raise UntranslatableError("shape", f"the function {name} calls itself")
    words = {str(at): own.text(each) for at, each in enumerate(given, 1)}
    before, own.auto = own.auto, {**own.auto, **dict.fromkeys(map(str, range(1, 10)), ""), "0": name, **words}
    own._open.append(f"call {name}")
    try:
        return own.expand(own.known[name].text)
    finally:
        own._open.pop()
        own.auto = before


def _told(own: Expander, text: str) -> list[Piece]:
    own.expand(text)
    return [""]


FUNCTIONS: Mapping[str, Callable[[Expander, str], list[Piece]]] = {
    "subst": _texts(3, lambda old, new, text: text.replace(old, new) if old else text + new),
    "patsubst": _texts(3, _patsubst),
    "strip": _words(list),
    "findstring": _texts(2, lambda part, text: part if part in text else ""),
    "filter": _texts(2, lambda patterns, words: _filtered(patterns, words, keeps=True)),
    "filter-out": _texts(2, lambda patterns, words: _filtered(patterns, words, keeps=False)),
    "sort": _words(lambda words: sorted(set(words))),
    "word": _texts(2, _word),
    "words": _words(lambda words: [str(len(words))]),
    "firstword": _words(lambda words: words[:1]),
    "lastword": _words(lambda words: words[-1:]),
    "dir": _words(lambda words: [f"{posixpath.dirname(word).rstrip('/')}/" if "/" in word else "./" for word in words]),
    "notdir": _words(lambda words: [posixpath.basename(word) for word in words]),
    "basename": _words(lambda words: [posixpath.splitext(word)[0] for word in words]),
    "suffix": _words(lambda words: [end for word in words if (end := posixpath.splitext(word)[1])]),
    "addprefix": _texts(2, lambda part, words: " ".join(f"{part}{word}" for word in words.split())),
    "addsuffix": _texts(2, lambda part, words: " ".join(f"{word}{part}" for word in words.split())),
    "if": _if, "or": _or, "and": _and, "foreach": _foreach, "call": _call, "info": _told, "warning": _told,
}  # fmt: skip
