"""`python -m benchmarks.editor`: how long an editor waits for the language server, in a plan of 1,000 steps.

Each request follows a change of the text, so nothing is known of the new version when it comes: the worst case. A
figure is the median of TRIES, beside the least one; the processor time of the server for the same answers tells how
much of it is the machine's. One row asks while the version before is being checked, as happens to who types slowly.
Diagnostics are counted from the last change to their arrival, the quarter of a second of waiting included.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planrun.lsp.server import QUIET
from tests.lsp.client import Editor

if TYPE_CHECKING:
    from collections.abc import Callable

TRIES = 5
FILE = "plan.yml"


def plan(steps: int) -> str:
    """A plan as people write them: eight keys a step, two dependencies, an expression, some conditions."""
    rows = ["version: 1", "params: {who: {type: string, default: x}}", "steps:"]
    for number in range(steps):
        rows += [f"  - id: s{number}", f"    title: Step number {number}", "    run: |"]
        rows += [
            f"      pytest -q tests/{number}",
            '      echo "$WHO"',
            '    env: {WHO: "${{ params.who }}"}',
        ]
        rows += ["    timeout: 5m", "    retries: 1"]
        if number > 3:
            rows.append(f"    depends_on: [s{number - 1}, s{number - 3}]")
        if number % 10 == 9:
            rows.append(f"    condition: steps.s{number - 1}.status == 'completed'")
    return "\n".join(rows) + "\n"


def spent(editor: Editor) -> float:
    """Return the processor time of the server so far, in seconds."""
    fields = Path(f"/proc/{editor.pid}/stat").read_text("ascii").rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


class Requests:
    """The requests, each by its name in the table; `version` counts the changes of the text."""

    def __init__(self, editor: Editor, steps: int) -> None:
        self.editor = editor
        self.text = plan(steps)
        self.last = steps - 1
        self.version = 1
        self.before = self.began = 0.0

    def change(self) -> None:
        """Type a character into the title of a step in the middle."""
        self.version += 1
        title = f"number {self.last // 2}"
        self.editor.type(FILE, self.text.replace(title, f"{title} v{self.version}"), self.version)

    def timed(self, ask: Callable[[], Any]) -> tuple[float, float]:
        """Return the seconds until an answer after a change, and the processor time that the server spent on it."""
        self.change()
        self.before, self.began = spent(self.editor), time.monotonic()
        ask()
        return time.monotonic() - self.began, spent(self.editor) - self.before

    def _during_a_check(self, ask: Callable[[], Any]) -> Callable[[], Any]:
        """Return a request that comes after one more change, when the check of the version before has begun."""

        def asked() -> Any:
            time.sleep(QUIET + 0.15)
            self.change()
            self.began, self.before = time.monotonic(), spent(self.editor)
            return ask()

        return asked

    def all(self) -> dict[str, Callable[[], Any]]:
        """Return what is asked, by its name."""
        editor, last = self.editor, self.last

        def ask(method: str, mark: str, shift: int, **more: Any) -> Callable[[], Any]:
            return lambda: editor.ask(f"textDocument/{method}", {**editor.at(FILE, mark, shift), **more})

        document = {"textDocument": {"uri": editor.uri(FILE)}}
        return {
            "completion of a step": ask("completion", f"depends_on: [s{last - 2}", 13),
            "hover of a key": ask("hover", "timeout", 2),
            "hover of a command": ask("hover", f"pytest -q tests/{last}", 2),
            "hover of a step": ask("hover", f"id: s{last}\n", 5),
            "definition": ask("definition", f"[s{last - 1}", 2),
            "rename": ask("rename", f"id: s{last // 2}\n", 5, newName="renamed"),
            "outline": lambda: editor.ask("textDocument/documentSymbol", document),
            "completion during a check": self._during_a_check(
                ask("completion", f"depends_on: [s{last - 2}", 13)
            ),
            "diagnostics": lambda: editor.diagnostics(FILE, self.version),
        }


def measured(steps: int, tries: int) -> list[str]:
    """Return the rows of the table."""
    rows = ["| After a change | Waited | At least | Processor |", "|---|--:|--:|--:|"]
    with tempfile.TemporaryDirectory() as folder, Editor(Path(folder)) as editor:
        requests = Requests(editor, steps)
        editor.open(FILE, requests.text)
        for name, ask in requests.all().items():
            found = []
            for _ in range(tries):
                found.append(requests.timed(ask))
                editor.diagnostics(FILE, requests.version)  # nothing of this version is left to be done
            least = 1000 * min([waited for waited, _ in found])
            waited, processor = (1000 * statistics.median(each) for each in zip(*found, strict=True))
            rows.append(f"| {name} | {waited:.0f} ms | {least:.0f} ms | {processor:.0f} ms |")
    return rows


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.editor", description=__doc__)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--tries", type=int, default=TRIES)
    options = parser.parse_args()
    print("\n".join(measured(options.steps, options.tries)))


if __name__ == "__main__":
    main()
