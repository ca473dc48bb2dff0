"""When each step waited and ran, and where that lies on a common axis in which idle times are cut short."""

from __future__ import annotations

from itertools import pairwise

from planrun.model import graph
from planrun.model.critical import critical_path
from planrun.model.record import Record
from planrun.reports import facts
from planrun.reports.facts import epoch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Literal

    from planrun.model.progress import AttemptState, StepState
    from planrun.model.state import RunState

    What = Literal["wait", "gate", "ok", "bad", "again", "cut", "live"]

    Times = tuple[float, float]

_LEAST_CUT = 5.0  # seconds: shorter gaps are shown as they are
_CUT_SHARE = 0.15  # of all work: a gap that is longer would squeeze the rest
_CUT_WIDTH = 3.0  # per cent of the axis that stand for a gap
LEAST_WIDTH = 0.6  # per cent: what is shorter would not be seen
_TICKS = 6
_TICK_ROOM = 9.0  # per cent between two ticks, so that their texts do not touch
_STEPS = (
    *(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800),
    *(3600, 7200, 14400, 21600, 43200, 86400, 172800, 604800),
)  # fmt: skip


class Piece(Record):
    """A part of a step's time, in seconds since the start of the run."""

    what: What
    begin: float
    end: float


class Line(Record):
    """The times of a step; `ready`, `began` and `ended` are seconds since the start, None where that never happened."""

    pieces: tuple[Piece, ...] = ()
    ready: float | None = None
    began: float | None = None
    ended: float | None = None

    @property
    def waited(self) -> float:
        """Seconds from the moment when it could start to its start, and between its attempts."""
        return sum([piece.end - piece.begin for piece in self.pieces if piece.what in ("wait", "gate")])


class Timeline(Record):
    """The times of all steps by id, and the ids on the critical path in their order."""

    lines: dict[str, Line]
    path: tuple[str, ...]
    scale: Scale


def timeline(state: RunState) -> Timeline:
    """Return the times of a run."""
    start = epoch(state.started.at) if state.started else 0.0
    now = _last_moment(state) - start
    ends = _Ends(state, start)
    shown = [*state.steps.values(), *state.undoing.values()]
    lines = {step.step.id: _line(step, start, now, ends.before(step)) for step in shown}
    return Timeline(lines=lines, path=tuple(_path(state)), scale=Scale(_busy(lines), now))


def _last_moment(state: RunState) -> float:
    """Return the Unix time of the last thing that the records say about a step or the run."""
    stamps = [state.started.at if state.started else "", state.ended.at if state.ended else ""]
    for step in (*state.steps.values(), *state.undoing.values()):
        stamps.append(step.ended_at)
        for attempt in step.attempts[-1:]:
            stamps += [attempt.started.at, attempt.ended.at if attempt.ended else ""]
    return epoch(max(stamps))


class _Ends:
    """When what a step waits for had ended."""

    def __init__(self, state: RunState, start: float) -> None:
        self._state, self._start = state, start
        self._waits = _waits(state)
        main = [self._of(name) for name, step in state.steps.items() if step.step.section == "steps"]
        self._main = max(main, default=0.0)

    def before(self, step: StepState) -> float:
        """Return the seconds after the start of the run."""
        known = [self._of(on) for on in self._waits.get(step.step.id, ())]
        if step.step.section != "steps":
            known.append(self._main)
        return max(known, default=0.0)

    def _of(self, name: str) -> float:
        found = self._state.steps.get(name)
        return epoch(found.ended_at) - self._start if found and found.ended_at else 0.0


def _waits(state: RunState) -> dict[str, tuple[str, ...]]:
    plan = state.plan
    return {**graph.waits(plan.main()), **graph.waits(plan.cleanup())}


def _line(step: StepState, start: float, now: float, ready: float) -> Line:
    """Return the times of one step; attempts before a resume are among them."""
    attempts = step.attempts
    if not attempts:
        return Line(pieces=tuple(_gates(step, start, now)), ended=_since(start, step.ended_at))
    pieces: list[Piece] = []
    began = epoch(attempts[0].started.at) - start
    ready = min(ready, began)
    if began > ready:
        pieces.append(Piece(what="wait", begin=ready, end=began))
    pieces += [gate for gate in _gates(step, start, now) if gate.end > gate.begin]
    end = began
    for number, attempt in enumerate(attempts):
        begin = epoch(attempt.started.at) - start
        # A wait from before a resume is the user's.
        if number and begin > end and number != step.before:
            pieces.append(Piece(what="wait", begin=end, end=begin))
        end = max(begin, epoch(attempt.ended.at) - start) if attempt.ended else max(begin, now)
        pieces.append(
            Piece(what=_kind(attempt, is_last=attempt is attempts[-1], step=step), begin=begin, end=end)
        )
    return Line(pieces=tuple(_apart(pieces)), ready=ready, began=began, ended=_since(start, step.ended_at))


def _since(start: float, at: str) -> float | None:
    return epoch(at) - start if at else None


