"""A step sees the credentials that it lists and no other: thirty are planted around planrun, and burglars look.

They try as root and as an ordinary user; see burglar.py for the ways. What planrun wrote is searched, too, and must be
for its owner alone although the umask would allow everything.
"""

from __future__ import annotations

import argparse
import json
import os
import stat
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proofs.trials import living
from tests.users import NOBODY, admitted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

HERE = Path(__file__).parent
ROOT = HERE.parent
LIMIT = 300.0
"""Seconds after which a planrun that should have ended is said to hang."""
LISTED = ("PYPI_TOKEN", "RELEASE_WORD")
"""What the plan declares and the second step lists; the second has a name like any other."""
NAMES = (
    *LISTED,
    *("GITHUB_TOKEN", "GH_TOKEN", "ACTIONS_RUNTIME_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_URL", "CI_JOB_TOKEN"),
    *(
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AZURE_CLIENT_SECRET",
    ),
    *("GOOGLE_APPLICATION_CREDENTIALS", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "HF_TOKEN"),
    *("NPM_TOKEN", "TWINE_PASSWORD", "CARGO_REGISTRY_TOKEN", "DOCKER_PASSWORD", "CODECOV_TOKEN"),
    *("SENTRY_DSN", "DB_PASSWD", "GPG_PASSPHRASE", "SSH_PRIVATE_KEY", "DEPLOY_PAT", "MAPS_APIKEY"),
    *("KUBECONFIG", "client_secret_of_app"),
)
FAULTS = {
    "": "",
    "no-hardening": "from planrun.executors import hardening\nhardening.harden = lambda names: 'open'\n",
    "no-filter": "from planrun.actions import environment\nenvironment.credentials_in = lambda environ: ()\n",
    "no-masks": "from planrun.executors import local\nlocal._outputs = lambda folder, masks: local.Logs(folder)\n",
    "loose-files": "import os\nopened = os.open\n"
    "os.open = lambda path, flags, mode=0o777, **more: opened(path, flags, mode | 0o44, **more)\n",
    "tracing-left": "from planrun.executors import hardening\nhardening._drop_ptrace = lambda call: True\n",
    "nothing-erased": "from planrun.executors import hardening\nhardening._erase = lambda names: True\n",
}
"""Faults to plant, as what is run before planrun starts; the empty name is planrun as it is."""
OF_ROOT = ("tracing-left", "nothing-erased")
"""Faults that an ordinary user does not notice."""
_DRIVER = "{fault}from planrun.cli import run\nrun()\n"
_PLAN = """\
version: 1
name: environment
schedule: sequential
secrets: [{secrets}]
steps:
"""
_STEP = "  - id: {id}\n    exec: [{python}, -I, -S, {burglar}, {loot}, {task}]\n{more}"


@dataclass(frozen=True)
class Sight:
    """One way that a step tried: what it came to, and the planted names that it showed against the rules."""

    user: int
    step: str
    way: str
    says: str
    hits: tuple[str, ...]

    def __str__(self) -> str:
        who = "root" if not self.user else f"user {self.user}"
        verdict = f"FOUND {', '.join(self.hits)}" if self.hits else "nothing"
        return f"{who:12}{self.step:10}{self.way:32}{self.says:28}{verdict}"


def users() -> list[int]:
    """As whom steps can be run here: this user, and an ordinary one where this one is root and lets him in."""
    own = os.getuid()
    if own or not admitted(NOBODY):
        return [own]
    return [0, NOBODY]


def look(user: int, folder: Path, fault: str = "") -> list[Sight]:
    """Have burglars look for what is planted around a planrun of this user, in an empty folder."""
    planted = {name: f"planted-{n:02d}-{os.urandom(8).hex()}" for n, name in enumerate(NAMES)}
    listed = f"    secrets: [{', '.join(LISTED)}]\n"
    _write_plan(folder, {"unlisted": ("look", ""), "listed": ("look", listed)})
    code = _execute(user, folder, planted, fault)
    if code:
        raise RuntimeError(f"planrun ended with {code}: {(folder / 'output').read_text('utf-8')}")
    return [
        *_loot(user, "unlisted", folder, planted, ()),
        *_loot(user, "listed", folder, planted, LISTED),
        *_written(user, folder, planted),
        *_modes(user, folder),
    ]


def crash(user: int, folder: Path, fault: str = "") -> list[Sight]:
    """Have a burglar crash planrun, and look into the core file that it leaves."""
    planted = {name: f"planted-{n:02d}-{os.urandom(8).hex()}" for n, name in enumerate(NAMES)}
    _write_plan(folder, {"crash": ("crash", "")})
    _execute(user, folder, planted, fault)
    limit = time.monotonic() + LIMIT
    while living(
        str(folder / "crash.loot")
    ):  # the guardian has yet to end the burglar, who writes into the folder
        if time.monotonic() > limit:
            raise RuntimeError("the step outlived planrun")
        time.sleep(0.01)
    pattern = Path("/proc/sys/kernel/core_pattern")
    where = pattern.read_text("ascii").strip() if pattern.exists() else "core"
    way = "core file of planrun" if not where.startswith(("|", "/")) else f"core file: not looked at {where}"
    return [*_written(user, folder, planted, "crash", way)]


def memory(folder: Path) -> str:
    """Return what planrun recorded about how far it is closed."""
    (ledger,) = folder.glob(".planrun/runs/*/ledger.jsonl")
    first = json.loads(ledger.read_text("utf-8").splitlines()[0])
    return str(first["options"]["memory"])


