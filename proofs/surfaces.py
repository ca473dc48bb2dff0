"""Proof that no value of a secret reaches any surface: real runs of steps that print theirs in every way.

Forty secrets in twenty encodings go to standard output and error, outputs, messages of failures, checks, errors of
starting and of the command line. Then every byte of the records, the reports and both streams of planrun is searched
for every form, also as readers of XML and JSON see it. A run is killed in the middle and resumed; one is made to
look like GitHub's. Ten megabytes of ordinary log have to come through unchanged. Each planted fault must be found.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from proofs.emit import ENCODINGS, TEXTS
from proofs.leaks import FORMS, INHERITED, NAMES, Leak, leaks_in, leaks_under
from proofs.masks import ordinary_log
from proofs.treasure import SECRETS

HERE = Path(__file__).parent
ROOT = HERE.parent
LIMIT = 60.0
"""Seconds after which a planrun that should have ended is said to hang."""
PLAN = """\
version: 1
name: surfaces
description: {title}
secrets: [{names}]
params: {{note: {{type: string, default: none}}, count: {{type: integer, default: 1}}}}
defaults: {{shell: sh, inherit_env: all}}
steps:
  - id: prints
    title: {title}
    secrets: [{names}]
    exec: [{python}, {emit}, print, {words}]
  - id: hands-on
    secrets: [{names}]
    outputs: {{{outputs}}}
    exec: [{python}, {emit}, outputs, {words}]
  - id: reads
    depends_on: {{hands-on: completed}}
    env: {{GOT: "${{{{ steps['hands-on'].outputs.SECRET_8_0 }}}}"}}
    run: echo "$GOT"
  - id: fails
    secrets: [{names}]
    retries: {{max: 1, backoff: {{initial: 10ms}}}}
    exec: [{python}, {emit}, fail, {words}]
  - id: undeclared-output
    secrets: [SECRET_8]
    run: echo "$SECRET_8=x" >> "$PLANRUN_OUTPUT"
  - id: wrong-output
    secrets: [SECRET_8]
    outputs: {{v: integer}}
    run: echo "v=$SECRET_8" >> "$PLANRUN_OUTPUT"
  - id: long-output
    secrets: [SECRET_11]
    outputs: {{v: {{type: string, enum: [a]}}}}
    run: echo "v=$SECRET_11" >> "$PLANRUN_OUTPUT"
  - id: broken-file
    secrets: [SECRET_11]
    run: |
      for n in 1 2; do echo "$SECRET_11: $n"; done > broken.yml
  - id: checks-file
    depends_on: [broken-file]
    validate:
      - json_schema: {{file: broken.yml, schema: {{type: object}}}}
  - id: data
    secrets: [{names}]
    exec: [{python}, {emit}, data, {words}]
  - id: checks
    depends_on: [data]
    validate:
      - json_schema: {{file: data.json, schema: {{additionalProperties: {{type: integer}}}}}}
      - files_exist: ["${{{{ env.DEMO_API_KEY }}}}"]
      - that: env.DEMO_API_KEY == ''
  - id: no-program
    exec: ["/no/such/${{{{ env.DEMO_API_KEY }}}}"]
  - id: no-folder
    workdir: "/no/such/${{{{ env.DEMO_API_KEY }}}}"
    run: "true"
  - id: unsafe
    env: {{X: "a b"}}
    run: echo "${{{{ env.DEMO_API_KEY ~ ' $' }}}}"
  - id: condition
    condition: fromjson(env.DEMO_API_KEY)
    run: "true"
  - id: waits
    depends_on: {{prints: done, fails: done}}
    run: echo "$DEMO_API_KEY $ANTHROPIC_API_KEY"; while test -e wait; do touch waits; sleep 0.05; done
finally:
  - id: ends
    secrets: [{names}]
    exec: [{python}, {emit}, print, {words}]
