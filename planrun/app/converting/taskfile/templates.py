"""The templates of Taskfiles, `{{.NAME}}`: the few forms that say which value stands there."""

from __future__ import annotations

import re

from planrun.app.converting.findings import UntranslatableError
from planrun.model.record import Record

_BRACES = re.compile(r"\{\{(-?)(.*?)(-?)\}\}", re.DOTALL)
_TEXT = r'"(?:[^"\\]|\\.)*"|`[^`]*`'
_NAMED = re.compile(r"\.([A-Za-z_]\w*(?:\.\w+)*)\Z")
_PIPED = re.compile(rf"\.([A-Za-z_]\w*)\s*\|\s*default\s+({_TEXT}|\.\w+|[\w.]+)\Z")
_CALLED = re.compile(rf"default\s+({_TEXT}|\.\w+|[\w.]+)\s+\.([A-Za-z_]\w*)\Z")
_MACHINE = {"OS": "linux", "ARCH": "amd64", "exeExt": "", "numCPU": ""}


class Reference(Record):
    """A value that a template asks for, by its name; `otherwise` stands where it is empty, None for nothing."""

    name: str
    otherwise: str | None = None


def pieces_of(text: str) -> list[str | Reference]:
    """Return the texts and references of a template; raises UntranslatableError for any other form."""
    found: list[str | Reference] = []
    at = 0
    trims = False
    for match in _BRACES.finditer(text):
        before = text[at : match.start()]
        before = before.lstrip() if trims else before
        found.append(before.rstrip() if match[1] else before)
        found.append(_read(match[2].strip()))
        trims = bool(match[3])
        at = match.end()
    rest = text[at:]
    found.append(rest.lstrip() if trims else rest)
    return [piece for piece in found if piece != ""]


def _read(inner: str) -> str | Reference:
    if match := _NAMED.match(inner):
        return Reference(name=match[1])
    if match := _PIPED.match(inner):
        return Reference(name=match[1], otherwise=_literal(match[2]))
    if match := _CALLED.match(inner):
        return Reference(name=match[2], otherwise=_literal(match[1]))
    if re.fullmatch(_TEXT, inner):
        return _literal(inner)
    if inner in ("OS", "ARCH", "exeExt"):
        return _MACHINE[inner]
    if inner.startswith("/*") and inner.endswith("*/"):
        return ""
    raise UntranslatableError("template", f"`{{{{{' '.join(inner.split())}}}}}` is worked out by go-task")


def _literal(word: str) -> str:
    if word.startswith("."):
        raise UntranslatableError("template", f"a default that is another variable: `{word}`")
    if word.startswith('"'):
        return word[1:-1].replace('\\"', '"').replace("\\\\", "\\")
    return word.strip("`")
