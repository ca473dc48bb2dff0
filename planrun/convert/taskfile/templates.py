"""The templates of Taskfiles, `{{…}}`: the grammar of Go's text/template as far as Taskfiles use it, as a small tree.

`values` works out what a tree means: some variables are known while a file is converted, others when a shell runs.

What the expressions of templates result in: values that are known now, and values and tests of a shell.

A value that is known now is a text, number, truth or list of Python. Anything that only a run knows is a `Value`.
"""

from __future__ import annotations

import posixpath
import re
import zlib

from planrun.convert.reader import UntranslatableError
from planrun.model.record import Record

TYPE_CHECKING = False

_BRACES = re.compile(
    r"\{\{(-\s)?(/\*.*?\*/|(?:\"(?:[^\"\\]|\\.)*\"|`[^`]*`|[^\"`}]|\}(?!\}))*?)(\s-)?\}\}", re.DOTALL
)
_TOKEN = re.compile(
    r"""\s*(?:(?P<text>"(?:[^"\\]|\\.)*"|`[^`]*`)|(?P<number>-?\d+)|(?P<field>\.[A-Za-z_]\w*(?:\.\w+)*|\.(?![\w.]))"""
    r"""|(?P<variable>\$\w*(?:\.\w+)*)|(?P<word>[A-Za-z_]\w*)|(?P<sign>:=|[()|,]))"""
)
_WORDS: dict[str, str | bool] = {"true": True, "false": False, "nil": ""}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
MAX_PARTS = 10_000
"""Pieces of one template: a file of nothing but braces must not take long."""


class Reference(Record):
    """A value that a template asks for, by its name: `.NAME`, `.NAME.FIELD`, `.` as "", `$name` with its sign."""

    name: str


class Call(Record):
    """A function with its arguments; the argument that a pipe hands on is the last one."""

    name: str
    args: tuple[Expression, ...] = ()


class Branch(Record):
    """`if`, its `else if`s and its `else`, whose condition is None."""

    arms: tuple[tuple[Expression | None, tuple[Piece, ...]], ...]


class Loop(Record):
    """`range`: the names of `$index, $item` ("" for none), what is gone through, and the body."""

    index: str
    item: str
    over: Expression
    body: tuple[Piece, ...]


if TYPE_CHECKING:
    from collections.abc import Iterator

    Expression = str | int | bool | Reference | Call
    Piece = str | Reference | Call | Branch | Loop


def pieces_of(text: str) -> list[Piece]:
    """Return the pieces of a template in order; raises UntranslatableError for what is no template."""
    reader = _Pieces(list(_cut(text)))
    found, end = reader.until_end()
    if end:
        raise UntranslatableError("template", f"`{{{{{end}}}}}` without its beginning")
    return found


def _cut(text: str) -> Iterator[tuple[bool, str]]:
    """Yield texts and what stands between braces, with the blanks that `{{-` and `-}}` take away gone."""
    at, trims = 0, False
    for count, match in enumerate(_BRACES.finditer(text)):
        if count > MAX_PARTS:
            raise UntranslatableError("template", f"more than {MAX_PARTS:,} templates in one text")
        before = text[at : match.start()]
        before = before.lstrip() if trims else before
        yield False, before.rstrip() if match[1] else before
        yield True, match[2].strip()
        trims, at = bool(match[3]), match.end()
    rest = text[at:]
    yield False, rest.lstrip() if trims else rest


class _Pieces:
    """Reads the pieces of one template from front to back."""

    def __init__(self, parts: list[tuple[bool, str]]) -> None:
        self.parts = parts
        self.at = 0

    def until_end(self) -> tuple[list[Piece], str]:
        """Return pieces up to an `else` or `end`, and that word with what follows it; "" at the end of the text."""
        found: list[Piece] = []
        while self.at < len(self.parts):
            is_action, text = self.parts[self.at]
            self.at += 1
            word = text.split(None, 1)[0] if is_action and text else ""
            if word in ("else", "end"):
                return found, text
            if not is_action:
                found += [text] if text else []
            elif word == "if":
                found.append(self._branch(text[2:]))
            elif word == "range":
                found.append(self._loop(text[5:]))
            elif not text.startswith("/*"):
                found.append(_shown(parse(text)))
        return found, ""

    def _branch(self, condition: str) -> Branch:
        arms: list[tuple[Expression | None, tuple[Piece, ...]]] = []
        test: Expression | None = parse(condition)
        while True:
            body, end = self.until_end()
            arms.append((test, tuple(body)))
            if end == "end":
                return Branch(arms=tuple(arms))
            if not end.startswith("else") or test is None:
                raise UntranslatableError("template", "an `if` without its `end`")
            rest = end.removeprefix("else").strip()
            test = parse(rest[2:]) if rest.startswith("if ") else None

    def _loop(self, head: str) -> Loop:
        names, sign, over = head.rpartition(":=")
        given = [name.strip().removeprefix("$") for name in names.split(",")] if sign else []
        body, end = self.until_end()
        if end != "end" or len(given) > 2:
            raise UntranslatableError("template", "a `range` without its `end`, or with an `else`")
        index, item = ("", *given)[-2:] if given else ("", "")
        return Loop(index=index, item=item, over=parse(over), body=tuple(body))


