"""A place in a text, and the words and substitutions that are open there."""

from __future__ import annotations

from planrun.risk.tokens import Frame, NotUnderstood, Redirect, Word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.risk.tokens import Part


MAX_DEPTH = 20
"""Substitutions inside each other."""


class Cursor:
    """A text that is being read from `start` to `end`; substitutions are frames on a stack."""

    def __init__(self, text: str, start: int, end: int) -> None:
        self.text = text
        self.at = start
        self.frame = Frame("", end, start)
        self.frames = [self.frame]
        self.documents: list[tuple[Redirect, str, bool]] = []

    def _add(self, part: Part) -> None:
        frame = self.frame
        if frame.start < 0:
            frame.start = self.at
        if frame.text:
            frame.parts.append(("text", frame.text, False))
            frame.text = ""
        frame.parts.append(part)

    def _grow(self, text: str) -> None:
        frame = self.frame
        if frame.start < 0:
            frame.start = self.at
        frame.text += text

    def _end_word(self) -> None:
        frame = self.frame
        if frame.start < 0:
            return
        if frame.text:
            frame.parts.append(("text", frame.text, False))
            frame.text = ""
        word = Word(frame.parts, frame.start, self.at)
        frame.tokens.append(("word", word, frame.start, self.at))
        frame.parts = []
        frame.start = -1
        if frame.delimiter is not None:
            self._delimit(word, frame.delimiter)
            frame.delimiter = None

    def _delimit(self, word: Word, redirect: Redirect) -> None:
        if any(kind != "text" for kind, _, _ in word.parts):
            raise NotUnderstood("a here-document whose delimiter is no plain word", word.start)
        if self.frame is not self.frames[0]:
            raise NotUnderstood("a here-document inside a substitution", word.start)
        delimiter = "".join(value for _, value, _ in word.parts)
        self.documents.append((redirect, delimiter, any(quoted for _, _, quoted in word.parts)))

    def _after(self) -> str:
        return self.text[self.at + 1] if self.at + 1 < self.frame.end else " "

    def _push(self, closer: str, end: int) -> None:
        if self.frame.start < 0:
            self.frame.start = self.at
        self.frame = Frame(closer, end, self.at)
        self.frames.append(self.frame)
        if len(self.frames) > MAX_DEPTH:
            raise NotUnderstood("too many substitutions inside each other", self.at)

    def _pop(self) -> None:
        done = self.frames.pop()
        self.frame = self.frames[-1]
        kind = "file" if done.names_file else "command"
        self._add((kind, done.tokens, self.frame.quoted >= 0))
        self.at += 1
