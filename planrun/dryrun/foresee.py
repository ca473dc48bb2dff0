"""What would happen to each step of a run: whether it starts, why not, with which command, and who is asked."""

from __future__ import annotations

import os
import re
import shutil

from planrun.app.preflight import Ahead
from planrun.approval.preview import PolicyPreview, fill, missing
from planrun.model import graph
from planrun.model.lifecycle import judge, weigh
from planrun.model.record import Record
from planrun.reports.describe import edge, sections

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, Literal

    from planrun.app.admission import Admission
    from planrun.app.preflight import Preview
    from planrun.approval.preview import StepPreview
    from planrun.approval.rules import Decision
    from planrun.model.plan import Plan, Step
    from planrun.settings import Settings

    Fate = Literal["runs", "may run", "skipped", "left out", "denied", "waits"]

# What bash runs itself (bash 5.2, `compgen -b` and `compgen -k`).
_WORDS = (
    ". : [ alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs disown echo "
    "enable eval exec exit export false fc fg getopts hash help history jobs kill let local logout mapfile popd printf "
    "pushd pwd read readarray readonly return set shift shopt source suspend test times trap true type typeset ulimit "
    "umask unalias unset wait if then else elif fi case esac for select while until do done in function time { } ! "
    "[[ ]] coproc"
)
_OF_THE_SHELL = frozenset(_WORDS.split())
_FUNCTION = re.compile(r"^\s*(?:function\s+)?([\w-]+)\s*\(\)", re.MULTILINE)


class Foreseen(Record):
    """What would happen to a step.

    `why` it does not start, or on what that depends; `action` with the values that are known; `level`: from 1 up, steps
    of one level can run at the same time; `needs`: an answer or an approval that is missing.
    """

    step: Step
    level: int
    fate: Fate
    why: str = ""
    action: str = ""
    decision: Decision | None = None
    needs: str = ""
    cached: Preview | None = None
    absent: tuple[str, ...] = ()  # commands that are not on PATH

    @property
    def starts(self) -> bool:
        """Whether it is among the steps that would start, as far as that is known."""
        return self.fate in ("runs", "may run", "waits", "denied")


