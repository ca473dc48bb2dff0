"""A small client of GitHub's REST API: pages, limits and refusals as its documentation describes them."""

from __future__ import annotations

import http.client
import json
import re
import ssl
import time
import urllib.error
import urllib.request
from urllib.parse import urlsplit

from planrun import __version__
from planrun.errors import InvalidInput
from planrun.model.record import Record
from planrun.reports.escape import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

PUBLIC = "https://api.github.com"
TOKENS = ("GITHUB_TOKEN", "GH_TOKEN")
_VERSION = "2022-11-28"
_TRIES = 4
_PATIENCE = 120.0  # seconds that all waits for a limit may take together
_TIMEOUT = 30.0
_MOST_PAGES = 100
_MAX_BYTES = 16 << 20  # of one answer
_NEXT = re.compile(r'<([^<>]+)>;\s*rel="next"')


class ApiError(Exception):
    """An answer that is a refusal, or none; `code`: the HTTP status, 0 without an answer."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Repository(Record):
    """A repository: where its API is, `owner/name`, and the token."""

    api: str
    name: str
    token: str

    def __repr__(self) -> str:
        return f"Repository({self.name})"


def repository_of(environ: Mapping[str, str], named: str) -> Repository:
    """Return the repository of this job, or the one that is named; raises InvalidInput."""
    name = named or environ.get("GITHUB_REPOSITORY", "")
    if not re.fullmatch(r"[A-Za-z0-9-]{1,39}/[A-Za-z0-9._-]{1,100}", name):
        raise InvalidInput(f'--repo takes OWNER/NAME, not "{name}"; in a job of GitHub it is known')
    api = (environ.get("GITHUB_API_URL") or PUBLIC).rstrip("/")
    parts = urlsplit(api)
    if parts.scheme != "https" and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
        raise InvalidInput(f"GITHUB_API_URL must be https, since a token is sent there: {api}")
    token = next((environ[variable] for variable in TOKENS if environ.get(variable)), "")
    if not token or not token.isascii() or not token.isprintable():
        raise InvalidInput(f"no token: set {' or '.join(TOKENS)} in the environment of this step")
    return Repository(api=api, name=name, token=token)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the token goes to the named host only."""

    def redirect_request(self, *_request: Any) -> None:
        """Return None, which leaves the redirect to be reported as the answer."""
        return


class Client:
    """Asks for one repository; waits where a limit says so, and repeats what may be repeated."""

    def __init__(self, repository: Repository) -> None:
        self.repository = repository
        context = ssl.create_default_context()
        self._opener = urllib.request.build_opener(
            urllib.request.HTTPSHandler(context=context), _NoRedirect()
        )
        self._until = time.monotonic() + _PATIENCE

    def get(self, path: str) -> Any:
        """Return the data at a path below the repository; raises ApiError."""
        return self._ask("GET", self._url(path))[0]

    def pages(self, path: str) -> Iterator[dict[str, Any]]:
        """Yield the entries of all pages of a list; raises ApiError."""
        url = f"{self._url(path)}{'&' if '?' in path else '?'}per_page=100"
        for _ in range(_MOST_PAGES):
            found, links = self._ask("GET", url)
            if not isinstance(found, list):
                raise ApiError(0, "the answer is no list")
            yield from [entry for entry in found if isinstance(entry, dict)]
            match = _NEXT.search(links)
            if match is None:
                return
            url = match[1]
            here, there = urlsplit(self.repository.api), urlsplit(url)
            if (here.scheme, here.netloc) != (there.scheme, there.netloc):
                raise ApiError(0, "the next page is on another host, which gets no token")
        raise ApiError(0, f"the list has more than {_MOST_PAGES} pages")

    def send(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """Change something: POST, PATCH or DELETE; raises ApiError. A POST whose answer is lost is not repeated."""
        return self._ask(method, self._url(path), body)[0]

    def _url(self, path: str) -> str:
        return f"{self.repository.api}/repos/{self.repository.name}/{path}"

    def _ask(self, method: str, url: str, body: dict[str, Any] | None = None) -> tuple[Any, str]:
        """Return the data of an answer and its links."""
        pause = 1.0
        for number in range(1, _TRIES + 1):
            try:
                headers = {
                    "Accept": "application/vnd.github+json",
                    "Authorization": f"Bearer {self.repository.token}",
                    "User-Agent": f"planrun/{__version__}",
                    "X-GitHub-Api-Version": _VERSION,
                }
                data = None
                if body is not None:
                    data = json.dumps(body).encode()
                    headers["Content-Type"] = "application/json"
                request = urllib.request.Request(url, data=data, headers=headers, method=method)  # noqa: S310 - checked: https
                with self._opener.open(request, timeout=_TIMEOUT) as answer:
                    text = answer.read(_MAX_BYTES + 1)
                    if len(text) > _MAX_BYTES:
                        raise ApiError(0, f"{method} {urlsplit(url).path}: the answer is too large")
                    try:
                        return (json.loads(text) if text else None), answer.headers.get("Link", "")
                    except (ValueError, RecursionError):
                        raise ApiError(0, f"{method} {urlsplit(url).path}: the answer is no JSON") from None
            except urllib.error.HTTPError as error:
                with error:
                    wait = _limited(error)
                    if wait is None and error.code >= 500 and method != "POST":
                        wait = pause
                    refusal = ApiError(
                        error.code, f"{method} {urlsplit(url).path}: HTTP {error.code}{_why(error)}"
                    )
            except (OSError, http.client.HTTPException) as error:
                wait = None if method == "POST" or isinstance(error, ssl.SSLError) else pause
                reason = error.reason if isinstance(error, urllib.error.URLError) else error
                refusal = ApiError(0, f"{method} {urlsplit(url).path}: no answer: {line(str(reason), 200)}")
            if wait is None or number == _TRIES or time.monotonic() + wait > self._until:
                raise refusal from None
            time.sleep(wait)
            pause *= 2
        raise AssertionError("the last try returns or raises")


def _limited(error: urllib.error.HTTPError) -> float | None:
    """Return the seconds to wait where a primary or secondary limit is reached; None for any other refusal."""
    if error.code not in (403, 429):
        return None
    after = error.headers.get("Retry-After", "")
    if after.isdecimal():
        return float(after[:9])
    if error.headers.get("X-RateLimit-Remaining") == "0":
        reset = error.headers.get("X-RateLimit-Reset", "")
        return max(0.0, float(reset[:12]) - time.time()) + 1.0 if reset.isdecimal() else 60.0
    return 60.0 if error.code == 429 else None


def _why(error: urllib.error.HTTPError) -> str:
    """Return what GitHub says, in one clean line."""
    try:
        said = json.loads(error.read(1 << 16))
        text = str(said["message"])
        details = [str(each.get("message", "")) for each in said.get("errors", ()) if isinstance(each, dict)]
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError, AttributeError):
        return ""
    return f": {line(' '.join([text, *details]).strip(), 300)}"
