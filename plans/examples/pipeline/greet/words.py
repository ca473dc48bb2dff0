"""The words of a greeting."""

import sys


def greeting(who: str) -> str:
    """Return what is said to somebody."""
    return f"Hello, {who}!"


def main() -> None:
    """Greet whoever is named."""
    from greet.count import letters

    said = greeting(" ".join(sys.argv[1:]))
    print(f"{said} ({letters(said)} letters)")
