"""Verbs of planrun that another verb starts for the user, each as a process of its own: so they keep to their rules."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

from planrun.cliutil.failure import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# Without -P Python would import a planrun.py in the folder of the plan.
PLANRUN = (sys.executable, "-P", "-m", "planrun")
_ERROR = "planrun: error: "
_MOST = 1 << 16  # bytes of what a verb prints that are read


class OwnVerb:
    """A verb that was started; it goes on when this process ends, and no key of the terminal reaches it."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = tuple(words)
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the verb has ended
        self._process = subprocess.Popen(
            [*PLANRUN, *words],
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            env={name: value for name, value in os.environ.items() if name != "PLANRUN_JSON"},
            start_new_session=True,
        )

    @property
    def code(self) -> int | None:
        """The exit code; None while it runs."""
        return self._process.poll()

    def wait(self, seconds: float) -> int | None:
        """Wait for the end, at most so long; return the exit code, None while it runs."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def printed(self) -> list[str]:
        """Return what it printed so far, as clean lines without the name of the program."""
        rows = [row.strip().removeprefix("planrun: ") for row in self.text().splitlines()]
        return [row.removeprefix("error: ") for row in rows if row]

    def error(self) -> str:
        """Return the message of its error, without its hints; empty where it has none."""
        rows = [row for row in self.text().splitlines() if row.startswith(_ERROR)]
        return rows[0].removeprefix(_ERROR) if rows else ""

    def text(self) -> str:
        """Return what it printed so far, at most 64 KiB, without control characters."""
        data = os.pread(self._output.fileno(), _MOST, 0)  # the verb shares the position
        return printable(data.decode("utf-8", "replace"))

    def close(self) -> None:
        """Forget what it printed."""
        self._output.close()
