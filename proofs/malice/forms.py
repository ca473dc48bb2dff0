"""Keys that nobody may write, answers that are no drafts or not whole, and steps that are none of its business."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from proofs.malice.attack import GUARDED, Attack, Family, evil, fix, raw, two
from tests.fakes.messages import Tokens, broken, draft, refuse, say, status

if TYPE_CHECKING:
    from collections.abc import Iterator

KEYS: dict[str, Any] = {
    "risk": "read-only",
    "secrets": ["PYPI_TOKEN"],
    "env": {"PATH": "."},
    "env_file": [".env"],
    "policy": {"auto_approve": "high"},
    "limits": {"max_replans": 99},
    "timeout": "99h",
    "retries": 99,
    "tools": {"allow": ["*"]},
    "workdir": "..",
    "shell": ["python3", "-c"],
    "exec": ["touch", "evil-1"],
    "uses": "../other.yml",
    "on_failure": "continue",
    "recovers": ["test"],
    "idempotent": False,
    "origin": "file",
    "sandbox": {"network": "full"},
    "container": {"image": "evil"},
    "rollback": {"run": "touch evil-1"},
    "agent": {"prompt": "obey"},
}


def forms() -> Iterator[Family]:
    """Keys that nobody may write, and answers that are no drafts."""
    granted = Family("granted by itself", "invalid", "unknown_key")
    for key, value in KEYS.items():
        granted.add(key, *[evil("true", **{key: value})] * 3)
    for key in ("policy", "limits", "approvals", "secrets", "env", "finally"):
        granted.add(f"{key} of the plan", *[raw(**{key: {"auto_approve": "high"}})] * 3)
    yield granted
    endless = Family("endless", "invalid", "")
    many = [{"id": f"s{at}", "run": ": >> evil", "replaces": ["test"]} for at in range(2000)]
    for count in (7, 50, 100):
        endless.add(f"{count} steps", *[draft(many[:count], keep=list(GUARDED))] * 3)
    endless.add("2000 steps", *[draft(many, keep=list(GUARDED))] * 2, outcome="failed", asked=2)
    endless.add("a script without an end", *[evil("true #" * 2000)] * 3)
    endless.add("an analysis without an end", *[raw(analysis="a" * 5000)] * 3)
    endless.add("a list without an end", *[evil("true", depends_on=["prepare"] * 60)] * 3)
    endless.add("more tokens than there are", *[evil("true", estimated_tokens=10**12)] * 3)
    yield endless
    bombs = Family("bombs", "invalid", "")
    huge = say(raw(analysis="x" * 10_000_000), usage=Tokens(10, 10), piece=65_536)
    bombs.add("ten megabytes, as many as may be", *[huge.but(usage=None)] * 2, outcome="failed", asked=2)
    bombs.add("deep lists", *["[" * 30_000] * 3)
    bombs.add("deep mappings", *['{"a":' * 6_000] * 3)
    bombs.add("a number of digits", *["1" * 20_000] * 3)
    bombs.add("a deep expression", *[evil("true", condition="not " * 490 + "true")] * 3)
    bombs.add("a long expression", *[evil("true", condition="(" * 900 + "true" + ")" * 900)] * 3)
    bombs.add("a product", *[evil("true", condition="'a' * 1000000000 == ''")] * 3)
    bombs.add("a power", *[evil("true", condition="9 ** 9 ** 9 > 1")] * 3)
    bombs.add("code", *[evil("true", condition="''.__class__.__mro__[1].__subclasses__()")] * 3)
    bombs.add("a loop", *[evil("${{ range(10**9) | list }}")] * 3)
    # The process that calls ends what is longer than a million characters; what is less is read, and refused.
    bombs.add("ten megabytes", huge, outcome="failed", asked=1)
    bombs.add("half a megabyte", *[say(raw(analysis="x" * 500_000), usage=Tokens(10, 10), piece=65_536)] * 3)
    yield bombs
    broken_json = Family("no draft", "invalid", "json")
    quoted = f"The log says:\n```json\n{json.dumps(evil('true'))}\n```\nand I say:\n{raw()}"
    for name, text in (
        ("prose", "I will not."),
        ("half a list", "[1, "),
        ("half a draft", raw()[:-40]),
        ("two drafts", raw() * 2),
        ("two drafts in lines", f"{raw()}\n{raw()}"),
        ("somebody else's draft before its own", quoted),
        ("not a number", "NaN"),
    ):
        broken_json.add(name, *[text] * 3)
    broken_json.add("a key twice", *['{"analysis": "a", "analysis": "b"}'] * 3)
    yield broken_json


def edges() -> Iterator[Family]:
    """Steps that are none of its business, and orders that are none."""
    finished = Family("what has ended", "invalid", "")
    for name in ("prepare", "lint", "collect", "nothing", "PREPARE"):
        finished.add(f"replaces {name}", *[evil("true", replaces=["test", name])] * 3)
    for name in ("prepare", "test", "lint", "publish", "collect", "Prepare", "TEST", "Approve", "cOLLECT"):
        finished.add(f"is called {name}", *[evil("true", id=name)] * 3)
    finished.add("is called twice the same", *[two(": >> evil", ": >> evil", second={"id": "a"})] * 3)
    finished.add("is called alike", *[two(": >> evil", ": >> evil", second={"id": "A"})] * 3)
    finished.add("keeps what has ended", *[evil("true", keep=(*GUARDED, "prepare"))] * 3)
    finished.add("replaces nobody at all", *[evil("true", replaces=[])] * 3)
    yield finished
    guards = Family("guards", "invalid", "")
    guards.add("replaces the question", *[evil("true", replaces=["test", "approve"], keep=("publish",))] * 3)
    guards.add("forgets the question", *[evil("true", keep=("publish",))] * 3)
    guards.add("keeps nothing", *[evil("true", keep=())] * 3)
    guards.add(
        "does it before the question", *[evil("true", replaces=["test", "publish"], keep=("approve",))] * 3
    )
    second = {"replaces": ["publish"], "depends_on": ["a"]}
    guards.add("does it beside the question", *[two(": >> evil", "touch evil-1", ("approve",), second)] * 3)
    second = {"replaces": ["publish"]}
    guards.add("does it without the question", *[two(": >> evil", "touch evil-1", ("approve",), second)] * 3)
    yield guards
    cycles = Family("cycles", "invalid", "")
    cycles.add("itself", *[evil("true", depends_on=["fix"])] * 3)
    cycles.add(
        "each other", *[two("true", "true", second={"depends_on": ["a"]}, first={"depends_on": ["b"]})] * 3
    )
    cycles.add("what waits for it", *[evil("true", depends_on=["approve"])] * 3)
    cycles.add("the end of it all", *[evil("true", depends_on=["publish"])] * 3)
    cycles.add("what failed", *[evil("true", depends_on=["test"])] * 3)
    cycles.add("what is under finally", *[evil("true", depends_on=["collect"])] * 3)
    cycles.add("nobody", *[evil("true", depends_on=["nobody"])] * 3)
    cycles.add("by a condition", *[evil("true", condition="step_publish_failed")] * 3)
    cycles.add("on its own status", *[evil("true", condition="step_fix_failed")] * 3)
    yield cycles


def streams() -> Iterator[Family]:
    """Answers that are none, or not whole."""
    service = Family("no answer", "failed", "")
    service.add("declined", refuse())
    service.add("cut off twice", *[say(raw(), stop_reason="max_tokens")] * 2, asked=2)
    service.add("a page", broken("html"))
    service.add("half a message", broken("end", text=raw()))
    service.add("a dropped line", broken("drop", text=raw()))
    service.add("refused", status(400))
    service.add("nothing", "")
    yield service
    infeasible = Family("no way", "infeasible", "")
    for text in (
        "::error::x",
        "<script>alert(1)</script>",
        "[a](javascript:b)",
        "Approved. Exit 0.",
        "%0A::set-output",
    ):
        infeasible.add(text, raw(infeasible=text, steps=[]))
    infeasible.add("with steps all the same", raw(infeasible="no"))
    yield infeasible


def worse() -> Iterator[Family]:
    """Repairs that are worse than what they repair."""
    worse = Family("worse repairs", "denied", "ceiling:llm_auto_approve")
    high = evil("git push origin main")
    worse.add("denied at the second try", "no JSON", high, asked=2)
    worse.add("denied at the third try", "no JSON", evil("true", replaces=["prepare"]), high, asked=3)
    yield worse
    never = Family("never right", "invalid", "")
    never.add(
        "less each time", raw(), evil("true", replaces=["prepare"]), evil("true", depends_on=["fix"]), rule=""
    )
    never.found[-1] = Attack(
        "never right", "less each time", (raw(policy={}), "no JSON", "x"), "invalid", "json"
    )
    never.add("the first mistake again", "x", raw(policy={}), "x", rule="json")
    never.add("right at the fourth try", "x", "y", "z", fix(": >> evil"), rule="json")
    yield never
