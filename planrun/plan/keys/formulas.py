"""The expressions of a plan: where they stand, and what each text becomes; each is parsed once.

Texts without `${{` are never parsed, so that a plain plan does not load the grammar.
"""

from __future__ import annotations

from planrun.model.plan import marked
from planrun.plan.keys.outline import Outline, RawStep, entries, env_files, members, produced, texts_in
from planrun.plan.keys.table import PLAN, STEP
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from planrun.expressions.check import Reference
    from planrun.expressions.tree import Tree
    from planrun.model.plan import Text

    Places = Iterator[tuple[Node, str]]
    Keys = Mapping[str, Node]


LIST_CHECKS = ("files_exist", "writable", "commands_on_path", "env_set")
COMPLETED = "dependencies_completed"
ALL_COMPLETED = "all_completed"  # its form without a list


def of_plan(root: Node) -> Places:
    """Yield the places of a plan that belong to no step."""
    for key, places in _OF_PLAN.items():
        if key in root.value:
            yield from places(root.value[key], root.value)


def of_step(step: RawStep) -> Places:
    """Yield the places of a step but its script, in the order of the table of keys."""
    keys = step.keys
    for key, places in _OF_STEP.items():
        if key in keys:
            yield from places(keys[key], keys)


def _files(node: Node, _keys: Keys) -> Places:
    for item, _ in env_files(node):
        yield item, "general"


def _variables(node: Node, _keys: Keys) -> Places:
    yield from _scalars(node, "general")


def _defaults(node: Node, keys: Keys) -> Places:
    workdir = node.get("workdir")
    if workdir is not None:
        yield from _files(workdir, keys)


def _outputs(node: Node, _keys: Keys) -> Places:
    yield from _scalars(node, "outputs")


def _condition(node: Node, _keys: Keys) -> Places:
    if node.kind == SCALAR:
        yield node, "condition"


def _texts(node: Node, _keys: Keys) -> Places:
    for item, _ in env_files(node):
        yield item, "text"


def _produced(node: Node, _keys: Keys) -> Places:
    for pattern, _ in produced(node):
        yield pattern, "text"


def _env(node: Node, _keys: Keys) -> Places:
    yield from _scalars(node, "text")


def _checks(node: Node, _keys: Keys) -> Places:
    for item in node.value if node.kind == SEQUENCE else ():
        yield from _of_check(item, "that")


def _proofs(node: Node, _keys: Keys) -> Places:
    for item in node.value if node.kind == SEQUENCE else ():
        yield from _of_check(item, "proof")


def _of_call(node: Node, keys: Keys) -> Places:
    tool = keys.get("tool")
    name = tool.value if tool is not None and tool.kind == SCALAR else ""
    if not name:
        return
    from planrun.model.tools import is_script  # few plans call tools

    for key, value in members(node):
        kind = "script" if is_script(name, key) else "text"
        waiting = [value]
        while waiting:
            part = waiting.pop()
            if part.kind == SCALAR:
                yield part, kind
            else:
                waiting += reversed([*(part.value.values() if part.kind == MAPPING else part.value)])


def _within(node: Node, _keys: Keys) -> Places:
    for _, value in members(node):
        yield from _texts(value, _keys)


def _axes(node: Node, _keys: Keys) -> Places:
    for _, axis in members(node):
        if axis.kind == SCALAR:
            yield axis, "list"


def _items(node: Node, _keys: Keys) -> Places:
    items = node.get("items") if node.kind == MAPPING else node
    if items is not None and items.kind == SCALAR:
        yield items, "list"
    key = node.get("key")
    if key is not None and key.kind == SCALAR:
        yield key, "key"


def _given(node: Node, _keys: Keys) -> Places:
    for text in texts_in(node):
        yield text, "given"


def _of_gate(node: Node, _keys: Keys) -> Places:
    question = node.get("question")
    if question is not None and question.kind == SCALAR:
        yield question, "question"
    options = node.get("options")
    for option in options.value if options is not None and options.kind == SEQUENCE else ():
        when = option.get("when")
        if when is not None and when.kind == SCALAR:
            yield when, "when"


def _of_agent(node: Node, _keys: Keys) -> Places:
    for key in ("prompt", "task", "prompt_suffix"):
        text = node.get(key)
        if text is not None and text.kind == SCALAR:
            yield text, "text"


