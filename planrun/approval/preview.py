"""Preview the digest and the policy decisions of a plan, before all its parameters are known.

The decisions of the policies in force on a plan's steps, as far as its text and its parameters determine them.
"""

from __future__ import annotations

import os

from planrun.approval.assess import facts_of_commands
from planrun.approval.digest import review
from planrun.approval.policies import facts_of, layers_of, recorded
from planrun.approval.rules import Decision, decide, decisions, in_force, matches
from planrun.errors import EvaluationError
from planrun.expressions.render import render_script, render_text
from planrun.model.record import Record
from planrun.plan.compile.risks import Risks, commands_of, readable
from planrun.plan.keys.params import parse_params
from planrun.reports.describe import step_data
from planrun.reports.policies import RiskTotals, policy_data, shortened
from planrun.settings import ci_context

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from planrun.approval.digest import Reviewed
    from planrun.approval.rules import Facts, Layers
    from planrun.model.plan import Plan, Step, Text
    from planrun.model.policy import Policy
    from planrun.risk.classifier import Risk
    from planrun.settings import Settings


class DigestPreview(Record):
    """What was reviewed; `missing` are the required parameters without a value: a run has another digest then."""

    reviewed: Reviewed
    missing: tuple[str, ...] = ()

    def as_data(self) -> dict[str, Any]:
        """Return the preview as JSON data."""
        return {
            "missing_params": list(self.missing),
            "scripts": dict(sorted(self.reviewed.scripts.items())),
            "uncovered": dict(sorted(self.reviewed.uncovered.items())),
            "later": list(self.reviewed.later),
        }


def digest_preview(
    plan: Plan, given: Iterable[str], workspace: str, *, recalls: bool = False
) -> DigestPreview:
    """Return the digest preview of a run in `workspace` with these `name=value` texts; raises InvalidInput."""
    params, missing = known_params(plan, given)
    return DigestPreview(reviewed=review(plan, params, workspace, recalls=recalls), missing=missing)


