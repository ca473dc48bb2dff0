"""What is known of programs: one module per family, each with a table `PROGRAMS` from a name to a rule.

    PROGRAMS: dict[str, Rules] = {
        "wc": Rule("read-only", "read*", "-c -l -w --bytes --lines", glob=True),
        "cp": Rule("low", "read+ write", "-a -f -p -r -v --recursive"),
        "black": (
            Rule("read-only", "inside*", "-q -v --check --diff -l=text", needs="--check"),
            Rule("low", "inside*", "-q -v -l=text --line-length=text"),
        ),
        "go": Rule("high", sub={"vet": Rule("medium", "arg*", "-v -tags=text", style="single"), …}),
    }

To add a program: write its rule into the family where it belongs, and its name into FAMILIES below (a test compares the
two). A family is imported when the first of its programs is met, so a module may be long, up to the usual 400 lines,
and is to hold data; a new family is a new module and a new line in FAMILIES.

**A rule** is `Rule(LEVEL, OPERANDS, OPTIONS, …)`. What it does not name is class high: an option that is not in
OPTIONS, an operand too many, a value that is not what its kind wants. So leave out whatever you are not sure of, and
whatever is high in any case: nothing is ever written down as high. A program whose every use is high has its place in
`programs/dangerous.py`, where it gets a good reason.

LEVEL: the class of the harmless use, "read-only", "low" or "medium"; "high" only with `sub`, where it means nothing by
itself. Effects follow from it (low: writes; medium: code) unless `effects="network"` or several words say otherwise.

**Several forms** of one program are a tuple of rules. The first rule that accepts the whole command decides, so put the
lowest class first. `needs="--check"`: this form holds only when one of these options is given. `operands` may distinguish
forms as well: `git branch` without any lists, with a name it creates.

**OPERANDS**: kinds separated by blanks, each may end in `?` (at most one), `*` (any number) or `+` (at least one); at
most one `*` or `+` in a rule. What follows it is counted from the end: "read+ write" is cp. "" : none may be given.

**OPTIONS**: names separated by blanks, exactly as they are written on a command line.

    -v --verbose          a flag without a value
    -n=text --lines=text  has a value of that kind: `-n5`, `-n 5`, `--lines=5`, `--lines 5`
    --color[=text]        may have a value, which is attached: `--color`, `--color=auto`; for a short one `-i`, `-i.bak`
    --when={auto,never}   has one of these values
    --arg=text,read       has two values, the next two words
    -#                    a number as an option: `-5`
    +#, +x                not options; write a `check` for such programs
    --fix:low             raises the class; --push:medium:network names an effect as well

Abbreviations of long options are never accepted, bundles of short flags are (`-la`). An option's value may not begin
with `-`, when it is a word of its own. `--` ends the options.

**Kinds** of operands and of values of options; each may end in `:low` or `:medium` to raise the class where it is used:

    text     says nothing about files: a pattern, a number, a message, a format
    arg      anything, for project code or git: high only when it looks like a path outside, or to secrets
    name     a plain name: of a branch, a package that is installed, a target; no option, no path, no URL
    number   digits, with a unit perhaps: 10, 1.5, 60s, +5, -1
    read     a path that is read: inside the workspace, or of the system and harmless; never secrets. `-` is stdin
    look     the same, and the root of the system too: for programs that print names, sizes and times only
    inside   a path inside the workspace that is read or worked in (configuration, sources of a build)
    values   the same, and values of terraform, whatever they are called
    filter   a pattern that chooses files (`--include`): high when it may choose some with secrets
    write    a path that is written, whatever was there: an ordinary file inside the workspace; low, writes
    make     the same, where nothing is lost of what was there (mkdir, touch, `tee -a`)
    delete   a path that is deleted: like write, but not the workspace itself; medium, destroys
    run      a file of the workspace that is run as code: medium, code
    folder   a folder inside the workspace in which everything else is looked up (`-C build`)
    url      http:// or https:// without a password, fetched: medium, network
    remote   a name of a git remote, or such a URL: medium, network
    assign   NAME=value, an environment variable that changes no code
    command  the rest of the words is a command of its own, which is classified in turn (timeout, nice, uv run)
    module   a Python module by name; the rest are its words
    package  what a package manager installs; `.[extra]` is no pattern there

**Other arguments** of Rule, all by keyword:

    sub={…}        subcommands by name; OPERANDS is then empty, OPTIONS are those before the subcommand. Values are rules,
                   tuples of rules, or rules with a `sub` of their own; the name "" is for no subcommand at all.
    style="gnu"    options may stand anywhere, short ones bundle (the default)
    style="posix"  options end at the first operand, as for env, bash, python, docker
    style="raw"    there are no options: every word is an operand (echo, scripts of the project)
    style="single" one dash and a whole name, `-name x`, `-count=1`, `--count=1` (go, java, terraform); no bundles
    style="tar"    like gnu, but the first word may be a bundle without a dash
    glob=True      a pattern may name files: only for programs that do no harm whatever their options are
    unknown=True   unknown values in double quotes are fine as words: only for echo, printf, test and [
    builtin=True   a builtin of the shell, which `exec:` does not find
    check=FUNCTION looks at a command that the rule accepted: `check(use: Use) -> Finding | None`. `use.options` is a list
                   of (name, value or None), `use.operands` the operands, `use.cwd` the folder, `use.ground` for
                   `planrun.risk.paths`; return `levels.high("reason")`, another Finding, or None. It can only raise.
    reads="…"      what it reads that no word names, writes="…" the names that it makes of those it is given: the words for
                   that are those of `planrun.risk.names`
    reason="…"     what the program does, in words, for its class: "runs the project's tests"

`PROGRAM --version` and `PROGRAM --help` are read-only for every program in a table, without being written down.

**What to look for** in a manual page: options that run a program, load code or a plugin, read options or file lists from
a file, write a file, follow a URL, start a server or never end, open an editor or a pager, send something, take a folder
or a configuration from elsewhere, act on the system or the user's home. All of them stay out. Interactive use and
reading standard input as code (an interpreter without operand) stay out as well.
"""

