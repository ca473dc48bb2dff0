"""Variables that change which code runs, by family, and their replacements.

The families are those of ld.so(8) and glibc's `unsecvars.h`, of the variables that sudo removes, of bash(1) and
git(1), and of the interpreters and tools in the tables of risk classes.
"""

from __future__ import annotations

from planrun.risk.words import names_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# Always removed from a step that is classified before it starts: they change the meaning of its text.
_SHELL = names_in(
    "BASH_ENV ENV SHELLOPTS BASHOPTS BASH_COMPAT BASH_XTRACEFD BASH_LOADABLES_PATH IFS CDPATH GLOBIGNORE "
    "GLOBSORT EXECIGNORE FIGNORE FUNCNEST POSIXLY_CORRECT PROMPT_COMMAND PS0 PS1 PS2 PS3 PS4 TMOUT OPTERR "
    "OPTIND ZDOTDIR FPATH NULLCMD READNULLCMD FCEDIT INPUTRC OLDPWD"
)
_FUNCTIONS = "BASH_FUNC_"
# Also removed from steps that are allowed since they only read, or only write ordinary files.
_STARTS = tuple(
    names_in(
        "LD_ _RLD LDR_ DYLD_ GIT_ LESS PYTHON PERL RUBY NODE_ JAVA_ JDK_ _JAVA_ MAVEN_ GRADLE_ DOTNET_ "
        "COREHOST_ CORECLR_ COMPLUS_ LUA_ CGO_ CARGO_ RUSTC RUSTDOC RUSTUP_ NPM_CONFIG_ npm_config_ YARN_ "
        "PNPM_ pnpm_ COREPACK_ PIP_ UV_ BUNDLE_ GEM_ COMPOSER_ PYTEST_ TOX_ NOX_ COVERAGE_ MYPY_ BAT_ DELTA_ "
        "FZF_ GREP_ GAWK_ AWK GLIBC_ GCONV_ MALLOC_ OPENSSL_ SSLKEYLOG TERMINFO TERMCAP ZSTD_ XZ_ MAKE "
        "GNUMAKE KRB5_ ASAN_ LSAN_ UBSAN_ TSAN_ GTK_ QT_ GIO_"
    )
)
_ENDS = ("PAGER", "_HOOK_PATH", "_OPTIONS", "_OPTS", "_WRAPPER", "_PRELOAD", "_EDITOR", "_ASKPASS")
_NAMES = names_in(
    "EDITOR VISUAL BROWSER SHELL RIPGREP_CONFIG_PATH GZIP BZIP BZIP2 ZIP ZIPOPT ZIPINFO ZIPINFOOPT UNZIP "
    "UNZIPOPT TAPE RSH RSYNC_RSH CVS_RSH MANPATH MANOPT MANROFFSEQ MANLESS GROFF_COMMAND LIBPATH "
    "SHLIB_PATH LOCPATH NLSPATH PATH_LOCALE LOCALDOMAIN RES_OPTIONS HOSTALIASES RESOLV_HOST_CONF NIS_PATH "
    "GETCONF_DIR TZDIR MAGIC CLASSPATH AUTHSTATE CC CXX DATEMSK PHPRC PHP_INI_SCAN_DIR PSQLRC OSTYPE "
    "HOSTTYPE GOFLAGS GOENV GOROOT GOTOOLDIR GOTOOLCHAIN GOPACKAGESDRIVER GODEBUG GOEXPERIMENT GOWORK "
    "GOCACHEPROG GOAUTH GOVCS"
)
# Kept: a step may print or compare them, and no program runs code because of them.
_KEPT = names_in(
    "GIT_COMMIT GIT_BRANCH GIT_LOCAL_BRANCH GIT_URL GIT_TAG GIT_SHA GIT_REF GIT_REVISION "
    "GIT_PREVIOUS_COMMIT GIT_PREVIOUS_SUCCESSFUL_COMMIT GIT_STRATEGY GIT_DEPTH GIT_COMMIT_SHA "
    "GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_AUTHOR_DATE GIT_CONFIG_NOSYSTEM GIT_COMMITTER_NAME "
    "GIT_COMMITTER_EMAIL GIT_COMMITTER_DATE GIT_CEILING_DIRECTORIES GIT_DISCOVERY_ACROSS_FILESYSTEM "
    "PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE PYTHONHASHSEED PYTHONUTF8 PYTHONIOENCODING PYTHONNOUSERSITE "
    "PYTHONOPTIMIZE NODE_ENV NODE_NAME CARGO_TERM_COLOR GOOS GOARCH CARGO_HOME RUSTUP_HOME "
    "RUSTUP_TOOLCHAIN JAVA_HOME DOTNET_ROOT GREP_COLORS GREP_COLOR DOTNET_NOLOGO "
    "DOTNET_CLI_TELEMETRY_OPTOUT"
)
# Git settings that the environment may set, as CI systems do in containers: they run no program.
_KEPT_CONFIG = ("safe.directory", "user.name", "user.email", "init.defaultbranch", "core.quotepath")
_FILES = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM")  # kept when no other user could have written them
_MAX_PAIRS = 100
_CHANGE: dict[str, bool] = {}  # cache by name: the environments of steps are similar

