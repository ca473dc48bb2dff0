"""The exceptions, as one tree; each class has the exit code with which it ends the process.

PlanrunError
├── InvalidInput          2    a plan, an option or a value that cannot be accepted
│   ├── InvalidPlan       2    a plan file with problems, all of them listed
│   └── EvaluationError   2    an expression that has no value in this run
├── RemoteError           1    a service that refused or did not answer
├── Denied                3    policy, approval or digest says no
├── InternalError         4    a bug in planrun
├── Interrupted     128 + n    signal n came before anything ran
└── RecordsLost          74    a ledger or report that cannot be written
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_INVALID = 2
EXIT_DENIED = 3
EXIT_INTERNAL = 4
EXIT_WAITING = 5
EXIT_RECORDS = 74  # sysexits EX_IOERR
EXIT_DEADLINE = 124  # as timeout(1)


class PlanrunError(Exception):
    """An error whose message is for the user."""

    exit_code = EXIT_INTERNAL


class InvalidInput(PlanrunError):
    """An option, a value or a file that cannot be accepted."""

    exit_code = EXIT_INVALID


class InvalidPlan(InvalidInput):
    """A plan file that cannot be executed; `problems` holds every finding, in file order.

    `sources` are the bytes of the files that have problems, by name, as far as they could be read.
    """

    def __init__(self, problems: Sequence[object], sources: Mapping[str, bytes] | None = None) -> None:
        super().__init__(f"{len(problems)} problem{'' if len(problems) == 1 else 's'} in the plan")
        self.problems: tuple[Any, ...] = tuple(problems)  # of planrun.plan.problems.Problem
        self.sources: Mapping[str, bytes] = sources or {}


class EvaluationError(InvalidInput):
    """An expression that has no value: a wrong type, a size over the limit, an unsafe text in a script."""


class AbsentError(EvaluationError):
    """A name, output, key or index that has no value; `default` takes this error and no other."""


class RemoteError(PlanrunError):
    """A service that a verb needs refused, or did not answer."""

    exit_code = EXIT_FAILED


class Denied(PlanrunError):
    """Something that policy, approval or digest does not allow."""

    exit_code = EXIT_DENIED


class InternalError(PlanrunError):
    """A state that should be impossible: a bug in planrun."""


class Interrupted(PlanrunError):
    """Signal `signum` came while planrun waited for something, before anything ran."""

    def __init__(self, signum: int, message: str) -> None:
        super().__init__(message)
        self.exit_code = 128 + signum


class RecordsLost(PlanrunError):
    """A ledger, log or report that cannot be written; the message names it."""

    exit_code = EXIT_RECORDS
