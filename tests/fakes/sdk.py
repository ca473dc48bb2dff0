"""Anthropic's library as the tests of its behaviour use it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anthropic

Clients = Callable[..., anthropic.Anthropic]
PATIENCE = 60.0


def asked(**fields: Any) -> dict[str, Any]:
    """Return a request in the library's words."""
    return {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "hello"}], **fields}


def streamed(client: anthropic.Anthropic, **fields: Any) -> Any:
    """Ask for a stream and return the message that the library makes of it."""
    with client.messages.stream(**asked(**fields)) as stream:
        return stream.get_final_message()
