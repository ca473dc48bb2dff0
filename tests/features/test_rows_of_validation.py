"""Rows of the acceptance table about plans that are refused, and about checks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Command

STEPS = "version: 1\nsteps:\n"


@pytest.mark.parametrize(
    ("plan", "told"),
    [
        pytest.param(
            STEPS + "  - {id: a, teleport: mars}\n",
            'plan.yml:3:13: error[E104]: unknown key "teleport" in step "a"',
            marks=pytest.mark.shows("N-19"),
        ),
        pytest.param(
            STEPS + "  - {id: a, args: {path: x}}\n",
            'plan.yml:3:13: error[E102]: "args" in step "a" requires "tool"',
            marks=pytest.mark.shows("N-21"),
        ),
        pytest.param(
            STEPS + "  - {id: a, tool: }\n",
            'plan.yml:3:13: error[E103]: "tool" in step "a" has no value',
            marks=pytest.mark.shows("N-21"),
        ),
        pytest.param(
            STEPS + "  - {id: a, tool: git.statsu}\n",
            'plan.yml:3:19: error[E270]: unknown tool "git.statsu" in step "a"; did you mean',
            marks=pytest.mark.shows("N-24"),
        ),
        pytest.param(
            "version: 1\nlimits: {max_steps: 1}\nsteps: [{run: 'true'}, {run: 'true'}]\n",
            "plan.yml:2:21: error[E240]: the plan has 2 steps; `max_steps` allows 1",
            marks=pytest.mark.shows("N-01"),
        ),
    ],
    ids=["kind", "tool", "name", "catalogue", "steps"],
)
def test_a_plan_is_refused_at_its_place(planrun: Command, tmp_path: Path, plan: str, told: str) -> None:
    """Unknown kinds, a tool step without its tool, unknown tools and too many steps are errors of the file."""
    (tmp_path / "plan.yml").write_text(plan)
    said = planrun("execute", "plan.yml")
    assert (said.returncode, told in said.stderr) == (2, True), said.stderr
    assert not (tmp_path / ".planrun").exists()


@pytest.mark.shows("V-23", "V-24", "V-25", "V-26", "N-13", "N-14", "D-52")
def test_bad_references_are_errors_and_never_dropped(planrun: Command, tmp_path: Path) -> None:
    """A missing step, a step that needs itself and a circle are told in one pass; nothing runs without them."""
    (tmp_path / "plan.yml").write_text(
        STEPS + "  - {id: a, run: touch ran, depends_on: [nowhere]}\n"
        "  - {id: b, run: touch ran, depends_on: [b]}\n"
        "  - {id: c, run: touch ran, depends_on: [d]}\n"
        "  - {id: d, run: touch ran, depends_on: [c]}\n"
    )
    said = planrun("execute", "plan.yml")
    assert said.returncode == 2
    assert 'error[E202]: step "a" depends on unknown step "nowhere"' in said.stderr
    assert 'error[E203]: step "b" depends on itself' in said.stderr
    assert "error[E204]: dependency cycle: c → d → c" in said.stderr
    assert not (tmp_path / "ran").exists()


@pytest.mark.shows("D-58", "N-16")
def test_checks_come_before_what_they_guard(planrun: Command, tmp_path: Path) -> None:
    """A `validate` step looks at the real workspace, and what depends on it runs only when all checks hold."""
    plan = (
        STEPS
        + "  - {id: ready, validate: [{files_exist: input}]}\n  - {id: go, depends_on: [ready], run: cat input}\n"
    )
    (tmp_path / "plan.yml").write_text(plan)
    said = planrun("execute", "plan.yml")
    assert (said.returncode, "missing: input" in said.stderr) == (1, True)
    assert "\nBlocked by ready: go\n" in said.stderr
    (tmp_path / "input").write_text("x\n")
    assert planrun("execute", "plan.yml").returncode == 0


@pytest.mark.shows("X-09")
@pytest.mark.parametrize(
    ("data", "code"),
    [
        pytest.param(b"#" * (8 * 1024 * 1024 + 1), "E003", id="size"),
        pytest.param(b"version: 1\nx-deep: " + b"[" * 65 + b"]" * 65 + b"\n", "E012", id="depth"),
        pytest.param(b"version: 1\nx-many: [" + b"1," * 140_000 + b"]\n", "E021", id="entries"),
    ],
)
def test_plans_are_bounded(planrun: Command, tmp_path: Path, data: bytes, code: str) -> None:
    """A plan that is too large, too deep or too long is refused by name."""
    (tmp_path / "plan.yml").write_bytes(data)
    said = planrun("validate", "plan.yml", "--json")
    assert said.returncode == 2
    assert code in {problem["code"] for problem in json.loads(said.stdout)["problems"]}
