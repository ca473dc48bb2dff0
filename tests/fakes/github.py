"""GitHub's REST API as far as planrun uses it: a real HTTP server on loopback that behaves as the documentation says.

Pages of 30 entries with a `Link` header, at most 100; 401 without the token; 403 where the token lacks a permission,
with GitHub's words; 404 for what is not there; 422 for a comment that is empty or too long; a secondary limit is 403
with `Retry-After`, a primary one 403 with `X-RateLimit-Remaining: 0`. `script` holds refusals for the next changes.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

TOKEN = "ghs_" + "0" * 36
REPOSITORY = "acme/app"
BOT = {"login": "github-actions[bot]", "type": "Bot"}
MOST_CHARS = 65_536


def person(login: str) -> dict[str, str]:
    """Return a user as answers have one."""
    return {"login": login, "type": "User"}


class FakeGitHub:
    """The data of one repository, and a journal of requests; `url` is what GITHUB_API_URL holds."""

    def __init__(self) -> None:
        self.pulls: dict[int, dict[str, Any]] = {}
        self.comments: dict[int, list[dict[str, Any]]] = {}  # of issues, by the number of the pull request
        self.remarks: dict[int, list[dict[str, Any]]] = {}  # on lines of a diff
        self.commits: dict[int, list[dict[str, Any]]] = {}  # of pull requests
        self.events: dict[int, list[dict[str, Any]]] = {}  # of issues
        self.activity: (
            dict[str, list[dict[str, Any]]] | None
        ) = {}  # pushes by branch; None: a server without it
        self.permissions: dict[str, dict[str, str]] = {}
        self.merged: dict[str, list[int]] = {}  # pull requests by the commit of their merge
        self.deployments: dict[str, list[dict[str, Any]]] = {}  # reviews of environments by run
        self.writes = True  # the token has `pull-requests: write`
        self.script: list[str] = []  # for the next changes: secondary, primary, error, lost
        self.journal: list[str] = []
        self.url = ""
        self._ids = iter(range(1001, 10_000))

    def pull(
        self, number: int, *, head: str, branch: str, source: str = REPOSITORY, opener: str = "ann"
    ) -> None:
        """Add an open pull request."""
        self.pulls[number] = {
            "number": number,
            "state": "open",
            "merged_at": None,
            "user": person(opener),
            "head": {
                "sha": head,
                "ref": branch,
                "repo": {"full_name": source},
                "label": f"{source.split('/', maxsplit=1)[0]}:{branch}",
            },
            "base": {"ref": "main", "repo": {"full_name": REPOSITORY}},
        }
        self.comments.setdefault(number, [])
        self.remarks.setdefault(number, [])

    def say(  # noqa: PLR0913 - as answers have them
        self,
        number: int,
        body: str,
        user: dict[str, str],
        *,
        at: str = "",
        edited: bool = False,
        line: bool = False,
    ) -> int:
        """Add a comment, on a line of the diff or below all; returns its id."""
        name = next(self._ids)
        moment = at or f"2026-01-31T10:{name % 60:02d}:00Z"
        entry = {
            "id": name,
            "body": body,
            "user": user,
            "created_at": moment,
            "updated_at": "2026-02-01T00:00:00Z" if edited else moment,
        }
        (self.remarks if line else self.comments)[number].append(entry)
        return name


class _Refused(Exception):
    def __init__(self, code: int, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.code, self.headers = code, headers or {}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    fake: FakeGitHub

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base class
        """Print nothing."""

    def _handle(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else {}
        parts = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        self.fake.journal.append(f"{self.command} {self.path}")
        try:
            words = self._words(parts.path)
            found = self._change(words, body) if self.command != "GET" else self._read(words, query)
            headers: dict[str, str] = {}
            if self.command == "GET" and isinstance(found, list):
                found, headers = self._page(found, parts.path, query)
            self._answer(
                201 if self.command == "POST" else 204 if self.command == "DELETE" else 200, found, headers
            )
        except _Refused as refused:
            self._answer(
                refused.code,
                {"message": str(refused), "documentation_url": "https://docs.github.com/rest"},
                refused.headers,
            )

    def _words(self, path: str) -> list[str]:
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            raise _Refused(401, "Bad credentials")
        if not self.headers.get("User-Agent"):
            raise _Refused(403, "Request forbidden by administrative rules.")
        prefix = f"/repos/{REPOSITORY}/"
        if not path.startswith(prefix):
            raise _Refused(404, "Not Found")
        return path.removeprefix(prefix).split("/")

    do_GET = do_POST = do_PATCH = do_DELETE = _handle  # noqa: N815 - the names of the base class

    def _answer(self, code: int, found: Any, headers: dict[str, str]) -> None:
        data = b"" if code == 204 else json.dumps(found).encode()
        self.send_response(code)
        for name, value in {"Content-Type": "application/json; charset=utf-8", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _page(self, found: list[Any], path: str, query: dict[str, str]) -> tuple[list[Any], dict[str, str]]:
        size, page = min(int(query.pop("per_page", "30")), 100), int(query.pop("page", "1"))
        begin = (page - 1) * size
        headers = {}
        if begin + size < len(found):
            more = "&".join([f"{name}={value}" for name, value in query.items()])
            link = f"{self.fake.url}{path}?per_page={size}&page={page + 1}{'&' if more else ''}{more}"
            headers["Link"] = f'<{link}>; rel="next", <{link}>; rel="last"'
        return found[begin : begin + size], headers

    def _read(self, words: list[str], query: dict[str, str]) -> Any:
        fake = self.fake
        if words == ["pulls"]:
            wanted = query.get("head", "")
            found = [
                pull for pull in fake.pulls.values() if query.get("state", "open") in (pull["state"], "all")
            ]
            return [pull for pull in found if wanted in ("", pull["head"]["label"])]
        if words[0] == "pulls" and len(words) == 2:
            return self._known(fake.pulls, int(words[1]))
        if words[0] == "issues" and words[2:] == ["comments"]:
            return self._known(fake.comments, int(words[1]))
        if words[0] == "pulls" and words[2:] == ["comments"]:
            return self._known(fake.remarks, int(words[1]))
        if words[-1] in ("commits", "events", "activity"):
            return self._authors(words, query)
        if words[0] == "commits" and words[2:] == ["pulls"]:
            return [fake.pulls[number] for number in fake.merged.get(words[1], [])]
        if words[0] == "collaborators" and words[2:] == ["permission"]:
            return self._known(fake.permissions, words[1])
        if words[:2] == ["actions", "runs"] and words[3:] == ["approvals"]:
            return fake.deployments.get(words[2], [])
        raise _Refused(404, "Not Found")

    def _authors(self, words: list[str], query: dict[str, str]) -> Any:
        fake = self.fake
        if words == ["activity"] and fake.activity is not None:
            return fake.activity.get(query["ref"], [])
        if len(words) < 3:
            raise _Refused(404, "Not Found")
        return (fake.commits if words[2] == "commits" else fake.events).get(int(words[1]), [])

    @staticmethod
    def _known(data: dict[Any, Any], key: Any) -> Any:
        if key not in data:
            raise _Refused(404, "Not Found")
        return data[key]

    def _change(self, words: list[str], body: dict[str, Any]) -> Any:
        trouble = self.fake.script.pop(0) if self.fake.script else ""
        if trouble == "secondary":
            raise _Refused(
                403,
                "You have exceeded a secondary rate limit. Please wait a few minutes.",
                {"Retry-After": "1"},
            )
        if trouble == "primary":
            headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(time.time()))}
            raise _Refused(403, "API rate limit exceeded for installation.", headers)
        if trouble == "error":
            raise _Refused(502, "Server Error")
        if not self.fake.writes:
            raise _Refused(403, "Resource not accessible by integration")
        text = body.get("body")
        if self.command != "DELETE" and (not isinstance(text, str) or not text.strip()):
            raise _Refused(422, "Validation Failed")
        if isinstance(text, str) and len(text) > MOST_CHARS:
            raise _Refused(422, f"Validation Failed: body is too long (maximum is {MOST_CHARS} characters)")
        found = self._apply(words, text)
        if trouble == "lost":
            raise _Refused(502, "Server Error")
        return found

    def _apply(self, words: list[str], text: str | None) -> Any:
        if self.command == "POST" and words[0] == "issues" and words[2:] == ["comments"]:
            self._known(self.fake.comments, int(words[1]))
            self.fake.say(int(words[1]), str(text), BOT)
            return self.fake.comments[int(words[1])][-1]
        if words[:2] == ["issues", "comments"] and len(words) == 3:
            for comments in self.fake.comments.values():
                for comment in comments:
                    if str(comment["id"]) == words[2]:
                        if self.command == "DELETE":
                            comments.remove(comment)
                            return None
                        comment |= {"body": text, "updated_at": "2026-02-02T00:00:00Z"}
                        return comment
        raise _Refused(404, "Not Found")


@contextmanager
def serving(fake: FakeGitHub) -> Iterator[FakeGitHub]:
    """Serve the data until the block ends."""
    handler = type("Handler", (_Handler,), {"fake": fake})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        fake.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield fake
        finally:
            server.shutdown()
            thread.join()
