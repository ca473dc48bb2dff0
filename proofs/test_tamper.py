"""The short form of the proof that whatever is changed in a ledger is found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from proofs import tamper

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The ledger of a small real run."""
    folder: Path = tmp_path_factory.mktemp("tamper")
    return tamper.real_ledger(folder.resolve(), lines=12)


@pytest.mark.shows("R8")
@pytest.mark.parametrize("kind", tamper.KINDS)
def test_every_change_is_found_and_its_line_named(ledger: bytes, kind: str, seed: int) -> None:
    """Every byte changed, every line exchanged, left out, doubled and written anew, every cut."""
    _, count, problems = tamper.check(ledger, kind, range(len(ledger)), seed=seed)
    assert problems == []
    assert count >= ledger.count(b"\n")


@pytest.mark.parametrize("fault", tamper.CAUGHT_BY)
def test_the_proof_can_fail(ledger: bytes, fault: str) -> None:
    """Each planted fault is found by the changes that are made for it."""
    assert tamper.is_caught(fault, ledger)
