"""A draft as plan text, with all findings in a comment at its head, and validated like any plan.

One file of another tool as a plan: read, converted, written, and validated like any plan.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from planrun import __version__
from planrun.convert.dagu.dag import convert_dag
from planrun.convert.dagu.subdags import documents, names_of
from planrun.convert.github.workflow import convert_workflow
from planrun.convert.gitlab.pipeline import convert_pipeline, read_pipeline
from planrun.convert.reader import EVERYTHING, Finding, Findings
from planrun.convert.recipes.justfile import convert_justfile
from planrun.convert.recipes.makefile import convert_makefile
from planrun.convert.taskfile.taskfile import convert_taskfile
from planrun.errors import InvalidInput, InvalidPlan
from planrun.llm.plantext import entry_text, plan_text
from planrun.model.record import Record
from planrun.plan.foreign import foreign_file, is_plan
from planrun.plan.load import check_bytes
from planrun.plan.problems import did_you_mean
from planrun.plan.yaml.document import read_tree
from planrun.plan.yaml.file import read_source
from planrun.plan.yaml.node import SCALAR, Node
from planrun.plan.yaml.text import decode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from planrun.convert.draft import DraftPlan, DraftStep
    from planrun.convert.reader import Finding, Findings
    from planrun.plan.problems import Problem
    from planrun.plan.yaml.node import Node

MAX_TOLD = 200  # findings in the head of a plan; the verb prints all
_LIMITS = frozenset(("E003", "E012", "E021", "E241", "E280"))


def text_of(draft: DraftPlan, source: str, findings: Sequence[Finding]) -> str:
    """Return the plan as text; `source` is the file it was converted from."""
    keys: dict[str, Any] = {"version": 1, **draft.keys}
    if draft.params:
        keys["params"] = draft.params
    if draft.secrets:
        keys["secrets"] = [
            {"name": name, "required": False} if name in draft.optional else name for name in draft.secrets
        ]
    steps = [f"{entry_text(step.as_keys(), 2, step.notes)}" for step in draft.steps]
    text = plan_text(list(_heading(source, findings)), keys, steps)
    if draft.cleanup:
        cleanup = [entry_text(step.as_keys(), 2, step.notes) for step in draft.cleanup]
        text += "\nfinally:\n" + "\n".join(cleanup)
    return text


def _heading(source: str, findings: Sequence[Finding]) -> Iterator[str]:
    name = source.rpartition("/")[2]
    yield f"Converted from {name} by planrun {__version__}. Read it before you run it."
    if not findings:
        yield "No difference in meaning was found."
        return
    yield "Differences in meaning, what is left to do, and what was left out:"
    for finding in findings[:MAX_TOLD]:
        yield f"  {name}:{finding.line}:{finding.col}: {finding.text}"
    if len(findings) > MAX_TOLD:
        yield f"  and {len(findings) - MAX_TOLD} more"


def valid_text(draft: DraftPlan, found: Findings, root: Node) -> str:  # noqa: C901
    """Return the plan as text that `validate` accepts; "" where something is refused and not accepted.

    A step that the loader rejects is a finding, and without an action when that is accepted.
    """
    steps = [*draft.steps, *draft.cleanup]
    given_up: set[str] = set()
    while True:
        text = text_of(draft, found.file, found.listed)
        wrong = [problem for problem in _problems(text) if problem.severity == "error"]
        if not wrong:
            return text
        rows = text.split("\n")
        for problem in wrong:
            step = _step_at(rows, problem.line, steps)
            if step is None or step.id in given_up:
                found.refuse(
                    "too-large" if problem.code in _LIMITS else "shape", f"as a plan: {problem.text}", root
                )
                return ""
        for step, message in _of_steps(rows, wrong, steps):
            given_up.add(step.id)
            if step.condition:
                step.notes.append(f"todo: its condition was: {step.condition}")
                step.condition = ""
            step.leave(found, "not-valid", f"the step {step.id} as a plan's: {message}", step.node or root)
            for each in steps:  # no instance of another step has one of the same name there any more
                for other, kind in each.edges.items():
                    if step.id in (each.id, other) and isinstance(kind, dict):
                        each.edges[other] = kind["instance"]
        if found.is_refused:
            return ""


def _of_steps(
    rows: Sequence[str], problems: Sequence[Problem], steps: Sequence[DraftStep]
) -> Iterator[tuple[DraftStep, str]]:
    """Yield each step that has a problem, with the text of its first one."""
    seen: set[str] = set()
    for problem in problems:
        step = _step_at(rows, problem.line, steps)
        if step is not None and step.id not in seen:
            seen.add(step.id)
            yield step, problem.text


def _step_at(rows: Sequence[str], line: int, steps: Sequence[DraftStep]) -> DraftStep | None:
    """Return the step in whose text a line stands; None above all steps."""
    start = rows.index("steps:") if "steps:" in rows else len(rows)
    count = sum(1 for row in rows[start:line] if row.startswith("  - id: "))
    return steps[count - 1] if 0 < count <= len(steps) else None


def _problems(text: str) -> Sequence[Problem]:
    return check_bytes(text.encode(), "plan.yml").problems


if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from planrun.convert.draft import DraftPlan
    from planrun.plan.yaml.node import Node

    Converter = Callable[[Node, Findings, Collection[str]], DraftPlan]

SOURCES = ("github", "gitlab", "taskfile", "dagu", "make", "just")
_TOOLS = "GitHub Actions, GitLab CI, go-task, Dagu, make and just"


class Order(Record):
    """What to convert: a file, the tool that it is for ("": detected from its content), and which of its parts."""

    file: str
    source: str = ""
    jobs: tuple[str, ...] = ()
    accepted: tuple[str, ...] = ()


class Converted(Record):
    """The result: the plan's text, "" where something is refused, and all findings in file order."""

    source: str
    findings: tuple[Finding, ...] = ()
    text: str = ""
    steps: int = 0

    @property
    def is_refused(self) -> bool:
        """Whether something cannot be kept and was not accepted."""
        return not self.text


