"""The loop that learns from errors: identify, fix, record; a success raises the weight of a fix, a failure lowers it.

It sees every result of a tool. A failed call opens a case of its agent and tool. The next call of the same tool is the
fix that was tried: how it ends is recorded in the store, under the error of the case.
"""

from __future__ import annotations

import json

from planrun.agents.reflection import Failure
from planrun.model.collaboration import Rows
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from planrun.agents.learned import ErrorStore, Learned
    from planrun.agents.reflection import Reflection, Reflector
    from planrun.model.collaboration import Change, Journal

_LONGEST_ARGUMENT = 120  # characters of one argument in a solution


class Case(Record):
    """An error whose fix is not known yet: the call that failed, and what was suggested for it."""

    number: str
    failure: Failure
    reflection: Reflection


class Feedback:
    """Reflects on failures and records which fixes helped.

    `stamp`: the time, as `Clock.stamp` gives it. `journal` gets each reflection, and each result of a fix.
    """

    def __init__(
        self, reflector: Reflector, store: ErrorStore, stamp: Callable[[], str], journal: Journal
    ) -> None:
        self._reflector = reflector
        self._store = store
        self._stamp = stamp
        self._journal = journal
        self._cases: dict[tuple[str, str], Case] = {}  # by agent and tool
        self._count = 0

    def restore(self, changes: Iterable[Change]) -> None:
        """Take the changes of a ledger: what was tried before is learned again; nothing is written to the journal.

        A case that was open is not taken up: its call may be the one that was cut off.
        """
        rows = Rows()
        for change in changes:
            rows.apply(change)
            row = rows.by_id[change["id"]]
            if change["op"] == "result":
                self._store.learn(
                    row["error"], row["category"], row["tried"], row["settled_at"], ok=row["fixed"]
                )
        self._count = len(rows.by_id)

    def failed(self, agent: str, failure: Failure) -> Reflection | None:
        """Take a failed call: an open case of the same tool is settled as not fixed, and a new one opens.

        Returns what may help; None when reflection is off.
        """
        self._settle(agent, failure.tool, failure.args, ok=False)
        reflection = self._reflector.reflect(failure)
        if reflection is None:
            return None
        self._count += 1
        case = Case(number=f"{agent}.r{self._count}", failure=failure, reflection=reflection)
        self._cases[agent, failure.tool] = case
        self._journal(
            {"op": "reflect", "id": case.number, "at": self._stamp(), **reflection.as_data(), "fixed": None}
        )
        return reflection

    def analysed(self, agent: str, reflection: Reflection) -> None:
        """Take a reflection that a model completed in place of the last one of this agent and tool.

        It changes nothing when another call of the tool has settled that one meanwhile.
        """
        case = self._cases.get((agent, reflection.tool))
        if case is None or case.reflection.error != reflection.error:
            return
        self._cases[agent, reflection.tool] = case.but(reflection=reflection)
        self._journal({"op": "analyse", "id": case.number, **reflection.as_data()})

    def succeeded(self, agent: str, tool: str, args: Mapping[str, Any]) -> Learned | None:
        """Take a call that succeeded: it fixed the open case of its tool; returns what was learned from it."""
        return self._settle(agent, tool, args, ok=True)

    def agent_ended(self, agent: str) -> None:
        """Forget the cases of an agent that ended: nothing was tried for them."""
        self._cases = {key: case for key, case in self._cases.items() if key[0] != agent}

    def _settle(self, agent: str, tool: str, args: Mapping[str, Any], *, ok: bool) -> Learned | None:
        case = self._cases.pop((agent, tool), None)
        if case is None:
            return None
        if args == case.failure.args and not ok:
            return None  # the same call once more is no fix
        now, reflection = self._stamp(), case.reflection
        entry = self._store.learn(reflection.error, reflection.category, _solution(case, args), now, ok=ok)
        if entry is not None:
            result = {"tried": entry.solution, "tried_id": entry.id, "tried_weight": entry.weight}
            self._journal({"op": "result", "id": case.number, "fixed": ok, "settled_at": now, **result})
        return entry


def _solution(case: Case, args: Mapping[str, Any]) -> str:
    """Return what was changed in a call, in one line: `read: path "src/app.py" instead of "app.py"`."""
    before = case.failure.args
    changed = [name for name in sorted({*before, *args}) if before.get(name) != args.get(name)]
    if not changed:
        return f"{case.failure.tool}: the same call once more"
    return f"{case.failure.tool}: " + ", ".join([_difference(name, before, args) for name in changed])


def _difference(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    if name not in after:
        return f"without {name}"
    was = f" instead of {_shown(before[name])}" if name in before else ""
    return f"{name} {_shown(after[name])}{was}"


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=True, sort_keys=True, default=str)
    return text if len(text) <= _LONGEST_ARGUMENT else f"{text[:_LONGEST_ARGUMENT]}..."
