"""The lines between planrun and the process that calls a model: one JSON mapping each, both ways.

To the process: `open` (once: the service), `ask` (a request with its number), `stop`. From it: `ready` (once),
`spent` (what the call under way used up so far), `repeat` (an attempt was in vain, and there is one more), `answer`
(with `last`, when the process ends after it).
"""

from __future__ import annotations

import json

from planrun.model.call import Answer, Request, Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def line(word: str, **fields: Any) -> bytes:
    """Return one line; lone surrogates in texts travel as escapes."""
    return json.dumps({"word": word, **fields}, separators=(",", ":")).encode("ascii") + b"\n"


def as_data(record: Request | Answer | Usage) -> dict[str, Any]:
    """Return a record as plain data, with the usage in it."""
    return {name: vars(value) if isinstance(value, Usage) else value for name, value in vars(record).items()}


def as_request(data: Mapping[str, Any]) -> Request:
    """Return the request that was sent as `as_data` of it."""
    lists = {name: tuple(data[name]) for name in ("system", "messages", "tools") if name in data}
    return Request(**{**data, **lists})


def as_answer(data: Mapping[str, Any]) -> Answer:
    """Return the answer that was sent as `as_data` of it."""
    content = {"content": tuple(data["content"])} if "content" in data else {}
    return Answer(**{**data, **content, "usage": Usage(**data.get("usage", {}))})
