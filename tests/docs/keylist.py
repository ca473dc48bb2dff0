"""docs/reference/plan.md and ledger.md: every key of a plan and every field of ledger.json, from their schemas."""

from __future__ import annotations

import functools
import json
import re
from typing import Any

from planrun.plan.load import check_bytes
from planrun.plan.schema.plan import Plan
from planrun.plan.schema.step import ACTIONS
from tests.docs.pages import NOTHING, ROOT, TABLE, keys_of, tables, text_of

LANGUAGE = "plan-language.md"
# What says that a key has no meaning beside an action; anything else is about the probe and not about the two.
DENIALS = frozenset(("E102", "E208", "E209", "E252", "E267", "E268", "E271", "E284", "E292"))
FORMS = {
    "text": "text",
    "full": "text, not empty",
    "line": "line",
    "id": "id",
    "condition": "expression",
    "duration": "duration",
    "delay": "duration, 0 as well",
    "env": "name of a variable",
    "value": "text, number, true or false",
    "any": "anything",
    "version": "the number 1",
}
WORDS = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "object": "mapping",
    "array": "list",
    "null": "null",
}
HEAD = """\
# Every key of a plan

All keys of a plan file, part by part. [The plan language](../plan-language.md) explains these keys with
examples, and links lead there. Forms such as *line*, *id* and *duration* are
[defined there, too](../plan-language.md#the-file).

"""
LEDGER_HEAD = """\
# Every field of ledger.json

All fields of `planrun-out/ledger.json` and of the output of `planrun execute --json`, part by part, as in
[its schema](../../schemas/ledger.schema.json). [Records](../records.md) explain them.

"""


@functools.cache
def schema() -> dict[str, dict[str, Any]]:
    """Return each part of the plan language by its name, that of the file first."""
    whole = Plan.model_json_schema()
    parts = whole.pop("$defs")
    return {"Plan": whole, **{name: part for name, part in parts.items() if "properties" in part}}


def reached() -> list[str]:
    """Return the parts that can be written today, in the order in which keys lead to them."""
    found = ["Plan"]
    for name in found:
        for spec in schema()[name]["properties"].values():
            links = re.findall(r'"#/\$defs/(\w+)"', json.dumps(spec))
            found += [each for each in dict.fromkeys(links) if each not in found]
    return found


