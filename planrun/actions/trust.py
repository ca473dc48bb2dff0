"""The conditions under which a command's risk class holds: its programs, and the code and configuration they read."""

from __future__ import annotations

import os
from stat import S_ISDIR, S_ISLNK, S_ISREG, S_ISVTX, S_IWOTH

from planrun.actions import gitconfig, variables
from planrun.actions.gitconfig import Found, GitFiles, Unsure, effective
from planrun.actions.sweeps import secret_met
from planrun.risk.words import names_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    from planrun.model.job import Job
    from planrun.risk.names import Sweep

    class Command(Protocol):
        """The examined part of a simple command: `planrun.risk.classifier.Command`."""

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
_FILES = GitFiles()  # the files read in this run


def cleaned(job: Job, level: str, ground: Ground | None = None) -> Job:
    """Return the job with an environment that does not change the meaning of its text, for a class up to `level`.

    `ground`: the results of the same check about the workspace and the machine's folders.

    Read-only and low: all variables that change which code runs are removed, and PATH has only the machine's folders.
    Medium: project code runs anyway, so only variables that change the meaning of the text go. High: unchanged.
    """
    if level == "high":
        return job
    env = {name: value for name, value in job.env.items() if not variables.means_more(name, value)}
    # A top-level bash that seems to be started by sshd reads ~/.bashrc.
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
    commands: Sequence[Command],
    job: Job,
    workspace: str,
    ground: Ground | None = None,
    sweeps: Sequence[Sweep] = (),
) -> tuple[str, str] | None:
    """Return a higher level and the reason when the surroundings of the text invalidate its class; None otherwise.

    Call it right before the start. It reads no more of the workspace than the names of programs and the files
    that configure the ones in `commands`, and for `sweeps` (those of a `Risk`) the names of files. `ground` as for
    `cleaned`.
    """
    if met := sweeps and secret_met(sweeps, workspace):
        return "high", f"it reads all files that fit, and {met} may hold secrets"
    look = _Look(job, workspace, ground or Ground(workspace))
    found = [reason for reason in (look.at_program(job.argv[0]), *map(look.at, commands)) if reason]
    return max(found, key=lambda one: _ORDER[one[0]]) if found else None


class _Look:
    """One check of the surroundings of a job."""

    def __init__(self, job: Job, workspace: str, ground: Ground) -> None:
        self._job = job
        self._workspace = workspace
        self._ground = ground
        self._home = job.env.get("HOME", "")

    def at(self, command: Command) -> tuple[str, str] | None:
        """Check the surroundings of one command."""
        words = inner(command.words)
        if not words or _ORDER.get(command.level, 3) > _ORDER["low"]:
            return None
        name = words[0] or ""
        base = os.path.basename(name)
        if name in BUILTINS and os.path.basename(self._job.argv[0]) in SHELLS:
            return None
        cwd = None if command.cwd is None else os.path.join(self._workspace, command.cwd)
        found = self.at_program(name, cwd or self._job.cwd)
        if found:
            return found
        if reason := doubt(words):
            return "medium", reason
        if base in PLAIN:
            return None
        if cwd is None:
            return "medium", f"it is not certain in which folder `{name}` runs, and what configures it there"
        return self._at_home(name) or (
            self._at_git(words, cwd) if base == "git" else self._at_files(words, cwd)
        )

    def at_program(self, name: str, cwd: str = "") -> tuple[str, str] | None:
        """Look up a program as bash does; a path with a slash identifies itself."""
        if "/" in name:
            return None
        path = _path(self._job)
        place, blot = self._ground.find(name, path, cwd or self._job.cwd)
        if not place:
            return "medium", f"`{name}` is not on the PATH of the step: the program that would run is unknown"
        if blot:
            return "medium", f"`{name}` is {self._shown(place)}: {blot}"
        chosen = telling(SHIM_FILES, cwd or self._job.cwd) if "/shims/" in place else ""
        if chosen:
            return "medium", f"{self._relative(chosen)} decides what `{name}` runs"
        through = interpreter(place)
        if through:
            place, blot = self._ground.find(through, path, cwd or self._job.cwd)
            if blot:
                return "medium", f"`{name}` runs by {self._shown(place)}: {blot}"
        return None

    def _shown(self, place: str) -> str:
        place = os.path.normpath(place)
        top = self._workspace.rstrip("/") + "/"
        return f"the workspace's own ./{place.removeprefix(top)}" if place.startswith(top) else place

    def _at_home(self, name: str) -> tuple[str, str] | None:
        """Whether another user could have written the files that configure the user's programs."""
        for variable in ("HOME", "XDG_CONFIG_HOME"):
            folder = self._job.env.get(variable, "")
            if folder and (not folder.startswith("/") or self._ground.inside(folder)):
                return (
                    "medium",
                    f"`{name}` reads its configuration from ${variable}, which is in the workspace",
                )
        return None

    def _at_git(self, words: Sequence[str | None], cwd: str) -> tuple[str, str] | None:
        cwd, subcommand = of_git(words, cwd)
        if not cwd:
            return "medium", "options of git do not identify the repository"
        files = variables.config_files(self._job.env)
        own = [path for _, path in files if not self._ground.blot(os.path.dirname(path))]
        try:
            for setting in effective(_FILES, os.path.realpath(cwd), own, self._home):
                if found := self._at_setting(setting, subcommand):
                    return found
        except Unsure as unsure:
            return "medium", f"git's configuration cannot be determined: {unsure}"
        except OSError as error:
            return "medium", f"git's configuration cannot be determined: {error.filename}: {error.strerror}"
        return None

    def _at_setting(self, setting: Found, subcommand: str) -> tuple[str, str] | None:
        name = setting.name
        where = f"{name} in {self._relative(setting.file)}"
        if gitconfig.runs_program(name, setting.value, subcommand):
            return "medium", f"{where} has git run a program"
        if subcommand and gitconfig.alias(name) == subcommand:
            return "medium", f"{where} may be an alias of another command"
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
        """Whether files of the workspace determine the program or the code that it loads."""
        files = CODE_FILES.get(os.path.basename(words[0] or ""), ())
        path = telling(files, cwd)
        return ("medium", f"{self._relative(path)} decides what `{words[0]}` runs") if path else None


