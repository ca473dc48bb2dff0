"""What a sandboxed step sees: its mounts as plain data, the same for every backend.

A step sees the system's programs and settings, the programs on its PATH, and the workspace. Everything else is absent:
home, temporary files of others, sockets under /run, the rest of /var, other disks. So a socket that is not in the view
cannot be connected to, and a file that is not in it can be neither read nor changed, whatever its mode is.
"""

from __future__ import annotations

import os

from planrun.model.record import Record
from planrun.risk.controls import control
from planrun.risk.sensitive import looks_secret

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Literal

    from planrun.model.job import Job
    from planrun.model.plan import Sandbox

    # dir: an empty folder; link: a symbolic link; ro, rw: a path of the machine; mask: an empty folder in its place
    # that cannot be written; hide: a file without content in its place.
    Verb = Literal["dir", "link", "ro", "rw", "mask", "hide"]

TEMPORARY = "/tmp"  # noqa: S108 - the path inside, on a file system of the attempt's own
_SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/nix",
    "/gnu",
    "/snap",
)
_STATE = (
    *("/var/lib/dpkg", "/var/lib/rpm", "/var/cache/fontconfig", "/lib/apk/db"),
    *("/sys/devices/system", "/sys/fs/cgroup"),
)
# Files of the system with keys and passwords, which root could read.
_SECRETS = (
    *("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/krb5.keytab"),
    *(
        "/etc/sudoers.d",
        "/etc/ssl/private",
        "/etc/docker",
        "/etc/kubernetes",
        "/etc/rancher",
        "/etc/wireguard",
    ),
    *("/etc/ssh/ssh_host_rsa_key", "/etc/ssh/ssh_host_ecdsa_key", "/etc/ssh/ssh_host_ed25519_key"),
)
# Installed programs below the home folder; they hold no credentials.
_TOOLCHAINS = (
    *(
        ".local/bin",
        ".local/lib",
        ".local/share/uv",
        ".local/share/mise",
        ".local/share/fnm",
        ".pyenv",
        ".rbenv",
    ),
    *(
        ".nvm",
        ".fnm",
        ".volta",
        ".asdf",
        ".sdkman",
        ".cargo/bin",
        ".rustup",
        "go/bin",
        ".bun/bin",
        ".deno/bin",
    ),
    *(".dotnet", ".local/share/virtualenvs", "miniconda3", "anaconda3", "miniforge3", "mambaforge"),
)
CACHES = {
    "pip": (".cache/pip",),
    "uv": (".cache/uv",),
    "poetry": (".cache/pypoetry",),
    "pre-commit": (".cache/pre-commit",),
    "npm": (".npm",),
    "yarn": (".cache/yarn", ".yarn/berry/cache"),
    "pnpm": (".local/share/pnpm/store", ".cache/pnpm"),
    "bun": (".bun/install/cache",),
    "deno": (".cache/deno",),
    "playwright": (".cache/ms-playwright",),
    "go": ("go/pkg/mod", ".cache/go-build"),
    "cargo": (".cargo/registry", ".cargo/git"),
    "gradle": (".gradle/caches", ".gradle/wrapper"),
    "maven": (".m2/repository",),
    "nuget": (".nuget/packages",),
    "composer": (".cache/composer",),
    "bundler": (".bundle/cache",),
    "ccache": (".cache/ccache", ".ccache"),
    "sccache": (".cache/sccache",),
}
"""The caches that level medium may write, by their owner; below the home folder, and only where they exist."""
# Inside of git's data: what makes git run a program or read settings from elsewhere.
_GIT_CONTROLS = ("hooks", "config", "config.worktree", "info", "modules", "commondir", "worktrees")


class Refused(Exception):
    """A view that cannot be made as it was asked for; the text is one line for users."""


class Site(Record):
    """Where the steps of a run stand; all paths absolute, and real.

    `protected`: files of plans, policies and approvals. `records`: the folder of planrun's own records.
    """

    workspace: str
    records: str = ""
    protected: tuple[str, ...] = ()
    home: str = ""


class View(Record):
    """What one step sees, and where it may write.

    `mounts`: parents first, the same for all steps like it. `private`: empty folders that are this attempt's alone.
    `own`: what it sees of planrun's records, which are hidden. `made`: files to be created before. `kept`: the folders
    that are put up for the time of the step, so that it cannot make them. `known`: device and inode of what is
    protected: a mount does not follow a path to another file.
    """

    mounts: tuple[tuple[Verb, str, str], ...]
    writable: tuple[str, ...]
    private: tuple[str, ...] = ()
    own: tuple[tuple[Verb, str, str], ...] = ()
    made: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    known: tuple[tuple[int, int], ...] = ()

    def all_mounts(self) -> tuple[tuple[Verb, str, str], ...]:
        """Return all of it, parents first."""
        private: list[tuple[Verb, str, str]] = [("dir", path, path) for path in self.private]
        found = {mount[1]: mount for mount in (*private, *self.mounts, *self.own)}
        return tuple([found[path] for path in sorted(found, key=lambda path: path.split("/"))])


