"""`python -m release.licences`: the licence of each package that planrun brings, with or without extras.

The expression comes from the metadata of the installed package (`License-Expression`, or `License` where it is one in
SPDX terms, or a classifier that means exactly one licence), or from the table `stated` in licences.toml where the
metadata has none. Exit code 1: a licence is unknown or not accepted, or an entry of the file is not needed any more.
"""

from __future__ import annotations

import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from license_expression import ExpressionError, get_spdx_licensing

from release.locked import EXTRAS, RUNTIME, installed, packages

if TYPE_CHECKING:
    from importlib.metadata import Distribution

    from release.locked import Locked

FILE = Path(__file__).with_name("licences.toml")
_SPDX = get_spdx_licensing()
_CLASSIFIERS = {
    "License :: OSI Approved :: MIT License": "MIT",
    "License :: OSI Approved :: ISC License (ISCL)": "ISC",
    "License :: OSI Approved :: Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "License :: OSI Approved :: Python Software Foundation License": "PSF-2.0",
}
"""Those that mean one licence: "BSD License" and "Apache Software License" have several."""


@dataclass(frozen=True)
class Rules:
    """The content of licences.toml."""

    accepted: frozenset[str]
    exceptions: dict[str, dict[str, str]] = field(default_factory=dict)
    stated: dict[str, dict[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """A package, its licence ("" when unknown), where that was found, and what is wrong with it."""

    package: Locked
    licence: str
    source: str
    problem: str = ""


def rules(file: Path = FILE) -> Rules:
    """Read the accepted licences."""
    data = tomllib.loads(file.read_text("utf-8"))
    return Rules(frozenset(data["accepted"]), data.get("exceptions", {}), data.get("stated", {}))


def expression(text: str) -> str:
    """Return a text as an SPDX expression in its normal form, "" when it is none."""
    try:
        return str(_SPDX.parse(text, validate=True, strict=True)) if text else ""
    except ExpressionError:
        return ""


def stated_by(found: Distribution) -> tuple[str, str]:
    """Return the licence that the metadata of a package states, and the field; ("", "") when it states none."""
    metadata = found.metadata
    for name in ("License-Expression", "License"):
        if licence := expression(metadata[name] or ""):
            return licence, name
    classes = {_CLASSIFIERS.get(line, "") for line in metadata.get_all("Classifier", []) if "License" in line}
    return (classes.pop(), "Classifier") if len(classes) == 1 else ("", "")


def is_accepted(licence: str, accepted: frozenset[str]) -> bool:
    """Whether accepted licences suffice: of `A OR B` one is enough, of `A AND B` both are needed."""
    parsed = _SPDX.parse(licence)
    truths = {symbol: str(symbol) in accepted for symbol in parsed.symbols}
    substituted = parsed.subs({s: _SPDX.TRUE if known else _SPDX.FALSE for s, known in truths.items()})
    return bool(substituted.simplify() == _SPDX.TRUE)


def row(package: Locked, known: Rules, found: Distribution | None = None) -> Row:
    """Judge one package."""
    licence, source = stated_by(found or installed(package))
    entry = known.stated.get(package.name)
    if entry and licence:
        return Row(package, licence, source, "its metadata has a licence now; remove it from `stated`")
    if entry:
        licence, source = expression(entry["licence"]), "licences.toml"
    if not licence:
        return Row(package, "", source, "unknown licence; read it, and add the package to `stated`")
    exception = known.exceptions.get(package.name)
    if is_accepted(licence, known.accepted):
        problem = "its licence is accepted for all; remove it from `exceptions`" if exception else ""
        return Row(package, licence, source, problem)
    if exception and expression(exception["licence"]) == licence:
        return Row(package, licence, source)
    return Row(package, licence, source, "its licence is not accepted")


def report(rows: list[Row]) -> str:
    """Return the rows as a markdown table."""
    runtime = packages(RUNTIME)
    lines = ["| Package | Version | Licence | Stated by | Brought by |", "|---|---|---|---|---|"]
    for each in rows:
        brought = "planrun" if each.package.name in runtime else "an extra"
        lines.append(
            f"| {each.package.name} | {each.package.version} | {each.licence or '?'} | {each.source} | {brought} |"
        )
    return "\n".join(lines) + "\n"


def main() -> int:
    """Print the table, and what is wrong on stderr."""
    known, locked = rules(), packages(EXTRAS)
    rows = [row(package, known) for package in locked.values()]
    problems = [
        f"{each.package.name}: {each.licence or '?'}: {each.problem}" for each in rows if each.problem
    ]
    problems += [
        f"{name}: no dependency any more; remove it from licences.toml"
        for name in sorted({*known.exceptions, *known.stated} - set(locked))
    ]
    sys.stdout.write(report(rows))
    sys.stderr.write("".join([f"licences: {problem}\n" for problem in problems]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
