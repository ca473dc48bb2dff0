"""A person's first hour: an empty folder, the README, and what planrun itself suggests; nothing else is typed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.docs.pages import ROOT
from tests.docs.playing import Reader

if TYPE_CHECKING:
    from pathlib import Path

README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
PLAN = next(text for language, text in BLOCKS if language == "yaml" and text.startswith("version: 1\n"))
COMMANDS = next(text for language, text in BLOCKS if not language and text.startswith("planrun init"))


def begun(reader: Reader, folder: str) -> None:
    """Put planrun on the PATH as the README says, and go to an empty folder."""
    assert "`source .venv/bin/activate` puts `planrun` on the PATH" in README
    assert reader.type(f"source .venv/bin/activate; mkdir ~/{folder} && cd ~/{folder}") == ""


def saved(reader: Reader, name: str, text: str) -> None:
    """Write a file into the folder, as with an editor."""
    reader.play(f"File `{name}`:\n\n```text\n{text}```\n")


def after(label: str, printed: str) -> str:
    """Return the command that a line `label: COMMAND` of planrun suggests."""
    return str(re.findall(rf"^ *{label}: (planrun [^;\n]+)", printed, re.MULTILINE)[0]).strip()


def test_the_plan_of_the_readme_runs_as_typed(tmp_path: Path) -> None:
    """Saved in an empty folder, `planrun run` runs it and shows what its steps print."""
    with Reader(tmp_path) as reader:
        begun(reader, "first")
        saved(reader, "plan.yml", PLAN)
        printed = reader.type("planrun run")
    assert "\n1 passed\n" in printed
    assert "⊘ publish (skipped: condition)" in printed
    assert "3 steps: 2 successful, 1 skipped" in printed
    assert "exit code" not in printed


def test_each_command_of_the_readme_works_in_its_order(tmp_path: Path) -> None:
    """From an empty folder, with nothing between them; `approve` alone has nothing to do after a completed run."""
    with Reader(tmp_path) as reader:
        begun(reader, "second")
        printed = {line.split("#")[0].strip(): reader.type(line) for line in COMMANDS.splitlines()}
    failed = [
        command for command, text in printed.items() if re.search(r"^exit code \d+$", text, re.MULTILINE)
    ]
    assert failed == ["planrun approve last"]
    assert "the run" in printed["planrun approve last"]
    assert "is finished" in printed["planrun approve last"]
    assert "Hello from Linux" in printed["planrun run"] or "Hello from Darwin" in printed["planrun run"]
    assert "Hello from" in printed["planrun logs"]
    assert "nothing is written" in printed["planrun run --dry-run"]
    assert len(printed["planrun help"].splitlines()) <= 24


def test_what_planrun_suggests_leads_on(tmp_path: Path) -> None:
    """A bare `planrun`, then only commands that its own output names: to a first run, out of a typo and a failure."""
    with Reader(tmp_path) as reader:
        begun(reader, "third")
        assert "planrun init" in reader.type("planrun")
        _, run = re.findall(r"planrun \w+", reader.type("planrun init").rpartition("next: ")[2])
        assert "completed in" in reader.type(run)

        saved(
            reader,
            "plan.yml",
            "version: 1\nsteps:\n  - {id: a, rum: test -e made}\n  - {id: b, depends_on: [a]}\n",
        )
        printed = reader.type(run)
        assert 'did you mean "run"?' in printed
        assert printed.endswith("exit code 2\n")
        assert "E104: unknown key" in reader.type(after("for details", printed))

        saved(reader, "plan.yml", "version: 1\nsteps:\n  - {id: a, run: 'echo looks; test -e made'}\n")
        printed = reader.type(run)
        assert "✗ a  plan.yml:3" in printed
        assert "looks" in reader.type("planrun logs")
        reader.type("touch made")
        assert "✓ completed in" in reader.type(after("to continue", printed))
        listed = reader.type("planrun")
        assert "echo looks; test -e made" in listed
