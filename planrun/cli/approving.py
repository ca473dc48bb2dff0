"""`planrun approve PLAN` and `planrun lock PLAN`: files that say what was reviewed."""

from __future__ import annotations

import os
import sys

import click

from planrun.cli.completing import complete_params, complete_plans
from planrun.cli.failure import complain, printable
from planrun.cli.printing import say
from planrun.errors import InvalidInput
from planrun.records.rundir import HOME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.app.reviewed import Reviewed
    from planrun.model.plan import Plan

_ENDINGS = (".yml", ".yaml")
PARAM_HELP = "Give a parameter of the plan its value, as the run gets it; repeatable."


def is_plan(operand: str) -> bool:
    """Whether an operand is a plan file, and not the id of a run; no file that a step made takes a run's name."""
    is_run = operand == "last" or os.path.isdir(os.path.join(HOME, "runs", operand))
    return operand.endswith(_ENDINGS) or (os.path.isfile(operand) and not is_run)


def review_plan(file: str, params: tuple[str, ...]) -> tuple[Plan, dict[str, Any], Reviewed]:
    """Load a plan with its parameters and read its scripts, in this folder; raises InvalidInput."""
    from planrun.app.reviewed import review
    from planrun.app.settings import current_folder
    from planrun.source.load import load
    from planrun.source.params import parse_params

    if not os.path.lexists(file):
        _refuse_template(file)
    plan = load(file, cache=False)
    values = parse_params(plan, params)
    return plan, values, review(plan, values, current_folder())


def _refuse_template(name: str) -> None:
    """Raise InvalidInput for the name of a template: what is reviewed, and what runs, is the plan made of it."""
    from planrun.app.templates import known

    if name in known():
        raise InvalidInput(
            f'"{name}" is a template and no plan; first `planrun templates render {name} --var NAME=VALUE -o plan.yml`'
        )


def approve_plan(file: str, given: dict[str, Any]) -> int:
    """Write an approval of a plan; `given` are the options of `approve`."""
    from planrun.app.approving import Grant, approval_file, approval_of, as_text, told, write_approval
    from planrun.app.outlook import Outlook
    from planrun.app.settings import Settings

    grant = Grant(
        **{
            name: given[name]
            for name in ("steps", "expires", "uses", "approver")
            if given.get(name) not in (None, ())
        }
    )
    plan, _, reviewed = review_plan(file, given["params"])
    approval = approval_of(plan, reviewed, grant)
    # Whoever approves reads the risk of what runs: with these parameters, and not with the worst that there could be.
    ahead = Outlook(plan, Settings(params=given["params"]))
    known = plan.but(steps=tuple([prospect.step for prospect in ahead.steps()]))
    lines = [printable(line) for line in told(known, reviewed, approval)]
    path = given["out"] or approval_file(file)
    if path == "-":
        sys.stderr.write("".join([f"{line}\n" for line in lines]))
        say(as_text(approval).rstrip("\n"))
        return 0
    write_approval(path, approval)
    say("\n".join(lines))
    say(f"wrote {printable(path)}; planrun execute {printable(file)} --approval {printable(path)} uses it")
    return 0


@click.command(short_help="Write down what was reviewed, for `execute --locked`.")
@click.argument("plan", type=click.Path(readable=False), shell_complete=complete_plans)
@click.option(
    "--param",
    "-p",
    "params",
    multiple=True,
    metavar="NAME=VALUE",
    help=PARAM_HELP,
    shell_complete=complete_params,
)
@click.option(
    "--policy", type=click.Path(), metavar="FILE", help="The policy that runs have to be under, too."
)
@click.option(
    "-o",
    "--output",
    "out",
    type=click.Path(),
    metavar="FILE",
    help="Default: PLAN with .lock.json as its ending.",
)
@click.option("--check", is_flag=True, help="Write nothing; exit 3 and say what differs when something does.")
def lock(plan: str, params: tuple[str, ...], policy: str | None, out: str | None, *, check: bool) -> int:
    """Write what PLAN means, its parameters and its scripts into a lock file beside it.

    `planrun execute PLAN --locked` then runs exactly that, or nothing. Commit the lock with the plan: a change of
    either shows in the review. The file is readable JSON with one line for each step and script.

    Exit code 0: it is written, or with --check: nothing differs. 2: the plan is wrong, or there is no lock to
    check. 3: something differs.

    \b
    Examples:
      planrun lock plan.yml
      planrun lock plan.yml --param target=prod --policy ci/policy.yml
      planrun lock plan.yml --check
    """
    from planrun.app import locking

    found, values, reviewed = review_plan(plan, params)
    now = locking.lock_of(found, values, reviewed)
    policies = [locking.policy_of(policy)] if policy else []
    path = out or locking.lock_file(plan)
    if not check:
        locking.write_lock(path, {**now, **({"policy": policies[0]} if policies else {})})
        say(f"wrote {printable(path)}, digest {now['digest']}")
        return 0
    differences = list(locking.drift(locking.read_lock(path, found), now, policies))
    if differences:
        lines = "".join([f"\n  {line}" for line in differences])
        complain(f"{plan} is not what {path} holds:{lines}")
        return 3
    say(f"{printable(path)} holds what {printable(plan)} is, digest {now['digest']}")
    return 0
