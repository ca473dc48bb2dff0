"""A plan as markdown for its approvers: what it does, its maximum duration, its risks, what it destroys.

It is meant for the summary of a CI job and for comments: all text of the plan is escaped or in code spans.

`planrun show`: a plan as a table, as a graph, by levels or in order.
"""

from __future__ import annotations

import sys

import click

from planrun.approval.digest import gaps
from planrun.approval.preview import digest_preview, plan_data, totals
from planrun.approval.rules import LEVELS
from planrun.cliutil.click import judged, policy_preview
from planrun.cliutil.completion import complete_plans
from planrun.cliutil.defaultplan import given
from planrun.cliutil.failure import printable
from planrun.cliutil.printing import say, say_bytes, say_json, table
from planrun.model.groups import number_of, unknown, waited_for
from planrun.model.plan import Edge
from planrun.plan.load import load
from planrun.reports import describe, drawing
from planrun.reports.describe import FAILURE_MEANS, edge, longest_path, risk_cell, worst
from planrun.reports.escape import code, fitting, inline, line, size
from planrun.reports.policies import totals_line
from planrun.settings import current_folder
from planrun.values import duration
from planrun.values import show as value_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from planrun.approval.preview import DigestPreview, PolicyPreview, StepPreview
    from planrun.model.plan import Param, Plan, Step

BUDGET = 900 * 1024  # bytes; GitHub shows nothing of a step summary above 1 MiB
ICONS = {"read-only": "⚪", "low": "🟢", "medium": "🟡", "high": "🔴"}
_DESTROYS = "💥"
_ANSWERS = {"ask": "✋", "deny": "⛔"}
_STOPPED = 100_000  # bytes for steps that are denied or need an approval
_TABLE = "\n| | Step | Action | Depends on | At most | Risk |\n| --- | --- | --- | --- | ---: | --- |\n"


def markdown(plan: Plan, digests: DigestPreview, ahead: PolicyPreview) -> str:
    """Return the plan as markdown: headline, totals, the stopped steps, a row for each step; at most BUDGET bytes."""
    steps = [*ahead.steps(), *ahead.undoing()]
    known = plan.but(steps=tuple([one.step for one in steps]))
    head = "".join([*_head(known, digests), f"- policy: {inline(ahead.policy, 1000)}\n", *_stopped(steps)])
    rows = [
        _row(one.step, written.action.written())
        for one, written in zip(steps, plan.everything(), strict=True)
    ]
    rest = "\n{} more steps are not shown; `planrun show` lists all of them.\n"
    return head + _TABLE + fitting(rows, BUDGET - size(head) - 500, rest)


def _head(plan: Plan, digests: DigestPreview) -> Iterator[str]:
    yield f"### 📋 {inline(plan.title or plan.name)}\n\n"
    for text in (plan.description, plan.goal and f"Goal: {plan.goal}"):
        if text:
            yield f"{inline(text, 1000)}\n\n"
    missing = f" without the required {code(', '.join(digests.missing))}" if digests.missing else ""
    yield f"- {code(line(plan.file))}, digest {code(plan.digest[:12])}{missing}\n"
    yield f"- {' · '.join(_totals(plan))}\n"
    destructive = [step.id for step in plan.steps if "destroys" in step.effects]
    if destructive:
        more = f" and {len(destructive) - 20} more" if len(destructive) > 20 else ""
        yield f"- {_DESTROYS} {len(destructive)} destructive: {', '.join(map(code, destructive[:20]))}{more}\n"
    if plan.secrets:
        yield f"- 🔑 secrets: {', '.join([_secret(name, plan) for name in plan.secrets])}\n"
    if plan.notify:
        yield f"- 🔔 notifies: {', '.join([code(line(target.text(), 300)) for target in plan.notify])}\n"
    if plan.mcp:
        yield f"- 🔌 MCP servers: {', '.join([code(line(server.text(), 300)) for server in plan.mcp])}\n"


