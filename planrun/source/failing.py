"""What the failure of a step means where the step itself does not say it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.source.compile import Compiler

_GATES = ("ask", "decide")  # their `no` is no failure of anything that ran


def meaning_of_failure(compiler: Compiler, fields: dict[str, Any]) -> None:
    """Fill in what policy and model make of its failures, where neither the step nor `defaults` say it."""
    if compiler.policy is not None and "on_failure" not in fields and fields["kind"] not in _GATES:
        from planrun.source.rules import failure_word

        reversible = fields.get("reversible", True if "rollback" in fields else None)
        word = failure_word(
            compiler.policy, fields.get("risk", "high"), fields.get("effects", ()), reversible=reversible
        )
        if word:
            fields["on_failure"] = word
    if compiler.around is not None and fields.get("on_failure") == "replan":
        fields["on_failure"] = "block"
    if fields.get("section") == "finally" or fields["kind"] in _GATES or compiler.around is not None:
        return
    if fields.get("on_failure") == "replan":
        fields["replan"] = "any"
    elif (
        compiler.llm is not None and "on_failure" not in fields and compiler.llm.replan_on_failure != "never"
    ):
        fields["replan"] = compiler.llm.replan_on_failure
