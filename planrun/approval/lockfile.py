"""The lockfile of a plan: the reviewed digests, and the differences from them."""

from __future__ import annotations

import json
import os

from planrun.approval.digest import gaps
from planrun.approval.policies import read_given, read_json
from planrun.errors import Denied, InvalidInput
from planrun.folders import write_atomically
from planrun.plan.compile.canonical import plain
from planrun.plan.revisions import path_of
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from planrun.approval.digest import Reviewed
    from planrun.model.plan import Plan

VERSION = 1
_NAMED = 20  # of many lines the first ones
# The other keys of the head of a plan; its steps are listed one by one.
_APART = frozenset(("", "digest", "version", "steps"))
_KEYS: dict[str, type] = {
    "version": int,
    "plan": str,
    "digest": str,
    "canonical": str,
    "params": dict,
    "scripts": dict,
    "head": dict,
    "steps": dict,
}


def lock_file(plan: str) -> str:
    """Return the path of the lockfile of a plan: `release.yml` has `release.lock.json` beside it."""
    return os.path.splitext(plan)[0] + ".lock.json"


def lock_of(plan: Plan, params: Mapping[str, Any], reviewed: Reviewed) -> dict[str, Any]:
    """Return the data of a lockfile without policies."""
    uncovered = gaps(reviewed)
    return {
        "version": VERSION,
        "plan": os.path.basename(plan.file),
        "digest": reviewed.digest,
        "canonical": plan.digest,
        "params": dict(params),
        "scripts": dict(sorted(reviewed.scripts.items())),
        **({"uncovered": uncovered} if uncovered else {}),
        "head": {name: _hash(value) for name, value in sorted(plain(plan).items()) if name not in _APART},
        "steps": {step.id: _hash(plain(step)) for step in plan.steps},
    }


def policy_of(name: str) -> dict[str, str]:
    """Return the data of a lockfile about a policy, which may be in a commit; raises InvalidInput, InvalidPlan."""
    return {"file": os.path.basename(path_of(name)), "sha256": _sha256(read_given(name, "policy").data)}


def as_text(lock: Mapping[str, Any]) -> str:
    """Return the text of a lockfile: one line a step, the same for the same plan."""
    return json.dumps(lock, indent=2, ensure_ascii=False) + "\n"


def write_lock(path: str, lock: Mapping[str, Any]) -> None:
    """Write a lock, whole or not at all, and the folders on its way; raises InvalidInput."""
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        write_atomically(path, as_text(lock).encode())
    except OSError as error:
        raise InvalidInput(f"cannot write {path}: {error.strerror}") from None


def read_lock(path: str, plan: Plan) -> dict[str, Any]:
    """Return the lock of a plan; raises InvalidInput when there is none, or it is no lock or that of another plan."""
    if not os.path.lexists(path):
        raise InvalidInput(f"no such file: {path}; to write it: planrun lock {plan.file}")
    try:
        lock = json.loads(read_json(path, "the lock").decode("utf-8"))
    except (ValueError, RecursionError):
        raise InvalidInput(f"{path} is not a lock file: it is not JSON") from None
    if not isinstance(lock, dict):
        raise InvalidInput(f"{path} is not a lock file: expected a JSON object")
    for key, kind in _KEYS.items():
        if not isinstance(lock.get(key), kind) or isinstance(lock[key], bool):
            raise InvalidInput(f'{path} is not a lock file: "{key}" is missing or has the wrong type')
    if lock["version"] != VERSION:
        raise InvalidInput(
            f"{path} has version {lock['version']}, which is not supported; expected {VERSION}"
        )
    if lock["plan"] != os.path.basename(plan.file):
        raise InvalidInput(f"{path} is the lock of {lock['plan']}, not of {os.path.basename(plan.file)}")
    return lock


def require_locked(plan: Plan, now: Mapping[str, Any], policies: Sequence[Mapping[str, Any]]) -> None:
    """Raise Denied when the plan differs from its lockfile, InvalidInput without a valid lockfile.

    `now` is what the lock would say, `policies` the ceilings in force, each with `file` and `sha256`.
    """
    path = lock_file(plan.file)
    found = list(drift(read_lock(path, plan), now, policies))
    if found:
        shown = found[:_NAMED] + ([f"and {len(found) - _NAMED} more"] if len(found) > _NAMED else [])
        lines = "".join([f"\n  {line}" for line in shown])
        raise Denied(f"{plan.file} is not what {path} holds:{lines}")
    if now.get("uncovered") and not plan.allow_uncovered:
        rows = [f"{what}: {why}" for what, why in now["uncovered"].items()]
        shown = rows[:_NAMED] + ([f"and {len(rows) - _NAMED} more"] if len(rows) > _NAMED else [])
        raise Denied(
            f"{plan.file} may run what {path} does not cover:"
            + "".join([f"\n  {line}" for line in shown])
            + "\n  to run it all the same: allow_uncovered: true in the plan"
        )


def drift(
    lock: Mapping[str, Any], now: Mapping[str, Any], policies: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """Yield a line for each difference."""
    policy = _policy(lock, policies)
    if policy:
        yield policy
    if lock["digest"] == now["digest"]:
        return
    found = [
        *_entries("step", lock["steps"], now["steps"], with_values=False),
        *_entries("plan", lock["head"], now["head"], with_values=False),
        *_entries("parameter", lock["params"], now["params"], with_values=True),
        *_entries("script", lock["scripts"], now["scripts"], with_values=False),
    ]
    yield from found
    if not found:
        what = "order of its steps" if lock["canonical"] != now["canonical"] else "lock itself"
        yield f"~ the {what} changed: digest {lock['digest'][:12]}, now {now['digest'][:12]}"


def _policy(lock: Mapping[str, Any], policies: Sequence[Mapping[str, Any]]) -> str:
    """Yield the differences of the locked ceiling; an additional ceiling is no difference."""
    was = lock.get("policy")
    if not isinstance(was, dict) or any(found["sha256"] == was.get("sha256") for found in policies):
        return ""
    if not policies:
        return f"- policy {was.get('file')} is not in force: give it by --policy"
    return f"~ policy {os.path.basename(path_of(policies[-1]['file']))} is not what {was.get('file')} was"


def _entries(
    what: str, was: Mapping[str, Any], now: Mapping[str, Any], *, with_values: bool
) -> Iterator[str]:
    for name in {**was, **now}:
        if name not in now:
            yield f"- {what} {name} is gone"
        elif name not in was:
            yield f"+ {what} {name} is new"
        elif was[name] != now[name] or type(was[name]) is not type(now[name]):
            values = f": {json.dumps(was[name])}, now {json.dumps(now[name])}" if with_values else ""
            yield f"~ {what} {name} changed{values}"


def _hash(value: Any) -> str:
    return _sha256(ascii(value).encode())


def _sha256(data: bytes) -> str:
    return str(sha256(data).hexdigest())