def _path(job: Job) -> str:
    return job.env.get("PATH", os.defpath)


def _ground(job: Job) -> Ground:
    return Ground(job.env.get("PLANRUN_WORKSPACE", job.cwd))


SHELLS = frozenset(("bash", "sh", "dash"))
BUILTINS = names_in(
    ": . [ break cd command continue echo exit export false printf pwd read readonly return set shift "
    "source test times true type umask unset wait local let mapfile readarray dirs pushd popd getopts "
    "ulimit jobs kill"
)
"""The builtins of bash, which precede PATH."""
# Coreutils, findutils, diffutils, grep, sed, awk and similar: configured by variables only.
PLAIN = names_in(
    "arch b2sum base32 base64 basename basenc cat chmod cksum comm cp csplit cut date df dir dirname du "
    "echo expand expr factor false fmt fold groups head hostname id install join link ln logname ls "
    "md5sum mkdir mktemp mv nice nl nproc numfmt od paste pathchk pr printf ps ptx pwd readlink realpath rev rm "
    "rmdir seq sha1sum sha224sum sha256sum sha384sum sha512sum shasum shuf sleep sort split stat sum sync tac "
    "tail tee test [ touch tr true truncate tsort tty uname unexpand uniq unlink uptime users vdir wc who "
    "whoami yes cmp diff diff3 sdiff diffstat patch egrep fgrep grep zgrep sed awk gawk mawk nawk find rg "
    "fd fdfind file column hexdump xxd strings tree dos2unix unix2dos iconv which whereis getconf locale "
    "free lscpu cal lsb_release gzip gunzip zcat bzip2 bunzip2 bzcat xz unxz xzcat zstd unzstd zstdcat "
    "lz4 tar zip unzip zipinfo"
)
"""Programs that read only the workspace files that their arguments name, and only as data."""
# Their configuration, of the workspace or of the user's home, names no code, or CODE_FILES lists the files that do.
LOOKED = names_in(
    "git jq colordiff pip pip3 ruff black isort autoflake pyupgrade autopep8 yapf gofmt goimports shfmt "
    "rustfmt clang-format shellcheck yamllint taplo cargo codespell typos stylua buf "
    "mypy flake8 coverage vulture docformatter pre-commit npm gofumpt hadolint actionlint tokei cloc size nm readelf "
    "xmllint yq"
)
"""Programs that read configuration."""
VERSIONS = names_in(
    "python python3 node npm make cmake gcc g++ cc clang java javac go rustc ruby perl php lua uv ninja "
    "meson protoc dotnet curl wget bash sh dash ld"
)
"""Programs that are trusted to load nothing of the workspace when only asked for their version."""
_UNSEEN = b"\\u"  # begins a TOML escape, which can spell any letter
_TOOLCHAINS = (("rust-toolchain", (b"/",)), ("rust-toolchain.toml", (b"path", _UNSEEN)))


def _python(own: str, *patterns: bytes) -> tuple[tuple[str, tuple[bytes, ...]], ...]:
    """The files that may configure a Python tool, and the patterns in them that make it load code."""
    return tuple(
        (name, (*patterns, _UNSEEN)) for name in (*own.split(), "setup.cfg", "tox.ini", "pyproject.toml")
    )


