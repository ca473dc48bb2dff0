"""What undoes a step: every problem beyond its shape, and the record that a plan has of it."""

from __future__ import annotations

from planrun.model.tools import SHELL
from planrun.plan.keys.outline import scalar
from planrun.plan.keys.tools import check_call, handed_on
from planrun.plan.kinds import GUARDS, PROCESSES
from planrun.plan.yaml.node import SCALAR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.plan.keys.checked import Checked
    from planrun.plan.keys.outline import RawStep

# What an undo step has of its step unless it says otherwise.
_SURROUNDINGS = ("env", "env_file", "secrets", "workdir", "shell", "owner", "origin", "needs_dir")


def check(checked: Checked) -> None:
    """Report rollbacks that do nothing, or nothing that could be undone, and steps that contradict themselves.

    What tools hand on is added to the outputs.
    """
    outline, formulas, outputs = checked.outline, checked.formulas, checked.outputs
    for raw in outline.steps:
        for undo in raw.undos:
            found = _wrong(raw, undo)
            at = raw.node.key("rollback") if len(raw.undos) == 1 else undo.node
            if found:
                outline.report("E209", found[0], at, found[1])
            tool = undo.keys.get("tool")
            if tool is not None and scalar(tool) is not None:
                label = f'the rollback of step "{raw.id}"'
                spec = check_call(outline, label, (tool, undo.keys.get("args")), formulas)
                if spec is not None and spec.name != SHELL:
                    outputs[undo.id] = handed_on(spec)


def _wrong(raw: RawStep, undo: RawStep) -> tuple[str, str] | None:
    """Return what is wrong with the rollback of a step, and a hint."""
    if raw.section == "finally":
        return (
            f'step "{raw.id}" under `finally:` cannot have a rollback',
            "nothing is rolled back after `finally:` steps",
        )
    idle = next((key for key in GUARDS if key in raw.keys), "")
    if idle:
        return f'step "{raw.id}" has a rollback, but `{idle}` changes nothing', "remove it"
    keys = undo.keys
    named = [key for key in PROCESSES if key in keys]
    if len(named) != 1:
        many = f"has {len(named)} actions" if named else "does nothing"
        return f'the rollback of step "{raw.id}" {many}', "write exactly one of `run`, `exec` and `tool`"
    if "args" in keys and "tool" not in keys:
        return (
            f'the rollback of step "{raw.id}" has `args` without `tool`',
            "`args` are the arguments of `tool`",
        )
    word = scalar(raw.keys.get("reversible"))
    if word is not None and word.kind == SCALAR and word.value.lower() == "false":
        return (
            f'step "{raw.id}" has a rollback and `reversible: false`',
            "remove one of the two",
        )
    return None
