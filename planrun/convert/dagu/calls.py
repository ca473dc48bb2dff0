"""One call of an executor or an action: its settings, and words of a shell that are made of them."""

from __future__ import annotations

import json
import re

from planrun.convert.dagu.variables import Keys, pairs_of
from planrun.convert.reader import UntranslatableError, data_of, text_of
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from planrun.convert.dagu.references import References
    from planrun.convert.reader import Reader

DOCUMENT = "PLANRUN_INPUT_END"


class Call:
    """What one step asks an executor or action `KIND.OP` for."""

    def __init__(
        self, kind: str, op: str, settings: Keys, references: References, texts: tuple[str, str]
    ) -> None:
        self.kind = kind
        self.op = op
        self.settings = settings
        self.references = references
        self.command, self.script = texts
        self.reader: Reader = settings.reader
        self.node = settings.node
        self.secrets: list[str] = []  # names of variables that hold credentials

    @property
    def code(self) -> str:
        """The name under which the call is refused."""
        return f"executor:{self.kind}"

    def inner(self, text: str) -> str:
        """Return a text for the inside of double quotes and here-documents: `$NAME` in it is read by the shell."""
        filled = self.references.words(text)
        escaped = re.sub(r"\\", r"\\\\", filled)
        return re.sub(r"\$(?=\d)", r"\\$", escaped)

    def word(self, text: str) -> str:
        """Return a word in double quotes: Dagu fills in `$NAME` in it, and so does the shell."""
        if re.fullmatch(r"[A-Za-z0-9_./:=@%+,-]+", text):
            return f'"{text}"'
        filled = self.references.words(text)
        parts = re.split(r"(\$\(printf %s \"[^)]*\))", filled)  # a member of an output, by jq
        quoted = [part if at % 2 else re.sub(r'(["\\])', r"\\\1", part) for at, part in enumerate(parts)]
        return '"' + re.sub(r"\$(?=\d)", r"\\$", "".join(quoted)) + '"'

    def prose(self, text: str) -> str:
        """Return a word in double quotes for a text in which backquotes and `$(` are no commands."""
        marked = text.replace("`", "\0b").replace("$(", "\0d(")
        return self.word(marked).replace("\0b", "\\`").replace("\0d", "\\$")

    def document(self, text: str) -> str:
        """Return a here-document with a text in which the shell reads `$NAME`."""
        if "$" not in text and "`" not in text:
            return f"'{DOCUMENT}'\n{text.removesuffix(chr(10))}\n{DOCUMENT}"
        return f"{DOCUMENT}\n{self.inner(text).removesuffix(chr(10))}\n{DOCUMENT}"

    def required(self, name: str) -> str:
        """Return a setting that must be there; raises UntranslatableError."""
        text = self.settings.text(name)
        if not text:
            raise UntranslatableError(self.code, f"{self.kind} without `{name}`")
        return text

    def pairs(self, name: str) -> Iterator[tuple[str, str]]:
        """Yield names and values of a setting."""
        for key, value in pairs_of(self.settings.get(name), f"`{name}`", self.reader):
            yield key, text_of(value)

    def json(self, node: Node) -> str:
        """Return a value of the file as JSON."""
        return json.dumps(_data(node), ensure_ascii=False)

    def refuse(self, message: str) -> UntranslatableError:
        """Return the refusal of what this call asks for."""
        return UntranslatableError(self.code, message)


def _data(node: Node) -> Any:
    if node.kind == MAPPING:
        return {name: _data(value) for name, value in node.value.items()}
    if node.kind == SEQUENCE:
        return [_data(value) for value in node.value]
    return data_of(node) if node.kind == SCALAR else None
