"""When each step ran, as a Mermaid gantt chart on the page of a run on GitHub; too many get a table of the longest."""

from __future__ import annotations

from planrun.reports.document import Section, table
from planrun.reports.escape import line
from planrun.reports.facts import epoch, seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from planrun.model.state import RunState
    from planrun.reports.document import Part

    Bar = tuple[str, str, float, float]  # name, status, Unix times of its begin and its end

MAX_BARS = 100
MAX_CHARS = 40_000  # GitHub's Mermaid stops at 50,000
_LONGEST = 20
_LABEL = 60
_TAGS = {"completed": "done, ", "failed": "crit, ", "cancelled": "crit, ", "running": "active, "}
# What ends the name of a task, a line or a statement.
_REFUSED = dict.fromkeys(map(ord, ':;#,%{}<>`"\\\n\t'), " ")


def bars(state: RunState) -> list[Bar]:
    """Return the attempts of all steps that ran, in the order in which they started."""
    now = epoch(state.ended.at) if state.ended else 0.0
    found: list[Bar] = []
    for name, step in (
        *state.steps.items(),
        *[(f"undo {name}", step) for name, step in state.undoing.items()],
    ):
        for attempt in step.tries:
            begin = epoch(attempt.started.at)
            end = begin + attempt.ended.duration if attempt.ended else max(now, begin)
            again = f" (attempt {attempt.n})" if attempt.n > 1 else ""
            found.append((f"{name}{again}", attempt.status, begin, end))
    return sorted(found, key=lambda bar: bar[2])


def chart(rows: list[Bar]) -> str:
    """Return the chart, one statement a line, in milliseconds; empty for too much to draw."""
    if len(rows) > MAX_BARS:
        return ""
    lines = ["gantt", "  dateFormat x", "  axisFormat %H:%M:%S"]
    for number, (name, status, begin, end) in enumerate(rows, 1):
        first, last = round(begin * 1000), round(end * 1000)
        label = " ".join(line(name, _LABEL).translate(_REFUSED).split()) or f"step {number}"
        # A chart reads these words at the beginning of a line as its own.
        lines.append(f"  · {label} :{_TAGS.get(status, '')}b{number}, {first}, {max(last, first + 1)}")
    text = "\n".join(lines) + "\n"
    return text if len(text) <= MAX_CHARS else ""


def _sections(state: RunState) -> Iterator[Section]:
    found = bars(state)
    if len(found) < 2:
        return
    if drawn := chart(found):
        yield Section(heading="Timeline", code=drawn, language="mermaid", forms=("markdown",))
        return
    start = found[0][2]
    longest = sorted(found, key=lambda bar: bar[2] - bar[3])[:_LONGEST]
    rows = [
        (name, status, seconds(begin - start), seconds(end - begin)) for name, status, begin, end in longest
    ]
    yield table(
        "Timeline",
        (("Step", "step"), ("Status", "text"), ("Began after", "number"), ("Duration", "number")),
        rows,
        note=f"{len(found)} attempts are more than a chart can show; these are the {len(longest)} longest.",
        forms=("markdown",),
    )


TIMELINE: Part = {"sections": _sections}
