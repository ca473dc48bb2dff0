"""What actions do when their step starts: each kind has a module here, beside what all of them share.

A kind that starts a process has two functions:
- `recipe(step, scope, shell)` returns the `Recipe` of an attempt, without environment and folder;
- `command(step, recipe, file)` returns the argv of its process, and the call of a tool that it is, if any; it may write
  what is too long for an argument into `file`.

A kind that starts none has two others; `steps` is a `StepContext`:
- `prepare(steps, step, state, scope)` returns the `Prepared` with the outcome of the attempt;
- `fingerprint(steps, step, state, scope)` returns what decides that outcome.

All raise EvaluationError for what cannot be rendered. What a plan needs to know of a kind is in
`planrun.plan.kinds`, in a module of the same name, and so is the table of all kinds.
"""

from __future__ import annotations

import sys

from planrun.plan.kinds import KINDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_loaded: dict[str, Any] = {}


def kind_of(name: str) -> Any:
    """Return the module of a kind, which is imported when the first step of it starts."""
    return _loaded.get(name) or _load(name)


def _load(name: str) -> Any:
    path = f"{__name__}.{KINDS[name][0]}"
    __import__(path)
    _loaded[name] = sys.modules[path]
    return _loaded[name]
