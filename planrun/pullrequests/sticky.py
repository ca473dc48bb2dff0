"""One comment of ours on a pull request, found by its hidden first line: made once, then updated, never repeated."""

from __future__ import annotations

from planrun.errors import InvalidInput
from planrun.pullrequests.api import ApiError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    from planrun.pullrequests.api import Client

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
