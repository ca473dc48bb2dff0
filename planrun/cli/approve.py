"""`planrun approve`, `planrun reject` and `planrun decide`: respond to a run's approval requests and questions.

`planrun approve PLAN` and `planrun lock PLAN`: files that record what was reviewed.
"""

from __future__ import annotations

import os
from inspect import cleandoc

import click
from click.core import ParameterSource

from planrun.app.control import answer
from planrun.approval import lockfile
from planrun.approval.approvals import Grant, approval_file, approval_of, as_text, summary, write_approval
from planrun.approval.digest import review
from planrun.approval.preview import PolicyPreview
from planrun.approval.responses import Reply, user_name
from planrun.cli.run import running
from planrun.cliutil import write_stderr
from planrun.cliutil.completion import (
    complete_params,
    complete_plans,
    complete_plans_or_runs,
    complete_questions,
    complete_runs,
    complete_waiting,
)
from planrun.cliutil.defaultplan import given
from planrun.cliutil.failure import complain, printable
from planrun.cliutil.printing import say, say_json
from planrun.errors import EXIT_WAITING, Denied, InvalidInput, RemoteError
from planrun.model.jsontext import dumps
from planrun.plan.keys.params import parse_params
from planrun.plan.load import load
from planrun.plan.templates import known
from planrun.pullrequests.api import ApiError, Client, repository_of
from planrun.pullrequests.approvals import Terms, approver_of_environment, find_approval
from planrun.pullrequests.target import of_commit
from planrun.records.rundir import HOME
from planrun.reports.escape import line
from planrun.settings import Settings, current_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from planrun.approval.digest import Reviewed
    from planrun.approval.responses import Verb
    from planrun.model.events import GateAnswered
    from planrun.model.plan import Plan
    from planrun.pullrequests.approvals import Said


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


_DIGITS = frozenset("0123456789abcdef")


def review_plan(file: str, params: tuple[str, ...]) -> tuple[Plan, dict[str, Any], Reviewed]:
    """Load a plan with its parameters and read its scripts, in this folder; raises InvalidInput."""
    if not os.path.lexists(file) and file in known():
        raise InvalidInput(
            f'"{file}" is a template, not a plan; first run '
            f"`planrun templates render {file} --var NAME=VALUE -o plan.yml`"
        )
    plan = load(file, cache=False)
    values = parse_params(plan, params)
    return plan, values, review(plan, values, current_folder())


def approve_plan(file: str, given: dict[str, Any]) -> int:
    """Write an approval of a plan; `given` are the options of `approve`."""
    _refuse_mixed(given)
    plan, _, reviewed = review_plan(file, given["params"])
    wanted = given["digest"]
    digest = reviewed.digest
    if wanted and (len(wanted) != len(digest) or not _DIGITS.issuperset(wanted)):
        raise InvalidInput(
            f"--digest takes all {len(digest)} characters of a digest, 0-9 and a-f, not {len(wanted)}"
        )
    if wanted and digest != wanted:
        raise Denied(f"{file} has the digest {digest}, and what was reviewed is {wanted}: review it again")
    said = None
    if given["pull"]:
        said = approval_in_comments(reviewed.digest, given)
        if said is None:
            return EXIT_WAITING
        given = {**given, "steps": said.steps, "approver": said.by}
    if given["environment"]:
        approver = approver_in_environment(given)
        if not approver:
            return EXIT_WAITING
        given = {**given, "approver": approver}
    grant = Grant(
        **{
            name: given[name]
            for name in ("steps", "expires", "uses", "approver")
            if given.get(name) not in (None, ())
        }
    )
    approval = approval_of(plan, reviewed, grant)
    if said is not None:
        approval["id"] = said.approval_id
    # The approver reads the risk with these parameters, not with the worst possible ones.
    ahead = PolicyPreview(plan, Settings(params=given["params"]))
    judged = plan.but(steps=tuple([preview.step for preview in ahead.steps()]))
    lines = [printable(line) for line in summary(judged, reviewed, approval)]
    path = given["out"] or approval_file(file)
    if path == "-":
        write_stderr("".join([f"{line}\n" for line in lines]))
        say(as_text(approval).rstrip("\n"))
        return 0
    write_approval(path, approval)
    say("\n".join(lines))
    say(f"wrote {printable(path)}; planrun execute {printable(file)} --approval {printable(path)} uses it")
    return 0


def _refuse_mixed(given: dict[str, Any]) -> None:
    """Raise InvalidInput for options that exclude each other."""
    if given["pull"] and (given["steps"] or given["approver"]):
        raise InvalidInput(
            "--pull-request: the comment names the steps and the approver; leave out --step and --approver"
        )
    if given["environment"] and (given["pull"] or given["approver"]):
        raise InvalidInput(
            "--environment: GitHub names the approver; leave out --approver and --pull-request"
        )
    if given["environment"] and not given["digest"]:
        raise InvalidInput(
            "--environment needs --digest: that of the review which the approver of the environment saw"
        )
    if not given["pull"] and (given["level"] or given["own"]):
        raise InvalidInput("--permission and --allow-author belong to --pull-request")


