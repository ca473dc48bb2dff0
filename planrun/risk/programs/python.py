"""Python: the interpreter, its installers, and the tools that test, check and format."""

from __future__ import annotations

from planrun.risk import paths
from planrun.risk.levels import high
from planrun.risk.programs import KNOWN_PYTHON, dangerous, known_tool, project_tool, rules
from planrun.risk.programs.tests import PROGRAMS as TESTS
from planrun.risk.table import Rule
from planrun.risk.words import names_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.risk.levels import Finding
    from planrun.risk.table import Rules, Use

_SENDS = names_in("upload register install develop bdist_wininst easy_install")


_PACKAGES = KNOWN_PYTHON | names_in("build wheel setuptools pytest-cov pytest-xdist pytest-timeout pytest-asyncio pytest-mock hypothesis sphinx hatchling twine")  # fmt: skip
_VERSION = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.*,=<>!~_-[] ")


def _is_known(requirement: str) -> bool:
    """Whether a requirement names a well-known package, with extras or versions perhaps."""
    name = requirement
    for sign in "[=<>!~ ":
        name = name.partition(sign)[0]
    return name in _PACKAGES and _VERSION.issuperset(requirement)


def _install_tool(use: Use) -> Finding | None:
    named = use.operands[0]
    return (
        None
        if _is_known(named.replace("@", "=="))
        else high(f"{named}: names what an index has, and no tool that is known", "network", "code")
    )


def _local(use: Use) -> Finding | None:
    """What is installed is a folder or a file of the workspace, and not a name that an index resolves."""
    for operand in [
        *use.operands,
        *(value or "" for name, value in use.options if name in ("-e", "--editable")),
    ]:
        place = operand.partition("[")[0]
        if _is_known(operand):
            continue
        if "://" in operand or (
            place != "." and not place.startswith("./") and not place.endswith((".whl", ".tar.gz"))
        ):
            return high(
                f"{operand}: names what an index has, and not a file of the workspace", "network", "code"
            )
        reason = paths.inside(place, use.cwd, use.ground)
        if reason:
            return high(reason, "code")
    named = {"-r", "--requirement", "-e", "--editable"} & {name for name, _ in use.options}
    return None if use.operands or named else high("it does not name what is installed")


def _script(use: Use) -> Finding | None:
    if use.operands[0].rpartition("/")[2] == "setup.py" and _SENDS & set(use.operands[1:]):
        return high("setup.py: installs into the system, or publishes", "publishes")
    return None


