"""The run as markdown: `report.md`, and GitHub's step summary within its budget.

Failures come first, then the graph, then every step. With a budget what does not fit is counted, not shown.
"""

from __future__ import annotations

from planrun.model.groups import waited_for
from planrun.reports import facts
from planrun.reports.elements import forgiven
from planrun.reports.escape import TAIL_BYTES, code, fence, inline, tail
from planrun.reports.facts import ICONS, seconds
from planrun.reports.parts import load, parts_of, rows_of
from planrun.reports.policies import in_force, risk_of, risk_totals, totals_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import BinaryIO

    from planrun.model.progress import StepState
    from planrun.model.state import RunState
    from planrun.reports.parts import Part

SUMMARY_BYTES = 900 * 1024  # GitHub shows nothing of a step summary above 1 MiB
REPORT_LOG_BYTES = 4 * 1024 * 1024  # of logs in a report without a budget
_CLOSING_BYTES = 200  # kept for the line that counts what was left out
_TABLE = (
    "\n## Details\n\n| Step | Status | Attempts | Duration | Depends on | Risk |\n"
    "| --- | --- | --- | --- | --- | --- |\n"
)


def write_markdown(
    state: RunState, rundir: str, out: BinaryIO, budget: int | None = None, *, head: str = ""
) -> None:
    """Write the run to a binary file, in at most `budget` bytes where one is given.

    `head` is the hash of the ledger's last line, which `verify` asks for; empty when the ledger has no end.
    Raises OSError when `out` cannot be written.
    """
    page, parts = _Page(out, budget), parts_of(state)
    page.add(_summary(state, parts, head))
    page.add_all(rows_of(parts, "page_start", state))
    _failures(state, rundir, page)
    page.add_all(rows_of(parts, "page_middle", state))
    page.add("\n## Steps\n\n")
    labels = facts.labels(state)
    below = [part["step_rows"] for part in parts if "step_rows" in part]
    _rows(
        state,
        page,
        lambda step: f"- {step_line(step, labels)}\n{_criteria(step)}{''.join([row(step) for row in below])}",
    )
    if page.add(_TABLE):
        spans = {name: code(name) for name in state.steps}
        waits = _waits(state)
        _rows(state, page, lambda step: _table_row(step, spans, waits[step.step.id]))
    page.add_all(rows_of(parts, "page_end", state))
    page.close()


def step_line(step: StepState, labels: Mapping[str, str]) -> str:
    """Return `✓ Step 1: title (12.3s, 1.2K tokens)`, escaped; a step without a title shows its id only."""
    details = facts.details(step)
    if step.status != "completed":  # then it is all our own words
        details = inline(details)
    title = f": {inline(step.step.title)}" if step.step.title else ""
    called, added = facts.named(step, labels)
    return f"{ICONS[step.status]} Step {inline(called)}{title} ({inline(added) if added else ''}{details})"


def _criteria(step: StepState) -> str:
    """A line for each success criterion of a step; a completed step has proved them all."""
    if not step.step.criteria:
        return ""
    mark = ICONS["completed"] if step.status == "completed" else ICONS["pending"]
    return "".join([f"  - {mark} {inline(text, 1000)}\n" for text in step.step.criteria])


class _Page:
    """What was written and how much more may be; what does not fit is refused whole."""

    def __init__(self, out: BinaryIO, budget: int | None) -> None:
        self.out = out
        self.left = None if budget is None else max(0, budget - _CLOSING_BYTES)
        self.logs = REPORT_LOG_BYTES if self.left is None else self.left // 2
        self.missing = 0
        self.started = False

    def add(self, text: str) -> bool:
        """Write `text` if it fits; returns whether it did."""
        data = text.encode()
        if self.left is not None:
            if len(data) > self.left:
                return False
            self.left -= len(data)
        self.out.write(data)
        self.started = True
        return True

    def add_all(self, sections: Iterable[str]) -> None:
        """Write what fits of some sections, and count the others."""
        for section in sections:
            if not self.add(section):
                self.missing += 1

    def close(self) -> None:
        """State how much did not fit; a page with no space left stays empty."""
        if self.missing and self.started:
            self.left = None
            self.add(f"\n{self.missing} more entries left out: the report ends at its size limit.\n")


def _summary(state: RunState, parts: Iterable[Part], head: str) -> str:
    status = facts.status_of(state)
    entries = [
        f"# {ICONS.get(status, ICONS['running'])} {_escaped(facts.heading(state))}\n\n## Execution Summary\n\n",
        f"- **Status:** {inline(facts.outcome(state), 1000)}{_ending(state)}\n",
        f"- **Duration:** {seconds(facts.elapsed(state))}\n",
    ]
    entries += [f"- **{name}:** {count}\n" for name, count in facts.counts(state)]
    started = state.started
    if started:
        entries.append(f"- **Run:** {code(started.run)}\n")
    entries.append(f"- **Plan:** {code(state.plan.file)}, digest {code(state.plan.digest[:12])}\n")
    entries.append(f"- **Policy:** {inline(in_force(state), 1000)}\n")
    entries.append(f"- **Risk:** {totals_line(risk_totals(state))}\n")
    for part in parts:
        if "summary" in part:
            entries += [f"- **{name}:** {inline(value, 1000)}\n" for name, _, value in part["summary"](state)]
    if head:
        entries.append(f"- **Ledger head:** {code(head)}\n")
    return "".join(entries)


