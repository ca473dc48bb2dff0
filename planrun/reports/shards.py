"""What reports say of a run that is one of several shards of a plan."""

from __future__ import annotations

from planrun.reports import facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from planrun.model.state import RunState
    from planrun.reports.parts import Part


def shard_data(state: RunState) -> dict[str, Any]:
    """Return what `planrun merge` compares: the number of the shard, of how many, and what runs where."""
    found = facts.shard_of(state)
    number, _, of = found["shard"][0].partition("/")
    return {
        "number": int(number),
        "of": int(of),
        "split": found["shard"][1],
        "steps": list(found["steps"]),
        "each": list(found["each"]),
        "after": list(found["after"]),
    }


def _sentence(state: RunState) -> str:
    data = shard_data(state)
    own = len(data["steps"])
    text = f"shard {data['number']} of {data['of']}: {own} step{'' if own == 1 else 's'} of its own"
    if data["each"]:
        text += f", {len(data['each'])} that run in each shard that needs them"
    return text + (f"; {len(data['after'])} are left for after all shards" if data["after"] else "")


def _opening(state: RunState) -> Iterator[str]:
    yield _sentence(state)


def _summary(state: RunState) -> Iterator[tuple[str, str]]:
    yield "Shard", _sentence(state).partition(" ")[2]


def _fill(state: RunState, ledger: dict[str, Any]) -> None:
    ledger["shard"] = shard_data(state)


SHARD: Part = {"opening": _opening, "summary": _summary, "fill_ledger": _fill}
