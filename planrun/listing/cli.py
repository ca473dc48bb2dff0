"""`planrun list`: the plans of a folder with their steps."""

from __future__ import annotations

import click

from planrun.cliutil.printing import say, say_json
from planrun.listing.bare import no_plans, print_listing
from planrun.listing.listing import listing


@click.command("list", short_help="List the plans in this folder and their steps.")
@click.option("--json", "as_json", is_flag=True, envvar="PLANRUN_JSON", help="Print one JSON document.")
def list_(*, as_json: bool) -> int:
    """List the plans in this folder and their steps, with the class of risk of each.

    Without a plan in this folder, those of the nearest folder above it up to the root of the repository. A plan that
    is not valid is listed with its first error. The plan that `planrun run` takes comes first.

    \b
    Examples:
      planrun list
      planrun list --json | jq -r '.plans[] | select(.default) | .steps[].id'
    """
    found = listing()
    if as_json:
        say_json({"folder": found.folder, "plans": [plan.data() for plan in found.plans]})
    elif found.plans:
        print_listing(found)
    elif found.error is None:
        say(no_plans())
    if found.error is not None:
        raise found.error
    return 0
