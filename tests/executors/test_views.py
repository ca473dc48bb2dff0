"""What a sandboxed step sees: folders of programs, data of git, control files in folders, sockets, secrets."""

from __future__ import annotations

import os
import socket
import subprocess
from typing import TYPE_CHECKING

import pytest

from planrun.executors.sandbox import view as module
from planrun.executors.sandbox.view import Refused, Site, view_of
from planrun.model.job import Job
from planrun.model.plan import Sandbox

if TYPE_CHECKING:
    from pathlib import Path

LOW = Sandbox(level="low")


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget what other tests saw."""
    monkeypatch.setattr(module, "_SYSTEMS", {})
    monkeypatch.setattr(module, "_FOUND", {})


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder with a key, tools of the user, and a workspace."""
    for name in (".ssh", "bin", "work/venv/bin", "tools/bin", "open"):
        (tmp_path / "home" / name).mkdir(parents=True)
    (tmp_path / "home/.ssh/key").write_text("the key")
    (tmp_path / "home/open").chmod(0o777)
    return tmp_path / "home"


def mounts(
    home: Path, sandbox: Sandbox = LOW, *, path: str = "", env: str = "", copy: str = ""
) -> dict[str, str]:
    """Return the verb of each mount; `path`: PATH of planrun, `env`: of the step."""
    work = str(home / "work")
    job = Job(
        step="a", attempt=1, argv=("true",), env={"PATH": env or path}, cwd=work, log="", timeout=1, copy=copy
    )
    site = Site(workspace=work, home=str(home), path=path or os.defpath)
    return {path: verb for verb, path, _ in view_of(sandbox, site, job).mounts}


@pytest.mark.parametrize(
    "entry",
    [
        *(
            "{home}/.ssh",
            "{home}/work/../.ssh",
            "/proc/self/root{home}/.ssh",
            "{home}/work/keys",
            "{home}",
            "/",
        ),
        *(
            "{home}/work/venv/bin",
            "{home}/..",
            "{home}/open",
            "{home}/open/bin",
            "/run",
            "/proc/self",
            "",
            ".",
            "bin",
        ),
    ],
)
def test_path_shows_no_more_than_folders_of_programs(home: Path, entry: str) -> None:
    """Neither keys nor what is above the workspace, nor what a step or another user may have made."""
    (home / "work/keys").symlink_to(home / ".ssh")
    (home / "work/venv/pyvenv.cfg").write_text(f"home = {home}/.ssh/bin\n")
    (home / "open/bin").mkdir()
    plain = mounts(home, path="/usr/bin:/bin")
    assert mounts(home, path=f"{entry.format(home=home)}:/usr/bin:/bin") == plain
    assert mounts(home, path="/usr/bin:/bin", env=f"{entry.format(home=home)}:/usr/bin:/bin") == plain


def test_path_of_planrun_shows_programs_of_the_user(home: Path) -> None:
    """A folder, and a virtual environment with the Python that it was made of; a step's own PATH shows neither."""
    (home / "tools/pyvenv.cfg").write_text(f"home = {home}/bin/inner\n")
    path = f"{home}/tools/bin:/usr/bin:/bin"
    found = mounts(home, path=path)
    assert (found[f"{home}/tools"], found[f"{home}/bin"]) == ("ro", "ro")
    assert f"{home}/tools" not in mounts(home, path="/usr/bin:/bin", env=path)


def test_an_agent_sees_the_tools_of_the_workspace(home: Path) -> None:
    """Its copy has no ignored files, so the environment on planrun's PATH is shown, but not through a link."""
    copy = home / "copy"
    copy.mkdir()
    (home / "work/venv/pyvenv.cfg").write_text(f"home = {home}/.ssh/bin\n")
    (home / "work/linked").symlink_to(home / ".ssh")
    path = f"{home}/work/venv/bin:{home}/work/linked:/usr/bin:/bin"
    found = mounts(home, path=path, copy=str(copy))
    assert found[f"{home}/work/venv"] == "ro"
    assert not [name for name in found if ".ssh" in name or "linked" in name]


def test_a_repository_elsewhere_must_name_the_workspace(home: Path) -> None:
    """What `.git` names is shown for a worktree and a submodule, and not for a file that a step could have written."""
    work, other = home / "work", home / "other"
    subprocess.run(["git", "init", "-q", str(other)], check=True)
    pointer = work / ".git"
    pointer.write_text(f"gitdir: {other}/.git\n")
    assert f"{other}/.git" not in mounts(home)
    (work / "fake/deep/x").mkdir(parents=True)
    (work / "fake/deep/x/gitdir").write_text(f"{pointer}\n")
    (work / "fake/deep/x/commondir").write_text(f"{other}/.git\n")
    pointer.write_text("gitdir: fake/deep/x\n")
    assert f"{other}/.git" not in mounts(home)
    inner = other / ".git/worktrees/work"
    inner.mkdir(parents=True)
    (inner / "gitdir").write_text(f"{pointer}\n")
    (inner / "commondir").write_text("../..\n")
    pointer.write_text(f"gitdir: {inner}\n")
    assert mounts(home)[f"{other}/.git"] == "ro"
    module_of = other / ".git/modules/work"
    module_of.mkdir(parents=True)
    (module_of / "config").write_text(f"[core]\n\tworktree = {work}\n")
    pointer.write_text(f"gitdir: {module_of}\n")
    assert mounts(home)[str(module_of)] == "ro"


