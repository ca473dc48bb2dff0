"""The message of a failed command, in one line, and its exit code."""

from __future__ import annotations

import os
import sys

from planrun.cliutil import write_stderr
from planrun.errors import EXIT_INTERNAL, InvalidPlan, PlanrunError
from planrun.model.commands import broken
from planrun.model.hidden import escaped
from planrun.reports.ci import from_checkout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from planrun.plan.problems import Problem


def explain(error: Exception) -> int:
    """Write an error to stderr and return its exit code."""
    if isinstance(error, InvalidPlan):
        write_stderr(problem_text(error))
        return error.exit_code
    if isinstance(error, PlanrunError) and error.exit_code != EXIT_INTERNAL:
        complain(str(error))
        return error.exit_code
    if isinstance(error, BrokenPipeError):
        return 141  # as a program that SIGPIPE ended
    write_stderr(f"planrun: internal error: {type(error).__name__}: {printable(str(error))}\n")
    if os.environ.get("PLANRUN_DEBUG"):
        import traceback

        traceback.print_exception(error)
    else:
        write_stderr("  this is a bug in planrun; PLANRUN_DEBUG=1 shows where it happened\n")
    return EXIT_INTERNAL


def complain(message: str) -> None:
    """Write one error to stderr; the message may hold control characters."""
    write_stderr(f"planrun: error: {printable(message)}\n")


def problem_text(error: InvalidPlan) -> str:
    """The findings in a plan as text; under GitHub also as annotations."""
    from planrun.plan.printing import closing_hint, render_github, render_text

    text = render_text(error.problems, error.sources) + closing_hint(error.problems)
    if os.environ.get("GITHUB_ACTIONS") == "true":
        sys.stdout.write(render_github(located(error.problems)))
    return text


def located(problems: Iterable[Problem]) -> list[Problem]:
    """The findings with their files as a CI system knows them: from the root of its checkout."""
    return [problem.but(file=from_checkout(problem.file, os.environ)) for problem in problems]


def printable(text: str) -> str:
    """The same text with everything that could steer a terminal or a CI agent made visible; line breaks stay."""
    return broken(escaped(text, "\n"))
