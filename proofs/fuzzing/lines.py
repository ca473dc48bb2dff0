"""Which lines of planrun's reading rooms were ever reached; cheap, since a line counts once."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType, FrameType

ROOMS = ("planrun.plan", "planrun.expressions")
_ALWAYS, _SELDOM = 100, 20
"""Before Python 3.12: how many calls of a function are watched, and which of those after them."""
_TOOL = 4  # one of those that sys.monitoring leaves to anybody


class Lines:
    """The lines of functions that were not reached yet, by code; `reached` counts the others."""

    def __init__(self) -> None:
        self.left: dict[CodeType, set[int]] = {}
        for room in ROOMS:
            for code in _codes(room):
                self.left[code] = _lines(code)
        self.total = sum(map(len, self.left.values()))
        self.reached = 0
        self.calls: dict[CodeType, int] = {}
        self._monitoring: Any = getattr(sys, "monitoring", None)  # Python 3.12
        if self._monitoring is not None:
            self._begin()

    def __enter__(self) -> None:
        """Watch what is done from now on."""
        if self._monitoring is None:
            sys.settrace(self._enter)

    def __exit__(self, *_exception: object) -> None:
        if self._monitoring is None:
            sys.settrace(None)

    def _begin(self) -> None:
        """Ask to be told about each line, until it was reached."""
        self._monitoring.use_tool_id(_TOOL, "fuzz")
        self._monitoring.register_callback(_TOOL, self._monitoring.events.LINE, self._once)
        for code in self.left:
            self._monitoring.set_local_events(_TOOL, code, self._monitoring.events.LINE)

    def _once(self, code: CodeType, line: int) -> Any:
        self._mark(self.left.get(code, set()), line)
        return self._monitoring.DISABLE

    def _enter(self, frame: FrameType, _event: str, _arg: Any) -> Any:
        code = frame.f_code
        if not self.left.get(code):
            return None
        calls = self.calls[code] = self.calls.get(code, 0) + 1
        return self._line if calls < _ALWAYS or not calls % _SELDOM else None

    def _line(self, frame: FrameType, _event: str, _arg: Any) -> Any:
        self._mark(self.left[frame.f_code], frame.f_lineno)
        return self._line

    def _mark(self, left: set[int], line: int) -> None:
        if line in left:
            left.discard(line)
            self.reached += 1


def _codes(room: str) -> Iterator[CodeType]:
    """Yield the code of every function of a room, as it will run."""
    package = importlib.import_module(room)
    for found in pkgutil.iter_modules(package.__path__):
        if not found.ispkg:
            module = importlib.import_module(f"{room}.{found.name}")
            yield from _inside(module, str(module.__file__))


def _inside(holder: Any, file: str) -> Iterator[CodeType]:
    for value in vars(holder).values():
        inner = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        code = getattr(inner, "__code__", None)
        if code is not None and code.co_filename == file:
            yield from _all(code)
        elif isinstance(value, type) and getattr(value, "__module__", "") == getattr(
            holder, "__name__", None
        ):
            yield from _inside(value, file)


def _all(code: CodeType) -> Iterator[CodeType]:
    yield code
    for part in code.co_consts:
        if hasattr(part, "co_code"):
            yield from _all(part)


def _lines(code: CodeType) -> set[int]:
    return {line for _, _, line in code.co_lines() if line is not None and line != code.co_firstlineno}


def missing(lines: Lines) -> list[str]:
    """Return what was never reached, as file:line, a range at a time."""
    found: dict[str, set[int]] = {}
    for code, left in lines.left.items():
        found.setdefault(Path(code.co_filename).name, set()).update(left)
    return [f"{name}:{','.join(map(str, sorted(left)))}" for name, left in sorted(found.items()) if left]
