"""Count what makes planrun/ hard to take over: `python tests/house/measure.py [--list FIGURE]`.

tests/house/test_measure.py holds each figure at or below its ceiling.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = "planrun"
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
MOST_LINES = 60
"""Lines of a function."""
TINY = 3
"""Statements of a tiny helper, nested ones counted, its docstring left out."""


class Module:
    """A file of planrun/ and its syntax tree."""

    def __init__(self, path: Path) -> None:
        self.path = str(path.relative_to(ROOT))
        name = self.path.removesuffix(".py").replace("/", ".")
        self.is_package = name.endswith(".__init__")
        self.name = name.removesuffix(".__init__")
        self.text = path.read_text("utf-8")
        self.tree = ast.parse(self.text)
        self.functions = [node for node in ast.walk(self.tree) if isinstance(node, FUNCTION)]

    def place(self, node: ast.stmt) -> str:
        """Return `file:line` of a statement."""
        return f"{self.path}:{node.lineno}"


def modules() -> list[Module]:
    """Read all modules of planrun/."""
    return [Module(path) for path in sorted((ROOT / PACKAGE).rglob("*.py"))]


def long_functions(found: list[Module]) -> Iterator[str]:
    """Functions of more than 60 lines, from `def` to the last statement."""
    for module in found:
        for function in module.functions:
            if (function.end_lineno or 0) - function.lineno + 1 > MOST_LINES:
                yield f"{module.place(function)} {function.name}"


def tiny_helpers(found: list[Module]) -> Iterator[str]:
    """Private functions and methods of at most three statements whose name stands once more in the module."""
    for module in found:
        words = Counter(re.findall(r"\w+", module.text))
        for function in module.functions:
            name = function.name
            if (
                not name.startswith("_")
                or name.startswith("__")
                or words[name] != 2
                or function.decorator_list
            ):
                continue
            body = function.body[1:] if ast.get_docstring(function) else function.body
            if sum(isinstance(node, ast.stmt) for part in body for node in ast.walk(part)) <= TINY:
                yield f"{module.place(function)} {name}"


def local_imports(found: list[Module]) -> Iterator[str]:
    """Import statements inside functions."""
    for module in found:
        lines = {
            node.lineno
            for function in module.functions
            for node in ast.walk(function)
            if isinstance(node, (ast.Import, ast.ImportFrom))
        }
        yield from (f"{module.path}:{line}" for line in sorted(lines))


def imported_twice(found: list[Module]) -> Iterator[str]:
    """Names that one scope of a module imports twice."""
    for module in found:
        for scope in (module.tree, *module.functions):
            names: Counter[str] = Counter()
            queue: list[ast.AST] = list(ast.iter_child_nodes(scope))
            while queue:
                node = queue.pop()
                if isinstance(node, (ast.Import, ast.ImportFrom)):
                    names.update(alias.asname or alias.name for alias in node.names)
                elif not isinstance(node, FUNCTION):
                    queue += ast.iter_child_nodes(node)
            yield from (f"{module.path} {name}" for name, count in names.items() if count > 1)


def type_blocks(found: list[Module]) -> Iterator[str]:
    """Second and later `if TYPE_CHECKING:` blocks of a module."""
    for module in found:
        blocks = [
            node
            for node in module.tree.body
            if isinstance(node, ast.If)
            and isinstance(node.test, ast.Name)
            and node.test.id == "TYPE_CHECKING"
        ]
        yield from (module.place(node) for node in blocks[1:])


def imports(found: list[Module]) -> dict[str, set[str]]:
    """Return which modules each module imports, type-only imports and imports inside functions included."""
    known = {module.name for module in found} - {
        PACKAGE
    }  # the root offers the version to all, and imports on demand
    graph: dict[str, set[str]] = defaultdict(set)
    for module in found:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Import):
                graph[module.name].update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    inner = f"{node.module}.{alias.name}"
                    graph[module.name].add(inner if inner in known else node.module)
    return {name: (graph[name] & known) - {name} for name in known}


def circles(found: list[Module]) -> Iterator[str]:
    """Groups of modules that import each other in a circle, type-only imports counted (Tarjan's algorithm)."""
    graph = imports(found)
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    groups: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in sorted(graph[name]):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            start = stack.index(name)
            groups.append(sorted(stack[start:]))
            del stack[start:]

    for name in sorted(graph):
        if name not in index:
            visit(name)
    yield from (" ".join(group) for group in groups if len(group) > 1)


def lines(found: list[Module]) -> Iterator[str]:
    """Lines of all modules."""
    yield from (line for module in found for line in module.text.splitlines())


def files(found: list[Module]) -> Iterator[str]:
    """Modules."""
    yield from (module.path for module in found)


FIGURES = {
    "lines": lines,
    "files": files,
    "functions over 60 lines": long_functions,
    "tiny helpers used once": tiny_helpers,
    "imports in functions": local_imports,
    "names imported twice": imported_twice,
    "second blocks of types": type_blocks,
    "circles of modules": circles,
}


def main() -> None:
    """Print each figure, or the places behind one of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", choices=list(FIGURES), help="print the places that a figure counts")
    chosen = parser.parse_args().list
    found = modules()
    if chosen:
        print("\n".join(FIGURES[chosen](found)))
        return
    for name, figure in FIGURES.items():
        print(f"{sum(1 for _ in figure(found)):>8,}  {name}")


if __name__ == "__main__":
    main()
