"""Options of a command line, read by the table of a program: exactly, without abbreviations."""

from __future__ import annotations

from planrun.risk.words import Arg

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Option = tuple[str, str, str, str]
    Reader = Callable[[str, Option, Arg | None], None]

# An option is (arity, kind, level, effect); its arity "" takes no value, "=" one, "[" perhaps an attached one.
_FLAG = ""
_VALUE = "="
_ATTACHED = "["
_DIGITS = frozenset("0123456789")


class Refused(Exception):
    """A rule does not accept a command."""

    def __init__(self, reason: str, *effects: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.effects = effects


def split_options(text: str) -> dict[str, Option]:
    """Return the options that a rule's text names."""
    return dict(_option(item) for item in text.split())


def _option(item: str) -> tuple[str, Option]:
    name, bracket, rest = item.partition("[=")
    if bracket:
        kind, _, raised = rest.partition("]")
        level, _, effect = raised.removeprefix(":").partition(":")
        return name, (_ATTACHED, kind, level, effect)
    name, sign, rest = item.partition("=")
    raised = (rest if sign else item).partition(":")[2]
    level, _, effect = raised.partition(":")
    if sign:
        return name, (_VALUE, rest.partition(":")[0], level, effect)
    return item.partition(":")[0], (_FLAG, "", level, effect)


def read_options(
    known: dict[str, Option], style: str, words: list[Arg], read: Reader, *, rest: bool
) -> list[Arg]:
    """Hand every option to `read` and return the operands; raises Refused for what is not in the table.

    With `rest` the words after the first operand belong to another command.
    """
    if style == "raw":
        return words
    if style == "tar":
        words = _with_dashes(known, words)
    operands: list[Arg] = []
    at = 0
    while at < len(words):
        arg = words[at]
        text = arg.value
        at += 1
        if (
            text is None
            or arg.trouble
            or text in ("", "-")
            or text[0] != "-"
            or (arg.glob and text[0] == "-")
        ):
            if arg.glob and text and text[0] == "-":
                raise Refused(f"{text}: a pattern that may become an option")
            operands.append(arg)
            if style == "posix" or rest:
                return operands + words[at:]
        elif text == "--":
            return operands + words[at:]
        elif text in known and known[text][1] == "module":
            read(text, known[text], _next(words, at, text))
            return operands + words[at:]
        elif style == "single" or text.startswith("--"):
            at = _long(known, style, words, at, read)
        else:
            at = _short(known, words, at, read)
    return operands


def _with_dashes(known: dict[str, Option], words: list[Arg]) -> list[Arg]:
    """Return the words with the bundle that tar takes first, without a dash, as options of their own."""
    text = words[0].value if words else None
    if not text or text[0] == "-" or words[0].glob:
        return words
    found: list[Arg] = []
    rest = words[1:]
    for letter in text:
        found.append(_part(words[0], "-" + letter))
        if known.get("-" + letter, ("", "", "", ""))[0] == _VALUE and rest:
            found.append(rest.pop(0))
    return found + rest


def _part(arg: Arg, text: str) -> Arg:
    return Arg(text, (arg.start, arg.end))


def _long(known: dict[str, Option], style: str, words: list[Arg], at: int, read: Reader) -> int:
    arg = words[at - 1]
    text = arg.value or ""
    name, sign, value = text.partition("=")
    if style == "single" and name.startswith("--") and name not in known:
        name = name[1:]
    option = known.get(name)
    if option is None:
        raise Refused(f"{name}: unknown option")
    if sign and option[0] == _FLAG:
        raise Refused(f"{name}: takes no value")
    if sign:
        read(name, option, _part(arg, value))
    elif option[0] == _VALUE:
        return _values(name, option, words, at, read)
    else:
        read(name, option, None)
    return at


def _values(name: str, option: Option, words: list[Arg], at: int, read: Reader) -> int:
    arity, kind, level, effect = option
    first, comma, second = kind.partition(",") if kind[:1] != "{" else (kind, "", "")
    read(name, (arity, first, level, effect), _next(words, at, name))
    if not comma:
        return at + 1
    if at + 1 >= len(words):
        raise Refused(f"{name}: its second value is missing")
    read(name, (arity, second, level, effect), words[at + 1])
    return at + 2


def _next(words: list[Arg], at: int, name: str) -> Arg:
    if at >= len(words):
        raise Refused(f"{name}: its value is missing")
    text = words[at].value
    if text is not None and text[:1] == "-" and len(text) > 1 and not _DIGITS.issuperset(text[1:]):
        raise Refused(f"{name}: its value looks like an option")
    return words[at]


def _short(known: dict[str, Option], words: list[Arg], at: int, read: Reader) -> int:
    arg = words[at - 1]
    text = arg.value or ""
    if _DIGITS.issuperset(text[1:]) and "-#" in known:
        read("-#", known["-#"], None)
        return at
    if len(text) > 2 and (text in known or (len(name := text.partition("=")[0]) > 2 and name in known)):
        return _long(known, "single", words, at, read)
    for index in range(1, len(text)):
        name = "-" + text[index]
        option = known.get(name)
        if option is None:
            raise Refused(f"{name}: unknown option")
        if option[0] == _FLAG:
            read(name, option, None)
            continue
        attached = text[index + 1 :]
        if attached:
            read(name, option, _part(arg, attached))
            return at
        if option[0] == _VALUE:
            read(name, option, _next(words, at, name))
            return at + 1
        read(name, option, None)
    return at
