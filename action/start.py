"""Convert the inputs of action.yml to the words of one planrun command and replace this process by it.

The inputs are environment variables, never text inside a script, so an input is at most one word of the command.
Exit code 2 for an input that cannot be used, 3 for a plan of a fork that is to run.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn
from uuid import uuid4

if __name__ == "__main__":
    sys.dont_write_bytecode = True  # the folder of this file may be the checkout
    sys.path.append(str(Path(__file__).resolve().parents[1]))  # -I leaves it out

from action import commits
from action.origin import Origin, UnusableInputError, origin_of

if TYPE_CHECKING:
    from collections.abc import Callable

PREFIX = "PLANRUN_INPUT_"
YES = frozenset({"true", "True", "TRUE"})
NO = frozenset({"", "false", "False", "FALSE"})
"""The booleans of GitHub's own toolkit, and the empty text for an input that was left out."""


MODES = ("execute", "review", "comment", "approve", "shard", "merge")
WITHOUT_PLAN = ("comment", "merge")
RUN = re.compile(r"\d{8}-\d{6}-[0-9a-f]{6}")
STAMP = "%Y%m%d-%H%M%S"  # how the id of a run begins, UTC
MOST_NEWER = 1000


class RefusedError(Exception):
    """A job that is refused; the text says why."""


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
        # Not splitlines(): a value may hold other characters that Python treats as line ends.
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


def command(inputs: Inputs, origin: Origin) -> list[str]:
    """Return the arguments of planrun that the inputs ask for, in the folder where it is to work.

    Raises UnusableInputError; RefusedError when the plan of a fork is to run.
    """
    plan, mode = inputs.text("plan"), inputs.text("mode") or "execute"
    if mode not in MODES:
        raise UnusableInputError(f"input mode must be {' or '.join(MODES)}, not {mode!r}")
    if not plan and mode not in WITHOUT_PLAN:
        raise UnusableInputError("input plan is empty: it names the plan to run")
    inputs.flag("llm")  # read when planrun is installed, where nothing can be refused
    if mode == "execute" and origin.fork:
        raise RefusedError(
            f"this pull request comes from {origin.fork}, and plans of other repositories are not run; "
            "`mode: review` works"
        )
    if mode in _OTHERS:
        return [mode, *_OTHERS[mode](inputs, origin)]
    words = [mode, *shared(inputs, origin), *(_running if mode == "execute" else _reviewing)(inputs, origin)]
    return [*words, "--", plan]


def _commenting(inputs: Inputs, _origin: Origin) -> list[str]:
    number = inputs.text("pull-request")
    chosen = [] if number in ("", "auto") else [f"--pull-request={number}"]
    return [*chosen, "--", inputs.text("reports") or "planrun-out/review.json"]


def _approving(inputs: Inputs, origin: Origin) -> list[str]:
    if origin.proposed or origin.doubtful:
        raise RefusedError("an approval is taken for merged plans only, not in pull requests")
    words = [f"--param={value}" for value in inputs.values("params")]
    words += [
        f"--{name}={value}"
        for name in ("digest", "environment", "pull-request")
        if (value := inputs.text(name))
    ]
    if len(words) == len([word for word in words if word.startswith(("--param=", "--digest="))]):
        raise UnusableInputError(
            "mode approve needs the input pull-request or environment: it says who approves"
        )
    return [
        *words,
        f"--output={inputs.text('approval-file') or 'planrun-approval.json'}",
        "--",
        inputs.text("plan"),
    ]


def _sharding(inputs: Inputs, _origin: Origin) -> list[str]:
    if not inputs.text("shard"):
        raise UnusableInputError("mode shard needs the input shard: how many shards there are")
    words = [f"--legs={line}" for line in inputs.lines("legs")]
    words += [f"--timings={value}" for value in [inputs.text("timings")] if value]
    return ["--matrix", *words, "--", inputs.text("shard"), inputs.text("plan")]


def _merging(inputs: Inputs, _origin: Origin) -> list[str]:
    places = inputs.lines("reports")
    if not places:
        raise UnusableInputError("mode merge needs the input reports: folders with the reports of the shards")
    return [f"--report-dir={inputs.text('report-dir') or 'planrun-out'}", "--", *places]


_OTHERS = {"comment": _commenting, "approve": _approving, "shard": _sharding, "merge": _merging}


def shared(inputs: Inputs, origin: Origin) -> list[str]:
    """Return the words of all modes; policy and approvals of a change that is not merged are those of its base."""
    words = [f"--{name}={value}" for name in ("report-dir", "auto-approve") if (value := inputs.text(name))]
    words += [f"--param={value}" for value in inputs.values("params")]
    policy, files = inputs.text("policy"), inputs.lines("approvals")
    ref = inputs.text("policy-ref")
    if origin.doubtful and (files or (policy and not ref)):
        raise UnusableInputError(
            f"this is {origin.doubtful}, so nobody can tell whether what is checked out is merged: "
            "name the commit of the policy by policy-ref, and no approvals"
        )
    base = commits.ensure(origin.base) if origin.proposed and (files or (policy and not ref)) else ""
    if policy:
        words.append(f"--policy={_in_commit(policy, _policy_commit(ref, base, origin))}")
    return words + [f"--approval={_in_commit(file, base)}" for file in files]


