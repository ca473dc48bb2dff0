"""`planrun queue`: queue plans in this folder, and run them."""

from __future__ import annotations

import os
import sys

import click

from planrun.cliutil.click import tabled
from planrun.cliutil.completion import complete_plans
from planrun.cliutil.failure import printable
from planrun.cliutil.options import QUEUED, Option, parse
from planrun.cliutil.printing import say
from planrun.errors import InvalidInput
from planrun.opening import open_record
from planrun.records.queuefile import QueueFile
from planrun.settings import current_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from planrun.queue.serve import AnyQueue
    from planrun.records.queueplace import QueuePlace


_PLACING = (
    Option(
        flags=("--priority",),
        name="priority",
        kind="text",
        metavar="N",
        help="Higher runs first. Default: 0",
        scope="QUEUE",
    ),
    Option(
        flags=("--after",),
        name="after",
        kind="list",
        metavar="ENTRY",
        help="Start only after this entry completed; repeatable.",
        scope="QUEUE",
    ),
    Option(
        flags=("--folder",),
        name="folder",
        kind="text",
        metavar="DIR",
        help="Run it there. Default: this folder.",
        scope="QUEUE",
    ),
    Option(
        flags=("--track",),
        name="track",
        kind="flag",
        help="Run the file as it is when the entry starts, even if it changed since.",
        scope="QUEUE",
    ),
    Option(
        flags=("--repeatable",),
        name="repeatable",
        kind="flag",
        help="With --at: start it again on another machine when its own is lost. Default: leave that to a person.",
        scope="QUEUE",
    ),
)
_AT = Option(
    flags=("--at",),
    name="at",
    kind="text",
    metavar="DIR|URL",
    help="The queue in this folder or URL, which several machines share. Default: the queue of this folder.",
    scope="QUEUE",
)
_ADD = (_AT, *_PLACING, *QUEUED)
_PIECE = 1 << 16  # bytes that are copied at once
_MOST = 999_999  # the highest priority


_at = click.option("--at", metavar="DIR|URL", envvar=_AT.variable, help=_AT.help)


@click.group(short_help="Queue plans in this folder, and run them.")
def queue() -> None:
    """Queue plans and run them: highest priority first, oldest first within a priority.

    Each entry is executed by a process of its own, with records and reports of its own. Entries of one folder run one
    after another; `run --max-concurrent` lets those of different folders run at once. `planrun queue VERB --help` shows
    the options of each verb.

    \b
    Examples:
      planrun queue add build.yml
      planrun queue add deploy.yml --after 1 --priority 5 --param target=prod
      planrun queue list
      planrun queue run
      planrun queue run --max-concurrent 4 --wait
      planrun queue retry 2
    """


def _add(words: list[str]) -> int:
    # Variables are for the process that runs the plan, which reads them itself.
    file, values = parse(words[1:], _ADD, "PLAN file", {})
    from planrun.queue.entries import QueueRequest, add

    if file == "-":
        raise InvalidInput("a queue runs a plan later: name the file of the plan")
    at = values.pop("at", "") or os.environ.get(_AT.variable, "")
    placed = {option.name: values.pop(option.name) for option in _PLACING if option.name in values}
    request = QueueRequest(
        plan=file,
        options=tuple(_words(values)),
        params=values.get("params", ()),
        folder=placed.get("folder", ""),
        priority=_number("--priority", placed.get("priority", "0")),
        after=tuple(_number("--after", word) for word in placed.get("after", ())),
        track=placed.get("track", False),
        repeatable=placed.get("repeatable", False),
    )
    queue_file = _queue(at)
    added = add(queue_file, request)
    status = queue_file.read().statuses().get(added.entry, "queued")
    say(f"entry {added.entry}: {status}, {printable(added.plan)}")
    return 0


def _words(values: dict[str, Any]) -> list[str]:
    """Return options as words again, each in one word."""
    words: list[str] = []
    for option in QUEUED:
        flag = next(flag for flag in option.flags if flag.startswith("--"))
        value = values.get(option.name)
        if option.name == "no_cache":
            words += [flag] if values.get("cache") is False else []
        elif value is None or value is False or option.values:  # another option has the same field
            continue
        elif option.kind == "flag":
            words.append(flag)
        else:
            words += [f"{flag}={part}" for part in (value if option.repeatable else (value,))]
    return words


def _number(flag: str, word: str) -> int:
    digits = word.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()) or abs(int(digits[:20])) > _MOST:
        raise InvalidInput(f'{flag} takes a whole number, not "{word}"')
    return int(word)


queue.add_command(
    tabled(
        "add",
        [click.Argument(["plan"], type=click.Path(readable=False), shell_complete=complete_plans)],
        _ADD,
        """Queue PLAN, with options of `execute`.

        The plan is checked now, and exactly this plan will run: when the file has changed by the time the entry starts,
        the entry fails (--track: it runs as it is then). Files in options are relative to the folder
        the plan runs in. Variables of `execute` are those of the `queue run` that starts it.

        \b
        Examples:
          planrun queue add plan.yml
          planrun queue add plan.yml --priority 10 --jobs 2
          planrun queue add deploy.yml --after 1 --after 2 --folder services/api
        """,
        _add,
    )
)


@queue.command("list", short_help="List the entries, and what blocks them.")
@_at
@click.option("--json", "as_json", is_flag=True, envvar="PLANRUN_JSON", help="Print one JSON document.")
def list_(at: str | None, *, as_json: bool) -> int:
    """List the entries in the order in which they run.

    \b
    Examples:
      planrun queue list
      planrun queue list --json | jq -r '.entries[] | select(.status == "failed") | .entry'
    """
    from planrun.queue.listing import print_queue

    print_queue(_shared(at), as_json=as_json)
    return 0