def convert(order: Order) -> Converted:
    """Convert a file; raises InvalidPlan for one that is no YAML, InvalidInput for one of no known tool."""
    data = read_source(order.file, "file")
    foreign = None if order.source else foreign_file(data, order.file)
    if foreign is not None and not foreign.source:
        raise InvalidInput(_no_converter(order.file, foreign.tool))
    source = order.source or (foreign.source if foreign else "")
    if source in ("make", "just"):
        return _of_lines(order, source, data)
    if source == "dagu" and len(parts := documents(data)) > 1:
        return _of_documents(order, parts)
    found = Findings(order.file, order.accepted)
    if "gitlab" in (order.source, foreign.source if foreign else ""):
        root, problems, complete = read_pipeline(data, found)
    else:
        root, problems, complete = read_tree(data, order.file, "file")
    if root is None or problems or not complete:
        raise InvalidPlan(problems, sources={order.file: data})
    if not order.source and is_plan(root):
        raise InvalidInput(f"{order.file} is a plan of planrun already")
    source = order.source or (foreign.source if foreign else source_of(root))
    if not source:
        raise InvalidInput(f"{order.file} looks like no file of {_TOOLS}; name its tool by --from")
    draft = _converter(source)(root, found, order.jobs)
    return _converted(order, source, draft, found, root)


def _converted(order: Order, source: str, draft: DraftPlan, found: Findings, root: Node) -> Converted:
    """Return a draft as the text of a plan, with all findings."""
    text = _text(draft, found, root)
    _check_accepted(order, found)
    return Converted(
        source=source,
        findings=found.listed,
        text=text,
        steps=len(draft.steps) + len(draft.cleanup) if text else 0,
    )


def _text(draft: DraftPlan, found: Findings, root: Node) -> str:
    """Return the text of a plan; "" where something is refused."""
    if not draft.steps and not any(finding.kind == "refused" for finding in found.listed):
        found.refuse("shape", "the file has no command that a step could run", root)
    return "" if found.is_refused or not draft.steps else valid_text(draft, found, root)


def _of_documents(order: Order, parts: Sequence[bytes]) -> Converted:
    """Convert a Dagu file of several documents: the first, which runs the others."""
    roots = []
    for part in parts:
        root, problems, complete = read_tree(part, order.file, "file")
        if root is None or problems or not complete:
            raise InvalidPlan(problems, sources={order.file: part})
        roots.append(root)
    found = Findings(order.file, order.accepted)
    draft = convert_dag(roots[0], found, order.jobs, names_of(roots))
    return _converted(order, "dagu", draft, found, roots[0])


def _of_lines(order: Order, source: str, data: bytes) -> Converted:
    """Convert a file that is no YAML."""
    text, problems = decode(data, order.file)
    if text is None:
        raise InvalidPlan(problems, sources={order.file: data})
    found = Findings(order.file, order.accepted)
    draft = (convert_makefile if source == "make" else convert_justfile)(text, found, order.jobs)
    return _converted(order, source, draft, found, Node(SCALAR, "", 1, 1))


def _check_accepted(order: Order, found: Findings) -> None:
    """Raise InvalidInput for a name to accept under which nothing is refused."""
    names = found.acceptable
    for wanted in order.accepted:
        if wanted in EVERYTHING or any(fnmatchcase(name, wanted) for name in names):
            continue
        hint = did_you_mean(wanted, names) or (
            f"refused are {', '.join(names)}" if names else "nothing is refused"
        )
        raise InvalidInput(f"--accept {wanted}: nothing is refused under this name in {order.file}; {hint}")


def _no_converter(file: str, tool: str) -> str:
    return f"{file}: no converter for {tool} yet; planrun converts files of {_TOOLS}"


def source_of(root: Node) -> str:
    """Return the tool that a file is for, by its keys; "" when they do not identify one."""
    if root.get("jobs") is not None:
        return "github"
    if root.get("tasks") is not None:
        return "taskfile"
    return "dagu" if root.get("steps") is not None else ""


def _converter(source: str) -> Converter:
    if source == "github":
        return convert_workflow
    if source == "taskfile":
        return convert_taskfile
    if source == "gitlab":
        return convert_pipeline
    return convert_dag