def _totals(plan: Plan) -> Iterator[str]:
    count = sum(step.kind != "group" and step.section != "rollback" for step in plan.steps)
    yield f"{count} step{'' if count == 1 else 's'}"
    path, seconds = longest_path(plan)
    limit = plan.limits.deadline
    if path:
        bound = min(seconds, limit) if limit else seconds
        yield f"⏱ at most {duration(round(bound))}" + (" (deadline)" if limit and limit < seconds else "")
    counts = {
        level: sum(step.risk == level and step.kind != "group" for step in plan.steps)
        for level in reversed(LEVELS[1:])
    }
    yield ", ".join([f"{ICONS[level]} {count} {level}" for level, count in counts.items() if count])


def _stopped(steps: list[StepPreview]) -> Iterator[str]:
    """The steps that are denied, or need an approval or an answer, and why."""
    rows = []
    for one in steps:
        answer = one.decision.answer
        if answer != "allow":
            verdict = "is denied" if answer == "deny" else "needs an approval"
            rows.append(
                f"- {_ANSWERS[answer]} {code(one.step.id)} {verdict}: {inline(one.decision.reason, 500)}\n"
            )
        elif one.step.action.asks:
            rows.append(f"- {_ANSWERS['ask']} {code(one.step.id)} asks a question\n")
    if rows:
        yield f"\n**Needs an approval or an answer, or is denied**\n\n{fitting(rows, _STOPPED, '- and {} more')}"


def _secret(name: str, plan: Plan) -> str:
    readers = _readers(name, plan)
    listed = ", ".join(readers[:10]) + (f" and {len(readers) - 10} more" if len(readers) > 10 else "")
    return f"{code(name)} ({inline(listed) or 'no step lists it'})"


def _row(step: Step, deed: str) -> str:
    name = code(step.id) + (f" {inline(step.title, 100)}" if step.title else "")
    cells = (
        ICONS[step.risk] + (_DESTROYS if "destroys" in step.effects else ""),
        name + (f" ({step.section})" if step.section != "steps" else ""),
        _deed(step, deed),
        inline(", ".join(map(edge, step.edges)), 200) or "-",
        duration(round(worst(step))) if step.action.timed else "-",
        inline(f"{step.risk}: {step.risk_reason}" if step.risk_reason else step.risk, 200),
    )
    return f"| {' | '.join(cells)} |\n"


def _more(rows: int) -> str:
    return f" … {rows} more line{'' if rows == 1 else 's'}" if rows else ""


def _deed(step: Step, deed: str) -> str:
    """Return the first line of what a step does, and whether there is more, or a condition."""
    rows = deed.strip().split("\n")
    if step.kind == "abstract":
        text = "no action yet"
    elif step.action.summary:
        text = step.action.summary
    else:
        text = code(rows[0], 80) + (_more(len(rows) - 1))
    return text + (f", if {code(step.condition_text, 80)}" if step.condition is not None else "")


DRAWINGS = ("mermaid", "dot", "text")
FORMATS = ("text", "json", "markdown")


