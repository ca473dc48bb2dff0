"""The class of a whole action: its command, the shell that reads it, and the variables that the plan sets for it.

The class of a call of a tool: by the same rules for paths and commands that scripts are looked at with.
"""

from __future__ import annotations

from planrun.risk import paths
from planrun.risk.classifier import Risk, classify, classify_argv, ground_of, with_effects
from planrun.risk.levels import HIGH, LOW, MEDIUM, READ_ONLY, Finding, high, together
from planrun.risk.paths import harm
from planrun.risk.tokens import HOLES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from planrun.risk.classifier import Setting

_SHELLS = frozenset(("bash", "sh", "dash"))
# Options of a shell that leave the meaning of a text as it is.
_OPTIONS = frozenset("eufxvpno")
_LONG = frozenset(("--noprofile", "--norc", "--posix"))
_MODES = frozenset(("pipefail", "errexit", "nounset", "xtrace", "noglob", "verbose", "inherit_errexit"))


def of_script(script: str, shell: Sequence[str], env: Mapping[str, str | None], setting: Setting) -> Risk:
    """Return the class of a script for a shell; see `of_argv`. `shell` is the argv before the script, `-c` included."""
    if shell and not reads_bash(shell):
        return with_effects(_high(f"inline code of {shell[0]}, which is not looked into"), script)
    return of_environment(env, setting) or classify(script, setting)


def of_argv(argv: tuple[str, ...], env: Mapping[str, str | None], setting: Setting) -> Risk:
    """Return the class of a program with its arguments.

    `env` are the variables that are set for it, None for a value that is not known yet.
    """
    return of_environment(env, setting) or classify_argv(argv, setting)


def reads_bash(shell: Sequence[str]) -> bool:
    """Say whether an argv starts bash, or a shell that means the same by the texts that are understood."""
    name, *options = shell
    if name.rpartition("/")[2] not in _SHELLS or (
        name.startswith("/") and (not name.startswith(("/bin/", "/usr/")) or ".." in name.split("/"))
    ):
        return False
    if "/" in name and not name.startswith("/"):
        return False
    takes_mode = False
    for option in options:
        if takes_mode:
            if option not in _MODES:
                return False
            takes_mode = False
        elif option in _LONG:
            continue
        elif option[:1] in ("-", "+") and _OPTIONS.union("c").issuperset(option[1:]):
            takes_mode = "o" in option
        else:
            return False
    return not takes_mode


def of_environment(env: Mapping[str, str | None], setting: Setting) -> Risk | None:
    """Return the class of an environment; None when nothing stands against it."""
    ground = ground_of(setting)
    for name, value in env.items():
        reason = harm(name, value or "", ground.cwd, ground)
        if reason or (value is None and harm(name, "/", ground.cwd, ground)):
            return _high(f"its environment sets {reason or name}")
    return None


def _high(reason: str) -> Risk:
    return Risk(level=HIGH, reason=reason, effects=("unknown",), understood=False)


if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from planrun.risk.classifier import Command, Setting
    from planrun.risk.paths import Ground

    Args = Mapping[str, Any]

_READS = Finding(level=READ_ONLY, reason="only reads and prints")
_WRITES = Finding(level=LOW, reason="writes in the workspace", effects=("writes",))
_DELETES = Finding(level=MEDIUM, reason="deletes files", effects=("destroys", "writes"))
_HOOKS = Finding(level=MEDIUM, reason="runs the hooks of the repository", effects=("code", "writes"))
_PATCHES = Finding(level=MEDIUM, reason="changes the files that a patch names", effects=("writes",))
_UNKNOWN = high("a path that is not known before it starts")
# Lines of a patch that name files, and what stands before the name there.
_HEADS = ("--- ", "+++ ", "rename from ", "rename to ", "copy from ", "copy to ", "diff --git ")


def of_call(name: str, args: Args, env: Mapping[str, str | None], setting: Setting) -> Risk:
    """Return the class of a call; what is not known yet stands in `args` as a placeholder (HOLES).

    `env` are the variables that are set for it, None for a value that is not known yet. `commands` of the result are
    the ones of git that the tool runs.
    """
    against = of_environment(env, setting)
    if against is not None:
        return against
    if name in _GIT:
        return _of_git(name, args, setting)
    ground = ground_of(setting)
    found = together(list(_FILES[name](args, ground)))
    replaced = _known(args.get(_REPLACES[name])) if name in _REPLACES else None
    return Risk(
        level=found.level,
        reason=f"`{name}`: {found.reason}",
        effects=found.effects,
        overwrites=(paths.locate(replaced, ground.cwd, ground)[1],)
        if replaced and args.get("mode", "overwrite") == "overwrite"
        else (),
    )


