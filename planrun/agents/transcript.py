"""The conversation of an agent, kept in the folder of its run, so that another process can go on with it.

One JSON object a line: `began` (what stays the same: system text, tools and first messages), `said` (what the model
wrote), `result` (of a call), `note` (of planrun, behind the results of an answer), `told` (a message of planrun),
`compacted` (the old results that are left out), `shed` (all thoughts are left out). A line is complete in the file
before the ledger names its event. The conversation only grows: a service takes a thought back only behind the same
system text, tools and messages. What changes them leaves all thoughts out.
"""

from __future__ import annotations

import json
import os

from planrun.agents import compacting
from planrun.errors import InvalidInput
from planrun.folders import make_private
from planrun.opening import read_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class Transcript:
    """One conversation; `messages` is as the next request has it. `before`: an earlier one that it goes on with."""

    def __init__(self, path: str, first: str, before: Sequence[dict[str, Any]] = ()) -> None:
        self._path = path
        self._size = 0  # bytes of the whole lines in the file
        self.messages: list[dict[str, Any]] = [*before, {"role": "user", "content": first}]
        self.turns = 0  # answers of the model
        self.tokens = 0  # of the last request and its answer, as the service counted them
        self.results: dict[str, dict[str, Any]] = {}  # of the calls in the last answer, by id
        self.notes: list[str] = []  # on the calls in the last answer
        self.reminded = False
        self.todo: list[str] = []
        self.granted: list[str] = []
        self.plan_mode: bool | None = None  # as it is since a call; None: as the step begins
        self.began: dict[str, Any] = {}  # `system` and `tools` of every request

    def load(self) -> None:
        """Read what an earlier process wrote; a broken last line counts for nothing."""
        try:
            lines = read_record(self._path).split(b"\n")
        except FileNotFoundError:
            return
        for number, line in enumerate(lines[:-1], 1):
            try:
                self._take(json.loads(line))
            except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
                raise InvalidInput(f"{self._path}:{number}: no line of an agent's conversation") from None
            self._size += len(line) + 1

    def begin(self, system: Sequence[str], tools: Sequence[dict[str, Any]]) -> None:
        """Keep what every request of the conversation begins with, whatever changes before a resume."""
        self._add({"began": {"system": list(system), "tools": list(tools)}, "messages": self.messages})

    def compact(self, goal: int) -> int:
        """Leave old results and all thoughts out, down to so many tokens; returns how many results there are less."""
        count = compacting.compacted(self.messages, goal)[1]
        if count:
            self._add({"compacted": goal})
        return count

    def shed(self) -> bool:
        """Leave all thoughts out; whether there were some."""
        if not compacting.has_thoughts(self.messages):
            return False
        self._add({"shed": True})
        return True

    def said(self, content: list[dict[str, Any]], tokens: int) -> None:
        """Add an answer of the model."""
        self._add({"said": content, "tokens": tokens})

    def result(self, call: str, content: str, *, failed: bool, **own: Any) -> None:
        """Add the result of one call of the last answer; `own`: what it changed of the agent itself."""
        self._add({"result": call, "content": content, "failed": failed, **own})

    def note(self, text: str) -> None:
        """Add what the model gets behind the results of the last answer."""
        self._add({"note": text})

    def told(self, text: str, *, again: bool = False) -> None:
        """Add a message of planrun; `again`: the agent may be reminded once more."""
        self._add({"told": text, **({"again": True} if again else {})})

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The calls in the last answer, when their results are not sent yet."""
        last = self.messages[-1]
        if last["role"] != "assistant":
            return []
        return [block for block in last["content"] if block["type"] == "tool_use"]

    def close_turn(self) -> None:
        """Make the results of the last answer the next message; each call has one."""
        blocks = []
        for call in self.calls:
            result = self.results[call["id"]]
            failed = {"is_error": True} if result["failed"] else {}
            blocks.append(
                {"type": "tool_result", "tool_use_id": call["id"], "content": result["content"], **failed}
            )
        blocks += [{"type": "text", "text": note} for note in self.notes]
        self.messages.append({"role": "user", "content": blocks})
        self.results, self.notes = {}, []

    def _add(self, line: dict[str, Any]) -> None:
        make_private(os.path.dirname(self._path))
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.ftruncate(fd, self._size)  # without the broken line of an earlier process
            data = json.dumps(line).encode() + b"\n"
            while data:
                written = os.pwrite(fd, data, self._size)
                self._size += written
                data = data[written:]
        finally:
            os.close(fd)
        self._take(line)

    def _take(self, line: dict[str, Any]) -> None:
        if self.calls and {"said", "told", "compacted", "shed"} & line.keys():
            self.close_turn()
        if "said" in line:
            said = line["said"]
            has_more = any(part["type"] in ("text", "tool_use") for part in said)  # than thoughts
            self.messages.append({"role": "assistant", "content": said if has_more else [*said, _NOTHING]})
            self.turns += 1
            self.tokens = line["tokens"]
        elif "result" in line:
            self.results[line["result"]] = line
            self.todo = line.get("todo", self.todo)
            self.granted += line.get("granted", [])
            self.plan_mode = line.get("plan_mode", self.plan_mode)
        elif "note" in line:
            self.notes.append(line["note"])
        elif "began" in line:
            self.began, self.messages = line["began"], list(line["messages"])
        elif "compacted" in line:
            self.messages, self.tokens = compacting.compacted(self.messages, line["compacted"])[0], 0
        elif "shed" in line:
            self.messages = compacting.without_thoughts(self.messages)
        else:
            self.messages.append({"role": "user", "content": line["told"]})
            self.reminded = "again" not in line


_NOTHING = {"type": "text", "text": "(nothing)"}
