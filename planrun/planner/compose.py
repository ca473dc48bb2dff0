"""From a draft to the text of a new plan that people can review: valid, with what to look at above each step."""

from __future__ import annotations

import re

from planrun.approval.policies import ceilings_of, layers_of, static_decision
from planrun.errors import InvalidPlan
from planrun.llm.drafts import Fault, estimated
from planrun.llm.writing import faults_of, plan_text, step_text
from planrun.model.policy import Policy
from planrun.model.record import Record
from planrun.plan.load import load_bytes
from planrun.plan.yaml.document import parse
from planrun.planner.conversation import Accepted, Refused
from planrun.planner.inspect import WRITTEN
from planrun.reports.escape import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from planrun.approval.rules import Layers
    from planrun.llm.drafts import Draft
    from planrun.model.plan import Plan, Step
    from planrun.settings import Settings

POLICY = Policy(auto_approve="medium", llm_auto_approve="low")
"""What a new plan says itself: the same as that of `planrun init`, and nothing but what is harmless for models."""
_REASON = 200  # characters of a reason in a comment


class Frame(Record):
    """What is not the draft's: the name of the file, the goal, and under which policies steps will be."""

    file: str
    goal: str
    settings: Settings
    context: Mapping[str, Any] = {}


class Composed(Record):
    """A plan that can be written: its text, and what planrun reads in it."""

    text: str
    plan: Plan


def check(draft: Draft, frame: Frame) -> Accepted | Refused | list[Fault]:
    """Say whether a draft becomes a valid plan, within the ceilings: the value is the draft with its estimates."""
    faults = list(_unasked(draft))
    if faults:
        return faults
    draft = draft.but(steps=tuple(map(estimated, draft.steps)))
    data = _text(draft, frame, [], {}).encode("utf-8", "surrogatepass")
    try:
        plan = load_bytes(data, frame.file, cache=False)
    except InvalidPlan as error:
        ids = [step.id for step in draft.steps]
        return faults_of(error.problems, data, {at: at for at in range(len(ids))}, ids)
    refusals = [*_smuggled(data), *_denied(plan, frame)]
    return Refused(refusals=tuple(refusals)) if refusals else Accepted(value=draft)


def compose(draft: Draft, frame: Frame, heading: Sequence[str]) -> Composed:
    """Return the plan of a draft that was checked, with comments above each step; `heading`: more, above all."""
    plain = load_bytes(_text(draft, frame, [], {}).encode(), frame.file, cache=False)
    layers = layers_of(plain, frame.settings, ceilings_of(frame.settings))
    notes = {step.id: list(notes_of(step, layers, frame.context)) for step in plain.steps}
    text = _text(draft, frame, [*heading, *_first_looks(plain)], notes)
    return Composed(text=text, plan=load_bytes(text.encode(), frame.file, cache=False))


def _unasked(draft: Draft) -> Iterator[Fault]:
    if draft.keep:
        yield Fault(path="keep", rule="unasked", message="there is no plan yet whose steps could stay")
    for number, step in enumerate(draft.steps):
        if step.replaces:
            yield Fault(
                path=f"steps[{number}].replaces", rule="unasked", message="there is nothing to replace"
            )


def _text(draft: Draft, frame: Frame, heading: Sequence[str], notes: Mapping[str, Sequence[str]]) -> str:
    keys: dict[str, Any] = {"version": 1}
    if name := name_of(frame.goal):
        keys["name"] = name
    keys["goal"] = frame.goal
    keys["policy"] = {"auto_approve": POLICY.auto_approve, "llm_auto_approve": POLICY.llm_auto_approve}
    steps = [step_text(step, 2, {}, notes.get(step.id, ())) for step in draft.steps]
    return plan_text(heading, keys, steps)


def name_of(goal: str) -> str:
    """Return a name for a plan: the first words of its goal; empty when it has none."""
    words = re.findall(r"[^\W_]+", goal)[:6]
    return "-".join(words).lower()[:60].strip("-")


def _smuggled(data: bytes) -> Iterator[dict[str, str]]:
    """Yield a refusal for each key of a step that no draft can hold, were planrun's own writing to let one through."""
    root, _ = parse(data, "")
    steps = root.get("steps") if root is not None else None
    for step in steps.value if steps is not None else ():
        extra = [key for key in step.value if key not in WRITTEN]
        if extra:
            reason = f"the step would have the keys {', '.join(extra)}"
            yield {
                "step": str(step.value["id"].value),
                "rule": "bounds:keys",
                "reason": line(reason, _REASON),
            }


def _denied(plan: Plan, frame: Frame) -> Iterator[dict[str, str]]:
    """Yield a refusal for each step that a ceiling of the caller denies to what a model wrote."""
    layers = layers_of(plan, frame.settings, ceilings_of(frame.settings))
    for step in plan.steps:
        decision = static_decision(step.but(origin="expanded"), layers, frame.context)
        if decision.answer == "deny":
            yield {"step": step.id, "rule": decision.rule, "reason": line(decision.reason, _REASON * 3)}


def notes_of(step: Step, layers: Layers, context: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a reviewer is told of a step, by planrun's own classifier and the policies in force."""
    if step.kind == "abstract":
        yield "written without a script: `planrun expand` makes it concrete, or write it under `run`"
        return
    if step.risk == "read-only" and not step.open_risk:
        return
    effects = f" ({', '.join(step.effects)})" if step.effects else ""
    later = "; values that come later may change it" if step.open_risk else ""
    yield f"risk: {step.risk}{effects}: {line(step.risk_reason, _REASON)}{later}"
    decision = static_decision(step, layers, context)
    if decision.answer != "allow":
        word = "waits for an approval" if decision.answer == "ask" else "denied"
        # The place of the plan's own policy differs from that in the text that is judged.
        own = decision.rule == "plan:auto_approve"
        reason = f"auto_approve is {POLICY.auto_approve}" if own else decision.reason
        yield f"{word}: {line(reason, _REASON)}"
    elif static_decision(step.but(origin="expanded"), layers, context).answer != "allow":
        yield "above llm_auto_approve: it would not run unasked if a model had written it during a run"


def _first_looks(plan: Plan) -> Iterator[str]:
    """Yield what to look at first, the riskiest steps before the others."""
    for level in ("high", "medium"):
        found = [step for step in plan.steps if step.kind != "abstract" and step.risk == level]
        if found:
            told = [f"{step.id} ({', '.join(step.effects)})" if step.effects else step.id for step in found]
            yield f"look at: risk {level}: {', '.join(told)}"
    todo = [step.id for step in plan.steps if step.kind == "abstract"]
    if todo:
        yield f"written without a script: {', '.join(todo)}"
