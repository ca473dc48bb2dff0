"""docs/features.md: every row of the acceptance table with how to see it and the tests that show it.

    python -m tests.docs.features    write the page, as `pytest tests/docs --update-goldens` does

What a row is called and how it is seen is written by hand in docs/features.tsv. Which tests show it is found in the
tests: `@pytest.mark.shows("GP-34")` above a test, `# shows: GP-34` in the plan of a case. A row without such a test is
not built yet, whatever the code can do.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, NamedTuple

from tests.docs.pages import DOCS, ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGE = DOCS / "features.md"
SOURCE = DOCS / "features.tsv"
TESTS = ROOT / "tests"
PROOFS = ROOT / "proofs"
HEAD = "id\tfeature\thow to see it\tmissing"
NOT_BUILT = "not built yet"
CASE = re.compile(r"^# shows: (.+)$", re.MULTILINE)
# Goals are measured, not features: they have no row here.
GOAL = re.compile(r"[PRS]\d{1,2}")
GROUPS = {
    "GP": "Plans",
    "GM": "Agents, delegation, tree search, memory",
    "N": "Execution flow",
    "D": "Planning",
    "V": "Planning mode",
    "X": "Found in code only",
}
INTRODUCTION = """\
# Features and their tests

Tests show {shown} of {all} rows, and {partly} more in part (with what is missing); {rest} are not built yet.

The ids are those of planrun's acceptance table. A row counts as shown when a test carries its id as a mark.
`python -m tests.docs.features` writes this page from docs/features.tsv and these marks; a test compares it.
"""


class Row(NamedTuple):
    """A feature: its id, its name, how it is seen once it is built, and what is still missing of it."""

    id: str
    name: str
    how: str
    missing: str


class Proof(NamedTuple):
    """A test that shows rows: its name and the file it is in, relative to the project."""

    name: str
    file: str


def rows() -> list[Row]:
    """Return the rows of docs/features.tsv in their order."""
    head, *lines = SOURCE.read_text("utf-8").splitlines()
    if head != HEAD:
        raise ValueError(f"{SOURCE.name} begins with {head!r}")
    return [Row(*[*line.split("\t"), "", "", ""][:4]) for line in lines]


def proofs() -> dict[str, list[Proof]]:
    """Return the tests that show each row, by file and name; goals are left out."""
    found: dict[str, list[Proof]] = {}
    for ids, proof in sorted([*_marked(), *_cases()], key=lambda pair: (pair[1].file, pair[1].name)):
        for row in ids:
            if not GOAL.fullmatch(row):
                found.setdefault(row, []).append(proof)
    return found


def _marked() -> Iterator[tuple[list[str], Proof]]:
    for path in sorted((*TESTS.rglob("test_*.py"), *PROOFS.glob("test_*.py"))):
        tree = ast.parse(path.read_text("utf-8"))
        of_all = [row for node in tree.body if _is_mark_of_all(node) for row in _rows_of(node, path)]
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                own = [row for decorator in node.decorator_list for row in _rows_of(decorator, path)]
                ids = sorted({*of_all, *own})
                if ids:
                    yield ids, Proof(f"{path.stem}::{node.name}", str(path.relative_to(ROOT)))


def _is_mark_of_all(node: ast.stmt) -> bool:
    """Return whether a statement marks all tests of its file."""
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"


def _rows_of(decorator: ast.AST, path: Path) -> list[str]:
    """Return the ids in `pytest.mark.shows(...)`, also of parameters; raises ValueError for a computed one."""
    found = []
    for call in ast.walk(decorator):
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "pytest.mark.shows":
            for argument in call.args:
                if not isinstance(argument, ast.Constant) or not isinstance(argument.value, str):
                    raise ValueError(f"{path.name}:{argument.lineno}: write out the ids that a test shows")  # noqa: TRY004
                found.append(argument.value)
    return found


def _cases() -> Iterator[tuple[list[str], Proof]]:
    for path in sorted((TESTS / "cases").glob("*/plan.yml")):
        ids = [row for line in CASE.findall(path.read_text("utf-8")) for row in line.split()]
        if ids:
            yield ids, Proof(f"cases/{path.parent.name}", str(path.relative_to(ROOT)))


def page() -> str:
    """Return the page as it should be."""
    known, shown = rows(), proofs()
    built = [row for row in known if row.id in shown]
    partly = [row for row in built if row.missing]
    numbers = {
        "all": len(known),
        "shown": len(built) - len(partly),
        "partly": len(partly),
        "rest": len(known) - len(built),
    }
    parts = [INTRODUCTION.format(**numbers)]
    for prefix, title in GROUPS.items():
        parts.append(f"\n## {title}\n\n| Id | Feature | How to see it | Test |\n|---|---|---|---|\n")
        parts += [_line(row, shown.get(row.id, [])) for row in known if row.id.partition("-")[0] == prefix]
    return "".join(parts)


def _line(row: Row, tests: list[Proof]) -> str:
    if not tests:
        return f"| {row.id} | {row.name} | {NOT_BUILT} | |\n"
    how = f"{row.how}. *In part: {row.missing}.*" if row.missing else row.how
    links = ", ".join(f"[{proof.name}](../{proof.file})" for proof in tests)
    return f"| {row.id} | {row.name} | {how} | {links} |\n"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