# What a run sees of the system, by the home folder, PATH and network: it is looked at once.
_SYSTEMS: dict[tuple[str, str, str], tuple[dict[str, tuple[Verb, str]], list[str], list[str]]] = {}


def view_of(sandbox: Sandbox, site: Site, job: Job) -> View:
    """Return the view of a job; raises Refused."""
    builder = _Builder(sandbox, site)
    builder.take_system(job.env)
    builder.extras()
    if job.copy:
        builder.copy(job.copy)
    else:
        builder.work()
    builder.own(job)
    return builder.view()


class _Builder:
    def __init__(self, sandbox: Sandbox, site: Site) -> None:
        self._sandbox = sandbox
        self._site = site
        self._mounts: dict[str, tuple[Verb, str]] = {}
        self._writable: list[str] = []
        self._private: list[str] = []
        self._own: list[tuple[Verb, str, str]] = []
        self._made: list[str] = []
        self._kept: list[str] = []
        self._known: list[tuple[int, int]] = []

    def view(self) -> View:
        """Return what was put together."""
        ordered = sorted(self._mounts, key=lambda path: path.split("/"))
        return View(
            mounts=tuple([(self._mounts[path][0], path, self._mounts[path][1]) for path in ordered]),
            writable=tuple(self._writable),
            private=tuple(self._private),
            own=tuple(self._own),
            known=tuple(self._known),
            made=tuple(self._made),
            kept=tuple(self._kept),
        )

    def _put(self, verb: Verb, path: str, source: str = "") -> None:
        self._mounts[path] = (verb, source or os.path.realpath(path))
        if verb == "rw":
            self._writable.append(path)

    def _shown(self, path: str) -> bool:
        """Whether a path is in the view already."""
        return any(
            verb != "dir" and (path == root or path.startswith(f"{root}/"))
            for root, (verb, _) in self._mounts.items()
        )

    def _show(self, path: str) -> None:
        if (
            path != "/"
            and not self._shown(path)
            and os.path.isdir(path)
            and not _holds(path, self._site.home)
        ):
            self._put("ro", path)

    def take_system(self, env: Mapping[str, str]) -> None:
        """Show what this process has seen of the system before, or look at it."""
        key = (
            f"{self._site.home} {self._site.workspace}",
            env.get("PATH", os.defpath),
            self._sandbox.network,
        )
        if key not in _SYSTEMS:
            self.system(env)
            _SYSTEMS[key] = (dict(self._mounts), list(self._writable), list(self._private))
            return
        mounts, writable, private = _SYSTEMS[key]
        self._mounts, self._writable, self._private = dict(mounts), list(writable), list(private)

    def system(self, env: Mapping[str, str]) -> None:
        """Show the system, the programs on PATH, and an empty home and temporary folder."""
        for path in _SYSTEM:
            if os.path.islink(path):
                self._put("link", path, os.readlink(path))
            elif os.path.isdir(path):
                self._put("ro", path)
        for path in _STATE:
            self._show(path)
        for path in [path for path in _SECRETS if os.access(path, os.R_OK)]:
            self._put("mask" if os.path.isdir(path) else "hide", path)
        home = [self._site.home] if self._site.home not in ("", "/") else []
        for path in (TEMPORARY, "/var/tmp", *home):  # noqa: S108
            self._put("dir", path)
            self._private.append(path)
            self._writable.append(path)
        for folder in _programs(env.get("PATH", os.defpath), self._site.home):
            self._show(folder)
        names = os.path.realpath("/etc/resolv.conf")  # often below /run
        if self._sandbox.network == "any" and os.path.isfile(names) and not self._shown(names):
            self._put("ro", names)

    def extras(self) -> None:
        """Show what the plan or a policy names besides, and the caches of level medium."""
        if self._sandbox.level == "medium":
            caches = [name for names in CACHES.values() for name in names]
            for path in [os.path.join(self._site.home, name) for name in caches]:
                if os.path.isdir(path) and not os.path.islink(path):
                    self._put("rw", path)
        verbs: tuple[tuple[Verb, tuple[object, ...]], ...] = (
            ("ro", self._sandbox.read),
            ("rw", self._sandbox.write),
        )
        for verb, paths in verbs:
            for path in map(str, paths):
                if not os.path.exists(path):
                    raise Refused(f"the sandbox cannot show {path}: it does not exist")
                if _holds(path, self._site.workspace) or path == "/":
                    raise Refused(f"the sandbox cannot show {path}: the workspace is in it")
                if not self._is_inside(path):
                    self._put(verb, path)

    def _is_inside(self, path: str) -> bool:
        return path.startswith(f"{self._site.workspace}/")

    def work(self) -> None:
        """Show the workspace, without what controls later work."""
        top = self._site.workspace
        if top == "/":
            raise Refused("the sandbox cannot show the workspace: it is /")
        is_writable = self._sandbox.level != "read-only"
        if top in self._private:  # the home folder, which else would be an empty one of the attempt's own
            self._private.remove(top)
            self._writable.remove(top)
        self._put("rw" if is_writable else "ro", top)
        self._git(top)
        if top == self._site.home:
            self._hide_secrets(top)
        named = {path for path in map(str, self._sandbox.write) if self._is_inside(path)}
        if not is_writable:
            self._mounts |= {path: ("rw", os.path.realpath(path)) for path in sorted(named - {f"{top}/.git"})}
            self._writable += sorted(named - {f"{top}/.git"})
            return
        for path in [f"{top}/{name}" for name in _names(top) if control(name)]:
            if path not in {*named, *self._mounts}:
                self._protect(path)
        self._protect_nested(top, named)
        self._keep(top, [".git"] if f"{top}/.git" not in named else [])
        for path in self._site.protected:
            if self._is_inside(path) and os.path.exists(path):
                self._protect(path)
        if f"{top}/.git" in named:
            self._git_data(f"{top}/.git")

    def _protect_nested(self, top: str, named: Iterable[str]) -> None:
        for path in nested(top):
            if not _is_named(path, named) and os.path.lexists(path) and not os.path.islink(path):
                self._protect(path)

    def copy(self, top: str) -> None:
        """Show the copy that an agent works on, and no more of the workspace than the objects that its git borrows."""
        self._show_own("ro" if self._sandbox.level == "read-only" else "rw", top)
        if os.path.isdir(f"{top}/.git"):  # there is none where planrun found no git
            self._show_own("ro", f"{top}/.git")
        for path in _alternates(f"{top}/.git"):
            self._put("ro", path)

    def _hide_secrets(self, folder: str) -> None:
        """Hide keys and credentials of a home folder that is the workspace."""
        for path in [f"{folder}/{name}" for name in _names(folder) if looks_secret(name)]:
            if not os.path.islink(path):
                self._put("mask" if os.path.isdir(path) else "hide", path)

    def _git_data(self, folder: str) -> None:
        """Leave git's data writable, except for what makes git run programs."""
        for name in _GIT_CONTROLS:
            if os.path.exists(f"{folder}/{name}"):
                self._protect(f"{folder}/{name}")
        self._keep(folder, ["hooks"])

    def _protect(self, path: str) -> None:
        """Have a path of the workspace be neither written nor moved."""
        if (
            os.path.realpath(path)
            != os.path.realpath(self._site.workspace) + path[len(self._site.workspace) :]
        ):
            raise Refused(f"the sandbox cannot protect {path}: it is, or is below, a symbolic link")
        parent = os.path.dirname(path)
        while parent not in self._mounts:
            self._put("rw", parent)  # a mount of its own cannot be renamed
            parent = os.path.dirname(parent)
        self._put("ro", path)
        info = os.lstat(path)
        self._known.append((info.st_dev, info.st_ino))

    def _keep(self, folder: str, names: Iterable[str]) -> None:
        """Put up empty folders in the place of some that do not exist."""
        for name in names:
            path = f"{folder}/{name}"
            if not os.path.lexists(path):
                self._put("mask", path)
                self._kept.append(path)

    def _git(self, top: str) -> None:
        """Show the data of a repository that has them elsewhere: a worktree, a submodule."""
        try:
            with open(f"{top}/.git", encoding="utf-8", errors="replace") as file:
                first = file.readline(4096)
        except OSError:
            return
        folder = os.path.realpath(os.path.join(top, first.removeprefix("gitdir:").strip()))
        try:
            with open(f"{folder}/commondir", encoding="utf-8", errors="replace") as file:
                common = os.path.realpath(os.path.join(folder, file.readline(4096).strip()))
        except OSError:
            common = folder
        for path in (common, folder):
            if os.path.basename(common) == ".git" or "/.git/" in common:
                self._show(path)

    def own(self, job: Job) -> None:
        """Hide planrun's records, except for the files through which this attempt reports."""
        records = self._site.records
        if records:
            self._put("mask", records)
        for name in ("PLANRUN_OUTPUT", "PLANRUN_PROGRESS"):
            path = job.env.get(name, "")
            if path.startswith(f"{records}/"):  # a post-check has none
                self._made.append(path)
                self._show_own("rw", path)
        script = f"{job.env.get('PLANRUN_OUTPUT', '')}.script"
        if os.path.isfile(script):
            self._show_own("ro", script)
        if job.private:
            self._show_own("rw", job.private)
        for verb, path in job.shown:
            self._show_own("rw" if verb == "rw" else "ro", path)
        if job.call:
            self._own_program()

    def _show_own(self, verb: Verb, path: str) -> None:
        self._own.append((verb, path, path))
        if verb == "rw":
            self._writable.append(path)

    def _own_program(self) -> None:
        """Show planrun itself, which carries out the call of a tool."""
        import sys

        here = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(__file__))))
        for path in (sys.base_prefix, sys.prefix, here):
            self._show(path)


