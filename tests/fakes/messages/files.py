"""Scripts as files that people read: JSON, or YAML when the name says so.

`replies`: a list of entries in order. `otherwise`: the reply when none of them matches a request. `models`, `key`,
`smallest_cached`: of the service. An entry says what to answer by one of FORMS, and may have `when` (patterns by place)
and `times` (1 without `when`, otherwise any number). `<<name>>` in a text stands for a named group of the patterns.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from tests.fakes.messages import replies
from tests.fakes.messages.counting import Tokens
from tests.fakes.messages.replies import KINDS, Fault, Reply
from tests.fakes.messages.script import Rule, Script, Template

_FIELDS = ("stop_reason", "stop_details", "usage", "piece", "pings", "first_byte", "pace")
_PLACE = re.compile(r"<<(\w+)>>")
_SETTINGS = ("models", "key", "smallest_cached")


class ScriptError(Exception):
    """A script file that cannot be used, in a sentence for people."""


def read(path: Path) -> tuple[Script, dict[str, Any]]:
    """Return the script in a file, and the settings of FakeMessages in it; raises ScriptError."""
    data = _mapping("the script", _data(path))
    settings = {name: data.pop(name) for name in _SETTINGS if name in data}
    if "models" in settings:
        settings["models"] = tuple(settings["models"])
    entries, otherwise = data.pop("replies", []), data.pop("otherwise", None)
    if data:
        raise ScriptError(f"the script has the key {min(data)!r}, which means nothing")
    rules = [_rule(entry, path.parent) for entry in entries]
    return Script(
        rules, None if otherwise is None else _template(_mapping("otherwise", otherwise), path.parent)
    ), settings


def _data(path: Path) -> Any:
    try:
        text = path.read_text("utf-8")
        if path.suffix in (".yml", ".yaml"):
            import yaml

            try:
                return yaml.safe_load(text)
            except yaml.YAMLError as error:
                raise ScriptError(f"{path}: {error}") from error
        return json.loads(text)
    except (OSError, ValueError) as error:
        raise ScriptError(f"{path}: {error}") from error


def _mapping(what: str, data: Any) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise ScriptError(f"{what} is not a mapping")
    return dict(data)


def _rule(entry: Any, folder: Path) -> Rule:
    entry = _mapping("an entry", entry)
    when = entry.pop("when", {})
    times = entry.pop("times", None if when else 1)
    try:
        return Rule(_template(entry, folder), when, times)
    except ValueError as error:
        raise ScriptError(str(error)) from error


def _template(entry: dict[str, Any], folder: Path) -> Template:
    """Return what makes the reply of an entry; a file is read when it is due, everything else is tried at once."""
    forms = [name for name in FORMS if name in entry]
    if len(forms) > 1 or (not forms and "fault" not in entry):
        raise ScriptError(f"an entry needs one of {', '.join(FORMS)}, or fault; this one has {sorted(entry)}")
    if strange := set(entry) - {*FORMS, *_FIELDS, "fault"}:
        raise ScriptError(f"an entry has the key {min(strange)!r}, which means nothing")
    fill = partial(_reply, entry, folder)
    if forms != ["file"]:
        fill({})
    return Template(fill)


def _reply(entry: dict[str, Any], folder: Path, found: Mapping[str, str]) -> Reply:
    fields = {name: entry[name] for name in _FIELDS if name in entry}
    if "usage" in fields:
        fields["usage"] = Tokens(**fields["usage"])
    form = next((name for name in FORMS if name in entry), None)
    if form is None:
        return replies.broken("end", **fields).but(fault=_fault(entry["fault"]))
    if "fault" in entry:
        fields["fault"] = _fault(entry["fault"])
    given = entry[form]
    if form == "file":
        text = (folder / given).read_text("utf-8").rstrip("\n")
        return replies.say(_filled(text, found), **fields)
    return FORMS[form](_filled(given, found), fields)


def _filled(data: Any, found: Mapping[str, str]) -> Any:
    """Return data with the named groups put in; what is not found stays as it stands."""
    if isinstance(data, str):
        return _PLACE.sub(lambda match: found.get(match[1], match[0]), data)
    if isinstance(data, list):
        return [_filled(one, found) for one in data]
    if isinstance(data, dict):
        return {key: _filled(one, found) for key, one in data.items()}
    return data


def _fault(data: Any) -> Fault:
    """Return a fault: the name of its kind, a status, or a mapping with either and more."""
    if isinstance(data, int):
        data = {"status": data}
    if isinstance(data, str):
        data = {"kind": data}
    data = _mapping("a fault", data)
    try:
        if "kind" in data:
            return Fault(**{"error": "overloaded_error", **data})
        made = replies.status(data.pop("status"), **data).fault
    except (TypeError, ValueError, KeyError) as error:
        raise ScriptError(f"a fault is a status or one of {', '.join(KINDS)}: {error}") from error
    assert made
    return made


FORMS: dict[str, Callable[[Any, dict[str, Any]], Reply]] = {
    "text": lambda given, fields: replies.say(given, **fields),
    "json": lambda given, fields: replies.answer(given, **fields),
    "draft": lambda given, fields: replies.answer(replies.draft(**given), **fields),
    "blocks": lambda given, fields: Reply(blocks=tuple(given), **fields),
    "tools": lambda given, fields: replies.use(*[(one["name"], one["input"]) for one in given], **fields),
    "refuse": lambda given, fields: replies.refuse(given, **fields),
    "file": lambda given, fields: replies.say(given, **fields),
}
"""What an entry may answer; `file` names a text beside the script, which is sent as it stands."""
