"""What undoes a step: every problem beyond its shape, and the record that a plan has of it."""

from __future__ import annotations

from planrun.model.plan import DEFAULT_TIMEOUT, Rollback, Step
from planrun.model.tools import SHELL
from planrun.plan.keys.outline import scalar
from planrun.plan.keys.tools import check_call, handed_on
from planrun.plan.schema.forms import as_bool, as_duration
from planrun.plan.yaml.node import SCALAR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.plan.compile.compile import Compiler
    from planrun.plan.keys.formulas import Formulas
    from planrun.plan.keys.outline import Outline, RawStep

ACTIONS = ("run", "exec", "tool")
# Actions that change nothing.
_IDLE = ("validate", "ask", "decide")
# What an undo step has of its step unless it says otherwise.
_SURROUNDINGS = ("env", "env_file", "secrets", "workdir", "shell", "owner", "origin", "needs_dir")


def check_undoing(
    outline: Outline, formulas: Formulas, outputs: dict[str, dict[str, dict[str, Any]]]
) -> None:
    """Report rollbacks that do nothing, or nothing that could be undone, and steps that contradict themselves.

    What tools hand on is added to `outputs`.
    """
    for draft in outline.drafts:
        if draft.undo is None:
            continue
        found = _wrong(draft)
        if found:
            outline.report("E209", found[0], draft.node.key("rollback"), found[1])
        tool = draft.undo.keys.get("tool")
        if tool is not None and scalar(tool) is not None:
            label = f'the rollback of step "{draft.id}"'
            spec = check_call(outline, label, (tool, draft.undo.keys.get("args")), formulas)
            if spec is not None and spec.name != SHELL:
                outputs[draft.undo.id] = handed_on(spec)


def _wrong(draft: RawStep) -> tuple[str, str] | None:
    """Return what is wrong with the rollback of a step, and a hint."""
    if draft.section == "finally":
        return (
            f'step "{draft.id}" under `finally:` has a rollback',
            "those steps run at every end of a run, and nothing is undone after them",
        )
    idle = next((key for key in _IDLE if key in draft.keys), "")
    if idle:
        return f'step "{draft.id}" has a rollback, and `{idle}` changes nothing', "take it out"
    keys = draft.undo.keys if draft.undo else {}
    named = [key for key in ACTIONS if key in keys]
    if len(named) != 1:
        many = f"has {len(named)} actions" if named else "does nothing"
        return f'the rollback of step "{draft.id}" {many}', "give it one of `run`, `exec` and `tool`"
    if "args" in keys and "tool" not in keys:
        return (
            f'the rollback of step "{draft.id}" has `args` and no `tool`',
            "they are the arguments of a tool",
        )
    word = scalar(draft.keys.get("reversible"))
    if word is not None and word.kind == SCALAR and word.value.lower() == "false":
        return (
            f'step "{draft.id}" has a rollback and says that it is not reversible',
            "take one of the two out",
        )
    return None


def undoing_of(compiler: Compiler, draft: RawStep, step: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a step that say how it is undone; `step` are its other ones.

    Where `defaults.rollback` is false, nothing undoes it, whatever it says.
    """
    found: dict[str, Any] = {}
    if "reversible" in draft.keys:
        found["reversible"] = as_bool(draft.keys["reversible"])
    general = compiler.defaults.get("rollback")
    if draft.undo is not None and (general is None or as_bool(general)):
        found["rollback"] = _rollback(compiler, draft.undo, step)
    return found


def _rollback(compiler: Compiler, undo: RawStep, step: dict[str, Any]) -> Rollback:
    keys = undo.keys
    fields: dict[str, Any] = {name: step[name] for name in _SURROUNDINGS if name in step}
    fields |= {"id": undo.id, "section": "rollback", "line": undo.at.line, "col": undo.at.col}
    if "file" in step:
        fields["file"] = step["file"]
    compiler.action(keys, fields)
    for key in ("workdir", "shell"):
        if key in keys:
            fields[key] = getattr(compiler, key)(keys[key])
    if "env" in keys:
        fields["env"] = {**fields.get("env", {}), **compiler.texts(keys["env"])}
    if "timeout" in keys or "timeout" in compiler.defaults:
        fields["timeout"] = as_duration((keys.get("timeout") or compiler.defaults["timeout"]).value)
    if fields.get("timeout") == DEFAULT_TIMEOUT:
        del fields["timeout"]
    if "idempotent" in keys:
        fields["idempotent"] = as_bool(keys["idempotent"])
    if id(undo) in compiler.private:
        fields["needs_dir"] = True
    on_failed = {"on_failed": True} if "on_failed" in keys and as_bool(keys["on_failed"]) else {}
    return Rollback(undo=Step(**fields), **on_failed)


def finished(compiler: Compiler, rollback: Rollback) -> Rollback:
    """Return a rollback with what is found out about it."""
    undo = rollback.undo
    return rollback.but(undo=compiler.names.given(undo.but(**compiler.risks.of(vars(undo)))))
