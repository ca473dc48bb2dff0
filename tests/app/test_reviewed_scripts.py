"""Scripts are read once, before anything runs; steps run these bytes, whatever becomes of the files."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from planrun.approval.digest import digest_of, review
from planrun.errors import InvalidInput
from planrun.executors.scriptcopies import PATTERN
from planrun.plan.load import load
from tests.conftest import LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from planrun.approval.digest import Reviewed

    Run = Callable[..., subprocess.CompletedProcess[str]]

HEAD = "version: 1\nsteps:\n"


def write(folder: Path, name: str, text: str, mode: int = 0o755) -> Path:
    """Write a script into the workspace."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def plan(folder: Path, *steps: str, head: str = "") -> None:
    """Write plan.yml with steps in flow style."""
    rows = "".join(f"  - {step}\n" for step in steps)
    (folder / "plan.yml").write_text(f"version: 1\n{head}steps:\n{rows}")


def reviewed(folder: Path, **params: Any) -> Reviewed:
    """Review the plan of a workspace."""
    return review(load(str(folder / "plan.yml"), cache=False), params, str(folder))


def report(folder: Path) -> Any:
    """What ledger.json says of the last run."""
    return json.loads((folder / "planrun-out" / "ledger.json").read_bytes())


def step(folder: Path, name: str) -> Any:
    """What ledger.json says of one step."""
    return next(found for found in report(folder)["steps"] if found["id"] == name)


def notes(folder: Path, name: str) -> list[str]:
    """The notes of a step's last attempt, as the ledger has them."""
    (ledger,) = folder.glob(".planrun/runs/*/ledger.jsonl")
    events = [json.loads(line) for line in ledger.read_text().splitlines()]
    ended = [event for event in events if event["type"] == "attempt_ended" and event["step"] == name]
    return list(ended[-1].get("notes", ()))


def strays(folder: Path) -> list[str]:
    """Copies of scripts that are still in the workspace, those that a run keeps aside."""
    return [str(path) for path in folder.rglob(".planrun-*")]


def test_the_digest_is_that_of_plan_parameters_and_scripts(tmp_path: Path) -> None:
    """It changes with each of them, and neither with the order of keys and scripts nor with comments or the folder."""
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        write(folder, "a.sh", "echo a\n")
        write(folder, "b.sh", "echo b\n")
        plan(folder, "{id: x, run: ./a.sh}", "{id: y, run: bash b.sh}")
    digest = reviewed(one, p=1, q={"a": 1, "b": 2}).digest
    plan(two, "{run: ./a.sh, id: x}  # a comment", "{id: y, run: bash b.sh}")
    assert reviewed(two, q={"b": 2, "a": 1}, p=1).digest == digest
    assert reviewed(two, p=2, q={"a": 1, "b": 2}).digest != digest
    write(two, "b.sh", "echo B\n")
    assert reviewed(two, p=1, q={"a": 1, "b": 2}).digest != digest
    assert digest_of("c", {}, {"a": "1", "b": "2"}) == digest_of("c", {}, {"b": "2", "a": "1"})


def test_what_is_found_in_every_form_of_a_step(tmp_path: Path) -> None:
    """`./x.sh`, an interpreter, exec, another folder, a parameter's value, words of a text that is not understood."""
    for name in ("a.sh", "b.py", "c.sh", "sub/d.sh", "e.sh", "f.sh", "g.sh"):
        write(tmp_path, name, "true\n")
    plan(
        tmp_path,
        "{id: a, run: ./a.sh --flag}",
        "{id: b, run: python3 b.py}",
        "{id: c, exec: [./c.sh]}",
        "{id: d, workdir: sub, run: ./d.sh}",
        "{id: e, run: 'bash ${{ params.script }}'}",
        "{id: f, run: 'select x in 1; do ./f.sh; done; sh g.sh'}",
        head="params: {script: {type: string, required: true}}\n",
    )
    review = reviewed(tmp_path, script="e.sh")
    assert list(review.scripts) == ["a.sh", "b.py", "c.sh", "e.sh", "f.sh", "g.sh", "sub/d.sh"]
    assert not review.later


