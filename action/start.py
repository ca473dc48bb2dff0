"""Turn the inputs of action.yml into `planrun execute …` and become it.

The inputs come as environment variables, never as text inside a script, so that no input can be more
than one word of the command. Exit code 2 for an input that cannot be used.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import NoReturn
from uuid import uuid4

PREFIX = "PLANRUN_INPUT_"
YES = frozenset({"true", "True", "TRUE"})
NO = frozenset({"", "false", "False", "FALSE"})
"""What GitHub's own toolkit takes for a boolean, and nothing for an input that was left out."""


class UnusableInputError(Exception):
    """An input that cannot become part of the command; the text is for the person who wrote it."""


class Inputs:
    """The inputs of the action by name, as text without surrounding white space; absent is empty."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._environment = environment

    def text(self, name: str) -> str:
        """Return one input."""
        return self._environment.get(PREFIX + name.upper().replace("-", "_"), "").strip()

    def lines(self, name: str) -> list[str]:
        """Return the lines of an input that are not empty, without surrounding white space."""
        return [line.strip() for line in self._rows(name)]

    def values(self, name: str) -> list[str]:
        """Return the lines of an input that are not empty, each from its first character to its end."""
        return [line.removesuffix("\r").lstrip(" \t") for line in self._rows(name)]

    def _rows(self, name: str) -> list[str]:
        # Not splitlines(): a value from elsewhere may hold other characters that Python takes for line ends.
        text = self._environment.get(PREFIX + name.upper().replace("-", "_"), "")
        return [line for line in text.split("\n") if line.strip()]

    def words(self, name: str) -> list[str]:
        """Return the words of an input, quoted as in a shell, with nothing expanded."""
        try:
            return shlex.split(self.text(name))
        except ValueError as error:
            raise UnusableInputError(f"input {name}: {error}") from None

    def flag(self, name: str) -> bool:
        """Return a boolean input; an empty one is false."""
        value = self.text(name)
        if value not in YES | NO:
            raise UnusableInputError(f"input {name} must be true or false, not {value!r}")
        return value in YES


def command(inputs: Inputs) -> list[str]:
    """Return the arguments of planrun that the inputs ask for."""
    plan = inputs.text("plan")
    if not plan:
        raise UnusableInputError("input plan is empty: it names the plan to run")
    words = ["execute"]
    for name in ("jobs", "report-dir", "junit-dialect"):
        if value := inputs.text(name):
            words += [f"--{name}={value}"]
    words += [f"--param={value}" for value in inputs.values("params")]
    for name in ("only", "skip"):
        words += [f"--{name}={line}" for line in inputs.lines(name)]
    if inputs.flag("strict"):
        words.append("--strict")
    return [*words, *inputs.words("args"), "--", plan]


def tell_upload(environment: dict[str, str], folder: Path, reports: str) -> None:
    """Write the absolute paths that the upload step takes to $GITHUB_OUTPUT."""
    end = uuid4().hex
    paths = f"{folder / reports}\n{folder / '.planrun' / 'runs'}"
    with open(environment["GITHUB_OUTPUT"], "a", encoding="utf-8") as output:
        output.write(f"upload-paths<<{end}\n{paths}\n{end}\n")


def become_planrun(environment: dict[str, str]) -> NoReturn:
    """Replace this process, so that the runner's signals reach planrun itself."""
    inputs = Inputs(environment)
    folder = Path(environment.get("GITHUB_WORKSPACE", "."), inputs.text("working-directory")).resolve()
    if not folder.is_dir():
        raise UnusableInputError(f"input working-directory: {folder} is no folder")
    words = command(inputs)
    if "GITHUB_OUTPUT" in environment:
        tell_upload(environment, folder, inputs.text("report-dir") or "planrun-out")
    program = str(Path(sys.executable).with_name("planrun"))
    passed_on = {name: value for name, value in environment.items() if not name.startswith(PREFIX)}
    os.chdir(folder)
    os.execve(program, [program, *words], passed_on)


def main() -> int:
    """Become planrun, or say which input stands in the way."""
    try:
        become_planrun(dict(os.environ))
    except UnusableInputError as error:
        sys.stdout.write(f"::error title=planrun::{str(error).replace('%', '%25')}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())
