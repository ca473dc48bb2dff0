"""What a run waits for and what was answered, as parts of the reports for people."""

from __future__ import annotations

from planrun.reports import gates
from planrun.reports.facts import ICONS, is_waiting
from planrun.reports.mdtext import code, fence, inline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from planrun.model.events import GateOpened
    from planrun.model.state import RunState
    from planrun.reports.sections import Sections


MAX_NOTICES = 9  # GitHub shows ten of a step


def told(state: RunState) -> Iterator[str]:
    """Yield lines of plain text, clean: every open gate and how to answer it, then the answers."""
    opened = gates.open_gates(state)
    if opened:
        yield "\nWaiting for"
    for gate in opened:
        yield f"  {gates.waiting(gate)}: {gates.asked(gate)}"
        yield from [f"    {row}" for row in _about(gate)]
        yield from [f"    $ {command}" for command in gates.commands(state, gate)]
    if opened and is_waiting(state):
        yield f"  {gates.going_on(state)}"
    answers = gates.answers(state)
    if answers:
        yield "\nAnswers"
    yield from [f"  {gates.name_of(found)}: {gates.answer(found)}" for found in answers]


def notices(state: RunState, sections: Sections, file: str) -> Iterator[str]:
    """Yield annotations for what waits, in the language of a CI system; of many the first ones."""
    for opened in gates.open_gates(state)[:MAX_NOTICES]:
        at = state.steps[opened.step].step.line if opened.step else 0
        told = f"{gates.asked(opened)} {gates.grounds(opened)}".rstrip()
        yield sections.notice(file, at, gates.waiting(opened), f"{told}\n{gates.commands(state, opened)[0]}")


def _about(opened: GateOpened) -> list[str]:
    """Why it is asked, what can be answered, and until when."""
    found = [f"why: {why}" for why in (gates.grounds(opened),) if why]
    found += [f"answer: {choice}" for choice in gates.choices(opened)]
    return found + [limit for limit in (gates.until(opened),) if limit]


def page_sections(state: RunState) -> Iterator[str]:
    """Yield parts of a markdown page: a section for each open gate, then the list of answers."""
    opened = gates.open_gates(state)
    heading = "\n## Waiting for\n"
    for gate in opened:
        yield heading + _section(state, gate)
        heading = ""
    if opened and is_waiting(state):
        yield f"\n{inline(gates.going_on(state))}.\n"
    answers = gates.answers(state)
    if answers:
        rows = [
            f"- {code(found.step) if found.step else 'the plan'}: {inline(gates.answer(found), 1000)}\n"
            for found in answers
        ]
        yield "\n## Answers\n\n" + "".join(rows)


def _section(state: RunState, opened: GateOpened) -> str:
    rows = [
        f"\n### {ICONS['waiting']} {inline(gates.waiting(opened))}\n\n{inline(gates.asked(opened), 1000)}\n\n"
    ]
    if why := gates.grounds(opened):
        rows.append(f"- **Why:** {inline(why, 1000)}\n")
    if opened.risk:
        rows.append(f"- **Risk:** {inline(opened.risk)}\n")
    rows += [f"- **Answer:** {inline(choice, 500)}\n" for choice in gates.choices(opened)]
    if limit := gates.until(opened):
        rows.append(f"- **Time:** {inline(limit)}\n")
    return "".join(rows) + "\n" + fence("\n".join(gates.commands(state, opened)))
