"""What is wrong with an answer, in a form from which a model can correct it.

What a model may write: steps in a flat and strict JSON form, and nothing that a reviewer has to decide. There is no key
for risk, environment, policy, network, limits or tools; a secret is only asked for by its name.

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
    from collections.abc import Collection, Iterable, Iterator, Sequence
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


class Key(Record):
    """One key that a model may write: the schema, the prompt, the check of an answer and the plan's text read it here.

    `forms`: the answers that have it, by their first letters: generate, replan, expand, candidates. `kind`: text,
    words, count or flag. `plan`: the key of the plan that it is written under, "" for none. `needed`: every step has
    it, be it empty. `allowed`: the only values.
    """

    name: str
    forms: str
    kind: str
    about: str
    plan: str
    needed: bool
    allowed: tuple[str, ...] = ()

    @property
    def empty(self) -> Any:
        """The value that says nothing."""
        return {"text": "", "words": (), "count": 0, "flag": False}[self.kind]

    def schema(self) -> dict[str, Any]:
        """Return the schema of its value; the prompt says what it means."""
        if self.kind == "words":
            return {"type": "array", "items": {"type": "string"}}
        name = {"count": "integer", "flag": "boolean"}.get(self.kind, "string")
        return {"type": name, **({"enum": ["", *self.allowed]} if self.allowed else {})}


def _key(name: str, forms: str, kind: str, about: str, plan: str | None = None, **more: Any) -> Key:
    fields = {"needed": False, **more}
    return Key(name=name, forms=forms, kind=kind, about=about, plan=name if plan is None else plan, **fields)


def _needed(name: str, forms: str, kind: str, about: str, plan: str | None = None) -> Key:
    return _key(name, forms, kind, about, plan, needed=True)


_MODES = ", ".join([f"{mode.name} ({mode.planner})" for mode in MODES.values()])
KEYS = (
    _needed(
        *("id", "grec", "text"),
        "short and telling, of letters, digits, `_`, `-` and `.`: build, test-api. No two are the same.",
    ),
    _needed("title", "grec", "text", "one line for reports."),
    _needed("description", "grec", "text", "what the step is for."),
    _needed(
        *("depends_on", "gre", "words"),
        "ids of steps that must have ended well before it starts. What does not depend on each other runs at the same "
        "time. There are no cycles.",
    ),
    _needed("replaces", "r", "words", "ids of the failed and pending steps whose work it does."),
    _needed(
        *("condition", "gre", "text"),
        "empty, or an expression that must be true, such as `steps.test.status == 'completed'`, `run.ci`, or "
        "`steps.version.outputs.sha != ''`. It may name steps that this one depends on.",
    ),
    _needed(
        *("run", "grec", "text"),
        "a script for `bash -euo pipefail`. It starts in the project's folder, gets no terminal and no input, and "
        "leaves no process behind.",
    ),
    _needed(
        *("outputs", "gre", "words"),
        'names of values that the script writes, each as a line `name=value` appended to "$PLANRUN_OUTPUT". A later '
        "step that depends on this one reads them as `${{ steps.ID.outputs.NAME }}`; write `${{ steps.ID.outputs.NAME "
        "| sh }}` where the value may have other characters than letters, digits and `._/@:+=,-`. `${{` means nothing "
        "else; a literal one is written `$${{`.",
    ),
    _needed(
        *("review", "grec", "text"),
        "what a person should look at before it runs: what is written, deleted, sent or installed, and what you had to "
        "assume. Empty when there is nothing.",
        "",
    ),
    _needed("requires", "c", "words", "facts that must hold before it starts."),
    _needed("provides", "c", "words", "facts that hold when it has completed."),
    _key("timeout", "gr", "text", "how long an attempt may take: 30s, 20m, 2h. The default is 5m."),
    _key(
        *("retries", "gr", "count"),
        "how many more attempts a failure gets; for what fails by chance, as the network does.",
    ),
    _key(
        *("matrix", "gr", "words"),
        "runs the step once for each combination: one entry for each axis, with its values, `python=3.11,3.12`; its "
        "texts read `${{ matrix.python }}`. What depends on it waits for all.",
    ),
    _key(
        *("produces", "gr", "words"),
        "files that it makes for others or for people, as patterns: `dist/*.whl`. It fails without them.",
    ),
    _key(
        *("ready", "gr", "text"),
        "makes the step a service, such as a server or a database: it runs on while steps that depend on it run, and "
        "is stopped then. `run` starts it in the foreground; this command succeeds as soon as it can be used.",
    ),
    _key(
        *("cleanup", "g", "flag"),
        "true: it runs at the end of every run, failed or not, to stop, remove or collect. Only other such steps can "
        "depend on it.",
        "",
    ),
    _key(
        *("ask", "gr", "text"),
        "in place of `run`: a question that a person answers with yes or no. Steps that depend on it run after a yes: "
        "put one before production, payment or what cannot be undone.",
    ),
    _key(
        *("uses", "g", "text"),
        "in place of `run`: the path of a plan of this project that runs as this step, `./plans/test.yml`.",
    ),
    _key("params", "g", "words", "the parameters of that plan, each as `name=value`.", "with"),
    _key(
        *("secrets", "gr", "words"),
        "names of environment variables that hold credentials it needs, such as `PYPI_TOKEN`. It gets them only after "
        "a person has approved that. Never write a value.",
    ),
    _key(
        *("mode", "g", "text"),
        f"for a step without an action, what its work is for, so that people can give it to an agent: {_MODES}.",
        "",
        allowed=tuple(MODES),
    ),
    _key(
        *("estimated_tokens", "g", "count"),
        "for a step without an action, how many tokens a model would need to do it.",
    ),
)
"""All keys of steps, in the order in which a plan has them."""
_BY_NAME = {key.name: key for key in KEYS}
ACTIONS = ("run", "ask", "uses")
_TOP = {
    "analysis": "what is to be done and why so, in a few sentences.",
    "infeasible": "empty, or the reason why it cannot be done with what there is; then steps is empty. Saying so is a "
    "good answer when it is true; a plan that only looks as if it helped is not.",
    "keep": "ids of pending steps that stay exactly as they are. A pending step that you neither keep nor replace is "
    "dropped.",
    "steps": "the steps.",
}


class DraftStep(Record):
    """One step as a model wrote it, in shape and not yet looked at: a field for each of KEYS."""

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
    timeout: str = ""
    retries: int = 0
    matrix: tuple[str, ...] = ()
    produces: tuple[str, ...] = ()
    ready: str = ""
    cleanup: bool = False
    ask: str = ""
    uses: str = ""
    params: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()

    @property
    def acts(self) -> bool:
        """Whether it says what is to be done, and is not only described."""
        return any(getattr(self, key).strip() for key in ACTIONS)


class Draft(Record):
    """What a model answered. `infeasible`: why there is no way, and then there are no steps.

    `keep`: ids of steps that are to stay as they are; only a replan asks for that.
    """

    analysis: str
    infeasible: str = ""
    keep: tuple[str, ...] = ()
    steps: tuple[DraftStep, ...] = ()


class Form(Record):
    """A form of answers, by its letter in `Key.forms`."""

    letter: str

    @property
    def keys(self) -> dict[str, Key]:
        """The keys of a step."""
        return {key.name: key for key in KEYS if self.letter in key.forms}

    @property
    def top(self) -> tuple[str, ...]:
        """The keys of the whole answer."""
        return tuple([name for name in _TOP if name != "keep" or self.letter == "r"])

    @property
    def written(self) -> frozenset[str]:
        """The keys of a plan that a step of a draft may have: its own, and those that planrun adds or drops."""
        found = {key.plan for key in self.keys.values() if key.plan}
        found |= {"depends_on", "replaces", "estimated_tokens"}
        return frozenset(found | ({"service"} if "ready" in found else set()))

    @property
    def words(self) -> str:
        """What the prompt says of the form."""
        keys = [f"- {key.name}: {key.about}" for key in self.keys.values()]
        top = [f"- {name}: {_TOP[name]}" for name in self.top]
        return "\n".join([*top, "", "A step; what does not apply is left out, or empty:", *keys])

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of an answer: flat, without limits that the service cannot hold."""
        kinds = {"keep": _BY_NAME["depends_on"].schema()}
        step = _closed(
            {name: key.schema() for name, key in self.keys.items()},
            [name for name, key in self.keys.items() if key.needed],
        )
        kinds["steps"] = {"type": "array", "items": step}
        return _closed({name: kinds.get(name, {"type": "string"}) for name in self.top}, self.top)

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
        steps = [DraftStep(**_frozen(step, self)) for step in data["steps"]]
        if "estimated_tokens" in self.keys:
            steps = [estimated(step) for step in steps]
        return Draft(
            analysis=data["analysis"],
            infeasible=data["infeasible"].strip(),
            keep=tuple(data.get("keep", ())),
            steps=tuple(steps),
        )


