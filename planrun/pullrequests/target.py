"""Which pull request is meant: what the event file of the runner and GitHub say, never what an artifact says."""

from __future__ import annotations

import json
import re
from urllib.parse import quote

from planrun.errors import InvalidInput
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from planrun.pullrequests.api import Client

_SHA = re.compile(r"[0-9a-f]{40}")


class Target(Record):
    """A pull request: its number, the commit that was reviewed ("": unknown), and the repository of a fork."""

    number: int
    head: str = ""
    fork: str = ""


def event_of(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the event that started this job; raises InvalidInput where there is none."""
    try:
        with open(environ.get("GITHUB_EVENT_PATH", ""), "rb") as file:
            found = json.load(file)
    except (OSError, ValueError, RecursionError):
        raise InvalidInput(
            "no event: GITHUB_EVENT_PATH names no file of an event; give --pull-request N"
        ) from None
    if not isinstance(found, dict):
        raise InvalidInput("the event is no mapping; give --pull-request N")
    return found


def of_workflow_run(client: Client, event: Mapping[str, Any]) -> Target | None:
    """Return the open pull request whose head the finished workflow has seen; None where it has moved on or is closed.

    The event of a fork names no pull request: it is searched by owner and branch, and must have the same commit.
    """
    run = event.get("workflow_run")
    if not isinstance(run, dict) or not str(run.get("event", "")).startswith("pull_request"):
        raise InvalidInput("this job was not started by a workflow of a pull request; give --pull-request N")
    head, branch = str(run.get("head_sha", "")), str(run.get("head_branch", ""))
    source = run.get("head_repository")
    other = str(source.get("full_name", "")) if isinstance(source, dict) else ""
    if not _SHA.fullmatch(head) or not branch or "/" not in other:
        raise InvalidInput(
            "the event does not say which commit of which branch was reviewed; give --pull-request N"
        )
    owner = other.partition("/")[0]
    wanted = f"pulls?state=open&head={quote(f'{owner}:{branch}', safe='')}"
    for pull in client.pages(wanted):
        here = pull.get("head") or {}
        if here.get("sha") == head and _full_name(pull, "base").lower() == client.repository.name.lower():
            fork = "" if other.lower() == client.repository.name.lower() else other
            return Target(number=_number(pull), head=head, fork=fork)
    return None


def of_commit(client: Client, commit: str) -> Target | None:
    """Return the pull request that was merged as this commit; None without one."""
    if not _SHA.fullmatch(commit):
        raise InvalidInput("GITHUB_SHA names no commit; give --pull-request N")
    for pull in client.pages(f"commits/{commit}/pulls"):
        if pull.get("merged_at") and _full_name(pull, "base").lower() == client.repository.name.lower():
            return Target(number=_number(pull), head=commit)
    return None


def _number(pull: Mapping[str, Any]) -> int:
    number = pull.get("number")
    if not isinstance(number, int):
        raise InvalidInput("the pull request has no number")
    return number


def _full_name(pull: Mapping[str, Any], side: str) -> str:
    part = pull.get(side)
    repository = part.get("repo") if isinstance(part, dict) else None
    return str(repository.get("full_name", "")) if isinstance(repository, dict) else ""
