"""`planrun status`, `runs` and `verify`: what the records in this folder say, without changing them.

`planrun prune`: remove old runs of this folder.

`planrun explain`: why a step would run, or why it ran, failed or did not run.
"""

from __future__ import annotations

import click

from planrun.cliutil.click import judged, outlook
from planrun.cliutil.completion import complete_plans_or_runs, complete_runs, complete_steps
from planrun.cliutil.failure import printable
from planrun.cliutil.printing import say, say_json, speaks_unicode, table
from planrun.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from planrun.app.inspect import Inspected, Row
    from planrun.records.reading import Reading

# What `verify` ends with; above the codes of runs, so that none is taken for another.
VERIFIED = {"intact": 0, "unfinished": 10, "torn": 11, "truncated": 12, "altered": 13}


@click.command(short_help="How far a run is, and what holds it up.")
@click.argument("run", default="last", shell_complete=complete_runs)
@click.option("--json", "as_json", is_flag=True, envvar="PLANRUN_JSON", help="Print one JSON document.")
def status(run: str, *, as_json: bool) -> int:
    """Show how far RUN is (default: the newest run), step by step, and why steps are held up.

    \b
    Examples:
      planrun status
      planrun status 20260131-09
      watch planrun status
    """
    from planrun.app.inspect import inspect
    from planrun.runs import progress

    found = inspect(run)
    if as_json:
        say_json(progress.as_data(found))
    else:
        say("\n".join(_panel(found)))
    return 0


def _panel(found: Inspected) -> Iterator[str]:
    from planrun.reports import facts
    from planrun.reports import facts as units
    from planrun.reports.escape import line
    from planrun.reports.text import step_line
    from planrun.runs import progress

    state = found.state
    plan = state.plan
    word = progress.status_of(found).capitalize()
    yield f'Plan v{plan.version}: "{line(plan.title or plan.name)}" [{word}]'
    figures = progress.metrics(found) if found.going else None
    left = ""
    if figures and figures.eta:
        left = f", {'about' if figures.eta_known else 'at least'} {units.seconds(figures.eta)} to go"
    yield f"{progress.bar(state)}  run {found.run}, {units.seconds(progress.elapsed(found))}{left}"
    if found.reading.condition in ("torn", "altered", "truncated"):
        yield f"the ledger is {found.reading.condition}: {found.reading.detail}"
    if state.planning is not None:
        from planrun.reports.models import totals_line  # few runs ask a model

        yield f"language model: {totals_line(state)}"
    yield ""
    icons = facts.ICONS if speaks_unicode() else facts.ASCII_ICONS
    labels = facts.labels(state)
    said = progress.said(found)
    for step in state.steps.values():
        yield step_line(step, icons, labels=labels)
        if step.step.id in said:
            share, message = said[step.step.id]
            yield f"    {share:.0%} {printable(message)}".rstrip()
        yield from [f"    {printable(' '.join(reason.split()))}" for reason in progress.why(found, step)]
    yield from _at_rest(found)
    coming = progress.next_steps(state)
    if coming and not state.ended:
        yield f"\nnext: {', '.join(coming[:5])}" + (f" and {len(coming) - 5} more" if len(coming) > 5 else "")


def _at_rest(found: Inspected) -> Iterator[str]:
    """What a run waits for and how it is answered; how it goes on when nobody works on it."""
    from planrun.reports import facts
    from planrun.runs import progress

    state = found.state
    if not found.going:
        from planrun.model.rollback import owes
        from planrun.reports.extras import pending

        if owes(state):
            yield f"\n{pending(state)}"
    asked = progress.waiting(found)
    if asked:
        yield "\nwaiting for"
    for gate in asked:
        yield f"  {gate['told']}"
        yield from [f"    $ {command}" for command in gate["commands"]]
    if state.exit_status is not None and not state.ended and not found.going:
        yield (
            f"\nto continue once answered: planrun resume {found.run}"
            if asked
            else f"\n{facts.unended(state)}"
        )


