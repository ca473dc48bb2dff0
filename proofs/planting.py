"""Attacks on what stands around a command that looks harmless, each in a workspace of its own.

A canary is a file that appears when planted code has run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

GIT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@b",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b",
}


@dataclass
class Scene:
    """A folder with a workspace that is a repository, a home, and tools of the machine."""

    folder: Path
    env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("work/src", "home", "tools"):
            (self.folder / name).mkdir(parents=True)
        self.env = {
            "PATH": f"{self.tools}:{os.environ['PATH']}",
            "HOME": str(self.folder / "home"),
            "PLANRUN_WORKSPACE": str(self.work),
            **GIT,
        }
        self.repository(self.work)
        (self.work / ".gitattributes").write_text("*.x diff=odd filter=odd\n")
        (self.work / "a.x").write_text("one\n")
        (self.work / "src/f").write_text("one\n")
        self.git("add", ".")
        self.git("commit", "-qm", "first")
        (self.work / "a.x").write_text("two\n")

    @property
    def work(self) -> Path:
        return self.folder / "work"

    @property
    def tools(self) -> Path:
        return self.folder / "tools"

    @property
    def canary(self) -> Path:
        return self.folder / "canary"

    @property
    def evil(self) -> str:
        """A program that leaves the canary."""
        return self.program(self.folder / "evil")

    def program(self, path: Path, first: str = "#!/bin/sh", more: str = "") -> str:
        """Plant a program that leaves the canary."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{first}\n: > {self.canary}\n{more}")
        path.chmod(0o755)
        return str(path)

    def tool(self, name: str, text: str) -> None:
        """Put a script of the machine on PATH."""
        (self.tools / name).write_text(text)
        (self.tools / name).chmod(0o755)

    def repository(self, folder: Path, *words: str) -> None:
        """Make a repository without hooks that git would bring."""
        subprocess.run(["git", "init", "-q", "--template=", *words, folder], env=self._env(), check=True)

    def git(self, *words: str, cwd: str = "") -> None:
        """Run git in the workspace."""
        subprocess.run(["git", *words], cwd=self.work / cwd, env=self._env(), check=True, capture_output=True)

    def set(self, name: str, value: str = "", file: str = ".git/config") -> None:
        """Set a key of git's configuration, to the evil program unless it says otherwise."""
        self.git("config", "--file", str(self.work / file), name, value or self.evil)

    def _env(self) -> dict[str, str]:
        return {**os.environ, **GIT, "HOME": str(self.folder / "home")}


@dataclass(frozen=True)
class Attack:
    """What is planted and beside which command; `held`: whether it is switched off, or which class it brings."""

    name: str
    text: str
    held: str
    plant: Callable[[Scene], object]
    needs: tuple[str, ...] = ()
    terminal: bool = False  # it works only where the output is a terminal
    shell: tuple[str, ...] = ("bash", "-euo", "pipefail", "-c")

    @property
    def missing(self) -> str:
        """Which program it needs that is not here."""
        return next((name for name in self.needs if shutil.which(name) is None), "")


def _key(*pairs: tuple[str, str] | str) -> Callable[[Scene], object]:
    """Return what sets keys of the repository, to the evil program unless a value is given."""

    def plant(scene: Scene) -> None:
        for pair in pairs:
            name, value = (pair, "") if isinstance(pair, str) else pair
            scene.set(name, value)

    return plant


def _variables(**values: str) -> Callable[[Scene], object]:
    """Return what sets variables; {evil}, {work} and {folder} are filled in."""

    def plant(scene: Scene) -> None:
        for name, value in values.items():
            scene.env[name] = value.format(evil=scene.evil, work=scene.work, folder=scene.folder)

    return plant


def _function(name: str) -> Callable[[Scene], object]:
    def plant(scene: Scene) -> None:
        scene.env[f"BASH_FUNC_{name}%%"] = f"() {{ : > {scene.canary}; }}"

    return plant


def _on_path(name: str, entry: str, place: str) -> Callable[[Scene], object]:
    """Return what puts a program under a name into the workspace, and an entry before PATH."""

    def plant(scene: Scene) -> None:
        scene.program(scene.work / place / name)
        scene.env["PATH"] = f"{entry.format(work=scene.work)}:{scene.env['PATH']}"

    return plant


def _hook(scene: Scene) -> None:
    scene.program(scene.work / ".git/hooks/pre-commit")


