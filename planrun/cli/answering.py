"""`planrun approve`, `planrun reject` and `planrun decide`: answer what a run asks, from another shell."""

from __future__ import annotations

import os
from inspect import cleandoc

import click
from click.core import ParameterSource

from planrun.cli.completing import complete_plans_or_runs, complete_questions, complete_runs, complete_waiting
from planrun.cli.printing import say, say_json
from planrun.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from planrun.app.answering import Recorded
    from planrun.app.replies import Verb
    from planrun.model.events import GateAnswered, GateOpened

_BY = click.Option(
    ["--by"], metavar="NAME", envvar="PLANRUN_BY", help="Who says so. Default: the user's name.  [PLANRUN_BY]"
)
_REASON = click.Option(["--reason"], metavar="TEXT", default="", help="Why, for the record.")
_DIGEST = click.Option(
    ["--digest"], metavar="HEX", default="", help="What was reviewed; refused when the run has another one."
)
_RESUME = click.Option(
    ["--resume"], is_flag=True, help="Go on with the run at once; the exit code is the run's."
)
_REPORTS = click.Option(
    ["--report-dir"],
    type=click.Path(),
    metavar="DIR",
    envvar="PLANRUN_REPORT_DIR",
    help="Where the reports of a run at rest go. Default: planrun-out  [PLANRUN_REPORT_DIR]",
)
_JSON = click.Option(["--json"], is_flag=True, help="Print what was recorded, and what still waits, as JSON.")
_COMMON = (_BY, _REASON, _RESUME, _REPORTS, _JSON)

_FOR_PLANS = (
    click.Option(["--step", "named"], multiple=True, metavar="STEP", help="Approve this step; repeatable."),
    click.Option(
        ["--param", "-p", "params"],
        multiple=True,
        metavar="NAME=VALUE",
        help="Of a plan: give a parameter its value, as the run gets it; repeatable.",
    ),
    click.Option(
        ["--expires"], metavar="WHEN", help="Of a plan: for how long (168h, 7d) or until when. Default: 168h"
    ),
    click.Option(["--uses"], type=int, metavar="N", help="Of a plan: for how many runs. Default: 1"),
    click.Option(
        ["--approver"], metavar="NAME", help="Of a plan: who approves. Default: the CI's user, or yours."
    ),
    click.Option(
        ["-o", "--output", "out"],
        type=click.Path(),
        metavar="FILE",
        help="Of a plan: where it goes, - for stdout. Default: PLAN with .approval.json as its ending.",
    ),
)


def _approve(run: str, step: tuple[str, ...], skip: tuple[str, ...] = (), **given: Any) -> int:
    from planrun.cli.approving import approve_plan, is_plan

    for_plan = {name: given.pop(name) for name in ("named", "params", "expires", "uses", "approver", "out")}
    steps = (*step, *for_plan.pop("named"))
    if is_plan(run):
        # A variable that is set for a whole job says nothing about this plan.
        asked = click.get_current_context().get_parameter_source
        if skip or any(asked(name) is ParameterSource.COMMANDLINE for name in given):
            raise InvalidInput(
                f"{run} is a plan: --skip, --digest, --by, --reason, --resume, --report-dir and --json are for runs; "
                "who approves a plan is told by --approver"
            )
        return approve_plan(run, {"steps": steps, **for_plan})
    if any(value not in (None, ()) for value in for_plan.values()):
        raise InvalidInput(
            f'"{run}" is no plan file: --param, --expires, --uses, --approver, -o are for plans'
        )
    step = steps
    return _answer("approve", run, {"steps": step, "skip": skip}, given)


def _reject(run: str, step: str | None, **given: Any) -> int:
    return _answer("reject", run, {"steps": (step,) if step else ()}, given)


def _decide(run: str, answer: tuple[str, ...], **given: Any) -> int:
    return _answer("decide", run, {"steps": answer}, given)


def _answer(verb: Verb, run: str, said: dict[str, tuple[str, ...]], given: dict[str, Any]) -> int:
    from planrun.app.answering import answer
    from planrun.app.replies import Reply
    from planrun.app.settings import Settings

    if given["json"] and given["resume"]:
        raise InvalidInput(
            "--json and --resume: one at a time; `planrun resume --json` prints the run's ledger.json"
        )
    folder = given["report_dir"]
    reply = Reply(
        verb=verb,
        by=_one_line(given["by"] or _user()),
        reason=_one_line(given.get("reason") or ""),
        digest=given.get("digest") or "",
        **said,
    )
    recorded = answer(run, reply, Settings(report_dir=folder) if folder else Settings())
    if given["json"]:
        _print_json(recorded)
    else:
        _print(recorded)
    if not given["resume"] or recorded.live or recorded.status == "cancelled":
        return 0
    from planrun.cli.running import running

    return running(["resume", recorded.run, *(["--report-dir", folder] if folder else [])])


