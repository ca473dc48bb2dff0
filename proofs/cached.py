"""Whatever happens to a store or to those who use it, a run with a cache ends as one without: same files, same outputs.

Each trial takes one of a few contents of the sources, and then does harm: kills a run at some moment, while it looks
up, keeps, or puts back; has two runs use one store at the same time; or changes what lies in the store: bytes flipped,
cut, exchanged, rights taken away, links and folders in the place of files; or in the workspace. Then the plan is run
once more. What has to be there afterwards is worked out here, without planrun.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LIMIT = 300.0
ROOT = Path(__file__).parents[1]
FILES = 12
CONTENTS = ("red", "green", "blue")
PLAN = f"""version: 1
steps:
  - id: make
    run: |
      mkdir -p out/deep
      for n in $(seq {FILES}); do {{ cat src/text; echo $n; }} > out/deep/$n; done
      chmod +x out/deep/1
      ln -sf deep/1 out/link
      echo "word=$(cat src/text)" >> "$PLANRUN_OUTPUT"
    outputs: {{word: string}}
    inputs: src
    produces: out
    cache: true
  - id: total
    depends_on: [make]
    exec: [sh, -c, 'cat out/deep/* > total; printf %s "$1" >> total', sh, "${{{{ steps.make.outputs.word }}}}"]
    produces: total
    cache: true
