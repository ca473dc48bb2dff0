"""The result of one row of the goals: figures and targets, the medians behind them, how calm it was."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.calm import CALM
from benchmarks.measure import Contender, Usage


@dataclass(frozen=True)
class Figure:
    """One number that a goal limits from above; `unit` is a peer ("x C loop"), MiB, or ms a step.

    `least` and `most` are the same number of the single rounds; None where there is one round.
    """

    work: str
    value: float
    unit: str
    target: float | None
    least: float | None = None
    most: float | None = None

    @property
    def verdict(self) -> str:
        """`met`, `missed`, or empty where nothing is promised."""
        if self.target is None:
            return ""
        return "met" if self.value <= self.target else "missed"

    @property
    def shown(self) -> str:
        """The number, what it is of, and its range over the rounds."""
        span = "" if self.least is None else f" ({_number(self.least)} to {_number(self.most)})"
        return f"{_number(self.value)} {self.unit}{span}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"


@dataclass
class Row:
    """All that was measured for one goal; `show` is called with each figure as soon as it is known."""

    goal: str
    figures: list[Figure] = field(default_factory=list)
    medians: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    loads: list[tuple[float, float]] = field(default_factory=list)  # of each run: foreign share, wall seconds
    show: Callable[[str, Figure], None] | None = None

    @property
    def foreign(self) -> float | None:
        """Return the share of the processors that other work used during the runs; None where unknown."""
        seconds = sum(wall for _, wall in self.loads)
        return sum(share * wall for share, wall in self.loads) / seconds if seconds else None

    def add(self, figure: Figure) -> None:
        """Add a figure, and show it."""
        self.figures.append(figure)
        if self.show:
            self.show(self.goal, figure)

    def compute(
        self, work: str, unit: str, target: float | None, of: Callable[..., float], *contenders: Contender
    ) -> None:
        """Add a figure computed from the medians of these contenders, and its range over the rounds."""
        value = of(*[contender.median() for contender in contenders])
        rounds = [of(*usages) for usages in zip(*[contender.runs for contender in contenders], strict=True)]
        self.add(Figure(work, value, unit, target, min(rounds), max(rounds)))

    def ratio(self, work: str, mine: Contender, other: Contender | None, target: float | None) -> None:
        """Add the ratio of two medians of wall time; a peer that is not on this machine is noted."""
        if other is None:
            self.notes.append(f"{work}: a peer is not installed, its figure is left out")
            return
        self.compute(work, f"x {other.name}", target, lambda a, b: a.wall / b.wall, mine, other)

    def memory(self, work: str, mine: Contender, target: float) -> None:
        """Add the median of the largest process's resident set."""
        self.compute(work, "MiB", target, lambda used: used.rss, mine)

    def each(self, work: str, mine: Contender, count: int, target: float) -> None:
        """Add the wall time of a run for each of its `count` steps, in milliseconds, start and reports included."""
        self.compute(work, "ms a step", target, lambda used: 1000 * used.wall / count, mine)

    def own(self, work: str, mine: Contender, one: Contender, more: int, target: float | None) -> None:
        """Add the processor time of the process itself, without children, that each of `more` steps adds to one."""
        if not mine.median().own:
            self.notes.append(f"{work}: this system does not report the processor time of one process")
            return

        def cost(many: Usage, single: Usage) -> float:
            return 1000 * (many.own - single.own) / more

        self.compute(work, "ms of own processor time a step", target, cost, mine, one)

    def keep(self, work: str, contenders: Iterable[Contender], base: Contender) -> None:
        """Keep the medians of everything that ran, as multiples of one of them."""
        unit = base.median()
        for contender in contenders:
            used = contender.median()
            self.loads += [(run.foreign, run.wall) for run in contender.runs if run.foreign is not None]
            cpu = used.cpu / unit.cpu if unit.cpu else 0.0
            ratios = [run.wall / other.wall for run, other in zip(contender.runs, base.runs, strict=False)]
            self.medians.append(
                {"work": work, "program": contender.name, "wall": used.wall / unit.wall, "least": min(ratios),
                 "most": max(ratios), "cpu": cpu, "rss_mib": used.rss, "wall_s": used.wall, "own_s": used.own,
                 "runs": len(contender.runs)}
            )  # fmt: skip


