"""Where a path leads, by its text alone: inside the workspace, to a control file, outside, to a secret.

Every question takes the path as a program gets it, and the folder the program runs in (None: not known), and answers
with a reason: "" means that nothing stands against it. Links are not followed: nothing here looks at a disk.

Variables that change which code runs, or how: setting one is class high.
"""

from __future__ import annotations

from planrun.risk.controls import control
from planrun.risk.sensitive import looks_secret, may_be_secret
from planrun.risk.tokens import NAME, NAME_START
from planrun.risk.words import HOME, names_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# What of a system may be read: programs and their documentation, and files that describe the machine.
_SYSTEM_FOLDERS = ("/usr", "/bin", "/lib", "/lib64", "/sbin")
_SYSTEM_FILES = names_in(
    "/ /dev/null /dev/fd/63 /etc/os-release /etc/hostname /etc/hosts /etc/debian_version /etc/lsb-release"
    " /etc/alpine-release /etc/issue /etc/timezone /etc/shells /etc/services /etc/protocols"
    " /etc/nsswitch.conf /proc/cpuinfo /proc/meminfo /proc/version /proc/loadavg /proc/uptime"
    " /proc/filesystems /proc/stat /proc/self/cgroup"
)
_GLOBS = frozenset("*?[")


class Ground:
    """What paths are measured against; the fields are those of `classify.Setting`."""

    __slots__ = ("cwd", "places", "variables", "workspace")

    def __init__(
        self, cwd: str, variables: Mapping[str, str], places: tuple[str, ...], workspace: str
    ) -> None:
        self.cwd: str | None = _joined([], cwd) if not cwd.startswith("/") else None
        self.variables = variables
        self.places = tuple(place.rstrip("/") for place in places if place.startswith("/"))
        self.workspace = workspace.rstrip("/") if workspace.startswith("/") else ""


def _joined(base: list[str], path: str) -> str | None:
    """Return a path below a base folder, without dots; None when it leaves the top."""
    parts = list(base)
    for part in path.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def _below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + "/")


def locate(path: str, cwd: str | None, ground: Ground) -> tuple[str, str]:
    """Return where a path leads: ("inside", relative), ("place", absolute), ("outside", absolute or as it is)."""
    if HOME in path:
        return "outside", path.replace(HOME, "~")
    if path.startswith("/"):
        parts: list[str] = []
        for part in path.split("/"):
            if part == "..":
                del parts[-1:]
            elif part not in ("", "."):
                parts.append(part)
        whole = "/" + "/".join(parts)
        if any(_below(whole, place) for place in ground.places):  # which may be in the workspace
            return "place", whole
        if ground.workspace and _below(whole, ground.workspace):
            return "inside", whole[len(ground.workspace) + 1 :]
        return "outside", whole
    if cwd is None:
        return "outside", path
    relative = _joined(cwd.split("/") if cwd else [], path)
    return ("outside", path) if relative is None else ("inside", relative)


def folder(path: str, cwd: str | None, ground: Ground) -> str | None:
    """Return the workspace-relative folder that `cd` leads to; None when it is not inside."""
    where, relative = locate(path, cwd, ground)
    return relative if where == "inside" else None


def reading(path: str, cwd: str | None, ground: Ground) -> str:
    """Say why a program must not read a path."""
    if path == "-":
        return ""
    where, place = locate(path, cwd, ground)
    if looks_secret(path) or looks_secret(place):
        return f"{_shown(path)}: may hold secrets"
    if (
        where == "outside"
        and place not in _SYSTEM_FILES
        and not any(_below(place, each) for each in _SYSTEM_FOLDERS)
    ):
        return _outside(path, cwd, "read")
    parts = path.split("/")
    for at, part in enumerate(parts):
        if _GLOBS & set(part) and (may_be_secret(part) or ".git" in parts[:at]):
            return f"{_shown(path)}: a pattern that may name files with secrets"
    return ""


def inside(path: str, cwd: str | None, ground: Ground) -> str:
    """Say why a path is no ordinary one inside the workspace."""
    where, _ = locate(path, cwd, ground)
    if where == "outside":
        return _outside(path, cwd, "used")
    return reading(path, cwd, ground)


def writing(path: str, cwd: str | None, ground: Ground) -> str:
    """Say why a program must not write a path."""
    if path == "/dev/null":
        return ""
    where, place = locate(path, cwd, ground)
    if where == "outside":
        return _outside(path, cwd, "written")
    if where == "inside" and control(place):
        return f"{_shown(path)}: controls what runs later"
    if looks_secret(path):
        return f"{_shown(path)}: may hold secrets"
    return ""


def deleting(path: str, cwd: str | None, ground: Ground) -> str:
    """Say why a program must not delete a path."""
    where, place = locate(path, cwd, ground)
    if where == "inside" and not place:
        return f"{_shown(path)}: the workspace itself"
    if where == "inside" and cwd and _below(cwd, place):
        return f"{_shown(path)}: the folder it stands in"
    if not path:
        return "an empty name"
    return writing(path, cwd, ground)


def _outside(path: str, cwd: str | None, done: str) -> str:
    if cwd is None and not path.startswith(("/", HOME)):
        return f"{_shown(path)}: {done} in a folder that is not known"
    return f"{_shown(path)}: {done} outside the workspace"


