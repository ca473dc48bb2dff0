"""The templates of Taskfiles, `{{…}}`: Go's text/template and its functions, as far as they are known before a run.

A value is a text, number, truth, list or mapping of Python, or a `Text` that only a run knows in full.
"""

from __future__ import annotations

import posixpath
import re
import shlex

from planrun.convert.reader import UntranslatableError
from planrun.convert.recipes.scripts import DEFAULT, Piece, ShellText, Value, merged
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from planrun.convert.reader import Findings

    Token = tuple[str, str]
    Lookup = Callable[[str], Any]

_TOKEN = re.compile(
    r"""\s*(?:(?P<text>"(?:[^"\\\n]|\\.)*"|`[^`]*`)|(?P<number>-?\d+(?:\.\d+)?(?!\w))|(?P<comment>/\*.*?\*/)
    |(?P<field>\.[A-Za-z_]\w*(?:\.\w+)*|\.(?![\w.]))|(?P<variable>\$\w*(?:\.\w+)*)|(?P<word>[A-Za-z_]\w*)
    |(?P<sign>:=|=|[()|,]|-?\}\}))""",
    re.VERBOSE | re.DOTALL,
)
_WORDS: Mapping[str, Any] = {"true": True, "false": False, "nil": ""}
MAX_PARTS = 2_000  # pieces of one text
MAX_NESTING = 40


class Text(Record):
    """A text of which only a run knows some pieces."""

    pieces: tuple[Piece, ...]


def shown(value: Any) -> str:
    """Return a value as Go prints it; raises UntranslatableError for what only a run knows."""
    if isinstance(value, Text):
        raise UntranslatableError("template", "a part of a template is known only when the plan runs")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list):
        return f"[{' '.join(map(shown, value))}]"
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{shown(each)}' for key, each in sorted(value.items()))}]"
    return str(value)


def fixed(value: Any) -> Any:
    """Return a value that has to be known now; raises UntranslatableError."""
    if isinstance(value, Text):
        raise UntranslatableError("template", "what is known only when the plan runs decides it")
    return value


def pieces_of(value: Any) -> list[Piece]:
    """Return a value as pieces of a text."""
    return list(value.pieces) if isinstance(value, Text) else [shown(value)]


