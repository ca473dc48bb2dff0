"""The keys under `llm` for agents that work together: their values, their defaults, and what is wrong with them."""

from __future__ import annotations

import pytest

from planrun.errors import InvalidPlan
from planrun.model.collaboration import Collaboration, collaboration_of
from planrun.plan.load import load_bytes
from planrun.plan.problems import Problem

ALL = """\
version: 1
llm:
  model: a-model
  delegation: {enabled: true, alpha: 0.25, max_depth: 2, depth_penalty: 1, suppress_for: 30s,
    max_parallel_agents: 3, load_penalty: 0.3}
  memory: {max_entries: 20, max_bytes: 1024, store: write, dir: .agents}
  messenger: {timeout: 1m}
  reflection: {enabled: false, llm: true, autofix: true}
steps: [{id: a, run: "true"}]
"""
DEFAULTS = """\
version: 1
llm:
  model: a-model
  delegation: {enabled: false, alpha: 0.1, max_depth: 5, depth_penalty: 3, suppress_for: 10m,
    max_parallel_agents: 5, load_penalty: 0}
  memory: {max_entries: 500, max_bytes: 65536, store: off}
  messenger: {timeout: 3m}
  reflection: {enabled: true, llm: false, autofix: false}
steps: [{id: a, run: "true"}]
"""


def settings(text: str) -> Collaboration:
    """Return the settings of a plan."""
    return collaboration_of(load_bytes(text.encode(), "plan.yml", cache=False).llm)


def problems(keys: str) -> list[Problem]:
    """Return the problems of a plan with these keys under `llm`."""
    text = f'version: 1\nllm: {{model: x, {keys}}}\nsteps: [{{id: a, run: "true"}}]\n'
    with pytest.raises(InvalidPlan) as caught:
        load_bytes(text.encode(), "plan.yml", cache=False)
    return list(caught.value.problems)


def test_every_setting_reaches_its_record() -> None:
    """Times in seconds; no field of a record is without a key."""
    found = settings(ALL)
    assert vars(found.delegation) == {
        "enabled": True,
        "alpha": 0.25,
        "max_depth": 2,
        "depth_penalty": 1,
        "suppress_for": 30.0,
        "max_parallel_agents": 3,
        "load_penalty": 0.3,
    }
    assert vars(found.memory) == {"max_entries": 20, "max_bytes": 1024, "store": "write", "dir": ".agents"}
    assert vars(found.messenger) == {"timeout": 60.0}
    assert vars(found.reflection) == {"enabled": False, "llm": True, "autofix": True}
    for name in vars(found):
        record = getattr(found, name)
        assert set(vars(record)) == set(type(record).__annotations__)


def test_a_default_that_is_written_changes_nothing() -> None:
    """Neither the settings nor the digest of the plan."""
    bare = DEFAULTS.partition("  delegation")[0] + "steps:" + DEFAULTS.partition("steps:")[2]
    digests = {load_bytes(text.encode(), "plan.yml", cache=False).digest for text in (DEFAULTS, bare)}
    assert len(digests) == 1
    assert settings(DEFAULTS) == settings(bare)
    assert load_bytes(ALL.encode(), "plan.yml", cache=False).digest not in digests


@pytest.mark.parametrize(
    ("keys", "code", "message"),
    [
        ("delegation: {max_deep: 3}", "E104", 'unknown key "max_deep"'),
        ("delegation: {alpha: 1.5}", "E115", '"llm.delegation.alpha" must be at most 1'),
        ("delegation: {load_penalty: -1}", "E115", '"llm.delegation.load_penalty" must be at least 0'),
        ("delegation: {max_depth: 21}", "E115", '"llm.delegation.max_depth" must be at most 20'),
        ("delegation: {max_parallel_agents: 0}", "E115", "must be at least 1"),
        ("delegation: {suppress_for: 10}", "E111", "must be a duration"),
        ("delegation: true", "E101", '"llm.delegation"'),
        ("memory: {store: on}", "E105", '"llm.memory.store" must be off, read or write'),
        ("memory: {max_entries: 10001}", "E115", "must be at most 10000"),
        ("memory: {max_bytes: 0}", "E115", "must be at least 1"),
        ("memory: {dir: /tmp/x}", "E265", 'the folder "/tmp/x" of `llm.memory.dir` is not inside'),
        ("memory: {dir: a/../../x}", "E265", "is not inside of the workspace"),
        ('memory: {dir: "~/x"}', "E265", "is not inside of the workspace"),
        ('memory: {dir: "${{ params.x }}"}', "E265", "is not inside of the workspace"),
        ("messenger: {}", "E113", '"llm.messenger" is empty'),
        ("messenger: {timeout: 0s}", "E115", "llm.messenger.timeout"),
        ("reflection: {autofix: yes}", "E109", '"llm.reflection.autofix" must be a boolean'),
    ],
)
def test_a_wrong_value_is_reported_at_its_place(keys: str, code: str, message: str) -> None:
    """With the line and the column of the value."""
    [problem] = problems(keys)
    assert problem.code == code
    assert message in problem.message
    assert problem.line == 2
    assert problem.col > len("llm: {model: x, ")
