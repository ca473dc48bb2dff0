"""What a run knows of its secrets, who gets them, and what they leave on the disk."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

import planrun
from planrun.actions.environment import RunEnvironment
from planrun.actions.prepare import Steps
from planrun.app.secrets import read_secrets
from planrun.errors import InvalidInput, RecordsLost
from planrun.model.plan import Plan, Step
from planrun.model.state import RunState
from planrun.plan.kinds.command import Run

SECRET = "tok-0123456789abcdef"
PLAN = """\
version: 1
secrets: [TOKEN]
steps:
  - id: a
    secrets: [TOKEN]
    run: |
      umask 0
      echo "$TOKEN"
      echo "v=$TOKEN" >> "$PLANRUN_OUTPUT"
    outputs: {v: string}
  - {id: b, depends_on: [a], run: "exit ${CODE:-0}"}
  - {id: c, on_failure: continue, run: "umask 0; echo x=1 >> $PLANRUN_OUTPUT; exit 1"}
"""


def plan_of(*steps: Step, **fields: Any) -> Plan:
    """Return a plan of these steps."""
    return Plan(name="p", file="p.yml", digest="", steps=steps, **fields)


def step_of(**fields: Any) -> Step:
    """Return a step that does nothing."""
    return Step(**{"id": "a", "action": Run(script="true"), "kind": "run", "line": 3, **fields})


def workspace(folder: Path, text: str = PLAN) -> Path:
    """Write the plan into a folder."""
    (folder / "plan.yml").write_text(text)
    return folder


def run(folder: Path, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run the installed command in a folder, with an umask that takes nothing away."""
    return subprocess.run(
        [str(Path(sysconfig.get_path("scripts")) / "planrun"), *words],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), **environ},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        umask=0,
    )


def events(folder: Path) -> list[dict[str, Any]]:
    """Return the events of the only run in a workspace."""
    ledger = next(folder.glob(".planrun/runs/*/ledger.jsonl"))
    return [json.loads(line) for line in ledger.read_text().splitlines()]


def test_values_come_from_the_environment_once() -> None:
    """Declared ones, keys of providers, and under `inherit_env: all` what is named like a credential."""
    environ = {
        "A": "first-4711",
        "E": "",
        "ANTHROPIC_API_KEY": "key-4711",
        "MY_TOKEN": "mine-4711",
        "AWS_REGION": "eu-4711",
    }
    plan = plan_of(step_of(secrets=("A", "E")), secrets=("A", "E", "GONE"))
    secrets = read_secrets(plan, environ)
    assert secrets.declared == {"A": "first-4711"}
    assert secrets.absent == {"E": "empty", "GONE": "not set"}
    assert secrets.redactor is not None
    assert secrets.redactor.mask_text("first-4711 key-4711 mine-4711 eu-4711") == "*** *** mine-4711 eu-4711"
    everything = read_secrets(plan.but(inherit_env="all"), environ)
    assert everything.redactor is not None
    assert everything.redactor.mask_text("first-4711 key-4711 mine-4711 eu-4711") == "*** *** *** eu-4711"
    assert "4711" not in repr(everything)


def test_where_nothing_can_be_masked_there_are_no_masks() -> None:
    """Short values and everyday words are named; a plan without values has no masks at all."""
    plan = plan_of(step_of(secrets=("A",)), secrets=("A", "B"))
    secrets = read_secrets(plan, {"A": "abc", "B": "password"})
    assert secrets.unmasked == ("A", "B")
    assert secrets.redactor is None
    secrets.refuse(plan, {"x": "abc"})
    assert read_secrets(plan, {}).redactor is None


@pytest.mark.parametrize(
    "step",
    [step_of(id="eu-4711-prod"), step_of(tags=("eu-4711-prod",)), step_of(outputs={"eu-4711-prod": {}})],
)
def test_names_that_hold_a_secret_are_refused(step: Step) -> None:
    """They stand in every record, and leading from one to the other they cannot be masked."""
    plan = plan_of(step, secrets=("REGION",))
    with pytest.raises(
        InvalidInput, match=r"p\.yml:3: .* holds the value of REGION, and names are never masked"
    ):
        read_secrets(plan, {"REGION": "eu-4711-prod"}).refuse(plan, {})
    # An inherited one is not the plan's business.
    inherited = plan.but(secrets=(), inherit_env="all")
    read_secrets(inherited, {"REGION_KEY": "eu-4711-prod"}).refuse(inherited, {})


def test_places_in_the_plan_are_reported() -> None:
    """Lines and columns from 1, in characters; several of them."""
    source = 'version: 1\nname: "ü tok-0123456789"\nx-a: [tok-0123456789, "tok-0123456789"]\n'.encode()
    secrets = read_secrets(plan_of(secrets=("T",)), {"T": "tok-0123456789"})
    notice = secrets.notice(plan_of(secrets=("T",), source=source), None)
    assert notice["in_plan"] == ["2:10 T", "3:7 T", "3:24 T"]


