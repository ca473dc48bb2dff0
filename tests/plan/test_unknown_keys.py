"""Unknown keys get a hint that is valid at their place, or the list of valid keys; words of other tools are known."""

from __future__ import annotations

import json
import re

import pytest

from planrun.plan.load import check_bytes
from planrun.plan.printing import WIDTH, render_json, render_text
from planrun.plan.problems import MAX_KEYS
from planrun.plan.schema import shape
from planrun.plan.schema.dialects import FOREIGN
from planrun.plan.schema.hints import of_key
from planrun.plan.tables import NAMED, OBJECTS
from planrun.plan.yaml.document import read_tree

NONSENSE = "zzqxwv"
WORDS = [
    "needs", "jobs", "if", "script", "before_script", "after_script", "stage", "stages", "image", "only",
    "except", "when", "artifacts", "timeout-minutes", "continue-on-error", "working-directory", "env-file",
    "deps", "cmds", "sources", "generates", "preconditions", "allow_failure", "retry", "strategy", "name",
    "on", "services", "interruptible", "variables", "rules", "runs-on", "permissions", "cmd", "command",
    "commands", "depends", "trigger", "include", "dir", "dotenv", "vars", "silent", "status",
    "displayName", "dependsOn", "pool", "continueOnError", "timeoutInMinutes", "parameters", "plugins",
    "agents", "soft_fail", "concurrency_group", "branches", "detach", "settings", "volumes", "privileged",
    "bash_command", "task_id", "trigger_rule", "execution_timeout", "python_callable", "store_artifacts",
    "persist_to_workspace", "attach_workspace", "no_output_timeout", "working_directory", "resource_class",
    "parallelism", "repeatPolicy", "handlerOn", "checkout", "clone", "loop", "with_items",
]  # fmt: skip
ONLY_A_STEP_HAS = {
    "after_script", "command", "plugins", "soft_fail", "detach", "settings", "privileged", "loop", "with_items",
    "bash_command", "task_id", "trigger_rule", "execution_timeout", "python_callable", "store_artifacts", "dir",
    "persist_to_workspace", "attach_workspace", "no_output_timeout", "resource_class", "repeatPolicy", "status",
    "concurrency_group", "displayName",
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in OBJECTS if name not in NAMED])
def test_a_key_that_resembles_nothing_lists_the_valid_keys(name: str) -> None:
    """In every object of the schema, all of them."""
    hint = of_key(NONSENSE, name, present=(), step=True)
    assert hint == f"valid keys: {', '.join(OBJECTS[name])}"


ANSWERED = [
    (name, word)
    for name in ("Step", "Plan")
    for word in WORDS
    if word not in OBJECTS[name] and not (name == "Plan" and word in ONLY_A_STEP_HAS)
]


@pytest.mark.parametrize(("name", "word"), ANSWERED)
def test_words_of_other_tools_get_a_hint(name: str, word: str) -> None:
    """At the top level and in a step; none of them is answered by a list."""
    assert not of_key(word, name, present=(), step=name == "Step").startswith("valid keys")


def _problems(name: str, text: str) -> list[str]:
    root, problems, _complete = read_tree(text.encode(), "hint")
    assert root is not None
    assert problems == []
    found = shape.check(root, "hint", name, part=True)
    return [each.text for each in found if each.code != "E102"]


# Where a snippet belongs, by the words of its sentence; otherwise it belongs to the place itself.
_OTHER_PLACES = (
    ("at the top level", "Plan"),
    ("in each step", "Step"),
    ("in the step", "Step"),
    ("in an earlier step", "Step"),
    ("a step ", "Step"),
    ("step with", "Step"),
    ("each", "Step"),
    ("steps that", "Step"),
    ("depend on it", "Step"),
    ("defaults", "Plan"),
    ("policy", "Plan"),
    ("limits", "Plan"),
    ("the run", "Plan"),
    ("failure", "Step"),
    ("declares a secret", "Plan"),
    ("for some events", "Step"),
    ("container", "Container"),
    ("the step", "Step"),
    ("to control who", "Step"),
)


