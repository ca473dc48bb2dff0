"""The console of a run: what people and CI systems see while it runs, and its closing lines.

Three styles: `live` (a terminal: a line for each end above one status line that is redrawn at most ten times a
second), `plain` (a line for each end), `groups` (CI: as well, what each step printed, in a section). Text is gathered
and written once per turn of the engine's loop. When the stream cannot be written any more, or the console itself
fails, it stops writing and the run continues.
"""

from __future__ import annotations

import os
import sys
import time

from planrun.model import events as ev
from planrun.model.groups import number_of, unknown
from planrun.reports import facts
from planrun.reports import facts as units
from planrun.reports.ci import from_checkout, look_of, style, vendor
from planrun.reports.escape import excerpt, line, tail
from planrun.reports.facts import ASCII_ICONS, ICONS, seconds
from planrun.reports.parts import part, parts_of, rows_of
from planrun.reports.policies import in_force, waits_for
from planrun.reports.progress import Tally, jobs_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import TextIO

    from planrun.model.events import Event
    from planrun.model.progress import StepState
    from planrun.model.state import RunState
    from planrun.ports import Masks
    from planrun.reports.ci import ConsoleOptions, Look
    from planrun.reports.parts import Part
    from planrun.reports.progress import Estimates, Tally

_CLEAR = "\r\x1b[K"
_BAR = 20  # cells of the bar
_WIDTH = 80  # of a terminal whose width is not known
KNOWN = 0.1  # seconds; an ETA below is not shown


class Screen:
    """Writes text; the status line is erased before the next text. Never raises because of the stream.

    `now` is a clock that never jumps, in seconds.
    """

    def __init__(
        self,
        stream: TextIO | None,
        now: Callable[[], float] = time.monotonic,
        masks: Masks | None = None,
    ) -> None:
        self.now = now
        self._masks = masks
        self._stream = stream
        self._drawn = ""
        self._encoding = getattr(stream, "encoding", None) or "utf-8"

    def write(self, text: str, status: str = "") -> None:
        """Write whole lines, then `status` without a line end; an unchanged status line costs nothing."""
        stream = self._stream
        if stream is None or (not text and status == self._drawn):
            return
        if self._masks:  # records and logs are masked already; paths of this machine are not
            text, status = self._masks.mask_text(text), self._masks.mask_text(status)
        shown = self._fitted(status) if status else ""
        raw = (_CLEAR if self._drawn else "") + text + shown
        self._drawn = status
        try:
            stream.write(raw.encode(self._encoding, "replace").decode(self._encoding))
            stream.flush()
        except (OSError, ValueError):  # closed, or no reader: EPIPE
            self._stop(stream)

    def _fitted(self, status: str) -> str:
        """Cut the status line to the terminal; anything but ASCII may be two cells wide, so it is left out."""
        try:
            width = os.get_terminal_size(self._stream.fileno()).columns if self._stream else _WIDTH
        except (OSError, ValueError):
            width = _WIDTH
        return status.encode("ascii", "replace").decode()[: max(10, (width or _WIDTH) - 1)]

    def _stop(self, stream: TextIO) -> None:
        """Redirect the stream's buffered output to /dev/null: the interpreter would report an error when it exits."""
        self._stream = None
        try:
            nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.dup2(nowhere, stream.fileno())
            finally:
                os.close(nowhere)
        except (OSError, ValueError):
            return


def status_line(tally: Tally, now: float, began: float) -> str:
    """Return `[######..............] 3/10  12.3s  ETA 20.0s  test, lint`; moments on one clock, in seconds."""
    filled = int(_BAR * tally.share())
    bar = "#" * filled + "." * (_BAR - filled)
    eta = tally.eta(now)
    # A step that takes longer than expected makes it 0, and what is known of steps of a few milliseconds next to
    # 0: neither is worth showing.
    least = "" if tally.eta_known else "at least "
    ends = f"  ETA {least}{seconds(eta)}" if eta and eta >= KNOWN else ""
    names = sorted(tally.running, key=tally.running.__getitem__)
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    shown = ", ".join([tally.called(name) for name in names[:3]])
    return f"[{bar}] {tally.done}/{tally.total}  {seconds(now - began)}{ends}  {shown}{more}"


