"""Files of other tools in a folder without a plan: which of its YAML files are none, and which can be converted."""

from __future__ import annotations

import os

from planrun.plan.foreign import foreign_file, foreign_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from planrun.plan.foreign import Foreign

_TASKFILES = (
    "Taskfile.yml", "Taskfile.yaml", "taskfile.yml", "taskfile.yaml", ".gitlab-ci.yml", "Makefile", "makefile",
    "GNUmakefile", "justfile", "Justfile",
)  # fmt: skip
_WORKFLOWS = os.path.join(".github", "workflows")
_MOST = 3  # files that are named
_LARGEST = 1_000_000  # bytes


def are_plans(names: Sequence[str], folder: str = "") -> list[str]:
    """Return the files that are not those of another tool."""
    return [name for name in names if foreign_in(os.path.join(folder, name)) is None]


def foreign_in(path: str) -> Foreign | None:
    """Return which tool a file belongs to; None for a plan, and for a file that cannot be read."""
    try:
        if os.path.getsize(path) > _LARGEST:
            return None
        with open(path, "rb") as file:
            return foreign_file(file.read(), path)
    except OSError:
        return None


def convert_commands(names: Sequence[str]) -> list[str]:
    """Return the commands that convert the first of these files, the Taskfile and the workflows of this folder."""
    files = [*_taskfiles(), *_workflows(), *names]
    found = [(file, foreign_in(file) or foreign_name(file)) for file in files[: 4 * _MOST]]
    commands = [tool.command(file) for file, tool in found if tool is not None and tool.source]
    return commands[:_MOST]


def _taskfiles() -> Iterator[str]:
    try:
        present = set(os.listdir("."))  # a file system may take two spellings for one file
    except OSError:
        return
    yield from [name for name in _TASKFILES if name in present]


def _workflows() -> Iterator[str]:
    try:
        names = sorted(os.listdir(_WORKFLOWS))
    except OSError:
        return
    yield from [os.path.join(_WORKFLOWS, name) for name in names if name.endswith((".yml", ".yaml"))]
