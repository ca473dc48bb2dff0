"""Record anew what docs/agents.sh replays: `python -m tests.docs.record_agents`.

A service of our own on loopback answers by the script below, which reads the results of the tools; no model is asked.
Every change of a prompt or of a tool makes this necessary. The page is written anew as well; look at its diff.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.agents.worlds import finish, results
from tests.docs.pages import DOCS
from tests.fakes.messages import FakeMessages, use

if TYPE_CHECKING:
    from tests.fakes.messages import Asked, Reply

LIMIT = 600.0
RECORDINGS = DOCS / "agents"
CHECK = ("bash", {"command": "python3 check_calc.py"})


def explorer(asked: Asked) -> Reply:
    """Find the cause by reading."""
    turn = len(asked.body["messages"])
    if turn == 1:
        return use(("read", {"path": "check_calc.py"}), ("glob", {"pattern": "*.py"}))
    if turn == 3:
        module = re.search(r"from (\w+) import", results(asked)[0])
        assert module
        return use(("read", {"path": f"{module[1]}.py"}))
    line = re.search(r"^ *(\d+)\t +(return a)$", results(asked)[0], re.MULTILINE)
    assert line
    place = f"calc.py:{line[1]}"
    return finish(f"{place}: it says `{line[2]}`, and the check wants a sum", evidence=(place,))


def general(asked: Asked) -> Reply:
    """Run the check, mend the line that the report names, run the check again."""
    turn = len(asked.body["messages"])
    if turn == 1:
        return use(CHECK, ("read", {"path": "calc.py"}))
    if turn == 3:
        assert "add(2, 3) is 2" in results(asked)[0]
        return use(("edit", {"path": "calc.py", "old": "return a", "new": "return a + b"}))
    if turn == 5:
        return use(CHECK, ("diff", {}))
    assert "passed" in results(asked)[0]
    return finish("add adds now", evidence=("python3 check_calc.py: passed",))


def model(asked: Asked) -> Reply:
    """Be the explorer or the general agent, by the task."""
    return explorer(asked) if "step find" in asked.text else general(asked)


def main() -> int:
    """Record, then write the page anew; 0 when both went well."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "recordings"
        with FakeMessages(model) as api:
            path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
            done = subprocess.run(
                ["bash", DOCS / "agents.sh"],
                env={**os.environ, **api.env, "PATH": path, "AGENTS_RECORD": str(folder)},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=LIMIT,
                check=False,
            )
            wrong = api.journal.verdicts()
        if done.returncode or wrong:
            print(done.stdout, done.stderr, *wrong, sep="\n")
            return 1
        print(done.stdout)
        shutil.rmtree(RECORDINGS, ignore_errors=True)
        shutil.copytree(folder, RECORDINGS)
    test = str(Path(__file__).with_name("test_agents_page.py"))
    words = ["-q", "-p", "no:cacheprovider", "--update-goldens", test]
    return subprocess.run([sys.executable, "-m", "pytest", *words], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