def _shown(found: Expression) -> Piece:
    return found if isinstance(found, Reference | Call | str) else _word(found)


def _word(value: int | bool) -> str:  # noqa: FBT001 - a value, not a switch
    return str(value).lower() if isinstance(value, bool) else str(value)


def parse(text: str) -> Expression:
    """Return the expression of an action, as `.NAME | default "x"`; raises UntranslatableError."""
    tokens, at = [], 0
    text = text.strip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _unreadable(text)
        tokens.append((match.lastgroup or "", match[match.lastgroup or 0]))
        at = match.end()
    parser = _Parser(tokens, text)
    found = parser.pipeline()
    if parser.tokens:
        raise _unreadable(text)
    return found


class _Parser:
    """A pipeline of commands, read from a list of tokens that gets shorter."""

    def __init__(self, tokens: list[tuple[str, str]], text: str, depth: int = 0) -> None:
        self.tokens = tokens
        self.text = text
        self.depth = depth

    def pipeline(self) -> Expression:
        """Read commands with `|` between them."""
        found = self._command(())
        while self.tokens and self.tokens[0][1] == "|":
            self.tokens.pop(0)
            found = self._command((found,))
        return found

    def _command(self, piped: tuple[Expression, ...]) -> Expression:
        if not self.tokens:
            raise _unreadable(self.text)
        kind, word = self.tokens[0]
        if kind == "word" and word not in _WORDS:
            self.tokens.pop(0)
            args = []
            while self.tokens and self.tokens[0] not in (("sign", "|"), ("sign", ")")):
                args.append(self._operand())
            return Call(name=word, args=(*args, *piped))
        found = self._operand()
        if piped or (self.tokens and self.tokens[0] not in (("sign", "|"), ("sign", ")"))):
            raise _unreadable(self.text)
        return found

    def _operand(self) -> Expression:
        kind, word = self.tokens.pop(0)
        if kind == "text":
            return _literal(word)
        if kind == "number":
            return int(word)
        if kind == "field":
            return Reference(name=word[1:])
        if kind == "variable":
            return Reference(name=word)
        if kind == "word":
            return _WORDS[word] if word in _WORDS else Call(name=word)
        if word == "(" and self.depth < 50:
            inner = _Parser(self.tokens, self.text, self.depth + 1)
            found = inner.pipeline()
            if self.tokens and self.tokens.pop(0)[1] == ")":
                return found
        raise _unreadable(self.text)


def _literal(word: str) -> str:
    if word.startswith("`"):
        return word[1:-1]
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), word[1:-1], flags=re.DOTALL)


def _unreadable(text: str) -> UntranslatableError:
    return UntranslatableError("template", f"`{{{{{' '.join(text.split())}}}}}` is worked out by go-task")


if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Known = str | int | bool | list[str]
    Reading = Callable[[Reference], "Known | Value"]

MAX_LIST = 1000
"""Members of a list that a template makes."""
_PLAIN = re.compile(r"[A-Za-z0-9._/@:+=, -]*\Z")
MACHINE = {"OS": "linux", "ARCH": "amd64", "exeExt": ""}
"""What a machine of CI usually is; a finding says that this is written into the plan."""


class Value(Record):
    """What a variable is: text that may hold `${{ … }}`, or something that only a shell knows.

    `lines` are what a script has to say first, and `text` then reads variables of the shell, when `is_shell`. `test`: a
    command of the shell that succeeds where this is true; "" where it is a text. `items`: the members of a list.
    """

    text: str = ""
    is_shell: bool = False
    lines: tuple[str, ...] = ()
    items: tuple[str, ...] | None = None
    test: str = ""
    later: Callable[[], Value] | None = (
        None  # works it out where it is read: it depends on a test of the script there
    )


