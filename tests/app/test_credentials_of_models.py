"""Steps of a run that may ask a model do not get its credentials, whatever they inherit."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Command

KEY = "sk-" + os.urandom(12).hex()
PLAN = """\
version: 1
defaults: {{inherit_env: {inherit}}}
{llm}
steps:
  - id: a
    run: echo "k=${{ANTHROPIC_API_KEY-none}} t=${{ANTHROPIC_IDENTITY_TOKEN_FILE-none}} o=${{OTHER_TOKEN-none}}"
"""
ENV = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_IDENTITY_TOKEN_FILE": "/run/token", "OTHER_TOKEN": "plain-other"}


@pytest.mark.parametrize(
    ("inherit", "llm", "options", "seen"),
    [
        ("all", "llm: {model: m}", [], "k=none t=none o=***"),
        ("all", "", ["--llm-model", "m"], "k=none t=none o=***"),
        ("all", "", [], "k=*** t=/run/token o=***"),
        ("safe", "llm: {model: m}", [], "k=none t=none o=none"),
    ],
)
def test_steps_do_not_get_the_credentials_of_a_model(
    planrun: Command, inherit: str, llm: str, options: list[str], seen: str
) -> None:
    """With `inherit_env: all`, too, the key stays with planrun when a model may be asked, and is masked everywhere."""
    (planrun.folder / "plan.yml").write_text(PLAN.format(inherit=inherit, llm=llm))
    done = planrun("execute", "plan.yml", "--logs", "all", *options, env=ENV)
    assert done.returncode == 0
    assert f"| {seen}\n" in done.stdout
    assert KEY not in done.stdout + done.stderr
    for file in planrun.folder.rglob("*"):
        if file.is_file() and file.name != "plan.yml":
            assert KEY.encode() not in file.read_bytes(), file
