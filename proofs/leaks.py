"""Where a form of a secret stands: in bytes as they are, and as readers of XML and JSON understand them."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proofs.emit import ENCODINGS
from proofs.treasure import SECRETS

NAMES = tuple(f"SECRET_{number}" for number in range(len(SECRETS)))
INHERITED = {"DEMO_API_KEY": "inh-8c1f5be2d0", "ANTHROPIC_API_KEY": "sk-demo-4417ab09e3c2"}
"""Credentials that no plan declares: one is masked under `inherit_env: all`, one whenever there are masks."""
SHORTEST = 6  # bytes of a form; what is shorter turns up by chance
BEGINNING = 24  # characters of a long secret, as a message that is cut to size may quote them
BOTH_ENDS = 4  # characters of base64 in which what stands beside a secret may have a part


@dataclass(frozen=True)
class Leak:
    """A form of a secret in a place, or what else went wrong there."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


def forms() -> dict[bytes, str]:
    """Return all that must not be found, with what it is: each secret, and each of its lines, in each encoding."""
    found: dict[bytes, str] = {}
    secrets = {**dict(zip(NAMES, SECRETS, strict=True)), **INHERITED}
    for name, secret in secrets.items():
        lines = [line for line in secret.splitlines() if not line.startswith("-----")]
        for text in (secret.strip(), *[line.strip() for line in lines if len(line.strip()) >= 2 * SHORTEST]):
            for how, encode in ENCODINGS.items():
                form = encode(text.encode()).strip(b"'\" \n=")
                if "behind" in how:
                    form = form[BOTH_ENDS:-BOTH_ENDS]
                if len(form) >= SHORTEST:
                    found.setdefault(form, f"{name}, {how}")
        if len(secret) > 2 * BEGINNING and "\n" not in secret:
            found[secret[:BEGINNING].encode()] = f"{name}, its beginning"
    return found


FORMS = forms()


def leaks_in(where: str, data: bytes) -> Iterator[Leak]:
    """Yield the forms that stand in some bytes, as they are or as a reader of XML or JSON understands them."""
    views = {"": data, " as XML": html.unescape(data.decode("utf-8", "replace")).encode("utf-8", "replace")}
    views[" as JSON"] = b"\n".join(_json_texts(data))
    for how, view in views.items():
        for form, what in FORMS.items():
            if form in view:
                yield Leak(where + how, what)


def _json_texts(data: bytes) -> Iterator[bytes]:
    """Yield all texts in a JSON document, or in one on each line."""
    try:
        documents = [json.loads(data)]
    except ValueError:
        documents = []
        for line in data.splitlines():
            try:
                documents.append(json.loads(line))
            except ValueError:
                continue
    while documents:
        value: Any = documents.pop()
        if isinstance(value, str):
            yield value.encode("utf-8", "replace")
        elif isinstance(value, dict):
            documents += [*value, *value.values()]
        elif isinstance(value, list):
            documents += value


def leaks_under(folder: Path, *, besides: Sequence[str] = ()) -> Iterator[Leak]:
    """Yield the leaks in every file under a folder, in the names of files, and nowhere else."""
    for path in sorted(folder.rglob("*")):
        where = str(path.relative_to(folder.parent))
        yield from leaks_in(f"the name of {where}", os.fsencode(path.name))
        if path.is_file() and not any(part in path.parts for part in besides):
            yield from leaks_in(where, path.read_bytes())