@click.command(short_help="The runs in this folder.")
@click.option(
    "-n", "--limit", type=click.IntRange(min=0), default=20, show_default=True, help="How many; 0: all."
)
@click.option("--json", "as_json", is_flag=True, envvar="PLANRUN_JSON", help="Print one JSON document.")
def runs(limit: int, *, as_json: bool) -> int:
    """List the runs in this folder, newest first.

    \b
    Examples:
      planrun runs
      planrun runs --json | jq -r '.runs[] | select(.status == "failed") | .run'
    """
    from planrun.app.inspect import known_runs, listing

    names = known_runs()
    rows = listing(names[: limit or None])
    if as_json:
        say_json({"runs": [_run_data(row) for row in rows], "left_out": len(names) - len(rows)})
    elif not rows:
        say("there are no runs in this folder")
    else:
        say(
            table(
                ("Run", "Plan", "Status", "Started", "Took", "Failed"),
                [_run_cells(row) for row in rows],
            )
        )
        if len(rows) < len(names):
            say(f"{len(names) - len(rows)} older ones are left out; --limit 0 lists all")
    return 0


def _run_cells(row: Row) -> tuple[str, ...]:
    from planrun.reports.escape import line
    from planrun.reports.facts import seconds

    failed = ", ".join(row.failed[:3]) + (f" and {len(row.failed) - 3} more" if len(row.failed) > 3 else "")
    told = "; ".join(filter(None, (failed, _waits(row)))) or row.detail or "-"
    started = row.started_at[:19].replace("T", " ") or "-"
    took = seconds(row.duration) if row.duration is not None else "-"
    return line(row.run), line(row.plan) or "-", row.status, line(started), took, line(told, 200)


def _waits(row: Row) -> str:
    """What a run waits for, in a few words: `waits for publish (approval), where (decide)`."""
    asked = [f"{step or 'the plan'} ({kind})" for step, kind in row.waiting]
    more = f" and {len(asked) - 3} more" if len(asked) > 3 else ""
    return f"waits for {', '.join(asked[:3])}{more}" if asked else ""


def _run_data(row: Row) -> dict[str, object]:
    return {
        "run": row.run,
        "status": row.status,
        "plan": {"name": row.plan, "file": row.file},
        "started_at": row.started_at or None,
        "duration_s": row.duration,
        "exit_code": row.exit_code,
        "failed": list(row.failed),
        "waiting": [{"step": step or None, "kind": kind} for step, kind in row.waiting],
        "detail": row.detail,
    }


@click.command(short_help="Whether the ledger of a run is as it was written.")
@click.argument("run", default="last", shell_complete=complete_runs)
@click.option("--head", metavar="HASH", help="The hash of the last line, as `execute` printed it.")
@click.option("--json", "as_json", is_flag=True, envvar="PLANRUN_JSON", help="Print one JSON document.")
def verify(run: str, head: str | None, *, as_json: bool) -> int:
    """Check that the ledger of RUN is whole and unchanged: every line holds the hash of the one before.

    Who can write to the folder can also write a whole new ledger; only the head, kept elsewhere, tells that.
    Logs are compared with the size and hash that the ledger has of them.
    Exit code 0: intact and finished. 10: unfinished. 11: torn. 12: truncated. 13: altered, or a log was.

    \b
    Examples:
      planrun verify last
      planrun verify 20260131-093000-1f2e3d --head "$HEAD"
    """
    import os

    from planrun.app.inspect import changed_logs, read

    wanted = "" if head is None else _head(head)
    rundir, reading = read(run, wanted)
    name = os.path.basename(rundir)
    logs = changed_logs(rundir, reading)
    if as_json:
        say_json({"run": name, **_reading_data(reading), "logs_changed": logs})
    else:
        say("\n".join([f"{name}: {_verdict(reading)}", *[f"  {printable(log)}" for log in logs]]))
    return VERIFIED["altered"] if logs else VERIFIED[reading.condition]


def _head(text: str) -> str:
    """Return a head as it stands in a ledger; an empty one is a variable that was not set, and checks nothing."""
    head = text.strip().lower()
    if len(head) != 64 or head.strip("0123456789abcdef"):
        raise InvalidInput("--head needs the 64 hexadecimal digits that `execute` printed at its end")
    return head


