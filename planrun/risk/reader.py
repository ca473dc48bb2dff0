"""A place among the tokens of a text, and the compound commands that are open there."""

from __future__ import annotations

from planrun.risk.flow import UNKNOWN, Frame
from planrun.risk.tokens import NotUnderstood

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.risk.flow import Folders
    from planrun.risk.scope import Redirection, Scope
    from planrun.risk.tokens import Token


MAX_DEPTH = 50
"""Compound commands inside each other."""


class Reader:
    """Tokens that are being read into a scope."""

    def __init__(self, tokens: list[Token], scope: Scope, here: Folders, kind: str) -> None:
        self.tokens = tokens
        self.scope = scope
        self.at = 0
        self.end = tokens[-1][3] if tokens else 0
        self.frame = Frame("top", kind, here, 0)  # the phase "$": the text of a substitution
        self.frames = [self.frame]

    def _op(self, offset: int = 0) -> str:
        """Return the operator at the current token; "" when it is a word, or the end."""
        at = self.at + offset
        if at < len(self.tokens) and self.tokens[at][0] == "op":
            operator: str = self.tokens[at][1]
            return operator
        return ""

    def _keyword(self) -> str:
        """Return the word at the current token when nothing in it is quoted or expanded; "" otherwise."""
        if self.at < len(self.tokens) and self.tokens[self.at][0] == "word":
            return self.tokens[self.at][1].plain or ""
        return ""

    def _start(self) -> int:
        return self.tokens[self.at][2] if self.at < len(self.tokens) else self.end

    def _start_of(self, back: int) -> int:
        return self.tokens[self.at - back][2]

    def _wrong(self, what: str) -> NotUnderstood:
        return NotUnderstood(what, self._start())

    def _skip_newlines(self) -> None:
        while self._op() == "\n":
            self.at += 1

    # case

    def _redirection(self) -> Redirection:
        redirect = self.tokens[self.at][1]
        self.at += 1
        if self.at >= len(self.tokens) or self.tokens[self.at][0] != "word":
            raise self._wrong("a redirection without a target")
        target = self.tokens[self.at][1]
        self.at += 1
        return redirect.fd, redirect.op, target, redirect.here

    def _commit(self) -> None:
        """Let count for what follows what the last pipeline has set, if it ran for certain and in this shell."""
        self.scope.commit(certain=self.frame.first and self.frame.phase == "top")

    def _end_list(self) -> None:
        self._commit()
        self.frame.strict = self.scope.strict and self.frame.phase == "top"
        self.frame.end_list()

    def _open(self, kind: str, phase: str) -> None:
        self.scope.commit(certain=False)
        start = self._start()
        here = self.frame.pipe
        if kind == "loop" and self.scope.loops_move:
            here = UNKNOWN
        self.frame = Frame(kind, phase, here, start)
        self.frames.append(self.frame)
        if len(self.frames) > MAX_DEPTH:
            raise NotUnderstood("too many commands inside each other", start)
        self.at += 1

    def _pop(self, ok: Folders, fail: Folders) -> None:
        self.scope.commit(certain=False)
        closed = self.frames.pop()
        if closed.loop:
            self.scope.leave_loop(closed.loop)
        self.frame = self.frames[-1]
        self.scope.last_was_simple = False
        if closed.kind == "function":
            ok = fail = closed.entry
        self._ended(ok, fail)

    def _ended(self, ok: Folders, fail: Folders) -> None:
        self.frame.ended(ok, fail)
