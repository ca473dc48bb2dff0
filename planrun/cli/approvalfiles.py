"""The work of `planrun approve PLAN` and `planrun lock PLAN`: write an approval file or a lockfile."""

from __future__ import annotations

import os

from planrun.approval import lockfile
from planrun.approval.approvals import Grant, approval_file, approval_of, as_text, summary, write_approval
from planrun.approval.digest import review
from planrun.approval.preview import PolicyPreview
from planrun.cliutil import write_stderr
from planrun.cliutil.failure import complain, printable
from planrun.cliutil.printing import say
from planrun.errors import EXIT_WAITING, Denied, InvalidInput
from planrun.plan.keys.params import parse_params
from planrun.plan.load import load
from planrun.plan.templates import known
from planrun.settings import Settings, current_folder

_DIGITS = frozenset("0123456789abcdef")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.approval.digest import Reviewed
    from planrun.model.plan import Plan


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
        from planrun.cli.pullapprovals import approval_in_comments

        said = approval_in_comments(reviewed.digest, given)
        if said is None:
            return EXIT_WAITING
        given = {**given, "steps": said.steps, "approver": said.by}
    if given["environment"]:
        from planrun.cli.pullapprovals import approver_in_environment

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
