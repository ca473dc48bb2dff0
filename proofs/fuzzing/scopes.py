"""Values for the names that expressions read: usual ones, none at all, and ones that no plan declares."""

from __future__ import annotations

from typing import Any

from planrun.expressions.tree import ROOT_KEY, ROOTS

_STEP: dict[str, Any] = {"status": "failed", "outputs": {"n": "v", "m": 2}, "exit_code": 1, "attempts": 2}
_DEEP: list[Any] = []
for _ in range(200):
    _DEEP = [_DEEP]
USUAL: dict[str, Any] = {
    "params": {"target": "prod", "n": 3, "list": [1, 2, "a"], "shape": {"a": [1, None]}, "version": "1.2.3"},
    "env": {"HOME": "/home/u", "A": "$(touch x)"},
    "matrix": {"os": "linux"},
    "item": {"key": "k"},
    "steps": dict.fromkeys(("a", "b", "c", "1", "2", "build", "test", "lint"), _STEP),
    "run": {"id": "r1", "ci": True, "ref": "main", "sha": "0" * 40, "event": "push"},
    "step": {"dir": "/tmp/x"},
    ROOT_KEY: "/nowhere",
}
STRANGE: dict[str, Any] = {
    "params": {"target": None, "n": 10**400, "list": _DEEP, "shape": 1e308, "version": "\0\ud800'"},
    "env": [],
    "matrix": "x" * 2000,
    "item": {"a": {}, "b": ()},
    "steps": {"a": {"status": 1, "outputs": None}, "b": {}},
    "run": {"ci": "true"},
    "step": None,
}
SCOPES: tuple[dict[str, Any], ...] = (USUAL, dict.fromkeys(ROOTS), STRANGE)