def test_what_is_not_covered_is_said(tmp_path: Path) -> None:
    """Files that are not there yet, folders and too large files are named with the reason; a program counts."""
    write(tmp_path, "program", "\x7fELF\0\0")
    (tmp_path / "folder").mkdir()
    with write(tmp_path, "large", "").open("wb") as file:
        file.truncate((8 << 20) + 1)
    plan(
        tmp_path,
        "{id: a, run: ./missing.sh}",
        "{id: b, run: ./program}",
        "{id: c, run: ./folder}",
        "{id: d, run: ./large}",
        "{id: e, outputs: {v: string}, run: 'echo v=x >> \"$PLANRUN_OUTPUT\"'}",
        "{id: f, depends_on: [e], run: 'bash ${{ steps.e.outputs.v }}'}",
    )
    review = reviewed(tmp_path)
    assert list(review.scripts) == ["program"]
    assert review.uncovered == {
        "missing.sh": "it does not exist when the run begins",
        "folder": "it is a folder",
        "large": "it has more than 8 MiB",
    }
    assert review.later == ("f",)


def test_links_out_of_the_workspace_and_pipes_are_refused(tmp_path: Path) -> None:
    """Before anything runs, with the step and its line; nothing hangs."""
    folder = tmp_path / "work"
    outside = write(tmp_path, "outside.sh", "true\n")
    folder.mkdir()
    (folder / "link.sh").symlink_to(outside)
    plan(folder, "{id: a, run: ./link.sh}")
    with pytest.raises(
        InvalidInput, match=r'plan.yml:3: step "a" runs link.sh, which leads out of the workspace'
    ):
        reviewed(folder)
    (folder / "link.sh").unlink()
    os.mkfifo(folder / "link.sh")
    with pytest.raises(InvalidInput, match=r"which is a pipe; a script is a regular file"):
        reviewed(folder)


@pytest.mark.shows("R15")
def test_a_script_that_an_earlier_step_changes_runs_as_reviewed(planrun: Run, tmp_path: Path) -> None:
    """The copy runs, says a note, the file stays as it was changed, and nothing is left over."""
    write(tmp_path, "x.sh", "#!/bin/sh\necho reviewed >> seen\n")
    write(tmp_path, "evil.sh", "#!/bin/sh\necho evil >> seen\n")
    plan(
        tmp_path,
        "{id: a, run: cp evil.sh x.sh}",
        "{id: b, depends_on: [a], run: ./x.sh; bash x.sh}",
        "{id: c, depends_on: [b], run: rm x.sh}",
        "{id: d, depends_on: [c], exec: [sh, x.sh]}",
    )
    done = planrun("execute", "plan.yml")
    assert done.returncode == 0, done.stderr + done.stdout
    assert (tmp_path / "seen").read_text() == "reviewed\n" * 3
    assert notes(tmp_path, "b") == ["x.sh changed after the run began; what ran is the reviewed copy"]
    assert notes(tmp_path, "d") == ["x.sh was removed after the run began; what ran is the reviewed copy"]
    assert not strays(tmp_path)


