"""What the verbs share that write plans: options, the file, and how they say that nothing came of it."""

from __future__ import annotations

import os
import sys

from planrun.cli.arguments import RUNNING, Option
from planrun.cli.failure import printable
from planrun.errors import EXIT_DENIED, EXIT_FAILED, InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Protocol

    from planrun.llm.faults import Fault

    class Unwritten(Protocol):
        """What came of a conversation."""

        @property
        def outcome(self) -> str:
            """A key of the words below."""

        @property
        def message(self) -> str:
            """What the model, the service or planrun said of it."""

        @property
        def faults(self) -> Sequence[Fault]:
            """What was wrong in the last answer."""

        @property
        def refusals(self) -> Sequence[Mapping[str, str]]:
            """What a policy denies: step, rule, reason."""


FORCE = Option(flags=("--force",), name="force", kind="flag", help="Overwrite FILE.")
DRY_RUN = Option(
    flags=("--dry-run",),
    name="dry_run",
    kind="flag",
    help="Print what the model would be asked, and ask nobody.",
)
JSON = next(option for option in RUNNING if option.name == "json").but(help="Print one JSON document.")
STANDARD_OUTPUT = "-"
_WORDS = {
    "infeasible": "the model says that this cannot be done",
    "denied": "a policy denies what the model wrote",
    "invalid": "no plan was written",
    "budget": "no more may be spent on models",
    "failed": "no answer could be had",
    "stopped": "stopped",
}


def tell(message: str) -> None:
    """Write a line about what goes on to stderr; the message may come from anywhere."""
    sys.stderr.write(f"planrun: {printable(message)}\n")


def told_why_not(found: Unwritten) -> int:
    """Say on stderr why there is nothing to be reviewed, and return the exit code."""
    why = "" if found.refusals else f": {' '.join(found.message.split())}"
    tell(f"{_WORDS[found.outcome]}{why}")
    rows = (
        [fault.text for fault in found.faults] if len(found.faults) > 1 else []
    )  # one stands in the message
    rows += [f"{each['step'] or 'the plan'}: {each['reason']} [{each['rule']}]" for each in found.refusals]
    sys.stderr.write("".join([f"  {printable(row)}\n" for row in rows]))
    return EXIT_DENIED if found.outcome == "denied" else EXIT_FAILED


def refuse_existing(path: str, *, forced: bool) -> None:
    """Raise InvalidInput when a file is there that must not be overwritten, or when it can never be one."""
    if os.path.isdir(path):
        raise InvalidInput(f"{path} is a folder")
    if os.path.lexists(path) and not forced:
        raise InvalidInput(f"{path} exists already; --force overwrites it, -o FILE names another one")


def write_file(target: str, data: bytes, *, forced: bool) -> None:
    """Write a file that was not there, or with `forced` in the place of one; raises InvalidInput."""
    try:
        os.makedirs(os.path.dirname(target) or ".", exist_ok=True)
        if forced and os.path.lexists(target):
            os.unlink(target)  # a link is replaced, and what it leads to stays
        with open(target, "xb") as file:  # exclusive: what appeared in between is not overwritten
            file.write(data)
    except OSError as error:
        raise InvalidInput(f"cannot write {target}: {error.strerror}") from None


def replace_file(target: str, data: bytes, was: bytes | None = None) -> None:
    """Put bytes in the place of a file at once or not at all, its mode kept; raises InvalidInput.

    `was`: what the file must still hold, so that nobody else's change is lost.
    """
    path = os.path.realpath(target)
    part = f"{path}.part"
    try:
        if was is not None:
            with open(path, "rb") as file:
                if file.read() != was:
                    raise InvalidInput(f"{target} was changed meanwhile; it is left as it is")
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(part, "xb") as out:
            out.write(data)
            if os.path.exists(path):
                os.fchmod(out.fileno(), os.stat(path).st_mode & 0o7777)
        os.replace(part, path)
    except OSError as error:
        raise InvalidInput(f"cannot write {target}: {error.strerror}") from None