def _alternates(git: str) -> list[str]:
    """Return the folders of objects that a repository borrows."""
    try:
        with open(f"{git}/objects/info/alternates", encoding="utf-8", errors="replace") as file:
            found = [line.rstrip("\n") for line in file]
    except OSError:
        return []
    return [path for path in found if path.startswith("/") and os.path.isdir(path)]


def _holds(folder: str, path: str) -> bool:
    """Whether a folder is another one, or above it."""
    return bool(path) and (path == folder or path.startswith(f"{folder.rstrip('/')}/"))


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError as error:
        raise Refused(f"the sandbox cannot look into the workspace: {error.strerror}") from None


_UNSEARCHED = frozenset(
    ("node_modules", "site-packages", "__pycache__", "venv", "dist", "build", "target", "vendor", ".planrun")
)
"""Folders of installed and built files, which no CI system and no git of the project reads."""
_MOST_NESTED = 200  # paths in subfolders that are protected, the nearest ones first
_MOST_FOLDERS = 20_000  # that are searched for them
_NESTED: dict[str, tuple[str, ...]] = {}  # by workspace, as it was when the first step started


def nested(workspace: str) -> tuple[str, ...]:
    """Return the files and folders in subfolders that control later work: repositories, CI systems, plans, policies."""
    if workspace not in _NESTED:
        _NESTED[workspace] = tuple(_nested(workspace))
    return _NESTED[workspace]