def test_scripts_find_what_is_near_them(planrun: Run, tmp_path: Path) -> None:
    """`$0`, BASH_SOURCE, `__file__`, sys.path, arguments and exit codes are what they are without planrun."""
    write(tmp_path, "scripts/lib.sh", 'say() { echo "$1 $(basename "$PWD")" >> "$TRACE"; }\n')
    head = '#!/usr/bin/env bash\nset -eu\nsource "$(dirname "${BASH_SOURCE[0]}")/lib.sh"\n'
    write(tmp_path, "scripts/a.sh", head + 'cd "$(dirname "$0")/.."\nsay "$#:$1"\nexit 7\n')
    body = "import os, sys\nfrom near import NAME\nopen(os.environ['TRACE'], 'a').write(NAME + os.path.dirname(\n"
    body += "    os.path.relpath(os.path.abspath(__file__), os.environ['PLANRUN_WORKSPACE'])) + chr(10))\n"
    write(tmp_path, "tools/b.py", "#!" + sys.executable + "\n" + body)
    write(tmp_path, "tools/near.py", "NAME = 'near '\n")
    (tmp_path / "b").symlink_to("tools/b.py")
    env = "env: {TRACE: '${{ env.PWD }}/trace', PYTHONDONTWRITEBYTECODE: '1'}\n"
    plan(
        tmp_path,
        "{id: a, run: './scripts/a.sh \"one word\"', on_failure: continue}",
        "{id: b, run: bash -u scripts/a.sh x y, on_failure: continue}",
        f"{{id: c, exec: [{sys.executable}, tools/b.py]}}",
        "{id: d, run: cd tools && ./b.py}",
        "{id: e, run: ./b}",
        head=env,
    )
    done = planrun("execute", "plan.yml", "--jobs", "1", env={"PWD": str(tmp_path)})
    assert done.returncode == 0, done.stdout + done.stderr
    assert [step(tmp_path, name)["attempts"][0]["exit_code"] for name in "ab"] == [7, 7]
    name = tmp_path.name
    lines = (tmp_path / "trace").read_text().splitlines()
    assert lines[:4] == [f"1:one word {name}", f"2:x {name}", "near tools", "near tools"]
    assert lines[4].startswith("near ")
    assert not strays(tmp_path)


def test_a_step_that_git_watches_sees_a_clean_tree(planrun: Run, tmp_path: Path) -> None:
    """Neither a script itself nor who looks after the run sees a file that was not there."""
    if shutil.which("git") is None:
        pytest.skip("needs git")
    write(tmp_path, "release.sh", '#!/bin/sh\ntest -z "$(git status --porcelain)"\n')
    (tmp_path / ".gitignore").write_text("planrun-out/\n")
    plan(tmp_path, "{id: a, run: ./release.sh}")
    for words in (
        ["init", "-q"],
        ["add", "-A"],
        ["-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "m"],
    ):
        subprocess.run(["git", *words], cwd=tmp_path, check=True, timeout=LIMIT)
    for _ in range(2):
        assert planrun("execute", "plan.yml").returncode == 0
    status = subprocess.run(
        ["git", "status", "--porcelain"], cwd=tmp_path, capture_output=True, check=True, timeout=LIMIT
    )
    assert status.stdout == b""
    assert (tmp_path / ".git" / "info" / "exclude").read_bytes().count(PATTERN) == 1


def test_a_text_that_is_not_understood_is_refused_when_its_script_changed(
    planrun: Run, tmp_path: Path
) -> None:
    """No word can be replaced there, so it does not run at all."""
    write(tmp_path, "x.sh", "#!/bin/sh\necho x >> seen\n")
    odd = "select x in 1; do ./x.sh; break; done < /dev/null; ./x.sh"
    plan(tmp_path, f'{{id: a, run: "{odd}"}}')
    assert planrun("execute", "plan.yml").returncode == 0
    assert (tmp_path / "seen").read_text() == "x\n"
    plan(tmp_path, "{id: b, run: sed -i s/echo/printf/ x.sh}", f'{{id: a, depends_on: [b], run: "{odd}"}}')
    assert planrun("execute", "plan.yml").returncode == 1
    record = step(tmp_path, "a")
    assert (record["status"], record["reason"]) == ("failed", "refused")
    assert "x.sh changed after it was reviewed" in record["attempts"][0]["error"]["message"]
    assert (tmp_path / "seen").read_text() == "x\n"


def test_a_folder_that_takes_no_file_does_not_keep_a_script_from_running(
    planrun: Run, tmp_path: Path
) -> None:
    """It runs from the run's directory then, and a note says so."""
    write(tmp_path, "closed/x.sh", "#!/bin/sh\necho ran > seen\n")
    plan(tmp_path, "{id: a, run: ./closed/x.sh}", "{id: b, exec: [sh, closed/x.sh]}")
    (tmp_path / "closed").chmod(0o555)
    try:
        if os.access(tmp_path / "closed", os.W_OK):
            pytest.skip("the superuser may write anywhere")
        assert planrun("execute", "plan.yml").returncode == 0
    finally:
        (tmp_path / "closed").chmod(0o755)
    (note,) = notes(tmp_path, "a")
    assert note == (
        "closed/x.sh ran from the run's directory, because no file can be created beside it: Permission denied"
    )


def test_resume_runs_what_the_run_keeps_and_a_plan_reads_anew(planrun: Run, tmp_path: Path) -> None:
    """A changed script changes nothing for `resume`; with --plan the steps that run it run again, and say why."""
    write(tmp_path, "x.sh", "#!/bin/sh\necho one >> seen\n")
    write(tmp_path, "y.sh", "#!/bin/sh\ntest -e ok\n")
    plan(tmp_path, "{id: a, run: ./x.sh}", "{id: z, run: 'true'}", "{id: b, depends_on: [a], run: ./y.sh}")
    assert planrun("execute", "plan.yml").returncode == 1
    before = report(tmp_path)["plan"]["digest"]
    write(tmp_path, "x.sh", "#!/bin/sh\necho two >> seen\n")
    write(tmp_path, "y.sh", "#!/bin/sh\nexit 9\n")
    (tmp_path / "ok").touch()
    done = planrun("resume", "last")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "seen").read_text() == "one\n"
    assert report(tmp_path)["plan"]["digest"] == before
    done = planrun("resume", "last", "--plan", "plan.yml")
    assert done.returncode == 1
    assert "a: the scripts it runs changed" in done.stderr
    assert "z:" not in done.stderr
    assert (tmp_path / "seen").read_text() == "one\ntwo\n"
    assert report(tmp_path)["plan"]["digest"] == reviewed(tmp_path).digest != before


