"""The first lines of a run: which policy is in force, in as few words as the plan needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Said

COMMANDS = "version: 1\nsteps: [{id: a, run: 'true'}]\n"
ABSTRACT = "version: 1\nsteps: [{id: a, run: 'true'}, {id: b, description: Find a name}]\n"


@pytest.mark.parametrize(
    ("plan", "words", "policy"),
    [
        (COMMANDS, (), "none; all steps run without approval"),
        (
            ABSTRACT,
            ("--skip-abstract",),
            "none; all steps run without approval, model-written ones up to low",
        ),
        ("policy: {auto_approve: low}\n" + COMMANDS, (), "auto-approve low, model-written low (plan.yml:1)"),
    ],
)
def test_models_are_named_where_they_may_write_steps(
    say: Callable[..., Said], tmp_path: Path, plan: str, words: tuple[str, ...], policy: str
) -> None:
    """Without a policy a plan of commands alone says nothing of models."""
    (tmp_path / "plan.yml").write_text(plan)
    said = say("run", *words)
    assert said.code == 0
    assert f"\n  policy: {policy}\n" in said.err
