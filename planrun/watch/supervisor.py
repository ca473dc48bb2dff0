"""The process of `execute --watch`: it starts ordinary runs one after the other, and looks at files meanwhile."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import tempfile
import time

from planrun.cliutil import write_stderr
from planrun.cliutil.failure import printable
from planrun.errors import InvalidInput, InvalidPlan
from planrun.plan.load import load
from planrun.reports.ci import vendor
from planrun.settings import current_folder
from planrun.watch.changes import Tracker
from planrun.watch.subject import subject_of, subject_of_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from planrun.settings import Settings
    from planrun.watch.subject import Subject


_TIMES = 3  # changes in a row, after about the same time
_AT_MOST = 10  # changes in a row, whenever they came
_APART = 0.5  # seconds
_SHARE = 0.25  # of the time since the start of the run


class Habits:
    """What is known of the files that runs write."""

    def __init__(self) -> None:
        self._own: set[str] = set()
        self._after: dict[
            str, list[float]
        ] = {}  # seconds from the start of the run, in the last runs in a row
        self._now: set[str] = set()  # that changed in this run
        self._news: list[str] = []

    def made(self, paths: Iterable[str]) -> None:
        """Note that files appeared during a run."""
        self._own.update(paths)

    def of_others(self, paths: Sequence[str], seconds: float) -> tuple[str, ...]:
        """Return the files that a person changed, so many seconds after the start of a run."""
        found = [path for path in paths if path not in self._own]
        if found:
            for path in found:
                if path not in self._now:
                    self._now.add(path)
                    self._after.setdefault(path, []).append(seconds)
        for path in list(found):
            times = self._after[path]
            last = times[-_TIMES:]
            close = max(last) - min(last) <= max(_APART, _SHARE * sum(last) / len(last))
            if (len(times) >= _TIMES and close) or len(times) >= _AT_MOST:
                self._own.add(path)
                self._news.append(path)
                found.remove(path)
        return tuple(found)

    def begin(self) -> None:
        """A run begins; of files that did not change in the last one nothing is kept."""
        self._after = {path: times for path, times in self._after.items() if path in self._now}
        self._now = set()

    def news(self) -> list[str]:
        """Return the files that were recognised since the last call."""
        news, self._news = self._news, []
        return news


WATCHED = "PLANRUN_WATCHED"
"""Set for the runs of a watch, which have its command line; steps do not inherit it.

