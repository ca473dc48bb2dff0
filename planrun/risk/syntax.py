"""From tokens to simple commands, each with the folders it may run in: the grammar of bash, as far as it is covered.

Compound commands are frames on a stack, so that nothing recurses. What bash would run, even in constructs that are
always of class high, is found; what is not read exactly raises NotUnderstood.
"""

from __future__ import annotations

from planrun.risk.compounds import CLAUSES, Compounds
from planrun.risk.scope import Scope, Simple
from planrun.risk.tokens import NAME, NAME_START, NotUnderstood

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from planrun.risk.flow import Frame
    from planrun.risk.tokens import Token, Word

_OPENERS = {"if": "if", "while": "loop", "until": "loop", "{": "{"}


def parse(tokens: list[Token], scope: Scope) -> None:
    """Put every simple command of the tokens into the scope; raises NotUnderstood."""
    _Parser(tokens, scope, frozenset([scope.cwd]), "top").read()
    while scope.substitutions:
        _Parser(*scope.next_substitution(), "$").read()


class _Parser(Compounds):
    def read(self) -> None:
        while self.at < len(self.tokens):
            if self.frame.ready:
                self._after_command()
            else:
                self._command()
        if len(self.frames) > 1:
            raise NotUnderstood(f"`{self.frame.kind}` without its end", self.frame.start)
        if self.frame.pending:
            raise NotUnderstood("an operator with nothing after it", self.end)
        if self.frame.ready:
            self.frame.end_list()

    def _after_command(self) -> None:
        frame, kind = self.frame, self.tokens[self.at][0]
        if kind == "redirect":
            self._redirect_compound()
            return
        operator = self._op()
        self.at += 1
        if operator in ("|", "|&"):
            frame.pipe_on()
        elif operator in ("&&", "||"):
            self._commit()
            frame.go_on(operator)
        elif operator in (";", "\n"):
            self._end_list()
        elif operator == "&":
            self.scope.mark(self._start_of(1), "`&`: a process in the background outlives the step")
            self.scope.commit(certain=False)
            frame.end_list(background=True)
        elif operator == ")" and frame.kind == "(":
            self._end_list()
            self._pop(frame.entry, frame.entry)
        elif operator in (";;", ";&", ";;&") and frame.kind == "case":
            self._end_branch()
        else:
            self.at -= 1
            raise self._wrong("a word where an operator was expected")

    def _redirect_compound(self) -> None:
        if self.scope.last_was_simple:
            raise self._wrong("a redirection where none can stand")
        redirects = []
        while self.at < len(self.tokens) and self.tokens[self.at][0] == "redirect":
            redirects.append(self._redirection())
        self.scope.add(Simple(redirects[0][2].start, [], [], redirects), self.frame.pipe)

    def _command(self) -> None:
        frame = self.frame
        operator = self._op()
        if operator == "\n":
            self.at += 1
            return
        if operator:
            self._open_or_close(operator)
            return
        if frame.kind == "case" and frame.phase == "patterns":
            self._patterns()
            return
        word = self._keyword()
        if word in CLAUSES:
            self._clause(word)
        elif word in _OPENERS:
            self._open(_OPENERS[word], "body" if word == "{" else "cond")
            if word in ("while", "until"):
                self.scope.mark(self._start_of(1), f"`{word}`: a loop that may never end")
        elif word in ("!", "time"):
            self._prefix(word)
        elif word and self._op(1) == "(" and self._op(2) == ")":
            self._function(3)
        else:
            self._others().get(word, self._simple)()

    def _others(self) -> dict[str, Callable[[], None]]:
        """Return what begins with a word of its own."""
        return {
            "for": self._for,
            "case": self._case,
            "[[": self._condition,
            "function": self._named_function,
            "coproc": self._coproc,
            "select": self._uncovered,
            "in": self._uncovered,
        }

    def _open_or_close(self, operator: str) -> None:
        frame = self.frame
        if operator == "(":
            if self._op(1) == "(" and self.tokens[self.at + 1][2] == self.tokens[self.at][3]:
                raise self._wrong("arithmetic that is not covered")
            if frame.kind == "case" and frame.phase == "patterns":
                self.at += 1
                self._patterns()
                return
            self._open("(", "body")
        elif operator == ")" and frame.kind == "(" and not frame.pending and frame.filled:
            self.at += 1
            self._pop(frame.entry, frame.entry)
        elif (
            operator in (";;", ";&", ";;&")
            and frame.kind == "case"
            and frame.phase == "body"
            and not frame.pending
        ):
            self.at += 1
            self._end_branch()
        else:
            raise self._wrong(f"`{operator}` where a command was expected")

    def _prefix(self, word: str) -> None:
        self.at += 1
        if word == "!":
            self.frame.negated = not self.frame.negated
        elif self._keyword() == "-p":
            self.at += 1
        if self._op() or self._keyword() in ("--", "-p"):
            raise self._wrong(f"`{word}` without a command")
        self.frame.pending = True

    def _simple(self) -> None:
        start = self._start()
        assignments: list[tuple[str, Word]] = []
        words: list[Word] = []
        redirects = []
        while self.at < len(self.tokens) and self.tokens[self.at][0] != "op":
            if self.tokens[self.at][0] == "redirect":
                redirects.append(self._redirection())
                continue
            word = self.tokens[self.at][1]
            name = "" if words else assigned_name(word)
            if name:
                assignments.append((name, word))
            else:
                words.append(word)
            self.at += 1
        if self._op() == "(":
            raise self._wrong("a parenthesis where none can stand")
        ok, fail = self.scope.add(Simple(start, assignments, words, redirects), self.frame.pipe)
        if self.scope.moved and any(frame.kind == "loop" for frame in self._same_shell()):
            self.scope.loop_moved = True
        self.scope.last_was_simple = True
        self._ended(ok, fail)

    def _same_shell(self) -> list[Frame]:
        """Return the frames around the current command, up to the nearest subshell."""
        frames = []
        for frame in reversed(self.frames):
            if frame.kind == "(":
                break
            frames.append(frame)
        return frames


def assigned_name(word: Word) -> str:
    """Return `NAME=` or `NAME+=` at the start of a word, as a name; "" when it is no assignment."""
    kind, text, quoted = word.parts[0] if word.parts else ("", "", False)
    if kind != "text" or quoted or "=" not in text or text[0] not in NAME_START:
        return ""
    name = text.partition("=")[0].removesuffix("+")
    return name if NAME.issuperset(name) else ""
