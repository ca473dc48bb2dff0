"""The kind `validate`: a list of checks that planrun makes itself."""

from __future__ import annotations

from planrun.model.plan import Action, Check, source_text
from planrun.values import sorted_data

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


class Validate(Action):
    """A list of checks that must all hold."""

    kind = "validate"
    guards = True
    activity = "analyzing"
    checks: tuple[Check, ...]

    def formulas(self) -> Iterator[Any]:
        """Yield what the checks read."""
        for check in self.checks:
            yield from check.formulas()

    def written(self) -> str:
        """Return the checks as they stand in the plan, one a line."""
        return "\n".join([check.source for check in self.checks])

    def by_keys(self) -> dict[str, Any]:
        """Return the checks under their key."""
        return {"validate": [_by_keys(check) for check in self.checks]}


def _by_keys(check: Check) -> dict[str, Any]:
    if check.kind == "that":
        return {"that": check.source}
    if check.kind != "json_schema":
        return {check.kind: [source_text(value) for value in check.value]}
    schema = check.value["schema"]
    shown = sorted_data(schema) if isinstance(schema, dict) else source_text(schema)
    return {check.kind: {"file": source_text(check.value["file"]), "schema": shown}}
