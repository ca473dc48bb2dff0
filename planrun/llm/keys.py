"""By what an answer is found again: the hash of all that a model sees, but for what differs from run to run.

What differs stands in blocks of data that hold what programs printed: times, durations, process ids, folders. Only
there it is left out of account. A goal, a plan or a file of the repository counts to the last character.
"""

from __future__ import annotations

import json
import os
import re

from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from planrun.model.call import Request

    Found = re.Match[str]

WORKSPACE = "<workspace>"
PRINTED = re.compile(r"(?:end of the )?(?:log|output|error|message|stderr|stdout)\b", re.IGNORECASE)
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
