"""No command is taken for less than it is.

Every labelled command gets its class. Of texts made by chance, bash runs what the classifier says and nothing else, and
another grammar of bash sees the same commands. Dangerous commands stay dangerous however they are written. None of the
commands is run: see commands/shells.py.
"""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import random
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from proofs.commands import agreement, faults, mutations, rows, shells, texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

TEXTS = 20_000
MUTATIONS = 100_000
PARTS = 16
"""Into how many pieces of work each part is cut."""
TRIES = 5
"""How often each labelled command is classified, to have a time that nothing else took part in."""

Outcome = tuple[int, int, list[str]]
"""How many were tried, about how many something could be said, and what was wrong."""


def with_bash(some: Iterable[str]) -> Outcome:
    """Compare what the classifier says with what bash runs."""
    return _outcome(_asked(some))


def with_grammar(some: Iterable[str]) -> Outcome:
    """Compare what the classifier says of accepted texts with what tree-sitter sees.

    Where the two differ, bash decides if it can be asked: what tree-sitter gets wrong is known only in part.
    """
    given = list(some)
    found = [agreement.tree_differs(text) for text in given]
    doubtful = [place for place, difference in enumerate(found) if difference]
    if doubtful and not shells.missing():
        for place, verdict in zip(doubtful, _asked(given[place] for place in doubtful), strict=True):
            if verdict == "":
                found[place] = ""
    return _outcome(found)


def _asked(some: Iterable[str]) -> list[str | None]:
    """Return for each text what bash does otherwise than the classifier says, "" for nothing, None when not asked."""
    with tempfile.TemporaryDirectory(prefix="risk-") as folder:
        Path(folder).chmod(0o755)
        bash = shells.Bash(Path(folder).resolve() / "bash")
        return [agreement.bash_differs(text, bash) for text in some]


def _outcome(found: Sequence[str | None]) -> Outcome:
    said = [text for text in found if text is not None]
    return len(found), len(said), [text for text in said if text]


def with_mutations(dangerous: Sequence[rows.Row], count: int, seed: int) -> Outcome:
    """Write dangerous commands in other ways and have them classified."""
    wrong = []
    for row, text in mutations.mutations(dangerous, count, seed):
        level, _ = rows.level_of(text)
        if level != "high":
            wrong.append(f"{level}, not high: {rows.encoded(text)} (from {row.place})")
    return count, count, wrong


def labelled(*, timed: bool = False) -> list[str]:
    """Have all labelled commands classified, print the figures, and return what must not be."""
    figures = []
    for file in rows.files():
        one = rows.judged(rows.read(file), TRIES if timed else 1)
        print(f"{file.name}: {one}", *one.wrong, sep="\n  ")
        figures.append(one)
    return [text for one in figures for text in one.problems] + (rows.slow(figures) if timed else [])


@functools.cache
def dangerous_rows(step: int = 1) -> tuple[rows.Row, ...]:
    """The labelled rows that mutations are made from, or each one of so many."""
    return tuple(row for row in rows.everything()[::step] if mutations.is_fit(row))


def written(count: int, seed: int, part: int = 0, parts: int = 1) -> list[str]:
    """One part of the texts that are compared: so many made by chance, and all that are labelled."""
    known = [row.text for row in rows.everything()]
    return known[part::parts] + list(texts.texts(count // parts, seed * PARTS + part))


def _piece(work: tuple[str, int, int, int, str]) -> tuple[str, Outcome]:
    """Do one piece of work, with a planted fault or none."""
    kind, count, seed, part, fault = work
    with faults.FAULTS[fault]():
        if kind == "bash":
            return kind, with_bash(written(count, seed, part, PARTS))
        if kind == "grammar":
            return kind, with_grammar(written(count, seed, part, PARTS))
        return kind, with_mutations(dangerous_rows(), count // PARTS, seed * PARTS + part)


def is_caught(fault: str) -> bool:
    """Plant a fault and do what is to show it; whether it was shown."""
    kind = faults.CAUGHT_BY[fault]
    with faults.FAULTS[fault]():
        if kind == "rows":
            found = [
                text for row in [rows.judged(rows.everything())] for text in row.wrong if "UNDER" in text
            ]
        elif kind == "mutations":
            found = with_mutations(dangerous_rows(5), 3000, 1)[2]
        else:
            found = (with_bash if kind == "bash" else with_grammar)(texts.texts(100, 1))[2]
    print(f"planted fault: {fault}: {(*found, 'NOT CAUGHT')[0]} ({len(found)} by {kind})")
    return bool(found)


def main(words: Sequence[str]) -> int:
    """Run the proof; 1 when a command was taken for less than it is, or a planted fault was not caught."""
    parser = argparse.ArgumentParser(prog="python -m proofs risk", description=__doc__)
    parser.add_argument("--texts", type=int, default=TEXTS, help="made by chance")
    parser.add_argument("--mutations", type=int, default=MUTATIONS, help="of dangerous commands")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument(
        "--fault", default="", choices=sorted(faults.FAULTS), help="run with this fault planted"
    )
    chosen = parser.parse_args(words)
    began = time.monotonic()
    print(f"seed {chosen.seed}")
    with faults.FAULTS[chosen.fault]():
        problems = labelled(timed=True)
    counts = {"bash": chosen.texts, "grammar": chosen.texts, "mutations": chosen.mutations}
    missing = shells.missing()
    if missing:
        print(f"not compared with bash: {missing}")
        del counts["bash"]
    problems += _compared(counts, chosen.seed, chosen.fault)
    print(f"{len(problems)} problems", *problems[:100], sep="\n")
    missed = []
    if not chosen.fault:
        missed = [
            name
            for name, kind in faults.CAUGHT_BY.items()
            if kind in {"rows", *counts} and not is_caught(name)
        ]
    print(f"{time.monotonic() - began:.0f} s")
    return int(bool(problems or missed))


def _compared(counts: dict[str, int], seed: int, fault: str) -> list[str]:
    """Do all comparisons on all processors, print their figures, and return what was wrong."""
    work = [(kind, count, seed, part, fault) for kind, count in counts.items() for part in range(PARTS)]
    sums = {kind: [0, 0] for kind in counts}
    problems = []
    with multiprocessing.get_context("spawn").Pool() as pool:
        for kind, (tried, said, wrong) in pool.imap_unordered(_piece, work):
            sums[kind][0] += tried
            sums[kind][1] += said
            problems += [f"{kind}: {text}" for text in wrong]
    for kind, (tried, said) in sums.items():
        print(f"{kind}: {tried} texts, {said} of them compared")
    return problems