@pytest.mark.parametrize(
    ("name", "word"), [(name, word) for name, words in FOREIGN.items() for word in words], ids=str
)
def test_no_hint_names_a_key_that_is_not_valid(name: str, word: str) -> None:
    """A suggested key is a key of that place; a snippet of YAML is accepted there, or where the sentence says."""
    hint = of_key(word, name, present=(), step=name not in ("Plan", "Policy", "Limits", "Defaults"))
    if named := re.fullmatch(r'did you mean "(.+)"\?', hint):
        assert named[1] in OBJECTS[name]
    places = [name, *(place for words, place in _OTHER_PLACES if words in hint)]
    for snippet in re.findall(r"`([^`]+)`", hint):
        if re.match(r"\$?[a-z_]+: ", snippet) and "..." not in snippet and "ID" not in snippet:
            text = f"{snippet}\n"
            assert any(not _problems(place, text) for place in places), (snippet, _problems(name, text))
        elif re.fullmatch(r"[a-z_]+:?", snippet):
            assert any(snippet.rstrip(":") in OBJECTS[place] for place in OBJECTS), snippet


@pytest.mark.parametrize("name", [name for name in OBJECTS if name not in NAMED])
def test_a_key_of_another_place_is_answered_by_a_place_that_has_it(name: str) -> None:
    """For every key of the schema at every other place: what is suggested is valid where it is said to be."""
    for key in {key for keys in OBJECTS.values() for key in keys} - set(OBJECTS[name]):
        hint = of_key(key, name, present=(), step=True)
        if named := re.fullmatch(r'did you mean "(.+)"\?', hint):
            assert named[1] in OBJECTS[name]
        elif inner := re.fullmatch(r"`(.+?)` is a key of `(.+?)`, e\.g\. `(.+)`", hint):
            assert inner[2] in OBJECTS[name]
            assert not _problems(name, f"{inner[3]}\n"), inner[3]
        elif inner := re.fullmatch(r"`(.+?)` is a key of (`.+`): write it inside", hint):
            assert all(each in OBJECTS[name] for each in re.findall("`([^`]+)`", inner[2]))
        elif "is a key of the step" in hint or "is a key of a step" in hint:
            assert key in OBJECTS["Step"]
        elif "is a key of the plan" in hint:
            assert key in OBJECTS["Plan"]
        else:
            assert hint.startswith("valid keys: ") or " " in hint


def test_a_long_list_of_keys_stands_once_below_the_findings() -> None:
    """Two steps with unknown keys: one list, complete, in lines of limited width; in JSON a field of each finding."""
    plan = f"version: 1\nsteps:\n  - {{id: a, run: x, {NONSENSE}: 1}}\n  - {{id: b, run: x, {NONSENSE}: 1}}\n"
    problems = check_bytes(plan.encode(), "plan.yml").problems
    text = render_text(problems, {"plan.yml": plan.encode()})
    below = text[text.index("\nthe keys of a step: ") :]
    assert text.count("the keys of a step: ") == 1
    assert re.findall(r"[a-z_]+", below.split(":", 1)[1]) == list(OBJECTS["Step"])
    assert max(map(len, below.splitlines())) <= WIDTH
    assert text.count(f'unknown key "{NONSENSE}" in step "a"; the keys of a step are listed below') == 1
    listed = [each["valid_keys"] for each in json.loads(render_json(problems))["problems"]]
    assert listed == [list(OBJECTS["Step"])] * 2


def test_a_short_list_of_keys_stands_in_the_line() -> None:
    """Up to twelve."""
    plan = f"version: 1\nsteps: [{{run: x, retries: {{{NONSENSE}: 1}}}}]\n".encode()
    text = render_text(check_bytes(plan, "plan.yml").problems, {"plan.yml": plan})
    assert f'unknown key "{NONSENSE}" in "retries" of step 1; valid keys: max, backoff, on\n' in text
    assert "listed below" not in text
    assert MAX_KEYS == 12