@pytest.mark.parametrize("verb", ["read", "write"])
@pytest.mark.parametrize("level", ["read-only", "low", "medium"])
@pytest.mark.parametrize("path", ["work/link/key", "work/link", "work/sub/link/key", "free/link/key"])
def test_no_link_is_followed(home: Path, level: str, verb: str, path: str) -> None:
    """A link that a step may have made leads nowhere, in the workspace and in folders outside that it may write."""
    for folder in ("work", "work/sub", "free"):
        (home / folder).mkdir(exist_ok=True)
        (home / folder / "link").symlink_to(home / ".ssh")
    with pytest.raises(Refused, match=f"symbolic link; name its target, {home}/.ssh"):
        mounts(home, LOW.but(level=level, **{verb: (str(home / path),)}))


def test_what_holds_the_workspace_is_not_shown(home: Path) -> None:
    """Not by `read`, and not by `write`."""
    for path in (str(home), str(home / "work"), "/"):
        with pytest.raises(Refused, match="the workspace is in it"):
            mounts(home, LOW.but(read=(path,)))


def test_control_files_in_folders_are_protected(home: Path) -> None:
    """Plans, policies and approvals too; a folder of that name is ordinary otherwise, and so is what the plan names."""
    work = home / "work"
    for name in (
        "a/approvals/x.json",
        "a/approvals/x.py",
        "a/plans/y.yml",
        "b/.github/w.yml",
        "c/.cargo/config.toml",
    ):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text("x")
    found = mounts(home, LOW.but(write=(f"{work}/b",)))
    read_only = {path for path, verb in found.items() if verb == "ro" and path.startswith(f"{work}/")}
    names = ("a/approvals/x.json", "a/plans/y.yml", "c/.cargo/config.toml")
    assert read_only == {f"{work}/{name}" for name in names}


def test_many_control_files_are_protected_or_refused(home: Path) -> None:
    """All of 250, and of more than 1,000 none is left out silently: the plan can name the folder instead."""
    for number in range(250):
        (home / f"work/many/{number}/.github").mkdir(parents=True)
    assert sum(path.endswith("/.github") for path in mounts(home)) == 250
    for number in range(250, 1010):
        (home / f"work/many/{number}/.github").mkdir(parents=True)
    module._FOUND.clear()
    with pytest.raises(Refused, match=r"1010 files .* only 1000; name folders .* in `sandbox: \{write"):
        mounts(home)
    assert not [
        path for path in mounts(home, LOW.but(write=(f"{home}/work/many",))) if path.endswith(".github")
    ]


def test_sockets_are_hidden(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that exist when the first step starts belong to programs outside."""
    monkeypatch.chdir(home / "work")  # names of sockets are short
    (home / "work/sub").mkdir()
    (home / "work/.git").mkdir()
    held = []
    for name in ("app.sock", "sub/app.sock", ".git/ipc"):
        held.append(socket.socket(socket.AF_UNIX))
        held[-1].bind(name)
    found = mounts(home)
    shown = mounts(home, LOW.but(read=(f"{home}/work/app.sock",)))
    for server in held:
        server.close()
    assert f"{home}/work/app.sock" not in shown
    assert [found.get(f"{home}/work/{name}") for name in ("app.sock", "sub/app.sock", ".git/ipc")] == [
        "hide"
    ] * 3


def test_secrets_are_hidden_from_steps_of_models(home: Path) -> None:
    """At any depth, also those that come later, unless `read` or `write` names them; other steps see them."""
    work = home / "work"
    names = (".env", "conf/prod.key", "secrets/a.json", "target/.env.local")
    for name in (*names, "app.py", ".git/config"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text("x")
    hides = LOW.but(hides=True)
    hidden = {
        path
        for path, verb in mounts(home, hides).items()
        if verb in ("hide", "mask") and path.startswith(str(work))
    }
    assert hidden == {f"{work}/{name}" for name in names}
    assert f"{work}/.env" not in mounts(home)
    assert f"{work}/.env" not in mounts(home, hides.but(read=(f"{work}/.env",)))
    assert f"{work}/conf/prod.key" not in mounts(home, hides.but(read=(f"{work}/conf",)))
    (work / "late.pem").write_text("x")
    (work / ".git/config").write_text("[http]\n\textraheader = Authorization: Basic eA==\n")
    found = mounts(home, hides)
    assert (found[f"{work}/late.pem"], found[f"{work}/.git/config"]) == ("hide", "hide")