def test_an_altered_copy_does_not_run(planrun: Run, tmp_path: Path) -> None:
    """The bytes are looked at again right before they run."""
    write(tmp_path, "x.sh", "#!/bin/sh\necho x >> seen\n")
    spoil = "chmod u+w .planrun/runs/*/scripts/*; echo 'echo evil >> seen' | tee .planrun/runs/*/scripts/*"
    plan(tmp_path, f'{{id: a, run: "{spoil}"}}', "{id: b, depends_on: [a], run: ./x.sh}")
    assert planrun("execute", "plan.yml").returncode == 1
    record = step(tmp_path, "b")
    assert (record["status"], record["reason"]) == ("failed", "spawn")
    assert "the run's copy of x.sh was altered" in record["attempts"][0]["error"]["message"]
    assert not (tmp_path / "seen").exists()


def test_copies_of_a_killed_planrun_are_deleted(planrun: Run, tmp_path: Path) -> None:
    """By the next run of the workspace; what only has such a name stays, and so does what holds other bytes."""
    write(tmp_path, "x.sh", "#!/bin/sh\ntouch began\nexec sleep 600\n")
    plan(tmp_path, "{id: a, run: ./x.sh}")
    process = subprocess.Popen([sys.executable, "-m", "planrun", "execute", "plan.yml"], cwd=tmp_path)
    limit = time.monotonic() + LIMIT
    while not (tmp_path / "began").exists():
        assert time.monotonic() < limit
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert len(strays(tmp_path)) == 1
    mine = write(tmp_path, ".planrun-0123456789abcdef-x.sh", "mine\n")
    plan(tmp_path, "{id: a, run: 'true'}")
    assert planrun("execute", "plan.yml").returncode == 0
    assert strays(tmp_path) == [str(mine)]


def test_a_script_that_cannot_be_started_is_reported_by_its_own_name(planrun: Run, tmp_path: Path) -> None:
    """What goes wrong says nothing of copies."""
    write(tmp_path, "x.sh", "#!/no/such/interpreter\n")
    write(tmp_path, "y.sh", "#!/bin/sh\n", 0o644)
    plan(tmp_path, "{id: a, exec: [./x.sh]}", "{id: b, exec: [./y.sh]}")
    assert planrun("execute", "plan.yml").returncode == 1
    for name in "ab":
        message = step(tmp_path, name)["attempts"][0]["error"]["message"]
        assert ".planrun-" not in message
    assert not strays(tmp_path)


