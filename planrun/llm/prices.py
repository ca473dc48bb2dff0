"""What tokens cost: a dated table, planrun's own or that of the user, read strictly.

Prices are US dollars for a million tokens. Costs are rounded up to a billionth of a dollar, so that what is reserved
is never less than what is counted. A model without a row has no price: nothing is guessed.
"""

from __future__ import annotations

import os
from datetime import date
from math import ceil

from planrun.errors import InvalidInput, InvalidPlan
from planrun.model.record import Record
from planrun.plan.problems import Problem, in_order, key_hint
from planrun.plan.schema.forms import as_number
from planrun.plan.yaml.document import MAPPING, SCALAR, parse
from planrun.plan.yaml.file import NotRegular, read_script
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from planrun.model.call import Usage
    from planrun.plan.yaml.node import Node

VERSION = 1
KEYS = ("version", "as_of", "source", "models")
RATES = ("input", "output", "cache_read", "cache_write")
ABOVE = "above"
_OWN = os.path.join(os.path.dirname(__file__), "prices.yml")
_DEAREST = 1_000_000.0  # dollars for a million tokens
_LONGEST_PROMPT = 1_000_000_000  # tokens
_NANO = 1000  # billionths of a dollar for one token, of one dollar for a million


class Price(Record):
    """The four prices of a model; `dearer` holds for prompts of more than `above` tokens."""

    input: float
    output: float
    cache_read: float
    cache_write: float
    above: int = 0  # 0: one price for all prompts
    dearer: Price | None = None

    def of(self, prompt: int) -> Price:
        """Return the prices for a prompt of so many tokens."""
        return self.dearer if self.dearer and prompt > self.above else self


class PriceTable(Record):
    """Prices by model; `as_of`: the day they were looked up, `source`: where, `file`: empty for planrun's own."""

    as_of: str
    source: str
    models: Mapping[str, Price]
    file: str = ""
    digest: str = ""  # sha256 of the file

    def most(self, model: str, prompt: int, longest: int) -> float | None:
        """Return the most that a call can cost, whatever of its prompt is cached; None without a price."""
        found = self.models.get(model)
        if found is None:
            return None
        price = found.of(prompt)
        return _dollars(
            prompt * max(price.input, price.cache_write, price.cache_read) + longest * price.output
        )

    def cost(self, model: str, usage: Usage) -> float | None:
        """Return what a call cost; None without a price."""
        found = self.models.get(model)
        if found is None:
            return None
        price = found.of(usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens)
        return _dollars(
            usage.input_tokens * price.input
            + usage.output_tokens * price.output
            + usage.cache_read_tokens * price.cache_read
            + usage.cache_write_tokens * price.cache_write
        )

    def recorded(self) -> dict[str, str]:
        """Return which table it is, for the ledger."""
        return {"as_of": self.as_of, "source": self.source, "file": self.file, "sha256": self.digest}


def _dollars(millionths: float) -> float:
    """Return dollars for so many tokens times dollars for a million of them."""
    return ceil(round(millionths * _NANO, 3)) / 1e9