def type_of(spec: dict[str, Any]) -> str:
    """Say in words what a schema takes."""
    if "$ref" in spec:
        name = spec["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "enum" in spec or "const" in spec:
        words = spec["enum"] if "enum" in spec else [spec["const"]]
        return ", ".join("null" if word is None else f"`{word}`" for word in words)
    if spec.get("x-form") in FORMS and spec.get("type") != "object":
        return FORMS[spec["x-form"]]
    if "anyOf" in spec:
        return " or ".join(dict.fromkeys(type_of(each) for each in spec["anyOf"] if each != {"type": "null"}))
    if isinstance(spec.get("type"), list):
        return " or ".join(WORDS[word] for word in spec["type"])
    return _plain(spec)


def _plain(spec: dict[str, Any]) -> str:
    if spec.get("type") == "array" and spec.get("items"):
        return f"list ({type_of(spec['items'])})"
    if spec.get("type") == "object" and isinstance(spec.get("additionalProperties"), dict):
        return f"mapping ({type_of(spec['additionalProperties'])})"
    bounds = [
        f"{word} {spec[key]}"
        for word, key in (("from", "minimum"), ("to", "maximum"))
        if key in spec and spec[key] < 1_000_000_000
    ]
    return " ".join([WORDS[spec["type"]] if "type" in spec else "anything", *bounds])


@functools.cache
def left_out() -> dict[tuple[str, str], str]:
    """Return what the manual says that holds without a key, by part and key."""
    found = {}
    for parts, rows in tables(text_of(LANGUAGE)):
        for row in rows:
            if len(row) == 4:
                found.update({(part, key): row[2] for part in parts for key in keys_of(row[0])})
    return found


@functools.cache
def places() -> dict[tuple[str, str], str]:
    """Return the heading of the manual under which a key is described, as an anchor."""
    text = text_of(LANGUAGE)
    found: dict[tuple[str, str], str] = {}
    for table in TABLE.finditer(text):
        heading = re.findall(r"^#+ (.+)$", text[: table.start()], re.MULTILINE)[-1]
        anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        keys = [key for row in table[2].splitlines()[2:] for key in keys_of(row.split("|")[1])]
        found.update({(part, key): anchor for part in table[1].split() for key in keys})
    return found


def plan_page() -> str:
    """Return docs/reference/plan.md."""
    parts = [
        HEAD,
        "\n".join(f"- [{name}](#{name.lower()})" for name in reached()),
        "\n- [Actions](#actions)\n",
    ]
    for name in reached():
        part = schema()[name]
        parts.append(f"\n## {name}\n\n{_doc(part)}\n\n| Key | Type | Default | Example | Description |\n")
        parts.append("|---|---|---|---|---|\n")
        parts += [_row(name, key, spec) for key, spec in part["properties"].items()]
    return "".join([*parts, *_actions()])


def _doc(part: dict[str, Any]) -> str:
    return str(part["description"]).replace("\n", " ")


def _row(part: str, key: str, spec: dict[str, Any]) -> str:
    required = key in schema()[part].get("required", [])
    without = "required" if required else left_out().get((part, key), NOTHING)
    anchor = places().get((part, key))
    name = f"[`{key}`](../{LANGUAGE}#{anchor})" if anchor else f"`{key}`"
    example = json.dumps(spec["examples"][0], ensure_ascii=False) if spec.get("examples") else ""
    without = re.sub(r"\]\(#", f"](../{LANGUAGE}#", without)
    without = re.sub(r"\]\((?=[a-z-]+\.md)", "](../", without)
    kind = type_of(spec)
    cells = (name, kind, without, f"`{example}`" if example else "", spec["description"])
    return "| " + " | ".join(re.sub(r"(?<!\\)\|", r"\\|", cell) for cell in cells) + " |\n"


def _actions() -> list[str]:
    """Return the table of which key may stand beside which action, found by checking a plan for each pair."""
    step = schema()["Step"]["properties"]
    built = list(ACTIONS)
    keys = [key for key in step if key not in ACTIONS]
    head = (
        "\n## Actions\n\nWhich keys of a step may stand beside which action. Found by checking a plan for each pair; "
        "*yes* means that it is accepted.\n\n"
    )
    rows = [f"| Key | {' | '.join(f'`{action}`' for action in built)} |\n|---|{'---|' * len(built)}\n"]
    rows += [
        f"| `{key}` | {' | '.join('yes' if goes(key, each) else NOTHING for each in built)} |\n"
        for key in keys
    ]
    return [head, *rows]


def goes(key: str, action: str) -> bool:
    """Whether a step with this action may have this key."""
    step = schema()["Step"]["properties"]
    secrets = step["secrets"]["examples"][0]
    probe = {"id": "probe", action: step[action]["examples"][0]}
    probe[key] = step[key]["examples"][0]
    plan = {"version": 1, "secrets": secrets, "steps": [probe]}
    found = check_bytes(json.dumps(plan).encode(), "plan.yml").problems
    return not any(problem.code in DENIALS for problem in found)


def ledger_page() -> str:
    """Return docs/reference/ledger.md."""
    whole = json.loads((ROOT / "schemas" / "ledger.schema.json").read_text("utf-8"))
    parts = [LEDGER_HEAD, "## Run\n\n", *_fields(whole)]
    for name, part in whole["definitions"].items():
        parts.append(
            f"\n## {name}\n\n{part['description']}\n\n" if "description" in part else f"\n## {name}\n\n"
        )
        parts += _fields(part) if "properties" in part else [f"Type: {type_of(part)}\n"]
    return "".join(parts)


def _fields(part: dict[str, Any], before: str = "") -> list[str]:
    rows = [] if before else ["| Field | Type | Always there | What it is |\n|---|---|---|---|\n"]
    for key, spec in part["properties"].items():
        always = "yes" if key in part.get("required", []) else "no"
        what = spec.get("description", "").replace("|", "\\|")
        inner = spec.get("properties")
        kind = "mapping" if inner else type_of(spec)
        rows.append(f"| `{before}{key}` | {kind} | {always} | {what} |\n")
        rows += _fields(spec, f"{before}{key}.") if inner else []
    return rows
