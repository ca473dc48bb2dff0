"""Files of the workspace that a command runs by a word of its own, and commands that do not say what they run.

The first can run from a reviewed copy. Which files are reviewed does not depend on it: `planrun.approval.scripts`.
"""

from __future__ import annotations

from planrun.risk import paths
from planrun.risk.classifier import NO_SETTING, ground_of, scope_of
from planrun.risk.defaults import files_read_by
from planrun.risk.levels import Value
from planrun.risk.scope import TooMany
from planrun.risk.tokens import HOLES, NotUnderstood
from planrun.risk.words import Arg, literal, names_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from planrun.risk.classifier import Setting
    from planrun.risk.paths import Ground
    from planrun.risk.scope import Variant

_INTERPRETERS = names_in(
    "sh bash dash ash ksh zsh python python2 python3 pypy pypy3 node nodejs deno bun ruby perl php lua"
    " luajit Rscript tclsh pwsh ts-node tsx groovy elixir escript julia osascript source ."
)
_SHELLS = names_in("sh bash dash ash ksh zsh source .")
_OF_SHELLS = names_in("-c")
_INLINE = names_in("-c -e -m -p -E -r -pe -ne --eval --print --command --module")
_TELLING = names_in("--version -V --help -h")
# Options of interpreters whose value is the next word.
_VALUED = names_in("-o -O -W -X -r --require --import -I --rcfile --init-file --loader")
_WRAPPERS = names_in(
    "timeout nice env time command exec builtin nohup setsid stdbuf sudo doas ionice chrt xargs unbuffer npx"
    " pnpx bunx uvx parallel watch strace ltrace hyperfine chronic xvfb-run chroot taskset flock busybox toybox"
)
_MANAGERS = names_in("uv poetry pipenv hatch pdm rye bundle npm pnpm yarn mise conda pipx nix")
_PLACED = names_in("flock chroot taskset")  # whose first operand is no command
_RUNNING = names_in("run exec dlx x")  # which a manager has before the command that it starts
_TAKING = names_in(
    "-s --signal -u --user -g -C --chdir -I -d -o -a --with --extra --group --package --python --env-file"
)
_STARTS = names_in("-exec -execdir -ok -okdir -x -X --exec --exec-batch")  # of find and fd
_SYSTEM = ("/usr/", "/bin/", "/sbin/", "/opt/")  # whose programs are no code that the plan brings
_QUOTES = "\"'"
_NAME = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-+@%")


class Script(Value):
    """A file that a command runs.

    `path`: workspace-relative, normalised; `start`, `end`: offsets of the word in the text. For a program that is
    started without a shell, `start` is the index of the word and `end` is -1. When it is not certain in which folder a
    command runs, there is one for each folder, with the same offsets.
    """

    path: str
    start: int
    end: int


class Runs(Value):
    """What a text runs and writes: `made` are files that it writes by redirections.

    `unsaid`: words that do not say which file runs, or one outside, each with the plain name that it ends in, as in
    `"$DIR/x.sh"`; "" for any other. `strangers`: programs of which it is not known what they run, and modules, `-m x`.
    """

    scripts: tuple[Script, ...] = ()
    unsaid: tuple[tuple[str, str], ...] = ()
    made: tuple[str, ...] = ()
    strangers: tuple[str, ...] = ()
    understood: bool = True


def runs_of(text: str, setting: Setting = NO_SETTING) -> Runs:
    """Return what a text of bash runs, by its words alone, in order; nothing of a text that is not understood."""
    try:
        scope = scope_of(text, setting)
    except (NotUnderstood, TooMany):
        return Runs(understood=False)
    found: dict[tuple[str, int], Script] = {}
    unsaid: dict[tuple[str, str], None] = {}
    made: dict[str, None] = {}
    strangers: dict[str, None] = {}
    defined = functions_in(text)
    for part in scope.found:
        cwds = sorted(part.cwds, key=str)
        for variant in part.variants:
            written = [target for _, op, target, _ in variant.redirects if ">" in op]
            made |= dict.fromkeys([_inside(target, cwd, scope.ground) for target in written for cwd in cwds])
            inner = _inline(variant.words) or _given(variant)
            if inner and inner != text:
                within = runs_of(inner)
                unsaid |= dict.fromkeys([] if within.understood else [("a text that is not understood", "")])
                unsaid |= dict.fromkeys(within.unsaid)
                strangers |= dict.fromkeys(within.strangers)
            arg = None if part.simple.subject else _run(variant)
            if arg is not None and arg.trouble in _STRANGE:
                if arg.value not in defined:
                    strangers[_STRANGE[arg.trouble] + str(arg.value)] = None
                continue
            for cwd in cwds if arg is not None else ():
                assert arg is not None
                path = _inside(arg, cwd, scope.ground)
                if path and not arg.glob and "{}" not in path:
                    found[(path, arg.start)] = Script(path=path, start=arg.start, end=arg.end)
                elif not (arg.value or "").startswith(_SYSTEM):
                    unsaid[_unsaid(text[arg.start : arg.end])] = None
    made.pop("", None)
    return Runs(
        scripts=tuple(found.values()), unsaid=tuple(unsaid), made=tuple(made), strangers=tuple(strangers)
    )


