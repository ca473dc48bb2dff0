"""Nothing that an agent made outlives the step that asked for it, whatever becomes of its patch and of the run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.agents.test_kills import KILLER
from tests.agents.worlds import ended, events, finish, repository, started, turns
from tests.fakes.messages import FakeMessages, use

if TYPE_CHECKING:
    from subprocess import CompletedProcess

    from tests.conftest import Command

OLD, NEW = "FIRST TASK", "SECOND TASK"
CHANGES: dict[str, dict[str, Any]] = {
    "prompt": {"prompt": NEW},
    "max_turns": {"max_turns": 17},
    "tools": {"tools": {"deny": ["bash"]}},
    "model": {"model": "model-b"},
    "verify": {},  # a key of the step beside `agent`
}
APPLY = ("never", "ask", "auto")
PAIRS = [(APPLY[number % len(APPLY)], change) for number, change in enumerate(CHANGES)]
"""Each change with one way to apply: what a step was is compared before anybody looks at how it is applied."""


def writing(name: str) -> Any:
    """Return a model that writes one file."""
    return turns(use(("write", {"path": name, "content": "x\n"})), finish(name))


def text(apply: str, change: str = "") -> str:
    """Return a plan with one agent, changed or not."""
    keys = {"prompt": OLD, "apply": apply, **CHANGES.get(change, {})}
    step = {"id": "fix", "agent": keys, **({"verify": "true"} if change == "verify" else {})}
    policy = {"auto_approve": "medium", "llm_auto_approve": "medium"}
    return json.dumps({"version": 1, "llm": {"model": "model-a"}, "policy": policy, "steps": [step]})


def run(planrun: Command, plan: str, name: str, *words: str) -> tuple[CompletedProcess[str], int]:
    """Run a verb with a plan and a model that writes a file; returns its end and how often the model was asked."""
    (planrun.folder / "plan.yml").write_text(plan)
    with FakeMessages(writing(name)) as api:
        done = planrun(*words, env=api.env)
        return done, len(api.journal.entries)


def offered(planrun: Command) -> list[str]:
    """Return the files in the patch that the last attempt left."""
    return [each["path"] for each in (ended(planrun.folder).get("patch") or {}).get("files", ())]


@pytest.mark.parametrize(("apply", "change"), PAIRS)
def test_the_patch_of_another_step_is_discarded(planrun: Command, apply: str, change: str) -> None:
    """The agent changed: a model works anew, and only its patch is offered, applied or kept."""
    folder = repository(planrun.folder)
    propose = ["--propose"] if apply == "auto" else []  # the patch must wait for something
    done, asked = run(planrun, text(apply), "old.txt", "execute", "plan.yml", *propose)
    assert (done.returncode, asked) == ({"never": 0, "ask": 5, "auto": 0}[apply], 2), done.stderr
    done, asked = run(planrun, text(apply, change), "new.txt", "resume", "last", "--plan", "plan.yml")
    assert (done.returncode, asked) == ({"never": 0, "ask": 5, "auto": 0}[apply], 2), done.stderr
    assert not (folder / "old.txt").exists()
    assert not (folder / "new.txt").exists()  # a resumed run proposes as it did before
    assert offered(planrun) == ["new.txt"]
    if apply == "ask":
        assert "a patch of new.txt" in done.stderr
        assert planrun("approve", "last", "fix").returncode == 0
        assert planrun("resume", "last").returncode == 0
        assert (folder / "new.txt").exists()
        assert not (folder / "old.txt").exists()


@pytest.mark.parametrize("apply", APPLY)
def test_a_retried_agent_works_anew(planrun: Command, apply: str) -> None:
    """`retry` asks the model again: an earlier patch, approved or not, is not taken for its work."""
    folder = repository(planrun.folder)
    propose = ["--propose"] if apply == "auto" else []
    run(planrun, text(apply), "old.txt", "execute", "plan.yml", *propose)
    if apply == "ask":
        assert planrun("approve", "last", "fix").returncode == 0
    done, asked = run(planrun, text(apply), "new.txt", "retry", "last", "fix")
    assert (done.returncode, asked) == ({"never": 0, "ask": 5, "auto": 0}[apply], 2), done.stderr
    assert not (folder / "old.txt").exists()
    assert not (folder / "new.txt").exists()
    assert offered(planrun) == ["new.txt"]


@pytest.mark.parametrize("change", CHANGES)
def test_only_the_new_patch_is_applied_unasked(planrun: Command, change: str) -> None:
    """A patch waits for its gate; then the agent changes, and with it `apply` to `auto`."""
    folder = repository(planrun.folder)
    assert run(planrun, text("ask"), "old.txt", "execute", "plan.yml")[0].returncode == 5
    done, asked = run(planrun, text("auto", change), "new.txt", "resume", "last", "--plan", "plan.yml")
    assert (done.returncode, asked) == (0, 2), done.stderr
    assert not (folder / "old.txt").exists()
    assert (folder / "new.txt").exists()


@pytest.mark.parametrize("way", ["plan", "propose"])
def test_apply_is_looked_at_anew(planrun: Command, way: str) -> None:
    """A patch that waits for its gate is only kept where the plan now says `never`, or the call `--propose`."""
    folder = repository(planrun.folder)
    assert run(planrun, text("ask"), "old.txt", "execute", "plan.yml")[0].returncode == 5
    assert planrun("approve", "last", "fix").returncode == 0
    words = ["--plan", "plan.yml"] if way == "plan" else ["--propose"]
    done, asked = run(planrun, text("never" if way == "plan" else "ask"), "new.txt", "resume", "last", *words)
    assert (done.returncode, asked) == (0, 0), done.stderr
    assert not (folder / "old.txt").exists()
    assert offered(planrun) == ["old.txt"]
    assert "patch of fix: " in done.stderr


def test_apply_asks_anew_where_the_plan_now_asks(planrun: Command) -> None:
    """A patch that was kept by `--propose` under `auto` is not applied under `ask` without its gate."""
    folder = repository(planrun.folder)
    assert run(planrun, text("auto"), "old.txt", "execute", "plan.yml", "--propose")[0].returncode == 0
    run(planrun, text("ask"), "new.txt", "resume", "last", "--plan", "plan.yml")
    assert not (folder / "old.txt").exists()


def test_a_patch_does_not_outlive_what_its_step_depends_on(planrun: Command) -> None:
    """What came before the agent runs again: the patch was made of another workspace."""
    folder = repository(planrun.folder)
    plan = json.loads(text("ask"))
    plan["steps"] = [
        {"id": "first", "run": "echo 1 > before.txt"},
        {**plan["steps"][0], "depends_on": ["first"]},
    ]
    assert run(planrun, json.dumps(plan), "old.txt", "execute", "plan.yml")[0].returncode == 5
    done, asked = run(planrun, json.dumps(plan), "new.txt", "retry", "last", "first")
    assert (done.returncode, asked) == (5, 2), done.stderr
    assert offered(planrun) == ["new.txt"]
    assert not (folder / "old.txt").exists()


def test_a_changed_patch_is_not_applied(planrun: Command) -> None:
    """The file of a patch is compared with what was approved, right before it is applied."""
    folder = repository(planrun.folder)
    assert run(planrun, text("ask"), "old.txt", "execute", "plan.yml")[0].returncode == 5
    (patch,) = folder.glob(".planrun/runs/*/patches/fix/1.patch")
    patch.chmod(0o600)
    patch.write_text(patch.read_text().replace("old.txt", "bad.txt"))
    assert planrun("approve", "last", "fix").returncode == 0
    assert planrun("resume", "last").returncode != 0
    assert not (folder / "bad.txt").exists()
    assert not (folder / "old.txt").exists()


@pytest.mark.parametrize(("apply", "change"), PAIRS)
def test_a_killed_conversation_does_not_go_on_for_another_step(
    planrun: Command, apply: str, change: str
) -> None:
    """A kill comes while the model works; the changed agent begins with no message and no file of it."""
    folder = repository(planrun.folder)
    (folder / "plan.yml").write_text(text(apply))
    victims: list[int] = []

    def kill(_: Any) -> Any:
        os.kill(victims[0], signal.SIGKILL)
        return finish("never read")

    model = turns(use(("write", {"path": "old.txt", "content": "x\n"})), kill)

    def answer(asked: Any) -> Any:
        while not victims:  # until the test knows the process
            os.sched_yield()
        return model(asked)

    with FakeMessages(answer) as api, started(planrun, api) as process:
        victims.append(process.pid)
        assert process.wait(60) == -signal.SIGKILL
    assert not any(event["type"] == "attempt_ended" for event in events(folder))
    done, asked = run(planrun, text(apply, change), "new.txt", "resume", "last", "--plan", "plan.yml")
    assert (done.returncode, asked) == ({"never": 0, "ask": 5, "auto": 0}[apply], 2), done.stderr
    assert not (folder / "old.txt").exists()
    if apply != "auto":
        assert offered(planrun) == ["new.txt"]


@pytest.mark.parametrize(("place", "number"), [("AttemptEnded", 1), ("AttemptStarted", 2)])
@pytest.mark.parametrize("change", ["", "prompt", "never"])
def test_a_kill_around_the_application(planrun: Command, place: str, number: int, change: str) -> None:
    """A kill comes before or while a patch is applied: the same step goes on, a changed one begins anew."""
    folder = repository(planrun.folder)
    (folder / "plan.yml").write_text(text("auto"))
    with FakeMessages(writing("old.txt")) as api:
        env = {**os.environ, **api.env, "KILL_PLACE": place, "KILL_NUMBER": str(number)}
        words = [sys.executable, "-c", KILLER, "execute", "plan.yml"]
        assert subprocess.run(words, cwd=folder, env=env, capture_output=True, check=False).returncode == -9
    plan = text("never") if change == "never" else text("auto", change)
    done, asked = run(planrun, plan, "new.txt", "resume", "last", "--plan", "plan.yml")
    cut = change == "never" and place == "AttemptStarted"  # files may have been written
    assert (done.returncode, asked) == (1 if cut else 0, 2 if change == "prompt" else 0), done.stderr
    assert (folder / "old.txt").exists() == (not change)
    assert (folder / "new.txt").exists() == (change == "prompt")


def test_a_plan_of_an_agent_waits_at_its_gate(planrun: Command) -> None:
    """The class of an agent that was let through is not that of its plan: no `/` or `$` is in the prompt."""
    repository(planrun.folder)
    step = {"id": "fix", "agent": {"plan_mode": True, "prompt": "Improve the cart"}}
    policy = {"auto_approve": "medium", "llm_auto_approve": "low"}
    plan = {"version": 1, "llm": {"model": "model-a"}, "policy": policy, "steps": [step]}
    (planrun.folder / "plan.yml").write_text(json.dumps(plan))
    model = turns(use(("exit_plan_mode", {"plan": "Change calc.py"})), finish())
    with FakeMessages(model) as api:
        done = planrun("execute", "plan.yml", env=api.env)
        assert done.returncode == 5, done.stderr
        assert len(api.journal.entries) == 1
    (opened,) = [event for event in events(planrun.folder) if event["type"] == "gate_opened"]
    assert opened["risk"] == "medium"
    assert "its plan, sha256" in opened["reason"]
