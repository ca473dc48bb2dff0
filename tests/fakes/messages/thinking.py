"""Preserved thinking: each thought is signed with all that stood before it, and is taken back only behind the same.

As the service documents it, a request is refused when the model, the system text, the tools or an earlier message
changed after a thought was made, and when a thought between others is missing. Marks for the cache do not count.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from tests.fakes.messages.refusing import RequestError
from tests.fakes.messages.replies import Reply

KINDS = {"thinking": "signature", "redacted_thinking": "data"}
"""The field with the signature, by the kind of block."""
_NO_THOUGHT = {"type": "thinking", "thinking": "", "signature": ""}


def signed(reply: Reply, body: dict[str, Any]) -> Reply:
    """Return a reply with its thoughts signed; a request with tools is always thought about."""
    if not body.get("tools") or reply.events or not reply.blocks:
        return reply
    blocks = [dict(block) for block in reply.blocks]
    if not any(block.get("type") in KINDS for block in blocks):
        blocks.insert(0, dict(_NO_THOUGHT))
    for place, block in enumerate(blocks):
        if field := KINDS.get(str(block.get("type"))):
            block[field] = _signature(body, body["messages"], blocks[:place], block)
    return reply.but(blocks=tuple(blocks))


def check(body: dict[str, Any]) -> None:
    """Refuse a request with a thought that is bound to something else."""
    for number, message in enumerate(body["messages"]):
        content = message["content"]
        if message["role"] != "assistant" or isinstance(content, str):
            continue
        for place, block in enumerate(content):
            field = KINDS.get(block["type"])
            before = body["messages"][:number]
            if field and block.get(field) != _signature(body, before, content[:place], block):
                raise RequestError(
                    f"messages.{number}.content.{place}: Invalid `{field}` in `{block['type']}` block. The block is "
                    "bound to a different conversation. Remove the block, or set "
                    '`thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
                )


def _signature(body: dict[str, Any], before: list[Any], beside: list[Any], block: dict[str, Any]) -> str:
    said = [{"role": message["role"], "content": _blocks(message["content"])} for message in before]
    thought = {key: value for key, value in block.items() if key != KINDS[block["type"]]}
    parts = [body["model"], _blocks(body.get("system") or ""), _blocks(body.get("tools") or [])]
    text = json.dumps([*parts, said, _blocks(beside), thought], sort_keys=True)
    return f"fake-{hashlib.sha256(text.encode()).hexdigest()}"


def _blocks(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [{key: value for key, value in block.items() if key != "cache_control"} for block in content]
