"""`planrun classify`: the complexity of a task, by named rules."""

from __future__ import annotations

import click

from planrun.cliutil.click import task
from planrun.cliutil.printing import say, say_json
from planrun.llm.complexity import LEVELS, THRESHOLD
from planrun.llm.complexity import classify as classify_text
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


@click.command(short_help="Show whether a task is simple, medium or complex, and why.")
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
    """Show the complexity of the task in TEXT, and the rules that decided it. No model is called.

    Complex keywords, more than three files or more than 30 words make it complex; medium ones, two files or more than
    15 words make it medium. Keywords are whole words. Only names of files in this repository count. `-` reads the
    text from standard input.

    \b
    Examples:
      planrun classify "migrate the tests to pytest"
      planrun classify --json "explain src/app.py" | jq -r .level
      gh issue view 12 --json body --jq .body | planrun classify -
    """
    complexity = classify_text(task(text, "TEXT"), read_repository().paths)
    if as_json:
        say_json(as_data(complexity, threshold))
        return 0
    say(f"complexity: {complexity.level}")
    for reason in complexity.reasons:
        matched = f": {', '.join(reason.matched)}" if reason.matched and reason.rule == "files" else ""
        say(f"  {reason.rule}: {reason.message}{matched}")
    say(f"plan: {_ADVICE[complexity.advice(threshold)]}")
    return 0


def as_data(complexity: Complexity, threshold: Level) -> dict[str, Any]:
    """Return a classification as JSON data."""
    return {
        "level": complexity.level,
        "planning": complexity.advice(threshold),
        "threshold": threshold,
        "reasons": [{**vars(reason), "matched": list(reason.matched)} for reason in complexity.reasons],
        "words": complexity.words,
        "files": list(complexity.files),
    }