GIT_OFF = (
    ("core.fsmonitor", ""),  # empty is off in every version; before 2.36 `false` was the name of a program
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.askPass", ""),
    ("maintenance.auto", "false"),  # runs in the background after a command has ended
    ("gc.auto", "0"),
    ("gc.autoDetach", "false"),
    ("protocol.allow", "never"),  # commands that are allowed for their class do not fetch
    ("help.autoCorrect", "0"),
)
"""Settings of git that override those of every file."""
PLACED = {
    "GIT_PAGER": "cat",
    "PAGER": "cat",
    "MANPAGER": "cat",
    "GIT_EDITOR": ":",
    "GIT_SEQUENCE_EDITOR": ":",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_NO_LAZY_FETCH": "1",
    "LESSSECURE": "1",
    "PYTHONSAFEPATH": "1",
    "GOTOOLCHAIN": "local",
    "RUSTUP_AUTO_INSTALL": "0",
    "COREPACK_ENABLE_NETWORK": "0",
}
"""Variables for programs that are allowed for their class."""


def means_more(name: str, value: str) -> bool:
    """Whether a variable changes what the text of a script means, or is a bash function."""
    return name in _SHELL or name.startswith(_FUNCTIONS) or value.startswith("() {")


def changes_code(name: str) -> bool:
    """Whether a variable changes which code a program runs, or may do so by its family."""
    known = _CHANGE.get(name)
    if known is None:
        known = _CHANGE[name] = _changes_code(name)
    return known


def _changes_code(name: str) -> bool:
    if name in _KEPT or name.endswith("_VERSION"):  # images of languages state their version so
        return False
    return name in _NAMES or name.startswith(_STARTS) or name.endswith(_ENDS)


def configured(env: Mapping[str, str], files: Iterable[str]) -> dict[str, str]:
    """Return the variables that configure git: the harmless ones of the caller, overridden by `GIT_OFF`.

    `files`: which of the caller's own files of configuration are kept.
    """
    pairs = [*_harmless(env), *GIT_OFF]
    found = {"GIT_CONFIG_COUNT": str(len(pairs))}
    for number, (key, value) in enumerate(pairs):
        found[f"GIT_CONFIG_KEY_{number}"] = key
        found[f"GIT_CONFIG_VALUE_{number}"] = value
    return found | {name: env[name] for name in files}


def config_files(env: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the variables that name files of configuration, and the files."""
    return [(name, env[name]) for name in _FILES if name in env]


def _harmless(env: Mapping[str, str]) -> list[tuple[str, str]]:
    count = env.get("GIT_CONFIG_COUNT", "")
    if not count.isdecimal() or len(count) > 3 or int(count) > _MAX_PAIRS:
        return []
    pairs = [
        (env.get(f"GIT_CONFIG_KEY_{n}", ""), env.get(f"GIT_CONFIG_VALUE_{n}", "")) for n in range(int(count))
    ]
    return [(key, value) for key, value in pairs if key.lower() in _KEPT_CONFIG]
