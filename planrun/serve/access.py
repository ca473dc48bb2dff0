"""Who may ask: a browser that opened the address with the token, for a page of this server and from no other one."""

from __future__ import annotations

import hmac
import secrets
from http.cookies import CookieError, SimpleCookie

from planrun.errors import PlanrunError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from email.message import Message

NAMES = ("127.0.0.1", "localhost")
"""The names by which this machine is asked for; another one may be made to point here (DNS rebinding)."""


class Refused(PlanrunError):
    """A request that is not answered; `status` is that of HTTP."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Access:
    """The secrets of one server: the token of its address, and the one of its forms."""

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(24)
        self.csrf = secrets.token_urlsafe(24)

    def url(self, port: int) -> str:
        """Return the address to open."""
        return f"http://127.0.0.1:{port}/?token={self.token}"

    def cookie(self, port: int) -> str:
        """Return the header that gives a browser its cookie: for this port alone, never sent by another site."""
        return f"{_name(port)}={self.token}; Path=/; HttpOnly; SameSite=Strict"

    def opens(self, given: str) -> bool:
        """Return whether the word of an address is the token."""
        return hmac.compare_digest(given.encode(), self.token.encode())

    def check_origin(self, headers: Message, port: int, *, is_post: bool) -> None:
        """Refuse a request for another name, and one that a page of another site makes; raises Refused."""
        hosts = headers.get_all("Host", [])
        allowed = [f"{name}:{port}" for name in NAMES]
        if len(hosts) != 1 or hosts[0] not in allowed:
            raise Refused(421, f"this server is {' or '.join(allowed)}, and answers for no other name")
        origin = headers.get("Origin")
        if origin != f"http://{hosts[0]}" and (is_post or origin is not None):
            raise Refused(403, "the request comes from another site")

    def check_cookie(self, headers: Message, port: int) -> None:
        """Refuse a request without the cookie; raises Refused."""
        cookies: SimpleCookie = SimpleCookie()
        try:
            cookies.load("; ".join(headers.get_all("Cookie", [])))
        except CookieError:
            pass
        found = cookies.get(_name(port))
        if found is None or not hmac.compare_digest(found.value.encode(), self.token.encode()):
            raise Refused(403, "open the address that `planrun serve` printed: it has the token")

    def check_form(self, given: str) -> None:
        """Refuse a form that is not of a page of this server; raises Refused."""
        if not hmac.compare_digest(given.encode(), self.csrf.encode()):
            raise Refused(403, "the form is not of this server; load its page again")


def _name(port: int) -> str:
    """Return the name of the cookie: cookies are of a host, whatever the port."""
    return f"planrun_{port}"