from __future__ import annotations

import sys

from planrun.risk.levels import high
from planrun.risk.table import Rule
from planrun.risk.words import literal, names_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from planrun.risk.levels import Finding
    from planrun.risk.table import Rules, Use


def _no_options(use: Use) -> Finding | None:
    """A pattern that begins with no name may become an option."""
    loose = [arg.value for arg in use.words[1:] if arg.glob and (arg.value or "*")[0] in "*?["]
    return high(f"{loose[0]}: a pattern names what is used") if loose else None


SCRIPT = Rule("medium", "arg*", style="raw", glob=True, check=_no_options)
"""A program of the workspace itself: what it is given is its own affair, but for paths outside and to secrets."""

FAMILIES = {
    "shell": ": true false echo printf test [ cd pwd export set unset exit return break continue shift source . type command read sleep wait sh bash dash timeout nice env umask",
    "files": "ls cat wc head tail stat file du cp mv rm rmdir mkdir touch unlink tree basename dirname realpath readlink tee split truncate ln install chmod mktemp df sync csplit",
    "text": "grep egrep fgrep rg sort cut uniq diff cmp comm paste join tr nl tac rev fold fmt expand unexpand pr column shuf od xxd hexdump strings base64 base32 basenc cksum sum md5sum shasum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum dos2unix unix2dos tsort iconv numfmt fd fdfind zgrep colordiff patch sdiff diff3 diffstat",
    "filters": "sed awk gawk mawk nawk jq yq find",
    "system": "date seq uptime whoami id groups uname hostname nproc free arch locale which getconf factor expr tty lscpu logname who cal lsb_release whereis ps",
    "archives": "tar gzip gunzip zcat bzip2 bunzip2 bzcat xz unxz xzcat zstd unzstd zstdcat zip unzip zipinfo lz4",
    "network": "curl wget",
    "tests": "pytest make ruff",
    "remotes": "docker podman kubectl terraform tofu helm gh aws",
    "git": "git",
    "python": "python pip tox nox coverage black isort mypy pyright flake8 pylint autoflake autopep8 yapf"
    " pyupgrade docformatter bandit vulture codespell pre-commit virtualenv uv poetry hatch sphinx-build uvx"
    " mkdocs pip-compile lint-imports djlint python:unittest python:pytest python:ruff python:pip"
    " python:build python:venv python:virtualenv python:coverage python:black python:isort python:mypy"
    " python:flake8 python:pylint python:tox python:nox python:pre_commit python:sphinx python:json.tool"
    " python:compileall python:py_compile python:doctest python:tabnanny python:zipfile python:tarfile"
    " python:calendar python:platform python2 python3 python3.8 python3.9 python3.10 python3.11 python3.12"
    " python3.13 python3.14 pypy pypy3 pip3",
    "node": "node npm yarn pnpm npx bun deno tsc eslint prettier stylelint jest vitest mocha vite webpack rollup esbuild next playwright markdownlint",
    "builds": "go gofmt goimports gofumpt golangci-lint staticcheck govulncheck cargo rustc rustfmt cmake ctest ninja meson bazel just task gcc javac java mvn gradle ant dotnet ruby bundle rake rspec rubocop gem perl prove php composer phpunit phpstan mix rebar3 swift dart flutter zig lua Rscript julia shellcheck shfmt hadolint yamllint actionlint taplo clang-format xmllint stylua cloc tokei size nm readelf",
}  # fmt: skip
"""Family (a module of this package) -> the names of its programs."""
_INDEX: dict[str, str] = {}


def rules(name: str) -> Rules | None:
    """Return what is known of a program; None when nothing is."""
    if not _INDEX:
        _INDEX.update((program, family) for family, names in FAMILIES.items() for program in names.split())
    family = _INDEX.get(name)
    if family is None:
        return None
    module = f"{__name__}.{family}"
    __import__(module)  # importlib.import_module would load `warnings` for this
    found: Rules | None = sys.modules[module].PROGRAMS.get(name)
    return found


KNOWN_PYTHON = names_in("pytest ruff tox nox coverage black isort mypy pyright flake8 pylint autoflake autopep8 yapf pyupgrade docformatter bandit vulture codespell pre-commit hatch poetry mkdocs")  # fmt: skip
KNOWN_NODE = names_in("eslint prettier stylelint jest vitest mocha vite rollup esbuild next playwright")
"""Tools whose packages have the name of the tool, so that no other package can have it."""


def known_tool(known: frozenset[str]) -> Callable[[Use], Finding | None]:
    """Return a check of what `uvx` and `npx` fetch and start: a well-known tool, perhaps in one version."""

    def check(use: Use) -> Finding | None:
        first = (use.rest[0].value if use.rest else "") or ""
        name, sign, version = first.partition("@")
        plain = all(char.isalnum() or char in "._-" for char in version)
        if name not in known or (sign and not version) or not plain:
            return high(f"{first}: names what an index has, and no tool that is known", "network", "code")
        assert use.rest is not None, "it has a name"
        use.rest = [literal(name), *use.rest[1:]]
        return None

    return check


def project_tool(use: Use) -> Finding | None:
    """Look at what `poetry run` and the like start: a tool of the project, by its name or as a file of the workspace."""
    name = (use.rest[0].value if use.rest else "") or ""
    rules("ls")
    if "/" in name or _INDEX.get(name) in ("python", "node", "builds", "tests"):
        return None
    return high(f"{name}: no tool of a project that is known")
