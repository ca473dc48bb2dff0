"""From tokens to simple commands, each with the folders it may run in: the grammar of bash, as far as it is covered.

Compound commands (`for`, `case`, `if`, loops, groups, functions, `[[ … ]]`) are frames on a stack, so nothing recurses.
What bash would run is found even in constructs that are always of class high; what is not read exactly raises
NotUnderstood.
"""

from __future__ import annotations

from planrun.risk.scope import UNKNOWN, Frame, Scope, Simple
from planrun.risk.tokens import NAME, NAME_START, NotUnderstood

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from planrun.risk.scope import Folders, Frame, Redirection, Scope
    from planrun.risk.tokens import Token, Word

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
        frame.entry |= frame.here  # `;&` continues in the next branch
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


_OPENERS = {"if": "if", "while": "loop", "until": "loop", "{": "{"}
WORDS_OF_GRAMMAR = frozenset(
    (*CLAUSES, *_OPENERS, "!", "time", "for", "case", "[[", "function", "coproc", "select", "in")
)
"""Words that mean something else than a program where a command begins."""


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