_GLOBAL = (
    " -q -v -V --quiet --verbose --no-color --no-input --disable-pip-version-check --no-cache-dir --isolated"
)
_INSTALL = (
    "-r=inside -c=inside -e=package -U -I --requirement=inside --constraint=inside --editable=package --require-hashes --no-deps"
    " --no-index -f=inside --find-links=inside --upgrade --no-build-isolation --only-binary=text --no-binary=text --prefer-binary --pre:medium --dry-run"
    " --progress-bar=text --no-compile --compile --force-reinstall --ignore-installed --upgrade-strategy=text --no-warn-script-location"
    " --no-warn-conflicts --use-pep517 --check-build-dependencies --report=write --retries=number --timeout=number"
    " --root-user-action=text --break-system-packages:medium" + _GLOBAL
)
_NET = "code network writes"
PIP: dict[str, Rules] = {
    "list": Rule("read-only", "", "-e -l -o:medium:network -u:medium:network --outdated:medium:network --uptodate:medium:network --format=text --local --editable --not-required --exclude=name --exclude-editable --user" + _GLOBAL),
    "show": Rule("read-only", "name+", "-f --files" + _GLOBAL),
    "freeze": Rule("read-only", "", "-l --local --all --exclude=name --exclude-editable -r=read" + _GLOBAL),
    "check": Rule("read-only", "", _GLOBAL),
    "inspect": Rule("read-only", "", "--local --user" + _GLOBAL),
    "hash": Rule("read-only", "read+", "-a=text --algorithm=text"),
    "install": Rule("medium", "package*", _INSTALL, effects=_NET, check=_local, reason="installs what a file names"),
    "download": Rule("medium", "text*", "-d=write --dest=write " + _INSTALL, effects=_NET, check=_local, reason="fetches what a file names"),
    "wheel": Rule("medium", "text*", "-w=write --wheel-dir=write " + _INSTALL, effects=_NET, check=_local, reason="builds what a file names"),
}  # fmt: skip
_PIP = Rule("high", "", _GLOBAL, sub=PIP)
_OPTIONS = "-u -B -b -O -OO -q -v -d -s -S -E -I -P -x -W=text -X={dev,utf8,importtime,faulthandler,no_debug_ranges,tracemalloc}"
_PYTHON = (
    Rule("read-only", "", "-V -VV --version", needs="-V -VV --version"),
    Rule("medium", "module", f"{_OPTIONS} -m=module", needs="-m", style="posix"),
    Rule("medium", "run arg*", _OPTIONS, style="posix", check=_script),
)
_COVERAGE = Rule(
    "high",
    "",
    "",
    sub={
        "run": (
            Rule("medium", "module", "-m=module -a -p --append --branch --parallel-mode --source=arg --include=text --omit=text --rcfile=inside --data-file=write --timid --context=text --concurrency=text", needs="-m", style="posix"),
            Rule("medium", "run arg*", "-a -p --append --branch --parallel-mode --source=arg --include=text --omit=text --rcfile=inside --data-file=write --timid --context=text --concurrency=text", style="posix"),
        ),
        "report": Rule("low", "inside*", "-m -i --show-missing --skip-covered --skip-empty --fail-under=number --include=text --omit=text --format=text --sort=text --precision=number --rcfile=inside:medium --data-file=read --ignore-errors"),
        "html": Rule("low", "inside*", "-d=write -i -q --directory=write --include=text --omit=text --skip-covered --show-contexts --title=text --fail-under=number --rcfile=inside:medium"),
        "xml": Rule("low", "inside*", "-o=write -i -q --include=text --omit=text --fail-under=number --rcfile=inside:medium"),
        "json": Rule("low", "inside*", "-o=write -i -q --pretty-print --include=text --omit=text --fail-under=number --rcfile=inside:medium"),
        "lcov": Rule("low", "inside*", "-o=write -i -q --include=text --omit=text --fail-under=number --rcfile=inside:medium"),
        "combine": Rule("medium", "inside*", "-a -q --append --keep --rcfile=inside --data-file=write", glob=True, effects="writes destroys"),
        "erase": Rule("medium", "", "--data-file=write --rcfile=inside:medium", effects="destroys"),
    },
)  # fmt: skip
_FORMATS = "-q -v --quiet --verbose --check --diff --color --no-color"
_BLACK = Rule(
    "low",
    "write*",
    f"-l=number -S -C -t=text -W=number --line-length=number --target-version=text --preview --skip-string-normalization --config=inside --fast --safe --include=text --exclude=text --extend-exclude=text --force-exclude=text --workers=number --skip-magic-trailing-comma --pyi --ipynb --required-version=text --line-ranges=text {_FORMATS}",
)
_ISORT = Rule("low", "write*", f"-c -d -l=number -m=number -w=number --check-only --profile=text --line-length=number --skip=text --skip-glob=text --settings-path=inside --atomic --float-to-top --filter-files --df --gitignore --stdout {_FORMATS}")  # fmt: skip
_MYPY = Rule(
    "low",
    "inside*",
    "-v -p=name -m=name --strict --ignore-missing-imports --config-file=inside:medium --python-version=text --platform=text --show-error-codes --pretty --no-error-summary --exclude=text --follow-imports=text --no-incremental --cache-dir=write --warn-unused-ignores --warn-return-any --warn-unreachable --disallow-untyped-defs --check-untyped-defs --namespace-packages --explicit-package-bases --no-color-output --show-column-numbers --show-error-context --junit-xml=write --html-report=write --txt-report=write --no-strict-optional --enable-error-code=text --disable-error-code=text --sqlite-cache --skip-cache-mtime-checks --scripts-are-modules --package=name --module=name --hide-error-context --no-implicit-optional --any-exprs-report=write --output=text",
)
_FLAKE8 = Rule(
    "low",
    "inside*",
    "-q -v -j=text --max-line-length=number --select=text --ignore=text --extend-ignore=text --extend-select=text --exclude=text --extend-exclude=text --max-complexity=number --count --statistics --show-source --config=inside:medium --format=text --per-file-ignores=text --output-file=write --tee --exit-zero --benchmark --filename=text --jobs=text --isolated --max-doc-length=number",
)
_PYLINT = Rule(
    "medium",
    "inside*",
    "-j=number -E -v -r=text -s=text -f=text -d=text -e=text --jobs=number --errors-only --disable=text --enable=text --rcfile=inside --output-format=text --fail-under=number --score=text --reports=text --recursive=text --ignore=text --ignore-paths=text --ignore-patterns=text --fail-on=text --exit-zero --max-line-length=number --output=write --py-version=text",
)
_UNITTEST = Rule(
    "medium",
    "arg*",
    "-v -q -f -b -c -k=text -s=inside -p=text -t=inside --verbose --quiet --failfast --buffer --catch --locals --durations=number --start-directory=inside --pattern=text --top-level-directory=inside",
    reason="runs the project's tests",
)


