"""Hostile values through every place that takes one: each arrives byte for byte or is refused, and none is code.

Real runs of real shells and programs. Each value tries to create a canary; each planted fault lets one sing, or
changes a word on its way.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proofs.hostilevalues import CANARY, LARGEST, SING, hostile_values
from proofs.places import NAMES, PLACES, SHOW_FILE, Place, plan_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).parents[1]
LIMIT = 600
BARE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/@:+=,-")
"""What an interpolation without `| sh` may consist of, as the documents have it."""
FAULTS = {
    "": "",
    "nothing is quoted": "from planrun.expressions import render as r\nr.quoted = str\n",
    "double quotes": "from planrun.expressions import render as r\n"
    "r.quoted = lambda t: '\"' + t.replace('\"', '\\\\\"') + '\"'\n",
    "quotes forgotten inside": 'from planrun.expressions import render as r\nr.quoted = lambda t: "\'" + t + "\'"\n',
    "anything goes bare": "from planrun.expressions import render as r\n"
    "r._SAFE = type('All', (), {'issuperset': lambda self, _text: True})()\n",
    "values are looked at twice": "from planrun.expressions import render as r\n_joined = r._joined\n"
    "r._joined = lambda parts, scope, write: _joined(parts, scope, write).replace('${x}', scope['params']['json'])\n",
    "outputs lose their blanks": "from planrun.actions import outputs as o\n_parse = o.parse_outputs\n"
    "o.parse_outputs = lambda text: {k: v.strip() for k, v in _parse(text).items()}\n",
    "a NUL ends a word": "from planrun.actions import command as c, render as s\n"
    "s.render_word = c.render_word = lambda value, scope: value if isinstance(value, str) else "
    "__import__('planrun.expressions.render', fromlist=['x']).render_text(value, scope).partition('\\0')[0]\n",
}
"""Faults to plant, as what is run before planrun starts; the empty name is planrun as it is."""
_DRIVER = "{fault}from planrun.cli import run\nrun()\n"


def wrong_with(value: str, fault: str = "") -> list[str]:
    """Run a plan with a value in every place; return where it did not arrive as it was, or sang."""
    with tempfile.TemporaryDirectory(prefix="values-") as name:
        folder = Path(name)
        (folder / "shown").mkdir()
        (folder / "show").write_text(SHOW_FILE)
        (folder / "plan.yml").write_text(plan_text(), "utf-8")
        done = _execute(folder, value, fault)
        if any(CANARY in path.name for path in folder.rglob(f"*{CANARY}*") if "shown" not in path.parts):
            return [f"{value[:60]!r}: the canary sings"]
        ledger = folder / "planrun-out" / "ledger.json"
        said = (done.stdout + done.stderr).decode("utf-8", "backslashreplace")
        if not ledger.exists():
            return [f"{value[:60]!r}: exit {done.returncode}: {said[-200:]}"]
        steps = {step["id"]: step for step in json.loads(ledger.read_bytes())["steps"]}
        return [f"{value[:60]!r}: {problem}" for problem in _wrong(folder, value, steps)]


def _execute(folder: Path, value: str, fault: str) -> subprocess.CompletedProcess[bytes]:
    # An argument of the command line ends at a NUL: such a value comes as JSON alone.
    given = value.replace("\0", "0")
    several = [given, "a", given] if len(given) <= LARGEST else ["too", "long", "twice"]
    words = [f"x={given}", f"json={_json(value)}", f"list={_json(several)}"]
    if "\n" in value or value.endswith("\r") or len(value) > LARGEST:
        options = [word for each in words for word in ("--param", each)]
        variables: dict[str, str] = {}
    else:
        options, variables = [], {"PLANRUN_PARAM": "\n".join(words)}
    kept = {"PATH": os.environ["PATH"], "HOME": str(folder), "PLANRUN_CACHE_DIR": str(folder / "cache")}
    return subprocess.run(
        [sys.executable, "-c", _DRIVER.format(fault=FAULTS[fault]), "execute", "plan.yml", *options],
        cwd=folder,
        env=kept | {"PYTHONPATH": str(ROOT)} | variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=LIMIT,
        check=False,
    )


def _json(value: object) -> str:
    """Write JSON in as few bytes as an argument may have; what is no text needs to be escaped."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace").decode()


