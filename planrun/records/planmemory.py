"""Plans that completed, kept by their goals in a private folder of the workspace: examples for the next goal alike."""

from __future__ import annotations

import json
import math
import os
import re

from planrun.folders import make_private, write_atomically
from planrun.model.record import Record
from planrun.opening import read_record
from planrun.records.rundir import HOME
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

FOLDER = "plans"  # below .planrun
MAX_KEPT = 200
MAX_TEXT = 16 * 1024  # characters of one plan
LEAST_ALIKE = 0.2
_FORM = "planrun-kept-plan-1"
_MAX_BYTES = 128 * 1024  # of one file
_COMMON = frozenset(
    ("a", "an", "and", "are", "as", "at", "be", "by", "for", "from", "in", "into", "is", "it", "its", "of", "on", "or",
     "our", "so", "that", "the", "this", "to", "up", "we", "when", "with")
)  # fmt: skip


class KeptPlan(Record):
    """One plan that completed; `text` is masked. `digest`: of what was reviewed, `at`: when the run ended."""

    goal: str
    name: str
    digest: str
    run: str
    at: str
    steps: int
    duration_s: float
    text: str

    @property
    def id(self) -> str:
        """Its name in the folder: the same plan for the same goal is kept once."""
        return sha256(f"{self.goal}\0{self.text}".encode("utf-8", "replace")).hexdigest()[:16]


def keep(workspace: str, plan: KeptPlan) -> None:
    """Keep a plan; the oldest ones beyond MAX_KEPT are deleted. Raises OSError."""
    folder = _folder(workspace)
    make_private(folder)
    path = os.path.join(folder, f"{plan.id}.json")
    write_atomically(path, json.dumps({"form": _FORM, **vars(plan)}).encode(), mode=0o600)
    for old in kept(workspace)[MAX_KEPT:]:
        os.unlink(os.path.join(folder, f"{old.id}.json"))


def kept(workspace: str) -> list[KeptPlan]:
    """Return all plans that are kept, the newest first; damaged and foreign files count for nothing."""
    try:
        names = os.listdir(_folder(workspace))
    except OSError:
        return []
    found = [plan for name in names if name.endswith(".json") and (plan := _read(workspace, name))]
    return sorted(found, key=lambda plan: (plan.at, plan.id), reverse=True)


def clear(workspace: str) -> int:
    """Delete all plans that are kept and return how many these were; raises OSError."""
    found = kept(workspace)
    for plan in found:
        os.unlink(os.path.join(_folder(workspace), f"{plan.id}.json"))
    return len(found)


def alike(plans: Iterable[KeptPlan], goal: str, most: int) -> list[tuple[float, KeptPlan]]:
    """Return the plans whose goals are most like a goal, the best first, each with its score from 0 to 1.

    The score is the cosine of the words of both goals, where rare words count more. No model is asked.
    """
    known = list(plans)
    words = [_words(f"{plan.goal} {plan.name}") for plan in known]
    wanted = _words(goal)
    weights = {
        word: math.log((len(known) + 1) / (1 + sum(word in each for each in words))) + 1
        for word in wanted.union(*words)
    }
    scores = [(_cosine(wanted, each, weights), plan) for each, plan in zip(words, known, strict=True)]
    found = [(round(score, 3), plan) for score, plan in scores if score >= LEAST_ALIKE]
    return sorted(found, key=lambda pair: (-pair[0], pair[1].id))[:most]


def _cosine(one: set[str], other: set[str], weights: dict[str, float]) -> float:
    def length(words: set[str]) -> float:
        return math.sqrt(sum(weights[word] ** 2 for word in words))

    whole = length(one) * length(other)
    return sum(weights[word] ** 2 for word in one & other) / whole if whole else 0.0


def _words(text: str) -> set[str]:
    """Return the words of a text without the most common ones and without their endings."""
    found = re.findall(r"[a-z0-9]+", text.lower())
    return {re.sub(r"(?:ing|ed|es|s)\Z", "", word) for word in found if word not in _COMMON and len(word) > 1}


def _folder(workspace: str) -> str:
    return os.path.join(workspace, HOME, FOLDER)


def _read(workspace: str, name: str) -> KeptPlan | None:
    path = os.path.join(_folder(workspace), name)
    try:
        data: dict[str, Any] = json.loads(read_record(path, _MAX_BYTES))
        if data.pop("form") != _FORM:
            return None
        plan = KeptPlan(**data)
        is_whole = all(
            isinstance(getattr(plan, each), str) for each in ("goal", "name", "digest", "run", "at", "text")
        )
        return plan if is_whole and f"{plan.id}.json" == name else None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
