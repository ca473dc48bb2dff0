"""The graph of a plan or of a run, drawn for Mermaid, for Graphviz, or as a tree of text."""

from __future__ import annotations

from planrun.model import graph
from planrun.model.groups import drawn
from planrun.reports.document import Section
from planrun.reports.escape import line
from planrun.reports.facts import ICONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from planrun.model.plan import Plan, Step
    from planrun.model.state import RunState
    from planrun.reports.document import Part

WIDEST = 60  # characters before a step in a tree of text
_GOES_ON = {"": "", "├─ ": "│  ", "└─ ": "   "}


def mermaid(plan: Plan) -> str:
    """Return the graph as a Mermaid flowchart; `finally` steps have their own box."""
    numbers = {step.id: f"s{number}" for number, step in enumerate(plan.steps, 1)}
    rows = ["flowchart LR"]
    rows += [f'  {numbers[step.id]}["{label(step.label)}"]' for step in plan.main()]
    if plan.cleanup():
        rows.append("  subgraph finally")
        rows += [f'    {numbers[step.id]}["{label(step.label)}"]' for step in plan.cleanup()]
        rows.append("  end")
    for before, after, kind in _edges(plan):
        arrow = "-->" if kind == "ok" else f"-. {kind} .->"
        rows.append(f"  {numbers[before]} {arrow} {numbers[after]}")
    return "\n".join(rows)


def dot(plan: Plan) -> str:
    """Return the graph in Graphviz' language."""
    rows = [f"digraph {_quoted(plan.name)} {{", "  rankdir=LR;", "  node [shape=box, style=rounded];"]
    rows += [f"  {_quoted(step.id)} [label={_quoted(step.label)}];" for step in plan.main()]
    if plan.cleanup():
        rows += ["  subgraph cluster_finally {", '    label="finally";']
        rows += [f"    {_quoted(step.id)} [label={_quoted(step.label)}];" for step in plan.cleanup()]
        rows.append("  }")
    for before, after, kind in _edges(plan):
        style = "" if kind == "ok" else f' [label="{kind}", style=dashed]'
        rows.append(f"  {_quoted(before)} -> {_quoted(after)}{style};")
    return "\n".join([*rows, "}"])


def text(plan: Plan) -> str:
    """Return the graph as a tree: below each step those that wait for it.

    A step with several parents stands below each of them; what follows it is
    shown once, and `…` stands where it is left out.
    """
    rows = list(_tree(plan.main()))
    if plan.cleanup():
        rows += ["", "finally:", *_tree(plan.cleanup())]
    return "\n".join(rows)


def _tree(steps: tuple[Step, ...]) -> Iterator[str]:
    kinds = {(edge.on, step.id): edge.kind for step in steps for edge in step.edges}
    before = graph.waits(steps)
    after = graph.reverse(before)
    labels = {step.id: f"{step.id}: {line(step.title)}" if step.title else step.id for step in steps}
    opened: set[str] = set()
    roots = [name for name in before if not before[name]]
    for root in roots:  # grows: what would stand too far to the right begins again at the left
        if root in opened:
            continue
        stack = [(root, "", "", "")]  # step, parent, what its line begins with; no recursion: chains are long
        while stack:
            name, parent, lead, branch = stack.pop()
            kind = kinds.get((parent, name), "ok")
            cut = bool(after[name]) and (name in opened or len(lead) > WIDEST)
            yield (
                lead
                + branch
                + labels[name]
                + ("" if kind in ("ok", "open") else f" ({kind})")
                + (" …" if cut else "")
            )
            if cut:
                roots += [name] if name not in opened else []
                continue
            opened.add(name)
            below = lead + _GOES_ON[branch]
            last = len(after[name]) - 1
            for place, child in reversed(list(enumerate(after[name]))):
                stack.append((child, name, below, "└─ " if place == last else "├─ "))


def _edges(plan: Plan) -> Iterator[tuple[str, str, str]]:
    known = {step.id for step in plan.steps}
    return (edge for edge in drawn(plan.steps) if edge[0] in known)


def _quoted(name: str) -> str:
    """Return a string of Graphviz; only the quote and the backslash mean something in one."""
    return '"' + line(name).replace("\\", "\\\\").replace('"', '\\"') + '"'


# GitHub's Mermaid stops at 50,000 characters and 500 edges; people stop earlier.
MAX_NODES = 100
MAX_EDGES = 400
MAX_CHARS = 40_000
_LABEL_CHARS = 60
_SAFE = frozenset(" .,-+=/()")
_STYLES = {
    "completed": "fill:#dafbe1,stroke:#1a7f37,color:#1f2328",
    "failed": "fill:#ffebe9,stroke:#cf222e,color:#1f2328",
    "blocked": "fill:#fff8c5,stroke:#9a6700,color:#1f2328",
    "cancelled": "fill:#fff8c5,stroke:#9a6700,color:#1f2328",
    "skipped": "fill:#f6f8fa,stroke:#818b98,color:#59636e",
}


def flowchart(state: RunState) -> str:
    """Return the flowchart, one statement a line; empty when there are no edges or too much to draw."""
    if len(state.steps) > MAX_NODES:
        return ""
    edges = drawn(state.plan.steps)
    if not edges or len(edges) > MAX_EDGES:
        return ""
    numbers = {name: f"s{number}" for number, name in enumerate(state.steps, 1)}
    rows = ["flowchart LR"]
    for name, step in state.steps.items():
        style = f":::{step.status}" if step.status in _STYLES else ""
        rows.append(f'  {numbers[name]}["{ICONS.get(step.status, "")} {label(step.step.label)}"]{style}')
    for before, after, kind in edges:
        arrow = "-->" if kind == "ok" else f"-. {kind} .->"
        rows.append(f"  {numbers[before]} {arrow} {numbers[after]}")
    used = {step.status for step in state.steps.values()}
    rows += [f"  classDef {status} {style}" for status, style in _STYLES.items() if status in used]
    text = "\n".join(rows) + "\n"
    return text if len(text) <= MAX_CHARS else ""


def label(text: str) -> str:
    """Return text for a quoted label: letters, digits and little else as they are, the rest as `#code;`."""
    shown = line(text, _LABEL_CHARS)
    return "".join([char if char.isalnum() or char in _SAFE else f"#{ord(char)};" for char in shown])


def _sections(state: RunState) -> Iterator[Section]:
    if chart := flowchart(state):
        yield Section(heading="Graph", code=chart, language="mermaid", forms=("markdown",))
    elif edges := len(drawn(state.plan.steps)):
        yield Section(
            heading="Graph",
            text=f"{len(state.steps)} steps and {edges} edges are more than a diagram can show. The table of details "
            "has what each step depends on, `planrun show --graph text` the tree.",
            forms=("markdown",),
        )


GRAPH: Part = {"sections": _sections}