CODE_FILES: dict[str, tuple[tuple[str, tuple[bytes, ...]], ...]] = {
    "cargo": (*_TOOLCHAINS, (".cargo/config.toml", ()), (".cargo/config", ())),
    "rustc": _TOOLCHAINS,
    "rustfmt": _TOOLCHAINS,
    "mypy": _python("mypy.ini .mypy.ini", b"plugins", b"python_executable"),
    "flake8": _python(".flake8", b"local-plugins", b"local_plugins"),
    "coverage": _python(".coveragerc", b"plugins"),
    "dotnet": (("global.json", (b"paths",)),),
}
"""Program -> files, searched from its folder upwards, that decide what it runs if they contain a pattern; (): any."""
SHIM_FILES: tuple[tuple[str, tuple[bytes, ...]], ...] = (
    *(
        (".tool-versions", (b"path:", b"/")),
        (".mise.toml", ()),
        ("mise.toml", ()),
        (".python-version", (b"/",)),
    ),
    *(
        (".ruby-version", (b"/",)),
        (".node-version", (b"/",)),
        (".nvmrc", (b"/",)),
        (".java-version", (b"/",)),
    ),
)
"""The same for a program that only selects a version to run, such as the shims of pyenv, asdf and mise."""
_CONFIGURE = ("--config", "--rcfile", "--append-config", "--python-executable")
_WRAPPERS = frozenset(("env", "timeout", "nice", "command", "time", "stdbuf", "ionice", "chrt"))
_VERSION_WORDS = frozenset(("--version", "-V", "-v", "version", "-version"))
_MAX_FILE = 1 << 16  # bytes that are searched


def inner(words: tuple[str | None, ...]) -> tuple[str | None, ...]:
    """Return the words of the program that a wrapper like `timeout 5` or `env A=b` starts."""
    while words and words[0] in _WRAPPERS:
        rest = words[1:]
        while rest and (rest[0] is None or rest[0].startswith("-") or "=" in rest[0] or _is_number(rest[0])):
            rest = rest[1:]
        if not rest:
            break
        words = rest
    return words


def of_git(words: Sequence[str | None], cwd: str) -> tuple[str, str]:
    """Return the folder and the subcommand of git; both empty when its options leave them open."""
    at = 1
    while at < len(words):
        word = words[at]
        if word is None or word.startswith(
            ("--git-dir", "--work-tree", "--exec-path", "--namespace", "-c", "--config")
        ):
            return "", ""
        if word == "-C":
            following = words[at + 1] if at + 1 < len(words) else None
            if following is None:
                return "", ""
            cwd = os.path.join(cwd, following)
            at += 1
        elif not word.startswith("-"):
            return cwd, word.lower()
        at += 1
    return cwd, ""


def doubt(words: Sequence[str | None]) -> str:
    """Return why a command may run code of the workspace; "" when it cannot."""
    name = os.path.basename(words[0] or "")
    if name in CODE_FILES and any((word or "--config").startswith(_CONFIGURE) for word in words[1:]):
        return f"which configuration `{name}` reads is not looked into"
    if name in PLAIN or name in LOOKED:
        return ""
    if name in VERSIONS and len(words) == 2 and words[1] in _VERSION_WORDS:
        return ""
    return f"`{name}` may load code of the workspace"


def telling(files: Sequence[tuple[str, tuple[bytes, ...]]], folder: str) -> str:
    """Return the first existing file with a pattern, from a folder upwards; "" when there is none."""
    while files:
        for name, patterns in files:
            path = os.path.join(folder, name)
            if holds(path, patterns):
                return path
        above = os.path.dirname(folder)
        if above == folder:
            break
        folder = above
    return ""


