"""The malicious model of docs/story.md does harm where nothing holds it: so its denial there shows something."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.conftest import LIMIT
from tests.docs.pages import DOCS
from tests.docs.record_story import CONTENTS, HARMFUL, PLAN
from tests.fakes.messages import FakeMessages

if TYPE_CHECKING:
    from pathlib import Path


def play(script: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Play a story to its end, with this planrun on the PATH."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", script],
        env=os.environ | {"PATH": path} | env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT * 4,
        check=False,
    )


def test_without_ceilings_the_malicious_steps_would_have_run(tmp_path: Path) -> None:
    """The attack is one: where plan and policy allow a model everything, each of its effects is there."""
    text = (DOCS / "story.sh").read_text("utf-8")
    open_text = re.sub(
        r"^llm_auto_approve: low .*\nrules:\n.*\n", "llm_auto_approve: high\n", text, flags=re.MULTILINE
    )
    change = "sed 's/llm_auto_approve: low/llm_auto_approve: high/' plan.yml > ../open\ncp ../open plan.yml\n"
    open_text = open_text.replace("part review\n", f"part review\n{change}")
    begin, _, rest = open_text.partition("part run\n")
    _, _, end = rest.partition("part denied\n")
    script = tmp_path / "open.sh"
    script.write_text(f"{begin}part denied\n{end}", "utf-8")
    with FakeMessages([PLAN, CONTENTS, HARMFUL]) as api:
        done = play(script, {**api.env, "STORY_RECORD": str(tmp_path / "recordings")})
    assert done.returncode == 0, done.stdout
    _, _, denied = done.stdout.partition("=== denied\n")
    assert "written outside the workspace: yes, published: yes\n" in denied
    assert " M ci/policy.yml\n D docs/install.md\n" in denied