def _hook_folder(scene: Scene) -> None:
    scene.program(scene.work / ".githooks/post-index-change")
    scene.set("core.hooksPath", ".githooks")


def _included(scene: Scene) -> None:
    scene.set("diff.odd.textconv", file=".git/more")
    scene.set("include.path", "more")


def _included_if(scene: Scene) -> None:
    scene.set("diff.odd.textconv", file="more.cfg")
    scene.set("includeIf.gitdir:**.path", "../more.cfg")


def _worktree_config(scene: Scene) -> None:
    scene.set("extensions.worktreeConfig", "true")
    scene.set("diff.odd.textconv", file=".git/config.worktree")


def _linked_tree(scene: Scene) -> None:
    scene.git("worktree", "add", "-q", "../linked")
    shutil.move(scene.folder / "linked", scene.work / "linked")
    scene.git("worktree", "repair", "linked")
    (scene.work / "linked/a.x").write_text("three\n")
    scene.set("diff.odd.textconv")


def _gitlink(*keys: str) -> Callable[[Scene], object]:
    def plant(scene: Scene) -> None:
        inner = scene.work / "inner"
        scene.repository(inner)
        (inner / ".gitattributes").write_text("*.x filter=odd\n")
        (inner / "b.x").write_text("one\n")
        scene.git("add", ".", cwd="inner")
        scene.git("commit", "-qm", "inner", cwd="inner")
        scene.git("add", "inner")
        (inner / "b.x").write_text("two\n")
        for key in keys:
            scene.set(key, file="inner/.git/config")

    return plant


def _bare(*keys: str) -> Callable[[Scene], object]:
    def plant(scene: Scene) -> None:
        scene.git("clone", "-q", "--bare", ".", "fixture")
        for key in keys:
            scene.set(key, file="fixture/config")
        scene.set("core.worktree", str(scene.work), file="fixture/config")
        scene.set("core.bare", "false", file="fixture/config")

    return plant


def _far_repository(scene: Scene) -> None:
    scene.repository(scene.folder / "far")
    scene.git("config", "--file", str(scene.folder / "far/.git/config"), "core.fsmonitor", scene.evil)
    scene.env["GIT_DIR"] = str(scene.folder / "far/.git")


def _home(variable: str, place: str) -> Callable[[Scene], object]:
    def plant(scene: Scene) -> None:
        home = scene.work / "house"
        (home / place).parent.mkdir(parents=True)
        scene.set("filter.odd.clean", file=f"house/{place}")
        scene.env[variable] = str(home)

    return plant


def _promised(scene: Scene) -> None:
    scene.repository(scene.folder / "far")
    scene.git("commit", "-qam", "second")
    blob = subprocess.run(
        ["git", "rev-parse", "HEAD~1:a.x"], cwd=scene.work, capture_output=True, text=True, check=True
    ).stdout.strip()
    for name, value in (("url", str(scene.folder / "far")), ("promisor", "true"), ("uploadpack", scene.evil)):
        scene.set(f"remote.far.{name}", value)
    scene.set("core.repositoryFormatVersion", "1")
    scene.set("extensions.partialClone", "far")
    (scene.work / ".git/objects" / blob[:2] / blob[2:]).unlink()


def _tree_elsewhere(scene: Scene) -> None:
    (scene.folder / "elsewhere").mkdir()
    scene.set("core.worktree", str(scene.folder / "elsewhere"))
    scene.git("mv", "-k", "a.x", "b.x")
    scene.canary.with_name("elsewhere").mkdir(exist_ok=True)


def _startup_of_ssh(scene: Scene) -> None:
    (scene.folder / "home/.bashrc").write_text(f": > {scene.canary}\n")
    scene.env["SSH_CLIENT"] = "192.0.2.1 1 22"
    scene.env.pop("SHLVL", None)


def _open_folder(scene: Scene) -> None:
    scene.program(scene.folder / "open/ls")
    (scene.folder / "open").chmod(0o777)
    scene.env["PATH"] = f"{scene.folder / 'open'}:{scene.env['PATH']}"


def _link(scene: Scene) -> None:
    scene.program(scene.work / "own")
    (scene.tools / "ls").symlink_to(scene.work / "own")


def _through_env(scene: Scene) -> None:
    scene.tool("black", "#!/usr/bin/env python3\n")
    scene.program(scene.work / "bin/python3")
    scene.env["PATH"] = f"{scene.work / 'bin'}:{scene.env['PATH']}"


