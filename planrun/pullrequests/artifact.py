"""The review of a pull request from an artifact: a `review.json` that the job of a stranger may have written.

It is data: read from a regular file of bounded size, every value checked for its type and its length, every text
escaped, and no command of it shown. What a comment says is written here.
"""

from __future__ import annotations

import errno
import json
import re

from planrun.errors import InvalidInput
from planrun.opening import read_record
from planrun.reports.escape import code, fitting, inline, line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from planrun.pullrequests.target import Target

_MAX_BYTES = 4 << 20
_MOST = 1000  # entries of a list
_TEXT = 2000  # characters of a text
_BYTES = 12_000  # of one part of the comment
_SHOWN = 5  # changes of a step
_RISKS = ("read-only", "low", "medium", "high")
_CHANGES = ("added", "removed", "changed", "renamed", "moved")


def read_review(path: str) -> dict[str, Any]:
    """Return the data of a review; raises InvalidInput for anything that planrun would not have written."""
    try:
        data = read_record(path, _MAX_BYTES)
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.EFBIG):
            raise InvalidInput(
                f"{path} is no review: it is no regular file of at most {_MAX_BYTES >> 20} MiB"
            ) from None
        raise InvalidInput(f"cannot read {path}: {error.strerror}") from None
    try:
        return _checked(_mapping(json.loads(data), "it"))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InvalidInput(f"{path} is no review of planrun: {line(str(error), 200)}") from None


