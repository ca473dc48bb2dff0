"""The environment of a step that is allowed by its class: what is removed, what stays, what raises the class."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from planrun.actions import trust, variables
from planrun.actions.trust import cleaned, raised
from planrun.model.job import Job
from planrun.risk.classifier import classify
from planrun.risk.programs import FAMILIES

if TYPE_CHECKING:
    from pathlib import Path

UNWANTED = (
    "BASH_ENV ENV SHELLOPTS BASHOPTS CDPATH GLOBIGNORE IFS PS4 PROMPT_COMMAND LD_PRELOAD LD_AUDIT LD_LIBRARY_PATH"
    " DYLD_INSERT_LIBRARIES PAGER GIT_PAGER MANPAGER BAT_PAGER LESSOPEN LESSCLOSE LESS EDITOR VISUAL GIT_EDITOR GIT_DIR"
    " GIT_WORK_TREE GIT_SSH_COMMAND GIT_EXEC_PATH GIT_CONFIG_PARAMETERS GIT_EXTERNAL_DIFF PYTHONSTARTUP PYTHONPATH"
    " PYTHONHOME PYTHONBREAKPOINT NODE_OPTIONS PERL5OPT PERL5LIB RUBYOPT RUBYLIB JAVA_TOOL_OPTIONS _JAVA_OPTIONS"
    " JDK_JAVA_OPTIONS TAR_OPTIONS GREP_OPTIONS GZIP XZ_OPT ZIPOPT RIPGREP_CONFIG_PATH TMOUT EXECIGNORE GCONV_PATH"
    " LOCPATH NLSPATH MALLOC_TRACE GOFLAGS PYENV_HOOK_PATH PIP_PYTHON OPENSSL_CONF TERMINFO"
)
WANTED = (
    "HOME LANG LC_ALL TZ TMPDIR CI USER LS_COLORS GITHUB_SHA GITHUB_WORKSPACE GIT_COMMIT GIT_BRANCH GIT_AUTHOR_NAME"
    " GIT_COMMITTER_DATE PYTHONUNBUFFERED PYTHON_VERSION NODE_ENV NODE_VERSION NO_COLOR FORCE_COLOR RUFF_OUTPUT_FORMAT"
    " GOAL GOOGLE_CLOUD_PROJECT VERSION SOURCE_DATE_EPOCH PLANRUN_OUTPUT CARGO_HOME SSH_CLIENT"
)


def job(workspace: Path, env: dict[str, str], *words: str) -> Job:
    """A job as the step runner makes it."""
    return Job(
        step="s",
        attempt=1,
        argv=words or ("bash", "-c", "true"),
        env={"PATH": "/usr/bin:/bin", "PLANRUN_WORKSPACE": str(workspace), **env},
        cwd=str(workspace),
        log=os.devnull,
        timeout=60.0,
    )


def finding_of(text: str, made: Job) -> tuple[str, str] | None:
    """Return the finding for a text that alone has the class low or below."""
    commands = [command.but(level="low") for command in classify(text).commands]
    return raised(commands, made, made.cwd)


@pytest.mark.parametrize("name", UNWANTED.split())
def test_what_changes_code_is_removed(name: str, tmp_path: Path) -> None:
    """Such a variable is gone, or has the value that is put in its place."""
    env = cleaned(job(tmp_path, {name: str(tmp_path / "evil")}), "read-only").env
    assert env.get(name) == variables.PLACED.get(name)


@pytest.mark.parametrize("name", WANTED.split())
def test_what_steps_need_stays(name: str, tmp_path: Path) -> None:
    """What CI systems and people set for the programs of a step is as it was."""
    assert cleaned(job(tmp_path, {name: "x"}), "low").env[name] == "x"


@pytest.mark.parametrize(
    "name", ["PYTHONPATH", "NODE_OPTIONS", "LD_LIBRARY_PATH", "GIT_DIR", "MAVEN_OPTS", "CC", "EDITOR"]
)
def test_project_code_keeps_its_variables(name: str, tmp_path: Path) -> None:
    """At medium only variables that change the meaning of the text are removed."""
    made = cleaned(
        job(tmp_path, {name: "x", "BASH_ENV": "y", "BASH_FUNC_ls%%": "() { :; }", "OLD": "() { :; }"}),
        "medium",
    )
    assert made.env == {"PATH": "/usr/bin:/bin", "PLANRUN_WORKSPACE": str(tmp_path), "SHLVL": "1", name: "x"}


def test_high_is_left_alone(tmp_path: Path) -> None:
    """What a person approved runs as it would have without any policy."""
    made = job(tmp_path, {"BASH_ENV": "x"})
    assert cleaned(made, "high") is made


def test_only_folders_of_the_machine_stay_on_path(tmp_path: Path) -> None:
    """Empty, relative, open and own folders go; what is left keeps its order."""
    work, openly = tmp_path / "work", tmp_path / "open"
    (work / "bin").mkdir(parents=True)
    openly.mkdir()
    openly.chmod(0o777)
    (tmp_path / "link").symlink_to(work / "bin")
    path = f":bin:/usr/bin:{work}/bin:{work}/../work:{openly}:{tmp_path}/link:/bin:."
    assert cleaned(job(work, {"PATH": path}), "low").env["PATH"] == "/usr/bin:/bin"
    assert cleaned(job(work, {"PATH": "::bin"}), "low").env["PATH"] == os.defpath
    assert cleaned(job(work, {"PATH": ":bin::/bin"}), "medium").env["PATH"] == "bin:/bin"


def test_folders_of_libraries_stay_when_they_are_the_machine_s(tmp_path: Path) -> None:
    """An interpreter that was installed for CI finds its libraries; the workspace is no place for them."""
    env = cleaned(job(tmp_path, {"LD_LIBRARY_PATH": f"/opt/lib::{tmp_path}:/usr/lib"}), "low").env
    assert env["LD_LIBRARY_PATH"] == "/opt/lib:/usr/lib"


def test_harmless_settings_of_git_stay(tmp_path: Path) -> None:
    """A variable that marks a folder as safe stays; variables that name programs are removed."""
    env = {
        "GIT_CONFIG_COUNT": "2",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": "evil",
        "GIT_CONFIG_KEY_1": "safe.directory",
        "GIT_CONFIG_VALUE_1": "*",
    }
    made = cleaned(job(tmp_path, env), "low")
    shown = subprocess.run(
        ["git", "config", "--list"], env=made.env, capture_output=True, text=True, check=True
    ).stdout
    assert "safe.directory=*" in shown
    assert "evil" not in shown
    assert "core.hookspath=/dev/null" in shown


@pytest.mark.parametrize("count", ["x", "-1", "1000", "9" * 5000, "²"])
def test_an_odd_count_of_settings_is_none(count: str, tmp_path: Path) -> None:
    """For any value, the count of the settings that switch off is correct."""
    env = cleaned(job(tmp_path, {"GIT_CONFIG_COUNT": count}), "low").env
    assert env["GIT_CONFIG_COUNT"] == str(len(variables.GIT_OFF))


def test_git_works_in_a_cleaned_environment(tmp_path: Path) -> None:
    """Status, diff, log, add and commit do what they do elsewhere."""
    made = cleaned(job(tmp_path, {"GIT_AUTHOR_NAME": "a", "HOME": str(tmp_path.parent)}), "low")
    text = (
        "git init -q . && git config user.email a@b && git config user.name a && echo 1 > f && git add f"
        " && git commit -qm one && echo 2 > f && git diff && git status -s && git log --oneline && git show"
        " && git stash -q && git stash list && git tag v1 && git describe --tags"
    )
    process = subprocess.run(
        ["bash", "-ec", text], env=made.env, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (process.returncode, process.stderr) == (0, "")
    assert "+2" in process.stdout
    assert "v1" in process.stdout


def test_ordinary_commands_of_an_ordinary_repository_are_trusted(tmp_path: Path) -> None:
    """Nothing is raised where nothing is planted, with what CI systems and people have in a repository."""
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    for name, value in (
        ("user.name", "a"),
        ("remote.origin.url", "https://example.org/x"),
        ("remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"),
        ("branch.main.merge", "refs/heads/main"),
        ("credential.helper", "store"),
        ("core.sshCommand", "ssh -i key"),
        ("http.https://github.com/.extraheader", "x"),
        ("core.hooksPath", ".husky"),
        ("core.fsmonitor", "true"),
        ("alias.st", "status"),
        ("includeIf.gitdir:/github/workspace/.git.path", "/tmp/none"),
    ):
        subprocess.run(["git", "-C", tmp_path, "config", name, value], check=True)
    made = job(tmp_path, {"HOME": str(tmp_path.parent)})
    for text in ("git status", "ls -la | sort", "cd . && git diff --stat", "echo x > y", "timeout 5 git log"):
        assert finding_of(text, made) is None


def test_a_missing_program_is_not_trusted(tmp_path: Path) -> None:
    """A program that is missing is unknown; one with a slash is classified by its text, a builtin is bash's own."""
    made = job(tmp_path, {})
    assert finding_of("no-such-thing", made) == (
        "medium",
        "`no-such-thing` is not on the PATH of the step: the program that would run is unknown",
    )
    assert finding_of("cd . && umask 022", made) is None
    assert finding_of("echo x", job(tmp_path, {"PATH": str(tmp_path)}, "echo", "x")) is not None


