"""JavaScript: node, its package managers, and the tools that test, check and build."""

from __future__ import annotations

from planrun.risk.levels import high
from planrun.risk.programs import KNOWN_NODE, known_tool, project_tool
from planrun.risk.table import Rule
from planrun.risk.words import names_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.risk.levels import Finding
    from planrun.risk.table import Rules, Use

_LEAVES = names_in("publish deploy release")


def _no_release(use: Use) -> Finding | None:
    """A script of the project by the name of what leaves the machine is taken for just that."""
    for operand in use.operands[:1]:
        if _LEAVES & set(operand.replace("-", ":").split(":")):
            return high(f"{operand}: by its name, something that leaves the machine", "publishes")
    return None


_NET = "code network writes"
_NPM = " -s -q -d --silent --quiet --loglevel=text --no-audit --no-fund --no-progress --progress=text --no-color --color --prefix=folder -C=folder -w=name --workspace=name --workspaces -ws --include-workspace-root --if-present --no-update-notifier"
_INSTALLS = " --frozen-lockfile --no-frozen-lockfile --immutable --immutable-cache --ignore-scripts --prefer-offline --offline --production --prod -P -D --dev --omit=text --include=text --only=text --no-optional --no-save --no-package-lock --legacy-peer-deps --strict-peer-dependencies --no-strict-peer-dependencies --engine-strict --non-interactive --pure-lockfile --check-files --inline-builds --mode=text --package-lock-only --ignore-engines --force --dry-run --check-cache --network-timeout=number --shamefully-hoist --lockfile-only --reporter=arg --silent -r --recursive --filter=text --frozen"


def _install(options: str) -> Rule:
    return Rule("medium", "", options + _INSTALLS, effects=_NET, reason="installs what a file names")


def _run(options: str) -> Rule:
    return Rule("medium", "name arg*", options, check=_no_release, reason="runs a script of the project")


def _scripts(options: str) -> dict[str, Rules]:
    """Return the scripts that package managers run by their names alone."""
    names = names_in(
        "build lint format typecheck type-check check compile coverage e2e unit prettier eslint tsc jest vitest docs bundle"
        " generate codegen"
    )
    return {name: Rule("medium", "arg*", options, reason="runs a script of the project") for name in names}


