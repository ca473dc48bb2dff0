"""GitHub's expressions computed at conversion time, for the values of one instance of a matrix.

What a run decides (outputs, events, inputs) is unknown. For a choice between unknown conditions all texts that it can
result in are returned.

`strategy.matrix` in planrun's words: axes of scalars, for the one machine that a plan runs on.
"""

from __future__ import annotations

import json
import re

from planrun.convert.github.facts import Matrix, axis_name
from planrun.convert.github.grammar import NotAnExpressionError, pieces_of
from planrun.convert.github.spelling import Spelled, const, spell
from planrun.convert.reader import UntranslatableError, data_of, is_nothing, text_of, truth_of
from planrun.llm.plantext import Quoted
from planrun.model.groups import combine, describes, same, size, unnameable
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from planrun.convert.github.grammar import Tree

    Values = Mapping[tuple[str, ...], Any]

MAX_RESULTS = 64  # of one expression; more count as unknown


class UnknownError(Exception):
    """The value is decided when the workflow runs."""


def texts_of(text: str, values: Values) -> set[str] | None:
    """Return all texts that a text with expressions can result in; None where one is unknown.

    `values`: known values by path, `("matrix", "os")`; a path below a known root without a value is null.
    """
    try:
        found = {""}
        for piece in pieces_of(text):
            options = (
                {piece} if isinstance(piece, str) else {_shown(each) for each in _results(piece, values)}
            )
            found = {before + each for before in found for each in options}
            if len(found) > MAX_RESULTS:
                return None
    except (UnknownError, NotAnExpressionError):
        return None
    return found


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return " ".join(_shown(each) for each in value)
    return str(value)


def _results(tree: Tree, values: Values) -> list[Any]:
    """Return all values that an expression can have; raises UnknownError."""
    kind = tree[0]
    if kind == "const":
        return [tree[1]]
    if kind == "path":
        return [_read(tree[1], values)]
    if kind in ("and", "or"):
        return _joined(tree, values)
    if kind == "not":
        return [not each for each in _results(tree[1], values)]
    if kind == "compare" and tree[1] in ("==", "!="):
        left, right = _results(tree[2], values), _results(tree[3], values)
        return [_same(one, other) == (tree[1] == "==") for one in left for other in right]
    if kind == "call":
        return _called(tree, values)
    raise UnknownError


def _read(names: tuple[str, ...], values: Values) -> Any:
    if names in values:
        return values[names]
    flat = (names[0], "_".join(map(axis_name, names[1:])))
    if names[0] == "matrix" and flat in values:
        return values[flat]
    if names[0] != "inputs" and any(path[0] == names[0] for path in values) and "*" not in names:
        return None
    raise UnknownError


def _joined(tree: Tree, values: Values) -> list[Any]:
    wanted = tree[0] == "and"  # `a && b` is b where a holds, `a || b` where it does not
    try:
        left = _results(tree[1], values)
    except UnknownError:
        if not wanted:
            raise
        return [False, *_results(tree[2], values)]
    found = [each for each in left if bool(each) != wanted]
    if any(bool(each) == wanted for each in left):
        found += _results(tree[2], values)
    return found


def _same(left: Any, right: Any) -> bool:
    """Say whether two values are equal, as GitHub compares: those of different types as numbers."""
    if isinstance(left, str) and isinstance(right, str):
        return left.lower() == right.lower()
    if isinstance(left, (list, dict)) or isinstance(right, (list, dict)):
        raise UnknownError
    if type(left) is type(right):
        return bool(left == right)
    return _number(left) == _number(right)


def _number(value: Any) -> float:
    if value is None or value == "":
        return 0
    try:
        return float(value)
    except ValueError:
        return float("nan")


def _called(tree: Tree, values: Values) -> list[Any]:
    name, arguments = tree[1], [_results(each, values) for each in tree[2]]
    if any(len(each) != 1 for each in arguments):
        raise UnknownError
    given = [each[0] for each in arguments]
    try:
        if name == "fromjson":
            return [json.loads(str(given[0]))]
        if name == "format":
            return [str(given[0]).format(*map(_shown, given[1:]))]
        where, what = given
        if name == "contains":
            inside = (
                [_shown(each).lower() for each in where] if isinstance(where, list) else _shown(where).lower()
            )
            return [_shown(what).lower() in inside]
        if name in ("startswith", "endswith"):
            return [bool(getattr(_shown(where).lower(), name)(_shown(what).lower()))]
    except (ValueError, IndexError, KeyError, RecursionError):
        raise UnknownError from None
    raise UnknownError


