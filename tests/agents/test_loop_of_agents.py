"""The loop of an agent: how it ends, what it may use up, and what policies say of its calls."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from planrun.agents.compacting import compacted, size_of
from tests.agents.worlds import (
    FIXING,
    HEAD,
    agent,
    ended,
    events,
    finish,
    ledger,
    repository,
    results,
    started,
    turns,
)
from tests.cli.person import Person
from tests.fakes.messages import FakeMessages, Tokens, refuse, say, status, use

if TYPE_CHECKING:
    from pathlib import Path
    from subprocess import CompletedProcess

    from tests.conftest import Command
    from tests.fakes.messages import Asked


def run(planrun: Command, plan: str, model: Any, *options: str) -> CompletedProcess[str]:
    """Run a plan in a repository with a scripted model."""
    repository(planrun.folder)
    (planrun.folder / "plan.yml").write_text(plan)
    with FakeMessages(model) as api:
        return planrun("execute", "plan.yml", *options, env=api.env)


@pytest.mark.shows("GM-06", "GP-59", "V-34", "V-35", "V-40", "V-41", "N-22", "N-33", "N-35")
def test_an_agent_works_by_tools_and_ends_with_a_report(planrun: Command) -> None:
    """It reads, edits and finishes; the ledger has every call before and after it, with tokens, and the report."""
    done = run(planrun, agent(apply="never"), FIXING, "--events", "events.jsonl")
    assert done.returncode == 0, done.stderr
    (found,) = ledger(planrun.folder)["agents"]
    assert (found["id"], found["step"], found["type"], found["status"]) == (
        "fix.1",
        "fix",
        "general",
        "completed",
    )
    assert (found["parent"], found["depth"], found["summary"]) == (None, 0, "add adds now")
    assert found["evidence"] == ["calc.py:2"]
    stats = found["stats"]
    assert (stats["tool_calls"], stats["tool_successes"], stats["tool_failures"]) == (2, 2, 0)
    assert stats["prompt_tokens"] > 1000
    (step,) = ledger(planrun.folder)["steps"]
    read = [step["usage"][f"{kind}_tokens"] for kind in ("input", "cache_read", "cache_write")]
    assert sum(read) == stats["prompt_tokens"]
    assert step["attempts"][0]["duration_s"] > 0
    assert stats["completion_tokens"] > 10
    assert stats["duration_seconds"] > 0
    kinds = [event["type"] for event in events(planrun.folder)]
    assert kinds.index("tool_called") < kinds.index("tool_returned")
    assert kinds.count("model_asked") == kinds.count("model_answered") == kinds.count("agent_progressed") == 3
    of_agent = [
        event for event in events(planrun.folder) if event["type"].startswith(("tool_", "agent_", "model_"))
    ]
    assert {(event["step"], event["agent"]) for event in of_agent} == {("fix", "fix.1")}
    streamed = [json.loads(line) for line in (planrun.folder / "events.jsonl").read_text().splitlines()]
    called = [event for event in streamed if event["type"] == "tool_call"]
    returned = [event for event in streamed if event["type"] == "tool_result"]
    assert [event["call"] for event in called] == [event["call"] for event in returned]
    progress = [event for event in streamed if event["type"] == "agent_progress"]
    assert progress[-1]["percent"] > progress[0]["percent"] == 0
    assert "fix: turn 3 of 50" in done.stderr
    assert planrun("verify", "last").returncode == 0
    assert planrun("replay", "last").returncode == 0


def test_the_word_of_the_model_decides_nothing(planrun: Command) -> None:
    """An agent that reports success and changed nothing fails by `verify`."""
    plan = agent(apply="never", step={"verify": "python3 check_calc.py"})
    done = run(planrun, plan, turns(finish("all tests pass")))
    assert done.returncode == 1
    assert ended(planrun.folder)["reason"] == "verify"
    assert "verify: python3 check_calc.py" in done.stderr


def test_a_reported_failure_is_a_failure(planrun: Command) -> None:
    """`finish` with status failure fails the step with the report."""
    done = run(planrun, agent(), turns(finish("it cannot be done", status="failure")))
    assert done.returncode == 1
    assert ended(planrun.folder)["reason"] == "reported"
    assert "it cannot be done" in done.stderr


def test_an_agent_that_stops_talking_is_reminded_once(planrun: Command) -> None:
    """An answer without a call gets a reminder; a second one is `failed(incomplete)`."""
    seen: list[str] = []

    def model(asked: Asked) -> Any:
        seen.append(asked.user)
        return say("I think that is all.")

    done = run(planrun, agent(), model)
    assert done.returncode == 1
    assert ended(planrun.folder)["reason"] == "incomplete"
    assert len(seen) == 2
    assert "call `finish`" in seen[1]


@pytest.mark.parametrize("reply", ["refused", "unauthorized", "broken"])
def test_a_model_without_an_answer_is_a_failure(planrun: Command, reply: str) -> None:
    """A refusal, an error of the service and a broken answer fail the step with class and rule."""
    replies = {"refused": refuse(), "unauthorized": status(403), "broken": say("x", stop_reason="odd")}
    done = run(planrun, agent(), turns(replies[reply]))
    assert done.returncode == 1
    end = ended(planrun.folder)
    assert (end["status"], end["reason"], end["error"]["rule"]) == ("failed", "model", "reason:model")


def test_a_model_that_is_busy_for_good_is_a_transient_failure(planrun: Command) -> None:
    """After all repeats of the call the attempt fails as transient, so that `retries: {on: auto}` repeats it."""
    plan = agent().replace("model: model-a", "model: model-a, retries: 0")
    done = run(planrun, plan, turns(status(529, retry_after=0)))
    assert done.returncode == 1
    assert ended(planrun.folder)["error"]["class"] == "transient"


@pytest.mark.shows("V-39")
def test_an_agent_that_uses_all_its_turns_fails(planrun: Command) -> None:
    """`max_turns` is a failure, never success."""
    done = run(planrun, agent(max_turns=2), turns(use(("list_dir", {}))))
    assert done.returncode == 1
    assert ended(planrun.folder)["reason"] == "turns"
    assert ledger(planrun.folder)["agents"][0]["turns"] == 2


@pytest.mark.shows("V-37", "V-67")
def test_a_budget_is_reserved_before_and_settled_after_each_call(planrun: Command) -> None:
    """Levels of 80, 95 and 100 per cent are events; what does not fit any more fails the step."""
    big = Tokens(input=1500, output=2700)
    model = turns(use(("list_dir", {}), usage=big), use(("list_dir", {}), usage=big), finish())
    done = run(planrun, agent(max_tokens=10_000, type="explore"), model)
    assert done.returncode == 1
    assert ended(planrun.folder)["reason"] == "budget"
    crossed = [event for event in events(planrun.folder) if event.get("scope") == "step"]
    assert [(event["scope"], event["step"], event["level"]) for event in crossed] == [
        ("step", "fix", 80),
        ("step", "fix", 100),
    ]
    asked = [
        event["reserved"]["tokens"] for event in events(planrun.folder) if event["type"] == "model_asked"
    ]
    assert all(tokens <= 10_000 for tokens in asked)
    assert "80% of the tokens of the step fix are used" in done.stderr


def test_a_budget_of_the_run_holds_for_all_agents(planrun: Command) -> None:
    """The limit of the plan stops an agent that has enough of its own left."""
    plan = agent(type="explore").replace("steps:", "limits: {max_turns: 1}\nsteps:")
    done = run(planrun, plan, turns(use(("list_dir", {}))))
    assert done.returncode == 1
    assert ended(planrun.folder)["reason"] == "budget"


@pytest.mark.shows("N-34")
def test_a_timeout_of_an_agent_is_at_least_30_seconds(planrun: Command) -> None:
    """A timeout of one second is 30 for an agent: a command of two seconds in it ends."""
    plan = agent(apply="never", step={"timeout": "1s"})
    model = turns(use(("bash", {"command": "sleep 2"})), finish())
    assert run(planrun, plan, model).returncode == 0


@pytest.mark.shows("V-38")
def test_calls_are_judged_by_the_policies_of_the_plan(planrun: Command) -> None:
    """Without a policy only low risk is allowed; what is denied is told to the model with the rule, and recorded."""
    told: list[str] = []

    def reads(asked: Asked) -> Any:
        told.extend(results(asked))
        return finish()

    plan = agent(apply="never").replace("policy: {auto_approve: medium, llm_auto_approve: medium}\n", "")
    commands = ("rm -rf .", "curl http://localhost/", "python3 check_calc.py", "cat calc.py")
    model = turns(use(*[("bash", {"command": command}) for command in commands]), reads)
    assert run(planrun, plan, model).returncode == 0
    assert [text.partition(":")[0] for text in told[:3]] == ["denied"] * 3
    assert "a - b" in told[3]
    found = ledger(planrun.folder)["agents"][0]["effects"]
    assert [each["status"] for each in found] == ["denied", "denied", "denied", "done"]
    assert [each["answer"] for each in found] == ["ask", "ask", "ask", "allow"]
    assert all(each["rule"] == "default:llm_auto_approve" for each in found)
    assert (planrun.folder / "calc.py").exists()


def test_commands_that_read_all_files_find_no_secret_in_a_copy(planrun: Command) -> None:
    """Files that look like secrets are not in the copy of an agent, so `grep -r` is read-only there and shows none."""
    (planrun.folder / "conf").mkdir()
    (planrun.folder / "conf" / "server.key").write_text("a - b\n")
    (planrun.folder / "lib").mkdir()
    (planrun.folder / "lib" / "a.py").write_text("a - b\n")
    plan = agent(apply="never").replace("llm_auto_approve: medium", "llm_auto_approve: read-only")
    commands = ("grep -rn 'a - b' .", "cat conf/*", "git grep 'a - b'", "grep -rn 'a - b' lib", "cat lib/*")
    model = turns(use(*[("bash", {"command": command}) for command in commands]), finish())
    assert run(planrun, plan, model).returncode == 0
    found = ledger(planrun.folder)["agents"][0]["effects"]
    assert [each["status"] for each in found] == ["done", "failed", "done", "done", "done"]


def test_a_rule_about_shells_is_about_the_commands_of_agents(planrun: Command) -> None:
    """`deny` of the tool `shell` denies `bash`; a rule about a tool of agents names it."""
    rules = (
        "{auto_approve: high, llm_auto_approve: high, rules: [{deny: {tool: shell}}, {deny: {tool: edit}}]}"
    )
    plan = agent(apply="never").replace("{auto_approve: medium, llm_auto_approve: medium}", rules)
    model = turns(
        use(
            ("bash", {"command": "ls"}),
            ("edit", {"path": "calc.py", "old": "a", "new": "b", "all": True}),
            ("read", {"path": "calc.py"}),
        ),
        finish(),
    )
    assert run(planrun, plan, model).returncode == 0
    found = ledger(planrun.folder)["agents"][0]["effects"]
    assert [(each["status"], each["rule"]) for each in found][:2] == [
        ("denied", "plan:rules.1"),
        ("denied", "plan:rules.2"),
    ]
    assert found[2]["status"] == "done"


def test_reading_calls_of_one_answer_run_together(planrun: Command) -> None:
    """Calls that only read start before the first of them ended; one that writes is alone."""
    model = turns(
        use(
            *[("read", {"path": "calc.py"})] * 3,
            ("bash", {"command": "sleep 0.2"}),
            ("read", {"path": "calc.py"}),
        ),
        finish(),
    )
    assert run(planrun, agent(apply="never"), model).returncode == 0
    order = [
        (event["type"][5:], event["name"])
        for event in events(planrun.folder)
        if event["type"] in ("tool_called", "tool_returned")
    ]
    assert order[:3] == [("called", "read")] * 3
    place = order.index(("called", "bash"))
    assert order[place + 1] == ("returned", "bash")
    assert order[:place].count(("returned", "read")) == 3


@pytest.mark.shows("GM-24")
def test_at_most_five_agents_work_at_once(planrun: Command) -> None:
    """Of seven agents five ask a model at the same time; the others follow."""
    step = "  - {id: a%d, agent: {type: explore, prompt: Look.}}\n"
    plan = HEAD.replace("steps:", "limits: {max_parallel: 7}\nsteps:") + "".join(step % n for n in range(7))
    model = turns(use(("list_dir", {}), first_byte=0.3), finish())
    assert run(planrun, plan, model).returncode == 0
    working, most = 0, 0
    for event in events(planrun.folder):
        working += {"agent_started": 1, "agent_ended": -1}.get(event["type"], 0)
        most = max(most, working)
    assert most == 5


def test_agents_work_beside_other_steps(planrun: Command) -> None:
    """A step of a process runs and ends while an agent waits for its model."""
    plan = HEAD + "  - {id: fix, agent: {type: explore, prompt: Look.}}\n  - {id: other, run: sleep 0.1}\n"
    done = run(planrun, plan, turns(finish().but(first_byte=2.0)), "--jobs", "2")
    assert done.returncode == 0
    order = [event["step"] for event in events(planrun.folder) if event["type"] == "attempt_ended"]
    assert order == ["other", "fix"]


def test_a_signal_ends_an_agent_and_its_commands(planrun: Command) -> None:
    """SIGINT while a command of an agent runs: the command ends, the step is cancelled, the exit code is 130."""
    repository(planrun.folder)
    (planrun.folder / "plan.yml").write_text(agent(apply="never"))
    model = turns(use(("bash", {"command": "touch begun; sleep 600"})), finish())
    with FakeMessages(model) as api, started(planrun, api) as process:
        end = time.monotonic() + 120
        while not list(planrun.folder.glob(".planrun/runs/*/copies/fix/1/tree/begun")):
            assert time.monotonic() < end
            time.sleep(0.05)
        process.send_signal(2)
        assert process.wait(60) == 130
    assert ended(planrun.folder)["status"] == "cancelled"
    assert ledger(planrun.folder)["agents"][0]["status"] == "cancelled"


@pytest.mark.shows("V-71")
def test_a_long_conversation_loses_its_oldest_results(planrun: Command) -> None:
    """Near its limit the oldest results are left out, to 70 per cent, not twice in 30 s; an event says how many."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Fix it."}]
    for number in range(20):
        call = {"type": "tool_use", "id": f"t{number}", "name": "read", "input": {}}
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": "x" * 2000}
        messages += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    found, count = compacted(messages, size_of(messages) * 7 // 10)
    assert size_of(found) <= size_of(messages) * 7 // 10
    assert 0 < count < 20
    assert found[-4:] == messages[-4:]
    (planrun.folder / "big.txt").write_text("word\n" * 4000)
    done = run(planrun, _LONG, turns(*LONG_TURNS))
    assert done.returncode == 0, done.stderr
    (event,) = _compactions(planrun.folder)  # the second time comes too soon
    assert event["left_out"] > 0
    assert event["after"] < event["before"]
    assert ledger(planrun.folder)["agents"][0]["compactions"][0]["left_out"] == event["left_out"]


_LONG = agent(max_tokens=900_000, max_turns=20, type="explore")
_READ = use(("read", {"path": "big.txt"}))
_NEAR = use(("list_dir", {}), usage=Tokens(input=118_000, output=10))
LONG_TURNS = (_READ, _READ, _READ, _NEAR, _READ, _READ, _READ, _NEAR, finish())
"""A conversation that comes near its limit twice."""


def _compactions(folder: Path) -> list[dict[str, Any]]:
    return [event for event in events(folder) if event["type"] == "agent_compacted"]


@pytest.mark.shows("V-71")
def test_a_replay_leaves_out_what_was_left_out_when_it_was_recorded(planrun: Command) -> None:
    """Recorded with no time between two compactions, replayed with 30 s: the recorded questions decide."""
    repository(planrun.folder)
    (planrun.folder / "plan.yml").write_text(_LONG)
    (planrun.folder / "big.txt").write_text("word\n" * 4000)
    hurried = (
        "import runpy, sys, planrun.agents.compacting as c; c.APART = 0.0; "
        "sys.argv[:] = ['planrun', 'execute', 'plan.yml', '--llm-record', 'kept']; "
        "runpy.run_module('planrun', run_name='__main__')"
    )
    with FakeMessages(turns(*LONG_TURNS)) as api:
        env = {**os.environ, **api.env}
        subprocess.run([sys.executable, "-c", hurried], cwd=planrun.folder, env=env, check=True)
    assert len(_compactions(planrun.folder)) == 2
    shutil.rmtree(planrun.folder / ".planrun")
    done = planrun("execute", "plan.yml", "--llm-replay", "kept")
    assert done.returncode == 0, done.stderr
    assert len(_compactions(planrun.folder)) == 2


def test_the_beginning_of_a_conversation_is_kept_by_the_service(planrun: Command) -> None:
    """System text and last message are marked, so that later turns read the earlier ones from the cache."""
    assert (
        run(
            planrun, agent(type="explore"), turns(use(("list_dir", {})), use(("list_dir", {})), finish())
        ).returncode
        == 0
    )
    assert ledger(planrun.folder)["agents"][0]["usage"]["cache_read_tokens"] > 1000


def test_without_a_model_a_plan_with_agents_does_not_start(planrun: Command) -> None:
    """No credentials, or --no-llm: exit code 2 and one line, before anything runs."""
    repository(planrun.folder)
    (planrun.folder / "plan.yml").write_text(agent())
    for options in ([], ["--no-llm"]):
        done = planrun("execute", "plan.yml", *options)
        assert done.returncode == 2
        assert "the plan has agents, and no model can be asked" in done.stderr
    assert not (planrun.folder / ".planrun" / "runs").exists()


@pytest.mark.shows("V-49", "V-16")
def test_the_status_area_says_what_an_agent_does(planrun: Command) -> None:
    """On a terminal the line of a running step names its agent, mode and turn; the ledger has the mode of the step."""
    folder = repository(planrun.folder)
    (folder / "plan.yml").write_text(agent(mode="code"))
    with FakeMessages(turns(use(("bash", {"command": "sleep 2"})), finish())) as api:
        words = [sys.executable, "-m", "planrun", "execute", "plan.yml", "--no-input"]
        with Person(words, folder, {**api.env, "CI": ""}, width=100) as person:
            person.sees("agent general code, turn 1 of 75")
            assert person.ends() == 0
    assert "✓ Step fix" in planrun("status").stdout
    assert [each["mode"] for each in ledger(folder)["agents"]] == ["code"]


@pytest.mark.parametrize(
    ("size", "lengths"), [(100_000, [16_000, 32_000]), (200_000, [16_000, 32_000, 64_000])]
)
def test_an_answer_that_is_cut_inside_a_call_is_asked_for_with_more_tokens(
    planrun: Command, size: int, lengths: list[int]
) -> None:
    """A file that is longer than one answer may be is written whole; a call that was cut is never made."""
    text, asked = "x = 1\n" * (size // 6), []
    writes = turns(use(("write", {"path": "long.py", "content": text})), finish("written"))

    def model(request: Asked) -> Any:
        asked.append(request.body["max_tokens"])
        return writes(request)

    done = run(planrun, agent(max_tokens=900_000, apply="auto"), model)
    assert done.returncode == 0, done.stderr
    assert asked == [*lengths, 16_000]
    assert (planrun.folder / "long.py").read_text() == text
