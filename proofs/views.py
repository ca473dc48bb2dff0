r"""Proof that no view of a run shows a secret that a step prints with hidden bytes inside, in pieces of any size.

A step prints its secret in drawn lines: control sequences, control characters and characters that nobody sees between
the letters, each byte written by itself or in drawn pieces. One run at GitHub and one at GitLab per batch; then all
that planrun wrote, printed, served and sent is looked at as a terminal shows it (pyte), as a browser shows it, and by
a table of unseen characters that is not planrun's. The planted fault masks bytes as they are: each view must show it.
"""

from __future__ import annotations

import argparse
import html
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING

import pyte

from tests.notify.receiver import Receiver
from tests.serve.client import Serving

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).parent.parent
SECRET = "horsebattery-staple91"
HIDDEN = (
    *(
        b"\x1b[m\x1b[K",
        b"\x1b[01;31m",
        b"\x1b[38;5;9m",
        b"\x1b[?25l",
        b"\x1b[3\x001m",
        b"\x9b31m",
        "\x9b31m".encode(),
    ),
    *(b"\x1b]0;t\x07", b"\x1b]8;;http://x.example\x1b\\", b"\x1b]0;t\x9c", "\x9d0;t\x9c".encode()),
    *(
        b"\x1bPq#0\x1b\\",
        b"\x1bXa\x1b\\",
        b"\x1b^a\x1b\\",
        b"\x1b_a\x1b\\",
        b"\x90t\x9c",
        "\x98t\x9c".encode(),
    ),
    *(
        b"\x1b(B",
        b"\x1b7",
        b"\x1b=",
        b"\0",
        b"\a",
        b"\x7f",
        b"\x0e\x0f",
        b"X\b",
        "\x85".encode(),
        "\x80".encode(),
    ),
    *[
        char.encode()
        for char in "\u200b\u200d\u2060\ufeff\u00ad\u3164\u2800\u115f\uffa0\u034f\ufffc\u061c\u202e\u2066"
    ],
    *[char.encode() for char in "\ufe0f\u180b\u17b4\U000e0101\U000e0041\U0001d173\ufff9"],
)
"""What is neither seen in a terminal nor in a browser; the bytes of characters that are seen are not in it."""
EMIT = """\
import json, os, sys
value = os.environ["PASSWORD"].encode()
for out, pieces in json.load(open("lines.json")):
    for piece in pieces:
        os.write(out, b"".join(value[at:at + 1] if isinstance(at, int) else bytes.fromhex(at) for at in piece))
sys.exit(int(sys.argv[1]))
"""
PLAN = """\
version: 1
name: views
secrets: [PASSWORD]
notify: [{{webhook: "{hook}"}}]
steps:
  - {{id: printing, secrets: [PASSWORD], exec: [{python}, emit.py, "0"]}}
  - id: telling
    secrets: [PASSWORD]
    outputs: {{told: string}}
    run: 'printf "told=%.5s\\342\\200\\213%s\\n" "$PASSWORD" "${{PASSWORD#?????}}" >> "$PLANRUN_OUTPUT"'
  - {{id: failing, secrets: [PASSWORD], depends_on: {{printing: done, telling: done}}, exec: [{python}, emit.py, "3"]}}
"""
VERBS = (
    *(("logs",), ("logs", "--json"), ("status",), ("status", "--json"), ("runs",)),
    *(("explain", "last", "failing"), ("trace", "last")),
    *(("report", "last", "--format", form) for form in ("text", "markdown", "html", "junit", "json")),
)
FAULT = """\
import planrun.model.hidden as h, planrun.secrets.masker as m
m.readings = lambda text: [h.Reading(text, text)]
"""
_DRIVER = "{fault}from planrun.cli import run\nrun()\n"
_TAGS = re.compile(r"<(?:style|script)\b.*?</(?:style|script)>|<[^<>]*>", re.DOTALL)
_SEQUENCE = re.compile(
    "\x1b\\[[^@-~\n\r\x18\x1a\x1b]*[@-~]|\x9b[^@-~\n\r\x18\x1a\x1b]*[@-~]"
    "|(?:\x1b[]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x18\x1a\x1b\x9c\n\r]*(?:\x07|\x1b\\\\|\x9c)|\x1b[ -/]*[0-OQ-WYZ`-~]"
)
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufffc\ufffd")


def lines(chance: random.Random, number: int) -> list[tuple[int, list[list[int | str]]]]:
    """Draw lines: the stream that each goes to, and its pieces of positions in the secret and hidden bytes."""
    drawn = []
    for _ in range(number):
        atoms: list[int | str] = [b"line: ".hex()]
        kinds = chance.sample(HIDDEN, chance.choice((1, 1, 3)))
        few = chance.sample(range(len(SECRET) - 1), chance.choice((1, 2, 20)))
        for at in range(len(SECRET)):
            atoms.append(at)
            if at in few:
                atoms += [f"{byte:02x}" for byte in chance.choice(kinds)]
        atoms.append(b" end\n".hex())
        size = chance.choice((1, 2, 7, 1000))
        drawn.append((chance.choice((1, 2)), [atoms[at : at + size] for at in range(0, len(atoms), size)]))
    return drawn


