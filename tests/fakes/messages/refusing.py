"""How the fake service says no: an error of the Messages API with its status."""

from __future__ import annotations

from typing import Any


class RequestError(Exception):
    """A request that is not served; `error`: its type as the API names it."""

    def __init__(self, message: str, status: int = 400, error: str = "invalid_request_error") -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.error = error


def only(where: str, data: Any, known: frozenset[str]) -> dict[str, Any]:
    """Return data as a mapping that has none but known keys; `where` is its path, with a dot at the end, or empty."""
    if not isinstance(data, dict):
        raise RequestError(f"{where.rstrip('.') or 'body'}: Input should be a valid dictionary")
    for key in data:
        if key not in known:
            raise RequestError(f"{where}{key}: Extra inputs are not permitted")
    return data


def whole(where: str, value: Any, least: int) -> int:
    """Return a whole number that is large enough."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise RequestError(f"{where}: Input should be a valid integer")
    if value < least:
        raise RequestError(f"{where}: Input should be greater than or equal to {least}")
    return value


def one_of(where: str, value: Any, known: tuple[str, ...]) -> None:
    """Refuse a word that is none of the known ones."""
    if value not in known:
        raise RequestError(f"{where}: Input should be {', '.join(map(repr, known))}")
