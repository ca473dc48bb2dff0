"""Compound commands of bash: `for`, `case`, `if`, loops, groups, functions and `[[ … ]]`."""

from __future__ import annotations

from planrun.risk.flow import UNKNOWN
from planrun.risk.reader import Reader
from planrun.risk.scope import Simple
from planrun.risk.tokens import NAME, NAME_START, NotUnderstood

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.risk.tokens import Word

_NEXT = {"then": ("cond",), "elif": ("then",), "else": ("then",), "do": ("cond",)}
_CLOSERS = {"fi": ("if", ("then", "else")), "done": ("loop", ("body",)), "}": ("{", ("body",))}
_BINARY = frozenset(("=", "==", "!=", "=~"))
_NUMERIC = frozenset(("-eq", "-ne", "-lt", "-le", "-gt", "-ge"))
_UNARY = frozenset(f"-{letter}" for letter in "abcdefghkprstuwxzGLNOSno")
_FILES = frozenset(("-nt", "-ot", "-ef"))
CLAUSES = frozenset((*_CLOSERS, *_NEXT, "esac"))
"""Words that go on with a compound command, or end it."""


class Compounds(Reader):
    """Reads what stands between the words of compound commands."""

    def _clause(self, word: str) -> None:
        frame = self.frame
        if frame.pending or (frame.kind != "case" and not frame.filled):
            raise self._wrong(f"`{word}` where a command was expected")
        if word == "esac":
            self._esac()
            return
        if word in _CLOSERS:
            kind, phases = _CLOSERS[word]
            if frame.kind != kind or frame.phase not in phases:
                raise self._wrong(f"`{word}` without its beginning")
            self._close(word)
            return
        expected = "loop" if word == "do" else "if"
        if frame.kind != expected or frame.phase not in (*_NEXT[word],):
            raise self._wrong(f"`{word}` without its beginning")
        self._advance(word)

    def _advance(self, word: str) -> None:
        """Go on to the next part of an `if` or of a loop."""
        frame = self.frame
        self.at += 1
        ok, fail = frame.outcome()
        self.scope.commit(certain=False)
        if word == "then":
            frame.entry = fail  # where the next branch begins
            frame.phase = "then"
            frame.begin(ok)
        elif word == "do":
            frame.phase = "body"
            frame.begin(ok)
        else:
            frame.exits |= ok | fail
            frame.phase = "cond" if word == "elif" else "else"
            frame.begin(frame.entry)

    def _close(self, word: str) -> None:
        frame = self.frame
        self.at += 1
        ok, fail = frame.outcome()
        if word == "}":
            self._pop(ok, fail)
        elif word == "done":
            after = UNKNOWN if self.scope.loops_move else frame.entry
            self._pop(after, after)
        else:
            after = frame.exits | ok | fail
            if frame.phase == "then":
                after |= frame.entry
            self._pop(after, after)

    def _for(self) -> None:
        start = self._start()
        self.at += 1
        name = self._keyword()
        if not name or name[0] not in NAME_START or not NAME.issuperset(name):
            raise self._wrong("a `for` without a plain name")
        self.at += 1
        self._skip_newlines()
        if self._keyword() != "in":
            raise self._wrong("a `for` without `in`")
        self.at += 1
        words = []
        while self.at < len(self.tokens) and self.tokens[self.at][0] == "word":
            words.append(self.tokens[self.at][1])
            self.at += 1
        if self._op() not in (";", "\n"):
            raise self._wrong("a list of words that is not covered")
        self.at += 1
        self._skip_newlines()
        if self._keyword() != "do":
            raise self._wrong("a `for` without `do`")
        here = self.frame.pipe
        self._open("loop", "body")
        self.frame.start = start
        self.frame.entry = UNKNOWN if self.scope.loops_move else here
        self.frame.loop = name
        self.scope.enter_loop(name, words, here)

    def _case(self) -> None:
        self.at += 1
        if self._op() or self.at >= len(self.tokens) or self.tokens[self.at][0] != "word":
            raise self._wrong("a `case` without a word")
        subject = self.tokens[self.at][1]
        self.scope.add(Simple(subject.start, [], [subject], [], subject="case"), self.frame.pipe)
        self.at += 1
        self._skip_newlines()
        if self._keyword() != "in":
            raise self._wrong("a `case` without `in`")
        self._open("case", "patterns")

    def _patterns(self) -> None:
        if self._op() == "(":
            self.at += 1
        elif self._keyword() == "esac":
            self._esac()
            return
        while True:
            if self.at >= len(self.tokens) or self.tokens[self.at][0] != "word":
                raise self._wrong("a pattern that is not covered")
            if any(kind not in ("text", "glob") for kind, _, _ in self.tokens[self.at][1].parts):
                raise self._wrong("a pattern that is not literal")
            self.at += 1
            operator = self._op()
            self.at += 1
            if operator == ")":
                break
            if operator != "|":
                self.at -= 1
                raise self._wrong("a pattern that is not covered")
        self.frame.phase = "body"
        self.frame.begin(self.frame.entry)

    def _end_branch(self) -> None:
        frame = self.frame
        if frame.ready:
            self._end_list()
        frame.exits |= frame.here
        frame.entry |= frame.here  # `;&` goes on in the next branch
        frame.phase = "patterns"
        frame.begin(frame.entry)

    def _esac(self) -> None:
        frame = self.frame
        if frame.kind != "case":
            raise self._wrong("`esac` without its beginning")
        self.at += 1
        if frame.ready:
            self._end_list()
        after = frame.entry | frame.here | frame.exits
        self._pop(after, after)

    def _uncovered(self) -> None:
        raise self._wrong(f"`{self._keyword()}`, which is not covered")

    def _named_function(self) -> None:
        at = 4 if self._op(2) == "(" and self._op(3) == ")" else 2
        self.at += 1
        if not self._keyword():
            raise self._wrong("a function without a plain name")
        self.at -= 1
        self._function(at)

    def _coproc(self) -> None:
        self.scope.mark(self._start(), "`coproc`: a process in the background outlives the step")
        self.at += 1
        self.frame.pending = True

    def _function(self, length: int) -> None:
        self.scope.mark(self._start(), "a function: what its name means later is not followed")
        self.at += length
        self._skip_newlines()
        if self._keyword() != "{" and self._op() != "(":
            raise self._wrong("a function whose body is not covered")
        self.frame.pending = True

    def _condition(self) -> None:
        start = self._start()
        self.at += 1
        words: list[Word] = []
        while self._keyword() != "]]":
            if self.at >= len(self.tokens) or self.tokens[self.at][0] == "redirect":
                raise self._wrong("a condition that is not covered")
            if self._op():
                self._test(words, start)
                words = []
            else:
                words.append(self.tokens[self.at][1])
            self.at += 1
        self._test(words, start)
        self.at += 1
        self.scope.last_was_simple = False
        self._ended(self.frame.pipe, self.frame.pipe)

    def _test(self, words: list[Word], start: int) -> None:
        """Take one comparison of a condition."""
        if self._op() not in ("", "&&", "||"):
            raise self._wrong("a condition that is not covered")
        plain = [word.plain for word in words]
        while plain and plain[0] == "!":
            plain, words = plain[1:], words[1:]
        if len(words) == 3 and plain[1] in _BINARY | _FILES | _NUMERIC:
            shape = "numbers" if plain[1] in _NUMERIC else "condition"
            words = [words[0], words[2]]
        elif len(words) == 1 or (len(words) == 2 and plain[0] in _UNARY):
            shape, words = "condition", words[-1:]
        else:
            raise NotUnderstood("a condition that is not covered", start)
        self.scope.add(Simple(start, [], words, [], subject=shape), self.frame.pipe)