_NPMS: dict[str, Rules] = {
    "ci": _install(_NPM),
    "clean-install": _install(_NPM),
    "install": _install(_NPM),
    "i": _install(_NPM),
    "test": Rule("medium", "arg*", _NPM, reason="runs the project's tests"),
    "t": Rule("medium", "arg*", _NPM, reason="runs the project's tests"),
    "run": (Rule("read-only", "", _NPM), _run(_NPM)),
    "run-script": _run(_NPM),
    "rebuild": Rule("medium", "name*", _NPM, effects=_NET),
    "prune": Rule("medium", "", "--production --omit=text --dry-run" + _NPM, effects="destroys"),
    "dedupe": Rule("medium", "", "--dry-run" + _NPM, effects=_NET),
    "pack": Rule("medium", "", "--dry-run --json --pack-destination=write" + _NPM),
    "ls": Rule("read-only", "name*", "-a -l -g --all --long --depth=number --json --omit=text --parseable --prod --production --link" + _NPM),
    "list": Rule("read-only", "name*", "-a -l -g --all --long --depth=number --json --omit=text --parseable --prod --production --link" + _NPM),
    "explain": Rule("read-only", "name+", "--json" + _NPM),
    "outdated": Rule("medium", "name*", "--json --long --all" + _NPM, effects="network"),
    "view": Rule("medium", "name text*", "--json" + _NPM, effects="network"),
    "info": Rule("medium", "name text*", "--json" + _NPM, effects="network"),
    "root": Rule("read-only", "", _NPM),
    "prefix": Rule("read-only", "", _NPM),
    "query": Rule("read-only", "text", _NPM),
}  # fmt: skip
_YARN = " -s --silent --cwd=folder --json --verbose --no-progress --non-interactive"
_YARNS: dict[str, Rules] = {
    "": _install(_YARN),
    "install": _install(_YARN),
    "test": Rule("medium", "arg*", _YARN, reason="runs the project's tests"),
    "run": _run(_YARN),
    "workspace": Rule("medium", "name name arg*", _YARN, style="posix"),
    "list": Rule("medium", "", "--depth=number --pattern=text" + _YARN),
    "why": Rule("medium", "name", "-R --recursive" + _YARN),
    "pack": Rule("medium", "", "-f=write --filename=write -n --dry-run" + _YARN),
    "dedupe": Rule("medium", "", "-c --check" + _YARN, effects=_NET),
    **_scripts(_YARN),
}
_PNPM = " -r -s -w -F=text --recursive --silent --filter=text --dir=folder -C=folder --workspace-root --color --no-color --reporter=arg --parallel --stream --no-bail --if-present --workspace-concurrency=number --aggregate-output"
_PNPMS: dict[str, Rules] = {
    "install": _install(_PNPM),
    "i": _install(_PNPM),
    "fetch": Rule("medium", "", "--prod --dev" + _PNPM, effects=_NET),
    "test": Rule("medium", "arg*", _PNPM, reason="runs the project's tests"),
    "t": Rule("medium", "arg*", _PNPM, reason="runs the project's tests"),
    "run": _run(_PNPM),
    "exec": Rule("medium", "command", _PNPM, style="posix", check=project_tool),
    "list": Rule("medium", "name*", "--depth=number --json --prod --dev -P -D --long" + _PNPM),
    "ls": Rule("medium", "name*", "--depth=number --json --prod --dev -P -D --long" + _PNPM),
    "why": Rule("medium", "name+", "--json" + _PNPM),
    "outdated": Rule("medium", "name*", "--json" + _PNPM, effects="network"),
    "pack": Rule("medium", "", "--pack-destination=write" + _PNPM),
    "prune": Rule("medium", "", "--prod" + _PNPM, effects="destroys"),
    "rebuild": Rule("medium", "name*", _PNPM),
    **_scripts(_PNPM),
}
_JEST = Rule(
    "medium",
    "arg*",
    "-i -t=text -w=text -u:medium -b -c=inside -o --ci --coverage[=text] --runInBand --maxWorkers=text --testNamePattern=text --testPathPattern=text --passWithNoTests --silent --verbose --bail[=number] --config=inside --no-cache --forceExit --detectOpenHandles --json --outputFile=write --updateSnapshot --onlyChanged --findRelatedTests --listTests --coverageDirectory=write --colors --no-coverage --testTimeout=number --clearCache --selectProjects=name --shard=text --reporters=name",
    reason="runs the project's tests",
)

