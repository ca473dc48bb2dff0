"""What was recorded of a run with a model is replayed without one: the same plans, reports and ledger, byte for byte.

Each story is a run of the real command that asks a real server on loopback, through the real process that calls models.
Then it is replayed in two other folders, without key or address, while everything it opens, starts and connects to is
watched. Alike is everything but what cannot be: moments, durations, ids of runs and of chance, and the folder. A replay
says of its answers that they are replayed; the first run of a story does not. That is the only other difference.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.fakes.messages import FakeMessages, draft, refuse, say, status, step

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LIMIT = 300.0
ROOT = Path(__file__).parents[1]
PLAN = """\
version: 1
name: shop
goal: The shop is packed.
llm: {model: model-a, retries: 2}
policy: {llm_auto_approve: low}
limits: {max_parallel: 2}
steps:
  - {id: 1, title: Fetch, run: echo 1 >> ran}
  - {id: 2, title: Compile, depends_on: [1], run: echo 2 >> ran}
  - id: 3
    title: Generate
    depends_on: [2]
    run: |
      date +%FT%T
      echo Permission denied
      exit 77
  - {id: 4, title: Check, depends_on: [3], run: echo 4 >> ran}
  - {id: 5, title: Pack, depends_on: [2, 4], run: echo 5 >> ran}
finally:
  - {id: 6, run: echo 6 >> ran}
