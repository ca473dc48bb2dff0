"""Where a step, a parameter or a file is defined, where it is used, and what a new name changes."""

from __future__ import annotations

import os
import re
import time

from lsprotocol import types

from planrun.errors import InvalidInput
from planrun.lsp.analysis import Analysis, from_disk
from planrun.lsp.names import at_place
from planrun.lsp.uris import uri_of
from planrun.plan.readers import SHIPPED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from planrun.lsp.names import Name


MOST_PLANS = 200
"""Files that are read as plans."""
_MOST_NAMES = 50_000  # of files and folders that are looked at
_LARGEST = 1 << 20  # bytes of a file
_LIMIT = 2.0  # seconds
_NOT_OURS = frozenset(("node_modules", "venv", "__pycache__", "dist", "build", "target", "vendor"))


def plans_with(word: str, folder: str, encoding: str, besides: frozenset[str]) -> Iterator[Analysis]:
    """Yield the YAML files below a folder that contain a word, but not those that are known."""
    found = 0
    until = time.monotonic() + _LIMIT
    for path in _yaml_files(folder):
        if found >= MOST_PLANS or time.monotonic() > until:
            return
        if path in besides or not _contains(path, word.encode()):
            continue
        analysis = from_disk(path, encoding)
        if analysis is not None:
            found += 1
            yield analysis


def _yaml_files(root: str) -> Iterator[str]:
    """Yield files of the folder, without hidden folders and those of tools; through no link."""
    looked = 0
    for folder, folders, files in os.walk(root):
        folders[:] = sorted([name for name in folders if name[0] != "." and name not in _NOT_OURS])
        looked += len(folders) + len(files)
        if looked > _MOST_NAMES:
            return
        for name in sorted(files):
            if name.endswith((".yml", ".yaml")):
                yield os.path.join(folder, name)


def _contains(path: str, word: bytes) -> bool:
    try:
        if os.path.getsize(path) > _LARGEST:
            return False
        with open(path, "rb") as file:
            return word in file.read()
    except OSError:
        return False


_STEP = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
_PARAM = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_FILES = ("uses", "extends", "template", "env_file")
_TEMPLATES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "templates")


class Files:
    """A document, and the files that make one plan with it: those that it extends, and those that extend one of them.

    Of the last kind, those that are open are known, and those in `folder`, if one is given.
    """

    def __init__(self, here: Analysis, opened: Sequence[Analysis], *, folder: str = "") -> None:
        known = {each.path: each for each in opened}
        self._others = [each for each in opened if each is not here]
        self._users: list[Analysis] = []  # plans that may use one of them
        self._own = [here]
        for path in here.bases:
            found = known.get(path) or from_disk(path, here.text.encoding)
            if found is not None:
                self._own.append(found)
        if folder:
            names = frozenset([*known, *[each.path for each in self._own]])
            self._others += plans_with("extends", folder, here.text.encoding, names)
            self._users = [*plans_with("uses", folder, here.text.encoding, names), *opened]

    def of(self, wanted: Name) -> list[Analysis]:
        """Return the files in which a name means the same: where it is defined first, and all that extend that."""
        defining = [place for place, each in enumerate(self._own) if _defines(each, wanted)]
        own = self._own[: defining[-1] + 1] if defining else self._own
        first = own[-1].path
        paths = {each.path for each in own}
        return [*own, *[each for each in self._others if first in each.bases and each.path not in paths]]

    def named(self, wanted: Name) -> Iterator[tuple[Analysis, Name]]:
        """Yield each place of a name, with the file that it is in."""
        for analysis in self.of(wanted):
            for name in analysis.names:
                if (name.what, name.name) == (wanted.what, wanted.name):
                    yield analysis, name

    def passing(self, wanted: Name) -> Iterator[tuple[Analysis, Name]]:
        """Yield each place where another plan that was searched for passes a parameter."""
        paths = {each.path for each in self.of(wanted)} if wanted.what == "param" else set()
        for analysis in self._users if paths else ():
            for path, name in analysis.passed:
                if path in paths and name.name == wanted.name:
                    yield analysis, name


def _defines(analysis: Analysis, wanted: Name) -> bool:
    about = (wanted.what, wanted.name)
    return any(name.is_definition and (name.what, name.name) == about for name in analysis.names)


