"""A compiled plan as plain data that marshal can write, and back. HOT: it is most of what a large plan's start costs.

A record without records in it is a leaf, and stands for its number; equal ones, as most edges are, are one. Another
record is a list: the number of its class, its plain fields, and the fields that have records in them. A value beside
records that has none becomes `[-1, value]`, so that a number or a list is never ambiguous.
"""

from __future__ import annotations

import sys

from planrun.model.plan import Plan
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_APART = ("file", "files", "source")  # given again when a plan is unpacked
_ROOMS = ("planrun.model.", "planrun.plan.")
"""Where the classes of a plan stand; no other is made from a file."""
_PLAIN = -1


def pack(plan: Plan) -> dict[str, Any]:
    """Return a plan as plain data: the names of its classes, the records without records in them, and the plan."""
    packer = _Packer()
    fields = {name: value for name, value in vars(plan).items() if name not in _APART}
    packed = packer.packed(Plan(**fields))
    names = [f"{each.__module__}:{each.__name__}" for each in packer.classes]
    return {"classes": names, "leaves": packer.leaves, "plan": packed}


def unpack(data: dict[str, Any], file: str, source: bytes, files: dict[str, bytes] | None = None) -> Plan:
    """Return the plan that was packed. `files`: of the plans that it uses. Raises ValueError for a foreign class."""
    classes = [_class(name) for name in data["classes"]]
    leaves = [classes[number](**fields) for number, fields in data["leaves"]]
    plan: Plan = _unpacked(data["plan"], classes, leaves)
    return plan.but(file=file, source=source, **({"files": files} if files else {}))


class _Packer:
    def __init__(self) -> None:
        self.classes: dict[type, int] = {}
        self.leaves: list[tuple[int, dict[str, Any]]] = []
        self._known: dict[tuple[int, str], int] = {}

    def packed(self, value: Any) -> Any:
        if isinstance(value, Record):
            number = self.classes.setdefault(type(value), len(self.classes))
            fields = vars(value)
            nested = {name: self.packed(each) for name, each in fields.items() if _has_records(each)}
            if nested:
                # A nested field has its place among the plain ones: the order of fields stays.
                return [number, {**fields, **dict.fromkeys(nested)}, nested]
            leaf = self._known.setdefault((number, repr(fields)), len(self.leaves))
            if leaf == len(self.leaves):
                self.leaves.append((number, dict(fields)))
            return leaf
        if not _has_records(value):
            return [_PLAIN, value]
        if isinstance(value, dict):
            return {key: self.packed(each) for key, each in value.items()}
        return tuple([self.packed(each) for each in value])


def _has_records(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_has_records(each) for each in value.values())
    if isinstance(value, (tuple, list)):
        return any(_has_records(each) for each in value)
    return isinstance(value, Record)


def _unpacked(value: Any, classes: list[Any], leaves: list[Any]) -> Any:
    kind = type(value)
    if kind is int:
        return leaves[value]
    if kind is tuple:
        return tuple(
            [leaves[each] if type(each) is int else _unpacked(each, classes, leaves) for each in value]
        )
    if kind is dict:
        return {key: _unpacked(each, classes, leaves) for key, each in value.items()}
    if value[0] == _PLAIN:
        return value[1]
    number, fields, nested = value
    for name, each in nested.items():
        fields[name] = leaves[each] if type(each) is int else _unpacked(each, classes, leaves)
    return classes[number](**fields)


def _class(name: str) -> Any:
    module, _, kind = name.partition(":")
    if not module.startswith(_ROOMS):
        raise ValueError(f"{name} is no class of a plan")
    __import__(module)
    found = getattr(sys.modules[module], kind)
    if not issubclass(found, Record):
        raise TypeError(f"{name} is no record")
    return found
