"""`planrun memory` and `planrun learned`: what agents share and have learned, and the plans that a project keeps."""

from __future__ import annotations

import json
import os
import time

import click

from planrun.agents.kept import folder_of
from planrun.agents.learned import ErrorStore, clear
from planrun.app.inspect import inspect
from planrun.app.memory import change_memory
from planrun.approval.responses import user_name
from planrun.cliutil.completion import complete_runs
from planrun.cliutil.failure import printable
from planrun.cliutil.printing import say, say_json, table
from planrun.cliutil.values import span
from planrun.clock import SystemClock
from planrun.errors import InvalidInput
from planrun.model.collaboration import ENTRY_TYPES, entry_data, live
from planrun.model.jsontext import dumps
from planrun.model.record import Record
from planrun.plan.schema.forms import as_duration
from planrun.records import planmemory
from planrun.reports.collaboration import last_moment
from planrun.reports.escape import line
from planrun.settings import current_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from planrun.app.inspect import Inspected
    from planrun.model.collaboration import Entry


_LEARNED_HEAD = ("Weight", "Helped", "Category", "Error", "Fix")


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
        for line in _learned_lines(data):
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


def _learned_lines(data: dict[str, Any]) -> Iterator[str]:
    if "removed" in data:
        number = data["removed"]
        yield f"removed {number} error{'' if number == 1 else 's'} from {data['folder']}"
    elif not data["errors"]:
        yield f"nothing was learned yet, in {data['folder']}"
    else:
        yield table(_LEARNED_HEAD, [_row(entry) for entry in data["errors"]], right=(0, 1))


def _row(entry: dict[str, Any]) -> tuple[str, ...]:
    helped = f"{entry['successes']} of {entry['count']}"
    texts = [printable(entry[name]) for name in ("category", "pattern", "solution")]
    return (f"{entry['weight']:.2f}", helped, *texts)


_HEAD = ("Key", "Type", "Version", "By", "Value")
_PAUSE = 0.2  # seconds between two looks at the ledger
_SHOWN = 200  # characters of a value in a list


@click.command(short_help="Show, change and follow the memory that the agents of a run share.")
@click.argument("run", default="last", shell_complete=complete_runs)
@click.argument("word", nargs=-1)
@click.option(
    "--type", "kind", type=click.Choice(ENTRY_TYPES), help="Only entries of this type; of `set`: its type."
)
@click.option("--ttl", metavar="DURATION", help="Of `set`: how long the entry lasts.")
@click.option(
    "--by", metavar="NAME", default="", help="Of `set` and `delete`: who changes it. Default: the user."
)
@click.option("--json", "as_json", is_flag=True, envvar="PLANRUN_JSON", help="Print one JSON document.")
def memory(run: str, word: tuple[str, ...], **options: Any) -> int:
    """List the memory that the agents of RUN (default: the newest run) share, or print the value of a key.

    \b
    RUN                     the entries; those that were deleted, evicted or expired are in the ledger alone
    RUN KEY, RUN get KEY    the value of one entry
    RUN set KEY VALUE       write an entry; VALUE is JSON, or a text
    RUN delete KEY          remove an entry
    RUN watch               print changes as they happen, until the run ends
    plans                   the plans that are kept as examples for `generate`
    plans clear             delete these

    A running run records a change before the command returns, and its agents see it at their next call of the tool.
    A run that has no process and did not end gets it in its ledger. A run that ended keeps its memory.

    \b
    Examples:
      planrun memory
      planrun memory last --type decision
      planrun memory last set database postgres --type decision
      planrun memory last set freeze true --ttl 30m
      planrun memory last watch
      planrun memory 20260131-09 database --json
    """
    given = Given(**options)
    if run == "plans":
        return plans(word, as_json=given.as_json)
    verb, rest = (word[0], word[1:]) if len(word) > 1 or word == ("watch",) else ("get", word)
    if (verb, len(rest)) == ("set", 2):
        return _set(run, rest[0], rest[1], given)
    if (verb, len(rest)) == ("delete", 1):
        key = rest[0]
        result = change_memory(run, {"op": "delete", "key": key, "by": _author(given)})
        if given.as_json:
            say_json(result)
        else:
            say(f"{printable(key)}: deleted")
        return 0
    if (verb, len(rest)) == ("watch", 0):
        return watch(run, given.kind, as_json=given.as_json)
    if verb == "get" and len(rest) < 2:
        return _show(run, rest[0] if rest else None, given)
    raise click.UsageError("expected RUN [KEY], RUN get KEY, RUN set KEY VALUE, RUN delete KEY or RUN watch")


