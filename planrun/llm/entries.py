"""One recorded call to a model as a file that people review: YAML with its answer first, and exactly these keys.

Schema: `schemas/recording.schema.json`. The answer may be edited by hand; the question may not, and the key shows it.

The key is the hash of all that a model sees, without what differs from run to run: times, durations, process ids and
folders in blocks of data that programs printed. A goal, a plan or a file of the repository counts in full.

The YAML reads back to exactly the same data. Texts of several lines stand line by line. What an editor would change or
does not show (blanks at the end of a line, control characters, marks without width) is written as an escape.

Questions and answers are masked whole before they are shortened: a service, or a proxy before it, may send credentials
back, in any encoding and in any field.
"""

from __future__ import annotations

import json
import os
import re

from planrun import __version__
from planrun.errors import InvalidPlan
from planrun.llm.yamltext import NotPlainError, data_of, yaml_text
from planrun.model.call import TOKENS, Answer, Request, Usage
from planrun.model.record import Record
from planrun.plan.problems import Problem, in_order, key_hint
from planrun.plan.yaml.document import read_tree
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from planrun.plan.yaml.node import Node

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from planrun.model.call import Request

    Found = re.Match[str]

WORKSPACE = "<workspace>"
PRINTED = re.compile(
    r"(?:end of the )?(?:log|output|error|message|stderr|stdout|context-snapshot)\b", re.IGNORECASE
)
"""How the names of blocks begin that hold what programs printed."""

# As `planrun.llm.untrusted` writes them; the mark is a hash of the content, and changes with it.
_BLOCK = re.compile(
    r'<untrusted-data name="(?P<name>[^"\n]*)" mark="(?P<mark>[0-9a-f]+)">\n(?P<content>.*?)\n?'
    r'</untrusted-data mark="(?P=mark)">',
    re.DOTALL,
)
_DATE = r"\d{4}-\d\d-\d\d"
_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6}"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}"
_CLOCK = r"\d{1,2}:\d\d:\d\d(?:[.,]\d+)?"
_ZONE = r"(?:Z\b|[+-]\d\d:?\d\d\b)?"
_UNIT = r"(?:ns|us|µs|ms|s|secs?|seconds?|m|mins?|minutes?|h|hours?)\b"
# In this order: what contains others comes first.
_VOLATILE: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"[^\n]*\n\[\d+ bytes left out\][^\n]*"), "<cut>"),
    (re.compile(r"\b\d{8}-\d{6}-[0-9a-f]{6}\b"), "<run>"),
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE), "<uuid>"),
    (  # `date`, syslog, mail
        re.compile(
            rf"\b(?:{_DAY},? +)?(?:{_MONTH} +\d{{1,2}}|\d{{1,2}} {_MONTH})\b(?:,? \d{{4}})?,? +{_CLOCK}"
            r"(?: [+-]\d{4}\b| (?:[AP]M\b)?(?: ?[A-Z]{3,4}\b)?(?: \d{4}\b)?)?"
        ),
        "<time>",
    ),
    (re.compile(rf"\b{_DATE}[T ]{_CLOCK}{_ZONE}|\b{_DATE}\b|\b{_CLOCK}{_ZONE}"), "<time>"),
    (
        re.compile(
            rf"(?<![\w.])\d+(?:\.\d+)?\s?{_UNIT}(?:\s?\d+(?:\.\d+)?\s?{_UNIT})*|(?<![\w.])(?:\d+(?:\.\d+)?[hms])+\b"
        ),
        "<duration>",
    ),
    (re.compile(r"(?:/private)?(?:/var)?/(?:tmp|folders/\w+/\w+/T)/[\w.+@-]+"), "<temporary>"),
    (re.compile(r"\b0x[0-9a-f]{6,16}\b", re.IGNORECASE), "<address>"),
    (re.compile(r"((?:127\.0\.0\.1|localhost|\[::1\]):)\d{2,5}\b"), r"\1<port>"),
    (re.compile(r"((?:\bpid|\bPID|\bprocess)[ =:]{1,2})\d+\b"), r"\1<pid>"),
    (re.compile(r"(\bline \d+: +)\d+(?= [A-Z])"), r"\1<pid>"),  # bash, of a child that a signal ended
)


def key_of(request: Request) -> str:
    """Return the sha256 of what a request asks, hex: all that the service sees, and no patience of ours."""
    return str(sha256(canonical(request).encode("utf-8", "replace")).hexdigest())


