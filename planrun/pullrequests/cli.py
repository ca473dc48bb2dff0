"""`planrun comment`: the review of a pull request as one comment that is kept up to date."""

from __future__ import annotations

import os

import click

from planrun.cliutil.printing import say
from planrun.errors import InvalidInput, RemoteError
from planrun.pullrequests.api import ApiError, Client, repository_of
from planrun.pullrequests.artifact import comment as comment_of
from planrun.pullrequests.artifact import read_review
from planrun.pullrequests.target import Target, event_of, of_workflow_run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    Done = Literal["created", "updated", "unchanged"]


MOST_CHARS = 65_536  # GitHub answers 422 to a longer comment
BOT = "github-actions[bot]"
"""The author of comments that are made with the token of a job."""


def put(client: Client, number: int, body: str, author: str) -> Done:
    """Have a pull request show this comment, whose first line identifies it; raises ApiError.

    Comments of other authors are left alone, whatever their first line is. Of several of our own the first one stays.
    """
    marker = body.partition("\n")[0]
    if not (marker.startswith("<!-- planrun-") and marker.endswith(" -->")):
        raise InvalidInput(
            "the comment does not begin with a hidden line of planrun, by which it is found again"
        )
    if len(body) > MOST_CHARS:
        raise InvalidInput(f"the comment has {len(body)} characters, and GitHub takes {MOST_CHARS}")
    found = _ours(client, number, marker, author)
    for spare in found[1:]:
        client.send("DELETE", f"issues/comments/{spare['id']}")
    if not found:
        return _create(client, number, body, author)
    if _settled(found[0]["body"]) == _settled(body):
        return "unchanged"
    try:
        client.send("PATCH", f"issues/comments/{found[0]['id']}", {"body": body})
    except ApiError as error:
        if error.code != 404:  # else somebody has just deleted it
            raise
        return _create(client, number, body, author)
    return "updated"


def _create(client: Client, number: int, body: str, author: str) -> Done:
    try:
        client.send("POST", f"issues/{number}/comments", {"body": body})
    except ApiError as error:
        # Without an answer the comment may be there all the same: it is looked for before it is made again.
        if error.code and error.code < 500:
            raise
        if not _ours(client, number, body.partition("\n")[0], author):
            client.send("POST", f"issues/{number}/comments", {"body": body})
    return "created"


def _ours(client: Client, number: int, marker: str, author: str) -> list[dict[str, Any]]:
    found = []
    for comment in client.pages(f"issues/{number}/comments"):
        user, body = comment.get("user"), comment.get("body")
        is_ours = isinstance(user, dict) and user.get("login") == author
        if (
            is_ours
            and isinstance(body, str)
            and body.partition("\n")[0].rstrip("\r") == marker
            and comment.get("id")
        ):
            found.append(comment)
    return found


def _settled(body: str) -> str:
    """Return a body as it is compared: GitHub keeps line ends as CR LF, and drops blanks at the end."""
    return body.replace("\r\n", "\n").rstrip()


_MAX_BYTES = 1 << 20


@click.command(short_help="Write the review of a pull request as one comment.")
@click.argument("review", required=False, metavar="[REVIEW.JSON]", type=click.Path())
@click.option(
    "--markdown",
    type=click.Path(),
    metavar="FILE",
    help="Post this text, which this job made itself, instead of a review.",
)
@click.option(
    "--pull-request", "number", type=click.IntRange(min=1), metavar="N", help="Default: that of the event."
)
@click.option(
    "--repo", default="", metavar="OWNER/NAME", help="Default: that of the job.  [GITHUB_REPOSITORY]"
)
@click.option(
    "--author", default=BOT, show_default=True, metavar="LOGIN", help="Whose comments this token writes."
)
@click.option("--dry-run", is_flag=True, help="Print the comment, and post nothing.")
def comment(  # noqa: PLR0913 - click gives each option as an argument
    review: str | None, markdown: str | None, number: int | None, repo: str, author: str, *, dry_run: bool
) -> int:
    """Show a review in a comment of its pull request: made once, then updated, never repeated.

    REVIEW.JSON is what `planrun review` wrote in the job of the pull request. That job runs without secrets, and a
    stranger may have changed it, so its artifact is data: checked, escaped, and never run. Which pull request it is
    comes from the event `workflow_run` and from GitHub, never from the artifact; a review of an older commit is not
    posted.

    The token stands in GITHUB_TOKEN and needs `pull-requests: write`.

    \b
    Exit codes:
      0    posted, unchanged, or the pull request has moved on
      1    GitHub refused, or did not answer
      2    the review is none, or the event has no pull request

    \b
    Examples:
      planrun comment review/review.json
      planrun comment review/review.json --pull-request 12 --dry-run
    """
    if (review is None) == (markdown is None):
        raise InvalidInput("comment takes either REVIEW.JSON or --markdown FILE")
    found = read_review(review) if review else None
    if dry_run:
        say(comment_of(found, Target(number=number or 0)) if found else _text(str(markdown)))
        return 0
    client = Client(repository_of(os.environ, repo))
    try:
        target = Target(number=number) if number else of_workflow_run(client, event_of(os.environ))
        if target is None:
            say("no open pull request has this commit as its head: it was closed, or has moved on")
            return 0
        body = comment_of(found, target) if found else _text(str(markdown))
        done = put(client, target.number, body, author)
    except ApiError as error:
        raise RemoteError(f"{error}{_hint(error)}") from None
    say(f"comment on pull request {target.number}: {done}")
    return 0


def _hint(error: ApiError) -> str:
    if error.code in (401, 403, 404):
        return "; the token of the job needs `pull-requests: write`"
    return ""


def _text(path: str) -> str:
    try:
        with open(path, "rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror}") from None
    return data.decode("utf-8", "replace")
