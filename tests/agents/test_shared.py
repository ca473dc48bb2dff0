"""What the agents of a run share, wired together: events, resumption, and what is kept from run to run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from planrun.agents.delegation import Situation, decide
from planrun.agents.memory import Author
from planrun.agents.reflection import Failure
from planrun.agents.shared import Shared
from planrun.agents.snapshot import Snapshot
from planrun.errors import InternalError
from planrun.llm.untrusted import data_block
from planrun.model.collaboration import KINDS, Collaboration, Delegation, Memory, Noted, collaboration_of
from planrun.model.events import AgentNoted
from planrun.model.planning import Llm
from tests.agents.moments import START, Moments

if TYPE_CHECKING:
    from pathlib import Path


class Run(Shared):
    """What a run shares, with its clock and its ledger."""

    def __init__(self, folder: Path, **memory: Any) -> None:
        self.clock = Moments()
        self.events: list[AgentNoted] = []
        settings = Collaboration(memory=Memory(**memory), delegation=Delegation(enabled=True))
        super().__init__(settings, self.clock.stamp, self.events.append, str(folder))

    def noted(self) -> Noted:
        """Return the fold of the ledger."""
        noted = Noted()
        for event in self.events:
            noted.apply(event)
        return noted

    def work(self) -> None:
        """Let two agents use everything once."""
        self.acting("fix", "fix")
        self.roster.start("fix", "bash")
        self.feedback.failed("fix", Failure(tool="bash", args={"command": "make"}, message="a.c:1: error: x"))
        decision = decide(
            Situation(agent="bash", tool="bash", is_error=True, category="compilation_error"),
            self.metrics,
            self.book("fix"),
        )
        assert decision.chosen is not None
        number = self.book("fix").begin(decision.chosen, "fix", 1)
        message = self.post.send("delegate", "fix", decision.chosen.target, decision.query)
        self.roster.start("fix.a1", "explore", parent="fix", waiting=self.post.waiting())
        self.post.assign(message, "fix.a1")
        self.acting("fix", "fix.a1")
        self.memory.write("cause", "fact", "x is missing", Author(step="fix", agent="fix.a1"))
        self.snapshot(Snapshot(discoveries=("x is missing",)))
        self.post.reply(message, "Declare x.")
        self.roster.end("fix.a1")
        self.acting("fix", "fix")
        self.book("fix").end(number, ok=True, seconds=3.0, metrics=self.metrics)
        self.feedback.succeeded("fix", "bash", {"command": "make all"})


def test_every_change_is_an_event_of_its_step_and_agent(tmp_path: Path) -> None:
    """All five kinds; their fold has what ledger.json shows."""
    run = Run(tmp_path)
    run.work()
    assert {event.kind for event in run.events} == set(KINDS)
    assert {event.step for event in run.events} == {"fix"}
    data = run.noted().as_data(START)
    assert [entry["key"] for entry in data["memory"]["entries"]] == ["cause"]
    [delegation] = data["delegations"]
    assert (delegation["rule"], delegation["from"], delegation["to"]) == (
        "compilation-error",
        "bash",
        "explore",
    )
    assert (delegation["score"], delegation["result"], delegation["agent"]) == (0.5, "completed", "fix")
    [message] = data["messages"]
    assert (message["status"], message["reply"], message["to"]) == ("answered", "Declare x.", "fix.a1")
    [reflection] = data["reflections"]
    assert (reflection["category"], reflection["fixed"]) == ("compilation_error", True)
    [snapshot] = data["snapshots"]
    assert (snapshot["agent"], snapshot["discoveries"]) == ("fix.a1", ["x is missing"])


def test_a_resumed_run_goes_on_where_the_ledger_ends(tmp_path: Path) -> None:
    """At every event: what is restored has the same fold as the original, and writes nothing by itself."""
    run = Run(tmp_path)
    run.work()
    again = run
    for number in range(len(run.events) + 1):
        noted = Noted()
        for event in run.events[:number]:
            noted.apply(event)
        again = Run(tmp_path)
        again.restore(noted)
        assert again.events == []
        assert [entry.key for entry in again.memory.read_all()] == list(noted.memory.by_key)
        own = ("step", "agent")
        expected = [
            {key: value for key, value in row.items() if key not in own} for row in noted.delegations.rows()
        ]
        assert again.book("fix").rows() == expected
    assert again.metrics.as_data() == run.metrics.as_data()
    assert again.errors.as_data() == run.errors.as_data()


@pytest.mark.parametrize(
    ("store", "files"), [("off", []), ("read", []), ("write", ["delegation.json", "errors.json"])]
)
def test_a_run_writes_what_it_learned_only_where_the_plan_says_so(
    tmp_path: Path, store: str, files: list[str]
) -> None:
    """Off is the default; `read` uses what is there and changes nothing."""
    run = Run(tmp_path, store=store, dir="kept")
    run.work()
    run.save()
    kept = tmp_path / "kept"
    assert sorted(each.name for each in kept.glob("*.json")) == files


def test_the_next_run_uses_what_was_kept_if_it_may(tmp_path: Path) -> None:
    """The weight of a path and a fix that helped are there again, or not."""
    first = Run(tmp_path, store="write", dir="kept")
    first.work()
    first.save()
    for store, known in (("read", 1), ("write", 1), ("off", 0)):
        run = Run(tmp_path, store=store, dir="kept")
        assert (len(run.metrics.paths), len(run.errors)) == (known, known)


def test_the_advice_follows_the_result_of_a_tool(tmp_path: Path) -> None:
    """A failure gets what may help, a denial that it stays one; a success is learned from and says nothing."""
    run = Run(tmp_path)
    shown = "exit code 1\n" + data_block("output of bash", "bash: line 1: ruff: command not found", 100)
    failure = Failure(tool="bash", args={"command": "ruff"}, message=shown)
    reflection = run.after_tool("fix", failure, "failed")
    assert reflection is not None
    advice = reflection.advice()
    assert advice.startswith("[command_not_found] The program is not installed here")
    assert "Suggested fix: command -v ruff" in advice
    assert (
        run.after_tool("fix", failure.but(args={"command": "python -m ruff"}, message="ok"), "done") is None
    )
    assert [entry.weight for entry in run.errors.entries.values()] == [0.65]
    denied = Failure(tool="bash", args={}, message="denied: risk high is above low [llm_auto_approve]")
    reflection = run.after_tool("fix", denied, "denied")
    assert reflection is not None
    assert reflection.category == "policy_denied"
    assert run.after_tool("fix", denied, "unknown") is None
    unknown = Failure(tool="bash", args={}, message=data_block("output of bash", "the flux is off", 100))
    run.after_tool("fix", unknown, "failed")
    assert run.noted().as_data(START)["reflections"][-1]["error"] == "the flux is off"


def test_the_settings_of_a_plan_become_one_record() -> None:
    """What is left out has its default; without `llm` all have."""
    llm = Llm(delegation={"max_depth": 2}, messenger={"timeout": 60.0})
    found = collaboration_of(llm)
    assert (found.delegation.max_depth, found.delegation.depth_penalty) == (2, 3)
    assert (found.messenger.timeout, found.memory.max_entries) == (60.0, 500)
    assert collaboration_of(None).delegation.max_parallel_agents == 5
    assert collaboration_of(None).memory.store == "off"
    assert (collaboration_of(None).reflection.llm, collaboration_of(None).reflection.autofix) == (
        False,
        False,
    )


def test_a_note_about_something_unknown_is_a_bug() -> None:
    """The fold takes no kind that it does not know."""
    with pytest.raises(InternalError, match="an agent noted something unknown: mood"):
        Noted().apply(AgentNoted(at=START, step="s", agent="a", kind="mood", change={}))
