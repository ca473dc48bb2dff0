"""What tests of recordings need: a model that says what it was told to, and requests."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from planrun.llm import drafts
from planrun.llm.recordings import RecordingModel, ReplayModel
from planrun.model.call import Answer, Repeat, Request, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path


class ScriptedModel:
    """Answers in order; `asked` are the requests that reached it."""

    def __init__(self, answers: Iterable[Answer]) -> None:
        self.asked: list[Request] = []
        self.closed = False
        self._answers = iter(answers)
        self._stopped = False

    def ask(self, request: Request) -> None:
        """Take note of a request."""
        self.asked.append(request)
        self._stopped = False

    def repeats(self) -> list[Repeat]:
        """Return none."""
        return []

    def wait(self, timeout: float | None) -> Answer | None:
        """Return the next answer."""
        answer = next(self._answers)
        return Answer(ending="stopped", usage=answer.usage) if self._stopped else answer

    def stop(self) -> None:
        """Have the next answer be a stopped one."""
        self._stopped = True

    def close(self) -> None:
        """Take note of it."""
        self.closed = True


def draft(*ids: str, **fields: Any) -> dict[str, Any]:
    """Return a draft with steps of these ids, as data."""
    empty: dict[str, Any] = {"string": "", "array": [], "integer": 0}
    form = drafts.STEPS.schema()
    whole = {name: empty[one["type"]] for name, one in form["properties"].items()}
    keys = form["properties"]["steps"]["items"]["properties"]
    step = {name: empty[one["type"]] for name, one in keys.items()}
    steps = [{**step, "id": id, "run": f"make {id}\n\ntest -e {id}\n"} for id in ids]  # noqa: A001
    return {**whole, "analysis": "It is done step by step.", "steps": steps, **fields}


def said(text: str | dict[str, Any], **fields: Any) -> Answer:
    """Return an answer with a text, or with data as compact JSON."""
    if not isinstance(text, str):
        text = json.dumps(text, ensure_ascii=False, separators=(",", ":"))
    fields = {"usage": Usage(input_tokens=120, output_tokens=34), "model": "model-a-20260101", **fields}
    return Answer(ending="answered", text=text, stop_reason="end_turn", duration=1.25, **fields)


def asked(prompt: str = "Ship it.", **fields: Any) -> Request:
    """Return a request."""
    given: dict[str, Any] = {
        "purpose": "generate",
        "model": "model-a",
        "system": ("You write plans.\nShort ones.\n",),
        "messages": ({"role": "user", "content": prompt},),
        "max_tokens": 8000,
        "schema": drafts.STEPS.schema(),
        "effort": "medium",
    }
    return Request(**{**given, **fields})


def recorded(
    folder: Path, calls: Sequence[tuple[Request, Answer]], mask: Callable[[str], str] | None = None
) -> list[Answer]:
    """Record calls into a folder and return what was handed on."""
    recorder = RecordingModel(ScriptedModel(answer for _, answer in calls), str(folder), mask)
    try:
        return [one(recorder, request) for request, _ in calls]
    finally:
        recorder.close()


def one(model: ReplayModel | RecordingModel, request: Request) -> Answer:
    """Ask, and return the answer."""
    model.ask(request)
    answer = model.wait(None)
    assert answer is not None
    return answer