It names a file that says why the watch interrupts a run, and that is there only then.
"""
_QUIET = 0.2  # seconds without a change, after which a run starts
_LONGEST = 5.0  # seconds that changes may go on until it starts anyway
_TURN = 0.1  # seconds between two looks at the child and the signals
_END = 1.0  # seconds between two looks while a run ends
_MANY = 10  # runs, from which `prune` is mentioned

# Without -P Python would import a planrun.py in the folder of the plan.
_PLANRUN = (sys.executable, "-P", "-m", "planrun")


def watch(words: Sequence[str], file: str, settings: Settings) -> int:
    """Run a plan, wait for changes of its files, and run it again, until a signal ends that.

    Returns the exit code: 0 for Ctrl-C while it waits, otherwise 128 + the signal. Raises InvalidInput.
    """
    if settings.json:
        raise InvalidInput(
            "--watch and --json exclude each other: there is a document for each run, not for a watch"
        )
    if system := vendor(os.environ):
        raise InvalidInput(
            f"--watch is for the shell of a person, and this is a CI system ({system}); leave it out"
        )
    gc.enable()  # a run goes without, a watch lives for hours
    return _Watch(words, file, settings).run()


class _Watch:
    """A watch; `run` is the whole of it."""

    def __init__(self, words: Sequence[str], file: str, settings: Settings) -> None:
        self._words, self._file, self._settings = words, file, settings
        self._root = current_folder()
        self._tracker = Tracker()
        self._habits = Habits()
        self._subject: Subject | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._interrupts = 0
        self._ended_by = 0  # the signal that ended the watch while a run was in progress, or that always does
        self._is_over = False  # Ctrl-C, while it waited
        self._runs = 0
        self._was_cancelled = False  # the last run, by a change
        self._why = ""  # the file that WATCHED names

    def run(self) -> int:
        """Watch until a signal ends it."""
        with tempfile.TemporaryDirectory(prefix="planrun-") as folder:  # of mode 0700
            self._why = os.path.join(folder, "why")
            return self._run()

    def _run(self) -> int:
        # Signals.
        signal.signal(signal.SIGINT, self._interrupted)
        signal.signal(signal.SIGTERM, self._ends)
        signal.signal(signal.SIGHUP, self._ends)
        changed: tuple[str, ...] = ()
        while not (self._ended_by or self._is_over):
            self._subject = self._what()
            self._tracker.begin(self._subject)
            self._runs += 1
            if changed:
                ended = f"; run {self._runs - 1} was cancelled" if self._was_cancelled else ""
                _tell(f"{_named(changed)} changed{ended}; run {self._runs}")
            changed = self._during_a_run() or self._between_runs()
        if self._runs >= _MANY:
            _tell(f"{self._runs} runs are in .planrun; `planrun prune --keep 10` deletes the older ones")
        return 128 + self._ended_by if self._ended_by else 0

    def _what(self) -> Subject:
        """Return what to watch; of a plan with errors, which the run reports, its files and what was watched so far."""
        try:
            plan = load(self._file, cache=False)
        except InvalidPlan as error:
            files = {self._file, *error.sources}
        except InvalidInput:
            if self._subject is None:
                raise
            files = {self._file}
        else:
            try:
                return subject_of(plan, self._settings, self._root)
            except InvalidInput:  # such as a parameter without a value: the run says it
                files = {self._file}
        if self._subject is None:
            return subject_of_files(files, self._root)
        return self._subject.but(named=self._subject.named | subject_of_files(files, self._root).named)

    def _during_a_run(self) -> tuple[str, ...]:
        """Run the plan; returns what was changed meanwhile, after which the run was cancelled."""
        self._interrupts = 0
        self._was_cancelled = False
        self._habits.begin()
        began = time.monotonic()
        child = self._child = subprocess.Popen(
            [*_PLANRUN, *self._words], env={**os.environ, WATCHED: self._why}
        )
        if self._ended_by:  # the signal came while the child was started
            child.send_signal(self._ended_by)
        changed: tuple[str, ...] = ()
        is_over = False
        while not is_over and not changed:
            is_over = self._wait(child, self._tracker.pause)
            changed = self._of_others(began)
        if changed and not is_over:
            changed = self._settle(changed, lambda: self._of_others(began))
            if child.poll() is None:
                text = f"{_named(changed)} changed"
                with open(self._why, "w", encoding="utf-8", errors="replace") as file:
                    file.write(text)
                child.send_signal(signal.SIGINT)
                self._was_cancelled = True
        while not self._wait(child, _END):
            continue
        self._child = None
        if self._was_cancelled:
            os.unlink(self._why)
        self._of_others(began)
        for path in self._habits.news():
            _tell(
                f"{path} changes in every run, so a run writes it; its changes during a run are no longer counted"
            )
        if self._interrupts:  # as with go-task: who presses Ctrl-C does not want another run
            self._ended_by = self._ended_by or signal.SIGINT
        self._interrupts = 0
        return changed

    def _of_others(self, began: float) -> tuple[str, ...]:
        """Return what was changed since the last look, but not by the run that began then.

        What a run creates or deletes is its own work; what it modifies is told from a person's work by habits.
        """
        looked = self._tracker.look()
        self._habits.made(looked.created)
        return self._habits.of_others(looked.modified, time.monotonic() - began)

    def _between_runs(self) -> tuple[str, ...]:
        """Wait for a change, and return what was changed; nothing when a signal ends the watch."""
        self._tracker.look()  # what the run left
        if not self._ended_by:
            count = self._tracker.count
            _tell(f"waiting for a change of {count} file{'' if count == 1 else 's'}; Ctrl-C ends")
        while not self._ended_by:
            self._rest(self._tracker.pause)
            if self._interrupts:
                self._is_over = True
                if sys.stderr.isatty():  # the terminal wrote ^C, and no line end
                    write_stderr("\n")
                return ()
            if found := self._tracker.look().all:
                found = self._settle(found, lambda: self._tracker.look().all)
                if not self._interrupts:
                    return found
        return ()

    def _settle(self, changed: tuple[str, ...], look: Callable[[], tuple[str, ...]]) -> tuple[str, ...]:
        """Wait until nothing changes any more; returns everything that did."""
        until = time.monotonic() + _LONGEST
        found = dict.fromkeys(changed)
        while time.monotonic() < until and not self._ended_by:
            self._rest(_QUIET)
            more = look()
            if not more:
                break
            found.update(dict.fromkeys(more))
        return tuple(found)

    def _wait(self, child: subprocess.Popen[bytes], seconds: float) -> bool:
        """Wait for the end of the child, at most so long; whether it has ended."""
        until = time.monotonic() + seconds
        while child.poll() is None:
            left = until - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(_TURN, left))
        return True

    def _rest(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self._interrupts and not self._ended_by and (left := until - time.monotonic()) > 0:
            time.sleep(min(_TURN, left))

    def _interrupted(self, _number: int, _frame: object) -> None:
        self._interrupts += 1
        if self._child and self._child.poll() is None and not _is_foreground():
            self._child.send_signal(signal.SIGINT)  # Ctrl-C at a terminal has reached it already

    def _ends(self, number: int, _frame: object) -> None:
        self._ended_by = number
        if self._child and self._child.poll() is None:
            self._child.send_signal(number)


def _is_foreground() -> bool:
    """Whether a terminal sends its signals to this process and its child."""
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


def _named(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"{paths[0]}{more}"


def _tell(text: str) -> None:
    write_stderr(f"planrun: {printable(text)}\n")
    sys.stderr.flush()
