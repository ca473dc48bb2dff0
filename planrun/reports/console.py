"""The console of a run: what people and CI systems see while it runs, and its closing lines.

Three styles: `live` (a terminal: a line for each end above a status area that is redrawn at most ten times a
second), `plain` (a line for each end), `groups` (CI with sections). What steps print is shown as `Look.output` states.
Text is gathered and written at most twenty times a second. When the stream cannot be written any more, or the
console itself fails, it stops writing and the run continues.
"""

from __future__ import annotations

import os
import sys

from planrun.model import events as ev
from planrun.model.groups import number_of, unknown
from planrun.model.progress import PATCH
from planrun.reports import facts
from planrun.reports import facts as units
from planrun.reports.ci import look_of, near, style, vendor
from planrun.reports.document import load, part, parts_of, rows_of
from planrun.reports.escape import line, tail
from planrun.reports.facts import icon, is_plain
from planrun.reports.policies import in_short, waits_for
from planrun.reports.progress import Tally, jobs_of
from planrun.reports.screen import Screen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from planrun.model.events import Event
    from planrun.model.progress import StepState
    from planrun.model.state import RunState
    from planrun.ports import Executor, Masks
    from planrun.reports.annotations import Annotations
    from planrun.reports.area import Row
    from planrun.reports.ci import ConsoleOptions, Look
    from planrun.reports.closing import Ending
    from planrun.reports.output import Output, Read, Source
    from planrun.reports.progress import Estimates, Tally
    from planrun.reports.screen import Piece

