"""json_patch."""

from __future__ import annotations

from planrun.sha256 import sha256
from planrun.tools.files import check_expected, encoded, text_of
from planrun.tools.jsonpatch import patched, same
from planrun.tools.jsontexts import read, style_of, written
from planrun.tools.refusal import Refusal
from planrun.tools.results import plural, say
from planrun.tools.writing import existing, permissions, put, read_whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.tools.ground import Ground

MAX_FILE = 8 << 20  # bytes


def json_patch(ground: Ground, args: dict[str, Any]) -> dict[str, Any]:
    """Change a JSON file by operations; a file that says the same afterwards is not written."""
    operations = args["operations"]
    with ground.writable(args["file"]) as place:
        if place.name.lower().endswith((".yml", ".yaml")):
            raise Refusal(f"{place.path}: only JSON can be patched; YAML would lose its comments")
        status = existing(place)
        data = read_whole(place, MAX_FILE)
        check_expected(place, args)
        text = text_of(place, data)
        try:
            document = read(text)
            changed = patched(document, operations)
        except Refusal as refusal:
            raise Refusal(f"{place.path}: {refusal}") from None
        if same(document, changed) and _order(document) == _order(changed):
            say(f"{place.path} stays as it is")
            return {"changed": False, "sha256": str(sha256(data).hexdigest())}
        new = encoded(written(changed, style_of(text)))
        _, digest = put(place, (new,), permissions(status, executable=False), replace=True)
        say(f"changed {place.path} by {plural(len(operations), 'operation')}")
    return {"changed": True, "sha256": digest}


def _order(value: Any) -> Any:
    """Return the keys of data in their order, which a move may change."""
    if isinstance(value, dict):
        return [(name, _order(part)) for name, part in value.items()]
    return [_order(part) for part in value] if isinstance(value, list) else None
