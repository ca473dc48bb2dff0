"""What is on the screen: figures of the run, its steps, the log of one, and the keys; everything fits the terminal."""

from __future__ import annotations

from collections import deque

from planrun.app.logtail import LogTail
from planrun.app.run_status import elapsed, status_of
from planrun.live.rows import FILTERS, Steps
from planrun.model.record import Record
from planrun.reports import facts
from planrun.reports.area import fitted, sized
from planrun.reports.escape import line, plain
from planrun.reports.facts import seconds
from planrun.reports.gates import choices, open_gates, until
from planrun.reports.policies import asked, grounds, waits_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from planrun.app.following import Followed
    from planrun.live.rows import Row
    from planrun.model.events import GateOpened
    from planrun.model.plan import Plan
    from planrun.model.progress import StepState
    from planrun.model.state import RunState
    from planrun.reports.ci import Look


SHAPES = ("list", "groups", "dependencies")
"""What a key goes through: a list without groups, and two trees."""
_DEEPEST = 10  # levels that are indented


class Entry(Record):
    """A step in the tree; `below`: steps right below it; `is_open`: they are shown."""

    step: str
    depth: int = 0
    below: int = 0
    is_open: bool = False

    def label(self, name: str, *, unicode: bool) -> str:
        """Return the name with its place in the tree."""
        marks = "▾▸" if unicode else "-+"
        mark = f"{marks[not self.is_open]} " if self.below else "  "
        return "  " * min(self.depth, _DEEPEST) + mark + name


class Tree:
    """Which steps stand below which, and which of them are folded."""

    def __init__(self) -> None:
        self.shape = SHAPES[0]
        self.folded: set[str] = set()
        self._of: tuple[Plan, str, int] | None = None
        self._parents: Mapping[str, str] = {}
        self._below: Mapping[str, Sequence[str]] = {}

    def next_shape(self) -> None:
        """Change from the list to the trees, and back."""
        self.shape = SHAPES[(SHAPES.index(self.shape) + 1) % len(SHAPES)]
        self.folded.clear()

    def entries(self, state: RunState, listed: Sequence[str], *, only: bool) -> list[Entry]:
        """Return what is shown of the steps that are listed; `only`: with what they stand below, whatever is folded."""
        if self.shape == "list":
            return [Entry(step=name) for name in listed]
        self._read(state)
        wanted = set(listed)
        if only:
            for name in listed:
                wanted.update(self._above(name))
        found: list[Entry] = []
        stack = [(name, 0) for name in reversed(self._below[""])]
        while stack:  # plans may be deeper than Python's recursion
            name, depth = stack.pop()
            below = self._below.get(name, ())
            if only and name not in wanted:
                continue
            is_open = only or name not in self.folded
            found.append(Entry(step=name, depth=depth, below=len(below), is_open=is_open))
            if is_open:
                stack += [(each, depth + 1) for each in reversed(below)]
        return found

    def fold_all(self) -> None:
        """Show the first level alone."""
        self.folded = {name for name in self._below if name}

    def parent(self, name: str) -> str:
        """Return what a step stands below; empty on the first level."""
        return self._parents.get(name, "")

    def visible(self, name: str) -> str:
        """Return a step or, where it is folded away, the one that is shown in its place."""
        return next(reversed([each for each in (name, *self._above(name)) if each in self.folded]), name)

    def _above(self, name: str) -> Iterator[str]:
        while name := self._parents.get(name, ""):
            yield name

    def _read(self, state: RunState) -> None:
        """Read the tree anew when the plan has changed, as it does when a group is opened."""
        key = (state.plan, self.shape, len(state.undoing))
        if self._of is not None and self._of[0] is key[0] and self._of[1:] == key[1:]:
            return
        self._of = key
        shown = [*state.steps, *[name for name in state.undoing if name not in state.steps]]
        parents = _by_group(state) if self.shape == "groups" else _by_dependency(state)
        self._parents = {name: parents.get(name, "") for name in shown}
        self._below = _below(shown, self._parents)


def _by_group(state: RunState) -> dict[str, str]:
    return {name: step.step.group for name, step in state.steps.items() if step.step.group in state.steps}


def _by_dependency(state: RunState) -> dict[str, str]:
    """Return for each step the deepest one of those that it waits for, the first one of equals."""
    steps = [step.step for step in state.steps.values()]
    waits = {step.id: [edge.on for edge in step.edges if edge.on in state.steps] for step in steps}
    depth: dict[str, int] = {}
    for name in _in_order(waits):
        depth[name] = 1 + max([depth.get(on, 0) for on in waits[name]], default=0)
    return {name: max(on, key=lambda each: depth.get(each, 0)) for name, on in waits.items() if on}


