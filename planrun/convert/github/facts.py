"""What is known of a workflow and its jobs while they are converted."""

from __future__ import annotations

import re

from planrun.convert.draft import DraftPlan, DraftStep, step_path
from planrun.convert.expressions import Spelled, const
from planrun.convert.reader import Reader, UntranslatableError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from planrun.convert.reader import Findings
    from planrun.plan.yaml.node import Node

    Row = dict[str, Any]


class Matrix:
    """The matrix of one job: the keys for the plan, and what its names are there.

    `kinds`: the type of each name; `always`: the names that every instance has. `instances`: the values of each, empty
    where they are known only when it runs.
    """

    def __init__(self) -> None:
        self.keys: dict[str, Any] = {}
        self.kinds: dict[str, str] = {}
        self.always: set[str] = set()
        self.instances: list[Row] = []

    def read(self, names: tuple[str, ...]) -> Spelled:
        """Return what `matrix.a` or `matrix.a.b` reads."""
        name = "_".join(axis_name(each) for each in names)
        if name not in self.kinds and self.instances:
            return const("")  # nothing, as GitHub reads it
        if name not in self.kinds:
            raise UntranslatableError("matrix", f"`matrix.{'.'.join(names)}` is not in the matrix")
        kind = self.kinds[name]
        if name in self.always:
            return Spelled(text=f"matrix.{name}", kind=kind)
        otherwise = {"boolean": "false", "number": "0"}.get(kind, "''")
        return Spelled(text=f"default(matrix.{name}, {otherwise})", kind="string" if kind == "any" else kind)


def axis_name(name: str) -> str:
    """Return the name that an axis of a matrix, or a parameter, has in the plan."""
    return re.sub(r"[^A-Za-z0-9_]", "_", name)


class Workflow:
    """One file: the plan it becomes, what was found, and what all its jobs share."""

    def __init__(self, root: Node, found: Findings) -> None:
        self.root = root
        self.found = found
        self.reader = Reader(found)
        self.plan = DraftPlan()
        self.env: Mapping[str, Node] = {}
        self.inputs: dict[str, str] = {}  # name of a parameter by name of an input, in small letters
        self.secret_env: dict[str, Node] = {}  # variables of all steps that hold secrets
        self.jobs: dict[str, Job] = {}
        self.shell = ""
        self.usual_shell = ""  # the words that stand in `defaults` of the plan
        self.folder: Node | None = None
        self.convert: Callable[[Workflow, Job], None]  # converts a job after those that it needs
        self.depth = 0  # how many workflows called each other up to this one
        self.given: dict[str, Spelled] = {}  # values of inputs that a caller gives
        self.secret_names: dict[str, str] = {}  # names of the caller's secrets, by those here
        self.machine = "Linux"  # the system that the plan is for
        self.entry: list[Job] = []  # for what jobs wait that need none of their own workflow

    @property
    def known(self) -> dict[tuple[str, ...], Any]:
        """The values of inputs that a caller gives and that are known here, by their paths."""
        return {("inputs", name): each.value for name, each in self.given.items() if each.is_known}

    def param(self, name: str, fragment: Mapping[str, Any]) -> str:
        """Declare a parameter unless it is, and return its name."""
        self.plan.params.setdefault(name, dict(fragment))
        return name


class Composite:
    """An action that is made of steps, at the place where a step uses it."""

    def __init__(self, folder: str, outputs: Mapping[str, Node], given: Mapping[str, Spelled]) -> None:
        self.folder = folder
        self.outputs = outputs
        self.given = given
        self.ids: dict[str, DraftStep] = {}
        self.dropped: set[str] = set()
        self.composites: dict[str, Composite] = {}


class Job:
    """One job: where it stands, its steps as they are made, and what other jobs see of it.

    `ids`: the plan's step by the id of a step in the workflow. `tips`: steps that must be ok for the job to be so.
    `plain`: steps that run whenever the job does and whose failure counts. `anchor`: the step that is skipped when the
    job is; "" where nothing skips it. `exported`: expressions by names of variables that steps hand on.
    """

    def __init__(self, name: str, node: Node) -> None:
        self.name = name
        self.label = name  # with those of the calling jobs before it
        self.node = node
        self.row: dict[str, Any] | None = None  # the instance of its matrix for which names are read
        self.row_at = 0  # its position
        self.instances: list[Job] = []  # its instances, where they are converted one by one
        self.called: list[Workflow] = []
        self.scope: Composite | None = None  # the action whose steps are being converted
        self.composites: dict[str, Composite] = {}  # actions of steps, by the ids of the steps that use them
        self.needs: list[Job] = []
        self.env: Mapping[str, Node] = {}
        self.matrix: Matrix | None = None
        self.made: list[DraftStep] = []
        self.ids: dict[str, DraftStep] = {}
        self.tips: list[DraftStep] = []
        self.plain: set[str] = set()
        self.tolerated: set[str] = set()
        self.anchor = ""
        self.anchor_gate = ""  # the anchor when it is a step that does nothing else
        self.dropped: set[str] = set()  # ids of steps that become nothing, as they have nothing to do here
        self.places: list[str] = []  # folders into which this repository is checked out
        self.exported: dict[str, str] = {}
        self.folders: list[str] = []  # expressions of the folders that steps add to the PATH, the last first
        self.outputs: Mapping[str, Node] = {}
        self.asking: set[str] = set()  # steps that run whatever came before
        self.uploads: dict[str, list[str]] = {}  # paths of artifacts, by their names
        self.is_contained = False
        self.shell = ""
        self.folder: Node | None = None
        self.asks = False  # whether its `if` asks how others ended, so that it may run after a failure
        self.is_tolerant = False  # whether its failure does not count
        self.environment = ""  # for which people may have to approve it
        self.is_open = False  # while it is being converted
        self.is_converted = False

    @property
    def rows(self) -> list[dict[tuple[str, ...], Any]]:
        """The values of its instances, by their paths; one without any where there is no matrix."""
        found = [self.row] if self.row is not None else self.matrix.instances if self.matrix else [{}]
        return [{("matrix", name): value for name, value in row.items()} for row in found]

    @property
    def counting(self) -> list[DraftStep]:
        """The steps whose failure is the job's."""
        return [step for step in self.made if step.id not in self.tolerated and step.id != self.anchor_gate]

    def failed(self) -> str:
        """Return the expression that says that one of the steps made so far failed; "" when none can."""
        return " or ".join(f"{step_path(step.id, 'status')} == 'failed'" for step in self.counting)

    def behind(self) -> list[Job]:
        """Return all jobs that this one needs, through others too."""
        found: dict[str, Job] = {}
        waiting = list(self.needs)
        while waiting:
            job = waiting.pop()
            if job.name not in found:
                found[job.name] = job
                waiting += job.needs
        return list(found.values())
