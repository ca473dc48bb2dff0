"""Files of the workspace that a command runs: what has to be looked at, and kept, together with the command."""

from __future__ import annotations

from planrun.risk import paths
from planrun.risk.classifier import NO_SETTING, ground_of, scope_of
from planrun.risk.levels import Value
from planrun.risk.scope import TooMany
from planrun.risk.tokens import HOLES, NotUnderstood
from planrun.risk.words import literal, names_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from planrun.risk.classifier import Setting
    from planrun.risk.paths import Ground
    from planrun.risk.words import Arg

_INTERPRETERS = names_in(
    "sh bash dash ash ksh zsh python python2 python3 pypy pypy3 node nodejs deno bun ruby perl php lua"
    " luajit Rscript tclsh pwsh ts-node tsx groovy elixir escript julia osascript source ."
)
_SHELLS = names_in("sh bash dash ash ksh zsh source .")
_INLINE = names_in("-c -e -m -p -E -r -pe -ne --eval --print --command --module")
# Options of interpreters whose value is the next word.
_VALUED = names_in("-o -O -W -X -r --require --import -I --rcfile --init-file --loader")
_WRAPPERS = names_in(
    "timeout nice env time command exec builtin nohup setsid stdbuf sudo doas ionice chrt xargs unbuffer"
    " uv poetry pipenv hatch pdm rye bundle npx coverage run"
)


class Script(Value):
    """A file that a command runs.

    `path`: workspace-relative, normalised; `start`, `end`: offsets of the word in the text. For a program that is
    started without a shell, `start` is the index of the word and `end` is -1. When it is not certain in which folder a
    command runs, there is one for each folder, with the same offsets.
    """

    path: str
    start: int
    end: int


def scripts(text: str, setting: Setting = NO_SETTING) -> tuple[Script, ...]:
    """Return the files that a text runs, by its words alone, in order; none of a text that is not understood."""
    return known_scripts(text, setting) or ()


def known_scripts(text: str, setting: Setting = NO_SETTING) -> tuple[Script, ...] | None:
    """Return the same, but None for a text that is not understood, or in which there is no command."""
    try:
        scope = scope_of(text, setting)
    except (NotUnderstood, TooMany):
        return None
    if not scope.found:
        return None
    found: dict[tuple[str, int], Script] = {}
    for part in scope.found:
        if part.simple.subject:
            continue
        for variant in part.variants:
            arg = _script(variant.words)
            for cwd in sorted(part.cwds, key=str) if arg is not None else ():
                path = _inside(arg, cwd, scope.ground)
                if arg is not None and path:
                    found[(path, arg.start)] = Script(path=path, start=arg.start, end=arg.end)
    return tuple(found.values())


def scripts_of_argv(argv: Sequence[str], setting: Setting = NO_SETTING) -> tuple[Script, ...]:
    """Return the file that a program runs which is started without a shell."""
    words = [literal(word) for word in argv]
    arg = _script(words)
    if arg is None or set(HOLES) & set(arg.value or ""):
        return ()
    ground = ground_of(setting)
    path = _inside(arg, ground.cwd, ground)
    return (Script(path=path, start=words.index(arg), end=-1),) if path else ()


def _inside(arg: Arg | None, cwd: str | None, ground: Ground) -> str:
    if arg is None or arg.value is None:
        return ""
    where, path = paths.locate(arg.value, cwd, ground)
    return path if where == "inside" else ""


def _script(words: Sequence[Arg]) -> Arg | None:
    """Return the word that names the file which a command runs; None when it runs none of the workspace."""
    at = 0
    while at < len(words):
        name = words[at].value
        if name is None or words[at].glob:
            return None
        base = name.rpartition("/")[2]
        if base in _INTERPRETERS or base.rstrip("0123456789.") in _INTERPRETERS:
            return _operand(words[at + 1 :], inline=frozenset(("-c",)) if base in _SHELLS else _INLINE)
        if base not in _WRAPPERS:
            return words[at] if "/" in name else None
        at = _behind(words, at + 1)
    return None


def _behind(words: Sequence[Arg], at: int) -> int:
    """Return the index of the command behind a wrapper: after its options, assignments and numbers."""
    while at < len(words):
        value = words[at].value or ""
        if value[:1] != "-" and "=" not in value and not value[:1].isdigit():
            break
        at += 1
    return at


def _operand(words: Sequence[Arg], inline: frozenset[str]) -> Arg | None:
    """Return the file among the words of an interpreter; None when it runs something else."""
    at = 0
    while at < len(words):
        value = words[at].value
        if value is None or words[at].glob or value in inline or value == "-":
            return None
        if value == "--":
            return words[at + 1] if at + 1 < len(words) else None
        if value == "run" or value[:1] not in "-+":
            return words[at] if value != "run" else _operand(words[at + 1 :], inline)
        at += 2 if value in _VALUED else 1
    return None