def functions_in(text: str) -> set[str]:
    """Return the names of functions and aliases: those before `()`, behind `function` and behind `alias`."""
    words = text.replace(" (", "(").replace("(", " ( ").replace("=", " ").replace(";", " ; ").split()
    pairs = list(zip(words, [*words[1:], ""], strict=False))
    return {one for one, two in pairs if two == "("} | {
        two for one, two in pairs if one in ("function", "alias")
    }


def runs_of_argv(argv: Sequence[str], setting: Setting = NO_SETTING) -> Runs:
    """Return what a program runs that is started without a shell."""
    words = [literal(word) for word in argv]
    for word in words:
        if set(HOLES) & set(word.value or ""):
            word.value = None
    arg = _script(words)
    if arg is None:
        inner = _inline(words)
        return runs_of(inner).but(scripts=(), made=()) if inner else Runs()
    if arg.trouble in _STRANGE:
        return Runs(strangers=(_STRANGE[arg.trouble] + str(arg.value),))
    ground = ground_of(setting)
    at = words.index(arg) if arg in words else 0
    path = _inside(arg, ground.cwd, ground)
    if path and "{}" not in path:
        return Runs(scripts=(Script(path=path, start=at, end=-1),))
    if (arg.value or "").startswith(_SYSTEM):
        return Runs()
    return Runs(unsaid=(_unsaid(argv[at]),))


def _unsaid(text: str) -> tuple[str, str]:
    name = text.strip(_QUOTES).rpartition("/")[2]
    is_outside = "HOME" in text or text.strip(_QUOTES).startswith(("/", "~"))
    return text, name if "/" in text and name and not is_outside and _NAME.issuperset(name) else ""


def _inside(arg: Arg, cwd: str | None, ground: Ground) -> str:
    if arg.value is None:
        return ""
    where, path = paths.locate(arg.value, cwd, ground)
    return path if where == "inside" else ""


def _run(variant: Variant) -> Arg | None:
    """Return the word that names what a command runs; of code from its standard input the file that is read."""
    arg = _script(variant.words)
    if arg is None or arg.trouble != _STDIN:
        return arg
    for _, op, target, here in variant.redirects:
        if op == "<":
            return target
        if op in ("<<", "<<-") or here is not None:
            return None  # it stands in the text
        if op == "<<<" and target.value is not None:
            return None
    return arg


def _inline(words: Sequence[Arg]) -> str:
    """Return the text that a shell among some words runs; "" when there is none."""
    values = [word.value or "" for word in words]
    if values[:1] == ["trap"] and values[1:2] not in ([], ["-"], ["-p"], ["-l"]):
        return values[1]
    shells = [
        at for at, value in enumerate(values) if value.rpartition("/")[2] in (*_SHELLS, "su", "runuser")
    ]
    for at in range(shells[0] + 1, len(values) - 1) if shells else ():
        if _is_text(values[at]):
            return values[at + 1]
    return ""


def _given(variant: Variant) -> str:
    """Return the text that a shell reads from its command line: a here-document, a here-string."""
    name = (variant.words[0].value or "").rpartition("/")[2] if variant.words else ""
    for _, op, target, here in variant.redirects if name in _SHELLS else ():
        if here is not None:
            return here.value or ""
        if op == "<<<":
            return target.value or ""
    return ""