def known_params(plan: Plan, given: Iterable[str]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the parameters that have a value, and the names of the required ones that have none.

    Raises InvalidInput for a `name=value` text that does not fit.
    """
    texts = tuple(given)
    named = {text.partition("=")[0] for text in texts}
    missing = tuple(
        param.name
        for param in plan.params
        if param.required and "default" not in param.schema and param.name not in named
    )
    known = plan.but(params=tuple(param for param in plan.params if param.name not in missing))
    return parse_params(known, texts), missing


class RuleCheck(Record):
    """A rule checked for a step: its policy (`plan`, or a ceiling's file), and whether it matches the step."""

    policy: str
    verb: str
    number: int
    line: int
    fits: bool
    label: str = ""  # of a rule of a preset


class StepPreview(Record):
    """The decision about a step before the run.

    `step` has its risk with the known parameters; `decisions` are those of each policy, ceilings first; `risk` has its
    commands, None where they were not read.
    """

    step: Step
    decision: Decision
    decisions: tuple[Decision, ...]
    rules: tuple[RuleCheck, ...]
    risk: Risk | None = None


class PolicyPreview:
    """Previews the decision about each step of a plan, under the caller's `settings`: policy, level, parameters.

    Raises InvalidInput, InvalidPlan for an invalid parameter or policy file. A required parameter without a value is
    an unknown value.
    """

    def __init__(self, plan: Plan, settings: Settings) -> None:
        self.plan = plan
        self.layers = layers_of(plan, settings)
        self._context = ci_context(os.environ)
        self._scope = {"params": known_params(plan, settings.params)[0]}
        self._risks = Risks(self._filled(plan.env), plan.env_file)

    @property
    def policy(self) -> str:
        """The policies in force, in one line for people."""
        return shortened(in_force(self.layers), self.plan)

    def policy_data(self) -> dict[str, Any]:
        """Return the policy in force as `ledger.json` has it, and in one line."""
        return {**policy_data(recorded(self.layers)), "told": in_force(self.layers)}

    def steps(self) -> list[StepPreview]:
        """Return the decisions on the steps of the plan, in their order."""
        return self._all(self.plan.steps)

    def undoing(self) -> list[StepPreview]:
        """Return the decisions on the steps of a rollback."""
        return self._all(self.plan.everything()[len(self.plan.steps) :])

    def _all(self, steps: Iterable[Step]) -> list[StepPreview]:
        policies = [*[ceiling.policy for ceiling in self.layers.ceilings], self.layers.plan]
        speaks = any(rule.match.command for policy in policies if policy for rule in policy.rules)
        return [self._told(step, self._risk(step) if speaks else None) for step in steps]

    def of(self, step: Step) -> StepPreview:
        """Return the decision on a step, with its commands; parsing them takes up to some milliseconds."""
        return self._told(step, self._risk(step))

    def _risk(self, step: Step) -> Risk | None:
        return commands_of(self._known(step))

    def _told(self, step: Step, risk: Risk | None) -> StepPreview:
        if step.kind == "group":
            group = step.grouping
            if group.template is not None:
                of = group.template.but(id=step.id, group="", edges=step.edges)
                return self._told(of, self._risk(of)).but(step=step)
            return StepPreview(
                step=step,
                decision=Decision(answer="allow", rule="group", reason="it starts nothing"),
                decisions=(),
                rules=(),
            )
        known = self._known(step)
        fields: dict[str, Any] = {
            "risk": known.risk,
            "reason": known.risk_reason,
            "effects": known.effects,
            "text": known.action.written(),
        }
        if risk:
            fields |= facts_of_commands(risk)
        if known.open_risk:  # where values are missing, rules also match in the text
            fields["is_understood"] = False
        facts = facts_of(known, self._context, fields)
        found = decide(facts, self.layers)
        if known.action.asks and found.answer == "ask":  # the step itself asks a person anyway
            found = found.but(answer="allow")
        return StepPreview(
            step=known,
            decision=found,
            decisions=tuple(decisions(facts, self.layers)),
            rules=tuple(_rule_checks(facts, self.layers)),
            risk=risk,
        )

    def _known(self, step: Step) -> Step:
        """Return a step with the known parameters inserted, and its risk then."""
        if not (step.open_risk and self._scope["params"]):
            return step
        changes: dict[str, Any] = {"env": self._filled(step.env)} if step.env else {}
        changes["action"] = step.action.filled(self._text, self._text)
        if step.workdir is not None:
            changes["workdir"] = self._text(step.workdir)
        fields = {name: value for name, value in vars(step).items() if name not in _FOUND}
        return type(step)(**(fields | changes | self._risks.of(fields | changes)))

    def _filled(self, texts: Mapping[str, Text]) -> dict[str, Text]:
        return {name: self._text(text) for name, text in texts.items()}

    def _text(self, text: Text, *, script: bool = False) -> Text:
        return fill(text, self._scope, script=script)


def fill(text: Text, scope: dict[str, Any], *, script: bool = False) -> Text:
    """Return a text with the values of a scope inserted, as far as it has them."""
    if isinstance(text, str):
        return text
    parts: list[Any] = []
    for part in text[1]:
        found = part if isinstance(part, str) else _value(part, scope, is_script=script)
        if parts and isinstance(parts[-1], str) and isinstance(found, str):
            parts[-1] += found
        else:
            parts.append(found)
    return str(parts[0]) if len(parts) == 1 and isinstance(parts[0], str) else (text[0], tuple(parts))


def _value(part: Any, scope: dict[str, Any], *, is_script: bool) -> Any:
    """Return the text of an interpolation that reads what is known, and nothing else."""
    names = list(_paths(part[0]))
    if any(name[0] not in scope or (name[1:2] and name[1] not in scope[name[0]]) for name in names):
        return part
    try:
        return (render_script if is_script else render_text)(("template", (part,)), scope)
    except (EvaluationError, KeyError):  # it will be refused, or is not known without an environment
        return part


def totals(steps: Iterable[StepPreview]) -> dict[str, Any]:
    """Return the risks of steps in the form of `ledger.json`."""
    found = RiskTotals()
    for preview in steps:
        if preview.step.kind == "group" and preview.step.grouping.template is None:
            continue  # its members count
        if preview.step.kind == "abstract":
            continue  # there is nothing yet that could have one
        found.add(preview.step, preview.step.risk)
    return found.as_data()


# Facts about an action that are computed again.
_FOUND = frozenset(("risk", "risk_reason", "effects", "open_risk"))


def _paths(tree: Any) -> Iterable[tuple[Any, ...]]:
    stack = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, tuple):
            if len(node) == 4 and node[0] == "path":
                yield node[3]
            else:
                stack.extend(node)


def _rule_checks(facts: Facts, layers: Layers) -> Iterable[RuleCheck]:
    """Yield the rules in the order of evaluation, of each policy up to the first match."""
    policies: list[tuple[str, Policy]] = [(ceiling.file, ceiling.policy) for ceiling in layers.ceilings]
    if layers.plan is not None:
        policies.append(("plan", layers.plan))
    for name, policy in policies:
        for verb in ("deny", "require", "allow"):
            for rule in policy.rules:
                if rule.verb != verb:
                    continue
                fits = matches(rule, facts)
                yield RuleCheck(
                    policy=name, verb=verb, number=rule.number, label=rule.label, line=rule.line, fits=fits
                )
                if fits:
                    break
            else:
                continue
            break


def missing(preview: StepPreview, layers: Layers) -> str:
    """Return which answer a step still needs; empty when it needs none."""
    step = preview.step
    if step.action.asks:
        policies = [*[ceiling.policy for ceiling in layers.ceilings], layers.plan]
        if any(policy is not None and step.id in policy.decisions for policy in policies):
            return ""
        criteria = any(option.when for option in step.action.options)
        return f"an answer (--decide {step.id}=VALUE)" + (
            ", unless its criteria give one" if criteria else ""
        )
    return f"an approval of {step.id}" if preview.decision.answer == "ask" else ""


def plan_data(preview: PolicyPreview) -> dict[str, Any]:
    """Return policy, risks and steps of a plan as JSON data: what `show --json` adds to the plan itself."""
    steps = preview.steps()
    return {
        "policy": preview.policy_data(),
        "risk": totals([*steps, *preview.undoing()]),
        "steps": [
            {
                **step_data(one.step),
                "action": original.action.written(),
                "decision": as_data(one, preview.layers),
            }
            for one, original in zip(steps, preview.plan.steps, strict=True)
        ],
    }


def as_data(preview: StepPreview, layers: Layers) -> dict[str, Any]:
    """Return the decision on a step as JSON data."""
    risk, decision = preview.risk, preview.decision
    commands = [
        {"words": list(command.words), "risk": command.level, "reason": readable(command.reason)}
        for command in (risk.commands if risk else ())
    ]
    looks = [
        {
            "policy": look.policy,
            "verb": look.verb,
            "rule": look.label or look.number,
            "line": look.line,
            "fits": look.fits,
        }
        for look in preview.rules
    ]
    return {
        "answer": decision.answer,
        "rule": decision.rule,
        "reason": decision.reason,
        "policies": [
            {"answer": one.answer, "rule": one.rule, "reason": one.reason} for one in preview.decisions
        ],
        "rules": looks,
        "missing": missing(preview, layers) or None,
        **({"understood": risk.understood, "commands": commands} if risk else {}),
    }
