"""Variables and functions of make, as far as they are known without running make."""

from __future__ import annotations

import posixpath
import re

from planrun.convert.reader import UntranslatableError
from planrun.convert.recipes.scripts import NAME, SAFE, DynamicError, Param, Piece, Read, plain, script_of
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from planrun.convert.draft import DraftPlan
    from planrun.convert.reader import Findings
    from planrun.plan.yaml.node import Node

BUILT_IN = {
    "CC": "cc", "CXX": "g++", "CPP": "cc -E", "AR": "ar", "LD": "ld", "AS": "as", "RM": "rm -f", "MAKE": "make",
    "LEX": "lex", "YACC": "yacc", "ARFLAGS": "rv", "SHELL": "/bin/sh", "MAKEFLAGS": "", "MAKEFILE_LIST": "Makefile",
    "MAKECMDGOALS": "", "MAKELEVEL": "0", "FC": "f77", "COMMA": ",",
}  # fmt: skip
_MACHINE = {"uname": "Linux", "uname -s": "Linux", "uname -o": "GNU/Linux"}
MAX_NESTING = 40
MAX_TEXT = 100_000
MAX_EXPANDED = 200_000  # texts of one file


class Variable(Record):
    """A variable: its text as it stands, or the pieces that it was when it was read; `unknown`: why it is not known."""

    text: str = ""
    unknown: str = ""
    pieces: tuple[Piece, ...] | None = None
    place: Node | None = None


class Expander:
    """Fills in variables; `auto` are those of the recipe that is read."""

    def __init__(self, plan: DraftPlan, found: Findings, place: Node) -> None:
        self.plan = plan
        self.found = found
        self.place = place
        self.known: dict[str, Variable] = {}
        self.auto: Mapping[str, str] = {}
        self.is_recipe = False  # whether a shell reads what is expanded
        self._count = 0
        self._expanded = 0
        self._open: list[str] = []

    def text(self, text: str, what: str) -> str:
        """Return a text that is known now; raises DynamicError."""
        before, self.is_recipe = self.is_recipe, False
        try:
            return plain(self.expand(text), what)
        finally:
            self.is_recipe = before

    def expand(self, text: str) -> list[Piece]:
        """Return a text with everything filled in; raises UntranslatableError."""
        self._expanded += 1
        if self._expanded > MAX_EXPANDED:
            raise UntranslatableError("too-large", "too many texts have to be filled in")
        found: list[Piece] = []
        at = 0
        while True:
            dollar = text.find("$", at)
            if dollar < 0 or dollar == len(text) - 1:
                found.append(text[at:])
                break
            found.append(text[at:dollar])
            sign = text[dollar + 1]
            if sign == "$":
                found.append("$")
                at = dollar + 2
            elif sign in "({":
                end = _closing(text, dollar + 1)
                found += self._reference(text[dollar + 2 : end])
                at = end + 1
            else:
                found += self._variable(sign)
                at = dollar + 2
        if sum(len(piece) for piece in found if isinstance(piece, str)) > MAX_TEXT:
            raise UntranslatableError("shape", "a text becomes too long")
        return _compact(found)

    def _reference(self, inside: str) -> list[Piece]:
        word = re.match(r"\s*([a-z-]+)(?:\s+|$)", inside)
        if word and word[1] in _FUNCTIONS and (word.end() < len(inside) or word[1] == "call"):
            return _FUNCTIONS[word[1]](self, inside[word.end() :])
        name, colon, change = inside.partition(":")
        if colon and "=" in change and "$" not in name:
            old, _, new = change.partition("=")
            if "%" not in old:
                old, new = f"%{old}", f"%{new}"
            return [_patsubst(self.text(old, name), self.text(new, name), self._plain(name))]
        return self._variable(self.text(inside, "a name").strip())

    def _plain(self, name: str) -> str:
        before, self.is_recipe = self.is_recipe, False
        try:
            return plain(self._variable(name), name)
        finally:
            self.is_recipe = before

    def _variable(self, name: str) -> list[Piece]:
        base, kind = (name[:-1], name[-1]) if len(name) == 2 and name[1] in "DF" else (name, "")
        if base in self.auto:
            return [_part(self.auto[base], kind)]
        if base in ("@", "<", "^", "+", "?", "*", "%", "|"):
            raise DynamicError(f"`${name}` is known to make alone")
        variable = self.known.get(name)
        if variable is None:
            return self._unknown(name)
        if variable.unknown:
            raise DynamicError(f"`{name}`: {variable.unknown}")
        if variable.pieces is not None:
            return self._param(name, list(variable.pieces), is_whole=True)
        if name in self._open or len(self._open) > MAX_NESTING:
            raise UntranslatableError("shape", f"the variable {name} is made of itself")
        self._open.append(name)
        try:
            return self._param(name, self.expand(variable.text), is_whole="$" not in variable.text)
        finally:
            self._open.pop()

    def _param(self, name: str, pieces: list[Piece], *, is_whole: bool) -> list[Piece]:
        """Return a variable as a parameter where a script takes its value."""
        if (
            len(pieces) == 1
            and isinstance(pieces[0], Read)
            and NAME.match(name)
            and pieces[0].name.startswith("SHELL_")
        ):
            own = pieces[0].name
            return [
                Read(
                    name=name,
                    lines=tuple(
                        f"{name}{line.removeprefix(own)}" if line.startswith(f"{own}=") else line
                        for line in pieces[0].lines
                    ),
                )
            ]
        if not self.is_recipe or not is_whole or not all(isinstance(piece, str) for piece in pieces):
            return pieces
        text = "".join(str(piece) for piece in pieces)
        if not SAFE.match(text) or not NAME.match(name):
            if text:
                message = (
                    f"the variable {name} is written into the plan as its text, and cannot be given to a run"
                )
                self.found.differs("variable", message, self.place)
            return pieces
        self.plan.params.setdefault(name, {"type": "string", "default": text})
        return [Param(name=name, text=text)]

    def _unknown(self, name: str) -> list[Piece]:
        if name in ("CURDIR", "PWD"):
            return [Read(name="PLANRUN_WORKSPACE")]
        if name in BUILT_IN:
            return [BUILT_IN[name]]
        if not NAME.match(name):
            return [""]
        if not self.is_recipe:
            message = (
                f"{name} is set nowhere in the file: it is taken as empty where it decides what the file says"
            )
            self.found.differs("unset", message, self.place)
            return [""]
        self.found.differs(
            "env-vars", f"{name} is set nowhere in the file: it is a variable of the environment", self.place
        )
        return [Read(name=name)]

    def shell(self, command: list[Piece]) -> list[Piece]:
        """Return the output of a command: known for some, otherwise a variable of the shell."""
        text = "".join(piece for piece in command if isinstance(piece, str)).strip()
        text = re.sub(r"\s*2>\s*/dev/null\s*", "", text)
        if text in _MACHINE and all(isinstance(piece, str) for piece in command):
            self.found.differs("machine", f"`{text}` is taken to be {_MACHINE[text]}", self.place)
            return [_MACHINE[text]]
        self._count += 1
        name = f"SHELL_{self._count}"
        before, self.is_recipe = self.is_recipe, True
        lines = [line for piece in command if isinstance(piece, Read) for line in piece.lines]
        self.is_recipe = before
        self.found.differs(
            "shell-function",
            "`$(shell …)` runs in each step that reads it, and keeps its line breaks",
            self.place,
        )
        return [Read(name=name, lines=(*lines, f'{name}="$({script_of(command).strip()})"'))]


