"""The hint for a file that is not there: the nearest name in its folder, or the YAML files that are there."""

from __future__ import annotations

import os

from planrun.plan.problems import did_you_mean

_ENDINGS = (".yml", ".yaml")
_MOST = 500  # names of a folder that are compared
_SHOWN = 5
_PLANS = "plans"


def near_names(path: str) -> str:
    """Return a hint for a path that names no file; "" where its folder offers nothing."""
    folder, name = os.path.split(path)
    if os.path.isdir(folder or "."):
        names = [each for each in _names(folder) if os.path.isfile(os.path.join(folder, each))]
        found = did_you_mean(name, names) or _other_ending(name, names)
        if found and folder:
            return found.replace('"', f'"{folder}/', 1)
        if found:
            return found
        others = [os.path.join(folder, each) for each in names if each.endswith(_ENDINGS)]
    else:
        others = [each for each in _names("") if each.endswith(_ENDINGS) and os.path.isfile(each)]
    others += (
        [f"{_PLANS}/{each}" for each in _names(_PLANS) if each.endswith(_ENDINGS)] if folder != _PLANS else []
    )
    more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
    return f"there are: {', '.join(others[:_SHOWN])}{more}" if others else ""


def _other_ending(name: str, names: list[str]) -> str:
    """Return the hint for a name without its ending, such as `plan` for plan.yml."""
    meant = next((each for each in names if each.rpartition(".")[0] == name), "")
    return f'did you mean "{meant}"?' if meant else ""


def _names(folder: str) -> list[str]:
    try:
        return [each for each in sorted(os.listdir(folder or "."))[:_MOST] if not each.startswith(".")]
    except OSError:
        return []
