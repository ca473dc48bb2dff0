"""What may have been meant by an option that a verb does not have."""

from __future__ import annotations

from planrun.plan.problems import did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

FOLDER_FLAGS = ("-C", "--directory")
_ELSEWHERE = {"--parallel": "--jobs", "--max-parallel": "--jobs", "--var": "--param", "--set": "--param"}


def folder_hint(verb: str) -> str:
    """Return where the option for the folder stands."""
    return f"it stands before the verb: planrun -C DIR {verb}"


def suggestion(flag: str, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown option: one like it, or where it stands; may be empty."""
    if flag in FOLDER_FLAGS:
        return f"; {folder_hint('VERB')}"
    meant = _ELSEWHERE.get(flag, "")
    if meant in known:
        return f'; did you mean "{meant}"?'
    hint = did_you_mean(flag, [name for name in known if name.startswith("--")])
    return f"; {hint}" if hint else ""
