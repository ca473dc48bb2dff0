"""`planrun doctor`: check this machine and folder, and advise on what is missing."""

from __future__ import annotations

import os

import click

from planrun.cliutil.failure import printable
from planrun.cliutil.printing import say, say_json
from planrun.doctor.doctor import check_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from planrun.doctor.doctor import Check

_SIGNS = {"ok": "ok", "warning": "WARNING", "problem": "PROBLEM", "none": "-"}


@click.command(short_help="Check this machine and folder, with advice on what is missing.")
@click.option("--json", "as_json", is_flag=True, envvar="PLANRUN_JSON", help="Print one JSON document.")
def doctor(*, as_json: bool) -> int:
    """Check what planrun needs on this machine and in this folder.

    Python, libraries, system, processors, shell, git, space, write permission, cache, container engine, sandbox,
    model credentials (their presence, never a value), CI system, and the runs of this folder. Each line that is not
    "ok" says what to do. Nothing is changed. Put the output into a bug report.

    The exit code is 1 when there is a PROBLEM, otherwise 0.

    \b
    Examples:
      planrun doctor
      planrun doctor --json | jq '.checks[] | select(.status == "problem")'
    """
    checks = check_all(os.environ)
    problems = sum(each.status == "problem" for each in checks)
    warnings = sum(each.status == "warning" for each in checks)
    if as_json:
        rows = [{"name": c.name, "status": c.status, "found": c.found, "todo": c.todo} for c in checks]
        say_json({"problems": problems, "warnings": warnings, "checks": rows})
    else:
        say(
            "\n".join(
                [*_lines(checks), "", f"{_counted(problems, 'problem')}, {_counted(warnings, 'warning')}"]
            )
        )
    return 1 if problems else 0


def _lines(checks: list[Check]) -> Iterator[str]:
    wide = max(len(each.name) for each in checks)
    for each in checks:
        yield f"{_SIGNS[each.status]:7}  {each.name:{wide}}  {printable(each.found)}"
        if each.todo:
            yield f"{'':7}  {'':{wide}}  -> {printable(each.todo)}"


def _counted(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"