def test_the_worst_of_all_commands_is_reported(tmp_path: Path) -> None:
    """A working tree outside the workspace is worse than a program that is run."""
    subprocess.run(["git", "init", "-q", tmp_path / "far"], check=True)
    subprocess.run(["git", "init", "-q", tmp_path / "work"], check=True)
    work = tmp_path / "work"
    subprocess.run(["git", "-C", work, "config", "core.worktree", str(tmp_path / "far")], check=True)
    found = finding_of("missing-tool; git status", job(work, {"HOME": str(tmp_path)}))
    assert found == ("high", "core.worktree in .git/config leads out of the workspace")


@pytest.mark.parametrize("options", ["-C sub", "-C . -C sub", "--no-pager -C sub"])
def test_the_folder_that_git_is_sent_to_counts(options: str, tmp_path: Path) -> None:
    """`git -C` is looked at where it works."""
    for folder in (tmp_path, tmp_path / "sub"):
        subprocess.run(["git", "init", "-q", folder], check=True)
    subprocess.run(["git", "-C", tmp_path / "sub", "config", "diff.x.textconv", "x"], check=True)
    made = job(tmp_path, {"HOME": str(tmp_path.parent)})
    assert finding_of("git diff", made) is None
    assert finding_of(f"git {options} diff", made) == (
        "medium",
        "diff.x.textconv in sub/.git/config has git run a program",
    )


