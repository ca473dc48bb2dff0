"""A run as one document: sections of facts, lines, code and tables, which text, markdown and HTML render.

What people look for stands first: failures, what waits, the next command, the steps; where the run comes from is last.
All texts are as they are: each renderer cleans and escapes what it writes.

Some parts of it only some runs have, in modules that only those runs load.

A part says in one `Part` what it adds; reports ask `parts_of` for the parts of a run. A new part is a module with a
`Part` and a row in `_TABLE`.
"""

from __future__ import annotations

import os

from planrun.model.groups import waited_for
from planrun.model.record import Record
from planrun.reports import facts
from planrun.reports.escape import TAIL_BYTES, tail
from planrun.reports.facts import seconds
from planrun.reports.policies import (
    ALLOWED_BY_DEFAULT,
    any_gate,
    decision,
    in_force,
    risk_of,
    risk_totals,
    totals_line,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any, Literal, TypedDict

    from planrun.model.progress import StepState
    from planrun.model.state import RunState
    from planrun.reports.elements import Dialect, Suite

    Kind = Literal["text", "code", "number", "step"]
    Form = Literal["text", "markdown", "html"]
    Rows = Callable[[RunState], Iterable[str]]
    RowsKey = Literal["warnings", "opening", "ending", "closing"]

    class Part(TypedDict, total=False):
        """What a part adds to the reports: clean lines for the console, sections of texts as they are elsewhere."""

        # Text, markdown and HTML.
        sections: Callable[[RunState], Iterable[Section]]
        summary: Callable[[RunState], Iterable[tuple[str, str]]]  # name and value among the facts of the run
        step_rows: Callable[[StepState], Iterable[str]]  # below the line of a step
        warnings: Rows  # the console shows them when a run starts, with --quiet, too
        # The console.
        opening: Rows  # when a run starts
        event_line: Callable[[Any, RunState], tuple[str, str]]  # a status, whose icon is shown, and a line
        failures: Callable[
            [RunState], Iterable[tuple[str, str, str]]
        ]  # heading, message, annotation's title or ""
        ending: Rows  # when a run ended
        closing: Rows  # below all else
        notices: Callable[
            [RunState], Iterable[tuple[int, str, str]]
        ]  # annotations: line of the plan, title, message
        places: Callable[
            [StepState], Iterable[tuple[str, int, str, str]]
        ]  # annotations of a failed step, with a file
        # JUnit.
        properties: Callable[[RunState], dict[str, str]]
        suites: Callable[[RunState, str, Dialect], list[Suite]]  # state, run directory, dialect
        # ledger.json.
        ledger: Mapping[str, Callable[[RunState], Any]]  # values of keys that are empty in other runs
        usage_by_step: Callable[[RunState], dict[str, dict[str, float]]]


BELOW = "below"
"""In place of a status: a line that belongs to the one above it."""


class Section(Record):
    """A heading and what stands below it, in this order; a part that is empty is not shown.

    `lines`: status, BELOW or "", and a text. Cells of `rows` may have several lines; those of a `step` column are ids,
    which become links. `forms`: the formats that show it, empty for all. `leads`: it stands above the steps.
    """

    heading: str
    mark: str = ""  # the status whose icon stands before the heading
    step: str = ""  # the step that it is about
    text: str = ""
    is_error: bool = False  # `text` is a line by which a program named its error
    facts: Sequence[tuple[str, str, Kind]] = ()
    lines: Sequence[tuple[str, str]] = ()
    code: str = ""
    language: Literal["text", "sh", "mermaid"] = "text"
    columns: Sequence[tuple[str, Kind]] = ()
    rows: Sequence[tuple[str, ...]] = ()
    note: str = ""
    sections: Sequence[Section] = ()
    forms: tuple[Form, ...] = ()
    leads: bool = False


def table(
    heading: str,
    columns: Sequence[tuple[str, Kind]],
    rows: Sequence[tuple[str, ...]],
    *,
    note: str = "",
    forms: tuple[Form, ...] = (),
) -> Section:
    """Return a section with a table, without the columns that say nothing: all their cells are empty or 0."""
    kept = [at for at in range(len(columns)) if any(row[at] not in ("", "0") for row in rows)]
    if len(kept) < len(columns):
        columns = [columns[at] for at in kept]
        rows = [tuple([row[at] for at in kept]) for row in rows]
    return Section(heading=heading, columns=columns, rows=rows, note=note, forms=forms)


def lined(texts: Iterable[str]) -> list[tuple[str, str]]:
    """Return texts as lines of a section."""
    return [("", text) for text in texts]


# Which runs have a part, and where it is. Every form shows its parts in this order.
_TABLE: tuple[tuple[Callable[[RunState], object], str], ...] = (
    (lambda state: facts.option(state, "secrets"), "extras:SECRETS"),
    (facts.shard_of, "extras:SHARD"),
    (lambda state: state.undoing or state.cut_short, "extras:ROLLBACK"),
    (lambda state: any([step.step.edges for step in state.steps.values()]), "drawing:GRAPH"),  # noqa: C419 - half the time
    # Where GitHub shows the page; elsewhere it would be a block of numbers.
    (lambda state: os.environ.get("GITHUB_STEP_SUMMARY") and len(state.steps) > 1, "gantt:TIMELINE"),
    (lambda state: any([step.step.makes for step in state.steps.values()]), "extras:PRODUCED"),  # noqa: C419 - as above
    (lambda state: state.plan.outputs, "extras:OUTPUTS"),
    (facts.is_revised, "versions:VERSIONS"),
    (lambda state: state.noted, "collaboration:COLLABORATION"),
    (
        lambda state: (
            state.planning is not None
            or (state.started is not None and "generation" in state.started.options)
        ),
        "models:MODELS",
    ),
    (lambda state: state.agents, "agents:AGENTS"),
    (lambda state: state.rounds, "extras:ROUNDS"),
    (lambda state: any([step.step.hooks for step in state.steps.values()]), "extras:HOOKS"),  # noqa: C419 - as above
    (any_gate, "gates:GATES"),
    (lambda state: facts.option(state, "sandbox") or facts.is_revised(state), "extras:SANDBOXES"),
    (lambda state: state.options.get("executor", {}).get("files"), "extras:SENT"),
    (lambda state: any([step.step.reports for step in state.steps.values()]), "testcases:TEST_CASES"),  # noqa: C419 - as above
)


class _Known:
    """The parts of the run that was asked for last: all its reports ask, and each answer is a look at all steps."""

    state: RunState | None = None
    events = -1
    parts: list[Part] = []  # noqa: RUF012 - replaced, never changed


def parts_of(state: RunState) -> list[Part]:
    """Return the parts that the reports of a run have."""
    if _Known.state is not state or _Known.events != state.events:
        _Known.parts = [part(place) for has_part, place in _TABLE if has_part(state)]
        _Known.state, _Known.events = state, state.events
    return _Known.parts


def part(place: str) -> Part:
    """Return the part at a place, as `gates:GATES`, and load its module."""
    module, _, name = place.partition(":")
    found: Part = getattr(load(module), name)
    return found


def load(module: str) -> Any:
    """Return a module of this package that only some runs need."""
    # importlib.import_module would load `warnings` for this.
    return __import__(f"planrun.reports.{module}", fromlist=[module])


def rows_of(parts: Iterable[Part], key: RowsKey, state: RunState) -> Iterator[str]:
    """Yield what parts add at one place of a form."""
    for found in parts:
        if key in found:
            yield from found[key](state)


# The document of a run.


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
