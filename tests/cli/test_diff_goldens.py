"""The forms of a difference as a whole, held against files that were read."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Said
    from tests.golden import Golden

FOLDER = Path(__file__).parent / "diffs"
DIGEST = re.compile(r"(?<=[(`\"])(?:[0-9a-f]{64}|[0-9a-f]{12})(?=[)`\"])")
FORMS = {"text": "expected.txt", "json": "expected.json", "markdown": "expected.md"}


@pytest.mark.parametrize("form", FORMS)
def test_a_difference_is_shown_in_each_format(
    say: Callable[..., Said], golden: Golden, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """Two versions of one plan with a change of every common kind, outside of any CI system."""
    for name in ("CI", "GITHUB_REF", "GITHUB_EVENT_NAME", "NO_COLOR", "FORCE_COLOR", "PYPI_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(FOLDER)
    said = say("diff", "old.yml", "new.yml", "--format", form)
    assert (said.code, said.err) == (0, "")
    output = DIGEST.sub("DIGEST", said.out)
    if form == "json":
        output = json.dumps(json.loads(output), indent=2, ensure_ascii=False) + "\n"
    golden(FOLDER / FORMS[form], output)
