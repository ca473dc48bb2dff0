"""What a sandboxed step sees: its mounts as plain data, the same for every backend.

A step sees the system's programs and settings, the programs on planrun's own PATH, and the workspace. Everything else
is absent: home, temporary files of others, sockets under /run, the rest of /var, other disks. So a socket that is not
in the view cannot be connected to, and a file that is not in it can be neither read nor changed, whatever its mode is.

Nothing that a step may have written widens a view: no variable of a step, no link, no settings of an environment or of
a repository in the workspace.
"""

from __future__ import annotations

import os
import stat
import sys

from planrun.folders import dependencies
from planrun.model.record import Record
from planrun.risk.controls import PATHS, control
from planrun.risk.sensitive import looks_secret

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Literal

    from planrun.model.job import Job
    from planrun.model.plan import Sandbox

    # dir: an empty folder; link: a symbolic link; ro, rw: a path of the machine; mask: an empty folder in its place
    # that cannot be written; hide: a file without content in its place.
    Verb = Literal["dir", "link", "ro", "rw", "mask", "hide"]

TEMPORARY = "/tmp"  # noqa: S108 - the path inside, on a file system of the attempt's own
_SYSTEM = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu",
    "/snap",
)  # fmt: skip
_STATE = (
    *("/var/lib/dpkg", "/var/lib/rpm", "/var/cache/fontconfig", "/lib/apk/db"),
    *("/sys/devices/system", "/sys/fs/cgroup"),
)
# Files of the system with keys and passwords, which root could read.
_SECRETS = (
    *("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/krb5.keytab"),
    *(
        "/etc/sudoers.d", "/etc/ssl/private", "/etc/docker", "/etc/kubernetes", "/etc/rancher",
        "/etc/wireguard", "/nix/var/nix/daemon-socket",
    ),
    *("/etc/ssh/ssh_host_rsa_key", "/etc/ssh/ssh_host_ecdsa_key", "/etc/ssh/ssh_host_ed25519_key"),
)  # fmt: skip
# Installed programs below the home folder; they hold no credentials.
_TOOLCHAINS = (
    *(
        ".local/bin", ".local/lib", ".local/share/uv", ".local/share/mise", ".local/share/fnm", ".pyenv",
        ".rbenv",
    ),
    *(
        ".nvm", ".fnm", ".volta", ".asdf", ".sdkman", ".cargo/bin", ".rustup", "go/bin", ".bun/bin",
        ".deno/bin",
    ),
    *(".dotnet", ".local/share/virtualenvs", "miniconda3", "anaconda3", "miniforge3", "mambaforge"),
)  # fmt: skip
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

    `protected`: files of plans, policies and approvals. `records`: the folder of planrun's own records. `path`: PATH as
    planrun was started with.
    """

    workspace: str
    records: str = ""
    protected: tuple[str, ...] = ()
    home: str = ""
    path: str = os.defpath


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
    known: tuple[tuple[int, ...], ...] = ()

    def all_mounts(self) -> tuple[tuple[Verb, str, str], ...]:
        """Return all of it, parents first."""
        private: list[tuple[Verb, str, str]] = [("dir", path, path) for path in self.private]
        found = {mount[1]: mount for mount in (*private, *self.mounts, *self.own)}
        return tuple([found[path] for path in sorted(found, key=lambda path: path.split("/"))])


_NEVER = ("/run/", "/proc/", "/dev/", "/sys/")  # no folder of programs, and full of sockets
_OWN_LINKS = ("/usr/", "/etc/")  # below them, and in / and /var, are links of the machine
# What a run sees of the system, by the home folder, workspace, PATH and network: it is looked at once.
_SYSTEMS: dict[tuple[str, str, str, str], tuple[dict[str, tuple[Verb, str]], list[str], list[str]]] = {}


def view_of(sandbox: Sandbox, site: Site, job: Job) -> View:
    """Return the view of a job; raises Refused."""
    builder = _Builder(sandbox, site)
    builder.take_system()
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
        self._known: list[tuple[int, ...]] = []

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
        return any(
            verb != "dir" and (path == root or path.startswith(f"{root}/"))
            for root, (verb, _) in self._mounts.items()
        )

    def _show(self, path: str) -> None:
        if not self._shown(path) and os.path.isdir(path) and self._is_machines(path):
            self._put("ro", path)

    def _is_machines(self, path: str) -> bool:
        """Whether a folder is the machine's own: no step and no other user puts files in it, or exchanges it."""
        real = os.path.realpath(path)
        for each in (os.path.normpath(path), real):
            holds = _holds(each, self._site.home) or _holds(each, self._site.workspace)
            if holds or self._is_inside(each) or looks_secret(f"{each}/"):
                return False
        above = os.path.dirname(real)
        while above != "/":
            mode = os.stat(above).st_mode
            if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
                return False
            above = os.path.dirname(above)
        return not os.stat(real).st_mode & stat.S_IWOTH and not f"{real}/".startswith(_NEVER)

    def take_system(self) -> None:
        """Show what this process has seen of the system before, or look at it."""
        key = (self._site.home, self._site.workspace, self._site.path, self._sandbox.network)
        if key not in _SYSTEMS:
            self.system()
            _SYSTEMS[key] = (dict(self._mounts), list(self._writable), list(self._private))
            return
        mounts, writable, private = _SYSTEMS[key]
        self._mounts, self._writable, self._private = dict(mounts), list(writable), list(private)

    def system(self) -> None:
        """Show the system, the programs on planrun's PATH, and an empty home and temporary folder."""
        for path in _SYSTEM:
            if os.path.islink(path):
                self._put("link", path, os.readlink(path))
            elif os.path.isdir(path):
                self._put("ro", path)
        for path in [path for path in _STATE if os.path.isdir(path) and not self._shown(path)]:
            self._put("ro", path)
        for path in [path for path in _SECRETS if os.access(path, os.R_OK)]:
            self._hide(path)
        home = [self._site.home] if self._site.home not in ("", "/") else []
        for path in (TEMPORARY, "/var/tmp", *home):  # noqa: S108
            self._put("dir", path)
            self._private.append(path)
            self._writable.append(path)
        for folder in direct(self._site.path).split(":"):
            if folder.startswith("/"):
                self._show(os.path.normpath(folder))
                self._show_environment(os.path.dirname(os.path.normpath(folder)))
        self._show(sys.base_prefix)
        for name in _TOOLCHAINS if self._site.home else ():
            self._show(f"{self._site.home}/{name}")
        names = os.path.realpath("/etc/resolv.conf")  # often below /run
        if self._sandbox.network == "any" and os.path.isfile(names) and not self._shown(names):
            self._put("ro", names)

    def _show_environment(self, folder: str) -> None:
        """Show a virtual environment of Python that is the machine's own, and the Python that it was made of."""
        if os.path.isfile(f"{folder}/pyvenv.cfg") and self._is_machines(folder):
            self._show(folder)
            for base in _base_of(f"{folder}/pyvenv.cfg"):
                self._show(base)

    def _hide(self, path: str) -> None:
        self._put("mask" if os.path.isdir(path) else "hide", path)

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
                if not os.path.lexists(path):
                    raise Refused(f"the sandbox cannot show {path}: it does not exist")
                if _holds(path, self._site.workspace) or path == "/":
                    raise Refused(f"the sandbox cannot show {path}: the workspace is in it")
                part, tops = path, (self._site.workspace, self._site.home, "/")
                while part not in tops:
                    folder = os.path.dirname(part)
                    if (
                        os.path.islink(part)
                        and not f"{folder}/".startswith(_OWN_LINKS)
                        and folder not in ("/", "/var")
                    ):
                        real = os.path.realpath(part)
                        raise Refused(
                            f"the sandbox cannot show {path}: {part} is a symbolic link; name its target, {real}"
                        )
                    part = folder
                if not self._is_inside(path) and path not in self._private:
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
        for path in _git_folders(top):
            if not self._shown(path):
                self._put("ro", path)
        named = frozenset([path for path in map(str, self._sandbox.write) if self._is_inside(path)])
        controls, sockets = _found_in(top, named)
        if is_writable:
            self._protect_all(top, controls, named)
        else:
            for path in sorted(named - {f"{top}/.git"}):
                self._put("rw", path)
        secrets: list[str] = []
        if self._sandbox.hides:
            folders: set[str] = set()  # that are hidden with all that is in them
            for entry, path in _walked(top, frozenset(), _INSTALLED):
                is_folder = entry.is_dir(follow_symlinks=False)
                if os.path.dirname(entry.path) in folders:
                    folders |= {entry.path} if is_folder else set()
                elif entry.name == ".git":
                    secrets += [f"{entry.path}/config"] if _has_credentials(f"{entry.path}/config") else []
                elif looks_secret(f"{path}/" if is_folder else path):
                    secrets.append(entry.path)
                    folders |= {entry.path} if is_folder else set()
            if len(secrets) > _MOST_FOUND:
                raise Refused(
                    f"the sandbox cannot hide {len(secrets)} files that look like secrets, only {_MOST_FOUND};"
                    " name their folders in `sandbox: {read: […]}`"
                )
        elif top == self._site.home:
            secrets = [f"{top}/{name}" for name in _names(top) if looks_secret(name)]
        shown = {*named, *map(str, self._sandbox.read)}
        for path in (*sockets, *secrets):
            if not _is_named(path, shown) and os.path.exists(path) and not os.path.islink(path):
                self._hide(path)

    def _protect_all(self, top: str, controls: list[str], named: frozenset[str]) -> None:
        """Have what controls later work be neither written nor moved, except for what the plan names."""
        now = [f"{top}/{name}" for name in control_names(top)]
        for path in (*now, *controls):
            if os.path.lexists(path) and not _is_named(path, named):
                self._protect(path)
        for path in self._site.protected:  # whatever the plan names
            if self._is_inside(path) and os.path.lexists(path):
                self._protect(path)
        if f"{top}/.git" in named:
            folder = f"{top}/.git"
            for name in _GIT_CONTROLS:
                if os.path.exists(f"{folder}/{name}"):
                    self._protect(f"{folder}/{name}")
            self._keep(folder, ["hooks"])
        else:
            self._keep(top, [".git"])

    def copy(self, top: str) -> None:
        """Show the copy that an agent works on, and no more of the workspace than the objects that its git borrows."""
        self._show_own("ro" if self._sandbox.level == "read-only" else "rw", top)
        if os.path.isdir(f"{top}/.git"):  # there is none where planrun found no git
            self._show_own("ro", f"{top}/.git")
        if objects := [f"{folder}/objects" for folder in _git_folders(self._site.workspace)]:
            self._put("ro", objects[0])
        for name in dependencies(self._site.workspace):  # which the copy has links to
            self._put("ro", f"{self._site.workspace}/{name}")
            for base in _base_of(f"{self._site.workspace}/{name}/pyvenv.cfg"):
                self._show(base)
        for folder in direct(self._site.path).split(":"):  # tools that git ignores, such as .venv/bin
            above = os.path.dirname(folder)
            if (
                self._is_inside(folder)
                and os.path.realpath(folder) == folder
                and not looks_secret(f"{folder}/")
            ):
                is_environment = os.path.isfile(f"{above}/pyvenv.cfg") and above != self._site.workspace
                self._put("ro", above if is_environment else folder)

    def _protect(self, path: str) -> None:
        """Have a path of the workspace be neither written nor moved; of a link, what it leads to."""
        if os.path.islink(path):
            path = os.path.realpath(path)
            if not self._is_inside(path) or not os.path.exists(path):
                return
        if os.path.realpath(path) != path:
            raise Refused(f"the sandbox cannot protect {path}: it is below a symbolic link")
        parent = os.path.dirname(path)
        while parent not in self._mounts:
            self._put("rw", parent)  # a mount of its own cannot be renamed
            parent = os.path.dirname(parent)
        self._put("ro", path)
        info = os.lstat(path)
        self._known.append((info.st_dev, info.st_ino, info.st_ctime_ns))  # numbers of files are used again

    def _keep(self, folder: str, names: Iterable[str]) -> None:
        """Put up empty folders in the place of some that do not exist."""
        for name in names:
            path = f"{folder}/{name}"
            if not os.path.lexists(path):
                self._put("mask", path)
                self._kept.append(path)

    def own(self, job: Job) -> None:
        """Hide planrun's records, except for the files through which this attempt reports."""
        records = self._site.records
        if records:
            self._put("mask", records)
        for name in ("PLANRUN_OUTPUT", "PLANRUN_PROGRESS"):
            path = job.env.get(name, "")
            if path.startswith(f"{records}/") and "/../" not in path:  # a post-check has none
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
            here = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(__file__))))
            for path in (sys.base_prefix, sys.prefix, here):
                if path != "/" and not self._shown(path) and not _holds(path, self._site.home):
                    self._put("ro", path)

    def _show_own(self, verb: Verb, path: str) -> None:
        self._own.append((verb, path, path))
        if verb == "rw":
            self._writable.append(path)


