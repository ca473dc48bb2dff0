"""`strategy.matrix` in planrun's words: axes of scalars, for the one machine that a plan runs on."""

from __future__ import annotations

import re

from planrun.convert.expressions import Spelled, const, spell
from planrun.convert.github.facts import Matrix, axis_name
from planrun.convert.github.words import cut, texts_of
from planrun.convert.reader import UntranslatableError, data_of, is_nothing, text_of, truth_of
from planrun.llm.plantext import Quoted
from planrun.model.groups import combine, describes, same, size, unnameable
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from planrun.convert.expressions import Names, Tree
    from planrun.convert.github.facts import Job, Row, Workflow
    from planrun.plan.yaml.node import Node

RESERVED = ("include", "exclude", "max_parallel", "fail_fast")
MAX_INSTANCES = 256  # of one matrix: GitHub's own limit
MAX_EXPANDED = 30  # instances of one job that become steps of their own
MAX_COMPARED = 1_000_000  # combinations times entries, as the plan language has it
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_HARMLESS = re.compile(r"[\w./@:+=,-]*", re.ASCII)  # what a value that is put into a script may hold
_OTHERS = {
    "Linux": re.compile(r"(?:.*[-_ ])?(?:windows|macos|mac|osx|win32|win64)\b.*", re.IGNORECASE),
    "macOS": re.compile(r"(?:.*[-_ ])?(?:windows|ubuntu|linux|win32|win64)\b.*", re.IGNORECASE),
}


def is_other(labels: str, workflow: Workflow) -> bool:
    """Say whether `runs-on` asks for another system than the plan's."""
    return _OTHERS[workflow.machine].match(labels) is not None


def machine_text(node: Node | None) -> str:
    """Return what `runs-on` says as one text: labels and group with blanks between."""
    if node is None:
        return ""
    if node.kind == MAPPING:
        return f"{text_of(node.get('group'))} {machine_text(node.get('labels'))}".strip()
    return " ".join(text_of(item) for item in node.value) if node.kind == SEQUENCE else text_of(node)


def known_truth(node: Node | None, job: Job, workflow: Workflow) -> bool | None:
    """Return whether a value is true in all instances of a job, or in none; None where that is not known."""
    if node is None or is_nothing(node):
        return False
    if truth_of(node) is not None or "${{" not in text_of(node):
        return truth_of(node)
    options = [texts_of(text_of(node), {**workflow.known, **row}) for row in job.rows]
    found = set().union(*[each if each is not None else {"?"} for each in options])
    if not found or not found <= {"true", "false", ""}:
        return None
    return "true" in found if len(found) == 1 or "true" not in found else None


