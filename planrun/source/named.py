"""The files that a step names: what it reads, makes and changes, and what its result depends on, compiled."""

from __future__ import annotations

from planrun.model.plan import Cache, Kept, Reports
from planrun.source.node import MAPPING, Node
from planrun.source.outline import produced
from planrun.source.shape import as_bool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.source.compile import Compiler


def file_fields(compiler: Compiler, keys: dict[str, Node]) -> dict[str, Any]:
    """Return which files a step reads, makes and changes, and whether its result is used again, as its fields."""
    found: dict[str, Any] = {key: compiler.words(keys[key]) for key in ("inputs", "writes") if key in keys}
    if "produces" in keys:
        found.update(_produced(compiler, keys["produces"]))
    if "cache" in keys and (cache := _cache(compiler, keys["cache"])) is not None:
        found["cache"] = cache
    if "reports" in keys and "junit" in keys["reports"].value:
        found["reports"] = Reports(junit=compiler.words(keys["reports"].value["junit"]))
    return found


def _produced(compiler: Compiler, node: Node) -> dict[str, Any]:
    """Return the files that must be there, and those that may."""
    made = [(compiler.formulas.text(pattern), when) for pattern, when in produced(node)]
    must = tuple([path for path, when in made if when == "always"])
    may = tuple([Kept(path=path, when=when) for path, when in made if when != "always"])  # type: ignore[arg-type]
    return {**({"produces": must} if must else {}), **({"keeps": may} if may else {})}


def _cache(compiler: Compiler, node: Node) -> Cache | None:
    """Return what the result of a step depends on besides the step; None: it is not used again."""
    if node.kind != MAPPING:
        return Cache() if as_bool(node) else None
    fields: dict[str, Any] = {}
    if "inputs" in node.value:
        fields["inputs"] = compiler.words(node.value["inputs"])
    if "key" in node.value:
        fields["key"] = compiler.formulas.text(node.value["key"])
    return Cache(**fields)
