"""`planrun approve`, `planrun reject` and `planrun decide`: respond to a run's approval requests and questions.

`planrun approve PLAN` and `planrun lock PLAN`: files that record what was reviewed.
"""

from __future__ import annotations

import os
from inspect import cleandoc

import click
from click.core import ParameterSource

from planrun.cliutil.completion import (
    complete_params,
    complete_plans,
    complete_plans_or_runs,
    complete_questions,
    complete_runs,
    complete_waiting,
)
from planrun.cliutil.defaultplan import given
from planrun.errors import InvalidInput
from planrun.records.rundir import HOME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


_BY = click.Option(
    ["--by"],
    metavar="NAME",
    envvar="PLANRUN_BY",
    help="Who responds. Default: the user's name.  [PLANRUN_BY]",
)
_REASON = click.Option(["--reason"], metavar="TEXT", default="", help="Why, for the record.")
_DIGEST = click.Option(
    ["--digest"],
    metavar="HEX",
    default="",
    help="The reviewed digest; refused when the run or the plan has another one.",
)
_RESUME = click.Option(["--resume"], is_flag=True, help="Resume the run at once; the exit code is the run's.")
_REPORTS = click.Option(
    ["--report-dir"],
    type=click.Path(),
    metavar="DIR",
    envvar="PLANRUN_REPORT_DIR",
    help="Where the reports of a waiting run go. Default: planrun-out  [PLANRUN_REPORT_DIR]",
)
_JSON = click.Option(["--json"], is_flag=True, help="Print the recorded and the open requests as JSON.")
_COMMON = (_BY, _REASON, _RESUME, _REPORTS, _JSON)

_FOR_PLANS = (
    click.Option(["--step", "named"], multiple=True, metavar="STEP", help="Approve this step; repeatable."),
    click.Option(
        ["--param", "-p", "params"],
        multiple=True,
        metavar="NAME=VALUE",
        help="Of a plan: give a parameter its value, as the run gets it; repeatable.",
    ),
    click.Option(
        ["--expires"], metavar="WHEN", help="Of a plan: for how long (168h, 7d) or until when. Default: 168h"
    ),
    click.Option(["--uses"], type=int, metavar="N", help="Of a plan: for how many runs. Default: 1"),
    click.Option(
        ["--approver"], metavar="NAME", help="Of a plan: who approves. Default: the CI's user, or yours."
    ),
    click.Option(
        ["-o", "--output", "out"],
        type=click.Path(),
        metavar="FILE",
        help="Of a plan: where it goes, - for stdout. Default: PLAN with .approval.json as its ending.",
    ),
    click.Option(
        ["--pull-request", "pull"],
        metavar="N|auto",
        help="Of a plan: take the approval from a comment `/planrun approve DIGEST` of this pull request of GitHub; "
        "auto: of the one that was merged as this commit.",
    ),
    click.Option(
        ["--permission", "level"],
        type=click.Choice(("write", "maintain", "admin")),
        default=None,
        help="With --pull-request: what its author must be allowed in the repository. Default: write",
    ),
    click.Option(
        ["--allow-author", "own"],
        is_flag=True,
        default=None,
        help="With --pull-request: who opened it or has part in its commits may approve it.",
    ),
    click.Option(
        ["--environment"],
        metavar="NAME",
        help="Of a plan: the approver is who approved this job of GitHub for a protected environment; with --digest.",
    ),
    click.Option(["--repo"], metavar="OWNER/NAME", help="With the two before. Default: that of the job."),
)
_PLAN_OPTIONS = (
    "named",
    "params",
    "expires",
    "uses",
    "approver",
    "out",
    "pull",
    "level",
    "own",
    "environment",
    "repo",
)


def _approve(run: str, step: tuple[str, ...], skip: tuple[str, ...] = (), **given: Any) -> int:

    for_plan = {name: given.pop(name) for name in _PLAN_OPTIONS}
    steps = (*step, *for_plan.pop("named"))
    if is_plan(run):
        # A variable that is set for a whole job is not meant for this plan.
        asked = click.get_current_context().get_parameter_source
        digest = given.pop("digest")
        if skip or any(asked(name) is ParameterSource.COMMANDLINE for name in given):
            raise InvalidInput(
                f"{run} is a plan: --skip, --by, --reason, --resume, --report-dir and --json are for runs; "
                "--approver names who approves a plan"
            )
        from planrun.cli.approvalfiles import approve_plan

        return approve_plan(run, {"steps": steps, "digest": digest, **for_plan})
    if any(value not in (None, ()) for value in for_plan.values()):
        raise InvalidInput(
            f'"{run}" is not a plan file: --param, --expires, --uses, --approver, --pull-request, -o are for plans'
        )
    step = steps
    from planrun.cli.respond import respond

    return respond("approve", run, {"steps": step, "skip": skip}, given)


def _reject(run: str, step: str | None, **given: Any) -> int:
    from planrun.cli.respond import respond

    return respond("reject", run, {"steps": (step,) if step else ()}, given)