REDRAW = 0.1  # seconds between two drawings of the status line
HEARTBEAT = 60.0  # seconds of silence after which a log says that the run is alive
TAIL_LINES = 20  # of the log of a failed step
MAX_PROBLEMS = 9  # GitHub shows ten errors of a step
_OF_MODELS = (ev.PlanningStarted, ev.ModelRepeated, ev.ModelAnswered, ev.BudgetCrossed, ev.PlanningEnded)
_HEADINGS = ("---", "+++", "~~~", "^^^")  # a line that begins like this is a heading to Buildkite
_COLOURS = {
    "completed": "32",
    "failed": "31",
    "blocked": "33",
    "cancelled": "33",
    "partial": "33",
    "paused": "33",
    "waiting": "33",
    "skipped": "90",
}


def console(
    state: RunState,
    rundir: str,
    options: ConsoleOptions,
    estimates: Estimates | None = None,
    masks: Masks | None = None,
) -> Console:
    """Return the console for this process: its streams, its environment, the caller's options.

    `estimates` is for a status line that is redrawn; `masks` mask all that it writes.
    """
    environ = os.environ
    # CI systems look for sections in the result's stream; with --json that holds the ledger and nothing else.
    grouped = style(environ, terminal=False) == "groups"
    stream = sys.stdout if grouped and not options.json else sys.stderr
    return Console(Screen(stream, masks=masks), look_of(stream, environ, options), state, rundir, estimates)