PROGRAMS: dict[str, Rules] = {
    "node": (
        Rule("read-only", "", "-v --version", needs="-v --version"),
        Rule("medium", "run", "-c --check", needs="-c --check"),
        Rule("medium", "run*", "--test --test-reporter=name --test-name-pattern=text --experimental-test-coverage --test-only --test-concurrency=number --experimental-strip-types", needs="--test"),
        Rule("medium", "run arg*", "--enable-source-maps --trace-warnings --no-warnings --experimental-strip-types --experimental-vm-modules --max-old-space-size=number --unhandled-rejections=text --trace-deprecation --throw-deprecation --no-deprecation --expose-gc --stack-trace-limit=number", style="posix"),
    ),
    "npm": (Rule("read-only", "", "-v", needs="-v"), Rule("high", "", _NPM, sub=_NPMS)),
    "yarn": (Rule("read-only", "", "-v", needs="-v"), Rule("high", "", _YARN + _INSTALLS, sub=_YARNS)),
    "pnpm": (Rule("read-only", "", "-v", needs="-v"), Rule("high", "", _PNPM, sub=_PNPMS)),
    "npx": (Rule("medium", "command", "--no-install --no", style="posix", needs="--no-install --no", check=project_tool), Rule("medium", "command", "-y -q --yes --quiet --prefer-offline", style="posix", effects=_NET, check=known_tool(KNOWN_NODE), reason="fetches a tool")),
    "bun": Rule("high", "", "", sub={"install": _install(""), "test": Rule("medium", "arg*", "--coverage --bail[=number] -t=text --timeout=number --rerun-each=number"), "run": _run("--silent")}),
    "deno": Rule("high", "", "-q --quiet", sub={
        "fmt": Rule("low", "write*", "--check -q --quiet --ignore=text --options-line-width=number --ext=text -c=inside"),
        "lint": Rule("medium", "inside*", "-q --quiet --json --ignore=text --rules --compact --fix -c=inside"),
        "test": Rule("medium", "inside*", "-q --quiet --no-remote --cached-only --coverage[=write] --fail-fast[=number] --filter=text --no-check --parallel --frozen --doc --junit-path=write -c=inside", effects=_NET),
        "check": Rule("medium", "inside*", "-q --quiet --all --cached-only --no-remote --frozen", effects=_NET),
    }),
    "tsc": Rule("medium", "inside*", "-p=inside -b --noEmit --project=inside --build --pretty[=text] --strict --skipLibCheck --outDir=write --declaration --emitDeclarationOnly --incremental --listFiles --showConfig --target=text --module=text --noEmitOnError --force --verbose --clean", effects="writes"),
    "eslint": Rule("medium", "inside*", "-c=inside -f=arg -o=write --fix --fix-dry-run --ext=text --max-warnings=number --quiet --cache --cache-location=write --config=inside --format=arg --output-file=write --ignore-pattern=text --no-ignore --ignore-path=inside --report-unused-disable-directives --no-error-on-unmatched-pattern --color --no-color --no-eslintrc --rule=text --env=text --no-warn-ignored --cache-strategy=text --debug"),
    "prettier": Rule("medium", "write*", "-c -w -l -u --check --write --list-different --ignore-unknown --loglevel=text --log-level=text --no-config --config=inside --ignore-path=inside --cache --no-color --tab-width=number --single-quote --print-width=number --no-error-on-unmatched-pattern --parser=text --prose-wrap=text"),
    "stylelint": Rule("medium", "inside*", "--fix --config=inside -f=arg --formatter=arg --cache --max-warnings=number --quiet --allow-empty-input --ignore-path=inside"),
    "jest": _JEST,
    "vitest": Rule("high", "", "", sub={"run": Rule("medium", "arg*", "-t=text --coverage --reporter=arg --config=inside --passWithNoTests --silent --no-color --changed --bail=number --outputFile=write --shard=text --typecheck")}),
    "mocha": Rule("medium", "arg*", "-b -g=text -R=arg -t=number --bail --grep=text --reporter=name --timeout=number --recursive --exit --parallel --config=inside --forbid-only --check-leaks"),
    "vite": Rule("high", "", "", sub={"build": Rule("medium", "inside?", "-m=text -c=inside --mode=text --config=inside --outDir=write --minify[=text] --sourcemap[=text] --emptyOutDir --logLevel=text --base=text")}),
    "webpack": Rule("medium", "", "-c=inside --config=inside --mode=text --progress --env=text --no-color --stats=text -o=write --json[=write]"),
    "rollup": Rule("medium", "inside*", "-c[=inside] -i=inside -o=write -d=write -f=text -m --config[=inside] --silent --sourcemap --format=text"),
    "esbuild": Rule("medium", "inside*", "--bundle --minify --sourcemap --outfile=write --outdir=write --platform=text --target=text --format=text --log-level=text --splitting --metafile=write", style="single", effects="writes"),
    "next": Rule("high", "", "", sub={"build": Rule("medium", "inside?", "-d --debug --profile --no-lint --no-mangling"), "lint": Rule("medium", "", "-d=inside --dir=inside --fix --quiet --strict --max-warnings=number")}),
    "playwright": Rule("high", "", "", sub={"test": Rule("medium", "arg*", "-g=text -j=number -x --project=name --reporter=arg --workers=text --retries=number --grep=text --grep-invert=text --config=inside -c=inside --shard=text --forbid-only --list --timeout=number --max-failures=number --output=write --pass-with-no-tests")}),
    "markdownlint": Rule("low", "write*", "-f -c=inside:medium -i=text -q --fix --config=inside:medium --ignore=text --quiet --disable=text"),
}  # fmt: skip
