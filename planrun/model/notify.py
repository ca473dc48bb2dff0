"""Who is notified of a run: the targets under `notify` of a plan or a policy."""

from __future__ import annotations

from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Literal

EVENTS = ("failed", "recovered", "waiting", "completed", "cancelled")
"""What a target may be notified of."""
DEFAULT_EVENTS = ("failed", "recovered")
DEFAULT_SECONDS = 15.0
"""How long all tries of a request take together; a command may take DEFAULT_COMMAND_SECONDS."""
DEFAULT_COMMAND_SECONDS = 30.0
LONGEST = 60.0
"""Seconds: the most that `timeout` may say, since a run waits for its notifications."""


class Target(Record):
    """One target of notifications; exactly one of `url`, `url_secret` and `argv` is given.

    `headers`, `secret_headers`: values, or names of secrets, by header. `secrets`: those that a command gets.
    """

    kind: Literal["webhook", "slack", "command"]
    url: str = ""
    url_secret: str = ""
    channel: str = ""
    argv: tuple[str, ...] = ()
    on: tuple[str, ...] = DEFAULT_EVENTS
    headers: dict[str, str] = {}  # noqa: RUF012 - never written
    secret_headers: dict[str, str] = {}  # noqa: RUF012
    sign: str = ""
    secrets: tuple[str, ...] = ()
    timeout: float | None = None  # seconds
    line: int = 0

    @property
    def seconds(self) -> float:
        """How long all tries together may take."""
        if self.timeout is not None:
            return self.timeout
        return DEFAULT_COMMAND_SECONDS if self.kind == "command" else DEFAULT_SECONDS

    @property
    def needs(self) -> tuple[str, ...]:
        """The secrets that it cannot do without, by name."""
        named = (self.url_secret, *self.secret_headers.values(), self.sign, *self.secrets)
        return tuple(dict.fromkeys(name for name in named if name))

    @property
    def label(self) -> str:
        """What it is called where its address must not show: `webhook ci.example.com`, `slack $SLACK_URL`."""
        if self.argv:
            return f"command {self.argv[0]}"
        return f"{self.kind} {host_of(self.url)}" if self.url else f"{self.kind} ${self.url_secret}"

    def as_written(self) -> dict[str, Any]:
        """Return it by the keys of the plan language."""
        address = {
            name: value
            for name, value in (("url", self.url), ("url_secret", self.url_secret), ("channel", self.channel))
            if value
        }
        given: dict[str, Any] = {self.kind: list(self.argv) or address.get("url", "") or address}
        if self.kind == "slack":
            given["slack"] = address
        given["on"] = list(self.on)
        for name in ("headers", "secret_headers", "sign", "secrets"):
            if value := getattr(self, name):
                given[name] = list(value) if isinstance(value, tuple) else value
        return given if self.timeout is None else {**given, "timeout": f"{self.timeout:g}s"}

    def text(self) -> str:
        """Return it in one line, for reviewers: `webhook https://ci.example.com/hooks (failed, recovered)`."""
        if self.argv:
            from shlex import join

            what = f"command {join(self.argv)}"
        else:
            what = f"{self.kind} {self.url or '$' + self.url_secret}"
        return f"{what} ({', '.join(self.on)})"


def host_of(url: str) -> str:
    """Return the host of an address with its port, without user, path and query."""
    rest = url.partition("://")[2] or url
    for mark in "/?#":
        rest = rest.partition(mark)[0]
    return rest.rpartition("@")[2]


def secrets_of(targets: Iterable[Target]) -> tuple[str, ...]:
    """Return the secrets that targets need, by name."""
    return tuple(dict.fromkeys([name for target in targets for name in target.needs]))


def is_private(host: str) -> bool:
    """Whether a host is this machine, or one of a private network by its address or its name."""
    name = host[1:].partition("]")[0] if host[:1] == "[" else host.partition(":")[0]
    if "." not in name and ":" not in name:  # `localhost`, a service of a container network
        return True
    if name.endswith((".localhost", ".local", ".internal", ".lan", ".home.arpa", ".svc", ".test")):
        return True
    from ipaddress import ip_address  # only lint asks

    try:
        address = ip_address(name)
    except ValueError:
        return False
    return address.is_private or address.is_loopback or address.is_link_local
