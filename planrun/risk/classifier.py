"""From the text of a command to its class of risk: `read-only`, `low`, `medium` or `high`.

The class says what an unattended runner may assume about the text when bash runs it in the workspace. What is not
understood in full is high. docs/risk.md has the rules.
"""

from __future__ import annotations

from planrun.risk import commands, lexer
from planrun.risk.chains import History, Trace
from planrun.risk.levels import HIGH, Finding, Value, high, rank, together
from planrun.risk.paths import Ground
from planrun.risk.programs.dangerous import effects_in
from planrun.risk.scope import Scope, TooMany
from planrun.risk.syntax import WORDS_OF_GRAMMAR, parse
from planrun.risk.tokens import HOLES, NotUnderstood
from planrun.risk.words import HOME, PRINTED, Arg, literal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from planrun.risk.scope import Found
    from planrun.risk.tokens import Token

MAX_LENGTH = 8_192
"""Characters of one text; a longer one is high. Reading it takes some milliseconds."""
MAX_WORDS = 1500
"""Words and signs of one text outside its substitutions; with more it is high. One takes up to 30 microseconds."""
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./:,+=@%^ ")
_LAST: dict[str, list[Token]] = {}  # tokens of one text; nothing changes them once they are read
_UNSEEN = frozenset(
    chr(code)
    for code in (
        0x34F,
        0x115F,
        0x1160,
        0x17B4,
        0x17B5,
        0x3164,
        *range(0x180B, 0x1810),
        *range(0xFE00, 0xFE10),
    )
)


class Setting(Value):
    """Where a text would run, as far as it is known.

    `cwd`: workspace-relative folder; `variables`: values that are known; `places`: absolute prefixes of paths that
    count as ordinary files of the workspace; `workspace`: its absolute path, "" when it is not known.
    """

    cwd: str = ""
    variables: Mapping[str, str] = {}
    places: tuple[str, ...] = ()
    workspace: str = ""


class Command(Value):
    """One simple command of a text.

    `words` after quotes are gone, None for one that is not known before it runs; `spans` their offsets in the text;
    `cwd` the workspace-relative folder it runs in, None when that is not certain.
    """

    words: tuple[str | None, ...]
    spans: tuple[tuple[int, int], ...] = ()
    cwd: str | None = ""
    level: str
    reason: str
    effects: tuple[str, ...] = ()


class Risk(Value):
    """The class of a text, the part that decides it, its effects, and every simple command in it, in order."""

    level: str
    reason: str
    effects: tuple[str, ...] = ()
    commands: tuple[Command, ...] = ()
    understood: bool = True
    overwrites: tuple[
        str, ...
    ] = ()  # files of the workspace whose content is lost if they have any; see Trace
    sweeps: tuple[tuple[str, str, str], ...] = ()  # what is read that no word names; see names.Sweep
    bare: bool = False  # `commands` are all there is: no redirections, no assignments, nothing around them


NO_SETTING = Setting()


def classify(text: str, setting: Setting = NO_SETTING) -> Risk:
    """Return the class of a text that `bash -c` runs; never raises, whatever the text is."""
    try:
        found = _classified(text, setting)
    except NotUnderstood as not_understood:
        found = _opaque(f"not understood: {not_understood.reason}")
    except TooMany:
        found = _opaque("too many commands to follow")
    return found if found.level != HIGH else with_effects(found, text)


def with_effects(found: Risk, text: str) -> Risk:
    """Add what commands do that may stand anywhere in a text of class high, quoted or behind others."""
    more = effects_in(text[:MAX_LENGTH])
    return found if more <= set(found.effects) else found.but(effects=tuple(sorted({*found.effects, *more})))


def classify_argv(argv: tuple[str, ...], setting: Setting = NO_SETTING) -> Risk:
    """Return the class of a program that is started without a shell; its words mean nothing but themselves."""
    odd = next((reason for reason in map(odd_character, argv) if reason), "")
    if odd or not argv or sum(map(len, argv)) > MAX_LENGTH:
        return _opaque(odd or ("too long to follow" if argv else "no command at all"))
    words = [literal(word) for word in argv]
    for arg in words:
        if set(HOLES) & set(arg.value or ""):
            arg.value = None
    ground = ground_of(setting)
    trace = Trace()
    finding = commands.of_words(words, commands.Site(ground.cwd, ground, trace), builtins=False)
    command = Command(words=tuple(arg.value for arg in words), cwd=ground.cwd, **vars(finding))
    found = _risk((command,), [(_cut(" ".join(argv)), finding)])
    if found.level == HIGH:
        found = with_effects(found, "\n".join((" ".join(argv), *argv)))
    return _done(found, trace, bare=True)


def _done(found: Risk, files: Trace | History, *, bare: bool) -> Risk:
    overwrites, sweeps = tuple(dict.fromkeys(files.overwrites)), tuple(dict.fromkeys(files.sweeps))
    return found.but(bare=bare, overwrites=overwrites, sweeps=sweeps)


def ground_of(setting: Setting) -> Ground:
    """Return what paths in a text are measured against."""
    return Ground(setting.cwd, setting.variables, setting.places, setting.workspace)


