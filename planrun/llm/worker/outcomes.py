"""The outcome of one attempt: its class, the rule that found the class, and whether another attempt may help.

Typed facts decide, in this order: what planrun itself found, the type that the service names, the status, the kind of
error of the connection. Texts are shown and decide nothing, but for what no field states: which part of a request a
model or service does not know, and that an account has used up what it may use.
"""

from __future__ import annotations

import email.utils
import json
import math
import re
import ssl
import time

import anthropic
import httpx2
from anthropic.lib.credentials import WorkloadIdentityError

from planrun.model.call import BOUND
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, Literal

    from planrun.model.call import Ending

    Feature = Literal["schema", "effort", "thinking"]


class Outcome(Record):
    """One attempt. `repeat`: how often it may be made again on its account; None: as often as the call allows.

    `after`: the seconds that the service asks to be left alone; None: it does not say. `unknown`: what the request has
    and the service does not know. `sent`: whether the request may have reached the service.
    """

    ending: Ending
    rule: str
    message: str = ""
    text: str = ""
    content: tuple[dict[str, Any], ...] = ()
    stop_reason: str = ""
    model: str = ""
    request_id: str = ""
    repeat: int | None = 0
    after: float | None = None
    unknown: Feature | None = None


class Unusable(Exception):
    """What came is no message of the service; `rule` names what is wrong, `repeat` is that of Outcome."""

    def __init__(self, rule: str, message: str, repeat: int = 1) -> None:
        super().__init__(message)
        self.rule = rule
        self.message = message
        self.repeat = repeat


_BY_TYPE: dict[str, Ending] = {
    "invalid_request_error": "rejected",
    "not_found_error": "rejected",
    "request_too_large": "rejected",
    "conflict_error": "unavailable",
    "authentication_error": "unauthorized",
    "permission_error": "unauthorized",
    "billing_error": "unpaid",
    "rate_limit_error": "limited",
    "overloaded_error": "overloaded",
    "api_error": "unavailable",
    "timeout_error": "unavailable",
}
_BY_STATUS: dict[int, Ending] = {
    401: "unauthorized",
    402: "unpaid",
    403: "unauthorized",
    408: "unavailable",
    409: "unavailable",
    429: "limited",
    529: "overloaded",
}
_FINAL = (400, 401, 402, 403, 404, 413, 422)  # the same request fares no better, whatever a header says
_TRANSIENT = ("limited", "overloaded", "unavailable")
_WORDS: dict[str, str] = {
    "rejected": "the service does not take the request",
    "unauthorized": "the service does not take the credentials",
    "unpaid": "the service wants to be paid first",
    "limited": "too many requests or tokens for the service's limits",
    "overloaded": "the service is overloaded",
    "unavailable": "the service is out of order",
}
# What services answer with status 400 or 403 for an account that is at its limit; waiting a minute does not help.
_USED_UP: tuple[tuple[Ending, str, re.Pattern[str]], ...] = (
    (
        "unpaid",
        "text:credit",
        re.compile(
            r"\bcredit balance\b.{0,40}\btoo low\b|\binsufficient (?:credits?|funds|balance)\b", re.IGNORECASE
        ),
    ),
    (
        "limited",
        "text:quota",
        re.compile(
            r"\b(?:reached|exceed(?:s|ed)?|exhausted|hit|over)\b.{0,60}?"
            r"\b(?:(?:usage|spend(?:ing)?)[ -]limits?|quota)\b"
            r"|\b(?:(?:usage|spend(?:ing)?)[ -]limits?|quota)\b.{0,40}?\b(?:reached|exceeded|exhausted)\b"
            r"|\binsufficient[_ ]quota\b",
            re.IGNORECASE,
        ),
    ),
)
_THOUGHT = re.compile(r"`(?:redacted_)?thinking`? (?:or |blocks?\b)", re.IGNORECASE)
# Parameters that not every model takes, as the service names them in what it says of them.
_FEATURES: tuple[tuple[Feature, re.Pattern[str]], ...] = (
    ("thinking", re.compile(r"\bthinking\b", re.IGNORECASE)),
    ("effort", re.compile(r"\beffort\b", re.IGNORECASE)),
    (
        "schema",
        re.compile(
            r"\b(?:schemas?|grammar|output_config\.format|output_format|structured outputs?)\b", re.IGNORECASE
        ),
    ),
)
# Errors of a connection that was never there, so that nothing was asked.
_UNSENT = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
    httpx2.UnsupportedProtocol,
    httpx2.LocalProtocolError,
)


