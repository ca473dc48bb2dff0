"""The policies in force: the plan's, the ceilings of the command line, and those that the run recorded."""

from __future__ import annotations

from planrun.approval.assess import as_written
from planrun.approval.files import Given, read_given
from planrun.approval.rules import Ceiling, Facts, Layers, decide
from planrun.model.policy import Policy
from planrun.plan.keys.policy import policy_in
from planrun.records.inputs import read_policy
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from planrun.approval.rules import Decision
    from planrun.model.plan import Plan, Step
    from planrun.settings import Settings


class Ceilings:
    """The ceilings of a run and the bytes of their files, which its folder keeps."""

    def __init__(self) -> None:
        self.known: tuple[Ceiling, ...] = ()
        self.files: dict[str, bytes] = {}  # by sha256

    def add(self, given: Given) -> None:
        """Add a ceiling, once. Raises InvalidPlan for an invalid policy."""
        ceiling = ceiling_in(given)
        if ceiling.sha256 not in self.files:
            self.files[ceiling.sha256] = given.data
            self.known = (*self.known, ceiling)


def ceiling_in(given: Given) -> Ceiling:
    """Return the ceiling that a file holds; raises InvalidPlan."""
    return Ceiling(
        policy=policy_in(given.data, given.name),
        file=given.name,
        sha256=str(sha256(given.data).hexdigest()),
        commit=given.commit,
        ignored=given.ignored,
    )


def ceilings_of(settings: Settings) -> Ceilings:
    """Return the ceilings that the caller names; raises InvalidInput, InvalidPlan."""
    found = Ceilings()
    if settings.policy:
        found.add(read_given(settings.policy, "policy"))
    return found


def restore(ceilings: Ceilings, rundir: str, recorded: Iterable[Mapping[str, Any]]) -> None:
    """Add the recorded ceilings of a run; raises InvalidInput when its copy of one was altered."""
    for known in recorded:
        data = read_policy(rundir, known["sha256"])
        ceilings.add(Given(name=known["file"], data=data, commit=known.get("commit", "")))


def layers_of(plan: Plan, settings: Settings, ceilings: Ceilings | None = None) -> Layers:
    """Return the policies in force for a plan; raises InvalidInput, InvalidPlan for an invalid policy file."""
    found = ceilings or ceilings_of(settings)
    return Layers(plan=plan.policy, file=plan.file, option=settings.auto_approve, ceilings=found.known)


def recorded(layers: Layers) -> dict[str, Any]:
    """Return the policies in force as the first event of a run records them."""
    return {
        "plan": _as_recorded(layers.plan) if layers.plan else None,
        "option": layers.option,
        "ceilings": [
            {
                "file": ceiling.file,
                "sha256": ceiling.sha256,
                "commit": ceiling.commit,
                **_as_recorded(ceiling.policy),
            }
            for ceiling in layers.ceilings
        ],
    }


def _as_recorded(policy: Policy) -> dict[str, Any]:
    return {
        "auto_approve": policy.auto_approve,
        "llm_auto_approve": policy.llm_auto_approve,
        "rules": len(policy.rules),
        "ask_for": policy.ask_for,
    }


def static_decision(step: Step, layers: Layers, context: Mapping[str, Any]) -> Decision:
    """Return the decision about a step from the plan's text; values known only during the run may change it."""
    return decide(facts_of(step, context, as_written(step, layers)), layers)


def facts_of(step: Step, context: Mapping[str, Any], found: Mapping[str, Any]) -> Facts:
    """Return the facts for a decision; `found` are the fields about what the step would do."""
    return Facts(step=step, ref=str(context.get("ref", "")), event=str(context.get("event", "")), **found)