def texts(data: bytes) -> Iterator[str]:
    """Yield a view as it is, as JSON texts, and as a browser shows it."""
    text = data.decode("utf-8", "replace")
    yield text
    yield re.sub(r"\\u[0-9a-f]{4}|\\[nrtbf\"\\/]", lambda found: str(json.loads(f'"{found[0]}"')), text)
    if "<" in text:
        yield html.unescape(_TAGS.sub("", text))


def shown(text: str) -> Iterator[str]:
    """Yield a text as an eye sees it, in a viewer that drops what it does not know, and in a terminal."""
    for seen in (text, _SEQUENCE.sub("", text)):
        yield "".join([char for char in seen if char == "\n" or _is_seen(char)])
    screen = pyte.Screen(2000, 3)
    stream = pyte.Stream(screen)
    for line in text.split("\n"):
        if len(line) < 2000 and not _CONTROL.isdisjoint(line):
            screen.reset()
            stream.feed(line)
            cells = [cell.data for row in screen.buffer.values() for _, cell in sorted(row.items())]
            yield "".join([char for char in "".join(cells) if _is_seen(char)])


_CONTROL = frozenset(map(chr, (*range(0x20), *range(0x7F, 0xA0)))) - {"\t", "\n"}


def _is_seen(char: str) -> bool:
    return char not in _BLANK and unicodedata.category(char) not in ("Cc", "Cf", "Mn", "Cs")


def shows(data: bytes) -> bool:
    """Whether an eye can read the secret in a view."""
    return any(SECRET in seen for text in texts(data) for seen in shown(text))


def views(folder: Path, fault: str = "") -> dict[str, bytes]:
    """Run the plan in `folder`, which has its lines; return all that planrun wrote, printed, served and sent."""
    found: dict[str, bytes] = {}
    base = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
    base |= {
        "HOME": str(folder),
        "LC_ALL": "C.UTF-8",
        "PYTHONPATH": str(ROOT),
        "PLANRUN_CACHE_DIR": str(folder / "c"),
    }

    def planrun(name: str, *words: str, **more: str) -> None:
        done = subprocess.run(
            [sys.executable, "-c", _DRIVER.format(fault=fault), *words],
            cwd=folder, env=base | more, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=120,
        )  # fmt: skip
        if b"Traceback" in done.stderr or done.returncode not in (0, 1):
            raise RuntimeError(f"planrun {words}: {done.returncode}, {done.stderr.decode()[-2000:]}")
        found[name] = done.stdout + done.stderr

    with Receiver() as hooks, Receiver() as traces:
        (folder / "plan.yml").write_text(PLAN.format(hook=hooks.url(), python=json.dumps(sys.executable)))
        (folder / "emit.py").write_text(EMIT)
        run = ("execute", "plan.yml", "--logs", "all", "--html")
        ci = {"CI": "true", "PASSWORD": SECRET}
        planrun("GitLab", *run, "--otel", GITLAB_CI="true", OTEL_EXPORTER_OTLP_ENDPOINT=traces.url(""), **ci)
        github = {
            "GITHUB_ACTIONS": "true",
            "GITHUB_STEP_SUMMARY": "summary.md",
            "GITHUB_OUTPUT": "outputs.txt",
        }
        planrun("GitHub", *run, "--events", "events.jsonl", **github, **ci)
        hooks.came.wait(20)
        found["notifications"] = b"\n".join(got.body for got in hooks.got)
        found["--otel"] = b"\n".join(got.body for got in traces.got)
    for words in VERBS:
        planrun(" ".join(words), *words)
    with Serving(folder, variables=base) as server:
        name = max(path.name for path in (folder / ".planrun/runs").iterdir() if path.name[:1].isdigit())
        pages = ["/", f"/runs/{name}"]
        for page in pages:
            found[f"serve {page.replace(name, 'RUN')}"] = data = server.get(page).data
            links = re.findall(r'href="(/[^"#]*)"', data.decode("utf-8", "replace"))
            pages += [link for link in map(html.unescape, links) if name in link and link not in pages]
    for path in folder.rglob("*"):
        if path.is_file() and path.name not in ("plan.yml", "emit.py", "lines.json"):
            found[f"file {path.relative_to(folder)}"] = path.read_bytes()
    return found


def leaking(chance: random.Random, number: int, fault: str = "") -> tuple[list[str], list[str]]:
    """Make a batch; return the views in which the secret can be read, and all that are not empty."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "lines.json").write_text(json.dumps(lines(chance, number)))
        found = views(folder, fault)
    return [name for name, data in found.items() if shows(data)], [
        name for name, data in found.items() if data
    ]


def main(words: Sequence[str]) -> int:
    """Run the proof; 1 when a view shows the secret or the fault was not caught."""
    parser = argparse.ArgumentParser(prog="python -m proofs views", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batches", type=int, default=10)
    parser.add_argument("--lines", type=int, default=200, help="in each batch")
    chosen = parser.parse_args(words)
    bad = 0
    for batch in range(chosen.batches):
        leaks, every = leaking(random.Random(f"{chosen.seed} {batch}"), chosen.lines)
        print(
            f"seed {chosen.seed}, batch {batch}: {chosen.lines} lines, {len(every)} views: {leaks or 'no leaks'}"
        )
        bad += len(leaks)
    caught = leaking(random.Random(chosen.seed), 20, FAULT)[0]
    print(f"planted fault, bytes masked as they are: {len(caught)} views show the secret")
    return int(bool(bad or not caught))
