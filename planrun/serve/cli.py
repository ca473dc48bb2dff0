"""`planrun serve`: the runs of this folder in a browser."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tempfile

import click

from planrun.approval.control import refuse_steps
from planrun.cliutil import write_stderr
from planrun.cliutil.printing import say
from planrun.errors import InvalidInput
from planrun.serve.pages import text_page
from planrun.serve.server import Server, serve_until_stopped


def run_server(port: int, *, opens: bool, allow_answers: bool, by: str) -> int:
    """Serve the runs of this folder until a signal; raises InvalidInput when the port is taken, Denied in a step."""
    refuse_steps("serve runs")
    gc.enable()
    try:
        server = Server(port, allow_answers=allow_answers, by=by)
    except OSError as error:
        raise InvalidInput(f"cannot listen on 127.0.0.1:{port}: {error.strerror}") from None
    url = server.access.url(server.port)
    say(url)
    what = "answers are allowed" if allow_answers else "read-only"
    write_stderr(f"planrun: {what}; whoever has this address can see the runs; Ctrl-C ends\n")
    with tempfile.TemporaryDirectory(prefix="planrun-") as folder:  # of mode 0700
        if opens:
            _open(url, folder)
        serve_until_stopped(server)
    return 0


def _open(url: str, folder: str) -> None:
    """Have the browser open a file that goes on to the address: other users can read command lines.

    It is started by a process that ends at once, since what planrun starts itself counts as a step.
    """
    path = os.path.join(folder, "planrun.html")
    with open(path, "wb") as file:
        file.write(text_page("planrun", "The runs of this folder.", to=url))
    code = "import sys, webbrowser; webbrowser.open(sys.argv[1])"
    try:
        subprocess.Popen(
            [sys.executable, "-P", "-c", code, f"file://{path}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        write_stderr(f"planrun: warning: no browser could be started: {error.strerror}\n")


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
    return run_server(port, opens=opens, allow_answers=allow_answers, by=by)
