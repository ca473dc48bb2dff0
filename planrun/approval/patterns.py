"""The patterns by which texts name files, apart from their words: what is filled in, modules, entries of PATH."""

from __future__ import annotations

import re
from fnmatch import translate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_FILLED = re.compile(
    r"\$'(?:[^'\\]|\\.)*'|\$\{[^{}]*\}|\$\([^()]*\)|\$\w+|\$[@*#?$!-]|`[^`]*`|[@?+*!]\([^()\s]*\)"
    r"|\{[^{}\s]*\}|\[[^\]\s]*\]"
)
_MODULES = re.compile(
    r"(?:^|[\s;({\"'])(?:import|from|require|require_relative|require_once|use|include|load|source|node|deno|bun|ruby"
    r"|perl|tsx|ts-node|-m|--module|-r|--require|--import|--loader|-p)[\s(=\"']+([\w@./:, -]+)"
)
_APART = re.compile(r"[\s,]+")
_PATH = re.compile(r"\bPATH=(\"[^\"\n]*\"|'[^'\n]*'|[^\s;]*)")


def filled_in(text: str) -> str:
    """Return a text with `*` in place of what a shell replaces: variables, substitutions, braces, brackets."""
    return _FILLED.sub("*", text)


def modules_in(text: str) -> set[str]:
    """Return the names in a text that may be those of modules, which are files without their ending."""
    return {name.replace("::", "/") for names in _MODULES.findall(text) for name in _APART.split(names)}


def fitting(patterns: Iterable[str], names: Iterable[str]) -> Iterator[str]:
    """Yield the names that fit one of some patterns."""
    fits = re.compile("|".join([translate(each) for each in patterns])).match
    return filter(fits, names)


def paths_in(text: str) -> list[str]:
    """Return the values that a text gives to PATH."""
    return [value.strip("\"'") for value in _PATH.findall(text)]