def open_prices(path: str = "") -> PriceTable:
    """Return the table in a file, planrun's own without one; raises InvalidInput, InvalidPlan with every problem."""
    try:
        data = read_script(os.path.realpath(path or _OWN))
    except NotRegular as kind:
        raise InvalidInput(f"cannot read prices from {path}: it is {kind}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidInput(f"cannot read prices from {path}: {reason}") from None
    return prices_in(data, path)


def prices_in(data: bytes, path: str) -> PriceTable:
    """Return the table in the bytes of a YAML or JSON file; raises InvalidPlan with every problem and its place."""
    root, problems = parse(data, path)
    if root is not None and not problems:
        problems = _Check(path).table(root)
    if root is None or problems:
        raise InvalidPlan(in_order(problems), sources={path: data})
    models = {name: _price(node) for name, node in root.value["models"].value.items()}
    return PriceTable(
        as_of=root.value["as_of"].value,
        source=root.value["source"].value,
        models=models,
        file=path,
        digest=sha256(data).hexdigest(),
    )


def _price(node: Node) -> Price:
    rates: dict[str, Any] = {name: float(as_number(node.value[name])) for name in RATES}
    above = node.get(ABOVE)
    if above is not None:
        rates |= {"above": int(above.value["prompt"].value), "dearer": _price(above)}
    return Price(**rates)


class _Check:
    """Looks at a table and gathers what is wrong with it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._problems: list[Problem] = []

    def table(self, root: Node) -> list[Problem]:
        """Return everything that is wrong."""
        if self._keys(root, KEYS, "a table of prices"):
            for key, test in (("version", _version), ("as_of", _day), ("source", _line)):
                node = root.get(key)
                if node is not None and (reason := test(node)):
                    self._wrong("E106", f'"{key}" {reason}', node)
            models = root.get("models")
            if models is not None and models.kind != MAPPING:
                self._wrong("E101", '"models" is a mapping of names to prices', models)
            elif models is not None:
                for name, node in models.value.items():
                    self._model(name, node)
        return self._problems

    def _model(self, name: str, node: Node) -> None:
        if not self._keys(node, (*RATES, ABOVE), f'"{name}"', optional=(ABOVE,)):
            return
        self._rates(node)
        above = node.get(ABOVE)
        if above is not None and self._keys(above, ("prompt", *RATES), f'"{name}.{ABOVE}"'):
            self._rates(above)
            prompt = above.get("prompt")
            if prompt is not None and not (
                0 < _number(prompt) <= _LONGEST_PROMPT and prompt.value.isdecimal()
            ):
                self._wrong("E106", '"prompt" is a whole number of tokens from 1', prompt)

    def _rates(self, node: Node) -> None:
        for name in RATES:
            rate = node.get(name)
            if rate is not None and not 0 <= _number(rate) <= _DEAREST:
                self._wrong("E106", f'"{name}" is a number of US dollars for a million tokens', rate)

    def _keys(self, node: Node, known: tuple[str, ...], what: str, optional: tuple[str, ...] = ()) -> bool:
        """Look at the keys of a mapping; False when it is none."""
        if node.kind != MAPPING:
            self._wrong("E101", f"{what} is a mapping with {', '.join(known)}", node)
            return False
        for key in node.value:
            if key not in known:
                hint = key_hint(key, known)
                self._wrong("E104", f'unknown key "{key}" in {what}', node.key(key), hint)
        for key in known:
            if key not in optional and node.get(key) is None:
                self._wrong("E102", f'{what} needs "{key}"', node)
        return True

    def _wrong(self, code: str, message: str, at: Node, hint: str = "") -> None:
        found: dict[str, Any] = {"line": at.line, "col": at.col, "hint": hint}
        self._problems.append(Problem(code=code, message=message, file=self._path, **found))


def _number(node: Node) -> float:
    """Return a number; -1 for whatever is none that a price can be."""
    if node.kind != SCALAR or not node.plain or not node.value.replace(".", "", 1).isdecimal():
        return -1.0
    return float(node.value) if node.value.isascii() else -1.0


def _version(node: Node) -> str:
    fits = node.kind == SCALAR and node.plain and node.value == str(VERSION)
    return "" if fits else f"must be {VERSION}: other versions are not supported"


def _day(node: Node) -> str:
    try:
        fits = node.kind == SCALAR and len(node.value) == 10 and bool(date.fromisoformat(node.value))
    except ValueError:
        fits = False
    return "" if fits else "is a day, such as 2026-01-31"


def _line(node: Node) -> str:
    fits = node.kind == SCALAR and node.value.strip() and len(node.value) <= 200 and node.value.isprintable()
    return "" if fits else "is a line of 1 to 200 characters"
