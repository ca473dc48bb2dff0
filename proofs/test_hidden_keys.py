"""While a model is asked, a step finds the key nowhere: not in the files of /proc, and in nobody's memory."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from planrun import entry
from proofs.calls import altered
from proofs.environment import users
from tests.fakes.messages import FakeMessages, broken
from tests.llm.asking import PATIENCE, until

ROOT = Path(__file__).parents[1]
BURGLAR = ROOT / "proofs" / "burglar.py"
KEY = "planted-00-" + os.urandom(8).hex()
"""Of the form that burglars look for."""
DRIVER = """
import os, subprocess, sys
sys.path.insert(0, {root!r})
from planrun.executors.hardening import harden
from planrun import entry
entry.PATH = {main!r}
harden(["ANTHROPIC_API_KEY"])
from planrun.planner.models import open_model
from planrun.settings import Settings
from planrun.model.call import Request
said = {{"role": "user", "content": "x"}}
model = open_model(Settings(llm_model="m"))
model.ask(Request(purpose="replan", model="m", system=(), messages=(said,), max_tokens=99, seconds={limit}))
while not os.path.exists({asked!r}):
    model.wait(0.05)
env = {{"PATH": os.environ["PATH"], "PLANRUN_RUN": "none"}}
text = f"import sys; sys.path.insert(0, {tools!r}); import burglar, json;"
text += f"open({loot!r}, 'w').write(json.dumps(burglar.look({{model.pid}})))"
done = subprocess.run([sys.executable, "-I", "-S", "-c", text], env=env, check=False)
model.close()
sys.exit(done.returncode)
"""
"""What planrun does before a step: it hides, and asks a model. Then the step looks at the process that asks."""


def look(user: int, main: str) -> dict[str, dict[str, Any]]:
    """Return what a step of this user sees of the process that calls a model, in the middle of a call."""
    with tempfile.TemporaryDirectory(prefix="hidden-") as name:
        os.chown(name, user, -1)
        return _look(Path(name).resolve(), user, main)


def _look(folder: Path, user: int, main: str) -> dict[str, dict[str, Any]]:
    text = DRIVER.format(
        root=str(ROOT),
        main=main,
        limit=PATIENCE,
        asked=str(folder / "asked"),
        tools=str(BURGLAR.parent),
        loot=str(folder / "loot"),
    )
    with FakeMessages([broken("stall")], key=KEY) as api:
        env = {**os.environ, **api.env, "PYTHONDONTWRITEBYTECODE": "1"}
        argv = [sys.executable, "-c", text]
        other: dict[str, Any] = {"user": user, "group": user, "extra_groups": []}
        with subprocess.Popen(argv, env=env, cwd=folder, **(other if user != os.getuid() else {})) as driver:
            until(
                lambda: driver.poll() is not None or (api.journal.asked and api.journal.asked[0].text),
                "the text came",
            )
            (folder / "asked").write_text("")
            try:
                assert driver.wait(PATIENCE) == 0
            finally:
                driver.kill()
    found: dict[str, dict[str, Any]] = json.loads((folder / "loot").read_text())
    return found


@pytest.mark.skipif(platform.system() != "Linux", reason="other systems have no such files")
@pytest.mark.parametrize("user", users())
def test_a_step_does_not_find_the_key(user: int) -> None:
    """No way to read the process shows the key, nor does the environment or command line of anybody else."""
    found = look(user, entry.PATH)
    assert {way: loot["found"] for way, loot in found.items() if loot["found"]} == {}
    for way in (
        "memory of planrun",
        "the same by process_vm_readv",
        "the same by ptrace",
        "files of planrun",
    ):
        assert found[way]["says"] in ("Permission denied", "Operation not permitted"), way


@pytest.mark.skipif(platform.system() != "Linux", reason="other systems have no such files")
def test_a_process_without_shelter_is_found_out() -> None:
    """Without its shelter the same step reads the key out of the memory of the process."""
    with altered("serve.py", "library.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)", "return 'hidden'") as main:
        found = look(os.getuid(), main)
    assert found["memory of planrun"]["found"] == [KEY]
