"""The pages: the list of runs, a run, the log of an attempt; a large page is not made again for each reader."""

from __future__ import annotations

import io
import os
import threading
import time
from urllib.parse import quote

from planrun.app.following import Followed
from planrun.app.inspect import find, known_runs, listing, read_run
from planrun.app.logtail import LogTail
from planrun.app.pages import baseline_of
from planrun.app.run_status import elapsed, metrics, status_of
from planrun.cliutil.ownverb import OwnVerb
from planrun.model.record import Record
from planrun.records.lock import holder
from planrun.records.rundir import HOME, LEDGER
from planrun.reports import facts
from planrun.reports.escape import excerpt, line
from planrun.reports.facts import seconds
from planrun.reports.html import page as html
from planrun.serve.access import Refused
from planrun.serve.downloads import links
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from planrun.app.inspect import Inspected
    from planrun.app.summaries import Row
    from planrun.model.progress import AttemptState, StepState
    from planrun.model.state import RunState


_RUNS = ("resume", "retry")  # verbs that run steps, and end with the run
_ANSWERED_BY = 20.0  # seconds that a page waits for the verb
_RUNNING_BY = 2.0  # a run takes longer to end; the page then shows that


class Said(Record):
    """A verb that runs steps: its command, when it was started, its end (None: it runs), and what it printed."""

    command: str
    at: str
    code: int | None
    printed: str


class Verbs:
    """Starts verbs, and keeps for each run the last one that runs steps."""

    def __init__(self) -> None:
        self._latest: dict[str, tuple[OwnVerb, str]] = {}
        self._lock = threading.Lock()

    def perform(self, words: Sequence[str]) -> str:
        """Start a verb, wait for its end for a while, and return what it said; raises OSError."""
        if words[0] in _RUNS:
            name, run, *_ = words
            with self._lock:
                if (known := self._latest.get(run)) and known[0].code is None:
                    return f"planrun {known[0].words[0]} goes on: nothing was started"
                verb = OwnVerb(words)
                self._latest[run] = (verb, time.strftime("%H:%M:%S", time.gmtime()))
            if known:
                known[0].close()
            code = verb.wait(_RUNNING_BY)
            if code and (error := verb.error()):
                return f"{error} (exit code {code})"
            return (
                f"planrun {name} goes on" if code is None else f"planrun {name} ended with exit code {code}"
            )
        verb = OwnVerb(words)
        code = verb.wait(_RUNNING_BY if words[0] == "cancel" else _ANSWERED_BY)
        rows = [row.removeprefix(f"run {words[1]}: ") for row in verb.printed()]
        error = verb.error()
        verb.close()
        if code is None:
            return rows[0] if rows else f"planrun {words[0]} goes on"
        if code and error:
            return f"{error} (exit code {code})"
        return rows[0] if rows else f"planrun {words[0]} ended with exit code {code}"

    def said(self, run: str) -> Said | None:
        """Return what the last verb that ran steps of a run said so far."""
        with self._lock:
            if (known := self._latest.get(run)) is None:
                return None
            verb, at = known
            code = verb.code
            text = verb.text().rstrip()
        return Said(command=f"planrun {' '.join(verb.words)}", at=at, code=code, printed=text)

    def goes_on(self, run: str) -> bool:
        """Return whether a verb that runs steps of a run has not ended."""
        with self._lock:
            return run in self._latest and self._latest[run][0].code is None

    def version(self, run: str) -> tuple[object, ...]:
        """Return what changes when such a verb starts or ends."""
        with self._lock:
            verb, at = self._latest.get(run, (None, ""))
            return (at, verb.code) if verb else ()


MOST_RUNS = 200
"""Runs of the list, the newest ones."""
LOG_BYTES = 256 * 1024  # of a log on its page: the end is followed, all of it can be downloaded
_LINES = 1000  # of a log that grows, before events come
SHARE = 20
"""A page of a run that is going on is made again after so many times the seconds that it took: 5 % of a processor."""


class Page(Record):
    """A page that was made, and what it is of."""

    data: bytes
    version: tuple[object, ...]
    made: float  # on the monotonic clock
    cost: float  # seconds


def text_page(title: str, text: str, *, to: str = "") -> bytes:
    """Return a page with a message; `to`: where a browser goes on at once."""
    out = io.BytesIO()
    html.write_other("message", {"title": title, "text": text, "to": to}, out)
    return out.getvalue()


def existing(run: str) -> str:
    """Return the folder of a run by its whole id, as the list has it; raises Refused."""
    if run not in known_runs():
        raise Refused(404, "there is no such run in this folder; it may have been deleted")
    return find(run)


