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

from planrun.model.agenttools import MAX_RESULT
from planrun.model.mcp import Server, drift, tools_of
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
    """Its tools are offered by name; each call is recorded before and after; results are data; one session serves.

    At last the server changes what a tool is said to do: the next call of it ends the step, and is not made.
    """
    model = Seen(
        ("mcp__notes__find", {"name": "calc"}), ("mcp__notes__count", {}), ("mcp__notes__count", {}),
        ("mcp__notes__fail", {}), ("mcp__notes__huge", {"count": 3_000_000}), ("mcp__notes__find", {"nam": 1}),
        ("mcp__notes__swap", {}), ("mcp__notes__find", {"name": "calc"}),
    )  # fmt: skip
    done = run(planrun, plan({}), model)
    assert done.returncode == 1
    assert ended(planrun.folder)["reason"] == "mcp"
    assert "has changed the description of the tool find" in done.stderr
    assert {"mcp__notes__find", "mcp__notes__write"} <= set(model.tools)
    assert not {"web_fetch", "enter_plan_mode", "exit_plan_mode"} & set(model.tools)
    text, one, two, failed, huge, wrong, _ = model.results
    assert text.startswith('<untrusted-data name="output of mcp__notes__find"')
    assert "add must add" in text
    assert [each.splitlines()[1] for each in (one, two)] == ["1", "2"]
    assert "Error executing tool fail" in failed
    assert len(huge) < MAX_RESULT + 300  # with the marks around it
    assert "left out" in huge
    assert "name" in wrong
    found = effects(planrun)
    assert [each["tool"] for each in found][:2] == ["mcp__notes", "mcp__notes__find"]
    assert found[1]["risk"] == "read-only"
    assert [each["status"] for each in found] == ["done"] * 4 + ["failed", "done", "failed", "done", "failed"]
    kinds = [event["type"] for event in events(planrun.folder) if event.get("name") == "mcp__notes__find"]
    assert kinds == ["tool_called", "tool_returned"] * 3
    (agent,) = ledger(planrun.folder)["agents"]
    assert agent["stats"]["tool_calls"] == 8  # the start of the server is none
    assert planrun("verify", "last").returncode == 0


@pytest.mark.shows("N-23")
def test_a_server_is_confined_and_its_calls_are_judged(planrun: Command) -> None:
    """It sees no variable that the plan does not give it and no file outside, and writes in the copy alone.

    A tool without a class is high, and denied; a policy denies one by its name; a late answer is a failed call;
    a tool that no server of the plan offers is none.
    """
    outside = planrun.folder.parent / "outside.txt"
    outside.write_text("private")
    model = Seen(
        ("mcp__notes__variables", {}),
        ("mcp__notes__read", {"path": str(outside)}),
        ("mcp__notes__write", {"path": str(planrun.folder / "calc.py"), "text": "gone"}),
        ("mcp__notes__write", {"path": "new.txt", "text": "mine"}),
        ("mcp__notes__find", {"name": "x"}),
        ("mcp__notes__count", {}),
        ("mcp__notes__sleep", {"seconds": 60}),
        ("mcp__other__find", {"name": "x"}),
    )
    classes = {name: level for name, level in CLASSES.items() if name != "find"}
    server = {"env": {"LEVEL": "info"}, "classes": classes, "timeout": "8s"}
    deny = [{"deny": {"tool": "mcp__notes__count"}}]
    policy = {"auto_approve": "medium", "llm_auto_approve": "medium", "rules": deny}
    text = plan(server, secrets=[{"name": "DEPLOY_KEY"}], policy=policy)
    done = run(planrun, text, model, DEPLOY_KEY="deploy-key-0123456789")
    assert done.returncode == 0, done.stderr
    variables, read, write, own, high, denied, late, other = model.results
    assert "LEVEL=info" in variables
    assert "DEPLOY_KEY" not in variables
    assert "ANTHROPIC" not in variables
    assert "private" not in read
    assert str(planrun.folder) in write  # it is a folder of its own there
    assert "wrote new.txt" in own
    assert (planrun.folder / "calc.py").read_text() != "gone"
    (patch,) = planrun.folder.glob(".planrun/runs/*/patches/fix/1.patch")
    assert "new.txt" in patch.read_text()
    assert "no class in the plan" in high
    assert "denied" in denied
    found = {each["tool"]: (each["risk"], each["answer"]) for each in effects(planrun)}
    assert found["mcp__notes__find"] == ("high", "ask")
    assert found["mcp__notes__count"] == ("read-only", "deny")
    assert "did not answer within 8 s" in late
    assert "you do not have a tool 'mcp__other__find'" in other