def canonical(request: Request) -> str:
    """Return what the key is the hash of, as JSON."""
    asked: dict[str, Any] = {
        name: value
        for name, value in vars(request).items()
        if name not in ("seconds", "retries", "paid", "purpose")
    }
    asked["messages"] = settled(asked["messages"])
    return json.dumps(asked, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def settled(value: Any) -> Any:
    """Return plain data with all that differs from run to run left out of its texts."""
    return _in_texts(value, _settled_block)


def placed(value: Any) -> Any:
    """Return plain data with the folder that planrun works in left out of what programs printed; same key."""
    return _in_texts(value, _placed_block)


def _in_texts(value: Any, change: Callable[[Found], str]) -> Any:
    if isinstance(value, str):
        return _BLOCK.sub(change, value) if "<untrusted-data" in value else value
    if isinstance(value, (list, tuple)):
        return [_in_texts(item, change) for item in value]
    if isinstance(value, dict):
        return {name: _in_texts(item, change) for name, item in value.items()}
    return value


def _settled_block(found: Found) -> str:
    content = _without_workspace(found) if _is_printed(found) else found["content"]
    for pattern, instead in _VOLATILE if _is_printed(found) else ():
        content = pattern.sub(instead, content)
    return f'<untrusted-data name="{found["name"]}">\n{content}\n</untrusted-data>'


def _placed_block(found: Found) -> str:
    return found[0].replace(found["content"], _without_workspace(found)) if _is_printed(found) else found[0]


def _is_printed(found: Found) -> bool:
    return PRINTED.match(found["name"]) is not None


def _without_workspace(found: Found) -> str:
    content: str = found["content"]
    try:
        folder = os.getcwd()
    except OSError:  # it was removed: nothing names it any more
        return content
    return content.replace(folder, WORKSPACE) if len(folder) > 1 else content


VERSION = 1
MOST_BYTES = 8 << 20  # of one file, as of a plan
HEAD = (
    "# One call to a language model, recorded by planrun. --llm-replay answers the same question from it.\n"
)
ENDINGS = (
    *("answered", "truncated", "refused", "malformed", "rejected"),
    *("unpaid", "limited", "overloaded", "unavailable", "late"),
)
"""How a recorded call can have ended; what depends on keys or on who stopped it is not recorded."""

# How JSON can have been written so that it is the same text again when it was read: separators, ASCII only.
_FORMS: dict[str, dict[str, Any]] = {
    "compact": {"separators": (",", ":"), "ensure_ascii": False},
    "compact-ascii": {"separators": (",", ":"), "ensure_ascii": True},
    "spaced": {"ensure_ascii": False},
    "spaced-ascii": {"ensure_ascii": True},
    "indented": {"indent": 2, "ensure_ascii": False},
}
_HEX = re.compile(r"[0-9a-f]{64}\Z")


class Entry(Record):
    """What was asked and answered; `number` is the place among the entries, from 1."""

    number: int
    request: Request
    answer: Answer
    planrun: str = __version__
    file: str = ""  # where it was read

    @property
    def key(self) -> str:
        """What the request is found by."""
        return key_of(self.request)

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"{self.number:04}-{self.request.purpose}-{self.key[:8]}.yml"


def text_of(entry: Entry) -> str:
    """Return an entry as the text of its file; raises ValueError for what no file can hold."""
    request, answer = entry.request, entry.answer
    data: dict[str, Any] = {
        "version": VERSION,
        "number": entry.number,
        "planrun": entry.planrun,
        "key": entry.key,
    }
    data |= {"purpose": request.purpose, "model": request.model, "effort": request.effort}
    data |= {"max_tokens": request.max_tokens, "answer": _answer_data(answer)}
    data |= {"messages": list(request.messages), "system": list(request.system)}
    data["schema"] = "" if request.schema is None else written("compact", request.schema)
    if request.tools:
        data["tools"] = written("compact", list(request.tools))
    return HEAD + yaml_text(data)


def _answer_data(answer: Answer) -> dict[str, Any]:
    data: dict[str, Any] = {"ending": answer.ending, "model": answer.model, "usage": {
        name: value for name, value in vars(answer.usage).items() if value
    }}  # fmt: skip
    data |= {"attempts": answer.attempts} if answer.attempts != 1 else {}
    known = ("is_estimate", "request_id", "stop_reason", "message", "rule")
    data |= {name: vars(answer)[name] for name in known if vars(answer).get(name)}
    form, text = form_of(answer.text)
    if answer.text:
        data |= {"form": form, "text": text}
    if answer.content:
        data["content"] = list(answer.content)
    return data


def form_of(text: str) -> tuple[str, Any]:
    """Return the form of a text and its data, of which `written` makes the same text again; itself as `text`."""
    try:
        data = json.loads(text)
        if isinstance(data, dict) and data:
            for form in _FORMS:
                if written(form, data) == text:
                    yaml_text(data)
                    return form, data
    except (ValueError, RecursionError):
        pass  # broken JSON, or what YAML cannot hold: a text like any other
    return "text", text


def written(form: str, data: Any) -> str:
    """Return data as a text in one of the forms; see `form_of`."""
    return str(data) if form == "text" else json.dumps(data, **_FORMS[form])


def entry_in(data: bytes, file: str, number: int = 0) -> Entry:
    """Return the entry in the bytes of a file, called `file` in problems; raises InvalidPlan with all of them.

    `number`: which one it is by its name; 0: any.
    """
    root, problems, complete = read_tree(data, file, "recording")
    if root is None or not complete or problems:
        raise InvalidPlan(in_order(problems), sources={file: data})
    reading = _Reading(file)
    entry = reading.entry(root)
    if entry is not None and number not in (0, entry.number):
        reading.misplaced(root.value["number"], number)
    if entry is None or reading.problems:
        raise InvalidPlan(in_order(reading.problems), sources={file: data})
    return entry


class _Reading:
    """One file, read strictly: every problem with its place."""

    def __init__(self, file: str) -> None:
        self._file = file
        self.problems: list[Problem] = []

    def entry(self, root: Node) -> Entry | None:
        """Return the entry; None together with problems."""
        fields = self._fields(root, _ENTRY, "a recording")
        if fields is None:
            return None
        node = root.value["answer"]
        answer = self._fields(node, _ANSWER, "an answer")
        usage = self._fields(node.value["usage"], _OF_USAGE, "usage") if answer is not None else None
        if answer is None or usage is None:
            return None
        text = self._text(node, answer.pop("form", "text"), answer.pop("text", ""))
        schema = self._schema(root.value["schema"])
        tools = self._tools(root.get("tools"))
        if self.problems:
            return None
        answer |= {"usage": Usage(**usage), "text": text}
        if "content" in answer:
            answer["content"] = tuple(answer["content"])
        asked = {name: fields[name] for name in ("purpose", "model", "effort", "max_tokens")}
        asked |= {"tools": tools} if tools else {}
        entry = Entry(
            number=fields["number"],
            planrun=fields["planrun"],
            file=self._file,
            request=Request(
                **asked, system=tuple(fields["system"]), messages=tuple(fields["messages"]), schema=schema
            ),
            answer=Answer(**answer, replayed=True),
        )
        if entry.key != fields["key"]:
            message = (
                f"the key is not that of what was asked (which is {entry.key[:12]}…): it was altered, or planrun "
                f"{entry.planrun} made keys otherwise"
            )
            self._wrong("E106", message, root.value["key"], "remove this file, and record anew")
        return entry

    def misplaced(self, node: Node, number: int) -> None:
        """Take note of an entry that does not stand where it was recorded."""
        self._wrong("E106", f"by its name this is number {number}", node, "give the file its name back")

    def _fields(self, node: Node, checks: dict[str, Check], what: str) -> dict[str, Any] | None:
        """Return the values of a mapping by its keys; None when there is a problem."""
        before = len(self.problems)
        try:
            data = data_of(node)
        except NotPlainError as error:
            self._wrong("E106", str(error), error.node)
            return None
        if not isinstance(data, dict):
            self._wrong("E101", f"{what} is a mapping", node)
            return None
        for key in data:
            if key not in checks:
                self._wrong(
                    "E104", f'unknown key "{key[:60]}" in {what}', node.key(key), key_hint(key, checks)
                )
        for key, (needed, reason, fits) in checks.items():
            if key not in data:
                if needed:
                    self._wrong("E102", f'{what} needs "{key}"', node)
            elif not fits(data[key]):
                self._wrong("E106", f'"{key}" {reason}', node.value[key])
        return data if len(self.problems) == before else None

    def _text(self, node: Node, form: str, text: Any) -> str:
        """Return the text of an answer, which may be written as data."""
        if isinstance(text, str) == (form == "text"):
            return written(form, text)
        self._wrong(
            "E106",
            f'"text" is {"a text" if form == "text" else "a mapping"} where "form" is {form}',
            node.get("text") or node,
        )
        return ""

    def _schema(self, node: Node) -> dict[str, Any] | None:
        if not node.value:
            return None
        try:
            found = json.loads(node.value)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            self._wrong("E106", '"schema" is a JSON object in a text, or empty', node)
            return None
        return found

    def _tools(self, node: Node | None) -> tuple[dict[str, Any], ...]:
        if node is None:
            return ()
        try:
            found = json.loads(node.value)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
            self._wrong("E106", '"tools" is a list of JSON objects in a text', node)
            return ()
        return tuple(found)

    def _wrong(self, code: str, message: str, at: Node, hint: str = "") -> None:
        problem = Problem(code=code, message=message, file=self._file, line=at.line, col=at.col, hint=hint)
        self.problems.append(problem)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 10**12


def _is_messages(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(each, dict) and set(each) == {"role", "content"} for each in value)
        and all(each["role"] in ("user", "assistant") for each in value)
        and all(isinstance(each["content"], (str, list)) for each in value)
    )


