"""A sound plan with random parts replaced, removed or moved: always a plan or problems, never anything else."""

from __future__ import annotations

from copy import deepcopy
from random import Random
from typing import Any

import pytest

from planrun.errors import InvalidPlan
from planrun.model.jsontext import dumps
from planrun.plan.load import load_bytes
from planrun.plan.problems import CODES, Problem

PLAN: dict[str, Any] = {
    "version": 1,
    "params": {
        "target": {"type": "string", "enum": ["staging", "prod"], "default": "staging"},
        "version": {"type": "string", "pattern": "^[0-9]+$", "required": True},
        "shape": {"type": "object", "default": {"a": 1}, "properties": {"a": {"type": "integer"}}},
    },
    "env": {"A": "1", "B": "${{ params.target }}"},
    "outputs": {"n": "${{ default(steps.a.outputs.n, '') }}"},
    "defaults": {"timeout": "10m", "retries": 0, "shell": "bash", "on_failure": "block"},
    "limits": {"max_parallel": 4, "deadline": "1h", "max_steps": 500},
    "steps": [
        {
            "id": "a",
            "run": "echo ${{ params.version | sh }}",
            "on_failure": "continue",
            "outputs": {"n": "string", "m": {"type": "integer", "default": 2}},
            "retries": {"max": 2, "backoff": {"initial": "2s"}, "on": ["timeout", {"exit": [75]}]},
        },
        {
            "id": "b",
            "depends_on": {"a": "failed"},
            "recovers": ["a"],
            "run": "fix",
            "condition": "step_a_failed",
        },
        {
            "id": "c",
            "depends_on": ["a", "b"],
            "condition": "params.target == 'prod' and run.ci",
            "exec": ["ls", "${{ default(steps.a.outputs.m, 3) }}"],
            "env": {"X": "${{ step.dir }}"},
        },
        {
            "id": "d",
            "depends_on": ["c"],
            "validate": [{"files_exist": ["a"]}, {"that": "steps.c.status == 'completed'"}],
        },
    ],
    "finally": [
        {"id": "z", "run": "tar"},
        {"depends_on": {"z": "done"}, "run": "x", "condition": "step_a_failed"},
    ],
}
VALUES: list[Any] = [
    None, True, 0, -1, 3.1, "", "a", "${{", "${{ params.x }}", "${{ steps.a.outputs.n }}", "step_a_failed", "steps",
    "steps.a.outputs.n == 'x'", [], {}, ["a"], [["a"]], {"a": "b"}, {"a": {"b": "c"}}, "5m", "bash 'x", "é", "a\nb",
    [None], {"x": None}, "params['target']['x']", "item[0]", "fromjson(params.target).x",
]  # fmt: skip
KEYS = (
    "id",
    "run",
    "exec",
    "condition",
    "depends_on",
    "recovers",
    "env",
    "outputs",
    "validate",
    "shell",
    "params",
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Return every container in a value with each of its keys or indexes."""
    inner = (
        list(value.items() if isinstance(value, dict) else enumerate(value))
        if isinstance(value, dict | list)
        else []
    )
    return [(value, key) for key, _ in inner] + [place for _, item in inner for place in places(item)]


def mutated(chance: Random) -> dict[str, Any]:
    """Return the plan with one to three parts changed."""
    plan = deepcopy(PLAN)
    for _ in range(chance.randint(1, 3)):
        holder, key = chance.choice(places(plan))
        what = chance.random()
        if what < 0.5:
            holder[key] = deepcopy(chance.choice(VALUES))
        elif what < 0.7:
            del holder[key]
        elif what < 0.9:
            other, name = chance.choice(places(plan))
            holder[key] = deepcopy(other[name])
        elif isinstance(holder, dict):
            holder[chance.choice(KEYS)] = deepcopy(chance.choice(VALUES))
    return plan


def test_the_plan_itself_is_sound() -> None:
    """Without that, the mutations would show little."""
    assert len(load_bytes(dumps(PLAN).encode(), "plan.yml", cache=False).steps) == 6


@pytest.mark.parametrize("seed", range(8))
def test_every_mutation_is_a_plan_or_has_problems(seed: int) -> None:
    """Each of 100 mutations loads, or is refused with known codes and real places."""
    chance = Random(seed)
    for _ in range(100):
        data = dumps(mutated(chance)).encode()
        try:
            load_bytes(data, "plan.yml", cache=False)
        except InvalidPlan as error:
            for problem in error.problems:
                assert isinstance(problem, Problem)
                assert problem.code in CODES
                assert 1 <= problem.line <= 2
                assert 1 <= problem.col <= len(data) + 1
