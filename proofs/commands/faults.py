"""Faults to plant into the classifier, and what is to find each."""

from __future__ import annotations

import re
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any
from unittest import mock

from planrun.risk import classifier, commands, options, paths, scope, table, words
from planrun.risk import paths as environment
from planrun.risk.levels import READ_ONLY, Finding

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from planrun.risk.classifier import Command, Risk
    from planrun.risk.options import Option
    from planrun.risk.words import Arg

    Planted = AbstractContextManager[object]

_classify, _command, _read_options = classifier.classify, classifier._command, options.read_options
_use_of, _joined = table.use_of, paths._joined


def _reading(change: Callable[[str], str]) -> Callable[[], Planted]:
    """Have the classifier read another text than bash does."""
    return lambda: mock.patch.object(classifier, "classify", lambda text: _classify(change(text)))


def _answering(place: object, name: str, answer: object) -> Callable[[], Planted]:
    """Have a question always answered in the same way."""
    return lambda: mock.patch.object(place, name, return_value=answer)


def _first_only(text: str) -> Risk:
    risk = _classify(text)
    return risk.but(level=risk.commands[0].level) if risk.commands else risk


class _Everything(dict[str, Any]):
    """Options of which every one is known, and takes no value."""

    def get(self, key: str, default: object = None) -> object:
        del default
        return super().get(key, ("", "", "", ""))


class _Beginnings(dict[str, Any]):
    """Options that are known by their beginnings, too, and whose value then nobody looks at."""

    def get(self, key: str, default: object = None) -> object:
        begun = key.startswith("--") and any(name.startswith(key) for name in self)
        return super().get(key, ("[", "text", "", "") if begun else default)


def _knowing(kind: type[dict[str, Any]]) -> Callable[[], Planted]:
    def read(known: dict[str, Option], style: str, given: list[Arg], reader: Any, *, rest: bool) -> list[Arg]:
        return _read_options(kind(known), style, given, reader, rest=rest)

    return lambda: mock.patch.object(table, "read_options", read)


def _not_up(base: list[str], path: str) -> str | None:
    return _joined(base, "/".join(part for part in path.split("/") if part != ".."))


def _no_rest(*given: Any) -> object:
    use = _use_of(*given)
    use.rest = None
    return use


def _without_last(*given: Any) -> Command:
    command = _command(*given)
    return command.but(words=command.words[:-1] if len(command.words) > 1 else command.words)


FAULTS: dict[str, Callable[[], Planted]] = {
    "": nullcontext,
    "a carriage return is a blank": _reading(lambda text: text.replace("\r", " ")),
    "& is a blank": _reading(lambda text: re.sub(r"(?<![&<>|])&(?![&>])", " ", text)),
    "quotes quote nothing": _reading(lambda text: text.replace("'", "")),
    "a backslash and a newline are a blank": _reading(lambda text: text.replace("\\\n", " ")),
    "comments are commands": _reading(lambda text: text.replace("#", ";")),
    "only the first command counts": lambda: mock.patch.object(classifier, "classify", _first_only),
    "redirections do nothing": _answering(
        commands, "_redirection", Finding(level=READ_ONLY, reason="does nothing")
    ),
    "substitutions run nothing": _answering(scope, "commands_in", []),
    "variables change nothing": _answering(environment, "harm", ""),
    "no variable holds a secret": _answering(words, "smells_of_secret", False),
    "no file holds a secret": _answering(paths, "looks_secret", False),
    "no file controls anything": _answering(paths, "control", False),
    ".. leads nowhere": lambda: mock.patch.object(paths, "_joined", _not_up),
    "every option is known": _knowing(_Everything),
    "options are known by their beginnings": _knowing(_Beginnings),
    "programs start no programs": lambda: mock.patch.object(commands, "use_of", _no_rest),
    "the last word is not told": lambda: mock.patch.object(classifier, "_command", _without_last),
}
"""Faults to plant; the empty name is planrun as it is."""
CAUGHT_BY = {
    **dict.fromkeys(list(FAULTS)[1:], "rows"),
    "quotes quote nothing": "bash",
    "a backslash and a newline are a blank": "bash",
    "comments are commands": "bash",
    "programs start no programs": "mutations",
    "the last word is not told": "grammar",
}
"""By what each is found."""