def _tox(use: Use) -> Finding | None:
    """`tox exec` runs any command, `tox devenv` makes an environment anywhere."""
    named = use.operands[:1]
    return high(f"tox {named[0]}: may run or write anything", "code") if set(named) & _TOX_AT_LARGE else None


def _task(use: Use) -> Finding | None:
    """A task of the project has the name of no program, or of one that checks the project."""
    name = use.operands[0]
    known = rules(name) is not None or name in dangerous.REASONS
    return high(f"{name}: a program, no task", "code") if known and name not in _CHECKERS else None


_TOX_AT_LARGE = names_in("exec e devenv d quickstart q")
_CHECKERS = names_in("pytest mypy ruff black coverage")
_TOX = Rule(
    "medium",
    "arg*",
    "-e=text -p[=text] -q -v -r -c=inside -f=text -n -o -l --notest --parallel=text --parallel-no-spinner --recreate --conf=inside --sitepackages --skip-missing-interpreters[=text] --result-json=write --workdir=write --root=inside --listenvs -s[=text] --colored=text --skip-pkg-install --develop --no-provision --runner=text --quiet-parallel",
    check=_tox,
    effects="code network writes",
)
_NOX = Rule(
    "medium",
    "arg*",
    "-s=text -e=text -k=text -t=text -p=text -r -R -l -f=run -v -x --sessions=text --session=text --keywords=text --tags=text --python=text --pythons=text --reuse-existing-virtualenvs --reuse-venv=text --no-install --list --noxfile=run --verbose --stop-on-first-error --error-on-missing-interpreters --no-error-on-missing-interpreters --non-interactive --forcecolor --nocolor --report=write --install-only",
    effects="code network writes",
)
_BUILD = Rule("medium", "inside?", "-s -w -n -x -v -o=write --sdist --wheel --outdir=write --no-isolation --skip-dependency-check --verbose --installer=text", effects=_NET, reason="builds the project")  # fmt: skip
_VENV = Rule("medium", "write+", "--system-site-packages --symlinks --copies --clear:medium:destroys --upgrade --without-pip --prompt=text --upgrade-deps:medium:network -q --quiet -p=text", effects="writes")  # fmt: skip
_PRE_COMMIT = Rule("high", "", "", sub={
    "run": Rule("medium", "name?", "-a -v --all-files --files=inside --show-diff-on-failure --verbose --hook-stage=text --color=text --from-ref=arg --to-ref=arg -s=arg -o=arg -c=inside --config=inside --fail-fast", effects="code network writes"),
    "validate-config": Rule("read-only", "read*"),
    "validate-manifest": Rule("read-only", "read*"),
})  # fmt: skip


def _asking_python(rules: Rules) -> Rule:
    assert isinstance(rules, Rule), "a verb of pip that only asks has one form"
    return Rule("medium", rules.operands, rules.options)