class Console:
    """A sink that shows a run on a screen."""

    def __init__(
        self,
        screen: Screen,
        look: Look,
        state: RunState,
        rundir: str,
        estimates: Estimates | None = None,
    ) -> None:
        self.look = look
        self.rundir = rundir
        self._screen = screen
        self._clock = screen.now
        self._icons = ICONS if look.unicode else ASCII_ICONS
        self._tally = Tally(_counted(state), jobs_of(state), estimates)
        for name, step in state.steps.items():
            if step.ended and step.step.kind != "group":  # of the run that is resumed
                self._tally.end(name, None)
        self._began = self._written = self._drawn = screen.now()
        self._steps, self._labels = state.steps, facts.labels(state)
        self._broken = False
        self._pending: list[str] = []
        self._problems: list[str] = []  # failed steps, for annotations
        self._has_failed = False
        self._asked: dict[str, str] = {}  # what waits for an answer, by step

    def on_event(self, event: Event, state: RunState) -> None:
        """Note an event that `state` holds already; `tick` writes its lines."""
        if not self._broken:
            try:
                if isinstance(event, ev.StepOpened):
                    self._opened(event, state)
                self._note(event, state)
            except Exception as error:  # noqa: BLE001 - a console must not end a run
                self._give_up(error)

    def tick(self) -> float | None:
        """Write what is new; returns the seconds after which to be called again, or None."""
        if self._broken:
            return None
        try:
            return self._redraw() if self.look.style == "live" else self._write_plain()
        except Exception as error:  # noqa: BLE001 - as above
            self._give_up(error)
            return None

    def close(self, state: RunState, paths: Mapping[str, str], head: str) -> None:
        """Write where the reports are, and pass them to GitHub; `head` is the hash of the ledger's last line.

        Raises RecordsLost naming a file of GitHub's that cannot be written.
        """
        if not self._broken:
            try:
                for line in closing_lines(state, self.look, paths, head):
                    self._say(line)
                self._flush()
            except Exception as error:  # noqa: BLE001 - as above
                self._give_up(error)
        write_for_github(state, self.rundir, paths, head)

    def _give_up(self, error: Exception) -> None:
        """Write why, once, and nothing from now on; a screen never raises."""
        self._broken = True
        why = line(f"{type(error).__name__}: {error}")
        self._screen.write(f"{self._icon('partial')} console output stopped, the run continues: {why}\n")

    # What is shown.

    def _note(self, event: Event, state: RunState) -> None:
        if isinstance(event, ev.AttemptStarted):
            self._tally.start(event.step, self._clock())
        elif isinstance(event, ev.AttemptEnded | ev.StepMoved | ev.StepRestored):
            self._moved(event, state)
        elif isinstance(event, ev.StepHeld) and not self.look.quiet:
            self._say(f"{self._icon('waiting')} {line(f'{event.step}: {event.message}')}\n")
        elif isinstance(event, ev.PlanMoved | ev.RunEnded):
            if event.status == "executing":
                self._open(state)
            elif event.status == "paused" or isinstance(event, ev.RunEnded):
                self._end(state)
        elif isinstance(event, ev.GateOpened | ev.GateAnswered):
            self._at_gate(event, state)
        elif isinstance(event, ev.RunEnding):
            icon = {"pause": "paused", "budget": "paused", "gates": "waiting"}.get(event.why, "cancelled")
            self._say(f"{self._icon(icon)} {facts.ended_by(state, event)}\n")
        elif isinstance(event, _OF_MODELS):
            self._planned(event, state)

    def _open(self, state: RunState) -> None:
        plan, left, parts = state.plan, self._tally.total - self._tally.done, parts_of(state)
        warnings = [*rows_of(parts, "warnings", state), *facts.notes(state)]
        self._say("".join([f"{self._icon('partial')} {warning}\n" for warning in warnings]))
        if not self.look.quiet:
            run = state.started.run if state.started else ""
            steps = _number_of(left, state)
            title = line(plan.title or plan.name)
            if title.startswith(_HEADINGS):
                title = f" {title}"
            self._say(f"{title}: {steps}, {jobs_of(state)} at a time, run {run}\n")
            self._say(f"  policy: {in_force(state)}\n")
            self._say("".join([f"  {row}\n" for row in rows_of(parts, "opening", state)]))
            replan = facts.option(state, "replan")
            if isinstance(replan, dict):
                self._say(f"  replan: {line(str(replan['told']))}\n")

    def _at_gate(self, event: ev.GateOpened | ev.GateAnswered, state: RunState) -> None:
        if isinstance(event, ev.GateAnswered):
            self._asked.pop(event.step, None)
        else:
            if not event.step:  # nothing has started, so the opening lines are not written yet
                self._open(state)
            self._asked[event.step] = waits_for(event)
        icon, text = part("gates:GATES")["event_line"](event, state)
        if not self.look.quiet:
            self._say(f"{self._icon(icon)} {text}\n")

    def _planned(self, event: Event, state: RunState) -> None:
        self._grown(state)
        icon, text = part("models:MODELS")["event_line"](event, state)
        if icon == "partial" or not self.look.quiet:
            self._say(f"{self._icon(icon)} {text}\n")

    def _opened(self, event: ev.StepOpened, state: RunState) -> None:
        self._grown(state)
        if state.steps[event.step].step.service and not self.look.quiet:
            self._say(f"{self._icon('running')} {line(event.step)} is ready\n")

    def _grown(self, state: RunState) -> None:
        """Take note of steps that the run did not have before."""
        for name in _counted(state):
            if name not in self._steps:
                self._tally.add(name)
        self._steps, self._labels = state.steps, facts.labels(state)

    def _moved(self, event: ev.AttemptEnded | ev.StepMoved | ev.StepRestored, state: RunState) -> None:
        step = state.steps[event.step]
        if step.ended:
            self._ended(step, state)
        elif isinstance(event, ev.AttemptEnded):
            self._repeated(event)

    def _ended(self, step: StepState, state: RunState) -> None:
        if step.step.kind != "group":
            self._tally.end(step.step.id, facts.duration(step) if step.tries else None)
        elif not facts.has_own_line(step):
            return
        self._asked.pop(step.step.id, None)
        failed = step.status == "failed"
        if (self.look.quiet and not failed) or step.reason == "not_selected":
            return
        title = facts.title(step, self._labels)
        body = self._body(step, failed=failed)
        if self.look.sections and body:
            self._say(self.look.sections.group(f"{self._icons[step.status]} {title}", body))
        else:
            self._say(f"{self._icon(step.status)} {title}\n")
        if failed:
            self._failed(step, state)
        if body and not self.look.sections:
            self._say("".join([f"  | {row}\n" for row in body.removesuffix("\n").split("\n")]))

    def _failed(self, step: StepState, state: RunState) -> None:
        self._has_failed = True
        name = facts.name(step)
        if not self.look.sections:
            self._say(f"  {line(state.plan.file_of(step.step))}:{step.step.line}: {facts.sentence(step)}\n")
            return
        self._problems.append(name)
        if len(self._problems) <= MAX_PROBLEMS:
            title = f"{name} {facts.details(step)}"
            tolerated = not facts.option(state, "strict") and state.tolerance(step.step.id) is not None
            say = self.look.sections.warning if tolerated else self.look.sections.problem
            self._say(say(file_of(state, step), step.step.line, title, facts.sentence(step)))
            if step.step.reports:
                places = part("testcases:TEST_CASES")["places"](step)
                self._say("".join([self.look.sections.problem(*place) for place in places]))

    def _body(self, step: StepState, *, failed: bool) -> str:
        """What the last attempt printed, as far as it is to be shown; ends with a newline or is empty."""
        wanted = self.look.logs == "all" or (failed and self.look.logs == "failed")
        last = facts.last(step)
        if not wanted or not last or not last.started.log or (last.ended and not last.ended.log_bytes):
            return ""
        if self.look.logs == "all":
            text = excerpt(self.rundir, last.started.log, whole=self._path(last.started.log))
        else:
            text = self._last_lines(last.started.log, tail(self.rundir, last.started.log))
        return text if text.endswith("\n") or not text else text + "\n"

    def _path(self, log: str) -> str:
        return near(os.path.join(self.rundir, log))

    def _last_lines(self, log: str, tail: str) -> str:
        """The last of the lines in which a log ends; where there are more, the first of them names the file."""
        rows = tail.removesuffix("\n").split("\n")
        if len(rows) <= TAIL_LINES:
            return "\n".join(rows)
        return "\n".join([f"… the end of {self._path(log)}", *rows[-TAIL_LINES:]])

    def _repeated(self, event: ev.AttemptEnded) -> None:
        if event.reason == "paused":  # a service, which the next resume starts again
            self._say(f"{self._icon('paused')} {line(event.step)} is stopped until the run is resumed\n")
        elif not self.look.quiet:
            why = facts.attempt_sentence(event)
            delay = f", next in {units.seconds(event.delay)}" if event.delay else ""
            self._say(f"{self._icon('waiting')} {line(event.step)}: attempt {event.n} failed: {why}{delay}\n")

    def _end(self, state: RunState) -> None:
        verdict = facts.status_of(state)
        more = len(self._problems) - MAX_PROBLEMS
        if more > 0 and self.look.sections:
            names = ", ".join(self._problems[MAX_PROBLEMS:])
            self._say(self.look.sections.problem(file_of(state), 0, f"and {more} more failed", names))
        spent = units.seconds(facts.elapsed(state))
        # Nothing else names the run where the console is quiet.
        run = f", run {line(state.started.run)}" if self.look.quiet and state.started else ""
        self._say(f"{self._icon(verdict)} {verdict} in {spent}: {facts.census(state)}{run}\n")
        objection = facts.objection(state)
        parts = parts_of(state)
        self._failures(state, parts)
        if objection:  # a run that ends with exit code 1 must not look like a success
            self._say(f"{self._icon('failed')} failed: {objection}\n")
        if not self.look.quiet:
            self._say("".join([f"{row}\n" for row in rows_of(parts, "ending", state)]))
        withheld = state.started.options.get("env_left_out") if state.started else ()
        if withheld and self._has_failed and not self.look.quiet:  # a variable that is missing may be why
            self._say(f"  not passed to steps (inherit_env: safe): {facts.names(withheld)}\n")
            self._has_failed = False
        self._flush()

    def _failures(self, state: RunState, parts: list[Part]) -> None:
        """Show failures other than those of steps."""
        for each in parts:
            for heading, message, title in each["failures"](state) if "failures" in each else ():
                self._say(f"{self._icon('failed')} {heading}: {message}\n")
                if title and self.look.sections:
                    self._say(self.look.sections.problem(file_of(state), 0, title, message))

    def _icon(self, status: str) -> str:
        icon = self._icons[status]
        if self.look.colour and status in _COLOURS:
            return f"\x1b[{_COLOURS[status]}m{icon}\x1b[0m"
        return icon

    # How it is written to the stream.

    def _say(self, text: str) -> None:
        self._pending.append(text)

    def _flush(self) -> None:
        """Write what is pending, without a status line behind it."""
        self._screen.write("".join(self._pending))
        self._pending.clear()
        self._written = self._clock()

    def _write_plain(self) -> float | None:
        """Write what is pending; after a minute without output, show what still runs."""
        if self._pending:
            self._flush()
        if self.look.quiet or not (self._tally.running or self._asked):
            return None
        silent = self._clock() - self._written
        if silent >= HEARTBEAT:
            still = "running" if self._tally.running else "waiting"
            self._say(f"{'…' if self.look.unicode else '...'} still {still}: {self._alive()}\n")
            self._flush()
            silent = 0.0
        return HEARTBEAT - silent

    def _alive(self) -> str:
        """`test (3m), build (1m)`: what started and did not end, the oldest first; then what waits for an answer."""
        now, shown = self._clock(), []
        for name, began in self._tally.running.items():
            step = self._steps[name]
            waits = ", waits for its next attempt" if step.status == "waiting" else ""
            shown.append(f"{facts.name(step)} ({units.age(now - began)}{waits})")
        return facts.names([*shown, *self._asked.values()])

    def _redraw(self) -> float | None:
        """Write what is pending and the status line below it, at most ten times a second."""
        now = self._clock()
        wait = self._drawn + REDRAW - now
        if wait > 0:
            return wait if self._pending or self._tally.running else None
        self._drawn = now
        bar = status_line(self._tally, now, self._began) if self._tally.running else ""
        self._screen.write("".join(self._pending), bar)
        self._pending.clear()
        return 1.0 if self._tally.running else None  # the elapsed time changes


