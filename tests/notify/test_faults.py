"""A fault of planrun itself while it notifies or asks: it is named, and the run goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from planrun.approval.prompt import Prompt
from planrun.notify.notifier import Notifier
from planrun.notify.orders import Place

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import pytest


def test_a_fault_of_the_notifier_ends_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It writes a warning, masked as all that planrun writes."""

    class Masks:
        def mask_text(self, text: str) -> str:
            return text.replace("hush", "***")

    def fails(*_: object) -> None:
        raise RuntimeError("no hush here")

    monkeypatch.setattr("planrun.notify.notifier.ending", fails)
    monkeypatch.setattr("planrun.notify.notifier.is_waiting", bool)
    place = Place(workspace="", env={})
    notifier = Notifier([], str(tmp_path), place, masks=cast("Any", Masks()))
    notifier.finish(cast("Any", None), 1, {})
    assert capsys.readouterr().err == ("planrun: warning: notifications stopped: RuntimeError: no *** here\n")
    assert notifier.tick() is None


def test_a_fault_of_the_prompt_ends_no_run() -> None:
    """It asks no more; the gate stays open for others."""
    said: list[str] = []

    class Board:
        def say(self, lines: Iterable[str]) -> None:
            said.extend(lines)

        def ask(self, *parts: str) -> None:
            """Show nothing."""

    class Terminal:
        descriptor = 0
        continued = False

        def open(self) -> None:
            """Do nothing."""

        @property
        def is_foreground(self) -> bool:
            raise RuntimeError("no terminal")

    anything = cast("Any", None)
    prompt = Prompt(cast("Any", Terminal()), cast("Any", Board()), anything, anything, ("me", None))
    assert prompt.poll(anything) == []
    assert said[0] == "planrun cannot ask here: RuntimeError: no terminal"
    assert not prompt.is_asking(anything)