class Given(Record):
    """The options of the verb."""

    kind: str | None
    ttl: str | None
    by: str
    as_json: bool


def _show(run: str, key: str | None, given: Given) -> int:
    inspected, kind = inspect(run), given.kind
    state = inspected.state
    if state.noted is None:
        entries = []
    else:
        now = SystemClock().stamp() if inspected.is_active else last_moment(state)
        entries = live(state.noted.memory.by_key.values(), now)
    if key is None:
        _print(inspected, [entry for entry in entries if kind in (None, entry.type)], as_json=given.as_json)
        return 0
    found = next((entry for entry in entries if entry.key == key and kind in (None, entry.type)), None)
    if found is None:
        of_type = f" of type {kind}" if kind else ""
        raise InvalidInput(f'no entry "{key}"{of_type} in the memory of the run {inspected.run}')
    if given.as_json:
        say_json({"run": inspected.run, "entry": entry_data(found)})
    else:
        say(_text(found.value))
    return 0


def _set(run: str, key: str, text: str, given: Given) -> int:
    seconds = as_duration(span("--ttl", given.ttl)) if given.ttl else None
    asked = {
        "op": "set",
        "key": key,
        "value": _value(text),
        "type": given.kind or "fact",
        "by": _author(given),
    }
    result = change_memory(run, asked if seconds is None else {**asked, "ttl": seconds})
    if given.as_json:
        say_json(result)
    else:
        say(f"{printable(key)}: version {result['entry']['version']}")
    return 0


def _author(given: Given) -> str:
    return line(given.by or user_name())


def _value(text: str) -> Any:
    """Return what a text is as JSON, else the text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def watch(run: str, kind: str | None, *, as_json: bool) -> int:
    """Print each change of the memory of a run as it is recorded, until the run has no process any more."""
    seen = 0
    while True:
        inspected = inspect(run)
        noted = inspected.state.noted
        changes = [each.change for each in noted.changes if each.kind == "memory"] if noted else []
        for change in changes[seen:]:
            if change["op"] != "read" and kind in (None, change.get("type")):
                say(dumps(change) if as_json else _change(change))
        seen = len(changes)
        if not inspected.is_active:
            return 0
        time.sleep(_PAUSE)


def _change(change: Mapping[str, Any]) -> str:
    value = f" = {_short(_text(change['value']))}" if "value" in change else ""
    by = f" by {change['agent']}" if change.get("agent") else ""
    return printable(f"{change['at']} {change['op']} {change['key']}{value}{by}")


def plans(word: tuple[str, ...], *, as_json: bool) -> int:
    """List the plans that are kept as examples, or delete them."""
    folder = current_folder()
    if word == ("clear",):
        removed = planmemory.clear(folder)
        if as_json:
            say_json({"removed": removed})
        else:
            say(f"removed {removed} plan{'' if removed == 1 else 's'}")
        return 0
    if word:
        raise click.UsageError("expected `planrun memory plans` or `planrun memory plans clear`")
    found = planmemory.kept(folder)
    if as_json:
        say_json({"plans": [{"id": plan.id, **vars(plan)} for plan in found]})
    elif found:
        rows = [(printable(_short(plan.goal)), str(plan.steps), plan.run, plan.at) for plan in found]
        say(table(("Goal", "Steps", "Run", "Ended"), rows, right=(1,)))
    else:
        say(
            "no plans are kept; `memory: {plans: true}` in .planrun.yml keeps those with a goal that complete"
        )
    return 0


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
            _short(_text(entry.value)),
        )
        for entry in entries
    ]
    yield table(_HEAD, rows, right=(2,))


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _text(value: Any) -> str:
    return printable(value) if isinstance(value, str) else dumps(value)
