"""The work of `planrun approve PLAN --pull-request` and `--environment`: approvals that people gave on GitHub."""

from __future__ import annotations

import os

from planrun.cliutil import write_stderr
from planrun.cliutil.failure import printable
from planrun.errors import InvalidInput, RemoteError
from planrun.pullrequests.api import ApiError, Client, repository_of
from planrun.pullrequests.approvals import Terms, approver_of_environment, find_approval
from planrun.pullrequests.target import of_commit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.pullrequests.approvals import Said


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
