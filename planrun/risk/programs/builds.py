"""Compilers, build systems and test runners of other languages, and checkers of single files."""

from __future__ import annotations

from planrun.risk.levels import high
from planrun.risk.programs import project_tool
from planrun.risk.table import Rule
from planrun.risk.words import names_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.risk.levels import Finding
    from planrun.risk.table import Rules, Use

_LEAVES = names_in("deploy publish release upload push site-deploy install uninstall signing")
_LOSES = names_in("drop reset purge destroy migrate seed rollback wipe nuke truncate prune")
_GOALS = names_in(
    "clean validate initialize compile test-compile test package verify integration-test site process-resources generate-sources prepare-package dependency:tree dependency:resolve dependency:go-offline dependency:analyze checkstyle:check spotbugs:check pmd:check spotless:check spotless:apply surefire:test failsafe:verify jacoco:report enforcer:enforce versions:display-dependency-updates install"
)
_CMAKE = names_in("CMAKE_BUILD_TYPE CMAKE_EXPORT_COMPILE_COMMANDS CMAKE_CXX_STANDARD CMAKE_C_STANDARD CMAKE_VERBOSE_MAKEFILE")  # fmt: skip
_PROPERTIES = names_in("skipTests maven.test.skip test it.test failIfNoTests surefire.failIfNoSpecifiedTests style.color maven.javadoc.skip checkstyle.skip jacoco.skip gpg.skip")  # fmt: skip


def _maven(use: Use) -> Finding | None:
    for goal in use.operands:
        if goal not in _GOALS:
            return high(f"{goal}: a goal that is not known, or that leaves the machine")
    for name, value in use.options:
        if name in ("-D", "--define") and (value or "").partition("=")[0] not in _PROPERTIES:
            return high(f"-D{value}: may change which code runs", "code")
    return (
        None if use.operands or {"-v", "--version"} & {name for name, _ in use.options} else high("no goal")
    )


def _tasks(use: Use) -> Finding | None:
    """Refuse tasks whose names say that something leaves the machine or lands in the system."""
    targets = [value or "" for name, value in use.options if name in ("-t", "--target")]
    for task in use.operands + targets:
        words = task.lower().replace("-", ":").split(":")
        if _LOSES & set(words) or any(word.startswith(name) for name in _LEAVES for word in words):
            return high(f"{task}: by its name, something that leaves the machine or changes it", "publishes")
    return None


def _packages(use: Use) -> Finding | None:
    """Packages of Go are folders of the workspace; a name with a host in it is code of another project."""
    for name, value in use.options:
        if name == "-ldflags" and any(word in (value or "") for word in ("extld", "linkmode", "@", "tool")):
            return high(f"{name}={value}: may start a program", "code")
    for operand in use.operands:
        if "@" in operand or not (operand.startswith(".") or "." not in operand.partition("/")[0]):
            return high(f"{operand}: a package from elsewhere", "network", "code")
    return None


def _defined(use: Use) -> Finding | None:
    """Definitions may name compilers, launchers and files of code: of cmake's own only harmless ones are allowed."""
    for name, value in use.options:
        if name != "-D" or value is None:
            continue
        variable = value.partition("=")[0].partition(":")[0]
        if variable.startswith("CMAKE_") and variable not in _CMAKE:
            return high(f"-D{value}: may change which code runs", "code")
        if set("/;$~") & set(value):
            return high(f"-D{value}: a path, or more than one value")
    return None


def _php(use: Use) -> Finding | None:
    if use.operands[0].rpartition("/")[2] in ("artisan", "console") and use.operands[1:2] not in (
        ["test"],
        ["list"],
    ):
        return high("php: a command of the application, which may change its data")
    return None


