"""The environment of a step: variables as templates, and secrets as what only this step sees."""

from __future__ import annotations

import re

from planrun.app.converting.findings import UntranslatableError
from planrun.app.converting.github.texts import cut, secret_here, template
from planrun.app.converting.reading import text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from planrun.app.converting.github.names import PlaceNames
    from planrun.source.node import Node

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class Variables:
    """What a step gets: `env` as templates, `secrets` by name, and lines of script that put secrets together."""

    def __init__(self) -> None:
        self.env: dict[str, str] = {}
        self.secrets: list[str] = []
        self.lines: list[str] = []

    def read(self, env: Mapping[str, Node], names: PlaceNames) -> None:
        """Add the variables of a mapping; raises UntranslatableError."""
        for name, node in env.items():
            if not _NAME.match(name):
                raise UntranslatableError("env", f"`{name}` cannot be the name of a variable here")
            text = text_of(node)
            pieces = cut(text)
            found = [secret_here(piece, names) for piece in pieces]
            if not any(found):
                self.env[name] = template(text, names)
            elif len(pieces) == 1 and found[0] == name:
                self.secrets.append(name)
            else:
                self._put_together(name, pieces, found)

    def _put_together(self, name: str, pieces: Sequence[object], found: list[str]) -> None:
        parts = []
        for piece, secret in zip(pieces, found, strict=True):
            if secret:
                self.secrets.append(secret)
                parts.append(f"${{{secret}}}")
            elif isinstance(piece, str):
                parts.append(re.sub(r'(["\\$`])', r"\\\1", piece))
            else:
                raise UntranslatableError("secret", f"the variable {name} joins a secret with other values")
        self.lines.append(f'export {name}="{"".join(parts)}"')
