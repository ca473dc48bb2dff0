"""A run as one document: sections of facts, lines, code and tables, which text, markdown and HTML render.

What people look for stands first: failures, what waits, the next command, the steps; where the run comes from is last.
All texts are as they are: each renderer cleans and escapes what it writes.
"""

from __future__ import annotations

from planrun.model.groups import waited_for
from planrun.reports import facts
from planrun.reports.escape import TAIL_BYTES, tail
from planrun.reports.facts import seconds
from planrun.reports.parts import BELOW, Section, lined, load, parts_of, rows_of, table
from planrun.reports.policies import ALLOWED_BY_DEFAULT, decision, in_force, risk_of, risk_totals, totals_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from planrun.model.progress import StepState
    from planrun.model.state import RunState
    from planrun.reports.parts import Form, Kind

LOG_BYTES = 4 * 1024 * 1024
"""Of the logs of all failures together."""
_MOST_NEEDS = 20  # steps that one waits for, as the table names them


def document(
    state: RunState, rundir: str, form: Form, *, head: str = "", logs: int = LOG_BYTES
) -> Iterator[Section]:
    """Yield the sections of a run for one format, in their order, each made when it is asked for.

    `head` is the hash of the ledger's last line, empty without one; `logs`: the bytes of logs that it may quote.
    """
    own = [
        section
        for part in parts_of(state)
        if "sections" in part
        for section in part["sections"](state)
        if not section.forms or form in section.forms
    ]
    if failed := failures(state):
        quoted = Section(heading="Failures", sections=[*_failures(state, rundir, failed, logs)])
        yield quoted
    yield from [section for section in own if section.leads]
    if commands := next_commands(state):
        yield Section(heading="Next", code="\n".join(commands), language="sh")
    if rows := [*warnings(state), *_causes(state)]:
        yield Section(heading="Notes", lines=lined(rows))
    if form != "html":  # which has a timeline of them
        yield _steps(state)
    if form == "markdown":
        yield _details(state)
    yield from [section for section in own if not section.leads]
    yield from _policies(state)
    yield provenance(state, head)


def _causes(state: RunState) -> Iterable[str]:
    """Return why steps did not run; a run in which all did needs no look."""
    if not state.settled or all(step.status in ("completed", "failed") for step in state.steps.values()):
        return ()
    rows: Iterable[str] = load("causes").rows(state)
    return rows


def failures(state: RunState) -> list[StepState]:
    """Return the failed steps: those that count first, then the tolerated ones, each as they ended."""
    failed = [step for step in facts.listed(state) if step.status == "failed"]
    if not failed:
        return []
    from planrun.reports.elements import forgiven  # of no use where nothing failed

    return sorted(failed, key=lambda step: (forgiven(state, step), step.ended_at))


def _failures(state: RunState, rundir: str, failed: Iterable[StepState], logs: int) -> Iterator[Section]:
    closing = load("closing")
    labels = facts.labels(state)
    for step in failed:
        last = facts.last(step)
        log = ""
        if last and last.started.log and logs > 0:
            log = tail(rundir, last.started.log, min(TAIL_BYTES, logs)).rstrip()
            logs -= len(log.encode())
        said = load("errorlines").said(rundir, step)
        tolerated = " (tolerated)" if closing.forgiven(state, step) else ""
        yield Section(
            heading=f"{facts.step_text(step, labels)}{tolerated}",
            mark="partial" if tolerated else "failed",
            step=step.step.id,
            text=said or ("" if _is_told(step) else facts.sentence(step)),
            is_error=bool(said),
            facts=[row for row in _circumstances(state, step) if row[1]],
            lines=[
                (
                    "completed" if each.get("ok") else "failed",
                    f"{each.get('name', '')}: {each.get('message', '')}",
                )
                for each in (last.ended.checks if last and last.ended else ())
            ],
            code=log,
        )


def _is_told(step: StepState) -> bool:
    """Whether the heading of a failed step, `failed: exit 1`, says why it failed."""
    return step.reason == "exit" and facts.sentence(step) in (
        f"exit code {step.exit_code}",
        f"exit status {step.exit_code}",
    )


def _circumstances(state: RunState, step: StepState) -> Iterator[tuple[str, str, Kind]]:
    closing = load("closing")
    last = facts.last(step)
    ended = last.ended if last else None
    if step.step.line:
        yield "Plan", closing.place(state, step), "code"
    yield "Denied by", step.rule, "code"
    if ended and ended.exit_code is not None and not _is_told(step):
        why = facts.attempt_sentence(ended) if ended.reason == "exit" else ""
        has_words = why.startswith("exit code ")
        yield "Exit code", why.removeprefix("exit code ") if has_words else str(ended.exit_code), "text"
    error = ended.error if ended else None
    if error and error.get("class") not in (None, "", "unknown"):
        kind, _, rule = error.get("rule", "").partition(":")
        # Any other rule is the exit code or the reason itself.
        yield "Error class", f"{error.get('class', '')}{f' ({rule})' if kind == 'text' else ''}", "text"
    if step.tries:
        times = f"{len(step.tries)} attempts, " if len(step.tries) > 1 else ""
        yield "Ran", f"{times}{seconds(facts.duration(step))}", "text"
    if state.tolerance(step.step.id):
        own = closing.forgiven(state, step)
        why = "the run does not fail because of it" if own else "by the plan; this run fails all the same"
        yield "Tolerated", why, "text"
    yield from [("Sandbox", note, "text") for note in facts.sandbox_notes(step)]
    yield "Replan", facts.not_replanned(state, step), "text"


