"""The result of one row of the goals: figures and targets, the medians behind them, how calm it was."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from benchmarks.measure import Contender


@dataclass(frozen=True)
class Figure:
    """One number that a goal limits from above; `unit` is a peer ("x C loop"), MiB, ms a step or bytes a second."""

    work: str
    value: float
    unit: str
    target: float | None

    @property
    def verdict(self) -> str:
        """`met`, `missed`, or a dash where nothing is promised."""
        if self.target is None:
            return "-"
        return "met" if self.value <= self.target else "missed"


@dataclass
class Row:
    """All that was measured for one goal."""

    goal: str
    figures: list[Figure] = field(default_factory=list)
    medians: list[dict[str, str | float]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    loads: list[tuple[float, float]] = field(default_factory=list)  # of each run: foreign share, wall seconds

    @property
    def foreign(self) -> float | None:
        """Return the share of the processors that other work used during the runs; None where unknown."""
        seconds = sum(wall for _, wall in self.loads)
        return sum(share * wall for share, wall in self.loads) / seconds if seconds else None

    def ratio(self, work: str, mine: Contender, other: Contender | None, target: float | None) -> None:
        """Add the ratio of two medians of wall time; a peer that is not on this machine is noted."""
        if other is None:
            self.notes.append(f"{work}: a peer is not installed, its figure is left out")
            return
        self.figures.append(Figure(work, mine.median().wall / other.median().wall, f"x {other.name}", target))

    def memory(self, work: str, mine: Contender, target: float) -> None:
        """Add the median of the largest process's resident set."""
        self.figures.append(Figure(work, mine.median().rss, "MiB", target))

    def each(self, work: str, mine: Contender, count: int, target: float) -> None:
        """Add the wall time of a run for each of its `count` steps, in milliseconds, start and reports included."""
        self.figures.append(Figure(work, 1000 * mine.median().wall / count, "ms a step", target))

    def keep(self, work: str, contenders: Iterable[Contender], base: Contender) -> None:
        """Keep the medians of everything that ran, as multiples of one of them."""
        unit = base.median()
        for contender in contenders:
            used = contender.median()
            self.loads += [(run.foreign, run.wall) for run in contender.runs if run.foreign is not None]
            cpu = used.cpu / unit.cpu if unit.cpu else 0.0
            walls = [run.wall for run in contender.runs]
            spread = (max(walls) - min(walls)) / used.wall
            self.medians.append(
                {"work": work, "program": contender.name, "wall": used.wall / unit.wall, "cpu": cpu,
                 "rss_mib": used.rss, "wall_s": used.wall, "spread": spread, "runs": len(contender.runs)}
            )  # fmt: skip


def as_json(rows: Sequence[Row]) -> str:
    """Every row as JSON."""
    return json.dumps([_plain(row) for row in rows], indent=2, ensure_ascii=False) + "\n"


def _plain(row: Row) -> dict[str, object]:
    figures = [{**asdict(figure), "verdict": figure.verdict} for figure in row.figures]
    return {**asdict(row), "figures": figures, "foreign": row.foreign}


def _table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    widths = [max(len(line[column]) for line in (heads, *lines)) for column in range(len(heads))]
    ruled = [heads, ["-" * width for width in widths], *lines]
    cells = [[cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in ruled]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def goals_table(rows: Sequence[Row], *, judged: bool) -> str:
    """One line a figure: goal, work, figure, target, verdict; not judged at other sizes than the goals'."""
    lines = []
    for row in rows:
        for figure in row.figures:
            target = f"<= {figure.target:g}" if figure.target is not None else ""
            verdict = figure.verdict if judged else "-"
            lines.append([row.goal, figure.work, f"{figure.value:.2f} {figure.unit}", target, verdict])
    return _table(["goal", "work", "figure", "target", "verdict"], lines)


def medians_table(row: Row) -> str:
    """Everything that ran for a row, as multiples of its first program of the same work."""
    lines = [[*_medians_line(entry)] for entry in row.medians]
    return _table(["work", "program", "wall", "cpu", "RSS MiB", "spread", "runs"], lines)


def _medians_line(entry: Mapping[str, str | float]) -> list[str]:
    return [
        str(entry["work"]), str(entry["program"]), f"{entry['wall']:.2f}x", f"{entry['cpu']:.2f}x",
        f"{entry['rss_mib']:.1f}", f"{float(entry['spread']):.0%}", str(entry["runs"]),
    ]  # fmt: skip


def missed(rows: Sequence[Row]) -> bool:
    """Whether any promise was not kept."""
    return any(figure.verdict == "missed" for row in rows for figure in row.figures)
