"""Runs steps on the machine of a Dask worker, by planrun's local executor, as long as planrun is there.

It ends its steps when its pipe ends (the Dask worker died, or the connection to planrun's client broke), when its lease
has run out, and on a signal. Where planrun and the worker share the workspace, its file in the folder of the session
exists as long as a step of it may run.
"""

from __future__ import annotations

import base64
import contextlib
import os
import shutil
import tempfile
import time

from planrun.cluster import wire
from planrun.executors.local import ExecutorOptions, LocalExecutor
from planrun.executors.mark import Marks, Owner
from planrun.executors.wait import SignalInbox
from planrun.model.job import Outcome
from planrun.secrets.masker import Masker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, Literal

    from planrun.cluster.files.lanes import Made
    from planrun.cluster.runner.attempts import Attempts
    from planrun.model.events import Event
    from planrun.model.job import Job
    from planrun.secrets.masker import MaskedStream

_PIECE = 1 << 16  # bytes of a log that are sent at once
_UNSEEN = 1 << 19  # bytes of logs that planrun has not taken yet; more waits in the files of the logs
_TICK = 0.05  # seconds between two looks at growing logs
_BEAT = 1.0  # seconds between two signs of life
_CHUNK = 1 << 16
_PERSONAL = ("HOME", "USER", "LOGNAME", "TMPDIR")


def now() -> float:
    """Seconds of a clock that goes on while the machine is suspended."""
    clock: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(clock)


def main(_words: Sequence[str]) -> int:
    """Read the opening, run steps until the end, and leave nothing behind."""
    data = b""
    while not data.endswith(b"\n"):
        piece = os.read(0, _CHUNK)
        if not piece:
            return 0
        data += piece
    opening = next(wire.Lines().feed(data))
    why = "its files are sent" if opening["sends"] else _refusal(opening)
    try:
        with SignalInbox() as inbox, contextlib.closing(Runner(opening, inbox, apart=why)) as runner:
            runner.serve()
    finally:
        if not why:
            _unlink(_file_of(opening))  # no step of it is left
    return 0