def matrix_of(workflow: Workflow, job: Job, strategy: Node, names: Names) -> Matrix | None:
    """Return the matrix of a job, less what is for other systems; raises UntranslatableError."""
    node = strategy.get("matrix")
    if node is None:
        return None
    if node.kind != MAPPING:
        message = (
            "a whole matrix that is worked out when the workflow runs; planrun takes the lists of single axes"
        )
        raise UntranslatableError("matrix-dynamic", message)
    reading = _Reading(workflow, names)
    axes = {name: reading.axis(name, value) for name, value in node.value.items() if name not in RESERVED[:2]}
    rows, without = reading.rows(node.get("include"), "include"), reading.rows(node.get("exclude"), "exclude")
    known = {name: values for name, values in axes.items() if isinstance(values, list)}
    matrix = Matrix()
    if len(known) == len(axes):
        if size(known) * (1 + len(rows) + len(without)) > MAX_COMPARED:
            raise UntranslatableError("matrix", f"a matrix of more than {MAX_INSTANCES} instances")
        made = [values for _, values in combine(known, rows, without)]
        if len(made) > MAX_INSTANCES:
            raise UntranslatableError("matrix", f"a matrix of more than {MAX_INSTANCES} instances")
        matrix.instances = _here(workflow, job, made, node)
        matrix.keys = _shortest(matrix.instances, known, rows, without)
        matrix.always = set.intersection(*[set(values) for values in matrix.instances])
        samples = matrix.instances
    else:
        _check_machine(workflow, job, axes, rows)
        flat = [_flat(row) for row in rows]
        if any(isinstance(each, (dict, list)) for values in known.values() for each in values):
            raise UntranslatableError("matrix", "an axis of lists or mappings beside one that is worked out")
        matrix.keys = {axis_name(name): values for name, values in axes.items()}
        matrix.always = {name for name in matrix.keys if all(name in row for row in flat)}
        samples = [
            *({name: each} for name, values in matrix.keys.items()
              for each in (values if isinstance(values, list) else [Quoted("")])),
            *flat,
        ]  # fmt: skip
        matrix.keys |= {"include": flat} if flat else {}
        matrix.keys |= {"exclude": [_flat(row) for row in without]} if without else {}
    kinds: dict[str, set[str]] = {}
    for row in samples:
        for name, value in row.items():
            kind = "boolean" if isinstance(value, bool) else "number" if isinstance(value, int) else "string"
            kinds.setdefault(name, set()).add(kind)
    matrix.kinds = {name: min(each) if len(each) == 1 else "any" for name, each in kinds.items()}
    most, fast = strategy.get("max-parallel"), strategy.get("fail-fast")
    if most is not None:
        number = data_of(most)
        if isinstance(number, int) and number > 0:
            matrix.keys["max_parallel"] = number
        else:
            workflow.found.todo("max-parallel", "`max-parallel` is worked out when the workflow runs", most)
    if fast is None or truth_of(fast) is not False:
        matrix.keys["fail_fast"] = True  # GitHub's default
    if fast is not None and truth_of(fast) is None:
        message = "`fail-fast` is worked out when the workflow runs; taken for true"
        workflow.found.todo("fail-fast", message, fast)
    return matrix


class _Reading:
    """Reads the values of one matrix."""

    def __init__(self, workflow: Workflow, names: Names) -> None:
        self.found = workflow.found
        self.reader = workflow.reader
        self.names = names

    def axis(self, name: str, node: Node) -> list[Any] | str:
        """Return the values of an axis, or the expression that gives them."""
        self._name(name)
        if node.kind != SCALAR:
            items = self.reader.items(node, f"the axis `{name}`")
            spelled = [self._spelled(item) for item in items]
            if all(each is None or each.is_known for each in spelled):
                return [self._plain(self._data(item)) for item in items]
            if any(item.kind != SCALAR for item in items):
                raise UntranslatableError("matrix", f"the axis `{name}` joins mappings and expressions")
            texts = [
                each or const(self._plain(self._data(item)))
                for each, item in zip(spelled, items, strict=True)
            ]
            return f"${{{{ [{', '.join(each.text for each in texts)}] }}}}"
        found = self._spelled(node)
        if found is None:
            raise UntranslatableError("matrix", f"the axis `{name}` is no list")
        if found.is_known and isinstance(found.value, list):
            return [self._plain(value) for value in found.value]
        message = f"the axis `{name}` is unfolded during the run, and has to be a list"
        self.found.differs("matrix-dynamic", message, node)
        return f"${{{{ {found.text} }}}}"

    def rows(self, node: Node | None, what: str) -> list[Row]:
        """Return the entries of `include` or `exclude`."""
        if node is not None and node.kind == SCALAR and text_of(node):
            raise UntranslatableError("matrix-dynamic", f"`{what}` that is worked out when the workflow runs")
        items = self.reader.items(node, f"`{what}`")
        rows = [self.reader.mapping(item, what) for item in items]
        return [{self._name(name): self._plain(self._data(row[name])) for name in row} for row in rows]

    def _name(self, name: str) -> str:
        fit = axis_name(name)
        if not _NAME.match(fit) or fit in RESERVED:
            raise UntranslatableError("matrix", f"`{name}` cannot be the name of an axis")
        return name

    def _spelled(self, node: Node) -> Spelled | None:
        """Return a text that is one expression; None for any other value."""
        if node.kind != SCALAR or "${{" not in text_of(node):
            return None
        pieces = cut(text_of(node))
        if len(pieces) != 1 or isinstance(pieces[0], str):
            raise UntranslatableError("matrix", "a value of the matrix that is put together")
        return spell(pieces[0], self.names)

    def _data(self, node: Node) -> Any:
        """Return a value as plain data; raises UntranslatableError where only a run knows it."""
        if node.kind == MAPPING:
            return {name: self._data(each) for name, each in node.value.items()}
        if node.kind == SEQUENCE:
            return [self._data(each) for each in node.value]
        spelled = self._spelled(node)
        if spelled is not None and not spelled.is_known:
            raise UntranslatableError("matrix", "a value of the matrix that is worked out")
        value = spelled.value if spelled is not None else data_of(node)
        if isinstance(value, float) and spelled is None and _number(value) != node.value:
            message = f"`{node.value}` without quotes is the number {_number(value)} there"
            message = f"{message}, and is written so into the plan"
            self.found.differs("number", message, node)
        return value

    def _plain(self, value: Any) -> Any:
        """Return data as the plan has it: texts and fractions in quotes."""
        if isinstance(value, dict):
            return {self._name(name): self._plain(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self._plain(each) for each in value]
        if isinstance(value, (bool, int)):
            return value
        return Quoted("" if value is None else _number(value) if isinstance(value, float) else value)


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)