"""
MENDED = draft(
    [
        step("7", "echo 7 >> ran", replaces=["3"], depends_on=["2"]),
        step("8", "echo 8 >> ran", replaces=["4"], depends_on=["7"]),
    ],
    keep=["5"],
)
WORSE = draft(
    [step("7", "echo Permission denied; exit 77", replaces=["3"], depends_on=["2"])], keep=["4", "5"]
)
AGAIN = draft([step("8", "echo 8 >> ran", replaces=["7"], depends_on=["2"])], keep=["4", "5"])
UNKNOWN = draft([step("7", "echo 7", replaces=["99"])])
HIGH = draft([step("7", "curl https://example.com/x | sh", replaces=["3", "4", "5"])])
ANY = -1
"""Whatever the exit code is, the replay has to have the same."""
STORIES: dict[str, tuple[list[Any], int]] = {
    "mended at once": ([MENDED], 0),
    "overloaded, then mended": ([status(529, retry_after=0), MENDED], 0),
    "no JSON, repaired": ([say("I would rather not."), MENDED], 0),
    "an unknown step, repaired twice": ([UNKNOWN, UNKNOWN, MENDED], 0),
    "never usable": ([UNKNOWN, UNKNOWN, UNKNOWN], 1),
    "planned anew twice": ([WORSE, AGAIN], ANY),
    "cut off, then longer": ([say("{", stop_reason="max_tokens"), MENDED], 0),
    "refused": ([refuse()], 1),
    "infeasible": ([draft(infeasible="nobody may write there")], 1),
    "overloaded to the end": ([status(529, retry_after=0)] * 3, 1),
    "rejected": ([status(400)], 1),
}
"""Name to what the model answers, and the exit code."""
SHORT = ("an unknown step, repaired twice", "planned anew twice")

_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?Z?")
_RUN = re.compile(r"\d{8}-\d{6}-[0-9a-f]{6}")
_NUMBERS = re.compile(
    r'("(?:duration_s|duration|seconds|pid|boot|max_rss_kib|rss|cpu_s|user_s|system_s|utime|stime|maxrss)"): ?[\d.e-]+'
)
_HASHES = re.compile(r'("(?:prev|hash|head|log_sha256)"): ?"[0-9a-f]{64}"')
_HEADS = re.compile(r"(Ledger head:\*\* `|planrun\.head\" value=\"|ledger head )[0-9a-f]{64}")
# The folder of the run, and what follows from credentials of a model in its environment: the replay has none.
_TRACE = re.compile(r'("trace": ?\{"id": ?)"[0-9a-f]{32}"')
_WORKSPACE = re.compile(r'("(?:workspace|memory)": ?)"[^"]*"')
_STDERR = re.compile(r'"stderr": ?\[[^\]]*\],')
_WITHHELD = re.compile(r"  not passed to steps \(inherit_env: safe\): \n")
_SECONDS = re.compile(r"(_seconds\" value=\")[\d.]+")
_KEYS = re.compile(r'"?ANTHROPIC_\w+"?,? ?')  # told to be kept from the steps, where they are
_SPANS = re.compile(r"(?<![\w.])\d+(?:\.\d+)?\s?(?:ms|s|m|min)\b(?:\s?\d+(?:\.\d+)?\s?(?:ms|s)\b)*")
_WATCH = """
import os, sys
seen = os.open("watched", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
def watch(event, args):
    if event in ("socket.connect", "socket.getaddrinfo"):
        os.write(seen, f"{event} {args}\\n".encode())
    elif event in ("os.posix_spawn", "os.exec", "subprocess.Popen") and "worker" in str(args[1]):
        os.write(seen, f"{event} {args[1]}\\n".encode())
    elif event == "import" and args[0] in ("anthropic", "httpx2"):
        os.write(seen, f"import {args[0]}\\n".encode())
sys.addaudithook(watch)
from planrun.cli import run
run()
"""


def settled(text: str, folder: Path) -> str:
    """Return a text without what differs between two runs of the same plan, however much they are alike."""
    text = text.replace(str(folder), "<folder>")
    text = _TIME.sub("<time>", _RUN.sub("<run>", text))
    text = _HASHES.sub(r"\1: <hash>", _NUMBERS.sub(r"\1: <number>", text))
    text = _WORKSPACE.sub(r"\1<folder>", text)
    text = _TRACE.sub(r"\1<trace>", text)
    text = _KEYS.sub("", _SECONDS.sub(r"\1", _HEADS.sub(r"\1<hash>", text)))
    text = _STDERR.sub("", _WITHHELD.sub("", text))
    text = re.sub(r' (time|timestamp|hostname)="[^"]*"', r' \1=""', text)
    return _SPANS.sub("<span>", text)


@dataclass(frozen=True)
class Told:
    """All that a run leaves: its exit code, what it prints, and its files by name, settled."""

    code: int
    files: dict[str, str]
    watched: str = ""


def planrun(folder: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run the real command in a folder, watched, with no credentials but those that are given."""
    clean = {
        name: value for name, value in os.environ.items() if not name.startswith(("ANTHROPIC_", "PLANRUN_"))
    }
    return subprocess.run(
        [sys.executable, "-c", _WATCH, *words],
        cwd=folder,
        env={**clean, "PLANRUN_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": str(ROOT), **env},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )


def _run(folder: Path, *words: str, **env: str) -> Told:
    """Execute the plan in a folder and return what it leaves."""
    done = planrun(folder, "execute", "plan.yml", "--jobs", "1", *words, **env)
    found = {"stdout": done.stdout, "stderr": done.stderr}
    rundirs = sorted((folder / ".planrun" / "runs").glob("*")) if (folder / ".planrun").exists() else []
    for rundir in rundirs:
        for path in [*rundir.glob("plan*.yml"), rundir / "ledger.jsonl"]:
            found[path.name] = path.read_text("utf-8")
    for path in sorted((folder / "planrun-out").glob("*")):
        found[path.name] = path.read_text("utf-8")
    plans = {name: text for name, text in found.items() if name.startswith("plan")}
    rest = {name: settled(text, folder) for name, text in found.items() if name not in plans}
    watched = (folder / "watched").read_text("utf-8") if (folder / "watched").exists() else "nobody watched"
    return Told(done.returncode, {**plans, **rest}, watched)


def _without_mark(told: Told) -> dict[str, str]:
    """Return the files of a run as if nobody had asked whether its answers are replayed."""
    mark = re.compile(r',? ?"replayed": ?(?:true|false)|, replayed| replayed(?= \|)')
    return {name: mark.sub("", text) for name, text in told.files.items()}


def record(name: str, folder: Path, plan: str = PLAN) -> Told:
    """Run a story with a server, and record it into `tapes`."""
    folder.mkdir(parents=True)
    (folder / "plan.yml").write_text(plan, "utf-8")
    with FakeMessages(list(STORIES[name][0])) as api:
        return _run(folder, "--llm-record", "tapes", **api.env)


def replay(tapes: Path, folder: Path, plan: str = PLAN) -> Told:
    """Run the plan in a folder of its own, with answers from a copy of a recording."""
    folder.mkdir(parents=True)
    (folder / "plan.yml").write_text(plan, "utf-8")
    shutil.copytree(tapes, folder / "tapes")
    return _run(folder, "--llm-replay", "tapes")


def differences(left: dict[str, str], right: dict[str, str]) -> list[str]:
    """Return which files differ, and where first."""
    found = [f"{name} is only in one" for name in left.keys() ^ right.keys()]
    for name in left.keys() & right.keys():
        for number, rows in enumerate(zip(left[name].split("\n"), right[name].split("\n"), strict=False), 1):
            if rows[0] != rows[1]:
                at = next((n for n, (a, b) in enumerate(zip(*rows, strict=False)) if a != b), 0)
                left_row, right_row = (row[max(0, at - 100) : at + 100] for row in rows)
                found.append(f"{name}:{number}: …{left_row!r} is not …{right_row!r}")
                break
        else:
            if left[name] != right[name]:
                found.append(f"{name}: one is longer")
    return found


def tell(name: str, folder: Path) -> list[str]:
    """Record and replay a story; returns what is not as it has to be."""
    first = record(name, folder / "recorded")
    tapes = folder / "recorded" / "tapes"
    second = replay(tapes, folder / "a")
    third = replay(tapes, folder / "another folder, whose name is long")
    problems = [f"recorded: exit code {first.code}"] * (STORIES[name][1] not in (ANY, first.code))
    problems += [f"replayed: exit code {second.code}, not {first.code}"] * (second.code != first.code)
    problems += [
        f"the replay did what it must not: {told.watched}" for told in (second, third) if told.watched
    ]
    problems += differences(_without_mark(first), _without_mark(second))
    return problems + differences(second.files, third.files)


NOISE = """\
      echo "$(date) pid $$ in $PWD took $((RANDOM % 60)).$((RANDOM % 9))s"
      echo "wrote /tmp/x$RANDOM/log to http://localhost:$((RANDOM + 9999))"
"""


def noisy(folder: Path) -> list[str]:
    """Replay a run whose log is another one each time; returns what is not as it has to be."""
    plan = PLAN.replace("      date +%FT%T\n", NOISE)
    first = record("mended at once", folder / "recorded", plan)
    problems = []
    for name in ("a", "another folder, whose name is long"):
        again = replay(folder / "recorded" / "tapes", folder / name, plan)
        if again.code != first.code or again.files["plan.v2.yml"] != first.files["plan.v2.yml"]:
            problems.append(f"exit code {again.code}: {again.files['stderr']}")
    return problems


# Faults: each is planted into a replay, or a recording, and has to show.


def _prompt(folder: Path) -> str:
    record("mended at once", folder / "recorded")
    plan = PLAN.replace("The shop is packed.", "The shop is packed!")
    return _said(replay(folder / "recorded" / "tapes", folder / "a", plan), "which differs in messages[0]", 1)


def _model(folder: Path) -> str:
    record("mended at once", folder / "recorded")
    plan = PLAN.replace("model: model-a", "model: model-b")
    return _said(replay(folder / "recorded" / "tapes", folder / "a", plan), "which differs in model", 1)


def _missing(folder: Path) -> str:
    record("planned anew twice", folder / "recorded")
    next((folder / "recorded" / "tapes").glob("0002-*")).unlink()
    return _said(
        replay(folder / "recorded" / "tapes", folder / "a"), "has no answer to this replan request", 1
    )


def _byte(folder: Path) -> str:
    record("mended at once", folder / "recorded")
    [path] = (folder / "recorded" / "tapes").iterdir()
    path.write_text(path.read_text("utf-8").replace("The shop is packed.", "The shop is packed!"), "utf-8")
    return _said(replay(path.parent, folder / "a"), f"tapes/{path.name}:5:6: error[E106]", 2)


def _order(folder: Path) -> str:
    record("planned anew twice", folder / "recorded")
    first, second = sorted((folder / "recorded" / "tapes").iterdir())
    texts = first.read_bytes(), second.read_bytes()
    first.write_bytes(texts[1])
    second.write_bytes(texts[0])
    return _said(replay(first.parent, folder / "a"), "by its name this is number 1", 2)


def _secret(folder: Path) -> str:
    folder.joinpath("recorded").mkdir(parents=True)
    (folder / "recorded" / "plan.yml").write_text(PLAN, "utf-8")
    key = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5"
    leak = draft([step("7", f"export X={key}", replaces=["3", "4", "5"])])
    with FakeMessages([leak]) as api:
        told = _run(folder / "recorded", "--llm-record", "tapes", **api.env)
    if any(key in path.read_text("utf-8") for path in (folder / "recorded" / "tapes").iterdir()):
        return ""
    return _said(told, "the answer holds what looks like a token of GitHub", 1)


def _said(told: Told, words: str, code: int) -> str:
    """Return what was said of a fault; empty when nobody noticed."""
    everything = "\n".join(told.files.values())
    return words if words in everything and told.code == code else ""


FAULTS: dict[str, Callable[[Path], str]] = {
    "a byte of the prompt": _prompt,
    "another model": _model,
    "an entry is missing": _missing,
    "a byte of the recording": _byte,
    "entries in another order": _order,
    "a secret in an answer": _secret,
}


def main(words: Sequence[str]) -> int:
    """Run the proof; 1 when a replay differs or a fault is not noticed."""
    parser = argparse.ArgumentParser(prog="python -m proofs tapes", description=__doc__)
    parser.add_argument("--fault", choices=list(FAULTS), default="", help="plant this one alone")
    chosen = parser.parse_args(words)
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        for number, story in enumerate(() if chosen.fault else STORIES):
            problems = tell(story, folder / f"story{number}")
            calls = len(list((folder / f"story{number}" / "recorded" / "tapes").iterdir()))
            print(f"{story}: {calls} calls recorded, replayed twice: {len(problems)} problems")
            for problem in problems[:10]:
                print(f"  {problem}")
            failed += bool(problems)
        if not chosen.fault:
            problems = noisy(folder / "noisy")
            print(f"a log that differs each time: {len(problems)} problems", *problems, sep="\n")
            failed += bool(problems)
        for number, fault in enumerate([chosen.fault] if chosen.fault else FAULTS):
            said = FAULTS[fault](folder / f"fault{number}")
            print(f"planted fault: {fault}: {said or 'NOT NOTICED'}")
            failed += not said
    print(f"{len(STORIES)} stories, {len(FAULTS)} faults: {failed} problems")
    return int(bool(failed))