def _decide(run: str, answer: tuple[str, ...], **given: Any) -> int:
    from planrun.cli.respond import respond

    return respond("decide", run, {"steps": answer}, given)


def _command(name: str, params: list[click.Parameter], text: str) -> click.Command:
    callbacks: dict[str, Callable[..., int]] = {"approve": _approve, "reject": _reject, "decide": _decide}
    about = cleandoc(text)
    return click.Command(
        name, callback=callbacks[name], params=params, help=about, short_help=about.partition("\n")[0]
    )


approve = _command(
    "approve",
    [
        click.Argument(["run"], shell_complete=complete_plans_or_runs),
        click.Argument(["step"], nargs=-1, shell_complete=complete_waiting),
        click.Option(
            ["--skip"],
            multiple=True,
            metavar="STEP",
            help="Leave this step out, and what depends on it; repeatable.",
            shell_complete=complete_waiting,
        ),
        _DIGEST,
        *_COMMON,
        *_FOR_PLANS,
    ],
    """Approve what RUN waits for: the named steps, or the whole plan; or approve a PLAN before it runs.

    A waiting run gets the approval recorded; to continue: `planrun resume RUN`. A running one is notified. A
    question of yes or no is answered with yes when its step is named.

    With a plan file instead of RUN, an approval file is written, which `execute --approval` reads. It covers the plan,
    its parameters and its scripts as they are now.

    \b
    Examples:
      planrun approve last
      planrun approve plan.yml --step publish --expires 24h -o approvals/publish.json
      planrun approve plan.yml --pull-request auto -o approval.json
      planrun approve last publish --by release-team --resume
      planrun approve last --skip load-test
    """,
)
reject = _command(
    "reject",
    [
        click.Argument(["run"], shell_complete=complete_runs),
        click.Argument(["step"], required=False, shell_complete=complete_waiting),
        _DIGEST,
        *_COMMON,
    ],
    """Reject what RUN waits for: a step, or the whole plan.

    A rejected step fails, with exit code 3, when the run continues; a resume does not run it again. A run that awaits
    its approval as a whole is cancelled, with exit code 3. A question of yes or no is answered with no.

    \b
    Examples:
      planrun reject last publish --reason "Not on a Friday"
      planrun reject last
    """,
)
decide = _command(
    "decide",
    [
        click.Argument(["run"], shell_complete=complete_runs),
        click.Argument(
            ["answer"], nargs=-1, required=True, metavar="STEP=VALUE...", shell_complete=complete_questions
        ),
        *_COMMON,
    ],
    """Answer questions and decisions of RUN.

    VALUE is yes or no, a value, an option of a decision by its value or label, or several with commas between them
    where more than one may be chosen. Anything else is refused with a list of the options.

    \b
    Examples:
      planrun decide last auth=jwt
      planrun decide last publish=yes features=auth,logging --resume
    """,
)


_ENDINGS = (".yml", ".yaml")
PARAM_HELP = "Give a parameter of the plan its value, as the run gets it; repeatable."


def is_plan(operand: str) -> bool:
    """Whether an operand is a plan file, and not the id of a run; no file that a step made takes a run's name."""
    is_run = operand == "last" or os.path.isdir(os.path.join(HOME, "runs", operand))
    return operand.endswith(_ENDINGS) or (os.path.isfile(operand) and not is_run)


@click.command(short_help="Write a lockfile, for `run --locked`.")
@click.argument("plan", required=False, type=click.Path(readable=False), shell_complete=complete_plans)
@click.option(
    "--param",
    "-p",
    "params",
    multiple=True,
    metavar="NAME=VALUE",
    help=PARAM_HELP,
    shell_complete=complete_params,
)
@click.option("--policy", type=click.Path(), metavar="FILE", help="A policy that runs must use, too.")
@click.option(
    "-o",
    "--output",
    "out",
    type=click.Path(),
    metavar="FILE",
    help="Default: PLAN with .lock.json as its ending.",
)
@click.option("--check", is_flag=True, help="Write nothing; exit 3 and show the differences, if any.")
def lock(
    plan: str | None, params: tuple[str, ...], policy: str | None, out: str | None, *, check: bool
) -> int:
    """Write the content of PLAN, its parameters and its scripts into a lockfile beside it.

    Without PLAN it is the plan that `planrun run` takes. `planrun run PLAN --locked` then runs exactly this plan, or
    nothing. Commit the lock with the plan: a change of either shows in the review. The file is
    readable JSON with one line for each step and script.

    Exit code 0: it is written, or with --check: nothing differs. 2: the plan is wrong, or there is no lock to
    check. 3: something differs.

    \b
    Examples:
      planrun lock plan.yml
      planrun lock plan.yml --param target=prod --policy ci/policy.yml
      planrun lock plan.yml --check
    """
    from planrun.cli.approvalfiles import write_lock_file

    chosen = given(plan)
    policy, out = (chosen.path(path) if path else path for path in (policy, out))
    if chosen.file == "-":
        raise InvalidInput("a lock file stands beside its plan: name the file of the plan")
    return write_lock_file(chosen.file, params, policy, out, check=check)
