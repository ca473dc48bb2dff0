"""The dependencies of the result of a step, part by part, and the cache key computed from them."""

from __future__ import annotations

import os

from planrun.actions.files import digest
from planrun.actions.render import brief, parts_of, render_step
from planrun.errors import EvaluationError
from planrun.expressions.render import render_text
from planrun.model.jsontext import dumps
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from planrun.actions.files import Before
    from planrun.actions.prepare import Steps
    from planrun.model.plan import Step, Text
    from planrun.model.state import RunState

    Parts = list[tuple[str, str]]

ALGORITHM = "1"
"""The version of the key algorithm: older results never match newer keys."""


def key_parts(steps: Steps, step: Step, state: RunState, known: Before) -> Parts:
    """Return the dependencies of a step as (name, value) pairs; texts and files are hashed.

    Names: algorithm, platform, then as in `difference`. Raises EvaluationError.
    """
    print_, added = content(steps, step, state)
    machine = os.uname()
    parts = [("algorithm", ALGORITHM), ("platform", f"{machine.sysname} {machine.machine}".lower())]
    parts += [(name, value) for name, value in parts_of(print_).items() if name != "env"]
    parts += [(f"env {name}", brief(value)) for name, value in sorted(added.items())]
    if step.secrets:
        parts.append(("secrets", ", ".join(sorted(step.secrets))))
    if step.cache and step.cache.key:
        parts.append(("key", brief(_text(steps, step, state, step.cache.key))))
    parts += [(f"output {name}", brief(dumps(schema))) for name, schema in sorted(step.outputs.items())]
    parts += [(f"produces {text}", "") for text in sorted(known.produces.texts)]
    parts += [(f"produces {text}", when) for when, each in known.kept.items() for text in sorted(each.texts)]
    parts += [(f"input {path}", _with_kind(seen.same)) for path, seen in known.read.items()]
    for other in upstream(state, step):
        found = state.steps[other]
        parts += [
            (f"value {name} of {other}", brief(dumps(value))) for name, value in sorted(found.outputs.items())
        ]
        if rows := made_by(state, other):
            parts.append((f"files of {other}", digest(rows)))
    return parts


def content(steps: Steps, step: Step, state: RunState) -> tuple[str, dict[str, str]]:
    """Return the fingerprint of a step and the variables that the plan adds, the same in every run.

    Raises EvaluationError.
    """
    scope = _timeless(steps, step, state)
    recipe = render_step(step, steps.layers(step, state, scope), scope, steps.shell(step, scope))
    copying = steps.copying(step, recipe)
    if copying and copying.refusal:
        raise EvaluationError(copying.refusal)
    redacted = steps.redacted(step, recipe)
    fingerprint = redacted.fingerprint() + (copying.part if copying else "")
    if step.container is not None:
        fingerprint += steps.container_jobs().part(step, scope)
    if step.expect or step.verify:
        fingerprint += steps.post_checks().part(step, state, scope)
    return fingerprint, redacted.env


def _text(steps: Steps, step: Step, state: RunState, text: Text) -> str:
    """Return a text of a step with all values but those of secrets; raises EvaluationError."""
    found = render_text(text, _timeless(steps, step, state))
    return steps.place.masks.mask_text(found) if steps.place.masks else found


def _timeless(steps: Steps, step: Step, state: RunState) -> dict[str, Any]:
    """The scope of a step in which its private folder has the same name in every run."""
    scope = steps.scope(state, step)
    if step.needs_dir:
        scope["step"] = {"dir": "<step.dir>"}
    return scope


def _with_kind(same: tuple[str, bool, bool]) -> str:
    digest_, is_link, is_program = same
    return digest_ + (" link" if is_link else " x" if is_program else "")


def key_of(parts: Sequence[tuple[str, str]]) -> str:
    """Return the key of the parts."""
    text = "".join([f"{name}\0{value}\n" for name, value in parts])
    return str(sha256(text.encode("utf-8", "surrogatepass")).hexdigest())


def upstream(state: RunState, step: Step) -> list[str]:
    """Return the steps that a step depends on directly, groups replaced by their members.

    Of a group with `{instance: ok}` only the member counts that the step has an edge on: others may not have ended.
    """
    found: dict[str, None] = {}
    seen = {step.id}
    waiting = list(step.edges)
    while waiting:
        edge = waiting.pop(0)
        other = state.steps[edge.on].step
        if edge.on in seen:
            continue
        seen.add(edge.on)
        if edge.kind == "open" and other.kind == "group" and other.id == step.group:
            waiting += [each for each in other.edges if each.kind != "same"]
            continue
        found[edge.on] = None
        found.update({name: None for name, each in state.steps.items() if each.step.group == edge.on})
    return list(found)


def made_by(state: RunState, name: str) -> Sequence[Mapping[str, Any]]:
    """Return the files that a step made, from its record."""
    found = state.steps[name]
    if found.restored is not None:
        return found.restored.files
    ended = found.attempts[-1].ended if found.attempts else None
    rows = ended.files if ended and found.status == "completed" else ()
    return [row for row in rows if row["op"] not in ("read", "deleted") and "key" not in row]


def difference(old: Sequence[tuple[str, str]], new: Sequence[tuple[str, str]]) -> str:
    """Describe the first difference in a few words; "" when there is none."""
    before, after = dict(old), dict(new)
    for name in [*after, *[name for name in before if name not in after]]:
        if before.get(name) != after.get(name):
            return _sentence(name, is_old=name in before, is_new=name in after)
    return ""


_WORDS = {
    "algorithm": "planrun computes keys differently now",
    "platform": "the platform changed",
    "argv": "its command changed",
    "call": "its call changed",
    "scripts": "the scripts it runs changed",
    "workdir": "its folder changed",
    "secrets": "the secrets it lists changed",
    "key": "its `cache.key` changed",
    "proofs": "its post-checks changed",
    "image": "its image changed",
}


def _sentence(name: str, *, is_old: bool, is_new: bool) -> str:
    if name in _WORDS:
        return _WORDS[name]
    kind, _, rest = name.partition(" ")
    how = "changed" if is_old and is_new else "is new" if is_new else "is gone"
    if kind == "input":
        return f"input {rest} {how}"
    if kind == "env":
        return f"env {rest} {how}"
    if kind == "value":
        return f"upstream output {rest} {how}"
    if kind == "files":
        return f"upstream files {rest} changed" if how == "changed" else f"upstream files {rest} {how}"
    if kind == "output":
        return f"its output {rest} {how}"
    if kind == "produces":
        return "its `produces` changed"
    return f"{name} {how}"


def changed(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Yield the paths of changed files."""
    for path in {**old, **new}:
        before, after = old.get(path), new.get(path)
        if before is None or after is None or before.same != after.same:
            yield path