def _is_text(option: str) -> bool:
    """Whether the word behind an option of a shell is its code: `-c`, `-euc`."""
    return option[:1] == "-" and option[-1:] == "c" and option[1:].isalpha()


_STDIN = "code from the standard input"
_PROGRAM, _MODULE = "a program that is not known", "a module that is not known"
_STRANGE = {_PROGRAM: "", _MODULE: "-m "}


def _script(words: Sequence[Arg]) -> Arg | None:
    """Return the word that names the file which a command runs, without a value where it is not known.

    None when it runs none of the workspace but those that its program reads unasked. The `trouble` of a program about
    which nothing is known is _PROGRAM.
    """
    at = 0
    while at < len(words):
        name = words[at].value
        if name is None or words[at].glob:
            return words[at]
        base = name.rpartition("/")[2]
        after = _behind(words, at + 1)
        behind = words[after].value if after < len(words) else ""
        if base == "eval":
            return _unknown(words[at])
        if base == "coverage" and behind == "run":
            return _operand(words[after + 1 :], _INLINE, words[at])
        if base in _INTERPRETERS or base.rstrip("0123456789.") in _INTERPRETERS:
            if base in ("bun", "deno") and not any("." in (word.value or ".") for word in words[at + 1 :]):
                return None  # a task, which its settings name
            inline = _OF_SHELLS if base in _SHELLS else _INLINE
            return _operand(words[at + 1 :], inline, words[at])
        if base in ("find", "fd", "fdfind"):
            starts = [place for place, word in enumerate(words) if word.value in _STARTS]
            found = [_script(words[place + 1 :]) for place in starts]
            return next((arg for arg in found if arg is not None), None)
        if base == "command" and at + 1 < len(words) and words[at + 1].value in ("-v", "-V"):
            return None
        if (
            base in _MANAGERS
            and behind in _RUNNING
            and not (behind == "run" and base in ("npm", "pnpm", "yarn"))
        ):
            after = _behind(words, after + 1)
        elif base not in _WRAPPERS:
            if ("/" in name and not name.startswith(_SYSTEM)) or name == "{}":
                return words[at]
            return None if files_read_by(base) is not None else _unknown(words[at], _PROGRAM, base)
        at = after + (base in _PLACED)
    return None


def _unknown(arg: Arg, trouble: str = "", value: str | None = None) -> Arg:
    found = Arg(value, (arg.start, arg.end))
    found.trouble = trouble
    return found


def _behind(words: Sequence[Arg], at: int) -> int:
    """Return the index of the command behind a wrapper: after its options, assignments and numbers."""
    while at < len(words):
        value = words[at].value
        if value is None or (value[:1] != "-" and "=" not in value and not value[:1].isdigit()):
            break
        at += 2 if value in _TAKING else 1
    return min(at, len(words))


def _operand(words: Sequence[Arg], inline: frozenset[str], program: Arg) -> Arg | None:
    """Return the file among the words of an interpreter; None when its code stands in the text."""
    at = 0
    while at < len(words):
        value = words[at].value
        if value is None or words[at].glob:
            return words[at]
        if value == "-m" and inline == _INLINE and at + 1 < len(words) and words[at + 1].value is not None:
            return _module(words[at + 1 :])
        if value in inline or (inline == _OF_SHELLS and _is_text(value)):
            return words[at + 1] if at + 1 < len(words) and words[at + 1].value is None else None
        if value in _TELLING or (value == "-v" and at + 1 == len(words)):
            return None
        if value in ("-", "-s", "/dev/stdin"):
            return _unknown(program, _STDIN)
        if value == "--":
            return words[at + 1] if at + 1 < len(words) else _unknown(program, _STDIN)
        if value == "run" or value[:1] not in "-+":
            return words[at] if value != "run" else _operand(words[at + 1 :], inline, program)
        at += 2 if value in _VALUED or (inline == _OF_SHELLS and value.endswith("o")) else 1
    return _unknown(program, _STDIN)


def _module(words: Sequence[Arg]) -> Arg | None:
    """Return what `python -m` runs: a module is known as the program of its name."""
    name = words[0].value or ""
    known = next(
        (
            each
            for each in (name, name.replace("_", "-"), name.partition(".")[0])
            if files_read_by(each) is not None
        ),
        "",
    )
    return _script([literal(known), *words[1:]]) if known else _unknown(words[0], _MODULE, name)