REDRAW = 0.1  # seconds between two drawings of the status area
BATCH = 0.05  # seconds between two writes without a status area
LEAST_WAIT = 0.01  # seconds; a shorter one makes the engine sync the ledger too early (SYNC_QUIET_PERIOD)
PATIENCE = 0.3  # seconds until the area is drawn for the first time
ROOM = 12  # cells to type an answer in
HEARTBEAT = 60.0  # seconds of silence after which a log says that the run is alive
TAIL_LINES = 20  # of the log of a failed step
_OF_MODELS = (ev.PlanningStarted, ev.ModelRepeated, ev.ModelAnswered, ev.BudgetCrossed, ev.PlanningEnded)
_OF_AGENTS = (
    *(ev.AgentStarted, ev.AgentProgressed, ev.ToolCalled, ev.ToolReturned),
    *(ev.AgentCompacted, ev.AgentEnded),
)
_BY_CAUSE = frozenset({"blocked", "cancelled"})
_HEADINGS = ("---", "+++", "~~~", "^^^")  # a line that begins like this is a heading to Buildkite


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
    # Stdout may hold the ledger and nothing else, or belong to a program. CI systems look for sections in one stream.
    out = sys.stderr if options.json or options.in_program else sys.stdout
    stream = out if style(environ, terminal=False) == "groups" else sys.stderr
    look = look_of(stream, environ, options, out)
    return Console(Screen(stream, masks=masks, out=out), look, state, rundir, estimates)


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
        screen.can_erase = look.style == "live"
        self._clock = screen.now
        self._tally = Tally(_counted(state), jobs_of(state), estimates)
        for name, step in state.steps.items():
            if step.ended and step.step.kind != "group":  # of the run that is resumed
                self._tally.end(name, None)
        self._began = self._written = self._next_write = self._drawn = screen.now()
        self._failures = 0
        self._agents: dict[str, str] = {}  # what the agents of running steps do
        self._goal = state.plan.goal
        self._steps, self._labels = state.steps, facts.labels(state)
        self._broken = False
        self._pending: list[Piece] = []
        self._begun = False  # the opening lines are written
        self.asks = False  # a person at the terminal is asked
        self._read: Read | None = None
        self._attend: Callable[[], None] | None = None
        self._is_signalled: Callable[[], bool] | None = None
        self._is_cancelled = False
        self._is_pausing = False
        self._output: Output | None = None  # loaded when a step has printed something
        self._started: dict[str, Source] = {}  # until then: the attempts that run
        self._ready: set[str] = set()  # services that are ready
        self._look_at = 0.0  # when to look at the logs of running attempts
        self._numbers = {name: number for number, name in enumerate(state.steps)}
        self._lines = 0  # written since the output of a failed step was shown
        # Failed steps whose output was shown: how many lines were written then.
        self._printed: dict[str, int] = {}
        self._annotations: Annotations | None = None  # from the first failure on, where CI shows them
        self._asked: dict[str, str] = {}  # what waits for an answer, by step

    def follow(self, executor: Executor, is_signalled: Callable[[], bool]) -> None:
        """Follow the output of running attempts; `is_signalled`: a signal waits."""
        self._read = executor.output
        self._attend = executor.attend
        self._is_signalled = is_signalled
        self._screen.keeps_waiting = self._keeps_waiting

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
            look = self._look()
            wait = self._redraw(more=look == 0.0) if self.look.style == "live" else self._write_plain()
            if look == 0.0:
                return 0.0
            waits = [each for each in (look, wait) if each is not None]
            return max(min(waits), LEAST_WAIT) if waits else None
        except Exception as error:  # noqa: BLE001 - as above
            self._give_up(error)
            return None

    def close(self, state: RunState, paths: Mapping[str, str], head: str) -> None:
        """Write where the reports are, and pass them to GitHub; `head` is the hash of the ledger's last line.

        Raises RecordsLost naming a file of GitHub's that cannot be written.
        """
        if not self._broken:
            try:
                self._close(state, paths, head)
                self._flush()
            except Exception as error:  # noqa: BLE001 - as above
                self._give_up(error)
        system = vendor(os.environ)
        if system in ("github", "gitea"):
            load("github").write_files(state, self.rundir, paths, head)
        elif system in ("gitlab", "azure", "buildkite", "teamcity"):
            self._screen.write("".join(load("published").publish(system, state, self.rundir, paths)))

    def _give_up(self, error: Exception) -> None:
        """Write why, once, and nothing from now on; a screen never raises."""
        self._broken = True
        why = line(f"{type(error).__name__}: {error}")
        self._screen.write(f"{self._icon('partial')} console output stopped, the run continues: {why}\n")

    # Questions to the person at the terminal.

    def say(self, lines: Iterable[str]) -> None:
        """Write lines above the question."""
        self._say("".join([f"{row}\n" for row in lines]))

    def ask(self, *parts: str) -> None:
        """Write what is pending, then a question without a line end, which stays last; without parts it is taken away.

        Its parts stand in one line if that leaves room to type in.
        """
        columns = self._screen.size[0]
        in_one = " ".join(parts)
        self._screen.ask_lines = [in_one] if len(in_one) + ROOM <= columns or not in_one else list(parts)
        self._screen.ask_lines = [row for row in self._screen.ask_lines if row]
        if not self._broken:
            self._flush()

    def entered(self, typed: str = "") -> None:
        """Take note that the user ended the line of the question after this text."""
        self._screen.entered(typed)

    # What is shown.

    def _note(self, event: Event, state: RunState) -> None:
        if isinstance(event, ev.AttemptStarted):
            self._attempted(event, state)
        elif isinstance(event, ev.AttemptEnded | ev.StepMoved | ev.StepRestored):
            self._moved(event, state)
        elif isinstance(event, ev.StepHeld) and not self.look.quiet:
            self._say(f"{self._icon('waiting')} {line(f'{event.step}: {event.message}')}\n")
        elif isinstance(event, ev.PlanMoved | ev.RunEnded):
            if event.status == "executing" and not self._begun:
                self._open(state)
            elif event.status == "paused" or isinstance(event, ev.RunEnded):
                self._end(state)
        elif isinstance(event, ev.GateOpened | ev.GateAnswered):
            self._at_gate(event, state)
        elif isinstance(event, ev.RunEnding):
            icon = {"pause": "paused", "budget": "paused", "gates": "waiting"}.get(event.why, "cancelled")
            self._is_cancelled = self._is_cancelled or event.why == "cancel"
            self._is_pausing = self._is_pausing or event.why == "pause"
            self._say(f"{self._icon(icon)} {facts.ended_by(state, event)}\n")
        elif isinstance(event, (*_OF_MODELS, *_OF_AGENTS, ev.AgentNoted, ev.RoundStarted)):
            self._about_models(event, state)

    def _open(self, state: RunState) -> None:
        self._begun = True
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
            self._say(f"  policy: {in_short(state)}\n")
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
        if self.asks and isinstance(event, ev.GateOpened):
            text = waits_for(event)  # the question shows the rest
        if not self.look.quiet:
            self._say(f"{self._icon(icon)} {text}\n")

    def _about_models(self, event: Event, state: RunState) -> None:
        self._grown(state)
        place = "models:MODELS"
        if isinstance(event, _OF_AGENTS):
            place = "agents:AGENTS"
            self._note_agent(event, state)
        elif isinstance(event, ev.AgentNoted):
            place = "collaboration:COLLABORATION"
        elif isinstance(event, ev.RoundStarted):
            place = "extras:ROUNDS"
        icon, text = part(place)["event_line"](event, state)
        if text and (icon == "partial" or not self.look.quiet):
            self._say(f"{self._icon(icon)} {text}\n")

    def _note_agent(self, event: Event, state: RunState) -> None:
        if isinstance(event, ev.AgentProgressed):
            started = state.agents[event.agent].started
            kind = started.agent_type + (f" {started.mode}" if started.mode else "")
            self._agents[event.step] = f"agent {kind}, turn {event.turn} of {event.turns}"
        elif isinstance(event, ev.AgentEnded):
            self._agents.pop(event.step, None)

    def _opened(self, event: ev.StepOpened, state: RunState) -> None:
        self._grown(state)
        if not state.steps[event.step].step.service:
            return
        self._ready.add(event.step)
        if not self.look.quiet:
            self._say(f"{self._icon('running')} {line(event.step)} is ready\n")

    def _grown(self, state: RunState) -> None:
        """Take note of steps that the run did not have before."""
        for name in _counted(state):
            if name not in self._steps:
                self._tally.add(name)
        self._steps, self._labels = state.steps, facts.labels(state)

    def _moved(self, event: ev.AttemptEnded | ev.StepMoved | ev.StepRestored, state: RunState) -> None:
        step = state.steps[event.step]
        if isinstance(event, ev.AttemptEnded) and event.log_bytes:
            self._outputs()
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
        self._failures += failed
        # What did not run for the sake of another step is named at the end, by cause: one line for hundreds.
        if self.look.quiet or step.reason == "not_selected" or (step.status in _BY_CAUSE and not step.tries):
            if (
                failed and self.look.sections
            ):  # an annotation is no output: reviewers see it at the line of the plan
                self._failed(step, state)
            return
        title = facts.title(step, self._labels)
        body = self._last_lines(step) if failed and self.look.output == "failed" else ""
        heading = f"{self._heading_icon(step.status)} {title}"
        shown = self._close_output(step.step.id, heading)
        if body and self.look.sections:
            self._say(f"{self.look.sections.begin(heading)}{self._indented(body)}{self.look.sections.end()}")
        elif not shown:
            self._say(f"{self._icon(step.status)} {title}\n")
        if failed:
            self._failed(step, state)
        if body and not self.look.sections:
            self._say(self._indented(body))
        streamed = self.look.output == "stream" and self._screen.together
        if failed and (body or shown or streamed or not _prints(step)):
            self._printed[step.step.id] = self._lines

    def _heading_icon(self, status: str) -> str:
        """Return the icon in the title of a section, which has no colours."""
        return icon(self.look.but(colour=False), status) if self.look.sections else self._icon(status)

    def _failed(self, step: StepState, state: RunState) -> None:
        if self.look.sections:
            if not self._annotations:
                self._annotations = load("annotations").Annotations(self.look.sections, self.rundir)
            self._say(self._annotations.failed(state, step))
        else:
            why = facts.sentence(step)
            if why != f"exit code {step.exit_code}":  # which is in its line already
                self._say(f"  {line(state.plan.file_of(step.step))}:{step.step.line}: {why}\n")

    def _last_lines(self, step: StepState) -> str:
        """Return the last lines of the last attempt; where there are more, the first of them names the file."""
        last = facts.last(step)
        if not last or not last.started.log or (last.ended and not last.ended.log_bytes):
            return ""
        rows = tail(self.rundir, last.started.log).removesuffix("\n").split("\n")
        if len(rows) > TAIL_LINES:
            rows = [f"… the end of {near(os.path.join(self.rundir, last.started.log))}", *rows[-TAIL_LINES:]]
        return "".join([f"{row}\n" for row in rows]) if rows != [""] else ""

    def _indented(self, body: str) -> str:
        indent = self.look.sections.indent.decode() if self.look.sections else "  | "
        return indent + body[:-1].replace("\n", f"\n{indent}") + "\n"

    def _repeated(self, event: ev.AttemptEnded) -> None:
        if event.reason == "paused":  # a service, which the next resume starts again
            self._close_output(event.step, f"{self._heading_icon('paused')} {line(event.step)}")
            self._say(f"{self._icon('paused')} {line(event.step)} is stopped until the run is resumed\n")
        elif event.proposed:
            about = f"{line(event.step)}: the agent proposes a plan"
            if not self._close_output(event.step, f"{self._heading_icon('waiting')} {about}"):
                self._say("" if self.look.quiet else f"{self._icon('waiting')} {about}\n")
        elif event.patch:
            count = len(event.patch["files"])
            about = (
                f"{line(event.step)}: the agent ended with a patch of {count} file{'' if count == 1 else 's'}"
            )
            if not self._close_output(event.step, f"{self._heading_icon('completed')} {about}"):
                self._say("" if self.look.quiet else f"{self._icon('completed')} {about}\n")
        elif not self.look.quiet:
            why = facts.attempt_sentence(event)
            delay = f", next in {units.seconds(event.delay)}" if event.delay else ""
            about = f"{line(event.step)}: attempt {event.n} failed: {why}{delay}"
            if not self._close_output(event.step, f"{self._heading_icon('waiting')} {about}"):
                self._say(f"{self._icon('waiting')} {about}\n")

    def _end(self, state: RunState) -> None:
        """Write how a run ended, or why it stopped; what to do next follows when its reports are written."""
        if self._annotations:
            self._say(self._annotations.rest(state))
        if is_plain(state) and not self.look.verbose:
            # Nothing else names the run where the console is quiet.
            run = f", run {line(state.started.run)}" if self.look.quiet and state.started else ""
            self._say(f"{self._icon('completed')} {facts.verdict(state)}{run}\n")
            if not self.look.quiet:
                self._say("".join([f"{row}\n" for row in rows_of(parts_of(state), "ending", state)]))
        else:
            self._say("".join(load("closing").ending(self._ending(state))))
        self._flush()

    def _close(self, state: RunState, paths: Mapping[str, str], head: str) -> None:
        self._say("".join([f"{row}\n" for row in rows_of(parts_of(state), "closing", state)]))
        if not self.look.quiet:
            files = ", ".join([os.path.basename(path) for path in paths.values()])
            reports = f"reports in {_folder(paths)}: {files}" if paths else "no report could be written"
            ledger = f"; ledger head {head}" if self.look.verbose or not paths or vendor(os.environ) else ""
            self._say(f"  {reports}{ledger}\n")
        if not is_plain(state):
            self._say("".join(load("closing").next_steps(self._ending(state))))

    def _ending(self, state: RunState) -> Ending:
        shown = {} if self.look.sections else self._printed
        printed = {name: self._lines - at for name, at in shown.items()}
        ending: Ending = load("closing").Ending(
            state=state, look=self.look, rundir=self.rundir, printed=printed
        )
        return ending

    def _icon(self, status: str) -> str:
        return icon(self.look, status)

    # What steps print, as it happens.

    def _attempted(self, event: ev.AttemptStarted, state: RunState) -> None:
        self._tally.start(event.step, self._clock())
        step = state.steps[event.step]
        if self.look.verbose and not self.look.quiet:
            self._say("".join([f"{row}\n" for row in load("commands").commands_of(step)]))
        if self.look.output not in ("stream", "group") or not event.log:
            return
        label, _ = facts.named(step, self._labels)
        about = f": {line(step.step.title)}" if step.step.title else ""
        again = f" (attempt {event.n})" if event.n > 1 else ""
        again = " (its patch)" if event.fingerprint.startswith(PATCH) else again
        heading = f"{'▶' if self.look.unicode else '>'} {label}{about}{again}\n"
        number = self._numbers.setdefault(event.step, len(self._numbers))
        source = (event.step, label, heading, os.path.join(self.rundir, event.log), number)
        if self._output:
            self._output.start(source)
        else:
            self._started[event.step] = source

    def _close_output(self, step: str, title: str) -> bool:
        """Show the rest of what an attempt printed; True when `title` was shown above it."""
        self._started.pop(step, None)
        return self._output is not None and self._output.close(step, title)

    def _keeps_waiting(self) -> bool:
        """Do what is due of the running attempts while the output is not read; False: the run is to end or to pause."""
        if self._attend:
            self._attend()
        return not (self._is_pausing or self._is_interrupted())

    def _is_interrupted(self) -> bool:
        return self._is_cancelled or (self._is_signalled is not None and self._is_signalled())

    def _outputs(self) -> Output:
        """Return what shows the output of steps; a run whose steps print nothing needs none of it."""
        if self._output is None:
            run = os.path.basename(self.rundir)
            if self.look.output == "group":
                from planrun.reports.grouped import Grouped

                self._output = Grouped(self._put, self._flush, look=self.look, aside=self._ready, run=run)
                self._output.apart = not self._screen.together
            else:
                from planrun.reports.output import Output

                self._output = Output(self._put, self._flush, look=self.look, run=run)
            self._output.read = self._read
            self._output.masks = self._screen.masks
            self._output.is_interrupted = self._is_interrupted
            for source in self._started.values():
                self._output.start(source)
            self._started.clear()
        return self._output

    def _look(self) -> float | None:
        """Take what running steps have printed; return the seconds until the next look, None when nothing runs."""
        now = self._clock()
        if self._read is None or not (self._started or (self._output and self._output.live)):
            return None
        if now < self._look_at:
            return self._look_at - now
        if self._output is None and not any([self._read(name, 0, 1) for name in self._started]):  # noqa: C419 - half the time
            wait = REDRAW
        else:
            wait = self._outputs().look()
        self._look_at = now + wait
        return wait

    # How it is written to the stream.

    def _say(self, text: str) -> None:
        """Add a text of planrun, which is in no section of a step."""
        if not text:
            return
        if self._output:
            self._output.pause()
        self._put(text)

    def _put(self, piece: Piece) -> None:
        if self._printed:
            self._lines += piece.count(b"\n") if isinstance(piece, bytes) else piece.count("\n")
        self._pending.append(piece)

    def _flush(self) -> None:
        """Write what is pending, without a status line behind it."""
        self._screen.show(self._pending)
        self._pending.clear()
        self._written = self._clock()

    def _write_plain(self) -> float | None:
        """Write what is pending, unless that was just done; after a minute without output, show what still runs."""
        if self._pending:
            now = self._clock()
            if now < self._next_write:
                return self._next_write - now
            self._next_write = now + BATCH
            self._flush()
        if self.look.quiet or not (self._tally.running or self._asked):
            return None
        silent = self._clock() - self._written
        if silent >= HEARTBEAT:
            still = "running" if self._tally.running else "waiting"
            self._say(
                f"{'…' if self.look.unicode else '...'} still {still}: {self._alive()}; {self._standing()}\n"
            )
            self._flush()
            silent = 0.0
        return HEARTBEAT - silent

    def _alive(self) -> str:
        """`test (3m), build (1m)`: what started and did not end, the oldest first; then what waits for an answer."""
        now, shown = self._clock(), []
        for name, began in self._tally.running.items():
            step = self._steps[name]
            does = self._agents.get(name, "")
            note = "waits for its next attempt" if step.status == "waiting" else does
            shown.append(f"{facts.name(step)} ({', '.join(filter(None, (units.age(now - began), note)))})")
        return facts.names([*shown, *self._asked.values()])

    def _standing(self) -> str:
        """`3 of 10 done, 1 failed, goal: Release 1.2`: how far the run is, and what it is for."""
        failed = f"{self._failures} failed" if self._failures else ""
        goal = f"goal: {line(self._goal, 80)}" if self._goal else ""
        return ", ".join(filter(None, (f"{self._tally.done} of {self._tally.total} done", failed, goal)))

    def _redraw(self, *, more: bool) -> float | None:
        """Write what is pending and the status area below it, at most ten times a second."""
        now = self._clock()
        wait = self._drawn + REDRAW - now
        if wait > 0 and not more:
            return wait if self._pending or self._tally.running or self._screen.ask_lines else None
        self._drawn = now
        patience = self._began + PATIENCE - now
        area = self._area(now) if patience <= 0 else []
        self._screen.show(self._pending, area)
        self._pending.clear()
        if not self._tally.running:
            return None
        return max(patience, 0.0) or 1.0  # the elapsed time changes

    def _area(self, now: float) -> list[str]:
        """Return the lines of the status area: of the running steps, and of the run."""
        tally = self._tally
        if not tally.running or self.look.quiet:
            return []
        from planrun.reports import area  # it takes longer to load than short runs last

        columns, height = self._screen.size
        summary = area.summary(tally, now, self._began, failed=self._failures, columns=columns)
        rows = [
            self._row(name, began, now)
            for name, began in sorted(tally.running.items(), key=lambda item: item[1])
        ]
        size = columns, height - len(self._screen.ask_lines)
        return area.lines(rows, summary, size, unicode=self.look.unicode)

    def _row(self, name: str, began: float, now: float) -> Row:
        from planrun.reports.area import Row

        step = self._steps[name]
        note = self._output.unfinished(name) if self._output else ""
        if step.status == "waiting":
            note = "waits for its next attempt"
        note = note or self._agents.get(name, "")
        called = self._tally.called(name)
        note = note or called.removeprefix(name).strip()
        colour = self._output.colour(name) if self._output and self.look.colour else ""
        return Row(label=facts.name(step), seconds=now - began, note=line(note), colour=colour)


def _prints(step: StepState) -> bool:
    last = facts.last(step)
    return bool(last and last.ended and last.ended.log_bytes)


def _counted(state: RunState) -> list[str]:
    return [step.step.id for step in state.counted()]


def _number_of(left: int, state: RunState) -> str:
    """Return how many steps are left, as far as their instances are known."""
    if not any(step.step.kind == "group" for step in state.steps.values()):
        return f"{left} step{'' if left == 1 else 's'}"
    return number_of(left, unknown([step.step for step in state.steps.values() if not step.ended]))


def _folder(paths: Mapping[str, str]) -> str:
    """Return the folder of the reports."""
    folder = os.path.dirname(next(iter(paths.values()), ""))
    return near(folder) if folder else "."
