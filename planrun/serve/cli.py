"""`planrun serve`: the runs of this folder in a browser."""

from __future__ import annotations

import click


@click.command(short_help="Show the runs of this folder in a browser.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="The port. Default: a free one."
)
@click.option("--open", "opens", is_flag=True, help="Open the address in the browser.")
@click.option(
    "--allow-answers",
    is_flag=True,
    help="Let pages approve, reject, answer, cancel, resume and retry. Default: read-only.",
)
@click.option(
    "--by",
    metavar="NAME",
    default="",
    envvar="PLANRUN_BY",
    help="Who answers. Default: the user's name.  [PLANRUN_BY]",
)
def serve(port: int, *, opens: bool, allow_answers: bool, by: str) -> int:
    """Show the runs of this folder as pages, which follow runs that are going on. Ctrl-C ends.

    Only this machine can connect (127.0.0.1), and only with the token in the address that is printed: keep it to
    yourself. Pages are those of `planrun report --format html`, with the logs of steps and files to download. They
    are read-only unless --allow-answers is given; an answer is recorded as that of the user who runs this command, and
    steps that a page runs again have the environment of this command. They go on when it ends.

    \b
    Examples:
      planrun serve --open
      planrun serve --port 8750 --allow-answers
    """
    from planrun.serve.starting import run_server  # http.server and ssl are loaded by this verb alone

    return run_server(port, opens=opens, allow_answers=allow_answers, by=by)