FORMS = {
    "behind a wrapper": "timeout 60 ./scripts/x.sh 1",
    "behind an assignment": "A=1 ./scripts/x.sh 1",
    "in a condition": "if ./scripts/x.sh 1; then true; fi",
    "in a pipe": "true | ./scripts/x.sh 1 | cat",
    "in a loop": "for n in 1; do ./scripts/x.sh $n; done",
    "in a substitution": 'test -z "$(./scripts/x.sh 1)"',
    "by a variable": 'D=scripts; "$D/x.sh" 1',
    "with a blank, in double quotes": '"./scripts/my x.sh" 1',
    "with a blank, in single quotes": "'./scripts/my x.sh' 1",
    "with a blank, escaped": "./scripts/my\\ x.sh 1",
    "made executable first": "chmod +x closed.sh && ./closed.sh 1",
    "in another folder": "cd scripts && ./x.sh 1",
}


@pytest.mark.parametrize("form", FORMS)
def test_in_every_form_the_copy_runs(planrun: Run, tmp_path: Path, form: str) -> None:
    """However a script is named, what runs is what was reviewed; the same words that are data stay data."""
    good = '#!/bin/sh\necho "good $1" >> "$PLANRUN_WORKSPACE/seen"\n'
    for name in ("scripts/x.sh", "scripts/my x.sh", "closed.sh"):
        write(tmp_path, name, good, 0o644 if name == "closed.sh" else 0o755)
    spoil = "for f in scripts/*.sh closed.sh; do echo 'echo evil >> seen' > \"$f\"; done"
    text = json.dumps(FORMS[form] + "; echo ./scripts/x.sh > told")
    plan(tmp_path, f"{{id: a, run: {json.dumps(spoil)}}}", f"{{id: b, depends_on: [a], run: {text}}}")
    done = planrun("execute", "plan.yml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "seen").read_text() == "good 1\n"
    assert (
        tmp_path / "scripts" / "told" if "cd" in FORMS[form] else tmp_path / "told"
    ).read_text() == "./scripts/x.sh\n"
    assert not strays(tmp_path)


def test_a_script_that_the_plan_writes_is_what_it_wrote(planrun: Run, tmp_path: Path) -> None:
    """Also in a folder where it stands from the run before: its text was reviewed with the plan."""
    for word in ("one", "two"):
        plan(tmp_path, f"{{id: a, run: \"echo 'echo {word} > seen' > made.sh; bash made.sh\"}}")
        assert planrun("execute", "plan.yml").returncode == 0
        assert (tmp_path / "seen").read_text() == f"{word}\n"
    assert reviewed(tmp_path).uncovered == {"made.sh": "a step of the plan writes it"}


def test_what_records_paths_gets_the_file_itself(planrun: Run, tmp_path: Path) -> None:
    """A report of coverage would name a copy that is gone; the file is compared instead."""
    write(tmp_path, "bin/coverage", '#!/bin/sh\nshift\necho "$1" > seen\n')
    write(tmp_path, "x.py", "pass\n")
    plan(tmp_path, "{id: a, run: 'PATH=bin:$PATH coverage run ./x.py'}")
    assert planrun("execute", "plan.yml").returncode == 0
    assert (tmp_path / "seen").read_text() == "./x.py\n"
    assert list(reviewed(tmp_path).scripts) == ["bin/coverage", "x.py"]


def test_a_step_that_changes_its_own_script_gets_a_note(planrun: Run, tmp_path: Path) -> None:
    """A change in the same step does not count either, and a note says so."""
    write(tmp_path, "x.sh", "#!/bin/sh\necho old > seen\n")
    plan(tmp_path, "{id: a, run: sed -i s/old/new/ x.sh && ./x.sh}")
    assert planrun("execute", "plan.yml").returncode == 0
    assert (tmp_path / "seen").read_text() == "old\n"
    assert notes(tmp_path, "a") == ["x.sh changed while the step ran; what ran is the reviewed copy"]
