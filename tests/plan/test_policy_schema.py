"""The schema of policy files, as `planrun schema policy` prints it, agrees with `planrun validate --policy`."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from planrun.plan.schema.__main__ import POLICY, generated
from tests.plan.test_policy_files import WRONG

PLANRUN = str(Path(sysconfig.get_path("scripts")) / "planrun")
GOOD = {
    "level": "auto_approve: low\n",
    "under policy": "policy:\n  auto_approve: medium\n  llm_auto_approve: none\n",
    "preset": "preset: careful\n",
    "plan": "{ask_for: plan}\n",
    "rules": "rules:\n  - deny: {words: prod, event: pull_request}\n  - require: {risk: [medium, high], step: '*'}\n"
    "  - allow: {command: pytest *, tool: [run, exec]}\n",
    "answers": "decisions: {store: redis, sure: true, n: 3}\n",
    "failures": "on_failure: {read-only: continue, reversible: ask, otherwise: abort}\n",
}
BAD = {
    "list": "[]\n",
    "text": "low\n",
    "policy without value": "policy:\n",
    "policy is a list": "policy: []\n",
    "policy twice nested": "policy: {policy: {auto_approve: low}}\n",
    "two verbs": "rules: [{deny: {step: a}, allow: {step: b}}]\n",
    "no rules": "rules: []\n",
    "no words": "rules: [{deny: {words: []}}]\n",
    "unknown risk": "rules: [{deny: {risk: enormous}}]\n",
    "unknown origin": "rules: [{deny: {origin: people}}]\n",
    "unknown failure": "on_failure: {low: ignore}\n",
    "no failures": "on_failure: {}\n",
    "unknown preset": "preset: relaxed\n",
    "id of a decision": "decisions: {'a b': x}\n",
    "level is a number": "auto_approve: 1\n",
}
# What only the loader sees: YAML itself, and names that planrun knows.
LOADER_ONLY = {"an unknown tool", "a tag", "a key twice", "broken", "nothing", "only a comment"}
REFUSED = {**BAD, **{name: wrong[0] for name, wrong in WRONG.items()}}


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    """The schema as the command prints it."""
    done = subprocess.run([PLANRUN, "schema", "policy"], capture_output=True, timeout=60, check=True)
    assert done.stdout.decode() == generated()[POLICY]
    printed: dict[str, Any] = json.loads(done.stdout)
    return printed


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """Write all policies and return their names by file."""
    texts = {**GOOD, **REFUSED}
    assert len(texts) == len(GOOD) + len(BAD) + len(WRONG)
    for number, text in enumerate(texts.values()):
        (tmp_path / f"{number}.yml").write_text(text, encoding="utf-8")
    return {f"{number}.yml": name for number, name in enumerate(texts)}


def test_the_schema_is_draft_07(schema: dict[str, Any]) -> None:
    """It follows its metaschema, and every key has a sentence and an example that is valid in its place."""
    jsonschema.Draft7Validator.check_schema(schema)
    definitions = schema["definitions"]
    for name, definition in definitions.items():
        for key, value in definition.get("properties", {}).items():
            assert value["description"].endswith("."), (name, key)
            (example,) = value["examples"]
            assert jsonschema.Draft7Validator({**value, "definitions": definitions}).is_valid(example)
    assert {"Policy", "Rule", "Matcher", "FailureRules"} <= set(definitions)


def test_validate_agrees(tmp_path: Path, files: dict[str, str]) -> None:
    """`planrun validate --policy` accepts every good file and reports an error in every bad one."""
    options = [word for file in files for word in ("--policy", file)]
    command = [PLANRUN, "validate", "--json", *options]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=60, check=False)
    problems = json.loads(done.stdout)["problems"]
    refused = {files[each["file"]] for each in problems if each["severity"] == "error"}
    assert (done.returncode, refused) == (2, set(REFUSED))


def test_check_jsonschema_agrees(tmp_path: Path, files: dict[str, str], schema: dict[str, Any]) -> None:
    """The command that users run in hooks refuses the same files, except for what only the loader sees."""
    (tmp_path / "policy.schema.json").write_text(json.dumps(schema), encoding="utf-8")
    command = [sys.executable, "-m", "check_jsonschema", "--schemafile", "policy.schema.json", "-o", "json"]
    readable = [file for file, name in files.items() if name not in LOADER_ONLY]
    done = subprocess.run([*command, *readable], cwd=tmp_path, capture_output=True, timeout=120, check=False)
    report = json.loads(done.stdout)
    assert report["parse_errors"] == []
    assert {files[each["filename"]] for each in report["errors"]} == set(REFUSED) - LOADER_ONLY


def test_check_compares_generated_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`python -m planrun.plan.schema --check` writes nothing and fails when a file differs."""
    from planrun.plan.schema import __main__ as command

    texts = {str(tmp_path / Path(path).name): text for path, text in generated().items()}
    monkeypatch.setattr(command, "generated", lambda: texts)
    assert command.main(["--check"]) == 1
    assert list(tmp_path.iterdir()) == []
    assert command.main([]) == 0
    assert command.main(["--check"]) == 0
    (tmp_path / "policy.schema.json").write_text("{}\n", encoding="utf-8")
    assert command.main(["--check"]) == 1
    assert command.main(["--chek"]) == 2