def _user() -> str:
    """Return the name of the user, as the system knows it."""
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"uid {os.geteuid()}"


def _one_line(text: str) -> str:
    from planrun.reports.clean import line

    return line(text)


def _print(recorded: Recorded) -> None:
    for event in recorded.answers:
        say(f"run {recorded.run}: {_told(event)}")
    for gate in recorded.waiting:
        say(f"  still waits: {_asked(gate)}")
    if recorded.status == "cancelled":
        say(f"run {recorded.run}: cancelled; its exit code is 3")
    elif not recorded.live:
        say(f"planrun resume {recorded.run} goes on")


def _told(event: GateAnswered) -> str:
    from planrun.model.jsontext import dumps

    name = _one_line(event.step) or "the plan"
    if event.answer == "skipped":
        return f"{name} is left out"
    if event.answer in ("approved", "rejected"):
        return f"{name} is {event.answer}"
    spoken = {True: "yes", False: "no"}.get(event.answer) if isinstance(event.answer, bool) else None
    return f"{name} is answered with {spoken or _one_line(dumps(event.answer))}"


def _asked(gate: GateOpened) -> str:
    return f"{_one_line(gate.step) or 'the plan'} ({gate.kind})" + (
        f": {_one_line(gate.question)}" if gate.question else ""
    )


def _print_json(recorded: Recorded) -> None:
    waits = [{"step": gate.step, "kind": gate.kind, "question": gate.question} for gate in recorded.waiting]
    said = [
        {"step": event.step, "answer": event.answer, "by": event.by, "reason": event.reason}
        for event in recorded.answers
    ]
    say_json(
        {
            "run": recorded.run,
            "recorded": said,
            "waiting": waits,
            "status": recorded.status,
            "live": recorded.live,
        }
    )


def _command(name: str, params: list[click.Parameter], text: str) -> click.Command:
    callbacks: dict[str, Callable[..., int]] = {"approve": _approve, "reject": _reject, "decide": _decide}
    about = cleandoc(text)
    return click.Command(
        name, callback=callbacks[name], params=params, help=about, short_help=about.partition("\n")[0]
    )


approve = _command(
    "approve",
    [
        click.Argument(["run"], shell_complete=complete_plans_or_runs),
        click.Argument(["step"], nargs=-1, shell_complete=complete_waiting),
        click.Option(
            ["--skip"],
            multiple=True,
            metavar="STEP",
            help="Leave this step out, and what depends on it; repeatable.",
            shell_complete=complete_waiting,
        ),
        _DIGEST,
        *_COMMON,
        *_FOR_PLANS,
    ],
    """Approve what RUN waits for: steps of it, or the whole plan when none is named; or a PLAN that is to run.

    A run at rest gets the approval recorded, and `planrun resume RUN` goes on; one that is going on is told. A
    question of yes or no is answered with yes when its step is named.

    With a plan file in the place of RUN an approval is written into a file, which `execute --approval` reads: of what
    the plan, its parameters and its scripts are now.

    \b
    Examples:
      planrun approve last
      planrun approve plan.yml --step publish --expires 24h -o approvals/publish.json
      planrun approve last publish --by release-team --resume
      planrun approve last --skip load-test
    """,
)
reject = _command(
    "reject",
    [
        click.Argument(["run"], shell_complete=complete_runs),
        click.Argument(["step"], required=False, shell_complete=complete_waiting),
        _DIGEST,
        *_COMMON,
    ],
    """Reject what RUN waits for: a step, or the whole plan.

    A rejected step fails, with exit code 3, when the run goes on; it is not run again by a resume. A run that awaits
    its approval as a whole is cancelled, with exit code 3. A question of yes or no is answered with no.

    \b
    Examples:
      planrun reject last publish --reason "Not on a Friday"
      planrun reject last
    """,
)
decide = _command(
    "decide",
    [
        click.Argument(["run"], shell_complete=complete_runs),
        click.Argument(
            ["answer"], nargs=-1, required=True, metavar="STEP=VALUE...", shell_complete=complete_questions
        ),
        *_COMMON,
    ],
    """Answer questions and decisions of RUN.

    VALUE is yes or no, a value, an option of a decision by its value or label, or several with commas between them
    where more than one may be chosen. Anything else is refused with the options there are.

    \b
    Examples:
      planrun decide last auth=jwt
      planrun decide last publish=yes features=auth,logging --resume
    """,
)
