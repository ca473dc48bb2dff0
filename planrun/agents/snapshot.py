"""What one agent leaves for the next: six lists of short texts, and the block of data that a prompt gets of them."""

from __future__ import annotations

from planrun.llm.untrusted import data_block
from planrun.model.jsontext import dumps
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from planrun.model.collaboration import Entry

FIELDS = ("key_files", "discoveries", "error_patterns", "critical_results", "requirements", "decisions")
MOST = 20
"""Texts of one field; of more the last ones are kept."""
LONGEST = 500
"""Characters of one text; the middle of a longer one is left out."""
BLOCK_BYTES = 16 * 1024
_TITLES = {
    "key_files": "Key files",
    "discoveries": "Discoveries",
    "error_patterns": "Errors and what solved them",
    "critical_results": "Critical results of tools",
    "requirements": "Requirements of the user",
    "decisions": "Decisions",
}
_HEAD, _TAIL = 300, 150  # characters of a text that is too long


class Snapshot(Record):
    """The context of an agent for another one; each field holds short texts in the order in which they came up."""

    key_files: tuple[str, ...] = ()
    discoveries: tuple[str, ...] = ()
    error_patterns: tuple[str, ...] = ()
    critical_results: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to hand over."""
        return not any(getattr(self, name) for name in FIELDS)

    def as_data(self) -> dict[str, list[str]]:
        """Return it as JSON data, every field present."""
        return {name: list(getattr(self, name)) for name in FIELDS}

    def text(self) -> str:
        """Return it in lines: a title for each field that is not empty, and its texts."""
        lists = [(_TITLES[name], getattr(self, name)) for name in FIELDS]
        return "\n\n".join(
            ["\n".join([f"{title}:", *[f"- {text}" for text in texts]]) for title, texts in lists if texts]
        )

    def block(self) -> str:
        """Return it as a block of untrusted data for a prompt, "" when it is empty.

        What agents found comes from files and outputs, so it is never an instruction.
        """
        return "" if self.is_empty else data_block("context-snapshot", self.text(), BLOCK_BYTES)


def from_data(data: Mapping[str, Any]) -> Snapshot:
    """Return the snapshot of JSON data; what is no text is left out."""
    return Snapshot(**{name: _texts(data.get(name)) for name in FIELDS})


def _texts(values: object) -> tuple[str, ...]:
    return _kept([value for value in values if isinstance(value, str)] if isinstance(values, list) else [])


def gathered(
    entries: Iterable[Entry],
    *,
    errors: Iterable[tuple[str, str]] = (),
    results: Iterable[tuple[str, str]] = (),
    requirements: Sequence[str] = (),
) -> Snapshot:
    """Return the snapshot of a phase that ends, from what the memory holds and from what the agent saw.

    `errors`: messages with what solved them, "" where nothing did. `results`: names of tools with their output.
    """
    lists: dict[str, list[str]] = {"filestate": [], "fact": [], "insight": [], "decision": []}
    for entry in entries:
        if entry.type in lists:
            value = entry.value if isinstance(entry.value, str) else dumps(entry.value)
            lists[entry.type].append(f"{entry.key}: {value}")
    return Snapshot(
        key_files=_kept(lists["filestate"]),
        discoveries=_kept([*lists["fact"], *lists["insight"]]),
        error_patterns=_kept([f"{error} -> {solution or 'not solved'}" for error, solution in errors]),
        critical_results=_kept([f"{tool}: {output}" for tool, output in results]),
        requirements=_kept(requirements),
        decisions=_kept(lists["decision"]),
    )


def _kept(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the last texts, each once and in one line that is not too long."""
    lines = dict.fromkeys([_short(" ".join(text.split())) for text in texts])
    return tuple([line for line in lines if line][-MOST:])


def _short(line: str) -> str:
    if len(line) <= LONGEST:
        return line
    return f"{line[:_HEAD]} [{len(line) - _HEAD - _TAIL} characters left out] {line[-_TAIL:]}"
