"""What the words of a command are once bash has expanded them, as far as that is certain before it runs."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from planrun.risk.tokens import Part, Token, Word

HOME = "\ue010"
"""Stands in a value for the home folder, whatever it is."""
PRINTED = "/dev/fd/63"
"""Stands for `<(…)`: a file that holds what commands print, as bash names it."""
_TAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/@:+,=-" + HOME)
_SECRET = (
    *("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "PRIVATE", "COOKIE", "SESSION"),
)  # fmt: skip
_SECRET_WORDS = frozenset(
    ("PAT", "PWD_DB", "PASS", "AUTH", "DSN", "APIKEY", "CREDS", "CERT", "JWT", "WEBHOOK")
)


class Arg:
    """One word after expansion.

    `value`: its text, None when that is not known; `trouble`: why it may be anything, "" when it is one known or
    unknown word; `glob`: whether the text is a pattern that bash replaces by the names of files.
    """

    __slots__ = ("end", "glob", "start", "trouble", "value")

    def __init__(self, value: str | None, span: tuple[int, int]) -> None:
        self.value = value
        self.start, self.end = span
        self.glob = False
        self.trouble = ""


def names_in(text: str) -> frozenset[str]:
    """Return the words of a text, for tables that are read as one."""
    return frozenset(text.split())


def smells_of_secret(name: str) -> bool:
    """Whether a variable's name says that its value is a secret."""
    upper = name.upper()
    return any(part in upper for part in _SECRET) or bool(_SECRET_WORDS & set(upper.split("_")))


def literal(value: str) -> Arg:
    """Return a word that stands for itself."""
    return Arg(value, (-1, -1))


def expand(word: Word, names: Mapping[str, str]) -> Arg:
    """Return a word after expansion; `names` are the variables whose values are known."""
    arg = Arg(None, (word.start, word.end))
    _fill(arg, word.parts, names)
    if not arg.trouble:
        arg.trouble = _braces(word.parts)
    if arg.trouble:
        arg.value = None
    return arg


def expand_parts(parts: Sequence[Part], names: Mapping[str, str]) -> Arg:
    """Return what the body of a here-document is after expansion."""
    arg = Arg(None, (-1, -1))
    _fill(arg, parts, names)
    return arg


def commands_in(parts: Sequence[Part]) -> list[list[Token]]:
    """Return the tokens of every substitution in a word."""
    return [value for kind, value, _ in parts if kind in ("command", "file")]


def _fill(arg: Arg, parts: Sequence[Part], names: Mapping[str, str]) -> None:
    known: list[str] = []
    certain = True
    for kind, value, quoted in parts:
        if kind == "text":
            known.append(value)
        elif kind == "glob":
            arg.glob = True
            known.append(value)
        elif kind == "home":
            known.append(HOME)
        elif kind == "file":
            known.append(PRINTED)
        elif kind == "name":
            found = _variable(arg, value, names, quoted=quoted)
            certain = certain and found is not None
            known.append(found or "")
        else:
            certain = False
            if kind == "strange":
                arg.trouble = arg.trouble or value
            elif kind == "command" and not quoted:
                arg.trouble = arg.trouble or "a substitution without quotes, which may be several words"
    arg.value = "".join(known) if certain else None


def _variable(arg: Arg, name: str, names: Mapping[str, str], *, quoted: bool) -> str | None:
    value = names.get(name)
    if value is not None and (quoted or (value and _TAME.issuperset(value))):
        return value
    if value is not None:
        arg.trouble = arg.trouble or f"${name}: its value is split into words, for want of quotes"
    elif smells_of_secret(name):
        arg.trouble = arg.trouble or f"${name}: by its name a secret"
    elif not quoted:
        arg.trouble = arg.trouble or f"${name}: an unknown value, which may be several words"
    return None


def _braces(parts: Sequence[Part]) -> str:
    """Say what bash would make of unquoted braces and tildes inside a word; "" when it leaves them alone."""
    bare = "".join(value for kind, value, quoted in parts if kind == "text" and not quoted)
    if "{" in bare:
        after = "".join(value if kind in ("text", "glob") else "," for kind, value, _ in parts).partition(
            "{"
        )[2]
        if "," in after or ".." in after:
            return "braces, which bash makes several words of"
    if "~" in bare:
        whole = "".join(value if kind in ("text", "glob") else " " for kind, value, _ in parts)
        if "=~" in whole or ":~" in whole:
            return "~: the home folder inside a word"
    return ""
