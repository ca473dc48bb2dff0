"""The door of a run that goes on: who may answer through it, and who costs it nothing."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from planrun.approval.control import MAX_LINE, NAME, PATIENCE, Door
from planrun.executors.mark import Marks
from planrun.model import events as ev
from planrun.model.plan import Ask, Plan, Run, Step
from planrun.model.state import RunState
from tests.conftest import LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(
    not hasattr(socket, "SO_PEERCRED"), reason="this system does not tell who connects"
)
RUN = "20260131-093000-1f2e3d"
# Connects, says argv[2] and prints what comes back. Through its folder: the path may be longer than a socket's can be.
CLIENT = """\
import os, socket, sys
s = socket.socket(socket.AF_UNIX)
folder, name = os.path.split(sys.argv[1])
s.connect(f"/proc/self/fd/{os.open(folder, os.O_RDONLY)}/{name}")
s.sendall(sys.argv[2].encode() + b"\\n")
print(s.makefile().read())
"""
YES = json.dumps({"verb": "decide", "steps": ["sure=yes"], "by": "Ann"})


class Clock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def stamp(self) -> str:
        return "2026-01-31T09:30:00.000Z"

    def monotonic(self) -> float:
        return self.now


class House:
    """A run with two open gates and its door."""

    def __init__(self, folder: Path) -> None:
        self.rundir = folder / RUN
        self.rundir.mkdir(mode=0o700)
        steps = (
            Step(id="sure", kind="ask", action=Ask(question="Sure?")),
            Step(id="push", kind="run", action=Run(script="true")),
        )
        self.state = RunState(Plan(name="p", file="p.yml", digest="0", steps=steps))
        self.clock = Clock()
        for name, kind in (("sure", "ask"), ("push", "approval")):
            self.state.apply(ev.GateOpened(at=self.clock.stamp(), step=name, kind=kind))
        self.workspace = folder
        self.door = Door(str(self.rundir), self.clock)

    def connect(self) -> socket.socket:
        """Connect from this process, which counts as planrun itself."""
        found = socket.socket(socket.AF_UNIX)
        folder = os.open(self.rundir, os.O_RDONLY)
        try:
            found.connect(f"/proc/self/fd/{folder}/{NAME}")
        finally:
            os.close(folder)
        return found

    def ask(
        self, words: str, *prefix: str, env: dict[str, str] | None = None
    ) -> tuple[list[ev.GateAnswered], str]:
        """Have a process of its own session say something; return what was heard and what it was told."""
        self.door.heard(self.state)
        path = str(self.rundir / NAME)
        with subprocess.Popen(
            [*prefix, sys.executable, "-c", CLIENT, path, words],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | (env or {}),
        ) as process:
            heard: list[ev.GateAnswered] = []
            while process.poll() is None:
                found = self.door.heard(self.state)
                for event in found:
                    self.state.apply(event)
                heard += found
            assert process.stdout is not None
            return heard, process.stdout.read()


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    """Give the test a door whose planrun is not this process, so that its children are strangers."""
    pid = os.getpid()
    monkeypatch.setattr("planrun.executors.owners.os.getpid", lambda: -pid)
    found = House(tmp_path)
    yield found
    found.door.close()


def test_an_answer_comes_in_and_is_told(house: House) -> None:
    """One line each way: the event that will be recorded, with who said so."""
    heard, told = house.ask(YES)
    assert [(event.step, event.answer, event.via, event.by) for event in heard] == [
        ("sure", True, "command", "Ann")
    ]
    assert json.loads(told)["answers"][0]["step"] == "sure"
    status = os.stat(house.rundir / NAME)
    assert stat.S_ISSOCK(status.st_mode)
    assert stat.S_IMODE(status.st_mode) == 0o600


def test_what_fits_nothing_is_refused_with_the_reason(house: House) -> None:
    """The rules of a live run are those of one at rest; nothing is heard of a reply that is refused."""
    for words, said in (
        ({"verb": "decide", "steps": ["sure=maybe"]}, "asks for yes or no"),
        ({"verb": "approve", "steps": ["nothing"]}, 'no step \\"nothing\\"'),
        ({"verb": "approve", "steps": ["push"], "digest": "ab"}, "has the digest ab"),
        ({"verb": "approve", "skip": ["nothing"]}, 'no step \\"nothing\\"'),
    ):
        heard, told = house.ask(json.dumps(words))
        assert heard == []
        assert said in told
        assert json.loads(told)["exit_code"] == 2
    house.ask(YES)
    assert "was answered already by Ann" in house.ask(json.dumps({"verb": "decide", "steps": ["sure=no"]}))[1]


@pytest.mark.parametrize(
    "words",
    [
        "",
        "{",
        "[]",
        "null",
        '"approve"',
        "[" * 5000,
        '{"verb": "open"}',
        '{"verb": "approve", "steps": [1]}',
        "\0\xff",
    ],
)
def test_garbage_is_no_reply(house: House, words: str) -> None:
    """Whatever comes is refused or dropped; nobody is approved, and the next one is heard."""
    words = words.replace("\0", "\\u0000")
    heard, told = house.ask(words)
    assert heard == []
    assert told == "\n" or "not a reply" in told
    assert len(house.ask(YES)[0]) == 1


def test_who_says_nothing_hangs_nothing(house: House) -> None:
    """Silent connections are dropped after a while, others are heard meanwhile; too much is cut off."""
    house.door.heard(house.state)
    silent = [house.connect() for _ in range(3)]
    assert house.door.heard(house.state) == []
    assert len(house.ask(YES)[0]) == 1
    house.clock.now += PATIENCE + 1
    house.door.heard(house.state)
    for each in silent:
        each.settimeout(LIMIT)
        assert each.recv(1) == b""
        each.close()
    loud = house.connect()
    loud.setblocking(False)
    sent = 0
    try:
        while sent < 4 * MAX_LINE:
            sent += loud.send(b"x" * 4096)
            house.door.heard(house.state)
    except (BrokenPipeError, ConnectionResetError):
        pass
    except BlockingIOError:
        pytest.fail("nobody read what was sent")
    assert sent <= 2 * MAX_LINE
    loud.close()


def test_who_leaves_at_once_has_answered_nothing(house: House) -> None:
    """A process that is gone before it is looked at could be anybody, so it is nobody."""
    house.door.heard(house.state)
    script = CLIENT.replace("print(", "# print(")
    subprocess.run([sys.executable, "-c", script, str(house.rundir / NAME), YES], check=True, timeout=LIMIT)
    assert house.door.heard(house.state) == []


def test_a_step_is_turned_away(house: House) -> None:
    """By its mark, by its environment, by an ancestor that has one of them: with or without what it can take off."""
    marks = Marks(str(house.workspace))
    refused = '"a step of a run cannot answer gates"'
    heard, told = house.ask(YES, env={"PLANRUN_RUN": RUN})
    assert (heard, refused in told) == ([], True)
    # The parent has the cookie, the one that connects has an empty environment.
    heard, told = house.ask(YES, "sh", "-c", 'env -i "$@"; true', "sh", env={"PLANRUN_RUN": RUN})
    assert (heard, refused in told) == ([], True)
    if marks.works:
        marks.wear(marks.new())
        try:
            heard, told = house.ask(YES, "setsid", "-w", "env", "-i")
        finally:
            marks.wear(0)
        assert (heard, refused in told) == ([], True)


def test_a_child_of_planrun_is_a_step(tmp_path: Path) -> None:
    """Whatever planrun started is a step, also where nothing else tells."""
    house = House(tmp_path)
    heard, told = house.ask(YES, "env", "-i")
    assert heard == []
    assert "a step of a run cannot answer" in told
    house.door.close()


def test_the_socket_is_there_while_somebody_is_asked(house: House) -> None:
    """It comes with the first gate and goes with the last; one that a killed run left is taken away."""
    path = house.rundir / NAME
    assert not path.exists()
    house.door.heard(house.state)
    assert path.exists()
    house.ask(json.dumps({"verb": "approve", "steps": ["sure", "push"]}))
    assert not path.exists()
    assert house.door.heard(house.state) == []
    path.write_text("left behind")
    Door(str(house.rundir), house.clock)
    assert not path.exists()


def test_a_path_may_be_longer_than_a_socket_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The socket is bound and reached through a short name of the folder; nobody changes the folder he stands in."""
    deep = tmp_path / ("d" * 120) / ("e" * 120)
    deep.mkdir(parents=True)
    for folder in (deep, tmp_path):
        monkeypatch.chdir(folder)
        home = folder if folder == deep else deep / "again"
        home.mkdir(exist_ok=True)
        house = House(home)
        house.door.heard(house.state)
        assert (house.rundir / NAME).exists()
        house.door.close()
        assert os.getcwd() == str(folder)