def _known(value: object) -> str | None:
    """Return a text as it is; None when a part of it is not known."""
    text = value if isinstance(value, str) else ""
    return None if not text or set(HOLES) & set(text) else text


def _each(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else (value,)


def _checked(
    value: object, ground: Ground, look: Callable[[str, str | None, Ground], str], otherwise: Finding
) -> Iterator[Finding]:
    for one in _each(value):
        path = _known(one)
        reason = "" if path is None else look(path, ground.cwd, ground)
        yield _UNKNOWN if path is None else high(reason) if reason else otherwise


def _reads(args: Args, ground: Ground) -> Iterator[Finding]:
    yield from _checked(args.get("path"), ground, paths.reading, _READS)


def _lists(args: Args, ground: Ground) -> Iterator[Finding]:
    for one in _each(args.get("patterns")):
        base = (_known(one) or "").split("*")[0].split("?")[0].split("[")[0].rpartition("/")[0]
        yield from _checked(base or ".", ground, paths.inside, _READS)


def _writes(args: Args, ground: Ground) -> Iterator[Finding]:
    written = args.get("file", args.get("path", args.get("paths")))
    yield from _checked(written, ground, paths.writing, _WRITES)
    if args.get("executable"):
        yield Finding(level=MEDIUM, reason="makes a program", effects=("code", "writes"))


def _copies(args: Args, ground: Ground) -> Iterator[Finding]:
    yield from _checked(args.get("path"), ground, paths.reading, _WRITES)
    yield from _checked(args.get("to"), ground, paths.writing, _WRITES)


def _moves(args: Args, ground: Ground) -> Iterator[Finding]:
    yield from _checked(args.get("path"), ground, paths.deleting, _WRITES)
    yield from _checked(args.get("to"), ground, paths.writing, _WRITES)


def _removes(args: Args, ground: Ground) -> Iterator[Finding]:
    yield from _checked(args.get("paths"), ground, paths.deleting, _DELETES)


_FILES: dict[str, Callable[[Args, Ground], Iterator[Finding]]] = {
    "file.read": _reads,
    "file.glob": _lists,
    "file.write": _writes,
    "file.replace": _writes,
    "file.mkdir": _writes,
    "json_patch": _writes,
    "file.copy": _copies,
    "file.move": _moves,
    "file.remove": _removes,
}


_REPLACES = {
    "file.write": "path",
    "file.copy": "to",
    "file.move": "to",
}  # the argument that names what is lost


def _of_git(name: str, args: Args, setting: Setting) -> Risk:
    commands: list[Command] = []
    findings: list[Finding] = []
    for argv in _GIT[name](args):
        found = classify_argv(argv, setting)
        commands += found.commands
        findings.append(Finding(level=found.level, reason=found.reason, effects=found.effects))
    if name == "git.commit" and args.get("hooks", False) is not False:
        findings.append(_HOOKS)
    if name == "git.apply_patch":
        findings += [_of_patch(args, ground_of(setting))]
    whole = together(findings)
    reason = whole.reason if whole.reason.startswith("`") else f"`{name}`: {whole.reason}"
    return Risk(level=whole.level, reason=reason, effects=whole.effects, commands=tuple(commands))


def _of_patch(args: Args, ground: Ground) -> Finding:
    """Look at the files that a patch names, as far as its text is known."""
    text = args.get("patch")
    for line in text.splitlines() if isinstance(text, str) else ():
        for path in _named(line) if line.startswith(_HEADS) else ():
            reason = paths.writing(path, "", ground)
            if reason and not path.startswith("/"):
                return high(f"the patch names {reason}")
    return _PATCHES


def _named(line: str) -> Iterator[str]:
    for word in line.replace('"', " ").replace("\t", " ").split(" ")[1:]:
        yield from filter(None, (word, word.partition("/")[2]))


def _status(_args: Args) -> Iterator[tuple[str, ...]]:
    yield ("git", "status")


def _diff(args: Args) -> Iterator[tuple[str, ...]]:
    base = (str(args["base"]),) if "base" in args else ()
    yield ("git", "diff", *base, "--", *[str(path) for path in _each(args.get("paths", ()))])


def _commit(args: Args) -> Iterator[tuple[str, ...]]:
    if "paths" in args:
        yield ("git", "add", "--all", "--", *[str(path) for path in _each(args["paths"])])
    yield ("git", "commit", "--file=-")


def _apply(args: Args) -> Iterator[tuple[str, ...]]:
    if "file" in args:
        yield ("git", "apply", "--", str(args["file"]))


_GIT: dict[str, Callable[[Args], Iterator[tuple[str, ...]]]] = {
    "git.status": _status,
    "git.diff": _diff,
    "git.commit": _commit,
    "git.apply_patch": _apply,
}