def _shown(path: str) -> str:
    return path.replace(HOME, "~") if len(path) <= 60 else path[:60].replace(HOME, "~") + "…"


_STARTS = (
    "LD_", "DYLD_", "GIT_", "BASH", "PYTHON", "PERL", "RUBY", "NODE_", "NPM_", "npm_", "YARN_", "PNPM_", "PIP_", "UV_",
    "CARGO_", "RUSTC", "RUSTUP_", "JAVA_", "JDK_", "MAVEN_", "GRADLE_", "DOTNET_", "NUGET_", "SSH_", "GPG_", "GNUPG",
    "DOCKER_", "KUBE", "AWS_", "AZURE_", "GOOGLE_", "GITHUB_", "GITLAB_", "ACTIONS_", "PLANRUN_", "XDG_", "LESS",
    "MALLOC_", "GLIBC_", "GCONV_", "LUA_", "PHP", "COMPOSER_", "BUNDLE_", "GEM_", "TERM_", "TERMINFO", "CMAKE_",
    "HTTP_", "http_", "HTTPS_", "https_",
    "FTP_", "ftp_", "ALL_", "all_", "SSL_", "CURL_", "WGET", "ANSIBLE_", "TF_", "HELM_",
    "PYTEST_", "TOX_", "NOX_", "COVERAGE_", "PRE_COMMIT_", "POETRY_", "PIPENV_", "CONDA_", "VIRTUAL_", "OPENSSL_",
)  # fmt: skip
_ENDS = (
    "_OPTIONS", "_OPTS", "FLAGS", "_HOME", "_PROXY", "_proxy", "_WRAPPER", "_LAUNCHER", "_COMMAND", "_CMD", "_EDITOR",
    "_PAGER", "_SHELL", "_ASKPASS", "_CONFIG", "_CONF", "_PRELOAD", "_PLUGINS", "_PATH", "_URL", "_REGISTRY", "_HOST",
    "PATH", "_RC", "_INIT", "_BIN", "_BINARY", "_EXECUTABLE", "_HOOK", "_HOOKS", "_AGENT", "_ARGS",
)  # fmt: skip
_NAMES = names_in(
    "IFS ENV CDPATH PAGER MANPAGER EDITOR VISUAL BROWSER SHELL SHELLOPTS PS0 PS1 PS2 PS3 PS4"
    " PROMPT_COMMAND HOME USER LOGNAME PWD OLDPWD TMPDIR TMP TEMP TERM TERMCAP MAIL MAILPATH FPATH"
    " GLOBIGNORE EXECIGNORE POSIXLY_CORRECT INPUTRC HISTFILE FCEDIT CC CXX CPP LD AR AS NM RANLIB OBJCOPY"
    " MAKE GO GOROOT GOPATH GOBIN GOENV GOPROXY GOSUMDB GONOSUMDB GOPRIVATE GOINSECURE GONOPROXY"
    " GOTOOLCHAIN GOVCS GOMODCACHE GOCACHE GOWORK GOAUTH CLASSPATH NLSPATH LOCPATH LOCALDOMAIN RES_OPTIONS"
    " HOSTALIASES RESOLV_HOST_CONF RSYNC_RSH CVS_RSH TAR_OPTIONS ZIPOPT UNZIP GZIP XZ_OPT GREP_OPTIONS"
    " RIPGREP_CONFIG_PATH FD_CONFIG JQ_COLORS PYTHONPATH M2_HOME MAKEFILES MAKEOVERRIDES TZDIR OSTYPE"
)
_HARMLESS = names_in(
    "PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE PYTHONHASHSEED PYTHONUTF8 PYTHONIOENCODING"
    " PYTHONFAULTHANDLER PYTHONDEVMODE PYTHONASYNCIODEBUG PYTHONOPTIMIZE PIP_NO_INPUT"
    " PIP_DISABLE_PIP_VERSION_CHECK PIP_NO_CACHE_DIR PIP_PROGRESS_BAR PIP_QUIET NODE_ENV CARGO_TERM_COLOR"
    " CARGO_INCREMENTAL DOTNET_NOLOGO DOTNET_CLI_TELEMETRY_OPTOUT UV_NO_PROGRESS UV_FROZEN RUBY_ENV"
    " PYTEST_DISABLE_PLUGIN_AUTOLOAD"
)


def harm(name: str, value: str, cwd: str | None, ground: Ground) -> str:
    """Say why a variable must not be set to a value; "" when nothing stands against it."""
    if not name or name[0] not in NAME_START or not NAME.issuperset(name):
        return f"{name}: no plain name of a variable"
    if name == "COVERAGE_FILE":  # where coverage writes its data
        return writing(value, cwd, ground)
    if name == "PYTHONPATH":
        outside = [part for part in value.split(":") if not part or inside(part, cwd, ground)]
        return "PYTHONPATH: changes which code runs" if outside else ""
    if name == "TZ":
        return "" if value[:1] not in ("/", ":", ".") and ".." not in value else "TZ: reads a file"
    if name.startswith(("LC_", "LANG")) and "/" in value:
        return f"{name}: reads a file"
    if name in _HARMLESS:
        return ""
    if name in _NAMES or name.startswith(_STARTS) or name.endswith(_ENDS):
        return f"{name}: changes which code runs, or how"
    return ""