_NET = "code network writes"
_GO_BUILD = "-v -x -n -a -race -cover -tags=text -mod={readonly,vendor,mod} -trimpath -p=number -ldflags=text -buildvcs=text -buildmode=text -C=folder -o=write"
_GO_TEST = f"{_GO_BUILD} -run=text -count=number -short -timeout=text -coverprofile=write -covermode=text -coverpkg=text -bench=text -benchmem -benchtime=text -cpu=text -failfast -json -list=text -parallel=number -shuffle=text -skip=text -vet=text -fuzztime=text"
_GO: dict[str, Rules] = {
    "version": Rule("read-only", "", "", style="single"),
    "build": Rule("medium", "arg*", _GO_BUILD, style="single", check=_packages, effects=_NET, reason="builds the project"),
    "test": Rule("medium", "arg*", _GO_TEST, style="single", check=_packages, effects=_NET, reason="runs the project's tests"),
    "vet": Rule("medium", "arg*", "-v -json -c=number -tags=text -mod={readonly,vendor,mod} -C=folder", style="single", check=_packages, effects=_NET),
    "run": Rule("medium", "arg+", _GO_BUILD.replace(" -o=write", ""), style="single", check=_packages, effects=_NET),
    "fmt": Rule("low", "arg*", "-n -x", style="single", check=_packages),
    "generate": Rule("medium", "arg*", "-v -n -x -run=text -skip=text", style="single", check=_packages),
    "list": Rule("medium", "arg*", "-f=text -m -json -deps -test -e -u -versions -find -mod={readonly,vendor,mod} -tags=text", style="single", effects="network"),
    "doc": Rule("read-only", "name*", "-all -short -src -u -c -cmd", style="single"),
    "clean": Rule("medium", "arg*", "-n -x -testcache", style="single", check=_packages, effects="destroys"),
    "mod": Rule("high", sub={
        "download": Rule("medium", "", "-x -json", style="single", effects=_NET, reason="fetches what a file names"),
        "tidy": Rule("medium", "", "-v -e -x -diff -go=text -compat=text", style="single", effects=_NET),
        "verify": Rule("medium", "", "", style="single", effects="network"),
        "vendor": Rule("medium", "", "-v -e -o=write", style="single", effects=_NET),
        "graph": Rule("medium", "", "-go=text", style="single", effects="network"),
        "why": Rule("medium", "arg+", "-m -vendor", style="single", effects="network"),
    }),
    "work": Rule("high", sub={"sync": Rule("medium", effects=_NET)}),
    "tool": Rule("high", sub={"cover": Rule("low", "", "-func=read -html=read -o=write", style="single")}),
}  # fmt: skip
_CARGO_COMMON = "-q -v -r -p=name -F=text -j=number --release --all --workspace --all-targets --all-features --no-default-features --features=text --package=name --exclude=name --bin=name --bins --lib --tests --test=name --benches --bench=name --examples --example=name --doc --locked --offline --frozen --quiet --verbose --target=name --target-dir=write --manifest-path=inside --message-format=text --color=text --keep-going --no-fail-fast --no-run --jobs=number --profile=name --timings --ignore-rust-version"
_CARGO_BUILD = Rule("medium", "arg*", _CARGO_COMMON, effects=_NET, reason="builds the project")
_CARGO: dict[str, Rules] = {
    **dict.fromkeys(("build", "b", "test", "t", "check", "c", "bench", "doc", "rustdoc"), _CARGO_BUILD),
    "clippy": Rule("medium", "arg*", f"{_CARGO_COMMON} --no-deps --fix --allow-dirty --allow-staged", effects=_NET, reason="builds the project"),
    "fix": Rule("medium", "", f"{_CARGO_COMMON} --allow-dirty --allow-staged --edition --broken-code", effects=_NET),
    "run": Rule("medium", "arg*", _CARGO_COMMON, style="gnu", effects=_NET),
    "r": Rule("medium", "arg*", _CARGO_COMMON, effects=_NET),
    "fmt": Rule("low", "arg*", "-q -v -p=name --all --check --package=name --quiet --manifest-path=inside"),
    "fetch": Rule("medium", "", "--locked --offline --frozen -q -v --target=name --manifest-path=inside", effects="network writes", reason="fetches what a file names"),
    "vendor": Rule("medium", "write?", "--locked --offline --frozen -q --versioned-dirs", effects="network writes"),
    "update": Rule("medium", "", "-p=name -w --workspace --dry-run --precise=text --package=name -q --offline --locked", effects="network writes"),
    "generate-lockfile": Rule("medium", "", "--offline -q", effects="network writes"),
    "clean": Rule("medium", "", "-p=name --release --doc --package=name -q --profile=name --dry-run", effects="destroys"),
    "tree": Rule("medium", "", "-p=name -i=name -d -e=text --depth=number --duplicates --invert=name --locked --offline --frozen --workspace --all-features --prefix=text --edges=text --no-default-features --target=text --format=text", effects="network"),
    "metadata": Rule("medium", "", "--format-version=number --no-deps --locked --offline --frozen -q --manifest-path=inside", effects="network"),
    "package": Rule("medium", "", f"{_CARGO_COMMON} --no-verify --allow-dirty -l --list --no-metadata", effects=_NET),
    "nextest": Rule("high", sub={"run": Rule("medium", "arg*", f"{_CARGO_COMMON} -E=text --retries=number --partition=text --fail-fast --profile=name", effects=_NET), "list": Rule("medium", "arg*", _CARGO_COMMON, effects=_NET)}),
    "deny": Rule("high", sub={"check": Rule("medium", "name*", "--hide-inclusion-graph", effects="network")}),
    "audit": Rule("medium", "", "-q -D=text --deny=text --ignore=text --json", effects="network"),
    "locate-project": Rule("read-only", "", "--workspace --message-format=text"),
    "pkgid": Rule("read-only", "name?"),
    "version": Rule("read-only", "", "-v"),
    "machete": Rule("read-only", "inside*"),
}  # fmt: skip
_CLANG_FORMAT = (
    Rule("low", "make+", "-i --style=arg -style=arg --verbose --Werror --fallback-style=text", needs="-i"),
    Rule("read-only", "read*", "-n --dry-run --Werror --style=arg --verbose --fallback-style=text"),
)
_GRADLE = Rule(
    "medium",
    "name+",
    "-q -i -s -S -m -x=name -p=folder --quiet --info --stacktrace --no-daemon --parallel --no-parallel --build-cache --no-build-cache --continue --offline --dry-run --console=text --warning-mode=text --rerun-tasks --scan:medium --exclude-task=name --tests=text --max-workers=number --configuration-cache --no-configuration-cache --profile --refresh-dependencies --warn --debug",
    check=_tasks,
    effects=_NET,
    reason="builds the project",
)
_MVN = Rule(
    "medium",
    "name*",
    "-q -B -e -o -U -X -T=text -pl=text -am -amd -D=text -P=text -f=inside -ntp -nsu -fae -ff -fn -V --quiet --batch-mode --errors --offline --update-snapshots --no-transfer-progress --file=inside --projects=text --also-make --define=text --fail-at-end --threads=text -N --non-recursive -v --version",
    check=_maven,
    effects=_NET,
    reason="builds the project",
)
_DOTNET = "-c=text -f=text -r=text -v=text -o=write --configuration=text --framework=text --runtime=text --verbosity=text --output=write --no-restore --no-build --nologo --no-incremental --self-contained --no-dependencies --force --tl=text --disable-build-servers --ucr"
_BAZEL = "-k -c=text --keep_going --config=name --test_output=text --jobs=text --compilation_mode=text --nocache_test_results --cache_test_results=text --verbose_failures --noshow_progress --color=text --curses=text --test_filter=text --build_tests_only"

