"""The surroundings in which the class of a command is true, for steps that are let in because of it.

The class says what the text does. Variables, folders on PATH and the configuration of git and other tools can make it
do something else: what can be switched off is (`cleaned`), and for the rest the class is higher (`raised`).
"""

from __future__ import annotations

import os

from planrun.steps.surroundings import gitconfig, programs, variables
from planrun.steps.surroundings.gitfolders import Found, GitFiles, Unsure, effective
from planrun.steps.surroundings.lookup import Ground, interpreter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    from planrun.model.job import Job

    class Command(Protocol):
        """What is looked at of a simple command: `planrun.risk.classify.Command`."""

        @property
        def words(self) -> tuple[str | None, ...]:
            """The words without quotes, None for an unknown one."""

        @property
        def cwd(self) -> str | None:
            """The folder in which it runs, relative to the workspace; None: not certain."""

        @property
        def level(self) -> str:
            """Its class."""


_ORDER = {"none": -1, "read-only": 0, "low": 1, "medium": 2, "high": 3}
_FILES = GitFiles()  # what was read in this run


def cleaned(job: Job, level: str, ground: Ground | None = None) -> Job:
    """Return the job with an environment in which its text means what it says, for a class up to `level`.

    `ground`: what was found out about the workspace and the machine's folders in the same look.

    Read-only and low: nothing that changes what code runs is left, and PATH has only folders that are the machine's.
    Medium: project code runs anyway, so only what changes the meaning of the text itself goes. High: the job as it is.
    """
    if level == "high":
        return job
    env = {name: value for name, value in job.env.items() if not variables.means_more(name, value)}
    # Started by sshd or so it seems, a bash that nobody started before reads ~/.bashrc.
    env.setdefault("SHLVL", "1")
    if level == "medium":
        folders = [folder for folder in _path(job).split(":") if folder]
        return job.but(env={**env, "PATH": ":".join(folders) or os.defpath})
    ground = ground or _ground(job)
    trusted = [
        name
        for name, path in variables.config_files(env)
        if not ground.blot(os.path.dirname(path)) or path == os.devnull
    ]
    kept = {name: value for name, value in env.items() if not variables.changes_code(name)}
    kept["PATH"] = ":".join(ground.trusted(_path(job))) or os.defpath
    if libraries := ":".join(ground.trusted(env.get("LD_LIBRARY_PATH", ""))):
        kept["LD_LIBRARY_PATH"] = libraries
    return job.but(env={**kept, **variables.configured(env, trusted), **variables.PLACED})


def raised(
    commands: Sequence[Command], job: Job, workspace: str, ground: Ground | None = None
) -> tuple[str, str] | None:
    """Return a higher level and the reason when what stands around the text makes its class untrue; None otherwise.

    To be asked right before the start. It reads no more of the workspace than the names of programs and the files
    that configure the ones in `commands`. `ground` as for `cleaned`.
    """
    look = _Look(job, workspace, ground or Ground(workspace))
    found = [reason for reason in (look.at_program(job.argv[0]), *map(look.at, commands)) if reason]
    return max(found, key=lambda one: _ORDER[one[0]]) if found else None


