"""Options of read-only verbs that say what a plan would be told: under which policy, with which parameters."""

from __future__ import annotations

import click

from planrun.cli.arguments import APPROVING, PARAM
from planrun.cli.completing import complete_params

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from planrun.app.outlook import Outlook
    from planrun.model.plan import Plan

_POLICY, _LEVEL = APPROVING


def judged(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command the options --policy, --auto-approve and --param of `execute`; see `outlook`."""
    options = (
        click.option("--policy", metavar="FILE", envvar=_POLICY.variable, default="", help=_POLICY.help),
        click.option(
            "--auto-approve",
            type=click.Choice(_LEVEL.choices),
            envvar=_LEVEL.variable,
            help=_LEVEL.help,
        ),
        click.option(
            *PARAM.flags,
            "params",
            multiple=True,
            metavar=PARAM.metavar,
            help="A parameter that is known, for risks, policy and digest; repeatable.",
            shell_complete=complete_params,
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def outlook(plan: Plan, policy: str, auto_approve: str | None, params: tuple[str, ...]) -> Outlook:
    """Return what a plan will be told; raises InvalidInput, InvalidPlan."""
    from planrun.app.outlook import Outlook
    from planrun.app.settings import Settings

    return Outlook(plan, Settings(policy=policy, auto_approve=auto_approve or "", params=params))
