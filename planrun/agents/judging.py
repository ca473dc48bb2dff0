"""What policies say of a call of a tool: its risk, and allow, ask or deny with the rule."""

from __future__ import annotations

import os

from planrun.actions.trust import Ground, cleaned, raised
from planrun.approval.policies import facts_of
from planrun.approval.rules import decide
from planrun.model.agenttypes import WRITING
from planrun.model.jsontext import dumps
from planrun.model.record import Record
from planrun.model.tools import NAMES
from planrun.plan.kinds.agent import AgentCall
from planrun.risk.actions import of_call, of_script
from planrun.risk.classifier import Risk, Setting
from planrun.risk.levels import rank

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from planrun.approval.rules import Decision, Layers
    from planrun.model.job import Job
    from planrun.model.plan import Step

BASH = ("bash", "-euo", "pipefail", "-c")
_OWN = Risk(level="read-only", reason="changes nothing")
_IN_COPY = Risk(level="low", reason="writes in the copy", effects=("writes",))
_WEB = Risk(level="low", reason="asks a host that the plan allows", effects=("network",))
_STRICTER = ("allow", "ask", "deny")


class Verdict(Record):
    """What was decided of a call; `job`: its process, with an environment that fits its risk."""

    answer: str
    rule: str
    reason: str
    risk: str
    effects: bool
    job: Job | None = None


class Judge:
    """Decides about the calls of agents in one run."""

    def __init__(self, layers: Layers, run: Mapping[str, Any], inherited: tuple[str, ...]) -> None:
        self._layers = layers
        self._run = run
        self._inherited = inherited

    def verdict(
        self, step: Step, call: dict[str, Any], job: Job | None, *, on_copy: bool, known: Risk | None = None
    ) -> Verdict:
        """Return the decision about one call; `job`: its process, in the folder that the agent works in.

        `known`: the risk of a tool that its plan classifies.
        """
        name, args = call["name"], call["input"]
        found = known or _risk_of(name, args, job, on_copy=on_copy)
        decision = self._decide(step, name, args, found)
        if name == "bash" and job is not None and self._is_for_class(step, name, args, found, decision):
            ground = Ground(job.cwd)
            above = raised(found.commands, job, job.cwd, ground, found.sweeps)
            if above is not None and rank(above[0]) > rank(found.level):
                found = found.but(level=above[0], reason=above[1])
                decision = self._decide(step, name, args, found)
            job = cleaned(job, found.level, ground)
        return Verdict(
            answer=decision.answer,
            rule=decision.rule,
            reason=decision.reason,
            risk=found.level,
            effects=found.level != "read-only",
            job=job,
        )

    def _decide(self, step: Step, name: str, args: dict[str, Any], found: Risk) -> Decision:
        """Return the strictest decision; `bash` is the tool `shell`, and a rule about `run` is about it, too."""
        text = args["command"] if name == "bash" else dumps(args)
        facts = {
            "risk": found.level,
            "reason": found.reason,
            "effects": found.effects,
            "text": text,
            "commands": tuple([command.words for command in found.commands]),
            "is_understood": found.understood,
            "is_bare": found.bare,
            "inherited": self._inherited,
        }
        decisions = []
        action = AgentCall(name=NAMES.get(name, name), text=text)
        for kind in ("agent", *(("run",) if name == "bash" else ())):
            seen = step.but(action=action, kind=kind, origin="agent", verify=(), expect=())
            decisions.append(decide(facts_of(seen, self._run, facts), self._layers))
        return max(decisions, key=lambda one: _STRICTER.index(one.answer))

    def _is_for_class(
        self, step: Step, name: str, args: dict[str, Any], found: Risk, decision: Decision
    ) -> bool:
        """Return whether a command may run that might not with the highest risk."""
        worst = self._decide(step, name, args, found.but(level="high"))
        return decision.answer == "allow" and worst.answer != "allow"


def _risk_of(name: str, args: dict[str, Any], job: Job | None, *, on_copy: bool) -> Risk:
    if name == "bash" and job is not None:
        workspace = os.path.realpath(job.cwd)
        setting = Setting(variables={"PLANRUN_WORKSPACE": workspace}, workspace=workspace)
        return of_script(args["command"], BASH, {}, setting)
    if name in ("read", "grep") and args.get(
        "path"
    ):  # a file that may hold secrets is not sent to a service unasked
        found = of_call("file.read", {"path": args["path"]}, {}, Setting())
        return found if "may hold secrets" in found.reason else _OWN
    if name == "web_fetch":
        return _WEB
    if name not in WRITING:
        return _OWN
    if on_copy:
        return _IN_COPY
    if name == "apply_patch":
        return of_call("git.apply_patch", {"patch": args["patch"]}, {}, Setting())
    return of_call("file.write", {"path": args["path"], "mode": "overwrite"}, {}, Setting())
