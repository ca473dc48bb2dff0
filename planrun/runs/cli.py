"""`planrun status`, `runs`, `verify` and `prune`: verbs that read the records of runs in this folder."""

from __future__ import annotations

import click

from planrun.app.published import opened
from planrun.app.published import publish as publish_run
from planrun.cliutil.completion import complete_runs
from planrun.cliutil.output import from_option
from planrun.cliutil.printing import say
from planrun.runs.listing import print_runs, verify_run
from planrun.runs.prune import print_pruned
from planrun.runs.status import print_status


@click.command(short_help="Show the progress of a run, and what blocks it.")
@click.argument("run", default="last", shell_complete=complete_runs)
@from_option
@click.option("--json", "as_json", is_flag=True, envvar="PLANRUN_JSON", help="Print one JSON document.")
def status(run: str, source: str | None, *, as_json: bool) -> int:
    """Show the progress of RUN (default: the newest run), step by step, and what blocks its steps.

    \b
    Examples:
      planrun status
      planrun status 20260131-09
      watch planrun status
      planrun status 20260131-09 --from s3://team/runs
    """
    with opened(run, source) as name:
        print_status(name, as_json=as_json)
    return 0


@click.command(short_help="List the runs in this folder.")
@click.option(
    "-n", "--limit", type=click.IntRange(min=0), default=20, show_default=True, help="How many; 0: all."
)
@from_option
@click.option("--json", "as_json", is_flag=True, envvar="PLANRUN_JSON", help="Print one JSON document.")
def runs(limit: int, source: str | None, *, as_json: bool) -> int:
    """List the runs in this folder, newest first; with --from those that a team has published.

    \b
    Examples:
      planrun runs
      planrun runs --json | jq -r '.runs[] | select(.status == "failed") | .run'
      planrun runs --from s3://team/runs
    """
    print_runs(limit, source, as_json=as_json)
    return 0


@click.command(short_help="Check that the ledger of a run is unchanged.")
@click.argument("run", default="last", shell_complete=complete_runs)
@click.option("--head", metavar="HASH", help="The hash of the last line, as `execute` printed it.")
@click.option("--json", "as_json", is_flag=True, envvar="PLANRUN_JSON", help="Print one JSON document.")
def verify(run: str, head: str | None, *, as_json: bool) -> int:
    """Check that the ledger of RUN is complete and unchanged: every line holds the hash of the line before.

    A user who can write to the folder can also write a whole new ledger; only --head, with a hash kept elsewhere,
    detects that. Logs are compared with the size and hash in the ledger.
    Exit code 0: intact and finished. 10: unfinished. 11: torn. 12: truncated. 13: the ledger or a log was altered.
    14: a later version of planrun wrote a part of it.

    \b
    Examples:
      planrun verify last
      planrun verify 20260131-093000-1f2e3d --head "$HEAD"
    """
    return verify_run(run, head, as_json=as_json)


@click.command(short_help="Delete finished runs of this folder.")
@click.option(
    "--keep", metavar="N", type=click.IntRange(min=0), required=True, help="How many of the newest to keep."
)
@click.option(
    "--older-than", metavar="DURATION", default="", help="Only runs that ended so long ago: 720h, 90m."
)
@click.option("--dry-run", is_flag=True, help="Show what would be deleted, and delete nothing.")
@click.option("--json", "as_json", is_flag=True, envvar="PLANRUN_JSON", help="Print one JSON document.")
def prune(keep: int, older_than: str, *, dry_run: bool, as_json: bool) -> int:
    """Delete finished runs of this folder, except the newest.

    A run is kept when it is running, waits for an approval, was interrupted, has a pending rollback or cleanup, is
    in the queue, or cannot be read. The command fails while a run uses this folder.

    \b
    Examples:
      planrun prune --keep 50
      planrun prune --keep 10 --older-than 720h --dry-run
    """
    print_pruned(keep, older_than, dry_run=dry_run, as_json=as_json)
    return 0


@click.command(short_help="Send a run to where a team lists its runs.")
@click.argument("run", default="last", shell_complete=complete_runs)
@click.option(
    "--to", "target", metavar="DIR|URL", envvar="PLANRUN_PUBLISH", required=True, help="The folder or URL."
)
def publish(run: str, target: str) -> int:
    """Send the record, ledger, plan and logs of RUN, as `run --publish` does at its end.

    They are masked, as they are in the records of the run. What was sent before is replaced.

    \b
    Examples:
      planrun publish last --to /srv/team/runs
      planrun publish 20260131-09 --to s3://team/runs
    """
    say(f"published: {publish_run(run, target)}")
    return 0