def outcome_of(error: Exception) -> Outcome:
    """Return what an exception of the library means."""
    chain = list(_chain(error))
    for link in chain:
        if isinstance(link, Unusable):
            return Outcome(ending="malformed", rule=link.rule, message=link.message, repeat=link.repeat)
    if isinstance(error, anthropic.APIStatusError):
        return _of_status(error)
    if isinstance(error, WorkloadIdentityError):
        return _of_exchange(error)
    if isinstance(error, anthropic.CredentialsError):
        return Outcome(ending="unauthorized", rule=f"error:{type(error).__name__}", message=str(error))
    for link in reversed(chain):
        if isinstance(link, (httpx2.HTTPError, httpx2.InvalidURL)):
            return _of_connection(link, chain)
    if isinstance(error, json.JSONDecodeError):
        rule, text = "json", "the service sent broken JSON"
    elif isinstance(error, RecursionError):
        rule, text = "depth", "the service sent JSON that is nested too deep"
    else:
        rule, text = f"error:{type(error).__name__}", "the service sent something that is no message"
    return Outcome(ending="malformed", rule=rule, message=text, repeat=1)


def was_sent(error: Exception) -> bool:
    """Whether the service may have seen the request that failed so, and not declined it."""
    chain = list(_chain(error))
    if isinstance(error, anthropic.APIStatusError):
        return error.status_code < 300  # an error in the stream of an answer that had begun
    return not any(
        isinstance(link, (*_UNSENT, anthropic.CredentialsError, WorkloadIdentityError)) for link in chain
    )


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _of_status(error: anthropic.APIStatusError) -> Outcome:
    kind = error.type if isinstance(error.type, str) else ""
    status = error.status_code
    if 300 <= status < 400:
        text = f"the service sends the question elsewhere ({status}), and planrun does not follow"
        return Outcome(ending="rejected", rule=f"status:{status}", message=text)
    ending = (
        _BY_TYPE.get(kind) or _BY_STATUS.get(status) or ("rejected" if 400 <= status < 500 else "unavailable")
    )
    rule = f"type:{kind}" if kind in _BY_TYPE else f"status:{status}"
    said = error.api_message if isinstance(error.api_message, str) else ""
    if status in (400, 403):
        ending, rule = next(
            ((found, name) for found, name, pattern in _USED_UP if pattern.search(said)), (ending, rule)
        )
    is_bound = status == 400 and ending == "rejected" and _THOUGHT.search(said)
    rule = BOUND if is_bound else rule
    headers = error.response.headers
    repeat = None if ending in _TRANSIENT else 0
    asked = headers.get("x-should-retry")
    if asked == "false" or rule.startswith("text:"):
        repeat = 0
    elif asked == "true" and status not in _FINAL:
        repeat = None
    place = f"{status} {kind}".rstrip() if status >= 300 else kind or "an error in the stream"
    value = error.request_id
    return Outcome(
        ending=ending,
        rule=rule,
        message=f"{_WORDS[ending]} ({place}){': ' if said else ''}{said}",
        request_id=value if isinstance(value, str) else "",
        repeat=repeat,
        after=wait_of(headers),
        unknown=_unknown(said) if status == 400 and ending == "rejected" and not is_bound else None,
    )


def _unknown(said: str) -> Feature | None:
    return next((feature for feature, pattern in _FEATURES if pattern.search(said)), None)


def _of_exchange(error: WorkloadIdentityError) -> Outcome:
    """Return what a failed exchange of a workload's token means; what the service says of it may hold the token."""
    status = error.status_code
    if status is None or status >= 500 or status == 429:
        return Outcome(
            ending="unavailable",
            rule=f"exchange:{status or 'connection'}",
            message="the workload's token could not be exchanged",
            repeat=None,
        )
    text = f"the service does not exchange the workload's token for a credential ({status})"
    return Outcome(ending="unauthorized", rule=f"exchange:{status}", message=text)


def _of_connection(error: BaseException, chain: list[BaseException]) -> Outcome:
    name = type(error).__name__
    if any(isinstance(link, ssl.SSLCertVerificationError) for link in chain):
        text = "the certificate of the service cannot be trusted"
        return Outcome(ending="unavailable", rule="connection:certificate", message=text)
    if isinstance(error, (httpx2.LocalProtocolError, httpx2.UnsupportedProtocol, httpx2.InvalidURL)):
        return Outcome(ending="rejected", rule=f"connection:{name}", message="the request cannot be sent")
    reason = next((link.strerror for link in chain if isinstance(link, OSError) and link.strerror), "")
    text = f"the connection to the service failed ({reason or name})"
    return Outcome(ending="unavailable", rule=f"connection:{name}", message=text, repeat=None)


def wait_of(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that retry-after-ms or retry-after ask for; None when they say nothing that makes sense."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name) or "") / unit
        except ValueError:
            continue
        return seconds if math.isfinite(seconds) and seconds >= 0 else None
    try:
        moment = email.utils.parsedate_to_datetime(headers.get("retry-after") or "")
        return max(0.0, moment.timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None
