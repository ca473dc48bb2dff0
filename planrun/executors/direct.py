"""Start one plain command without the shell that would start it: the same program, words and environment.

bash replaces itself by the program of such a command, so a user sees no difference but the time that bash takes. Only
what bash would certainly do in this way is started so; for everything else, errors included, there is bash.

Plain words mean the same to bash in every setting: nothing in them is expanded, redirected, assigned or matched against
files.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    DirectStart = tuple[tuple[str, ...], str, dict[str, str]]

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"
_BARE = frozenset(_LETTERS + "-./:,+=@%^")
_UNQUOTED = _BARE.union(" \t")
_EXPANDED = frozenset("$`\\")  # what means something between double quotes
_KEYWORDS = frozenset(
    "if then elif else fi time for in until while do done case esac coproc select function".split()  # noqa: SIM905
)
_BUILTINS = frozenset(
    """. : [ alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs disown echo
    enable eval exec exit export false fc fg getopts hash help history jobs kill let local logout mapfile popd printf
    pushd pwd read readarray readonly return set shift shopt source suspend test times trap true type typeset ulimit
    umask unalias unset wait""".split()  # noqa: SIM905
)
# Builtins that do the same as a program of this name, at least without options and backslashes.
_TWINS = frozenset(("true", "false", "echo"))
_TWIN_FOLDERS = ("/bin/", "/usr/bin/")
# Variables by which bash starts differently, finds programs differently, or which it changes or drops itself.
_ODD = frozenset(
    """BASH BASHOPTS BASHPID COMP_WORDBREAKS DIRSTACK ENV EPOCHREALTIME EPOCHSECONDS EUID EXECIGNORE FUNCNAME GROUPS
    HISTCMD IFS LINENO OPTERR OPTIND POSIXLY_CORRECT POSIX_PEDANTIC PPID PS4 RANDOM SECONDS SHELLOPTS SRANDOM
    UID""".split()  # noqa: SIM905
)
_PREFIX = "BASH_"  # BASH_ENV, exported functions, and others
_DROPPED = ("PS1", "PS2")  # by a shell that is not interactive
_BY_SSH = frozenset(("SSH_CLIENT", "SSH2_CLIENT"))  # then the first of nested shells may read start-up files
_DEEPEST = 3  # digits of SHLVL; bash warns when it becomes 1000


class DirectStarts:
    """Finds how bash would start a program; the folders of each PATH and the known locales are kept."""

    def __init__(self) -> None:
        self._folders: dict[str, tuple[str, ...]] = {}
        self._locales: dict[str, bool] = {}
        self._twins: dict[str, str] = {}

    def find(self, script: str, env: Mapping[str, str]) -> DirectStart | None:
        """Return the words of a script that bash need not run, the path of the program, and its environment.

        The working directory must be that of the script. None: bash is needed.
        """
        words = plain_words(script)
        if words is None or not self._is_usual(env):
            return None
        path = self._path(words, env.get("PATH", ""))
        own = path and _environment(env, path)
        return (words, path, own) if own else None

    def _is_usual(self, env: Mapping[str, str]) -> bool:
        if not _ODD.isdisjoint(env) or _PREFIX in "".join(env):
            return False
        locale = env.get("LC_ALL", "")
        return not locale or self._has_locale(locale)

    def _has_locale(self, name: str) -> bool:
        """Whether bash can set this locale: it prints a warning if not."""
        known = self._locales.get(name)
        if known is None:
            import _locale  # few environments set LC_ALL

            before = _locale.setlocale(_locale.LC_ALL)
            try:
                _locale.setlocale(_locale.LC_ALL, name)
                known = True
            except (_locale.Error, ValueError):  # type: ignore[attr-defined]  # typeshed lacks it
                known = False
            _locale.setlocale(_locale.LC_ALL, before)
            self._locales[name] = known
        return known

    def _path(self, words: tuple[str, ...], search: str) -> str:
        """Return the path by which bash would start the program; "" when it might not, or run a builtin."""
        name = words[0]
        if "/" in name:
            return name
        if name in _BUILTINS:
            name = words[0]
            if name not in _TWINS or [word for word in words if word[:1] == "-" or "\\" in word]:
                return ""
            path = self._twins.get(name)
            if path is None:
                candidates = [folder + name for folder in _TWIN_FOLDERS]
                path = self._twins[name] = next((path for path in candidates if os.access(path, os.X_OK)), "")
            return path
        folders = self._folders.get(search)
        if folders is None:
            folders = self._folders[search] = _folders(search)
        for folder in folders:
            path = folder + name
            if os.access(path, os.X_OK):
                return path
        return ""


def _folders(search: str) -> tuple[str, ...]:
    """Return what stands before a name in the paths of a PATH; nothing when an entry is relative."""
    entries = search.split(":")
    if not all(entry.startswith("/") for entry in entries):
        return ()
    return tuple([entry if entry.endswith("/") else entry + "/" for entry in entries])


def _environment(env: Mapping[str, str], path: str) -> dict[str, str] | None:
    """Return the environment that bash would give to the program; None when that is not certain."""
    level = env.get("SHLVL", "0")
    if not (level.isascii() and level.isdecimal()) or len(level) > _DEEPEST or level in ("999", ""):
        return None
    level = str(int(level))
    if level == "0" and not _BY_SSH.isdisjoint(env):
        return None
    own = {**env, "_": path, "SHLVL": level}
    for name in _DROPPED:
        own.pop(name, None)
    try:
        if not _is_here(env.get("PWD", "")):
            own["PWD"] = os.getcwd()
    except OSError:  # bash prints an error
        return None
    if "OLDPWD" in own and not os.path.isdir(own["OLDPWD"]):
        del own["OLDPWD"]
    return own


def _is_here(folder: str) -> bool:
    if folder[:1] != "/":
        return False
    try:
        named = os.stat(folder)
    except OSError:
        return False
    here = os.stat(".")
    return (named.st_ino, named.st_dev) == (here.st_ino, here.st_dev)


def plain_words(text: str) -> tuple[str, ...] | None:
    """Return the words of a text that `bash -c` runs, quotes gone; None when it is not one command of plain words.

    The first word can name a program, a function or a builtin. One end of line after the command is allowed.
    """
    line = text.removesuffix("\n")
    words = tuple(line.split()) if _UNQUOTED.issuperset(line) else _with_quotes(line)
    if not words:
        return None
    first = words[0]
    return None if "=" in first or first[:1] == "%" or first in _KEYWORDS else words


def _with_quotes(line: str) -> tuple[str, ...] | None:
    words: list[str] = []
    word: str | None = None
    at, end = 0, len(line)
    while at < end:
        start, char = at, line[at]
        if char in "'\"":
            close = line.find(char, start + 1)
            part = line[start + 1 : close]
            # bash gives some control characters a meaning of its own, and splits a text at the ends of its lines.
            if close < 0 or not part.isprintable() or (char == '"' and not _EXPANDED.isdisjoint(part)):
                return None
            word = (word or "") + part
            at = close + 1
            continue
        while at < end and line[at] in _BARE:
            at += 1
        if at > start:
            word = (word or "") + line[start:at]
        elif char in " \t":
            if word is not None:
                words.append(word)
                word = None
            at += 1
        else:
            return None
    return (*words, word) if word is not None else tuple(words)