def _compact(pieces: Sequence[Piece]) -> list[Piece]:
    found: list[Piece] = []
    for piece in pieces:
        if isinstance(piece, str) and found and isinstance(found[-1], str):
            found[-1] += piece
        elif piece != "" or not found:
            found.append(piece)
    if len(found) > 1 and found[0] == "":
        found = found[1:]
    return found


def _closing(text: str, start: int) -> int:
    """Return where the bracket at a place is closed; raises UntranslatableError."""
    opening, closing = text[start], ")" if text[start] == "(" else "}"
    depth = 0
    for at in range(start, len(text)):
        if text[at] == opening:
            depth += 1
        elif text[at] == closing:
            depth -= 1
            if not depth:
                return at
    raise UntranslatableError("shape", f"a bracket is not closed: {text[:80]}")


def arguments(text: str, most: int = 99) -> list[str]:
    """Return the arguments of a function; commas in brackets do not part them."""
    found: list[str] = []
    depth = start = 0
    for at, char in enumerate(text):
        if char in "({":
            depth += 1
        elif char in ")}":
            depth -= 1
        elif char == "," and not depth and len(found) < most - 1:
            found.append(text[start:at])
            start = at + 1
    return [*found, text[start:]]


def _part(words: str, kind: str) -> str:
    if kind == "D":
        return " ".join(posixpath.dirname(word) or "." for word in words.split())
    return " ".join(posixpath.basename(word) for word in words.split()) if kind == "F" else words


def stem_of(pattern: str, word: str) -> str | None:
    """Return what `%` stands for in a word; None where the pattern does not match."""
    before, sign, after = pattern.partition("%")
    if not sign:
        return "" if word == pattern else None
    fits = word.startswith(before) and word.endswith(after) and len(word) >= len(before) + len(after)
    return word[len(before) : len(word) - len(after)] if fits else None


def _patsubst(old: str, new: str, words: str) -> str:
    found = []
    for word in words.split():
        stem = stem_of(old.strip(), word)
        found.append(
            word if stem is None else new.strip().replace("%", stem, 1) if "%" in old else new.strip()
        )
    return " ".join(found)


def _of_words(work: Callable[[list[str]], Sequence[str]]) -> Callable[[Expander, str], list[Piece]]:
    return lambda own, text: [" ".join(work(own.text(text, "a function").split()))]


