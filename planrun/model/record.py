"""Immutable records without `dataclasses`, whose import alone costs more than a whole start of planrun."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self, dataclass_transform
else:

    def dataclass_transform(**_options):  # the type checker's word; nothing happens at run time
        return lambda cls: cls


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Record:
    """A frozen value with named fields; a field that was not given reads as the class's default.

    Only given fields are stored, so `vars(record)` is the compact form that goes into ledgers and caches.
    A field without a default that was not given raises AttributeError when it is read.
    """

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)

    if not TYPE_CHECKING:

        def __setattr__(self, name, _value):
            raise AttributeError(f"{type(self).__name__} is immutable: {name}")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.__dict__ == self.__dict__

    def __hash__(self) -> int:
        return hash(tuple(sorted((name, repr(value)) for name, value in self.__dict__.items())))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items())
        return f"{type(self).__name__}({fields})"

    def but(self, **changes: Any) -> Self:
        """Return the same record with some fields changed."""
        return type(self)(**{**self.__dict__, **changes})