def _python(scene: Scene) -> None:
    scene.tool("black", f"#!{sys.executable}\n")
    (scene.work / "sitecustomize.py").write_text(f"open({str(scene.canary)!r}, 'w')\n")
    scene.env["PYTHONPATH"] = str(scene.work)


def _perl(scene: Scene) -> None:
    scene.tool("colordiff", "#!/usr/bin/perl\n")
    (scene.work / "Odd.pm").write_text(f"open(F, '>', '{scene.canary}'); 1;\n")
    scene.env |= {"PERL5OPT": "-MOdd", "PERL5LIB": str(scene.work)}


def _node(scene: Scene) -> None:
    scene.tool("typos", "#!/usr/bin/env node\n")
    (scene.work / "odd.js").write_text(f"require('fs').writeFileSync({str(scene.canary)!r}, '')\n")
    scene.env["NODE_OPTIONS"] = f"--require={scene.work}/odd.js"


def _preload(variable: str) -> Callable[[Scene], object]:
    def plant(scene: Scene) -> None:
        source = scene.folder / "odd.c"
        source.write_text(
            "#include <fcntl.h>\n#include <unistd.h>\n"
            "unsigned int la_version(unsigned int v) { return v; }\n"
            f'__attribute__((constructor)) static void f(void) {{ close(open("{scene.canary}", O_CREAT, 0600)); }}\n'
        )
        library = scene.work / "odd.so"
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
        scene.env[variable] = str(library)

    return plant


def _toolchain(scene: Scene) -> None:
    scene.program(scene.work / "chain/bin/cargo")
    scene.program(scene.work / "chain/bin/rustc")
    (scene.work / "rust-toolchain.toml").write_text(f'[toolchain]\npath = "{scene.work}/chain"\n')


def _conftest(scene: Scene) -> None:
    (scene.work / "conftest.py").write_text(f"open({str(scene.canary)!r}, 'w')\n")


def _plugin(scene: Scene) -> None:
    (scene.work / "odd.py").write_text(f"open({str(scene.canary)!r}, 'w')\n")
    (scene.work / "src/m.py").write_text("")
    (scene.work / "setup.cfg").write_text("[mypy]\nPlugins = odd.py\n")


def _ripgrep(scene: Scene) -> None:
    (scene.work / "rgrc").write_text(f"--pre={scene.evil}\n")
    scene.env["RIPGREP_CONFIG_PATH"] = str(scene.work / "rgrc")


def _pairs(scene: Scene) -> None:
    scene.env |= {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "filter.odd.clean",
        "GIT_CONFIG_VALUE_0": scene.evil,
    }


def _global_file(scene: Scene) -> None:
    scene.set("filter.odd.clean", file="odd.cfg")
    scene.env["GIT_CONFIG_GLOBAL"] = str(scene.work / "odd.cfg")


