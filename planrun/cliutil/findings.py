"""Findings about plans as `validate` and `lint` show them: for people with their lines, or in a form for programs."""

from __future__ import annotations

import os
import re
import sys

from planrun.cliutil.failure import located
from planrun.cliutil.printing import say
from planrun.plan import printing
from planrun.plan.printing import render_github, render_text
from planrun.reports.ci import coloured

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from planrun.plan.problems import Problem


def say_text(problems: Sequence[Problem], sources: Mapping[str, bytes]) -> None:
    """Print findings with excerpts from `sources`, bytes by file name, and annotations under GitHub Actions."""
    if os.environ.get("GITHUB_ACTIONS") == "true":
        say(render_github(located(problems)).rstrip("\n"))
    text = render_text(problems, sources).rstrip("\n")
    terminal = sys.stdout is not None and sys.stdout.isatty()
    say(_painted(text) if coloured(os.environ, terminal=terminal) else text)


_HEADINGS = re.compile(r"^(\S.*?:\d+:\d+: )(error|warning|advice)(\[\w+\])", re.MULTILINE)
_CARETS = re.compile(r"^( +\| +)(\^+)$", re.MULTILINE)
_COLOURS = {"error": "31", "warning": "33", "advice": "36"}


def _painted(text: str) -> str:
    """Return findings with the severity and the carets in colour; nothing else of them can hold an escape."""
    text = _HEADINGS.sub(
        lambda match: f"{match[1]}\x1b[1;{_COLOURS[match[2]]}m{match[2]}{match[3]}\x1b[0m", text
    )
    return _CARETS.sub("\\1\x1b[32m\\2\x1b[0m", text)


def say_form(form: str, problems: Sequence[Problem], titles: Mapping[str, str]) -> None:
    """Write findings as json, sarif or github; `titles` explain the codes. Without any, github is nothing at all."""
    if form == "json":
        text = printing.render_json(problems)
    elif form == "sarif":
        text = printing.render_sarif(located(problems), titles)
    else:
        text = printing.render_github(located(problems))
    if text.strip() or form != "github":
        say(text.rstrip("\n"))
