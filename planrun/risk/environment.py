"""Variables that change which code runs, or how: setting one is class high."""

from __future__ import annotations

from planrun.risk import paths
from planrun.risk.tokens import NAME, NAME_START
from planrun.risk.words import names_in

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


def harm(name: str, value: str, cwd: str | None, ground: paths.Ground) -> str:
    """Say why a variable must not be set to a value; "" when nothing stands against it."""
    if not name or name[0] not in NAME_START or not NAME.issuperset(name):
        return f"{name}: no plain name of a variable"
    if name == "PYTHONPATH":
        outside = [part for part in value.split(":") if not part or paths.inside(part, cwd, ground)]
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