def known_truth(node: Node | None, job: Job, workflow: Workflow) -> bool | None:
    """Return whether a value is true in all instances of a job, or in none; None where that is not known."""
    if node is None or is_nothing(node):
        return False
    if truth_of(node) is not None or "${{" not in text_of(node):
        return truth_of(node)
    rows: list[Row] = [{}]
    if job.row is not None:
        rows = [job.row]
    elif job.matrix is not None:
        rows = job.matrix.instances
    found: set[str] = set()
    for row in rows:
        options = texts_of(text_of(node), {**workflow.known, **of_row(row)})
        found |= options if options is not None else {"?"}
    if not found or not found <= {"true", "false", ""}:
        return None
    return "true" in found if len(found) == 1 or "true" not in found else None


def of_row(row: Row) -> dict[tuple[str, ...], Any]:
    """Return the values of an instance by their paths."""
    return {("matrix", name): value for name, value in row.items()}


if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from planrun.convert.github.facts import Job, Row, Workflow
    from planrun.convert.github.spelling import Names
    from planrun.plan.yaml.node import Node


MAX_INSTANCES = 256  # of one matrix: GitHub's own limit
MAX_UNFOLDED = 30  # instances that are converted one by one
MAX_COMPARED = 1_000_000  # combinations times entries, as the plan language has it
RESERVED = ("include", "exclude", "max_parallel", "fail_fast")
_OTHERS = {
    "Linux": re.compile(r"(?:.*[-_ ])?(?:windows|macos|mac|osx|win32|win64)\b.*", re.IGNORECASE),
    "macOS": re.compile(r"(?:.*[-_ ])?(?:windows|ubuntu|linux|win32|win64)\b.*", re.IGNORECASE),
}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def is_other(text: str, workflow: Workflow) -> bool:
    """Say whether a machine has another system than the one that the plan is for."""
    return _OTHERS[workflow.machine].match(text) is not None


def matrix_of(workflow: Workflow, job: Job, strategy: Node, names: Names) -> Matrix | None:
    """Return the matrix of a job; None where there is none, or none that can be kept."""
    reading = _Reading(workflow, job, strategy, names)
    return reading.read()


