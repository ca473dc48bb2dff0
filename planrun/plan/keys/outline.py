"""The steps of a node tree before they are checked: who they are, where they stand, what they refer to.

Everything here bears a tree that is misshapen: what is not of the expected form is left out, since the check of
the shape has said so already.
"""

from __future__ import annotations

from bisect import bisect_right

from planrun.model.groups import undo_id
from planrun.plan.kinds import QUESTIONS
from planrun.plan.problems import MAX_PROBLEMS, Problem, did_you_mean
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE, Node, Origins

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from typing import Any, Protocol

    from planrun.expressions.tree import ExpressionError, Tree

    class Included(Protocol):
        """The plans that a plan uses. `take` reads one, or reports why it cannot; all have one budget."""

        schemas: int
        matching: float
        parsed: int

        def take(self, outline: Outline, node: Node, /) -> Used | None:
            """Return the plan that a `uses` names; reports why there is none."""


MAX_COMPARED = 10_000  # ids that are compared with misspelt ones: a third of a second
_QUESTIONS = frozenset(QUESTIONS)
EDGE_KINDS = ("ok", "completed", "failed", "done")


class Link:
    """A reference to another step: `form` says how it was written (list, map, same, recovers or condition)."""

    __slots__ = ("form", "kind", "node", "on")

    def __init__(self, on: str, kind: str, node: Node, form: str) -> None:
        self.on = on
        self.kind = kind
        self.node = node
        self.form = form


class Used:
    """A used plan that was read and checked; `checked` (a `planrun.plan.keys.checked.Checked`) None: it is no plan.

    `path` as `planrun.plan.readers` has it. `sound`: it has no errors. `count`: its steps, with those of the plans that
    it uses itself. `height`: how many plans stand inside each other in it, itself included.
    """

    __slots__ = ("checked", "count", "height", "path", "sound")

    def __init__(self, path: str, checked: Any, *, sound: bool) -> None:
        inside = [step.used for step in checked.outline.steps if step.used] if checked else []
        self.path = path
        self.checked = checked
        self.sound = sound
        self.count: int = checked.count if checked else 0
        self.height: int = 1 + max([used.height for used in inside], default=0)


class RawStep:
    """A step on its way to a plan; `links` are its edges, those of its condition included once that was read."""

    __slots__ = (
        "at",
        "condition",
        "id",
        "instances",
        "keys",
        "links",
        "node",
        "recovers",
        "replaces",
        "section",
        "undoes",
        "undos",
        "used",
    )

    def __init__(self, node: Node, section: str, position: int) -> None:
        self.node = node
        self.section = section
        self.keys: dict[str, Node] = node.value if node.kind == MAPPING else {}
        written = scalar(self.keys.get("id"))
        self.id = written.value if written else str(position)
        if node.kind != MAPPING or not node.value:
            self.at = node
        else:
            self.at = node.keys["id"] if "id" in node.keys else next(iter(node.keys.values()))
        self.links: list[Link] = []
        self.condition: Tree | None = None
        self.instances = 0  # those that are known before it runs
        self.undos: list[RawStep] = []  # what undoes it, one after the other, the last one first
        self.undoes: RawStep | None = None  # of what undoes a step: which one
        self.used: Used | None = None  # the plan that it uses
        depends_on = self.keys.get("depends_on")
        if depends_on is not None:
            if depends_on.kind != MAPPING:
                self.links = [Link(item.value, "ok", item, "list") for item in entries(depends_on)]
            else:
                for name, kind in depends_on.value.items():
                    same = kind.get("instance")
                    said = kind if same is None else same
                    word = said.value if said.kind == SCALAR and said.value in EDGE_KINDS else "ok"
                    self.links.append(
                        Link(name, word, depends_on.key(name), "map" if same is None else "same")
                    )
        self.recovers = self._links("recovers", "failed")
        self.replaces = self._links("replaces", "done")

    def _links(self, key: str, kind: str) -> Sequence[Link]:
        node = self.keys.get(key)
        return [Link(item.value, kind, item, key) for item in entries(node)] if node is not None else ()

    @property
    def is_gate(self) -> bool:
        """Whether the step asks for an answer and starts no process."""
        return not _QUESTIONS.isdisjoint(self.keys)


