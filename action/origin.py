"""Where the plan of a job comes from: which event, whose repository, and which commit preceded it.

All data come from the event file that the runner wrote, none from the checkout: a pull request cannot change its own
review.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

_NOWHERE = "0" * 40  # the commit before the first push of a branch


class UnusableInputError(Exception):
    """An input or an event that planrun cannot use; the text addresses the author of the workflow."""


class Origin(NamedTuple):
    """The data of an event: `base` is the commit before the change; empty when the event has none.

    `proposed`: the change is not merged, so policy and approvals count as they are at `base`. `fork`: the repository
    that it comes from, when that is another one. `heads`: commits that hold the change. `doubtful`: why it
    is unknown whether the checkout is merged; empty when it is known.
    """

    base: str = ""
    proposed: bool = False
    fork: str = ""
    heads: frozenset[str] = frozenset()
    doubtful: str = ""


def origin_of(environment: Mapping[str, str]) -> Origin:
    """Return where the job's plan comes from; raises UnusableInputError for a pull request without a base."""
    event = environment.get("GITHUB_EVENT_NAME", "")
    path = environment.get("GITHUB_EVENT_PATH", "")
    found = _payload(path)
    if event.startswith("pull_request") or isinstance(found.get("pull_request"), dict):
        return _of_pull_request(found)
    if event == "merge_group":
        group = _part(found, "merge_group")
        return Origin(
            base=_commit(group, "base_sha"), proposed=True, heads=frozenset({str(group.get("head_sha"))})
        )
    if event == "issue_comment" and _part(found, "issue").get("pull_request"):
        return Origin(doubtful="a comment on a pull request")
    if event == "workflow_run" and str(_part(found, "workflow_run").get("event")).startswith("pull_request"):
        return Origin(doubtful="a workflow that a pull request started")
    before = str(found.get("before") or "")
    return Origin(base=before if event == "push" and is_commit(before) and before != _NOWHERE else "")


def _of_pull_request(found: Mapping[str, Any]) -> Origin:
    pull = _part(found, "pull_request")
    base, head = _part(pull, "base"), _part(pull, "head")
    here = str(_part(base, "repo").get("full_name") or "")
    there = str(_part(head, "repo").get("full_name") or "")
    heads = {str(commit) for commit in (head.get("sha"), pull.get("merge_commit_sha")) if commit}
    return Origin(
        base=_commit(base, "sha"),
        proposed=True,
        # GitHub names no repository when the fork was deleted.
        fork="" if here and here.lower() == there.lower() else there or "a repository that is gone",
        heads=frozenset(heads),
    )


def _payload(path: str) -> Mapping[str, Any]:
    try:
        with open(path, "rb") as file:
            found = json.load(file)
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _part(found: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = found.get(name)
    return part if isinstance(part, dict) else {}


def _commit(found: Mapping[str, Any], name: str) -> str:
    commit = found.get(name)
    if not isinstance(commit, str) or not is_commit(commit):
        raise UnusableInputError("the event does not say which commit the pull request is based on")
    return commit


def is_commit(text: str) -> bool:
    """Say whether a text is the full name of a commit."""
    return len(text) in (40, 64) and not set(text) - set("0123456789abcdef")