def _nested(workspace: str) -> list[str]:
    found: list[str] = []
    folders, at = [workspace], 0
    while at < len(folders) and len(found) < _MOST_NESTED:
        folder, at = folders[at], at + 1
        try:
            with os.scandir(folder) as listed:
                entries = sorted(listed, key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            if entry.is_symlink():
                continue
            is_folder = entry.is_dir(follow_symlinks=False)
            if control(entry.name) and folder is not workspace and not (is_folder and entry.name in _PLAIN):
                found.append(entry.path)
            elif (
                is_folder
                and not control(entry.name)
                and _is_searched(entry.name)
                and len(folders) < _MOST_FOLDERS
            ):
                folders.append(entry.path)
    return found[:_MOST_NESTED]


_PLAIN = ("approvals", "policies")
"""Folders that control planrun at the top, and may be anything in a subfolder."""


def _is_searched(name: str) -> bool:
    return name not in _UNSEARCHED and not name.startswith((".venv", ".tox", ".nox", ".cache"))


def _is_named(path: str, named: Iterable[str]) -> bool:
    """Whether the plan lets a step write a path."""
    return any(path == each or path.startswith(f"{each}/") for each in named)


def control_names(workspace: str) -> frozenset[str]:
    """Return the names in the workspace of files and folders that control later work."""
    try:
        return frozenset([name for name in os.listdir(workspace) if control(name)])
    except OSError:
        return frozenset()


def direct(path: str) -> str:
    """Return a PATH whose entries have no `..`: the folder before it is not in the view."""
    if ".." not in path:
        return path
    return ":".join([os.path.realpath(each) if "/.." in each else each for each in path.split(":")])


def _programs(path: str, home: str) -> list[str]:
    """Return the folders of PATH, of the environments they belong to, and of toolchains below the home folder."""
    found = []
    for folder in direct(path).split(":"):
        if not folder.startswith("/"):
            continue
        found.append(os.path.normpath(folder))
        above = os.path.dirname(os.path.normpath(folder))
        settings = f"{above}/pyvenv.cfg"
        if os.path.isfile(settings):
            found += [above, *_base_of(settings)]
    if home:
        found += [f"{home}/{name}" for name in _TOOLCHAINS]
    return found


def _base_of(settings: str) -> list[str]:
    """Return the folder of the Python that a virtual environment was made of."""
    try:
        with open(settings, encoding="utf-8", errors="replace") as file:
            lines = file.read(4096).splitlines()
    except OSError:
        return []
    homes = [line.partition("=")[2].strip() for line in lines if line.partition("=")[0].strip() == "home"]
    return [os.path.dirname(os.path.realpath(home)) for home in homes if home.startswith("/")]


__all__ = ["CACHES", "TEMPORARY", "Refused", "Site", "View", "control_names", "view_of"]
