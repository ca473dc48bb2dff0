"""The short form of the proofs about sandboxes: attacks on each backend, and the labelled commands."""

from __future__ import annotations

import pytest

from planrun.executors.sandbox.probe import BACKENDS, why_not
from proofs import sandbox, sandboxcorpus

EACH = [
    pytest.param(name, marks=pytest.mark.skipif(bool(why), reason=f"{name}: {why}"))
    for name, why in ((name, why_not(name)) for name in BACKENDS)
]
SHARE = 3
"""One of so many labelled commands is tried, each by the seed that it is drawn by; the long form takes all."""
OUTERMOST = sandbox.users()[-1]
"""An ordinary user, where there is one."""


def drawn(level: str, seed: int) -> list[str]:
    """Return the commands of a class that this seed tries."""
    return [command for found, command in sandboxcorpus.rows() if found == level][seed % SHARE :: SHARE]


@pytest.mark.shows("S1")
@pytest.mark.parametrize("backend", EACH)
def test_no_attack_escapes(backend: str) -> None:
    """No attack has an effect, as root and as an ordinary user."""
    for user in sandbox.users():
        results = list(sandbox.play(backend, user, sandbox.fitting(user)))
        assert [str(each) for each in results if each.effects] == []
        assert all(each.log or each.effects == () for each in results)


def test_each_attack_works_without_a_sandbox() -> None:
    """So what the test above sees is the sandbox."""
    for user in sandbox.users():
        results = list(sandbox.play("", user, sandbox.fitting(user)))
        assert [str(each) for each in results if not each.effects] == []


@pytest.mark.shows("S2")
@pytest.mark.parametrize("backend", EACH)
@pytest.mark.parametrize("level", ["read-only", "low"])
def test_commands_work_at_their_level(backend: str, level: str, seed: int) -> None:
    """Each ends as it does without a sandbox."""
    assert sandboxcorpus.compare(OUTERMOST, level, drawn(level, seed), backend) == []


@pytest.mark.shows("S2")
@pytest.mark.skipif(
    not OUTERMOST, reason="high commands start as an ordinary user only, and this is root alone"
)
@pytest.mark.parametrize("backend", EACH[:1])
def test_high_commands_have_no_effect_outside(backend: str, seed: int) -> None:
    """At level low, whatever they do, nothing outside of the workspace changes."""
    commands = drawn("high", seed)
    found = sandboxcorpus.run(OUTERMOST, commands, sandboxcorpus.STRICT, backend)
    assert found.effects == ()
    assert len(found.codes) == len(commands)