PROGRAMS: dict[str, Rules] = {
    "go": Rule("high", "", "-C=folder", style="single", sub=_GO),
    "gofmt": (Rule("low", "make+", "-w -s -l -d -e -r=text", style="single", needs="-w"), Rule("read-only", "read*", "-s -l -d -e -r=text", style="single")),
    "goimports": (Rule("low", "make+", "-w -l -d -e -v -local=text", style="single", needs="-w"), Rule("read-only", "read*", "-l -d -e -v -local=text", style="single")),
    "gofumpt": (Rule("low", "make+", "-w -l -d -e -extra", style="single", needs="-w"), Rule("read-only", "read*", "-l -d -e -extra", style="single")),
    "golangci-lint": Rule("high", "", "-v --color=text", sub={
        "run": Rule("medium", "arg*", "-v -c=inside -E=text -D=text -j=number -n --fix --timeout=text --config=inside --enable=text --disable=text --out-format=text --fast --new --new-from-rev=arg --allow-parallel-runners --max-issues-per-linter=number --max-same-issues=number --tests --verbose --build-tags=text --concurrency=number --show-stats --issues-exit-code=number", effects=_NET),
        "linters": Rule("read-only"), "version": Rule("read-only"),
    }),
    "staticcheck": Rule("medium", "arg*", "-f=text -checks=text -tests -tags=text -fail=text -show-ignored -go=text", style="single", check=_packages, effects=_NET),
    "govulncheck": Rule("medium", "arg*", "-test -json -tags=text -mode=text", style="single", check=_packages, effects="network code"),
    "cargo": Rule("high", "", "-q -v --quiet --verbose --locked --offline --frozen --color=text", sub=_CARGO),
    "rustc": (Rule("read-only", "", "-V -vV --version", needs="-V -vV --version"), Rule("medium", "inside", "-O -g -o=write --edition=text --crate-type=text --crate-name=name --out-dir=write --test")),
    "rustfmt": (Rule("read-only", "read+", "--check -l -q -v --edition=text --config-path=inside --color=text", needs="--check"), Rule("low", "make+", "-l -q -v --edition=text --config-path=inside --color=text --backup")),
    "cmake": (
        Rule("medium", "", "--build=inside -j[=number] -t=name -v --target=name --parallel[=number] --config=text --clean-first --verbose --preset=name", needs="--build", check=_tasks),
        Rule("medium", "", "--install=inside --prefix=inside --config=text --component=name --strip -v", needs="--install", check=lambda use: None if "--prefix" in dict(use.options) else high("installs into the system", "privilege")),
        Rule("medium", "inside?", "-S=inside -B=write -G=text -A=text -D=text --preset=name -Wno-dev -Wdev --fresh --warn-uninitialized --log-level=text -L -LH -N", check=_defined),
    ),
    "ctest": Rule("medium", "", "-V -VV -Q -N -j[=number] -R=text -E=text -L=text -LE=text -C=text -T=text --output-on-failure --test-dir=inside --parallel[=number] --verbose --timeout=number --rerun-failed --stop-on-failure --no-tests=text --output-junit=write --preset=name --progress --repeat=text --schedule-random", reason="runs the project's tests"),
    "ninja": Rule("medium", "name*", "-v -n -k=number -j=number -l=number -C=folder -f=run --verbose --quiet", check=_tasks),
    "meson": Rule("high", sub={"setup": Rule("medium", "write inside?", "-D=text --buildtype=text --reconfigure --wipe --prefix=inside --werror --default-library=text"), "compile": Rule("medium", "name*", "-C=folder -j=number -v --verbose --clean"), "test": Rule("medium", "name*", "-C=folder -v -q --verbose --print-errorlogs --no-rebuild --suite=text --repeat=number --num-processes=number")}),
    "bazel": Rule("high", sub={"build": Rule("medium", "arg+", _BAZEL, effects=_NET), "test": Rule("medium", "arg+", _BAZEL, effects=_NET)}),
    "just": Rule("medium", "name*", "-l -n -q -v --list --dry-run --quiet --verbose --summary --evaluate --check", check=_tasks),
    "task": Rule("medium", "name*", "-l -a -n -p -s -v -f --list --list-all --dry --parallel --silent --verbose --force --summary --status", check=_tasks),
    "gcc": Rule("medium", "inside+", "-c -S -E -g -O -O0 -O1 -O2 -O3 -Os -Wall -Wextra -Werror -pedantic -std=text -o=write -fPIC -shared -static -pthread -v -w -MMD -MP", style="single", effects="writes"),
    "javac": Rule("medium", "inside+", "-d=write -g -verbose -nowarn -Xlint -deprecation -parameters -encoding=text -source=text -target=text --release=text", style="single", effects="writes code"),
    "java": (Rule("read-only", "", "-version --version", style="single", needs="-version --version"), Rule("medium", "arg*", "-jar=run -ea -Xmx=text -Xms=text", needs="-jar", style="single")),
    "mvn": _MVN,
    "gradle": (Rule("read-only", "", "-v", needs="-v"), _GRADLE),
    "ant": Rule("medium", "name*", "-q -v -d -k -f=run -quiet -verbose -keep-going", check=_tasks),
    "dotnet": (
        Rule("read-only", "", "--info --list-sdks --list-runtimes", needs="--info --list-sdks --list-runtimes"),
        Rule("high", sub={
            **{name: Rule("medium", "inside*", _DOTNET, effects=_NET, reason="builds the project") for name in ("build", "publish", "pack", "restore", "clean")},
            "test": Rule("medium", "inside*", f"{_DOTNET} -l=text -s=inside -t --filter=text --logger=text --results-directory=write --collect=text --list-tests --settings=inside --blame", effects=_NET, reason="runs the project's tests"),
            "run": Rule("medium", "arg*", f"{_DOTNET} --project=inside -p=text --no-launch-profile", effects=_NET),
            "format": Rule("medium", "inside*", "--verify-no-changes --no-restore --severity=text --include=inside --exclude=inside -v=text --verbosity=text"),
            "list": Rule("medium", "inside? name?", ""),
            "sln": Rule("high", sub={"list": Rule("read-only")}),
            "tool": Rule("high", sub={"restore": Rule("medium", effects=_NET), "list": Rule("read-only", "", "-g --local")}),
        }),
    ),
    "ruby": (Rule("read-only", "", "-v", needs="-v"), Rule("read-only", "read+", "-c -w", needs="-c"), Rule("medium", "run arg*", "-w -W", style="posix")),
    "bundle": Rule("high", sub={
        "": Rule("medium", effects=_NET), "check": Rule("medium", "", "--dry-run"),
        "install": Rule("medium", "", "-j=number --jobs=number --quiet --local --retry=number --frozen --prefer-local --full-index --no-cache", effects=_NET, reason="installs what a file names"),
        "exec": Rule("medium", "command", style="posix", check=project_tool), "list": Rule("medium", "", "--name-only --paths"), "show": Rule("medium", "name?"),
    }),
    "rake": Rule("medium", "name*", "-t -q -s -v -T -P -m -n --trace --quiet --silent --tasks --dry-run", check=_tasks),
    "rspec": Rule("medium", "arg*", "-b -c -f=arg -e=text -t=text -o=write --format=arg --example=text --tag=text --fail-fast --color --no-color --order=text --seed=number --backtrace --dry-run --profile --only-failures --next-failure --out=write --force-color"),
    "rubocop": Rule("medium", "inside*", "-a -A -D -f=arg -o=write -c=inside -P --autocorrect --autocorrect-all --format=arg --parallel --no-parallel --config=inside --only=text --except=text --fail-level=text --display-cop-names --force-exclusion --lint --out=write"),
    "gem": Rule("high", sub={"list": Rule("read-only", "name?", "-l --local -i --versions --no-versions"), "build": Rule("medium", "run", "-o=write --strict")}),
    "perl": (Rule("read-only", "", "-v", needs="-v"), Rule("medium", "run arg*", "-w -T -t", style="posix")),
    "prove": Rule("medium", "arg*", "-l -b -r -v -q -f -j=number --verbose --recurse --lib --blib --timer --failures"),
    "php": (Rule("read-only", "", "-v", needs="-v"), Rule("read-only", "read+", "-l", needs="-l"), Rule("medium", "run arg*", "", style="posix", check=_php)),
    "composer": Rule("high", "", "-q -v -n --quiet --no-interaction --no-ansi --ansi -d=folder --working-dir=folder", sub={
        "install": Rule("medium", "", "-q -v -n -o -a --no-dev --no-interaction --prefer-dist --prefer-source --no-progress --no-scripts --no-plugins --optimize-autoloader --classmap-authoritative --no-suggest --dry-run --quiet --no-autoloader --no-ansi --ansi --ignore-platform-reqs", effects=_NET, reason="installs what a file names"),
        "validate": Rule("medium", "inside?", "--strict --no-check-all --no-check-publish --no-check-lock --with-dependencies -q -n"),
        "dump-autoload": Rule("medium", "", "-o -a --optimize --no-dev -q"), "show": Rule("medium", "name*", "-i -t -D --tree --direct --latest:medium:network --outdated:medium:network"),
        "test": Rule("medium", "arg*"), "run-script": Rule("medium", "name arg*", "-l --dev --no-dev --timeout=number", check=_tasks), "run": Rule("medium", "name arg*", check=_tasks),
        "check-platform-reqs": Rule("medium", "", "--no-dev --lock"),
    }),
    "phpunit": Rule("medium", "arg*", "-c=inside -v --filter=text --testsuite=text --configuration=inside --coverage-text[=write] --coverage-html=write --coverage-clover=write --stop-on-failure --colors[=text] --no-coverage --testdox --group=text --exclude-group=text --log-junit=write --no-progress --display-warnings"),
    "phpstan": Rule("high", sub={"analyse": Rule("medium", "inside*", "-c=inside -l=text --level=text --memory-limit=text --no-progress --error-format=text --configuration=inside -n -q"), "analyze": Rule("medium", "inside*", "-c=inside -l=text --level=text --memory-limit=text --no-progress --error-format=text")}),
    "mix": Rule("high", sub={
        "test": Rule("medium", "arg*", "--cover --trace --failed --stale --only=text --exclude=text --include=text --seed=number --max-failures=number --warnings-as-errors --color --no-color --slowest=number --partitions=number", reason="runs the project's tests"),
        "compile": Rule("medium", "", "--force --warnings-as-errors --all-warnings --no-deps-check"),
        "format": Rule("medium", "inside*", "--check-formatted --dry-run --check-equivalent", effects="writes code"),
        "deps.get": Rule("medium", "", "--only=text --check-locked", effects=_NET), "deps.compile": Rule("medium", "name*", "--force"),
        "credo": Rule("medium", "inside*", "--strict --format=text --all -a"), "dialyzer": Rule("medium", "", "--format=text --plt"), "deps": Rule("medium"), "deps.tree": Rule("medium"),
    }),
    "rebar3": Rule("medium", "name+", "-v", check=_tasks),
    "swift": Rule("high", sub={"build": Rule("medium", "", "-c=text -v -j=number --configuration=text --product=name --target=name --build-tests", effects=_NET), "test": Rule("medium", "", "-c=text -v --filter=text --parallel --enable-code-coverage --skip=text --configuration=text", effects=_NET)}),
    "dart": Rule("high", sub={"test": Rule("medium", "arg*", "-n=text -r=text --coverage=write --reporter=text --name=text -j=number"), "analyze": Rule("medium", "inside*", "--fatal-infos --fatal-warnings --no-fatal-warnings"), "format": Rule("low", "inside+", "-o=text -l=number --output=text --set-exit-if-changed --line-length=number"), "pub": Rule("high", sub={"get": Rule("medium", "", "--offline --enforce-lockfile", effects=_NET)})}),
    "flutter": Rule("high", sub={"test": Rule("medium", "arg*", "--coverage --reporter=text --name=text --no-pub"), "analyze": Rule("medium", "inside*", "--fatal-infos --no-fatal-infos --no-pub"), "pub": Rule("high", sub={"get": Rule("medium", "", "--offline --enforce-lockfile", effects=_NET)})}),
    "zig": Rule("high", sub={"build": Rule("medium", "name*", check=_tasks, effects=_NET), "test": Rule("medium", "run"), "fmt": (Rule("read-only", "read+", "--check", needs="--check"), Rule("low", "make+"))}),
    "lua": Rule("medium", "run arg*", style="posix"),
    "Rscript": Rule("medium", "run arg*", "--vanilla --no-save --no-restore", style="posix"),
    "julia": Rule("medium", "run arg*", "", style="posix"),
    "shellcheck": Rule("read-only", "read+", "-a:medium:secrets -x:medium:secrets -f=text -s=text -S=text -e=text -i=text -o=text -C[=text] --shell=text --severity=text --exclude=text --include=text --format=text --enable=text --external-sources:medium:secrets --color[=text] --check-sourced:medium:secrets --norc"),
    "shfmt": (Rule("low", "make+", "-w -l -s -i=number -ci -bn -sr -kp -fn -mn -ln=text --write --list --simplify --indent=number --case-indent --binary-next-line --space-redirects", style="single", needs="-w --write"), Rule("read-only", "read*", "-d -l -s -f -i=number -ci -bn -sr -kp -fn -mn -ln=text --diff --list --simplify --find --indent=number", style="single")),
    "hadolint": Rule("read-only", "read*", "-f=text -t=text --format=text --ignore=text --failure-threshold=text --no-fail --no-color"),
    "yamllint": Rule("read-only", "read+", "-s -f=text -d=text -c=read --strict --format=text --config-file=read --no-warnings --list-files"),
    "actionlint": Rule("read-only", "read*", "-color -no-color -oneline -verbose -format=text -ignore=text", style="single"),
    "taplo": Rule("high", sub={"fmt": Rule("low", "inside*", "--check --diff"), "format": Rule("low", "inside*", "--check --diff"), "lint": Rule("read-only", "inside*", "--no-schema", needs="--no-schema")}),
    "clang-format": _CLANG_FORMAT,
    "xmllint": Rule("read-only", "read+", "--noout --format --nonet --xpath=text --noblanks --recover --huge"),
    "stylua": (Rule("read-only", "read+", "--check", needs="--check"), Rule("low", "make+", "--verify -s --search-parent-directories")),
    "cloc": Rule("read-only", "inside+", "--quiet --json --csv --by-file --md --yaml --exclude-dir=text --include-lang=text"),
    "tokei": Rule("read-only", "inside*", "-f -e=text -o=text -s=text -t=text --files --exclude=text --output=text --sort=text"),
    "size": Rule("read-only", "read+", "-A -B -d -o -x -t"),
    "nm": Rule("read-only", "read+", "-a -A -C -D -g -n -p -r -S -s -u --demangle --dynamic --extern-only --defined-only --undefined-only"),
    "readelf": Rule("read-only", "read+", "-a -h -l -S -s -d -r -n -V -W -x=text -p=text --wide --all --headers --dynamic --symbols"),
}  # fmt: skip