"""
# Everything that somebody is asked has secrets in it, and so has all that he may answer.
GATES_PLAN = """\
version: 1
name: gates
secrets: [{names}]
defaults: {{shell: sh, inherit_env: all}}
policy: {{auto_approve: medium, rules: [{{deny: {{step: denied}}}}, {{require: {{words: ["{secret}"]}}}}]}}
steps:
  - id: approved
    title: {title}
    run: cat "/etc/{secret}" | true
  - {{id: denied, description: {title}, run: "sudo echo {secret}"}}
  - {{id: asks, ask: {{question: "Use ${{{{ env.DEMO_API_KEY }}}} or {secret}?", header: {title}}}}}
  - {{id: typed, ask: {{question: Which?, type: string, enum: ["{secret}", other]}}}}
  - id: decides
    decide:
      question: {title}
      options: [{{label: "{secret}", description: {title}}}, {{label: Other, value: other, description: {title}}}]
  - {{id: fails, secrets: [{names}], run: 'echo "$SECRET_8" >&2; exit 3', on_failure: ask}}
  - {{id: after, depends_on: [typed], run: "true"}}
"""
LOG_PLAN = """\
version: 1
secrets: [{names}]
steps:
  - {{id: log, exec: [cat, ordinary.log]}}
"""

_DRIVER = "{fault}from planrun.cli import run\nrun()\n"
_REDACTOR = "from planrun.secrets.redactor import EventRedactor as V\n"
FAULTS = {
    "": "",
    "events as they are": f"{_REDACTOR}V.mask_event = lambda self, event: event\n",
    "outputs as they are": f"{_REDACTOR}V._values = lambda self, values: values\n",
    "logs as they are": f"{_REDACTOR}class S:\n    feed = staticmethod(bytes)\n    finish = staticmethod(bytes)\n"
    "V.stream = lambda self: S()\n",
    "plan as it is": f"{_REDACTOR}V.mask_plan = lambda self, plan: plan\n",
    "gates as they are": f"{_REDACTOR}V._mask_gate = lambda self, event: event\n",
    "errors as they are": f"{_REDACTOR}V.mask_error = lambda self, error: None\n",
    "files of outputs kept": "import planrun.actions.prepare as r\nr.forget_outputs = lambda path: None\n",
    "inherited ones unknown": "import planrun.app.secrets as s\ns.holds_credential = lambda name: False\n",
    "base64 in one place": "import base64\nfrom planrun.secrets import encodings as v\n"
    "v.inner_base64s = v.base64s = lambda data: [base64.b64encode(data)]\n",
}
"""Faults to plant, as what is run before planrun starts; the empty name is planrun as it is."""


class Workshop:
    """A workspace with the plan, and ways to run planrun in it; what planrun says is kept."""

    def __init__(self, folder: Path, names: Sequence[str] = NAMES, fault: str = "") -> None:
        self.folder = folder
        self.names = names
        self.fault = FAULTS[fault]
        self.said: list[str] = []  # command lines
        self.wrong: list[Leak] = []
        shutil.copy(HERE / "emit.py", folder / "emit.py")
        self.write(PLAN, names, "Nothing special")

    def write(self, plan: str, names: Sequence[str], title: str) -> None:
        """Write a plan for these secrets."""
        outputs = [f"{name}_{number}: string" for name in names for number in range(len(TEXTS))]
        text = plan.format(
            names=", ".join(names),
            words=", ".join(names),
            outputs=", ".join(outputs),
            python=json.dumps(sys.executable),
            emit="emit.py",
            title=json.dumps(title, ensure_ascii=False),
            secret=SECRETS[8],
        )
        (self.folder / "plan.yml").write_text(text, "utf-8")

    def start(self, *words: str, **environ: str) -> subprocess.Popen[bytes]:
        """Start planrun; both its streams go into files, and are looked at by `leaks`."""
        planrun = [str(Path(sysconfig.get_path("scripts")) / "planrun")]
        command = [sys.executable, "-c", _DRIVER.format(fault=self.fault)] if self.fault else planrun
        number = len(self.said)
        self.said.append(" ".join(words))
        with (self.folder / f"said-{number}").open("wb") as said:
            return subprocess.Popen(
                [*command, *words],
                cwd=self.folder,
                env=_environment() | {"PLANRUN_CACHE_DIR": str(self.folder / "cache")} | environ,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
            )

    def run(self, *words: str, ends: int = 0, **environ: str) -> None:
        """Run planrun to its end; another exit code than `ends` is a finding, since less was tried than meant."""
        code = self.start(*words, **environ).wait(LIMIT)
        if code != ends:
            self.wrong.append(Leak(f"planrun {words[0]}", f"it ended with {code}, not {ends}"))

    def kill_in_the_middle(self) -> None:
        """Start the plan and kill planrun while a step of it waits."""
        (self.folder / "wait").touch()
        planrun = self.start("execute", "plan.yml", "--logs", "all")
        limit = time.monotonic() + LIMIT
        try:
            while not (self.folder / "waits").exists() and time.monotonic() < limit:
                time.sleep(0.02)
        finally:
            planrun.send_signal(signal.SIGKILL)
            planrun.wait()
            (self.folder / "wait").unlink()

    def leaks(self, *, besides: Sequence[str] = ()) -> list[Leak]:
        """Look at records, reports, and all that planrun said."""
        found = [*self.wrong]
        for number, words in enumerate(self.said):
            found += leaks_in(
                f"what planrun said, {words[:20]}", (self.folder / f"said-{number}").read_bytes()
            )
        for name in (".planrun", "planrun-out", "summary.md", "outputs.txt"):
            path = self.folder / name
            if path.is_dir():
                found += leaks_under(path, besides=besides)
            elif path.exists():
                found += leaks_in(name, path.read_bytes())
        return found


def _environment() -> dict[str, str]:
    """Return what planrun is started with: the secrets, and nothing of the CI system that runs this proof."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "TMPDIR")}
    secrets = dict(zip(NAMES, SECRETS, strict=True))
    return {**kept, **secrets, **INHERITED, "LC_ALL": "C.UTF-8", "PYTHONPATH": str(ROOT)}


