"""`web_fetch`: a real server on loopback, redirects, private addresses, and pages as text."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from planrun.tools.ground import Refusal
from planrun.tools.web import _address, _checked, _parts, text_of
from tests.agents.worlds import finish, ledger, repository, results
from tests.fakes.messages import FakeMessages, use

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import Command
    from tests.fakes.messages import Asked

PAGE = (
    "<title>Guide</title><script>steal()</script><p>Use <b>add</b>.</p><a href='/next'>more</a><li>one</li>"
)


class Handler(BaseHTTPRequestHandler):
    """Pages by path."""

    def do_GET(self) -> None:
        """Answer."""
        port = self.server.server_address[1]  # type: ignore[index] # host and port
        moves = {"/moved": "/page", "/away": f"http://localhost:{port}/page", "/loop": "/loop"}
        if self.path in moves:
            self.send_response(302)
            self.send_header("Location", moves[self.path])
            self.end_headers()
            return
        kind, body = "text/html", PAGE.encode()
        if self.path == "/large":
            kind, body = "text/plain", b"x" * (3 << 20)
        if self.path == "/picture":
            kind = "image/png"
        self.send_response(404 if self.path == "/none" else 200)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@contextmanager
def pages() -> Iterator[int]:
    """Serve the pages; gives the port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()


class Seen:
    """A model that gets one page a turn."""

    def __init__(self, *urls: str) -> None:
        self.urls = urls
        self.results: list[str] = []
        self.tools: list[str] = []

    def __call__(self, asked: Asked) -> Any:
        turn = sum(message["role"] == "assistant" for message in asked.body["messages"])
        self.tools = [tool["name"] for tool in asked.body["tools"]]
        if turn:
            self.results.append(results(asked)[0])
        return use(("web_fetch", {"url": self.urls[turn]})) if turn < len(self.urls) else finish("read")


def run(planrun: Command, model: Any, web: list[str], policy: dict[str, Any] | None = None) -> str:
    """Run an agent of type claude-code-guide; returns what the run printed."""
    repository(planrun.folder)
    agent: dict[str, Any] = {"type": "claude-code-guide", "prompt": "Read."}
    agent |= {"web": {"allow": web}} if web else {}
    policy = {"auto_approve": "medium", "llm_auto_approve": "medium", **(policy or {})}
    step = {"id": "read", "agent": agent}
    plan = {"version": 1, "llm": {"model": "model-a"}, "policy": policy, "steps": [step]}
    (planrun.folder / "plan.yml").write_text(json.dumps(plan))
    with FakeMessages(model) as api:
        done = planrun("execute", "plan.yml", env=api.env)
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.shows("GM-05")
def test_pages_of_allowed_hosts_are_read_as_text(planrun: Command) -> None:
    """A page is data; a redirect is looked at again; other hosts, long pages and pictures have clear answers."""
    with pages() as port:
        base = f"http://127.0.0.1:{port}"
        paths = ("/page", "/moved", "/away", "/loop", "/large", "/picture", "/none")
        model = Seen(*[base + path for path in paths], "http://example.org/", "file:///etc/passwd")
        run(planrun, model, [f"127.0.0.1:{port}"])
    page, moved, away, loop, large, picture, none, other, file = model.results
    assert page.startswith('<untrusted-data name="output of web_fetch"')
    assert "Use add." in page
    assert len(page.splitlines()) > 4  # the lines of the page, not one with escapes
    assert "\\n" not in page
    assert f"more ({base}/next)" in page
    assert "steal" not in page
    assert "Use add." in moved
    assert f"localhost:{port} is not among the allowed hosts" in away
    assert "more than 5 redirects" in loop
    assert "only the first 1048576 bytes" in large
    assert len(large) < 200_000
    assert "image/png, and no text" in picture
    assert "the server answered 404" in none
    assert "example.org:80 is not among the allowed hosts" in other
    assert "no web address" in file
    (agent,) = ledger(planrun.folder)["agents"]
    assert {call["risk"] for call in agent["effects"]} == {"low"}


def test_a_policy_takes_the_web_away(planrun: Command) -> None:
    """A sandbox of a policy without a network holds for `web_fetch` as well."""
    with pages() as port:
        model = Seen(f"http://127.0.0.1:{port}/page")
        run(planrun, model, [f"127.0.0.1:{port}"], {"llm_sandbox": {"level": "medium"}})
    assert "a policy allows none of the hosts" in model.results[0]


@pytest.mark.parametrize(
    ("address", "refused"),
    [
        ("127.0.0.1", True), ("10.1.2.3", True), ("169.254.169.254", True), ("192.168.0.1", True), ("::1", True),
        ("::ffff:127.0.0.1", True), ("64:ff9b::7f00:1", True), ("2002:7f00:1::", True), ("fe80::1", True),
        ("100.64.0.1", True), ("0.0.0.0", True), ("8.8.8.8", False), ("2001:4860:4860::8888", False),
    ],
)  # fmt: skip
def test_private_addresses_are_refused_unless_named(address: str, refused: bool) -> None:  # noqa: FBT001
    """A name that leads to one is refused; the plan may name host and port, except for addresses of the link."""
    if refused:
        with pytest.raises(Refusal, match="leads to"):
            _address(address, 80, is_exact=False)
    else:
        assert _address(address, 80, is_exact=False) == address
    if address == "127.0.0.1":
        assert _address(address, 80, is_exact=True) == address
    if address == "169.254.169.254":
        with pytest.raises(Refusal, match="of the link"):
            _address(address, 80, is_exact=True)


def test_hosts_are_compared_whole() -> None:
    """A wildcard means names below a domain; a port has to fit."""
    allowed = ("*.example.com", "docs.python.org", "localhost:8080")
    assert _checked(_parts("https://a.example.com/x"), allowed) == ("a.example.com", 443, False)
    assert _checked(_parts("http://LOCALHOST:8080"), allowed) == ("localhost", 8080, True)
    for url in (
        "https://example.com.evil.org",
        "https://xexample.com",
        "http://localhost",
        "https://docs.python.org:8443",
    ):
        with pytest.raises(Refusal):
            _checked(_parts(url), allowed)
    for url in (
        "ftp://docs.python.org",
        "https://u:p@docs.python.org",
        "https://docs.python.org/a b",
        "http://[::1",
    ):
        with pytest.raises(Refusal):
            _parts(url)


def test_a_page_becomes_text() -> None:
    """Blocks are lines, code keeps its layout, and what is not shown is left out."""
    page = "<html><style>x{}</style><h1>A</h1>b&amp;c<pre>def f():\n    pass</pre>"
    page += "<ul><li>one<li>two</ul><script>if(1<2)</script>"
    assert text_of(page, "http://a/") == "A\nb&c\ndef f():\n    pass\n\n- one\n- two"
