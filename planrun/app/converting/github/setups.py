"""Actions that put a language on the PATH: a check of the version, and for Python a virtual environment."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# Actions that put programs on the PATH, and the programs.
SETUPS: Mapping[str, tuple[str, ...]] = {
    "actions/setup-python": ("python3",),
    "actions/setup-node": ("node", "npm"),
    "actions/setup-go": ("go",),
    "actions/setup-java": ("java",),
    "actions/setup-dotnet": ("dotnet",),
    "actions/setup-ruby": ("ruby",),
    "ruby/setup-ruby": ("ruby", "bundle"),
    "astral-sh/setup-uv": ("uv",),
    "hynek/setup-cached-uv": ("uv",),
    "yezz123/setup-uv": ("uv",),
    "pnpm/action-setup": ("pnpm",),
    "oven-sh/setup-bun": ("bun",),
    "denoland/setup-deno": ("deno",),
    "dtolnay/rust-toolchain": ("cargo", "rustc"),
    "actions-rs/toolchain": ("cargo", "rustc"),
    "actions-rust-lang/setup-rust-toolchain": ("cargo", "rustc"),
    "gradle/actions/setup-gradle": ("java",),
    "gradle/gradle-build-action": ("java",),
    "shivammathur/setup-php": ("php", "composer"),
    "erlef/setup-beam": ("erl",),
    "docker/setup-buildx-action": ("docker",),
    "docker/setup-qemu-action": ("docker",),
    "docker/setup-docker-action": ("docker",),
    "azure/setup-helm": ("helm",),
    "azure/setup-kubectl": ("kubectl",),
    "hashicorp/setup-terraform": ("terraform",),
    "arduino/setup-task": ("task",),
    "go-task/setup-task": ("task",),
    "extractions/setup-just": ("just",),
    "snok/install-poetry": ("poetry",),
    "abatilo/actions-poetry": ("poetry",),
    "pdm-project/setup-pdm": ("pdm",),
    "rui314/setup-mold": ("mold",),
}
# The input that names the version, and the command that prints the one that is there.
_VERSIONS: Mapping[str, tuple[str, str]] = {
    "actions/setup-python": ("python-version", ""),
    "actions/setup-node": ("node-version", "node --version"),
    "actions/setup-go": ("go-version", "go env GOVERSION"),
    "actions/setup-java": (
        "java-version",
        'java -version 2>&1 | sed -n \'s/.*version "\\([^"]*\\)".*/\\1/p\'',
    ),
    "actions/setup-dotnet": ("dotnet-version", "dotnet --version"),
    "actions/setup-ruby": ("ruby-version", "ruby -e 'print RUBY_VERSION'"),
    "ruby/setup-ruby": ("ruby-version", "ruby -e 'print RUBY_VERSION'"),
    "shivammathur/setup-php": ("php-version", "php -r 'echo PHP_VERSION;'"),
    "oven-sh/setup-bun": ("bun-version", "bun --version"),
    "pnpm/action-setup": ("version", "pnpm --version"),
    "dtolnay/rust-toolchain": ("toolchain", "rustc --version | cut -d ' ' -f 2"),
    "actions-rs/toolchain": ("toolchain", "rustc --version | cut -d ' ' -f 2"),
    "actions-rust-lang/setup-rust-toolchain": ("toolchain", "rustc --version | cut -d ' ' -f 2"),
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
        self.programs = list(SETUPS[action])
        self.is_python = action == "actions/setup-python"
        key, command = _VERSIONS.get(action, ("", ""))
        asked = " ".join(inputs.get(key, "").split())
        pattern = _PYTHON if self.is_python else _SIMPLE
        is_certain = not asked or "${{" in asked or pattern.match(asked) is not None
        self.asked = asked if is_certain else ""
        self.left = "" if is_certain else f"{key}: {asked}"
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
