"""How the delivery of a notification goes, filled in while it goes on."""

from __future__ import annotations


class OutOfTime(BaseException):
    """The time for all tries together is over; no handler of ordinary errors takes it."""


class Interrupted(BaseException):
    """planrun was interrupted and gives up the notification."""


class Result:
    """The state of a delivery; `code`: the HTTP status or the exit code of the last try, if it had one."""

    def __init__(self) -> None:
        self.status = "failed"
        self.tries = 0
        self.code: int | None = None
        self.message = ""

    def sent(self) -> None:
        """Note that the notification was delivered."""
        self.status, self.message = "sent", ""

    def failed(self, message: str) -> None:
        """Note why the last try was in vain; after the first message, what happened before stays readable."""
        self.status = "failed"
        before = self.message
        self.message = f"{message}; before: {before}" if before and before not in message else message