def _counted(state: RunState) -> list[str]:
    return [step.step.id for step in state.counted()]


def _number_of(left: int, state: RunState) -> str:
    """Return how many steps are left, as far as their instances are known."""
    if not any(step.step.kind == "group" for step in state.steps.values()):
        return f"{left} step{'' if left == 1 else 's'}"
    return number_of(left, unknown([step.step for step in state.steps.values() if not step.ended]))


def closing_lines(state: RunState, look: Look, paths: Mapping[str, str], head: str) -> Iterator[str]:
    """Yield the last lines of a console; `head`: of the ledger, `paths`: of the reports by name."""
    waits, parts = facts.is_waiting(state), parts_of(state)
    yield from [f"{row}\n" for row in rows_of(parts, "closing", state)]
    for each in parts:
        if waits and look.sections and "notices" in each:
            notices = each["notices"](state)
            yield from [look.sections.notice(file_of(state), *notice) for notice in notices]
    if not look.quiet:
        files = ", ".join([os.path.basename(path) for path in paths.values()])
        reports = f"reports in {_folder(paths)}: {files}" if paths else "no report could be written"
        yield f"  {reports}; ledger head {head}\n"
        if state.started and not waits and state.status in ("failed", "cancelled", "paused"):
            yield f"  {facts.to_continue(state)}\n"


