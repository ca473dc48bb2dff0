"""Deliver a notification by a command, which gets the document on stdin; what it leaves running is killed."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
import time

from planrun.secrets.masker import Masker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from planrun.notify.sender.result import Result

MAX_LOG = 1 << 20
"""Bytes of the output of a command that are kept."""
_MARGIN = 1 << 16  # bytes that are read beyond, so that a secret at the cut is masked as a whole
_PIECE = 1 << 16  # bytes read at once
_PIECES = 16  # in the pipe of a command that has ended, at most
_LOOK = (
    50.0  # milliseconds until a command is asked again whether it has ended: what it left may hold its pipe
)
_PR_SET_CHILD_SUBREAPER = 36  # prctl(2)
_ROUNDS = 50  # of searching for processes; each kills what the last one left


def run(order: dict[str, Any], _until: float, result: Result) -> None:
    """Run the command of an order once; its log is written, masked, when it has ended."""
    # Have processes whose parents end become children of this one, so that they can be found
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    result.tries = 1
    process: subprocess.Popen[bytes] | None = None
    output = bytearray()
    try:
        process = subprocess.Popen(
            order["argv"],
            cwd=order["folder"],
            env=order["env"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        _converse(process, order["body"].encode(), output)
        result.code = process.wait()
        if result.code:
            result.failed(
                f"killed by signal {-result.code}" if result.code < 0 else f"exit code {result.code}"
            )
        else:
            result.sent()
    except OSError as error:
        result.failed(f"cannot be started: {error.strerror or error}")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        if process is not None and not os.path.isdir("/proc/self"):
            _kill_group(process.pid)
        kill_descendants()
        if process is not None and process.poll() is None:
            process.kill()
            process.wait()
        _write_log(order, process, output)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _converse(process: subprocess.Popen[bytes], data: bytes, output: bytearray) -> None:
    """Write the document to the command, which need not read it, and keep what it prints, until it ends."""
    assert process.stdin is not None
    assert process.stdout is not None
    writing, reading = process.stdin.fileno(), process.stdout.fileno()
    os.set_blocking(writing, False)
    os.set_blocking(reading, False)
    poll = select.poll()
    poll.register(writing, select.POLLOUT)
    poll.register(reading, select.POLLIN)
    left = 2
    while left and process.poll() is None:
        for fd, _ in poll.poll(_LOOK):
            if fd == writing:
                data = _written(writing, data)
                is_over = not data
            else:
                is_over = not _keep(reading, output)
            if is_over:
                poll.unregister(fd)
                left -= 1
                if fd == writing:
                    process.stdin.close()


def _written(fd: int, data: bytes) -> bytes:
    """Write what the pipe takes, and return the rest; nothing when the command does not read it."""
    try:
        return data[os.write(fd, data) :]
    except BlockingIOError:
        return data
    except BrokenPipeError:
        return b""


def _keep(fd: int, output: bytearray) -> bool:
    """Read once, and keep it if there is room; False where there is nothing to read."""
    try:
        piece = os.read(fd, _PIECE)
    except BlockingIOError:
        return False
    output += piece[: MAX_LOG + _MARGIN - len(output)]
    return bool(piece)


def _write_log(order: dict[str, Any], process: subprocess.Popen[bytes] | None, output: bytearray) -> None:
    """Write what the command printed, masked: nothing else of it is ever in a file."""
    if process is None or process.stdout is None:
        return
    for _ in range(_PIECES):
        if not _keep(process.stdout.fileno(), output):
            break
    text = Masker(order["masked"]).mask_text(output.decode("utf-8", "replace"))
    try:
        with open(order["log"], "wb", opener=_private) as file:
            file.write(text.encode("utf-8", "replace")[:MAX_LOG])
    except OSError:
        return


def _kill_group(group: int) -> None:
    """Kill the session that a command was started in: all that is known of it where there is no /proc."""
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):  # nothing is left of it
        return


def kill_descendants() -> None:
    """Kill all processes below this one, until none is left."""
    for _ in range(_ROUNDS):
        pids = _descendants(os.getpid())
        if not pids:
            return
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.01)


def _descendants(root: int) -> list[int]:
    """Return the living processes below one, from /proc; without it, none."""
    children: dict[int, list[int]] = {}
    try:
        names = [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []
    for name in names:
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                state, parent = file.read().rpartition(b") ")[2].split()[:2]
        except OSError:
            continue
        if state != b"Z":
            children.setdefault(int(parent), []).append(int(name))
    found, waiting = [], [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found
