"""`planrun prune`: remove old runs of this folder."""

from __future__ import annotations

import click

from planrun.cli.printing import say, say_json


@click.command(short_help="Remove old runs of this folder.")
@click.option(
    "--keep", metavar="N", type=click.IntRange(min=0), required=True, help="How many of the newest stay."
)
@click.option(
    "--older-than", metavar="DURATION", default="", help="Only runs that ended so long ago: 720h, 90m."
)
@click.option("--dry-run", is_flag=True, help="Say what would go, and remove nothing.")
@click.option("--json", "as_json", is_flag=True, envvar="PLANRUN_JSON", help="Print one JSON document.")
def prune(keep: int, older_than: str, *, dry_run: bool, as_json: bool) -> int:
    """Remove all runs of this folder but the newest ones.

    A run stays when a process works on it, when it waits for somebody, was cut short, owes a rollback or cleanup, is
    named by the queue, or cannot be read: only what came to its end goes. A run that holds the folder is not disturbed.

    \b
    Examples:
      planrun prune --keep 50
      planrun prune --keep 10 --older-than 720h --dry-run
    """
    from planrun.app.pruning import prune as prune_runs

    found = prune_runs(keep, older_than=_seconds(older_than), dry_run=dry_run)
    if as_json:
        stays = [{"run": each.run, "why": each.why} for each in found.stays]
        say_json(
            {
                "kept": found.kept,
                "stays": stays,
                "removed": list(found.removed),
                "bytes": found.size,
                "dry_run": dry_run,
            }
        )
        return 0
    for each in found.stays:
        say(f"{each.run} stays: {each.why}")
    verb = "would be removed" if dry_run else "removed"
    count = len(found.removed)
    say(
        f"{count} run{'' if count == 1 else 's'} {verb}, {found.size:,} bytes; {found.kept + len(found.stays)} are kept"
    )
    return 0


def _seconds(text: str) -> float:
    if not text:
        return 0.0
    from planrun.cli.quantities import span
    from planrun.source.forms import as_duration

    return as_duration(span("--older-than", text))
