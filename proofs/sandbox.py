"""What a sandboxed step cannot do: some 120 attacks, each of which has its effect without a sandbox.

Each attack is a step of a real plan, run by the command line as root and as an ordinary user, in the sandbox of each
backend that this machine has, and in none. A world around it shows effects: folders outside with a canary for each
attack, a process of the same user with a secret, servers on TCP, UDP and Unix sockets, a repository as the workspace.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planrun.executors.sandbox.probe import why_not
from proofs.sandboxattacks import ATTACKS, SECRET, Attack
from tests.users import NOBODY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

BACKENDS = ("landlock", "bubblewrap")
LIMIT = 300.0
"""Seconds after which a planrun that should have ended is said to hang."""
ROOT = Path(__file__).parent.parent
MODULES = os.pathsep.join([str(ROOT), *[path for path in sys.path if path.endswith("-packages")]])
"""Where planrun and its libraries are, for another Python of the same version."""
_PYTHONS = (sys.executable, "/usr/bin/python3")
_VICTIM = (
    "import os, sys, time\nfd = os.open(sys.argv[1], os.O_RDWR)\nos.dup2(fd, 5)\n"
    "os.chdir(sys.argv[2])\nprint('ready', flush=True)\ntime.sleep(600)\n"
)
_START = 'export RUNNER=$$; exec "$@"'


@dataclass(frozen=True)
class Result:
    """What became of one attack; `effects`: empty where it had none."""

    attack: str
    backend: str
    user: int
    effects: tuple[str, ...]
    log: str = ""

    def __str__(self) -> str:
        """Return it as one line."""
        return f"{self.attack} on {self.backend or 'no sandbox'} as {self.user}: {', '.join(self.effects) or 'none'}"


def backends() -> tuple[str, ...]:
    """The backends that work here."""
    return tuple([name for name in BACKENDS if not why_not(name)])


@cache
def python_of(user: int) -> str:
    """Return a Python that a user may run planrun with; "" for none."""
    for program in _PYTHONS:
        words = [program, "-c", "import planrun.cli.run, yaml"]
        with suppress(OSError):
            env = {"PYTHONPATH": MODULES}
            done = subprocess.run(
                words,
                cwd="/",
                env=env,
                user=user,
                group=user,
                extra_groups=[],
                check=False,
                capture_output=True,
            )
            if done.returncode == 0:
                return program
    return ""


def users() -> tuple[int, ...]:
    """Whom to run as: this user, and where this is root, an ordinary one as well."""
    if os.geteuid():
        return (os.geteuid(),)
    return (0, NOBODY) if python_of(NOBODY) else (0,)


@dataclass
class World:
    """The surroundings of one run; everything in them belongs to `user`."""

    top: Path
    user: int
    reached: set[str] = field(default_factory=set)
    _sockets: list[socket.socket] = field(default_factory=list)
    _victim: subprocess.Popen[str] | None = None
    _segment: int = -1

    def __post_init__(self) -> None:
        """Make folders, servers and a process."""
        self.top.chmod(0o755)
        self.work, self.out, self.home = self.top / "work", self.top / "outside", self.top / "home"
        for attack in ATTACKS:
            self._write(self.out / attack.name / "canary", "canary\n")
        self._write(self.home / ".ssh/key", SECRET + "\n")
        self._write(self.home / ".bashrc", "# mine\n")
        self._repository()
        self.env = {"PATH": os.defpath, "HOME": str(self.home), "PYTHONPATH": MODULES}
        self.env |= {"PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C.UTF-8", "OUT": str(self.out)}
        self.env |= {"WORK": str(self.work), "PATH": f"{os.defpath}:{self.work}/venv/bin"}
        self._own()
        self._serve()
        self._start_victim()

    def _write(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def _repository(self) -> None:
        self._write(self.work / ".github/workflows/ci.yml", "on: push\n")
        self._write(self.work / "policies/ceiling.yml", "auto_approve: high\n")
        self._write(self.work / "README.md", "# It\n")
        self._write(self.work / "venv/pyvenv.cfg", f"home = {self.home}/.ssh/bin\n")
        self._write(self.work / "venv/bin/activate", "")
        self._write(self.work / "docs/agents.txt", "Be careful.\n")
        for name in (
            ".planrun.yml",
            "PLANRUN.md",
            ".ci/run",
            "sub/plans/release.yml",
            "sub/approvals/a.json",
        ):
            self._write(self.work / name, "# mine\n")
        (self.out / "write-by-link/sub").mkdir()
        for link, target in (
            (self.work / "keys", self.home / ".ssh"),
            (self.out / "keys", self.home / ".ssh"),
            (self.work / "leads-w", self.out / "write-by-link"),
            (self.work / "leads-f", self.out / "write-of-link"),
            (self.work / "CLAUDE.md", "docs/agents.txt"),
        ):
            link.symlink_to(target)
        subprocess.run(["git", "init", "-q", str(self.work)], check=True)
        if not os.geteuid():
            program = self.work / "setuid-id"
            shutil.copy(shutil.which("id") or "/usr/bin/id", program)

    def _own(self) -> None:
        if os.geteuid():
            return
        for folder, names, files in os.walk(self.top):
            for name in (".", *names, *files):
                os.chown(os.path.join(folder, name), self.user, self.user, follow_symlinks=False)
        program = self.work / "setuid-id"
        os.chown(program, 0, 0)
        program.chmod(0o4755)

    def _serve(self) -> None:
        self.env["ABSTRACT"] = f"planrun-proof-{os.getpid()}-{self.user}-{self.top.name}"
        self.env["ENGINE"] = str(self.out / "docker.sock")
        self.env["CONTROL"] = str(self.work / ".planrun/control")
        (self.work / ".planrun").mkdir()
        (self.work / "sub/deep").mkdir()
        here = [
            str(self.work / name) for name in ("app.sock", "sub/deep/app.sock", ".git/fsmonitor--daemon.ipc")
        ]
        self._own()
        kinds: tuple[tuple[int, int, Any, str], ...] = (
            (socket.AF_UNIX, socket.SOCK_STREAM, "\0" + self.env["ABSTRACT"], ""),
            (socket.AF_UNIX, socket.SOCK_STREAM, self.env["ENGINE"], ""),
            (socket.AF_UNIX, socket.SOCK_STREAM, self.env["CONTROL"], ""),
            *[(socket.AF_UNIX, socket.SOCK_STREAM, path, "") for path in here],
            (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0), "TCP"),
            (socket.AF_INET6, socket.SOCK_STREAM, ("::1", 0), "TCP6"),
            (socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0), "UDP"),
        )
        for family, kind, address, name in kinds:
            server = socket.socket(family, kind)
            server.bind(address)
            if isinstance(address, str) and address.startswith("/"):
                Path(address).chmod(0o777)
            if kind == socket.SOCK_STREAM:
                server.listen(20)
            if name:
                self.env[name] = str(server.getsockname()[1])
            self._sockets.append(server)
            threading.Thread(target=self._listen, args=(server, kind), daemon=True).start()
        library = ctypes.CDLL(None)
        self._segment = int(library.shmget(0, 4096, 0o1666))
        self.env["SHM"] = str(self._segment)

    def _listen(self, server: socket.socket, kind: int) -> None:
        with suppress(OSError):
            while True:
                if kind == socket.SOCK_DGRAM:
                    self.reached.add(server.recv(100).decode().strip())
                    continue
                client, _ = server.accept()
                client.settimeout(10)
                with client, suppress(OSError):
                    self.reached.add(client.recv(100).decode().strip())

    def _start_victim(self) -> None:
        target = self.out / "fd-of-planrun" / "canary"
        words = [python_of(self.user) or sys.executable, "-I", "-S", "-c", _VICTIM, str(target)]
        self._victim = subprocess.Popen(
            [*words, str(self.out / "other-folder")],
            env={"SECRET": SECRET},
            stdout=subprocess.PIPE,
            text=True,
            **self.identity,
        )
        assert self._victim.stdout is not None
        self._victim.stdout.readline()
        self.env["VICTIM"] = str(self._victim.pid)

    @property
    def identity(self) -> dict[str, Any]:
        """The options of subprocess for the user of this world."""
        if self.user == os.geteuid():
            return {}
        return {"user": self.user, "group": self.user, "extra_groups": []}

    def execute(self, plan: str, *more: str) -> int:
        """Run a plan of the workspace by the command line; return the exit code."""
        words = [python_of(self.user) or sys.executable, "-m", "planrun", "execute", plan]
        with (self.top / "console").open("w") as console:
            done = subprocess.run(
                ["sh", "-c", _START, "sh", *words, *more],
                cwd=self.work,
                env=self.env,
                stdout=console,
                stderr=console,
                timeout=LIMIT,
                check=False,
                **self.identity,
            )
        return done.returncode

    def log(self, step: str) -> str:
        """Return what a step of the last run printed."""
        logs = sorted(self.work.glob(f".planrun/runs/*/logs/{step}/1.log"))
        return logs[-1].read_text(errors="replace") if logs else ""

    def close(self) -> None:
        """End servers and process, and delete everything."""
        for server in self._sockets:
            with suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
            server.close()
        if self._victim is not None:
            self._victim.kill()
            self._victim.communicate()
        ctypes.CDLL(None).shmctl(self._segment, 0, None)
        for name in [name for name in os.listdir("/dev/shm") if name.startswith("planrun-proof-")]:
            os.unlink(f"/dev/shm/{name}")
        shutil.rmtree(self.top, ignore_errors=True)


def snapshot(path: Path) -> dict[str, tuple[Any, ...]]:
    """Return what is at a path and below: kind, mode, owner, size, time of change, content of small files."""
    found: dict[str, tuple[Any, ...]] = {}
    for each in [path, *path.rglob("*")] if path.exists() else []:
        info = each.lstat()
        is_file = stat.S_ISREG(info.st_mode)
        content = each.read_bytes() if is_file and info.st_size < 65536 else b""
        link = os.readlink(each) if each.is_symlink() else ""
        times = info.st_mtime_ns if is_file else 0
        names = (info.st_mode, info.st_uid, info.st_nlink if is_file else 0, times, content, link)
        attributes = os.listxattr(each, follow_symlinks=False) if is_file else []
        found[str(each.relative_to(path))] = (*names, *attributes)
    return found


def written(attacks: Iterable[Attack], sandbox: str) -> str:
    """Return the plan with these attacks."""
    steps = [
        {
            "id": attack.name,
            "on_failure": "continue",
            "timeout": "20s",
            "env": {"NAME": attack.name, "A": f"${{{{ env.OUT }}}}/{attack.name}", **attack.env},
            **({"sandbox": attack.sandbox} if sandbox and attack.sandbox else {}),
            **_action(attack.script),
        }
        for attack in attacks
    ]
    head: dict[str, Any] = {"version": 1, "schedule": "sequential", "defaults": {"inherit_env": "all"}}
    if sandbox:
        head["defaults"]["sandbox"] = sandbox
    return json.dumps({**head, "steps": steps}, indent=1)


def _action(script: str) -> dict[str, Any]:
    if script.startswith("#py"):
        return {"exec": ["python3", "-c", script]}
    return {"run": f"PLAN=ci/attacks.yml\n{script}\n"}


def play(backend: str, user: int, attacks: Iterable[Attack] = ATTACKS) -> Iterator[Result]:
    """Yield what became of each attack on a backend; "": without a sandbox."""
    world = World(Path(tempfile.mkdtemp(prefix="planrun-sandbox-")), user)
    listed = list(attacks)
    try:
        plan = world.work / "ci/attacks.yml"
        plan.parent.mkdir()
        plan.write_text(written(listed, "low" if backend else ""))
        world._own()
        before = {attack.name: _seen(world, attack) for attack in listed}
        world.execute("ci/attacks.yml", *(["--sandbox-backend", backend] if backend else []))
        for attack in listed:
            log = world.log(attack.name)
            effects = []
            if _seen(world, attack) != before[attack.name]:
                effects.append("changed something")
            if attack.name in world.reached:
                effects.append("reached a server")
            if "ESCAPED" in log or SECRET in log:
                effects.append("showed it" if SECRET in log else "said so")
            if not log and not (world.work / ".planrun/runs").exists():
                effects.append("did not run")
            yield Result(attack.name, backend, user, tuple(effects), log)
    finally:
        world.close()


def _seen(world: World, attack: Attack) -> list[dict[str, tuple[Any, ...]]]:
    places = [world.out / attack.name]
    if attack.protects:
        places.append(world.work / attack.protects)
    return [snapshot(place) for place in places]


def fitting(user: int) -> list[Attack]:
    """Return the attacks that work without a sandbox for a user."""
    return [attack for attack in ATTACKS if not (attack.root and user) and not (attack.user and not user)]


def main(words: list[str]) -> int:
    """Play every attack on every backend and without a sandbox; return 0 if none escapes and all work without."""
    parser = argparse.ArgumentParser(prog="python -m proofs sandbox", description=__doc__)
    parser.add_argument("--only", default="", help="one attack")
    options = parser.parse_args(words)
    bad = 0
    for user in users():
        attacks = [each for each in fitting(user) if options.only in ("", each.name)]
        for backend in ("", *BACKENDS):
            if backend and (missing := why_not(backend)):
                print(f"skipped: {backend}: {missing}")
                continue
            results = list(play(backend, user, attacks))
            wrong = [each for each in results if bool(each.effects) is bool(backend)]
            bad += len(wrong)
            verdict = "escaped" if backend else "did not work without a sandbox"
            print(f"{backend or 'no sandbox'}, user {user}: {len(results)} attacks, {len(wrong)} {verdict}")
            for each in wrong:
                print(f"  {each}\n    {each.log.strip()[-300:]}")
    return 1 if bad else 0