def definition(here: Analysis, files: Files, line: int, col: int) -> list[types.Location]:
    """Return where the step or parameter at a place is defined, or the file that is named there."""
    wanted = at_place(here.names, line, col)
    if wanted is not None:
        return [_location(*found) for found in files.named(wanted) if found[1].is_definition]
    path = _file_at(here, line, col)
    if not path:
        return []
    start = types.Position(0, 0)
    return [types.Location(uri_of(path), types.Range(start, start))]


def references(
    here: Analysis, files: Files, place: tuple[int, int], *, declared: bool
) -> list[types.Location]:
    """Return all places that refer to the step or parameter at a place; `declared`: and where it is defined."""
    wanted = at_place(here.names, *place)
    if wanted is not None:
        return [_location(*found) for found in files.named(wanted) if declared or not found[1].is_definition]
    path = _file_at(here, *place)
    return [
        types.Location(uri_of(here.path), here.text.word_span(spot.node.line, spot.node.col))
        for spot in here.tree.texts()
        if path and spot.path and here.beside(str(spot.node.value)) == path
    ]


def renamable(here: Analysis, line: int, col: int) -> types.Range | None:
    """Return the range of the name at a place; None where nothing can be renamed."""
    wanted = at_place(here.names, line, col)
    return here.text.span(wanted.line, wanted.col, wanted.length) if wanted is not None else None


def renamed(here: Analysis, files: Files, place: tuple[int, int], new: str) -> types.WorkspaceEdit:
    """Return the edits that give the step or parameter at a place another name; raises InvalidInput."""
    wanted = at_place(here.names, *place)
    if wanted is None:
        raise InvalidInput("only steps and parameters can be renamed, and there is none here")
    _check(wanted, new, files)
    changes: dict[str, list[types.TextEdit]] = {}
    for analysis, name in (*files.named(wanted), *files.passing(wanted)):
        changes.setdefault(uri_of(analysis.path), []).append(_edit(analysis, name, new))
    return types.WorkspaceEdit(changes=changes)


def _check(wanted: Name, new: str, files: Files) -> None:
    form, noun = (_STEP, "step") if wanted.what == "step" else (_PARAM, "parameter")
    if not form.fullmatch(new):
        raise InvalidInput(f'"{new}" cannot be the name of a {noun}: letters, digits and _ are allowed')
    for analysis in files.of(wanted):
        for name in analysis.names:
            taken = name.what == wanted.what and name.is_definition and name.name != wanted.name
            if taken and name.name.casefold() == new.casefold():
                raise InvalidInput(f'there is a {noun} "{name.name}" already, in line {name.line}')
            is_word = (name.what, name.name, name.form) == (wanted.what, wanted.name, "word")
            if is_word and not (new.isidentifier() and new.isascii()):
                raise InvalidInput(
                    f"line {name.line} of {analysis.path} reads `step_{name.name}_…`, which cannot have this name; "
                    f"write `steps.{name.name}.status == …` there first"
                )


def _edit(analysis: Analysis, name: Name, new: str) -> types.TextEdit:
    if name.form == "dot" and not (new.isidentifier() and new.isascii()):
        # `steps.old` becomes `steps['new-name']`: the dot goes as well.
        place = analysis.text.span(name.line, name.col - 1, name.length + 1)
        return types.TextEdit(place, f"[{name.quote}{new}{name.quote}]")
    return types.TextEdit(analysis.text.span(name.line, name.col, name.length), new)


def _location(analysis: Analysis, name: Name) -> types.Location:
    return types.Location(uri_of(analysis.path), analysis.text.span(name.line, name.col, name.length))


def _file_at(here: Analysis, line: int, col: int) -> str:
    """Return the path of the file that is named at a place; empty where there is none."""
    spot = here.tree.at(line, col)
    if spot is None or spot.is_key or spot.node.line != line:
        return ""
    key = next((step for step in reversed(spot.path) if isinstance(step, str)), "")
    if key not in _FILES:
        return ""
    name = str(spot.node.value)
    places = [here.beside(name)]
    if key == "template" and "/" not in name:
        folder = os.path.join(os.getcwd(), "plans", "templates")
        places += [os.path.join(folder, name + end) for end in ("", ".yml", ".yaml")]
        places.append(os.path.join(_TEMPLATES, name.removeprefix(SHIPPED) + ".yml"))
    return next((path for path in places if os.path.isfile(path)), "")