def _escaped(heading: str) -> str:
    """Escape a heading but for the brackets around the status, which are ours."""
    at = heading.rindex(" [")
    return inline(heading[:at], 1100) + heading[at:]


def _ending(state: RunState) -> str:
    if not state.ended:
        return f" ({why})" if (why := facts.unended(state)) else ""
    return f" (exit code {state.ended.exit_code})"


def _failures(state: RunState, rundir: str, page: _Page) -> None:
    failed = [step for step in facts.listed(state) if step.status == "failed"]
    if not failed or not page.add("\n## Failures\n"):
        return
    for step in failed:
        text = _failure(state, rundir, step)
        last = facts.last(step)
        if page.logs > 0 and last and last.started.log:
            limit = min(TAIL_BYTES, page.logs)
            end = tail(rundir, last.started.log, limit)
            if end.strip():
                block = "\n" + fence(end)
                page.logs -= len(block.encode())
                text += block
        if not page.add(text):
            page.missing += 1


def _failure(state: RunState, rundir: str, step: StepState) -> str:
    """Heading, reason and circumstances of a failure."""
    rows = [
        f"\n### {step_line(step, facts.labels(state))}\n\n{inline(load('errorlines').failure(rundir, step), 1000)}\n\n"
    ]
    attempt = facts.last(step)
    last = attempt.ended if attempt else None
    error = last.error if last else None
    if step.rule:
        rows.append(f"- **Denied by:** {code(step.rule)}\n")
    if error and facts.classified(error):
        rule = f", rule {code(error['rule'])}" if error.get("rule") else ""
        rows.append(f"- **Error class:** {inline(error.get('class', ''))}{rule}\n")
    if last and last.exit_code is not None:
        why = facts.attempt_sentence(last) if last.reason == "exit" else ""
        words = why.removeprefix(f"exit code {last.exit_code}") if why.startswith("exit code ") else ""
        rows.append(f"- **Exit code:** {last.exit_code}{inline(words)}\n")
    rows.append(f"- **Attempts:** {len(step.tries)}, {seconds(facts.duration(step))} in all\n")
    if state.tolerance(step.step.id):
        own = forgiven(state, step)
        why = "the run does not fail because of it" if own else "by the plan; this run fails all the same"
        rows.append(f"- **Tolerated:** {why}\n")
    if step.step.line:
        rows.append(f"- **Plan:** {code(f'{state.plan.file_of(step.step)}:{step.step.line}')}\n")
    rows += [f"- **Sandbox:** {inline(note)}\n" for note in facts.sandbox_notes(step)]
    if why := facts.not_replanned(state, step):
        rows.append(f"- **Replan:** {inline(why)}\n")
    for check in last.checks if last else ():
        mark = ICONS["completed"] if check.get("ok") else ICONS["failed"]
        rows.append(
            f"- {mark} {inline(str(check.get('name', '')))}: {inline(str(check.get('message', '')))}\n"
        )
    return "".join(rows)


def _rows(state: RunState, page: _Page, row: Callable[[StepState], str]) -> None:
    """Write a row for each step, failures apart from the rest only by their icon; count what does not fit."""
    steps = facts.listed(state)
    if page.left is None:
        page.add("".join([row(step) for step in steps]))
        return
    for number, step in enumerate(steps):
        if not page.add(row(step)):
            page.missing += len(steps) - number
            return


def _waits(state: RunState) -> Mapping[str, Sequence[str]]:
    """Return what each step waits for: a member of a group what the group waits for."""
    if not any(step.step.group for step in state.steps.values()):
        return {name: [edge.on for edge in step.step.edges] for name, step in state.steps.items()}
    pairs = waited_for([step.step for step in state.steps.values()])
    return {name: list(dict.fromkeys([on for on, _ in found])) for name, found in pairs.items()}


def _table_row(step: StepState, spans: dict[str, str], waits: Sequence[str]) -> str:
    needs = ", ".join([spans[on] for on in waits[:20]])
    if len(waits) > 20:
        needs += f" and {len(waits) - 20} more"
    tries = len(step.tries)
    spent = seconds(facts.duration(step)) if tries else ""
    return f"| {spans[step.step.id]} | {_status(step)} | {tries} | {spent} | {needs} | {risk_of(step)} |\n"


def _status(step: StepState) -> str:
    """How it ended, in a cell."""
    if step.status == "completed":
        return "completed, flaky" if len(step.attempts) > 1 and step.flaky else "completed"
    why = facts.cause(step)
    return f"{step.status}: {inline(why)}" if why and why != step.status else step.status
