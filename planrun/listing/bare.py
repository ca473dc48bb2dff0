"""A bare `planrun`: the plans of this folder and their steps, then how to go on. Without click."""

from __future__ import annotations

import os

from planrun.cliutil.defaultplan import plans_in
from planrun.cliutil.printing import say, speaks_unicode
from planrun.listing.listing import Listing, listing
from planrun.listing.text import lines, terminal_width
from planrun.reports.ci import coloured

_NO_PLANS = "No plan in this folder: looked for plan.yml, plan.yaml, *.yml and plans/*.yml."


def print_plans() -> int:
    """Print the plans with their steps and two lines of help; returns the exit code.

    Raises InvalidInput, RecordsLost.
    """
    found = listing()
    if not found.plans and found.error is None:
        say(no_plans())
        return 0
    print_listing(found)
    default = next((plan.file for plan in found.plans if plan.is_default), "")
    words = "planrun run [STEP]" if default else "planrun run PLAN"
    about = f"run {default}, or a step and what it depends on" if default else "run one of them"
    say(f"\n{words.ljust(18)}   {about}\n{'planrun help'.ljust(18)}   all commands")
    if found.error is not None:
        raise found.error
    return 0


def no_plans() -> str:
    """Return what stands in place of a listing: how to write a first plan, or to convert a file that is here."""
    from planrun.cliutil.otherfiles import convert_commands  # reads files of other tools

    rows = [(command, "") for command in convert_commands(plans_in(""))]
    rows += [("planrun init", "write a first plan: plan.yml"), ("planrun help", "all commands")]
    return "\n".join([_NO_PLANS, "", *[f"{command.ljust(14)}   {about}".rstrip() for command, about in rows]])


def print_listing(found: Listing) -> None:
    """Print the plans with their steps."""
    width = terminal_width()
    color = coloured(os.environ, terminal=width > 0)
    text = "\n".join(lines(found, width=width, color=color))
    say(text if speaks_unicode() else text.replace("…", "..."))