def _git_folders(top: str) -> list[str]:
    """Return where the data of a repository are, those of all its worktrees first.

    A worktree and a submodule have them elsewhere; what a file `.git` names counts only if it names this one, too.
    """
    if os.path.isdir(f"{top}/.git"):
        return [] if os.path.islink(f"{top}/.git") else [f"{top}/.git"]
    folder = os.path.realpath(os.path.join(top, _line(f"{top}/.git").removeprefix("gitdir:").strip()))
    common = os.path.dirname(os.path.dirname(folder))
    if os.path.realpath(os.path.join(folder, _line(f"{folder}/gitdir"))) == f"{top}/.git":  # a worktree
        is_whole = os.path.realpath(os.path.join(folder, _line(f"{folder}/commondir"))) == common
        return [common, folder] if is_whole and os.path.basename(common) == ".git" else []
    try:
        with open(f"{folder}/config", encoding="utf-8", errors="replace") as file:
            lines = [line.partition("=") for line in file.read(65536).splitlines()]
    except OSError:
        return []
    trees = [value.strip() for name, _, value in lines if name.strip() == "worktree"]
    return [folder] if any(os.path.realpath(os.path.join(folder, tree)) == top for tree in trees) else []


def _line(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.readline(4096).strip()
    except OSError:
        return ""


def _holds(folder: str, path: str) -> bool:
    return bool(path) and (path == folder or path.startswith(f"{folder.rstrip('/')}/"))


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError as error:
        raise Refused(f"the sandbox cannot look into the workspace: {error.strerror}") from None


_INSTALLED = frozenset(("node_modules", "site-packages", "__pycache__", "venv", ".planrun"))
_BUILT = frozenset(("dist", "build", "target", "vendor"))
"""Folders that no CI system and no git of the project reads."""
_MOST_FOUND = 1000  # paths that are protected, or hidden
_MOST_FOLDERS = 100_000  # that are searched for them
_FOUND: dict[tuple[str, frozenset[str]], tuple[list[str], list[str]]] = {}  # as they were at the first step
_HINT = "name folders that a step may change, whatever is in them, in `sandbox: {write: […]}`"


def _found_in(top: str, named: frozenset[str]) -> tuple[list[str], list[str]]:
    """Return what controls later work in a workspace, and its sockets; `named`: what the plan lets a step write."""
    if (top, named) not in _FOUND:
        controls: list[str] = []
        sockets: list[str] = []
        for entry, path in _walked(top, named, _INSTALLED | _BUILT):
            if control(path):
                controls.append(entry.path)
            elif not (entry.is_file() or entry.is_dir()) and stat.S_ISSOCK(os.lstat(entry.path).st_mode):
                sockets.append(entry.path)
        for folder in [path for path in controls if os.path.isdir(path)]:
            inner = [f"{folder}/{name}" for name in os.listdir(folder)]
            sockets += [path for path in inner if stat.S_ISSOCK(os.lstat(path).st_mode)]
        if len(controls) > _MOST_FOUND or len(sockets) > _MOST_FOUND:
            what = f"{len(controls)} files that control later work and {len(sockets)} sockets"
            raise Refused(f"the sandbox cannot protect {what} in the workspace, only {_MOST_FOUND}; {_HINT}")
        _FOUND[top, named] = controls, sockets
    return _FOUND[top, named]


def _has_credentials(config: str) -> bool:
    try:
        with open(config, encoding="utf-8", errors="replace") as file:
            lines = file.read(1 << 20).lower().splitlines()
    except OSError:
        return False
    return any("extraheader" in line or ("://" in line and "@" in line) for line in lines)


def _walked(
    top: str, named: frozenset[str], left_out: frozenset[str]
) -> Iterator[tuple[os.DirEntry[str], str]]:
    """Yield each entry below a folder with its relative path; folders that count for themselves are not searched."""
    folders, at = [""], 0
    while at < len(folders):
        folder, at = folders[at], at + 1
        try:
            with os.scandir(f"{top}/{folder}") as listed:
                entries = list(listed)
        except OSError:
            continue
        for entry in entries:
            path = f"{folder}/{entry.name}".lstrip("/")
            if entry.path in named:
                continue
            yield entry, path
            is_searched = entry.name not in left_out and not entry.name.startswith(
                (".venv", ".tox", ".nox", ".cache")
            )
            if is_searched and entry.is_dir(follow_symlinks=False) and not control(path):
                folders.append(path)
        if len(folders) > _MOST_FOLDERS:
            raise Refused(
                f"the sandbox cannot search more than {_MOST_FOLDERS:,} folders of the workspace; {_HINT}"
            )


def _is_named(path: str, named: Iterable[str]) -> bool:
    return any(path == each or path.startswith(f"{each}/") for each in named)


_LISTED = ("", "plans", "approvals", "policies", *sorted({path.rpartition("/")[0] for path in PATHS}))
"""Folders of the workspace in which a step could make a file that controls later work, under a fixed name."""


def control_names(workspace: str) -> dict[str, str]:
    """Return the files and folders near the top of the workspace that control later work; of a link, its target."""
    found = {}
    for folder in _LISTED:
        try:
            names = [f"{folder}/{name}" if folder else name for name in os.listdir(f"{workspace}/{folder}")]
        except OSError:
            continue
        for name in [name for name in names if control(name)]:
            path = f"{workspace}/{name}"
            found[name] = os.readlink(path) if os.path.islink(path) else ""
    return found


def direct(path: str) -> str:
    """Return a PATH whose entries have no `..`: the folder before it is not in the view."""
    if ".." not in path:
        return path
    return ":".join([os.path.realpath(each) if "/.." in each else each for each in path.split(":")])


def _base_of(settings: str) -> list[str]:
    try:
        with open(settings, encoding="utf-8", errors="replace") as file:
            lines = file.read(4096).splitlines()
    except OSError:
        return []
    homes = [line.partition("=")[2].strip() for line in lines if line.partition("=")[0].strip() == "home"]
    return [os.path.dirname(os.path.realpath(home)) for home in homes if home.startswith("/")]


__all__ = ["CACHES", "TEMPORARY", "Refused", "Site", "View", "control_names", "view_of"]