def holds(path: str, patterns: tuple[bytes, ...]) -> bool:
    """Whether a file exists and contains a pattern, or is too long to be searched."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(fd, "rb") as file:
            data = file.read(_MAX_FILE).lower()
    except OSError:
        return os.path.lexists(path)
    return not patterns or len(data) == _MAX_FILE or any(pattern in data for pattern in patterns)


def _is_number(word: str) -> bool:
    return bool(word) and word.rstrip("smhd").replace(".", "", 1).isdecimal()


_KEPT: dict[tuple[str, str], tuple[list[tuple[str, int]], str]] = {}  # by workspace and folder: way, blot
_DEEP = 64  # components; of longer paths the whole is resolved at once
_SHEBANG = 256  # bytes: what Linux reads of a first line


class Ground:
    """The workspace and the results about the machine's folders for one check: each is examined once."""

    def __init__(self, workspace: str) -> None:
        self._modes: dict[str, int] = {}
        self._reals: dict[str, str] = {"/": "/"}
        self.workspace = self.real(workspace)
        self._below = self.workspace.rstrip("/") + "/"
        self._folders: dict[str, str] = {}

    def inside(self, path: str) -> bool:
        """Whether an absolute path is the workspace or below it, with links resolved or as written."""
        return any(
            found == self.workspace or found.startswith(self._below)
            for found in (self.real(path), os.path.normpath(path))
        )

    def real(self, path: str) -> str:
        """Return a path without links: `os.path.realpath`, which reads the parent folders again for each path."""
        known = self._reals.get(path)
        if known is None:
            known = self._reals[path] = self._resolved(path)
            self._reals[known] = known
        return known

    def _resolved(self, path: str) -> str:
        above, _, name = path.rpartition("/")
        if not path.startswith("/") or name in ("", ".", "..") or path.count("/") > _DEEP:
            return os.path.realpath(path)
        place = f"{self.real(above or '/').rstrip('/')}/{name}"
        return os.path.realpath(place) if S_ISLNK(self._mode(place)) else place

    def _mode(self, path: str) -> int:
        """Return the mode of a path, links not followed; 0: it does not exist."""
        known = self._modes.get(path)
        if known is None:
            try:
                known = os.lstat(path).st_mode
            except (OSError, ValueError):
                known = 0
            self._modes[path] = known
        return known

    def _is_open(self, real: str, *, except_sticky: bool = False) -> bool:
        """Whether every user can write a file or folder; a missing one depends on who can create it.

        A link here is circular or was created just now: treated as writable by every user.
        """
        mode = self._mode(real)
        if except_sticky and S_ISDIR(mode) and mode & S_ISVTX:
            return False
        return bool(mode & S_IWOTH) or S_ISLNK(mode)

    def blot(self, folder: str) -> str:
        """Return why a folder cannot be trusted; "" for the machine's own."""
        known = self._folders.get(folder)
        if known is None:
            known = self._folders[folder] = self._kept(folder)
        return known

    def _kept(self, folder: str) -> str:
        """Return the result of an earlier check if its inputs are unchanged.

        Results are cached for paths without links: they depend only on the types and modes along the path.
        """
        kept = _KEPT.get((self.workspace, folder))
        if kept is not None and all([self._mode(place) == mode for place, mode in kept[0]]):  # noqa: C419 - half the time
            return kept[1]
        found = self._blot(folder)
        if folder.startswith("/") and self.real(folder) == folder:
            ends = [at for at, char in enumerate(folder) if char == "/"][1:]
            way = [(place, self._mode(place)) for place in (*[folder[:at] for at in ends], folder)]
            _KEPT[self.workspace, folder] = way, found
        return found

    def _blot(self, folder: str) -> str:
        if not folder.startswith("/"):
            return "a relative entry of PATH" if folder else "an empty entry of PATH"
        if self.inside(folder):
            return "in the workspace"
        real = self.real(folder)
        if self._is_open(real):
            return f"in {folder}, which others can write"
        above = os.path.dirname(real)
        while len(above) > 1:
            if self._is_open(above, except_sticky=True):
                return f"in {folder}, which others can exchange"
            above = os.path.dirname(above)
        return ""

    def trusted(self, folders: str) -> list[str]:
        """Return the folders of a list like PATH that exist and that no other user controls."""
        return [folder for folder in folders.split(":") if not self.blot(folder)]

    def find(self, name: str, path: str, cwd: str) -> tuple[str, str]:
        """Return the path where bash finds a program, and why it cannot be trusted; both empty: not found."""
        for folder in path.split(":"):
            place = os.path.join(cwd, folder, name)
            if is_program(place):
                return place, self.blot(folder) or self._blot_of_file(place)
        return "", ""

    def _blot_of_file(self, place: str) -> str:
        """Return why a program in a trusted folder cannot be trusted: by its link targets, or its writers."""
        real = self.real(place)
        if self.inside(real):
            return "a link into the workspace"
        return self.blot(os.path.dirname(real)) or (
            "a file that others can write" if self._is_open(real) else ""
        )


def is_program(place: str) -> bool:
    """Whether a path is a file that may be executed."""
    try:
        return S_ISREG(os.stat(place).st_mode) and os.access(place, os.X_OK)
    except (OSError, ValueError):
        return False


def interpreter(place: str) -> str:
    """Return the program that `#!/usr/bin/env NAME` of a script looks up on PATH; "" when it looks up none."""
    try:
        fd = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
        try:
            first = os.read(fd, _SHEBANG)
        finally:
            os.close(fd)
    except OSError:
        return ""
    if not first.startswith(b"#!"):
        return ""
    words = first[2:].split(b"\n", 1)[0].split()
    if not words or words[0].rpartition(b"/")[2] != b"env":
        return ""
    names = [word for word in words[1:] if not word.startswith(b"-") and b"=" not in word]
    return os.fsdecode(names[0]) if names else ""