@queue.command("run", short_help="Run the queue.")
@click.option(
    "--max-concurrent",
    type=click.IntRange(min=1, max=1000),
    default=1,
    show_default=True,
    metavar="N",
    help="Entries that run at once, each in a folder of its own.",
)
@click.option("--wait", is_flag=True, help="Wait for more entries when the queue is empty, until a signal.")
@click.option("--drain", is_flag=True, help="End when no entry can start: the default.")
@_at
def run(at: str | None, *, max_concurrent: int, wait: bool, drain: bool) -> int:
    """Run queued entries until no entry can start.

    Entries of a killed runner come first: it waits for those still running, and continues the others. Ctrl-C and
    SIGTERM are passed on to running entries, which end `cancelled`; the others stay queued.

    \b
    Exit codes:
      0    every entry completed
      1    one failed, was cancelled or is blocked
      2    the command line is wrong, or another planrun runs this queue
      5    one waits for an approval or an answer, or the queue is paused
      74   the queue cannot be written
      129  ended by SIGHUP; 130 by SIGINT, 143 by SIGTERM

    \b
    Examples:
      planrun queue run
      planrun queue run --max-concurrent 4
      planrun queue run --wait
    """
    if wait and drain:
        raise click.UsageError("--wait and --drain exclude each other")
    shared = _shared(at)
    if shared:
        from planrun.queue.sharing import SharedRunner

        return SharedRunner(shared, _Console(), most=max_concurrent, stays=wait).run()
    from planrun.queue.serve import Runner

    return Runner(QueueFile(current_folder()), _Console(), most=max_concurrent, stays=wait).run()


class _Console:
    """Prints the progress of a runner and the output of its entries to stderr."""

    def line(self, text: str) -> None:
        """Print a line."""
        _write(f"planrun queue: {printable(text)}\n".encode("utf-8", "backslashreplace"))

    def output(self, path: str, start: int) -> None:
        """Show what an entry printed."""
        try:
            with open(open_record(path), "rb") as file:
                file.seek(start)
                while piece := file.read(_PIECE):
                    _write(piece)
        except OSError as error:
            self.line(f"cannot read its output: {error.strerror}")


def _write(data: bytes) -> None:
    try:
        sys.stderr.flush()
        sys.stderr.buffer.write(data)
        sys.stderr.buffer.flush()
    except (OSError, ValueError, AttributeError):  # its reader is gone; the queue continues
        return


@queue.command(short_help="Cancel an entry, and end its run.")
@click.argument("entry", type=int)
@_at
def cancel(entry: int, at: str | None) -> int:
    """Cancel ENTRY; a running one ends as by Ctrl-C, and the command waits for it. Entries after it are blocked.

    Exit code 0: it is cancelled. 1: it had ended otherwise. 2: there is no such entry, or it has ended.

    \b
    Examples:
      planrun queue cancel 3
    """
    from planrun.queue.entries import cancel as cancel_entry

    status = cancel_entry(_queue(at), entry)
    say(f"entry {entry}: {status}")
    return 0 if status == "cancelled" else 1


@queue.command(short_help="Queue failed, cancelled or waiting entries again.")
@click.argument("entry", type=int, nargs=-1, required=True)
@_at
def retry(entry: Sequence[int], at: str | None) -> int:
    """Queue each ENTRY again: a started run continues, as by `resume`; otherwise it starts.

    Entries that it blocked are queued again, too.

    \b
    Examples:
      planrun queue retry 3
      planrun queue retry 3 5
    """
    from planrun.queue.entries import retry as retry_entries

    retry_entries(_queue(at), entry)
    say("\n".join(f"entry {number}: queued" for number in entry))
    return 0


@queue.command(short_help="Pause the queue.")
@_at
def pause(at: str | None) -> int:
    """Start no further entry; running entries finish.

    \b
    Examples:
      planrun queue pause
    """
    from planrun.queue.entries import pause as pause_queue

    say("the queue is paused" if pause_queue(_queue(at)) else "the queue was paused already")
    return 0


@queue.command(short_help="Resume the queue.")
@_at
def resume(at: str | None) -> int:
    """Start entries again after a pause.

    \b
    Examples:
      planrun queue resume
    """
    from planrun.queue.entries import resume as resume_queue

    say("the queue continues" if resume_queue(_queue(at)) else "the queue was not paused")
    return 0


@queue.command(short_help="Remove ended entries.")
@click.option("--all", "everything", is_flag=True, help="Remove all entries that are not running.")
@_at
def clear(at: str | None, *, everything: bool) -> int:
    """Remove ended entries. Runs and their records are kept.

    An entry is kept while a remaining one comes after it. Numbers are never reused.

    \b
    Examples:
      planrun queue clear
      planrun queue clear --all
    """
    from planrun.queue.entries import clear as clear_queue

    removed = clear_queue(_queue(at), everything=everything)
    say(f"{removed} entr{'y' if removed == 1 else 'ies'} removed")
    return 0


def _shared(at: str | None) -> QueuePlace | None:
    from planrun.records.queueplace import QueuePlace

    found = _queue(at) if at else None
    return found if isinstance(found, QueuePlace) else None


def _queue(at: str | None) -> AnyQueue:
    """Return the queue of this folder, or the one at an address; raises InvalidInput, RemoteError."""
    if not at:
        return QueueFile(current_folder())
    from planrun.places.place import open_place  # few queues are shared
    from planrun.queue.leases import lease_seconds
    from planrun.records.queueplace import QueuePlace

    return QueuePlace(current_folder(), open_place(at, limit=max(2.0, lease_seconds() / 6)))