class Foresight:
    """Foresees the steps of a plan under the caller's settings; `selected`: those that may run, None: all."""

    def __init__(
        self,
        plan: Plan,
        settings: Settings,
        selected: frozenset[str] | None,
        admission: Admission | None,
    ) -> None:
        self._plan = plan
        self._selected = selected
        self._admission = admission
        self.ahead = Ahead(plan, settings)
        self.policies = PolicyPreview(plan, settings)
        self._ends: dict[str, tuple[str, str]] = {}  # status and reason of steps that will not start
        self._fates: dict[str, tuple[Fate, str]] = {}
        self._by_id = {step.id: step for step in plan.steps}
        self.home = os.path.join(self.ahead.steps.place.workspace, ".planrun")

    def steps(self) -> list[Foreseen]:
        """Return what happens to each step, in the order of levels; groups whose members are known left out."""
        found: list[Foreseen] = []
        level = 0
        for section in sections(self._plan):
            for names in graph.levels(graph.waits(section)):
                foreseen = [self._of(self._by_id[name], level + 1) for name in names]
                shown = [
                    each
                    for each in foreseen
                    if not (each.step.kind == "group" and each.step.grouping.template is None)
                ]
                found += shown
                level += any(each.starts for each in shown)
        return found

    def _of(self, step: Step, level: int) -> Foreseen:
        fate, why = self._fate(step)
        if fate in ("skipped", "left out"):
            return Foreseen(step=step, level=level, fate=fate, why=why)
        preview = self.policies.of(step)
        decision = preview.decision
        needs = self._needs(preview)
        if decision.answer == "deny":
            fate, why = "denied", decision.reason
        elif needs:
            fate, why = "waits", decision.reason if decision.answer == "ask" else ""
        return Foreseen(
            step=preview.step,
            level=level,
            fate=fate,
            why=why,
            action=self._action(preview.step),
            decision=decision,
            needs=needs,
            cached=self.ahead.cached(step) if step.cache else None,
            absent=tuple(self._absent(preview)),
        )

    def _fate(self, step: Step) -> tuple[Fate, str]:
        if step.id not in self._fates:
            self._fates[step.id] = self._found(step)
        return self._fates[step.id]

    def _found(self, step: Step) -> tuple[Fate, str]:
        replaced = self.ahead.state.handlers.get(step.id, ()) if step.id in self.ahead.state.replaced else ()
        if replaced:
            return self._end(step, "skipped", "replaced", f"{', '.join(replaced)} takes its place")
        if self._selected is not None and step.id not in self._selected:
            return self._end(step, "left out", "selection", "the selection leaves it out")
        if step.group:
            fate, why = self._fate(self._by_id[step.group])
            if fate in ("skipped", "left out"):
                return self._end(step, fate, self._ends[step.group][1], why)
        known = [(each, self._ends[each.on]) for each in step.edges if each.on in self._ends]
        judged = {each: judge(each.kind, "skipped", reason, None) for each, (_, reason) in known}
        if weigh(judged.values()) != "satisfied":
            names = ", ".join([each.on for each, judgement in judged.items() if judgement != "satisfied"])
            return self._end(step, "skipped", "upstream", f"{names} does not run")
        holds = self.ahead.holds(step)
        if holds is False:
            return self._end(step, "skipped", "condition", f"its condition is false: {step.condition_text}")
        only = [each for each in step.edges if each.kind == "failed" and each.on not in self._ends]
        if only:
            return "may run", f"only after {', '.join(map(edge, only))}"
        if holds is None:
            return "may run", f"if {step.condition_text}"
        return "runs", ""

    def _end(self, step: Step, fate: Fate, reason: str, why: str) -> tuple[Fate, str]:
        self._ends[step.id] = "skipped", reason
        return fate, why

    def _needs(self, preview: StepPreview) -> str:
        """Return which answer a step waits for that the command line does not give."""
        step = preview.step
        admission = self._admission
        if admission and step.id in admission.answers():
            return ""
        needs = missing(preview, self.policies.layers)
        if needs and admission and not step.action.asks:
            return "" if admission.covers(step.id, self._plan.digest, self.home) else needs
        return needs

    def _action(self, step: Step) -> str:
        """Return what a step does, with the values that are known; masked."""
        if step.kind == "group":
            template = step.grouping.template
            return template.action.written() if template else ""
        scope = self.ahead.scope(step)
        text = step.action.filled(
            lambda text, script=False: fill(text, scope, script=script), lambda tree: fill(tree, scope)
        ).written()
        masks = self.ahead.steps.place.masks
        return masks.mask_text(text) if masks else text

    def _absent(self, preview: StepPreview) -> Iterator[str]:
        """Yield the programs of a step that PATH does not have now."""
        step, risk = preview.step, preview.risk
        if risk is None or step.container is not None or "PATH" in step.env or "PATH" in self._plan.env:
            return
        path = self.ahead.steps.place.env.get("PATH", os.defpath)
        own = set(_FUNCTION.findall(step.action.written()))
        for name in dict.fromkeys(command.words[0] for command in risk.commands if command.words):
            is_program = name and "/" not in name and name not in _OF_THE_SHELL and name not in own
            if name and is_program and shutil.which(name, path=path) is None:
                yield name


def as_data(each: Foreseen) -> dict[str, Any]:
    """Return what would happen to a step as JSON data."""
    step, decision = each.step, each.decision
    found: Mapping[str, Any] | None = None
    if decision:
        found = {"answer": decision.answer, "rule": decision.rule, "reason": decision.reason}
    return {
        "id": step.id,
        "section": step.section,
        "level": each.level if each.starts else None,
        "kind": step.kind,
        "fate": each.fate.replace(" ", "_"),
        "why": each.why or None,
        "depends_on": {one.on: one.kind for one in step.edges},
        "condition": step.condition_text or None,
        "action": each.action or None,
        "risk": step.risk,
        "decision": found,
        "needs": each.needs or None,
        "cache": each.cached.as_data() if each.cached else None,
        "not_on_path": list(each.absent),
    }
