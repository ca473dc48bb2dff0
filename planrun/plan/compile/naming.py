"""The files of the workspace that a step runs, as far as the text of the plan tells."""

from __future__ import annotations

import posixpath

from planrun.model.plan import Exec, Run
from planrun.plan.compile.risks import TOO_MUCH
from planrun.risk.actions import reads_bash
from planrun.risk.classifier import Setting
from planrun.risk.tokens import HOLES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.model.plan import Step, Text

_INTERPRETERS = frozenset(
    "sh bash dash ash ksh zsh python python3 node nodejs deno bun ruby perl php source .".split()  # noqa: SIM905
)
_STARTERS = _INTERPRETERS.union(
    (
        "timeout",
        "nice",
        "env",
        "time",
        "command",
        "exec",
        "builtin",
        "nohup",
        "setsid",
        "stdbuf",
        "sudo",
        "doas",
    ),
    ("ionice", "chrt", "xargs", "unbuffer", "uv", "poetry", "pipenv", "hatch", "pdm", "rye", "bundle", "npx"),
    ("coverage", "pypy", "lua", "luajit", "Rscript", "tclsh", "pwsh", "ts-node", "tsx", "groovy", "elixir"),
    ("escript", "julia", "osascript", "select", "eval", "function", "find"),
)
"""Commands that may have a script as an argument."""
_BEFORE = frozenset(("if", "then", "else", "elif", "while", "until", "do", "!", "{"))
_BREAKS = str.maketrans(dict.fromkeys(";&|()`", "\n"))
_APART = str.maketrans(dict.fromkeys("\"'`;&|()<>{}$=", " "))
_MOST = 100  # words of one text


class Names:
    """The files that steps run, looked for once in equal actions."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], dict[str, tuple[str, ...]]] = {}

    def given(self, step: Step) -> Step:
        """Return a step that says which scripts it runs, those of the commands that verify it included."""
        found = self._given(step)
        if step.verify:
            for proof in step.proofs:
                other = self._given(proof)
                found = found.but(
                    scripts=tuple(dict.fromkeys((*found.scripts, *other.scripts))),
                    mentions=tuple(dict.fromkeys((*found.mentions, *other.mentions))),
                )
        return found

    def _given(self, step: Step) -> Step:
        action = step.action
        if not isinstance(action, Run | Exec):
            return step
        text = action.script if isinstance(action, Run) else action.argv
        key = (action.__class__, text, step.workdir, step.shell)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = _names(step, action)
        return step.but(**found) if found else step


def _names(step: Step, action: Run | Exec) -> dict[str, tuple[str, ...]]:
    """Return the fields of a step that name files."""
    workdir = _filled(step.workdir) if step.workdir else ""
    if set(HOLES) & set(workdir) or workdir.startswith("/"):
        return {}  # it is looked at when the folder is known
    setting = Setting(cwd=_normal(workdir))
    if isinstance(action, Exec):
        argv = tuple(map(_filled, action.argv))
        if not _may(" ".join(argv)):
            return {}
        from planrun.risk.scripts import scripts_of_argv  # as below

        named = tuple(found.path for found in scripts_of_argv(argv, setting))
        return {"scripts": named} if named else {}
    text = _filled(action.script)
    if not _may(text) or (step.shell and not reads_bash(step.shell)):
        return {}
    from planrun.risk.scripts import known_scripts  # many plans run none

    found = None if step.risk_reason == TOO_MUCH else known_scripts(text, setting)
    if found is None:
        return _scanned(text, setting.cwd)
    return {"scripts": tuple(dict.fromkeys([script.path for script in found]))} if found else {}


def _may(text: str) -> bool:
    """Whether a text can name a script at all: most do not, and this is seen faster than by reading them in full."""
    for part in text.translate(_BREAKS).split("\n"):
        for word in part.split():
            if "=" in word or word in _BEFORE:
                continue
            name = word.strip("\"'").rpartition("/")[2]
            if "/" in word or name in _STARTERS or name.rstrip("0123456789.") in _STARTERS:
                return True
            break  # a command that is none of the workspace, and what follows are its arguments
    return False


def _scanned(text: str, cwd: str) -> dict[str, tuple[str, ...]]:
    """Return the words of a text that is not understood which may be scripts, as fields of its step."""
    words = text.translate(_APART).split()
    sure: dict[str, None] = {}
    maybe: dict[str, None] = {}
    for before, word in zip(["", *words], words, strict=False):
        path = _normal(posixpath.join(cwd, word))
        if not path or word[0] in "-#" or set(word) & set("*?[]~:\\" + HOLES):
            continue
        if before.rpartition("/")[2] in _INTERPRETERS:
            sure[path] = None
        elif "/" in word and len(maybe) < _MOST:
            maybe[path] = None
    fields = {"scripts": tuple(sure)[:_MOST], "mentions": tuple([path for path in maybe if path not in sure])}
    return {name: paths for name, paths in fields.items() if paths}


def _normal(path: str) -> str:
    """Return a path as seen from the workspace; empty when it is the workspace or lies outside."""
    found = posixpath.normpath(path) if path else "."
    return "" if found in (".", "..") or found.startswith(("/", "../")) else found


def _filled(text: Text) -> str:
    """Return a text with a placeholder for each value that is filled in later."""
    if isinstance(text, str):
        return text
    return "".join([part if isinstance(part, str) else HOLES[0] for part in text[1]])
