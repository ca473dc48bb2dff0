"""The control socket of an active run: which processes may answer, and that none can block it."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from planrun.approval.control import MAX_LINE, NAME, PATIENCE, ControlSocket
from planrun.executors.mark import Marks
from planrun.model import events as ev
from planrun.model.plan import Plan, Step
from planrun.model.state import RunState
from planrun.plan.kinds.command import Run
from planrun.plan.kinds.question import Ask
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
    """A run with two open gates and its control socket."""

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
        self.control = ControlSocket(str(self.rundir), self.clock)

    def connect(self) -> socket.socket:
        """Connect from this process, which counts as planrun itself."""
        client = socket.socket(socket.AF_UNIX)
        folder = os.open(self.rundir, os.O_RDONLY)
        try:
            client.connect(f"/proc/self/fd/{folder}/{NAME}")
        finally:
            os.close(folder)
        return client

    def ask(
        self, words: str, *prefix: str, env: dict[str, str] | None = None
    ) -> tuple[list[ev.GateAnswered], str]:
        """Send a line from a process in its own session; return the accepted answers and the response."""
        self.control.poll_replies(self.state)
        path = str(self.rundir / NAME)
        with subprocess.Popen(
            [*prefix, sys.executable, "-c", CLIENT, path, words],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | (env or {}),
        ) as process:
            answers: list[ev.GateAnswered] = []
            while process.poll() is None:
                replies = self.control.poll_replies(self.state)
                for event in replies:
                    self.state.apply(event)
                answers += replies
            assert process.stdout is not None
            return answers, process.stdout.read()


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    """Return a run whose planrun is not this process, so that children of this process are no steps."""
    pid = os.getpid()
    monkeypatch.setattr("planrun.executors.owners.os.getpid", lambda: -pid)
    found = House(tmp_path)
    yield found
    found.control.close()


def test_an_answer_is_accepted_and_confirmed(house: House) -> None:
    """One line each way: the response is the event to be recorded, with its author."""
    answers, response = house.ask(YES)
    assert [(event.step, event.answer, event.via, event.by) for event in answers] == [
        ("sure", True, "command", "Ann")
    ]
    assert json.loads(response)["answers"][0]["step"] == "sure"
    status = os.stat(house.rundir / NAME)
    assert stat.S_ISSOCK(status.st_mode)
    assert stat.S_IMODE(status.st_mode) == 0o600


def test_a_reply_without_a_matching_gate_is_refused(house: House) -> None:
    """An active run has the rules of a waiting run; a refused reply records nothing."""
    for words, said in (
        ({"verb": "decide", "steps": ["sure=maybe"]}, "expects yes or no"),
        ({"verb": "approve", "steps": ["nothing"]}, 'no step \\"nothing\\"'),
        ({"verb": "approve", "steps": ["push"], "digest": "ab"}, "has the digest ab"),
        ({"verb": "approve", "skip": ["nothing"]}, 'no step \\"nothing\\"'),
    ):
        answers, response = house.ask(json.dumps(words))
        assert answers == []
        assert said in response
        assert json.loads(response)["exit_code"] == 2
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
    """Invalid input is refused or dropped, approves nothing, and the next reply is accepted."""
    words = words.replace("\0", "\\u0000")
    answers, response = house.ask(words)
    assert answers == []
    assert response == "\n" or "not a reply" in response
    assert len(house.ask(YES)[0]) == 1


def test_a_silent_connection_blocks_nothing(house: House) -> None:
    """Silent connections time out while others are served; long lines are cut off."""
    house.control.poll_replies(house.state)
    silent = [house.connect() for _ in range(3)]
    assert house.control.poll_replies(house.state) == []
    assert len(house.ask(YES)[0]) == 1
    house.clock.now += PATIENCE + 1
    house.control.poll_replies(house.state)
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
            house.control.poll_replies(house.state)
    except (BrokenPipeError, ConnectionResetError):
        pass
    except BlockingIOError:
        pytest.fail("nobody read what was sent")
    assert sent <= 2 * MAX_LINE
    loud.close()


def test_a_process_that_exits_at_once_has_answered_nothing(house: House) -> None:
    """The caller check cannot identify a process that has exited, so it is refused."""
    house.control.poll_replies(house.state)
    script = CLIENT.replace("print(", "# print(")
    subprocess.run([sys.executable, "-c", script, str(house.rundir / NAME), YES], check=True, timeout=LIMIT)
    assert house.control.poll_replies(house.state) == []


def test_a_step_is_refused(house: House) -> None:
    """A step is recognised by its mark, its environment or an ancestor, even when it removes what it can."""
    marks = Marks(str(house.workspace))
    refused = '"a step of a run cannot answer gates"'
    answers, response = house.ask(YES, env={"PLANRUN_RUN": RUN})
    assert (answers, refused in response) == ([], True)
    # The parent has the cookie, the one that connects has an empty environment.
    answers, response = house.ask(YES, "sh", "-c", 'env -i "$@"; true', "sh", env={"PLANRUN_RUN": RUN})
    assert (answers, refused in response) == ([], True)
    if marks.works:
        marks.apply(marks.new())
        try:
            answers, response = house.ask(YES, "setsid", "-w", "env", "-i")
        finally:
            marks.apply(0)
        assert (answers, refused in response) == ([], True)


def test_a_child_of_planrun_is_a_step(tmp_path: Path) -> None:
    """Each child of planrun is a step, even without mark and environment."""
    house = House(tmp_path)
    answers, response = house.ask(YES, "env", "-i")
    assert answers == []
    assert "a step of a run cannot answer" in response
    house.control.close()


def test_the_socket_exists_while_a_gate_is_open(house: House) -> None:
    """It is created with the first gate and removed with the last; a socket of a killed run is removed."""
    path = house.rundir / NAME
    assert not path.exists()
    house.control.poll_replies(house.state)
    assert path.exists()
    house.ask(json.dumps({"verb": "approve", "steps": ["sure", "push"]}))
    assert not path.exists()
    assert house.control.poll_replies(house.state) == []
    path.write_text("left behind")
    ControlSocket(str(house.rundir), house.clock)
    assert not path.exists()


def test_a_path_may_exceed_the_length_limit_of_a_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The socket is bound and reached through a short name of the folder, without a change of directory."""
    deep = tmp_path / ("d" * 120) / ("e" * 120)
    deep.mkdir(parents=True)
    for folder in (deep, tmp_path):
        monkeypatch.chdir(folder)
        home = folder if folder == deep else deep / "again"
        home.mkdir(exist_ok=True)
        house = House(home)
        house.control.poll_replies(house.state)
        assert (house.rundir / NAME).exists()
        house.control.close()
        assert os.getcwd() == str(folder)
