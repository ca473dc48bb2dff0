"""What the fake model answers to what: by turn, by words in the question, or by a function of the request."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.messages import replies
from tests.fakes.messages.counting import text_of
from tests.fakes.messages.refusing import RequestError
from tests.fakes.messages.replies import Reply

NO_REPLY = "the script has no reply to this request"
PLACES = ("system", "user", "text", "model")
"""Where a rule may look: the system text, the last message, all that was said, the model's name."""


@dataclass(frozen=True)
class Asked:
    """A request that the service takes.

    `turn`: how many requests for a message came before it. `attempt`: 1, or more when this very body came before.
    """

    body: dict[str, Any]
    headers: Mapping[str, str]
    turn: int
    attempt: int

    @property
    def model(self) -> str:
        """The name of the model."""
        return str(self.body["model"])

    @property
    def system(self) -> str:
        """The whole system text."""
        return _joined(self.body.get("system") or "")

    @property
    def user(self) -> str:
        """The last message."""
        return _joined(self.body["messages"][-1]["content"])

    @property
    def text(self) -> str:
        """All that was said, in order: system text, then every message."""
        said = [_joined(message["content"]) for message in self.body["messages"]]
        return "\n".join([self.system, *said])

    @property
    def schema(self) -> dict[str, Any] | None:
        """The schema that the answer has to follow; None: any text."""
        form = (self.body.get("output_config") or {}).get("format") or {}
        schema: dict[str, Any] | None = form.get("schema")
        return schema

    def find(self, pattern: str, place: str = "text") -> str:
        """Return what the first group of a pattern matches there; raises LookupError when it does not."""
        found = re.search(pattern, getattr(self, place), re.MULTILINE)
        if not found:
            raise LookupError(f"{pattern!r} is not in the {place} of request {self.turn}")
        return found[1] if found.re.groups else found[0]


def _joined(content: Any) -> str:
    return content if isinstance(content, str) else "\n".join(text_of(block) for block in content)


Policy = Callable[[Asked], Any]
"""A model that computes its answer from the request; what it returns is whatever `as_reply` takes."""


@dataclass
class Rule:
    """One entry of a script.

    `when`: patterns by place (PLACES), all of which have to be found; and `attempt`, a number. `times`: for how many
    requests it is good; None: any. A policy as `reply` gets the request; named groups of the patterns are in `found`.
    """

    reply: Any
    when: Mapping[str, Any] = field(default_factory=dict)
    times: int | None = 1
    used: int = 0

    def __post_init__(self) -> None:
        if strange := set(self.when) - {*PLACES, "attempt"}:
            raise ValueError(f"{min(strange)!r} is no place to look; there are {', '.join(PLACES)}, attempt")

    def fits(self, asked: Asked) -> dict[str, str] | None:
        """Return the named groups when the rule matches a request, otherwise None."""
        if self.times is not None and self.used >= self.times:
            return None
        found: dict[str, str] = {"turn": str(asked.turn), "attempt": str(asked.attempt)}
        for place, wanted in self.when.items():
            if place == "attempt":
                if asked.attempt != wanted:
                    return None
                continue
            match = re.search(wanted, getattr(asked, place), re.MULTILINE)
            if not match:
                return None
            found |= {name: value or "" for name, value in match.groupdict().items()}
        return found


class Script:
    """Rules in order: the first that matches a request and is not used up answers it, then `otherwise`."""

    def __init__(self, rules: Iterable[Rule], otherwise: Any = None) -> None:
        self.rules = list(rules)
        self.otherwise = otherwise

    def __call__(self, asked: Asked) -> Reply:
        """Return the reply to a request; raises RequestError when there is none."""
        for rule in self.rules:
            found = rule.fits(asked)
            if found is not None:
                rule.used += 1
                return _made(rule.reply, asked, found)
        if self.otherwise is None:
            raise RequestError(NO_REPLY)
        return _made(self.otherwise, asked, {"turn": str(asked.turn), "attempt": str(asked.attempt)})

    @property
    def left(self) -> int:
        """How many replies that were to come did not."""
        return sum(rule.times - rule.used for rule in self.rules if rule.times is not None)


class Template:
    """A reply of a script file, made when it is due: `fill` gets the named groups."""

    def __init__(self, fill: Callable[[Mapping[str, str]], Reply]) -> None:
        self.fill = fill


def _made(given: Any, asked: Asked, found: Mapping[str, str]) -> Reply:
    if isinstance(given, Template):
        return given.fill(found)
    return replies.as_reply(given(asked) if callable(given) else given)


def as_script(given: Any) -> Script:
    """Return a script of what a test gives.

    A Script: itself. A list or tuple: one reply or policy for each request, then none. A function: a policy for all.
    Anything else: the same reply always.
    """
    if isinstance(given, Script):
        return given
    if isinstance(given, list | tuple):
        return Script([one if isinstance(one, Rule) else Rule(one) for one in given])
    return Script([], otherwise=given)
