"""What is wrong with an answer, in a form from which a model can correct it.

What a model may write: steps in a flat and strict JSON form, and nothing that a reviewer has to decide.

There is no key for risk, secrets, environment, policy, network, limits or tools: what is not there cannot be asked for.

How many tokens a model would need for a step, where it is not stated: a table by what the step is about, no model.
"""

from __future__ import annotations

import json
import re

from planrun.llm.untrusted import hidden
from planrun.model.agenttypes import MODES
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

MOST = 40  # faults that are reported at once
_LONGEST = 400  # characters of a message


class Fault(Record):
    """One thing that is wrong: where in the answer (`steps[2].run`), by which rule, what, and what is allowed there."""

    path: str
    rule: str
    message: str
    allowed: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The fault in one line, for people; `$`, the whole of an answer, is said in words."""
        there = f"; allowed: {', '.join(self.allowed)}" if self.allowed else ""
        place = "the answer" if self.path == "$" else self.path
        return f"{place}: {self.message} [{self.rule}]{there}"


def as_data(faults: Iterable[Fault]) -> list[dict[str, Any]]:
    """Return faults as plain data for a repair, the first MOST of them."""
    return [
        {
            "path": fault.path,
            "rule": fault.rule,
            "message": fault.message[:_LONGEST],
            **({"allowed": list(fault.allowed)} if fault.allowed else {}),
        }
        for fault in list(faults)[:MOST]
    ]


MAX_ANSWER = 256 * 1024  # characters of an answer that is read at all
MAX_SCRIPT = 8000  # characters of one script
MAX_TEXT = 2000  # of every other text
MAX_LIST = 50  # entries of a list

_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}\Z")
_FENCE = re.compile(r"^ {0,3}(?:```|~~~) ?(?:json|JSON)?[ \t]{0,9}$", re.MULTILINE)
_STEP_TEXTS = {
    "id": "A new id, of letters, digits, `_`, `-` and `.`.",
    "title": "What people read in reports; one line.",
    "description": "What the step is for.",
    "run": "A bash script. Empty: the step is only described, and made concrete later.",
    "condition": "An expression of planrun that must be true, or empty.",
    "review": "What a reviewer should look at before this runs; empty when there is nothing.",
}
_MODE = "For a step without a script: the mode of its work; else empty."
_STEP_LISTS = {
    "depends_on": "Ids of steps that must have ended well before this one starts.",
    "replaces": "Ids of steps whose place it takes; empty unless asked for.",
    "outputs": "Names of values that the script writes to $PLANRUN_OUTPUT as name=value; usually empty.",
}
_FACTS = {
    "requires": "Facts that must hold before it starts.",
    "provides": "Facts that hold when it has completed.",
}


class DraftStep(Record):
    """One step as a model wrote it, in shape and not yet looked at."""

    id: str
    title: str = ""
    description: str = ""
    run: str = ""
    condition: str = ""
    review: str = ""
    depends_on: tuple[str, ...] = ()
    replaces: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    estimated_tokens: int = 0
    mode: str = ""
    requires: tuple[str, ...] = ()
    provides: tuple[str, ...] = ()


class Draft(Record):
    """What a model answered. `infeasible`: why there is no way, and then there are no steps.

    `keep`: ids of steps that are to stay as they are; only a replan asks for that.
    """

    analysis: str
    infeasible: str = ""
    keep: tuple[str, ...] = ()
    steps: tuple[DraftStep, ...] = ()


class Form(Record):
    """A form of answers: the keys of a step, and whether steps of the plan may be kept.

    `modes`: what a step may have under `mode`, a key that may be missing; (): there is no such key.
    """

    texts: Mapping[str, str]
    lists: Mapping[str, str]
    tokens: bool = True
    keeps: bool = True
    modes: tuple[str, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that every step must have."""
        return (*self.texts, *self.lists, *(("estimated_tokens",) if self.tokens else ()))

    @property
    def top(self) -> tuple[str, ...]:
        """The keys of the whole answer."""
        return ("analysis", "infeasible", *(("keep",) if self.keeps else ()), "steps")

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of an answer: flat, every key required, no limits that the service cannot hold."""
        words = {"type": "array", "items": {"type": "string"}}
        step: dict[str, Any] = {
            **{name: {"type": "string", "description": about} for name, about in self.texts.items()},
            **{name: {**words, "description": about} for name, about in self.lists.items()},
        }
        if self.tokens:
            about = "How many tokens a model would need to do this step; 0 for a plain command."
            step["estimated_tokens"] = {"type": "integer", "description": about}
        if self.modes:
            step["mode"] = {"type": "string", "enum": ["", *self.modes], "description": _MODE}
        keep = {**words, "description": "Ids of pending steps that stay as they are; empty unless asked for."}
        found = {
            "analysis": {
                "type": "string",
                "description": "What is to be done and why so, in a few sentences.",
            },
            "infeasible": {
                "type": "string",
                "description": "Empty, or why this cannot be done; then there are no steps.",
            },
            "keep": keep,
            "steps": {"type": "array", "items": _closed(step)},
        }
        return _closed({name: found[name] for name in self.top})

    def read(self, text: str, most_steps: int) -> Draft | list[Fault]:
        """Return the draft in an answer, or everything that is wrong with its shape.

        An answer that is not bare JSON is looked through for it: in its first fenced block, else from its first brace
        on. Two answers in one are none.
        """
        if len(text) > MAX_ANSWER:
            return [
                Fault(path="$", rule="size", message=f"the answer is longer than {MAX_ANSWER} characters")
            ]
        try:
            data = _data(text)
        except (ValueError, RecursionError) as error:
            return [Fault(path="$", rule="json", message=f"not the JSON that was asked for: {error}")]
        faults = list(_faults(data, most_steps, self))
        if faults:
            return faults
        steps = [DraftStep(**_frozen(step)) for step in data["steps"]]
        if self.tokens:
            steps = [estimated(step) for step in steps]
        return Draft(
            analysis=data["analysis"],
            infeasible=data["infeasible"].strip(),
            keep=tuple(data.get("keep", ())),
            steps=tuple(steps),
        )


STEPS = Form(texts=_STEP_TEXTS, lists=_STEP_LISTS)
"""Steps that take the place of others."""
PLAN = STEPS.but(modes=tuple(MODES))
"""A whole plan, whose steps may be described and left to others."""
CANDIDATES = Form(
    texts={name: about for name, about in _STEP_TEXTS.items() if name != "condition"},
    lists=_FACTS,
    tokens=False,
    keeps=False,
)
"""Steps that a search may take, placed by their facts."""


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _data(text: str) -> Any:
    """Return the JSON in an answer; raises ValueError, RecursionError."""
    decoder = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)
    try:
        return decoder.decode(text)
    except ValueError as error:
        fence = _FENCE.search(text)
        start = text.find("{", fence.end() if fence else 0)
        if start < 0:
            raise
        try:
            data, end = decoder.raw_decode(text, start)
        except ValueError as inner:
            raise inner if text[:start].strip() else error from None
    # One of them may be a quotation from untrusted text.
    if '"steps"' in text[:start] or '"steps"' in text[end:]:
        raise ValueError("there is more than one answer")
    return data


def _frozen(step: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in step.items()}


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice")
    return found


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def _faults(data: Any, most_steps: int, form: Form) -> Iterator[Fault]:
    yield from _keys("$", data, form.top)
    if not isinstance(data, dict) or any(key not in data for key in form.top):
        return
    for key in ("analysis", "infeasible"):
        yield from _text(key, data[key], MAX_TEXT * 2)
    yield from _words("keep", data.get("keep", []))
    steps = data["steps"]
    if not isinstance(steps, list):
        yield Fault(path="steps", rule="type", message="not a list")
        return
    if len(steps) > most_steps:
        yield Fault(
            path="steps",
            rule="max_generated_steps",
            message=f"{len(steps)} steps; at most {most_steps} are allowed",
        )
        return
    if not steps and isinstance(data["infeasible"], str) and not data["infeasible"].strip():
        yield Fault(path="steps", rule="empty", message="there is no step, and `infeasible` does not say why")
    for number, step in enumerate(steps):
        yield from _step(f"steps[{number}]", step, form)


def _step(path: str, step: Any, form: Form) -> Iterator[Fault]:
    yield from _keys(path, step, form.keys, optional=("mode",) if form.modes else ())
    if not isinstance(step, dict):
        return
    for key in form.texts:
        if key in step:
            yield from _text(f"{path}.{key}", step[key], MAX_SCRIPT if key == "run" else MAX_TEXT)
    for key in form.lists:
        if key in step:
            yield from _words(f"{path}.{key}", step[key])
    if isinstance(step.get("id"), str) and not _ID.match(step["id"]):
        yield Fault(
            path=f"{path}.id", rule="id", message="not an id: letters, digits, `_`, `-` and `.`, at most 100"
        )
    tokens = step.get("estimated_tokens", 0)
    if isinstance(tokens, bool) or not isinstance(tokens, int) or not 0 <= tokens <= 10**9:
        yield Fault(path=f"{path}.estimated_tokens", rule="type", message="not a whole number from 0")
    if step.get("mode", "") not in ("", *form.modes):
        yield Fault(path=f"{path}.mode", rule="mode", message="not a mode", allowed=form.modes)


def _keys(path: str, data: Any, known: tuple[str, ...], optional: tuple[str, ...] = ()) -> Iterator[Fault]:
    if not isinstance(data, dict):
        yield Fault(path=path, rule="type", message="not a mapping")
        return
    for key in known:
        if key not in data:
            yield Fault(path=f"{path}.{key}", rule="required", message="this key is missing")
    for key in data:
        if key not in (*known, *optional):
            message = f"{json.dumps(key)[:80]} is no key that may be written"
            yield Fault(path=path, rule="unknown_key", message=message, allowed=(*known, *optional))


def _text(path: str, value: Any, longest: int) -> Iterator[Fault]:
    if not isinstance(value, str):
        yield Fault(path=path, rule="type", message="not a text")
    elif len(value) > longest:
        yield Fault(path=path, rule="size", message=f"{len(value)} characters; at most {longest} are allowed")
    else:
        yield from _seen(path, value)


def _seen(path: str, text: str) -> Iterator[Fault]:
    """What people who review it would not see, or see in another order, may not be written."""
    kinds = hidden(text)
    if kinds:
        message = f"it has characters that cannot be seen ({', '.join(kinds)}); leave them out"
        yield Fault(path=path, rule="hidden", message=message)


def _words(path: str, value: Any) -> Iterator[Fault]:
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        yield Fault(path=path, rule="type", message="not a list of texts")
    elif len(value) > MAX_LIST:
        yield Fault(path=path, rule="size", message=f"{len(value)} entries; at most {MAX_LIST} are allowed")
    elif any(len(word) > 100 for word in value):
        yield Fault(path=path, rule="size", message="a word of more than 100 characters")
    else:
        yield from _seen(path, "".join(value))


ANALYSIS, READING, EDITING, TESTS = 2000, 3000, 4000, 1000  # tokens by kind of work
_WORDS = {
    ANALYSIS: "analy[sz]e|analysis|plan|decide|review|understand|design",
    READING: "read|explore|inspect|look|search|find",
    EDITING: "write|edit|chang|fix|implement|creat|add|refactor|rewrit|updat|remov|execut|build|optimi[sz]",
    TESTS: "tests?|verif(?:y|ication)|check",
}
_PATTERN = re.compile(
    r"\b(?:"
    + "|".join([f"(?P<t{tokens}>(?:{words})(?:e|es|s|ed|ing)?)" for tokens, words in _WORDS.items()])
    + r")\b",
    re.IGNORECASE,
)


def tokens_of(step: DraftStep) -> int:
    """Return the estimate of a step: what its author says, 0 for a command, which needs no model, else the table's.

    The first word of the table decides, in the id, then the title, then the description; without one it is ANALYSIS.
    """
    if step.estimated_tokens or step.run:
        return step.estimated_tokens
    for text in (re.sub(r"[-_.]", " ", step.id), step.title, step.description):
        found = _PATTERN.search(text)
        if found and found.lastgroup:
            return int(found.lastgroup[1:])
    return ANALYSIS


def estimated(step: DraftStep) -> DraftStep:
    """Return the step with an estimate."""
    return step.but(estimated_tokens=tokens_of(step))
