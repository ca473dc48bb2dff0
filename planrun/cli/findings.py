"""Findings about plans as `validate` and `lint` show them: for people with their lines, or in a form for programs."""

from __future__ import annotations

import os

from planrun.cli.failure import located
from planrun.cli.printing import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from planrun.source.problems import Problem


def say_text(problems: Sequence[Problem], sources: Mapping[str, bytes]) -> None:
    """Tell findings with excerpts from `sources`, bytes by file name, and annotate them where GitHub reads along."""
    from planrun.source.problems import render_github, render_text

    if os.environ.get("GITHUB_ACTIONS") == "true":
        say(render_github(located(problems)).rstrip("\n"))
    say(render_text(problems, sources).rstrip("\n"))


def say_form(form: str, problems: Sequence[Problem], titles: Mapping[str, str]) -> None:
    """Write findings as json, sarif or github; `titles` explain the codes. Without any, github is nothing at all."""
    from planrun.source import render

    if form == "json":
        text = render.as_json(problems)
    elif form == "sarif":
        text = render.sarif(located(problems), titles)
    else:
        text = render.github(located(problems))
    if text.strip() or form != "github":
        say(text.rstrip("\n"))
