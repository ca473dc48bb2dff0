"""People write, delete and follow the shared memory of a run by commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.agents.worlds import HEAD, events, finish, repository, results, started
from tests.conftest import LIMIT
from tests.fakes.messages import FakeMessages, use
from tests.gated import until

if TYPE_CHECKING:
    from tests.conftest import Command
    from tests.fakes.messages import Asked

PLAN = HEAD + "  - {id: look, agent: {apply: never, max_turns: 100, max_tokens: 500000, prompt: Wait.}}\n"


def model(asked: Asked) -> Any:
    """Subscribe, then read an entry until there is one, and finish with what changed."""
    turn = sum(message["role"] == "assistant" for message in asked.body["messages"])
    if not turn:
        return use(("memory", {"op": "subscribe"}))
    last = results(asked)[0]
    if '"stop"' in last:
        return finish(last[:300])
    return use(("memory", {"op": "subscribe"})).but(first_byte=0.5)


@pytest.mark.shows("GM-55", "GM-56", "GM-60", "GM-61")
def test_people_change_the_memory_of_a_running_run(planrun: Command) -> None:
    """Entries are written with version and time limit, deleted, followed and journaled; agents see the changes."""
    repository(planrun.folder)
    (planrun.folder / "plan.yml").write_text(PLAN)
    with FakeMessages(model) as api, started(planrun, api) as process:
        until(lambda: any(planrun.folder.glob(".planrun/runs/*/memory")))
        watching = subprocess.Popen(
            [sys.executable, "-m", "planrun", "memory", "last", "watch"],
            cwd=planrun.folder,
            env=dict(os.environ),
            stdout=subprocess.PIPE,
            text=True,
        )
        first = planrun("memory", "last", "set", "word", '{"a": 1}', "--by", "ann")
        assert (first.returncode, first.stdout) == (0, "word: version 1\n"), first.stderr
        assert (
            planrun("memory", "last", "set", "word", "two", "--type", "decision").stdout
            == "word: version 2\n"
        )
        short = json.loads(planrun("memory", "last", "set", "soon", "1", "--ttl", "1h", "--json").stdout)
        assert short["entry"]["expires_at"] > short["entry"]["at"]
        assert planrun("memory", "last", "get", "word").stdout == "two\n"
        assert planrun("memory", "last", "delete", "word").stdout == "word: deleted\n"
        assert planrun("memory", "last", "delete", "word").returncode == 2
        assert planrun("memory", "last", "set", "x", "1", env={"PLANRUN_STEP": "look"}).returncode == 3
        assert planrun("memory", "last", "set", "stop", "now").returncode == 0
        printed = watching.communicate(timeout=LIMIT)[0]
        process.wait(timeout=LIMIT)
    assert [line.split()[1:3] for line in printed.splitlines()] == [
        ["write", "word"],
        ["write", "word"],
        ["write", "soon"],
        ["delete", "word"],
        ["write", "stop"],
    ]
    noted = [each for each in events(planrun.folder) if each["type"] == "agent_noted"]
    assert (noted[0]["agent"], noted[0]["change"]["trust"]) == ("user:ann", "person")
    assert noted[0]["change"]["value"] == {"a": 1}
    returned = [each for each in events(planrun.folder) if each["type"] == "agent_ended"]
    assert "stop" in returned[0]["summary"]
    late = planrun("memory", "last", "set", "late", "1")
    assert (late.returncode, "ended completed" in late.stderr) == (2, True)
    assert planrun("verify", "last").returncode == 0
    assert planrun("replay", "last").returncode == 0