@click.command(short_help="Table of the steps; graph, levels and order.")
@click.argument("plan", required=False, type=click.Path(readable=False), shell_complete=complete_plans)
@click.argument("step", required=False)
@click.option(
    "--patch", is_flag=True, help="Print the patch that the agent in STEP of a run made: show RUN STEP."
)
@click.option("--graph", type=click.Choice(DRAWINGS), help="Draw the dependency graph instead of the table.")
@click.option(
    "--levels", is_flag=True, help="List the steps by level: each depends only on the levels above."
)
@click.option("--order", is_flag=True, help="List the steps, one a line, each after its dependencies.")
@click.option("--json", "as_json", is_flag=True, envvar="PLANRUN_JSON", help="Print one JSON document.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="markdown: for the summary of a CI job or a comment, all text of the plan escaped; text: the table.",
)
@judged
def show(  # noqa: PLR0913 - one for each option
    plan: str | None,
    step: str | None,
    graph: str | None,
    *,
    patch: bool,
    levels: bool,
    order: bool,
    as_json: bool,
    form: str | None,
    **under: Any,
) -> int:
    """Show what PLAN would do: its steps, their dependencies, risks and limits. The table is markdown.

    It shows the class of risk of each step, by its text and the known parameters, and which steps the policy in force
    would deny or ask for. Without PLAN it shows the plan that `planrun run` takes.

    \b
    Examples:
      planrun show
      planrun show plan.yml
      planrun show plan.yml --policy ci/policy.yml --param target=prod
      planrun show plan.yml --format markdown >> "$GITHUB_STEP_SUMMARY"
      planrun show plan.yml --graph text
      planrun show plan.yml --graph dot | dot -Tsvg > plan.svg
      planrun show plan.yml --json | jq '.steps[].id'
      planrun show last fix --patch
    """
    if patch:
        return _patch(plan, step)
    if step is not None:
        raise click.UsageError(
            "a step needs --patch: planrun show RUN STEP --patch", click.get_current_context()
        )
    if sum((graph is not None, levels, order, as_json, form is not None)) > 1:
        raise click.UsageError(
            "--graph, --levels, --order, --format and --json exclude each other", click.get_current_context()
        )
    chosen = given(plan)
    under["policy"] = chosen.path(under["policy"])
    loaded = load(chosen.file, cache=False)
    if graph:
        say(_drawn(loaded, graph))
    elif levels:
        say(
            "\n".join(
                [f"Level {n}: {', '.join(names)}" for n, names in enumerate(describe.levels(loaded), 1)]
            )
        )
    elif order:
        say("\n".join(describe.order(loaded)))
    else:
        digests = digest_preview(loaded, under["params"], current_folder())
        loaded = loaded.but(digest=digests.reviewed.digest)
        ahead = policy_preview(loaded, **under)
        if as_json or form == "json":
            say_json({**describe.as_data(loaded, digests.as_data()), **plan_data(ahead)})
        elif form == "markdown":
            say(markdown(loaded, digests, ahead).rstrip("\n"))
        else:
            say("\n".join(overview(digests, ahead)))
    return 0


def _patch(run: str | None, step: str | None) -> int:
    """Print the patch of an agent byte for byte, but on a terminal without what could steer it."""
    if run is None or step is None:
        raise click.UsageError("--patch needs a run and a step: planrun show RUN STEP --patch")
    from planrun.show.patch import patch_of  # few runs have agents

    data = patch_of(run, step)
    if sys.stdout.isatty():
        say("\n".join([printable(row) for row in data.decode("utf-8", "replace").split("\n")]))
    else:
        say_bytes(data)
    return 0


def _drawn(plan: Plan, form: str) -> str:
    draw = {"mermaid": drawing.mermaid, "dot": drawing.dot, "text": drawing.text}
    return draw[form](plan)


def overview(digests: DigestPreview, ahead: PolicyPreview) -> Iterator[str]:
    """Yield the table of a plan, and its other sections."""
    plan, steps = ahead.plan, ahead.steps()
    title = line(plan.title or plan.name)
    yield f'Plan v{plan.version}: "{title}" ({printable(plan.file)}, digest {plan.digest[:12]}{_without(digests)})'
    yield from [
        printable(text.strip()) for text in (plan.description, plan.goal and f"Goal: {plan.goal}") if text
    ]
    unfinished = [step.id for step in plan.steps if step.kind == "abstract"]
    if unfinished:
        yield f"Status: draft, without an action: {', '.join(unfinished)}"
    yield ""
    tokens = sum(step.estimated_tokens for step in plan.steps)
    if tokens:
        yield table(("#", "Step", "Tokens", "Deps", "Risk"), list(_rows(steps)), right=(0, 2))
    else:
        yield table(("#", "Step", "Deps", "Risk"), [row[:2] + row[3:] for row in _rows(steps)], right=(0,))
    count = sum(step.kind != "group" for step in plan.steps)
    yield f"\nTotal: {number_of(count, unknown(plan.steps))}{f', ~{tokens} tokens' if tokens else ''}"
    yield from _judgements(ahead, [*steps, *ahead.undoing()])
    yield "\n".join(_limits(plan))
    yield from _listed("Risks", _reasons(steps))
    yield from _listed("Parameters", _params(plan))
    yield from _listed("Scripts", _scripts(digests))
    yield from _listed("Secrets", _secrets(plan))
    yield from _listed("Undone when the run fails", _undoing(plan))
    yield from _listed("Conditions", _conditions(plan))
    yield from _listed("Success criteria", _criteria(plan))
    yield from _listed("On failure", _failures(plan))
    yield from _listed("Notified", _notified(plan))