def _plain_run(shop: Workshop) -> list[Leak]:
    shop.run("execute", "plan.yml", ends=1)
    return shop.leaks()


def _all_logs(shop: Workshop) -> list[Leak]:
    shop.run("execute", "plan.yml", "--json", "--logs", "all", ends=1)
    for verb in ("report", "status", "explain"):
        shop.run(verb, *(["last", "checks"] if verb == "explain" else []))
    shop.run("report", "--format", "markdown")
    return shop.leaks()


def _github(shop: Workshop) -> list[Leak]:
    shop.run(
        "execute",
        "plan.yml",
        ends=1,
        GITHUB_ACTIONS="true",
        CI="true",
        GITHUB_STEP_SUMMARY="summary.md",
        GITHUB_OUTPUT="outputs.txt",
    )
    return shop.leaks()


def _killed(shop: Workshop) -> list[Leak]:
    shop.kill_in_the_middle()
    # What a step wrote into its file of outputs is there until the run is resumed; docs/threat-model.md says so.
    found = shop.leaks(besides=("outputs",))
    shop.run("resume", "last", "--logs", "all", ends=1)
    return found + shop.leaks()


def _told(shop: Workshop) -> list[Leak]:
    """Have the plan itself hold secrets, in texts that are shown: its copy in the records is left out."""
    shop.write(PLAN, shop.names, f"{SECRETS[8]} and {SECRETS[13]}")
    shop.run("execute", "plan.yml", "--logs", "all", "--json", ends=1)
    shop.run("execute", "plan.yml", ends=1, GITHUB_ACTIONS="true", CI="true")
    return shop.leaks(besides=("plan.yml",))


def _gates(shop: Workshop) -> list[Leak]:
    """Have a run wait at gates whose texts hold secrets; look at it, answer with secrets, and go on."""
    shop.write(GATES_PLAN, shop.names, f"{SECRETS[8]} and {SECRETS[13]}")
    # One step is denied, which the exit code shows at once, whatever else waits.
    shop.run("execute", "plan.yml", ends=3)
    shop.run(
        "execute", "plan.yml", ends=3, GITHUB_ACTIONS="true", CI="true", GITHUB_STEP_SUMMARY="summary.md"
    )
    for verb in ("status", "report"):
        shop.run(verb)
    shop.run("status", "--json")
    shop.run("report", "--format", "markdown")
    for step in ("approved", "denied", "asks", "decides", "fails"):
        shop.run("explain", "last", step)
    shop.run("approve", "last", "approved", "asks", "fails", "--by", SECRETS[8], "--reason", SECRETS[13])
    shop.run("decide", "last", "decides=other", "typed=other")
    shop.run("resume", "last", ends=3)
    shop.run("decide", "last", "fails=continue")
    shop.run("resume", "last", ends=3)
    shop.run("explain", "last", "approved")
    shop.run("report", "--format", "json")
    return shop.leaks(besides=("plan.yml",))


