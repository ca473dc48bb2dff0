"""`planrun classify`: how much a task asks for, by rules that it names."""

from __future__ import annotations

import click

from planrun.cliutil.click import task
from planrun.cliutil.printing import say, say_json
from planrun.llm.complexity import LEVELS, THRESHOLD
from planrun.llm.complexity import classify as look
from planrun.planner.repository import read_repository

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.llm.complexity import Complexity, Level

_ADVICE = {
    "not needed": "not needed: a single command or change will do",
    "optional": "optional",
    "suggested": "suggested: planrun generate writes one for review",
}


@click.command(short_help="Whether a task is simple, medium or complex, and why.")
@click.argument("text", nargs=-1, required=True)
@click.option(
    "--threshold",
    type=click.Choice(LEVELS[1:]),
    envvar="PLANRUN_THRESHOLD",
    default=THRESHOLD,
    show_default=True,
    help="The level from which on a plan is suggested.  [PLANRUN_THRESHOLD]",
)
@click.option("--json", "as_json", is_flag=True, envvar="PLANRUN_JSON", help="Print one JSON document.")
def classify(text: tuple[str, ...], threshold: Level, *, as_json: bool) -> int:
    """Say how much the task in TEXT asks for, and by which rules: no model is asked, and nothing is left to chance.

    Complex keywords, more than three files or more than 30 words make it complex; medium ones, two files or more than
    15 words make it medium. Keywords are whole words. Only names of files in this repository count. `-` reads the
    text from standard input.

    \b
    Examples:
      planrun classify "migrate the tests to pytest"
      planrun classify --json "explain src/app.py" | jq -r .level
      gh issue view 12 --json body --jq .body | planrun classify -
    """
    found = look(task(text, "TEXT"), read_repository().paths)
    if as_json:
        say_json(as_data(found, threshold))
        return 0
    say(f"complexity: {found.level}")
    for reason in found.reasons:
        said = f": {', '.join(reason.matched)}" if reason.matched and reason.rule == "files" else ""
        say(f"  {reason.rule}: {reason.message}{said}")
    say(f"plan: {_ADVICE[found.advice(threshold)]}")
    return 0


def as_data(found: Complexity, threshold: Level) -> dict[str, Any]:
    """Return a classification as JSON data."""
    return {
        "level": found.level,
        "planning": found.advice(threshold),
        "threshold": threshold,
        "reasons": [{**vars(reason), "matched": list(reason.matched)} for reason in found.reasons],
        "words": found.words,
        "files": list(found.files),
    }