class Outline:
    """All steps of a file, the `finally` steps after the others, and the problems found so far.

    Each entry of `decisions` is a step, too, before those that are written; it counts for no position.

    `sound`: the check of the shape had nothing to say.
    """

    def __init__(
        self, root: Node, file: str, source: bytes, *, sound: bool = True, origins: Origins | None = None
    ) -> None:
        self.root = root
        self.origins = origins
        self.sound = sound
        self.file = file
        self.problems: list[Problem] = []
        self.steps: list[RawStep] = list(_decisions(root))
        before = len(self.steps)
        for section in ("steps", "finally"):
            listed = root.get(section)
            if listed is not None and listed.kind == SEQUENCE:
                start = len(self.steps) - before + 1
                self.steps += [RawStep(node, section, at) for at, node in enumerate(listed.value, start)]
        self.by_id: dict[str, RawStep] = {}
        self.undos: list[RawStep] = []  # what undoes steps: steps that cannot be referenced
        for raw in self.steps:
            self.by_id.setdefault(raw.id, raw)
            if "rollback" in raw.keys:
                raw.undos = _undos_of(raw)
                self.undos += raw.undos
        self.keys = frozenset().union(*[raw.keys for raw in self.steps])  # those that any step has
        self.matching = 0.0  # seconds spent on defaults that may take long
        self.schemas = 0  # fragments counted, with those inside them
        self.tangled = False  # too many steps recover the same one
        self.unique = list(self.by_id.values())  # of steps with the same id, the first
        self._lines = {file: _Lines(source)}
        self._compared = 0
        self._reported: set[tuple[str, int, int, str]] = set()
        self._errors = self._warnings = 0  # among the problems
        if origins:
            self._lines |= {name: _Lines(data) for name, data in origins.sources.items()}
            for raw in self.steps:
                self.stands_like(raw.node, raw.at)

    def of_tree(self, root: Node) -> Outline:
        """Return the outline of a tree made of nodes of this one; places in it are those of this file."""
        found = Outline(root, self.file, b"", sound=self.sound, origins=self.origins)
        found._lines |= self._lines
        return found

    @property
    def is_full(self) -> bool:
        """Whether the limit of errors is reached, so that nothing more needs to be checked."""
        return self._errors >= MAX_PROBLEMS

    def file_of(self, node: Node) -> str:
        """Return the file that a node stands in, as people call it."""
        found = self.origins.places.get(id(node)) if self.origins else None
        return found[1] if found else self.file

    def path_of(self, node: Node) -> str:
        """Return the path of another file that a node stands in, as those that a plan uses have it, else ""."""
        found = self.origins.places.get(id(node)) if self.origins else None
        return found[0] if found else ""

    def seen_from(self, node: Node) -> str:
        """Return the path of the file that paths under a node of another file are seen from, else ""."""
        found = self.origins.places.get(id(node)) if self.origins else None
        return found[2] if found else ""

    def stands_like(self, made: Node, node: Node) -> None:
        """Note that a node which was made here has the place of another one."""
        if self.origins and id(node) in self.origins.places:
            self.origins.places[id(made)] = self.origins.places[id(node)]
            self.origins.kept += (made,)

    def line_of(self, node: Node) -> str:
        """Return `line N` of a node, with its file where that is another one."""
        file = self.file_of(node)
        return f"line {node.line}" + (f" of {file}" if file != self.file else "")

    def suggest(self, name: str) -> str:
        """Return a hint with the id that was probably meant, as long as looking for it costs little."""
        return self.nearest(name, self.by_id)

    def nearest(self, word: str, known: Collection[str]) -> str:
        """Return a hint with the known word that was probably meant, under the same condition."""
        self._compared += len(known)
        return did_you_mean(word, known) if self._compared < MAX_COMPARED else ""

    def report(self, code: str, message: str, node: Node, hint: str = "", **more: Any) -> None:
        """Add a problem about a node."""
        place: dict[str, Any] = {"line": node.line, "col": node.col, "end_col": node.end_col, **more}
        self.add(Problem(code=code, message=message, file=self.file_of(node), hint=hint, **place))

    def report_in(self, node: Node, code: str, error: ExpressionError, hint: str = "", **more: Any) -> None:
        """Add a problem about a part of a scalar's text."""
        file = self.file_of(node)
        place: dict[str, Any] = self._lines[file].locate(node, max(error.offset, 0), error.length)
        self.add(Problem(code=code, message=error.message, file=file, hint=hint, **{**place, **more}))

    def add(self, problem: Problem) -> None:
        """Add a problem unless it was reported already, for another step that an alias made of the same lines.

        Those beyond MAX_PROBLEMS are dropped: too many to read. Errors and warnings are counted apart: no
        number of warnings may hide what keeps a plan from being valid.
        """
        identity = (problem.file, problem.line, problem.col, problem.message)
        is_error = problem.severity == "error"
        if (self._errors if is_error else self._warnings) >= MAX_PROBLEMS or identity in self._reported:
            return
        self._reported.add(identity)
        if self.origins and problem.related:  # they may stand in another file than the problem
            problem = problem.but(related=())
        self.problems.append(problem)
        self._errors += is_error
        self._warnings += not is_error


