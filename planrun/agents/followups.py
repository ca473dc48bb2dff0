"""What follows the results of an answer's calls: advice, a corrected call, an analysis, and work for another agent.

All of it happens between the last result and the next question. What it gives the model is a note behind the results.
What was due when planrun was killed is left out: a resumed agent has the results, and decides itself.
"""

from __future__ import annotations

from planrun.agents.delegation import RULES, Situation, decide
from planrun.agents.reflection import (
    ANALYSIS_SCHEMA,
    ANALYSIS_SYSTEM,
    Failure,
    InvalidAnalysis,
    analysed,
    analysis_question,
    category_of,
    without_marks,
)
from planrun.model.agenttypes import FINISH, OWN, TOOLS
from planrun.model.call import Request
from planrun.model.jsontext import dumps
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.agents.loop import AgentRun
    from planrun.agents.reflection import Reflection
    from planrun.model.call import Answer

_OF_PLANRUN = frozenset((*OWN, "memory", "ask_agent", FINISH))
"""Tools whose failures planrun explains itself."""
_NOTHING = ("[no file matches]", "[no line matches]")  # as `planrun.tools.reading` writes it
_KEPT = 5  # results and errors for a snapshot
_LONGEST_ANSWER = 1024  # tokens of an analysis
_LEAST_STUCK = min(rule.turns for rule in RULES if rule.when == "stuck")


