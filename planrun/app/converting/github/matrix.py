"""`strategy.matrix` in planrun's words: axes of scalars, for the one machine that a plan runs on."""

from __future__ import annotations

import re

from planrun.app.converting.findings import UntranslatableError
from planrun.app.converting.github.grammar import NotAnExpressionError
from planrun.app.converting.github.pieces import pieces_of
from planrun.app.converting.github.spelling import Spelled, spell
from planrun.app.converting.reading import data_of, text_of, truth_of
from planrun.llm.writing import Quoted
from planrun.model.combining import combine, size
from planrun.source.node import MAPPING, SCALAR, SEQUENCE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.app.converting.github.facts import Job, Workflow
    from planrun.app.converting.github.spelling import Names
    from planrun.source.node import Node

    Row = dict[str, Any]

MAX_INSTANCES = 256  # of one matrix, as the plan language has it
RESERVED = ("include", "exclude", "max_parallel", "fail_fast")
OTHER_MACHINE = re.compile(r"(?:.*[-_ ])?(?:windows|macos|mac|osx|win32|win64)\b.*", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class Matrix:
    """The matrix of one job: the keys for the plan, and what its names are there.

    `kinds`: the type of each name; `always`: the names that every instance has.
    """

    def __init__(self) -> None:
        self.keys: dict[str, Any] = {}
        self.kinds: dict[str, str] = {}
        self.always: set[str] = set()

    def read(self, names: tuple[str, ...]) -> Spelled:
        """Return what `matrix.a` or `matrix.a.b` reads."""
        name = "_".join(_fit(each) for each in names)
        if name not in self.kinds:
            raise UntranslatableError("matrix", f"`matrix.{'.'.join(names)}` is not in the matrix")
        if name in self.always:
            return Spelled(text=f"matrix.{name}", kind=self.kinds[name])
        kind = self.kinds[name]
        otherwise = {"boolean": "false", "number": "0"}.get(kind, "''")
        return Spelled(text=f"default(matrix.{name}, {otherwise})", kind="string" if kind == "any" else kind)


def matrix_of(workflow: Workflow, job: Job, strategy: Node, names: Names) -> Matrix | None:
    """Return the matrix of a job; None where there is none, or none that can be kept."""
    reading = _Reading(workflow, job, strategy, names)
    return reading.read()


def _fit(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", "_", name)


class _Reading:
    """Reads one matrix."""

    def __init__(self, workflow: Workflow, job: Job, strategy: Node, names: Names) -> None:
        self.workflow = workflow
        self.found = workflow.found
        self.reader = workflow.reader
        self.job = job
        self.strategy = strategy
        self.names = names
        self.machines = self._machine_axes()
        self.gone: list[str] = []

    def _machine_axes(self) -> set[str]:
        """Return the names of the matrix that choose the machine."""
        runs_on = self.job.node.get("runs-on")
        text = " ".join(
            text_of(item) for item in (runs_on.value if runs_on and runs_on.kind == SEQUENCE else [runs_on])
        )
        return {_fit(name) for name in re.findall(r"matrix\.([A-Za-z_][\w.-]*)", text)}

    def read(self) -> Matrix | None:
        node = self.strategy.get("matrix")
        if node is None:
            return None
        if node.kind != MAPPING:
            message = "a whole matrix that is worked out when the workflow runs; planrun takes the lists of single axes"
            raise UntranslatableError("matrix-dynamic", message)
        matrix = Matrix()
        axes = {name: value for name, value in node.value.items() if name not in ("include", "exclude")}
        rows = self._object_axis(axes)
        if rows is None:
            rows = []
            for name, value in axes.items():
                matrix.keys[self._name(name)] = self._axis(name, value)
        rows += self._rows(node.get("include"), "include")
        rows = [row for row in rows if not self._is_elsewhere(row)]
        without = [row for row in self._rows(node.get("exclude"), "exclude") if not self._is_elsewhere(row)]
        if not rows and (not matrix.keys or any(not values for values in matrix.keys.values())):
            raise UntranslatableError(
                "runs-on", "every instance of the matrix is for another system than Linux"
            )
        matrix.keys = {name: values for name, values in matrix.keys.items() if values}
        self._typed(matrix, rows, without)
        if rows:
            matrix.keys["include"] = rows
        if without:
            matrix.keys["exclude"] = without
        self._limits(matrix)
        if self.gone:
            told = ", ".join(dict.fromkeys(self.gone))
            self.found.differs(
                "other-machines", f"the plan is for one machine: left out are the instances on {told}", node
            )
        return matrix

    def _limits(self, matrix: Matrix) -> None:
        most, fast = self.strategy.get("max-parallel"), self.strategy.get("fail-fast")
        if most is not None:
            number = data_of(most)
            if isinstance(number, int) and number > 0:
                matrix.keys["max_parallel"] = number
            else:
                self.found.todo("max-parallel", "`max-parallel` is worked out when the workflow runs", most)
        if fast is None or truth_of(fast) is True:
            matrix.keys["fail_fast"] = True  # GitHub's default
        elif truth_of(fast) is None:
            self.found.todo(
                "fail-fast", "`fail-fast` is worked out when the workflow runs; taken for true", fast
            )
            matrix.keys["fail_fast"] = True

    def _name(self, name: str) -> str:
        fit = _fit(name)
        if not _NAME.match(fit) or fit in RESERVED:
            raise UntranslatableError("matrix", f"`{name}` cannot be the name of an axis")
        return fit

    def _axis(self, name: str, node: Node) -> list[Any] | str:
        if node.kind == SCALAR:
            pieces = pieces_of(text_of(node))
            if len(pieces) != 1 or isinstance(pieces[0], str):
                raise UntranslatableError("matrix", f"the axis `{name}` is no list")
            found = spell(pieces[0], self.names)
            if found.is_known and isinstance(found.value, list):
                return self._here(name, [self._known(value) for value in found.value])
            self.found.differs(
                "matrix-dynamic", f"the axis `{name}` is unfolded during the run, and has to be a list", node
            )
            return f"${{{{ {found.text} }}}}"
        values = [self._scalar(item, name) for item in self.reader.items(node, f"the axis `{name}`")]
        return self._here(name, values)

    def _here(self, name: str, values: list[Any]) -> list[Any]:
        if _fit(name) not in self.machines:
            return values
        kept = [value for value in values if not OTHER_MACHINE.match(str(value))]
        self.gone += [str(value) for value in values if value not in kept]
        return kept

    def _known(self, value: Any) -> Any:
        if isinstance(value, (list, dict)) or value is None:
            raise UntranslatableError("matrix", "an axis of lists or mappings")
        return Quoted(value) if isinstance(value, str) else value

    def _scalar(self, node: Node, name: str) -> Any:
        if node.kind != SCALAR:
            raise UntranslatableError(
                "matrix", f"the axis `{name}` has lists or mappings as values beside other axes"
            )
        value = data_of(node)
        if isinstance(value, float):
            shown = str(int(value)) if value.is_integer() else repr(value)
            if shown != node.value:
                message = (
                    f"`{node.value}` without quotes is the number {shown} there, and so it stands in the plan"
                )
                self.found.differs("number", message, node)
            return Quoted(shown)
        if isinstance(value, str):
            if "${{" in value:
                pieces = pieces_of(value)
                spelled = (
                    spell(pieces[0], self.names)
                    if len(pieces) == 1 and not isinstance(pieces[0], str)
                    else None
                )
                if spelled is None or not spelled.is_known:
                    raise UntranslatableError("matrix", f"the axis `{name}` has a value that is worked out")
                return self._known(spelled.value)
            return Quoted(value)
        return Quoted("") if value is None else value

    def _object_axis(self, axes: dict[str, Node]) -> list[Row] | None:
        """Return the rows of a matrix whose only axis is a list of mappings: each is an instance."""
        if len(axes) != 1:
            return None
        ((name, node),) = axes.items()
        if node.kind != SEQUENCE or not node.value or any(item.kind != MAPPING for item in node.value):
            return None
        return [self._row({name: item}) for item in node.value]

    def _rows(self, node: Node | None, what: str) -> list[Row]:
        if node is not None and node.kind == SCALAR and text_of(node):
            raise UntranslatableError("matrix-dynamic", f"`{what}` that is worked out when the workflow runs")
        return [self._row(self.reader.mapping(item, what)) for item in self.reader.items(node, f"`{what}`")]

    def _row(self, members: dict[str, Node]) -> Row:
        row: Row = {}
        for name, value in members.items():
            if value.kind == MAPPING:
                row |= {f"{_fit(name)}_{inner}": each for inner, each in self._row(value.value).items()}
            elif value.kind == SEQUENCE:
                raise UntranslatableError("matrix", f"`{name}` is a list in one instance")
            else:
                row[self._name(name)] = self._scalar(value, name)
        return row

    def _is_elsewhere(self, row: Row) -> bool:
        for name in self.machines:
            value = row.get(name)
            if value is not None and OTHER_MACHINE.match(str(value)):
                self.gone.append(str(value))
                return True
        return False

    def _typed(self, matrix: Matrix, rows: list[Row], without: list[Row]) -> None:
        values: dict[str, list[Any]] = {}
        for name, axis in matrix.keys.items():
            values[name] = list(axis) if isinstance(axis, list) else []
        matrix.always = _certain(matrix.keys, rows, without)
        for row in rows:
            for name, value in row.items():
                values.setdefault(name, []).append(value)
        matrix.kinds = {name: _kind(each) for name, each in values.items()}


def _certain(axes: dict[str, Any], rows: list[Row], without: list[Row]) -> set[str]:
    """Return the names that every instance has."""
    known = {name: values for name, values in axes.items() if isinstance(values, list)}
    if len(known) < len(axes):  # some are found during the run, and `include` may add instances without them
        return {name for name in axes if all(name in row for row in rows)}
    if size(known) > MAX_INSTANCES:
        raise UntranslatableError("matrix", f"a matrix of more than {MAX_INSTANCES} instances")
    made = [set(values) for _, values in combine(known, rows, without)]
    return set.intersection(*made) if made else set()


def _kind(values: list[Any]) -> str:
    kinds = {
        "boolean" if isinstance(value, bool) else "number" if isinstance(value, int) else "string"
        for value in values
    }
    return kinds.pop() if len(kinds) == 1 else "any"


def axis_error(error: NotAnExpressionError) -> UntranslatableError:
    """Return the finding for a text in a matrix that is no expression."""
    return UntranslatableError("expression", f"not an expression: {error}")