def is_over(inspected: Inspected) -> bool:
    """Return whether the run has an end and no process."""
    return bool(inspected.state.ended) and not inspected.is_active


def word_of(inspected: Inspected) -> str:
    """Return the status of a run in one word."""
    return {"unfinished": "killed"}.get(found := status_of(inspected), found)


def shape_of(state: RunState) -> str:
    """Return what stands for the list of steps of a page, whose rows a script finds by number."""
    names = "\0".join([step.step.id for step in html.rows_of_steps(state)])
    return str(sha256(names.encode("utf-8", "surrogateescape")).hexdigest()[:16])


def head_of(inspected: Inspected) -> dict[str, Any]:
    """Return what changes at the top of the page of a run."""
    state, status = inspected.state, word_of(inspected)
    if inspected.is_active:
        figures = metrics(inspected)
        least = "" if figures.eta_known else "at least "
        ending = f"ETA {least}{seconds(figures.eta)}" if figures.eta and figures.eta >= 0.1 else ""
    else:
        ending = f"exit code {state.ended.exit_code}" if state.ended else facts.unended(state)
    return {
        "status": status,
        "icon": facts.ICONS.get(status, facts.ICONS["cancelled"]),
        "title": line(state.plan.title or state.plan.name),
        "outcome": facts.outcome(state) if state.settled else status,
        "duration": seconds(elapsed(inspected))
        + (html.SINCE_RESUMED if state.resumed and state.ended else ""),
        "ending": ending,
        "counts": [(name, count) for name, count in facts.counts(state) if count or name == "Total"],
    }


def rows_of(state: RunState, names: Iterable[str] | None, now: float) -> list[tuple[object, ...]]:
    """Return rows of the page of a run: number, icon, status, why, seconds, attempts; `names`: None for all."""
    wanted = None if names is None else set(names)
    found: list[tuple[object, ...]] = []
    for number, step in enumerate(html.rows_of_steps(state)):
        if wanted is not None and step.step.id not in wanted:
            continue
        status, why, ran, tries = html.brief(step)
        if status == "running" and step.tries:
            ran = seconds(max(0.0, now - facts.epoch(step.tries[0].started.at)))
        found.append((number, facts.ICONS[status], status, why, ran, tries))
    return found