def _without(digests: DigestPreview) -> str:
    return f" without the required {', '.join(digests.missing)}" if digests.missing else ""


def _scripts(digests: DigestPreview) -> Iterator[str]:
    reviewed = digests.reviewed
    yield from [f"  {printable(path)}: {digest[:12]}" for path, digest in sorted(reviewed.scripts.items())]
    for what, why in gaps(reviewed).items():
        yield f"  {printable(what)}: not part of the digest: {printable(why)}"


def _listed(title: str, rows: Iterator[str]) -> list[str]:
    lines = list(rows)
    return [f"\n{title}:", *lines] if lines else []


def _judgements(ahead: PolicyPreview, steps: list[StepPreview]) -> Iterator[str]:
    """The totals of the risks, the policy in force, and what it would deny or ask for."""
    yield f"Risk: {totals_line(totals(steps))}"
    yield f"Policy: {printable(ahead.policy)}"
    replaced = _replaced(steps)
    for word, answer in (("Denied", "deny"), ("Needs approval", "ask")):
        stopped = [one for one in steps if one.decision.answer == answer and one.step.id not in replaced]
        names = [f"{one.step.id} ({one.decision.rule})" for one in stopped]
        if names:
            yield f"{word}: {', '.join(names)}"
    asking = [one.step.id for one in steps if one.step.action.asks]
    if asking:
        yield f"Asks: {', '.join(asking)}"


def _replaced(steps: list[StepPreview]) -> dict[str, str]:
    """Return the steps that never start, and which take the place of each."""
    replacements: dict[str, list[str]] = {}
    for one in steps:
        for name in one.step.replaces:
            replacements.setdefault(name, []).append(one.step.id)
    return {name: ", ".join(ids) for name, ids in replacements.items()}


def _reasons(steps: list[StepPreview]) -> Iterator[str]:
    """Why steps have the class they have, those that only read left out."""
    for one in steps:
        step = one.step
        if step.risk != "read-only" and step.kind != "abstract" and not _is_known(step):
            effects = f" ({', '.join(step.effects)})" if step.effects else ""
            yield f"  {step.id}: {step.risk}{effects}, {printable(' '.join(step.risk_reason.split()))}"


def _rows(steps: list[StepPreview]) -> Iterator[tuple[str, ...]]:
    replaced = _replaced(steps)
    waits = waited_for([one.step for one in steps])
    number = 0
    for step in [one.step for one in steps]:
        number += step.kind != "group"
        name = f"{step.id}: {line(step.title)}" if step.title else step.id
        marks = " (finally)" if step.section == "finally" else ""
        marks += _instances(step) if step.kind == "group" else ""
        marks += " (no action yet)" if step.kind == "abstract" else ""
        marks += f" (replaced by {replaced[step.id]})" if step.id in replaced else ""
        tokens = f"~{step.estimated_tokens}" if step.estimated_tokens else "-"
        needs = ", ".join([edge(Edge(on=on, kind=kind)) for on, kind in waits[step.id]])  # type: ignore[arg-type]
        place = str(number) if step.kind != "group" else ""  # its instances are counted
        yield place, name + marks, tokens, needs or "-", risk_cell(step)