"""
# What is done to planrun itself, for a proof that is to find it.
FAULTS = {
    "bytes are not checked": (
        "import planrun.store.entries as e, os\n"
        "def fetch(self, digest, target, size):\n"
        "    try: fd = os.open(self._path(e.BLOBS, digest), os.O_RDONLY)\n"
        "    except OSError: return False\n"
        "    e.copy(fd, target); return True\n"
        "e.Store.fetch = fetch\n"
    ),
    "files in the workspace are not looked at": (
        "import planrun.app.caching as c\nc._is_there = lambda seen, kept: seen is not None\n"
    ),
    "inputs are not in the key": (
        "import planrun.app.caching as c, planrun.actions.keys as k\n"
        "own = k.key_parts\n"
        "c.key_parts = lambda *a: [p for p in own(*a) if not p[0].startswith('input')]\n"
    ),
}


class Trial:
    """One workspace with a store of its own, and one that it shares."""

    def __init__(self, folder: Path, chance: random.Random, fault: str = "") -> None:
        self.folder = folder
        self.chance = chance
        self.fault = fault
        self.text = ""
        for name in ("a", "b"):
            (folder / name / "src").mkdir(parents=True)
            (folder / name / "plan.yml").write_text(PLAN, encoding="utf-8")
        self.write()

    def write(self) -> None:
        """Give the sources one of their contents."""
        self.text = self.chance.choice(CONTENTS)
        for name in ("a", "b"):
            (self.folder / name / "src" / "text").write_text(f"{self.text}\n", encoding="utf-8")

    def start(self, name: str = "a") -> subprocess.Popen[bytes]:
        """Start a run in a workspace."""
        prelude = FAULTS[self.fault] if self.fault else ""
        code = f"{prelude}\nimport sys\nfrom planrun.cli import main\nsys.exit(main())"
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "PLANRUN_CACHE_DIR": str(self.folder / f"cache-{name}"),
            "PLANRUN_CACHE_STORE": str(self.folder / "shared"),
            "PYTHONPATH": str(ROOT),
        }
        command = [sys.executable, "-c", code, "execute", "plan.yml", "--quiet"]
        return subprocess.Popen(
            command, cwd=self.folder / name, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )

    def run(self, name: str = "a") -> str:
        """Run the plan to its end and say what is wrong afterwards; "" when nothing is."""
        process = self.start(name)
        _, told = process.communicate(timeout=LIMIT)
        if process.returncode:
            return f"exit code {process.returncode}: {told.decode()[-500:]}"
        return self.wrong(name)

    def wrong(self, name: str) -> str:
        """Say what is not as it has to be in a workspace."""
        out = self.folder / name / "out"
        expected = {str(n): f"{self.text}\n{n}\n" for n in range(1, FILES + 1)}
        for number, text in expected.items():
            path = out / "deep" / number
            if path.is_symlink() or not path.is_file() or path.read_text("utf-8", "replace") != text:
                return f"out/deep/{number} is not what the sources make"
        if not os.access(out / "deep" / "1", os.X_OK):
            return "out/deep/1 is no program"
        if not (out / "link").is_symlink() or os.readlink(out / "link") != "deep/1":
            return "out/link is no link to deep/1"
        total = "".join(expected[number] for number in sorted(expected)) + self.text
        if (self.folder / name / "total").read_text("utf-8") != total:
            return "total is not what the sources and the output make"
        return ""

    # Harm.

    def kill(self) -> None:
        """Kill a run at some moment, after it may have lost what it made."""
        self.lose()
        process = self.start()
        time.sleep(self.chance.uniform(0.0, 0.35))
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=LIMIT)

    def together(self) -> None:
        """Have two runs use the shared store at the same time."""
        both = [self.start(name) for name in ("a", "b")]
        for process in both:
            process.communicate(timeout=LIMIT)

    def lose(self) -> None:
        """Lose files of the workspace."""
        shutil.rmtree(self.folder / "a" / "out", ignore_errors=True)

    def alter(self) -> None:
        """Alter files of the workspace, with their times as they were."""
        for path in (self.folder / "a" / "out" / "deep").glob("*"):
            status = path.stat()
            path.write_text("altered", encoding="utf-8")
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    def poison(self) -> None:
        """Change some of what lies in the stores."""
        files = [path for path in self.folder.glob("*/**/[be]*/*/*") if self._is_stored(path)]
        self.lose()
        for path in files:
            path.chmod(0o600)  # an earlier harm may have locked it, which stops all but root
        for path in self.chance.sample(files, min(len(files), self.chance.choice((1, 3, len(files))))):
            self.chance.choice((_flip, _cut, _empty, _lock, _link, _make_folder, self._exchange))(path)

    def _is_stored(self, path: Path) -> bool:
        parts = path.relative_to(self.folder).parts
        return path.is_file() and not path.is_symlink() and ("store" in parts or "shared" in parts)

    def _exchange(self, path: Path) -> None:
        everywhere = path.parent.parent.glob("*/*")
        others = [
            other for other in everywhere if other != path and os.access(other, os.R_OK) and other.is_file()
        ]
        if others:
            path.write_bytes(self.chance.choice(others).read_bytes())


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes() or b" ")
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _lock(path: Path) -> None:
    path.chmod(0)


def _link(path: Path) -> None:
    path.unlink()
    path.symlink_to("/etc/passwd")


def _make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def trial(folder: Path, seed: int, fault: str = "", harms: int = 4) -> tuple[str, Counter[str]]:
    """Run one trial; returns what went wrong, "" when nothing did, and which harm was done how often."""
    made = Trial(folder, random.Random(seed), fault)
    done: Counter[str] = Counter()
    wrong = made.run()
    kinds: Sequence[Callable[[], None]] = (
        made.kill,
        made.together,
        made.lose,
        made.alter,
        made.poison,
        made.poison,
    )
    for _ in range(harms):
        if wrong:
            break
        if made.chance.random() < 0.4:
            made.write()
        harm = made.chance.choice(kinds)
        harm()
        done[harm.__name__] += 1
        wrong = made.run()
        if not wrong and harm.__name__ == "together":
            wrong = made.run("b")
    return (f"after {', '.join(done) or 'nothing'}: {wrong}" if wrong else ""), done


def main(argv: list[str]) -> int:
    """Run the long form: many trials, then one search for each planted fault."""
    options = argparse.ArgumentParser(prog="python -m proofs cache", description=__doc__)
    options.add_argument("--trials", type=int, default=100)
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args(argv)
    total: Counter[str] = Counter()
    failed = 0
    for number in range(given.trials):
        with tempfile.TemporaryDirectory() as folder:
            wrong, done = trial(Path(folder), given.seed + number)
        total += done
        if wrong:
            failed += 1
            print(f"seed {given.seed + number}: {wrong}")
    told = ", ".join(f"{count} times {name}" for name, count in sorted(total.items()))
    print(
        f"{given.trials} trials from seed {given.seed}: {told}; {failed} ended otherwise than a run without a cache"
    )
    missed = 0
    for fault in FAULTS:
        found = search(fault, given.seed)
        missed += not found
        print(f"planted, {fault}: {found or 'NOT FOUND'}")
    return 1 if failed or missed else 0


def search(fault: str, seed: int, most: int = 20) -> str:
    """Look for a planted fault; returns how it showed, "" when it did not."""
    for number in range(most):
        with tempfile.TemporaryDirectory() as folder:
            wrong, _ = trial(Path(folder), seed + number, fault)
        if wrong:
            return f"seed {seed + number}: {wrong}"
    return ""