class Followups:
    """What is due after the calls of one agent; `errors` and `results` are for snapshots."""

    def __init__(self, run: AgentRun) -> None:
        self._run = run
        self._fixes: list[dict[str, Any]] = []
        self._unknown: list[tuple[Failure, Reflection]] = []
        self._situations: list[Situation] = []
        self._is_asking = False  # a model analyses an error
        self._is_decided = False
        self._has_progress = False
        self._stuck = 0  # turns without progress
        self._seen: set[str] = set()
        self.errors: dict[str, str] = {}
        self.results: list[tuple[str, str]] = []
        self._open: dict[str, str] = {}  # the last error of each tool

    def result(self, call: dict[str, Any], text: str, status: str) -> str:
        """Take the result of a call; returns what its agent is told besides, "" for nothing."""
        name, run = call["name"], self._run
        if status == "done":
            self._done(call, text)
        if name in _OF_PLANRUN:
            return ""
        message = without_marks(text)
        failure = Failure(tool=name, args=call["input"], message=message)
        run.act()
        reflection = run.shared.after_tool(run.id, failure, status)
        if status == "unknown":
            return ""
        self._situations.append(self._situation(call, message, status, reflection))
        if status == "done":
            return ""
        self._open[name] = error = " ".join(message.split())[-300:]
        self.errors = dict([*self.errors.items(), (error, "")][-_KEPT:])
        return self._advice(call, failure, reflection)

    def _done(self, call: dict[str, Any], text: str) -> None:
        name = call["name"]
        if name in OWN:
            return
        sign = str(sha256(dumps([name, call["input"], text]).encode("utf-8", "surrogatepass")).hexdigest())
        self._has_progress |= sign not in self._seen
        self._seen.add(sign)
        brief = dumps(call["input"])[:200]
        if error := self._open.pop(name, ""):
            self.errors[error] = f"{name} {brief}"
        if name in _OF_PLANRUN:
            return
        shown = " ".join(without_marks(text).split())
        self.results = [*self.results, (f"{name} {brief}", shown)][-_KEPT:]

    def _situation(
        self, call: dict[str, Any], message: str, status: str, reflection: Reflection | None
    ) -> Situation:
        run, name = self._run, call["name"]
        is_search = name in ("glob", "grep") and status == "done"
        category = reflection.category if reflection else category_of(message)
        return Situation(
            **self._standing(),
            tool=name,
            is_error=status != "done",
            unavailable=status == "denied" and name in TOOLS and name not in run.tools,
            found=int(message.strip() not in _NOTHING) if is_search else None,
            category="" if status == "done" else category,
            detail=f"Its call: {dumps(call['input'])[:500]}",
        )

    def _standing(self) -> dict[str, Any]:
        run = self._run
        shared = run.shared
        return {
            "agent": run.agent["type"],
            "depth": run.depth,
            "running": shared.roster.at_work(shared.post.waiting()) - 1,
            "task": run.task[:1000],
            "allowed": run.team.allowed(),
        }

    def _advice(self, call: dict[str, Any], failure: Failure, reflection: Reflection | None) -> str:
        if reflection is None:
            return ""
        if reflection.auto_fix is not None and "fixes" not in call:
            fix = reflection.auto_fix
            self._fixes.append(
                {"id": f"{call['id']}:fix", "name": fix["tool"], "input": fix["args"], "fixes": call["id"]}
            )
        if self._run.shared.reflector.wants_analysis(reflection):
            self._unknown.append((failure, reflection))
            return ""  # the advice is that of the analysis
        return f"\n\n{reflection.advice()}" if _is_known(reflection) else ""

    # Between the results and the next question.

    def advance(self) -> bool:
        """Do what is due, one thing at a time; whether nothing is left."""
        run = self._run
        if self._is_asking:
            return False
        if self._fixes:
            run.repeat(self._fixes.pop(0))
            return False
        if self._unknown:
            self._analyse(*self._unknown.pop(0))
            return False
        if not self._is_decided:
            self._is_decided = True
            if self._delegates():
                return False
        self.clear()
        return True

    def clear(self) -> None:
        """Forget what was due: the answer that it belongs to is dealt with."""
        self._fixes, self._unknown, self._situations = [], [], []
        self._is_asking = self._is_decided = self._has_progress = False

    def _delegates(self) -> bool:
        run = self._run
        self._stuck = 0 if self._has_progress else self._stuck + 1
        situations = list(self._situations)
        if self._stuck >= _LEAST_STUCK:
            situations.append(Situation(**self._standing(), stuck_turns=self._stuck))
        for now in situations:
            decision = decide(now, run.shared.metrics, run.shared.book(run.scope))
            for each in decision.considered:
                if each.refused:
                    run.say(f"no delegation to {each.target} by {each.rule}: {each.refused}")
            if decision.chosen is None:
                continue
            self._stuck = 0
            if why := run.team.delegate(decision):
                run.say(f"no delegation to {decision.chosen.target} by {decision.chosen.rule}: {why}")
                continue
            return True
        return False

    def _analyse(self, failure: Failure, reflection: Reflection) -> None:
        run = self._run
        llm = run.context.models.llm
        request = Request(
            purpose="agent",
            model=run.agent["model"],
            system=(ANALYSIS_SYSTEM,),
            messages=({"role": "user", "content": analysis_question(failure, run.tools)},),
            max_tokens=_LONGEST_ANSWER,
            schema=ANALYSIS_SCHEMA,
            effort=llm.effort,
            retries=llm.retries,
        )

        def take(answer: Answer) -> None:
            self._is_asking = False
            found = reflection
            try:
                if answer.ending == "answered":
                    found = analysed(reflection, answer.text, run.tools)
            except InvalidAnalysis as invalid:
                run.say(f"the analysis of an error cannot be used: {invalid}")
            if found is not reflection:
                run.act()
                run.shared.feedback.analysed(run.id, found)
            self._tell(failure, found)

        self._is_asking = run.ask_aside(request, take)
        if not self._is_asking:
            self._tell(failure, reflection)

    def _tell(self, failure: Failure, reflection: Reflection) -> None:
        if _is_known(reflection):
            self._run.transcript.note(f"About the error of {failure.tool}:\n{reflection.advice()}")


def _is_known(reflection: Reflection) -> bool:
    """Whether there is something to say about an error that its text does not say."""
    return reflection.category != "unknown" or bool(reflection.learned)
