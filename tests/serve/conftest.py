"""Runs that go on while a page shows them."""

from __future__ import annotations

from tests.live.conftest import going

__all__ = ["going"]
