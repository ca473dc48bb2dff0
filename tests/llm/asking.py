"""What tests of calls share: a question, a process for a fake service, and waiting for a fact."""

from __future__ import annotations

import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planrun.llm.credentials import endpoint_of
from planrun.llm.process import ModelProcess
from planrun.model.call import Answer, Request
from planrun.secrets.masker import Masker
from tests.fakes.messages import KEY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

PATIENCE = 120.0
"""Seconds to wait for a fact that comes in one, on a machine that nobody else uses."""
MASK = Masker({"key": KEY}).mask_text
ENVIRON = {"PATH": "/usr/bin:/bin", "ANTHROPIC_API_KEY": KEY}


def question(text: str = "Build it.", **fields: Any) -> Request:
    """Return a request about a text, with some fields changed."""
    asked: dict[str, Any] = {
        "purpose": "generate",
        "model": "model-a",
        "system": ("You write plans.", "Never more than ten steps."),
        "messages": ({"role": "user", "content": text},),
        "max_tokens": 800,
        "seconds": PATIENCE,
        "retries": 0,
        **fields,
    }
    return Request(**asked)


@contextmanager
def calling(url: str, environ: Mapping[str, str] = ENVIRON, wake: int = -1) -> Iterator[ModelProcess]:
    """Give a process that asks at an address, and end it."""
    model = ModelProcess(endpoint_of(url, environ), wake=wake, backoff=0.02, mask=MASK)
    try:
        yield model
    finally:
        model.close()


def answer_to(model: ModelProcess, request: Request) -> Answer:
    """Ask and return the answer."""
    model.ask(request)
    return answer_of(model)


def answer_of(model: ModelProcess) -> Answer:
    """Return the answer to what was asked."""
    answer = model.wait(None)
    assert answer is not None
    return answer


def until(fact: Callable[[], object], about: str) -> None:
    """Wait until something is so."""
    end = time.monotonic() + PATIENCE
    while not fact():
        assert time.monotonic() < end, f"never: {about}"
        time.sleep(0.02)


def is_gone(pid: int) -> bool:
    """Whether a process has ended, reaped or not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("Z")
    except (FileNotFoundError, ProcessLookupError):
        return True
