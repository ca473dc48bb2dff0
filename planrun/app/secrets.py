"""The secrets of a run: their values, redaction, and the checks before anything starts.

Loaded only for a plan that declares secrets, that may call a model, or whose steps inherit the whole environment.
"""

from __future__ import annotations

import os

from planrun.actions.environment import RunEnvironment, holds_credential
from planrun.actions.prepare import Steps
from planrun.errors import EvaluationError, InvalidInput, InvalidPlan
from planrun.expressions.check import references
from planrun.model.groups import chain
from planrun.model.record import Record
from planrun.model.state import RunState
from planrun.plan.includes import outline_for
from planrun.plan.keys.outline import entries
from planrun.plan.problems import Problem, in_order
from planrun.plan.readers import shown
from planrun.secrets.masker import PROVIDER_KEYS, Masker, known_secrets
from planrun.secrets.redactor import EventRedactor
from planrun.settings import ci_context

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from typing import Any

    from planrun.model.plan import Plan, Step
    from planrun.plan.keys.outline import Outline
    from planrun.plan.yaml.node import Node


class RunSecrets(Record):
    """The secrets that a run knows. Their values are read once and never written."""

    declared: Mapping[str, str]  # by name, those that are set
    absent: Mapping[str, str]  # the other required ones by name: "not set" or "empty"
    others: Mapping[str, str]  # also masked: keys of providers, inherited credentials
    values: Mapping[str, str]  # of those that are declared or that a policy names, by name
    unmasked: tuple[str, ...]  # declared ones whose values cannot be masked
    redactor: EventRedactor | None  # None: no value can be masked

    def __repr__(self) -> str:
        return f"RunSecrets({', '.join([*self.declared, *self.others])})"

    def masked(self, plan: Plan) -> Plan:
        """Return the plan as it may be shown."""
        return self.redactor.mask_plan(plan) if self.redactor else plan

    def refuse(self, plan: Plan, params: Mapping[str, Any]) -> None:
        """Raise InvalidInput when a secret would be recorded under a name or as the value of a parameter."""
        if self.redactor is None:
            return
        self._refuse_params(params)
        names = list(_names(plan))
        if not self.redactor.contains_secret([word for _, word, _ in names]):
            return
        for what, word, line in names:
            if self.redactor.mask_text(word) != word and (secret := self._holder(word, self.declared)):
                where = f"{plan.file}:{line}" if line else plan.file
                raise InvalidInput(
                    f"{where}: {what} holds the value of {secret}, and names are never masked: "
                    "choose another one"
                )

    def refuse_given(self, given: Iterable[str]) -> None:
        """Raise InvalidInput when a secret is in a `name=value` of the command line; see `refuse`.

        Call it before the values are parsed: the message about a wrong value quotes it in part.
        """
        if self.redactor:
            self._refuse_params({self.redactor.mask_text(word.partition("=")[0]): word for word in given})

    def refuse_answers(self, answers: Mapping[str, Any]) -> None:
        """Raise InvalidInput when an answer, by step, holds a secret: answers are recorded."""
        for step, value in answers.items() if self.redactor else ():
            if self.redactor and self.redactor.mask_value(value) != value:
                raise InvalidInput(
                    f'the answer of "{step}" holds the value of {self._holder(value)}, and answers are recorded'
                )

    def _refuse_params(self, params: Mapping[str, Any]) -> None:
        assert self.redactor is not None
        for name, value in params.items():
            if self.redactor.mask_value(value) != value:
                secret = self._holder(value)
                raise InvalidInput(
                    f'the parameter "{name}" holds the value of {secret}, and parameters are recorded: '
                    f'list {secret} under `secrets` of the step that needs it, and read "${secret}" there'
                )

    def notice(self, plan: Plan, selected: frozenset[str] | None) -> dict[str, Any]:
        """Return the record that is also shown at the start: names and places, no values.

        missing: steps that will be refused, by secret; unmasked: names; in_plan: `line:col NAME`.
        """
        missing: dict[str, list[str]] = {}
        for step in plan.steps:
            for name in step.secrets if selected is None or step.id in selected else ():
                if name in self.absent:
                    missing.setdefault(name, []).append(step.id)
        return {
            "declared": list(plan.secrets),
            "missing": missing,
            "unmasked": list(self.unmasked),
            "in_plan": [
                *[f"{line}:{col} {name}" for line, col, name in self._places(plan.source)],
                *[
                    f"{file}:{line}:{col} {name}"
                    for file, data in plan.files.items()
                    for line, col, name in self._places(data)
                ],
            ],
        }

    def _places(self, source: bytes) -> Iterator[tuple[int, int, str]]:
        """Yield where the text of a plan holds the values of declared secrets; lines and columns from 1."""
        if self.redactor is None or self.redactor.mask_value(source) == source:
            return
        # One masker per secret, to know which one it is; rarely needed.
        for name, value in self.declared.items():
            for at in Masker({name: value}).find(source):
                before = source[:at].decode("utf-8", "replace")
                yield before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1, name

    def _holder(self, value: Any, among: Mapping[str, str] | None = None) -> str:
        """Return the name of the first secret that shows in a value; empty when none does."""
        known = {**self.declared, **self.others} if among is None else among
        for name, secret in known.items():
            if Masker({name: secret}).mask_value(value) != value:
                return name
        return ""


