"""The task that somebody wants done, as it stands on the command line or on standard input."""

from __future__ import annotations

import sys

from planrun.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_TASK = 20_000  # characters


def task(words: Sequence[str], operand: str) -> str:
    """Return the text that words come to, `-` being standard input; raises InvalidInput when there is none.

    `operand` is what the command line calls it.
    """
    text = _standard_input(operand) if list(words) == ["-"] else " ".join(words)
    if not text.strip():
        raise InvalidInput(f"{operand} is empty")
    if len(text) > MAX_TASK:
        raise InvalidInput(f"{operand} has {len(text)} characters; at most {MAX_TASK} are read")
    if "\0" in text or any("\ud800" <= char <= "\udfff" for char in text):
        raise InvalidInput(f"{operand} is not UTF-8 text")
    return text.strip()


def _standard_input(operand: str) -> str:
    try:
        data = b"" if sys.stdin is None else sys.stdin.buffer.read(MAX_TASK * 4 + 1)
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidInput(f"{operand} on standard input is not UTF-8 text") from None
    except (OSError, ValueError) as error:
        raise InvalidInput(
            f"cannot read standard input: {getattr(error, 'strerror', None) or error}"
        ) from None
