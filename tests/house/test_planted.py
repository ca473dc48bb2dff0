"""Proofs plant faults by names of modules and functions: each such name is one of planrun as it is now."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

PROOFS = Path(__file__).parents[2] / "proofs"
FILES = sorted(PROOFS.rglob("*.py"))
FROM = re.compile(r"\bfrom (planrun(?:\.\w+)*) import (\w+(?: as \w+)?(?:, \w+(?: as \w+)?)*)")
IMPORT = re.compile(r"\bimport (planrun(?:\.\w+)+)")
TYPING = re.compile(r"^if TYPE_CHECKING:\n(?:    .*\n|\n)+", re.MULTILINE)


def has(module: str, name: str) -> bool:
    """Say whether a module offers a name or has a module of it."""
    if hasattr(importlib.import_module(module), name):
        return True
    try:
        importlib.import_module(f"{module}.{name}")
    except ModuleNotFoundError:
        return False
    return True


def test_what_is_imported_is_there() -> None:
    """In strings, too, which no type checker reads: a fault that cannot be planted proves nothing."""
    gone = []
    for path in FILES:
        text = TYPING.sub("", path.read_text("utf-8"))
        for module in IMPORT.findall(text):
            importlib.import_module(module)
        names = [(module, name.split()[0]) for module, row in FROM.findall(text) for name in row.split(", ")]
        gone += [f"{path.name}: {module}.{name}" for module, name in names if not has(module, name)]
    assert gone == []


def snippets(path: Path) -> Iterator[ast.Module]:
    """Yield what a file holds as text and is Python that imports planrun."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "planrun" in node.value:
            try:
                yield ast.parse(node.value)
            except SyntaxError:
                continue


def imported(snippet: ast.Module) -> dict[str, Any]:
    """Return what the imports of a snippet bind, by name."""
    found: dict[str, Any] = {}
    for node in ast.walk(snippet):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("planrun"):
            for alias in node.names:
                module = importlib.import_module(node.module)
                if not hasattr(module, alias.name):
                    module = importlib.import_module(f"{node.module}.{alias.name}")
                    found[alias.asname or alias.name] = module
                else:
                    found[alias.asname or alias.name] = getattr(module, alias.name)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("planrun.") and alias.asname:
                    found[alias.asname] = importlib.import_module(alias.name)
    return found


def test_what_is_replaced_is_there() -> None:
    """A fault that assigns to a name which nothing reads any more is none."""
    gone, count = [], 0
    for path in FILES:
        for snippet in snippets(path):
            names = imported(snippet)
            for node in ast.walk(snippet):
                for target in node.targets if isinstance(node, ast.Assign) else ():
                    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
                        owner = names.get(target.value.id)
                        count += owner is not None
                        if owner is not None and not hasattr(owner, target.attr):
                            gone.append(f"{path.name}: {ast.unparse(target)}")
    assert gone == []
    assert count > 40
