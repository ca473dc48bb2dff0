"""Facts about each kind of file that is read as YAML, by the noun that messages use for it.

How many keys and values a file may have: more for each step, so that large plans are read and bombs are not.

From the bytes of a plan file to nodes with line and column; the only module that knows the YAML library.

It reads events, not PyYAML's own trees: those keep the last of two equal keys, turn `no` into False, build Python
objects from tags, and die of a 60 KB file that is nested deeply enough.
"""

from __future__ import annotations

import gc
import sys

from planrun.plan.problems import MAX_PROBLEMS, Problem, did_you_mean
from planrun.plan.tables import OBJECTS
from planrun.plan.yaml.file import BOUNDS, read_source
from planrun.plan.yaml.library import parser
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE, Node
from planrun.plan.yaml.text import after_end, decode, directive, explain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

BEGINNINGS = {
    "file": "it is empty",
    "plan": "begin it with `version: 1`",
    "policy": "e.g. `auto_approve: medium`",
    "project file": "e.g. `plan: plans/release.yml`",
    "recording": "remove it, and record it again",
}
"""The hint where there is nothing in a file."""
KEYS = {
    "file": "`jobs:`, `tasks:` or `steps:`",
    "plan": "`version:` and `steps:`",
    "policy": "`auto_approve:` and `rules:`",
    "project file": "`plan:`",
    "recording": "`version:` and `answer:`",
}
"""Keys that such a file has, for one that holds no mapping."""


MAX_NODES = 1_800_000  # keys and values: 100,000 steps with a dozen each, a list and themselves
FREE_NODES = 600_000  # so many may a file of any form have: a second and 100 MiB
STEP_NODES = 60  # and so many more for each step
LIST_NODES, MAPPING_NODES = 2, 5  # what a list and a mapping count as, by the time and memory that they cost
WORDS = (
    f"{FREE_NODES:,} keys and values, {STEP_NODES} more for each step, and never more than {MAX_NODES:,}",
    f"a list counts as {LIST_NODES}, a mapping as {MAPPING_NODES}",
)


class Budget:
    """What one file may hold, as far as it was read."""

    def __init__(self) -> None:
        self._counted: dict[str, tuple[int, int]] = {}  # by section: entries counted, and steps among them

    def allows(self, count: int, root: Node | None) -> bool:
        """Say whether a file may have so many keys and values, when `root` is what was read of it."""
        if count <= FREE_NODES or root is None:
            return count <= FREE_NODES
        rules = OBJECTS["Step"]
        for section in ("steps", "finally"):
            listed = root.get(section)
            if listed is None or listed.kind != SEQUENCE:
                continue
            begun, found = self._counted.get(section, (0, 0))
            ended = max(begun, len(listed.value) - 1)  # the last one is still being read
            for entry in listed.value[begun:ended]:
                found += entry.kind == MAPPING and all(
                    key in rules and rules[key][value.kind] is not None for key, value in entry.value.items()
                )
            self._counted[section] = (ended, found)
        return count <= min(
            MAX_NODES, FREE_NODES + STEP_NODES * sum(found for _, found in self._counted.values())
        )


__all__ = ["MAPPING", "SCALAR", "SEQUENCE", "Node", "parse", "read_source", "read_tree"]

_READ_AGAIN = 1 << 16
"""Characters that PyYAML's own parser reads in half a second."""
MAX_DEPTH = 64  # levels of lists and mappings; the plan itself is the first
MAX_ENTRIES = 120_000  # entries of one list or mapping
MAX_ANCHORS = 10_000  # of one file: each is kept to its end, and costs as much as three values
MAX_EXPANDED = 400_000  # keys and values that aliases add: 10,000 steps may each merge fifteen keys

_STRIDE = 10_000  # how many values are read between two looks at the limits
_MERGE = "<<"
_DROPPED = "(dropped)"  # compared by identity: the value of a refused key is read and thrown away


