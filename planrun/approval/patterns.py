"""The patterns by which texts name files, apart from their words: what is filled in, modules, entries of PATH."""

from __future__ import annotations

import re
from fnmatch import translate

from planrun.risk.defaults import LANGUAGES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_FILLED = re.compile(
    r"\$'(?:[^'\\]|\\.)*'|\$\{[^{}]*\}|\$\([^()]*\)|\$\w+|\$[@*#?$!-]|`[^`]*`|[@?+*!]\([^()\s]*\)"
    r"|\{[^{}\s]*\}|\[[^\]\s]*\]"
)
_IMPORTED = re.compile(
    r"(?:^|[\s;({\"'=])(?:import|from|require|require_relative|require_once|use|include|load|source)[\s(=\"']+"
    r"([\w@./:, -]+)|[\"']([\w.]+):\w+[\"']"
)
_STARTED = re.compile(
    rf"(?<![\w.-])({'|'.join(sorted(map(re.escape, LANGUAGES), key=len, reverse=True))})[\d.]*(?![\w-])([^\n;|&]*)"
)
HOOKED = re.compile(
    r"\bgit\b[^\n;|&]*\b(?:commit|push|pull|merge|rebase|am|checkout|switch|revert|cherry-pick|clone|worktree)\b"
)
_BESIDE = re.compile(r"[\s,=:\"'()<>{}\[\]`]+")
_ATTACHED = re.compile(r"^(?:--?\w[\w-]*=|-[A-Za-z]|@)?(.*)$", re.DOTALL)
_APART = re.compile(r"[\s,]+")
_PATH = re.compile(r"\bPATH=(\"[^\"\n]*\"|'[^'\n]*'|[^\s;]*)")


def filled_in(text: str) -> str:
    """Return a text with `*` in place of what a shell replaces: variables, substitutions, braces, brackets."""
    return _FILLED.sub("*", text)


def modules_in(text: str) -> set[str]:
    """Return the names in a text that code imports: files without their ending."""
    names = {name for pair in _IMPORTED.findall(text) for name in pair if name}
    return {each.replace("::", "/") for name in names for each in _APART.split(name)}


def started_in(text: str) -> set[tuple[str, str]]:
    """Return the words of a text behind programs that may take them for modules, each with an ending of a file."""
    return {
        (part.replace("::", "/"), ending)
        for program, rest in _STARTED.findall(text)
        for word in _BESIDE.split(rest)
        for part in {word, _ATTACHED.sub(r"\1", word)} - {""}
        for ending in LANGUAGES[program]
    }


def fitting(patterns: Iterable[str], names: Iterable[str]) -> Iterator[str]:
    """Yield the names that fit one of some patterns."""
    fits = re.compile("|".join([translate(each) for each in patterns])).match
    return filter(fits, names)


def paths_in(text: str) -> list[str]:
    """Return the values that a text gives to PATH."""
    return [value.strip("\"'") for value in _PATH.findall(text)]
