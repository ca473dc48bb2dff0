"""One table describes each key of a plan: a key that is missing in it, or in a place that reads it, fails here."""

from __future__ import annotations

import pytest
import yaml

from planrun.diff import plans as diff
from planrun.model.plan import Plan, Step
from planrun.plan.compile.step import READ
from planrun.plan.keys import formulas
from planrun.plan.keys.table import PLAN, PLAN_FIELDS, STEP, STEP_FIELDS, Key, module
from planrun.plan.load import load_bytes
from planrun.plan.schema.step import Step as WrittenStep
from planrun.plan.tables import OBJECTS
from planrun.reports.describe import step_data

ROWS = [*STEP.values(), *PLAN.values()]
# What the compiler itself reads: ids, edges and conditions, and what a plan has once.
OWN_FORMS = frozenset(
    (
        "",
        "id",
        "edges",
        "tree",
        "steps",
        "axes",
        "rollback",
        "params",
        "limits",
        "policy",
        "llm",
        "mcp",
        "notify",
        "resume",
        "search",
    )
)
# Keys that need another one.
BESIDE: dict[str, dict[str, object]] = {
    "criteria": {"expect": [{"files_exist": "."}]},
    "verify_timeout": {"verify": "true"},
}
EXAMPLES = {field.alias or name: field.examples or [] for name, field in WrittenStep.model_fields.items()}
SHARED = [row for row in STEP.values() if row.form in READ]


def test_every_key_of_the_language_has_a_row() -> None:
    """The table and the models that the schema is made of name the same keys."""
    assert set(STEP) == set(OBJECTS["Step"])
    assert set(PLAN) == set(OBJECTS["Plan"])


def test_every_field_of_a_step_and_of_a_plan_has_a_row() -> None:
    """A field without a row would have no canonical form, and no place in a diff."""
    assert set(STEP_FIELDS) == set(Step.__annotations__)
    assert set(PLAN_FIELDS) == set(Plan.__annotations__)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.key)
def test_each_row_names_what_there_is(row: Key) -> None:
    """Forms, modules and kinds of text are looked up by name when a plan has the key."""
    compiled = getattr(module(row.module), "COMPILE", {}) if row.module else {}
    assert row.form in READ or row.form in OWN_FORMS or row.key in compiled
    assert row.holds in ("", "literal") or row.holds in formulas.PLACES
    if row.module:
        assert any(hasattr(module(row.module), name) for name in ("take", "find", "check"))


@pytest.mark.parametrize("row", SHARED, ids=lambda row: row.key)
def test_a_key_is_compiled_counted_compared_and_shown(row: Key) -> None:
    """The example of each key with a shared form reaches the plan, the digest, the diff and `show --json`."""
    [example] = EXAMPLES[row.key]
    bare, full = _step({}, row.key), _step({row.key: example}, row.key)
    assert getattr(full[1], row.field) != getattr(Step, row.field)
    assert (full[0] != bare[0]) is row.digest
    if row.diff and row.digest:
        assert diff.of_step(full[1])[row.key] != diff.of_step(bare[1]).get(row.key)
    if row.shown:
        assert step_data(full[1])[row.shown] != step_data(bare[1])[row.shown]


def _step(keys: dict[str, object], about: str) -> tuple[str, Step]:
    """Return the digest of a plan and its last step, which has these keys and those that they need."""
    written = {"id": "last", "run": "true", **BESIDE.get(about, {}), **keys}
    steps = [{"id": name, "run": "true"} for name in ("test", "build")]
    document = {"version": 1, "secrets": ["PYPI_TOKEN"], "steps": [*steps, written]}
    plan = load_bytes(yaml.safe_dump(document).encode(), "plan.yml", cache=False)
    return plan.digest, plan.steps[-1]