class _StopError(Exception):
    """Reading cannot go on; `problem` says why."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


class _Anchored:
    """A value with an anchor: its weight in nodes and levels, both 0 while it is still being read."""

    __slots__ = ("levels", "node", "size")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.size = 0
        self.levels = 0


def parse(data: bytes, file: str) -> tuple[Node | None, list[Problem]]:
    """Read YAML into a node tree; the tree is None when the file cannot be read to its end.

    `file` names it in problems. A tree together with problems holds everything but what the problems are about.
    """
    root, problems, complete = read_tree(data, file)
    return root if complete else None, problems


def read_tree(
    data: bytes, file: str, noun: str = "plan", *, keeps_last: bool = False
) -> tuple[Node | None, list[Problem], bool]:
    """Read like `parse`, but give the tree as far as it was read, and whether that is all of it.

    `noun`: what the file is, in messages. `keeps_last`: of a key that is there twice the tree has the last value.
    """
    text, problems = decode(data, file)
    if text is None:
        return None, problems, False
    reading = _Reading(text, file, noun)
    reading.keeps_last = keeps_last
    collecting = gc.isenabled()
    gc.disable()  # nothing read here is garbage; looking for some costs as much again as reading
    try:
        complete = reading.read()
    finally:
        if collecting:
            gc.enable()
    return reading.root, reading.problems, complete


class _Reading:
    """One pass over the events of one file."""

    def __init__(self, text: str, file: str, noun: str = "plan") -> None:
        self.text = text
        self.file = file
        self.noun = noun
        self.keeps_last = False
        self.problems: list[Problem] = []
        self.anchors: dict[str, _Anchored] = {}
        self.root: Node | None = None
        self.expanded = 0
        self.budget = Budget()

    def read(self) -> bool:
        """Read everything into `root` and `problems`; False if it had to stop before the end."""
        get_event = events(self.text)
        from yaml.error import YAMLError

        try:
            self._refuse(directive(self.text, self.file))
            self._build(get_event)
        except _StopError as stop:
            self.problems.append(stop.problem)
            return False
        except (YAMLError, ValueError, OverflowError) as error:  # the latter two: escapes beyond Unicode
            problem = explain(error, self.text, self.file)
            self.problems.append(self._first_too_deep(problem) if problem.code == "E012" else problem)
            return False
        return True

    def _first_too_deep(self, problem: Problem) -> Problem:
        """Return the finding at the first level too many: libyaml stops 1,000 levels deep, before any event of them."""
        *before, last = self.text.split("\n", problem.line)[: problem.line]
        text = "\n".join([*before, last[: problem.col]])
        if len(text) > _READ_AGAIN:
            return problem
        from yaml.error import YAMLError

        again = _Reading(text, self.file, self.noun)
        try:
            again._build(_pure_python(text))
        except _StopError as stop:
            return stop.problem
        except YAMLError:  # the text ends here, too early
            return problem
        return problem

    def _build(self, get_event: Callable[[], Any]) -> None:  # noqa: C901, PLR0912, PLR0915
        """Make nodes of events; one loop without calls, since a call for each event would cost as much as its event."""
        import yaml.events as kinds

        scalar, alias = kinds.ScalarEvent, kinds.AliasEvent
        mapping, mapping_end = kinds.MappingStartEvent, kinds.MappingEndEvent
        sequence, sequence_end = kinds.SequenceStartEvent, kinds.SequenceEndEvent
        intern = sys.intern
        # The container being filled: its values, the key nodes of a mapping, the key whose value is due, and the
        # deepest level seen inside; what lies around it waits in `stack`.
        current: Any = None
        values: Any = None
        keys: dict[str, Node] | None = None
        key: str | None = None
        anchor: tuple[_Anchored, int] | None = None
        deepest = 0
        stack: list[tuple[Any, ...]] = []
        count = 0
        checkpoint = _STRIDE
        most_deep = BOUNDS.depth or MAX_DEPTH
        while True:
            event = get_event()
            kind = event.__class__
            if kind is scalar:
                mark = event.start_mark
                style = event.style
                node = Node(SCALAR, event.value, mark.line + 1, mark.column + 1, not style)
                count += 1
                if event.anchor is not None or event.tag is not None:
                    self._properties(event, node)
                if style == '"' and not node.value.isprintable():
                    self._escapes(node)
            elif kind is mapping or kind is sequence:
                mark = event.start_mark
                if kind is mapping:
                    node = Node(MAPPING, {}, mark.line + 1, mark.column + 1)
                    node.keys = {}
                    count += MAPPING_NODES
                else:
                    node = Node(SEQUENCE, [], mark.line + 1, mark.column + 1)
                    count += LIST_NODES
            elif kind is alias:
                node, size, levels = self._alias(event)
                count += size
                deepest = max(deepest, len(stack) + levels)
                if deepest > most_deep:
                    raise self._too_deep(event)
            elif kind is mapping_end or kind is sequence_end:
                if len(values) > MAX_ENTRIES:
                    raise self._too_long(event)
                if keys is not None and _MERGE in keys:
                    self._merge(current)
                if anchor is not None:
                    anchor[0].size = count - anchor[1]
                    anchor[0].levels = deepest - len(stack) + 1
                inner = deepest
                current, values, keys, key, anchor, deepest = stack.pop()
                deepest = max(deepest, inner)
                continue
            elif self._outside(event):
                self._limits(count, [], event)
                return
            else:
                continue

            if count >= checkpoint:
                self._limits(count, [values, *(frame[1] for frame in stack)], event)
                checkpoint = count + _STRIDE
            if keys is not None:
                if key is None:
                    if kind is scalar and (node.value or not node.plain):
                        key = intern(node.value)
                        if key in keys:
                            self._duplicate(keys[key], node)
                            if self.keeps_last:
                                keys[key] = node
                            else:
                                key = _DROPPED
                        else:
                            keys[key] = node
                            node.value = key  # one text for all steps
                    else:
                        self._refuse_key(node, event)
                        key = _DROPPED
                elif key is _DROPPED:
                    key = None
                else:
                    values[key] = node
                    key = None
            elif values is not None:
                values.append(node)
            else:
                self._start(node)
            if kind is mapping or kind is sequence:
                if len(stack) >= most_deep:
                    raise self._too_deep(event)
                stack.append((current, values, keys, key, anchor, deepest))
                current = node
                deepest = len(stack)
                key = None
                anchor = None
                if event.anchor is not None or event.tag is not None:
                    anchored = self._properties(event, node)
                    weight = MAPPING_NODES if kind is mapping else LIST_NODES
                    anchor = (anchored, count - weight) if anchored else None
                values = node.value
                keys = node.keys if kind is mapping else None

    def _limits(self, count: int, open_values: list[Any], event: Any) -> None:
        """Stop at a file with more values than any plan has; checked at intervals and at the end."""
        if not self.budget.allows(count, self.root):
            raise self._stop("E021", f"too many values: a plan has at most {WORDS[0]}", event, WORDS[1])
        if any(values and len(values) > MAX_ENTRIES for values in open_values):
            raise self._too_long(event)

    def _start(self, node: Node) -> None:
        """Take the outermost value; anything but a mapping is refused before the rest of it is read."""
        if node.kind == SCALAR and not node.value:
            raise self._stop("E006", f"no {self.noun} in this file", None, BEGINNINGS[self.noun])
        if node.kind != MAPPING:
            found = "a list" if node.kind == SEQUENCE else "a string"
            problem = Problem(
                code="E101",
                message=f"expected a mapping with keys such as {KEYS[self.noun]}, got {found}",
                file=self.file,
                line=node.line,
                col=node.col,
            )
            raise _StopError(problem)
        self.root = node

    def _outside(self, event: Any) -> bool:
        """Look at what stands around the document; True when everything has been read."""
        from yaml.events import DocumentEndEvent, StreamEndEvent

        if isinstance(event, StreamEndEvent):
            raise self._stop("E006", f"no {self.noun} in this file", None, BEGINNINGS[self.noun])
        if not isinstance(event, DocumentEndEvent):
            return False
        # The next event is never asked for: it could be the start of half a million directives.
        end: Any = event.end_mark
        self._refuse(after_end(self.text, end.index, self.file))
        return True

    def _escapes(self, node: Node) -> None:
        """Refuse what escapes can write and no process can be given."""
        if "\0" in node.value:
            self._report("E114", "a string cannot contain NUL", node)
        elif any(
            "\ud800" <= character <= "\udfff" for character in node.value
        ):  # libyaml does not let it through
            self._report("E010", "invalid Unicode escape", node, "write the character itself")

    def _refuse(self, problem: Problem | None) -> None:
        if problem is not None:
            raise _StopError(problem)

    def _properties(self, event: Any, node: Node) -> _Anchored | None:
        """Refuse a tag; remember an anchor. A scalar's anchor is complete at once."""
        if event.tag is not None:
            self._report("E014", "YAML tags such as !x are not accepted", node, "remove the tag")
        if event.anchor is None:
            return None
        earlier = self.anchors.get(event.anchor)
        if earlier is not None:
            self._duplicate(earlier.node, node, "anchor")
        elif len(self.anchors) >= MAX_ANCHORS:
            raise self._stop("E021", f"the plan has more than {MAX_ANCHORS:,} anchors", event)
        anchored = self.anchors[event.anchor] = _Anchored(node)
        anchored.size = 1 if node.kind == SCALAR else 0
        return anchored

    def _alias(self, event: Any) -> tuple[Node, int, int]:
        """Return the value that an alias names, how many nodes it adds, and how many levels."""
        anchored = self.anchors.get(event.anchor)
        if anchored is None:
            raise self._stop(
                "E015",
                "unknown alias: no anchor of this name above",
                event,
                did_you_mean(event.anchor, self.anchors) or "quote text that begins with *",
            )
        if not anchored.size:
            raise self._stop("E016", "recursive alias: the value contains itself", event)
        self.expanded += anchored.size
        if self.expanded > MAX_EXPANDED:
            raise self._stop("E017", f"aliases expand to more than {MAX_EXPANDED:,} values", event)
        return anchored.node, anchored.size, anchored.levels

    def _merge(self, node: Node) -> None:
        """Put what `<<` names into the mapping; its own keys win, then the earlier of several sources."""
        if not node.keys[_MERGE].plain:
            return  # "<<" in quotes is a key like any other
        place_of_key = node.keys.pop(_MERGE)
        source = node.value.pop(_MERGE, None)
        if source is None:
            return
        sources = source.value if source.kind == SEQUENCE else [source]
        if not all(each.kind == MAPPING for each in sources):
            self._report(
                "E022",
                "invalid merge: `<<` must be a mapping or a list of mappings",
                place_of_key,
                "write `<<: *name`",
            )
            return
        for each in sources:
            for name, value in each.value.items():
                if name not in node.value:
                    node.value[name] = value
                    node.keys[name] = each.keys[name]

    def _duplicate(self, first: Node, second: Node, what: str = "key") -> None:
        name = f' "{second.value}"' if what == "key" and len(second.value) <= 100 else ""
        self._report(
            "E018",
            f"duplicate {what}{name}, first on line {first.line}",
            second,
            "merge the two, or remove one",
        )
        self.problems[-1] = self.problems[-1].but(related=((first.line, first.col, "first defined here"),))

    def _refuse_key(self, node: Node, event: Any) -> None:
        mark = event.start_mark  # of an alias; the node is where its anchor stands
        if (mark.line, mark.column) != (node.line - 1, node.col - 1):
            node = Node(MAPPING, {}, mark.line + 1, mark.column + 1)
            message, hint = "an alias cannot be a key", "write the key out"
        elif node.kind != SCALAR:
            message, hint = "a list or mapping cannot be a key", "quote text that begins with [ or {"
        else:
            message, hint = "empty key", "write the key before the `:`"
        self._report("E019", message, node, hint)

    def _report(self, code: str, message: str, node: Node, hint: str = "") -> None:
        if len(self.problems) >= MAX_PROBLEMS:
            raise _StopError(
                Problem(
                    code="E199",
                    message="too many problems; the rest of the file was not read",
                    file=self.file,
                    line=node.line,
                    col=node.col,
                )
            )
        self.problems.append(
            Problem(
                code=code,
                message=message,
                file=self.file,
                line=node.line,
                col=node.col,
                end_col=node.end_col,
                hint=hint,
            )
        )

    def _stop(self, code: str, message: str, event: Any, hint: str = "") -> _StopError:
        mark = event.start_mark if event is not None else None
        line, col = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        return _StopError(Problem(code=code, message=message, file=self.file, line=line, col=col, hint=hint))

    def _too_long(self, event: Any) -> _StopError:
        message = f"a list or mapping has more than {MAX_ENTRIES:,} entries"
        return self._stop("E021", message, event)

    def _too_deep(self, event: Any) -> _StopError:
        return self._stop("E012", f"nested more than {BOUNDS.depth or MAX_DEPTH} levels deep", event)


def events(text: str) -> Callable[[], Any]:
    """Return the function that gives the next event: libyaml's, or PyYAML's own where that was left out.

    `text` has no byte order mark; the marks of both count characters.
    """
    binding = parser()
    if binding is None:
        return _pure_python(text)
    get_event: Callable[[], Any] = binding(text.encode()).get_event
    return get_event


def _pure_python(text: str) -> Callable[[], Any]:
    from yaml.parser import Parser
    from yaml.reader import Reader
    from yaml.scanner import Scanner

    class Events(Reader, Scanner, Parser):
        """The first three stages of PyYAML's loader; what they call each other by is `self`."""

        def __init__(self) -> None:
            Reader.__init__(self, text)
            Scanner.__init__(self)
            Parser.__init__(self)

    return Events().get_event
