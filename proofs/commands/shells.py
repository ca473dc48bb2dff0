"""What bash really runs for a text, found out without running any of it.

Bash gets an empty environment and a PATH with one program, `__any`, which writes its words down and succeeds; all
builtins are taken away, and a handler gives every name that is not found, so every name, to `__any`. A restricted bash
takes no name with a slash and opens no file for writing. Only a text with `>` that has no slash but within the names of
files below is given to one that is not restricted. Root becomes nobody first.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

LIMIT = 10.0
"""Seconds after which a bash that should have ended is killed."""
_BUILTINS = (
    ". : [ alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs disown echo "
    "eval exec exit export false fc fg getopts hash help history jobs kill let local logout mapfile popd printf pushd "
    "pwd read readarray readonly return set shift shopt source suspend test times trap true type typeset ulimit umask "
    "unalias unset wait enable"
)
_PRELUDE = f"""\
command_not_found_handle() {{ __any "$@"; }}
ulimit -c 0 -t 5 -f 1000
enable -n {_BUILTINS}
"""
_SLASHES = re.compile(r"(?<=[A-Za-z0-9_])/(?=[A-Za-z0-9_])")
_NOBODY = 65534


def missing() -> str:
    """Say what is missing to ask bash; empty when nothing is."""
    bash = shutil.which("bash")
    if not bash:
        return "there is no bash"
    words = [bash, "-c", "echo $BASH_VERSINFO"]
    version = int(subprocess.run(words, capture_output=True, check=True).stdout)
    return "" if version >= 4 else f"bash {version} has no handler for commands that are not found"


def runs_all(text: str) -> bool:
    """Whether bash may open the files that the text writes; if not, it does not run the commands that write."""
    return ">" not in text or _is_tame(text)


def _is_tame(text: str) -> bool:
    """Whether no path in the text can lead out of the folder, however bash reads it."""
    return not re.search(r"[/$`~]|\.\.", _SLASHES.sub("", text.replace("/dev/null", "")))


class Bash:
    """Asks bash about texts, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._log, self._prelude, self._room = folder / "log", folder / "prelude", folder / "room"
        programs = folder / "programs"
        for made in (programs, self._room, *(self._room / name for name in ("build", "src"))):
            made.mkdir(parents=True)
            made.chmod(0o777)
        folder.chmod(0o755)
        recorder = programs / "__any"
        recorder.write_text(f"#!/bin/sh\nprintf '%s\\0' \"$#\" \"$@\" >> '{self._log}'\n")
        recorder.chmod(0o755)
        self._prelude.write_text(_PRELUDE)
        self._bash = shutil.which("bash") or "/bin/bash"
        # A home by the name of ~ makes of ~ what it was.
        self._env = {"PATH": str(programs), "BASH_ENV": str(self._prelude), "HOME": "~", "LC_ALL": "C.UTF-8"}

    def _clean(self) -> None:
        """Have in the room what the texts read, and nothing else."""
        for folder in (self._room, self._room / "build"):
            for entry in folder.iterdir():
                if entry.is_file():
                    entry.unlink()
        (self._room / "a.txt").touch()

    def runs(self, text: str) -> list[tuple[str, ...]]:
        """Return the words of every command that bash runs, in the order in which they ran.

        Raises TimeoutError for a text that does not end, ValueError for one with a NUL.
        """
        self._log.write_bytes(b"")
        self._log.chmod(0o666)
        self._clean()
        # f: a pattern stays as it stands, because the words that it becomes are not known before.
        options = ["-f"] if ">" in text and _is_tame(text) else ["-f", "-r"]
        root = os.getuid() == 0
        process = subprocess.Popen(
            [self._bash, *options, "-c", text],
            cwd=self._room,
            env=self._env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            user=_NOBODY if root else None,
            group=_NOBODY if root else None,
            extra_groups=[] if root else None,
        )
        try:
            process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            raise TimeoutError(text) from None
        finally:
            # Also what it left behind: nothing has another session.
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        return _commands(self._log.read_bytes())


def _commands(data: bytes) -> list[tuple[str, ...]]:
    """Read what `__any` has written."""
    words = data.decode("utf-8", "surrogateescape").split("\0")[:-1]
    found = []
    while words:
        count = int(words[0])
        found.append(tuple(words[1 : count + 1]))
        del words[: count + 1]
    return found
