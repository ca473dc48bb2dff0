"""How the sandboxes of a plan and of policies are combined, and which hosts a proxy passes on."""

from __future__ import annotations

import pytest

from planrun.executors.sandbox.filters import program
from planrun.executors.sandbox.proxy import Refused, allowed, split
from planrun.model.plan import Sandbox
from planrun.model.sandbox import Confinement, of_class, tightened
from planrun.plan.keys.sandbox import is_host

LOW = Sandbox(level="low")
WIDE = Sandbox(level="medium", network="any", write=("/a", "/b/c"), require=False, memory=10)
HOSTS = Sandbox(level="medium", network="hosts", hosts=("*.a.example", "b.example"), write=("/b",), memory=5)


@pytest.mark.parametrize(
    ("one", "other"), [(LOW, WIDE), (WIDE, LOW), (WIDE, HOSTS), (HOSTS, WIDE), (LOW, HOSTS)]
)
def test_the_stricter_of_both_counts(one: Sandbox, other: Sandbox) -> None:
    """In each field, whichever comes first."""
    found = tightened(one, other)
    levels, networks = ("read-only", "low", "medium", "off"), ("none", "hosts", "any")
    assert levels.index(found.level) == min(levels.index(one.level), levels.index(other.level))
    assert networks.index(found.network) == min(networks.index(one.network), networks.index(other.network))
    assert found.require is (one.require or other.require)
    assert found.memory == min((each.memory for each in (one, other) if each.memory), default=None)
    assert vars(tightened(other, one)).get("hosts", ()) == vars(found).get("hosts", ())


def test_paths_and_hosts_count_if_both_have_them() -> None:
    """A path below one that the other names, and a host that a pattern of the other includes."""
    assert tightened(WIDE, HOSTS).write == ("/b/c",)
    assert tightened(WIDE, HOSTS).hosts == HOSTS.hosts
    named = Sandbox(
        level="low", network="hosts", hosts=("x.a.example", "a.example", "b.example", "evilb.example")
    )
    assert tightened(named, HOSTS).hosts == ("x.a.example", "b.example")


def test_off_is_the_loosest() -> None:
    """A plan that is off gets the ceiling, and a ceiling that is off changes nothing."""
    assert tightened(Sandbox(), LOW) == LOW
    assert tightened(LOW, Sandbox()) == LOW


def test_a_model_gets_the_level_of_its_class() -> None:
    """Unless a policy says otherwise; what was approved as high has none."""
    place = Confinement(workspace="/w", home="/h", backend="landlock")
    levels = {
        risk: (place.of_model(None, risk) or Sandbox()).level
        for risk in ("read-only", "low", "medium", "high")
    }
    assert levels == {"read-only": "read-only", "low": "low", "medium": "medium", "high": "off"}
    assert place.but(for_models=(Sandbox(),)).of_model(None, "low") is None
    strict = place.but(for_models=(Sandbox(), Sandbox(level="read-only"))).of_model(LOW, "high")
    assert strict is not None
    assert strict.level == "read-only"
    assert of_class(Sandbox(level="", network="any"), "low").network == "any"


def test_an_agent_is_confined_whatever_its_step_says() -> None:
    """The step adds hosts and lowers the level; it can neither turn the sandbox off nor do without it."""
    plain = Confinement(workspace="/w", home="/h", backend="landlock")
    for step in (None, Sandbox(), Sandbox(level="low", require=False)):
        found = plain.of_agent(step, "medium")
        assert found is not None
        assert (found.require, found.network, found.backend) == (True, "none", "landlock")
    allowed_hosts = Sandbox(level="medium", network="hosts", hosts=("pypi.org",))
    found = plain.of_agent(allowed_hosts, "low")
    assert found is not None
    assert (found.level, found.hosts) == ("low", ("pypi.org",))
    found = plain.of_agent(None, "high")
    assert found is not None
    assert found.level == "medium"
    assert plain.but(for_models=(Sandbox(level="off"),)).of_agent(None, "medium") is None


def test_paths_are_absolute() -> None:
    """Seen from the workspace, and from the home folder."""
    place = Confinement(workspace="/w", home="/h", backend="landlock")
    found = place.of(Sandbox(level="low", write=("~/.cache/x", "out", "/srv/../etc")))
    assert found is not None
    assert found.write == ("/h/.cache/x", "/w/out", "/etc")


@pytest.mark.parametrize(
    ("host", "port", "is_allowed"),
    [
        ("pypi.org", 443, True),
        ("pypi.org", 80, True),
        ("pypi.org", 22, False),
        ("evil-pypi.org", 443, False),
        ("pypi.org.evil.example", 443, False),
        ("a.pythonhosted.org", 443, True),
        ("pythonhosted.org", 443, False),
        ("127.0.0.1", 8080, True),
        ("127.0.0.1", 443, False),
        ("[::1]", 81, True),
    ],
)
def test_hosts_that_are_allowed(host: str, port: int, *, is_allowed: bool) -> None:
    """By name, by subdomain, by port."""
    assert allowed(host, port, ("pypi.org", "*.pythonhosted.org", "127.0.0.1:8080", "[::1]:81")) is is_allowed


@pytest.mark.parametrize("text", ["", ":80", "a:0", "a:99999", "a:b", "[::1"])
def test_what_is_no_address_is_refused(text: str) -> None:
    """Such a request is not passed on."""
    if text == "[::1":
        assert not is_host(text)
        return
    with pytest.raises(Refused):
        split(text, 0)


@pytest.mark.parametrize(
    "text", ["pypi.org", "*.a.example", "localhost:8080", "10.0.0.1", "[::1]", "[::1]:80"]
)
def test_what_is_a_host(text: str) -> None:
    """Names, subdomains, addresses, each with a port or without one."""
    assert is_host(text)


@pytest.mark.parametrize("text", ["https://a", "a/b", "a b", "*", "a:0", "a..b", "-a", "*.*.a", "user@a"])
def test_what_is_none(text: str) -> None:
    """Addresses of pages, patterns of other kinds, and what would match nothing."""
    assert not is_host(text)


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_is_a_program_that_the_kernel_takes(machine: str) -> None:
    """Whole instructions, no jump past the end, and an answer at the end."""
    code = program(machine)
    steps = [code[at : at + 8] for at in range(0, len(code), 8)]
    assert len(code) % 8 == 0
    assert len(steps) < 4096
    for at, step in enumerate(steps):
        if step[0] in (0x15, 0x35, 0x45):
            assert at + 1 + max(step[2], step[3]) < len(steps)
    assert steps[-1][0] == 0x06