def read_secrets(
    plan: Plan, environ: Mapping[str, str] = os.environ, more: Collection[str] = ()
) -> RunSecrets:
    """Return the secrets of a plan from an environment; `more`: names of others, which a policy needs."""
    declared, missing = known_secrets(plan.secrets, environ)
    others = known_secrets((*PROVIDER_KEYS, *more), environ)[0]
    if plan.inherit_env == "all":
        others |= {name: value for name, value in environ.items() if value and holds_credential(name, value)}
    others = {name: value for name, value in others.items() if name not in declared}
    masker = Masker({**declared, **others})
    return RunSecrets(
        declared=declared,
        absent={
            name: "empty" if name in environ else "not set"
            for name in missing
            if name not in plan.optional_secrets
        },
        others=others,
        values={**{name: others[name] for name in more if name in others}, **declared},
        unmasked=tuple([name for name in masker.ignored if name in declared]),
        redactor=EventRedactor(masker) if masker else None,
    )


def _names(plan: Plan) -> Iterator[tuple[str, str, int]]:
    """Yield the words of a plan that are recorded unmasked: kind, word, line (0: none)."""
    for param in plan.params:
        yield "the name of a parameter", param.name, 0
    for step in plan.steps:
        yield "the id of a step", step.id, step.line
        for tag in step.tags:
            yield "a tag", tag, step.line
        for output in step.outputs:
            yield "the name of an output", output, step.line


def require_secrets(
    plan: Plan, params: Mapping[str, Any], absent: Mapping[str, str], names: Iterable[str] | None
) -> None:
    """Raise InvalidPlan for each secret in `absent` that a step to run lists, at its place in the file.

    `names`: the steps to run; None: all. A step does not need its secrets when its condition, or that of a group
    around it, is false for parameters and environment alone.
    """
    wanted = None if names is None else frozenset(names)
    state = RunState(plan)
    state.params = dict(params)
    steps = Steps(
        RunEnvironment(
            run="", workspace="", rundir="", env=dict(os.environ), shell=(), context=ci_context(os.environ)
        )
    )
    listings = _Listings(plan)
    problems: dict[tuple[str, int, int, str], Problem] = {}
    sources = {plan.file: plan.source}
    for step in plan.steps:
        missing = [name for name in _listed(step) if name in absent]
        if missing and (wanted is None or step.id in wanted) and not _is_left_out(step, state, steps):
            sources |= {shown(plan.file, path): data for path, data in plan.files.items()}
            for name in missing:  # instances of a step share a place
                why = absent[name]
                node, file = listings.node(step, name)
                found = Problem(
                    code="E235",
                    message=f'step "{step.group or step.id}" needs the secret {name}, '
                    f"which is {why} in planrun's environment",
                    file=file or plan.file_of(step),
                    hint=f"set it, or declare `secrets: [{{name: {name}, required: false}}]`",
                    line=node.line if node else step.line,
                    col=node.col if node else step.col,
                    end_col=node.end_col if node else 0,
                )
                problems.setdefault((found.file, found.line, found.col, name), found)
    if problems:
        raise InvalidPlan(in_order(list(problems.values())), sources=sources)


def _listed(step: Step) -> tuple[str, ...]:
    template = step.grouping.template if step.kind == "group" else None
    return template.secrets if template else step.secrets


def _is_left_out(step: Step, state: RunState, steps: Steps) -> bool:
    around = [state.steps[name].step for name in chain(state, step.id)]
    return any(_is_false(each, state, steps) for each in (step, *around))


def _is_false(step: Step, state: RunState, steps: Steps) -> bool:
    """Whether a condition is false whatever other steps do."""
    if step.condition is None or any(
        reference.path[0] == "steps" for reference in references(step.condition)
    ):
        return False
    try:
        return not steps.holds(step, state)
    except EvaluationError:
        return False


class _Listings:
    """The places where steps list secrets in the files of a plan."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._outlines: dict[str, Outline | None] = {}

    def node(self, step: Step, name: str) -> tuple[Node | None, str]:
        """Return the place where a step lists a secret, and its file; None where its text is not available."""
        file = step.file
        if file not in self._outlines:
            self._outlines[file] = outline_for(self._plan, step)
        outline = self._outlines[file]
        if outline is None:
            return None, ""
        for draft in outline.steps:
            place = (outline.path_of(draft.at) or step.file, draft.at.line, draft.at.col)
            if place == (step.file, step.line, step.col):
                listed = entries(draft.keys.get("secrets"))
                found = next((node for node in listed if node.value == name), None)
                return found, outline.file_of(found) if found else ""
        return None, ""
