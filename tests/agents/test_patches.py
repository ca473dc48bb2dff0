"""Work on a copy: the patch of an agent, its gate, its application, and what makes it fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.agents.worlds import (
    ALL,
    BUG,
    EDIT,
    FIXED,
    FIXING,
    agent,
    ended,
    events,
    finish,
    git,
    ledger,
    repository,
    results,
    snapshot,
    turns,
)
from tests.fakes.messages import FakeMessages, use

if TYPE_CHECKING:
    from subprocess import CompletedProcess

    from tests.conftest import Command

VERIFIED = {"verify": "python3 check_calc.py"}


def run(planrun: Command, plan: str, model: Any, *options: str, **env: str) -> CompletedProcess[str]:
    """Run a plan in the folder of a repository, with a scripted model."""
    (planrun.folder / "plan.yml").write_text(plan)
    with FakeMessages(model) as api:
        return planrun("execute", "plan.yml", *options, env={**api.env, **env})


def test_a_patch_waits_for_its_approval_and_is_applied_then(planrun: Command) -> None:
    """The agent works on a copy; nothing changes until the patch is approved, then the step after it starts."""
    folder = repository(planrun.folder)
    plan = agent(step=VERIFIED) + "  - {id: after, depends_on: [fix], run: cat calc.py}\n"
    done = run(planrun, plan, FIXING)
    assert done.returncode == 5, done.stderr
    assert (folder / "calc.py").read_text() == BUG
    assert "a patch of calc.py (+1 -1), sha256" in done.stderr
    shown = planrun("show", "last", "fix", "--patch")
    assert "-    return a - b\n+    return a + b\n" in shown.stdout
    page = planrun("report", "last", "--format", "html").stdout
    assert (
        page.count("-    return a - b\n+    return a + b") == 2
    )  # where it is asked for, and at its attempt
    assert "<td>add adds now" in page  # what the agent says of it
    assert "<td><code>edit</code><td><code>calc.py</code><td>done" in page
    assert planrun("approve", "last", "fix").returncode == 0
    resumed = planrun("resume", "last")
    assert resumed.returncode == 0, resumed.stderr
    assert (folder / "calc.py").read_text() == FIXED
    assert [event["step"] for event in events(folder) if event["type"] == "attempt_started"] == [
        "fix",
        "fix",
        "after",
    ]
    assert ended(folder)["reason"] == "applied"
    (found,) = ledger(folder)["agents"]
    assert found["patch"]["applied"] is True
    assert [each["path"] for each in found["patch"]["files"]] == ["calc.py"]
    step = next(each for each in ledger(folder)["steps"] if each["id"] == "fix")
    assert (step["status"], step["flaky"]) == ("completed", False)
    assert not list(folder.glob(".planrun/runs/*/copies/*/*"))
    assert planrun("replay", "last").returncode == 0
    assert planrun("verify", "last").returncode == 0
    again = planrun("resume", "last")
    assert "the run is finished" in again.stderr


def test_a_rejected_patch_changes_nothing(planrun: Command) -> None:
    """After a no the run ends denied, and the workspace is as it was."""
    folder = repository(planrun.folder)
    assert run(planrun, agent(), FIXING).returncode == 5
    before = snapshot(folder)
    assert planrun("reject", "last", "fix", "--reason", "not so").returncode == 0
    assert planrun("resume", "last").returncode == 3
    assert snapshot(folder) == before


def test_an_approval_of_the_plan_is_none_of_a_patch(planrun: Command) -> None:
    """What was approved before anything ran cannot have been the patch: it is asked for."""
    folder = repository(planrun.folder)
    plan = agent().replace("{auto_approve: medium,", "{auto_approve: none,")
    assert run(planrun, plan, FIXING).returncode == 5
    assert planrun("approve", "last").returncode == 0
    with FakeMessages(FIXING) as api:
        assert planrun("resume", "last", env=api.env).returncode == 5
    assert (folder / "calc.py").read_text() == BUG
    assert [event["rule"] for event in events(folder) if event["type"] == "gate_opened"][-1] == "agent:apply"


def test_apply_auto_applies_a_patch_of_low_risk(planrun: Command) -> None:
    """`apply: auto` leaves the decision to the policy: low risk is below llm_auto_approve."""
    folder = repository(planrun.folder)
    assert run(planrun, agent(apply="auto", step=VERIFIED), FIXING).returncode == 0
    assert (folder / "calc.py").read_text() == FIXED


@pytest.mark.parametrize(
    "path",
    [".github/workflows/ci.yml", "plan.yml", "policy.yml", ".gitlab-ci.yml", ".husky/pre-commit", ".envrc"],
)
def test_a_patch_of_files_that_control_what_runs_is_of_high_risk(planrun: Command, path: str) -> None:
    """CI files, plans, policies and hooks need an approval, whatever `apply` says."""
    folder = repository(planrun.folder)
    model = turns(use(("write", {"path": path, "content": "x: 1\n"})), finish())
    done = run(planrun, agent(apply="auto"), model)
    assert done.returncode == 5, done.stderr
    opened = [event for event in events(folder) if event["type"] == "gate_opened"][-1]
    assert opened["risk"] == "high"
    assert "controls what runs later" in opened["reason"]


def test_a_ceiling_denies_a_patch_above_its_level(planrun: Command) -> None:
    """A ceiling of the command line denies what a model wrote above its level, as for steps of models."""
    folder = repository(planrun.folder)
    (folder.parent / "ceiling.yml").write_text("llm_auto_approve: low\nauto_approve: high\n")
    model = turns(use(("write", {"path": ".envrc", "content": "x\n"})), finish())
    done = run(planrun, agent(apply="auto"), model, "--policy", "../ceiling.yml")
    assert done.returncode == 3, done.stderr
    assert not (folder / ".envrc").exists()


@pytest.mark.parametrize("way", ["never", "propose"])
def test_a_patch_is_kept_for_a_pull_request(planrun: Command, way: str) -> None:
    """`apply: never` and `--propose` apply nothing, print where the patch is, and it applies with git."""
    folder = repository(planrun.folder)
    plan = agent(apply="never") if way == "never" else agent()
    done = run(planrun, plan, FIXING, *([] if way == "never" else ["--propose"]))
    assert done.returncode == 0, done.stderr
    assert (folder / "calc.py").read_text() == BUG
    (line,) = [row for row in done.stderr.splitlines() if "patch of fix: " in row]
    git(folder, "apply", line.partition(": ")[2].strip())
    assert (folder / "calc.py").read_text() == FIXED


def test_uncommitted_changes_are_in_the_copy_and_not_in_the_patch(planrun: Command) -> None:
    """The copy has the workspace as it is, ignored files left out; the patch has only what the agent did."""
    folder = repository(planrun.folder)
    (folder / ".gitignore").write_text("secret.txt\n")
    (folder / "secret.txt").write_text("hidden\n")
    (folder / "notes.txt").write_text("not committed\n")
    (folder / "calc.py").write_text("# begin\n" + BUG)
    seen: list[str] = []

    def look(asked: Any) -> Any:
        seen.append(asked.user)
        return use(EDIT)

    model = turns(
        use(("bash", {"command": "ls -A; cat notes.txt; git log --oneline; git status --short"})),
        look,
        finish(),
    )
    assert run(planrun, agent(apply="auto"), model).returncode == 0
    assert "not committed" in seen[0]
    assert "begin" in seen[0]
    assert "secret.txt" not in seen[0]
    assert (folder / "calc.py").read_text() == "# begin\n" + FIXED
    assert [each["path"] for each in ledger(folder)["agents"][0]["patch"]["files"]] == ["calc.py"]
    assert git(folder, "status", "--short").split("\n")[0] == " M calc.py"


def test_a_folder_without_git_has_a_copy_as_well(planrun: Command) -> None:
    """No repository: all files are copied, and the patch is made and applied all the same."""
    (planrun.folder / "calc.py").write_text(BUG)
    (planrun.folder / "check_calc.py").write_text("from calc import add\nassert add(2, 3) == 5\n")
    assert run(planrun, agent(apply="auto", step=VERIFIED), FIXING).returncode == 0
    assert (planrun.folder / "calc.py").read_text() == FIXED
    assert not (planrun.folder / ".git").exists()


def test_every_kind_of_change_is_applied(planrun: Command) -> None:
    """New, changed and deleted files, a program, a binary file, a link, and a name with blanks."""
    folder = repository(planrun.folder)
    (folder / "old.txt").write_text("old\n")
    (folder / "gone").mkdir()
    (folder / "gone" / "file.txt").write_text("gone\n")
    commands = [
        "rm gone/file.txt",
        "printf '\\000\\001\\002' > data.bin",
        "mkdir -p 'a folder' && echo x > 'a folder/a file.txt'",
        "printf '#!/bin/sh\\necho hi\\n' > tool.sh && chmod +x tool.sh",
        "ln -s calc.py link.py",
        "echo new > old.txt",
    ]
    plan = agent(apply="auto").replace("llm_auto_approve: medium", "llm_auto_approve: high")
    model = turns(use(*[("bash", {"command": command}) for command in commands]), finish())
    done = run(planrun, plan, model)
    assert done.returncode == 0, done.stderr
    assert [each["status"] for each in ledger(folder)["agents"][0]["effects"]] == ["done"] * 6
    assert not (folder / "gone" / "file.txt").exists()
    assert (folder / "data.bin").read_bytes() == b"\0\1\2"
    assert (folder / "a folder" / "a file.txt").read_text() == "x\n"
    assert os.access(folder / "tool.sh", os.X_OK)
    assert (folder / "link.py").readlink() == Path("calc.py")
    assert (folder / "old.txt").read_text() == "new\n"


def test_a_conflict_is_an_outcome_and_changes_nothing(planrun: Command) -> None:
    """The workspace changed between the copy and the approval: failed(conflict), and not one file of the patch."""
    folder = repository(planrun.folder)
    model = turns(use(EDIT, ("write", {"path": "new.txt", "content": "x\n"})), finish())
    assert run(planrun, agent(), model).returncode == 5
    (folder / "calc.py").write_text("def add(a, b):\n    return sum((a, b))\n")
    before = snapshot(folder)
    planrun("approve", "last", "fix")
    done = planrun("resume", "last")
    assert done.returncode == 1
    assert (ended(folder)["status"], ended(folder)["reason"]) == ("failed", "conflict")
    assert "does not fit the workspace" in done.stderr
    assert snapshot(folder) == before


def test_a_patch_that_was_changed_after_its_review_is_not_applied(planrun: Command) -> None:
    """The hash of the patch is in the ledger: another file under its name is refused."""
    folder = repository(planrun.folder)
    assert run(planrun, agent(), FIXING).returncode == 5
    (patch,) = folder.glob(".planrun/runs/*/patches/fix/1.patch")
    patch.write_text(patch.read_text().replace("a + b", "a * b"))
    assert "its SHA-256 differs" in planrun("show", "last", "fix", "--patch").stderr
    planrun("approve", "last", "fix")
    assert planrun("resume", "last").returncode == 1
    assert (folder / "calc.py").read_text() == BUG


SECRET = "correct-horse-battery-staple-42"
SHAPED = "ghp_" + "Zk3vQ9xT2bN7mR4wL8yD1cF6hJ5sG0aEuPiO"


@pytest.mark.parametrize("text", ["token = 'SECRET'", f"token = '{SHAPED}'"])
def test_a_patch_with_a_secret_fails_and_is_deleted(planrun: Command, text: str) -> None:
    """The value of a secret of the run, or what looks like a credential, in a patch: failed(secrets)."""
    folder = repository(planrun.folder)
    plan = agent(apply="auto", step={"secrets": ["DEPLOY_TOKEN"]}).replace(
        "steps:", "secrets: [DEPLOY_TOKEN]\nsteps:"
    )
    command = text.replace("SECRET", "'$DEPLOY_TOKEN'") if "SECRET" in text else text
    model = turns(use(("bash", {"command": f'echo "{command}" > conf.py'})), finish())
    done = run(
        planrun,
        plan.replace("llm_auto_approve: medium", "llm_auto_approve: high"),
        model,
        DEPLOY_TOKEN=SECRET,
    )
    assert done.returncode == 1, done.stderr
    assert ended(folder)["reason"] == "secrets"
    assert not list(folder.glob(".planrun/runs/*/patches/fix/*.patch"))
    assert not (folder / "conf.py").exists()
    assert SECRET not in done.stderr + json.dumps(events(folder))


@pytest.mark.parametrize("goal", ["/etc", "../../..", ".git/hooks"])
def test_a_link_out_of_the_workspace_makes_no_patch(planrun: Command, goal: str) -> None:
    """A link that leads outside, or into the inside of git, fails the step."""
    folder = repository(planrun.folder)
    plan = agent(apply="auto").replace("llm_auto_approve: medium", "llm_auto_approve: high")
    done = run(planrun, plan, turns(use(("bash", {"command": f"ln -s {goal} out"})), finish()))
    assert done.returncode == 1
    assert ended(folder)["reason"] == "patch"
    assert "leads out of the workspace" in done.stderr


def test_verify_runs_in_the_copy_before_the_patch_is_offered(planrun: Command) -> None:
    """A patch that does not pass is not offered; the commands see the copy, and the reviewed script."""
    folder = repository(planrun.folder)
    spoil = ("write", {"path": "check_calc.py", "content": "print('passed')\n"})
    done = run(planrun, agent(apply="auto", step=VERIFIED), turns(use(spoil), finish()))
    assert done.returncode == 1, "the script that was reviewed decides, not the one that the agent wrote"
    assert ended(folder)["reason"] == "verify"
    assert (folder / "check_calc.py").read_text() != "print('passed')\n"


def test_an_agent_may_run_the_command_that_verifies_it(planrun: Command) -> None:
    """The reviewer wrote it: it needs no approval, unless the agent changed a file that it names."""
    folder = repository(planrun.folder)
    told: list[str] = []
    check = ("bash", {"command": VERIFIED["verify"]})
    spoil = ("write", {"path": "check_calc.py", "content": "print('passed')\n"})

    def model(asked: Any) -> Any:
        told.append(json.dumps(asked.body["messages"][-1]))
        return turns(use(EDIT), use(check), use(spoil), use(check), finish())(asked)

    plan = agent(apply="auto", step=VERIFIED).replace("llm_auto_approve: medium", "llm_auto_approve: low")
    done = run(planrun, plan, model)
    assert "passed" in told[2], done.stderr
    calls = [event for event in events(folder) if event["type"] == "tool_called" and event["name"] == "bash"]
    assert [call["answer"] for call in calls] == ["allow", "ask"]
    assert calls[0]["rule"] == "step:verify"


def test_a_failed_agent_is_tried_again_on_the_same_copy(planrun: Command) -> None:
    """`retries` go on with the conversation and the copy; the agent is told why the attempt failed."""
    folder = repository(planrun.folder)
    told: list[str] = []

    def model(asked: Any) -> Any:
        told.append(json.dumps(asked.body["messages"][-1]))
        if len(told) in (1, 3):
            return use(("write", {"path": f"try{len(told)}.txt", "content": "x\n"}))
        return finish("it is too hard", status="failure") if len(told) == 2 else finish()

    plan = agent(apply="auto", step={"retries": {"max": 1, "backoff": {"initial": "0s"}}})
    assert run(planrun, plan, model).returncode == 0
    assert "The attempt failed: " in told[2]
    assert "it is too hard" in told[2]
    assert (folder / "try1.txt").exists()
    assert (folder / "try3.txt").exists()


@pytest.mark.parametrize("sandbox", ["", "llm_sandbox: off, "])
def test_an_agent_cannot_have_planrun_run_its_programs(planrun: Command, sandbox: str) -> None:
    """The kernel refuses filters, monitors and attributes in both repositories; planted without it, they do not run."""
    folder = repository(planrun.folder)
    evil = f"touch {folder}/owned; cat"
    base = '"$PLANRUN_AGENT_BASE"/base.git'
    commands = [
        f"git config -f {base}/config filter.evil.clean '{evil}'",
        f"git config -f {base}/config core.fsmonitor '{evil}'",
        f"git config -f {base}/config diff.evil.textconv '{evil}'",
        f"echo '* filter=evil diff=evil' > {base}/info/attributes",
        f"git config filter.evil.clean '{evil}'; echo '* filter=evil' > .gitattributes",
    ]
    plan = agent(apply="auto").replace("llm_auto_approve: medium", f"{sandbox}llm_auto_approve: high")
    model = turns(
        use(*[("bash", {"command": command}) for command in commands], EDIT), use(("diff", {})), finish()
    )
    assert run(planrun, plan, model).returncode == 0
    statuses = [each["status"] for each in ledger(folder)["agents"][0]["effects"]]
    assert statuses == ["done" if sandbox else "failed"] * 5 + ["done"] * 2
    assert (folder / "calc.py").read_text() == FIXED
    assert not (folder / "owned").exists()


@pytest.mark.parametrize("sandbox", ["", "llm_sandbox: off, "])
def test_the_kernel_holds_an_agent_to_its_copy(planrun: Command, tmp_path: Path, sandbox: str) -> None:
    """Commands that policies let through read and write nothing outside of the copy; without a sandbox they do."""
    folder = repository(planrun.folder)
    (folder / ".env.local").write_text("KEY=the key\n")
    outside = tmp_path / "outside.txt"
    commands = [
        f"cat {folder}/.env.local",
        f"echo x > {folder}/planted.txt",
        f"echo x > {outside}",
        "echo x > inside.txt",
    ]
    plan = agent(apply="auto").replace("llm_auto_approve: medium", f"{sandbox}llm_auto_approve: high")
    model = turns(use(*[("bash", {"command": command}) for command in commands]), finish())
    assert run(planrun, plan, model).returncode == 0
    read = ledger(folder)["agents"][0]["effects"][0]
    assert read["status"] == ("done" if sandbox else "failed")
    assert (folder / "planted.txt").exists() == bool(sandbox)
    assert outside.exists() == bool(sandbox)
    assert (folder / "inside.txt").read_text() == "x\n"


def test_an_agent_without_a_sandbox_does_not_start(planrun: Command, tmp_path: Path) -> None:
    """Exit code 2 before anything runs, with its place and what to do, also where its step requires none."""
    (tmp_path / "none").mkdir()
    plan = agent(step={"sandbox": {"level": "low", "require": False}})
    (planrun.folder / "plan.yml").write_text(plan)
    with FakeMessages(FIXING) as api:
        env = {**api.env, "PATH": str(tmp_path / "none")}
        done = planrun("execute", "plan.yml", "--sandbox-backend", "bubblewrap", env=env)
        assert api.journal.entries == []
    assert done.returncode == 2
    assert 'plan.yml:5: the agent of step "fix" requires a sandbox' in done.stderr
    assert "`policy: {llm_sandbox: off}` runs without one" in done.stderr


def test_an_agent_may_work_in_the_workspace_itself(planrun: Command) -> None:
    """`workspace: shared` needs high risk to start; files that control what runs are judged when they are written."""
    folder = repository(planrun.folder)
    plan = agent(workspace="shared")
    model = turns(use(EDIT, ("write", {"path": ".github/workflows/ci.yml", "content": "x\n"})), finish())
    assert run(planrun, plan, model).returncode == 5
    (folder / "plan.yml").unlink()
    assert run(planrun, plan.replace("{auto_approve: medium", "{auto_approve: high"), model).returncode == 0
    assert (folder / "calc.py").read_text() == FIXED
    assert not (folder / ".github").exists()
    (found,) = ledger(folder)["agents"]
    assert (found["workspace"], found["patch"]) == ("shared", None)


def test_applying_goes_on_where_it_was_killed(planrun: Command, tmp_path: Path) -> None:
    """The process that applies a patch is killed after each of its writes; a second one completes it, none twice."""
    folder = repository(planrun.folder)
    files = [("write", {"path": f"new{number}.txt", "content": f"{number}\n"}) for number in range(3)]
    assert run(planrun, agent(), turns(use(EDIT, *files), finish())).returncode == 5
    (patch,) = folder.glob(".planrun/runs/*/patches/fix/1.patch")
    facts = json.loads(Path(f"{patch}.json").read_text())
    args = {
        "patch": str(patch),
        "sha256": facts["sha256"],
        "files": facts["files"],
        "stage": str(tmp_path / "stage"),
    }
    killer = (
        "import os, sys\n"
        "import planrun.tools.patching as p\n"
        "old, left = p._settle, [int(sys.argv[1])]\n"
        "def settle(*words):\n"
        "    old(*words)\n"
        "    left[0] -= 1\n"
        "    left[0] or os.kill(os.getpid(), 9)\n"
        "p._settle = settle\n"
        "from planrun.tools.calling import main\n"
        "sys.exit(main(['patching.apply', sys.argv[2]]))\n"
    )
    for number in (1, 2, 3, 99):
        words = [sys.executable, "-c", killer, str(number), json.dumps(args)]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == (0 if number == 99 else -9), done.stderr
    assert (folder / "calc.py").read_text() == FIXED
    assert [(folder / f"new{number}.txt").read_text() for number in range(3)] == ["0\n", "1\n", "2\n"]


SECRETS = {
    ".env": "TOKEN=sesame-1\n",
    "conf/prod.key": "sesame-2\n",
    "sub/.npmrc": "//x/:_authToken=sesame-3\n",
}


@pytest.mark.parametrize("workspace", ["copy", "shared"])
@pytest.mark.parametrize("shown", [False, True])
def test_an_agent_does_not_see_files_that_look_like_secrets(
    planrun: Command, workspace: str, *, shown: bool
) -> None:
    """Neither by commands nor by tools, in its copy or in the workspace, unless `read` of its step names them."""
    folder = repository(planrun.folder)
    for name, text in SECRETS.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "secrets")
    seen: list[str] = []

    def look(asked: Any) -> Any:
        seen.extend(results(asked))
        return finish()

    commands = (
        "cat .env conf/prod.key sub/.npmrc; true",
        "grep -rn sesame . || true",
        "cp -r conf c2; cat c2/*; true",
    )
    calls = [("bash", {"command": command}) for command in commands]
    calls += [("grep", {"pattern": "sesame"}), ("tree", {})]
    if (
        workspace == "copy"
    ):  # a call that names one is of class high, which this policy allows in the workspace
        calls.append(("read", {"path": ".env"}))
    keys: dict[str, Any] = {"step": {"sandbox": {"read": [".env", "conf", "sub/.npmrc"]}}} if shown else {}
    keys |= {"tools": ALL, "apply": "never"} if workspace == "copy" else {"tools": ALL, "workspace": "shared"}
    plan = agent(**keys).replace(": medium", ": high")
    assert run(planrun, plan, turns(use(*calls), look)).returncode in (0, 1)
    told = "".join(seen)
    assert seen, told
    assert ("sesame-" in told) is shown
    for name, text in SECRETS.items():
        assert (folder / name).read_text() == text
