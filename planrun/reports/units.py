"""Times and amounts as people read them."""

from __future__ import annotations


def seconds(value: float) -> str:
    """Return a duration for people: `0.3s`, `12.3s`, `1m05s`, `2h03m`."""
    if value < 59.95:
        return f"{value:.1f}s"
    whole = round(value)
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole // 60 % 60:02d}m"


def period(value: float) -> str:
    """Return a length of time that somebody wrote or waits for, without noughts: `45s`, `3m`, `1h30m`, `0.5s`."""
    if value < 60:
        return f"{value:g}s"
    whole = round(value)
    parts = ((whole // 3600, "h"), (whole // 60 % 60, "m"), (whole % 60, "s"))
    return "".join([f"{count}{unit}" for count, unit in parts if count])


def age(value: float) -> str:
    """Return how long something takes already, no finer than people want to know: `45s`, `3m`, `1h30m`."""
    return period(int(value) if value < 60 else value // 60 * 60)


def tokens(count: int) -> str:
    """Return a number of tokens for people: `950 tokens`, `1.2K tokens`, `3.4M tokens`."""
    if count < 1000:
        return f"{count} token{'' if count == 1 else 's'}"
    if count < 999_950:
        return f"{count / 1000:.1f}K tokens"
    return f"{count / 1_000_000:.1f}M tokens"


def epoch(at: str) -> float:
    """Return the Unix time of an RFC 3339 UTC text; 0.0 for anything else.

    By hand, since `datetime` costs more than a report: days from the civil calendar, years from March.
    """
    try:
        year, month, day = int(at[0:4]), int(at[5:7]), int(at[8:10])
        clock = int(at[11:13]) * 3600 + int(at[14:16]) * 60 + float(at[17:].rstrip("Zz"))
    except ValueError:
        return 0.0
    year -= month < 3
    days = 365 * year + year // 4 - year // 100 + year // 400 + (153 * ((month + 9) % 12) + 2) // 5 + day
    return (days - 719469) * 86400.0 + clock


def size(count: int) -> str:
    """Return bytes in the largest binary unit that is not too large, as `1.5 GiB`."""
    value, units = float(count), ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"]
    while value >= 1024 and len(units) > 1:
        value /= 1024
        units.pop(0)
    return f"{count} bytes" if units[0] == "bytes" else f"{value:.1f} {units[0]}"
