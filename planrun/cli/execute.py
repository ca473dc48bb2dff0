"""`run`, `execute`, `resume` and `retry` for click: their help and completion; they run without it."""

from __future__ import annotations

from inspect import cleandoc

import click

from planrun.cli.overview import EXIT_CODES
from planrun.cli.run import running
from planrun.cliutil.click import tabled
from planrun.cliutil.completion import complete_plans_or_steps, complete_runs, complete_steps
from planrun.cliutil.options import EXECUTE, RESUME, RETRY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.cliutil.options import Option


def _running(
    name: str, operands: list[click.Parameter], options: tuple[Option, ...], text: str
) -> click.Command:
    command = tabled(name, operands, options, cleandoc(text), lambda words: running([name, *words]))
    command.epilog = f"\b\nExit codes:\n{EXIT_CODES}"
    return command


_PLAN_AND_STEPS: list[click.Parameter] = [
    click.Argument(
        ["plan"], required=False, type=click.Path(readable=False), shell_complete=complete_plans_or_steps
    ),
    click.Argument(["step"], nargs=-1, shell_complete=complete_steps),
]
_ABOUT_PLAN = """\b
PLAN is a file, or `-` for standard input. Without it the first of these
counts, looked for in this folder, then above it up to the root of the
repository; the run happens in its folder:
  `plan:` in .planrun.yml, plan.yml, plan.yaml, the only plan in plans/

STEP is the id of a step: it runs with all it depends on, as by --until. A file of that name counts as PLAN.

--only, --from, --until and --tag can be repeated and add up: every step that one of them names runs. --skip removes
steps from that, or from the whole plan when none of them is given. Steps under `finally` run unless skipped.

Each option can be given by the variable in brackets: a flag by 1 or 0 (true, yes, on; false, no, off), several values
separated by commas, parameters one a line."""


def _run_verb(name: str, first: str, examples: str) -> click.Command:
    return _running(name, _PLAN_AND_STEPS, EXECUTE, f"{first}\n\n\b\nExamples:\n{examples}\n{_ABOUT_PLAN}\n")


run = _run_verb(
    "run",
    "Run a plan, or some of its steps. Nothing runs when the plan has an error. Events are recorded in .planrun; "
    "reports go to planrun-out at the end.",
    """\
  planrun run
  planrun run test
  planrun run plan.yml --param target=prod --param version=1.2.3
  planrun run plans/release.yml --from build --skip publish --jobs 8
""",
)
execute = _run_verb(
    "execute",
    "Run a plan: the same as `planrun run`.",
    """\
  planrun execute plan.yml
  planrun execute plan.yml --only test --only lint
  planrun execute plan.yml --jobs 8 --strict
  make-plan | planrun execute -
  planrun execute plan.yml --json | jq .verdict
""",
)

resume = _running(
    "resume",
    [click.Argument(["run"], required=False, shell_complete=complete_runs)],
    RESUME,
    """Continue RUN: the id of a run, the beginning of one, or `last`, which is also the default.

    It runs what failed, was lost or never started, and everything that depends on it, from the plan that the run
    keeps. Steps that completed and would do the same again are not run again. A finished run stays as it is; its
    reports are written again.

    With --plan the run continues with an edited plan: the difference is printed first, changed steps and their
    dependents run again, new ones run, and the run keeps this version beside the first.

    \b
    Examples:
      planrun resume
      planrun resume 20260131-093000-1f2e3d --jobs 2
      planrun resume last --plan plan.yml
      planrun resume last --plan plan.yml --param target=prod
    """,
)

retry = _running(
    "retry",
    [
        click.Argument(["run"], shell_complete=complete_runs),
        click.Argument(["step"], nargs=-1, required=True, shell_complete=complete_steps),
    ],
    RETRY,
    """Run steps of RUN (default: the last run) again, and all that depends on them, whatever their results.

    All other steps stay as they ended. It works on finished runs as well, and it is the way to continue after a step
    with `idempotent: false` whose attempt was lost: check its effects first.

    \b
    Examples:
      planrun retry last publish
      planrun retry 20260131-093000-1f2e3d test lint
    """,
)