def _instances(step: Step) -> str:
    """The note on a group: how many instances it has, or that they are not known yet."""
    if not _is_known(step):
        return " (instances known when it runs)"
    count = len(step.grouping.members)
    return f" ({count} instance{'' if count == 1 else 's'})"


def _is_known(step: Step) -> bool:
    """Whether a step is a group with known members."""
    return step.kind == "group" and step.grouping.template is None


def _limits(plan: Plan) -> Iterator[str]:
    limits = plan.limits
    yield f"Schedule: {plan.schedule}" + (
        f", at most {limits.max_parallel} at once" if limits.max_parallel else ""
    )
    if limits.deadline:
        yield f"Deadline: {duration(limits.deadline)}"
    path, seconds = longest_path(plan)
    shown = path if len(path) <= 8 else [*path[:4], "…", *path[-3:]]
    if path:
        yield f"Longest path: {' > '.join(shown)} (at most {duration(round(seconds))}, by its timeouts and retries)"


def _params(plan: Plan) -> Iterator[str]:
    for param in plan.params:
        yield f"  {param.name}: {_param(param)}"


def _param(param: Param) -> str:
    schema = param.schema
    parts = [str(schema.get("type", "string"))]
    if "enum" in schema:
        parts.append("one of " + ", ".join([value_text(value) for value in schema["enum"]]))
    if "pattern" in schema:
        parts.append(f"pattern {printable(str(schema['pattern']))}")
    if "default" in schema:
        parts.append(f"default {value_text(schema['default'])}")
    elif param.required:
        parts.append("required")
    return ", ".join(parts)


def _secrets(plan: Plan) -> Iterator[str]:
    for name in plan.secrets:
        yield f"  {name}: {', '.join(_readers(name, plan)) or 'no step lists it'}"


def _readers(name: str, plan: Plan) -> list[str]:
    """Return the steps and targets that get a secret."""
    readers = [step.id for step in plan.steps if name in step.secrets]
    readers += [f"notify ({target.kind})" for target in plan.notify if name in target.needs]
    return [*readers, *[f"MCP server {server.name}" for server in plan.mcp if name in server.needs]]


def _notified(plan: Plan) -> Iterator[str]:
    for target in plan.notify:
        yield f"  {printable(target.text())}"


def _undoing(plan: Plan) -> Iterator[str]:
    for step in plan.steps:
        if step.rollback is not None:
            when = ", also when it failed itself" if step.rollback.on_failed else ""
            for undo in reversed(step.rollback.undos):
                yield f"  {printable(step.id)}{when}: {undo.risk}, {printable(undo.risk_reason)}"


def _conditions(plan: Plan) -> Iterator[str]:
    for step in plan.steps:
        if step.condition is not None:
            yield f"  {step.id}: {printable(' '.join(step.condition_text.split()))}"


_REPLANNED = {"fatal": "a fatal", "any": "any"}


def _criteria(plan: Plan) -> Iterator[str]:
    for step in plan.steps:
        if step.kind != "group":
            yield from [f"  {step.id}: {printable(text)}" for text in step.criteria]


def _failures(plan: Plan) -> Iterator[str]:
    for step in plan.steps:
        parts = _reactions(step)
        if parts:
            yield f"  {step.id}: {'; '.join(parts)}"
    asking = [step.id for step in plan.steps if step.replan and step.on_failure != "replan"]
    if asking and plan.llm:
        yield f"  {', '.join(asking)}: a model replans after {_REPLANNED[plan.llm.replan_on_failure]} failure"
    used = {step.on_failure: None for step in plan.steps if step.on_failure != "block"}
    yield from [f"  ({word}: {FAILURE_MEANS[word]})" for word in used]


def _reactions(step: Step) -> list[str]:
    parts: list[str] = [step.on_failure] if step.on_failure != "block" else []
    if step.retries.max:
        parts.append(f"{step.retries.max} more attempt{'' if step.retries.max == 1 else 's'}")
    if step.recovers:
        parts.append(f"recovers {', '.join(step.recovers)}")
    return parts