def _of_commands(node: Node, _keys: Keys) -> Places:
    for command in node.value if node.kind == SEQUENCE else [node]:
        if command.kind == SCALAR:
            yield command, "script"
        else:
            yield from ((word, "text") for word in entries(command))


def _ready(node: Node, _keys: Keys) -> Places:
    run = node.get("run")
    if run is not None and run.kind == SCALAR:
        yield run, "script"


def container_places(node: Node) -> list[tuple[Node, str]]:
    """Return where expressions stand in a container."""
    if node.kind == SCALAR:
        return [(node, "text")]
    found = [node.get("image"), node.get("user")]
    for key in ("env", "volumes"):
        held = node.get(key)
        if held is not None:
            found += (
                held.value.values() if held.kind == MAPPING else held.value if held.kind != SCALAR else []
            )
    return [(each, "text") for each in found if each is not None and each.kind == SCALAR]


def _container(node: Node, _keys: Keys) -> Places:
    yield from container_places(node)


def _of_check(item: Node, kind: str) -> Places:
    """Yield what a check reads; `kind`: of its expression."""
    for name, node in members(item):
        if name == "that":
            if node.kind == SCALAR:
                yield node, kind
        elif name == "json_schema":
            named = (value for key, value in members(node) if key in ("file", "schema"))
            yield from ((value, "text") for value in named if value.kind == SCALAR)
        elif name == COMPLETED:
            listed = node.kind == SEQUENCE
            yield from ((value, COMPLETED if listed else ALL_COMPLETED) for value in entries(node))
        elif name in LIST_CHECKS:
            yield from ((value, "text") for value in entries(node))


def _scalars(node: Node | None, kind: str) -> Places:
    for _, value in members(node):
        if value.kind == SCALAR:
            yield value, kind


# By the name that the table of keys has for what the texts of a key are.
PLACES: dict[str, Callable[[Node, Keys], Places]] = {
    "condition": _condition,
    "texts": _texts,
    "patterns": _produced,
    "within": _within,
    "named": _env,
    "checks": _checks,
    "proofs": _proofs,
    "commands": _of_commands,
    "probe": _ready,
    "container": _container,
    "question": _of_gate,
    "given": _given,
    "axes": _axes,
    "items": _items,
    "call": _of_call,
    "agent": _of_agent,
    "files": _files,
    "variables": _variables,
    "defaults": _defaults,
    "outputs": _outputs,
}
_OF_STEP = {key: PLACES[row.holds] for key, row in STEP.items() if row.holds in PLACES}
_OF_PLAN = {key: PLACES[row.holds] for key, row in PLAN.items() if row.holds in PLACES}
_WITH_FORMULAS = frozenset(_OF_STEP)  # besides `run`, which is read first


OPEN = "${{"
CONDITIONS = ("condition", "that", "proof", "when")
BARE = (*CONDITIONS, "key")
MAX_BROKEN = 20  # interpolations of one text whose errors are reported
MAX_PARSED = (
    800_000  # characters of all different expressions of a plan: a second and a half; 10,000 short ones
)
PLACE = 55  # characters that each expression counts besides its own


class Formula:
    """An expression or template in its place: `owner` is its step, None for the plan's own.

    kind: condition, that, proof, when, key (bare expressions; a proof is made when its step ended); script (`run:`),
    question, text, list (what a step has instances of), given (to a plan that is used); of the plan itself: general,
    outputs.
    """

    __slots__ = ("kind", "node", "owner", "references", "value")

    def __init__(self, node: Node, kind: str, owner: RawStep | None, value: Tree) -> None:
        self.node = node
        self.kind = kind
        self.owner = owner
        self.value = value
        from planrun.expressions.check import references

        self.references: tuple[Reference, ...] = references(value)


