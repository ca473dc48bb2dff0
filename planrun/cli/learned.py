"""`planrun errors`: list or clear what agents learned from errors."""

from __future__ import annotations

import os

import click

from planrun.agents.kept import folder_of
from planrun.agents.learned import ErrorStore, clear
from planrun.cliutil.failure import printable
from planrun.cliutil.printing import say, say_json, table
from planrun.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_HEAD = ("Weight", "Helped", "Category", "Error", "Fix")


@click.command(short_help="List or clear what agents learned from errors.")
@click.argument("verb", type=click.Choice(("list", "clear")), default="list")
@click.option(
    "--dir", "folder", metavar="DIR", help="The folder of `llm.memory.dir`, instead of the default."
)
@click.option("--json", "as_json", is_flag=True, envvar="PLANRUN_JSON", help="Print one JSON document.")
def errors(verb: str, folder: str | None, *, as_json: bool) -> int:
    """List what agents learned from errors of their tools, or delete it.

    \b
    list     each error with the fix that was tried, the best first
    clear    delete everything

    Plans with `llm: {memory: {store: read}}` use it, those with `store: write` also add to it.

    \b
    Examples:
      planrun errors
      planrun errors list --json
      planrun errors clear
    """
    path = _folder(folder)
    data = {"folder": path, **(_listed(path) if verb == "list" else {"removed": clear(path)})}
    if as_json:
        say_json(data)
    else:
        for line in _lines(data):
            say(line)
    return 0


def _folder(given: str | None) -> str:
    if given is not None and not os.path.isdir(given):
        raise InvalidInput(f"no such folder: {given}")
    path = folder_of(given or "", os.getcwd())
    if not path:
        raise InvalidInput("the environment names no folder for caches: set PLANRUN_CACHE_DIR or HOME")
    return path


def _listed(path: str) -> dict[str, Any]:
    store = ErrorStore()
    store.load(path)
    entries = sorted(store.entries.values(), key=lambda entry: (-entry.weight, -entry.count, entry.id))
    return {"errors": [entry.as_data() for entry in entries]}


def _lines(data: dict[str, Any]) -> Iterator[str]:
    if "removed" in data:
        number = data["removed"]
        yield f"removed {number} error{'' if number == 1 else 's'} from {data['folder']}"
    elif not data["errors"]:
        yield f"nothing was learned yet, in {data['folder']}"
    else:
        yield table(_HEAD, [_row(entry) for entry in data["errors"]], right=(0, 1))


def _row(entry: dict[str, Any]) -> tuple[str, ...]:
    helped = f"{entry['successes']} of {entry['count']}"
    texts = [printable(entry[name]) for name in ("category", "pattern", "solution")]
    return (f"{entry['weight']:.2f}", helped, *texts)