def _refused(shop: Workshop) -> list[Leak]:
    """Have secrets in the command line: in parameters, in names of steps, in paths that cannot be written."""
    for secret in [SECRETS[number] for number in (8, 11, 17, 18, 23) if NAMES[number] in shop.names]:
        shop.run("execute", "plan.yml", "--param", f"note={secret}", ends=2)
        shop.run("execute", "plan.yml", "--param", f"count={secret}", ends=2)
        shop.run("execute", "plan.yml", "--only", secret, ends=2)
    (shop.folder / SECRETS[8]).touch()
    shop.run("execute", "plan.yml", "--only", "reads", "--report-dir", f"{SECRETS[8]}/out", ends=74)
    (shop.folder / SECRETS[9]).mkdir()
    shop.run("execute", "plan.yml", "--only", "reads", "--report-dir", SECRETS[9])
    return shop.leaks()


TRIALS: dict[str, Callable[[Workshop], list[Leak]]] = {
    "a run": _plain_run,
    "a run with --json and --logs all, and what tells of it": _all_logs,
    "a run under GitHub": _github,
    "a run that is killed and resumed": _killed,
    "a plan that holds secrets": _told,
    "a run that waits at gates": _gates,
    "secrets in the command line": _refused,
}
CAUGHT_BY = {
    "events as they are": "a run",
    "outputs as they are": "a run",
    "logs as they are": "a run",
    "plan as it is": "a plan that holds secrets",
    "gates as they are": "a run that waits at gates",
    "errors as they are": "secrets in the command line",
    "files of outputs kept": "a run",
    "inherited ones unknown": "a run",
    "base64 in one place": "a run",
}
"""Which trial must find each fault."""


def attempt(trial: str, names: Sequence[str] = NAMES, fault: str = "") -> list[Leak]:
    """Make a trial in a folder of its own and print what it came to."""
    with tempfile.TemporaryDirectory() as folder:
        shop = Workshop(Path(folder), names, fault)
        found = TRIALS[trial](shop)
        size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
        print(
            f"{trial}: {len(shop.said)} times planrun, {size} bytes searched for {len(FORMS)} forms: {len(found)} leaks"
        )
    return found


def false_masks(log: bytes) -> int:
    """Let a step print an ordinary log; return by how many bytes its record differs."""
    with tempfile.TemporaryDirectory() as folder:
        shop = Workshop(Path(folder))
        shop.write(LOG_PLAN, NAMES, "")
        (Path(folder) / "ordinary.log").write_bytes(log)
        shop.run("execute", "plan.yml")
        kept = next(Path(folder).glob(".planrun/runs/*/logs/log/1.log"))
        data = kept.read_bytes()
        wrong = abs(len(data) - len(log)) + sum(a != b for a, b in zip(data, log, strict=False)) * (
            data != log
        )
    print(f"{len(log)} bytes of ordinary log by a step: {wrong} bytes differ")
    return wrong + len(shop.wrong)


def main(words: Sequence[str]) -> int:
    """Run the proof; 1 when there is a leak or a false mask, or a fault was not caught."""
    parser = argparse.ArgumentParser(prog="python -m proofs surfaces", description=__doc__)
    parser.add_argument("--fault", choices=list(CAUGHT_BY), default="", help="plant one")
    chosen = parser.parse_args(words)
    print(f"{len(SECRETS)} secrets x {len(ENCODINGS)} encodings")
    found = [leak for trial in TRIALS for leak in attempt(trial, fault=chosen.fault)]
    for leak in dict.fromkeys(map(str, found[:40])):
        print(leak)
    wrong = false_masks(ordinary_log())
    missed = []
    for fault, trial in CAUGHT_BY.items() if not chosen.fault else ():
        print(f"planted fault: {fault}")
        if not attempt(trial, fault=fault):
            missed.append(fault)
    for fault in missed:
        print(f"NOT CAUGHT: {fault}")
    return int(bool(found or wrong or missed))
