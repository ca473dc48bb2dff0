"""What the service takes as `messages` and `system`: roles, blocks, tools and their results in pairs, breakpoints."""

from __future__ import annotations

from typing import Any

from tests.fakes.messages.refusing import RequestError, one_of, only

# Keys of the blocks that are understood here; the service knows more of them.
BLOCKS = {
    "text": frozenset({"type", "text", "cache_control", "citations"}),
    "image": frozenset({"type", "source", "cache_control"}),
    "document": frozenset({"type", "source", "title", "context", "citations", "cache_control"}),
    "thinking": frozenset({"type", "thinking", "signature"}),
    "redacted_thinking": frozenset({"type", "data"}),
    "tool_use": frozenset({"type", "id", "name", "input", "cache_control", "caller"}),
    "tool_result": frozenset({"type", "tool_use_id", "content", "is_error", "cache_control"}),
}
OF_THE_MODEL = ("thinking", "redacted_thinking", "tool_use")
MOST_BREAKPOINTS = 4


def check(body: dict[str, Any]) -> None:
    """Refuse a conversation that the service would refuse."""
    messages = body.get("messages")
    if messages is None:
        raise RequestError("messages: Field required")
    if not isinstance(messages, list):
        raise RequestError("messages: Input should be a valid list")
    if not messages:
        raise RequestError("messages: at least one message is required")
    for number, message in enumerate(messages):
        _message(number, message)
    if messages[0]["role"] != "user":
        raise RequestError('messages: first message must use the "user" role')
    if messages[-1]["role"] == "assistant":
        raise RequestError(
            "This model does not support assistant message prefill. "
            "The conversation must end with a user message."
        )
    _pairs(messages)
    _system(body.get("system"))
    _breakpoints(body)


def _message(number: int, message: Any) -> None:
    where = f"messages.{number}"
    only(f"{where}.", message, frozenset({"role", "content"}))
    if message.get("role") == "system":
        raise RequestError(
            'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, '
            'not "system" as an input message role.'
        )
    one_of(f"{where}.role", message.get("role"), ("user", "assistant"))
    content = message.get("content")
    if content is None:
        raise RequestError(f"{where}.content: Field required")
    if not content:
        raise RequestError(f"{where}: all messages must have non-empty content")
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        raise RequestError(f"{where}.content: Input should be a valid list")
    for place, block in enumerate(content):
        _block(f"{where}.content.{place}", block, message["role"])


def _block(where: str, block: Any, role: str) -> None:
    kind = block.get("type") if isinstance(block, dict) else None
    if kind not in BLOCKS:
        raise RequestError(f"{where}: Input tag {kind!r} does not match any of the expected tags")
    only(f"{where}.", block, BLOCKS[kind])
    if role == "user" and kind in OF_THE_MODEL:
        raise RequestError(f"{where}: `{kind}` blocks can only be in `assistant` messages")
    if role == "assistant" and kind == "tool_result":
        raise RequestError(f"{where}: `tool_result` blocks can only be in `user` messages")
    if kind == "text":
        if not isinstance(block.get("text"), str):
            raise RequestError(f"{where}.text: Input should be a valid string")
        if not block["text"]:
            raise RequestError(f"{where}: text content blocks must be non-empty")
    if kind == "tool_use" and not isinstance(block.get("input"), dict):
        raise RequestError(f"{where}.input: Input should be a valid dictionary")
    _breakpoint(where, block)


def _ids(message: dict[str, Any], kind: str, key: str) -> list[str]:
    content = message["content"] if isinstance(message["content"], list) else []
    return [str(block.get(key)) for block in content if block["type"] == kind]


def _pairs(messages: list[dict[str, Any]]) -> None:
    """Hold every use of a tool and its result together, in neighbouring messages."""
    asked: list[str] = []
    for number, message in enumerate(messages):
        given = _ids(message, "tool_result", "tool_use_id")
        if missing := [name for name in asked if name not in given]:
            raise RequestError(
                f"messages.{number - 1}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the "
                "next message."
            )
        if strange := [name for name in given if name not in asked]:
            raise RequestError(
                f"messages.{number}: unexpected `tool_use_id` found in `tool_result` blocks: {', '.join(strange)}. "
                "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
            )
        if len(set(given)) < len(given):
            raise RequestError(
                f"messages.{number}: each tool_use must have a single result. Found multiple `tool_result` blocks"
            )
        asked = _ids(message, "tool_use", "id")
        if len(set(asked)) < len(asked):
            raise RequestError(f"messages.{number}: `tool_use` ids must be unique")


def _system(system: Any) -> None:
    if system is None or isinstance(system, str):
        return
    if not isinstance(system, list):
        raise RequestError("system: Input should be a valid list")
    for number, block in enumerate(system):
        if not isinstance(block, dict) or block.get("type") != "text":
            raise RequestError(f"system.{number}.type: Input should be 'text'")
        _block(f"system.{number}", block, "system")


def _breakpoint(where: str, holder: dict[str, Any]) -> None:
    mark = holder.get("cache_control")
    if mark is not None:
        only(f"{where}.cache_control.", mark, frozenset({"type", "ttl"}))
        one_of(f"{where}.cache_control.type", mark.get("type"), ("ephemeral",))
        one_of(f"{where}.cache_control.ttl", mark.get("ttl", "5m"), ("5m", "1h"))


def _breakpoints(body: dict[str, Any]) -> None:
    _breakpoint("body", body)
    system = body.get("system")
    holders = [*(body.get("tools") or ()), *(system if isinstance(system, list) else ())]
    for message in body["messages"]:
        holders += message["content"] if isinstance(message["content"], list) else []
    marks = [holder["cache_control"] for holder in holders if holder.get("cache_control")]
    marks += [body["cache_control"]] if body.get("cache_control") else []
    if len(marks) > MOST_BREAKPOINTS:
        raise RequestError(
            f"A maximum of {MOST_BREAKPOINTS} blocks with cache_control may be provided. Found {len(marks)}."
        )
    lives = [mark.get("ttl", "5m") for mark in marks]
    if "1h" in lives and "5m" in lives[: len(lives) - lives[::-1].index("1h")]:
        raise RequestError(
            "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block"
        )
