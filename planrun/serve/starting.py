"""Starts the server of `planrun serve`, prints its address, and ends it by a signal."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tempfile

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
