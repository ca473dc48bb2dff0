"""What the tests of the library's behaviour share: clients that are closed, and an environment that says nothing."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.fakes.sdk import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import anthropic

    from tests.fakes.messages import FakeMessages
    from tests.fakes.sdk import Clients


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Leave nothing in the environment and in files that the library would take for itself."""
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "ANTHROPIC_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def connect(bare: None) -> Iterator[Clients]:  # noqa: ARG001 -- a fixture that it needs
    """Give clients of the library that are closed afterwards; they repeat a request only when a test asks for it."""
    import anthropic  # takes a second or more

    opened: list[anthropic.Anthropic] = []

    def make(api: FakeMessages, **fields: Any) -> anthropic.Anthropic:
        given = {"base_url": api.url, "api_key": api.key, "max_retries": 0, "timeout": PATIENCE, **fields}
        opened.append(anthropic.Anthropic(**given))
        return opened[-1]

    yield make
    for client in opened:
        client.close()


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Have this thread's pauses noted in place of made."""
    pauses: list[float] = []
    here, real = threading.get_ident(), time.sleep
    monkeypatch.setattr(
        time,
        "sleep",
        lambda seconds: pauses.append(seconds) if threading.get_ident() == here else real(seconds),
    )
    return pauses
