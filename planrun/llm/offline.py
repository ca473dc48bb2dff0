"""What planrun does without a model: the complexity of a task by rules, and plans from known patterns."""

from __future__ import annotations

import re

from planrun.llm.drafts import MAX_TEXT, Draft, DraftStep, estimated
from planrun.llm.repository import commands_for_tests
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.llm.repository import Repository

if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Literal

    Level = Literal["simple", "medium", "complex"]
    Advice = Literal["not needed", "optional", "suggested"]

LEVELS: tuple[Level, ...] = ("simple", "medium", "complex")
THRESHOLD: Level = "complex"  # planning is suggested from here on
# More files, or more words, than this make a task medium or complex.
MANY_FILES: tuple[tuple[Level, int], ...] = (("complex", 3), ("medium", 1))
MANY_WORDS: tuple[tuple[Level, int], ...] = (("complex", 30), ("medium", 15))
KEYWORDS: dict[Level, tuple[str, ...]] = {
    "complex": (
        "refactor all",
        "update all",
        "add to all",
        "modify all",
        "migrate",
        "convert all",
        "restructure",
        "rewrite",
        "implement feature",
        "add system",
        "create module",
        "integrate",
        "build",
        "setup",
        "configure",
    ),
    "medium": (
        "refactor",
        "update multiple",
        "create several",
        "modify and test",
        "implement and test",
        "add and test",
        "create new",
        "build a",
        "add feature",
    ),
}
# What may stand between the words of a keyword without changing what they say.
_BETWEEN = r"\s+(?:(?:a|an|the|this|that|our|my|new)\s+){0,2}"
_NAME = re.compile(r"[\w./-]+")


class Reason(Record):
    """One finding: the rule (files, keyword, words or default), the level it speaks for, and what it matched."""

    rule: str
    level: Level
    matched: tuple[str, ...]
    message: str


class Complexity(Record):
    """The complexity of a text: the highest level of the rules that match, and all matches."""

    level: Level
    reasons: tuple[Reason, ...]
    words: int
    files: tuple[str, ...]

    def advice(self, threshold: Level = THRESHOLD) -> Advice:
        """Say whether a plan is suggested; from `threshold` on it is, and for a simple task it is not needed."""
        if LEVELS.index(self.level) >= LEVELS.index(threshold):
            return "suggested"
        return "optional" if self.level != "simple" else "not needed"


def classify(text: str, files: Collection[str] = ()) -> Complexity:
    """Return how much a text asks for. `files`: paths of the repository; other names with a dot count for nothing."""
    named = _files(text, files)
    words = len(text.split())
    reasons = [*_of_count("files", len(named), MANY_FILES, named), *_of_keywords(text)]
    reasons += _of_count("words", words, MANY_WORDS, ())
    if not reasons:
        reasons = [Reason(rule="default", level="simple", matched=(), message="nothing speaks for more")]
    level = max((reason.level for reason in reasons), key=LEVELS.index)
    return Complexity(level=level, reasons=tuple(reasons), words=words, files=named)


def _files(text: str, files: Collection[str]) -> tuple[str, ...]:
    """Return what names a file of the repository, by its path or its last part, each once."""
    known = set(files)
    known.update([path.rpartition("/")[2] for path in files])
    found = [match.group().removeprefix("./").rstrip(".-/") for match in _NAME.finditer(text)]
    return tuple(dict.fromkeys([name for name in found if name in known and ("." in name or "/" in name)]))


def _of_count(
    rule: str, count: int, steps: tuple[tuple[Level, int], ...], matched: tuple[str, ...]
) -> list[Reason]:
    for level, most in steps:
        if count > most:
            what = "files of this repository are named" if rule == "files" else "words"
            return [
                Reason(
                    rule=rule,
                    level=level,
                    matched=matched,
                    message=f"{count} {what}; more than {most} is {level}",
                )
            ]
    return []


def _of_keywords(text: str) -> list[Reason]:
    """Return a finding for each keyword, in the order of the tables."""
    found = []
    for level in ("complex", "medium"):
        for keyword in KEYWORDS[level]:
            words = [re.escape(word) if word != "setup" else r"set[ -]?up" for word in keyword.split()]
            pattern = re.compile(rf"(?<![\w./-]){_BETWEEN.join(words)}(?![\w/-]|\.\w)", re.IGNORECASE)
            match = pattern.search(text)
            if match:
                said = " ".join(match.group().split())
                found.append(
                    Reason(rule="keyword", level=level, matched=(said,), message=f'"{keyword}" is {level}')
                )
    return found


class Pattern(Record):
    """A name, the words that choose it, and the ids of its steps in order."""

    name: str
    words: tuple[str, ...]
    steps: tuple[str, ...]


PATTERNS = (
    Pattern(
        name="implementation",
        words=(r"implement(?:s|ed|ing)?", r"creat(?:e|es|ed|ing)", r"build(?:s|ing)?"),
        steps=("explore", "plan", "execute", "verify"),
    ),
    Pattern(
        name="fixing",
        words=(r"fix(?:es|ed|ing)?", r"bugs?", r"debug(?:s|ged|ging)?"),
        steps=("explore", "fix", "test"),
    ),
    Pattern(
        name="refactoring",
        words=(r"refactor(?:s|ed|ing)?", r"optimi[sz](?:e|es|ed|ing)"),
        steps=("explore", "plan", "execute", "test"),
    ),
    Pattern(
        name="testing",
        words=(r"tests?", r"testing"),
        steps=("explore", "write-tests", "test"),
    ),
)
DEFAULT = Pattern(name="default", words=(), steps=("analyze", "execute"))
"""Where no pattern fits: look, then do it."""

FALLBACK = ("research", "design", "code")
"""The steps of the plan that stands in for one that a model did not give."""

