"""Tools of MCP servers: real servers, started by planrun in sandboxes, with a scripted model."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.agents.worlds import ended, events, finish, ledger, repository, results
from tests.fakes.messages import FakeMessages, use

if TYPE_CHECKING:
    from subprocess import CompletedProcess

    from tests.conftest import Command
    from tests.fakes.messages import Asked

SERVER = Path(__file__).parents[1] / "fakes" / "mcp" / "server.py"
CLASSES = {
    "find": "read-only",
    "count": "read-only",
    "huge": "read-only",
    "swap": "read-only",
    "crash": "low",
}
CLASSES |= {
    "fail": "read-only",
    "sleep": "read-only",
    "variables": "read-only",
    "read": "low",
    "write": "low",
}


def plan(server: dict[str, Any], agent: dict[str, Any] | None = None, **more: Any) -> str:
    """Return a plan with one server `notes` and one agent."""
    mcp = {"servers": {"notes": {"command": [sys.executable, "notes.py"], "classes": CLASSES, **server}}}
    step = {"id": "fix", "agent": {"prompt": "Fix it.", "apply": "never", **(agent or {})}}
    policy = {"auto_approve": "medium", "llm_auto_approve": "medium"}
    whole = {"version": 1, "llm": {"model": "model-a"}, "policy": policy, "mcp": mcp, "steps": [step], **more}
    return json.dumps(whole)


def run(planrun: Command, text: str, model: Any, **env: str) -> CompletedProcess[str]:
    """Run a plan in a repository that holds the server."""
    repository(planrun.folder)
    (planrun.folder / "notes.py").write_text(SERVER.read_text())
    (planrun.folder / "plan.yml").write_text(text)
    with FakeMessages(model) as api:
        return planrun("execute", "plan.yml", env={**api.env, **env})


def pins(planrun: Command) -> dict[str, str]:
    """Return the digests that `planrun mcp list` shows."""
    found = json.loads(planrun("mcp", "list", "plan.yml", "--json").stdout)
    return {tool["name"]: tool["digest"] for tool in found["servers"][0]["tools"]}


def effects(planrun: Command) -> list[dict[str, Any]]:
    """Return the calls of the agent in the report."""
    (found,) = ledger(planrun.folder)["agents"]
    return list(found["effects"])


class Seen:
    """A model that makes one call a turn and keeps the results."""

    def __init__(self, *calls: tuple[str, dict[str, Any]]) -> None:
        self.calls = calls
        self.results: list[str] = []
        self.tools: list[str] = []
        self.asked: list[Asked] = []

    def __call__(self, asked: Asked) -> Any:
        turn = sum(message["role"] == "assistant" for message in asked.body["messages"])
        self.asked.append(asked)
        self.tools = [tool["name"] for tool in asked.body["tools"]]
        if turn:
            self.results.append(results(asked)[0])
        return use(self.calls[turn]) if turn < len(self.calls) else finish("done")


@pytest.mark.shows("D-63")
def test_an_agent_calls_tools_of_a_server(planrun: Command) -> None:
    """Its tools are offered by name; each call is recorded before and after; results are data; one session serves."""
    model = Seen(
        ("mcp__notes__find", {"name": "calc"}), ("mcp__notes__count", {}), ("mcp__notes__count", {}),
        ("mcp__notes__fail", {}), ("mcp__notes__huge", {"count": 3_000_000}), ("mcp__notes__find", {"nam": 1}),
    )  # fmt: skip
    done = run(planrun, plan({}), model)
    assert done.returncode == 0, done.stderr
    assert {"mcp__notes__find", "mcp__notes__write"} <= set(model.tools)
    text, one, two, failed, huge, wrong = model.results
    assert text.startswith('<untrusted-data name="output of mcp__notes__find"')
    assert "add must add" in text
    assert [each.splitlines()[1] for each in (one, two)] == ["1", "2"]
    assert "Error executing tool fail" in failed
    assert len(huge) < 100_000
    assert "left out" in huge
    assert "name" in wrong
    found = effects(planrun)
    assert [each["tool"] for each in found][:2] == ["mcp__notes", "mcp__notes__find"]
    assert found[1]["risk"] == "read-only"
    assert [each["status"] for each in found] == ["done"] * 4 + ["failed", "done", "failed"]
    kinds = [event["type"] for event in events(planrun.folder) if event.get("name") == "mcp__notes__find"]
    assert kinds == ["tool_called", "tool_returned"] * 2
    (agent,) = ledger(planrun.folder)["agents"]
    assert agent["stats"]["tool_calls"] == 6  # the start of the server is none
    assert planrun("verify", "last").returncode == 0


def test_a_server_is_confined_and_knows_only_its_secrets(planrun: Command) -> None:
    """It sees no variable that the plan does not give it, no file outside, and writes in the copy alone."""
    outside = planrun.folder.parent / "outside.txt"
    outside.write_text("private")
    model = Seen(
        ("mcp__notes__variables", {}),
        ("mcp__notes__read", {"path": str(outside)}),
        ("mcp__notes__write", {"path": str(planrun.folder / "calc.py"), "text": "gone"}),
        ("mcp__notes__write", {"path": "new.txt", "text": "mine"}),
    )
    text = plan({"env": {"LEVEL": "info"}}, secrets=[{"name": "DEPLOY_KEY"}])
    done = run(planrun, text, model, DEPLOY_KEY="deploy-key-0123456789")
    assert done.returncode == 0, done.stderr
    variables, read, write, own = model.results
    assert "LEVEL=info" in variables
    assert "DEPLOY_KEY" not in variables
    assert "ANTHROPIC" not in variables
    assert "private" not in read
    assert str(planrun.folder) in write  # it is a folder of its own there
    assert "wrote new.txt" in own
    assert (planrun.folder / "calc.py").read_text() != "gone"
    (patch,) = planrun.folder.glob(".planrun/runs/*/patches/fix/1.patch")
    assert "new.txt" in patch.read_text()


def test_a_server_with_a_secret_runs_from_the_workspace_and_masks_it(planrun: Command) -> None:
    """It gets the secret that it lists, writes nothing, does not see the copy, and the value is masked."""
    model = Seen(
        ("mcp__notes__variables", {}),
        ("write", {"path": "note.txt", "content": "of the agent"}),
        ("mcp__notes__read", {"path": "note.txt"}),
        ("mcp__notes__write", {"path": "other.txt", "text": "x"}),
    )
    text = plan({"secrets": ["NOTES_KEY"]}, secrets=["NOTES_KEY"])
    done = run(planrun, text, model, NOTES_KEY="notes-key-0123456789")
    assert done.returncode == 0, done.stderr
    assert "NOTES_KEY=***" in model.results[0]
    assert "of the agent" not in model.results[2]
    assert "wrote" not in model.results[3]
    for path in planrun.folder.glob(".planrun/runs/**/*"):
        assert not path.is_file() or b"notes-key-0123456789" not in path.read_bytes(), path


def test_a_description_that_is_not_pinned_ends_the_step(planrun: Command) -> None:
    """Pins fit what `mcp pin` wrote; another description fails the step before any call, naming the tool."""
    repository(planrun.folder)
    (planrun.folder / "notes.py").write_text(SERVER.read_text())
    (planrun.folder / "plan.yml").write_text(plan({}))
    known = pins(planrun)
    model = Seen(("mcp__notes__find", {"name": "calc"}))
    done = run(planrun, plan({"pins": {"find": known["find"]}}), model)
    assert done.returncode == 0, done.stderr
    assert [name for name in model.tools if name.startswith("mcp__")] == ["mcp__notes__find"]
    (planrun.folder / "notes.py").write_text(
        SERVER.read_text().replace("the note with", "the first note with")
    )
    model = Seen(("mcp__notes__find", {"name": "calc"}))
    with FakeMessages(model) as api:
        done = planrun("execute", "plan.yml", env=api.env)
    assert not model.asked
    assert done.returncode == 1
    assert "failed: mcp" in done.stderr
    assert "mcp__notes__find is not what was reviewed" in done.stderr


def test_a_server_that_changes_its_tools_during_a_run_ends_the_step(planrun: Command) -> None:
    """The next call of a tool whose description changed is not made."""
    model = Seen(("mcp__notes__swap", {}), ("mcp__notes__find", {"name": "calc"}))
    done = run(planrun, plan({}), model)
    assert done.returncode == 1
    assert ended(planrun.folder)["reason"] == "mcp"
    assert "has changed the description of the tool find" in done.stderr
    assert len(model.asked) == 2


def test_calls_are_judged_by_the_class_of_the_plan(planrun: Command) -> None:
    """A tool without a class is high, and denied; a policy denies one by its name."""
    deny = [{"deny": {"tool": "mcp__notes__count"}}]
    policy = {"auto_approve": "medium", "llm_auto_approve": "medium", "rules": deny}
    model = Seen(("mcp__notes__find", {"name": "x"}), ("mcp__notes__count", {}))
    done = run(planrun, plan({"classes": {"count": "read-only"}}, policy=policy), model)
    assert done.returncode == 0, done.stderr
    assert "denied" in model.results[0]
    assert "no class in the plan" in model.results[0]
    assert "denied" in model.results[1]
    found = effects(planrun)
    assert [(each["risk"], each["answer"]) for each in found[1:]] == [("high", "ask"), ("read-only", "deny")]


def test_servers_that_fail_have_clear_errors(planrun: Command) -> None:
    """A crash and a late answer are failed calls; the next call of a server that is gone says so."""
    model = Seen(
        ("mcp__notes__sleep", {"seconds": 30}), ("mcp__notes__crash", {}), ("mcp__notes__find", {"name": "x"})
    )
    done = run(planrun, plan({"timeout": "4s"}), model)
    assert done.returncode == 0, done.stderr
    late, crashed, gone = model.results
    assert "did not answer within 4 s" in late
    assert "the MCP server notes has ended" in crashed
    assert "the MCP server notes" in gone


@pytest.mark.parametrize(
    ("behaviour", "message"),
    [("garbage", "1 line on its stdout are no MCP messages"), ("crash_at_start", "no configuration")],
)
def test_a_server_that_does_not_start_ends_the_step(planrun: Command, behaviour: str, message: str) -> None:
    """No model is asked, and the error says what the server printed."""
    model = Seen()
    server = {"command": [sys.executable, "notes.py", behaviour], "timeout": "3s"}
    done = run(planrun, plan(server), model)
    assert done.returncode == 1
    assert ended(planrun.folder)["reason"] == "mcp"
    assert message in done.stderr
    assert not model.asked


def free_port() -> int:
    """Return a port of this machine that nothing listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def test_a_server_at_an_address_is_reached_through_its_sandbox(planrun: Command) -> None:
    """A server over HTTP is called at the address of the plan, with a header that is a secret."""
    port = free_port()
    with subprocess.Popen([sys.executable, str(SERVER), "http", str(port)]) as process:
        try:
            model = Seen(("mcp__notes__find", {"name": "owner"}), ("mcp__notes__count", {}))
            servers = {"notes": {"url": f"http://127.0.0.1:{port}/mcp", "classes": CLASSES}}
            servers["notes"]["secret_headers"] = {"Authorization": "NOTES_AUTH"}
            text = plan({}, mcp={"servers": servers}, secrets=["NOTES_AUTH"])
            wait_for(port)
            done = run(planrun, text, model, NOTES_AUTH="Bearer 0123456789")
        finally:
            process.kill()
    assert done.returncode == 0, done.stderr
    assert "Ann owns calc.py" in model.results[0]


def wait_for(port: int) -> None:
    """Wait until something listens on a port."""
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError("the server does not listen")


def test_doctor_says_which_servers_start(planrun: Command) -> None:
    """A server is started in a sandbox; one that fails and one with secrets are named."""
    notes = [sys.executable, "notes.py"]
    servers = {
        "good": {"command": notes},
        "bad": {"command": [*notes, "crash_at_start"]},
        "keyed": {"command": notes, "secrets": ["KEY"]},
    }
    (planrun.folder / "notes.py").write_text(SERVER.read_text())
    (planrun.folder / "plan.yml").write_text(plan({}, mcp={"servers": servers}, secrets=["KEY"]))
    out = planrun("doctor").stdout
    assert "good starts, 10 tools" in out
    assert "bad does not start: no configuration" in out
    assert "keyed gets secrets or a network, and is not started here" in out
