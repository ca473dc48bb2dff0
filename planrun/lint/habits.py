"""Advice about scripts that rely on what another CI system or one shell for all steps would do."""

from __future__ import annotations

import re

from planrun.reports.errorlines import FOREIGN_FILES, TO_OUTPUT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from planrun.lint.subject import Subject
    from planrun.model.plan import Step
    from planrun.plan.problems import Problem

_WRITTEN = re.compile(
    r">>?\s*[\"']?\$\{?(" + "|".join(FOREIGN_FILES) + r")\b|\btee\s[^|;&\n]*\$\{?GITHUB_OUTPUT\b"
)
_EXPORTED = re.compile(
    r"(?:^|[;&({]|\bthen\b|\bdo\b)\s*(?:export|declare -x)\s+([A-Za-z_]\w*)=", re.MULTILINE
)
_SET_OUTPUT = re.compile(r"::set-output\s+name=")


def foreign_files(subject: Subject) -> Iterator[Problem]:
    """L427: a script that hands values on in a file of another CI system, which planrun does not have."""
    for step in subject.actions:
        script = subject.script(step)
        names = [found or "GITHUB_OUTPUT" for found in _WRITTEN.findall(script)]
        for name in dict.fromkeys(names):
            if not _has_variable(subject, step, name):
                message = f'step "{step.id}" writes to `${name}`, which planrun does not set'
                yield subject.advice("L427", message, step, "run", FOREIGN_FILES[name])
        if _SET_OUTPUT.search(script):
            message = f'step "{step.id}" prints `::set-output`, which planrun does not read'
            yield subject.advice("L427", message, step, "run", TO_OUTPUT)


def lost_exports(subject: Subject) -> Iterator[Problem]:
    """L428: a variable that one step exports and a later one reads, although each step has its own environment."""
    exported: dict[str, str] = {}  # by the name of the variable the step
    for step in subject.actions:
        script = subject.script(step)
        own = set(_EXPORTED.findall(script))
        for name, source in exported.items():
            if name not in own and re.search(rf"\$(?:{name}\b|\{{{name}\b)", script):
                if _has_variable(subject, step, name):
                    continue
                yield subject.advice(
                    "L428",
                    f'step "{step.id}" reads `${name}`, which step "{source}" exports; '
                    "each step has its own environment",
                    step,
                    "run",
                    f'in "{source}" {TO_OUTPUT.replace("name", name.lower())}; '
                    f"here set `env: {{{name}: ${{{{ steps.{source}.outputs.{name.lower()} }}}}}}`",
                )
        for name in own:
            exported.setdefault(name, step.id)


def _has_variable(subject: Subject, step: Step, name: str) -> bool:
    """Say whether the plan, the step or its script gives a variable a value."""
    given = {*subject.plan.env, *step.env, *step.secrets}
    return name in given or re.search(rf"(?:^|[\s;&(]){name}=", subject.script(step)) is not None