def next_commands(state: RunState) -> list[str]:
    """Return the commands that go on after a run that did not complete, what to know about them as a comment."""
    if state.started and facts.is_waiting(state):
        return [f"planrun resume {state.started.run}  # once everything is answered"]
    if not state.started or state.status not in ("failed", "cancelled", "paused"):
        return []
    command, note = facts.continuation(state)
    return [command + (f"  # {note}" if note else "")]


def warnings(state: RunState) -> list[str]:
    """Return what people should know of a run: why it is not good, secrets without a value, refused options."""
    objection = facts.objection(state)
    rows = [*rows_of(parts_of(state), "warnings", state), *facts.notes(state)]
    return [objection, *rows] if objection else rows


def _steps(state: RunState) -> Section:
    labels = facts.labels(state)
    below = [part["step_rows"] for part in parts_of(state) if "step_rows" in part]
    rows: list[tuple[str, str]] = []
    for step in facts.listed(state):
        rows.append((step.status, facts.step_text(step, labels)))
        for text in step.step.criteria:  # a completed step has proved them all
            mark = facts.ICONS["completed" if step.status == "completed" else "pending"]
            rows.append((BELOW, f"{mark} {text}"))
        for each in below:
            rows += [(BELOW, text) for text in each(step)]
    return Section(heading="Steps", lines=rows)


def needs_of(state: RunState) -> Mapping[str, Sequence[str]]:
    """Return what each step waits for: a member of a group what the group waits for."""
    if not any([step.step.group for step in state.steps.values()]):  # noqa: C419 - half the time
        return {name: [edge.on for edge in step.step.edges] for name, step in state.steps.items()}
    pairs = waited_for([step.step for step in state.steps.values()])
    return {name: list(dict.fromkeys([on for on, _ in found])) for name, found in pairs.items()}


def _details(state: RunState) -> Section:
    waits = needs_of(state)
    rows = []
    for step in facts.listed(state):
        name, why, tries = step.step.id, facts.cause(step), len(step.tries)
        needs = waits[name]
        more = f" and {len(needs) - _MOST_NEEDS} more" if len(needs) > _MOST_NEEDS else ""
        if step.status == "completed":
            status = "completed, flaky" if len(step.attempts) > 1 and step.flaky else "completed"
        else:
            status = f"{step.status}: {why}" if why and why != step.status else step.status
        spent = seconds(facts.duration(step)) if tries else ""
        rows.append((name, status, str(tries), spent, ", ".join(needs[:_MOST_NEEDS]) + more, risk_of(step)))
    columns: tuple[tuple[str, Kind], ...] = (
        *(("Step", "step"), ("Status", "text"), ("Attempts", "number")),
        *(("Duration", "number"), ("Depends on", "text"), ("Risk", "text")),
    )
    return table("Details", columns, rows)


def _policies(state: RunState) -> Iterator[Section]:
    """Yield which rule allowed, asked for or denied how many steps; nothing where no policy says anything."""
    steps = state.steps.values()
    if not any([step.gate or step.rule or (step.tries and step.tries[-1].started.rule) for step in steps]):  # noqa: C419 - half the time
        return
    groups: dict[tuple[str, str], list[str]] = {}
    for step in facts.listed(state):
        if decided := decision(step):
            groups.setdefault((decided["answer"], decided["rule"]), []).append(facts.name(step))
    if groups.keys() - {("allow", ALLOWED_BY_DEFAULT)}:
        rows = [
            (answer, rule, str(len(steps)), steps[0] if len(steps) == 1 else facts.names(steps))
            for (answer, rule), steps in groups.items()
        ]
        columns: tuple[tuple[str, Kind], ...] = (
            *(("Decision", "text"), ("Rule", "code")),
            *(("Steps", "number"), ("Which", "step")),
        )
        yield table("Policy decisions", columns, rows, note=f"In force: {in_force(state)}.")


def provenance(state: RunState, head: str) -> Section:
    """Return where a run comes from: its id, plan, policy and risk, and the head of its ledger."""
    started, plan = state.started, state.plan
    rows: list[tuple[str, str, Kind]] = [
        ("Run", started.run if started else "", "code"),
        ("Plan", f"{plan.file}, version {plan.version}, digest {plan.digest[:12]}", "text"),
        ("Started", f"{started.at[:19].replace('T', ' ')} UTC" if started else "", "text"),
        ("Policy", in_force(state), "text"),
        ("Risk", totals_line(risk_totals(state)).replace(", 0 destructive", ""), "text"),
    ]
    for part in parts_of(state):
        if "summary" in part:
            rows += [(name, value, "text") for name, value in part["summary"](state)]
    rows += [("Ledger head", head, "code"), ("planrun", started.planrun if started else "", "text")]
    return Section(heading="Run", facts=[row for row in rows if row[1]])