def write_lock_file(
    plan: str, params: tuple[str, ...], policy: str | None, out: str | None, *, check: bool
) -> int:
    """Write the lockfile of a plan, or with `check` compare it with the plan; return the exit code."""
    loaded, values, reviewed = review_plan(plan, params)
    now = lockfile.lock_of(loaded, values, reviewed)
    policies = [lockfile.policy_of(policy)] if policy else []
    path = out or lockfile.lock_file(plan)
    if not check:
        lockfile.write_lock(path, {**now, **({"policy": policies[0]} if policies else {})})
        say(f"wrote {printable(path)}, digest {now['digest']}")
        for what, why in now.get("uncovered", {}).items():
            say(printable(f"  not part of it: {what}: {why}"))
        if now.get("uncovered") and not loaded.allow_uncovered:
            say("  execute --locked refuses the plan, unless it has allow_uncovered: true")
        return 0
    differences = list(lockfile.drift(lockfile.read_lock(path, loaded), now, policies))
    if differences:
        lines = "".join([f"\n  {line}" for line in differences])
        complain(f"{plan} differs from {path}:{lines}")
        return 3
    say(f"{printable(path)} matches {printable(plan)}, digest {now['digest']}")
    return 0


def approval_in_comments(digest: str, given: dict[str, Any]) -> Said | None:
    """Return the comment that approves this digest; None without one, with the reasons on stderr.

    Raises InvalidInput, RemoteError.
    """
    client = Client(repository_of(os.environ, given["repo"] or ""))
    terms = Terms(digest=digest, level=given["level"] or "write", own=bool(given["own"]))
    try:
        text = given["pull"]
        if text == "auto":
            target = of_commit(client, os.environ.get("GITHUB_SHA", ""))
            number = target.number if target else 0
        else:
            if not (text.isascii() and text.isdecimal() and 0 < int(text) < 10**9):
                raise InvalidInput(f'--pull-request takes a number or auto, not "{text}"')
            number = int(text)
        found = find_approval(client, number, terms) if number else None
    except ApiError as error:
        raise RemoteError(f"{error}; the token of the job needs `pull-requests: read`") from None
    if found is None:
        write_stderr("planrun: no pull request was merged as this commit\n")
        return None
    for why in found.ignored:
        write_stderr(f"planrun: {printable(why)}\n")
    if found.said is None:
        write_stderr(
            f"planrun: pull request {number} has no approval of this plan; "
            f"a comment gives it: /planrun approve {digest}\n"
        )
    return found.said


def approver_in_environment(given: dict[str, Any]) -> str:
    """Return who approved that this job deploys to an environment; empty without one, with the reason on stderr.

    Raises InvalidInput, RemoteError.
    """
    run = os.environ.get("GITHUB_RUN_ID", "")
    if not run.isdecimal():
        raise InvalidInput("--environment works in a job of GitHub: GITHUB_RUN_ID names no run")
    client = Client(repository_of(os.environ, given["repo"] or ""))
    try:
        approver = approver_of_environment(client, run, given["environment"])
    except ApiError as error:
        raise RemoteError(f"{error}; the token of the job needs `actions: read`") from None
    if not approver:
        write_stderr(
            f"planrun: nobody approved this run for the environment {printable(given['environment'])}: "
            "it needs required reviewers, and the job must name it\n"
        )
    return approver


_BY = click.Option(
    ["--by"],
    metavar="NAME",
    envvar="PLANRUN_BY",
    help="Who responds. Default: the user's name.  [PLANRUN_BY]",
)
_REASON = click.Option(["--reason"], metavar="TEXT", default="", help="Why, for the record.")
_DIGEST = click.Option(
    ["--digest"],
    metavar="HEX",
    default="",
    help="The reviewed digest; refused when the run or the plan has another one.",
)
_RESUME = click.Option(["--resume"], is_flag=True, help="Resume the run at once; the exit code is the run's.")
_REPORTS = click.Option(
    ["--report-dir"],
    type=click.Path(),
    metavar="DIR",
    envvar="PLANRUN_REPORT_DIR",
    help="Where the reports of a waiting run go. Default: planrun-out  [PLANRUN_REPORT_DIR]",
)
_JSON = click.Option(["--json"], is_flag=True, help="Print the recorded and the open requests as JSON.")
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
    click.Option(
        ["--pull-request", "pull"],
        metavar="N|auto",
        help="Of a plan: take the approval from a comment `/planrun approve DIGEST` of this pull request of GitHub; "
        "auto: of the one that was merged as this commit.",
    ),
    click.Option(
        ["--permission", "level"],
        type=click.Choice(("write", "maintain", "admin")),
        default=None,
        help="With --pull-request: what its author must be allowed in the repository. Default: write",
    ),
    click.Option(
        ["--allow-author", "own"],
        is_flag=True,
        default=None,
        help="With --pull-request: who opened it or has part in its commits may approve it.",
    ),
    click.Option(
        ["--environment"],
        metavar="NAME",
        help="Of a plan: the approver is who approved this job of GitHub for a protected environment; with --digest.",
    ),
    click.Option(["--repo"], metavar="OWNER/NAME", help="With the two before. Default: that of the job."),
)
_PLAN_OPTIONS = (
    "named",
    "params",
    "expires",
    "uses",
    "approver",
    "out",
    "pull",
    "level",
    "own",
    "environment",
    "repo",
)


