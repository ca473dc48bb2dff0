"""The end of an agent that called `finish`: its report, its patch, and the outcome of the attempt."""

from __future__ import annotations

import os

from planrun.agents.carrying import keep
from planrun.agents.patches import Refused, facts_of, line_of
from planrun.model.agenttools import SPECS
from planrun.model.job import Outcome
from planrun.model.tools import faults, place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.agents.loop import AgentRun
    from planrun.model.job import Job

_MOST = 20  # entries of evidence


class Ending:
    """Ends one agent."""

    def __init__(self, run: AgentRun) -> None:
        self._run = run
        self._summary = ""
        self._evidence: tuple[str, ...] = ()
        self._out = ""
        self.running: tuple[str, ...] = ()

    def finish(self, call: dict[str, Any]) -> bool:
        """Take the report; whether the agent goes on at once, since the report cannot be used."""
        run, given = self._run, call["input"]
        why = "; ".join([f"{place(fault.path)} {fault.message}" for fault in faults(SPECS["finish"], given)])
        if why:
            run.transcript.result(call["id"], why, failed=True)
            for other in run.transcript.calls:
                if other["id"] not in run.transcript.results:
                    run.transcript.result(other["id"], why, failed=True)
            run.transcript.close_turn()
            return True
        self._summary = given["summary"][: run.recorder.state.plan.limits.summary_chars]
        self._evidence = tuple([" ".join(text.split())[:400] for text in given.get("evidence", ())[:_MOST]])
        run.say(f"finish {given['status']}: {self._summary}")
        for text in self._evidence:
            run.say(f"  evidence: {text}")
        if given["status"] != "success":
            message = f"the agent reports that the task is not done: {' '.join(self._summary.split())[:400]}"
            return self._end(Outcome(status="failed", reason="reported", message=message))
        if not run.agent["copy"] or run.parent is not None:  # the agent above makes the patch
            return self._end(Outcome(status="completed", reason="ran"))
        folder = os.path.join(run.context.place.rundir, "patches", run.step.folder or run.step.id)
        self._out = os.path.join(folder, f"{run.job.attempt}.patch")
        self.running = (f"{run.step.id}:patch",)
        run.make_patch(self._out)
        return False

    def made(self, job: Job, outcome: Outcome) -> None:
        """Take the end of the process that makes the patch."""
        self.running = ()
        run = self._run
        if run.is_stopping:
            return
        if outcome.status != "completed":
            why = run.last_line(job) or outcome.message or outcome.reason
            self._end(
                Outcome(status="failed", reason="patch", message=f"no patch can be made of its work: {why}")
            )
            return
        try:
            patch = facts_of(self._out, run.context.place.rundir, run.context.masks)
        except Refused as refused:
            self._end(Outcome(status="failed", reason="secrets", message=f"{refused}; it was deleted"))
            return
        found = Outcome(status="completed", reason="ran")
        if patch:
            run.say(f"patch: {line_of(patch)}")
            found = found.but(patch=patch)
        self._end(found)

    def _end(self, outcome: Outcome) -> bool:
        outputs = {"summary": self._summary, "patch": outcome.patch.get("sha256", "")}
        if outcome.status == "completed":
            outcome = outcome.but(outputs=outputs)
            keep(self._run, self._summary)
        return self._run.end(outcome, self._summary, self._evidence)
