"""Which steps of a new plan are denied or need an approval under the policies in force and under the old policy."""

from __future__ import annotations

import os
import shlex

from planrun.approval.approvals import Approvals as ApprovalsOfRuns
from planrun.approval.approvals import read_approvals, without_effect
from planrun.approval.digest import gaps
from planrun.approval.policies import ceiling_in, is_pattern, read_given, static_decision
from planrun.approval.preview import digest_preview
from planrun.approval.rules import Layers, in_force
from planrun.errors import InvalidInput
from planrun.model.record import Record
from planrun.plan.compile.canonical import plain
from planrun.plan.revisions import path_of
from planrun.records.rundir import HOME
from planrun.settings import ci_context, current_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Literal

    from planrun.model.plan import Plan
    from planrun.model.policy import Policy
    from planrun.plan.revisions import Side


class Terms(Record):
    """The policy options of `execute` for the new plan, and the approval files to consider."""

    policy: str = ""
    auto_approve: str = ""
    params: tuple[str, ...] = ()  # name=value
    approvals: tuple[str, ...] = ()


class Gate(Record):
    """A step that does not run unasked, or would not have under the old policy; which rule says so, and why.

    `answer`: `ask`: an approval is asked for; `deny`: it fails; `answer`: it is a question or a decision, and no policy
    answers it; `allow`: it runs unasked. `before`: what the old policy would say, where that is something else.
    `approved`: by whom and until when, where an approval file covers it.
    """

    step: str
    risk: str
    answer: Literal["ask", "deny", "answer", "allow"]
    rule: str
    reason: str
    before: str = ""
    approved: str = ""


class Approvals(Record):
    """The required approvals: `policy`, the policies in force in one line; `gates` in the order of the file.

    `whole`: the plan as a whole is asked for before anything starts. `command` writes the approval; empty when none is
    needed. `digest` is what it names: plan, parameters as their defaults say, scripts of the workspace; empty where the
    new plan is not a file of the workspace, its scripts cannot be read (`unknown` says why), or `missing` parameters
    have no default. `asked`: the steps that an approval can open and none does. `ignored`: what in the checkout does
    not count, since approvals are read from a commit.
    """

    policy: str
    gates: tuple[Gate, ...] = ()
    whole: bool = False
    command: str = ""
    digest: str = ""
    missing: tuple[str, ...] = ()
    unknown: str = ""
    asked: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    uncovered: tuple[str, ...] = ()  # what may run and is no part of the digest, with the reason

    @property
    def needed(self) -> tuple[Gate, ...]:
        """The steps that are denied, or need an approval or an answer."""
        return tuple([gate for gate in self.gates if gate.answer != "allow"])

    @property
    def lifted(self) -> tuple[Gate, ...]:
        """The steps that run without approval now, and did not under the old policy."""
        return tuple([gate for gate in self.gates if gate.answer == "allow"])


def approvals(old: Side, new: Side, terms: Terms) -> Approvals | None:
    """Return what the new plan needs, as far as its text shows it; None when there is no new plan.

    Raises InvalidInput, InvalidPlan for a policy or an approval that is none.
    """
    plan = new.plan
    if plan is None:
        return None
    ceilings = (ceiling_in(read_given(terms.policy, "policy")),) if terms.policy else ()
    layers = Layers(plan=plan.policy, file=new.name, option=terms.auto_approve, ceilings=ceilings)
    found = _preview(plan, new, terms)
    known = ApprovalsOfRuns(read_approvals(terms.approvals), os.path.join(current_folder(), HOME), run="")
    gates = tuple([_with_approval(gate, known, found.digest) for gate in _gates(old.plan, plan, layers)])
    asks = any(policy and policy.ask_for == "plan" for policy in (plan.policy, *_policies(layers)))
    others = {step.id for step in plan.steps if step.action.options or step.action.schema is not None}
    waiting = [gate for gate in gates if gate.answer in ("ask", "answer") and not gate.approved]
    asked = tuple([gate.step for gate in waiting if gate.step not in others])
    whole = asks and not known.covers("", found.digest)  # instead of those of its steps
    return found.but(
        policy=in_force(layers),
        gates=gates,
        whole=whole,
        asked=asked,
        command=_command(new, found, () if whole else asked, terms) if whole or asked else "",
        ignored=without_effect(terms.approvals),
    )


def _preview(plan: Plan, new: Side, terms: Terms) -> Approvals:
    """Return the parameters that must be given, and the digest of a run without further ones."""
    try:
        found = digest_preview(plan, terms.params, current_folder())
    except InvalidInput as error:  # also shown to the approver of the plan
        return Approvals(policy="", unknown=str(error))
    known = not found.missing and not new.commit
    uncovered = (
        tuple([f"{what}: {why}" for what, why in gaps(found.reviewed).items()]) if not new.commit else ()
    )
    digest = found.reviewed.digest if known else ""
    return Approvals(policy="", missing=found.missing, digest=digest, uncovered=uncovered)


def _command(new: Side, found: Approvals, steps: Iterable[str], terms: Terms) -> str:
    """Return the command that writes the approval, into the folder where approvals are looked for."""
    words = [word for name in steps for word in ("--step", name)]
    given = [*terms.params, *[f"{name}=VALUE" for name in found.missing]]
    words += [word for text in given for word in ("--param", text)]
    if terms.approvals:
        words += ["-o", _place(new.path, path_of(terms.approvals[0]), found.digest)]
    plan = f"./{new.path}" if new.path.startswith("-") else new.path
    return shlex.join(["planrun", "approve", plan, *words])


def _place(plan: str, pattern: str, digest: str) -> str:
    """Return a name for an approval that fits where approvals are looked for, and that nothing has yet."""
    folder, last = os.path.split(pattern)
    if not is_pattern(last):
        return pattern
    stem = os.path.splitext(os.path.basename(plan))[0]
    plain = os.path.join(folder, f"{stem}.json")
    return os.path.join(folder, f"{stem}-{digest[:8] or 'new'}.json") if os.path.lexists(plain) else plain


def _with_approval(gate: Gate, known: ApprovalsOfRuns, digest: str) -> Gate:
    """Return a gate with who approved it."""
    found = known.find(gate.step, digest) if gate.answer in ("ask", "answer") else None
    return gate.but(approved=f"by {found.approver} until {found.expires}") if found else gate


def _policies(layers: Layers) -> list[Policy]:
    return [ceiling.policy for ceiling in layers.ceilings]


def _gates(old: Plan | None, new: Plan, layers: Layers) -> Iterator[Gate]:
    context = ci_context(os.environ)
    # The same policy decides the same, and parsing every command twice takes time.
    other = old is not None and plain(old.policy) != plain(new.policy)
    before = layers.but(plan=old.policy) if old and other else None
    answered = {name for policy in (new.policy, *_policies(layers)) if policy for name in policy.decisions}
    replaced = {name for step in new.steps for name in step.replaces}  # they never start
    for step in [step for step in new.steps if step.id not in replaced]:
        found = static_decision(step, layers, context)
        was = static_decision(step, before, context) if before else found
        old_answer = f"{_WORDS[was.answer]} by {was.rule}" if was.answer != found.answer else ""
        fields = {"step": step.id, "risk": step.risk, "before": old_answer}
        if found.answer == "allow" and step.action.asks and step.id not in answered:
            yield Gate(**fields, answer="answer", rule="", reason="it waits for an answer")
        elif found.answer != "allow" or old_answer:
            yield Gate(**fields, answer=found.answer, rule=found.rule, reason=found.reason)


_WORDS = {"allow": "allowed", "ask": "asked for", "deny": "denied"}