class _Reading:
    """Reads one matrix."""

    def __init__(self, workflow: Workflow, job: Job, strategy: Node, names: Names) -> None:
        self.workflow = workflow
        self.found = workflow.found
        self.reader = workflow.reader
        self.job = job
        self.strategy = strategy
        self.names = names
        self.gone: list[str] = []
        self.loose = (workflow.found.file, job.name) in workflow.unfolded

    def read(self) -> Matrix | None:
        node = self.strategy.get("matrix")
        if node is None:
            return None
        if node.kind != MAPPING:
            message = "a whole matrix that is worked out when the workflow runs; planrun takes the lists of single axes"
            raise UntranslatableError("matrix-dynamic", message)
        axes = {
            name: self._axis(name, value)
            for name, value in node.value.items()
            if name not in ("include", "exclude")
        }
        rows = self._rows(node.get("include"), "include")
        without = self._rows(node.get("exclude"), "exclude")
        known = {name: values for name, values in axes.items() if isinstance(values, list)}
        matrix = Matrix()
        if len(known) == len(axes):
            self._keep(matrix, known, rows, without)
        else:
            self._unfold(matrix, axes, rows, without)
        self._limits(matrix)
        if self.gone:
            runners = ", ".join(dict.fromkeys(self.gone))
            self.found.differs(
                "other-machines",
                f"the plan is for one machine: left out are the instances on {runners}",
                node,
            )
        return matrix

    def _keep(self, matrix: Matrix, axes: dict[str, list[Any]], rows: list[Row], without: list[Row]) -> None:
        """Fill a matrix that is known in full: all its instances but those for other systems."""
        if size(axes) * (1 + len(rows) + len(without)) > MAX_COMPARED:
            raise UntranslatableError("matrix", f"a matrix of more than {MAX_INSTANCES} instances")
        made = [values for _, values in combine(axes, rows, without)]
        if len(made) > MAX_INSTANCES:
            raise UntranslatableError("matrix", f"a matrix of more than {MAX_INSTANCES} instances")
        here = [_flat(values) for values in made if not self._is_elsewhere(values)]
        if self.loose and len(here) > MAX_UNFOLDED:
            raise UntranslatableError("matrix", f"more than {MAX_UNFOLDED} instances to convert one by one")
        if self.loose and here:
            matrix.instances, matrix.is_unfolded = here, True
            return
        if not here:
            message = f"every instance of the matrix is for another system than {self.workflow.machine}"
            raise UntranslatableError("runs-on", message)
        matrix.keys = _shortest(here, axes, rows, without)
        matrix.always = set.intersection(*[set(values) for values in here])
        matrix.kinds = _kinds(here)
        matrix.instances = here

    def _unfold(
        self, matrix: Matrix, axes: dict[str, list[Any] | str], rows: list[Row], without: list[Row]
    ) -> None:
        """Fill a matrix of which some axes are known only when it runs."""
        for values in axes.values():
            if isinstance(values, list) and any(isinstance(each, (dict, list)) for each in values):
                raise UntranslatableError(
                    "matrix", "an axis of lists or mappings beside one that is worked out"
                )
        self._check_machine(axes, rows)
        matrix.keys = {self._name(name): values for name, values in axes.items()}
        flat = [_flat(row) for row in rows]
        if flat:
            matrix.keys["include"] = flat
        if without:
            matrix.keys["exclude"] = [_flat(row) for row in without]
        matrix.always = {
            name for name in matrix.keys if name not in RESERVED and all(name in row for row in flat)
        }
        matrix.kinds = _kinds(
            [
                *(
                    {name: each}
                    for name, values in matrix.keys.items()
                    if name not in RESERVED
                    for each in (values if isinstance(values, list) else [Quoted("")])
                ),
                *flat,
            ]
        )

    def _check_machine(self, axes: dict[str, list[Any] | str], rows: list[Row]) -> None:
        """Refuse instances whose system is known only when they run; raises UntranslatableError."""
        text = machine_text(self.job.node.get("runs-on"))
        if not re.search(r"\$\{\{[^}]*\bmatrix\b", text):
            return
        for name in dict.fromkeys([*axes, *(name for row in rows for name in row)]):
            if not re.search(rf"\bmatrix\.{re.escape(name)}\b", text):
                continue
            values = axes.get(name, [])
            every = [*(values if isinstance(values, list) else []), *(row.get(name, "") for row in rows)]
            if isinstance(values, str) or any(is_other(str(each), self.workflow) for each in every):
                message = f"the axis `{name}` chooses the machine, and the matrix is worked out when the workflow runs"
                raise UntranslatableError("runs-on", message)

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
        fit = axis_name(name)
        if not _NAME.match(fit) or fit in RESERVED:
            raise UntranslatableError("matrix", f"`{name}` cannot be the name of an axis")
        return fit

    def _axis(self, name: str, node: Node) -> list[Any] | str:
        self._name(name)
        if node.kind == SCALAR:
            pieces = pieces_of(text_of(node))
            if len(pieces) != 1 or isinstance(pieces[0], str):
                raise UntranslatableError("matrix", f"the axis `{name}` is no list")
            found = spell(pieces[0], self.names)
            if found.is_known and isinstance(found.value, list):
                return [self._known(value, name) for value in found.value]
            self.found.differs(
                "matrix-dynamic", f"the axis `{name}` is unfolded during the run, and has to be a list", node
            )
            return f"${{{{ {found.text} }}}}"
        items = self.reader.items(node, f"the axis `{name}`")
        if any(item.kind == SCALAR and "${{" in text_of(item) for item in items):
            return self._mixed(name, items)
        return [self._value(item, name) for item in items]

    def _mixed(self, name: str, items: list[Node]) -> list[Any] | str:
        """Return an axis of which some values are expressions: as one expression where not all are known."""
        found: list[Spelled] = []
        for item in items:
            if item.kind != SCALAR:
                raise UntranslatableError("matrix", f"the axis `{name}` joins mappings and expressions")
            pieces = pieces_of(text_of(item))
            if len(pieces) == 1 and not isinstance(pieces[0], str):
                found.append(spell(pieces[0], self.names))
            elif any(not isinstance(piece, str) for piece in pieces):
                raise UntranslatableError("matrix", f"the axis `{name}` has a value that is put together")
            else:
                found.append(const(self._scalar(item, name)))
        if all(each.is_known for each in found):
            return [self._known(each.value, name) for each in found]
        return f"${{{{ [{', '.join(each.text for each in found)}] }}}}"

    def _known(self, value: Any, name: str) -> Any:
        if isinstance(value, dict):
            return {self._name(key): self._known(each, key) for key, each in value.items()}
        if isinstance(value, list):
            if self.loose:
                return value
            raise UntranslatableError("matrix", f"`{name}` is a list in one instance")
        if isinstance(value, float):
            return Quoted(repr(value))
        return Quoted(value) if isinstance(value, str) else Quoted("") if value is None else value

    def _value(self, node: Node, name: str) -> Any:
        """Return a value of an axis or of an entry: a scalar, or a mapping of such."""
        if node.kind == MAPPING:
            return {self._name(key): self._value(each, key) for key, each in node.value.items()}
        if node.kind == SEQUENCE:
            if self.loose:
                return [self._value(each, name) for each in node.value]
            raise UntranslatableError("matrix", f"`{name}` is a list in one instance")
        return self._scalar(node, name)

    def _scalar(self, node: Node, name: str) -> Any:
        value = data_of(node)
        if isinstance(value, float):
            shown = str(int(value)) if value.is_integer() else repr(value)
            if shown != node.value:
                message = f"`{node.value}` without quotes is the number {shown} there, and is written so into the plan"
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
                return self._known(spelled.value, name)
            return Quoted(value)
        return Quoted("") if value is None else value

    def _rows(self, node: Node | None, what: str) -> list[Row]:
        if node is not None and node.kind == SCALAR and text_of(node):
            raise UntranslatableError("matrix-dynamic", f"`{what}` that is worked out when the workflow runs")
        rows = []
        for item in self.reader.items(node, f"`{what}`"):
            members = self.reader.mapping(item, what)
            for name in members:
                self._name(name)
            rows.append({name: self._value(value, name) for name, value in members.items()})
        return rows

    def _is_elsewhere(self, values: Row) -> bool:
        """Say whether an instance is for another system; raises UntranslatableError where that cannot be known."""
        text = machine_text(self.job.node.get("runs-on"))
        options = texts_of(text, {**self.workflow.known, **dict(_paths(values))})
        other = [each for each in options or () if is_other(each, self.workflow)]
        if not other:
            return False
        if len(other) < len(options or ()):
            raise UntranslatableError(
                "runs-on", f"whether `{text}` is a machine with {self.workflow.machine} is worked out"
            )
        self.gone.append(other[0])
        return True