def trial(user: int, fault: str = "") -> tuple[list[Sight], str]:
    """Look and crash, each in a folder of its own; return what was seen, and what planrun says it was granted."""
    sights: list[Sight] = []
    granted = ""
    for means in (look, crash):
        with tempfile.TemporaryDirectory(prefix="environment-") as name:
            folder = Path(name)
            os.chown(folder, user, -1)
            sights += means(user, folder, fault)
            granted = memory(folder)
    return sights, granted


def prove_faults(found: Sequence[Sight]) -> bool:
    """Plant each fault where it must show; returns whether every one was caught. `found`: what is seen without."""
    caught = True
    for fault in filter(None, FAULTS):
        user = min(users())
        if fault in OF_ROOT and user:
            print(f"planted fault {fault}: not tried, it takes root to notice it")
            continue
        if fault == "nothing-erased" and _refused(found, "environ of planrun"):
            print(f"planted fault {fault}: not tried, this kernel refuses root, too")
            continue
        hits = [sight for sight in trial(user, fault)[0] if sight.hits]
        caught &= bool(hits)
        says = (
            "; ".join(f"{s.step}: {s.way}: {len(s.hits)} found" for s in hits[:3]) if hits else "NOT CAUGHT"
        )
        print(f"planted fault {fault}: {says}")
    return caught


def main(words: Sequence[str]) -> int:
    """Run the proof; 1 when anything was seen that must not be, or a fault was not caught."""
    parser = argparse.ArgumentParser(prog="python -m proofs environment", description=__doc__)
    parser.add_argument("--fault", choices=sorted(FAULTS), default="")
    chosen = parser.parse_args(words)
    found: list[Sight] = []
    for user in users():
        sights, granted = trial(user, chosen.fault)
        print(*sights, f"planrun of user {user} says: memory {granted}", sep="\n")
        found += sights
    if os.getuid() == 0 and NOBODY not in users():
        print("not tried as an ordinary user: he may not read this folder or this Python")
    hits = sum(len(sight.hits) for sight in found)
    print(f"{len(NAMES)} credentials, {len(found)} looks, {hits} found that must not be")
    caught = bool(chosen.fault) or prove_faults(found)
    return int(bool(hits) or not caught)


def _write_plan(folder: Path, steps: Mapping[str, tuple[str, str]]) -> None:
    text = _PLAN.format(secrets=", ".join(LISTED))
    for step, (task, more) in steps.items():
        text += _STEP.format(
            id=step,
            python=json.dumps(sys.executable),
            burglar=json.dumps(str(HERE / "burglar.py")),
            loot=json.dumps(str(folder / f"{step}.loot")),
            task=task,
            more=more,
        )
    (folder / "plan.yml").write_text(text, "utf-8")


def _execute(user: int, folder: Path, planted: Mapping[str, str], fault: str) -> int:
    """Execute the plan as this user and with everything planted; return how planrun ended."""
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PLANRUN_CACHE_DIR": str(folder / "cache"),
    }
    with (folder / "output").open("wb") as output:
        return subprocess.run(
            [sys.executable, "-c", _DRIVER.format(fault=FAULTS[fault]), "execute", "plan.yml"],
            cwd=folder,
            env={**env, **planted},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            umask=0,
            timeout=LIMIT,
            check=False,
            **_as(user),
        ).returncode


def _as(user: int) -> dict[str, Any]:
    return {} if user == os.getuid() else {"user": user, "group": user, "extra_groups": []}


def _loot(
    user: int, step: str, folder: Path, planted: Mapping[str, str], allowed: Sequence[str]
) -> Iterator[Sight]:
    """What a step saw; `allowed` is what its own environment must have, and nothing else may."""
    names = {value: name for name, value in planted.items()}
    loot: dict[str, Any] = json.loads((folder / f"{step}.loot").read_text("ascii"))
    for way, came in loot.items():
        seen = {names[value] for value in came["found"] if value in names}
        if way == "own environment":
            yield Sight(user, step, way, f"{len(seen)} planted", tuple(sorted(seen ^ set(allowed))))
        else:
            yield Sight(user, step, way, came["says"], tuple(sorted(seen)))


def _written(
    user: int, folder: Path, planted: Mapping[str, str], step: str = "", way: str = "what planrun wrote"
) -> Iterator[Sight]:
    """What stands in any file of the workspace but the burglars' own."""
    names = {value.encode(): name for name, value in planted.items()}
    paths = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".loot"]
    hits: set[str] = set()
    for path in paths:
        data = path.read_bytes()
        hits |= {name for value, name in names.items() if value in data}
    yield Sight(user, step, way, f"{len(paths)} files", tuple(sorted(hits)))


def _modes(user: int, folder: Path) -> Iterator[Sight]:
    """What in planrun's own folder is not for its owner alone."""
    home = folder / ".planrun"
    paths = [home, *home.rglob("*")]
    loose = []
    for path in paths:
        mode = stat.S_IMODE(path.lstat().st_mode)
        if mode != (0o700 if path.is_dir() else 0o600):
            loose.append(f"{path.relative_to(folder)} {mode:o}")
    yield Sight(user, "", "modes of planrun's files", f"{len(paths)} paths", tuple(loose))


def _refused(found: Sequence[Sight], way: str) -> bool:
    return not any(sight.way == way and sight.user == 0 and sight.says.endswith("bytes") for sight in found)
