"""The work of `planrun approve`, `reject` and `decide` for a run: record a response, and print it."""

from __future__ import annotations

from planrun.app.control import answer
from planrun.approval.responses import Reply, user_name
from planrun.cli.run import running
from planrun.cliutil.printing import say, say_json
from planrun.errors import InvalidInput
from planrun.model.jsontext import dumps
from planrun.reports.escape import line
from planrun.settings import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.approval.responses import Verb
    from planrun.model.events import GateAnswered


def respond(verb: Verb, run: str, said: dict[str, Any], given: dict[str, Any]) -> int:
    """Record a response to what a run asks, print it, and with --resume run it; return the exit code."""
    if given["json"] and given["resume"]:
        raise InvalidInput(
            "--json and --resume: one at a time; `planrun resume --json` prints the run's ledger.json"
        )
    folder = given["report_dir"]
    reply = Reply(
        verb=verb,
        by=line(given["by"] or user_name()),
        reason=line(given.get("reason") or ""),
        digest=given.get("digest") or "",
        **said,
    )
    recorded = answer(run, reply, Settings(report_dir=folder) if folder else Settings())
    if given["json"]:
        waits = [
            {"step": gate.step, "kind": gate.kind, "question": gate.question} for gate in recorded.waiting
        ]
        responses = [
            {"step": event.step, "answer": event.answer, "by": event.by, "reason": event.reason}
            for event in recorded.answers
        ]
        say_json(
            {
                "run": recorded.run,
                "recorded": responses,
                "waiting": waits,
                "status": recorded.status,
                "live": recorded.live,
            }
        )
    else:
        for event in recorded.answers:
            say(f"run {recorded.run}: {_answer_text(event)}")
        for gate in recorded.waiting:
            asked = f"{line(gate.step) or 'the plan'} ({gate.kind})" + (
                f": {line(gate.question)}" if gate.question else ""
            )
            say(f"  still waiting: {asked}")
        if recorded.status == "cancelled":
            say(f"run {recorded.run}: cancelled; its exit code is 3")
        elif not recorded.live:
            say(f"to continue: planrun resume {recorded.run}")
    if not given["resume"] or recorded.live or recorded.status == "cancelled":
        return 0
    return running(["resume", recorded.run, *(["--report-dir", folder] if folder else [])])


def _answer_text(event: GateAnswered) -> str:
    name = line(event.step) or "the plan"
    if event.answer == "skipped":
        return f"{name} is left out"
    if event.answer in ("approved", "rejected"):
        return f"{name} is {event.answer}"
    word = {True: "yes", False: "no"}.get(event.answer) if isinstance(event.answer, bool) else None
    return f"{name} is answered with {word or line(dumps(event.answer))}"
