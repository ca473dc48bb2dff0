"""Agents of one run that work together: delegation by rules, messages, the shared memory, and snapshots."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from tests.agents.test_kills import KILLER
from tests.agents.worlds import agent, events, finish, ledger, repository, results, turns
from tests.fakes.messages import FakeMessages, use

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from subprocess import CompletedProcess

    from tests.conftest import Command
    from tests.fakes.messages import Asked

ROLES = {
    "explore": "You explore a code base",
    "bash": "You run commands.",
    "general": "You do the task from beginning to end",
    "plan": "You plan work.",
    "claude-code-guide": "You answer questions from documentation",
}
MISSING = use(("read", {"path": "src/clac.py"}))
COMPILES = use(("bash", {"command": "echo 'main.c:3:5: error: expected ;' >&2; exit 1"}))
SEARCHES = use(("grep", {"pattern": "no such text"}))
SAME = use(("list_dir", {}))


def role_of(asked: Asked) -> str:
    """Return the type of the agent that asks."""
    return next(role for role, text in ROLES.items() if text in asked.system)


def by_role(**replies: Any) -> Callable[[Asked], Any]:
    """Return a model that answers each type of agent by a model of its own; others finish at once."""

    def answer(asked: Asked) -> Any:
        role = role_of(asked).replace("-", "_")
        reply = replies.get(role, finish(f"report of {role}"))
        return reply(asked) if callable(reply) else reply

    return answer


def together(settings: str) -> str:
    """Return the head of a plan with settings of `llm`."""
    return f"llm: {{model: model-a, {settings}}}"


def run(planrun: Command, plan: str, model: Any, *options: str) -> CompletedProcess[str]:
    """Run a plan in a repository with a scripted model."""
    if not (planrun.folder / ".git").exists():
        repository(planrun.folder)
    (planrun.folder / "plan.yml").write_text(by_rules(plan))
    with FakeMessages(model) as api:
        done = planrun("execute", "plan.yml", *options, env=api.env)
    assert done.returncode == 0, done.stderr
    return done


def by_rules(plan: str) -> str:
    """Return a plan whose agents delegate by rules, unless it says whether they do."""
    if "delegation: {" not in plan:
        return plan.replace("llm: {", "llm: {delegation: {enabled: true}, ")
    return plan if "enabled:" in plan else plan.replace("delegation: {", "delegation: {enabled: true, ")


def shared(folder: Path) -> dict[str, Any]:
    """Return what the agents of the last run shared."""
    found: dict[str, Any] = ledger(folder)["collaboration"]
    return found


def notes(asked: Asked) -> str:
    """Return what planrun wrote behind the results of the last answer."""
    content = asked.body["messages"][-1]["content"]
    return "\n".join(block["text"] for block in content if block["type"] == "text")


RULES = [
    pytest.param(
        {"type": "explore", "tools": {"allow": ["read", "bash"]}},
        [use(("bash", {"command": "make"}))],
        ("explore-needs-bash", "explore", "bash"),
    ),
    pytest.param({"type": "bash"}, [COMPILES], ("compilation-error", "bash", "explore")),
    pytest.param({"type": "general", "max_turns": 12}, [SAME] * 6, ("general-stuck", "general", "plan")),
    pytest.param({"type": "plan"}, [SEARCHES], ("nothing-found", "plan", "explore")),
    pytest.param({"type": "general"}, [MISSING], ("file-not-found", "general", "explore")),
    pytest.param(
        {"type": "bash", "max_turns": 20, "tools": {"allow": ["bash", "read", "edit"]}},
        [use(("bash", {"command": "pwd"}))] * 8,
        ("specialised-stuck", "bash", "general"),
    ),
]


@pytest.mark.shows("GM-10", "GM-11", "GM-12", "GM-13", "GM-14", "GM-15")
@pytest.mark.parametrize(("keys", "replies", "expected"), RULES)
def test_each_rule_delegates_to_its_type(
    planrun: Command, keys: dict[str, Any], replies: list[Any], expected: tuple[str, str, str]
) -> None:
    """The other agent works with tools of the step below the first one, and its report follows the results."""
    rule, source, target = expected
    told: list[str] = []

    def ends(asked: Asked) -> Any:
        told.append(notes(asked))
        return finish()

    model = by_role(
        **{source: turns(*replies, ends), target.replace("-", "_"): finish(f"the {target} found it")}
    )
    done = run(planrun, agent(apply="never", **keys), model)
    [row] = shared(planrun.folder)["delegations"]
    assert (row["rule"], row["from"], row["to"], row["result"]) == (rule, source, target, "completed")
    assert (row["score"], row["depth"], bool(row["reason"])) == (0.5, 1, True)
    own, child = ledger(planrun.folder)["agents"]
    assert (child["type"], child["parent"], child["depth"], child["status"]) == (
        target,
        own["id"],
        1,
        "completed",
    )
    allowed = {*own["tools"], *keys.get("tools", {}).get("allow", ())}
    assert set(child["tools"]) <= allowed, "no agent has a tool that its step does not allow"
    assert f"({rule})" in told[0]
    assert f"the {target} found it" in told[0]
    assert f"{source} delegates to {target}" in done.stderr
    assert planrun("verify", "last").returncode == 0
    assert planrun("replay", "last").returncode == 0


@pytest.mark.parametrize(
    ("keys", "replies", "why"),
    [
        ({"type": "explore"}, [use(("bash", {"command": "make"}))], "does not allow bash agents"),
        (
            {"type": "bash", "max_turns": 20},
            [use(("bash", {"command": "pwd"}))] * 8,
            "does not allow general agents",
        ),
        ({"type": "general", "max_turns": 9}, [SAME] * 5, None),
        ({"type": "plan"}, [use(("grep", {"pattern": "return"}))], None),
    ],
)
def test_no_rule_widens_the_tools_of_a_step(
    planrun: Command, keys: dict[str, Any], replies: list[Any], why: str | None
) -> None:
    """Without the tools in `allow` nothing is delegated, and the log of the step says why; nor one turn too early."""
    run(planrun, agent(apply="never", **keys), by_role(**{keys["type"]: turns(*replies, finish())}))
    assert [found["depth"] for found in ledger(planrun.folder)["agents"]] == [0]
    [log] = planrun.folder.glob(".planrun/runs/*/logs/fix/1.log")
    assert (why or "finish") in log.read_text()
    assert ("no delegation" in log.read_text()) == bool(why)


def test_delegation_may_be_switched_off(planrun: Command) -> None:
    """`delegation: {enabled: false}`: the agent goes on by itself."""
    plan = agent(apply="never").replace("llm: {model: model-a}", together("delegation: {enabled: false}"))
    run(planrun, plan, by_role(general=turns(MISSING, finish())))
    assert shared(planrun.folder)["delegations"] == []


KEPT = {
    "success": 10,
    "failure": 10,
    "seconds": 6.0,
    "weight": 1.2,
    "recent": [0] * 10 + [1] * 10,
    "last_used": "2026-01-01T00:00:00.000Z",
}
PATH = "general:explore:file_not_found"


def keep(folder: Path, paths: dict[str, Any]) -> Path:
    """Write what earlier runs have kept."""
    place = folder / "kept" / "delegation.json"
    place.parent.mkdir()
    strategies = {"explore": [3, 1]}
    place.write_text(json.dumps({"form": "planrun delegation 1", "paths": paths, "strategies": strategies}))
    return place


@pytest.mark.shows("GM-16", "GM-17", "GM-18", "GM-19", "GM-20", "GM-25", "GM-26", "GM-27", "GM-28")
def test_the_score_is_made_of_what_earlier_runs_kept(planrun: Command) -> None:
    """(base x 0.4 + history x 0.6) x weight + trend x 0.1; the result of this run is added to the file."""
    place = keep(repository(planrun.folder), {PATH: KEPT})
    settings = together("memory: {store: write, dir: kept}")
    plan = agent(apply="never").replace("llm: {model: model-a}", settings)
    run(planrun, plan, by_role(general=turns(MISSING, finish())))
    [row] = shared(planrun.folder)["delegations"]
    assert row["score_parts"] == {"base": 0.75, "history": 0.5, "weight": 1.2, "trend": 1.0, "load": 0}
    assert row["score"] == pytest.approx((0.75 * 0.4 + 0.5 * 0.6) * 1.2 + 1.0 * 0.1)
    data = json.loads(place.read_text())
    found = data["paths"][PATH]
    assert (found["success"], found["failure"], found["recent"]) == (11, 10, [0] * 9 + [1] * 11)
    assert found["weight"] == pytest.approx(1.2 + 0.1 * (2.0 - 1.2))
    assert found["seconds"] == pytest.approx(6.0 + row["seconds"], abs=0.002)
    assert data["strategies"] == {"explore": [4, 1]}
    before = place.read_bytes()
    run(planrun, plan.replace("write", "read"), by_role(general=turns(MISSING, finish())))
    assert shared(planrun.folder)["delegations"][0]["score_parts"]["history"] == pytest.approx(11 / 21)
    assert place.read_bytes() == before, "`read` changes nothing"
    run(planrun, agent(apply="never"), by_role(general=turns(MISSING, finish())))
    assert shared(planrun.folder)["delegations"][0]["score_parts"]["history"] == 0.5
    assert place.read_bytes() == before, "without a setting nothing is read or written"


@pytest.mark.shows("GM-29")
def test_the_least_recently_used_of_200_paths_gives_way(planrun: Command) -> None:
    """The file of a run has at most 200 paths."""
    place = keep(repository(planrun.folder), {f"a:b:{number}": KEPT for number in range(200)})
    settings = together("memory: {store: write, dir: kept}")
    plan = agent(apply="never").replace("llm: {model: model-a}", settings)
    run(planrun, plan, by_role(general=turns(MISSING, finish())))
    paths = list(json.loads(place.read_text())["paths"])
    assert (len(paths), paths[0], paths[-1]) == (200, "a:b:1", PATH)


def asks(role: str, content: str = "Look.", kind: str = "help_request") -> Any:
    """Ask another agent."""
    return use(("ask_agent", {"type": kind, "to_role": role, "content": content}))


@pytest.mark.shows("GM-21", "GM-22")
def test_agents_ask_each_other_to_depth_five(planrun: Command) -> None:
    """The sixth level is refused; each level has three turns less, and at least five."""
    refused: list[str] = []

    def ends(asked: Asked) -> Any:
        refused.extend(text for text in results(asked) if "depth" in text)
        return finish()

    chain = ("general", "plan", "explore", "bash", "claude-code-guide", "claude-code-guide")
    following = dict(pairwise(chain))
    model = by_role(**{role.replace("-", "_"): turns(asks(to), ends) for role, to in following.items()})
    run(planrun, agent(apply="never", max_tokens=9_000_000, max_turns=18), model)
    found = ledger(planrun.folder)["agents"]
    assert [(each["type"], each["depth"]) for each in found] == list(zip(chain, range(6), strict=True))
    assert [each["budget"]["turns"] for each in found] == [18, 15, 12, 9, 6, 5]
    assert refused == ["depth 5 is reached"]
    sent = shared(planrun.folder)["messages"]
    assert [each["status"] for each in sent] == ["answered"] * 5 + ["refused"]


@pytest.mark.shows("GM-23")
def test_a_rule_is_suppressed_after_a_failure_and_a_loop_is_cut(planrun: Command) -> None:
    """With `suppress_for: 0s` the third delegation between the same types is refused as a loop instead."""
    missing = [use(("read", {"path": f"none{number}.py"})) for number in range(3)]
    model = by_role(general=turns(*missing, finish()), explore=finish("nothing", status="failure"))
    plan = agent(apply="never")
    for settings, count, why in (
        ("delegation: {max_depth: 5}", 1, "the rule is suppressed until"),
        ("delegation: {suppress_for: 0s}", 2, "more would be a loop"),
    ):
        run(planrun, plan.replace("llm: {model: model-a}", together(settings)), model)
        rows = shared(planrun.folder)["delegations"]
        assert [row["result"] for row in rows] == ["failed"] * count
        assert ("suppressed_until" in rows[0]) == (count == 1)
        log = max(planrun.folder.glob(".planrun/runs/*/logs/fix/1.log"))
        assert why in log.read_text()


def test_the_tokens_of_another_agent_are_a_part_of_those_above(planrun: Command) -> None:
    """It gets half of what is left; what it uses is used by the agent above, whose turns are its own."""
    run(
        planrun,
        agent(apply="never", max_tokens=60_000, max_turns=3),
        by_role(general=turns(asks("explore"), finish()), explore=turns(SAME, SAME, SAME, finish())),
    )
    own, child = ledger(planrun.folder)["agents"]
    assert child["budget"]["tokens"] < 30_000
    assert child["turns"] == 4
    (crossed,) = [[event for event in events(planrun.folder) if event["type"] == "budget_crossed"]]
    assert [event for event in crossed if event["resource"] == "turns" and event["limit"] == 3] == []
    started = [event for event in events(planrun.folder) if event["type"] == "agent_started"]
    assert started[1]["budget"]["tokens"] == child["budget"]["tokens"]
    assert own["turns"] == 2


def test_a_child_cannot_use_more_than_its_part(planrun: Command) -> None:
    """The other agent fails for its budget, and the one above is told and goes on."""
    told: list[str] = []

    def ends(asked: Asked) -> Any:
        told.extend(results(asked))
        return finish()

    model = by_role(general=turns(asks("explore"), ends), explore=turns(*[SAME] * 30))
    run(planrun, agent(apply="never", max_tokens=40_000, max_turns=10), model)
    own, child = ledger(planrun.folder)["agents"]
    assert (child["status"], child["reason"], own["status"]) == ("failed", "turns", "completed")
    assert "gave no answer" in told[0]


# Messages.


@pytest.mark.shows("GM-64", "GM-65")
def test_an_agent_asks_another_one_and_waits_for_its_reply(planrun: Command) -> None:
    """Both kinds of messages; the reply is a block of data, and the ledger has the whole message."""
    told: list[str] = []

    def next_one(asked: Asked) -> Any:
        told.extend(results(asked))
        return asks("plan", "Divide it.", "delegate")

    def ends(asked: Asked) -> Any:
        told.extend(results(asked))
        return finish()

    model = by_role(
        general=turns(asks("explore", "Where is add?"), next_one, ends), explore=finish("in calc.py:1")
    )
    run(planrun, agent(apply="never"), model)
    first, second = shared(planrun.folder)["messages"]
    assert (first["type"], first["from"], first["to_role"]) == ("help_request", "fix.1", "explore")
    assert (first["content"], first["reply"], first["status"]) == (
        "Where is add?",
        "in calc.py:1",
        "answered",
    )
    assert first["to"] == ledger(planrun.folder)["agents"][1]["id"]
    assert (second["type"], second["status"], second["reply"]) == ("delegate", "answered", "report of plan")
    assert '<untrusted-data name="output of the agent explore"' in told[0]
    assert "in calc.py:1" in told[0]
    of_child = [event for event in events(planrun.folder) if event.get("agent") == first["to"]]
    assert {"agent_started", "model_asked", "model_answered", "agent_ended"} <= {
        event["type"] for event in of_child
    }
    assert {event["step"] for event in of_child} == {"fix"}


@pytest.mark.shows("GM-66")
def test_a_message_without_a_reply_ends_after_its_time(planrun: Command) -> None:
    """Three minutes by default; the agent that was asked is ended, and the one that asked goes on."""
    told: list[str] = []

    def ends(asked: Asked) -> Any:
        told.extend(results(asked))
        return finish()

    plan = agent(apply="never")
    run(planrun, plan, by_role(general=turns(asks("explore"), ends)))
    [message] = shared(planrun.folder)["messages"]
    assert seconds(message["at"], message["until"]) == pytest.approx(180.0)
    model = by_role(general=turns(asks("explore"), ends), explore=finish().but(first_byte=60.0))
    began = time.monotonic()
    run(planrun, plan.replace("llm: {model: model-a}", together("messenger: {timeout: 1s}")), model)
    [message] = shared(planrun.folder)["messages"]
    assert (message["status"], message["reply"]) == ("timeout", "no reply within 1 seconds")
    assert "no reply within 1 seconds" in told[-1]
    assert [found["status"] for found in ledger(planrun.folder)["agents"]] == ["completed", "cancelled"]
    assert time.monotonic() - began < 60


def seconds(first: str, last: str) -> float:
    """Return the seconds between two moments of a ledger."""
    from datetime import datetime

    return (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds()


def test_agents_that_would_wait_for_each_other_are_refused(planrun: Command) -> None:
    """An agent that was asked by a general agent cannot ask a general agent; nor one of a type that does not exist."""
    told: list[str] = []

    def other(asked: Asked) -> Any:
        told.extend(results(asked))
        return asks("wizard")

    def ends(asked: Asked) -> Any:
        told.extend(results(asked))
        return finish()

    model = by_role(general=turns(asks("explore"), finish()), explore=turns(asks("general"), other, ends))
    run(planrun, agent(apply="never"), model)
    assert "the agents would wait for each other: fix.1.explore1 -> fix.1 -> fix.1.explore1" in told[0]
    assert told[1].startswith("there is no type of agent 'wizard'")
    assert [found["type"] for found in ledger(planrun.folder)["agents"]] == ["general", "explore"]


# Memory.


def memory(op: str, **args: Any) -> tuple[str, dict[str, Any]]:
    """Return a call of the tool `memory`."""
    return ("memory", {"op": op, **args})


def data_in(text: str) -> Any:
    """Return the data in the block of a result."""
    return json.loads(text.split("\n")[1])


TYPES = ("fact", "insight", "filestate", "decision", "contextsnapshot")


@pytest.mark.shows("GM-50", "GM-51", "GM-52", "GM-53", "GM-54")
def test_the_memory_has_five_types_of_entries(planrun: Command) -> None:
    """Each is in ledger.json and in `planrun memory`; another type is refused."""
    writes = [memory("write", key=f"k-{kind}", type=kind, value={"of": kind}) for kind in TYPES]
    told: list[str] = []

    def ends(asked: Asked) -> Any:
        told.extend(results(asked))
        return finish()

    run(
        planrun,
        agent(apply="never"),
        turns(use(*writes, memory("write", key="k", type="mood", value=1)), ends),
    )
    entries = shared(planrun.folder)["memory"]["entries"]
    assert sorted((entry["type"], entry["value"]["of"]) for entry in entries) == sorted(
        (kind, kind) for kind in TYPES
    )
    assert {(entry["step"], entry["agent"], entry["trust"]) for entry in entries} == {
        ("fix", "fix.1", "model")
    }
    assert "must be one of fact, insight" in told[-1]
    for kind in TYPES:
        listed = planrun("memory", "last", "--type", kind, "--json")
        assert f"k-{kind}" in listed.stdout, listed.stderr


@pytest.mark.shows("GM-55", "GM-56", "GM-57", "GM-58", "GM-59", "GM-60", "GM-61")
def test_agents_write_read_delete_and_subscribe(planrun: Command) -> None:
    """Versions count writes, an expired entry is none, and a subscriber gets what other agents changed."""
    told: list[Any] = []

    def then(*calls: Any) -> Callable[[Asked], Any]:
        def reply(asked: Asked) -> Any:
            told.append([data_in(text) for text in results(asked) if '"output of memory"' in text])
            return use(*calls) if calls else finish()

        return reply

    own = turns(
        use(
            memory("subscribe"),
            memory("write", key="a", type="fact", value=1),
            memory("write", key="a", type="fact", value=2),
            memory("write", key="b", type="decision", value="keep"),
            memory("write_with_ttl", key="c", type="fact", value=3, ttl=0.3),
        ),
        then(
            memory("read", key="a"),
            memory("read_by_type", type="decision"),
            ("bash", {"command": "sleep 0.5"}),
            memory("read", key="c"),
            memory("delete", key="b"),
            memory("read_all"),
        ),
        then(("ask_agent", {"type": "delegate", "to_role": "general", "content": "Write it down."})),
        then(memory("subscribe")),
        then(),
    )
    child = turns(use(memory("write", key="d", type="insight", value="from the other")), finish())
    run(
        planrun,
        agent(apply="never"),
        lambda asked: (
            child if "Write it down" in asked.text[:20000] and "Part of the task" in asked.text else own
        )(asked),
    )
    wrote, read, _, changes = told
    assert [found.get("version") for found in wrote[1:]] == [1, 2, 1, 1]
    assert wrote[4]["expires_at"]
    assert (read[0]["entry"]["value"], read[0]["entry"]["version"]) == (2, 2)
    assert [entry["key"] for entry in read[1]["entries"]] == ["b"]
    assert (read[2], read[3]) == ({"entry": None}, {"deleted": True})
    assert [entry["key"] for entry in read[4]["entries"]] == ["a"]
    [(change, dropped)] = [(found["changes"], found["dropped"]) for found in changes]
    assert [(each["op"], each["key"], each["agent"]) for each in change if each["op"] == "write"] == [
        ("write", "d", "fix.1.general1")
    ]
    assert dropped == 0
    assert '"d"' in planrun("memory", "last", "d", "--json").stdout


@pytest.mark.shows("GM-62")
def test_the_least_recently_used_entry_gives_way(planrun: Command) -> None:
    """With three entries a fourth evicts the one that was neither read nor written for longest."""
    calls = [memory("write", key=key, type="fact", value=1) for key in "abc"]
    calls += [memory("read", key="a"), memory("write", key="d", type="fact", value=1)]
    plan = agent(apply="never").replace("llm: {model: model-a}", together("memory: {max_entries: 3}"))
    run(planrun, plan, turns(use(*calls), finish()))
    assert [entry["key"] for entry in shared(planrun.folder)["memory"]["entries"]] == ["a", "c", "d"]
    evicted = [
        event["change"]["key"]
        for event in events(planrun.folder)
        if event["type"] == "agent_noted" and event["change"]["op"] == "evict"
    ]
    assert evicted == ["b"]


@pytest.mark.shows("GM-63")
def test_a_snapshot_is_handed_to_the_next_agent_and_the_next_step(planrun: Command) -> None:
    """Six fields in the ledger, and as a block of data in the first message."""
    repository(planrun.folder)
    writes = [
        memory("write", key="calc.py", type="filestate", value="has a bug"),
        memory("write", key="cause", type="fact", value="minus instead of plus"),
        memory("write", key="way", type="decision", value="change one line"),
    ]
    first = turns(
        use(*writes, ("bash", {"command": "python3 check_calc.py"})),
        use(("bash", {"command": "cat calc.py"})),
        asks("explore"),
        finish(),
    )
    seen: dict[str, str] = {}

    def model(asked: Asked) -> Any:
        message = asked.body["messages"][0]["content"]
        text = message if isinstance(message, str) else json.dumps(message)
        role = role_of(asked)
        seen.setdefault("review" if "step review" in text else role, text)
        return finish() if role == "explore" or "step review" in text else first(asked)

    plan = agent(apply="never") + "  - {id: review, depends_on: [fix], agent: {type: plan, prompt: Look.}}\n"
    run(planrun, plan, model)
    child, step = shared(planrun.folder)["snapshots"]
    assert child["key_files"] == ["calc.py: has a bug"]
    assert child["discoveries"] == ["cause: minus instead of plus"]
    assert child["decisions"] == ["way: change one line"]
    assert child["requirements"] == ["Fix it."]
    assert any("a - b" in text for text in child["critical_results"])
    assert any("AssertionError" in text and "cat calc.py" in text for text in child["error_patterns"])
    assert step["step"] == "review"
    assert step["discoveries"] == child["discoveries"]
    for role in ("explore", "review"):
        assert 'untrusted-data name="context-snapshot"' in seen[role].replace("\\", "")
        assert "cause: minus instead of plus" in seen[role]
    assert "context-snapshot" not in seen["general"]


# Records.


def test_a_recorded_run_plays_again_without_a_service(planrun: Command) -> None:
    """`--llm-replay` of a run with messages, memory and delegation gives the same delegations, messages and entries."""
    folder = repository(planrun.folder)
    (folder / "plan.yml").write_text(by_rules(agent(apply="never")))
    calls = use(
        memory("write_with_ttl", key="a", type="fact", value=1, ttl=600),
        memory("read", key="a"),
        ("read", {"path": "clac.py"}),
    )
    model = by_role(general=turns(calls, asks("plan"), finish()))
    with FakeMessages(model) as api:
        done = planrun("execute", "plan.yml", "--llm-record", "tapes", env=api.env)
        assert done.returncode == 0, done.stderr
    first = shared(folder)
    done = planrun("execute", "plan.yml", "--llm-replay", "tapes")
    assert done.returncode == 0, done.stderr
    again = shared(folder)
    for kind, names in (
        ("delegations", ("rule", "to", "score", "result")),
        ("messages", ("type", "to", "reply")),
    ):
        assert first[kind]
        assert [[row[name] for name in names] for row in again[kind]] == [
            [row[name] for name in names] for row in first[kind]
        ]
    assert planrun("replay", "last").returncode == 0


@pytest.mark.parametrize(
    ("place", "number"),
    [("AgentStarted", 2), ("ModelAsked", 2), ("ToolCalled", 2), ("ToolReturned", 1), ("AgentEnded", 1)],
)
def test_a_killed_run_asks_no_agent_twice(planrun: Command, place: str, number: int) -> None:
    """The asked agent had a command with effects: after a kill the call is unknown, and message and agent ended."""
    folder = repository(planrun.folder)
    plan = agent(apply="auto").replace("llm: {model: model-a}", together("delegation: {enabled: false}"))
    (folder / "plan.yml").write_text(plan)

    def ends(asked: Asked) -> Any:
        assert "not known whether" in results(asked)[0] or "appended" in results(asked)[0]
        return finish()

    once = use(("bash", {"command": "echo once >> effects.txt"}))
    model = by_role(general=turns(asks("bash"), ends), bash=turns(once, finish("appended")))
    with FakeMessages(model) as api:
        env = {**os.environ, **api.env, "KILL_PLACE": place, "KILL_NUMBER": str(number)}
        words = [sys.executable, "-c", KILLER, "execute", "plan.yml"]
        killed = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, check=False)
        assert killed.returncode == -9, killed.stderr
        done = planrun("resume", "last", env=api.env)
        assert done.returncode == 0, done.stderr
    agents = ledger(folder)["agents"]
    assert "bash" not in [found["type"] for found in agents if found["id"].startswith("fix.2")]
    assert not {"running"} & {found["status"] for found in agents}
    open_calls = [call for found in agents for call in found["effects"] if call["status"] == "intended"]
    assert open_calls == []
    assert {message["status"] for message in shared(folder)["messages"]} <= {"cancelled", "answered"}
    lines = (folder / "effects.txt").read_text() if (folder / "effects.txt").exists() else ""
    assert lines in ("", "once\n")


def test_a_delegation_that_was_cut_off_has_failed(planrun: Command) -> None:
    """A kill while the other agent works: the resumed run ends the delegation, and the agent goes on without it."""
    folder = repository(planrun.folder)
    (folder / "plan.yml").write_text(by_rules(agent(apply="never")))
    model = by_role(general=turns(MISSING, finish()))
    with FakeMessages(model) as api:
        env = {**os.environ, **api.env, "KILL_PLACE": "AgentStarted", "KILL_NUMBER": "2"}
        words = [sys.executable, "-c", KILLER, "execute", "plan.yml"]
        subprocess.run(words, cwd=folder, env=env, capture_output=True, check=False)
        done = planrun("resume", "last", env=api.env)
        assert done.returncode == 0, done.stderr
    [row] = shared(folder)["delegations"]
    assert (row["rule"], row["result"]) == ("file-not-found", "failed")
    assert [message["status"] for message in shared(folder)["messages"]] == ["cancelled"]
    assert planrun("verify", "last").returncode == 0


@pytest.mark.shows("GM-24")
def test_a_plan_may_allow_fewer_agents_at_once(planrun: Command) -> None:
    """With `max_parallel_agents: 2` the third agent of four waits for an end; one that is asked takes no place."""
    head = agent(apply="never").partition("steps:")[0]
    head = head.replace("llm: {model: model-a}", together("delegation: {max_parallel_agents: 2}"))
    step = "  - {id: a%d, agent: {type: plan, prompt: Look.}}\n"
    plan = f"{head}limits: {{max_parallel: 4}}\nsteps:\n" + "".join(step % number for number in range(4))
    run(planrun, plan, by_role(plan=turns(asks("explore"), finish().but(first_byte=0.3))))
    working, most = 0, 0
    for event in events(planrun.folder):
        if event.get("parent") or "explore" in event.get("agent", ""):
            continue
        working += {"agent_started": 1, "agent_ended": -1}.get(event["type"], 0)
        most = max(most, working)
    assert most == 2
    assert len(ledger(planrun.folder)["agents"]) == 8