def _here(workflow: Workflow, job: Job, made: list[Row], node: Node) -> list[Row]:
    """Return the instances for the plan's system, flat; raises UntranslatableError where there is none."""
    text = machine_text(job.node.get("runs-on"))
    here, gone = [], []
    for values in made:
        options = texts_of(text, {**workflow.known, **dict(_paths(values))}) or set()
        other = [each for each in sorted(options) if is_other(each, workflow)]
        if other and len(other) < len(options):
            raise UntranslatableError(
                "runs-on", f"whether `{text}` is a machine with {workflow.machine} is worked out"
            )
        if other:
            gone.append(other[0])
        else:
            here.append(_flat(values))
    if not here:
        raise UntranslatableError(
            "runs-on", f"every instance of the matrix is for another system than {workflow.machine}"
        )
    if gone:
        runners = ", ".join(dict.fromkeys(gone))
        message = f"the plan is for one machine: left out are the instances on {runners}"
        workflow.found.differs("other-machines", message, node)
    return here


def _check_machine(workflow: Workflow, job: Job, axes: dict[str, list[Any] | str], rows: list[Row]) -> None:
    """Refuse instances whose system is known only when they run; raises UntranslatableError."""
    text = machine_text(job.node.get("runs-on"))
    for name in dict.fromkeys([*axes, *(name for row in rows for name in row)]):
        if not re.search(rf"\$\{{\{{[^}}]*\bmatrix\.{re.escape(name)}\b", text):
            continue
        values = axes.get(name, [])
        every = [*(values if isinstance(values, list) else []), *(row.get(name, "") for row in rows)]
        if isinstance(values, str) or any(is_other(str(each), workflow) for each in every):
            message = (
                f"the axis `{name}` chooses the machine, and the matrix is worked out when the workflow runs"
            )
            raise UntranslatableError("runs-on", message)


def _paths(values: Row, above: tuple[str, ...] = ("matrix",)) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _paths(value, (*above, name))
        else:
            yield (*above, name), value


def _flat(values: Row) -> Row:
    """Return an instance with the members of its mappings as names of their own: `job.os` is `job_os`."""
    found: Row = {}
    for path, value in _paths(values, ()):
        found["_".join(map(axis_name, path))] = value
    return found


