"""Approvals in comments of a pull request: `/planrun approve DIGEST [STEP]…`, `/planrun reject DIGEST`.

A comment counts when it names the whole digest of exactly this plan, was never edited, and is of a person who may write
to the repository, did not open the pull request and has no part in its commits. A later rejection of such a person ends
it. The line of an approval is a paragraph of its own above any code and HTML of the comment: everyone sees it there.
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
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any, Literal

    from planrun.pullrequests.api import Client

WHOLE = 64  # characters of a digest: two plans with the same first ones can be made
LEVELS = ("write", "maintain", "admin")
_LINE = re.compile(r"/planrun[ \t]+(approve|reject)[ \t]+([0-9A-Fa-f]{1,64})((?:[ \t]+[^\s]+)*)[ \t]*")


_MOST_COMMITS = 250  # of a pull request, as GitHub lists them


class Said(Record):
    """One line of a comment; `hidden`: what may keep readers from seeing it, "" for nothing."""

    verb: Literal["approve", "reject"]
    digest: str
    steps: tuple[str, ...]
    by: str
    id: int
    at: str
    edited: bool
    bot: bool
    hidden: str = ""

    @property
    def approval_id(self) -> str:
        """The id of the approval that it gives: uses of one comment are counted together."""
        return f"a-{sha256(f'{self.by} {self.id} {self.digest}'.encode()).hexdigest()[:16]}"


class Given(Record):
    """The approval that counts (None: none does), and why others do not, for people."""

    said: Said | None
    ignored: tuple[str, ...] = ()


class Terms(Record):
    """What a comment must meet: the digest of the plan, the least permission, whether its authors may approve."""

    digest: str
    level: str = "write"
    own: bool = False  # who opened the pull request or has part in its commits may approve it


def find_approval(client: Client, number: int, terms: Terms) -> Given:
    """Return the newest approval of a pull request that counts; raises ApiError."""
    authors = {} if terms.own else _authors(client, number)
    ignored: list[str] = []
    counted: Said | None = None
    permissions: dict[str, str] = {}
    for said in sorted(_all_said(client, number), key=lambda each: (each.at, each.id)):
        if len(said.digest) < WHOLE and terms.digest.startswith(said.digest):
            verb = f"/planrun {said.verb} {terms.digest}"
            why = f"it names {len(said.digest)} characters of the digest, and all {WHOLE} are needed: {verb}"
        elif said.digest != terms.digest:
            why = f"it names {said.digest}, and this plan is {terms.digest}"
        elif said.bot:
            why = "it was not written by a person"
        elif said.edited:
            why = "it was edited; write a new comment"
        else:
            why = (said.hidden or authors.get(said.by, "")) if said.verb == "approve" else ""
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


def _authors(client: Client, number: int) -> dict[str, str]:
    """Return who opened a pull request, wrote its commits or pushed to its branch; raises ApiError."""
    pull = client.get(f"pulls/{number}")
    found: dict[str, str] = {}
    commits = list(client.pages(f"pulls/{number}/commits"))
    if len(commits) >= _MOST_COMMITS:
        raise ApiError(
            0, f"the pull request has {_MOST_COMMITS} commits or more, of which GitHub does not list all"
        )
    for role in ("author", "committer"):
        _note(found, commits, role, "its author has part in the commits of the pull request")
    pushed = "its author pushed to the branch of the pull request"
    _note(found, client.pages(f"issues/{number}/events"), "actor", pushed, "head_ref_force_pushed")
    head = pull.get("head") or {}
    if (head.get("repo") or {}).get("full_name") == client.repository.name:
        try:
            _note(
                found, client.pages(f"activity?ref={quote(str(head.get('ref')), safe='')}"), "actor", pushed
            )
        except ApiError as error:
            if error.code not in (403, 404):  # servers of companies may not have it
                raise
    found[_login(pull)] = "its author opened the pull request"
    return found


def _note(
    found: dict[str, str], entries: Iterable[Mapping[str, Any]], role: str, what: str, event: str = ""
) -> None:
    for entry in entries:
        user = entry.get(role)
        if (
            isinstance(user, dict)
            and isinstance(user.get("login"), str)
            and event in ("", entry.get("event"))
        ):
            found[user["login"]] = what


def _all_said(client: Client, number: int) -> Iterator[Said]:
    for path in (f"issues/{number}/comments", f"pulls/{number}/comments"):
        for comment in client.pages(path):
            yield from _said(comment)


def _said(comment: Mapping[str, Any]) -> Iterator[Said]:
    """Yield the lines of a comment that are meant for planrun; quoted and indented lines are not."""
    body, user, name = comment.get("body"), comment.get("user"), comment.get("id")
    if not isinstance(body, str) or not isinstance(user, dict) or not isinstance(name, int):
        return
    above, is_apart = "", True
    for row in body.replace("\r\n", "\n").split("\n"):
        match = _LINE.fullmatch(row)
        if match:
            marks = any(mark in above for mark in ("<", "```", "~~~"))
            hidden = "" if is_apart else "it stands in another paragraph: leave a line empty before it"
            yield Said(
                verb="approve" if match[1] == "approve" else "reject",
                digest=match[2].lower(),
                steps=tuple(match[3].split()),
                by=_login(comment),
                id=name,
                at=str(comment.get("created_at", "")),
                edited=comment.get("updated_at") != comment.get("created_at"),
                bot=user.get("type") != "User",
                hidden="code or HTML stands above it: write it as the first line" if marks else hidden,
            )
        above += f"{row}\n"
        is_apart = bool(match) or not row.strip()


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
