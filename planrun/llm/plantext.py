"""Plan text from what a model wrote: exact quoting, the steps that replace an abstract step, places of problems."""

from __future__ import annotations

import re
from bisect import bisect_right

from planrun.expressions.parse import parse as parse_expression
from planrun.expressions.tree import ExpressionError
from planrun.llm.drafts import KEYS, Fault
from planrun.model.plan import Edge
from planrun.model.record import Record
from planrun.plan.edit.page import copied_keys
from planrun.plan.keys.outline import EDGE_KINDS, Outline
from planrun.plan.yaml.document import MAPPING, SEQUENCE, parse, read_tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from planrun.llm.drafts import Draft, DraftStep
    from planrun.model.plan import Plan
    from planrun.plan.problems import Problem
    from planrun.plan.yaml.node import Node

WIDTH = 100  # columns: lists that are longer stand one entry a line
MAX_COMMENT = 500  # characters of one comment

# An id, or another word without blanks; it may stand in a flow list, too.
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9._-]*\Z")
_NUMBER = re.compile(r"(?:0|[1-9][0-9]{0,8})\Z")
# A line of text that no reader takes for anything else where a key has a block to itself.
_PLAIN = re.compile(r"(?:[A-Za-z_]|\./)[!-~]*(?: [!-~]+)*\Z")
# What YAML 1.1 reads as true, false or nothing.
_TAKEN = frozenset(("y", "yes", "n", "no", "true", "false", "on", "off", "null"))
_ESCAPES = {"\0": "\\0", "\t": "\\t", "\n": "\\n", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


class Quoted(str):
    """A text that could be taken for a number where any value may stand: always in quotes."""

    __slots__ = ()


def step_text(step: DraftStep, indent: int, extra: Mapping[str, Any], notes: Sequence[str] = ()) -> str:
    """Return one step as an entry of a list of steps; its `-` stands `indent` columns from the left.

    `extra` are more keys of the step as plain data (texts, numbers, booleans, None, lists, mappings); they win over
    what the draft says under the same key. `notes` become comments above the step, and so does what the draft asks a
    reviewer to look at. An empty `run` gives an abstract step. The text ends with a line end.
    """
    said = [*notes, *([f"review: {step.review}"] if step.review.strip() else [])]
    return entry_text({**keys_of(step), **extra}, indent, said)


def keys_of(step: DraftStep) -> dict[str, Any]:
    """Return a step's keys in the plan, as plain data."""
    found: dict[str, Any] = {"id": step.id}
    for key in KEYS:
        value = getattr(step, key.name)
        if key.plan and value != key.empty:
            write = _WRITTEN.get(key.name)
            found |= write(value) if write else {key.plan: list(value) if key.kind == "words" else value}
    return found


# Keys that stand in a plan in another way than in a draft.
_WRITTEN: dict[str, Callable[[Any], dict[str, Any]]] = {
    "outputs": lambda names: {"outputs": dict.fromkeys(names, "string")},
    "matrix": lambda axes: {"matrix": {name: [*map(Quoted, _values(texts))] for name, texts in pairs(axes)}},
    "params": lambda given: {"with": {name: _given(text) for name, text in pairs(given)}},
    "ready": lambda command: {"service": True, "ready": {"run": command}},
    "ask": lambda question: {"ask": {"question": question}},
}


def pairs(words: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the names and the values of entries such as `python=3.11,3.12`."""
    for word in words:
        name, _, value = word.partition("=")
        yield name, value


def _values(text: str) -> list[str]:
    return [value.strip() for value in text.split(",")]


def _given(text: str) -> Any:
    """Return a parameter: a number, true or false as such, all else as a text."""
    if text in ("true", "false"):
        return text == "true"
    return text if _NUMBER.match(text) else Quoted(text)


def entry_text(keys: Mapping[str, Any], indent: int, notes: Sequence[str] = ()) -> str:
    """Return a step's keys, plain data, as an entry of a list; `notes` become comments above it."""
    margin = " " * indent
    above = "".join([f"{margin}{comment(note)}\n" for note in notes])
    text = "".join(_pairs(keys, indent + 2))
    return f"{above}{margin}- {text[indent + 2 :]}"


def plan_text(
    heading: Sequence[str], keys: Mapping[str, Any], steps: Sequence[str], cleanup: Sequence[str] = ()
) -> str:
    """Return a whole plan: comments, the keys above the steps as plain data, and the texts of its steps.

    `cleanup`: the texts of the steps under `finally`.
    """
    top = "".join([f"{comment(line)}\n" for line in heading])
    end = f"\nfinally:\n{chr(10).join(cleanup)}" if cleanup else ""
    return f"{top}{''.join(_pairs(keys, 0))}\nsteps:\n{chr(10).join(steps)}{end}"


def comment(text: str) -> str:
    """Return a text as one line of comment: blanks and line ends become one blank, what cannot be seen an escape."""
    line = " ".join(text.split())
    line = "".join([char if char.isprintable() else _escape(char) for char in line])
    if len(line) > MAX_COMMENT:
        line = f"{line[: MAX_COMMENT - 1]}…"
    return f"# {line}" if line else "#"


def _pairs(keys: Mapping[str, Any], indent: int) -> Iterator[str]:
    for name, value in keys.items():
        yield f"{' ' * indent}{_word(name)}:{_value(value, indent)}"


def _value(value: Any, indent: int) -> str:
    """Return what stands behind the colon of a key that is `indent` columns from the left, its line end included."""
    if isinstance(value, str):
        return f" {_text(value, indent)}\n"
    if isinstance(value, list | tuple):
        return _list(list(value), indent)
    if isinstance(value, dict):
        small = "{" + ", ".join([f"{_word(name)}: {_flow(each)}" for name, each in value.items()]) + "}"
        if not any([isinstance(each, dict | list | tuple) for each in value.values()]) and _fits(small):  # noqa: C419
            return f" {small}\n"
        return "\n" + "".join(_pairs(value, indent + 2))
    return f" {_flow(value)}\n"


def _list(items: list[Any], indent: int) -> str:
    if all(not isinstance(item, dict | list | tuple) for item in items):
        small = "[" + ", ".join(map(_flow, items)) + "]"
        if _fits(small):
            return f" {small}\n"
    margin = " " * (indent + 2)
    rows = []
    for item in items:
        if isinstance(item, dict) and item:
            rows.append(f"{margin}- {''.join(_pairs(item, indent + 4))[indent + 4 :]}")
        else:
            rows.append(f"{margin}-{_value(item, indent + 2)}")
    return "\n" + "".join(rows)


def _fits(text: str) -> bool:
    return len(text) <= WIDTH or text in ("[]", "{}")


def _flow(value: Any) -> str:
    """Return a value as it can stand on any line, in a flow list too."""
    if isinstance(value, str):
        return _word(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)


def flow_text(value: Any) -> str:
    """Return plain data as it can stand on any line, with texts that no reader takes for anything else."""
    if isinstance(value, dict):
        return "{" + ", ".join([f"{_word(name)}: {flow_text(each)}" for name, each in value.items()]) + "}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(flow_text, value))}]"
    return _flow(Quoted(value) if isinstance(value, str) else value)


def line_text(text: str) -> str:
    """Return a text as the value of a key on one line: as it is where that can be read in one way only."""
    return text if _is_plain(text) else flow_text(text)


def _word(text: str) -> str:
    """Return a text as it can stand as a key or in a flow list."""
    if _WORD.match(text) and text.lower() not in _TAKEN:
        return text
    return (
        text if _NUMBER.match(text) and not isinstance(text, Quoted) else f'"{"".join(map(_escape, text))}"'
    )


def _text(text: str, indent: int) -> str:
    """Return a text as the value of a key: plain, as a block, or in double quotes."""
    if _is_plain(text):
        return text
    if not all(char.isprintable() or char in "\n\t" for char in text) or not text.strip("\n"):
        return _quoted(text, indent)
    if "\n" in text or len(text) > WIDTH:
        return _block(text, indent)
    if "\t" in text or not set(text) & {'"', "\\"}:
        return _quoted(text, indent)
    return _block(text, indent) if "'" in text else f"'{text}'"


def _is_plain(text: str) -> bool:
    if not _PLAIN.match(text) or len(text) > WIDTH or text.lower() in _TAKEN:
        return False
    return ": " not in text and " #" not in text and not text.endswith(":")


def _block(text: str, indent: int) -> str:
    """Return a literal block scalar, which holds the text as it is."""
    body = text.rstrip("\n")
    ends = len(text) - len(body)
    # Where the text begins with a blank, how far it is indented has to be said.
    head = "|" + ("2" if text[0] in " \t\n" else "") + ("-", "", "+")[min(ends, 2)]
    margin = " " * (indent + 2)
    rows = [f"{margin}{row}" if row else "" for row in text.split("\n")]
    return "\n".join([head, *rows[: len(rows) - ends], *[""] * (ends - 1)])


def _quoted(text: str, indent: int) -> str:
    """Return a text in double quotes; each of its lines begins one, so that none is out of sight."""
    rows = text.split("\n")
    margin = " " * (indent + 2)
    parts = ["".join(map(_escape, row)) for row in rows]
    # Blanks at the beginning of a line are dropped unless the first of them is an escape.
    parts[1:] = [f"\\{part}" if part.startswith(" ") else part for part in parts[1:]]
    end = ""
    if len(parts) > 1 and not parts[-1]:
        parts.pop()
        end = "\\n"
    fold = f"\\n\\\n{margin}"
    return f'"{fold.join(parts)}{end}"'


def _escape(char: str) -> str:
    """Return a character as it is written in double quotes: itself when it can be seen and means nothing there."""
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_STATUSES = (
    *("pending", "running", "waiting", "paused", "completed", "failed", "skipped", "blocked", "cancelled"),
)
WHOLE = "$"
"""The path of what concerns the answer as a whole."""


def faults_of(
    problems: Iterable[Problem], data: bytes, positions: Mapping[tuple[str, int], int], ids: Sequence[str]
) -> list[Fault]:
    """Return the errors among problems as faults of the answer that the plan in `data` was made of.

    `positions`: the section of the plan and the place in it, from 0, of a step of the answer, to its place there.
    `ids`: all that a step may be called, for references to steps that there are not. The rule is the problem's code.
    """
    places = sorted(_places(data, positions))
    starts = [place for place, _ in places]
    found: dict[Fault, None] = {}
    for problem in problems:
        if problem.severity == "error":
            at = bisect_right(starts, (problem.line, problem.col))
            path = places[at - 1][1] if at else WHOLE
            known: dict[str, Sequence[str]] = {"E202": ids, "E216": _STATUSES, "E105": EDGE_KINDS}
            fault = Fault(
                path=path, rule=problem.code, message=problem.text, allowed=tuple(known.get(problem.code, ()))
            )
            found[fault] = None
    return list(found)


def _places(data: bytes, positions: Mapping[tuple[str, int], int]) -> Iterator[tuple[tuple[int, int], str]]:
    """Yield the beginning of every value, with the path of what it was in the answer."""
    yield (1, 1), WHOLE
    root, _, _ = read_tree(data, "")
    if root is None:
        return
    for key in root.keys.values():
        yield (key.line, key.col), WHOLE
    for section in ("steps", "finally"):
        steps = root.get(section)
        for at, step in enumerate(steps.value if steps is not None and steps.kind == SEQUENCE else ()):
            number = positions.get((section, at))
            path = WHOLE if number is None else f"steps[{number}]"
            yield (step.line, step.col), path
            if path != WHOLE and step.kind == MAPPING:
                yield from _inside(step, path)


def _inside(step: Node, path: str) -> Iterator[tuple[tuple[int, int], str]]:
    for name, value in step.value.items():
        key = step.keys[name]
        yield (key.line, key.col), f"{path}.{name}"
        yield (value.line, value.col), f"{path}.{name}"
        entries = (
            value.keys.values() if value.kind == MAPPING else value.value if value.kind == SEQUENCE else ()
        )
        for number, entry in enumerate(entries):
            yield (entry.line, entry.col), f"{path}.{name}[{number}]"


# Written by the model, or by the rules below.
_OURS = ("id", "title", "description", "depends_on", "recovers", "replaces", "outputs", "estimated_tokens")
AT_THE_END = ("requires", "provides", "deletes", "estimated_time", "estimated_success")
"""Keys of the whole that its last piece keeps, and no other one has: facts hold when all of it has completed."""


class Whole(Record):
    """An abstract step, as far as its pieces depend on it.

    `edges`: as `depends_on` has them. `copied`: its other keys, each as two texts, see `planrun.plan.edit.page`;
    `outputs` and what it recovers have their own rules, and `last` holds their texts.
    """

    id: str
    title: str = ""
    description: str = ""
    edges: tuple[Edge, ...] = ()
    recovers: tuple[str, ...] = ()
    replaces: tuple[str, ...] = ()
    condition: str = ""
    outputs: tuple[str, ...] = ()
    shell: str = ""
    followers: tuple[str, ...] = ()
    copied: Mapping[str, Sequence[str]] = {}
    last: Sequence[str] = ()
    taken: frozenset[str] = frozenset()  # ids of the plan


class Pieces(Record):
    """The steps that an abstract one becomes: their texts, and their ids in the order of the draft."""

    texts: tuple[str, ...]
    ids: tuple[str, ...]


def whole_of(plan: Plan, step: str) -> Whole:
    """Return an abstract step of a plan; raises EditError when its text cannot be taken apart."""
    root, _ = parse(plan.source, plan.file)
    assert root is not None  # it was loaded
    draft = Outline(root, plan.file, plan.source).by_id[step]
    known = next(each for each in plan.steps if each.id == step)
    assert known.kind == "abstract"
    texts = copied_keys(plan.source, plan.file, step, ())
    return Whole(
        id=step,
        title=known.title,
        description=known.description,
        edges=tuple([Edge(on=link.on, kind=link.kind) for link in draft.links]),  # type: ignore[arg-type]  # one of EDGE_KINDS
        recovers=known.recovers,
        replaces=known.replaces,
        condition=draft.keys["condition"].value if "condition" in draft.keys else "",
        outputs=tuple(known.outputs),
        shell=" ".join(known.shell),
        followers=tuple([each.id for each in plan.steps if any(edge.on == step for edge in each.edges)]),
        copied={name: text for name, text in texts.items() if name not in (*_OURS, *AT_THE_END)},
        last=[texts[name][0] for name in ("recovers", "outputs", *AT_THE_END) if name in texts],
        taken=frozenset([each.id for each in plan.steps]) - {step},
    )


def pieces_of(
    draft: Draft, whole: Whole, notes: Mapping[str, Sequence[str]] | None = None
) -> Pieces | list[Fault]:
    """Return what a draft makes of an abstract step, or everything that is wrong with it.

    `notes` are comments by the id of the piece that they stand above.
    """
    faults = list(_faults(draft, whole))
    if faults:
        return faults
    steps = draft.steps
    last = steps[-1]
    needed = {name for step in steps for name in step.depends_on}
    loose = tuple([step.id for step in steps[:-1] if step.id not in needed])
    steps = (*steps[:-1], last.but(depends_on=(*last.depends_on, *loose)))
    notes_by_step = notes or {}
    texts = [
        _pieces_text(
            step,
            whole,
            at,
            [
                f'{at + 1} of {len(steps)} for "{whole.id}"' + (f": {whole.title}" if whole.title else ""),
                *notes_by_step.get(step.id, ()),
            ],
        )
        for at, step in enumerate(steps)
    ]
    return Pieces(texts=tuple(texts), ids=tuple([step.id for step in steps]))


def _faults(draft: Draft, whole: Whole) -> Iterator[Fault]:
    own = [step.id for step in draft.steps]
    for at, step in enumerate(draft.steps):
        path = f"steps[{at}]"
        if not step.run.strip():
            message = "there is no script; each step has to be concrete"
            yield Fault(path=f"{path}.run", rule="empty", message=message)
        yield from _about_id(step.id, at, own, whole)
        text = step.condition
        if text:
            try:
                parse_expression(text)
            except ExpressionError as error:
                yield Fault(path=f"{path}.condition", rule="E210", message=error.message)
        allowed = (*[name for name in own if name != step.id], *[edge.on for edge in whole.edges])
        for number, name in enumerate(step.depends_on):
            if name not in allowed:
                message = f"{name} is neither a step of yours nor one that {whole.id} waits for"
                yield Fault(
                    path=f"{path}.depends_on[{number}]", rule="depends_on", message=message, allowed=allowed
                )
    yield from _about_outputs(draft.steps[-1], len(draft.steps) - 1, whole)


def _about_id(name: str, at: int, own: Sequence[str], whole: Whole) -> Iterator[Fault]:
    path = f"steps[{at}].id"
    if at == len(own) - 1:
        if name != whole.id:
            message = f"the last step keeps the id {whole.id}: others wait for it"
            yield Fault(path=path, rule="id", message=message, allowed=(whole.id,))
    elif not name.startswith((f"{whole.id}-", f"{whole.id}.")) or len(name) < len(whole.id) + 2:
        message = f"the ids of all but the last step begin with {whole.id}-"
        yield Fault(path=path, rule="id", message=message)
    elif name in whole.taken or name in own[:at]:
        yield Fault(path=path, rule="id", message=f"{name} is the id of another step")


def _about_outputs(last: DraftStep, at: int, whole: Whole) -> Iterator[Fault]:
    if not whole.outputs:
        return
    missing = [name for name in whole.outputs if name not in last.outputs]
    extra = [name for name in last.outputs if name not in whole.outputs]
    if missing or extra:
        message = "the last script writes exactly the outputs that the plan declares"
        yield Fault(path=f"steps[{at}].outputs", rule="outputs", message=message, allowed=whole.outputs)


def _pieces_text(step: DraftStep, whole: Whole, at: int, notes: Sequence[str]) -> str:
    is_last = step.id == whole.id
    extra: dict[str, Any] = {}
    if edges := _edges(step, whole, is_last=is_last):
        extra["depends_on"] = edges
    keys = [texts[min(at, 1)] for name, texts in whole.copied.items() if name != "condition"]
    if whole.condition and step.condition:
        extra["condition"] = f"({whole.condition}) and ({step.condition})"
    elif whole.condition:
        keys.append(whole.copied["condition"][min(at, 1)])
    if is_last and whole.replaces:
        extra["replaces"] = list(whole.replaces)
    plain = step.but(outputs=()) if is_last and whole.outputs else step
    text = step_text(plain.but(depends_on=()), 0, extra, notes)
    return text + "".join(
        [
            "\n".join([f"  {row}" if row.strip() else row for row in key.split("\n")])
            for key in [*keys, *(whole.last if is_last else ())]
        ]
    )


def _edges(step: DraftStep, whole: Whole, *, is_last: bool) -> dict[str, str] | list[str]:
    """Return `depends_on` of a piece: those without an edge take over that of the whole.

    Edges that decide by the outcome of a step whether something runs at all belong to every piece.
    """
    edges = {edge.on: "ok" if edge.kind == "open" else str(edge.kind) for edge in whole.edges}
    found = {name: edges.get(name, "ok") for name in step.depends_on}
    if not step.depends_on:
        found = dict(edges)
    found |= {name: kind for name, kind in edges.items() if kind != "ok"}
    if not is_last:
        found |= dict.fromkeys(whole.recovers, "failed")
    if any(kind != "ok" for kind in found.values()):
        return found
    return list(found)
