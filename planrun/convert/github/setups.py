"""Actions that put programs on the PATH, as data: the check that a program is there in the version that is asked for.

For Python a virtual environment is made.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# Programs, the input that names the version of the first, and the command that prints the one that is there.
SETUPS: Mapping[str, tuple[str, str, str]] = {
    "actions/setup-dotnet": ("dotnet", "dotnet-version", "dotnet --version"),
    "actions/setup-go": ("go", "go-version", "go env GOVERSION"),
    "actions/setup-java": (
        "java",
        "java-version",
        'java -version 2>&1 | sed -n \'s/.*version "\\([^"]*\\)".*/\\1/p\'',
    ),
    "actions/setup-node": ("node npm", "node-version", "node --version"),
    "actions/setup-python": ("python3", "python-version", ""),
    "astral-sh/setup-uv": ("uv", "version", "uv --version | cut -d ' ' -f 2"),
    "dart-lang/setup-dart": (
        "dart",
        "sdk",
        "dart --version 2>&1 | sed -n 's/^Dart SDK version: \\([^ ]*\\).*/\\1/p'",
    ),
    "denoland/setup-deno": ("deno", "deno-version", "deno --version | sed -n 's/^deno \\([^ ]*\\).*/\\1/p'"),
    "dtolnay/rust-toolchain": ("cargo rustc", "toolchain", "rustc --version | cut -d ' ' -f 2"),
    "erlef/setup-beam": (
        "erl",
        "otp-version",
        "erl -noshell -eval 'io:put_chars(erlang:system_info(otp_release)), halt().'",
    ),
    "haskell-actions/setup": ("ghc cabal", "ghc-version", "ghc --numeric-version"),
    "julia-actions/setup-julia": ("julia", "version", "julia --version | cut -d ' ' -f 3"),
    "oven-sh/setup-bun": ("bun", "bun-version", "bun --version"),
    "pnpm/action-setup": ("pnpm", "version", "pnpm --version"),
    "r-lib/actions/setup-r": ("Rscript", "r-version", "Rscript -e 'cat(as.character(getRversion()))'"),
    "ruby/setup-ruby": ("ruby bundle", "ruby-version", "ruby -e 'print RUBY_VERSION'"),
    "shivammathur/setup-php": ("php composer", "php-version", "php -r 'echo PHP_VERSION;'"),
    "swift-actions/setup-swift": (
        "swift",
        "swift-version",
        "swift --version 2>&1 | sed -n 's/.*Swift version \\([^ ]*\\).*/\\1/p'",
    ),
}
"""What languages and their package managers are set up by; the versions of other programs are a matter of steps."""
# Inputs of such actions that run something, too: the value for which they do, and the command.
EFFECTS: Mapping[str, tuple[str, str, str]] = {
    "ruby/setup-ruby": ("bundler-cache", "true", "bundle install"),
    "pnpm/action-setup": ("run_install", "true", "pnpm install --recursive"),
}
# Inputs that make no difference here: how the program is fetched, and kept.
_FETCHING = re.compile(
    r".*(?:cache|token|distribution|latest|prerelease|profile|override|mirror|scope|suffix|architecture).*|package_json_file"
    r"|rubygems|bundler|working-directory|update-environment|extended|channel|use-public-rspm|http-user-agent|ncpus"
)
# The lines that write what an action says of the program.
OFFERS: Mapping[str, Mapping[str, str]] = {
    "actions/setup-python": {
        "python-path": 'echo "python_path=$VENV/bin/python" >> "$PLANRUN_OUTPUT"',
        "python-version": 'echo "python_version=$("$VENV/bin/python" -c \'import platform; '
        'print(platform.python_version())\')" >> "$PLANRUN_OUTPUT"',
        "cache-hit": 'echo "cache_hit=false" >> "$PLANRUN_OUTPUT"',
    },
    "actions/setup-node": {"node-version": 'echo "node_version=$(node --version)" >> "$PLANRUN_OUTPUT"'},
    "actions/setup-go": {"go-version": 'echo "go_version=$(go env GOVERSION)" >> "$PLANRUN_OUTPUT"'},
}
_SIMPLE = re.compile(r"v?\d+(?:\.\d+)*(?:\.x)*\Z")
_PYTHON = re.compile(r"(?:pypy-?)?\d+(?:\.\d+)*(?:\.x)?(?:t|-dev)?\Z")
SETUP_PYTHON = """\
want=${WANTED%-dev} want=${want%.x} found=
case $want in
  pypy*) number=${want#pypy} number=${number#-} names=pypy$number ;;
  *t) number=${want%t} names=python$want ;;
  *) number=$want names="python$want python3 python" ;;
esac
for name in $names; do
  "$name" -c 'import sys; sys.exit(not ("%d.%d.%d." % sys.version_info[:3]).startswith(sys.argv[1]))' \\
    "${number:+$number.}" 2> /dev/null && found=$name && break
done
if [ -n "$found" ]; then "$found" -m venv "$VENV"
elif command -v uv > /dev/null; then uv venv --quiet --seed --python "$want" "$VENV"
else echo "Python $want is not on the PATH, and there is no uv to fetch it" >&2; exit 1; fi
"""
_CHECK_VERSION = """\
have=$({command}) have=${{have#v}} have=${{have#go}} want=${{WANTED#v}} want=${{want%%.x*}}
case "$have." in
  "$want".*) ;;
  *) echo "{program} $want is needed, and $have is here" >&2; exit 1 ;;
esac
"""


class Setup:
    """What is to be done in place of an action: a script that reads the version from WANTED, or "" for a mere check.

    `asked`: the version, "" for any. `left`: what it asks for and nothing compares.
    """

    def __init__(self, action: str, inputs: Mapping[str, str]) -> None:
        programs, key, command = SETUPS[action]
        self.action = action
        self.programs = programs.split()
        self.is_python = action == "actions/setup-python"
        asked = " ".join(inputs.get(key, "").split())
        pattern = _PYTHON if self.is_python else _SIMPLE
        is_certain = not asked or "${{" in asked or pattern.match(asked) is not None
        self.asked = asked if is_certain else ""
        self.left = "" if is_certain else f"{key}: {asked}"
        name, wanted, command_beside = EFFECTS.get(action, ("", "", ""))
        self.command = command_beside if name and inputs.get(name, "").strip().lower() == wanted else ""
        known = {key, f"{key}-file", "version-file", name}
        self.unused = [name for name in inputs if name not in known and not _FETCHING.fullmatch(name.lower())]
        for name in (f"{key}-file", "version-file"):
            if not asked and inputs.get(name):
                self.left = f"{name}: {inputs[name]}"
        self.script = ""
        if self.is_python:
            self.script = SETUP_PYTHON
        elif self.asked and command:
            self.script = _CHECK_VERSION.format(command=command, program=self.programs[0])
        elif self.asked:
            self.left = f"{key}: {asked}"
