"""The loop that learns: identify, fix, record; a success raises the weight of a fix, a failure lowers it."""

from __future__ import annotations

from typing import Any

from planrun.agents.feedback import Feedback
from planrun.agents.learned import ErrorStore
from planrun.agents.reflection import Failure, Reflector
from planrun.model.collaboration import Noted, Reflection, Rows
from planrun.model.events import AgentNoted
from tests.agents.moments import START, Moments


class Loop(Feedback):
    """A feedback loop with its store, its clock and its journal."""

    def __init__(self, **settings: Any) -> None:
        self.clock = Moments()
        self.journal: list[dict[str, Any]] = []
        self.store = ErrorStore()
        reflector = Reflector(Reflection(**settings), self.store, lambda: ("src/app.py",))
        super().__init__(reflector, self.store, self.clock.stamp, self.journal.append)

    def miss(self, path: str, agent: str = "fix") -> Any:
        """Let a call of `read` fail."""
        message = f"{path}: there is no such file"
        return self.failed(agent, Failure(tool="read", args={"path": path}, message=message))

    def weights(self) -> dict[str, float]:
        """Return the weight of each solution."""
        return {entry.solution: entry.weight for entry in self.store.entries.values()}


FIX = 'read: path "src/app.py" instead of "app.py"'


def test_a_fix_that_helped_is_recorded_and_offered_the_next_time() -> None:
    """From the first error to the suggestion for the second: the whole loop."""
    loop = Loop()
    first = loop.miss("app.py")
    assert (first.category, first.suggested_paths, first.learned) == ("file_not_found", ("src/app.py",), ())
    loop.succeeded("fix", "read", {"path": "src/app.py"})
    assert loop.weights() == {FIX: 0.65}
    assert loop.miss("lib/app.py").learned == (FIX,)
    assert [change["op"] for change in loop.journal] == ["reflect", "result", "reflect"]


def test_success_raises_and_failure_lowers_the_weight() -> None:
    """The same fix three times: helped, failed, helped."""
    loop, weights = Loop(), []
    for path in ("src/app.py", "", "src/app.py"):
        loop.miss("app.py")
        if path:
            loop.succeeded("fix", "read", {"path": path})
        else:
            loop.miss("src/app.py")
            loop.agent_ended("fix")
        weights.append(loop.weights()[FIX])
    assert weights == [0.65, 0.455, 0.6185]


def test_a_fix_that_failed_is_not_offered() -> None:
    """Its weight is under one half."""
    loop = Loop()
    loop.miss("app.py")
    loop.miss("lib/app.py")
    assert loop.weights() == {'read: path "lib/app.py" instead of "app.py"': 0.35}
    assert loop.miss("other/app.py").learned == ()


def test_the_same_call_once_more_is_a_fix_only_when_it_helps() -> None:
    """A network that came back is learned; the same failure twice says nothing."""
    loop = Loop()
    args = {"command": "curl x"}
    failure = Failure(tool="bash", args=args, message="curl: (7) Failed to connect: Connection refused")
    loop.failed("fix", failure)
    loop.failed("fix", failure)
    assert loop.weights() == {}
    loop.succeeded("fix", "bash", args)
    assert loop.weights() == {"bash: the same call once more": 0.65}


def test_only_the_same_agent_and_tool_settle_a_case() -> None:
    """Another tool that succeeds in between fixed nothing, nor did another agent."""
    loop = Loop()
    loop.miss("app.py")
    assert loop.succeeded("fix", "glob", {"pattern": "**/app.py"}) is None
    assert loop.succeeded("fix.a2", "read", {"path": "src/app.py"}) is None
    assert loop.weights() == {}
    assert loop.succeeded("fix", "read", {"path": "src/app.py"}) is not None
    assert loop.succeeded("fix", "read", {"path": "src/app.py"}) is None


def test_a_case_of_an_agent_that_ended_teaches_nothing() -> None:
    """Nothing was tried for it."""
    loop = Loop()
    loop.miss("app.py")
    loop.agent_ended("fix")
    assert loop.succeeded("fix", "read", {"path": "src/app.py"}) is None
    assert loop.weights() == {}


def test_nothing_is_learned_when_reflection_is_off() -> None:
    """No reflection, no journal, no store."""
    loop = Loop(enabled=False)
    assert loop.miss("app.py") is None
    assert loop.succeeded("fix", "read", {"path": "src/app.py"}) is None
    assert (loop.journal, loop.weights()) == ([], {})


def test_added_left_out_and_long_arguments_are_named_shortly() -> None:
    """A solution is one line that people can read."""
    loop = Loop()
    failure = Failure(tool="bash", args={"command": "x" * 500, "cwd": "a"}, message="KeyError: 'x'")
    loop.failed("fix", failure)
    entry = loop.succeeded("fix", "bash", {"command": "y", "timeout": 5})
    assert entry is not None
    assert entry.solution == f'bash: command "y" instead of "{"x" * 119}..., without cwd, timeout 5'


def test_an_analysis_by_a_model_replaces_what_was_known() -> None:
    """What is then learned has the category of the model."""
    loop = Loop(llm=True)
    found = loop.failed("fix", Failure(tool="bash", args={"command": "a"}, message="the flux is off"))
    assert found is not None
    loop.analysed("fix", found.but(category="timeout", source="model"))
    entry = loop.succeeded("fix", "bash", {"command": "b"})
    assert entry is not None
    assert entry.category == "timeout"


def test_a_ledger_gives_back_what_was_learned() -> None:
    """Weights, ids that go on, and one row for each error with its result."""
    loop = Loop()
    loop.miss("app.py")
    loop.succeeded("fix", "read", {"path": "src/app.py"})
    loop.miss("x.py")
    again = Loop()
    again.restore(loop.journal)
    assert (again.journal, again.weights()) == ([], loop.weights())
    again.miss("y.py")
    assert again.journal[0]["id"] == "fix.r3"
    rows = Rows()
    for change in loop.journal:
        rows.apply(change)
    first, second = rows.rows()
    assert (first["id"], first["fixed"], first["tried"], first["tried_weight"]) == ("fix.r1", True, FIX, 0.65)
    assert (second["id"], second["fixed"], second["category"]) == ("fix.r2", None, "file_not_found")


def test_the_fold_of_a_run_has_each_reflection_once() -> None:
    """With its step and its agent, as it stands in ledger.json."""
    loop, noted = Loop(), Noted()
    loop.miss("app.py")
    loop.succeeded("fix", "read", {"path": "src/app.py"})
    for change in loop.journal:
        noted.apply(AgentNoted(at=START, step="fix", agent="fix", kind="reflection", change=change))
    [row] = noted.as_data(START)["reflections"]
    assert (row["step"], row["agent"], row["category"], row["fixed"]) == (
        "fix",
        "fix",
        "file_not_found",
        True,
    )
    assert noted.of("reflection") == loop.journal