_RUN_ENV = "--python=number -p=number --python-preference=name --managed-python --frozen --locked --no-sync --all-extras --extra=name --group=name --no-group=name --dev --no-dev --all-groups --offline -q -v --quiet --verbose --no-progress --no-project --isolated --exact --active --no-editable --package=name --directory=folder --no-default-groups --only-group=name --only-dev"
_UV = Rule("high", "", "-q -v --quiet --verbose --no-progress --offline --no-cache -n --no-config --directory=folder --color=text", sub={
    "sync": Rule("medium", "", f"{_RUN_ENV} --no-install-project --no-install-workspace --inexact --all-packages --check --reinstall --compile-bytecode --dry-run", effects=_NET, reason="installs what a file names"),
    "run": (
        Rule("medium", "module", f"{_RUN_ENV} -m=module --module=module", needs="-m --module", style="posix", effects=_NET),
        Rule("medium", "command", _RUN_ENV, style="posix", effects=_NET, check=project_tool, reason="installs what a file names"),
    ),
    "lock": Rule("medium", "", "--check --locked --frozen --upgrade -U --dry-run --offline -q", effects="network writes code"),
    "build": _BUILD,
    "venv": Rule("medium", "make?", "--python=number -p=number --seed --clear:medium:destroys -q --quiet --prompt=text --allow-existing", effects="network writes"),
    "tree": Rule("medium", "", "--frozen --locked --depth=number --package=name --invert --outdated --universal --no-dev", effects="network code"),
    "export": Rule("medium", "", "--frozen --locked -o=write --output-file=write --format=text --no-hashes --no-dev --all-extras --extra=name --group=name --no-header --no-emit-project -q --quiet", effects="network writes code"),
    "pip": Rule("high", "", "-q --quiet", sub={
        # These ask the interpreter of a virtual environment, which may be in the workspace.
        **{name: _asking_python(PIP[name]) for name in ("list", "show", "freeze", "check")},
        "tree": Rule("medium", "", "--depth=number --invert --outdated:medium:network"),
        "install": Rule("medium", "package*", f"--system:medium {_INSTALL}", effects=_NET, check=_local),
        "sync": Rule("medium", "inside+", "--require-hashes -q --dry-run", effects=_NET),
        "compile": Rule("medium", "inside+", "-o=write --output-file=write --generate-hashes --upgrade -U -q --quiet --universal --python-version=text --no-header --no-annotate --all-extras --extra=name --strip-extras --resolution=text", effects="network writes code"),
    }),
    "version": Rule("read-only", "", "--short"),
    "python": Rule("high", sub={"list": Rule("medium", "", "--only-installed", needs="--only-installed"), "find": Rule("medium"), "install": Rule("medium", "number*", "-q --quiet", effects="network", reason="fetches an interpreter")}),
    "tool": Rule("high", sub={
        "run": Rule("medium", "command", "-q --quiet --python=number -p=number --isolated", style="posix", effects=_NET, check=known_tool(KNOWN_PYTHON), reason="fetches a tool"),
        "install": Rule("medium", "package", "-q --quiet --python=number -p=number --python-preference=name --upgrade -U", effects=_NET, check=_install_tool, reason="fetches a tool"),
        "list": Rule("read-only"),
    }),
})  # fmt: skip
_POETRY = Rule("high", "", "-q -v -n --quiet --no-interaction --no-ansi --ansi --directory=folder -C=folder", sub={
    "install": Rule("medium", "", "--no-root --sync --with=text --without=text --only=text --all-extras -E=name --extras=text --dry-run --no-dev --only-root --compile -n --no-interaction --no-ansi -q -v --all-groups", effects=_NET, reason="installs what a file names"),
    "sync": Rule("medium", "", "--no-root --with=text --without=text --only=text --all-extras -n --no-interaction", effects=_NET),
    "run": Rule("medium", "command", style="posix", check=project_tool),
    "build": Rule("medium", "", "-f=text --format=text -o=write --output=write -n --clean", effects=_NET),
    "check": Rule("medium", "", "--lock --strict"),
    "lock": Rule("medium", "", "--no-update --check --regenerate -n --no-interaction", effects="network writes code"),
    "show": Rule("medium", "name?", "-t --tree --only=text --with=text --without=text --top-level -T -a --all"),
    "version": Rule("medium", "", "-s --short"),
    "env": Rule("high", sub={"info": Rule("medium", "", "-p --path -e --executable"), "list": Rule("medium", "", "--full-path")}),
})  # fmt: skip
_HATCH = Rule("high", "", "-q -v --no-color -e=name --env=name", sub={
    "run": Rule("medium", "name", check=_task, effects=_NET),
    "test": Rule("medium", "arg*", "-a -c -p -q -v --all --cover --parallel --randomize --retries=number -i=text --python=text -py=text", effects=_NET),
    "fmt": Rule("medium", "inside*", "--check -l --linter -f --formatter --preview", effects=_NET),
    "build": Rule("medium", "inside?", "-t=text -c --target=text --clean --hooks-only", effects=_NET),
    "version": Rule("medium"),
})  # fmt: skip
_SPHINX = Rule("medium", "inside inside inside*", "-b=name -W -q -n -E -a -j=text -d=write -M=name --keep-going -D=text -t=name -T")  # fmt: skip