def file_of(state: RunState, step: StepState | None = None) -> str:
    """Return the file of a step, or the plan's, for annotations, which count from the root of the checkout."""
    file = state.plan.file_of(step.step) if step else state.plan.file
    return line(from_checkout(file, os.environ))


def _folder(paths: Mapping[str, str]) -> str:
    """Return the folder of the reports."""
    folder = os.path.dirname(next(iter(paths.values()), ""))
    return near(folder) if folder else "."


def near(path: str) -> str:
    """Return a path as seen from here, or whole where that is shorter."""
    try:
        near, whole = os.path.relpath(path), os.path.abspath(path)
    except OSError:  # the working directory is gone
        return line(path)
    return line(near if len(near) <= len(whole) else whole)


def write_for_github(state: RunState, rundir: str, paths: Mapping[str, str], head: str) -> None:
    """Write step summary and outputs where GitHub, or something that works like it, asks for them."""
    summary, results = os.environ.get("GITHUB_STEP_SUMMARY"), os.environ.get("GITHUB_OUTPUT")
    if vendor(os.environ) not in ("github", "gitea") or not (summary or results):
        return
    from planrun.reports import github  # only there

    try:
        if summary:
            github.write_summary(state, rundir, summary, head=head)
    finally:  # a step that reads the outputs has a right to them, whatever became of the summary
        if results:
            github.write_outputs(github.outputs(state, paths), results)
