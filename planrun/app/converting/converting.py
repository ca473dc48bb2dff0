"""One file of another tool as a plan: read, converted, written, and held against the door of any plan."""

from __future__ import annotations

from fnmatch import fnmatchcase

from planrun.app.converting.findings import EVERYTHING, Finding, Findings
from planrun.app.converting.foreign import foreign_keys, foreign_name
from planrun.app.converting.writing import valid_text
from planrun.errors import InvalidInput, InvalidPlan
from planrun.model.record import Record
from planrun.source.document import read_tree
from planrun.source.file import read_source
from planrun.source.problems import did_you_mean

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
    foreign = "" if order.source else foreign_name(order.file)
    if foreign:
        raise InvalidInput(_no_converter(order.file, foreign))
    data = read_source(order.file, "file")
    root, problems, complete = read_tree(data, order.file, "file")
    if root is None or problems or not complete:
        raise InvalidPlan(problems, sources={order.file: data})
    source = order.source or told_source(root)
    if not order.source and root.get("version") is not None and root.get("steps") is not None:
        raise InvalidInput(f"{order.file} is a plan of planrun already")
    foreign = "" if order.source else foreign_keys(root)
    if foreign:
        raise InvalidInput(_no_converter(order.file, foreign))
    if not source:
        raise InvalidInput(
            f"{order.file} is no GitHub workflow, Taskfile or Dagu file that planrun can tell; name it by --from"
        )
    found = Findings(order.file, order.accepted)
    draft = _converter(source)(root, found, order.jobs)
    if not draft.steps and not any(finding.kind == "refused" for finding in found.listed):
        found.refuse("shape", "there is nothing in it that a step could be made of", root)
    text = "" if found.is_refused or not draft.steps else valid_text(draft, found, root)
    _check_accepted(order, found)
    return Converted(
        source=source,
        findings=found.listed,
        text=text,
        steps=len(draft.steps) + len(draft.cleanup) if text else 0,
    )


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
    return f"{file}: no converter for {tool} yet; planrun converts GitHub workflows, Taskfiles and Dagu files"


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