def test_the_version_that_a_shim_chooses_is_looked_at(tmp_path: Path) -> None:
    """Version managers read from the workspace which program to run; a path there is no version."""
    shims = tmp_path / "tools/shims"
    shims.mkdir(parents=True)
    (shims / "jq").write_text("#!/bin/sh\n")
    (shims / "jq").chmod(0o755)
    work = tmp_path / "work"
    work.mkdir()
    made = job(work, {"PATH": f"{shims}:/usr/bin:/bin", "HOME": str(tmp_path)})
    (work / ".tool-versions").write_text("jq 1.7\n")
    assert finding_of("jq . x", made) is None
    (work / ".tool-versions").write_text("jq path:./own\n")
    assert finding_of("jq . x", made) == ("medium", ".tool-versions decides what `jq` runs")


@pytest.mark.parametrize("family", ["files", "text", "filters", "system", "archives", "git"])
def test_the_ordinary_programs_are_trusted(family: str) -> None:
    """A program that is added there needs a check whether it reads code of the workspace."""
    known = {*trust.PLAIN, *trust.LOOKED, *trust.BUILTINS}
    new = sorted({*FAMILIES[family].split()} - known)
    assert new == [], "add it to PLAIN or LOOKED in planrun/actions/trust.py, or its class is medium"


