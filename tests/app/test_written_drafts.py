"""Whatever stands in a draft that may be read: planrun writes it so that no value becomes a key, a step or a bomb."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from planrun.approval.rules import Layers
from planrun.errors import InvalidInput, InvalidPlan
from planrun.llm.drafts import STEPS, Draft
from planrun.llm.plantext import step_text
from planrun.plan.edit.page import append_steps
from planrun.plan.kinds.command import Run
from planrun.plan.load import load_bytes
from planrun.planner.conversation import Refused
from planrun.planner.inspect import Bounds, inspect

BEFORE = b"""\
version: 1
policy: {auto_approve: medium}
steps:
  - id: test
    run: pytest -q
    on_failure: replan
  - {id: last, depends_on: [test], run: "true"}
finally:
  - {id: collect, run: "true"}
"""
PIECES = (
    "secrets: [PYPI_TOKEN]",
    "\n    risk: read-only\n",
    "\n- id: more\n  run: touch evil\n",
    "\nfinally:\n  - run: touch evil\n",
    "\n  - {id: more}\n",
    "policy: {llm_auto_approve: high}",
    "&a [*a, *a]",
    "<<: *a",
    "!!python/object/apply:os.system [ls]",
    "---\n",
    "...\n",
    "%YAML 1.1\n",
    "|\n",
    ">-\n  ",
    "# ",
    " #",
    ": ",
    "? ",
    "- ",
    '"',
    "'",
    "\\",
    "\\n",
    "{",
    "}",
    "[",
    "]",
    "*a",
    "&a",
    "@",
    "`",
    "%",
    "\n",
    "\t",
    "  ",
    "true",
    "null",
    "1e3",
    "0o17",
    "2026-01-01",
    "${{ params.x }}",
    "$${{",
    "}}",
    "word",
    "é",
)
TEXTS = st.lists(st.sampled_from(PIECES), max_size=6).map("".join)
LINES = TEXTS.map(lambda text: text.replace("\n", " ").replace("\t", " "))
CONDITIONS = st.one_of(st.sampled_from(["", "true", "run.ci and true"]), TEXTS)
WORDS = st.lists(st.sampled_from(["name", "other", "PATH", "secrets", "a: b"]), max_size=2)


@settings(derandomize=True, database=None, deadline=None, max_examples=200)
@given(title=LINES, description=TEXTS, run=TEXTS, condition=CONDITIONS, review=TEXTS, outputs=WORDS)
def test_no_text_becomes_anything_else(**said: Any) -> None:
    """The check refuses the plan, or the plan has one more step with exactly these texts."""
    step = {"id": "fix", **said, "depends_on": [], "replaces": ["test"], "estimated_tokens": 0}
    draft = STEPS.read(json.dumps({"analysis": "", "infeasible": "", "keep": ["last"], "steps": [step]}), 5)
    assert isinstance(draft, Draft)
    before = load_bytes(BEFORE, "plan.yml", cache=False)
    try:
        data = append_steps(BEFORE, "plan.yml", step_text(draft.steps[0], 0, {}))
        plan = load_bytes(data, "plan.yml", cache=False)
    except (InvalidPlan, InvalidInput):
        return
    plan = plan.but(steps=tuple(s.but(origin="replanned") for s in plan.steps))
    layers = Layers(plan=before.policy, file="plan.yml")
    bounds = Bounds(before=before, layers=layers, failed=frozenset(("test",)), pending=frozenset(("last",)))
    result = inspect(plan, ("fix",), bounds)
    assert not isinstance(result, Refused)
    assert [known.id for known in plan.steps] == ["test", "last", "fix", "collect"]
    fix = plan.steps[2]
    assert fix.title == said["title"]
    assert fix.description == said["description"]
    assert tuple(fix.outputs) == tuple(dict.fromkeys(said["outputs"]))
    assert not fix.secrets
    assert not fix.env
    if said["run"] and "${{" not in said["run"]:
        assert isinstance(fix.action, Run)
        assert fix.action.script == said["run"]
