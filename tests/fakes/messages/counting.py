"""What the fake service counts: a token is four bytes, begun ones count whole; and what its prompt cache keeps."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

BYTES_A_TOKEN = 4
SMALLEST_CACHED = 1024
"""Tokens that a beginning needs before the service keeps it, as the documentation says of most models."""


@dataclass(frozen=True)
class Tokens:
    """Tokens of one exchange, as `usage` of the Messages API has them."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    def __add__(self, other: Tokens) -> Tokens:
        """Return both together."""
        return Tokens(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
        )

    @property
    def total(self) -> int:
        """Every token."""
        return self.input + self.output + self.cache_read + self.cache_write

    def with_output(self, output: int) -> Tokens:
        """Return the same question with another length of the answer."""
        return Tokens(self.input, output, self.cache_read, self.cache_write)

    def wire(self) -> dict[str, Any]:
        """Return the usage object of a message."""
        return {
            "input_tokens": self.input,
            "cache_creation_input_tokens": self.cache_write,
            "cache_read_input_tokens": self.cache_read,
            "output_tokens": self.output,
            "service_tier": "standard",
        }


def tokens(text: str) -> int:
    """Return the tokens of a text."""
    return -(-len(text.encode("utf-8", "replace")) // BYTES_A_TOKEN)


def text_of(part: Any) -> str:
    """Return a part of a request as the text that is counted: texts as they are, all else as compact JSON."""
    if isinstance(part, str):
        return part
    if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str):
        return str(part["text"])
    if isinstance(part, dict):
        part = {key: value for key, value in part.items() if key != "cache_control"}
    return json.dumps(part, ensure_ascii=False, separators=(",", ":"), sort_keys=False)


def parts(body: dict[str, Any]) -> list[tuple[str, bool]]:
    """Return what a request consists of in the order of the cache, with whether a breakpoint stands behind each."""
    found = [(text_of(tool), "cache_control" in tool) for tool in body.get("tools") or ()]
    schema = ((body.get("output_config") or {}).get("format") or {}).get("schema")
    if schema:
        found.append((text_of(schema), False))
    found += _blocks(body.get("system") or "")
    for message in body.get("messages") or ():
        found += _blocks(message["content"])
    if body.get("cache_control") and found:
        found[-1] = (found[-1][0], True)
    return found


def _blocks(content: Any) -> list[tuple[str, bool]]:
    if isinstance(content, str):
        return [(content, False)] if content else []
    return [(text_of(block), "cache_control" in block) for block in content]


def count(body: dict[str, Any]) -> int:
    """Return the input tokens of a request."""
    return sum(tokens(text) for text, _ in parts(body))


@dataclass
class PromptCache:
    """Beginnings of requests that were marked with `cache_control`; they are kept until the server ends."""

    smallest: int = SMALLEST_CACHED
    _kept: set[str] = field(default_factory=set)

    def charge(self, body: dict[str, Any]) -> Tokens:
        """Return how the input of a request is counted, and keep the beginnings that it marks."""
        state = hashlib.sha256(str(body.get("model")).encode())
        so_far = read = marked = 0
        for text, is_breakpoint in parts(body):
            state.update(text.encode("utf-8", "replace") + b"\0")
            so_far += tokens(text)
            if is_breakpoint and so_far >= self.smallest:
                marked = so_far
                name = state.hexdigest()
                read = so_far if name in self._kept else read
                self._kept.add(name)
        return Tokens(input=so_far - marked, cache_read=read, cache_write=marked - read)
