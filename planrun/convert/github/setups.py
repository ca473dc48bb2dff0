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
    "reviewdog/action-setup": ("reviewdog", "", ""),
    "wasmerio/setup-wasmer": ("wasmer", "", ""),
    "bytecodealliance/actions/wasmtime/setup": (
        "wasmtime",
        "version",
        "wasmtime --version | cut -d ' ' -f 2",
    ),
    "aquasecurity/setup-trivy": ("trivy", "version", "trivy --version | sed -n '1s/.*: //p'"),
    "anchore/scan-action/download-grype": ("grype", "", ""),
    "ko-build/setup-ko": ("ko", "version", "ko version"),
    "imjasonh/setup-crane": ("crane", "version", "crane version"),
    "redhat-actions/oc-installer": ("oc", "", ""),
    "gruntwork-io/setup-terragrunt": ("terragrunt", "version", "terragrunt --version | sed 's/.*v//'"),
    "updatecli/updatecli-action": (
        "updatecli",
        "version",
        "updatecli version 2>&1 | sed -n 's/.*Version: *//p'",
    ),
    "bencherdev/bencher": ("bencher", "", ""),
    "licensee/setup-licensed": ("licensed", "", ""),
    "1password/install-cli-action": ("op", "version", "op --version"),
    "abatilo/actions-poetry": (
        "poetry",
        "poetry-version",
        "poetry --version | sed 's/.*version \\([^)]*\\).*/\\1/'",
    ),
    "actions-rs/toolchain": ("cargo rustc", "toolchain", "rustc --version | cut -d ' ' -f 2"),
    "actions-rust-lang/setup-rust-toolchain": (
        "cargo rustc",
        "toolchain",
        "rustc --version | cut -d ' ' -f 2",
    ),
    "actions/setup-dotnet": ("dotnet", "dotnet-version", "dotnet --version"),
    "actions/setup-elixir": ("elixir", "", ""),
    "actions/setup-go": ("go", "go-version", "go env GOVERSION"),
    "actions/setup-haskell": ("ghc cabal", "", ""),
    "actions/setup-java": (
        "java",
        "java-version",
        'java -version 2>&1 | sed -n \'s/.*version "\\([^"]*\\)".*/\\1/p\'',
    ),
    "actions/setup-node": ("node npm", "node-version", "node --version"),
    "actions/setup-python": ("python3", "python-version", ""),
    "actions/setup-ruby": ("ruby", "ruby-version", "ruby -e 'print RUBY_VERSION'"),
    "anchore/sbom-action/download-syft": ("syft", "syft-version", "syft --version | cut -d ' ' -f 2"),
    "android-actions/setup-android": ("sdkmanager", "", ""),
    "arduino/setup-protoc": ("protoc", "", ""),
    "arduino/setup-task": ("task", "version", "task --version | sed 's/.*v//'"),
    "astral-sh/setup-uv": ("uv", "version", "uv --version | cut -d ' ' -f 2"),
    "aws-actions/setup-sam": ("sam", "version", "sam --version | sed 's/.*version //'"),
    "azure/setup-helm": ("helm", "version", "helm version --template '{{.Version}}'"),
    "azure/setup-kubectl": (
        "kubectl",
        "version",
        "kubectl version --client -o yaml | sed -n 's/ *gitVersion: //p'",
    ),
    "bazel-contrib/setup-bazel": ("bazel", "", ""),
    "bazelbuild/setup-bazelisk": ("bazel", "", ""),
    "browser-actions/setup-chrome": ("chrome", "", ""),
    "browser-actions/setup-firefox": ("firefox", "", ""),
    "bufbuild/buf-setup-action": ("buf", "version", "buf --version"),
    "cachix/install-nix-action": ("nix", "", ""),
    "conda-incubator/setup-miniconda": ("conda", "", ""),
    "coursier/setup-action": ("cs", "", ""),
    "crazy-max/ghaction-upx": ("upx", "", ""),
    "crystal-lang/install-crystal": (
        "crystal",
        "crystal",
        "crystal --version | sed -n '1s/^Crystal \\([^ ]*\\).*/\\1/p'",
    ),
    "dart-lang/setup-dart": (
        "dart",
        "sdk",
        "dart --version 2>&1 | sed -n 's/^Dart SDK version: \\([^ ]*\\).*/\\1/p'",
    ),
    "DeLaGuardo/setup-clojure": ("clojure", "", ""),
    "denoland/setup-deno": ("deno", "deno-version", "deno --version | sed -n 's/^deno \\([^ ]*\\).*/\\1/p'"),
    "determinatesystems/nix-installer-action": ("nix", "", ""),
    "docker/setup-buildx-action": ("docker", "", ""),
    "docker/setup-compose-action": ("docker", "", ""),
    "docker/setup-docker-action": ("docker", "", ""),
    "docker/setup-qemu-action": ("docker", "", ""),
    "dtolnay/rust-toolchain": ("cargo rustc", "toolchain", "rustc --version | cut -d ' ' -f 2"),
    "emscripten-core/setup-emsdk": ("emcc", "", ""),
    "erlef/setup-beam": (
        "erl",
        "otp-version",
        "erl -noshell -eval 'io:put_chars(erlang:system_info(otp_release)), halt().'",
    ),
    "extractions/setup-just": ("just", "just-version", "just --version | cut -d ' ' -f 2"),
    "fluxcd/flux2/action": ("flux", "version", "flux version --client | sed -n 's/^flux: v//p'"),
    "foundry-rs/foundry-toolchain": ("forge", "", ""),
    "gacts/install-podman": ("podman", "", ""),
    "go-task/setup-task": ("task", "version", "task --version | sed 's/.*v//'"),
    "google-github-actions/setup-gcloud": ("gcloud", "", ""),
    "goto-bus-stop/setup-zig": ("zig", "version", "zig version"),
    "graalvm/setup-graalvm": (
        "java native-image",
        "java-version",
        'java -version 2>&1 | sed -n \'s/.*version "\\([^"]*\\)".*/\\1/p\'',
    ),
    "gradle/actions/setup-gradle": ("java", "", ""),
    "gradle/gradle-build-action": ("java", "", ""),
    "hashicorp/setup-copywrite": ("copywrite", "", ""),
    "hashicorp/setup-packer": ("packer", "version", "packer --version | sed 's/.*v//'"),
    "hashicorp/setup-terraform": (
        "terraform",
        "terraform_version",
        "terraform version | sed -n '1s/^Terraform v//p'",
    ),
    "haskell-actions/setup": ("ghc cabal", "ghc-version", "ghc --numeric-version"),
    "hecrj/setup-rust-action": ("cargo rustc", "rust-version", "rustc --version | cut -d ' ' -f 2"),
    "helm/chart-testing-action": ("ct", "", ""),
    "hendrikmuhs/ccache-action": ("ccache", "", ""),
    "hishamhm/gh-actions-lua": ("lua", "", ""),
    "hishamhm/gh-actions-luarocks": ("luarocks", "", ""),
    "hustcer/setup-nu": ("nu", "version", "nu --version"),
    "hynek/setup-cached-uv": ("uv", "", ""),
    "ilammy/setup-nasm": ("nasm", "", ""),
    "imranismail/setup-kustomize": ("kustomize", "kustomize-version", "kustomize version"),
    "jdx/mise-action": ("mise", "", ""),
    "jetli/trunk-action": ("trunk", "", ""),
    "jetli/wasm-bindgen-action": ("wasm-bindgen", "", ""),
    "jetli/wasm-pack-action": ("wasm-pack", "", ""),
    "jiro4989/setup-nim-action": (
        "nim",
        "nim-version",
        "nim --version | sed -n '1s/.*Version \\([^ ]*\\).*/\\1/p'",
    ),
    "julia-actions/setup-julia": ("julia", "version", "julia --version | cut -d ' ' -f 3"),
    "jwlawson/actions-setup-cmake": ("cmake", "cmake-version", "cmake --version | sed -n '1s/.*version //p'"),
    "korandoru/setup-zig": ("zig", "zig-version", "zig version"),
    "leafo/gh-actions-lua": ("lua", "", ""),
    "leafo/gh-actions-luarocks": ("luarocks", "", ""),
    "lukka/get-cmake": ("cmake ninja", "cmakeVersion", "cmake --version | sed -n '1s/.*version //p'"),
    "mamba-org/setup-micromamba": ("micromamba", "micromamba-version", "micromamba --version"),
    "mlugg/setup-zig": ("zig", "version", "zig version"),
    "moonrepo/setup-rust": ("cargo rustc", "channel", "rustc --version | cut -d ' ' -f 2"),
    "mozilla-actions/sccache-action": ("sccache", "", ""),
    "mymindstorm/setup-emsdk": (
        "emcc",
        "version",
        "emcc --version | sed -n '1s/.* \\([0-9][0-9.]*\\) .*/\\1/p'",
    ),
    "nodesource/setup-nsolid": ("node npm", "", ""),
    "ocaml/setup-ocaml": ("opam", "", ""),
    "olafurpg/setup-scala": (
        "java sbt",
        "java-version",
        'java -version 2>&1 | sed -n \'s/.*version "\\([^"]*\\)".*/\\1/p\'',
    ),
    "opentofu/setup-opentofu": ("tofu", "tofu_version", "tofu version | sed -n '1s/^OpenTofu v//p'"),
    "oras-project/setup-oras": (
        "oras",
        "version",
        "oras version | sed -n 's/^Version: *\\([^+ ]*\\).*/\\1/p'",
    ),
    "oven-sh/setup-bun": ("bun", "bun-version", "bun --version"),
    "oxc-project/setup-rust": ("cargo rustc", "", ""),
    "pdm-project/setup-pdm": ("pdm", "version", "pdm --version | sed 's/.*version //'"),
    "peaceiris/actions-hugo": (
        "hugo",
        "hugo-version",
        "hugo version | sed -n 's/^hugo v\\([^-+ ]*\\).*/\\1/p'",
    ),
    "peaceiris/actions-mdbook": ("mdbook", "mdbook-version", "mdbook --version | sed 's/.*v//'"),
    "pnpm/action-setup": ("pnpm", "version", "pnpm --version"),
    "posit-dev/setup-air": ("air", "version", "air --version | cut -d ' ' -f 2"),
    "prefix-dev/setup-pixi": ("pixi", "pixi-version", "pixi --version | cut -d ' ' -f 2"),
    "quarto-dev/quarto-actions/setup": ("quarto", "version", "quarto --version"),
    "r-lib/actions/setup-pandoc": ("pandoc", "pandoc-version", "pandoc --version | sed -n '1s/^pandoc //p'"),
    "r-lib/actions/setup-r": ("Rscript", "r-version", "Rscript -e 'cat(as.character(getRversion()))'"),
    "ruby/setup-ruby": ("ruby bundle", "ruby-version", "ruby -e 'print RUBY_VERSION'"),
    "rui314/setup-mold": ("mold", "", ""),
    "sbt/setup-sbt": ("sbt", "", ""),
    "seanmiddleditch/gha-setup-ninja": ("ninja", "", ""),
    "shivammathur/setup-php": ("php composer", "php-version", "php -r 'echo PHP_VERSION;'"),
    "shogo82148/actions-setup-perl": ("perl", "perl-version", "perl -e 'print substr($^V, 1)'"),
    "sigstore/cosign-installer": (
        "cosign",
        "cosign-release",
        "cosign version | sed -n 's/^GitVersion: *//p'",
    ),
    "snok/install-poetry": ("poetry", "version", "poetry --version | sed 's/.*version \\([^)]*\\).*/\\1/'"),
    "stcarolas/setup-maven": (
        "mvn",
        "maven-version",
        "mvn --version | sed -n '1s/^Apache Maven \\([^ ]*\\).*/\\1/p'",
    ),
    "subosito/flutter-action": (
        "flutter dart",
        "flutter-version",
        "flutter --version | sed -n 's/^Flutter \\([^ ]*\\).*/\\1/p'",
    ),
    "supabase/setup-cli": ("supabase", "version", "supabase --version"),
    "superfly/flyctl-actions/setup-flyctl": ("flyctl", "", ""),
    "swift-actions/setup-swift": (
        "swift",
        "swift-version",
        "swift --version 2>&1 | sed -n 's/.*Swift version \\([^ ]*\\).*/\\1/p'",
    ),
    "terraform-linters/setup-tflint": (
        "tflint",
        "tflint_version",
        "tflint --version | sed -n '1s/.*version //p'",
    ),
    "threeal/setup-yarn-action": ("yarn", "version", "yarn --version"),
    "tombi-toml/setup-tombi": ("tombi", "version", "tombi --version | cut -d ' ' -f 2"),
    "vmware-tanzu/carvel-setup-action": ("ytt kapp kbld imgpkg", "", ""),
    "voidzero-dev/setup-vp": ("vp node", "version", "vp --version"),
    "volta-cli/action": ("node npm", "node-version", "node --version"),
    "yezz123/setup-uv": ("uv", "", ""),
}
# Inputs of such actions that run something, too: the value for which they do, "" for any, and the command.
EFFECTS: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    "ruby/setup-ruby": (("bundler-cache", "true", "bundle install"),),
    "pnpm/action-setup": (("run_install", "true", "pnpm install --recursive"),),
    "gradle/gradle-build-action": (("arguments", "", "./gradlew {value}"),),
    "gradle/actions/setup-gradle": (("arguments", "", "./gradlew {value}"),),
    "crazy-max/ghaction-upx": (("files", "", "upx {value}"),),
}
# Commands of such actions, whatever they are given.
ALWAYS: Mapping[str, str] = {
    "jdx/mise-action": 'mise install\necho "$HOME/.local/share/mise/shims" >> "$GITHUB_PATH"',
    "prefix-dev/setup-pixi": "pixi install",
}
# Inputs that make no difference here: how the program is fetched, and kept.
_FETCHING = re.compile(
    r".*(?:cache|token|distribution|latest|prerelease|profile|override|mirror|scope|suffix|architecture).*|package_json_file"
    r"|rubygems|bundler|working-directory|update-environment|extended|channel|use-public-rspm|http-user-agent|ncpus"
)
# Actions that install the tools which an input names, and the programs of tools with other names.
INSTALLERS = frozenset((
    "taiki-e/install-action", "baptiste0928/cargo-install", "dtolnay/install", "taiki-e/cache-cargo-install-action",
    "cargo-bins/cargo-binstall",
))  # fmt: skip
PROGRAMS = {"nextest": "cargo-nextest", "protoc": "protoc", "mdbook": "mdbook"}
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
        self.commands = _commands(action, inputs)
        known = {key, f"{key}-file", "version-file", *(name for name, _, _ in EFFECTS.get(action, ()))}
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


def _commands(action: str, inputs: Mapping[str, str]) -> list[str]:
    """Return the commands that an action runs beside giving a program."""
    found = [ALWAYS[action]] if action in ALWAYS else []
    for name, wanted, command in EFFECTS.get(action, ()):
        value = inputs.get(name, "").strip()
        if value and (not wanted or value.lower() == wanted):
            found.append(command.replace("{value}", value))
    return found
