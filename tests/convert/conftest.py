"""Files of other tools, converted in this process."""

from __future__ import annotations

from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from planrun.app.converting.converting import Converted, Order, convert

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def made(tmp_path: Path) -> Callable[..., Converted]:
    """Give the test a conversion of a text, which is written to a file before."""

    def make(text: str, *accepted: str, source: str = "", jobs: tuple[str, ...] = ()) -> Converted:
        path = tmp_path / "source.yml"
        path.write_text(dedent(text), encoding="utf-8")
        return convert(Order(file=str(path), source=source, accepted=accepted, jobs=jobs))

    return make
