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


def test_verbose_shows_the_commands_as_they_start(say: Callable[..., Said], tmp_path: Path) -> None:
    """Each line of a script stands behind `$`, with names of values as the plan has them; checks have none."""
    (tmp_path / "plan.yml").write_text(
        "version: 1\nparams: {who: {type: string, default: Ada}}\nsteps:\n"
        "  - id: greet\n    run: |\n      echo begins\n      echo \"$W\"\n    env: {W: '${{ params.who }}'}\n"
        "  - {id: look, depends_on: [greet], exec: [echo, '${{ params.who }}']}\n"
        "  - {id: check, depends_on: [look], validate: [{files_exist: plan.yml}]}\n"
    )
    said = say("run", "--verbose")
    assert said.code == 0
    shown = [row for row in said.err.splitlines() if "$" in row]
    assert shown == ["greet $ echo begins", '      $ echo "$W"', "look $ echo '${{ params.who }}'"]
    assert "$" not in say("run").err
