"""Find the words of a step that name reviewed scripts: it runs their copies instead of the files in the workspace."""

from __future__ import annotations

import os

from planrun.actions.render import brief
from planrun.model.job import Script
from planrun.model.record import Record
from planrun.plan.yaml.file import hash_of
from planrun.risk.actions import reads_bash
from planrun.risk.classifier import Setting
from planrun.risk.scripts import Runs, runs_of, runs_of_argv

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from planrun.actions.render import Recipe
    from planrun.model.plan import Step

# Programs that run a script and keep its path: their reports would name a deleted file.
_RECORDERS = frozenset(("coverage", "kcov", "bashcov", "c8", "nyc"))
_QUOTES = "\"'"


class Mention(Record):
    """A word of a step's argv that names a file of the workspace.

    `index`: of the argument, `start` and `end`: of the word in it; `path`: workspace-relative.
    """

    path: str
    index: int
    start: int
    end: int


class Copying(Record):
    """The copies that a step runs; `refusal`: the reason why it must not run at all."""

    scripts: tuple[Script, ...] = ()
    part: str = ""  # of the fingerprint, preceded by a blank
    refusal: str = ""


def runs(step: Step, recipe: Recipe, workspace: str) -> Runs:
    """Return what a step runs by its words."""
    workdir = recipe.workdir
    folder = os.path.relpath(os.path.join(workspace, workdir), workspace) if workdir else "."
    setting = Setting(cwd="" if folder == "." else folder, workspace=workspace)
    if not step.action.is_script:
        return runs_of_argv(recipe.argv, setting)
    return runs_of(recipe.argv[-1], setting) if reads_bash(recipe.argv[:-1]) else Runs()


def mentioned(step: Step, recipe: Recipe, found: Runs) -> tuple[Mention, ...]:
    """Return the words of a step that name workspace files that it runs."""
    if step.action.is_script:
        last = len(recipe.argv) - 1
        return tuple(
            [Mention(path=each.path, index=last, start=each.start, end=each.end) for each in found.scripts]
        )
    return tuple(
        [
            Mention(path=each.path, index=each.start, start=0, end=len(recipe.argv[each.start]))
            for each in found.scripts
        ]
    )


class Copies:
    """The scripts that a run keeps in `folder`; `known`: their sha256 by workspace-relative path."""

    def __init__(self, folder: str, workspace: str, known: Mapping[str, str]) -> None:
        self._folder = folder
        self._workspace = workspace
        self._known = known
        self._bases = {path.rpartition("/")[2] for path in known}

    def _programs(self, text: str) -> set[str]:
        """Return the programs in a text that does not say in full what it runs."""
        named = [path for path in self._known if path.rpartition("/")[2] in text]
        return {path for path in named if os.access(os.path.join(self._workspace, path), os.X_OK)}

    def of(self, step: Step, recipe: Recipe) -> Copying:
        """Return the copies that an attempt runs."""
        text = "\n".join(recipe.argv)
        if not any(base in text for base in self._bases):
            return Copying()
        known = runs(step, recipe, self._workspace)
        found = mentioned(step, recipe, known)
        words: dict[str, list[tuple[int, int, int, int]]] = {}
        compared = set() if known.understood and not known.unsaid else self._programs(text)
        at_word: dict[tuple[int, int], list[Mention]] = {}
        for mention in found:
            at_word.setdefault((mention.index, mention.start), []).append(mention)
        for mentions in at_word.values():
            places = [self._place(mention, recipe) for mention in mentions]
            if all(place is not None for place in places):
                for mention, place in zip(mentions, places, strict=True):
                    assert place is not None
                    words.setdefault(mention.path, []).append(place)
            else:  # it was reviewed in one folder and is missing in another, or the spelling of the word is unusual
                compared |= {mention.path for mention in mentions if mention.path in self._known}
        compared.difference_update(words)
        names = sorted({*words, *compared})
        return Copying(
            scripts=tuple(
                [self._script(path, tuple(places), step.action.is_script) for path, places in words.items()]
            ),
            part=f" scripts:{brief([(name, self._known[name]) for name in names])}" if names else "",
            refusal=self._changed(sorted(compared)),
        )

    def _script(self, path: str, words: tuple[tuple[int, int, int, int], ...], in_text: object) -> Script:
        digest = self._known[path]
        return Script(
            source=os.path.join(self._folder, digest),
            sha256=digest,
            file=os.path.join(self._workspace, path),
            name=path,
            words=words,
            kind="text" if in_text else "argument",
        )

    def _place(self, mention: Mention, recipe: Recipe) -> tuple[int, int, int, int] | None:
        """Return the start of a word and of its last component; None when the copy cannot be named there."""
        digest = self._known.get(mention.path, "")
        argv = recipe.argv
        records = not _RECORDERS.isdisjoint([word.rpartition("/")[2] for word in " ".join(argv).split()])
        if records or not digest or not os.path.lexists(os.path.join(self._folder, digest)):
            return None
        word = recipe.argv[mention.index][mention.start : mention.end]
        at = word.rstrip(_QUOTES).rfind("/") + 1
        if not at:
            at = len(word) - len(word.lstrip(_QUOTES))
        # No quote is open before it: the copy's name begins there, in the same quotes.
        if word[at:].rstrip(_QUOTES).replace("\\", "") != os.path.basename(mention.path):
            return None
        return mention.index, mention.start, mention.end, mention.start + at

    def _changed(self, paths: list[str]) -> str:
        changed = [
            path for path in paths if hash_of(os.path.join(self._workspace, path)) != self._known[path]
        ]
        if not changed:
            return ""
        return (
            f"{' and '.join(changed)} changed after it was reviewed, and the step names it in a way in which no copy "
            "can be run instead"
        )