class _Lines:
    """The text of a file, by lines; decoded when the first place is asked for."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._text = ""
        self._starts: list[int] = []

    def _read(self) -> None:
        text = self._source.decode("utf-8", "replace").removeprefix("\ufeff")
        self._text = text.replace("\r\n", "\n").replace("\r", "\n")
        at = 0
        for line in self._text.split("\n"):
            self._starts.append(at)
            at += len(line) + 1

    def locate(self, node: Node, offset: int, length: int) -> dict[str, int]:
        """Return the place of a part of a scalar's text.

        Quoting, indentation and folding make the text differ from the file: the part is looked for in the file,
        as often as it stands in the text before, or else the scalar's own position is reported.
        """
        if not self._starts:
            self._read()
        text: str = node.value
        part = text[offset : offset + length].split("\n", 1)[0].rstrip() or text[offset : offset + 1].strip()
        at = self._starts[min(node.line, len(self._starts)) - 1] + node.col - 1
        for _ in range(text.count(part, 0, offset) if part else 0):
            at = self._text.find(part, at) + len(part)
        at = self._text.find(part, at)
        if at < 0 or not part:
            return {"line": node.line, "col": node.col}
        line = bisect_right(self._starts, at)
        col = at - self._starts[line - 1] + 1
        return {"line": line, "col": col, "end_col": col + len(part)}


def _decisions(root: Node) -> Iterator[RawStep]:
    """Yield a step for each decision of the plan that belongs to none."""
    listed = root.get("decisions")
    for name, value in members(listed):
        key = listed.key(name) if listed is not None else value
        node = Node(MAPPING, {"id": key, "decide": value}, key.line, key.col)
        node.keys = {"id": key, "decide": key}
        yield RawStep(node, "steps", 0)


def _undos_of(raw: RawStep) -> list[RawStep]:
    """Return what undoes a step: it comes after that has completed, or ended if it is for failures, too."""
    written = raw.keys["rollback"]
    several = written.kind == SEQUENCE
    nodes = [node for node in (written.value if several else [written]) if node.kind == MAPPING]
    words = [scalar(node.get("on_failed")) for node in nodes]
    on_failed = any(word is not None and word.value.lower() == "true" for word in words)
    found = []
    for number, node in enumerate(nodes, 1):
        undo = RawStep(node, "rollback", 0)
        undo.id, undo.undoes = undo_id(raw.id, number), raw
        undo.links = [Link(raw.id, "done" if on_failed else "completed", raw.node.key("rollback"), "undo")]
        found.append(undo)
    return found


def scalar(node: Node | None) -> Node | None:
    """Return a scalar node that has a text, or None."""
    return node if node is not None and node.kind == SCALAR and node.value else None


def entries(node: Node | None) -> list[Node]:
    """Return the scalars of a list, or a single scalar as a list of one."""
    if node is None:
        return []
    if node.kind == SEQUENCE:
        return [item for item in node.value if item.kind == SCALAR]
    return [node] if node.kind == SCALAR and node.value else []


def env_files(node: Node | None) -> Iterator[tuple[Node, bool]]:
    """Yield the texts of a list, of an env file its path, and whether it may be missing."""
    for item in node.value if node is not None and node.kind == SEQUENCE else (node,):
        if item is not None and item.kind == MAPPING:
            path, required = scalar(item.get("path")), scalar(item.get("required"))
            if path is not None and path.value:
                yield path, required is not None and required.value.lower() == "false"
        elif item is not None and item.kind == SCALAR and (item.value or item is not node):
            yield item, False


def produced(node: Node | None) -> Iterator[tuple[Node, str]]:
    """Yield the patterns under `produces`, each with the word that says when its files are wanted."""
    for item in node.value if node is not None and node.kind == SEQUENCE else [node]:
        when = item.get("when") if item is not None and item.kind == MAPPING else None
        for pattern in entries(item.get("path") if item is not None and item.kind == MAPPING else item):
            yield pattern, when.value if when is not None else "always"


def members(node: Node | None) -> Iterator[tuple[str, Node]]:
    """Yield the keys and values of a mapping."""
    if node is not None and node.kind == MAPPING:
        yield from node.value.items()


def texts_in(node: Node | None) -> Iterator[Node]:
    """Yield every scalar of a value."""
    waiting = [node] if node is not None else []
    while waiting:
        found = waiting.pop()
        if found.kind == SCALAR:
            yield found
        else:
            inside = found.value if found.kind == SEQUENCE else found.value.values()
            waiting += list(inside)[::-1]
