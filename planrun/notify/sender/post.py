"""Deliver a notification by HTTP: one POST, repeated after failures that may pass."""

from __future__ import annotations

import http.client
import ssl
import time
import urllib.error
import urllib.request
from email.utils import parsedate_to_datetime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any

    from planrun.notify.sender.result import Result

TRIES = 3
BACKOFF = 1.0
"""Seconds before the second try; twice as many before the third one."""
_ANSWER = 200  # characters of a refusal that are kept
_PASSING = frozenset((408, 425, 429))  # and all from 500 on


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the document and its secrets go to the named host only."""

    def redirect_request(self, *_request: Any) -> None:
        """Return None, which leaves the redirect to be reported as the answer."""
        return


class Refused(Exception):
    """The answer was not 2xx; `wait`: seconds that the server asks for, None when it does not."""

    def __init__(self, code: int, message: str, wait: float | None) -> None:
        super().__init__(message)
        self.code = code
        self.wait = wait


def send(order: dict[str, Any], until: float, result: Result) -> None:
    """Post the document of an order until a try succeeds; `until`: monotonic time that ends it."""
    opener = urllib.request.build_opener(
        urllib.request.HTTPSHandler(context=ssl.create_default_context()), _NoRedirect()
    )
    pause = BACKOFF
    while True:
        result.tries += 1
        wait: float | None = None
        try:
            result.code = _post(opener, order, max(0.1, until - time.monotonic()))
            result.sent()
            return
        except Refused as refused:
            result.code = refused.code
            result.failed(str(refused))
            if refused.code < 500 and refused.code not in _PASSING:
                return
            wait = refused.wait
        except ValueError as error:  # an address or a header that http.client refuses
            result.code = None
            result.failed(f"invalid request: {error}")
            return
        except (OSError, http.client.HTTPException) as error:
            result.code = None
            result.failed(_reason(error))
            cause = error.reason if isinstance(error, urllib.error.URLError) else error
            if isinstance(cause, ssl.SSLCertVerificationError):
                return
        wait, pause = pause if wait is None else wait, pause * 2
        if result.tries >= TRIES:
            return
        if time.monotonic() + wait >= until:
            result.failed(f"{result.message}; no time for another try")
            return
        time.sleep(wait)


def _post(opener: urllib.request.OpenerDirector, order: dict[str, Any], seconds: float) -> int:
    """Post once and return the status; raises Refused, OSError, HTTPException, ValueError."""
    request = urllib.request.Request(  # noqa: S310 - the address was checked: http or https
        order["url"], data=order["body"].encode(), headers=order["headers"], method="POST"
    )
    try:
        with opener.open(request, timeout=seconds) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            raise Refused(error.code, _refusal(error), _retry_after(error)) from None


def _refusal(error: urllib.error.HTTPError) -> str:
    if 300 <= error.code < 400:
        return f"HTTP {error.code}: redirects are not followed; name the final address"
    text = _first_line(error)
    return f"HTTP {error.code}: {text}" if text else f"HTTP {error.code}"


def _first_line(answer: IO[bytes]) -> str:
    """Return the first line of a short plain answer, such as Slack's `invalid_payload`."""
    try:
        data = answer.read(2000)
    except (OSError, http.client.HTTPException):
        return ""
    text = data.decode("ascii", "replace").strip().partition("\n")[0].strip()
    return text[:_ANSWER] if text.isprintable() and "<" not in text else ""


def _retry_after(error: urllib.error.HTTPError) -> float | None:
    """Return the seconds that the server asks to wait, by number or date."""
    text = error.headers.get("Retry-After", "").strip()
    if not text:
        return None
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, OverflowError):  # a year that no clock has
        return None


def _reason(error: BaseException) -> str:
    """Return why no answer came, without the address."""
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"the certificate cannot be verified: {cause.verify_message}"
    if isinstance(cause, TimeoutError):
        return "no answer in time"
    if isinstance(cause, http.client.RemoteDisconnected):
        return "the connection was closed without an answer"
    if isinstance(cause, OSError) and cause.strerror:
        return str(cause.strerror).lower()
    return str(cause)[:_ANSWER] or type(cause).__name__
