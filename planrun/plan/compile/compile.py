"""From a checked node tree to a Plan: every default resolved, nothing left to look up."""

from __future__ import annotations

import os

from planrun.model.plan import Plan, Step
from planrun.plan.compile.canonical import digest
from planrun.plan.compile.step import READ, StepCompiler
from planrun.plan.keys.table import PLAN, module
from planrun.plan.keys.top import declared_secrets, limits_of, optional_secrets, params_of, rounds_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.plan.keys.checked import Checked


def compile_plan(checked: Checked) -> Plan:
    """Return the plan of a tree in which neither shape nor meaning had a problem."""
    return Compiler(checked).plan()


class Compiler(StepCompiler):
    """Compiles one plan, with the steps that its groups and the plans that it uses become."""

    def plan(self) -> Plan:
        """Put everything together."""
        root = self.root.value
        fields: dict[str, Any] = {"name": stem(self.outline.file)}
        for key, node in root.items():
            row = PLAN.get(key)
            if row is not None and row.form in READ:
                fields[row.field] = READ[row.form](self, None, node)
        fields |= {
            "file": self.outline.file,
            "steps": tuple(self.steps()),
            "params": params_of(self.checked.params),
            "secrets": tuple(declared_secrets(self.root)),
            "optional_secrets": optional_secrets(self.root),
            "limits": limits_of(root.get("limits")),
        }
        if self.policy is not None:
            fields["policy"] = self.policy
        if self.llm is not None:
            fields["llm"] = self.llm
        if "notify" in root:
            fields["notify"] = module("notify").of_plan(self.outline, root["notify"])
        if "mcp" in root:
            fields["mcp"] = module("mcp").servers_of(self.root)
        if "search" in root:
            self._search(root, fields)
        if "resume" in root:
            fields["resume"] = rounds_of(root["resume"])
        if "inherit_env" in self.defaults:
            fields["inherit_env"] = self.defaults["inherit_env"].value
        if any([step.makes or step.writes or step.kind == "group" for step in fields["steps"]]):  # noqa: C419
            from planrun.plan.compile.conflicts import with_conflicts

            fields["steps"] = with_conflicts(fields["steps"])
        plan = Plan(
            **{name: value for name, value in fields.items() if value not in ((), {}) or name == "steps"}
        )
        return plan.but(digest=digest(plan))

    def _search(self, root: dict[str, Any], fields: dict[str, Any]) -> None:
        """Fill in the search, with its parts as steps, and the replans that its thoroughness allows."""
        from planrun.model.search import PRESETS  # few plans search
        from planrun.plan.keys.search import parts_of

        search = module("search").search_of(root["search"])
        if self.checked.parts is not None:
            ids = {id(part) for part in parts_of(self.root)}
            inner = StepCompiler(self.checked.parts)
            parts = [inner.step(raw) for raw in self.checked.parts.outline.steps if id(raw.node) in ids]
            search = search.but(parts=tuple(parts))
        fields["search"] = search
        limits = root.get("limits")
        if "thoroughness" in root["search"].value and (limits is None or limits.get("max_replans") is None):
            fields["limits"] = fields["limits"].but(max_replans=PRESETS[search.thoroughness]["max_replans"])

    def steps(self) -> list[Step]:
        """Return every step, with all that those become which have instances, or use a plan."""
        groups = self.checked.groups
        if not groups and not any([raw.used for raw in self.outline.steps]):  # noqa: C419 - half the time
            return [self.step(raw) for raw in self.outline.steps]
        from planrun.plan.compile.groups import embedded, unfolded

        steps: list[Step] = []
        for raw in self.outline.steps:
            if raw.used is not None:
                assert raw.used.checked is not None
                inner = Compiler(raw.used.checked, self)
                steps += embedded(self, raw, inner, inner.steps())
            elif raw.id in groups:
                steps += unfolded(self, groups[raw.id])
            else:
                steps.append(self.step(raw))
        return steps


def stem(file: str) -> str:
    """Return the name of a plan that has none: its file's, without folder and ending."""
    return os.path.splitext(os.path.basename(file))[0] or "plan"