class Formulas:
    """All formulas of an outline; `text` and `tree` give what a node became, for the plan that is made of it.

    `parsed`: what of the budget was used up before.
    """

    def __init__(self, outline: Outline, parsed: int = 0) -> None:
        self.outline = outline
        self.listed: list[Formula] = []
        self.parsed = parsed  # characters that were parsed, and what each expression adds
        self._values: dict[tuple[str, str], Text] = {}  # by what was written, and in which grammar
        for node, kind in of_plan(outline.root):
            self._read(node, kind, None)
        for raw in (*outline.steps, *outline.undos) if outline.undos else outline.steps:
            keys = raw.keys
            if "run" in keys and keys["run"].kind == SCALAR and OPEN in keys["run"].value:
                self._read(keys["run"], "script", raw)
            if not _WITH_FORMULAS.isdisjoint(keys):
                for node, kind in of_step(raw):
                    self._read(node, kind, raw)

    def text(self, node: Node, *, script: bool = False) -> Text:
        """Return the text or template of a scalar."""
        text: str = node.value
        return self._values.get((text, "script" if script else "text"), text) if OPEN in text else text

    def texts(self, node: Node | None) -> dict[str, Text]:
        """Return the texts of a mapping by name."""
        return {name: self.text(value) for name, value in members(node)}

    def words(self, node: Node | None) -> tuple[Text, ...]:
        """Return the texts of a list; of an env file that may be missing as a mark of that and the text."""
        found = [(self.text(item), may_lack) for item, may_lack in env_files(node)]
        return tuple([marked(text) if may_lack else text for text, may_lack in found])

    def tree(self, node: Node) -> Tree:
        """Return the tree of a bare expression that had no problems."""
        tree = self._values[node.value, "bare"]
        assert isinstance(tree, tuple)
        return tree

    def known(self, node: Node) -> Tree | None:
        """Return the tree of a bare expression, None for one that has problems."""
        found = self._values.get((node.value, "bare"))
        return found if isinstance(found, tuple) else None

    def _read(self, node: Node, kind: str, owner: RawStep | None) -> None:
        if kind in (COMPLETED, ALL_COMPLETED) and owner is not None:
            # Reports `true` in a step that depends on nothing: such a check could not fail
            if kind == COMPLETED:
                at = (0, len(node.value))
                path, const = ("path", *at, ("steps", node.value, "status")), ("const", *at, "completed")
                self.listed.append(Formula(node, "that", owner, ("compare", *at, "==", path, const)))
            elif not owner.links:
                message = f'step "{owner.id}" depends on no step'
                hint = "add `depends_on`, or list the steps that must have completed"
                self.outline.report("E208", message, node, hint)
        elif kind in BARE or OPEN in node.value:
            value = self._parse(node, kind)
            if isinstance(value, tuple):
                self.listed.append(Formula(node, kind, owner, value))
                if kind == "condition" and owner is not None:
                    owner.condition = value

    def _parse(self, node: Node, kind: str) -> Text | None:
        """Return the parsed node; for a broken template the valid parts, so that all errors are reported at once."""
        grammar = "bare" if kind in BARE else "script" if kind == "script" else "text"
        key = (node.value, grammar)
        if key in self._values:
            return self._values[key]
        from planrun.expressions.parse import parse, parse_script, parse_template
        from planrun.expressions.tree import ExpressionError

        read = {"bare": parse, "script": parse_script, "text": parse_template}[grammar]
        text: str | None = node.value
        for _ in range(MAX_BROKEN):
            if text is None or not self._affords(node, text):
                break
            try:
                value: Text = read(text)
            except ExpressionError as error:
                self.outline.report_in(node, "E210", error)
                text = _without(text, error.offset) if grammar != "bare" else None
                continue
            if text == node.value:
                self._values[key] = value
            return value
        return None

    def _affords(self, node: Node, text: str) -> bool:
        """Say whether a text can still be parsed; the first that cannot is reported."""
        if self.parsed > MAX_PARSED or self.outline.is_full:
            return False
        self.parsed += _length(text) + PLACE * max(text.count(OPEN), 1)
        if self.parsed > MAX_PARSED:
            message = f"the expressions of the plan have more than {MAX_PARSED:,} characters"
            hint = f"each counts {PLACE} extra characters; equal ones count once"
            self.outline.report("E241", message, node, hint)
            return False
        return True


def _length(text: str) -> int:
    """Return how many characters of a text can belong to expressions, those of each up to its first `}}`."""
    if OPEN not in text:
        return len(text)
    return sum(len(part.partition("}}")[0]) for part in text.split(OPEN)[1:])


def _without(text: str, offset: int) -> str | None:
    """Return a template with spaces in place of the interpolation at `offset`; None when it is not closed."""
    from planrun.expressions.parse import CLOSE, pieces
    from planrun.expressions.tree import ExpressionError

    try:
        places = [piece for piece in pieces(text) if isinstance(piece, tuple)]
    except ExpressionError:
        return None
    for start, end in places:
        before, after = start - len(OPEN), end + len(CLOSE)
        if before <= offset < after:
            return text[:before] + " " * (after - before) + text[after:]
    return None
