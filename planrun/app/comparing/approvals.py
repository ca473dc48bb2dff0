"""Which steps of a new plan do not run unasked, under the policies in force, and what the old policy would say."""

from __future__ import annotations

import os
import shlex

from planrun.app.foreseeing import foresee
from planrun.app.given import read_given
from planrun.app.policies import ceiling_in, static_decision
from planrun.app.settings import ci_context, current_folder
from planrun.errors import InvalidInput
from planrun.model.record import Record
from planrun.policy.deciding import Layers, in_force
from planrun.source.canonical import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Literal

    from planrun.app.revisions import Side
    from planrun.model.plan import Plan, Step
    from planrun.model.policy import Policy
    from planrun.policy.deciding import Ceiling


class Gate(Record):
    """A step that does not run unasked, or would not have under the old policy; which rule says so, and why.

    `answer`: `ask`: an approval is asked for; `deny`: it fails; `answer`: it is a question or a decision, and no policy
    answers it; `allow`: it runs unasked. `before`: what the old policy would say, where that is something else.
    """

    step: str
    risk: str
    answer: Literal["ask", "deny", "answer", "allow"]
    rule: str
    reason: str
    before: str = ""


class Approvals(Record):
    """What has to be approved: `policy` in one line what is in force, `gates` in the order of the file.

    `whole`: the plan as a whole is asked for before anything starts. `command` writes the approval; empty when none is
    needed. `digest` is what it names: plan, parameters as their defaults say, scripts of the workspace; empty where the
    new plan is not a file of the workspace, its scripts cannot be read, or `missing` parameters have no default.
    """

    policy: str
    gates: tuple[Gate, ...] = ()
    whole: bool = False
    command: str = ""
    digest: str = ""
    missing: tuple[str, ...] = ()

    @property
    def needed(self) -> tuple[Gate, ...]:
        """The steps that do not run unasked."""
        return tuple([gate for gate in self.gates if gate.answer != "allow"])

    @property
    def lifted(self) -> tuple[Gate, ...]:
        """The steps that run unasked, and did not under the old policy."""
        return tuple([gate for gate in self.gates if gate.answer == "allow"])


def approvals(old: Side, new: Side, ceiling: str = "") -> Approvals | None:
    """Return what the new plan needs, as far as its text tells; None when there is no new plan.

    `ceiling` names a policy file, or one in a commit; raises InvalidInput, InvalidPlan for one that is none.
    """
    plan = new.plan
    if plan is None:
        return None
    layers = Layers(plan=plan.policy, file=new.name, ceilings=tuple(_ceilings(ceiling)))
    gates = tuple(_gates(old.plan, plan, layers))
    whole = any(policy and policy.ask_for == "plan" for policy in (plan.policy, *_policies(layers)))
    asked = [gate.step for gate in gates if gate.answer in ("ask", "answer")]
    steps = {step.id: step for step in plan.steps}
    asked = [name for name in asked if steps[name].kind != "decide" and not _typed(steps[name])]
    missing, digest = _digest(plan, new)
    command = ""
    if whole or asked:
        words = [] if whole else [word for name in asked for word in ("--step", name)]
        given = [word for name in missing for word in ("--param", f"{name}=VALUE")]
        command = shlex.join(["planrun", "approve", new.path, *words, *given])
    return Approvals(
        policy=in_force(layers), gates=gates, whole=whole, command=command, digest=digest, missing=missing
    )


def _digest(plan: Plan, new: Side) -> tuple[tuple[str, ...], str]:
    """Return the parameters that somebody has to give, and the digest of what a run would be bound to without more."""
    try:
        found = foresee(plan, (), current_folder())
    except InvalidInput:  # whoever approves the plan is told what it is
        return (), ""
    known = not found.missing and not new.commit
    return found.missing, found.reviewed.digest if known else ""


def _ceilings(name: str) -> Iterator[Ceiling]:
    if name:
        yield ceiling_in(read_given(name, "policy"))


def _policies(layers: Layers) -> list[Policy]:
    return [ceiling.policy for ceiling in layers.ceilings]


def _typed(step: Step) -> bool:
    """Whether it is a question that yes and no do not answer."""
    return step.kind == "ask" and getattr(step.action, "schema", None) is not None


def _gates(old: Plan | None, new: Plan, layers: Layers) -> Iterator[Gate]:
    context = ci_context(os.environ)
    # The same policy says the same, and to look into every command twice takes time.
    other = old is not None and plain(old.policy) != plain(new.policy)
    before = layers.but(plan=old.policy) if old and other else None
    answered = {name for policy in (new.policy, *_policies(layers)) if policy for name in policy.decisions}
    for step in new.steps:
        found = static_decision(step, layers, context)
        was = static_decision(step, before, context) if before else found
        told = f"{_WORDS[was.answer]} by {was.rule}" if was.answer != found.answer else ""
        fields = {"step": step.id, "risk": step.risk, "before": told}
        if found.answer == "allow" and step.kind in ("ask", "decide") and step.id not in answered:
            yield Gate(**fields, answer="answer", rule="", reason="it waits for an answer")
        elif found.answer != "allow" or told:
            yield Gate(**fields, answer=found.answer, rule=found.rule, reason=found.reason)


_WORDS = {"allow": "allowed", "ask": "asked for", "deny": "denied"}