class Pages:
    """Makes the pages; `csrf` is empty where nothing can be answered."""

    def __init__(self, csrf: str) -> None:
        self._csrf = csrf
        self.verbs = Verbs()
        self._made: dict[str, Page] = {}
        self._lock = threading.Lock()  # one page at a time: others wait, and read what was made
        self._reading = threading.Lock()
        self._rows: dict[str, tuple[tuple[object, ...], Row]] = {}

    def run(self, run: str, message: str = "") -> bytes:
        """Return the page of a run; of one that is going on it may be a little old. Raises PlanrunError."""
        existing(run)
        with self._lock:
            known = self._made.get(run)
            if known and not message and self._is_fresh(run, known):
                return known.data
            inspected = self.read(run)
            began = time.monotonic()
            cost = known.cost if known else 0.0
            state, rundir = inspected.state, inspected.rundir
            is_live = not is_over(inspected) or self.verbs.goes_on(inspected.run)
            served = html.Served(
                run=inspected.run,
                head=head_of(inspected),
                shape=shape_of(state),
                csrf=self._csrf,
                digest=str(state.named.get("digest", "")),
                message=message,
                refresh=max(3, round(SHARE * cost)) if is_live else 0,
                is_active=inspected.is_active,
                can_cancel=bool(self._csrf) and not state.ended,
                can_run=bool(self._csrf) and not inspected.is_active,
                can_resume=not inspected.is_active
                and (not state.ended or bool(state.ended.exit_code))
                and not (state.ended and state.ending and state.ending.is_final),
                verb=self.verbs.said(inspected.run),
                files=links(inspected),
            )
            out = io.BytesIO()
            html.write_served(state, rundir, out, served, baseline=baseline_of(state, rundir))
            data = out.getvalue()
            ended = time.monotonic()
            if not message:
                if len(self._made) > SHARE:
                    self._made.clear()
                version = self._version(run)
                self._made[run] = Page(data=data, version=version, made=ended, cost=ended - began)
            return data

    def read(self, run: str) -> Inspected:
        """Return a run, read by one thread at a time; raises PlanrunError."""
        with self._reading:
            return read_run(run, cache=True)

    def follow(self, run: str) -> Followed:
        """Return a run that is followed, for one reader; raises PlanrunError."""
        with self._reading:
            return Followed(run)

    def pause(self, run: str) -> float:
        """Return the seconds after which the page of a run is made again at the earliest."""
        known = self._made.get(run)
        return max(1.0, SHARE * known.cost) if known else 1.0

    def _is_fresh(self, run: str, known: Page) -> bool:
        version = self._version(run)
        if version == known.version and not version[-1]:
            return True
        return bool(version[-1]) and time.monotonic() - known.made < SHARE * known.cost

    def _version(self, run: str) -> tuple[object, ...]:
        """Return what a page is made of: the ledger, and whether a process executes the run."""
        current = holder("")
        try:
            status = os.stat(os.path.join(HOME, "runs", run, LEDGER))
        except OSError:
            return (0, 0, False)
        is_active = current is not None and current.run == run
        return (self.verbs.version(run), status.st_mtime_ns, status.st_size, is_active)

    # The list of runs.

    def rows(self) -> list[Row]:
        """Return the newest runs; the ledger of a run is read again when it has changed."""
        names = known_runs()[:MOST_RUNS]
        with self._lock:
            known = self._rows
            self._rows = {}
            for name in names:
                version = self._version(name)
                seen = known.get(name)
                if seen is None or seen[0] != version:
                    seen = (version, listing([name])[0])
                self._rows[name] = seen
            return [row for _, row in self._rows.values()]

    def runs(self) -> bytes:
        """Return the page with the list of runs."""
        out = io.BytesIO()
        rows = self.rows()
        plans: dict[str, list[dict[str, str]]] = {}
        for row in rows:
            plans.setdefault(line(row.plan) or "unknown plan", []).append(_cells(row, time.time()))
        answers = "Answers are allowed." if self._csrf else "Read-only: --allow-answers allows answers."
        context = {
            "folder": line(os.path.basename(os.getcwd()) or "/"),
            "caption": "By plan, the newest runs first"
            + (f", {MOST_RUNS} of them" if len(rows) == MOST_RUNS else ""),
            "answers": answers,
            "refresh": 5,
            "plans": [*plans.items()],
        }
        html.write_other("runs", context, out)
        return out.getvalue()

    def log(self, inspected: Inspected, step: StepState, attempt: AttemptState) -> bytes:
        """Return the page with the log of an attempt."""
        run, n = inspected.run, attempt.n
        is_active = inspected.is_active and attempt.ended is None
        log = attempt.started.log
        query = f"step={quote(step.step.id, safe='')}&attempt={n}"
        context = {
            "run": run,
            "step": facts.name(step),
            "n": n,
            "status": attempt.status if attempt.ended or inspected.is_active else "lost",
            "others": [each.n for each in step.attempts if each.n != n and each.started.log],
            "raw": f"/runs/{run}/log/raw?{query}",
            "events": f"/runs/{run}/log/events?{query}",
            "is_active": is_active,
            "text": _growing(inspected, log) if is_active else excerpt(inspected.rundir, log, LOG_BYTES),
        }
        out = io.BytesIO()
        html.write_other("log", context, out)
        return out.getvalue()


def _growing(inspected: Inspected, log: str) -> str:
    """Return the last lines of a log that is not in its place yet; the script of the page replaces them by events."""
    tail = LogTail(inspected.rundir, log, _LINES)
    try:
        return "".join([f"{text}\n" for text in tail.news(LOG_BYTES)])
    finally:
        tail.close()


def _cells(row: Row, now: float) -> dict[str, str]:
    failed = facts.names(row.failed) if row.failed else ""
    waits = facts.names([f"{step or 'the plan'} ({kind})" for step, kind in row.waiting])
    status = {"unfinished": "killed"}.get(row.status, row.status)
    return {
        "run": line(row.run),
        "link": "" if row.status == "unreadable" else f"/runs/{row.run}",
        "status": status,
        "icon": facts.ICONS.get(status, "?"),
        "started": line(row.started_at),
        "age": f"{_age(now - began)} ago" if (began := facts.epoch(row.started_at)) else "unknown",
        "took": "" if row.duration is None else seconds(row.duration),
        "details": "; ".join(filter(None, [failed, f"waits for {waits}" if row.waiting else "", row.detail])),
    }


def _age(seconds: float) -> str:
    """Return how old a run is, in one unit: `40s`, `3m`, `5h`, `12d`."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{max(0, int(seconds))}s"


def attempt_of(inspected: Inspected, step: str, number: str) -> tuple[StepState, AttemptState]:
    """Return an attempt that has a log, by the words of a request; raises Refused."""
    state = inspected.state
    found = state.steps.get(step) or state.undoing.get(step) or state.dropped.get(step)
    attempts = [each for each in found.attempts if each.started.log] if found else []
    if number:
        attempts = [each for each in attempts if str(each.n) == number]
    if found is None or not attempts:
        raise Refused(404, "there is no such log")
    return found, attempts[-1]
