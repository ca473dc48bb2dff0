"""The secrets of a run: their values, the masks over them, and what has to be said before anything starts.

Loaded only for a plan that declares secrets or hands the caller's whole environment on.
"""

from __future__ import annotations

import os

from planrun.actions.environment import holds_credential
from planrun.errors import InvalidInput
from planrun.model.record import Record
from planrun.secrets.masker import PROVIDER_KEYS, Masker, known_secrets
from planrun.secrets.redactor import Veil

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from planrun.model.plan import Plan


class Vault(Record):
    """What a run knows of secrets. Its values are read once and never written anywhere."""

    declared: Mapping[str, str]  # by name, those that are set
    absent: Mapping[str, str]  # the other required ones by name: "not set" or "empty"
    others: Mapping[str, str]  # masked besides: keys of providers, inherited credentials
    unmasked: tuple[str, ...]  # declared ones whose values cannot be masked
    veil: Veil | None  # None: no value can be masked

    def __repr__(self) -> str:
        return f"Vault({', '.join([*self.declared, *self.others])})"

    def masked(self, plan: Plan) -> Plan:
        """Return the plan as it may be shown."""
        return self.veil.mask_plan(plan) if self.veil else plan

    def refuse(self, plan: Plan, params: Mapping[str, Any]) -> None:
        """Raise InvalidInput when a secret would be recorded under a name or as the value of a parameter."""
        if self.veil is None:
            return
        self._refuse_params(params)
        names = list(_names(plan))
        if not self.veil.shows([word for _, word, _ in names]):
            return
        for what, word, line in names:
            if self.veil.mask_text(word) != word and (secret := self._holder(word, self.declared)):
                where = f"{plan.file}:{line}" if line else plan.file
                raise InvalidInput(
                    f"{where}: {what} holds the value of {secret}, and names are never masked: "
                    "choose another one"
                )

    def refuse_given(self, given: Iterable[str]) -> None:
        """Raise InvalidInput when a secret is in a `name=value` of the command line; see `refuse`.

        To be asked before the values are looked at: what is said of a wrong one quotes it, cut to size.
        """
        if self.veil:
            self._refuse_params({self.veil.mask_text(word.partition("=")[0]): word for word in given})

    def refuse_answers(self, answers: Mapping[str, Any]) -> None:
        """Raise InvalidInput when an answer, by step, holds a secret: answers are recorded."""
        for step, value in answers.items() if self.veil else ():
            if self.veil and self.veil.mask_value(value) != value:
                raise InvalidInput(
                    f'the answer of "{step}" holds the value of {self._holder(value)}, and answers are recorded'
                )

    def _refuse_params(self, params: Mapping[str, Any]) -> None:
        assert self.veil is not None
        for name, value in params.items():
            if self.veil.mask_value(value) != value:
                secret = self._holder(value)
                raise InvalidInput(
                    f'the parameter "{name}" holds the value of {secret}, and parameters are recorded: '
                    f'list {secret} under `secrets` of the step that needs it, and read "${secret}" there'
                )

    def notice(self, plan: Plan, selected: frozenset[str] | None) -> dict[str, Any]:
        """Return what is told at the start and recorded: names and places, no values.

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
        if self.veil is None or self.veil.mask_value(source) == source:
            return
        # Masks of a single secret each, to tell whose value it is: few plans come here.
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


def open_vault(plan: Plan, environ: Mapping[str, str] = os.environ) -> Vault:
    """Return what there is to know of a plan's secrets in an environment."""
    declared, missing = known_secrets(plan.secrets, environ)
    others = known_secrets(PROVIDER_KEYS, environ)[0]
    if plan.inherit_env == "all":
        others |= {name: value for name, value in environ.items() if value and holds_credential(name, value)}
    others = {name: value for name, value in others.items() if name not in declared}
    masker = Masker({**declared, **others})
    return Vault(
        declared=declared,
        absent={
            name: "empty" if name in environ else "not set"
            for name in missing
            if name not in plan.optional_secrets
        },
        others=others,
        unmasked=tuple([name for name in masker.ignored if name in declared]),
        veil=Veil(masker) if masker else None,
    )


def _names(plan: Plan) -> Iterator[tuple[str, str, int]]:
    """Yield the words of a plan that stand in records as they are: what each is, the word, its line (0: none)."""
    for param in plan.params:
        yield "the name of a parameter", param.name, 0
    for step in plan.steps:
        yield "the id of a step", step.id, step.line
        for tag in step.tags:
            yield "a tag", tag, step.line
        for output in step.outputs:
            yield "the name of an output", output, step.line