def _is_version(value: Any) -> bool:
    return _is_count(value) and bool(value == VERSION)


def _is_key(value: Any) -> bool:
    return _is_text(value) and bool(_HEX.match(value))


def _is_form(value: Any) -> bool:
    return _is_text(value) and value in ("text", *_FORMS)


if TYPE_CHECKING:
    Check = tuple[bool, str, Callable[[Any], bool]]  # whether it is needed, what it is, whether a value fits

_TEXT = (True, "is a text", _is_text)
_LINE = (False, "is a text", _is_text)
_COUNT = (False, "is a whole number from 0 up", _is_count)
_ENTRY: dict[str, Check] = {
    "version": (True, f"must be {VERSION}: other versions are not supported", _is_version),
    "number": (True, "is a whole number from 1 up", lambda value: _is_count(value) and value > 0),
    "planrun": (True, "is the version of planrun that recorded it", _is_text),
    "key": (True, "is a SHA-256: 64 hexadecimal digits in lower case", _is_key),
    "purpose": (
        True,
        "is generate, expand, replan or agent",
        lambda value: value in ("generate", "expand", "replan", "agent"),
    ),
    "model": _TEXT,
    "effort": _TEXT,
    "max_tokens": (True, *_COUNT[1:]),
    "answer": (True, "is a mapping", lambda value: isinstance(value, dict)),
    "messages": (True, 'is a list of mappings with "role" and "content"', _is_messages),
    "system": (
        True,
        "is a list of texts",
        lambda value: isinstance(value, list) and all(map(_is_text, value)),
    ),
    "schema": (True, "is a JSON object in a text, or empty", _is_text),
    "tools": (False, "is a list of JSON objects in a text", _is_text),
}
_ANSWER: dict[str, Check] = {
    "ending": (True, f"is one of {', '.join(ENDINGS)}", lambda value: value in ENDINGS),
    "model": _TEXT,
    "usage": (True, "is a mapping", lambda value: isinstance(value, dict)),
    "is_estimate": (False, "is true or false", lambda value: isinstance(value, bool)),
    "attempts": _COUNT,
    "request_id": _LINE,
    "stop_reason": _LINE,
    "message": _LINE,
    "rule": _LINE,
    "form": (False, f"is text, {' or '.join(_FORMS)}", _is_form),
    "text": (False, "is a text or a mapping", lambda value: isinstance(value, (str, dict))),
    "content": (
        False,
        "is a list of mappings with a type",
        lambda value: (
            isinstance(value, list) and all(isinstance(one, dict) and "type" in one for one in value)
        ),
    ),
}
_OF_USAGE: dict[str, Check] = dict.fromkeys(TOKENS, _COUNT)