class _Look:
    """One look at the surroundings of a job."""

    def __init__(self, job: Job, workspace: str, ground: Ground) -> None:
        self._job = job
        self._workspace = workspace
        self._ground = ground
        self._home = job.env.get("HOME", "")

    def at(self, command: Command) -> tuple[str, str] | None:
        """Look at what one command will meet."""
        words = programs.inner(command.words)
        if not words or _ORDER.get(command.level, 3) > _ORDER["low"]:
            return None
        name = words[0] or ""
        base = os.path.basename(name)
        if name in programs.BUILTINS and self._job_is_shell():
            return None
        cwd = None if command.cwd is None else os.path.join(self._workspace, command.cwd)
        found = self.at_program(name, cwd or self._job.cwd)
        if found:
            return found
        if reason := programs.doubt(words):
            return "medium", reason
        if base in programs.PLAIN:
            return None
        if cwd is None:
            return "medium", f"it is not certain in which folder `{name}` runs, and what configures it there"
        return self._at_home(name) or (
            self._at_git(words, cwd) if base == "git" else self._at_files(words, cwd)
        )

    def at_program(self, name: str, cwd: str = "") -> tuple[str, str] | None:
        """Look up a program as bash does; one with a slash is told by its text."""
        if "/" in name:
            return None
        path = _path(self._job)
        place, blot = self._ground.find(name, path, cwd or self._job.cwd)
        if not place:
            return "medium", f"`{name}` is not on the PATH of the step, so nobody knows what would run"
        if blot:
            return "medium", f"`{name}` is {self._shown(place)}: {blot}"
        chosen = programs.telling(programs.SHIM_FILES, cwd or self._job.cwd) if "/shims/" in place else ""
        if chosen:
            return "medium", f"{self._relative(chosen)} says what `{name}` runs"
        through = interpreter(place)
        if through:
            place, blot = self._ground.find(through, path, cwd or self._job.cwd)
            if blot:
                return "medium", f"`{name}` runs by {self._shown(place)}: {blot}"
        return None

    def _job_is_shell(self) -> bool:
        return os.path.basename(self._job.argv[0]) in programs.SHELLS

    def _shown(self, place: str) -> str:
        place = os.path.normpath(place)
        top = self._workspace.rstrip("/") + "/"
        return f"the workspace's own ./{place.removeprefix(top)}" if place.startswith(top) else place

    def _at_home(self, name: str) -> tuple[str, str] | None:
        """Whether somebody else could have written what configures the user's programs."""
        for variable in ("HOME", "XDG_CONFIG_HOME"):
            folder = self._job.env.get(variable, "")
            if folder and (not folder.startswith("/") or self._ground.inside(folder)):
                return (
                    "medium",
                    f"`{name}` reads its configuration from ${variable}, which is in the workspace",
                )
        return None

    def _at_git(self, words: Sequence[str | None], cwd: str) -> tuple[str, str] | None:
        cwd, subcommand = programs.of_git(words, cwd)
        if not cwd:
            return "medium", "options of git leave open which repository is meant"
        files = variables.config_files(self._job.env)
        own = [path for _, path in files if not self._ground.blot(os.path.dirname(path))]
        try:
            for setting in effective(_FILES, os.path.realpath(cwd), own, self._home):
                if found := self._at_setting(setting, subcommand):
                    return found
        except Unsure as unsure:
            return "medium", f"what configures git cannot be told: {unsure}"
        except OSError as error:
            return "medium", f"what configures git cannot be told: {error.filename}: {error.strerror}"
        return None

    def _at_setting(self, setting: Found, subcommand: str) -> tuple[str, str] | None:
        name = setting.name
        where = f"{name} in {self._relative(setting.file)}"
        if gitconfig.runs_program(name, setting.value, subcommand):
            return "medium", f"{where} has git run a program"
        if subcommand and gitconfig.alias(name) == subcommand:
            return "medium", f"{where} may stand for another command"
        if gitconfig.is_folder(name):
            base = setting.gitdir if name == "core.worktree" else setting.top
            real = os.path.realpath(os.path.join(base, setting.value or ""))
            if not self._ground.inside(real) and real != setting.top:
                return "high", f"{where} leads out of the workspace"
            if name == "core.worktree" and real != setting.top:
                return "medium", f"{where} has git work in another folder"
        return None

    def _relative(self, path: str) -> str:
        return os.path.relpath(path, self._workspace) if self._ground.inside(path) else path

    def _at_files(self, words: Sequence[str | None], cwd: str) -> tuple[str, str] | None:
        """Whether files of the workspace say what the program is or loads."""
        files = programs.CODE_FILES.get(os.path.basename(words[0] or ""), ())
        path = programs.telling(files, cwd)
        return ("medium", f"{self._relative(path)} says what `{words[0]}` runs") if path else None


def _path(job: Job) -> str:
    return job.env.get("PATH", os.defpath)


def _ground(job: Job) -> Ground:
    return Ground(job.env.get("PLANRUN_WORKSPACE", job.cwd))
