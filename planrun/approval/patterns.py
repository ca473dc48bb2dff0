"""The patterns by which texts name files, apart from their words: what is filled in, modules, entries of PATH."""

from __future__ import annotations

import re
from fnmatch import translate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_FILLED = re.compile(
    r"\$'(?:[^'\\]|\\.)*'|\$\{[^{}]*\}|\$\([^()]*\)|\$\w+|\$[@*#?$!-]|`[^`]*`|[@?+*!]\([^()\s]*\)"
    r"|\{[^{}\s]*\}|\[[^\]\s]*\]"
)
_IMPORTED = re.compile(
    r"(?:^|[\s;({\"'=])(?:import|from|require|require_relative|require_once|use|include|load|source)[\s(=\"']+"
    r"([\w@./:, -]+)|[\"']([\w.]+):\w+[\"']"
)
_LANGUAGES = {
    ".py .pyw .pyi .pyc .so": "python pypy ipython pytest coverage gunicorn uvicorn hypercorn daphne waitress-serve flask django-admin"
    " celery streamlit locust nose2 trial PYTHONPATH PYTHONSTARTUP PYTEST_ADDOPTS PYTEST_PLUGINS DJANGO_SETTINGS_MODULE FLASK_APP",
    ".js .mjs .cjs .ts .mts .cts .tsx .jsx .json .node .wasm": "node nodejs bun deno tsx ts-node esno mocha jest nodemon NODE_OPTIONS"
    " --require --import --loader --experimental-loader",
    ".rb .so .ru": "ruby jruby irb rspec rake RUBYOPT rackup puma unicorn",
    ".pl .pm .t .plx": "perl prove PERL5OPT",
    ".php .phar .inc": "php artisan",
    ".lua .so": "lua luajit LUA_INIT busted nvim",
    ".class .java .jar .kt .groovy .scala .clj": "java javac kotlin kotlinc scala groovy clojure clj lein jshell",
    ".el .elc .eln": "emacs emacsclient",
    ".jl": "julia",
    ".hs .lhs": "ghc runghc runhaskell ghci",
    ".erl .beam .ex .exs": "erl elixir escript iex mix",
    ".tcl .tm": "tclsh wish expect",
    ".psm1 .ps1 .psd1": "pwsh powershell Import-Module",
    ".m": "octave matlab",
    ".R .r": "Rscript R",
    ".vim .lua": "vim nvim vi",
    ".scm .ss .rkt .lisp .fasl": "guile racket scheme sbcl",
    ".so .dylib .dll": "LD_PRELOAD LD_LIBRARY_PATH sqlite3",
}
"""Endings that programs and variables add to a word for the name of a file."""
_ENDINGS = {name: endings.split() for endings, names in _LANGUAGES.items() for name in names.split()}
_STARTED = re.compile(
    rf"(?<![\w.-])({'|'.join(sorted(map(re.escape, _ENDINGS), key=len, reverse=True))})[\d.]*(?![\w-])([^\n;|&]*)"
)
_HOOKED = re.compile(
    r"\bgit\b[^\n;|&]*\b(?:commit|push|pull|merge|rebase|am|checkout|switch|revert|cherry-pick|clone|worktree)\b"
)
_BESIDE = re.compile(r"[\s,=:\"'()<>{}\[\]`]+")
_ATTACHED = re.compile(r"^(?:--?\w[\w-]*=|-[A-Za-z]|@)?(.*)$", re.DOTALL)
_APART = re.compile(r"[\s,]+")
_PATH = re.compile(r"\bPATH=(\"[^\"\n]*\"|'[^'\n]*'|[^\s;]*)")


def filled_in(text: str) -> str:
    """Return a text with `*` in place of what a shell replaces: variables, substitutions, braces, brackets."""
    return _FILLED.sub("*", text)


def modules_in(text: str) -> set[str]:
    """Return the names in a text that code imports: files without their ending."""
    names = {name for pair in _IMPORTED.findall(text) for name in pair if name}
    return {each.replace("::", "/") for name in names for each in _APART.split(name)}


def started_in(text: str) -> set[tuple[str, str]]:
    """Return the words of a text behind programs that may take them for modules, each with an ending of a file."""
    return {
        (part.replace("::", "/"), ending)
        for program, rest in _STARTED.findall(text)
        for word in _BESIDE.split(rest)
        for part in {word, _ATTACHED.sub(r"\1", word)} - {""}
        for ending in _ENDINGS[program]
    }


def starts_hooks(text: str) -> bool:
    """Whether a text has a command of git that starts hooks."""
    return _HOOKED.search(text) is not None


def fitting(patterns: Iterable[str], names: Iterable[str]) -> Iterator[str]:
    """Yield the names that fit one of some patterns."""
    fits = re.compile("|".join([translate(each) for each in patterns])).match
    return filter(fits, names)


def paths_in(text: str) -> list[str]:
    """Return the values that a text gives to PATH."""
    return [value.strip("\"'") for value in _PATH.findall(text)]