PROGRAMS: dict[str, Rules] = {
    "python": _PYTHON,
    "pip": _PIP,
    "tox": _TOX,
    "nox": _NOX,
    "coverage": _COVERAGE,
    "black": _BLACK,
    "isort": _ISORT,
    "mypy": _MYPY,
    "pyright": Rule("low", "inside*", "-p=inside --project=inside --pythonversion=text --pythonplatform=text --outputjson --stats --warnings --level=text --verbose --threads[=number]"),
    "flake8": _FLAKE8,
    "pylint": _PYLINT,
    "autoflake": Rule("low", "write*", "-i -r -c -v --in-place --recursive --check --check-diff --remove-all-unused-imports --remove-unused-variables --imports=text --exclude=text --ignore-init-module-imports --expand-star-imports --remove-duplicate-keys --quiet --stdout -s -j=number --jobs=number"),
    "autopep8": Rule("low", "write*", "-i -r -d -a -v --in-place --recursive --diff --aggressive --max-line-length=number --select=text --ignore=text --exclude=text --exit-code -j=number"),
    "yapf": Rule("low", "write*", "-i -r -d -p -q -vv --in-place --recursive --diff --parallel --style=text -e=text --exclude=text"),
    "pyupgrade": Rule("low", "write*", "--py3-plus --py36-plus --py37-plus --py38-plus --py39-plus --py310-plus --py311-plus --py312-plus --py313-plus --py314-plus --keep-percent-format --exit-zero-even-if-changed --keep-runtime-typing"),
    "docformatter": Rule("low", "write*", "-i -r -c --in-place --recursive --check --diff --wrap-summaries=number --wrap-descriptions=number --black"),
    "bandit": Rule("low", "inside*", "-r -l -ll -lll -i -ii -q -v -c=inside -f=text -o=write -x=text -s=text -t=text -b=inside --recursive --configfile=inside --format=text --output=write --exclude=text --skip=text --severity-level=text --confidence-level=text --exit-zero --quiet -n=number"),
    "vulture": Rule("read-only", "inside*", "--min-confidence=number --exclude=text --ignore-names=text --sort-by-size -v"),
    "codespell": Rule("low", "write*", "-w -q=number -S=text -L=text -I=inside --write-changes --skip=text --ignore-words-list=text --ignore-words=inside --check-filenames --check-hidden --quiet-level=number -f -d -s --summary --count"),
    "pre-commit": _PRE_COMMIT,
    "virtualenv": _VENV,
    "uv": _UV,
    "uvx": Rule("medium", "command", "-q --quiet --python=number -p=number --isolated", style="posix", effects=_NET, check=known_tool(KNOWN_PYTHON), reason="fetches a tool"),
    "poetry": _POETRY,
    "hatch": _HATCH,
    "sphinx-build": _SPHINX,
    "mkdocs": Rule("high", "", "-q -v", sub={"build": Rule("medium", "", "-s -q -v -c -d=write -f=inside --strict --clean --site-dir=write --config-file=inside --quiet --verbose")}),
    "pip-compile": Rule("medium", "inside*", "-o=write -q -U -v --output-file=write --generate-hashes --upgrade --quiet --strip-extras --allow-unsafe --no-header --no-annotate --resolver=text --extra=name --all-extras --dry-run", effects="network writes code"),
    "lint-imports": Rule("medium", "", "--config=inside --contract=name --cache-dir=write --no-cache --show-timings --verbose"),
    "djlint": Rule("low", "inside*", "--check --reformat --lint --quiet --extension=text --profile=text"),
    "python:unittest": _UNITTEST,
    "python:pytest": TESTS["pytest"],
    "python:ruff": TESTS["ruff"],
    "python:pip": _PIP,
    "python:build": _BUILD,
    "python:venv": _VENV,
    "python:virtualenv": _VENV,
    "python:coverage": _COVERAGE,
    "python:black": _BLACK,
    "python:isort": _ISORT,
    "python:mypy": _MYPY,
    "python:flake8": _FLAKE8,
    "python:pylint": _PYLINT,
    "python:tox": _TOX,
    "python:nox": _NOX,
    "python:pre_commit": _PRE_COMMIT,
    "python:sphinx": _SPHINX,
    "python:json.tool": Rule("read-only", "read? write?", "--sort-keys --indent=number --tab --no-indent --compact --no-ensure-ascii --json-lines"),
    "python:compileall": Rule("low", "write*", "-q -f -l -b -j=number -r=number -x=text"),
    "python:py_compile": Rule("low", "write*", "-q"),
    "python:doctest": Rule("medium", "run+", "-v -f -o=text"),
    "python:tabnanny": Rule("read-only", "read+", "-v -q"),
    "python:zipfile": (Rule("read-only", "read", "-l -t --list --test", needs="-l -t --list --test"), Rule("low", "write read+", "-c --create", needs="-c --create")),
    "python:tarfile": Rule("read-only", "read", "-l -t --list --test", needs="-l -t --list --test"),
    "python:calendar": Rule("read-only", "number*"),
    "python:platform": Rule("read-only"),
}  # fmt: skip
for _name in names_in("python2 python3 pypy pypy3") | {f"python3.{minor}" for minor in range(8, 15)}:
    PROGRAMS[_name] = _PYTHON
PROGRAMS["pip3"] = _PIP
