"""Plans made of the parts of others: documents in which keys, values, ids and edges change their places."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import yaml

from proofs.fuzzing import formulas

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    Document = dict[str, Any]
    Place = tuple[Any, Any]  # a container and a key or index in it

VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 10**18, 10**400, 3.1, 1e300, float("inf"), float("nan"), "", " ", "a",
    "a\nb", "a\tb",
    "\0", "\x1b[0m", "\u202e", "é", "\U0001f600", "x" * 5000, "5m", "99999999h", "0s", "1h30m", "bash 'x",
    "2024-99-99", "0000-00-00", "${{", "}}",
    "${{ params.target }}", "$${{ x }}", "step_a_failed", "steps", [], {}, [[]], [{}], {"": ""},
    {"a": None}, ["a", "a"],
    [None], {"a": {"b": {"c": []}}}, {"<<": 1}, {"type": "string", "pattern": "("}, {"type": "string",
    "pattern": "[[]"},
    {"type": "string", "pattern": "(a+)+$", "default": "a" * 40 + "b"}, {"items": {"pattern": "("},
    "default": ["a"]},
    {"type": "array", "uniqueItems": True, "default": [[], {}, []]}, {"multipleOf": 1e-300, "default": 1e300},
    {"multipleOf": 0, "default": 1}, {"type": "object", "required": ["a", "a"], "default": {}},
    {"minimum": "a"},
    {"type": "integer", "default": 10**18}, {"enum": [1, True, 1.0]}, {"const": None},
    {"properties": {"a": {"type": "x"}}},
    {"max": 3, "backoff": {"initial": "1s", "factor": 1e99, "max": "1h", "jitter": 1}}, {"on": ["any",
    {"exit": [1]}]},
    {"exit": 1, "match": "x"}, {"match": "("}, {"that": "true"}, {"files_exist": "a"},
    {"json_schema": {"file": "a", "schema": {}}},
)  # fmt: skip
DATES = ("2024-01-01", "2024-99-99", "0000-00-00", "2024-02-30T25:61:61Z", "12:99", "-1:-1")
IDS = (
    "a",
    "A",
    "b",
    "1",
    1,
    "2",
    "a.b",
    "-a",
    "a" * 100,
    "a" * 101,
    "É",
    "é",
    "ß",
    "SS",
    "true",
    "0x1",
    "..",
    "a/b",
    "",
    None,
)


def made(chance: Random, documents: Sequence[Document], most: int = 5) -> bytes:
    """Return a file that holds a document with some changes."""
    document = deepcopy(chance.choice(documents))
    for _ in range(chance.randint(1, most)):
        chance.choice(_CHANGES)(chance, document, documents)
    return written(chance, document)


def written(chance: Random, document: Document) -> bytes:
    """Write a document as YAML in one of its styles, or as JSON."""
    style = chance.randrange(5)
    if style == 0:
        try:
            return json.dumps(document, ensure_ascii=chance.random() < 0.5, default=str).encode(
                "utf-8", "replace"
            )
        except (TypeError, ValueError):  # a key that JSON has no word for, a document inside itself
            pass
    try:
        data: bytes = yaml.dump(
            document,
            Dumper=yaml.CSafeDumper,
            encoding="utf-8",
            sort_keys=False,
            allow_unicode=chance.random() < 0.5,
            default_flow_style=(False, False, None, True)[style - 1],
            default_style=chance.choice((None, None, None, '"', "'", "|")),
            width=chance.choice((10, 80, 4000)),
            indent=chance.choice((2, 4)),
        )
    except (yaml.YAMLError, RecursionError, ValueError):
        return b"version: 1\nsteps: []\n"
    return data


def places(document: Document) -> list[Place]:
    """Return every place of a document, as a container and a key in it."""
    found: list[Place] = []
    seen: set[int] = set()
    waiting: list[Any] = [document]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict | list) and id(part) not in seen:
            seen.add(id(part))
            keys = list(part) if isinstance(part, dict) else list(range(len(part)))
            found += [(part, key) for key in keys]
            waiting += [part[key] for key in keys]
    return found


def _some(chance: Random, document: Document) -> Place:
    found = places(document)
    return chance.choice(found) if found else (document, "steps")


def _steps(document: Document) -> list[Document]:
    listed = document.get("steps")
    return [step for step in listed if isinstance(step, dict)] if isinstance(listed, list) else []


def _replace(chance: Random, document: Document, _all: Sequence[Document]) -> None:
    holder, key = _some(chance, document)
    holder[key] = deepcopy(chance.choice(VALUES)) if chance.random() < 0.8 else chance.choice(DATES)


def _borrow(chance: Random, document: Document, every: Sequence[Document]) -> None:
    """Take a value of another plan, or of another place of this one."""
    holder, key = _some(chance, document)
    other, name = _some(chance, chance.choice((document, chance.choice(every))))
    found = deepcopy(other.get(name) if isinstance(other, dict) else other[name])
    if isinstance(holder, dict) and isinstance(name, str) and chance.random() < 0.6:
        holder[name] = found
    else:
        holder[key] = found


def _exchange(chance: Random, document: Document, _all: Sequence[Document]) -> None:
    (first, one), (second, two) = _some(chance, document), _some(chance, document)
    try:
        first[one], second[two] = deepcopy(second[two]), deepcopy(first[one])
    except (KeyError, IndexError):
        return


def _remove(chance: Random, document: Document, _all: Sequence[Document]) -> None:
    holder, key = _some(chance, document)
    try:
        del holder[key]
    except (KeyError, IndexError):
        return


def _rename(chance: Random, document: Document, every: Sequence[Document]) -> None:
    """Give a key the name of another, or a letter more or less."""
    holder, key = _some(chance, document)
    if isinstance(holder, dict) and key in holder:
        other = _some(chance, chance.choice(every))[1]
        near = str(key)[:-1] if chance.random() < 0.5 else f"{key}s"
        holder[other if chance.random() < 0.5 and isinstance(other, str) else near] = holder.pop(key)


def _nested(chance: Random, document: Document, _all: Sequence[Document]) -> None:
    holder, key = _some(chance, document)
    found = deepcopy(holder.get(key)) if isinstance(holder, dict) else deepcopy(holder[key])
    for _ in range(chance.choice((1, 1, 2, 60, 80))):
        found = [found] if chance.random() < 0.5 else {"a": found}
    holder[key] = found


def _again(chance: Random, document: Document, _all: Sequence[Document]) -> None:
    """Write the same value twice, which YAML does by an alias; some of them inside themselves."""
    (holder, key), (other, name) = _some(chance, document), _some(chance, document)
    try:
        found = holder[key]
        other[name] = found
    except (KeyError, IndexError):
        return


def _collide(chance: Random, document: Document, _all: Sequence[Document]) -> None:
    """Give steps ids that are equal, nearly equal, or none."""
    for step in _steps(document):
        if chance.random() < 0.5:
            step["id"] = chance.choice(IDS)


def _tie(chance: Random, document: Document, _all: Sequence[Document]) -> None:
    """Let steps wait for each other, in circles too."""
    steps = _steps(document)
    ids = [step.get("id", number) for number, step in enumerate(steps, 1)]
    for step in steps:
        names = [
            name for name in chance.choices(ids, k=chance.randrange(4)) if not isinstance(name, dict | list)
        ]
        if chance.random() < 0.5:
            step["depends_on"] = {
                name: chance.choice(("ok", "completed", "failed", "done", "x")) for name in names
            }
        else:
            step[chance.choice(("depends_on", "depends_on", "recovers"))] = list(names)


def _chain(chance: Random, document: Document, _all: Sequence[Document]) -> None:
    length = chance.choice((10, 60, 300))
    key = chance.choice(("depends_on", "recovers"))
    document["steps"] = [
        {"id": f"s{n}", "run": "x", key: [f"s{n - 1}"]} if n else {"id": "s0", "run": "x"}
        for n in range(length)
    ]
    if chance.random() < 0.5:
        document["steps"][0]["depends_on"] = [f"s{length - 1}"]


def _formula(chance: Random, document: Document, _all: Sequence[Document]) -> None:
    """Put an expression where one may stand, or anywhere."""
    steps = _steps(document)
    if not steps:
        return
    step = chance.choice(steps)
    where = chance.randrange(7)
    made_text = formulas.template(chance)
    if where == 0:
        step["condition"] = formulas.text(chance)
    elif where == 1:
        step["run"] = made_text
    elif where == 2:
        step["env"] = {"A": made_text}
    elif where == 3:
        step.pop("run", None)
        step["exec"] = ["x", made_text]
    elif where == 4:
        step.pop("run", None)
        step["validate"] = [{"that": formulas.text(chance)}, {"files_exist": [made_text]}]
    elif where == 5:
        document["outputs"] = {"n": made_text}
    else:
        holder, key = _some(chance, document)
        holder[key] = made_text


def _fragment(chance: Random, document: Document, _all: Sequence[Document]) -> None:
    """Declare a parameter, or outputs, by a fragment made of random parts."""
    parts: Document = {
        "type": chance.choice(("string", "integer", "number", "boolean", "array", "object", "x"))
    }
    for _ in range(chance.randrange(4)):
        key = chance.choice(
            (
                "default",
                "enum",
                "pattern",
                "minimum",
                "items",
                "properties",
                "required",
                "multipleOf",
                "const",
            )
        )
        parts[key] = deepcopy(chance.choice(VALUES))
    if chance.random() < 0.5:
        document["params"] = {chance.choice(("target", "n", "list", "shape", "a-b", "")): parts}
    elif steps := _steps(document):
        chance.choice(steps)["outputs"] = {"n": parts}


_CHANGES: tuple[Callable[[Random, Document, Sequence[Document]], None], ...] = (
    _replace, _replace, _replace, _borrow, _borrow, _borrow, _exchange, _remove, _rename, _nested, _again,
    _collide, _tie,
    _chain, _formula, _formula, _formula, _fragment, _fragment,
)  # fmt: skip
