"""Plans for the tests of differences, and every key of the plan language with two values that mean different things."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from planrun.diff.differences import renamed
from planrun.diff.plans import compare
from planrun.plan.load import load_bytes

if TYPE_CHECKING:
    from planrun.diff.differences import Difference
    from planrun.model.plan import Plan

BASE: dict[str, Any] = {
    "version": 1,
    "name": "base",
    "params": {"word": {"type": "string", "default": "a"}},
    "secrets": ["FIRST_KEY", "OTHER_KEY"],
    "steps": [
        {"id": "first", "run": "echo first"},
        {"id": "other", "run": "echo other"},
        {"id": "subject", "run": "echo subject"},
    ],
    "finally": [{"id": "tidy", "run": "true"}],
}

_LIST: list[dict[str, Any]] = [{"files_exist": ["a"]}]
_ASK: dict[str, Any] = {
    "question": "Go on?",
    "header": "A",
    "type": "string",
    "enum": ["a", "b"],
    "default": "a",
    "timeout": "1m",
}
_DECIDE: dict[str, Any] = {
    "question": "Which?",
    "options": [{"label": "A", "value": 1}, {"label": "B"}],
    "default": 1,
    "timeout": "1m",
}
# Key of a step -> two values; None: the key is not there.
OF_STEP: dict[str, tuple[Any, Any]] = {
    "title": ("A", "B"),
    "track_files": (None, True),
    "description": (None, "About it."),
    "owner": ("a", "b"),
    "notes": (None, "a"),
    "tags": (["a"], ["a", "b"]),
    "runs_on": (["linux"], ["linux", "gpu"]),
    "estimated_tokens": (1, 2),
    "estimated_time": ("1m", "2m"),
    "estimated_success": (0.5, 0.9),
    "requires": (["built"], ["built", "tested"]),
    "provides": (["done"], ["done", "shown"]),
    "deletes": (None, ["built"]),
    "depends_on": (["first"], {"first": "done"}),
    "condition": ("run.ci", "not run.ci"),
    "parallel": (None, False),
    "lock": ("db", ["db", "pypi"]),
    "retries": (1, {"max": 1, "on": ["timeout"]}),
    "timeout": (None, "6m"),
    "idle_timeout": ("5s", "6s"),
    "on_failure": (None, "continue"),
    "recovers": (None, ["first"]),
    "replaces": (None, ["first"]),
    "idempotent": (True, False),
    "env": ({"A": "1"}, {"A": "2"}),
    "env_file": (["a.env"], ["b.env"]),
    "secrets": (["FIRST_KEY"], ["OTHER_KEY"]),
    "sandbox": ("low", {"level": "low", "network": "any"}),
    "workdir": ("a", "b"),
    "shell": ("bash", "sh -e"),
    "outputs": ({"a": "string"}, {"a": "integer"}),
    "risk": (None, "high"),
    "expect": (None, [{"files_exist": ["a"]}]),
    "service": (None, True),
    "container": ("box:1", {"image": "box:1", "user": "1"}),
    "reports": ({"junit": "a.xml"}, {"junit": ["a.xml", "b.xml"]}),
    "verify": ("ls", ["ls", ["ls", "a"]]),
    "inputs": (["a"], ["a", "b"]),
    "produces": (["a"], ["b"]),
    "writes": (None, ["a"]),
    "cache": (None, {"inputs": ["a"], "key": "1"}),
    "rollback": ({"run": "ls"}, {"run": "ls -l"}),
    "reversible": (None, False),
}
ACTIONS: dict[str, tuple[Any, Any]] = {
    "run": ("echo subject", "echo another"),
    "ask": (_ASK, {**_ASK, "enum": ["a", "c"]}),
    "decide": (_DECIDE, {**_DECIDE, "options": [{"label": "A", "value": 2}, {"label": "B"}], "default": 2}),
    "exec": (["echo", "a b"], ["echo", "a", "b"]),
    "tool": ("git.status", "git.diff"),
    "validate": (_LIST, [{"files_exist": ["b"]}]),
    "agent": ({"prompt": "Mend it."}, {"prompt": "Mend it.", "apply": "auto"}),
}
OF_PLAN: dict[str, tuple[Any, Any]] = {
    "name": ("base", "another"),
    "description": (None, "About it."),
    "goal": ("a", "b"),
    "params": ({"word": {"type": "string"}}, {"word": {"type": "string", "enum": ["a"]}}),
    "outputs": ({"a": "1"}, {"a": "2"}),
    "env": ({"A": "1"}, {"A": "2"}),
    "env_file": (["a.env"], ["b.env"]),
    "secrets": (["FIRST_KEY"], ["FIRST_KEY", "OTHER_KEY"]),
    "limits": ({"max_parallel": 1}, {"max_parallel": 2}),
    "llm": ({"model": "model-a"}, {"model": "model-a", "effort": "high"}),
    "schedule": (None, "levels"),
    "concurrency": (None, "deploy"),
    "allow_uncovered": (None, True),
    "mcp": (None, {"servers": {"notes": {"command": ["notes-server"]}}}),
    "search": ({"algorithm": "mcts"}, {"algorithm": "astar"}),
    "hooks": (None, {"after_step": {"run": "./note.sh"}}),
    "resume": (None, {"auto": True}),
    "notify": (None, [{"webhook": "https://ci.example.com/hook"}]),
    "policy": ({"auto_approve": "low"}, {"auto_approve": "medium"}),
    "decisions": ({"gate": _DECIDE}, {"gate": {**_DECIDE, "question": "Which one?"}}),
}
DEFAULTS: dict[str, tuple[Any, Any]] = {
    "runs_on": (None, ["gpu"]),
    "timeout": ("1m", "2m"),
    "idle_timeout": (None, "2m"),
    "verify_timeout": (None, "2m"),
    "track_files": (None, True),
    "retries": (0, 1),
    "shell": ("bash", "sh"),
    "on_failure": ("block", "abort"),
    "sandbox": ("read-only", "medium"),
    "workdir": ("a", "b"),
    "inherit_env": ("safe", "none"),
    "rollback": (True, False),
}


def plan_of(data: dict[str, Any] | str, file: str = "plan.yml") -> Plan:
    """Return a plan of data or text."""
    text = data if isinstance(data, str) else yaml.safe_dump(data, sort_keys=False, allow_unicode=True)
    return load_bytes(text.encode(), file, cache=False)


def difference(old: dict[str, Any] | str, new: dict[str, Any] | str) -> Difference:
    """Return what is different, renamed steps found."""
    first, second = plan_of(old), plan_of(new)
    return compare(first, second, renamed(first, second))


def with_key(key: str, value: Any, base: dict[str, Any]) -> dict[str, Any]:
    """Return a mapping with a key set, or taken out for None."""
    rest = {name: item for name, item in base.items() if name != key}
    return rest if value is None else {**rest, key: value}


def with_step(**fields: Any) -> dict[str, Any]:
    """Return BASE whose step `subject` has these fields besides its id, None for those it does not have."""
    subject = {"id": "subject", **{name: value for name, value in fields.items() if value is not None}}
    return {**BASE, "steps": [*BASE["steps"][:2], subject]}