def scope_of(text: str, setting: Setting) -> Scope:
    """Return what is found in a text; raises NotUnderstood and TooMany."""
    odd = odd_character(text)
    if odd:
        raise NotUnderstood(odd, 0)
    if len(text) > MAX_LENGTH:
        raise TooMany
    tokens = _lexed(text)
    if len(tokens) > MAX_WORDS:
        raise TooMany
    ground, names = ground_of(setting), "$" in text
    scope = Scope(tokens, ground, loops_move=False, has_names=names)
    parse(tokens, scope)
    if scope.loop_moved:
        scope = Scope(tokens, ground, loops_move=True, has_names=names)
        parse(tokens, scope)
    scope.found.sort(key=lambda found: found.simple.start)
    return scope


def _lexed(text: str) -> list[Token]:
    """Return the tokens of a text. Those of the last one are kept: its scripts are looked for after its class."""
    tokens = _LAST.get(text)
    if tokens is None:
        tokens = lexer.lex(text)
        _LAST.clear()
        _LAST[text] = tokens
    return tokens


def _classified(text: str, setting: Setting) -> Risk:
    found = of_plain(text, setting)
    return found if found is not None else of_any(text, setting)


def of_plain(text: str, setting: Setting) -> Risk | None:
    """Return the class of a text that is one command of plain words, without the grammar: half the time.

    None: it is something else, or too long.
    """
    line = text.removesuffix("\n")
    if not _PLAIN.issuperset(line) or len(line) > MAX_WORDS or PRINTED in line:
        return None
    words: list[Arg] = []
    at = 0
    for word in line.split(" "):
        end = at + len(word)
        if word:
            words.append(Arg(word, (at, end)))
        at = end + 1
    first = words[0].value if words else None
    if not first or "=" in first or first in WORDS_OF_GRAMMAR:
        return None
    ground = ground_of(setting)
    finding, trace = commands.of_plain(words, ground)
    spans = tuple([(word.start, word.end) for word in words])
    values = tuple([word.value for word in words])
    command = Command(
        words=values,
        spans=spans,
        cwd=ground.cwd,
        level=finding.level,
        reason=finding.reason,
        effects=finding.effects,
    )
    excerpt = _cut(line[words[0].start : words[-1].end])
    return _done(_risk((command,), [(excerpt, finding)]), trace, bare=True)


def of_any(text: str, setting: Setting) -> Risk:
    """Return the class of any text by the grammar of bash; raises NotUnderstood and TooMany."""
    scope = scope_of(text, setting)
    if not scope.found:
        return _opaque("no command at all")
    parts: list[tuple[str, Finding]] = [(_cut(text[at : at + 40]), finding) for at, finding in scope.marks]
    listed = []
    history = History()
    for found in scope.found:
        finding = commands.of_found(found, scope.ground, history)
        simple = found.simple
        words = [
            *simple.words,
            *(word for _, word in simple.assignments),
            *(word for _, _, word, _ in simple.redirects),
        ]
        excerpt = _cut(text[simple.start : max((word.end for word in words), default=simple.start)])
        parts.append((excerpt, finding))
        if not found.simple.subject and found.simple.words:
            listed.append(_command(found, finding))
    is_bare = not scope.marks and all(map(_is_bare, scope.found))
    return _done(_risk(tuple(listed), parts), history, bare=is_bare)


def _is_bare(found: Found) -> bool:
    simple = found.simple
    return bool(simple.words) and not (simple.subject or simple.assignments or simple.redirects)


def _command(found: Found, finding: Finding) -> Command:
    variants = found.variants
    words = [
        values[0]
        if len(set(values)) == 1 and values[0] is not None and not (HOME in values[0] or PRINTED in values[0])
        else None
        for values in zip(*([arg.value for arg in variant.words] for variant in variants), strict=True)
    ]
    cwds = tuple(found.cwds)
    return Command(
        words=tuple(words),
        spans=tuple((word.start, word.end) for word in found.simple.words),
        cwd=cwds[0] if len(cwds) == 1 else None,
        level=finding.level,
        reason=finding.reason,
        effects=finding.effects,
    )


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:59]}…"


def _risk(listed: tuple[Command, ...], parts: list[tuple[str, Finding]]) -> Risk:
    whole = together([finding for _, finding in parts])
    shown, decides = max(parts, key=lambda part: rank(part[1].level))
    return Risk(
        level=whole.level, reason=f"`{shown}`: {decides.reason}", effects=whole.effects, commands=listed
    )


def _opaque(reason: str) -> Risk:
    return Risk(level=HIGH, reason=reason, effects=high(reason).effects, understood=False)


def odd_character(text: str) -> str:
    """Say which character hides or mimics something; "" when there is none."""
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return ""
    for char in text:
        mimics = "\uff00" <= char <= "\uffef" or char in _UNSEEN
        if mimics or not (char.isprintable() or char in "\n\t" or char in HOLES):
            return f"the character U+{ord(char):04X}, which hides or mimics something"
    return ""


__all__ = ["Arg", "Command", "Risk", "Setting", "classify", "classify_argv"]
