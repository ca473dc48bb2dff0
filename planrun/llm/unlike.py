"""What a question that nobody recorded has to do with those that somebody did: the nearest one, and the difference."""

from __future__ import annotations

import difflib
import json

from planrun.llm.keys import settled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from planrun.llm.entries import Entry
    from planrun.model.call import Request

_SHOWN = 12  # lines of a difference
_WIDTH = 120  # characters of one
_LINES = 4000  # of a request that are compared


def told(request: Request, entries: Sequence[Entry]) -> str:
    """Return what is missing: one line, then how the nearest recorded request differs, as a unified diff."""
    asked = _lines(request)
    same = [entry for entry in entries if entry.request.purpose == request.purpose] or list(entries)
    nearest = max(same, key=lambda entry: _likeness(asked, _lines(entry.request)))
    shown = list(_difference(_lines(nearest.request), asked))
    more = [f"… {len(shown) - _SHOWN} more lines"] if len(shown) > _SHOWN else []
    head = f"the recording has no answer to this {request.purpose} request; "
    head += f"the nearest is {nearest.file}, which differs in {_places(nearest.request, request)}:"
    return "\n".join([head, *shown[:_SHOWN], *more])


def _lines(request: Request) -> list[str]:
    """Return a request line by line, what differs from run to run left out."""
    lines = [f"model: {request.model}", f"effort: {request.effort}", f"max_tokens: {request.max_tokens}"]
    for message in settled(request.messages):
        content = message["content"]
        text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, indent=1)
        lines += [f"{message['role']}:", *text.split("\n")]
    for text in request.system:
        lines += ["system:", *text.split("\n")]
    schema = "" if request.schema is None else json.dumps(request.schema, indent=1, ensure_ascii=False)
    return [*lines, "schema:", *schema.split("\n")][:_LINES]


def _likeness(left: list[str], right: list[str]) -> float:
    matcher = difflib.SequenceMatcher(None, left, right, autojunk=False)
    return matcher.quick_ratio()


def _difference(recorded: list[str], asked: list[str]) -> Iterator[str]:
    for line in list(difflib.unified_diff(recorded, asked, "recorded", "asked", n=1, lineterm=""))[2:]:
        yield _shown(line)


def _shown(line: str) -> str:
    """Return a line cut to size, with what could steer a terminal made visible."""
    line = "".join([char if char.isprintable() else repr(char)[1:-1] for char in line])
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…"


def _places(recorded: Request, asked: Request) -> str:
    """Return which parts of two requests differ."""
    parts = [
        name
        for name in ("model", "effort", "max_tokens", "system", "schema")
        if getattr(recorded, name) != getattr(asked, name)
    ]
    old, new = settled(recorded.messages), settled(asked.messages)
    parts += [
        f"messages[{at}]" for at in range(max(len(old), len(new))) if old[at : at + 1] != new[at : at + 1]
    ]
    return ", ".join(parts[:4])
