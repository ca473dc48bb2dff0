"""planrun is killed at every point of an agent's loop; a resumed run goes on, and no effect happens twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.agents.worlds import EDIT, FIXED, agent, events, finish, ledger, repository, results
from tests.fakes.messages import FakeMessages, use

if TYPE_CHECKING:
    from tests.conftest import Command
    from tests.fakes.messages import Asked

# It dies by SIGKILL when the place that was named is reached for the n-th time: after an event is in the ledger, or
# after a line is in the transcript and its event is not in the ledger yet.
KILLER = """\
import os, sys
place, left = os.environ["KILL_PLACE"], [int(os.environ["KILL_NUMBER"])]
from planrun.agents.transcript import Transcript
from planrun.records.ledger import Ledger

def count(name):
    left[0] -= name == place
    if name == place and not left[0]:
        os.kill(os.getpid(), 9)

def after(kind, name, what):
    old = getattr(kind, name)
    def method(self, *words, **named):
        old(self, *words, **named)
        count(what(*words))
    setattr(kind, name, method)

after(Ledger, "append", lambda event: type(event).__name__)
after(Transcript, "_add", lambda line: next(iter(line)))
from planrun.cli import main
sys.exit(main(sys.argv[1:]))
"""
EVERY = [
    *[("AgentStarted", 1), ("AgentEnded", 1)],
    *[(place, number) for place in ("ModelAsked", "ModelAnswered", "said") for number in (1, 2, 3)],
    *[(place, number) for place in ("ToolCalled", "ToolReturned", "result") for number in (1, 2, 3)],
    *[("AttemptEnded", 1), ("AttemptStarted", 2)],
]
# Each kind of point once; `EVERY_POINT=1` takes all of them (proofs/README.md).
SAMPLE = [
    *[("AgentStarted", 1), ("ModelAsked", 2), ("ModelAnswered", 1), ("said", 3)],
    *[("ToolCalled", 2), ("ToolReturned", 1), ("result", 3), ("AttemptEnded", 1)],
]
POINTS = EVERY if os.environ.get("EVERY_POINT") else SAMPLE
APPEND = ("bash", {"command": "echo once >> effects.txt"})
UNKNOWN = "not known whether"


def model(asked: Asked) -> Any:
    """Add a line to a file and mend the bug, each once: what is unknown is looked at before it is done again."""
    said = json.dumps(asked.body["messages"])
    if "add adds" in said:
        return finish("add adds now")
    turn = len(asked.body["messages"])
    if turn == 1:
        return use(("read", {"path": "calc.py"}), APPEND)
    last = "\n".join(results(asked))
    if UNKNOWN in last:
        return use(("glob", {"pattern": "effects.txt"}), ("read", {"path": "calc.py"}))
    if "no file matches" in last:
        return use(APPEND)
    if "return a + b" in last or "changed calc.py" in last:
        return finish("add adds now")
    return use(EDIT)


@pytest.mark.shows("X-02")
@pytest.mark.parametrize(("place", "number"), POINTS)
def test_a_killed_run_goes_on_and_no_effect_happens_twice(planrun: Command, place: str, number: int) -> None:
    """After SIGKILL at this point and a resume the file has its line once, and the bug is mended."""
    folder = repository(planrun.folder)
    plan = agent(apply="auto", step={"verify": "python3 check_calc.py"})
    (folder / "plan.yml").write_text(plan)
    with FakeMessages(model) as api:
        env = {**os.environ, **api.env, "KILL_PLACE": place, "KILL_NUMBER": str(number)}
        words = [sys.executable, "-c", KILLER, "execute", "plan.yml"]
        killed = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, check=False)
        assert killed.returncode == -9, killed.stderr
        assert not (folder / "effects.txt").exists()
        asked = len(api.journal.entries)
        done = planrun("resume", "last", env=api.env)
        assert done.returncode == 0, done.stderr
        again = len(api.journal.entries) - asked
    assert (folder / "effects.txt").read_text() == "once\n"
    assert (folder / "calc.py").read_text() == FIXED
    effects = [each for found in ledger(folder)["agents"] for each in found["effects"]]
    assert all(each["status"] != "intended" for each in effects if each["effects"])
    ran = [each for each in effects if each["tool"] == "bash" and each["status"] == "done"]
    assert len(ran) <= 1
    assert again <= 5
    assert planrun("verify", "last").returncode == 0


def test_an_effect_without_a_known_end_is_told_and_not_repeated(planrun: Command) -> None:
    """The command was recorded as begun, and planrun was killed: its status is unknown, and the model is told."""
    folder = repository(planrun.folder)
    (folder / "plan.yml").write_text(agent(apply="auto", step={"verify": "python3 check_calc.py"}))
    told: list[str] = []

    def watched(asked: Asked) -> Any:
        if len(asked.body["messages"]) > 1:
            told.extend(results(asked))
        return model(asked)

    with FakeMessages(watched) as api:
        env = {**os.environ, **api.env, "KILL_PLACE": "ToolCalled", "KILL_NUMBER": "2"}
        words = [sys.executable, "-c", KILLER, "execute", "plan.yml"]
        subprocess.run(words, cwd=folder, env=env, capture_output=True, check=False)
        assert planrun("resume", "last", env=api.env).returncode == 0
    assert any(UNKNOWN in text for text in told)
    statuses = [event["status"] for event in events(folder) if event["type"] == "tool_returned"]
    assert statuses.count("unknown") == 1
    assert [found["continues"] for found in ledger(folder)["agents"]] == [None, "fix.1"]
    assert [found["status"] for found in ledger(folder)["agents"]] == ["cancelled", "completed"]


def test_a_run_whose_budget_is_used_up_goes_on_with_a_larger_one(planrun: Command) -> None:
    """After `failed(budget)` a resume under a plan with more goes on only as a new attempt of the same step."""
    folder = repository(planrun.folder)
    plan = agent(type="explore", apply="never").replace("steps:", "limits: {max_turns: 1}\nsteps:")
    (folder / "plan.yml").write_text(plan)
    seen: list[int] = []

    def reader(asked: Asked) -> Any:
        seen.append(len(asked.body["messages"]))
        return use(("list_dir", {})) if len(asked.body["messages"]) == 1 else finish()

    with FakeMessages(reader) as api:
        assert planrun("execute", "plan.yml", env=api.env).returncode == 1
        assert planrun("resume", "last", "--max-turns", "5", env=api.env).returncode == 0
    assert seen == [1, 3], "the second process went on after the last call of a tool"