PLAN = Form(letter="g")
"""A whole plan, whose steps may be described and left to others."""
STEPS = Form(letter="r")
"""Steps that take the place of others."""
PIECES = Form(letter="e")
"""The steps that an abstract one becomes."""
CANDIDATES = Form(letter="c")
"""Steps that a search may take, placed by their facts."""


def _closed(properties: dict[str, Any], required: Sequence[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
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


def _frozen(step: dict[str, Any], form: Form) -> dict[str, Any]:
    return {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in step.items()
        if key in form.keys
    }


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice")
    return found


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def _faults(data: Any, most_steps: int, form: Form) -> Iterator[Fault]:
    yield from _keys("$", data, form.top, form.top, tuple(_TOP))
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
    needed = [name for name, key in form.keys.items() if key.needed]
    yield from _keys(path, step, needed, tuple(form.keys), _BY_NAME)
    if not isinstance(step, dict):
        return
    for name, key in form.keys.items():
        if name in step:
            yield from _value(f"{path}.{name}", step[name], key)
    if isinstance(step.get("id"), str) and not _ID.match(step["id"]):
        yield Fault(
            path=f"{path}.id", rule="id", message="not an id: letters, digits, `_`, `-` and `.`, at most 100"
        )
    said = [name for name in ACTIONS if isinstance(step.get(name), str) and step[name].strip()]
    if len(said) > 1:
        message = f"a step has one action, and this one has {' and '.join(said)}; make two steps of it"
        yield Fault(path=f"{path}.{said[1]}", rule="actions", message=message)


def _value(path: str, value: Any, key: Key) -> Iterator[Fault]:
    if key.kind == "text":
        yield from _text(path, value, MAX_SCRIPT if key.name == "run" else MAX_TEXT)
        if key.allowed and value not in ("", *key.allowed):
            yield Fault(path=path, rule=key.name, message=f"not a {key.name}", allowed=key.allowed)
    elif key.kind == "words":
        yield from _words(path, value)
        if key.name in _PAIRS and isinstance(value, list):
            for at, word in enumerate(value):
                if isinstance(word, str) and not _PAIR.match(word):
                    yield Fault(
                        path=f"{path}[{at}]", rule="pair", message=f"not of the form {_PAIRS[key.name]}"
                    )
    elif key.kind == "flag" and not isinstance(value, bool):
        yield Fault(path=path, rule="type", message="neither true nor false")
    elif key.kind == "count" and (
        isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 10**9
    ):
        yield Fault(path=path, rule="type", message="not a whole number from 0")


_PAIRS = {"matrix": "AXIS=VALUE,VALUE", "params": "NAME=VALUE"}
_PAIR = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*=")


def _keys(
    path: str, data: Any, needed: Sequence[str], known: tuple[str, ...], others: Collection[str]
) -> Iterator[Fault]:
    """Look at the keys of a mapping; a key of another form (`others`) may stand there if it is empty."""
    if not isinstance(data, dict):
        yield Fault(path=path, rule="type", message="not a mapping")
        return
    for key in needed:
        if key not in data:
            yield Fault(path=f"{path}.{key}", rule="required", message="this key is missing")
    for key, value in data.items():
        if key in others and key not in known:
            if value:
                where = key if path == "$" else f"{path}.{key}"
                yield Fault(path=where, rule="unasked", message="this is not asked for; leave it out")
        elif key not in known:
            message = f"{json.dumps(key)[:80]} is no key that may be written"
            yield Fault(path=path, rule="unknown_key", message=message, allowed=known)


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
    if step.estimated_tokens or step.acts:
        return step.estimated_tokens
    for text in (re.sub(r"[-_.]", " ", step.id), step.title, step.description):
        found = _PATTERN.search(text)
        if found and found.lastgroup:
            return int(found.lastgroup[1:])
    return ANALYSIS


def estimated(step: DraftStep) -> DraftStep:
    """Return the step with an estimate."""
    return step.but(estimated_tokens=tokens_of(step))
