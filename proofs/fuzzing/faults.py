"""Faults to plant into planrun's reading of plans, each of which the fuzzer must find."""

from __future__ import annotations

import os
import re
import signal
from datetime import date
from typing import TYPE_CHECKING, Any

from planrun.expressions import grammar, parse
from planrun.expressions import parse as scan
from planrun.plan import packed, printing, problems
from planrun.plan.keys import outline
from planrun.plan.schema import forms
from planrun.plan.yaml import document, text
from planrun.plan.yaml import text as syntax

if TYPE_CHECKING:
    from collections.abc import Callable

    from planrun.model.plan import Plan
    from planrun.plan.yaml.node import Node


def _put(holder: object, name: str, value: object) -> None:
    setattr(holder, name, value)


def _no_depth_limit() -> None:
    document.MAX_DEPTH = 10**9  # what comes after the reader calls itself for each level


def _no_expression_limit() -> None:
    for module in (grammar, parse, scan):
        _put(module, "MAX_DEPTH", 10**9)  # each has it by name
    parse._MAX_PREFIX = 10**9


def _equal_keys() -> None:
    _put(document._Reading, "_duplicate", lambda *_: None)


def _dates() -> None:
    plain = forms.FORMS["text"]

    def dated(node: Node, spec: tuple[Any, ...]) -> Any:
        if re.match(r"\d{4}-\d\d-\d\d", node.value):
            date.fromisoformat(node.value[:10])
        return plain(node, spec)

    forms.FORMS["text"] = dated


def _raw_excerpts() -> None:
    _put(printing, "escaped", str)


def _forgetful_cache() -> None:
    pack = packed.pack

    def forgetting(plan: Plan) -> dict[str, Any]:
        found = pack(plan)
        for record in found["plan"][2]["steps"]:
            record[1].pop("recovers", None)
        return found

    packed.pack = forgetting


def _places_off() -> None:
    locate = outline._Lines.locate
    _put(outline._Lines, "locate", lambda self, *place: {**locate(self, *place), "col": 999})


def _moody() -> None:
    mood = [0]
    nearest = problems.nearest

    def moody(word: str, known: Any) -> Any:
        mood[0] += 1
        return nearest(word, known) if mood[0] % 3 else None

    _put(problems, "nearest", moody)


def _endless() -> None:
    directive = text.directive

    def waiting(content: str, file: str) -> Any:
        while "\t\t" in content or "- - -" in content:
            pass
        return directive(content, file)

    _put(document, "directive", waiting)


def _crash() -> None:
    explain = syntax.explain

    def crash(error: Any, content: str, file: str) -> Any:
        if "'" in content and '"' in content:
            os.kill(os.getpid(), signal.SIGSEGV)
        return explain(error, content, file)

    _put(document, "explain", crash)


def _hungry() -> None:
    alias = document._Reading._alias

    def hungry(self: Any, event: Any) -> Any:
        self.ballast = bytearray(200 << 20)
        return alias(self, event)

    _put(document._Reading, "_alias", hungry)


FAULTS: dict[str, Callable[[], None]] = {
    "": lambda: None,
    "no-depth-limit": _no_depth_limit,
    "no-expression-limit": _no_expression_limit,
    "equal-keys": _equal_keys,
    "dates": _dates,
    "raw-excerpts": _raw_excerpts,
    "forgetful-cache": _forgetful_cache,
    "places-off": _places_off,
    "moody": _moody,
    "endless": _endless,
    "crash": _crash,
    "hungry": _hungry,
}
"""By name; the empty one is planrun as it is."""


def plant(name: str) -> None:
    """Plant a fault into this process."""
    FAULTS[name]()
