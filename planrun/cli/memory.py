"""`planrun memory`: the memory that the agents of a run shared, from its ledger."""

from __future__ import annotations

import click

from planrun.app.inspect import inspect
from planrun.cliutil.completion import complete_runs
from planrun.cliutil.failure import printable
from planrun.cliutil.printing import say, say_json, table
from planrun.clock import SystemClock
from planrun.errors import InvalidInput
from planrun.model.collaboration import ENTRY_TYPES, entry_data, live
from planrun.model.jsontext import dumps
from planrun.reports.collaboration import last_moment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from planrun.app.inspect import Inspected
    from planrun.model.collaboration import Entry

_HEAD = ("Key", "Type", "Version", "By", "Value")
_SHOWN = 200  # characters of a value in a list


@click.command(short_help="Show the memory that the agents of a run shared.")
@click.argument("run", default="last", shell_complete=complete_runs)
@click.argument("key", required=False)
@click.option("--type", "kind", type=click.Choice(ENTRY_TYPES), help="Only entries of this type.")
@click.option("--json", "as_json", is_flag=True, envvar="PLANRUN_JSON", help="Print one JSON document.")
def memory(run: str, key: str | None, kind: str | None, *, as_json: bool) -> int:
    """List the memory that the agents of RUN (default: the newest run) shared, or print the value of KEY.

    Entries that were deleted, evicted or expired are not listed; the ledger has them all.

    \b
    Examples:
      planrun memory
      planrun memory last --type decision
      planrun memory 20260131-09 database --json
    """
    inspected = inspect(run)
    entries = _entries(inspected)
    if key is None:
        _print(inspected, [entry for entry in entries if kind in (None, entry.type)], as_json=as_json)
        return 0
    found = next((entry for entry in entries if entry.key == key and kind in (None, entry.type)), None)
    if found is None:
        of_type = f" of type {kind}" if kind else ""
        raise InvalidInput(f'no entry "{key}"{of_type} in the memory of the run {inspected.run}')
    if as_json:
        say_json({"run": inspected.run, "entry": entry_data(found)})
    else:
        say(_text(found.value))
    return 0


def _entries(inspected: Inspected) -> list[Entry]:
    """Return the live entries: of a run that goes on those of now, of another one those of its end."""
    state = inspected.state
    if state.noted is None:
        return []
    now = SystemClock().stamp() if inspected.is_active else last_moment(state)
    return live(state.noted.memory.by_key.values(), now)


def _print(inspected: Inspected, entries: list[Entry], *, as_json: bool) -> None:
    if as_json:
        say_json({"run": inspected.run, "entries": [entry_data(entry) for entry in entries]})
    elif entries:
        say("\n".join(_lines(entries)))
    else:
        say(f"no entries in the memory of the run {inspected.run}")


def _lines(entries: list[Entry]) -> Iterator[str]:
    rows = [
        (
            printable(entry.key),
            entry.type,
            str(entry.version),
            printable(entry.agent or entry.step),
            _cell(entry),
        )
        for entry in entries
    ]
    yield table(_HEAD, rows, right=(2,))


def _cell(entry: Entry) -> str:
    text = " ".join(_text(entry.value).split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _text(value: Any) -> str:
    return printable(value) if isinstance(value, str) else dumps(value)