def _of_texts(count: int, work: Callable[..., str]) -> Callable[[Expander, str], list[Piece]]:
    def run(own: Expander, text: str) -> list[Piece]:
        given = [own.text(each, "a function") for each in arguments(text, count)]
        if len(given) != count:
            raise UntranslatableError(
                "function", f"a function has {count} arguments, and {len(given)} are given"
            )
        return [work(*given)]

    return run


def _filtered(patterns: str, words: str, *, keeps: bool) -> str:
    return " ".join(
        word
        for word in words.split()
        if any(stem_of(pattern, word) is not None for pattern in patterns.split()) is keeps
    )


def _if(own: Expander, text: str) -> list[Piece]:
    parts = [*arguments(text, 3), ""]
    return own.expand(parts[1].strip() if own.text(parts[0], "a test").strip() else parts[2].strip())


def _either(own: Expander, text: str) -> list[Piece]:
    for part in arguments(text):
        if own.text(part, "a test").strip():
            return own.expand(part.strip())
    return [""]


def _all(own: Expander, text: str) -> list[Piece]:
    last = ""
    for part in arguments(text):
        last = part
        if not own.text(part, "a test").strip():
            return [""]
    return own.expand(last.strip())


def _foreach(own: Expander, text: str) -> list[Piece]:
    name, words, body = arguments(text, 3)
    name = own.text(name, "a name").strip()
    before = own.known.get(name)
    found: list[Piece] = []
    for word in own.text(words, "a list").split():
        own.known[name] = Variable(pieces=(word,))
        was, own.is_recipe = own.is_recipe, False
        try:
            found += [*([" "] if found else []), *own.expand(body)]
        finally:
            own.is_recipe = was
    if before is None:
        own.known.pop(name, None)
    else:
        own.known[name] = before
    return _compact(found) or [""]


def _call(own: Expander, text: str) -> list[Piece]:
    name, *given = arguments(text)
    name = own.text(name, "a name").strip()
    if name not in own.known or own.known[name].pieces is not None:
        raise UntranslatableError("function", f"`$(call {name})`: there is no such function")
    auto = dict(own.auto)
    own.auto = {
        **auto,
        "0": name,
        **{str(at): own.text(each, "an argument") for at, each in enumerate(given, 1)},
    }
    own.auto = {**{str(at): "" for at in range(1, 10)}, **own.auto}
    try:
        return own.expand(own.known[name].text)
    finally:
        own.auto = auto


def _told(_own: Expander, _text: str) -> list[Piece]:
    return [""]


def _dynamic(name: str) -> Callable[[Expander, str], list[Piece]]:
    def run(_own: Expander, text: str) -> list[Piece]:
        raise DynamicError(f"`$({name} {text[:60]})` is known to make alone")

    return run


def _sorted(words: list[str]) -> list[str]:
    return sorted(set(words))


_FUNCTIONS: Mapping[str, Callable[[Expander, str], list[Piece]]] = {
    "shell": lambda own, text: own.shell(own.expand(text)),
    "subst": _of_texts(3, lambda old, new, text: text.replace(old, new) if old else text),
    "patsubst": _of_texts(3, _patsubst),
    "strip": _of_words(list),
    "findstring": _of_texts(2, lambda part, text: part if part in text else ""),
    "filter": _of_texts(2, lambda patterns, words: _filtered(patterns, words, keeps=True)),
    "filter-out": _of_texts(2, lambda patterns, words: _filtered(patterns, words, keeps=False)),
    "sort": _of_words(_sorted),
    "word": _of_texts(
        2,
        lambda at, words: (
            (words.split() + [""] * int(at))[int(at) - 1] if at.strip().isdecimal() and int(at) else ""
        ),
    ),
    "words": _of_words(lambda words: [str(len(words))]),
    "firstword": _of_words(lambda words: words[:1]),
    "lastword": _of_words(lambda words: words[-1:]),
    "wordlist": _of_texts(3, lambda first, last, words: " ".join(words.split()[int(first) - 1 : int(last)])),
    "dir": _of_words(
        lambda words: [f"{posixpath.dirname(word)}/" if "/" in word else "./" for word in words]
    ),
    "notdir": _of_words(lambda words: [posixpath.basename(word) for word in words]),
    "basename": _of_words(lambda words: [posixpath.splitext(word)[0] for word in words]),
    "suffix": _of_words(lambda words: [posixpath.splitext(word)[1] for word in words]),
    "addprefix": _of_texts(2, lambda part, words: " ".join(f"{part}{word}" for word in words.split())),
    "addsuffix": _of_texts(2, lambda part, words: " ".join(f"{word}{part}" for word in words.split())),
    "if": _if,
    "or": _either,
    "and": _all,
    "foreach": _foreach,
    "call": _call,
    "info": _told,
    "warning": _told,
    "error": _dynamic("error"),
    "eval": _dynamic("eval"),
    "wildcard": _dynamic("wildcard"),
    "abspath": _dynamic("abspath"),
    "realpath": _dynamic("realpath"),
    "value": _dynamic("value"),
    "origin": _dynamic("origin"),
    "flavor": _dynamic("flavor"),
    "file": _dynamic("file"),
    "join": _dynamic("join"),
    "guile": _dynamic("guile"),
}