def _refusal(opening: Mapping[str, Any]) -> str:
    """Say why this machine does not share the workspace; empty when it does."""
    folder = opening["folder"]
    try:
        with open(os.path.join(folder, "marker"), encoding="ascii") as file:
            found = file.read()
    except OSError as error:
        return f"it cannot read {folder}: {error.strerror}; the workspace must be a shared folder at the same path"
    if os.stat(folder).st_uid != os.geteuid():
        return "it runs as another user; workers must run as the user of planrun"
    if found != opening["marker"]:
        return f"{folder} is another folder there; the workspace must be a shared folder at the same path"
    try:
        os.close(os.open(_file_of(opening), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError as error:
        return f"it cannot write into {folder}: {error.strerror}; workers must run as the user of planrun"
    return ""


def _file_of(opening: Mapping[str, Any]) -> str:
    return os.path.join(opening["folder"], f"runner-{opening['runner']}")


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:  # planrun has removed the folder
        return


class StepMasks:
    """Masks the secrets of the steps that were started here; `planrun.ports.Masks` for logs."""

    def __init__(self) -> None:
        self._secrets: dict[str, str] = {}
        self._masker = Masker({})

    def learn(self, secrets: Mapping[str, str]) -> None:
        """Mask these, too."""
        if any(self._secrets.get(name) != value for name, value in secrets.items()):
            self._secrets |= secrets
            self._masker = Masker(self._secrets)

    def stream(self) -> MaskedStream:
        """Return a stream for the output of one attempt."""
        return self._masker.stream()

    def mask_text(self, text: str) -> str:
        """Return a text masked."""
        return self._masker.mask_text(text)

    def mask_value(self, value: Any) -> Any:
        """Return plain data masked throughout."""
        return self._masker.mask_value(value)

    def mask_event(self, event: Event) -> Event:
        """Return an event as it is: none is made here."""
        return event


class _Sending:
    """The log of one attempt on its way to planrun, and its outcome behind it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.sent = 0
        self.outcome: Outcome | None = None  # None: it runs
        self.made: Made | None = None  # of an attempt without the workspace
        self.asleep_until = 0.0


class Runner:
    """Speaks with planrun's client through the Dask worker, and runs what it is given."""

    def __init__(self, opening: Mapping[str, Any], inbox: SignalInbox, *, apart: str) -> None:
        self._inbox = inbox
        self._opening = opening
        self._common: dict[str, str] = opening["env"]
        self._folder = tempfile.mkdtemp(prefix="planrun-", dir=opening["scratch"])
        self._masks = StepMasks() if opening["masked"] else None
        if opening["masked"]:
            from planrun.executors.hardening import harden  # loads a library

            harden(())
        owner = Owner(
            run=opening["run"],
            workspace=self._folder if apart else opening["workspace"],
            listing=self._folder + "/placed"
            if apart
            else os.path.join(opening["folder"], f"placed-{opening['runner']}"),
        )
        self._executor = LocalExecutor(
            inbox=inbox,
            logs=os.path.join(self._folder, "logs"),
            masks=self._masks,
            # Without marks it would be told from other runners of this run by nothing, and end their steps.
            owner=owner if Marks(owner.workspace).works else None,
            options=ExecutorOptions(always_shell=opening["always_shell"]),
        )
        self._executor.listen(0)
        os.set_blocking(0, False)
        os.set_blocking(1, False)
        self._lines = wire.Lines()
        self._unsent = bytearray()
        self._unseen = 0
        self._sending: dict[str, _Sending] = {}
        self._began: set[str] = set()
        self._span: float = opening["lease"]
        self._lease = now() + self._span
        self._next_beat = 0.0
        self._ended = False
        self._attempts: Attempts | None = None  # None: all files are in a folder that planrun shares
        self._say({"opened": {"pid": os.getpid(), "host": os.uname().nodename, "apart": apart}})

    def serve(self) -> None:
        """Run until there is no planrun any more."""
        while not self._ended:
            for job, outcome in self._executor.wait(self._pause()):
                if not (self._attempts and self._attempts.ended(job.step, outcome)):
                    self._sending[job.step].outcome = outcome
            self._listen()
            if self._attempts:
                attempts = self._attempts
                for attempt, why in attempts.ready():
                    if why:
                        failed = Outcome(status="failed", reason="spawn", message=why, passing=True)
                        self._sending[attempt.token].outcome = failed
                        continue
                    common = {name: attempt.placed(value) for name, value in self._common.items()}
                    self._run(attempt.token, attempt.here(), common)
                for attempt in attempts.finished():
                    sending = self._sending[attempt.token]
                    sending.outcome, sending.made = attempt.outcome, attempt.made
            if self._executor.lost is not None or self._inbox.take() or now() >= self._lease:
                return
            if now() >= self._next_beat:
                self._next_beat = now() + _BEAT
                self._say({"beat": now()})
            for token in list(self._sending):
                self._follow(token)
            self._flush()

    def close(self) -> None:
        """End every step."""
        self._executor.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _pause(self) -> float:
        """Seconds that may pass until something is to be done."""
        if self._unsent:
            return 0.005
        if self._attempts and self._attempts.is_busy:
            return 0.0
        due: float = min(self._next_beat, self._lease) - now()
        return max(0.0, min(due, _TICK) if self._sending else due)

    def _listen(self) -> None:
        while not self._ended:
            try:
                data = os.read(0, _CHUNK)
            except BlockingIOError:
                return
            self._ended = not data
            for said in self._lines.feed(data):
                self._obey(said)

    def _obey(self, said: dict[str, Any]) -> None:
        if "start" in said:
            self._start(said)
        elif "tree" in said:
            self._files().change(said["tree"])
        elif "content" in said:
            self._files().content(said)
        elif "kept" in said:
            self._files().kept(said["kept"])
        elif "resend" in said:
            self._files().resend(said)
        elif "taken" in said:
            self._unseen -= said["taken"]
        elif "lease" in said:
            self._lease = max(self._lease, said["lease"] + self._span)
        elif "stop" in said:
            self._withdraw((said["stop"],), said["reason"])
            self._executor.stop(said["stop"], said["reason"])
        else:  # signal, kill
            self._withdraw(self._attempts.preparing if self._attempts else (), "cancelled")
            if "signal" in said:
                self._executor.signal_all(said["signal"])
            else:
                self._executor.kill_all()

    def _start(self, said: Mapping[str, Any]) -> None:
        token = said["start"]
        if token in self._began or now() >= self._lease:  # handed out once, and never too late
            return
        self._began.add(token)
        if self._masks:
            self._masks.learn(said["secrets"])
        self._sending[token] = _Sending(os.path.join(self._folder, "logs", f"{token}.log"))
        if "files" in said:
            self._files().begin(said)
        else:
            self._run(token, said["job"], self._common)

    def _run(self, token: str, data: Mapping[str, Any], common: Mapping[str, str]) -> None:
        job: Job = wire.job_of(data, common, self._sending[token].path, token)
        self._executor.start(job)

    def _files(self) -> Attempts:
        if self._attempts is None:
            from planrun.cluster.runner.attempts import Attempts  # not with a shared folder

            self._attempts = Attempts(self._folder, self._opening, self._say, self._is_secret)
            common = self._common
            kept = {name: value for name, value in common.items() if name not in _PERSONAL}
            self._common = kept | {
                name: os.environ[name] for name in _PERSONAL if name in common and name in os.environ
            }
        return self._attempts

    def _is_secret(self, path: str) -> bool:
        """Return whether a file has the value of a secret of a step that was started here."""
        from planrun.cluster.files.secrecy import has_secret  # only where there is a store

        return self._masks is not None and has_secret(self._masks, path)

    def _withdraw(self, tokens: Iterable[str], reason: str) -> None:
        """End attempts whose files have not come yet."""
        for token in tokens:
            if self._attempts and self._attempts.withdraw(token):
                status: Literal["failed", "cancelled"] = "failed" if reason == "timeout" else "cancelled"
                self._sending[token].outcome = Outcome(
                    status=status, reason=reason, message="it had not started"
                )

    def _follow(self, token: str) -> None:
        """Send what its log has that planrun can take, and its outcome when all of the log is sent."""
        sending = self._sending[token]
        if sending.outcome is None and sending.asleep_until > now():
            return
        sending.asleep_until = now() + _TICK
        while self._unseen < _UNSEEN:
            data = self._read(token, sending)
            if not data:
                break
            sending.sent += len(data)
            self._unseen += len(data)
            self._say({"log": token, "data": base64.b64encode(data).decode("ascii")})
        else:
            return
        if sending.outcome is not None:
            files = {}
            if sending.made is not None:
                from planrun.cluster.runner.attempts import report

                files = {"files": report(sending.made)}
            self._say({"end": token, "outcome": wire.outcome_data(sending.outcome), **files})
            del self._sending[token]
            if sending.sent:
                _unlink(sending.path)

    def _read(self, token: str, sending: _Sending) -> bytes:
        if sending.outcome is None:
            return self._executor.output(token, sending.sent, _PIECE) or b""
        if not sending.outcome.log_bytes:
            return b""
        with open(sending.path, "rb", buffering=0) as file:
            file.seek(sending.sent)
            return file.read(_PIECE)

    def _say(self, said: Mapping[str, Any]) -> None:
        self._unsent += wire.line(said)
        self._flush()

    def _flush(self) -> None:
        try:
            while self._unsent:
                del self._unsent[: os.write(1, self._unsent)]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._ended = True
            self._unsent.clear()
