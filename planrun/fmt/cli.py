"""`planrun fmt`: plan files in their canonical layout."""

from __future__ import annotations

import difflib
import os
import sys

import click

from planrun.cliutil.click import replace_file
from planrun.cliutil.completion import complete_plans
from planrun.cliutil.defaultplan import given
from planrun.cliutil.failure import explain, printable
from planrun.cliutil.printing import say, say_bytes
from planrun.errors import EXIT_FAILED, PlanrunError
from planrun.fmt.fmt import formatted
from planrun.plan.yaml.file import MAX_BYTES, read_source
from planrun.reports.ci import coloured

_STANDARD_INPUT = "-"


@click.command(short_help="Format plan files, and keep every comment.")
@click.argument(
    "plans",
    metavar="[PLAN...]",
    nargs=-1,
    type=click.Path(readable=False),
    shell_complete=complete_plans,
)
@click.option("--check", is_flag=True, help="Write nothing; end with exit code 1 when a file would change.")
@click.option("--diff", is_flag=True, help="Write nothing; print what would change.")
def fmt(plans: tuple[str, ...], *, check: bool, diff: bool) -> int:
    """Format plans: two columns of indentation, the order of keys, blank lines, and quotes only where they are needed.

    Comments, anchors, lists and the text of scripts stay as they are. The digest of a plan does not change, so
    approvals and locks stay valid. Without PLAN the default plan is formatted; `-` reads standard input and writes
    standard output.
    Exit code 1: with --check, a file would change. 2: a file is not valid YAML, and stays as it is.

    \b
    Examples:
      planrun fmt
      planrun fmt plans/*.yml
      planrun fmt --check --diff plan.yml
      planrun fmt - < plan.yml
    """
    code = 0
    for file in dict.fromkeys(plans or (given(None).file,)):
        try:
            code = max(code, _fmt(file, check=check, diff=diff))
        except PlanrunError as error:  # the other files are formatted all the same
            code = max(code, explain(error))
    return code


def _fmt(file: str, *, check: bool, diff: bool) -> int:
    """Format one file, or show what would change; returns the exit code."""
    from_input = file == _STANDARD_INPUT
    data = sys.stdin.buffer.read(MAX_BYTES + 1) if from_input else read_source(file)
    name = "standard input" if from_input else file
    made = formatted(data, name)
    if diff:
        before, after = _rows(data), _rows(made)
        rows = [
            printable(row)
            for row in difflib.unified_diff(before, after, name, f"{name} (formatted)", lineterm="")
        ]
        if coloured(os.environ, terminal=sys.stdout is not None and sys.stdout.isatty()):
            rows = [f"\x1b[{_COLOURS[row[0]]}m{row}\x1b[0m" if row[:1] in _COLOURS else row for row in rows]
        if rows:
            say("\n".join(rows))
    elif not check and from_input:
        say_bytes(made)
    elif made != data:
        say(f"{printable(name)}: {'would be formatted' if check else 'formatted'}")
    if not (check or diff or from_input) and made != data:
        replace_file(file, made, data)
    return EXIT_FAILED if check and made != data else 0


def _rows(data: bytes) -> list[str]:
    """Return the lines of a file; a last one without a line end says so, as in the output of git."""
    rows = data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if rows[-1]:
        rows[-1] += "\n\\ No newline at end of file"
    else:
        rows.pop()
    return rows


_COLOURS = {"+": "32", "-": "31", "@": "36"}
