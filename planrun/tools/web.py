"""One web page for an agent: by GET, from allowed hosts, as text.

Names are resolved here, once for each request, and the connection goes to the address that was looked at: a second
answer of the name service changes nothing. Addresses of this machine and of private networks are refused, unless the
plan names host and port itself; addresses of the link (where clouds keep credentials) always.
"""

from __future__ import annotations

import http.client
import ipaddress
import os
import socket
import ssl
import time
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

from planrun.tools.ground import Refusal, say
from planrun.tools.reading import put

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.tools.ground import Ground

ALLOWED = "PLANRUN_AGENT_WEB"
"""The variable with the allowed hosts, separated by commas."""
MOST_BYTES = 1 << 20
SECONDS = 30.0
_REDIRECTS = 5
_PORTS = {"http": 80, "https": 443}
_TEXTS = ("application/json", "application/xml", "application/xhtml+xml", "application/javascript")
_PIECE = 1 << 16
_HEADERS = {"Accept": "text/html, text/plain, application/json, */*;q=0.1", "Accept-Encoding": "identity"}
_AGENT = "planrun"
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


def web_fetch(ground: Ground, args: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG001 - as of all tools
    """Print the text of the page at `url`."""
    allowed = tuple([host for host in os.environ.get(ALLOWED, "").split(",") if host])
    url, until = args["url"], time.monotonic() + SECONDS
    for _ in range(_REDIRECTS + 1):
        status, where, kind, body = _got(url, allowed, until)
        if where:
            url = urljoin(url, where)
            continue
        text = _text(kind, body, url)
        say(f"{url}: {status}, {kind or 'no type'}, {len(body)} bytes")
        if len(body) >= MOST_BYTES:
            say(f"[only the first {MOST_BYTES} bytes]")
        put(text if text.endswith("\n") else f"{text}\n")
        if status >= 400:
            raise Refusal(f"the server answered {status}")
        return {}
    raise Refusal(f"more than {_REDIRECTS} redirects")


def _got(url: str, allowed: tuple[str, ...], until: float) -> tuple[int, str, str, bytes]:
    """Return status, target of a redirect, type and body of one request; raises Refusal."""
    parts = _parts(url)
    host, port, is_exact = _checked(parts, allowed)
    address = _address(host, port, is_exact=is_exact)
    link = _Link(host, port, address, until)
    try:
        link.open(parts.scheme)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection = link.connection
        connection.request("GET", path, headers={**_HEADERS, "User-Agent": _AGENT})
        answer = connection.getresponse()
        where = answer.getheader("Location", "") if answer.status in (301, 302, 303, 307, 308) else ""
        kind = (answer.getheader("Content-Type") or "").partition(";")[0].strip().lower()
        return answer.status, where, kind, b"" if where else link.body(answer)
    except TimeoutError:
        raise Refusal(f"no answer within {SECONDS:g} s") from None
    except (OSError, http.client.HTTPException) as error:
        raise Refusal(f"{host}:{port} cannot be read: {str(error) or type(error).__name__}") from None
    finally:
        link.close()


def _parts(url: str) -> Any:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise Refusal("the address is no web address") from None
    if parts.scheme not in _PORTS or not parts.hostname or port == 0:
        raise Refusal("the address is no web address: it begins with http:// or https://")
    if parts.username is not None or parts.password is not None:
        raise Refusal("the address holds a user or password")
    if any(char <= " " or char == "\x7f" for char in url) or not url.isascii():
        raise Refusal("the address has characters that no address has: write them percent-encoded")
    return parts


def _checked(parts: Any, allowed: tuple[str, ...]) -> tuple[str, int, bool]:
    """Return host and port, and whether the plan names exactly both; raises Refusal for a host that is not allowed."""
    host, port = parts.hostname.lower().rstrip("."), parts.port or _PORTS[parts.scheme]
    shown = f"[{host}]" if ":" in host else host
    if f"{shown}:{port}" in allowed:
        return host, port, True
    if port in _PORTS.values():
        for entry in allowed:
            if entry == shown or (entry.startswith("*.") and host.endswith(entry[1:])):
                return host, port, False
    for entry in allowed:
        name, colon, number = entry.rpartition(":")
        if colon and number == str(port) and name.startswith("*.") and host.endswith(name[1:]):
            return host, port, False
    raise Refusal(f"{shown}:{port} is not among the allowed hosts: {', '.join(allowed) or 'there are none'}")


def _address(host: str, port: int, *, is_exact: bool) -> str:
    """Return the address that a name leads to; raises Refusal when it may not be asked."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise Refusal(f"{host} has no address: {error}") from None
    addresses = list(dict.fromkeys([str(place[4][0]) for place in found]))
    for address in addresses:
        if why := _why_not(address, is_exact=is_exact):
            raise Refusal(f"{host} leads to {address}, {why}")
    return addresses[0]


def _why_not(text: str, *, is_exact: bool) -> str:
    """Return why an address is refused; "" for one that may be asked."""
    address: ipaddress.IPv4Address | ipaddress.IPv6Address = ipaddress.ip_address(text.partition("%")[0])
    for inner in _inside(address):
        if inner.is_link_local or inner.is_multicast or inner.is_unspecified:
            return "which is of the link"
        if not is_exact and not inner.is_global:
            return "which is of this machine or a private network: the plan has to name host and port"
    return ""


def _inside(address: Any) -> list[Any]:
    """Return an address, and the IPv4 address that it stands for: mapped, 6to4, NAT64."""
    if address.version == 4:
        return [address]
    found = [each for each in (address.ipv4_mapped, address.sixtofour) if each is not None]
    if address in _NAT64:
        found.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return [address, *found] if not address.ipv4_mapped else found


class _Link:
    """A connection to one address, closed when its time is over."""

    def __init__(self, host: str, port: int, address: str, until: float) -> None:
        self._host, self._port, self._address, self._until = host, port, address, until
        self.connection = http.client.HTTPConnection(host, port)

    def _left(self) -> float:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def open(self, scheme: str) -> None:
        """Connect; the certificate is that of the name."""
        raw = socket.create_connection((self._address, self._port), timeout=self._left())
        if scheme == "https":
            raw = ssl.create_default_context().wrap_socket(raw, server_hostname=self._host)
        self.connection.sock = raw

    def body(self, answer: http.client.HTTPResponse) -> bytes:
        """Return what comes, up to the limit."""
        data = b""
        while len(data) < MOST_BYTES:
            if self.connection.sock is not None:
                self.connection.sock.settimeout(self._left())
            else:
                self._left()
            piece = answer.read1(min(_PIECE, MOST_BYTES - len(data)))
            if not piece:
                break
            data += piece
        return data

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()


def _text(kind: str, body: bytes, url: str) -> str:
    text = body.decode("utf-8", "replace")
    if kind in ("text/html", "application/xhtml+xml") or (not kind and text.lstrip()[:1] == "<"):
        return text_of(text, url)
    if kind.startswith("text/") or kind in _TEXTS or kind.endswith(("+json", "+xml")) or not kind:
        return text
    raise Refusal(f"the page is {kind}, and no text")


_SKIPPED = frozenset(("script", "style", "template", "svg", "noscript", "iframe", "object"))
_LISTS = ("li", "ul", "ol", "dl", "dt", "dd", "table", "tr")
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6", "title")
_SECTIONS = (
    "p",
    "div",
    "section",
    "article",
    "br",
    "hr",
    "pre",
    "blockquote",
    "header",
    "footer",
    "nav",
    "main",
    "form",
)
_BLOCKS = frozenset((*_LISTS, *_HEADINGS, *_SECTIONS))


class _Page(HTMLParser):
    """Collects the text that a reader of a page sees, with the addresses of its links."""

    def __init__(self, url: str) -> None:
        super().__init__(convert_charrefs=True)
        self._url = url
        self._skipping: list[str] = []
        self._pre = 0
        self._link = ""
        self.parts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a block, or something that is not shown."""
        known = dict(attrs)
        if self._skipping or tag in _SKIPPED:
            if tag in _SKIPPED:
                self._skipping.append(tag)
            return
        if tag in _BLOCKS:
            self.parts.append("\n")
        if tag == "li":
            self.parts.append("- ")
        self._pre += tag == "pre"
        if tag == "a" and (href := known.get("href")) and not href.startswith(("#", "javascript:", "data:")):
            self._link = urljoin(self._url, href)

    def handle_endtag(self, tag: str) -> None:
        """End it."""
        if self._skipping:
            if tag == self._skipping[-1]:
                self._skipping.pop()
            return
        if tag == "a" and self._link:
            self.parts.append(f" ({self._link})")
            self._link = ""
        if tag in _BLOCKS:
            self.parts.append("\n")
        self._pre = max(0, self._pre - (tag == "pre"))

    def handle_data(self, data: str) -> None:
        """Take text."""
        if not self._skipping:
            self.parts.append(data if self._pre else " ".join(data.replace("\n", " ").split(" ")))


def text_of(page: str, url: str) -> str:
    """Return the text of an HTML page."""
    parser = _Page(url)
    try:
        parser.feed(page)
        parser.close()
    except (ValueError, AssertionError):  # what was read so far
        pass
    lines = [
        " ".join(line.split()) if not line.startswith("  ") else line
        for line in "".join(parser.parts).split("\n")
    ]
    kept: list[str] = []
    for line in lines:
        if line or (kept and kept[-1]):
            kept.append(line)
    return "\n".join(kept).strip()
