"""The patterns by which texts name files, apart from their words: what is filled in, modules, folders of programs."""

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
    r"(?:^|[\s;({\"'=.])(?:__import__|import_module|import|from|require|require_relative|require_once|use|include|load|source)[\s(=\"']+"
    r"([\w@./:, -]+)|[\"']([\w.]+):\w+[\"']"
)
# Settings whose values are names of modules.
_LISTED = re.compile(
    r"(?:plugins?|modules?|settings(?:_module)?|addopts|apps|backends?|hooks)[\"']?[\])]?[ \t]*[,=:][ \t]*([\[({]?)"
    r"((?(1)[^\])}]|[^\n]){0,1000})",
    re.IGNORECASE,
)
_STARTED = re.compile(
    rf"(?<![\w.-])({'|'.join(sorted(map(re.escape, LANGUAGES), key=len, reverse=True))})[\d.]*(?![\w-])([^\n|&]*)"
)
HOOKED = re.compile(
    r"\bgit\b[^\n;|&]*\b(?:commit|push|pull|merge|rebase|am|checkout|switch|revert|cherry-pick|clone|worktree)\b"
)
_BESIDE = re.compile(r"[\s,=:\"'()<>{}\[\]`]+")
_ATTACHED = re.compile(r"^(?:--?\w[\w-]*=|-[A-Za-z]|@)?(.*)$", re.DOTALL)
_APART = re.compile(r"[\s,]+")
_PATH = re.compile(
    r"\b(PATH|\w*HOME|XDG_\w+|ZDOTDIR|GCONV_PATH|PYTHONUSERBASE)=(\"[^\"\n]*\"|'[^'\n]*'|[^\s;]*)"
)
SETTINGS = (".toml", ".cfg", ".ini", ".py")
"""Endings of files whose values may be names of modules."""


def filled_in(text: str) -> str:
    """Return a text with `*` in place of what a shell replaces: variables, substitutions, braces, brackets."""
    return _FILLED.sub("*", text)


def modules_in(text: str, ending: str) -> set[str]:
    """Return the names in a text that code imports: files without their ending."""
    names = {name for pair in _IMPORTED.findall(text) for name in pair if name}
    if ending in SETTINGS:
        names.update([word for _, value in _LISTED.findall(text) for word in _BESIDE.split(value)])
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


def paths_in(text: str) -> list[tuple[str, str]]:
    """Return what a text gives to PATH, and to other variables with folders in which programs find files."""
    return [(name, value.strip("\"'")) for name, value in _PATH.findall(text)]