ATTACKS = (
    Attack("core.fsmonitor", "git status", "off", _key("core.fsmonitor")),
    Attack("a hook", "git commit --allow-empty -m x", "off", _hook),
    Attack("core.hooksPath", "git add a.x", "off", _hook_folder),
    Attack("core.pager", "git log", "off", _key("core.pager"), terminal=True),
    Attack("pager.log", "git log", "off", _key("pager.log"), terminal=True),
    Attack("core.editor", "git commit --allow-empty", "off", _key("core.editor")),
    Attack("diff.external", "git diff", "medium", _key("diff.external")),
    Attack("diff.*.command", "git diff", "medium", _key("diff.odd.command")),
    Attack("diff.*.textconv", "git diff", "medium", _key("diff.odd.textconv")),
    Attack("textconv of a log", "git log -p -1", "medium", _key("diff.odd.textconv")),
    Attack("filter.*.clean", "git status", "medium", _key("filter.odd.clean")),
    Attack("filter.*.process", "git add a.x", "medium", _key("filter.odd.process")),
    Attack("alias", "git frob", "medium", _key(("alias.frob", "!:>../canary"))),
    Attack("alias.*.command", "git frob", "medium", _key(("alias.frob", "!:>../canary"))),
    Attack(
        "gpg.program",
        "git commit --allow-empty -m x",
        "medium",
        _key("gpg.program", ("commit.gpgSign", "true"), ("user.signingKey", "A")),
    ),
    Attack(
        "trailer.*.command",
        "git commit --allow-empty -m x --trailer odd=1",
        "medium",
        _key(("trailer.odd.key", "Odd"), "trailer.odd.command"),
    ),
    Attack("tar.*.command", "git archive -o out.odd HEAD", "medium", _key("tar.odd.command")),
    Attack("include.path", "git diff", "medium", _included),
    Attack("includeIf", "git diff", "medium", _included_if),
    Attack("config.worktree", "git diff", "medium", _worktree_config),
    Attack("a linked working tree", "cd linked && git diff", "medium", _linked_tree),
    Attack("fsmonitor of an inner repository", "git status", "off", _gitlink("core.fsmonitor")),
    Attack("filter of an inner repository", "git status", "medium", _gitlink("filter.odd.clean")),
    Attack("a folder like a repository", "cd fixture && git status", "medium", _bare("core.fsmonitor")),
    Attack("the same with a driver", "cd fixture && git log -p -1", "medium", _bare("diff.odd.textconv")),
    Attack("a partial clone", "git show HEAD~1:a.x", "medium", _promised),
    Attack("GIT_DIR", "git status", "off", _far_repository),
    Attack("GIT_CONFIG_COUNT", "git status", "off", _pairs),
    Attack("GIT_CONFIG_GLOBAL", "git status", "off", _global_file),
    Attack("GIT_EXTERNAL_DIFF", "git diff", "off", _variables(GIT_EXTERNAL_DIFF="{evil}")),
    Attack("GIT_TRACE", "git status", "off", _variables(GIT_TRACE="{folder}/canary")),
    Attack("GIT_PAGER", "git log", "off", _variables(GIT_PAGER="{evil}"), terminal=True),
    Attack("HOME in the workspace", "git status", "medium", _home("HOME", ".gitconfig")),
    Attack(
        "XDG_CONFIG_HOME in the workspace", "git status", "medium", _home("XDG_CONFIG_HOME", "git/config")
    ),
    Attack("ls of the workspace", "ls", "medium", _on_path("ls", "{work}/bin", "bin")),
    Attack("git of the workspace", "git status", "medium", _on_path("git", "{work}/bin", "bin")),
    Attack("bash of the workspace", "echo x", "medium", _on_path("bash", "{work}/bin", "bin")),
    Attack("a relative PATH", "cd src && ls", "medium", _on_path("ls", "bin", "src/bin")),
    Attack("an empty PATH", "ls", "medium", _on_path("ls", "", ".")),
    Attack("a wrapped program", "timeout 9 ls", "medium", _on_path("ls", "{work}/bin", "bin")),
    Attack("a helper of a program", "tar -czf out.tgz src", "off", _on_path("gzip", "{work}/bin", "bin")),
    Attack("an open folder on PATH", "ls", "medium", _open_folder),
    Attack("a link into the workspace", "ls", "medium", _link),
    Attack("an interpreter of the workspace", "black src", "medium", _through_env),
    Attack("BASH_ENV", "true", "off", _variables(BASH_ENV="{evil}")),
    Attack("a function for a program", "ls", "off", _function("ls")),
    Attack("a function for a builtin", "cd src", "off", _function("cd")),
    Attack("SSH_CLIENT", "ls", "off", _startup_of_ssh, shell=("bash", "-c")),
    Attack("LD_PRELOAD", "ls", "off", _preload("LD_PRELOAD"), needs=("gcc",)),
    Attack("LD_AUDIT", "ls", "off", _preload("LD_AUDIT"), needs=("gcc",)),
    Attack("PYTHONPATH", "black src", "off", _python),
    Attack("PERL5OPT", "colordiff a.x a.x", "off", _perl, needs=("perl",)),
    Attack("NODE_OPTIONS", "typos", "off", _node, needs=("node",)),
    Attack(
        "TAR_OPTIONS",
        "tar -cf out.tar src",
        "off",
        _variables(TAR_OPTIONS="--checkpoint=1 --checkpoint-action=exec={evil}"),
    ),
    Attack(
        "LESSOPEN", "less src/f", "medium", _variables(LESSOPEN="|{evil} %s"), needs=("less",), terminal=True
    ),
    Attack("RIPGREP_CONFIG_PATH", "rg one src", "off", _ripgrep, needs=("rg",)),
    Attack("rust-toolchain.toml", "cargo --version", "medium", _toolchain, needs=("rustup",)),
    Attack("a plugin of mypy", "mypy src", "medium", _plugin, needs=("mypy",)),
    Attack("conftest.py", "pytest --help", "medium", _conftest, needs=("pytest",)),
)
"""All attacks that are tried."""
