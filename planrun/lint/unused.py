"""Advice about unused names, and processes that no step stops."""

from __future__ import annotations

import re

from planrun.expressions.check import references
from planrun.risk.classifier import Setting, scope_of
from planrun.risk.scope import TooMany
from planrun.risk.tokens import NotUnderstood

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from planrun.lint.subject import Subject
    from planrun.plan.problems import Problem
    from planrun.risk.classifier import Command

_DETACHED = ("-d", "--detach", "--detach=true", "-dit", "-itd", "-id", "-di", "-td")
_OUTLIVING = frozenset(("nohup", "setsid", "disown"))


LARGE = 50
"""From this number of steps on a plan should have `max_steps` (N-01)."""


def unbounded(subject: Subject) -> Iterator[Problem]:
    """L425: a plan of many steps without `max_steps`."""
    limits = subject.root.get("limits")
    if subject.checked.count > LARGE and (limits is None or limits.get("max_steps") is None):
        yield subject.advice(
            "L425",
            f"the plan has {subject.checked.count:,} steps and no `max_steps`",
            key="steps",
            hint=f"add `limits: {{max_steps: {subject.checked.count}}}`, to notice a list that grows",
        )


def nameless(subject: Subject) -> Iterator[Problem]:
    """L405: a step that reports can only call by its position, among several."""
    if len(subject.plan.steps) < 3:
        return
    for step in subject.steps():
        draft = subject.draft(step)
        if draft is not None and not {"id", "title"} & set(draft.keys) and not step.undoes:
            yield subject.advice(
                "L405", f'step {step.id} has neither `id` nor `title`: reports call it "{step.id}"', step
            )


def unused_secrets(subject: Subject) -> Iterator[Problem]:
    """L408: a secret of the plan that no step lists."""
    listed = {name for step in subject.plan.everything() for name in step.secrets}
    if any(step.kind == "abstract" for step in subject.plan.steps):
        return
    for name in subject.plan.secrets:
        if name not in listed:
            yield subject.advice("L408", f'no step lists the secret "{name}"', key="secrets")


def unused_params(subject: Subject) -> Iterator[Problem]:
    """L409: a parameter that no expression of the file names."""
    if any(step.kind == "abstract" for step in subject.plan.steps):
        return
    node = subject.root.get("params")
    for param in subject.plan.params:
        if re.search(rf"params\s*(\.\s*{re.escape(param.name)}(?![\w-])|\[)", subject.text):
            continue
        advice = subject.advice("L409", f'the parameter "{param.name}" is unused', key="params")
        key = node.key(param.name) if node is not None else None
        yield advice.but(line=key.line, col=key.col, end_col=key.end_col) if key is not None else advice


def constant_conditions(subject: Subject) -> Iterator[Problem]:
    """L410: a condition that reads nothing."""
    for step in subject.steps():
        if step.condition is not None and not references(step.condition):
            yield subject.advice(
                "L410",
                f'the condition of step "{step.id}" reads no value, so it is constant',
                step,
                "condition",
            )


def unstopped(subject: Subject) -> Iterator[Problem]:
    """L413: a container that outlives its step, in a plan without cleanup."""
    if subject.plan.cleanup():
        return
    for step in subject.actions:
        if step.rollback is None and any(map(_is_detached, subject.commands(step))):
            yield subject.advice(
                "L413",
                f'step "{step.id}" starts containers that outlive it, and no `finally` step stops them',
                step,
                hint="steps under `finally` run however the run ends",
            )


def background(subject: Subject) -> Iterator[Problem]:
    """L414: a process in the background that its script does not wait for."""
    for step in subject.actions:
        how = _leaves_behind(subject.script(step)) if step.action.is_script else ""
        words = [command.words[0] for command in subject.commands(step) if command.words]
        how = how or next((word for word in words if word in _OUTLIVING), "")
        if how and "wait" not in words:
            yield subject.advice(
                "L414",
                f'step "{step.id}" leaves a background process (`{how}`), which planrun kills when the step ends',
                step,
                "run",
                "add `wait` at the end of the script",
            )


def uncached_files(subject: Subject) -> Iterator[Problem]:
    """L415: a cached step that writes undeclared files."""
    for step in subject.steps():
        risk = subject.risk(step) if step.cache is not None else None
        if step.cache is None or step.makes or step.outputs or risk is None or not risk.understood:
            continue
        if any("writes" in command.effects for command in risk.commands) and "code" not in risk.effects:
            yield subject.advice(
                "L415",
                f'step "{step.id}" is cached and writes undeclared files: a cache hit does not restore them',
                step,
                "cache",
                "list them under `produces`",
            )


def _is_detached(command: Command) -> bool:
    words = [word for word in command.words if word]
    if not words or words[0] not in ("docker", "podman", "docker-compose"):
        return False
    starts = "up" if words[0] == "docker-compose" or "compose" in words[1:3] else "run"
    return starts in words[1:4] and any(word in _DETACHED for word in words)


def _leaves_behind(script: str) -> str:
    """Return `&` or `coproc` where a script, as far as it is understood, starts something in the background."""
    if "&" not in script.replace("&&", "") and "coproc" not in script:
        return ""
    try:
        marks = scope_of(script, Setting()).marks
    except (NotUnderstood, TooMany):
        return ""
    reasons = [finding.reason for _, finding in marks if "in the background" in finding.reason]
    return reasons[0].split("`")[1] if reasons else ""
