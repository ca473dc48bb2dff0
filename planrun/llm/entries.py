"""One recorded call to a model as a file that people review: YAML with its answer first, and exactly these keys.

Schema: `schemas/recording.schema.json`. The answer may be edited by hand; what was asked may not, and the key tells.
"""

from __future__ import annotations

import json
import re

from planrun import __version__
from planrun.errors import InvalidPlan
from planrun.llm import tree
from planrun.llm.keys import key_of
from planrun.model.call import TOKENS, Answer, Request, Usage
from planrun.model.record import Record
from planrun.source.document import read_tree
from planrun.source.problems import Problem, did_you_mean, in_order

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from planrun.source.node import Node

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
    return HEAD + tree.text_of(data)


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
    return data


def form_of(text: str) -> tuple[str, Any]:
    """Return the form of a text and its data, of which `written` makes the same text again; itself as `text`."""
    try:
        data = json.loads(text)
        if isinstance(data, dict) and data:
            for form in _FORMS:
                if written(form, data) == text:
                    tree.text_of(data)
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
        if self.problems:
            return None
        answer |= {"usage": Usage(**usage), "text": text}
        asked = {name: fields[name] for name in ("purpose", "model", "effort", "max_tokens")}
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
            data = tree.data_of(node)
        except tree.NotPlainError as error:
            self._wrong("E106", str(error), error.node)
            return None
        if not isinstance(data, dict):
            self._wrong("E101", f"{what} is a mapping", node)
            return None
        for key in data:
            if key not in checks:
                self._wrong(
                    "E104", f'unknown key "{key[:60]}" in {what}', node.key(key), did_you_mean(key, checks)
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
    "version": (True, f"is {VERSION}; another version of planrun may know others", _is_version),
    "number": (True, "is a whole number from 1 up", lambda value: _is_count(value) and value > 0),
    "planrun": (True, "is the version of planrun that recorded it", _is_text),
    "key": (True, "is a SHA-256: 64 hexadecimal digits in lower case", _is_key),
    "purpose": (
        True,
        "is generate, expand or replan",
        lambda value: value in ("generate", "expand", "replan"),
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
}
_OF_USAGE: dict[str, Check] = dict.fromkeys(TOKENS, _COUNT)
