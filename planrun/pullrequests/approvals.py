"""Approvals in comments of a pull request: `/planrun approve DIGEST [STEP]…`, `/planrun reject DIGEST`.

A comment counts when it names the digest of exactly this plan, was never edited, and is of a person who may write to
the repository and did not open the pull request. A later rejection of such a person ends it.
"""

from __future__ import annotations

import re
from urllib.parse import quote

from planrun.errors import InvalidInput
from planrun.model.record import Record
from planrun.pullrequests.api import ApiError
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, Literal

    from planrun.pullrequests.api import Client

SHORTEST = 12  # characters of a digest in a comment: what review shows
LEVELS = ("write", "maintain", "admin")
_LINE = re.compile(r"/planrun[ \t]+(approve|reject)[ \t]+([0-9A-Fa-f]{1,64})((?:[ \t]+[^\s]+)*)[ \t]*")


class Said(Record):
    """One line of a comment."""

    verb: Literal["approve", "reject"]
    digest: str
    steps: tuple[str, ...]
    by: str
    id: int
    at: str
    edited: bool
    bot: bool

    @property
    def approval_id(self) -> str:
        """The id of the approval that it gives: uses of one comment are counted together."""
        return f"a-{sha256(f'{self.by} {self.id} {self.digest}'.encode()).hexdigest()[:16]}"


class Given(Record):
    """The approval that counts (None: none does), and why others do not, for people."""

    said: Said | None
    ignored: tuple[str, ...] = ()


class Terms(Record):
    """What a comment must meet: the digest of the plan, the least permission, whether the author may approve."""

    digest: str
    level: str = "write"
    own: bool = False  # who opened the pull request may approve it


def find_approval(client: Client, number: int, terms: Terms) -> Given:
    """Return the newest approval of a pull request that counts; raises ApiError."""
    opener = _login(client.get(f"pulls/{number}"))
    ignored: list[str] = []
    counted: Said | None = None
    permissions: dict[str, str] = {}
    for said in sorted(_all_said(client, number), key=lambda each: (each.at, each.id)):
        why = _why_not(said, opener, terms)
        if not why:
            permission = permissions.setdefault(said.by, _permission(client, said.by))
            if LEVELS.index(terms.level) > (LEVELS.index(permission) if permission in LEVELS else -1):
                why = f"{said.by} has the permission {permission or 'none'}, and {terms.level} is needed"
        if why:
            ignored.append(f"comment {said.id} of {said.by}: {why}")
        else:
            counted = said if said.verb == "approve" else None
            if said.verb == "reject":
                ignored.append(f"comment {said.id}: rejected by {said.by}")
    return Given(said=counted, ignored=tuple(ignored))


def approver_of_environment(client: Client, run: str, environment: str) -> str:
    """Return who approved the deployment of a workflow run to a protected environment; empty where nobody had to.

    Raises ApiError.
    """
    approver = ""
    for review in client.pages(f"actions/runs/{run}/approvals"):
        named = [each.get("name") for each in review.get("environments", ()) if isinstance(each, dict)]
        if environment in named:
            approver = _login(review) if review.get("state") == "approved" else ""
    return approver


def _why_not(said: Said, opener: str, terms: Terms) -> str:
    """Return why a line does not count; a rejection counts whoever opened the pull request."""
    if len(said.digest) < SHORTEST:
        return f"it names fewer than {SHORTEST} characters of the digest"
    if not terms.digest.startswith(said.digest):
        return f"it names {said.digest[:12]}, and this plan is {terms.digest[:12]}"
    if said.bot:
        return "it was not written by a person"
    if said.edited:
        return "it was edited; write a new comment"
    if said.verb == "approve" and said.by == opener and not terms.own:
        return "its author opened the pull request"
    return ""


def _all_said(client: Client, number: int) -> Iterator[Said]:
    for path in (f"issues/{number}/comments", f"pulls/{number}/comments"):
        for comment in client.pages(path):
            yield from _said(comment)


def _said(comment: Mapping[str, Any]) -> Iterator[Said]:
    """Yield the lines of a comment that are meant for planrun; quoted lines and blocks of code are not."""
    body, user, name = comment.get("body"), comment.get("user"), comment.get("id")
    if not isinstance(body, str) or not isinstance(user, dict) or not isinstance(name, int):
        return
    fenced = False
    for row in body.replace("\r\n", "\n").split("\n"):
        if row.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        match = None if fenced else _LINE.fullmatch(row)
        if match:
            yield Said(
                verb="approve" if match[1] == "approve" else "reject",
                digest=match[2].lower(),
                steps=tuple(match[3].split()),
                by=_login(comment),
                id=name,
                at=str(comment.get("created_at", "")),
                edited=comment.get("updated_at") != comment.get("created_at"),
                bot=user.get("type") != "User",
            )


def _login(found: Any) -> str:
    user = found.get("user") if isinstance(found, dict) else None
    login = user.get("login") if isinstance(user, dict) else None
    if not isinstance(login, str) or not re.fullmatch(r"[A-Za-z0-9-]{1,39}(\[bot\])?", login):
        raise InvalidInput("GitHub names no user who wrote it")
    return login


def _permission(client: Client, login: str) -> str:
    """Return the role of a user in the repository; empty for one who has none."""
    try:
        found = client.get(f"collaborators/{quote(login, safe='')}/permission")
    except ApiError as error:
        if error.code == 404:
            return ""
        raise
    role, coarse = found.get("role_name"), found.get("permission")
    # A role of an organisation's own has a name of its own; the coarse permission says what it includes.
    return role if role in LEVELS else str(coarse or "")