def _verdict(reading: Reading) -> str:
    from planrun.app.inspect import resting_status

    rests = resting_status(reading)
    events = f"{len(reading.events)} event{'' if len(reading.events) == 1 else 's'}"
    if reading.condition == "altered":
        return f"altered at line {reading.line}: {printable(reading.detail)}; the {events} before are sound"
    detail = f": {printable(reading.detail)}" if reading.detail else ""
    return {
        "intact": f"intact, {events}, head {reading.head}",
        "unfinished": f"unfinished, {events} and no end: the run still goes on or was killed"
        if not rests
        else f"unfinished ({rests}), {events}; `planrun resume` goes on",
        "torn": f"torn at line {reading.line}{detail}; the {events} before are sound, and `planrun resume` goes on",
        "truncated": f"truncated{detail}; the {events} that are left are sound",
    }[reading.condition]


def _reading_data(reading: Reading) -> dict[str, object]:
    from planrun.app.inspect import resting_status

    rests = resting_status(reading)
    return {
        "condition": reading.condition,
        "intact": reading.condition == "intact",
        "paused": rests == "paused",
        "waiting": rests == "waiting",
        "events": len(reading.events),
        "head": reading.head,
        "line": reading.line or None,
        "detail": reading.detail,
    }


@click.command(short_help="Remove old runs of this folder.")
@click.option(
    "--keep", metavar="N", type=click.IntRange(min=0), required=True, help="How many of the newest stay."
)
@click.option(
    "--older-than", metavar="DURATION", default="", help="Only runs that ended so long ago: 720h, 90m."
)
@click.option("--dry-run", is_flag=True, help="Say what would go, and remove nothing.")
@click.option("--json", "as_json", is_flag=True, envvar="PLANRUN_JSON", help="Print one JSON document.")
def prune(keep: int, older_than: str, *, dry_run: bool, as_json: bool) -> int:
    """Remove all runs of this folder but the newest ones.

    A run stays when a process works on it, when it waits for somebody, was cut short, owes a rollback or cleanup, is
    named by the queue, or cannot be read: only what came to its end goes. A run that holds the folder is not disturbed.

    \b
    Examples:
      planrun prune --keep 50
      planrun prune --keep 10 --older-than 720h --dry-run
    """
    from planrun.runs.prune import prune as prune_runs

    found = prune_runs(keep, older_than=_seconds(older_than), dry_run=dry_run)
    if as_json:
        stays = [{"run": each.run, "why": each.why} for each in found.stays]
        say_json(
            {
                "kept": found.kept,
                "stays": stays,
                "removed": list(found.removed),
                "bytes": found.size,
                "dry_run": dry_run,
            }
        )
        return 0
    for each in found.stays:
        say(f"{each.run} stays: {each.why}")
    verb = "would be removed" if dry_run else "removed"
    count = len(found.removed)
    say(
        f"{count} run{'' if count == 1 else 's'} {verb}, {found.size:,} bytes; {found.kept + len(found.stays)} are kept"
    )
    return 0


def _seconds(text: str) -> float:
    if not text:
        return 0.0
    from planrun.cliutil.options import span
    from planrun.plan.schema.forms import as_duration

    return as_duration(span("--older-than", text))


@click.command(short_help="Why a step would run, ran, failed or did not run.")
@click.argument("plan_or_run", metavar="PLAN|RUN", shell_complete=complete_plans_or_runs)
@click.argument("step", shell_complete=complete_steps)
@judged
@click.option(
    "--cache-store",
    envvar="PLANRUN_CACHE_STORE",
    metavar="DIR",
    default="",
    help="Look for results here, too.",
)
@click.option(
    "--report-dir",
    envvar="PLANRUN_REPORT_DIR",
    metavar="DIR",
    default="planrun-out",
    help="The folder of reports, which no step reads. Default: planrun-out",
)
@click.option("--json", "as_json", is_flag=True, envvar="PLANRUN_JSON", help="Print one JSON document.")
def explain(
    plan_or_run: str, step: str, *, as_json: bool, cache_store: str, report_dir: str, **under: Any
) -> int:
    """Explain STEP: what it waits for and what became of that, its condition, its limits and where they come from.

    With a plan: under what conditions it would run, what class of risk each command has, which rule would allow
    it, ask for it or deny it, and whether the cache has its result. With a run: why it ran, failed or did not run,
    and who let it; what was in force is on record then, and --policy, --auto-approve and --param say nothing.

    \b
    Examples:
      planrun explain plan.yml publish
      planrun explain plan.yml publish --policy ci/policy.yml --param target=prod
      planrun explain last publish
    """
    from planrun.app.inspect import inspect, is_plan
    from planrun.plan.load import load
    from planrun.runs import explain as explaining

    if is_plan(plan_or_run):
        plan = load(plan_or_run, cache=False)
        chosen = explaining.find_step(plan, step)
        found = explaining.explain_planned(plan, chosen, outlook(plan, **under))
        if chosen.cache:
            from planrun.runs.cachepreview import preview  # few steps have a cache
            from planrun.settings import Settings

            settings = Settings(params=under["params"], cache_store=cache_store, report_dir=report_dir)
            found["cache"] = preview(plan, chosen, settings).as_data()
    else:
        run = inspect(plan_or_run)
        found = explaining.explain_recorded(run, explaining.find_step(run.state.plan, step))
    if as_json:
        say_json(found)
    else:
        say("\n".join(printable(row) for row in _told(found)))
    return 0


