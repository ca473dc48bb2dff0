"""The action kinds as a plan has them: from a kind to the record of its actions, which is imported when it is needed.

The other half of a kind, what it does when a step starts, is in the module of `planrun.actions` with the same name.
"""

from __future__ import annotations

import sys

from planrun.model.plan import Abstract, Group

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.model.plan import Action

KINDS = {
    "run": ("command", "Run"),
    "exec": ("command", "Exec"),
    "tool": ("tool", "Tool"),
    "validate": ("validate", "Validate"),
    "ask": ("question", "Ask"),
    "decide": ("question", "Decide"),
    "agent": ("agent", "Agent"),
}
"""The module of this package and its class, by the key of a step that states such an action."""
PROCESSES = ("run", "exec", "tool", "agent")
"""Those that start a process: `Action.starts_process`."""
GUARDS = ("ask", "decide", "validate")
"""Those that hold up what comes after them, and change nothing: `Action.guards`."""
QUESTIONS = ("ask", "decide")
"""Those that are answered: `Action.asks`."""

# Group and abstract steps are no kinds of their own in a plan: no key of a step states them, and nothing starts them.
_loaded: dict[str, type[Action]] = {"group": Group, "abstract": Abstract}


def kind_of(name: str) -> type[Action]:
    """Return the record of the actions of a kind."""
    return _loaded.get(name) or _load(name)


def module_of(name: str) -> Any:
    """Return the module of a kind; `COMPILE` in it, if any, is as in the modules of `planrun.plan.keys`."""
    path = f"{__name__}.{KINDS[name][0]}"
    __import__(path)
    return sys.modules[path]


def _load(name: str) -> type[Action]:
    _loaded[name] = getattr(module_of(name), KINDS[name][1])
    return _loaded[name]
