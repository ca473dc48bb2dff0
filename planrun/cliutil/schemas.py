"""The JSON Schemas that planrun comes with, as bytes."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from planrun.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    pass

SCHEMAS = ("plan", "policy", "project", "ledger", "approval", "recording", "notification")


def schema_bytes(name: str) -> bytes:
    """Return a JSON Schema as it is shipped; raises InvalidInput for an unknown name."""
    if name not in SCHEMAS:
        raise InvalidInput(f'no schema "{name}"; known: {", ".join(SCHEMAS)}')
    package = files("planrun")
    source = package / "schemas" / f"{name}.schema.json"
    if not source.is_file():  # a source tree: the schemas stand beside the package
        source = Path(str(package)).parent / "schemas" / f"{name}.schema.json"
    try:
        return source.read_bytes()
    except OSError as error:
        raise InvalidInput(f"the schema is not installed: {source}: {error.strerror}") from None