def _checked(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the comment needs; raises KeyError, TypeError or ValueError."""
    plan = _text(found["plan"], "plan", 300)
    base = found["base"]
    if base is not None and not re.fullmatch(r"[0-9a-f]{40,64}", _text(base, "base", 64)):
        raise ValueError("base is no commit")
    if not isinstance(found["valid"], bool):
        raise TypeError("valid is no boolean")
    problems = [_problem(each) for each in _list(found["problems"], "problems")]
    difference = found["diff"]
    return {
        "plan": plan,
        "base": base or "",
        "valid": found["valid"],
        "problems": problems,
        "diff": None if difference is None else _difference(_mapping(difference, "diff")),
    }


def _problem(value: Any) -> dict[str, Any]:
    found = _mapping(value, "problem")
    place = [found["line"], found["col"]]
    if not all(isinstance(number, int) and 0 <= number < 10**9 for number in place):
        raise TypeError("the place of a problem is no number")
    shown = {name: _text(found[name], name, _TEXT) for name in ("code", "file", "message")}
    return {**shown, "line": place[0], "col": place[1]}


def _difference(found: Mapping[str, Any]) -> dict[str, Any]:
    sides = {side: _mapping(found[side], side) for side in ("old", "new")}
    digests = {side: _digest(sides[side]["digest"], side) for side in sides}
    risk = _mapping(found["risk"], "risk")
    approvals = found["approvals"]
    policy = _mapping(found["policy"], "policy")
    return {
        "summary": _text(found["summary"], "summary", _TEXT),
        "digests": digests,
        "risk": {name: _risk(risk[name]) for name in ("old", "new", "highest_changed")},
        "laxer": [_text(each, "allows_more", _TEXT) for each in _list(policy["allows_more"], "allows_more")],
        "steps": [_step(_mapping(each, "step")) for each in _list(found["steps"], "steps")],
        "scripts": [
            _text(_mapping(each, "script")["path"], "path", _TEXT)
            for each in _list(found["scripts"], "scripts")
        ],
        "approvals": None if approvals is None else _approvals(_mapping(approvals, "approvals")),
    }


def _step(found: Mapping[str, Any]) -> dict[str, Any]:
    change = _text(found["change"], "change", 40)
    risk = _mapping(found["risk"], "risk")
    new = risk["new"]
    changes = [_change(_mapping(each, "change")) for each in _list(found["changes"], "changes")]
    return {
        "id": _text(found["id"], "id", _TEXT),
        "change": change if change in _CHANGES else "changed",
        "changes": changes,
        "risk": "" if new is None else _risk(_mapping(new, "risk")["class"]),
        "reason": "" if new is None else _text(_mapping(new, "risk")["reason"], "reason", _TEXT),
    }


def _change(found: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return a key, and its values before and after where they are texts."""
    values = [found[side] if isinstance(found[side], str) else "" for side in ("old", "new")]
    key, old, new = [_text(each, "change", _TEXT) for each in (found["key"], *values)]
    return key, old, new


def _approvals(found: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(found["whole_plan"], bool):
        raise TypeError("whole_plan is no boolean")
    gates = [_mapping(each, "gate") for each in _list(found["needed"], "needed")]
    return {
        "policy": _text(found["policy"], "policy", _TEXT),
        "whole": found["whole_plan"],
        "needed": [
            {name: _text(gate[name], name, _TEXT) for name in ("step", "answer", "reason")}
            | {"approved": gate["approved"] is not None}
            for gate in gates
        ],
        "digest": _digest(found["digest"], "approvals"),
        "uncovered": [
            _text(each, "uncovered", _TEXT) for each in _list(found.get("uncovered", []), "uncovered")
        ],
    }


def _mapping(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{name} is no mapping")
    return value


def _list(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list) or len(value) > _MOST:
        raise TypeError(f"{name} is no list of at most {_MOST} entries")
    return value


def _text(value: Any, name: str, limit: int) -> str:
    if not isinstance(value, str) or len(value) > limit * 10:
        raise TypeError(f"{name} is no text of bounded length")
    return value[:limit]


def _risk(value: Any) -> str:
    if value is not None and value not in _RISKS:
        raise ValueError("a risk is none of the classes")
    return value or ""


def _digest(value: Any, name: str) -> str:
    if value is not None and not re.fullmatch(r"[0-9a-f]{64}", _text(value, name, 64)):
        raise ValueError("a digest is no SHA-256")
    return value or ""


# The comment.


def comment(review: Mapping[str, Any], target: Target) -> str:
    """Return the comment: what changed, its risk, its digest and the approvals that it needs."""
    plan = review["plan"]
    kept = "".join([char if char.isascii() and (char.isalnum() or char in "._/") else "_" for char in plan])
    parts = [
        f"<!-- planrun-diff {kept[:200]} -->\n",
        f"### Plan {code(line(review['plan']))}{'' if review['valid'] else ' is not valid'}\n\n",
        _origin(review, target),
    ]
    found = review["diff"]
    if found is None:
        rows = [_problem_row(each) for each in review["problems"]]
        return "".join([*parts, fitting(rows, 4 * _BYTES, "- and {} more\n")])
    digests = found["digests"]
    parts.append(f"{_short(digests['old'])} → {_short(digests['new'])} · {inline(found['summary'])}\n")
    if found["risk"]["highest_changed"]:
        before = f"{found['risk']['old']} → " if found["risk"]["old"] else ""
        of_plan = f"{before}{found['risk']['new'] or 'none'}"
        parts.append(
            f"\nHighest risk of the changes: **{found['risk']['highest_changed']}** · of the plan: {of_plan}\n"
        )
    if found["laxer"]:
        rows = [f"> - {inline(text)}\n" for text in found["laxer"]]
        parts.append(
            f"\n> **The policy allows more:**\n>\n{fitting(rows, _BYTES, '> - and {} more' + chr(10))}"
        )
    parts.append(_needed(found["approvals"]) if found["approvals"] else "")
    if found["steps"]:
        rows = [_step_row(each) for each in found["steps"]]
        table = fitting(rows, 2 * _BYTES, "\n{} more steps are not listed.\n")
        parts.append(f"\n| Step | What changed | Risk |\n| --- | --- | --- |\n{table}")
    if found["scripts"]:
        rows = [f"- {code(path)}\n" for path in found["scripts"]]
        parts.append(f"\n**Changed scripts**\n\n{fitting(rows, _BYTES, '- and {} more' + chr(10))}")
    return "".join(parts)


def _origin(review: Mapping[str, Any], target: Target) -> str:
    head = f"commit {code(target.head[:12])}" if target.head else "this pull request"
    compared = f", compared with {code(review['base'][:12])}" if review["base"] else ""
    where = (
        f"a job of the fork {code(target.fork)}" if target.fork else "a job that the pull request can change"
    )
    return (
        f"> Review of {head}{compared}. It was made by {where}: before you approve, check it by\n"
        "> `planrun review` in a checkout of your own.\n\n"
    )


def _problem_row(found: Mapping[str, Any]) -> str:
    place = f"{found['file']}:{found['line']}:{found['col']}"
    return f"- {code(place)} {inline(found['code'])} {inline(found['message'], 500)}\n"


def _short(digest: str) -> str:
    return code(digest[:12]) if digest else "no plan"


def _needed(found: Mapping[str, Any]) -> str:
    rows = ["- the plan as a whole, before anything starts\n"] * found["whole"]
    for gate in found["needed"]:
        state = {"deny": "**denied**", "ask": "approval needed"}.get(
            gate["answer"], inline(gate["answer"], 40)
        )
        state = "approved" if gate["approved"] else state
        rows.append(f"- {code(gate['step'])}: {state}: {inline(gate['reason'], 400)}\n")
    text = f"\nPolicy in force: {inline(found['policy'])}\n"
    if rows:
        text += f"\n**Approvals needed**\n\n{fitting(rows, _BYTES, '- and {} more' + chr(10))}"
    if found["uncovered"]:
        rows = [f"- {inline(each, 400)}\n" for each in found["uncovered"]]
        text += f"\n**Not part of the digest**\n\n{fitting(rows, _BYTES, '- and {} more' + chr(10))}"
    if found["digest"]:
        text += f"\nDigest to approve: {code(found['digest'])}\n"
    return text


def _step_row(found: Mapping[str, Any]) -> str:
    shown = [_change_text(*each) for each in found["changes"][:_SHOWN]]
    more = len(found["changes"]) - len(shown)
    what = "; ".join([*shown, *([f"{more} more"] if more else [])])
    risk = f"{found['risk']}: {inline(found['reason'], 200)}" if found["risk"] else ""
    return f"| {code(found['id'])} | {found['change']}{f': {what}' if what else ''} | {risk} |\n"


def _change_text(key: str, old: str, new: str) -> str:
    before, after = (code(text, 120) if text else "" for text in (old, new))
    values = f"{before} → {after}" if before and after else before or after
    return f"{inline(key, 100)} {values}".rstrip()