# Title, description, and mode of its work.
_ABSTRACT = {
    "design": ("Design the change", "Decide what changes where, and how that is checked", "design"),
    "code": ("Write the code", "Make the change as it was designed, in as few edits as it takes", "code"),
    "plan": (
        "Plan the change",
        "Decide which files change, in what order, and how each change is checked",
        "design",
    ),
    "execute": ("Make the change", "Do what the goal asks for, in as few changes as it takes", "code"),
    "fix": ("Fix it", "Find the cause, and change as little as removes it", "code"),
    "write-tests": (
        "Write the tests",
        "Add tests that fail without what the goal asks for and pass with it",
        "test",
    ),
}
# Words of a step's id or title by which it can be made concrete, and those by which it cannot be all the same.
_CONCRETE = {
    "test": frozenset(("test", "tests", "verify", "check")),
    "explore": frozenset(("explore", "analyze", "analyse", "research", "look", "inspect", "survey")),
}
_CREATIVE = frozenset(
    ("write", "add", "create", "implement", "fix", "design", "plan", "code", "update", "change")
)
_NO_TESTS = "planrun found no command that tests this project; write the one to be used under `run`"
# Words of a goal that say nothing about where to look.
_COMMON_WORDS = """
a add all an and are as at be bug build by can code create debug do does file files fix for from function get has have
how if implement in into is it its make me module must new not of on one optimize or our please refactor run should so
some test tests that the them then there they this to up use we when where which will with work write you
"""
_COMMON = frozenset(_COMMON_WORDS.split())
_MOST_WORDS = 4  # that are searched for


def pattern_of(goal: str) -> tuple[Pattern, str]:
    """Return the pattern whose word stands first in a goal, and that word; the default and "" when there is none."""
    found = []
    for pattern in PATTERNS:
        match = re.search(rf"(?<![\w-])(?:{'|'.join(pattern.words)})(?![\w-])", goal, re.IGNORECASE)
        if match:
            found.append((match.start(), pattern, match.group()))
    if not found:
        return DEFAULT, ""
    _, pattern, word = min(found, key=lambda item: item[0])
    return pattern, word


def draft_of(goal: str, repository: Repository) -> Draft:
    """Return a draft for a goal: the same one for the same goal and the same files."""
    pattern, word = pattern_of(goal)
    why = f'the word "{word}" chose it' if word else "no word of the goal chose another"
    steps: list[DraftStep] = []
    for name in pattern.steps:
        before = (steps[-1].id,) if steps else ()
        steps.append(estimated(_step(name, goal, repository).but(depends_on=before)))
    return Draft(analysis=f"planrun's own pattern for {pattern.name}; {why}.", steps=tuple(steps))


def fallback_of(goal: str, repository: Repository) -> Draft:
    """Return the plan for a model that gave none: research, which only reads, then design and code, for people."""
    steps: list[DraftStep] = []
    for name in FALLBACK:
        before = (steps[-1].id,) if steps else ()
        steps.append(estimated(_step(name, goal, repository).but(depends_on=before)))
    return Draft(analysis="planrun's own plan of three steps, since the model gave none.", steps=tuple(steps))


def expanded_of(name: str, title: str, goal: str, repository: Repository) -> Draft | None:
    """Return what does the abstract step `name` without a model; None where only a person or a model can.

    Words of its id and title choose: tests are run by the project's commands, looking around only reads.
    """
    words = set(re.findall(r"[a-z]+", f"{name} {title}".lower()))
    pattern = next((pattern for pattern, known in _CONCRETE.items() if words & known), "")
    step = _step(pattern, goal, repository) if pattern and not words & _CREATIVE else None
    if step is None or not step.run:
        return None
    return Draft(
        analysis=f"planrun's own pattern: {step.title.lower()}.", steps=(estimated(step.but(id=name)),)
    )


def _step(name: str, goal: str, repository: Repository) -> DraftStep:
    if name in ("explore", "analyze", "research"):
        return DraftStep(id=name, title="Look at what is there", run=_looking(goal, repository))
    if name in ("test", "verify"):
        found = commands_for_tests(repository)
        if not found:
            what = "Run what tests this project."
            return DraftStep(id=name, title="Run the tests", description=what, review=_NO_TESTS)
        files = ", ".join(dict.fromkeys([command.file for command in found]))
        run = "\n".join([command.run for command in found])
        return DraftStep(id=name, title="Run the tests", run=run, review=f"the commands come from {files}")
    title, what, mode = _ABSTRACT[name]
    about = f"{what}: {goal.strip()}"
    return DraftStep(id=name, title=title, description=about[:MAX_TEXT], mode=mode)


def _looking(goal: str, repository: Repository) -> str:
    """Return commands that only read: what was done last, what is not committed, and where the goal's words stand."""
    words = [f"-e {word}" for word in searched(goal)]
    if not repository.git:
        rows = ["ls -la"]
        search = "grep -r -l -i -w --exclude-dir=.git"
    else:
        rows = ["git log --oneline -n 10 || true  # there may be no commit yet", "git status --short"]
        search = "git grep -l -i -w"
    if words:
        rows.append(f"{search} {' '.join(words)} -- . || true  # nothing found is no failure")
    return "\n".join(rows)


def searched(goal: str) -> list[str]:
    """Return the words of a goal that are worth looking for: plain ones, so that no shell takes them for more."""
    words = re.findall(r"[A-Za-z][A-Za-z0-9_]{2,39}", goal)
    choosing = re.compile("|".join([word for pattern in PATTERNS for word in pattern.words]), re.IGNORECASE)
    named = dict.fromkeys(
        [word for word in words if word.lower() not in _COMMON and not choosing.fullmatch(word)]
    )
    return sorted(named, key=lambda word: -len(word))[:_MOST_WORDS]
