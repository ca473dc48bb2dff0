"""What can be wrong with the text of an expression; a value at run time raises planrun.errors.EvaluationError."""

from __future__ import annotations

from planrun.errors import InvalidInput


class ExpressionError(InvalidInput):
    """An expression that cannot be accepted.

    `offset` and `length` say where, in characters of the text that was parsed; -1 when not known yet: what
    raises without a place (a callback that looks up names) gets the place of the node it was asked about.
    """

    def __init__(self, message: str, offset: int = -1, length: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.length = length

    def moved(self, offset: int, length: int) -> ExpressionError:
        """Return the same error at another place."""
        return type(self)(self.message, offset, length)
