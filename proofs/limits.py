"""Every limit on plans and expressions, from both sides: at the limit accepted, one more refused by its name.

The constants are taken from the code, so that a new one without a row here is a fault. `--huge` then reads files as
large and as dense as files can be, each in a process of its own, and says what that takes.
"""

from __future__ import annotations

import argparse
import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from proofs import huge
from proofs.bounds import Bound
from proofs.fuzzing.corpus import ROOT
from proofs.grown import LIMITS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PLACES = ("planrun/plan/**/*.py", "planrun/expressions/*.py", "planrun/values.py", "planrun/actions/outputs.py",
          "planrun/actions/environment.py", "planrun/actions/dotenv.py")  # fmt: skip
_BEGINNINGS = ("MAX_", "_MAX_", "FREE_", "STEP_NODES", "LONGEST", "PATTERN_")
REFUSES_NOTHING = {
    "printing:MAX_PRINTED": "how many problems are printed",
    "render:_MAX_SHOWN": "how much of an expression is shown",
    "grammar:_MAX_SHOWN": "how much of a name is shown",
    "values:MAX_SHOWN": "how much of a value is shown",
    "edges:MAX_SHOWN": "how much of a cycle is shown",
    "formulas:MAX_BROKEN": "how many mistakes of one text are told",
    "outline:MAX_COMPARED": "how long a misspelt id is looked for",
    "fragments:MAX_MATCHING": "seconds; no two machines agree where they end",
    "values:PATTERN_SECONDS": "seconds; no two machines agree where they end",
    "cache:MAX_ENTRIES": "how many compiled plans are kept",
    "cache:MAX_BYTES": "how large a compiled plan may be to be kept",
    "functions:_MAX_DIGITS": "a number with more digits is over tree:MAX_INTEGER",
    "risks:MAX_LOOKED_AT": "how much is looked into before a run; all that follows is taken for high",
    "functions:_MAX_BYTES": "a gibibyte of files",
    "references:MAX_NAMED": "how many names are told",
    "quoting:MAX_EVALUATED": "how many values are looked at before a run, which refuses the others",
    "quoting:MAX_COMBINED": "how many values of one place are looked at before a run",
    "foreign:MAX_BYTES": "how large a file may be to be recognised as that of another tool",
    "foreign:MAX_TEXT": "how much of it is searched",
    "problems:MAX_KEYS": "how many valid keys are listed in a line",
    "files:MAX_MET": "how many patterns are held against each other for a warning",
}
"""Constants that look like limits, and what they are instead."""


@dataclass(frozen=True)
class Finding:
    """A limit that is not what it says; `problem` is empty if it is."""

    bound: Bound
    problem: str


def constants() -> Iterator[str]:
    """Yield every constant that looks like a limit, as module:NAME."""
    for place in PLACES:
        for path in sorted(ROOT.glob(place)):
            for node in ast.parse(path.read_text("utf-8")).body:
                targets = node.targets if isinstance(node, ast.Assign) else []
                names = [target.id for target in targets if isinstance(target, ast.Name)]
                yield from (f"{path.stem}:{name}" for name in names if name.startswith(_BEGINNINGS))


def without_a_row() -> list[str]:
    """Return the limits that nothing here tries."""
    tried = {name for bound in LIMITS for name in bound.names} | set(REFUSES_NOTHING)
    return [name for name in constants() if name not in tried]


def look(bound: Bound) -> Finding:
    """Try a limit from both sides."""
    below, above = bound.at(), bound.over()
    if bound.says in below:
        return Finding(bound, f"refused at the limit: {below[:200]}")
    if bound.says not in above:
        return Finding(
            bound, f"accepted over the limit, or refused for something else: {above[:200] or 'accepted'}"
        )
    return Finding(bound, "")


def main(words: Sequence[str]) -> int:
    """Run the proof; 1 when a limit is not where it is said to be, or a constant has no row."""
    parser = argparse.ArgumentParser(prog="python -m proofs limits", description=__doc__)
    parser.add_argument("--huge", action="store_true", help="read the largest and densest files, too")
    parser.add_argument("--fault", choices=["off-by-one"], default="", help="plant one")
    chosen = parser.parse_args(words)
    wrong = 0
    for bound in LIMITS:
        tried = bound.moved() if chosen.fault else bound
        found = look(tried)
        wrong += bool(found.problem)
        print(f"{bound.what:62} {found.problem or 'holds: ' + bound.says}")
    for name in without_a_row():
        print(f"{name}: a limit that nobody tries")
    caught = sum(bool(look(bound.moved()).problem) for bound in LIMITS) if not chosen.fault else 0
    print(f"{len(LIMITS)} limits, {wrong} wrong; each moved by one, {caught} are found to be wrong")
    failed = huge.report() if chosen.huge else 0
    return int(bool(wrong or without_a_row() or failed or (not chosen.fault and caught < len(LIMITS))))
