"""The option of the verbs that read runs which a team has published."""

from __future__ import annotations

import click

from_option = click.option(
    "--from",
    "source",
    metavar="DIR|URL",
    envvar="PLANRUN_FROM_PUBLISHED",
    help="Read runs that were published there (`run --publish`).",
)
