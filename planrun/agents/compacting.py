"""Compaction: a conversation that comes near its limit loses the oldest results of tools, which can be had again.

Its thoughts go with them: a service takes a thought back only behind the very messages that it followed.
"""

from __future__ import annotations

import json

from planrun.llm.entries import THOUGHTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CONTEXT = 120_000
"""Tokens of one request that an agent may reach."""
BOUND, GOAL = 0.95, 0.7
APART = 30.0  # seconds between two compactions of one conversation
_KEPT = 4  # of the last messages, which are never cut
BYTES_A_TOKEN = 2
_LEAST = 400  # bytes of a result that is worth leaving out
_LEFT_OUT = "[the result is left out: it had {size} bytes; call the tool again to see it]"


def size_of(messages: list[dict[str, Any]]) -> int:
    """Return about how many tokens messages have."""
    return len(json.dumps(messages, ensure_ascii=False).encode("utf-8", "replace")) // BYTES_A_TOKEN


def compacted(messages: list[dict[str, Any]], goal: int) -> tuple[list[dict[str, Any]], int]:
    """Return messages with the oldest results left out until they have `goal` tokens, and how many these are."""
    found, count = list(messages), 0
    for place in range(1, len(found) - _KEPT):
        if size_of(found) <= goal:
            break
        message = found[place]
        if message["role"] != "user" or isinstance(message["content"], str):
            continue
        blocks = []
        for block in message["content"]:
            content = block.get("content")
            if isinstance(content, str) and len(content) > _LEAST:
                count += 1
                block = {**block, "content": _LEFT_OUT.format(size=len(content))}  # noqa: PLW2901
            blocks.append(block)
        found[place] = {**message, "content": blocks}
    return (without_thoughts(found) if count else found), count


def has_thoughts(messages: list[dict[str, Any]]) -> bool:
    """Whether there is a thought in messages."""
    return without_thoughts(messages) != messages


def without_thoughts(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return messages without the thoughts of the model."""
    return [
        {**each, "content": [part for part in each["content"] if part["type"] not in THOUGHTS]}
        if each["role"] == "assistant"
        else each
        for each in messages
    ]