def _told(found: dict[str, Any]) -> Iterator[str]:
    step = found["step"]
    title = f": {step['title']}" if step["title"] else ""
    yield f"Step {step['id']}{title}"
    yield f"  {found['plan']}:{step['line']}" + (", runs at the end" if step["section"] == "finally" else "")
    if found["run"]:
        reason = f" ({found['reason']})" if found["reason"] else ""
        yield f"  {found['status']}{reason} in run {found['run']}"
        yield "\nWhy"
    else:
        yield "\nIt runs when"
    yield from [f"  {_one_line(reason)}" for reason in found["because"]]
    if found.get("advice"):
        yield "\nWhat to do"
        yield from [f"  {_one_line(each)}" for each in found["advice"]]
    if found["run"] and found["edges"]:
        yield "\nIt waits until"
        yield from [
            f"  {edge['step']} {edge['wants']}: {edge['became']}, {_judged(edge)}" for edge in found["edges"]
        ]
    yield from _condition(found["condition"])
    yield from _risk(found)
    yield from _cache(found["cache"])
    yield from _gate(found)
    yield "\nSettings"
    yield from [_setting(setting) for setting in found["settings"]]
    if step["secrets"]:
        yield f"\nSecrets it gets: {', '.join(step['secrets'])}"
    if found["waited_for_by"]:
        yield f"\nWaited for by: {', '.join(found['waited_for_by'])}"
    yield from _attempts(found["attempts"])
    if found["ran_again"]:
        yield "\nRun again"
        yield from [
            f"  {_one_line(again['because'])} (resumed {again['at']})" for again in found["ran_again"]
        ]
    if step["action"]:
        yield "\nWhat it does"
        yield from [f"  | {row}" for row in step["action"].rstrip("\n").split("\n")]


def _judged(edge: dict[str, Any]) -> str:
    return {
        "satisfied": "settled",
        "blocked": "and blocks it",
        "tolerated": "and skips it, since that is tolerated",
        "upstream": "and skips it",
        "approval": "and skips it, since it was left out when the run was approved",
        "open": "still open",
    }[edge["judgement"]]


def _condition(condition: dict[str, Any] | None) -> Iterator[str]:
    if condition is None or condition["holds"] is None:
        return
    from planrun.values import show

    yield f"\nCondition: {_one_line(condition['text'])}"
    yield f"  it was {'true' if condition['holds'] else 'false'}"
    yield from [f"  {path} was {show(value)}" for path, value in condition["read"].items()]


_ANSWERS = {"allow": "allowed", "ask": "asked for", "deny": "denied"}


def _risk(found: dict[str, Any]) -> Iterator[str]:
    """The class of the action, why, and who decided what about it."""
    step = found["step"]
    yield f"\nRisk: {step['risk']}" + (f", {_one_line(step['risk_reason'])}" if step["risk_reason"] else "")
    if step["declared_risk"]:
        yield f"  declared in the plan: {step['declared_risk']}"
    if step["effects"]:
        yield f"  effects: {', '.join(step['effects'])}"
    if step["open_risk"]:
        yield "  values that are not known yet decide about it"
    if step["scripts"]:
        yield f"  scripts: {', '.join(step['scripts'])}"
    decision = found["decision"]
    if found["run"] is None:
        yield from _foreseen(decision)
    elif decision:
        yield f"  {_ANSWERS[decision['answer']]}" + (
            f" by {_one_line(decision['rule'])}" if decision["rule"] else ""
        )


