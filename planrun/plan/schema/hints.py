"""What to write instead of an unknown key, a wrong type or a wrong value. Only a plan with mistakes loads this."""

from __future__ import annotations

from planrun.plan.examples import EXAMPLES
from planrun.plan.problems import nearest
from planrun.plan.schema.dialects import FOREIGN
from planrun.plan.tables import OBJECTS
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

PLACES = {
    "Agent": "an agent",
    "AgentType": "an agent",
    "Ask": "a question",
    "Backoff": "a backoff",
    "Cache": "a cache",
    "Check": "a check",
    "Container": "a container",
    "Decide": "a decision",
    "Defaults": "the defaults",
    "Limits": "the limits",
    "Llm": "the language model",
    "Matcher": "a rule",
    "Param": "a parameter",
    "Plan": "a plan",
    "Policy": "a policy",
    "RetryPolicy": "the retries",
    "Rollback": "a rollback",
    "Step": "a step",
    "Template": "a template",
    "Value": "a value",
}
"""What a message calls an object of the schema whose keys it lists."""


def of_key(key: str, name: str, *, present: Collection[str], step: bool) -> str:
    """Return what to write instead of an unknown key of the object `name`; the valid keys where nothing is near.

    `present`: the keys that the mapping has; `step`: whether the mapping is a part of a step.
    """
    known = OBJECTS[name]
    written = key.lower().replace("-", "").replace("_", "")
    meant = FOREIGN.get(name, {}).get(written, "")
    if " " in meant:
        named = meant.partition('did you mean "')[2].partition('"')[0]
        return f'"{named}" is already set' if named in present else meant
    if meant not in known:
        meant = ""
    if not meant and written not in (each.replace("_", "") for each in known):
        elsewhere = _elsewhere(key, name, step=step)
        if elsewhere:
            return elsewhere
    meant = meant or nearest(key, known) or ""
    if not meant:
        return f"valid keys: {', '.join(known)}"
    return f'"{meant}" is already set' if meant in present else f'did you mean "{meant}"?'


def _elsewhere(key: str, name: str, *, step: bool) -> str:
    """Return where a key belongs that is valid inside another key of this place, or outside of it; "" for no place."""
    key = key.lower().replace("-", "_")
    inner = {
        each: rule[MAPPING]
        for each, rule in OBJECTS[name].items()
        if isinstance(rule[MAPPING], str) and key in OBJECTS.get(rule[MAPPING], ())
    }
    if len(inner) == 1:
        ((place, owner),) = inner.items()
        value = EXAMPLES[owner][key]
        return f"`{key}` is a key of `{place}`, e.g. `{place}: {{{key}: {value}}}`"
    if len(inner) == 2:
        places = " or ".join(f"`{each}`" for each in inner)
        return f"`{key}` is a key of {places}: write it inside"
    if name == "Plan":
        return f"`{key}` is a key of a step" if key in OBJECTS["Step"] else ""
    if step and name != "Step" and key in OBJECTS["Step"]:
        return f"`{key}` is a key of the step: check the indentation"
    if key in OBJECTS["Plan"] and key not in ("name", "description", "version", "template"):
        return f"`{key}` is a key of the plan: write it at the top level"
    if name == "Defaults" and key in OBJECTS["Step"]:
        return f"`{key}` is a key of a step: write it in each step"
    return ""


def example(name: str, key: str, rule: tuple[Any, Any, Any]) -> str:
    """Return an example of the value of a key, as it is written in a plan; "" where there is none."""
    written: str = EXAMPLES.get(name, {}).get(key, "")
    kind = MAPPING if written.startswith("{") else SEQUENCE if written.startswith("[") else SCALAR
    return written if written and rule[kind] is not None else ""