def _policy_commit(ref: str, base: str, origin: Origin) -> str:
    """Return the commit that the policy is read from; empty: from the checkout."""
    if not ref:
        return base
    found = commits.ensure(ref)
    own = {*origin.heads, commits.head()} - {origin.base}
    if origin.proposed and found in own:
        raise UnusableInputError(f"input policy-ref names {ref}, which is the pull request itself")
    return found


def _in_commit(path: str, commit: str) -> str:
    """Return how planrun is given a file, from this folder, of a commit or (without one) of the checkout."""
    if not commit:
        return path if ":" not in path or path.startswith(("/", "./", "../")) else f"./{path}"
    from planrun.errors import InvalidInput
    from planrun.plan.revisions import path_from_root

    try:
        return f"{commit}:{path_from_root(os.path.join('.', os.path.relpath(path)))}"
    except InvalidInput as error:
        raise UnusableInputError(str(error)) from None


def _running(inputs: Inputs, _origin: Origin) -> list[str]:
    names = ("jobs", "junit-dialect", "shard", "timings")
    words = [f"--{name}={value}" for name in names if (value := inputs.text(name))]
    for name in ("only", "skip", "legs"):
        words += [f"--{name}={line}" for line in inputs.lines(name)]
    words += [f"--decide={value}" for value in inputs.values("decide")]
    words += [f"--{name}" for name in ("strict", "locked") if inputs.flag(name)]
    # What is uploaded is looked at by people.
    words += ["--html"] if inputs.flag("upload") else []
    return [*words, *inputs.words("args")]


def _reviewing(inputs: Inputs, origin: Origin) -> list[str]:
    named = inputs.text("base")
    base = commits.ensure(named or origin.base) if named or origin.proposed else _before(origin)
    return [f"--base={base}"] if base else []


def _before(origin: Origin) -> str:
    """Return what a push, or any other event on a merged commit, is compared with; empty for a first commit."""
    if origin.base:
        try:
            return commits.ensure(origin.base)
        except UnusableInputError:  # a forced push removed it
            return commits.parent()
    return commits.parent()


def tell_upload(environment: dict[str, str], folder: Path, reports: str) -> None:
    """Write the absolute paths that the upload step takes to $GITHUB_OUTPUT."""
    end = uuid4().hex
    paths = f"{folder / reports}\n{folder / '.planrun' / 'runs'}"
    with open(environment["GITHUB_OUTPUT"], "a", encoding="utf-8") as output:
        output.write(f"upload-paths<<{end}\n{paths}\n{end}\n")


def tell_begin(environment: dict[str, str], folder: Path) -> None:
    """Write the time and the runs that claim to be newer to $GITHUB_OUTPUT, so that another step can identify this run.

    Raises UnusableInputError for a checkout with more of them than a variable can hold.
    """
    now = time.strftime(STAMP, time.gmtime())
    newer = [name for name in known_runs(folder) if name >= now]
    if len(newer) > MOST_NEWER:
        raise UnusableInputError(f"{folder}/.planrun/runs has {len(newer)} runs of the future: delete them")
    with open(environment["GITHUB_OUTPUT"], "a", encoding="utf-8") as output:
        output.write(f"begin={' '.join([now, *newer])}\n")


def known_runs(folder: Path) -> list[str]:
    """Return the ids of the runs in a folder; other names are left out."""
    runs = folder / ".planrun" / "runs"
    return [path.name for path in runs.iterdir() if RUN.fullmatch(path.name)] if runs.is_dir() else []


def enter(environment: dict[str, str], inputs: Inputs) -> Path:
    """Go to the folder where planrun is to work and return it; raises UnusableInputError."""
    folder = Path(environment.get("GITHUB_WORKSPACE", "."), inputs.text("working-directory")).resolve()
    if not folder.is_dir():
        raise UnusableInputError(f"input working-directory: {folder} is no folder")
    os.chdir(folder)
    return folder


def become_planrun(environment: dict[str, str]) -> NoReturn:
    """Replace this process, so that the runner's signals reach planrun itself."""
    inputs = Inputs(environment)
    folder = enter(environment, inputs)
    words = command(inputs, origin_of(environment))
    if "GITHUB_OUTPUT" in environment:
        tell_upload(environment, folder, inputs.text("report-dir") or "planrun-out")
        if words[0] == "execute":
            tell_begin(environment, folder)
    become(environment, words)


def become(environment: dict[str, str], words: list[str]) -> NoReturn:
    """Replace this process by planrun with these arguments; it sees no input of the action."""
    program = str(Path(sys.executable).with_name("planrun"))
    passed_on = {name: value for name, value in environment.items() if not name.startswith(PREFIX)}
    os.execve(program, [program, *words], passed_on)


def main() -> int:
    """Replace this process by planrun, or report why that fails."""
    return run(become_planrun)


def run(act: Callable[[dict[str, str]], object]) -> int:
    """Call a function with the environment of this process; return an exit code and print why it failed."""
    try:
        act(dict(os.environ))
    except (UnusableInputError, RefusedError) as error:
        text = str(error).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
        sys.stdout.write(f"::error title=planrun::{text}\n")
        return 3 if isinstance(error, RefusedError) else 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
