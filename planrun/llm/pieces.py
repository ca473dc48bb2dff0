"""What an abstract step becomes: the texts of several steps, made of what a model wrote and what a reviewer had said.

The last one keeps the id, so that nothing else in the plan changes. Everything that the reviewer said of the abstract
step stands in each of them as it was written.
"""

from __future__ import annotations

from planrun.expressions.parse import parse as parse_expression
from planrun.expressions.tree import ExpressionError
from planrun.llm.drafts import Fault
from planrun.llm.writing import step_text
from planrun.model.plan import Edge
from planrun.model.record import Record
from planrun.plan.edit.page import copied_keys
from planrun.plan.keys.outline import Outline
from planrun.plan.yaml.document import parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from planrun.llm.drafts import Draft, DraftStep
    from planrun.model.plan import Plan

# Written by the model, or by the rules below.
_OURS = ("id", "title", "description", "depends_on", "recovers", "replaces", "outputs", "estimated_tokens")


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
        copied={name: text for name, text in texts.items() if name not in _OURS},
        last=[texts[name][0] for name in ("recovers", "outputs") if name in texts],
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
    told = notes or {}
    texts = [
        _text(step, whole, at, [_numbered(whole, at, len(steps)), *told.get(step.id, ())])
        for at, step in enumerate(steps)
    ]
    return Pieces(texts=tuple(texts), ids=tuple([step.id for step in steps]))


def _faults(draft: Draft, whole: Whole) -> Iterator[Fault]:
    if draft.keep:
        yield Fault(path="keep", rule="unasked", message="everything else stays as it is")
    own = [step.id for step in draft.steps]
    for at, step in enumerate(draft.steps):
        path = f"steps[{at}]"
        if step.replaces:
            yield Fault(path=f"{path}.replaces", rule="unasked", message="the step is replaced by planrun")
        if not step.run.strip():
            message = "there is no script; each step has to be concrete"
            yield Fault(path=f"{path}.run", rule="empty", message=message)
        yield from _about_id(step.id, at, own, whole)
        yield from _about_condition(step.condition, path)
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


def _about_condition(text: str, path: str) -> Iterator[Fault]:
    """Look at a condition alone: together with a reviewer's, `x) or (y` would be another one."""
    if text:
        try:
            parse_expression(text)
        except ExpressionError as error:
            yield Fault(path=f"{path}.condition", rule="E210", message=error.message)


def _about_outputs(last: DraftStep, at: int, whole: Whole) -> Iterator[Fault]:
    if not whole.outputs:
        return
    missing = [name for name in whole.outputs if name not in last.outputs]
    extra = [name for name in last.outputs if name not in whole.outputs]
    if missing or extra:
        message = "the last script writes exactly the outputs that the plan declares"
        yield Fault(path=f"steps[{at}].outputs", rule="outputs", message=message, allowed=whole.outputs)


def _numbered(whole: Whole, at: int, count: int) -> str:
    return f'{at + 1} of {count} for "{whole.id}"' + (f": {whole.title}" if whole.title else "")


def _text(step: DraftStep, whole: Whole, at: int, notes: Sequence[str]) -> str:
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
    return text + "".join([_indented(key) for key in [*keys, *(whole.last if is_last else ())]])


def _edges(step: DraftStep, whole: Whole, *, is_last: bool) -> dict[str, str] | list[str]:
    """Return `depends_on` of a piece: those without an edge take over that of the whole.

    Edges that tell by the end of a step whether something is to run at all are those of every piece.
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


def _indented(text: str) -> str:
    return "\n".join([f"  {row}" if row.strip() else row for row in text.split("\n")])