@pytest.mark.shows("R16")
def test_records_are_for_their_owner_alone(tmp_path: Path) -> None:
    """0700 and 0600 under .planrun, whatever the umask of planrun and of the step; reports follow it."""
    for environ in ({"TOKEN": SECRET}, {}):  # with masks, and without
        text = (
            PLAN
            if environ
            else PLAN.replace("secrets: [TOKEN]", "x-: 1", 1).replace("    secrets: [TOKEN]\n", "")
        )
        folder = tmp_path / ("masked" if environ else "plain")
        folder.mkdir()
        assert run(
            workspace(folder, text), "execute", "plan.yml", **{"TOKEN": SECRET, **environ}
        ).returncode in (0, 1)
        open_ones = {
            str(path.relative_to(folder)): oct(stat.S_IMODE(path.lstat().st_mode))
            for path in [folder / ".planrun", *(folder / ".planrun").rglob("*")]
            if stat.S_IMODE(path.lstat().st_mode) != (0o700 if path.is_dir() else 0o600)
        }
        assert open_ones == {}
        assert stat.S_IMODE((folder / "planrun-out" / "report.md").stat().st_mode) == 0o666


@pytest.mark.shows("R12")
def test_another_value_reruns_nothing(tmp_path: Path) -> None:
    """The fingerprint holds the name of a secret and nothing of its value, so a rotated one is no change."""
    folder = workspace(tmp_path)
    assert run(folder, "execute", "plan.yml", TOKEN=SECRET, CODE="3").returncode == 1
    assert run(folder, "resume", "last", TOKEN="new-9876543210abcdef").returncode == 0
    started = [event["step"] for event in events(folder) if event["type"] == "attempt_started"]
    assert [step for step in started if step != "c"] == ["a", "b", "b"]


@pytest.mark.shows("R12")
def test_fingerprints_hold_names_of_secrets_and_no_values() -> None:
    """Another list is another step; a value that stands in a command some other way is taken out before the hash."""

    def fingerprint(step: Step, environ: dict[str, str]) -> str:
        plan = plan_of(step, secrets=("A", "B"))
        secrets = read_secrets(plan, environ)
        place = RunEnvironment(
            run="r",
            workspace="/",
            rundir="/",
            env={},
            shell=("sh", "-c"),
            context={},
            secrets=secrets.declared,
            absent=secrets.absent,
            masks=secrets.redactor,
        )
        return Steps(place).fingerprint(step, 1, RunState(plan))

    one, other = {"A": "first-4711", "B": "b-0815-b"}, {"A": "second-4711", "B": "b-0815-c"}
    listing = step_of(secrets=("A",))
    assert fingerprint(listing, one) == fingerprint(listing, other)
    assert fingerprint(listing, one) != fingerprint(step_of(secrets=("A", "B")), one)
    assert fingerprint(listing, one) != fingerprint(step_of(), one)
    written = [step_of(action=Run(script=f"echo {value}")) for value in ("first-4711", "second-4711")]
    assert fingerprint(written[0], one) == fingerprint(written[1], other)
    assert fingerprint(written[0], one) != fingerprint(written[1], one)


def test_from_python_errors_are_masked_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What planrun raises says nothing of a secret, wherever it got it from."""
    monkeypatch.chdir(workspace(tmp_path))
    monkeypatch.setenv("TOKEN", SECRET)
    (tmp_path / SECRET).touch()
    plan = planrun.load("plan.yml")
    with pytest.raises(RecordsLost) as caught:
        planrun.execute(plan, report_dir=f"{SECRET}/out")
    assert SECRET not in str(caught.value)
    assert "***/out" in str(caught.value)
    assert SECRET not in capsys.readouterr().err


def test_a_parameter_that_holds_a_secret_is_refused_before_it_is_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Errors quote the beginning of a value, which no mask would cover."""
    text = PLAN.replace("steps:", "params: {n: {type: integer, default: 1}}\nsteps:", 1)
    monkeypatch.chdir(workspace(tmp_path, text))
    monkeypatch.setenv("TOKEN", SECRET * 9)
    with pytest.raises(InvalidInput, match='the parameter "n" holds the value of TOKEN') as caught:
        planrun.execute(planrun.load("plan.yml"), params={"n": SECRET * 9})
    assert SECRET not in str(caught.value)


def test_a_long_script_leaves_no_secret_behind(tmp_path: Path) -> None:
    """A script that is too long for an argument goes through a file, with all values filled in."""
    text = (
        "version: 1\ndefaults: {inherit_env: all}\nsteps:\n  - id: a\n    run: |\n"
        f"      # {'x' * 30_000}\n      echo ${{{{ env.MY_TOKEN | sh }}}}\n"
    )
    folder = workspace(tmp_path, text)
    assert run(folder, "execute", "plan.yml", MY_TOKEN=SECRET).returncode == 0
    kept = [path for path in (folder / ".planrun").rglob("*") if path.is_file()]
    assert not [path for path in kept if SECRET.encode() in path.read_bytes()]
    assert next(path for path in kept if path.name == "1.log").read_text() == "***\n"


def test_bugs_are_reported_masked(tmp_path: Path) -> None:
    """An unexpected exception, and its traceback on request."""
    program = (
        "from planrun.engine.scheduler import Scheduler\n"
        f"def run(self):\n    try:\n        open('/{SECRET}')\n"
        f"    except OSError as e:\n        raise KeyError('{SECRET}') from e\n"
        "Scheduler.run = run\nfrom planrun.cli import run as main\nmain()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "execute", "plan.yml"],
        cwd=workspace(tmp_path),
        env={**os.environ, "TOKEN": SECRET, "PLANRUN_DEBUG": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 4
    assert "KeyError: '***'" in done.stderr
    assert SECRET not in done.stdout + done.stderr.replace(program, "")
