"""What tests of agents share: a repository with a bug, plans, and models that read the results of their tools."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from planrun.model.agenttypes import NOT_OFFERED, TOOLS
from tests.fakes.messages import use

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.conftest import Command
    from tests.fakes.messages import Asked, FakeMessages, Reply

BUG = "def add(a, b):\n    return a - b\n"
FIXED = BUG.replace("-", "+")
# Within a second Python takes a changed file of the same size for the one that it compiled: the test compiles none.
UNCOMPILED = "import sys\n\nsys.dont_write_bytecode = True\n"
TEST = UNCOMPILED + "from calc import add\n\nassert add(2, 3) == 5, add(2, 3)\nprint('passed')\n"
HEAD = "version: 1\nllm: {model: model-a}\npolicy: {auto_approve: medium, llm_auto_approve: medium}\nsteps:\n"


def repository(folder: Path) -> Path:
    """Make a repository in a folder whose only test fails, with one commit."""
    (folder / "calc.py").write_text(BUG)
    (folder / "check_calc.py").write_text(TEST)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "begin")
    return folder


def git(folder: Path, *words: str) -> str:
    """Run git in a folder and return what it prints."""
    known = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgSign=false")
    done = subprocess.run(["git", *known, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout


def agent(**keys: Any) -> str:
    """Return a plan with one step `fix` that is an agent; keys of the step in `step`."""
    step = keys.pop("step", {})
    return HEAD + f"  - {json.dumps({'id': 'fix', **step, 'agent': {'prompt': 'Fix it.', **keys}})}\n"


def finish(
    summary: str = "done", status: str = "success", evidence: tuple[str, ...] = ("calc.py:2",)
) -> Reply:
    """End the work of an agent."""
    return use(("finish", {"status": status, "summary": summary, "evidence": list(evidence)}))


def results(asked: Asked) -> list[str]:
    """Return the results of the calls that the last answer made."""
    content = asked.body["messages"][-1]["content"]
    return [block["content"] for block in content if block["type"] == "tool_result"]


def turns(*replies: Any) -> Callable[[Asked], Any]:
    """Return a model that gives one reply a turn of each conversation; a function gets the request."""

    def answer(asked: Asked) -> Any:
        turn = sum(message["role"] == "assistant" for message in asked.body["messages"])
        reply = replies[min(turn, len(replies) - 1)]
        return reply(asked) if callable(reply) else reply

    return answer


ALL = {"allow": [name for name in TOOLS if name not in NOT_OFFERED]}
"""The key `tools` of an agent with those besides that only a plan gives which names them."""
EDIT = ("edit", {"path": "calc.py", "old": "a - b", "new": "a + b"})
FIXING = turns(use(("read", {"path": "calc.py"})), use(EDIT), finish("add adds now"))
"""A model that mends the bug in three turns."""


def events(folder: Path) -> list[dict[str, Any]]:
    """Return the events of the only run in a folder."""
    (ledger,) = folder.glob(".planrun/runs/*/ledger.jsonl")
    return [json.loads(line) for line in ledger.read_text().splitlines()]


def ledger(folder: Path) -> dict[str, Any]:
    """Return the report `ledger.json` of the last run."""
    found: dict[str, Any] = json.loads((folder / "planrun-out" / "ledger.json").read_text())
    return found


def ended(folder: Path, step: str = "fix") -> dict[str, Any]:
    """Return the end of the last attempt of a step."""
    return [each for each in events(folder) if each["type"] == "attempt_ended" and each["step"] == step][-1]


def snapshot(folder: Path) -> dict[str, bytes | str]:
    """Return every file and link below a folder, without records and reports of planrun."""
    found: dict[str, bytes | str] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if name.startswith((".planrun", "planrun-out")):
            continue
        if path.is_symlink():
            found[name] = str(path.readlink())
        elif path.is_file():
            found[name] = path.read_bytes()
    return found


@contextmanager
def started(planrun: Command, api: FakeMessages) -> Iterator[subprocess.Popen[bytes]]:
    """Start `planrun execute plan.yml` and leave it running."""
    words = [sys.executable, "-m", "planrun", "execute", "plan.yml"]
    env = {**os.environ, **api.env}
    process = subprocess.Popen(
        words, cwd=planrun.folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()
