"""What all verbs share: the table of options, completion, printing, errors."""

import sys


def write_stderr(text: str) -> None:
    """Write to stderr; a stream that is closed or full changes nothing else."""
    if sys.stderr is not None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except (OSError, ValueError):
            return
