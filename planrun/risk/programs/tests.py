"""Programs that build, check and test what the project holds."""

from __future__ import annotations

from planrun.risk.levels import high
from planrun.risk.table import Rule
from planrun.risk.words import names_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.risk.levels import Finding
    from planrun.risk.table import Rules, Use

_MAKE_OF_ITS_OWN = names_in("SHELL MAKE MAKEFLAGS MAKEFILES .SHELLFLAGS CC CXX LD AR AS")

_LEAVES = names_in("install uninstall deploy undeploy publish release upload push login")
"""Targets whose names say that more than the workspace changes."""


def _make(use: Use) -> Finding | None:
    for operand in use.operands:
        name, sign, value = operand.partition("=")
        if sign and (
            name.endswith("!") or name.rstrip(":?+!") in _MAKE_OF_ITS_OWN or "$" in value or "`" in value
        ):
            return high(f"{operand}: changes which code runs", "code")
        if operand.partition("-")[0].lower() in _LEAVES:
            return high(f"make {operand}: by its name changes the system or something remote", "publishes")
    return None


def _pytest(use: Use) -> Finding | None:
    """An operand that begins with @ names a file with options."""
    files = [operand for operand in use.operands if operand.startswith("@")]
    return high(f"{files[0]}: options from a file") if files else None


PROGRAMS: dict[str, Rules] = {
    "pytest": Rule(
        "medium",
        "arg*",
        "-q -v -vv -x -s -l -k=text -m=text -n=text -r=text -c=inside --maxfail=number --tb=text --durations=number"
        " --junitxml=write --junit-xml=write --collect-only --co --lf --ff --last-failed --failed-first --nf --sw"
        " --stepwise --no-header --no-summary --color=text --cov[=arg] --cov-report=arg --cov-fail-under=number"
        " --cov-branch --no-cov --rootdir=inside --ignore=inside --deselect=text --strict-markers --strict-config --quiet"
        " --verbose --exitfirst --capture=text --showlocals --timeout=number --dist=text --setup-show --markers --fixtures"
        " --import-mode={prepend,append,importlib} --cache-clear --confcutdir=inside --basetemp=write --exitfirst --durations-min=number",
        glob=True,
        check=_pytest,
        reason="runs the project's tests",
    ),
    "make": Rule(
        "medium",
        "arg*",
        "-B -i -k -n -q -s -S -t -r -R -w -d -p -j[=number] -l[=number] -O[=text] -C=folder -f=run --always-make"
        " --directory=folder --dry-run --file=run --ignore-errors --jobs[=number] --just-print --keep-going --makefile=run"
        " --no-builtin-rules --no-print-directory --print-directory --question --quiet --silent --touch --output-sync[=text]"
        " --warn-undefined-variables --trace --no-builtin-variables",
        check=_make,
        reason="runs the project's makefile",
    ),
    "ruff": Rule(
        "high",
        options="-q -v --quiet --verbose --config=inside --isolated",
        sub={
            "check": Rule(
                "low",
                "write*",
                "-q -v -s -n -e --fix --unsafe-fixes --diff --no-fix --show-fixes --show-files --show-settings --select=text"
                " --ignore=text --extend-select=text --extend-ignore=text --output-format=text -o=write --output-file=write"
                " --target-version=text --preview --no-preview --config=inside --isolated --exclude=text"
                " --extend-exclude=text --no-cache --cache-dir=write --statistics --exit-zero --exit-non-zero-on-fix"
                " --force-exclude --respect-gitignore --quiet --verbose --line-length=number --per-file-ignores=text",
            ),
            "format": Rule("low", "write*", "-q -v -n --check --diff --config=inside --isolated --exclude=text --no-cache --cache-dir=write --line-length=number --preview --force-exclude --target-version=text --quiet --verbose --range=text"),
            "rule": Rule("read-only", "name?", "--all --output-format=text"),
            "version": Rule("read-only"),
            "linter": Rule("read-only", "", "--output-format=text"),
        },
    ),
}  # fmt: skip
