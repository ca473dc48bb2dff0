"""The work of `planrun prune`: delete finished runs; a running, waiting, interrupted or damaged run is kept."""

from __future__ import annotations

from planrun.app.pruning import prune
from planrun.cliutil.printing import say, say_json
from planrun.cliutil.values import span
from planrun.plan.schema.forms import as_duration


def print_pruned(keep: int, older_than: str, *, dry_run: bool, as_json: bool) -> None:
    """Delete finished runs as `prune` does, and print the result; raises what `prune` raises."""
    seconds = as_duration(span("--older-than", older_than)) if older_than else 0.0
    pruned = prune(keep, older_than=seconds, dry_run=dry_run)
    if as_json:
        stays = [{"run": each.run, "why": each.why} for each in pruned.stays]
        say_json(
            {
                "kept": pruned.kept,
                "stays": stays,
                "removed": list(pruned.removed),
                "bytes": pruned.size,
                "dry_run": dry_run,
            }
        )
        return
    for each in pruned.stays:
        say(f"{each.run} kept: {each.why}")
    verb = "would be deleted" if dry_run else "deleted"
    count = len(pruned.removed)
    kept = pruned.kept + len(pruned.stays)
    say(f"{count} run{'' if count == 1 else 's'} {verb}, {pruned.size:,} bytes; {kept} kept")
