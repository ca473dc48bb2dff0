"""Which programs read code or configuration of the workspace, as far as commands of class low or below go.

A closed world: a program that nobody has looked at is not in these tables, and its class is not believed.
"""

from __future__ import annotations

import os

from planrun.risk.words import names_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

SHELLS = frozenset(("bash", "sh", "dash"))
BUILTINS = names_in(
    ": . [ break cd command continue echo exit export false printf pwd read readonly return set shift "
    "source test times true type umask unset wait local let mapfile readarray dirs pushd popd getopts "
    "ulimit jobs kill"
)
"""What bash does itself, before it looks at PATH."""
# Coreutils, findutils, diffutils, grep, sed, awk and their like: no configuration but by variables.
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
"""Programs that read nothing of the workspace but what they are told to, and that read it as data."""
# Their configuration, of the workspace or of the user's home, names no code, or CODE_FILES says where it does.
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
"""Programs that are believed when they are only asked for their version: then they load nothing of the workspace."""
_UNSEEN = b"\\u"  # with which TOML spells any letter otherwise
_TOOLCHAINS = (("rust-toolchain", (b"/",)), ("rust-toolchain.toml", (b"path", _UNSEEN)))


def _python(own: str, *needles: bytes) -> tuple[tuple[str, tuple[bytes, ...]], ...]:
    """The files that may configure a tool of Python, and what in them has it load code."""
    return tuple(
        (name, (*needles, _UNSEEN)) for name in (*own.split(), "setup.cfg", "tox.ini", "pyproject.toml")
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
"""Program -> files, looked for from its folder upwards, that say what it runs if they hold such a word; (): any."""
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
"""The same for a program that only chooses which version is to run, as the shims of pyenv, asdf and mise do."""
_CONFIGURE = ("--config", "--rcfile", "--append-config", "--python-executable")
_WRAPPERS = frozenset(("env", "timeout", "nice", "command", "time", "stdbuf", "ionice", "chrt"))
_VERSION_WORDS = frozenset(("--version", "-V", "-v", "version", "-version"))
_MAX_FILE = 1 << 16  # bytes that are looked at


def inner(words: tuple[str | None, ...]) -> tuple[str | None, ...]:
    """Return the words from the program on that a wrapper like `timeout 5` or `env A=b` starts."""
    while words and words[0] in _WRAPPERS:
        rest = words[1:]
        while rest and (rest[0] is None or rest[0].startswith("-") or "=" in rest[0] or _is_number(rest[0])):
            rest = rest[1:]
        if not rest:
            break
        words = rest
    return words


def of_git(words: Sequence[str | None], cwd: str) -> tuple[str, str]:
    """Return in which folder git works, and what it is to do; both empty when its options leave that open."""
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
    """Say why a command is not believed to run nothing of the workspace; "" when it is."""
    name = os.path.basename(words[0] or "")
    if name in CODE_FILES and any((word or "--config").startswith(_CONFIGURE) for word in words[1:]):
        return f"which configuration `{name}` reads is not looked into"
    if name in PLAIN or name in LOOKED:
        return ""
    if name in VERSIONS and len(words) == 2 and words[1] in _VERSION_WORDS:
        return ""
    return f"`{name}` may load code of the workspace"


def telling(files: Sequence[tuple[str, tuple[bytes, ...]]], folder: str) -> str:
    """Return the first of such files that is there and counts, from a folder upwards; "" when there is none."""
    while files:
        for name, needles in files:
            path = os.path.join(folder, name)
            if holds(path, needles):
                return path
        above = os.path.dirname(folder)
        if above == folder:
            break
        folder = above
    return ""


def holds(path: str, needles: tuple[bytes, ...]) -> bool:
    """Whether a file is there and holds one of the words, or is too long to be looked at."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(fd, "rb") as file:
            data = file.read(_MAX_FILE).lower()
    except OSError:
        return os.path.lexists(path)
    return not needles or len(data) == _MAX_FILE or any(needle in data for needle in needles)


def _is_number(word: str) -> bool:
    return bool(word) and word.rstrip("smhd").replace(".", "", 1).isdecimal()
