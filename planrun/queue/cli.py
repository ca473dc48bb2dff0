"""`planrun queue`: plans that wait for their turn in this folder."""

from __future__ import annotations

import sys

import click

from planrun.cliutil.click import tabled
from planrun.cliutil.completion import complete_plans
from planrun.cliutil.failure import printable
from planrun.cliutil.options import EXECUTE, Option, parse
from planrun.cliutil.printing import say
from planrun.errors import InvalidInput
from planrun.records.queuefile import QueueFile
from planrun.settings import current_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


_PLACING = (
    Option(
        flags=("--priority",),
        name="priority",
        kind="text",
        metavar="N",
        help="The higher, the sooner; 0 unless given, and below it later.",
        scope="QUEUE",
    ),
    Option(
        flags=("--after",),
        name="after",
        kind="list",
        metavar="ENTRY",
        help="Start only when this entry is completed; repeatable.",
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
        help="Run what the file holds when its turn comes, and not only what it holds now.",
        scope="QUEUE",
    ),
)
_ADD = (*_PLACING, *EXECUTE)
_PIECE = 1 << 16  # bytes that are copied at once
_MOST = 999_999  # how far priorities go


@click.group(short_help="Plans that wait for their turn in this folder.")
def queue() -> None:
    """Queue plans and work them off: highest priority first, of one priority the oldest.

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
    from planrun.queue.entries import Wish, add

    placed = {option.name: values.pop(option.name) for option in _PLACING if option.name in values}
    wish = Wish(
        plan=file,
        options=tuple(_words(values)),
        params=values.get("params", ()),
        folder=placed.get("folder", ""),
        priority=_number("--priority", placed.get("priority", "0")),
        after=tuple(_number("--after", word) for word in placed.get("after", ())),
        track=placed.get("track", False),
    )
    queue_file = _file()
    added = add(queue_file, wish)
    status = queue_file.read().statuses().get(added.entry, "queued")
    say(f"entry {added.entry}: {status}, {printable(added.plan)}")
    return 0


def _words(values: dict[str, Any]) -> list[str]:
    """Return options as words again, each in one word."""
    words: list[str] = []
    for option in EXECUTE:
        flag = next(flag for flag in option.flags if flag.startswith("--"))
        value = values.get(option.name)
        if option.name == "no_cache":
            words += [flag] if values.get("cache") is False else []
        elif value is None or value is False:
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

        The plan is checked now, and what is checked now is what will run: when the file has changed by the time its
        turn comes, the entry fails (--track: it runs as it is then). Files that options name are looked for in the
        folder the plan runs in. Variables of `execute` are those of the `queue run` that starts it.

        \b
        Examples:
          planrun queue add plan.yml
          planrun queue add plan.yml --priority 10 --jobs 2
          planrun queue add deploy.yml --after 1 --after 2 --folder services/api
        """,
        _add,
    )
)


@queue.command("list", short_help="What is in the queue, and what holds it up.")
@click.option("--json", "as_json", is_flag=True, envvar="PLANRUN_JSON", help="Print one JSON document.")
def list_(*, as_json: bool) -> int:
    """List the entries in the order in which they run.

    \b
    Examples:
      planrun queue list
      planrun queue list --json | jq -r '.entries[] | select(.status == "failed") | .entry'
    """
    from planrun.queue.listing import print_queue

    print_queue(as_json=as_json)
    return 0


