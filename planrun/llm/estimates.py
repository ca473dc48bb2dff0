"""How many tokens a model would need for a step, where nobody said: a table by what the step is about, no model."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.llm.drafts import DraftStep

ANALYSIS, READING, EDITING, TESTS = 2000, 3000, 4000, 1000  # tokens by kind of work
_WORDS = {
    ANALYSIS: "analy[sz]e|analysis|plan|decide|review|understand|design",
    READING: "read|explore|inspect|look|search|find",
    EDITING: "write|edit|chang|fix|implement|creat|add|refactor|rewrit|updat|remov|execut|build|optimi[sz]",
    TESTS: "tests?|verif(?:y|ication)|check",
}
_PATTERN = re.compile(
    r"\b(?:"
    + "|".join([f"(?P<t{tokens}>(?:{words})(?:e|es|s|ed|ing)?)" for tokens, words in _WORDS.items()])
    + r")\b",
    re.IGNORECASE,
)


def tokens_of(step: DraftStep) -> int:
    """Return the estimate of a step: what its author says, 0 for a command, which needs no model, else the table's.

    The first word of the table decides, in the id, then the title, then the description; without one it is ANALYSIS.
    """
    if step.estimated_tokens or step.run:
        return step.estimated_tokens
    for text in (re.sub(r"[-_.]", " ", step.id), step.title, step.description):
        found = _PATTERN.search(text)
        if found and found.lastgroup:
            return int(found.lastgroup[1:])
    return ANALYSIS


def estimated(step: DraftStep) -> DraftStep:
    """Return the step with an estimate."""
    return step.but(estimated_tokens=tokens_of(step))