def evaluate(expression: Expression, read: Reading) -> Known | Value:
    """Return what an expression results in; `read` looks a variable up. Raises UntranslatableError."""
    if isinstance(expression, Reference):
        return read(expression)
    if not isinstance(expression, Call):
        return expression
    if expression.name in MACHINE and not expression.args:
        return MACHINE[expression.name]
    if expression.name in ("date", "dateInZone"):
        return _date(expression)
    if expression.name == "env" and len(expression.args) == 1:
        return _environment(evaluate(expression.args[0], read))
    args = [evaluate(arg, read) for arg in expression.args]
    found: Known | Value | None
    if any(isinstance(arg, Value) for arg in args):
        found = _by_shell(expression.name, args)
    else:
        found = _now(expression.name, [arg for arg in args if not isinstance(arg, Value)])
    if found is None or (isinstance(found, list) and len(found) > MAX_LIST):
        raise UntranslatableError("template", f"the function `{expression.name}` is worked out by go-task")
    return found


def words_of(value: Known) -> str:
    """Return how a template prints a value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"[{' '.join(value)}]" if isinstance(value, list) else str(value)


def test_of(value: Known | Value) -> bool | Value:
    """Return whether a value counts as true, or the value with a test for the shell."""
    if not isinstance(value, Value):
        return bool(value)
    if value.test:
        return value
    read = in_shell(value)
    return read.but(test=f'[ -n "{_tolerant(read.text)}" ]')


def in_shell(value: Value) -> Value:
    """Return a value as one that a variable of the shell holds."""
    if value.test:
        return chosen(value, "true", "false")
    if value.is_shell:
        return value
    name = name_for(value.text)
    return Value(text=f"${{{name}}}", is_shell=True, lines=(*value.lines, f'{name}="{value.text}"'))


def chosen(test: Value, yes: str, no: str) -> Value:
    """Return one of two texts by a test of the shell; they stand between double quotes."""
    name = name_for(test.test + yes + "\0" + no)
    line = f'if {test.test}; then {name}="{yes}"; else {name}="{no}"; fi'
    return Value(text=f"${{{name}}}", is_shell=True, lines=(*test.lines, line))


def name_for(text: str) -> str:
    """Return the name of a variable of the shell for a piece of a script: the same for the same text."""
    return f"value_{zlib.crc32(text.encode('utf-8', 'surrogatepass')):08x}"


# The parts of Go's layouts of times, and what `date` calls them; longer ones first.
_LAYOUT = (
    ("January", "%B"), ("Monday", "%A"), ("-0700", "%z"), ("2006", "%Y"), ("Jan", "%b"), ("Mon", "%a"), ("MST", "%Z"),
    ("01", "%m"), ("02", "%d"), ("03", "%I"), ("04", "%M"), ("05", "%S"), ("06", "%y"), ("15", "%H"), ("PM", "%p"),
)  # fmt: skip


def _date(expression: Call) -> Value:
    """Return the present time as `date` prints it; raises UntranslatableError for any other."""
    layout = expression.args[0] if expression.args else ""
    when = expression.args[1] if len(expression.args) > 1 else ""
    if not isinstance(layout, str) or not isinstance(when, Call) or when.name != "now" or when.args:
        raise UntranslatableError("template", "a time that is worked out by go-task")
    zone = expression.args[2] if len(expression.args) > 2 else ""
    if zone not in ("", "UTC"):
        raise UntranslatableError("template", f"the time of the zone `{zone}`")
    form, rest = "", layout.replace("Z07:00", "Z" if zone == "UTC" else "\0")
    while rest:
        part = next((each for each in _LAYOUT if rest.startswith(each[0])), None)
        form += part[1] if part else rest[0]
        rest = rest[len(part[0]) if part else 1 :]
    if not re.fullmatch(r"[A-Za-z0-9%:_ ./,+TZ-]*", form):
        raise UntranslatableError("template", f"the form of a time, `{layout}`")
    name = name_for(f"date {form}")
    return Value(
        text=f"${{{name}}}", is_shell=True, lines=(f"{name}=\"$(date {'-u ' if zone else ''}'+{form}')\"",)
    )


def _environment(name: Known | Value) -> Value:
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise UntranslatableError("template", "a variable of the environment whose name is worked out")
    return Value(text=f"${{{name}:-}}", is_shell=True)


def _tolerant(text: str) -> str:
    """Return a text in which a variable that is not set is empty."""
    return re.sub(r"\$\{([A-Za-z_]\w*)\}", r"${\1:-}", text)


# What a shell works out.


def _by_shell(name: str, args: Sequence[Known | Value]) -> Value | None:
    if name in ("eq", "ne") and len(args) == 2:
        return _compared("=" if name == "eq" else "!=", args)
    if name in ("and", "or", "not", "empty"):
        return _combined("not" if name == "empty" else name, args)
    if name in ("contains", "hasPrefix", "hasSuffix") and len(args) == 2:
        return _within(name, args[0], args[1])
    if name == "ternary" and len(args) == 3 and isinstance(test := test_of(args[2]), Value):
        yes, no = args[0], args[1]
        fits = isinstance(yes, str) and isinstance(no, str) and _PLAIN.match(yes) and _PLAIN.match(no)
        return chosen(test, str(yes), str(no)) if fits else None
    if name == "default" and len(args) == 2:
        return _with_default(args[0], args[1])
    if name == "printf" and isinstance(args[0], str):
        return _printed(args[0], args[1:])
    value = args[-1]
    if isinstance(value, Value) and all(isinstance(arg, str) and _PLAIN.match(arg) for arg in args[:-1]):
        return _working_cut(name, [str(arg) for arg in args[:-1]], in_shell(value))
    return None


def _within(name: str, part: Known | Value, value: Known | Value) -> Value | None:
    """Return the test whether a text that a shell knows has a part."""
    if not isinstance(part, str) or not isinstance(value, Value) or not _PLAIN.match(part):
        return None
    read = in_shell(value)
    before, after = "" if name == "hasPrefix" else "*", "" if name == "hasSuffix" else "*"
    test = f'case "{_tolerant(read.text)}" in {before}"{part}"{after}) true ;; *) false ;; esac'
    return Value(is_shell=True, lines=read.lines, test=f"{{ {test}; }}")


def _compared(sign: str, args: Sequence[Known | Value]) -> Value:
    sides: list[str] = []
    lines: list[str] = []
    for arg in args:
        if isinstance(arg, Value):
            read = in_shell(arg)
            lines += read.lines
            sides.append(f'"{_tolerant(read.text)}"')
        else:
            sides.append("'" + words_of(arg).replace("'", "'\\''") + "'")
    return Value(is_shell=True, lines=tuple(dict.fromkeys(lines)), test=f"[ {sides[0]} {sign} {sides[1]} ]")


def _combined(name: str, args: Sequence[Known | Value]) -> Value | None:
    tests: list[str] = []
    lines: list[str] = []
    for arg in args:
        found = test_of(arg)
        if isinstance(found, Value):
            tests.append(found.test)
            lines += found.lines
        else:
            tests.append("true" if found else "false")
    unique = tuple(dict.fromkeys(lines))
    if name == "not":
        return Value(is_shell=True, lines=unique, test=f"! {{ {tests[0]}; }}") if len(tests) == 1 else None
    glue = " && " if name == "and" else " || "
    return Value(is_shell=True, lines=unique, test="{ " + glue.join(tests) + "; }")


def _with_default(otherwise: Known | Value, value: Known | Value) -> Value | None:
    if not isinstance(value, Value):
        if isinstance(otherwise, list) or isinstance(value, list):
            return None
        return _as_value(value or otherwise)
    read, lines = in_shell(value), list[str]()
    if isinstance(otherwise, Value):
        other = in_shell(otherwise)
        lines, text = list(other.lines), _tolerant(other.text)
    else:
        text = words_of(otherwise)
        if not _PLAIN.match(text):
            return None
    name = name_for(f"{read.text}\0{text}")
    lines += [*read.lines, f'{name}="{_tolerant(read.text)}"', f'[ -n "${{{name}}}" ] || {name}="{text}"']
    return Value(text=f"${{{name}}}", is_shell=True, lines=tuple(dict.fromkeys(lines)))


def _as_value(known: Known | Value) -> Value:
    return known if isinstance(known, Value) else Value(text=words_of(known))


def _printed(form: str, args: Sequence[Known | Value]) -> Value | None:
    parts = re.split(r"%[sdv]", form)
    if len(parts) != len(args) + 1 or "%" in "".join(parts) or not all(_PLAIN.match(part) for part in parts):
        return None
    text, lines = parts[0], list[str]()
    for part, arg in zip(parts[1:], args, strict=True):
        value = in_shell(arg) if isinstance(arg, Value) else Value(text=words_of(arg))
        if not isinstance(arg, Value) and not _PLAIN.match(value.text):
            return None
        lines += value.lines
        text += value.text + part
    return Value(text=text, is_shell=True, lines=tuple(dict.fromkeys(lines)))


def _working_cut(name: str, words: list[str], value: Value) -> Value | None:
    """Return what bash makes of a value by one of its expansions."""
    kept = name_for(f"{name}\0{words}\0{value.text}")
    match name, words:
        case "lower", []:
            expansion = f"${{{kept},,}}"
        case "upper", []:
            expansion = f"${{{kept}^^}}"
        case "replace", [old, new] if old:
            expansion = f"${{{kept}//{old.replace('/', chr(92) + '/')}/{new}}}"
        case "catLines", []:
            expansion = f"${{{kept}//$'\\n'/ }}"
        case "trimPrefix", [start]:
            expansion = f"${{{kept}#{start}}}"
        case "trimSuffix", [end]:
            expansion = f"${{{kept}%{end}}}"
        case _:
            return None
    lines = (*value.lines, f'{kept}="{_tolerant(value.text)}"', f'{kept}="{expansion}"')
    return Value(text=f"${{{kept}}}", is_shell=True, lines=lines)


# What is worked out now: the functions of Go's templates, of slim-sprig and of go-task that Taskfiles use.


def _now(name: str, args: Sequence[Known]) -> Known | None:
    function = _FUNCTIONS.get(name)
    if function is None:
        return None
    try:
        return function(*args)
    except (TypeError, ValueError, IndexError, AttributeError):
        return None


def _text(value: Known) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _items(value: Known) -> list[str]:
    if not isinstance(value, list):
        raise TypeError
    return value


def _format(form: Known, *args: Known) -> str:
    if not re.fullmatch(r"(?:[^%]|%[sdv%])*", _text(form)):
        raise ValueError
    rest = [words_of(arg) for arg in args]
    found = re.sub(r"%[sdv]", lambda _match: rest.pop(0), _text(form))
    if rest:
        raise ValueError
    return found.replace("%%", "%")


def _first_true(*args: Known) -> Known:
    return next((arg for arg in args if arg), args[-1])


def _index(of: Known, at: Known) -> str:
    if not isinstance(at, int) or at < 0:
        raise TypeError
    return _items(of)[at]


_FUNCTIONS: dict[str, Callable[..., Known]] = {
    "eq": lambda first, *others: any(type(first) is type(each) and first == each for each in others),
    "ne": lambda one, two: one != two,
    "not": lambda value: not value,
    "and": lambda *args: next((arg for arg in args if not arg), args[-1]),
    "or": _first_true,
    "coalesce": _first_true,
    "default": lambda otherwise, value: value or otherwise,
    "ternary": lambda yes, no, test: yes if test else no,
    "empty": lambda value: not value,
    "lower": lambda text: _text(text).lower(),
    "upper": lambda text: _text(text).upper(),
    "trim": lambda text: _text(text).strip(),
    "trimPrefix": lambda start, text: _text(text).removeprefix(_text(start)),
    "trimSuffix": lambda end, text: _text(text).removesuffix(_text(end)),
    "replace": lambda old, new, text: _text(text).replace(_text(old), _text(new)),
    "contains": lambda part, text: _text(part) in _text(text),
    "hasPrefix": lambda start, text: _text(text).startswith(_text(start)),
    "hasSuffix": lambda end, text: _text(text).endswith(_text(end)),
    "splitList": lambda mark, text: _text(text).split(_text(mark)),
    "splitLines": lambda text: _text(text).splitlines(),
    "catLines": lambda text: " ".join(_text(text).splitlines()),
    "join": lambda mark, items: _text(mark).join(_items(items)),
    "list": lambda *items: [words_of(item) for item in items],
    "first": lambda items: _items(items)[0],
    "last": lambda items: _items(items)[-1],
    "index": _index,
    "len": len,
    "printf": _format,
    "print": lambda *args: "".join(words_of(arg) for arg in args),
    "toString": words_of,
    "quote": lambda text: f'"{_text(text)}"',
    "squote": lambda text: f"'{_text(text)}'",
    "toSlash": _text,
    "fromSlash": _text,
    "joinPath": lambda *parts: posixpath.normpath(posixpath.join(*map(_text, parts))),
    "base": lambda path: posixpath.basename(_text(path)),
    "dir": lambda path: posixpath.dirname(_text(path)) or ".",
    "ext": lambda path: posixpath.splitext(_text(path))[1],
    "clean": lambda path: posixpath.normpath(_text(path)),
    "osBase": lambda path: posixpath.basename(_text(path)),
    "osDir": lambda path: posixpath.dirname(_text(path)) or ".",
}
