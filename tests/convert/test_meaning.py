"""What files of make, just and go-task mean is what their plans do: each runs by its tool, and as a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.convert.alike import by_plan, difference, program
from tests.convert.cases import JUST, LEFT, MAKE, TASK

if TYPE_CHECKING:
    from pathlib import Path

    from tests.convert.alike import Case

ALIKE = [
    pytest.param(case, id=f"{case.tool}: {name}")
    for table in (MAKE, JUST, TASK)
    for name, case in table.items()
]
# Not run by the plan, since a value is missing that the tool misses, too.
MISSING = ("no parameters", "requires what is not given")


@pytest.mark.parametrize("case", ALIKE)
def test_a_plan_does_what_the_tool_does(case: Case, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Green or red, the order of what programs were called with, and the files."""
    if program(case.tool) is None:
        pytest.skip(f"{case.tool} is not installed")
    found = difference(case, tmp_path)
    if request.node.callspec.id.partition(": ")[2] in MISSING:
        assert found.startswith("invalid: planrun: error: the parameter")
    else:
        assert not found


@pytest.mark.parametrize("case", LEFT.values(), ids=LEFT)
def test_what_is_not_certain_is_left_to_a_person(case: Case, tmp_path: Path) -> None:
    """A step without an action, or a refusal; nothing runs."""
    found = by_plan(case, tmp_path)
    assert isinstance(found, str)
    assert found.startswith(("abstract: ", "refused: "))
    assert not (tmp_path / "log").exists()
