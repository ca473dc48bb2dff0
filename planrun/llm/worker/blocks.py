"""The parts of an answer to a request with tools: texts, thoughts, and calls whose arguments come in pieces of JSON."""

from __future__ import annotations

import json
import re

from planrun.llm.worker.outcomes import Unusable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST_CALLS = 64  # of tools in one answer
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,200}\Z")


class Blocks:
    """Collects the parts of one answer in their order."""

    def __init__(self) -> None:
        self._parts: list[dict[str, Any]] = []
        self._arguments: dict[str, list[str]] = {}  # pieces of JSON, by the id of the call

    def begin_text(self) -> None:
        """Begin a text."""
        self._parts.append({"type": "text", "text": ""})

    def text(self, piece: str) -> None:
        """Add a piece to the text that is being read."""
        self._parts[-1]["text"] += piece

    def begin_thought(self, block: Any) -> None:
        """Begin a thought, which the next request of the conversation has to hold unchanged."""
        kind = str(block.type)
        if kind == "redacted_thinking":
            self._parts.append({"type": kind, "data": str(getattr(block, "data", ""))})
        else:
            fields = {name: str(getattr(block, name, None) or "") for name in ("thinking", "signature")}
            self._parts.append({"type": kind, **fields})

    def thought(self, name: str, piece: str) -> None:
        """Add a piece of the thought that is being read, or of its signature."""
        if self._parts and self._parts[-1]["type"] == "thinking":
            self._parts[-1][name] += piece

    def begin_call(self, block: Any) -> None:
        """Begin a call; raises Unusable for one that cannot be answered."""
        name, number = getattr(block, "name", None), getattr(block, "id", None)
        if not all(isinstance(word, str) and _NAME.match(word) for word in (name, number)):
            raise Unusable("tool_use:incomplete", "the model called a tool without a name or an id")
        if any(part.get("id") == number for part in self._parts):
            raise Unusable("tool_use:repeated", "the model called two tools under one id")
        if len(self._parts) >= MOST_CALLS:
            raise Unusable(
                "tool_use:count", f"the model called more than {MOST_CALLS} tools at once", repeat=0
            )
        self._parts.append({"type": "tool_use", "id": number, "name": name, "input": {}})
        self._arguments[str(number)] = []

    def arguments(self, piece: str) -> None:
        """Add a piece of the arguments of the call that is being read."""
        if self._parts and self._parts[-1]["type"] == "tool_use":
            self._arguments[self._parts[-1]["id"]].append(piece)

    def finished(self) -> tuple[dict[str, Any], ...]:
        """Return the parts of a whole answer, without empty texts.

        Raises Unusable when the arguments of a call are no JSON object. Only a whole answer is read: one that was cut
        off ends within its arguments.
        """
        for part in self._parts:
            if part["type"] != "tool_use":
                continue
            text = "".join(self._arguments[part["id"]])
            try:
                found = json.loads(text) if text.strip() else {}
            except (ValueError, RecursionError):
                found = None
            if not isinstance(found, dict):
                raise Unusable(
                    "tool_use:input", "the model called a tool with arguments that are no JSON object"
                )
            part["input"] = found
        return tuple([part for part in self._parts if part["type"] != "text" or part["text"].strip()])
