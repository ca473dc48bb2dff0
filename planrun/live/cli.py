"""`planrun watch`: a run on the whole screen, from another shell."""

from __future__ import annotations

import click

from planrun.cliutil.completion import complete_runs


@click.command(short_help="Watch a run on the whole screen, and answer it.")
@click.argument("run", default="last", shell_complete=complete_runs)
@click.option("--lines", is_flag=True, help="Print lines, as without a terminal.")
def watch(run: str, *, lines: bool) -> int:
    """Watch RUN (default: the newest run) on the whole screen: its steps, their times, and the log of one.

    The run may be running in another shell, or have ended. Keys approve, reject, answer, pause, cancel, retry and
    resume; each asks first, and does what the verb of its name does. `?` lists the keys. `q` leaves, and the run goes
    on. Without a terminal, each step that starts or ends is printed as a line until the run ends.

    \b
    Examples:
      planrun watch
      planrun watch 20260131-09
      planrun watch --lines > steps.txt
    """
    from planrun.live.terminal import FullScreen  # needs termios, which only this verb loads

    if lines or not FullScreen.is_there():
        from planrun.live.plain import watch_as_lines

        try:
            return watch_as_lines(run, is_asked=lines)
        except BrokenPipeError:
            return 141
    from planrun.live.watching import watch_on_screen

    return watch_on_screen(run)