def _foreseen(decision: dict[str, Any]) -> Iterator[str]:
    """What the policies in force will say, rule by rule."""
    for command in decision.get("commands", ()):
        words = " ".join([word if word is not None else "…" for word in command["words"]])
        yield f"  {command['risk']}: {_one_line(words)}: {_one_line(command['reason'])}"
    yield f"\nPolicy: {_one_line(decision['policy'])}"
    for look in decision["rules"]:
        whose = "" if look["policy"] == "plan" else f"{_one_line(look['policy'])}: "
        fits = "is about it" if look["fits"] else "is about something else"
        yield f"  {whose}rule {look['rule']} (line {look['line']}) would {look['verb']}: it {fits}"
    yield from [
        f"  {_ANSWERS[one['answer']]} by {one['rule']}: {_one_line(one['reason'])}"
        for one in decision["policies"]
    ]
    yield f"  So it is {_ANSWERS[decision['answer']]} ({decision['rule']})"
    if decision["missing"]:
        yield f"  It needs {_one_line(decision['missing'])}"


def _cache(found: dict[str, Any] | None) -> Iterator[str]:
    """Whether a step has a result in the cache, and why not."""
    if found is None:
        return
    why = _one_line(found["why"] or "")
    if found["hit"] is None:
        yield "\nCache: not known before it runs" + (f": {why}" if why and not found["depends_on"] else "")
        if found["depends_on"]:
            yield f"  its key depends on the results of {found['depends_on']}, which are not known now"
            yield f"  of the other parts: {why or 'nothing differs from the last time'}"
        return
    yield f"\nCache: hit, the result of run {found['run']}" if found["hit"] else f"\nCache: miss, {why}"
    yield f"  key: {found['key']}"


def _gate(found: dict[str, Any]) -> Iterator[str]:
    """What somebody was asked, and who answered."""
    gate = found["gate"]
    if gate is None:
        return
    wanted = {"ask": "answer", "decide": "decision", "failure": "decision about its failure"}
    yield f"\nGate: {wanted.get(gate['kind'], 'approval')} {gate['status']}"
    asked = " ".join(filter(None, (gate["header"], gate["question"])))
    if asked:
        yield f"  {_one_line(asked)}"
    if gate["reason"]:
        yield f"  {_one_line(gate['reason'])}" + (f" ({gate['rule']})" if gate["rule"] else "")
    if gate["opened_at"]:
        yield f"  opened {gate['opened_at']}" + (f", until {gate['until']}" if gate["until"] else "")
    if gate["status"] == "answered":
        yield f"  {gate['told']} at {gate['answered_at']}"
    yield from [f"  $ {command}" for command in gate["commands"]]


def _setting(setting: dict[str, Any]) -> str:
    from planrun.reports.describe import FAILURE_MEANS

    place = {
        "step": "set here",
        "defaults": "from defaults",
        "policy": "from the policy",
        "llm": "from llm",
        "built in": "built in",
    }[setting["source"]]
    place += f", line {setting['line']}" if setting["line"] else ""
    means = f": {FAILURE_MEANS[setting['value']]}" if setting["key"] == "on_failure" else ""
    return f"  {setting['key']}: {setting['value']} ({place}){means}"


def _attempts(attempts: list[dict[str, Any]]) -> Iterator[str]:
    from planrun.reports.facts import classified, seconds

    if attempts:
        yield "\nAttempts"
    for attempt in attempts:
        took = f" after {seconds(attempt['duration_s'])}" if attempt["duration_s"] is not None else ""
        why = f" ({attempt['reason']})" if attempt["reason"] else ""
        yield f"  {attempt['n']}. {attempt['status']}{why}{took}"
        if attempt["error"]:
            error = attempt["error"]
            yield f"     {_one_line(error.get('message', ''))}"
            if classified(error):
                yield f"     error class {error.get('class', '')}, by rule {error.get('rule', '')}"
        for check in attempt["checks"]:
            if not check.get("ok"):
                yield f"     check failed: {check.get('name', '')}: {check.get('message', '')}"
        if attempt["delay_s"]:
            yield f"     then a pause of {seconds(attempt['delay_s'])}"
        if attempt["log"]:
            yield f"     log: {attempt['log']}"
        if attempt["status"] != "completed":
            yield from [f"     | {row}" for row in attempt["log_end"].rstrip("\n").split("\n") if row]


def _one_line(text: str) -> str:
    return " ".join(text.split())