def test_a_filter_does_not_touch_what_reads_names_only(tmp_path: Path) -> None:
    """Git LFS affects commands that read files, not commands that name and list commits."""
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    subprocess.run(["git", "-C", tmp_path, "config", "filter.lfs.clean", "git-lfs clean -- %f"], check=True)
    made = job(tmp_path, {"HOME": str(tmp_path.parent)})
    for text in ("git rev-parse HEAD", "git log --oneline", "git branch --show-current"):
        assert finding_of(text, made) is None
    for text in ("git status", "git add x", "git diff", "git describe --dirty"):
        assert finding_of(text, made) == ("medium", "filter.lfs.clean in .git/config has git run a program")


def test_a_file_of_configuration_of_the_caller_is_read_and_kept(tmp_path: Path) -> None:
    """GIT_CONFIG_GLOBAL may say that there is none, or name one outside the workspace; what it sets counts."""
    work, mine = tmp_path / "work", tmp_path / "gitconfig"
    subprocess.run(["git", "init", "-q", work], check=True)
    made = job(work, {"HOME": str(tmp_path), "GIT_CONFIG_GLOBAL": str(mine)})
    for one in (made, made.but(env={**made.env, "GIT_CONFIG_GLOBAL": os.devnull})):
        assert finding_of("git status", one) is None
        assert cleaned(one, "low").env["GIT_CONFIG_GLOBAL"] == one.env["GIT_CONFIG_GLOBAL"]
    mine.write_text('[filter "odd"]\nclean = x\n')
    assert finding_of("git status", made) == ("medium", f"filter.odd.clean in {mine} has git run a program")
    made = job(work, {"HOME": str(tmp_path), "GIT_CONFIG_GLOBAL": str(work / "own")})
    assert "GIT_CONFIG_GLOBAL" not in cleaned(made, "low").env


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("mypy.ini", "[mypy]\nPLUGINS = x\n"),
        ("pyproject.toml", '[tool.mypy]\n"\\u0070lugins" = ["x"]\n'),
        ("setup.cfg", "[mypy]\npython_executable = ./x\n"),
    ],
)
def test_plugins_are_found_however_they_are_spelt(file: str, text: str, tmp_path: Path) -> None:
    """A linter is believed until its configuration has it load something."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "mypy").write_text("#!/bin/sh\n")
    (tools / "mypy").chmod(0o755)
    work = tmp_path / "work"
    work.mkdir()
    made = job(work, {"HOME": str(tmp_path), "PATH": f"{tools}:/bin"})
    assert finding_of("mypy src", made) is None
    assert finding_of("mypy --config-file=x src", made) is not None
    (work / file).write_text(text)
    assert finding_of("mypy src", made) == ("medium", f"{file} decides what `mypy` runs")


@pytest.mark.parametrize(
    "text", ["git remote -v", "git remote", "git remote show", "git remote get-url origin"]
)
@pytest.mark.parametrize(
    ("address", "is_secret"),
    [
        ("https://example.org/x", False),
        ("ssh://git@example.org/x", False),
        ("git@example.org:x", False),
        ("https://user:hunter@example.org/x", True),
        ("https://ghs_0123456789@example.org/x", True),
        ("ssh://user:hunter@example.org/x", True),
    ],
)
def test_addresses_of_remotes_may_hold_credentials(
    tmp_path: Path, text: str, address: str, *, is_secret: bool
) -> None:
    """What prints addresses is high where the configuration holds a credential in one; in a linked tree, too."""
    work = tmp_path / "work"
    subprocess.run(["git", "init", "-q", work], check=True)
    subprocess.run(["git", "-C", work, "config", "remote.origin.url", address], check=True)
    subprocess.run(
        [
            "git",
            "-C",
            work,
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "x",
        ],
        check=True,
    )
    subprocess.run(["git", "-C", work, "worktree", "add", "-q", tmp_path / "linked"], check=True)
    for folder in (work, tmp_path / "linked"):
        known = classify(text)
        made = job(folder, {"HOME": str(tmp_path)})
        found = raised(known.commands, made, made.cwd, sweeps=known.sweeps)
        assert (found is not None and found[0] == "high") == is_secret
