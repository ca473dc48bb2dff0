"""Advice about unneeded waits, unused names, and processes that no step stops."""

from __future__ import annotations

import re

from planrun.expressions.check import references
from planrun.model import graph
from planrun.model.globs import BadGlob, meet, parse
from planrun.model.notify import host_of, is_private, secrets_of
from planrun.plan.edit.reorder import by_longest_path, makespan, savings
from planrun.risk.classifier import Setting, scope_of
from planrun.risk.levels import rank
from planrun.risk.scope import TooMany
from planrun.risk.tokens import NotUnderstood

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from planrun.lint.subject import Subject
    from planrun.model.globs import Glob
    from planrun.model.plan import Step, Text
    from planrun.plan.problems import Problem
    from planrun.risk.classifier import Command

WORTH = 1.0  # seconds that another order has to save to be worth a word
PLACES = 4  # steps at once that are reckoned with where the plan names no number: as on the runners of most CI systems
_EARLY = frozenset(("network", "publishes", "destroys", "privilege", "secrets", "unknown"))


def needless_waits(subject: Subject) -> Iterator[Problem]:
    """L411: a step that depends on another one without reading its results, where starting early is safe."""
    needless = [
        (step, other)
        for step, other in _waits(subject)
        if (step.id, other.id) not in subject.read and _is_needless(subject, step, other)
    ]
    edges = [(step.id, other.id) for step, other in needless]
    implied = graph.implied(subject.before, edges)
    known = all(name in subject.seconds for name in subject.before)
    saved = savings(subject.before, subject.seconds, edges) if known else {}
    for step, other in needless:
        if (step.id, other.id) in implied or (known and saved[step.id, other.id] < GRAIN):
            continue
        worth = f"about {saved[step.id, other.id]:.1f} s a run" if known else "unknown, no durations recorded"
        yield subject.advice(
            "L411",
            f'step "{step.id}" waits for "{other.id}" but reads none of its results: both could run in parallel',
            step,
            "depends_on",
            f"time saved: {worth}",
        )


def _waits(subject: Subject) -> Iterator[tuple[Step, Step]]:
    """Yield the edges that are written as a plain list: the step and the one that it waits for."""
    for step in subject.steps():
        if step.section != "steps" or step.condition is not None or step.group:
            continue
        draft = subject.draft(step)
        for link in draft.links if draft is not None else ():
            other = subject.by_id.get(link.on)
            if other is not None and link.form == "list":
                yield step, other


GRAIN = 0.1  # seconds; less is noise


def hidden_path(subject: Subject) -> Iterator[Problem]:
    """L412: a file order with which a run without known durations starts the longest path late.

    CI systems bring no records along: there the order of the file decides between steps that look alike.
    """
    plan = subject.plan
    if plan.schedule != "dag" or any(step.kind == "group" for step in plan.steps):
        return
    names = [step.id for step in plan.main()]
    if len(names) < 3 or any(name not in subject.seconds for name in names):
        return
    places = plan.limits.max_parallel or PLACES
    now = makespan(subject.before, names, subject.seconds, places)
    better = by_longest_path(subject.before, names, subject.seconds)
    then = makespan(subject.before, better, subject.seconds, places)
    if now - then < WORTH:
        return
    yield subject.advice(
        "L412",
        f"the step order delays the longest path: without records {places} at once take {now:.0f} s, and "
        f"{then:.0f} s when it comes first",
        key="steps",
        hint=f"`planrun lint --fix` reorders the steps: {', '.join(better)}",
    )


def _is_needless(subject: Subject, step: Step, other: Step) -> bool:
    if any(each.action.asks or each.kind == "group" for each in (step, other)):
        return False
    if "abstract" in (step.kind, other.kind) or other.kind == "validate" or other.on_failure == "abort":
        return False
    if (
        step.section != other.section
        or step.lock
        or step.conflicts
        or step.recovers
        or step.open_risk
        or _EARLY & set(step.effects)
    ):
        return False
    if rank(step.risk) == rank(other.risk) == 0 and not other.open_risk:
        return not (step.verify or other.outputs) and subject.works(step) and subject.works(other)
    return rank(step.risk) < rank("high") and _are_apart(step, other)


def _are_apart(step: Step, other: Step) -> bool:
    """Whether both name their files, and neither writes files of the other."""
    made, read = _globs((*other.makes, *other.writes)), _globs(step.inputs)
    own, theirs = _globs((*step.makes, *step.writes)), _globs(other.inputs)
    if not made or not read or None in (own, theirs):
        return False
    return not (_meet(made, read) or _meet(own or [], theirs or []) or _meet(own or [], made))


def _globs(texts: tuple[Text, ...]) -> list[tuple[Glob, ...]] | None:
    """Return patterns, None where some are not known yet."""
    try:
        return (
            [parse(text) for text in texts if isinstance(text, str)]
            if all(isinstance(text, str) for text in texts)
            else None
        )
    except BadGlob:
        return None


def _meet(left: list[tuple[Glob, ...]], right: list[tuple[Glob, ...]]) -> bool:
    return any(meet(one, two) for one in left for two in right)


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
    """L408: a secret of the plan that no step lists, and that no notification and no MCP server needs."""
    listed = {name for step in subject.plan.everything() for name in step.secrets}
    listed.update(secrets_of(subject.plan.notify))
    listed.update([name for server in subject.plan.mcp for name in server.needs])
    if any(step.kind == "abstract" for step in subject.plan.steps):
        return
    for name in subject.plan.secrets:
        if name not in listed:
            yield subject.advice("L408", f'no step lists the secret "{name}"', key="secrets")


def plain_notifications(subject: Subject) -> Iterator[Problem]:
    """L426: a notification that anybody on the way can read and change."""
    for target in subject.plan.notify:
        if target.url.lower().startswith("http://") and not is_private(host_of(target.url)):
            message = f"notifications to {host_of(target.url)} are not encrypted"
            advice = subject.advice("L426", message, hint="use https://", key="notify")
            yield advice.but(line=target.line, col=1, end_col=0) if target.line else advice


def unpinned_servers(subject: Subject) -> Iterator[Problem]:
    """L430: an MCP server whose tools may be described in any way when a run starts."""
    for server in subject.plan.mcp:
        if not server.pins:
            message = f'the tools of the MCP server "{server.name}" are not pinned'
            advice = subject.advice("L430", message, hint="planrun mcp pin", key="mcp")
            yield advice.but(line=server.line, col=1, end_col=0) if server.line else advice


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
