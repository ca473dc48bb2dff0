"""From text to the tokens of bash, for the part of the language that can be read exactly.

Whatever is not read exactly as bash reads it raises NotUnderstood. There is no recursion: a substitution opens a frame
on a stack. The kinds of `$` and backtick expansions are recognised without evaluation.
"""

from __future__ import annotations

from planrun.risk.tokens import (
    DIGITS,
    HOLES,
    NAME,
    NAME_START,
    QUOTED_HOLE,
    Frame,
    NotUnderstood,
    Redirect,
    Word,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.risk.tokens import Part, Token

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


_SUM = frozenset("0123456789 \t+-*/%<>=!&|^?:,")
_PLAIN_DEFAULT = NAME | frozenset("./ :@+=,-*?#%^!")
_ODD_PARAMETERS = {
    "@": "all arguments, whose number is unknown",
    "*": "all arguments, whose values are unknown",
    "!": "the process last started",
    "-": "the options of the shell",
}


class Expansions(Cursor):
    """Reads the expansions of a text."""

    def _dollar(self) -> None:
        inside = self.frame.quoted >= 0
        follows = self._after() if self.at + 1 < self.frame.end else ""
        if follows == "(":
            self._parenthesis(inside=inside)
        elif follows == "{":
            self._brace(inside=inside)
        elif follows and follows in NAME_START:
            at = self.at + 1
            while at < self.frame.end and self.text[at] in NAME:
                at += 1
            if self.text[at : at + 1] in ("\\", *HOLES):
                raise NotUnderstood("a name that may go on", self.at)
            self._expansion(("name", self.text[self.at + 1 : at], inside), at)
        elif follows and follows in "?#$":
            self._expansion(("number", "", inside), self.at + 2)
        elif follows and (follows in _ODD_PARAMETERS or follows in DIGITS):
            meaning = _ODD_PARAMETERS.get(follows, "an argument of the script")
            self._expansion(("strange", f"${follows}: {meaning}", inside), self.at + 2)
        elif follows and (follows in "[" + HOLES or self.text.startswith("\\\n", self.at + 1)):
            raise NotUnderstood("an expansion that is not covered", self.at)
        elif follows and follows in "'\"" and not inside:
            self._ansi(follows)
        else:
            self._add(("text", "$", inside))
            self.at += 1

    def _expansion(self, part: Part, end: int) -> None:
        self._add(part)
        self.at = end

    def _ansi(self, quote: str) -> None:
        if quote == '"':
            self._expansion(("strange", '$"…": a text that depends on the language', False), self.at + 1)
            return
        at = self.at + 2
        while at < self.frame.end and self.text[at] != "'":
            at += 2 if self.text[at] == "\\" else 1
        if at >= self.frame.end:
            raise NotUnderstood("an unterminated quote", self.at)
        self._expansion(("strange", "$'…': escapes that hide what they mean", False), at + 1)

    def _parenthesis(self, *, inside: bool) -> None:
        text, start = self.text, self.at
        if text[start + 2 : start + 3] != "(":
            self._push(")", self.frame.end)
            self.at += 2
            return
        at = start + 3
        names = False
        while at < self.frame.end and (text[at] in _SUM or text[at] in NAME):
            names = names or text[at] in NAME_START
            at += 1
        if text[at : at + 2] != "))" or at + 2 > self.frame.end:
            raise NotUnderstood("arithmetic that is not covered", start)
        meaning = "$((…)): a name in arithmetic, whose value is evaluated in turn"
        part: Part = ("strange", meaning, inside) if names else ("number", "", inside)
        self._expansion(part, at + 2)

    def _brace(self, *, inside: bool) -> None:
        text, at = self.text, self.at + 2
        while at < self.frame.end and text[at] in NAME:
            at += 1
        name = text[self.at + 2 : at]
        if at >= self.frame.end or not name or name[0] in DIGITS:
            raise NotUnderstood("an expansion that is not covered", self.at)
        if text[at] == "}":
            self._expansion(("name", name, inside), at + 1)
            return
        close = at
        while close < self.frame.end and text[close] in _PLAIN_DEFAULT:
            close += 1
        if text[close : close + 1] != "}" or text[at] not in ":-+?#%":
            raise NotUnderstood("an expansion that is not covered", self.at)
        shown = text[self.at : close + 1]
        self._expansion(("strange", f"{shown}: an expansion that is not followed", inside), close + 1)

    def _backtick(self) -> None:
        close = self.text.find("`", self.at + 1, self.frame.end)
        if close < 0:
            raise NotUnderstood("an unterminated substitution", self.at)
        inner = self.text[self.at + 1 : close]
        if "\\" in inner or (self.frame.quoted >= 0 and '"' in inner):
            raise NotUnderstood("quotes inside backticks", self.at)
        self._push("`", close)
        self.at += 1


_SPECIAL = frozenset(" \t\n\\'\"$`;&|()<>*?[~#" + HOLES)
_IN_QUOTES = frozenset('\\"$`' + HOLES)
_VALUE = NAME | frozenset("./@:+=,-\t" + HOLES)  # of what a value that is put in can consist
_OPERATORS = (";;&", ";;", ";&", "&&", "||", "|&", ";", "&", "|", "(", ")")
_REDIRECTS = ("&>>", "<<<", "<<-", "&>", "<<", "<>", "<&", ">>", ">&", ">|", "<", ">")


def lex(text: str) -> list[Token]:
    """Return the tokens of a whole text; raises NotUnderstood."""
    if _SPECIAL.isdisjoint(text.replace(" ", "")):
        return _plain(text)
    return _Lexer(text, 0, len(text)).read()


def _plain(text: str) -> list[Token]:
    """Return the tokens of a text in which nothing means anything but blanks: a third of all."""
    tokens: list[Token] = []
    at = 0
    for word in text.split(" "):
        if word:
            end = at + len(word)
            tokens.append(("word", Word([("text", word, False)], at, end), at, end))
        at += len(word) + 1
    return tokens


class _Lexer(Expansions):
    def read(self) -> list[Token]:
        while True:
            frame = self.frame
            if self.at >= frame.end:
                if self._leave():
                    return frame.tokens
            elif frame.quoted >= 0:
                self._quoted()
            else:
                self._bare()

    def _leave(self) -> bool:
        """Close what ends with the region; True when that is the whole text."""
        frame = self.frame
        if frame.quoted >= 0:
            raise NotUnderstood("an unterminated quote", frame.quoted)
        if frame.closer == ")":
            raise NotUnderstood("an unterminated substitution", frame.opened)
        self._end_word()
        if frame.delimiter is not None:
            raise NotUnderstood("a here-document without a delimiter", frame.end)
        if frame.closer == "`":
            self._pop()
            return False
        if self.documents:
            raise NotUnderstood("a here-document without an end", frame.end)
        return True

    # Outside quotes

    def _bare(self) -> None:
        char = self.text[self.at]
        if char not in _SPECIAL:
            self._run()
        elif char in " \t":
            self._end_word()
            self.at += 1
        elif char in "\n;&|()<>":
            self._operator(char)
        elif char == "$":
            self._dollar()
        else:
            self._mark(char)

    def _run(self) -> None:
        text, start, end = self.text, self.at, self.frame.end
        at = start
        while at < end and text[at] not in _SPECIAL:
            at += 1
        self._grow(text[start:at])
        self.at = at

    def _mark(self, char: str) -> None:
        if char == '"':
            self._add(("text", "", True))
            self.frame.quoted = self.at
            self.at += 1
        elif char == "'":
            self._single()
        elif char == "\\":
            self._backslash()
        elif char == "`":
            self._backtick()
        elif char == "#" and self.frame.start < 0:
            stop = self.text.find("\n", self.at, self.frame.end)
            start, self.at = self.at, self.frame.end if stop < 0 else stop
            if QUOTED_HOLE in self.text[start : self.at]:
                raise NotUnderstood("a quoted value put into a comment", start)
        elif char in "*?[":
            self._glob(char)
        else:
            self._sign(char)

    def _glob(self, char: str) -> None:
        rest = self.text[self.at + 1 : self.at + 3]
        if char == "[" and self.frame.start < 0 and rest.lstrip("[")[:1] in ("", " ", "\t", "\n"):
            # `[` and `[[` by themselves are words like any other.
            word = "[[" if rest[:1] == "[" else "["
            self._grow(word)
            self.at += len(word)
        else:
            self._add(("glob", char, False))
            self.at += 1

    def _sign(self, char: str) -> None:
        first = self.frame.start < 0
        if char in HOLES:
            if char == QUOTED_HOLE and any(frame.closer == "`" for frame in self.frames):
                raise NotUnderstood("a quoted value put in between backticks", self.at)
            self._add(("hole", char, False))
        elif char in "#~" and self.frame.parts and all(kind == "hole" for kind, _, _ in self.frame.parts):
            raise NotUnderstood("a sign whose meaning depends on the value before it", self.at)
        elif char == "~" and first and self._after() in "/ \t\n;&|()<>":
            self._add(("home", "", False))
        elif char == "~" and first:
            self._add(("strange", "~: a home folder", False))
        else:
            self._grow(char)
        self.at += 1

    def _single(self) -> None:
        close = self.text.find("'", self.at + 1, self.frame.end)
        if close < 0:
            raise NotUnderstood("an unterminated quote", self.at)
        for part in _literal(self.text, self.at + 1, close):
            self._add(part)
        self.at = close + 1

    def _backslash(self) -> None:
        if self.at + 1 >= self.frame.end:
            raise NotUnderstood("a backslash with nothing after it", self.at)
        follows = self.text[self.at + 1]
        if follows in HOLES:
            raise NotUnderstood("a value put in after a backslash", self.at)
        if follows != "\n":
            self._add(("text", follows, True))
        elif self.at and self.text[self.at - 1] in "<>&|;(":
            # bash drops the line's end before it reads operators: `<\` and `(` on the next line are one.
            beyond = self.text[self.at + 2 : self.at + 3]
            if beyond and beyond not in NAME and beyond not in " \t./\"'":
                raise NotUnderstood("an operator that may go on in the next line", self.at - 1)
        self.at += 2

    # Inside double quotes

    def _quoted(self) -> None:
        text, at, end = self.text, self.at, self.frame.end
        while at < end and text[at] not in _IN_QUOTES:
            at += 1
        if at > self.at:
            self._add(("text", text[self.at : at], True))
            self.at = at
            return
        char = text[at]
        if char == '"':
            self.frame.quoted = -1
            self.at += 1
        elif char == "$":
            self._dollar()
        elif char == "`":
            self._backtick()
        elif char == "\\":
            self._escape('$`"\\\n')
        elif char == QUOTED_HOLE:
            raise NotUnderstood("a quoted value put between quotes", at)
        else:
            self._add(("hole", char, True))
            self.at += 1

    def _escape(self, known: str) -> None:
        follows = self._after()
        if follows in known and self.at + 1 < self.frame.end:
            self._add(("text", "" if follows == "\n" else follows, True))
            self.at += 2
        else:
            self._add(("text", "\\", True))
            self.at += 1

    # Operators

    def _operator(self, char: str) -> None:
        frame, text, at = self.frame, self.text, self.at
        if text.startswith("<(", at):
            self._push(")", frame.end)
            self.frame.names_file = True
            self.at += 2
            return
        if char in "<>" or text.startswith("&>", at):
            self._redirect()
            return
        self._end_word()
        if frame.delimiter is not None:
            raise NotUnderstood("a here-document without a delimiter", at)
        if char == ")" and frame.closer == ")" and not frame.parens:
            self._pop()
            return
        if char == "\n":
            frame.tokens.append(("op", "\n", at, at + 1))
            self.at += 1
            # Here-documents
            if self.frame is not self.frames[0]:
                if self.documents:
                    raise NotUnderstood("a here-document that begins inside a substitution", self.at)
            else:
                documents, self.documents = self.documents, []
                for redirect, delimiter, quoted in documents:
                    start, stop = self._body(delimiter, tabs=redirect.op == "<<-")
                    redirect.here = (
                        _literal(self.text, start, stop) if quoted else _body_parts(self.text, start, stop)
                    )
            return
        operator = next(op for op in _OPERATORS if text.startswith(op, at))
        if at + len(operator) > frame.end:
            raise NotUnderstood("an unterminated substitution", at)
        frame.parens += {"(": 1, ")": -1}.get(operator, 0)
        frame.tokens.append(("op", operator, at, at + len(operator)))
        self.at += len(operator)

    def _redirect(self) -> None:
        frame, text, at = self.frame, self.text, self.at
        if text.startswith(">(", at):
            raise NotUnderstood("a process substitution that is written to", at)
        operator = next(op for op in _REDIRECTS if text.startswith(op, at))
        if at + len(operator) > frame.end:
            raise NotUnderstood("a redirection without a target", at)
        fd: int | None = None
        start = at
        if frame.parts and frame.parts[-1][0] == "hole":
            raise NotUnderstood("a redirection whose descriptor depends on a value", frame.start)
        if frame.start >= 0 and not frame.parts and operator[0] != "&" and frame.text:
            if set(frame.text) <= DIGITS:
                if at - frame.start != len(frame.text) or len(frame.text) > 3:
                    raise NotUnderstood("a descriptor that is not covered", frame.start)
                fd, start = int(frame.text), frame.start
                frame.text, frame.start = "", -1
            elif frame.text[0] == "{" and frame.text[-1] == "}":
                raise NotUnderstood("a descriptor with a name", frame.start)
        self._end_word()
        if frame.delimiter is not None:
            raise NotUnderstood("a here-document without a delimiter", at)
        redirect = Redirect(fd, operator)
        frame.tokens.append(("redirect", redirect, start, at + len(operator)))
        if operator in ("<<", "<<-"):
            frame.delimiter = redirect
        self.at += len(operator)

    def _body(self, delimiter: str, *, tabs: bool) -> tuple[int, int]:
        start = at = self.at
        end = self.frame.end
        while at < end:
            stop = self.text.find("\n", at, end)
            line = self.text[at : end if stop < 0 else stop]
            if HOLES[0] in line and not set(line) - _VALUE:
                raise NotUnderstood("a line that a value may make the end of the here-document", at)
            if (line.lstrip("\t") if tabs else line) == delimiter:
                self.at = end if stop < 0 else stop + 1
                return start, at
            at = end if stop < 0 else stop + 1
        raise NotUnderstood("a here-document without an end", start)


def _literal(text: str, start: int, end: int) -> list[Part]:
    """Return the parts of a text in which nothing means anything, but where values may be put in."""
    inner = text[start:end]
    if QUOTED_HOLE in inner:
        raise NotUnderstood("a quoted value put into a quoted text", start)
    if HOLES[0] not in inner:
        return [("text", inner, True)]
    parts: list[Part] = []
    for piece in inner.split(HOLES[0]):
        parts += [("text", piece, True), ("hole", HOLES[0], True)]
    return parts[:-1]


def _body_parts(text: str, start: int, end: int) -> list[Part]:
    """Return the parts of an unquoted here-document, which is expanded as a double-quoted text is."""
    body = text[start:end]
    if "$" not in body and "`" not in body and "\\" not in body:
        return _literal(text, start, end)
    if "\\\n" in body:
        raise NotUnderstood("a line continuation inside a here-document", start + body.index("\\\n"))
    return _DocumentLexer(text, start, end).parts()


class _DocumentLexer(_Lexer):
    r"""Reads a text in which `"` means nothing, but `$`, backticks and `\` do."""

    def parts(self) -> list[Part]:
        root = self.frame
        root.quoted = root.opened
        while self.frame is not root or self.at < root.end:
            if self.at >= self.frame.end:
                self._leave()
            elif self.frame is not root:
                if self.frame.quoted >= 0:
                    self._quoted()
                else:
                    self._bare()
            elif self.text[self.at] == '"':
                self._add(("text", '"', True))
                self.at += 1
            elif self.text[self.at] == "\\":
                self._escape("$`\\")
            else:
                self._quoted()
        return root.parts
