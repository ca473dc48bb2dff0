"""What can be wrong with an expression: its text (found at load time) or a value (found at run time)."""

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


class EvaluationError(InvalidInput):
    """An expression that has no value: a wrong type, a size over the limit, an unsafe text in a script."""


class AbsentError(EvaluationError):
    """A name, output, key or index that has no value; `default` takes this error and no other."""
