"""One file of another tool as a plan: read, converted, written with all findings in its head, and validated."""

from __future__ import annotations

from fnmatch import fnmatchcase

from planrun import __version__
from planrun.convert.dagu.dag import convert_dag, first_document
from planrun.convert.draft import DraftPlan
from planrun.convert.github.workflow import convert_workflow
from planrun.convert.gitlab.pipeline import convert_pipeline, read_pipeline
from planrun.convert.reader import EVERYTHING, Finding, Findings, UntranslatableError
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

    from planrun.convert.draft import DraftStep

MAX_TOLD = 200  # findings in the head of a plan; the verb prints all
_TOOLS = "GitHub Actions, GitLab CI, go-task, Dagu, make and just"
_LIMITS = frozenset(("E003", "E012", "E021", "E241", "E280"))  # codes of plans that are too large
_BY_KEY = {"jobs": "github", "tasks": "taskfile", "steps": "dagu"}  # what identifies a file's tool
_OF_TREES = {
    "github": convert_workflow, "gitlab": convert_pipeline, "taskfile": convert_taskfile, "dagu": convert_dag,
}  # fmt: skip
_OF_ALL = (  # what a plan does otherwise than these tools
    ("timeout", "a step has 24 hours; {} lets a command run as long as it takes"),
    ("environment", "variables that look like credentials are not inherited; see `inherit_env`"),
    ("folder", "commands run where planrun is started: the folder of the file"),
)
_NAMES = {"taskfile": "go-task", "dagu": "Dagu", "make": "make", "just": "just"}
_OF_LINES = {"make": convert_makefile, "just": convert_justfile}


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
        tool = f"no converter for {foreign.tool} yet"
        raise InvalidInput(f"{order.file}: {tool}; planrun converts files of {_TOOLS}")
    source = order.source or (foreign.source if foreign is not None else "")
    found = Findings(order.file, order.accepted)
    if source in _OF_LINES:
        lines, problems = decode(data, order.file)
        if lines is None:
            raise InvalidPlan(problems, sources={order.file: data})
        root = Node(SCALAR, "", 1, 1)
    else:
        root = _tree(order, source, data, found)
        source = source or next((_BY_KEY[key] for key in _BY_KEY if root.get(key) is not None), "")
        if not source:
            raise InvalidInput(f"{order.file} looks like no file of {_TOOLS}; name its tool by --from")
        lines = ""
    for code, message in _OF_ALL if source in _NAMES else ():
        found.differs(code, message.format(_NAMES[source]), root)
    try:
        if source in _OF_LINES:
            draft = _OF_LINES[source](lines, found, order.jobs)
        else:
            draft = _OF_TREES[source](root, found, order.jobs)
    except (RecursionError, UntranslatableError) as why:
        found.refuse("too-large", getattr(why, "message", "the file is nested too deeply"), root)
        draft = DraftPlan()
    text = _text(draft, found, root)
    names = found.acceptable
    for wanted in order.accepted:
        if wanted not in EVERYTHING and not any(fnmatchcase(name, wanted) for name in names):
            told = f"refused are {', '.join(names)}" if names else "nothing is refused"
            hint = did_you_mean(wanted, names) or told
            raise InvalidInput(
                f"--accept {wanted}: nothing is refused under this name in {order.file}; {hint}"
            )
    count = len(draft.steps) + len(draft.cleanup) if text else 0
    return Converted(source=source, findings=found.listed, text=text, steps=count)


def _tree(order: Order, source: str, data: bytes, found: Findings) -> Node:
    if source == "gitlab":
        root, problems, complete = read_pipeline(data, found)
    else:
        data = first_document(data, found) if source == "dagu" else data
        root, problems, complete = read_tree(data, order.file, "file")
    if root is None or problems or not complete:
        raise InvalidPlan(problems, sources={order.file: data})
    if not order.source and is_plan(root):
        raise InvalidInput(f"{order.file} is a plan of planrun already")
    return root


def _text(draft: DraftPlan, found: Findings, root: Node) -> str:
    """Return the plan as text that `validate` accepts; "" where something is refused and not accepted.

    A step that the loader rejects is left without an action.
    """
    if not draft.steps and not any(finding.kind == "refused" for finding in found.listed):
        found.refuse("shape", "the file has no command that a step could run", root)
    steps = [*draft.steps, *draft.cleanup]
    given_up: set[str] = set()
    while steps and not found.is_refused:
        text = text_of(draft, found.file, found.listed)
        wrong = [each for each in check_bytes(text.encode(), "plan.yml").problems if each.severity == "error"]
        if not wrong:
            return text
        rows = text.split("\n")
        for problem in wrong:
            step = _step_at(rows, problem.line, steps)
            if step is None or step.id in given_up:
                code = "too-large" if problem.code in _LIMITS else "shape"
                found.refuse(code, f"as a plan: {problem.text}", root)
                return ""
        for problem in wrong:
            step = _step_at(rows, problem.line, steps)
            if step is not None and step.id not in given_up:
                given_up.add(step.id)
                if step.condition:
                    step.notes.append(f"todo: its condition was: {step.condition}")
                    step.condition = ""
                message = f"the step {step.id} as a plan's: {problem.text}"
                step.leave(found, "not-valid", message, step.node or root)
                for each in steps:  # no instance of another step has one of the same name there any more
                    for other, kind in each.edges.items():
                        if step.id in (each.id, other) and isinstance(kind, dict):
                            each.edges[other] = kind["instance"]
    return ""


def text_of(draft: DraftPlan, source: str, findings: Sequence[Finding]) -> str:
    """Return the plan as text; `source` is the file it was converted from."""
    keys: dict[str, Any] = {"version": 1, **draft.keys}
    if draft.params:
        keys["params"] = draft.params
    if draft.secrets:
        keys["secrets"] = [
            {"name": name, "required": False} if name in draft.optional else name for name in draft.secrets
        ]
    steps, cleanup = (
        [entry_text(step.as_keys(), 2, step.notes) for step in each] for each in (draft.steps, draft.cleanup)
    )
    text = plan_text(list(_heading(source, findings)), keys, steps)
    return text + "\nfinally:\n" + "\n".join(cleanup) if cleanup else text


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


def _step_at(rows: Sequence[str], line: int, steps: Sequence[DraftStep]) -> DraftStep | None:
    """Return the step in whose text a line stands; None above all steps."""
    start = rows.index("steps:") if "steps:" in rows else len(rows)
    count = sum(1 for row in rows[start:line] if row.startswith("  - id: "))
    return steps[count - 1] if 0 < count <= len(steps) else None
