"""Values of options that few command lines have: amounts and durations."""

from __future__ import annotations

from planrun.errors import InvalidInput
from planrun.plan.schema.forms import as_duration


def amount(where: str, value: str) -> float:
    """Return a number over 0; raises InvalidInput that names the option or variable `where`."""
    whole, _, rest = value.partition(".")
    digits = whole + rest
    if not (digits.isascii() and digits.isdecimal() and len(digits) < 20 and float(value) > 0):
        raise InvalidInput(f'{where} takes an amount over 0 such as 2.50, not "{value}"')
    return float(value)


def span(where: str, value: str) -> str:
    """Return a duration unchanged; raises InvalidInput for an invalid one."""
    try:
        as_duration(value)
    except ValueError:
        raise InvalidInput(f'{where} takes a duration such as 30s, 5m or 1h30m, not "{value}"') from None
    return value
