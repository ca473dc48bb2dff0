"""One file of another tool as a plan: read, converted, written, and held against the door of any plan."""

from __future__ import annotations

from planrun.app.converting.findings import Finding, Findings
from planrun.app.converting.writing import valid_text
from planrun.errors import InvalidInput, InvalidPlan
from planrun.model.record import Record
from planrun.source.document import read_tree
from planrun.source.file import read_source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from planrun.app.converting.draft import DraftPlan
    from planrun.source.node import Node

    Converter = Callable[[Node, Findings, Collection[str]], DraftPlan]

SOURCES = ("github", "taskfile", "dagu")


class Order(Record):
    """What is to be converted: a file, the tool that it is for ("": told by its content), and which parts of it."""

    file: str
    source: str = ""
    jobs: tuple[str, ...] = ()
    accepted: tuple[str, ...] = ()


class Converted(Record):
    """What came of it: the plan's text, "" where something is refused, and all findings in file order."""

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
    root, problems, complete = read_tree(data, order.file, "file")
    if root is None or problems or not complete:
        raise InvalidPlan(problems, sources={order.file: data})
    source = order.source or told_source(root)
    if not source:
        raise InvalidInput(
            f"{order.file} is no GitHub workflow, Taskfile or Dagu file that planrun can tell; name it by --from"
        )
    found = Findings(order.file, order.accepted)
    draft = _converter(source)(root, found, order.jobs)
    listed = found.listed  # in file order
    if any(finding.kind == "refused" and not finding.accepted for finding in listed) or not draft.steps:
        if not draft.steps and not any(finding.kind == "refused" for finding in listed):
            found.refuse("shape", "there is nothing in it that a step could be made of", root)
            listed = found.listed
        return Converted(source=source, findings=listed)
    text = valid_text(draft, found, root)
    return Converted(
        source=source,
        findings=found.listed,
        text=text,
        steps=len(draft.steps) + len(draft.cleanup) if text else 0,
    )


def told_source(root: Node) -> str:
    """Return the tool that a file is for, by its keys; "" when they do not tell."""
    if root.get("jobs") is not None:
        return "github"
    if root.get("tasks") is not None:
        return "taskfile"
    return "dagu" if root.get("steps") is not None else ""


def _converter(source: str) -> Converter:
    if source == "github":
        from planrun.app.converting.github.workflow import convert_workflow

        return convert_workflow
    if source == "taskfile":
        from planrun.app.converting.taskfile.taskfile import convert_taskfile

        return convert_taskfile
    from planrun.app.converting.dagu.dag import convert_dag

    return convert_dag