def _gates(step: StepState, start: float, now: float) -> Iterator[Piece]:
    """Yield when a step waited for a response."""
    for gate in (step.gate, step.after):
        if gate and gate.opened:
            begin = epoch(gate.opened.at) - start
            end = epoch(gate.answered.at) - start if gate.answered else (_since(start, step.ended_at) or now)
            yield Piece(what="gate", begin=begin, end=max(begin, end))


def _apart(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """Yield the pieces, waits without the part of them that was at a gate."""
    gates = [piece for piece in pieces if piece.what == "gate"]
    for piece in pieces:
        if piece.what != "wait":
            yield piece
            continue
        begin = piece.begin
        for gate in gates:
            if gate.begin < piece.end and gate.end > begin:
                if gate.begin > begin:
                    yield piece.but(begin=begin, end=gate.begin)
                begin = gate.end
        if begin < piece.end:
            yield piece.but(begin=begin)


def _kind(attempt: AttemptState, *, is_last: bool, step: StepState) -> What:
    if attempt.ended is None:
        return "live"
    status = attempt.ended.status
    if status == "completed":
        return "ok"
    if status in ("cancelled", "lost"):
        return "cut"
    return "bad" if is_last and step.status != "completed" else "again"


def _path(state: RunState) -> list[str]:
    """Return the critical path through `steps`, and then through `finally`, which waits for all of them."""
    found: list[str] = []
    for steps in (state.plan.main(), state.plan.cleanup()):
        waits = graph.waits(steps)
        ran = {
            name: (step.attempts[0].started.at, step.ended_at)
            for name in waits
            if (step := state.steps.get(name)) and step.attempts and step.ended_at
        }
        found += critical_path(waits, ran)
    return found


def _busy(lines: Mapping[str, Line]) -> list[Times]:
    """Return the times in which anything ran, one after the other."""
    spans = sorted(
        [
            (piece.begin, piece.end)
            for line in lines.values()
            for piece in line.pieces
            if piece.what not in ("wait", "gate")
        ]
    )
    merged: list[Times] = []
    for begin, end in spans:
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((begin, end))
    return merged


class Tick(Record):
    """A mark on the axis."""

    at: float  # per cent
    text: str


class Scale:
    """From seconds since the start to per cent of the axis; a long time in which nothing ran has a fixed width."""

    def __init__(self, busy: Iterable[Times], whole: float) -> None:
        busy = list(busy)
        work = sum([end - begin for begin, end in busy])
        limit = max(_LEAST_CUT, _CUT_SHARE * work)
        self.whole = max(whole, busy[-1][1] if busy else 0.0)
        edges = [(0.0, 0.0), *busy, (self.whole, self.whole)]
        gaps = [(first[1], second[0]) for first, second in pairwise(edges) if second[0] - first[1] > limit]
        self.gaps = gaps if busy else []
        shown = self.whole - sum([end - begin for begin, end in self.gaps])
        self._unit = (100.0 - min(50.0, _CUT_WIDTH * len(self.gaps))) / shown if shown > 0 else 0.0
        self._cut = min(_CUT_WIDTH, 50.0 / len(self.gaps)) if self.gaps else 0.0

    def at(self, seconds: float) -> float:
        """Return the place of a moment."""
        place = seconds
        cut = 0.0
        for begin, end in self.gaps:
            if seconds <= begin:
                break
            inside = min(seconds, end) - begin
            place -= inside
            cut += self._cut * inside / (end - begin)
        return place * self._unit + cut

    def span(self, piece: Piece) -> tuple[float, float]:
        """Return place and width of a piece, wide enough to be seen."""
        begin = self.at(piece.begin)
        width = max(LEAST_WIDTH, self.at(piece.end) - begin)
        return min(begin, 100.0 - width), width

    def ticks(self) -> list[Tick]:
        """Return the marks of the axis, at round times since the start."""
        shown = self.whole - sum([end - begin for begin, end in self.gaps])
        step = next((each for each in _STEPS if each * _TICKS >= shown), _STEPS[-1])
        found: list[Tick] = []
        for begin, end in self._linear():
            number = -int(-begin // step)
            while number * step <= end and len(found) < 100:
                at = self.at(number * step)
                if (not found or at - found[-1].at >= _TICK_ROOM) and at <= 100.0 - _TICK_ROOM / 2:
                    found.append(Tick(at=at, text=_moment(number * step)))
                number += 1
        return found

    def _linear(self) -> Iterator[Times]:
        begin = 0.0
        for gap in self.gaps:
            if gap[0] > begin:
                yield begin, gap[0]
            begin = gap[1]
        yield begin, self.whole

    def breaks(self) -> list[tuple[float, float, str]]:
        """Return place, width and length of each gap."""
        return [
            (self.at(begin), self._cut, facts.age(end - begin) if end - begin >= 1 else "")
            for begin, end in self.gaps
        ]


def _moment(seconds: float) -> str:
    return "0" if not seconds else facts.period(round(seconds, 3))
