"""The command line: the verbs that run plans are parsed by hand, everything else is click, loaded when asked for.

Importing click costs three times as much as a whole cached run.
"""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


_COMPLETE = "_PLANRUN_COMPLETE"  # the variable by which a shell asks for completions


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; no exception leaves it."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        if words and words[0].startswith(("-C", "--d")) and _COMPLETE not in os.environ:
            from planrun.cli.folder import entered  # few command lines have it

            words = entered(words)
        return _dispatch(words)(words)
    except Exception as error:  # noqa: BLE001 - the one boundary to people
        from planrun.cliutil.failure import explain

        return explain(error)
    except KeyboardInterrupt:
        return 130


def run() -> None:
    """Run the command line as a process: leave without taking the interpreter apart, which costs 3 ms."""
    if os.getpid() == 1:
        from planrun.cliutil.first import leave_first_process  # in containers without an init

        leave_first_process()
    code = main()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (
            OSError,
            ValueError,
            AttributeError,
        ):  # its reader is gone; None: it was closed from the start
            pass
    os._exit(code)


def _dispatch(words: list[str]) -> Callable[[list[str]], int]:
    if _COMPLETE not in os.environ:
        if not words:
            return _plans
        if words in (["--help"], ["-h"]) or words[0] == "help":
            return _help
        if words in (["--version"], ["-V"]):
            return _version
        if words[0] in ("execute", "run", "resume", "retry") and not {"--help", "-h"} & set(words):
            # A run makes few cycles and ends soon: looking for garbage costs more than it frees, and most while
            # modules are loaded.
            gc.disable()
            from planrun.cli.run import running

            return running
    from planrun.cli.group import grouped

    return grouped


def _version(_words: list[str]) -> int:
    from planrun import __version__
    from planrun.cliutil.printing import say

    say(f"planrun {__version__}")
    return 0


def _plans(_words: list[str]) -> int:
    from planrun.listing.bare import print_plans

    return print_plans()


def _help(words: list[str]) -> int:
    from planrun.cli.help import helped

    return helped(words[1:])
