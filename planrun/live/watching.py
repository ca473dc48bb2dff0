"""The loop of `planrun watch`: it takes what the ledger got, reads keys, and draws."""

from __future__ import annotations

import os
import signal
import sys

from planrun.app.following import Followed
from planrun.cliutil.printing import speaks_unicode
from planrun.live.asking import Keys, Question, Started
from planrun.live.rows import Steps
from planrun.live.terminal import Ended, FullScreen
from planrun.live.view import Choice, Line, View
from planrun.reports.ci import Look, coloured

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_TURN = 0.25  # seconds between two looks at the ledger, while no key is pressed
SEARCH = "Search:"
_FOLDING = ("left", "right", " ", "+", "-")


def watch_on_screen(run: str) -> int:
    """Watch a run on the whole screen until the user leaves; return the exit code. Raises InvalidInput."""
    followed = Followed(run)
    try:
        with FullScreen() as screen:
            _Watching(followed, screen).run()
    except Ended as error:
        return 128 + error.signum if error.signum != signal.SIGINT else 130
    finally:
        followed.close()
    return 0


class _Watching:
    """What the keys do."""

    def __init__(self, followed: Followed, screen: FullScreen) -> None:
        look = Look(
            style="live",
            colour=coloured(os.environ, terminal=True),
            unicode=speaks_unicode(),
            output="stream",
        )
        self._followed, self._screen = followed, screen
        self._choice = Choice()
        self._steps = Steps(followed)
        self._view = View(followed, self._steps, self._choice, look)
        self._keys = Keys(followed, self._steps)
        self._started = Started()
        self._asked: Question | None = None
        self._line: Line | None = None  # that is typed
        self._moves: dict[str, Callable[[list[str], int], int]] = {
            "up": lambda _names, at: at - 1,
            "k": lambda _names, at: at - 1,
            "down": lambda _names, at: at + 1,
            "j": lambda _names, at: at + 1,
            "page up": lambda _names, at: at - self._view.page,
            "page down": lambda _names, at: at + self._view.page,
            "home": lambda _names, _at: 0,
            "g": lambda _names, _at: 0,
            "end": lambda names, _at: len(names) - 1,
            "G": lambda names, _at: len(names) - 1,
        }

    def run(self) -> None:
        """Watch until a key ends it."""
        while True:
            self._followed.poll()
            self._choice.message = self._started.ended() or self._choice.message
            self._screen.draw(self._view.lines(self._screen.size(), self._line))
            for key in self._screen.keys(_TURN):
                if self._line is not None:
                    self._type(key)
                elif key in ("q", "quit"):
                    return
                else:
                    choice = self._choice
                    choice.message = ""
                    if key in self._moves:
                        self._move(key)
                    elif key == "/":
                        self._line = Line(text=SEARCH, typed=choice.search)
                    elif key in _FOLDING and choice.tree.shape != "list":
                        self._fold(key)
                    elif key in self._keys.table:
                        if self._followed.gone:
                            self._choice.message = self._followed.gone
                        else:
                            asked = self._keys.table[key](self._choice.step)
                            if isinstance(asked, str):
                                self._choice.message = asked
                            else:
                                self._asked, self._line = asked, Line(text=asked.text)
                    else:
                        choice.press(key)

    def _move(self, key: str) -> None:
        choice = self._choice
        if choice.mode == "log":
            back = self._moves[key]([], choice.back)
            choice.back = {"home": sys.maxsize, "g": sys.maxsize, "end": 0, "G": 0}.get(
                key, max(0, 2 * choice.back - back)
            )
            return
        names = self._view.names()
        if names:
            at = self._moves[key](names, names.index(choice.step) if choice.step in names else 0)
            choice.step = names[max(0, min(at, len(names) - 1))]
            choice.follows, choice.back = False, 0

    def _fold(self, key: str) -> None:
        """Fold or unfold what is chosen; left goes on to what it stands below."""
        choice, tree = self._choice, self._choice.tree
        entry = next((each for each in self._view.entries() if each.step == choice.step), None)
        if key == "+":
            tree.folded.clear()
        elif key == "-":
            tree.fold_all()
        elif entry is None:
            return
        elif entry.below and not entry.is_open and key in ("right", " "):
            tree.folded.discard(entry.step)
        elif entry.below and entry.is_open and key in ("left", " "):
            tree.folded.add(entry.step)
        elif key == "left" and (above := tree.parent(entry.step)):
            choice.step, choice.follows = above, False

    def _type(self, key: str) -> None:
        """Take a key for the line that is typed."""
        assert self._line is not None
        asked = self._asked
        if key == "escape":
            self._line, self._asked = None, None
            self._choice.message = "nothing was changed" if asked else ""
        elif key == "backspace":
            self._line = self._line.but(typed=self._line.typed[:-1])
        elif len(key) == 1 and key.isprintable():
            self._line = self._line.but(typed=self._line.typed + key)
            if asked and not asked.typed:  # one letter answers
                self._answer(asked, key)
        elif key == "enter":
            if asked:
                self._answer(asked, self._line.typed)
            else:
                self._choice.search, self._line = self._line.typed, None
        if self._line is not None and self._line.text == SEARCH:
            self._choice.search = self._line.typed

    def _answer(self, asked: Question, text: str) -> None:
        words = asked.verb(text)
        self._line, self._asked = None, None
        self._choice.message = self._started.start(words) if words else "nothing was changed"
        if words and words[0] in ("resume", "retry"):
            self._choice.follows = True
