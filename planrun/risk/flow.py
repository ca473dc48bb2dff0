"""Where in a script the shell can be: the folders it may stand in before and after each command.

A set of folders is a frozenset of workspace-relative paths; None in it means: nobody knows. An empty set: never here.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    Folders = frozenset[str | None]

NOWHERE: Folders = frozenset()
UNKNOWN: Folders = frozenset([None])
MAX_FOLDERS = 6


def bounded(folders: Folders) -> Folders:
    """Return the same set, or `unknown` when it grew beyond what is worth following."""
    return UNKNOWN if len(folders) > MAX_FOLDERS or None in folders else folders


class Frame:
    """One list of commands that is being read, with the compound command that it stands in.

    `kind` is "top", "(", "{", "if", "loop", "case" or "function"; `phase` the part of it that is being read.
    """

    __slots__ = (
        "_last",
        "entry",
        "exits",
        "fail",
        "filled",
        "here",
        "kind",
        "loop",
        "negated",
        "ok",
        "op",
        "pending",
        "phase",
        "pipe",
        "ready",
        "soft",
        "stages",
        "start",
        "strict",
    )  # fmt: skip

    def __init__(self, kind: str, phase: str, here: Folders, start: int) -> None:
        self.kind = kind
        self.phase = phase
        self.entry = here  # where the compound command began
        self.exits = NOWHERE  # where its finished branches end
        self.loop = ""  # the variable of a `for`
        self.start = start
        self.strict = False  # `set -e` holds
        self.ready = False  # a command has ended, an operator may follow
        self.pending = False  # an operator stands open: a command has to follow
        self.begin(here)

    def begin(self, here: Folders) -> None:
        """Begin a new list in the same compound command, as after `then`."""
        self.here = here
        self.filled = False  # a command has ended in it
        self.ok = self.fail = self.soft = NOWHERE
        self.op = ""
        self._pipeline(here)

    def _pipeline(self, here: Folders) -> None:
        self.pipe = here
        self.stages = 1
        self.negated = False
        self.ready = False

    @property
    def first(self) -> bool:
        """Whether what ends now is a whole pipeline at the start of an and-or list: it runs for certain."""
        return not self.op and self.stages == 1 and not self.negated

    def ended(self, ok: Folders, fail: Folders) -> None:
        """Take note of a command's end: where the shell is when it succeeded, and when it failed."""
        self.ready = True
        self.filled = True
        self.pending = False
        self._last = ok, fail

    def pipe_on(self) -> None:
        """Go on after `|`: what a stage does to the shell does not last."""
        self.stages += 1
        self.ready = False
        self.pending = True

    def _close_pipeline(self) -> None:
        ok, fail = self._last
        if self.stages > 1:
            ok = fail = self.pipe
        elif self.negated:
            ok, fail = fail, ok
        if self.op == "&&":
            self.ok, self.soft, self.fail = ok, self.soft | self.fail, fail
        elif self.op == "||":
            self.ok, self.soft, self.fail = self.ok | ok, NOWHERE, fail
        else:
            self.ok, self.soft, self.fail = ok, NOWHERE, fail

    def go_on(self, op: str) -> None:
        """Go on after `&&` or `||`."""
        self._close_pipeline()
        self.op = op
        self._pipeline(bounded(self.ok if op == "&&" else self.soft | self.fail))
        self.pending = True

    def end_list(self, *, background: bool = False) -> None:
        """End an and-or list, as at `;`."""
        start = self.here
        self._close_pipeline()
        after = self.ok | self.soft
        if not self.strict:
            after |= self.fail
        self.here = start if background else bounded(after)
        self.op = ""
        self._pipeline(self.here)

    def outcome(self) -> tuple[Folders, Folders]:
        """Return where the shell can be after the list: when its last command succeeded, and when it failed."""
        if self.ready:
            self.end_list()
        return self.ok, self.soft | self.fail