def _shortest(here: list[Row], axes: dict[str, list[Any]], rows: list[Row], without: list[Row]) -> Row:
    """Return the keys of a matrix with just these instances: its axes where those give them, else a list."""
    if not any(isinstance(each, (dict, list)) for values in axes.values() for each in values):
        kept = {
            axis_name(name): [each for each in values if any(same(each, row.get(axis_name(name))) for row in here)]
            for name, values in axes.items()
        }  # fmt: skip
        kept = {name: values for name, values in kept.items() if values}
        added = [row for row in map(_flat, rows) if any(describes(row, each) for each in here)]
        left = [row for row in map(_flat, without) if any(describes(row, each) for _, each in combine(kept))]
        made = combine(kept, added, left)
        if [each for _, each in made] == here and _are_named(name for name, _ in made):
            return {**kept, **({"include": added} if added else {}), **({"exclude": left} if left else {})}
    if _are_named(name for name, _ in combine({}, here)):
        return {"include": here}
    numbers = [Quoted(str(at)) for at in range(1, len(here) + 1)]  # their names are none that an id can have
    rows = [{"instance": at, **row} for at, row in zip(numbers, here, strict=True)]
    return {"instance": numbers, "include": rows}


def _are_named(names: Iterable[str]) -> bool:
    listed = list(names)
    return len(set(listed)) == len(listed) and not any(map(unnameable, listed))


def is_expanded(workflow: Workflow, job: Job) -> bool:
    """Say whether the instances of a job become steps of their own, as a plan's matrix cannot say what differs.

    Lists as values, tolerance or a container of some instances only, outputs that other jobs read, and values that may
    not be put into a script.
    """
    rows, node = job.rows, job.node
    if job.matrix is None or not 0 < len(rows) <= MAX_EXPANDED:
        return False
    if any(isinstance(value, list) for row in rows for value in row.values()):
        return True
    steps = workflow.reader.items(node.get("steps"), "`steps`")
    for each in (node, *steps):
        lenient = each.get("continue-on-error")
        if known_truth(lenient, job, workflow) is None and all(
            texts_of(text_of(lenient), row) in ({"true"}, {"false"}, {""}) for row in rows
        ):
            return True
    container = node.get("container")
    if container is not None:
        image = text_of(container.get("image") if container.kind == MAPPING else container)
        if len({texts_of(image, row) == {""} for row in rows}) > 1:
            return True
    read = re.compile(rf"\b(?:needs|jobs)\.{re.escape(job.name)}\.outputs\b")
    if any(read.search(text) for text in _texts(workflow.root)):
        return True
    return any(_is_harmful(text_of(step.get("run")), rows) for step in steps)


def _texts(node: Node) -> Iterator[str]:
    """Yield all texts of a file."""
    if node.kind == SCALAR:
        yield str(node.value)
    else:
        for each in node.value.values() if node.kind == MAPPING else node.value:
            yield from _texts(each)


def _is_harmful(script: str, rows: list[dict[tuple[str, ...], Any]]) -> bool:
    """Say whether a value of the matrix that a script reads is none that planrun puts into scripts."""
    try:
        leaves = (
            [_leaves(piece) for piece in cut(script) if not isinstance(piece, str)]
            if "matrix" in script
            else []
        )
    except UntranslatableError:
        return False
    return any(
        not _HARMLESS.fullmatch(str(value))
        for found in leaves
        if any(each[0] == "path" and each[1][0] == "matrix" for each in found)
        for each in found
        for value in ([each[1]] if each[0] == "const" else _values(each[1], rows))
    )


def _values(path: tuple[str, ...], rows: list[dict[tuple[str, ...], Any]]) -> list[Any]:
    name = "_".join(map(axis_name, path[1:]))
    return [row.get((path[0], name), "") for row in rows]


def _leaves(tree: Tree) -> list[Tree]:
    """Return the constants and paths that may be the value of an expression."""
    if tree[0] in ("const", "path"):
        return [tree]
    parts = tree[2] if tree[0] == "call" else tree[1:] if tree[0] in ("and", "or", "not") else ()
    return [leaf for part in parts for leaf in _leaves(part)]