def _in_order(waits: Mapping[str, Collection[str]]) -> Iterable[str]:
    """Return the steps, each behind those that it waits for."""
    done: dict[str, None] = {}
    for first in waits:
        stack = [(first, iter(waits[first]))]
        on_way = {first}
        while stack:
            name, others = stack[-1]
            following = next((each for each in others if each not in done and each not in on_way), None)
            if following is None:
                stack.pop()
                on_way.discard(name)
                done[name] = None
            else:
                on_way.add(following)
                stack.append((following, iter(waits.get(following, ()))))
    return done


def _below(names: Iterable[str], parents: Mapping[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {"": []}
    for name in names:
        found.setdefault(parents[name], []).append(name)
    return found


_KEPT = 5000  # lines of a log
_BAR = 20
_NARROW = 70  # columns below which there is no bar
_COLOURS = {
    "completed": "32",
    "failed": "31",
    "running": "36",
    "blocked": "33",
    "cancelled": "33",
    "partial": "33",
    "paused": "33",
    "waiting": "35",
    "skipped": "90",
    "pending": "90",
}
HELP = (
    "up, down, j, k      choose a step            home, end, page up, page down",
    "enter, l            its log on the whole screen, and back",
    "f                   show all, running, waiting, failed, coming, ended steps",
    "/                   search in ids and titles; escape shows all again",
    "v                   as a list, as a tree of groups, as a tree of dependencies",
    "left, right, space  in a tree: fold and unfold; - folds all, + unfolds all",
    "o                   choose whatever runs (on until you choose a step yourself)",
    "",
    "a, r                approve, reject what the step or the plan waits for",
    "d                   answer a question or a decision",
    "p, c                pause, cancel the run",
    "t                   retry the step, once the run is not running",
    "u                   resume the run",
    "",
    "q, Ctrl-C           leave; the run goes on",
    "",
    "Each change asks first, and is made by the planrun verb of its name.",
)


class Choice:
    """What the user chose to see."""

    def __init__(self) -> None:
        self.step = ""
        self.top = 0  # first row that is shown
        self.kind = "all"
        self.search = ""
        self.follows = True  # the step that runs is chosen
        self.mode = "steps"  # or log, help
        self.back = 0  # lines above the end of the log; 0: it follows
        self.message = ""
        self.tree = Tree()

    def press(self, key: str) -> None:
        """Take a key that changes only what is seen."""
        if key in ("enter", "l"):
            self.mode, self.back = ("steps" if self.mode == "log" else "log"), 0
        elif key == "?":
            self.mode = "steps" if self.mode == "help" else "help"
        elif key == "f":
            kinds = list(FILTERS)
            self.kind = kinds[(kinds.index(self.kind) + 1) % len(kinds)]
        elif key == "o":
            self.follows = True
        elif key == "v":
            self.tree.next_shape()
        elif key == "escape":
            self.mode, self.kind, self.search = "steps", "all", ""


class Line(Record):
    """What is asked in the last line, with what was typed."""

    text: str
    typed: str = ""


class Log:
    """The log of the chosen step: the last lines of its last attempt."""

    def __init__(self, followed: Followed, *, colours: bool) -> None:
        self._followed, self._colours = followed, colours
        self._tail: LogTail | None = None
        self._of: tuple[str, str] = ("", "")
        self._partial = ""
        self._is_over = False
        self.lines: deque[str] = deque(maxlen=_KEPT)

    def follow(self, steps: Steps, name: str) -> None:
        """Take what was added to the log of a step."""
        step = steps.find(name)
        started = step.attempts[-1].started if step and step.attempts else None
        log = started.log if started else ""
        if (name, log) != self._of:
            self.close()
            self._of = (name, log)
            self._tail = LogTail(self._followed.rundir, log, _KEPT, colours=self._colours) if log else None
        if self._tail is None or self._is_over:
            return
        ended = step is not None and step.attempts[-1].ended is not None
        news = self._tail.news()
        self._add(news)
        if ended and not news:
            self._add(self._tail.rest())
            self._is_over = True
        else:
            self._partial += self._tail.begun()

    def _add(self, news: Sequence[str]) -> None:
        for text in news:
            self.lines.append((self._partial + text).expandtabs(8))
            self._partial = ""

    def shown(self, count: int, back: int) -> list[str]:
        """Return the last lines but `back`."""
        every = [*self.lines, *([self._partial] if self._partial else [])]
        end = max(min(count, len(every)), len(every) - back)
        return every[max(0, end - count) : end]

    def close(self) -> None:
        """Forget the log."""
        if self._tail:
            self._tail.close()
        self._tail, self._partial, self._is_over = None, "", False
        self.lines.clear()


class View:
    """Makes the lines of the screen."""

    def __init__(self, followed: Followed, steps: Steps, choice: Choice, look: Look) -> None:
        self._followed, self._steps, self._choice, self._look = followed, steps, choice, look
        self.log = Log(followed, colours=look.colour)
        self.page = 10  # rows of the list, for whole pages

    def lines(self, size: tuple[int, int], ask: Line | None) -> list[str]:
        """Return as many lines as the terminal has rows."""
        columns, rows = size
        choice, names = self._choice, self.names()
        if choice.follows:
            step = self._steps.find(choice.step)
            if step is None or step.status != "running":
                own = [name for name in names if not self._steps.is_group(name)] or names
                running = [name for name in own if self._status(name) == "running"]
                at_gates = [gate.step for gate in open_gates(self._steps.state) if gate.step in names]
                failed = [name for name in own if self._status(name) == "failed"]
                first = [*running, *at_gates, *(failed if self._steps.state.settled else [])]
                choice.step = first[0] if first else choice.step
        if choice.step not in names:
            shown = choice.tree.visible(choice.step)
            choice.step = shown if shown in names else names[0] if names else ""
        self.log.follow(self._steps, self._choice.step)
        head = self._head(columns)
        room = rows - len(head) - 1
        body = {"steps": self._both, "log": self._log, "help": self._help}[self._choice.mode](columns, room)
        body = [*body[:room], *[""] * (room - len(body))]
        return [fitted(text, columns) for text in [*head, *body, self._last(ask, columns)]]

    def entries(self) -> list[Entry]:
        """Return the steps that are listed, with their places in a tree."""
        choice = self._choice
        names = self._steps.names(FILTERS[choice.kind], choice.search)
        only = bool(FILTERS[choice.kind] or choice.search)
        return choice.tree.entries(self._steps.state, names, only=only)

    def names(self) -> list[str]:
        """Return the steps that are listed."""
        return [entry.step for entry in self.entries()]

    def _status(self, name: str) -> str:
        step = self._steps.find(name)
        return step.status if step else ""

    def _paint(self, text: str, colour: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self._look.colour and colour else text

    def _icon(self, status: str) -> str:
        icons = facts.ICONS if self._look.unicode else facts.ASCII_ICONS
        return self._paint(icons.get(status, "?"), _COLOURS.get(status, ""))

    def _head(self, columns: int) -> list[str]:
        """Return two lines: plan and status, then progress; and what is asked for, where something is."""
        inspected, state = self._followed.inspected, self._steps.state
        status = "gone" if self._followed.gone else status_of(inspected)
        word = {"unfinished": "killed", "gone": "deleted"}.get(status, status)
        plan = line(state.plan.title or state.plan.name)
        first = (
            f"{self._icon(status)} {self._paint(word, _COLOURS.get(status, '33'))}  {self._paint(plan, '1')}"
        )
        first += f"  run {self._followed.run}"
        lines = [first, self._progress(columns)]
        gates = open_gates(state)
        if gates and not state.ended:
            more = f" (and {len(gates) - 1} more)" if len(gates) > 1 else ""
            lines.append(self._paint(f"{waits_for(gates[0])}{more}: {asked(gates[0])}", "35"))
        return lines

    def _progress(self, columns: int) -> str:
        inspected, state = self._followed.inspected, self._steps.state
        if self._followed.gone:
            return line(self._followed.gone)
        figures = self._steps.figures()
        done, total = self._steps.done()
        full = _BAR * done // total if total else _BAR
        bar = f"[{'#' * full}{'.' * (_BAR - full)}] " if columns >= _NARROW else ""
        text = f"{bar}{done}/{total}  {seconds(elapsed(inspected))}"
        if inspected.is_active and figures.eta and figures.eta >= 0.1:
            text += f"  ETA {'' if figures.eta_known else 'at least '}{seconds(figures.eta)}"
        failed = state.summary()["failed"]
        text += f"  {self._paint(f'{failed} failed', '31')}" if failed else ""
        if state.ended:
            return f"{text}  exit code {state.ended.exit_code}"
        if inspected.is_active:
            return f"{text}  pausing" if state.pausing else text
        return f"{text}  no process runs it; u resumes it"

    def _both(self, columns: int, room: int) -> list[str]:
        """Return the steps, and the end of the log below them."""
        entries = self.entries()
        height = min(max(len(entries), 1), max(3, room * 3 // 5))
        return [*self._list(entries, columns, height), *self._log(columns, room - height)]

    def _list(self, entries: list[Entry], columns: int, height: int) -> list[str]:
        choice = self._choice
        self.page = height
        if not entries:
            what = f' with "{line(choice.search)}"' if choice.search else ""
            return [f"  no step is listed: {choice.kind}{what}; escape shows all", *[""] * (height - 1)]
        at = [entry.step for entry in entries].index(choice.step)
        choice.top = max(min(choice.top, at, len(entries) - height), at - height + 1, 0)
        shown = [self._labelled(entry) for entry in entries[choice.top : choice.top + height]]
        width = min(max([len(row.step) for row in shown]), 40, max(12, columns * 2 // 5))
        return [
            self._row(row, width, columns, is_chosen=number == at)
            for number, row in enumerate(shown, choice.top)
        ]

    def _labelled(self, entry: Entry) -> Row:
        row = self._steps.row(entry.step)
        if self._choice.tree.shape == "list":
            return row
        return row.but(step=entry.label(row.step, unicode=self._look.unicode))

    def _row(self, row: Row, width: int, columns: int, *, is_chosen: bool) -> str:
        mark = ">" if is_chosen else " "
        tries = f"{row.tries}x" if row.tries > 1 else ""
        rest = f"{row.status:<9} {row.time:>7} {tries:>3}  {row.note}"
        if is_chosen and self._look.colour:
            icons = facts.ICONS if self._look.unicode else facts.ASCII_ICONS
            text = f"{mark} {icons.get(row.status, '?')} {sized(row.step, width)} {rest}"
            return f"\x1b[7m{sized(text, columns)}\x1b[0m"
        rest = self._paint(f"{row.status:<9}", _COLOURS.get(row.status, "")) + rest[9:]
        return f"{mark} {self._icon(row.status)} {sized(row.step, width)} {rest}"

    def _log(self, columns: int, room: int) -> list[str]:
        if room < 2:
            return []
        step = self._steps.find(self._choice.step)
        back = min(self._choice.back, max(0, len(self.log.lines) - (room - 1)))
        self._choice.back = back
        n = f", attempt {step.attempts[-1].n}" if step and len(step.attempts) > 1 else ""
        up = f", {back} lines above its end" if back else ""
        rule = "─" if self._look.unicode else "-"
        name = f"log of {facts.name(step)}{n}{up} " if step else "no step "
        title = f"{rule * 2} {name}"
        lines = self.log.shown(room - 1, back)
        if step and step.asked is not None:
            title = f"{rule * 2} {waits_for(step.asked)} "
            lines = self._asked(step, step.asked)[: room - 1]
        elif not lines and step:
            lines = [f"  {_without_log(step)}"]
        return [self._paint(title + rule * max(0, columns - len(title)), "90"), *lines]

    def _asked(self, step: StepState, opened: GateOpened) -> list[str]:
        """Return what a step asks, why, what can be answered, and what would run."""
        rows = [asked(opened), *[f"why: {text}" for text in (grounds(opened),) if text]]
        rows += [f"answer: {choice}" for choice in choices(opened)]
        rows += [text for text in (until(opened),) if text]
        keys = "a approves, r rejects" if opened.kind == "approval" else "d answers, r rejects"
        rows.append(keys)
        if not facts.has_secret_in_plan(self._steps.state):  # as the reports show it
            rows += ["", *plain(step.step.action.written()).split("\n")]
        return [f"  {row.expandtabs(8)}" for row in rows]

    def _help(self, _columns: int, room: int) -> list[str]:
        rows = ["", *HELP]
        return [f"  {text}" for text in rows if text or len(rows) <= room]

    def _last(self, ask: Line | None, columns: int) -> str:
        choice = self._choice
        if ask:
            cursor = "_" if self._look.unicode else ""
            return self._paint(sized(f"{ask.text} {ask.typed}{cursor}", columns), "1")
        if choice.message:
            return self._paint(choice.message, "1")
        about = [] if choice.tree.shape == "list" else [f"tree of {choice.tree.shape}"]
        about += [] if choice.kind == "all" else [f"shown: {choice.kind}"]
        about += [f"search: {line(choice.search)}"] if choice.search else []
        count = f"{len(self.names())} steps" if about else ""
        keys = "q quit  ? keys  enter log  v tree  f filter  / search  a approve  r reject  p pause  c cancel  t retry"
        return self._paint("  ".join(filter(None, [", ".join(about), count, keys])), "90")


def _without_log(step: StepState) -> str:
    """Return why a step has no lines of a log."""
    if step.step.kind == "group":
        return "a group: its instances have the logs"
    return "no output" if step.attempts else "it has not started"