class Template:
    """Fills one text in; `lookup` returns the value of a variable."""

    def __init__(self, text: str, lookup: Lookup, found: Findings) -> None:
        self.text, self.lookup, self.found = text, lookup, found
        self.local: dict[str, Any] = {}
        self.depth = 0

    def value(self) -> Any:
        """Return a text, or a `Text`; raises UntranslatableError for what planrun does not know."""
        parts = self._cut()
        found, end = self._until(parts, 0, active=True)
        if end < len(parts):
            raise UntranslatableError("template", "an `end` or `else` without its beginning")
        found = merged(found, self.found)
        return found[0] if isinstance(found[0], str) and len(found) == 1 else Text(pieces=tuple(found))

    def reference(self) -> Any:
        """Return the value of a text that is one expression between braces."""
        tokens = self._cut()[1]
        assert isinstance(tokens, list)  # between texts
        return self._whole(tokens)

    def _cut(self) -> list[str | list[Token]]:
        """Return texts, and the tokens between braces; `{{-` and `-}}` take blanks away."""
        found: list[str | list[Token]] = []
        at = 0
        text = self.text
        trims = False
        while (start := text.find("{{", at)) >= 0:
            before = text[at:start].lstrip() if trims else text[at:start]
            at = start + 2
            if text.startswith("-", at) and text[at + 1 : at + 2].isspace():
                before, at = before.rstrip(), at + 1
            tokens: list[Token] = []
            while not tokens or tokens[-1][1] not in ("}}", "-}}"):
                match = _TOKEN.match(text, at)
                if match is None or len(found) > MAX_PARTS:
                    raise UntranslatableError("template", f"it cannot be read: {text[start : start + 60]}")
                tokens.append((str(match.lastgroup), match[str(match.lastgroup)]))
                at = match.end()
            trims = tokens.pop()[1] == "-}}"
            found += [before, [token for token in tokens if token[0] != "comment"]]
        found.append(text[at:].lstrip() if trims else text[at:])
        return found

    def _until(self, parts: list[str | list[Token]], at: int, *, active: bool) -> tuple[list[Piece], int]:
        """Return pieces up to an `else` or `end`, and where that stands."""
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise UntranslatableError("too-large", "a template is nested too deeply")
        found: list[Piece] = []
        while at < len(parts):
            part = parts[at]
            if isinstance(part, str):
                found += [part] if active else []
            elif part and part[0] in (("word", "end"), ("word", "else")):
                break
            elif part and part[0][0] == "word" and part[0][1] in ("if", "range"):
                more, at = (self._branch if part[0][1] == "if" else self._loop)(parts, at, active=active)
                found += more
            elif part and active:
                value = self._action(part)
                found += pieces_of(value) if value is not None else []
            at += 1
        self.depth -= 1
        return found, at

    def _action(self, tokens: list[Token]) -> Any:
        """Return what an action prints, None for one that sets a variable."""
        if len(tokens) > 2 and tokens[0][0] == "variable" and tokens[1][1] in (":=", "="):
            self.local[tokens[0][1]] = self._whole(tokens[2:])
            return None
        return self._whole(tokens)

    def _branch(self, parts: list[str | list[Token]], at: int, *, active: bool) -> tuple[list[Piece], int]:
        found: list[Piece] = []
        taken = not active
        while True:
            part = parts[at]
            assert isinstance(part, list)
            test = part[1:] if part[0][1] == "if" else part[2:] if part[1:2] == [("word", "if")] else []
            asked = self._whole(test) if test and not taken else True
            if isinstance(asked, Text) and len(asked.pieces) == 1 and isinstance(asked.pieces[0], ShellText):
                body, end = self._until(parts, at + 1, active=True)
                return [self._alternative(asked.pieces[0], body, parts[end : end + 1])], end
            holds = not taken and (not test or bool(fixed(asked)))
            body, at = self._until(parts, at + 1, active=holds)
            found += body if holds else []
            taken = taken or holds
            if at >= len(parts):
                raise UntranslatableError("template", "an `if` without its `end`")
            if parts[at][0] == ("word", "end"):
                return found, at

    def _alternative(self, asked: ShellText, body: list[Piece], end: list[str | list[Token]]) -> Piece:
        """Return a text that is there where a variable of the environment is set, as a shell writes it."""
        text = "".join(each if isinstance(each, str) else "\n" for each in body)
        if not asked.reads or not DEFAULT.match(text) or not end or end[0][0] != ("word", "end"):
            raise UntranslatableError(
                "template", "which part of a template holds is known only when the plan runs"
            )
        return ShellText(text=f"${{{asked.reads}:+{text}}}", reads=asked.reads, given=asked.given)

    def _loop(self, parts: list[str | list[Token]], at: int, *, active: bool) -> tuple[list[Piece], int]:
        head = parts[at][1:]
        assert isinstance(head, list)
        sign = head.index(("sign", ":=")) if ("sign", ":=") in head else -1
        names = [text for kind, text in head[: max(sign, 0)] if kind == "variable"]
        items = fixed(self._whole(head[sign + 1 :])) if active else []
        if not isinstance(items, list | dict) or "break" in self.text:
            raise UntranslatableError("template", "a `range` over something that is no list")
        found: list[Piece] = []
        pairs = list(enumerate(items)) if isinstance(items, list) else sorted(items.items())
        before, dot = dict(self.local), self.local.get(".")
        for index, item in pairs:
            self.local |= {".": item} | dict(zip(names[-2:] if len(names) > 1 else names,
                                                [index, item] if len(names) > 1 else [item], strict=False))  # fmt: skip
            merged(found, self.found)
            body, end = self._until(parts, at + 1, active=True)
            found += body
        self.local = before if dot is None else {**before, ".": dot}
        _, end = self._until(parts, at + 1, active=False)
        if end >= len(parts) or parts[end][0] != ("word", "end"):
            raise UntranslatableError("template", "a `range` without its `end`, or with an `else`")
        return found, end

    # Expressions.

    def _whole(self, tokens: list[Token]) -> Any:
        value, at = self._pipe(tokens, 0)
        if at < len(tokens):
            raise UntranslatableError("template", f"it has `{tokens[at][1]}` behind its end")
        return value

    def _pipe(self, tokens: list[Token], at: int) -> tuple[Any, int]:
        value, at = self._command(tokens, at, [])
        while at < len(tokens) and tokens[at] == ("sign", "|"):
            value, at = self._command(tokens, at + 1, [value])
        return value, at

    def _command(self, tokens: list[Token], at: int, piped: list[Any]) -> tuple[Any, int]:
        if at < len(tokens) and tokens[at][0] == "word" and tokens[at][1] not in _WORDS:
            name, args = tokens[at][1], []
            at += 1
            while at < len(tokens) and tokens[at][1] not in (")", "|"):
                value, at = self._operand(tokens, at)
                args.append(value)
            return self._call(name, [*args, *piped]), at
        value, at = self._operand(tokens, at)
        if piped:
            raise UntranslatableError("template", "a pipe into something that is no function")
        return value, at

    def _operand(self, tokens: list[Token], at: int) -> tuple[Any, int]:
        if at >= len(tokens):
            raise UntranslatableError("template", "a value is missing")
        kind, text = tokens[at]
        if (kind, text) == ("sign", "("):
            self.depth += 1
            if self.depth > MAX_NESTING:
                raise UntranslatableError("too-large", "a template is nested too deeply")
            value, at = self._pipe(tokens, at + 1)
            self.depth -= 1
            if tokens[at : at + 1] != [("sign", ")")]:
                raise UntranslatableError("template", "a bracket is not closed")
            return value, at + 1
        if kind == "text":
            body = text[1:-1]
            return (body if text[0] == "`" else re.sub(r"\\(.)", _escaped, body)), at + 1
        if kind == "number":
            return (float(text) if "." in text else int(text)), at + 1
        if kind == "word" and text in _WORDS:
            return _WORDS[text], at + 1
        if kind == "word":
            return self._call(text, []), at + 1
        if kind not in ("field", "variable"):
            raise UntranslatableError("template", f"it has `{text}` where a value is expected")
        name, *fields = text.removeprefix(".").split(".")
        if kind == "variable" and name == "$":
            name, fields = fields[0] if fields else "", fields[1:]
            value = self.lookup(name)
        elif kind == "variable" or not name or "." in self.local:
            value = self.local.get(name if kind == "variable" else ".")
            fields = fields if kind == "variable" or not name else [name, *fields]
            if value is None:
                raise UntranslatableError("template", f"`{text}` is not set")
        else:
            value = self.lookup(name)
        for field in fields:
            value = value.get(field, "") if isinstance(value, dict) else self._nothing(text)
        return value, at + 1

    def _nothing(self, text: str) -> Any:
        raise UntranslatableError("template", f"`{text}` is no mapping")

    def _call(self, name: str, args: list[Any]) -> Any:
        """Return what a function results in; raises UntranslatableError."""
        if name in ("default", "or", "coalesce") and len(args) == 2:
            first, second = (args[1], args[0]) if name == "default" else args
            return self._otherwise(first, second)
        if (
            name in ("shellQuote", "q")
            and len(args) == 1
            and isinstance(args[0], Text)
            and len(args[0].pieces) == 1
        ):
            piece = args[0].pieces[0]
            if isinstance(piece, Value):
                return Text(pieces=(ShellText(text=f"${{{{ {piece.expression} | sh }}}}", is_bare=True),))
        if name == "env" and len(args) == 1 and isinstance(args[0], str) and re.fullmatch(r"\w+", args[0]):
            return Text(pieces=(ShellText(text=f"${{{args[0]}}}", reads=args[0]),))
        work = FUNCTIONS.get(name)
        if work is None:
            raise UntranslatableError("template", f"the function `{name}` is known to go-task alone")
        values = [fixed(each) for each in args]
        try:
            merged([each for each in values if isinstance(each, str)], self.found)
            if name == "repeat":
                self.found.spend(max(0, int(values[0])) * len(str(values[1])))
            return work(*values)
        except (TypeError, ValueError, IndexError, KeyError, AttributeError, ZeroDivisionError):
            raise UntranslatableError("template", f"the function `{name}` with these arguments") from None

    def _otherwise(self, value: Any, other: Any) -> Any:
        """Return a value, or another one where it is empty."""
        if not isinstance(value, Text):
            return value or other
        piece = value.pieces[0]
        if len(value.pieces) == 1 and isinstance(piece, ShellText) and piece.text == f"${{{piece.reads}}}":
            text = "".join(
                each.text if isinstance(each, ShellText) else each if isinstance(each, str) else "\n"
                for each in pieces_of(other)
            )
            if DEFAULT.match(re.sub(r"\$\{[^{}]*\}", "", text)):
                return Text(
                    pieces=(
                        ShellText(text=f"${{{piece.reads}:-{text}}}", reads=piece.reads, given=piece.given),
                    )
                )
        raise UntranslatableError("template", "the default of a value that only a run knows")