if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from planrun.model.call import Answer, Request

    Mask = Callable[[str], str]

THOUGHTS = ("thinking", "redacted_thinking")
"""The kinds of parts of an answer that are sent back unchanged."""
WORDS = {"message": 400, "model": 200, "request_id": 200, "stop_reason": 200, "rule": 200}
"""The texts of an answer besides its content, and how many characters of each are kept."""


def masked(request: Request, mask: Mask | None) -> Request:
    """Return a request without known secrets, and without what no text can hold."""
    messages = cleaned(list(request.messages), mask)
    return request.but(system=tuple(cleaned(list(request.system), mask)), messages=tuple(messages))


def redacted(answer: Answer, mask: Mask) -> Answer:
    """Return an answer with its texts masked, those for people in one line of a length for people."""
    known = vars(answer)
    masked_texts = {name: shown(known[name], mask, most) for name, most in WORDS.items() if known.get(name)}
    form, data = form_of(answer.text)
    clean = cleaned(data, mask)  # first what its JSON says: that is what a plan is made of
    if clean != data or mask(answer.text) != answer.text:
        masked_texts["text"] = mask(written(form, clean))
    if answer.content:
        parts = [(part, cleaned(part, mask)) for part in answer.content]
        # A thought is signed: the service takes it back unchanged, or not at all.
        kept = [clean for part, clean in parts if clean == part or part["type"] not in THOUGHTS]
        answer = answer.but(content=tuple(kept))
    return answer.but(**masked_texts)


def cleaned(value: Any, mask: Mask | None) -> Any:
    """Return plain data masked, halves of characters and NUL replaced."""
    if isinstance(value, str):
        whole = value.encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")
        return mask(whole) if mask else whole
    if isinstance(value, (list, tuple)):
        return [cleaned(item, mask) for item in value]
    if isinstance(value, dict):
        return {name: cleaned(item, mask) for name, item in value.items()}
    return value


def shown(text: str, mask: Mask, most: int = WORDS["message"]) -> str:
    """Return a text masked, then in one line of at most so many characters."""
    line = " ".join("".join(char if char.isprintable() else " " for char in mask(text)).split())
    return line if len(line) <= most else line[: most - 1] + "…"
