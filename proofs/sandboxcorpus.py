"""The labelled commands in sandboxes: high ones at level low change nothing outside, read-only and low ones still work.

A command that the classifier rates too low is thus stopped by the kernel. High commands start as an ordinary user only,
with limits, and never without a sandbox. Read-only and low ones run twice, in a row each, in new repositories that are
the same, without a sandbox and at their level, and must end with the same exit codes; low ones get `write: [.git]`, as
a plan would have it that stages and commits.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proofs.sandbox import MODULES, World, backends, snapshot, users
from tests.users import NOBODY

CORPUS = Path(__file__).parent.parent / "tests/data/risk/commands.tsv"
STRICT: dict[str, Any] = {"level": "low", "processes": 100, "memory": "512MiB", "file_size": "16MiB"}
"""The sandbox of commands that no one would run."""
_PROTECTED = (".git", ".github", "policies", "ci")
_FILES = (
    *(
        "README.md",
        "VERSION",
        "Makefile",
        "build.log",
        "src/app.py",
        "src/main.py",
        "tests/test_app.py",
        "a",
        "b",
    ),
    *(
        "pyproject.toml",
        "package.json",
        "setup.cfg",
        "docs/index.md",
        "CHANGELOG.md",
        "app.py",
        "main.py",
        "data.csv",
    ),
    *(
        "config.json",
        "file.txt",
        "a.txt",
        "b.txt",
        "notes.txt",
        "requirements.txt",
        "src/index.js",
        "data.json",
    ),
)
_ESCAPES = {"\\": "\\", "n": "\n", "t": "\t", "r": "\r"}


def rows(path: Path = CORPUS) -> list[tuple[str, str]]:
    """Return class and command of each row that a process can be given."""
    lines = path.read_text(encoding="utf-8").split("\n")[1:]
    pairs = [line.split("\t", 1) for line in lines if "\t" in line]
    return [(level, command) for level, text in pairs if "\0" not in (command := _decoded(text))]


def _decoded(text: str) -> str:
    found, at = [], 0
    while at < len(text):
        if text[at] != "\\":
            found.append(text[at])
            at += 1
        elif text[at + 1] in _ESCAPES:
            found.append(_ESCAPES[text[at + 1]])
            at += 2
        else:
            digits = 2 if text[at + 1] == "x" else 4
            found.append(chr(int(text[at + 2 : at + 2 + digits], 16)))
            at += 2 + digits
    return "".join(found)


@dataclass(frozen=True)
class Outcomes:
    """How the commands of one class ended, by command; None: cut short."""

    codes: dict[str, int | None]
    effects: tuple[str, ...]  # outside of what they may write


def _repository(world: World) -> None:
    for name in _FILES:
        path = world.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_text("{}\n" if name.endswith(".json") else "one\ntwo\n")
    (world.work / "ci").mkdir()
    world._own()
    git = ["git", "-C", str(world.work), "-c", "user.name=x", "-c", "user.email=x@example.com"]
    for words in (["add", "-A", "--", "src", "README.md"], ["commit", "-qm", "first"], ["branch", "topic"]):
        subprocess.run([*git, *words], check=True, env=world.env, **world.identity)
    subprocess.run([*git, "config", "user.name", "x"], check=True, env=world.env, **world.identity)
    subprocess.run(
        [*git, "config", "user.email", "x@example.com"], check=True, env=world.env, **world.identity
    )


def run(user: int, commands: list[str], sandbox: dict[str, Any] | None, backend: str) -> Outcomes:
    """Run commands as the steps of a plan."""
    world = World(Path(tempfile.mkdtemp(prefix="planrun-corpus-")), user)
    try:
        _repository(world)
        steps = []
        for number, command in enumerate(commands):
            steps.append(
                {
                    "id": f"c{number}",
                    "exec": ["bash", "-c", command],
                    "on_failure": "continue",
                    "timeout": "5s",
                }
            )
        head: dict[str, Any] = {"version": 1, "schedule": "sequential", "defaults": {"inherit_env": "all"}}
        if sandbox:
            head["defaults"]["sandbox"] = sandbox
        (world.work / "ci/commands.yml").write_text(json.dumps({**head, "steps": steps}))
        world._own()
        before = _outside(world)
        world.execute("ci/commands.yml", *(["--sandbox-backend", backend] if backend else []))
        effects = [name for name, found in _outside(world).items() if found != before.get(name)]
        effects += [f"reached a server: {name}" for name in sorted(world.reached)]
        if world._victim is None or world._victim.poll() is not None:
            effects.append("ended a process of another")
        effects += _left(world)
        return Outcomes(codes=_codes(world, commands), effects=tuple(effects))
    finally:
        world.close()


def _outside(world: World) -> dict[str, object]:
    found: dict[str, object] = {name: snapshot(world.work / name) for name in _PROTECTED}
    home = snapshot(world.home)  # planrun itself keeps compiled plans in ~/.cache
    found |= {
        "outside": snapshot(world.out),
        "home": {name: home[name] for name in home if "cache" not in name},
    }
    for folder in ("/tmp", "/var/tmp", "/dev/shm"):
        own = [name for name in os.listdir(folder) if _is_of(f"{folder}/{name}", world.user)]
        found[folder] = sorted(own)
    return found


def _is_of(path: str, user: int) -> bool:
    try:
        return bool(user) and os.lstat(path).st_uid == user and "planrun-" not in path
    except OSError:
        return False


def _left(world: World) -> list[str]:
    """Return the processes of a run that do not end by themselves soon; its guardian does."""
    found: list[str] = []
    for _ in range(50):
        found = [pid for pid in os.listdir("/proc") if pid.isdigit() and _belongs(pid, world)]
        if not found:
            return []
        time.sleep(0.1)
    return [f"left process {pid}" for pid in found]


def _belongs(pid: str, world: World) -> bool:
    """Whether a process that has not ended was started by the run: it has its folder in its environment."""
    try:
        is_over = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1] in "ZX"
        return not is_over and os.fsencode(world.out) in Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False


def _codes(world: World, commands: list[str]) -> dict[str, int | None]:
    ledgers = sorted(world.work.glob(".planrun/runs/*/ledger.jsonl"))
    found: dict[str, int | None] = {}
    for line in ledgers[-1].read_text().splitlines() if ledgers else []:
        event = json.loads(line)
        data = event.get("data", event)
        if event.get("type", data.get("type")) == "attempt_ended":
            found[commands[int(data["step"][1:])]] = data.get("exit_code")
    return found


def compare(user: int, level: str, commands: list[str], backend: str) -> list[str]:
    """Return the commands that end otherwise in their sandbox than without one."""
    # PYTHONPATH names these, and they may lie in a temporary folder, which a sandbox has of its own.
    sandbox: dict[str, Any] = {"level": level, "read": MODULES.split(os.pathsep)}
    if level == "low":
        sandbox["write"] = [".git"]
    wrong = []
    plain = run(user, commands, None, "")
    inside = run(user, commands, sandbox, backend)
    for command in commands:
        one, other = plain.codes.get(command), inside.codes.get(command)
        if one != other:
            wrong.append(f"{command!r}: {one} without, {other} inside")
    return wrong


def main(words: list[str]) -> int:
    """Run the corpus; return 0 if no high command has an effect outside and all others work."""
    parser = argparse.ArgumentParser(prog="python -m proofs corpus", description=__doc__)
    parser.add_argument("--corpus", type=Path, default=CORPUS)
    options = parser.parse_args(words)
    labelled = rows(options.corpus)
    bad = 0
    for user in users():
        for backend in backends():
            for level in ("read-only", "low"):
                commands = [command for found, command in labelled if found == level]
                wrong = compare(user, level, commands, backend)
                bad += len(wrong)
                print(f"{backend}, user {user}: {len(commands)} {level} commands, {len(wrong)} end otherwise")
                print("".join([f"  {each}\n" for each in wrong]), end="")
            if user != NOBODY and not (user and os.geteuid()):
                print(f"skipped: high commands as user {user}: they start as an ordinary user only")
                continue
            commands = [command for found, command in labelled if found == "high"]
            found = run(user, commands, STRICT, backend)
            bad += len(found.effects)
            started = sum(code is not None for code in found.codes.values())
            print(
                f"{backend}, user {user}: {started} high commands at level low, {len(found.effects)} effects outside"
            )
            print("".join([f"  {each}\n" for each in found.effects]), end="")
    return 1 if bad else 0
