"""`ledger.json` is valid for its schema and matches the run."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import jsonschema

from planrun.model.state import RunState
from planrun.reports.ledgerjson import write_ledger
from tests.reports.runs import DIGEST, RUN, Story, mixed_run, step

SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "ledger.schema.json").read_bytes())


NONE = dict.fromkeys(
    (
        "input_tokens",
        "output_tokens",
        "cache_read_tokens",
        "cache_write_tokens",
        "unconfirmed_tokens",
        "usd",
    ),
    0,
)


def ledger(state: RunState) -> dict[str, Any]:
    """Return the object, checked against the schema."""
    out = io.BytesIO()
    write_ledger(state, out)
    value = json.loads(out.getvalue())
    jsonschema.Draft7Validator(SCHEMA).validate(value)
    assert isinstance(value, dict)
    return value


def objects(schema: object) -> list[dict[str, Any]]:
    """Every schema with properties, at any depth."""
    if isinstance(schema, list):
        return [found for item in schema for found in objects(item)]
    if not isinstance(schema, dict):
        return []
    below = [found for item in schema.values() for found in objects(item)]
    return [schema, *below] if "properties" in schema else below


def test_the_schema_is_one_and_describes_every_key() -> None:
    """Valid draft-07, a description at every key; keys that are not required belong to objects that say so."""
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    for found in objects(SCHEMA):
        optional = set(found["properties"]) - set(found["required"])
        assert not optional or "$comment" in found
        assert all(part.get("description") for part in found["properties"].values())


def test_a_finished_run(tmp_path: Path) -> None:
    """Run, summary, steps and attempts stand where scripts look for them."""
    value = ledger(mixed_run(tmp_path))
    steps = {found.pop("id"): found for found in value.pop("steps")}
    moves = [move["status"] for move in value.pop("lifecycle")]
    assert moves == ["draft", "awaiting_approval", "approved", "executing", "failed"]
    assert value == {
        "schema_version": 1,
        "run_id": RUN,
        "plan": {
            "name": "release",
            "version": 1,
            "digest": DIGEST,
            "file": "plans/release.yml",
            "goal": "",
            "versions": [],
        },
        "status": "failed",
        "verdict": "failed",
        "exit_code": 1,
        "started_at": "2026-01-31T09:00:00.000Z",
        "ended_at": "2026-01-31T09:00:52.100Z",
        "duration_s": 52.1,
        "policy": {
            "source": "default",
            "auto_approve": "high",
            "llm_auto_approve": "low",
            "ask_for": "steps",
            "rules": 0,
            "option": "",
            "ceilings": [],
        },
        "risk": {
            "overall": "high",
            "destructive": [],
            "modifies": ["build"],
            "external": ["fetch"],
            "unknown": [],
        },
        "notifications": [],
        "shard": None,
        "sandboxes": {},
        "gates": [],
        "approvals": [],
        "usage": NONE,
        "llm": None,
        "agents": [],
        "rounds": [],
        "hooks": [],
        "collaboration": None,
        "outputs": {},
        "outputs_error": "",
        "summary": {"total": 9, "completed": 3, "failed": 3, "skipped": 2, "blocked": 1, "cancelled": 0},
        "rollback": {"status": "none", "steps": []},
        "rollback_failed": False,
    }
    attempt = steps["fetch"].pop("attempts")[0]
    assert steps["fetch"] == {
        "members": [],
        "group": None,
        "matrix": {},
        "item": None,
        "title": "",
        "kind": "run",
        "section": "steps",
        "origin": "file",
        "risk": "medium",
        "risk_reason": "`curl`: fetches over the network",
        "effects": ["network"],
        "decision": {"answer": "allow", "rule": "default:auto_approve"},
        "status": "failed",
        "reason": "timeout",
        "flaky": False,
        "depends_on": [],
        "replaces": [],
        "criteria": [],
        "outputs": {},
        "estimated_tokens": 0,
        "usage": NONE,
        "cache": None,
    }
    assert attempt == {
        "n": 1,
        "status": "failed",
        "reason": "timeout",
        "exit_code": 143,
        "started_at": "2026-01-31T09:00:15.500Z",
        "ended_at": "2026-01-31T09:00:45.500Z",
        "duration_s": 30.0,
        "log": "logs/fetch/1.log",
        "log_bytes": 8,
        "log_sha256": None,
        "error": {"class": "transient", "rule": "reason:timeout", "message": "ran longer than 30.0s"},
        "usage": NONE,
        "checks": [],
        "tools": [],
        "files": [],
        "resources": [],
        "reports": {},
    }
    assert steps["deploy"]["decision"] is None
    assert steps["build"]["outputs"] == {"wheel": "dist/a.whl", "n": 3}
    assert steps["test"]["flaky"]
    assert [found["status"] for found in steps["test"]["attempts"]] == ["failed", "completed"]
    assert steps["deploy"]["depends_on"] == ["integration"]
    assert steps["collect"]["section"] == "finally"


def test_a_killed_run(tmp_path: Path) -> None:
    """What is not known yet is null."""
    story = Story(tmp_path, step("a"), step("b", "a"))
    story.start("a")
    value = ledger(story.state)
    assert (value["status"], value["verdict"], value["exit_code"]) == ("executing", None, None)
    assert (value["ended_at"], value["duration_s"]) == (None, None)
    attempt = value["steps"][0]["attempts"][0]
    assert (attempt["status"], attempt["ended_at"], attempt["exit_code"]) == ("running", None, None)
    assert value["steps"][1]["status"] == "pending"


def test_usage_adds_up(tmp_path: Path) -> None:
    """Tokens of all attempts are summed for the run."""
    story = Story(tmp_path, step("a"), step("b"))
    story.run("a", usage={"input_tokens": 1000, "output_tokens": 200, "usd": 0.25})
    story.run("b", usage={"input_tokens": 1})
    value = ledger(story.end())
    assert value["usage"] == NONE | {"input_tokens": 1001, "output_tokens": 200, "usd": 0.25}
    assert value["steps"][1]["attempts"][0]["usage"] == NONE | {"input_tokens": 1}
    assert value["steps"][0]["usage"] == NONE | {"input_tokens": 1000, "output_tokens": 200, "usd": 0.25}


def test_one_step_a_line(tmp_path: Path) -> None:
    """Line tools can read it: the run, then a line for each step."""
    out = io.BytesIO()
    write_ledger(mixed_run(tmp_path), out)
    rows = out.getvalue().decode().splitlines()
    assert len(rows) == 1 + 9 + 1
    assert all(json.loads(row.rstrip(",")) for row in rows[1:-1])


def test_half_a_character_is_spelled_out(tmp_path: Path) -> None:
    """A name that is no UTF-8 has its bytes spelled out, since strict readers refuse the whole document otherwise."""
    story = Story(tmp_path, step("a", title="half \udce9, \\udce9, \U0001f600"), file="caf\udce9.yml")
    out = io.BytesIO()
    write_ledger(story.run("a").end(), out)
    value = json.loads(out.getvalue())
    assert value["plan"]["file"] == "caf\\xe9.yml"
    assert value["steps"][0]["title"] == "half \\xe9, \\udce9, \U0001f600"
    json.dumps(value, ensure_ascii=False).encode()


def test_a_plan_without_steps_is_well_formed(tmp_path: Path) -> None:
    """Nothing to report is reported."""
    assert ledger(Story(tmp_path).end())["steps"] == []
