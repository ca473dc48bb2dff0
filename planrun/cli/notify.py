"""`planrun notify`: a test message to the targets of a plan."""

from __future__ import annotations

import json

import click

from planrun.app.notify_test import Trial, try_out
from planrun.cliutil.completion import complete_plans
from planrun.cliutil.defaultplan import given
from planrun.cliutil.failure import printable
from planrun.cliutil.printing import say, say_json
from planrun.errors import EXIT_FAILED, EXIT_OK
from planrun.model.notify import EVENTS
from planrun.plan.load import load
from planrun.settings import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@click.command(short_help="Send a test message to whom a plan notifies.")
@click.argument("plan", required=False, default="", shell_complete=complete_plans)
@click.option("--on", "event", type=click.Choice(EVENTS), help="Only to targets of this event.")
@click.option("--policy", metavar="FILE", default="", help="Also to the targets of this policy.")
@click.option("--dry-run", is_flag=True, help="Print what would be sent; send nothing.")
@click.option("--json", "as_json", is_flag=True, envvar="PLANRUN_JSON", help="Print one JSON document.")
def notify(plan: str, event: str | None, policy: str, *, dry_run: bool, as_json: bool) -> int:
    """Send a test message to each target under `notify` of PLAN. It says that no run is behind it.
    Without PLAN it is the default plan.

    Exit code 0: all were delivered. 1: at least one was not.

    \b
    Examples:
      planrun notify plan.yml
      planrun notify plan.yml --on waiting
      planrun notify plan.yml --dry-run
    """
    trials = try_out(load(given(plan).file), Settings(policy=policy), event or "", send=not dry_run)
    if as_json:
        say_json({"notifications": [_data(trial) for trial in trials]})
    else:
        for trial in trials:
            say(_text(trial))
    return EXIT_OK if all(trial.entry.get("status", "sent") == "sent" for trial in trials) else EXIT_FAILED


def _data(trial: Trial) -> dict[str, Any]:
    return {"target": trial.name, "to": trial.to, "event": trial.event, "body": trial.body, **trial.entry}


def _text(trial: Trial) -> str:
    head = f"{printable(trial.to)} ({trial.event})"
    if not trial.entry:
        return f"{head}:\n{json.dumps(trial.body, indent=2, ensure_ascii=False)}"
    code = trial.entry.get("code")
    what = "exit code" if trial.to.startswith("command ") else "HTTP"
    if trial.entry["status"] == "sent":
        return f"{head}: sent" + (f", {what} {code}" if code is not None else "")
    return f"{head}: not sent: {printable(str(trial.entry.get('message', '')))}"