@queue.command("run", short_help="Work the queue off.")
@click.option(
    "--max-concurrent",
    type=click.IntRange(min=1, max=1000),
    default=1,
    show_default=True,
    metavar="N",
    help="Entries that run at once, each in a folder of its own.",
)
@click.option("--wait", is_flag=True, help="Stay when the queue is empty, until a signal comes.")
@click.option("--drain", is_flag=True, help="End when nothing is left that could start: the default.")
def run(*, max_concurrent: int, wait: bool, drain: bool) -> int:
    """Start what is queued, and wait until nothing is left that could start.

    What a runner that was killed left behind is looked after first: runs that still go on are waited for, others go on
    where they were. Ctrl-C and SIGTERM are handed on to what runs; those entries end `cancelled`, the others stay
    queued.

    \b
    Exit codes:
      0    every entry completed
      1    one failed, was cancelled or is blocked
      2    the command line is wrong, or another planrun works on this queue
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
        raise click.UsageError("--wait and --drain say opposite things")
    from planrun.queue.serve import Runner

    return Runner(_file(), _Told(), most=max_concurrent, stays=wait).run()


class _Told:
    """Says on stderr, as `execute` does, what a runner does and what its entries printed."""

    def line(self, text: str) -> None:
        """Say something in a line."""
        _write(f"planrun queue: {printable(text)}\n".encode("utf-8", "backslashreplace"))

    def output(self, path: str, start: int) -> None:
        """Show what an entry printed."""
        try:
            with open(path, "rb") as file:
                file.seek(start)
                while piece := file.read(_PIECE):
                    _write(piece)
        except OSError as error:
            self.line(f"what it printed cannot be read: {error.strerror}")


def _write(data: bytes) -> None:
    try:
        sys.stderr.flush()
        sys.stderr.buffer.write(data)
        sys.stderr.buffer.flush()
    except (OSError, ValueError, AttributeError):  # nobody reads it; the queue goes on
        return


@queue.command(short_help="Take an entry's turn away, or end its run.")
@click.argument("entry", type=int)
def cancel(entry: int) -> int:
    """Cancel ENTRY; one that runs ends as by Ctrl-C, and is waited for. What comes after it is blocked.

    Exit code 0: it is cancelled. 1: it ended in another way just before. 2: there is no such entry, or it has ended.

    \b
    Examples:
      planrun queue cancel 3
    """
    from planrun.queue.entries import cancel as end

    status = end(_file(), entry)
    say(f"entry {entry}: {status}")
    return 0 if status == "cancelled" else 1


@queue.command(short_help="Queue entries again that failed, were cancelled or wait.")
@click.argument("entry", type=int, nargs=-1, required=True)
def retry(entry: Sequence[int]) -> int:
    """Queue each ENTRY again: a run that began goes on where it was, as by `resume`; another begins anew.

    What was blocked because of it is queued again, too.

    \b
    Examples:
      planrun queue retry 3
      planrun queue retry 3 5
    """
    from planrun.queue.entries import retry as again

    again(_file(), entry)
    say("\n".join(f"entry {number}: queued" for number in entry))
    return 0


@queue.command(short_help="Have nothing more start.")
def pause() -> int:
    """Have no further entry start; what runs goes on to its end.

    \b
    Examples:
      planrun queue pause
    """
    from planrun.queue.entries import pause as hold

    say("the queue is paused" if hold(_file()) else "the queue was paused already")
    return 0


@queue.command(short_help="Have entries start again.")
def resume() -> int:
    """Have entries start again after a pause.

    \b
    Examples:
      planrun queue resume
    """
    from planrun.queue.entries import resume as go_on

    say("the queue goes on" if go_on(_file()) else "the queue was not paused")
    return 0


@queue.command(short_help="Take entries out that have ended.")
@click.option("--all", "everything", is_flag=True, help="Take out all that do not run.")
def clear(*, everything: bool) -> int:
    """Take out the entries that have ended. Runs and their records stay.

    An entry stays as long as a remaining one comes after it. Numbers are never given twice.

    \b
    Examples:
      planrun queue clear
      planrun queue clear --all
    """
    from planrun.queue.entries import clear as take_out

    gone = take_out(_file(), everything=everything)
    say(f"{gone} entr{'y' if gone == 1 else 'ies'} taken out")
    return 0


def _file() -> QueueFile:
    return QueueFile(current_folder())