def _wrong(folder: Path, value: str, steps: dict[str, Any]) -> Iterator[str]:
    for place in (*PLACES, Place("at_last", "")):
        if place.name == "list" and len(value) > LARGEST:
            continue
        step = steps[place.name]
        came = (folder / "shown" / place.name).read_bytes() if step["status"] == "completed" else None
        given = value if place.json else value.replace("\0", "0")
        problem = _wrong_in(place, os.fsencode(given) if _is_bytes(given) else given.encode(), step, came)
        if problem:
            yield f"{place.name}: {problem}"
    for name in NAMES:
        if steps[name]["status"] not in ("failed", "completed", "blocked"):
            yield f"{name}: {steps[name]['status']}"


def _is_bytes(value: str) -> bool:
    return any("\udc80" <= char <= "\udcff" for char in value)


def _wrong_in(place: Place, value: bytes, step: dict[str, Any], came: bytes | None) -> str:
    """Return what is wrong with what came of a value in a place; None came when the step did not run."""
    if came is None:
        reason = f"{step['status']}({step['reason']})"
        return "" if _may_refuse(place, value, reason) else reason
    if place.bare and not BARE.issuperset(value):
        return f"accepted, and became {came[:60]!r}"
    expected = [word.encode().replace(b"@", value) for word in place.words]
    if place.bare and not value:  # nothing, and so no word
        expected = [word for word in expected if word]
    wanted = b"".join([word + b"\0" for word in expected])
    return "" if came == wanted else f"became {came[:80]!r}"


def _may_refuse(place: Place, value: bytes, reason: str) -> bool:
    if reason == "failed(refused)":
        return (place.bare and not BARE.issuperset(value)) or (
            # JSON has no bytes that are no text, and arguments have no NUL
            place.json and (b"\0" in value or not _is_utf8(value))
        )
    if reason in ("failed(spawn)", "failed(outputs)", "blocked(upstream)") and len(value) > LARGEST:
        return True  # longer than the system takes, which is an error and no other word
    return reason == "blocked(upstream)" and place.text and not _is_utf8(value)


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def prove(values: Sequence[str], fault: str = "", *, enough: int = 20) -> list[str]:
    """Try values, some at once, until there are enough problems; return them."""
    found: list[str] = []
    with ThreadPoolExecutor(2) as pool:
        for at in range(0, len(values), 8):
            for problems in pool.map(lambda value: wrong_with(value, fault), values[at : at + 8]):
                found += problems
            if len(found) >= enough:
                break
    return found


CAUGHT_BY = {
    "nothing is quoted": f"$({SING})",
    "double quotes": f"$({SING})",
    "quotes forgotten inside": f"'; {SING}; '",
    "anything goes bare": f"$({SING})",
    "values are looked at twice": "${x}",
    "outputs lose their blanks": "\n\na\n\n",
    "a NUL ends a word": "a\0b",
}
"""The value that shows each fault."""


def is_caught(fault: str) -> bool:
    """Plant a fault; return whether the value that shows it is found."""
    found = wrong_with(CAUGHT_BY[fault], fault)
    print(f"planted fault: {fault}: {found[0][:150] if found else 'NOT CAUGHT'}")
    return bool(found)


def main(words: Sequence[str]) -> int:
    """Run the proof; 1 when a value changed, was taken for code or wrongly refused, or a fault was not caught."""
    parser = argparse.ArgumentParser(prog="python -m proofs values", description=__doc__)
    parser.add_argument("--values", type=int, default=400)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--fault", choices=[name for name in FAULTS if name], default="", help="plant one")
    chosen = parser.parse_args(words)
    if chosen.fault:
        return int(is_caught(chosen.fault))
    values = hostile_values(chosen.values, chosen.seed)
    print(f"{len(values)} values in {len(PLACES) + len(NAMES) + 1} places, seed {chosen.seed}")
    found = prove(values)
    print(*found[:20], f"{len(found)} problems", sep="\n")
    missed = [fault for fault in FAULTS if fault and not is_caught(fault)]
    return int(bool(found or missed))