def machine_text(node: Node | None) -> str:
    """Return what `runs-on` says as one text: labels and group with blanks between."""
    if node is None:
        return ""
    if node.kind == MAPPING:
        return f"{text_of(node.get('group'))} {machine_text(node.get('labels'))}".strip()
    return " ".join(text_of(item) for item in node.value) if node.kind == SEQUENCE else text_of(node)


def _paths(values: Row, above: tuple[str, ...] = ("matrix",)) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _paths(value, (*above, name))
        yield (*above, name), value


def _flat(values: Row) -> Row:
    """Return an instance with the members of its mappings as names of their own: `job.os` is `job_os`."""
    found: Row = {}
    for name, value in values.items():
        if isinstance(value, dict):
            found |= {f"{axis_name(name)}_{inner}": each for inner, each in _flat(value).items()}
        else:
            found[axis_name(name)] = value
    return found


def _shortest(here: list[Row], axes: dict[str, list[Any]], rows: list[Row], without: list[Row]) -> Row:
    """Return the keys of a matrix with just these instances: its axes where those give them, else a list."""
    keys: Row = {}
    if not any(isinstance(each, (dict, list)) for values in axes.values() for each in values):
        kept = {
            axis_name(name): [
                each for each in values if any(same(each, row.get(axis_name(name))) for row in here)
            ]
            for name, values in axes.items()
        }
        kept = {name: values for name, values in kept.items() if values}
        added = [row for row in map(_flat, rows) if any(describes(row, each) for each in here)]
        left = [row for row in map(_flat, without) if any(describes(row, each) for _, each in combine(kept))]
        made = combine(kept, added, left)
        if [each for _, each in made] == here and _are_named(name for name, _ in made):
            keys = {**kept, **({"include": added} if added else {}), **({"exclude": left} if left else {})}
    if not keys and _are_named(name for name, _ in combine({}, here)):
        keys = {"include": here}
    if not keys:  # names of instances that no id can have
        numbers = [Quoted(str(at)) for at in range(1, len(here) + 1)]
        keys = {
            "instance": numbers,
            "include": [{"instance": at, **row} for at, row in zip(numbers, here, strict=True)],
        }
    return keys


def _are_named(names: Iterable[str]) -> bool:
    listed = list(names)
    return len(set(listed)) == len(listed) and not any(map(unnameable, listed))


def _kinds(rows: list[Row]) -> dict[str, str]:
    values: dict[str, list[Any]] = {}
    for row in rows:
        for name, value in row.items():
            values.setdefault(name, []).append(value)
    return {name: _kind(each) for name, each in values.items()}


def _kind(values: list[Any]) -> str:
    kinds = {
        "boolean" if isinstance(value, bool) else "number" if isinstance(value, int) else "string"
        for value in values
    }
    return kinds.pop() if len(kinds) == 1 else "any"