def _approve(run: str, step: tuple[str, ...], skip: tuple[str, ...] = (), **given: Any) -> int:

    for_plan = {name: given.pop(name) for name in _PLAN_OPTIONS}
    steps = (*step, *for_plan.pop("named"))
    if is_plan(run):
        # A variable that is set for a whole job is not meant for this plan.
        asked = click.get_current_context().get_parameter_source
        digest = given.pop("digest")
        if skip or any(asked(name) is ParameterSource.COMMANDLINE for name in given):
            raise InvalidInput(
                f"{run} is a plan: --skip, --by, --reason, --resume, --report-dir and --json are for runs; "
                "--approver names who approves a plan"
            )

        return approve_plan(run, {"steps": steps, "digest": digest, **for_plan})
    if any(value not in (None, ()) for value in for_plan.values()):
        raise InvalidInput(
            f'"{run}" is not a plan file: --param, --expires, --uses, --approver, --pull-request, -o are for plans'
        )
    step = steps

    return respond("approve", run, {"steps": step, "skip": skip}, given)


def _reject(run: str, step: str | None, **given: Any) -> int:

    return respond("reject", run, {"steps": (step,) if step else ()}, given)


def _decide(run: str, answer: tuple[str, ...], **given: Any) -> int:

    return respond("decide", run, {"steps": answer}, given)


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
    """Approve what RUN waits for: the named steps, or the whole plan; or approve a PLAN before it runs.

    A waiting run gets the approval recorded; to continue: `planrun resume RUN`. A running one is notified. A
    question of yes or no is answered with yes when its step is named.

    With a plan file instead of RUN, an approval file is written, which `execute --approval` reads. It covers the plan,
    its parameters and its scripts as they are now.

    \b
    Examples:
      planrun approve last
      planrun approve plan.yml --step publish --expires 24h -o approvals/publish.json
      planrun approve plan.yml --pull-request auto -o approval.json
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

    A rejected step fails, with exit code 3, when the run continues; a resume does not run it again. A run that awaits
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
    where more than one may be chosen. Anything else is refused with a list of the options.

    \b
    Examples:
      planrun decide last auth=jwt
      planrun decide last publish=yes features=auth,logging --resume
    """,
)


_ENDINGS = (".yml", ".yaml")
PARAM_HELP = "Give a parameter of the plan its value, as the run gets it; repeatable."


def is_plan(operand: str) -> bool:
    """Whether an operand is a plan file, and not the id of a run; no file that a step made takes a run's name."""
    is_run = operand == "last" or os.path.isdir(os.path.join(HOME, "runs", operand))
    return operand.endswith(_ENDINGS) or (os.path.isfile(operand) and not is_run)


@click.command(short_help="Write a lockfile, for `run --locked`.")
@click.argument("plan", required=False, type=click.Path(readable=False), shell_complete=complete_plans)
@click.option(
    "--param",
    "-p",
    "params",
    multiple=True,
    metavar="NAME=VALUE",
    help=PARAM_HELP,
    shell_complete=complete_params,
)
@click.option("--policy", type=click.Path(), metavar="FILE", help="A policy that runs must use, too.")
@click.option(
    "-o",
    "--output",
    "out",
    type=click.Path(),
    metavar="FILE",
    help="Default: PLAN with .lock.json as its ending.",
)
@click.option("--check", is_flag=True, help="Write nothing; exit 3 and show the differences, if any.")
def lock(
    plan: str | None, params: tuple[str, ...], policy: str | None, out: str | None, *, check: bool
) -> int:
    """Write the content of PLAN, its parameters and its scripts into a lockfile beside it.

    Without PLAN it is the plan that `planrun run` takes. `planrun run PLAN --locked` then runs exactly this plan, or
    nothing. Commit the lock with the plan: a change of either shows in the review. The file is
    readable JSON with one line for each step and script.

    Exit code 0: it is written, or with --check: nothing differs. 2: the plan is wrong, or there is no lock to
    check. 3: something differs.

    \b
    Examples:
      planrun lock plan.yml
      planrun lock plan.yml --param target=prod --policy ci/policy.yml
      planrun lock plan.yml --check
    """
    chosen = given(plan)
    policy, out = (chosen.path(path) if path else path for path in (policy, out))
    if chosen.file == "-":
        raise InvalidInput("a lock file stands beside its plan: name the file of the plan")
    return write_lock_file(chosen.file, params, policy, out, check=check)
