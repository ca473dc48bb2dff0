"""The work of `planrun logs`: which logs are printed in which form."""

from __future__ import annotations

import os
import sys

from planrun.app.inspect import known_runs, read_run
from planrun.cliutil.click import tell
from planrun.errors import PlanrunError
from planrun.executors.logs import elsewhere
from planrun.logs.attempts import (
    Attempt,
    Wanted,
    attempts_of,
    chosen,
    folder_of,
    named,
    parts_of,
    state_of_step,
    without_log,
)
from planrun.logs.writing import Bytes, JsonLines, Plain, Prefixed
from planrun.model.record import Record
from planrun.opening import extent
from planrun.records.logfiles import open_log, pieces, start_of_last
from planrun.reports.ci import coloured

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from planrun.logs.writing import Writer


class Form(Record):
    """How logs are printed; `head` and `tail`: so many lines of each log, None: all."""

    as_json: bool = False
    prefix: bool = True
    head: int | None = None
    tail: int | None = None


def print_logs(run: str, wanted: Wanted, form: Form) -> int:
    """Print the logs of a run that are there now, and return the exit code; raises InvalidInput, InvalidPlan.

    The exit code is 1 when a log is gone that had content.
    """
    folder_of(run)
    found = read_run(run)
    attempts = attempts_of(found.reading.events, found.state, is_active=found.is_active)
    of_them = chosen(attempts, found.state, wanted)
    writer = writer_for(found.run, of_them, form)
    gone = [each for each in of_them if not _print(found.rundir, each, writer, form)]
    for each in gone:
        tell(f"the log of {each.step} is gone: {os.path.join(found.rundir, each.log)} was removed")
    have = {each.step for each in of_them if each.ended is None or each.ended.log_bytes}
    if not wanted.steps:
        if not have:
            what = "no step has failed" if wanted.failed else "no step has printed anything"
            tell(f"{what} in run {found.run}" + (f" at attempt {wanted.attempt}" if wanted.attempt else ""))
    else:
        for name in named(wanted.steps, found.state):
            step = state_of_step(found.state, name)
            if name in have or step is None or step.step.kind == "group":
                continue
            last = step.attempts[-1].n if step.attempts else 0
            if wanted.failed and step.status != "failed":
                tell(f"{name} has not failed")
            elif wanted.attempt > last and last:
                tell(f"{name} has no attempt {wanted.attempt}; its last is {last}")
            elif (
                step.reason != "cached"
                or not step.restored
                or not _print_cached(name, step.restored.source, form)
            ):
                tell(f"{name} has no log: {without_log(step)}")
    return 1 if gone else 0


def _print_cached(name: str, run: str, form: Form) -> bool:
    """Print the log of the run that made a cached result; False where it is not in this folder any more."""
    try:
        if run not in known_runs():
            return False
        found = read_run(run)
        attempts = attempts_of(found.reading.events, found.state, is_active=found.is_active)
        of_them = chosen(attempts, found.state, Wanted(steps=(name,)))
    except PlanrunError:
        return False
    tell(f"{name} is cached; this is its log of run {run}")
    writer = writer_for(run, of_them, form)
    return all(_print(found.rundir, each, writer, form) for each in of_them)


def writer_for(run: str, attempts: Sequence[Attempt], form: Form) -> Writer:
    """Return what prints the logs of attempts one after the other."""
    if form.as_json:
        return JsonLines(run)
    on_terminal = sys.stdout is not None and sys.stdout.isatty()
    steps = dict.fromkeys(each.step for each in attempts)
    colours = coloured(os.environ, terminal=on_terminal)
    if on_terminal:
        return Plain(colours=colours, headings=form.prefix and len(steps) > 1)
    if len(steps) > 1 and form.prefix:
        return Prefixed(steps, colours=colours)
    return Bytes() if len(steps) == 1 else Plain(colours=colours, headings=False)


def _print(rundir: str, attempt: Attempt, writer: Writer, form: Form) -> bool:
    """Print the logs of an attempt; False when its log is gone."""
    slots = elsewhere(os.path.join(rundir, "logs"))
    is_there = not attempt.ended or not attempt.ended.log_bytes
    for part, log in parts_of(rundir, attempt, slots):
        fd = open_log(rundir, log, slots)
        if fd < 0:
            continue
        try:
            is_there = is_there or not part
            if os.fstat(fd).st_size:
                copy(fd, attempt, part, writer, form)
        finally:
            os.close(fd)
    return is_there


def copy(fd: int, attempt: Attempt, part: str, writer: Writer, form: Form) -> None:
    """Print what a log has now."""
    writer.begin(attempt, part)
    end = extent(fd, attempt.ended.log_bytes if attempt.ended and not part else -1)
    start = 0 if form.tail is None else start_of_last(fd, form.tail, end)
    if form.head != 0:
        for piece in pieces(fd, start, end, form.head or 0):
            writer.write(attempt, part, piece)
    writer.end(attempt, part)