def test_a_server_with_a_secret_runs_from_the_workspace_and_masks_it(planrun: Command) -> None:
    """It gets the secret that it lists, writes nothing, does not see the copy, and the value is masked.

    When it crashes the call fails, and later ones say that it has ended.
    """
    model = Seen(
        ("mcp__notes__variables", {}),
        ("write", {"path": "note.txt", "content": "of the agent"}),
        ("mcp__notes__read", {"path": "note.txt"}),
        ("mcp__notes__write", {"path": "other.txt", "text": "x"}),
        ("mcp__notes__crash", {}),
        ("mcp__notes__find", {"name": "x"}),
    )
    text = plan({"secrets": ["NOTES_KEY"]}, secrets=["NOTES_KEY"])
    done = run(planrun, text, model, NOTES_KEY="notes-key-0123456789")
    assert done.returncode == 0, done.stderr
    assert "NOTES_KEY=***" in model.results[0]
    assert "of the agent" not in model.results[2]
    assert "wrote" not in model.results[3]
    assert "the MCP server notes has ended" in model.results[4]
    assert "the MCP server notes" in model.results[5]
    for path in planrun.folder.glob(".planrun/runs/**/*"):
        assert not path.is_file() or b"notes-key-0123456789" not in path.read_bytes(), path


def test_a_description_that_is_not_pinned_ends_the_step(planrun: Command) -> None:
    """`mcp pin` writes the digests; another description fails the step before a model is asked, naming the tool."""
    repository(planrun.folder)
    (planrun.folder / "notes.py").write_text(SERVER.read_text())
    (planrun.folder / "plan.yml").write_text(BLOCK.replace("PYTHON", sys.executable))
    assert planrun("mcp", "pin", "plan.yml").returncode == 0
    text = (planrun.folder / "plan.yml").read_text()
    assert text.count("        find: ") == 1
    model = Seen(("mcp__notes__find", {"name": "calc"}))
    (planrun.folder / "notes.py").write_text(
        SERVER.read_text().replace("the note with", "the first note with")
    )
    with FakeMessages(model) as api:
        done = planrun("execute", "plan.yml", env=api.env)
    assert not model.asked
    assert done.returncode == 1
    assert ended(planrun.folder)["reason"] == "mcp"
    assert "mcp__notes__find is not what was reviewed" in done.stderr


BLOCK = """\
version: 1
llm: {model: model-a}
mcp:
  servers:
    notes:
      command: [PYTHON, notes.py]  # ours
steps:
  - id: fix
    agent: {prompt: Fix it.}
"""


def test_pins_decide_which_tools_there_are() -> None:
    """A tool that differs or is gone is named; one without a pin is left out; without pins all are offered."""
    listed: list[dict[str, Any]] = [
        {"name": name, "description": name, "schema": {}} for name in ("one", "two", "three")
    ]
    server = Server(name="s", command=("x",), deny=("three",))
    tools, _ = tools_of(server, listed)
    assert [tool.name for tool in tools] == ["one", "two"]
    assert drift(server, tools) == (tools, [], [])
    pinned = server.but(pins={"one": tools[0].digest})
    assert drift(pinned, tools) == ([tools[0]], [], ["two"])
    wrong = server.but(pins={"one": "0" * 64, "gone": "1" * 64})
    kept, differing, unpinned = drift(wrong, tools)
    assert (kept, unpinned) == ([], ["two"])
    assert "mcp__s__one is not what was reviewed" in differing[0]
    assert "mcp__s__gone is pinned" in differing[1]


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


BAD = "import sys; print('hello', flush=True); sys.exit('no configuration')"


def test_doctor_says_which_servers_start(planrun: Command) -> None:
    """A server is started in a sandbox; one that fails and one with secrets are named."""
    notes = [sys.executable, "notes.py"]
    servers = {
        "good": {"command": notes},
        "bad": {"command": [sys.executable, "-c", BAD]},
        "keyed": {"command": notes, "secrets": ["KEY"]},
    }
    (planrun.folder / "notes.py").write_text(SERVER.read_text())
    (planrun.folder / "plan.yml").write_text(plan({}, mcp={"servers": servers}, secrets=["KEY"]))
    out = planrun("doctor").stdout
    assert "good starts, 10 tools" in out
    assert "bad does not start: no configuration" in out
    assert "1 line on its stdout is no MCP message" in out
    assert "keyed gets secrets or a network, and is not started here" in out
