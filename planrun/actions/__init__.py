"""What actions do when their step starts: one module for each kind, and the modules that they share.

A kind that starts a process has two functions:
- `recipe(step, scope, shell)` returns the `Recipe` of an attempt, without environment and folder;
- `command(step, recipe, file)` returns the argv of its process, and the tool call if it is one; it may
  write a script or arguments that are too long for one argument to `file`.

A kind that starts no process has two others; `steps` is a `StepContext`:
- `prepare(steps, step, state, scope)` returns the `Prepared` with the outcome of the attempt;
- `fingerprint(steps, step, state, scope)` returns a digest of the inputs of that outcome.

All raise EvaluationError for values that cannot be rendered. `planrun.plan.kinds` has the table of all kinds, and a
module of the same name for the keys of each.
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