def as_json(rows: Sequence[Row]) -> str:
    """Every row as JSON."""
    return json.dumps([_plain(row) for row in rows], indent=2, ensure_ascii=False) + "\n"


def from_json(text: str) -> list[Row]:
    """Read what `as_json` wrote."""
    fields = ("work", "value", "unit", "target", "least", "most")
    return [
        Row(
            row["goal"],
            [Figure(**{name: figure[name] for name in fields}) for figure in row["figures"]],
            row["medians"],
            row["notes"],
            [(share, wall) for share, wall in row["loads"]],
        )
        for row in json.loads(text)
    ]


def _plain(row: Row) -> dict[str, object]:
    figures = [{**asdict(figure), "verdict": figure.verdict} for figure in row.figures]
    return {
        "goal": row.goal, "figures": figures, "medians": row.medians, "notes": row.notes, "loads": row.loads,
        "foreign": row.foreign,
    }  # fmt: skip


def _table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    widths = [max(len(line[column]) for line in (heads, *lines)) for column in range(len(heads))]
    ruled = [heads, ["-" * width for width in widths], *lines]
    cells = [[cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in ruled]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def line(goal: str, figure: Figure, *, judged: bool) -> str:
    """One figure as a line of text, for a table that grows."""
    target = f"<= {round(figure.target, 3):g}" if figure.target is not None else ""
    return (
        f"{goal:4} {figure.work:44} {figure.shown:58} {target:8} {figure.verdict if judged else ''}".rstrip()
    )


def goals_table(rows: Sequence[Row], *, judged: bool) -> str:
    """One line a figure: goal, work, figure, target, verdict; not judged at other sizes than the goals'."""
    lines = []
    for row in rows:
        for figure in row.figures:
            target = f"≤ {round(figure.target, 3):g}" if figure.target is not None else ""
            lines.append([row.goal, figure.work, figure.shown, target, figure.verdict if judged else ""])
    return _table(["Goal", "Work", "Figure", "Target", "Verdict"], lines)


def medians_table(row: Row) -> str:
    """Everything that ran for a row, as multiples of its first program of the same work."""
    lines = [[*_medians_line(entry)] for entry in row.medians]
    return _table(["Work", "Program", "Wall time", "Processor", "RSS, MiB", "Runs"], lines)


def _medians_line(entry: Mapping[str, Any]) -> list[str]:
    return [
        entry["work"], entry["program"], f"{entry['wall']:.2f} ({entry['least']:.2f} to {entry['most']:.2f})",
        f"{entry['cpu']:.2f}", f"{entry['rss_mib']:.1f}", str(entry["runs"]),
    ]  # fmt: skip


def write_into(path: Path, mark: str, text: str) -> None:
    """Write a text to a file; between its comments `mark` and `/mark` where it has them."""
    old = path.read_text("utf-8") if path.exists() else ""
    begin, end = f"<!-- {mark} -->\n", f"<!-- /{mark} -->\n"
    if begin in old and end in old:
        text = f"{old.split(begin, 1)[0]}{begin}\n{text}\n{end}{old.split(end, 1)[1]}"
    path.write_text(text, "utf-8")


def noise(row: Row) -> str:
    """How much of the machine others used meanwhile."""
    others = "unknown" if row.foreign is None else f"{row.foreign:.0%}"
    noisy = " (noisy: measure again)" if (row.foreign or 0) > CALM else ""
    return f"{row.goal}: other work used {others} of the processors{noisy}"


def missed(rows: Sequence[Row]) -> list[str]:
    """The lines of all figures that miss their targets."""
    return [
        line(row.goal, figure, judged=True)
        for row in rows
        for figure in row.figures
        if figure.verdict == "missed"
    ]