def _escaped(match: re.Match[str]) -> str:
    return {"n": "\n", "t": "\t", "r": "\r"}.get(match[1], match[1])


def _printf(form: str, *args: Any) -> str:
    if len(re.findall(r"%[-+0]?\d*[sdvq]", form)) != len(args) or re.search(r"%[^%\d+\-sdvq]", form):
        raise ValueError
    return re.sub(r"%([-+0]?\d*)[dv]", r"%\1s", form).replace("%q", '"%s"') % tuple(map(shown, args))


def _index(value: Any, *keys: Any) -> Any:
    for key in keys:
        value = value[key] if isinstance(value, list) else value.get(key, "")
    return value


def _and(*values: Any) -> Any:
    return next((each for each in values if not each), values[-1])


def _or(*values: Any) -> Any:
    return next((each for each in values if each), values[-1])


def _equal(first: Any, *others: Any) -> bool:
    if any(type(first) is not type(each) for each in others):
        raise TypeError
    return any(first == each for each in others)


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "eq": _equal, "ne": lambda one, other: not _equal(one, other), "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b, "and": _and, "or": _or, "not": lambda value: not value,
    "coalesce": _or, "empty": lambda value: not value, "ternary": lambda yes, no, test: yes if test else no,
    "len": len, "index": _index, "printf": _printf, "print": lambda *values: "".join(map(shown, values)),
    "lower": str.lower, "upper": str.upper, "trim": str.strip, "trimAll": lambda cut, text: text.strip(cut),
    "trimPrefix": lambda part, text: text.removeprefix(part), "trimSuffix": lambda part, text: text.removesuffix(part),
    "replace": lambda old, new, text: text.replace(old, new), "contains": lambda part, text: part in text,
    "hasPrefix": lambda part, text: text.startswith(part), "hasSuffix": lambda part, text: text.endswith(part),
    "repeat": lambda count, text: text * count,
    "quote": lambda *values: " ".join(f'"{_plain(shown(each))}"' for each in values),
    "squote": lambda *values: " ".join(f"'{shown(each)}'" for each in values),
    "shellQuote": shlex.quote, "q": shlex.quote,
    "join": lambda sign, items: sign.join(map(shown, items)), "splitList": lambda sign, text: text.split(sign),
    "splitLines": str.splitlines, "catLines": lambda text: " ".join(text.splitlines()),
    "list": lambda *items: list(items),
    "first": lambda items: items[0], "last": lambda items: items[-1], "uniq": lambda items: list(dict.fromkeys(items)),
    "add": lambda *items: sum(map(int, items)), "sub": lambda a, b: int(a) - int(b), "mul": lambda a,
    b: int(a) * int(b),
    "atoi": int, "int": int, "toString": shown, "OS": lambda: "linux", "ARCH": lambda: "amd64",
    "exeExt": lambda: "", "toSlash": str, "fromSlash": str,
    "joinPath": lambda *parts: posixpath.normpath(posixpath.join(*parts)),
    "base": posixpath.basename, "osBase": posixpath.basename, "dir": lambda path: posixpath.dirname(path) or ".",
    "osDir": lambda path: posixpath.dirname(path) or ".", "ext": lambda path: posixpath.splitext(path)[1],
    "clean": posixpath.normpath, "osClean": posixpath.normpath,
}  # fmt: skip


def _plain(text: str) -> str:
    if re.search(r'["\\\n]', text):
        raise ValueError
    return text
