"""Where the output of an attempt goes, as far as the loop and the attempt are concerned; for type checkers alone."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from planrun.errors import RecordsLost
    from planrun.executors.spawn import FileAction

    class Output(Protocol):
        """The output of one attempt on its way into its log."""

        @property
        def opening(self) -> list[FileAction]:
            """What the child does to its descriptors 1 and 2."""

        @property
        def source(self) -> int:
            """The descriptor that receive() reads from; -1 when the child writes into the log itself."""

        @property
        def shown(self) -> bool:
            """Whether the log needs no show() to be followed."""

        def refusal(self) -> RecordsLost | None:
            """Why a child could not take it for its output, when that is so."""

        def begin(self) -> None:
            """Take note that the child has started."""

        def main_ended(self, *, failed: bool) -> None:
            """Take note that the main process was reaped."""

        def last_errors(self) -> tuple[int, int] | None:
            """Where in the log the last of stderr begins and ends, in bytes; None: there is none.

            A begin of -1: both outputs are mixed up to the end.
            """

        def receive(self) -> bool:
            """Take one piece without waiting; False when nothing more can come. Raises RecordsLost."""

        def size(self) -> int:
            """Bytes that the attempt has written, as far as they have arrived."""

        def held(self) -> bool:
            """Whether any process still has it open for writing; False where that cannot be known."""

        def held_as(self) -> tuple[int, int] | None:
            """Device and inode by which its writers are to be found; None when it has none."""

        def unfinished(self) -> bool:
            """Whether what is still to come would be lost without receive()."""

        def show(self) -> None:
            """Put the log in its place, also while it is being written."""

        def settle(self) -> int:
            """End its use, nothing of it lost, and return the size of the log in bytes. Raises RecordsLost."""

    class Outputs(Protocol):
        """Hands out an output for each attempt."""

        def open(self, path: str) -> Output:
            """Return the output whose log belongs to `path`.

            Raises RecordsLost, and OSError when descriptors or memory are short.
            """

        def close(self) -> None:
            """Leave nothing behind that is of no use."""
