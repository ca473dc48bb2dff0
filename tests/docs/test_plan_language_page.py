"""docs/plan-language.md describes what can be written, all of it and nothing else."""

from __future__ import annotations

import re
from typing import Any

import yaml

from planrun.actions.command import BASH, SH
from planrun.expressions.tree import FUNCTIONS, ROOTS
from planrun.plan.check.references import ENDS, FIELDS, RUN, STEP
from planrun.plan.schema.plan import Plan
from tests.docs.pages import blocks, keys_of, tables, text_of

PAGE = "plan-language.md"
# The parts of the schema that a plan can use today; all others are reached by keys that are not built yet.
BUILT = (
    "Plan", "Step", "Defaults", "Limits", "RetryPolicy", "RetryRule", "Backoff", "Check", "JsonSchemaCheck", "Param",
    "Value", "Matrix", "ForEach", "Ask", "Decide", "Option", "Policy", "Rule", "Matcher", "FailureRules", "Llm",
    "Cache", "Notification", "Webhook", "Slack", "Delegation", "Memory", "Messenger", "Reflection",
    "Sandbox", "SandboxNetwork", "Search",
    "Reports",
    "Produced",
    "Rollback",
    "Hooks",
    "Hook",
    "Resume",
    "Rounds",
    "Ready",
    "Template",
    "Extends",
    "Container",
    "SharedContainer",
    "SameInstance",
    "Agent",
    "AgentType",
    "Tools",
    "Web",
    "Mcp",
    "McpServer",
    "ServerTools",
)  # fmt: skip


def schema() -> dict[str, dict[str, Any]]:
    """Return the properties of each part of the schema by its name, marks of keys that are to come included."""
    whole = Plan.model_json_schema()
    parts = {name: part["properties"] for name, part in whole["$defs"].items() if "properties" in part}
    return {**parts, "Plan": whole["properties"]}


def described() -> dict[str, list[str]]:
    """Return the keys in the tables of the page by the part of the schema that the table is about."""
    found: dict[str, list[str]] = {}
    for parts, rows in tables(text_of(PAGE)):
        for part in parts:
            found.setdefault(part, []).extend(key for row in rows for key in keys_of(row[0]))
    return found


def test_every_built_key_is_described_once() -> None:
    """The tables name each key that is built, each once, and no other."""
    known = schema()
    found = described()
    assert set(found) == set(BUILT)
    for part in BUILT:
        built = list(known[part])
        assert sorted(found[part]) == sorted(built), part


def test_every_built_key_has_an_example() -> None:
    """Each key stands in at least one block of the page."""
    text = "\n".join(block.text for block in blocks("yaml") if block.page.endswith(PAGE))
    missing = {
        key
        for part in BUILT
        for key, value in schema()[part].items()
        if not re.search(rf"(?<![\w-]){re.escape(key)}:", text)
    }
    assert missing == set()


def test_words_and_numbers_of_the_schema_stand_on_the_page() -> None:
    """Where the schema allows a few words, the row of the key names exactly these; what is required says so."""
    known = schema()
    whole = Plan.model_json_schema()
    required = {name: part.get("required", []) for name, part in whole["$defs"].items()}
    required["Plan"] = whole["required"]
    for parts, rows in tables(text_of(PAGE)):
        for row in rows:
            (key,) = keys_of(row[0])
            spec = known[parts[0]][key]
            choices: dict[str, Any] = next((each for each in spec.get("anyOf", [spec]) if "enum" in each), {})
            if choices.get("type") == "string":
                assert [str(word) for word in keys_of(row[1])] == choices["enum"], row
            if len(row) == 4:
                assert (row[2] == "required") == (key in required[parts[0]]), row


def test_expressions_are_described() -> None:
    """Every function, name and field of the language is on the page, and no function that there is not."""
    text = text_of(PAGE)
    rows = re.findall(r"^\| `(\w+)\(.*?\)` \|", text, re.MULTILINE)
    assert sorted(rows) == sorted(FUNCTIONS)
    for root in ROOTS:
        assert f"`{root}" in text, root
    for name in (*RUN, *STEP):
        assert re.search(rf"`(run|step)\.{name}`", text), name
    for field in FIELDS:
        assert f"steps.ID.{field}" in text, field
    status = next(row for row in text.splitlines() if row.startswith("| `steps.ID.status`"))
    assert keys_of(status)[1:] == list(ENDS)


def test_the_default_shells_are_those_of_the_page() -> None:
    """The words before a script are the ones that the page names."""
    row = next(
        row for row in text_of(PAGE).splitlines() if row.startswith("| `shell` | text or list | `bash")
    )
    assert " ".join(BASH) in keys_of(row)
    assert " ".join(SH) in keys_of(row)


def test_limits_are_those_of_the_code() -> None:
    """Each number in the tables of limits is the constant that is held."""
    from planrun.expressions import functions, tree
    from planrun.plan import problems
    from planrun.plan.check import quoting
    from planrun.plan.compile import risks
    from planrun.plan.keys import formulas, fragments
    from planrun.plan.yaml import document, file
    from planrun.plan.yaml import document as budget

    def number(label: str) -> int:
        (found,) = re.findall(rf"^\| {re.escape(label)} \| ([\d,]+)", text_of(PAGE), re.MULTILINE)
        return int(found.replace(",", ""))

    assert number("size of the file") << 20 == file.MAX_BYTES
    assert number("levels of lists and mappings inside each other") == document.MAX_DEPTH
    assert number("keys and values in the file; a list counts as 2, a mapping as 5") == budget.FREE_NODES
    assert number("more of them for each step") == budget.STEP_NODES
    assert number("and never more than") == budget.MAX_NODES
    assert number("all different expressions, each with 55 besides its own") == formulas.MAX_PARSED
    assert number("quotes and brackets in scripts with `\\| sh`") == quoting.MAX_LOOKED_AT
    assert number("schemas inside of schemas, in all parameters and outputs") == fragments.MAX_SCHEMAS
    assert number("entries of one list or mapping") == document.MAX_ENTRIES
    assert number("anchors in the file") == document.MAX_ANCHORS
    assert number("values that aliases add") == document.MAX_EXPANDED
    assert number("problems reported for one file; warnings make room for errors") == problems.MAX_PROBLEMS
    assert number("one expression") == tree.MAX_TEXT
    assert number("interpolations in one text") == tree.MAX_PLACES
    assert number("operators and brackets inside each other") == tree.MAX_DEPTH
    assert number("a text that an expression makes, a value written as JSON") == tree.MAX_SIZE
    assert number("a text with all its values filled in") == tree.MAX_RENDERED
    label = (
        "commands whose risk is found before a run, each with 30 more; all others are `high` until they start"
    )
    assert number(label) == risks.MAX_LOOKED_AT
    assert number("`hash_files`") == functions._MAX_ENTRIES


def test_the_page_has_a_block_for_each_action() -> None:
    """The actions that are built each stand in a block that is a valid plan."""
    kinds = set()
    for block in blocks("yaml"):
        if block.page.endswith(PAGE) and not block.mark:
            data = yaml.safe_load(block.text)
            steps = data if isinstance(data, list) else data.get("steps", [])
            kinds |= {key for step in steps for key in step}
    assert {"run", "exec", "validate"} <= kinds
