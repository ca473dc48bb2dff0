"""Recorded answers of a model: the recording directory, a model that records, and a model that replays."""

from __future__ import annotations

import difflib
import errno
import fcntl
import json
import os
import re
import stat
from contextlib import contextmanager, suppress

from planrun.errors import InvalidInput, InvalidPlan, RecordsLost
from planrun.llm.entries import (
    ENDINGS,
    MOST_BYTES,
    WORDS,
    Entry,
    cleaned,
    entry_in,
    form_of,
    key_of,
    masked,
    placed,
    settled,
    text_of,
    written,
)
from planrun.model.call import Answer, Repeat, Request
from planrun.model.keyshapes import find
from planrun.plan.yaml.file import NotRegular, read_script

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from planrun.llm.entries import Entry, Mask
    from planrun.model.call import Request
    from planrun.plan.problems import Problem
    from planrun.ports import Model

MOST = 9999  # entries of one recording
_NAME = re.compile(r"(\d{1,6})-.*\.yml\Z")
_PART = ".part"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class RecordingDirectory:
    """A folder that entries are added to, made when it is not there; raises RecordsLost when it cannot be used."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self._fd = _open(path)
            with self._locked():
                self._write(b"")  # a folder that cannot be written fails before anything is paid for
                os.unlink(_PART, dir_fd=self._fd)
        except (OSError, ValueError) as error:
            raise _lost(path, error) from None

    def add(self, entry: Entry, mask: Mask | None = None) -> str:
        """Write an entry under the next number and return the name of its file, on disk when it returns.

        `mask`: an entry that it would change as a whole is refused.

        Raises RecordsLost, ValueError for what no file can hold. A process that dies leaves no half of an entry.
        """
        try:
            with self._locked():
                last = max(
                    [int(found[1]) for name in os.listdir(self._fd) if (found := _NAME.match(name))],
                    default=0,
                )
                named = entry.but(number=last + 1)
                text = text_of(named)
                if mask and mask(text) != text:
                    raise ValueError("a secret shows when it is written line by line")
                data = text.encode("utf-8")
                _check(data, named)
                self._write(data)
                os.rename(_PART, named.name, src_dir_fd=self._fd, dst_dir_fd=self._fd)
                os.fsync(self._fd)
        except OSError as error:
            raise _lost(self.path, error) from None
        return named.name

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep out others who record into the same folder."""
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def _write(self, data: bytes) -> None:
        """Write a file that is no entry yet; an existing one is of a process that was killed."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with suppress(FileNotFoundError):
            os.unlink(_PART, dir_fd=self._fd)
        fd = os.open(_PART, flags, 0o666, dir_fd=self._fd)
        try:
            while data:
                data = data[os.write(fd, data) :]
            os.fsync(fd)
        finally:
            os.close(fd)

    def close(self) -> None:
        """Let go of the folder; it stays as it is."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _check(data: bytes, entry: Entry) -> None:
    """Raise ValueError when a file would not be read as what it was written for."""
    if len(data) > MOST_BYTES:
        raise ValueError(f"it takes more than {MOST_BYTES >> 20} MiB")
    try:
        back = entry_in(data, entry.name)
    except InvalidPlan as error:
        raise ValueError(f"it could not be read again: {error.problems[0].text}") from None
    said = (entry.key, entry.answer.text, list(entry.answer.content))
    if (back.key, back.answer.text, list(back.answer.content)) != said:
        raise ValueError("it would be read as something else")


def _open(path: str) -> int:
    """Open a folder, made with all that lead to it; raises OSError for a link in a relative path, or at the end."""
    if not path or "\0" in path:
        raise ValueError("this is no name of a folder")
    whole = os.path.normpath(path)
    above, _, last = whole.rpartition("/") if os.path.isabs(whole) else ("", "", "")
    parts = [last] if last else [part for part in whole.split("/") if part]
    if above:
        os.makedirs(above, exist_ok=True)
    fd = os.open((above or "/") if last else ".", _FOLDER)
    for part in parts:
        try:
            if part not in ("..", "."):
                os.mkdir(part, 0o777, dir_fd=fd)
        except FileExistsError:
            pass
        except OSError:
            os.close(fd)
            raise
        try:
            inner = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=fd)
        finally:
            os.close(fd)
        fd = inner
    return fd


def _lost(path: str, error: OSError | ValueError) -> RecordsLost:
    reason = getattr(error, "strerror", None) or str(error)
    if getattr(error, "errno", 0) in (errno.ELOOP, errno.ENOTDIR, errno.EEXIST):
        reason = "a part of its path is a link, or no folder"
    return RecordsLost(f"the recording cannot be written to {path}: {reason}")


def entries(path: str) -> list[Entry]:
    """Return the entries of a recording in order; raises InvalidInput, InvalidPlan with every problem of all files."""
    problems: list[Problem] = []
    sources: dict[str, bytes] = {}
    read = []
    for name in _names(path):
        shown = os.path.join(path, name)
        try:
            data = read_script(os.path.join(path, name))
        except NotRegular as kind:
            raise InvalidInput(f"cannot read the recording {shown}: it is {kind}") from None
        except (OSError, ValueError) as error:
            reason = "it is a link" if getattr(error, "errno", 0) == errno.ELOOP else ""
            reason = reason or getattr(error, "strerror", None) or str(error)
            raise InvalidInput(f"cannot read the recording {shown}: {reason}") from None
        try:
            entry = entry_in(data, shown, int(found[1]) if (found := _NAME.match(name)) else 0)
        except InvalidPlan as error:
            problems += error.problems
            sources |= error.sources
            continue
        read.append(entry)
    if problems:
        raise InvalidPlan(problems, sources=sources)
    return read


def _names(path: str) -> list[str]:
    """Return the names of the files of a recording in the order of their numbers."""
    try:
        if stat.S_ISLNK(os.lstat(path.rstrip("/") or "/").st_mode):
            raise InvalidInput(f"cannot read the recording in {path}: it is a link")
        names = [name for name in os.listdir(path) if name.endswith(".yml") and not name.startswith(".")]
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidInput(f"cannot read the recording in {path}: {reason}") from None
    if not names:
        raise InvalidInput(f"there is no recording in {path}: it holds no file whose name ends in .yml")
    if len(names) > MOST:
        raise InvalidInput(f"cannot read the recording in {path}: it has more than {MOST} entries")
    return sorted(
        names, key=lambda name: (int(found[1]) if (found := _NAME.match(name)) else MOST * 1000, name)
    )


_SHOWN = 12  # lines of a difference
_WIDTH = 120  # characters of one
_LINES = 4000  # of a request that are compared


def nearest_recording(request: Request, entries: Sequence[Entry]) -> str:
    """Return what is missing: one line, then how the nearest recorded request differs, as a unified diff."""
    asked = _lines(request)
    same = [entry for entry in entries if entry.request.purpose == request.purpose] or list(entries)
    nearest = max(same, key=lambda entry: _likeness(asked, _lines(entry.request)))
    shown = list(_difference(_lines(nearest.request), asked))
    more = [f"… {len(shown) - _SHOWN} more lines"] if len(shown) > _SHOWN else []
    head = f"the recording has no answer to this {request.purpose} request; "
    head += f"the nearest is {nearest.file}, which differs in {_places(nearest.request, request)}:"
    return "\n".join([head, *shown[:_SHOWN], *more])


def _lines(request: Request) -> list[str]:
    """Return a request line by line, what differs from run to run left out."""
    lines = [f"model: {request.model}", f"effort: {request.effort}", f"max_tokens: {request.max_tokens}"]
    for message in settled(request.messages):
        content = message["content"]
        text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, indent=1)
        lines += [f"{message['role']}:", *text.split("\n")]
    for text in request.system:
        lines += ["system:", *text.split("\n")]
    schema = "" if request.schema is None else json.dumps(request.schema, indent=1, ensure_ascii=False)
    return [*lines, "schema:", *schema.split("\n")][:_LINES]


def _likeness(left: list[str], right: list[str]) -> float:
    matcher = difflib.SequenceMatcher(None, left, right, autojunk=False)
    return matcher.quick_ratio()


def _difference(recorded: list[str], asked: list[str]) -> Iterator[str]:
    for line in list(difflib.unified_diff(recorded, asked, "recorded", "asked", n=1, lineterm=""))[2:]:
        yield _shown(line)


def _shown(line: str) -> str:
    """Return a line cut to size, with what could steer a terminal made visible."""
    line = "".join([char if char.isprintable() else repr(char)[1:-1] for char in line])
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…"


def _places(recorded: Request, asked: Request) -> str:
    """Return which parts of two requests differ."""
    parts = [
        name
        for name in ("model", "effort", "max_tokens", "system", "schema")
        if getattr(recorded, name) != getattr(asked, name)
    ]
    old, new = settled(recorded.messages), settled(asked.messages)
    parts += [
        f"messages[{at}]" for at in range(max(len(old), len(new))) if old[at : at + 1] != new[at : at + 1]
    ]
    return ", ".join(parts[:4])


class RecordingModel:
    """Asks another model and writes down what it answers, in a folder; raises RecordsLost when that cannot be used.

    What is known to be secret is masked, in what is asked as in what is handed on: a replay is to see the same. What
    looks like a credential besides is not recorded, and what was not recorded is not used: such an answer is
    `unrecorded`, and a question of that kind is not even asked.
    """

    def __init__(self, model: Model, folder: str, mask: Mask | None = None) -> None:
        self._model = model
        self._directory = RecordingDirectory(folder)
        self._mask = mask
        self._request: Request | None = None
        self._refusal: Answer | None = None

    @property
    def fd(self) -> int:
        """A descriptor that can be read when something came; -1 while there is no process."""
        return int(getattr(self._model, "fd", -1))

    def ask(self, request: Request) -> None:
        """Begin a call; see `planrun.ports.Model`."""
        self._request = request = masked(request, self._mask)
        places = list(
            _suspicious("the request", {"messages": list(request.messages), "system": list(request.system)})
        )
        if places:
            self._refusal = _unrecorded(f"nothing was asked: {places[0]}", "recording:secret")
        else:
            self._model.ask(request)

    def wait(self, timeout: float | None) -> Answer | None:
        """Return the answer once it is on disk; see `planrun.ports.Model`."""
        if self._refusal is not None:
            refusal, self._refusal = self._refusal, None
            return refusal
        answer = self._model.wait(timeout)
        if answer is None or answer.ending not in ENDINGS:
            return answer
        assert self._request is not None, "there was no question"
        return self._kept(self._request, _clean_answer(answer, self._mask))

    def repeats(self) -> list[Repeat]:
        """Return attempts in vain; see `planrun.ports.Model`."""
        return self._model.repeats()

    def stop(self) -> None:
        """End the call that is under way; what is stopped is not recorded."""
        if self._refusal is None:
            self._model.stop()

    def close(self) -> None:
        """Leave nothing running."""
        self._directory.close()
        self._model.close()

    def _kept(self, request: Request, answer: Answer) -> Answer:
        """Record an answer and return it, or why it is not to be used."""
        said = {name: getattr(answer, name) for name in WORDS}
        said |= {"text": form_of(answer.text)[1], "content": list(answer.content)}
        places = list(_suspicious("the answer", said))
        if places:
            return _unrecorded(places[0], "recording:secret", answer)
        stored = request.but(messages=tuple(placed(request.messages)), seconds=0.0, retries=0)
        try:
            self._directory.add(Entry(number=1, request=stored, answer=answer), self._mask)
        except RecordsLost as lost:
            return _unrecorded(str(lost), "recording:lost", answer)
        except ValueError as error:
            return _unrecorded(f"the answer cannot be recorded: {error}", "recording:form", answer)
        return answer


class ReplayModel:
    """Answers from the recording in a folder; raises InvalidInput, InvalidPlan for one that cannot be read.

    `served`: the keys of the requests that were answered before in the same run, so that a resumed run gets the
    next answer and not the first one again.
    """

    def __init__(self, folder: str, mask: Mask | None = None, served: Iterable[str] = ()) -> None:
        self._folder = folder
        self._mask = mask
        self._entries = entries(folder)
        self._left: dict[str, list[Entry]] = {}
        for entry in self._entries:
            self._left.setdefault(entry.key, []).append(entry)
        for key in served:
            del self._left.get(key, [])[:1]
        self._answer: Answer | None = None

    def ask(self, request: Request) -> None:
        """Look for the next answer to a request; see `planrun.ports.Model`."""
        request = masked(request, self._mask)
        found = self._left.get(key_of(request))
        if found:
            self._answer = found.pop(0).answer
        elif found is None:
            self._answer = _missing(nearest_recording(request, self._entries))
        else:
            times = sum(entry.key == key_of(request) for entry in self._entries)
            self._answer = _missing(
                f"the recording in {self._folder} answers this {request.purpose} request "
                f"{'once' if times == 1 else f'{times} times'}, and it is asked once more"
            )

    def knows(self, request: Request) -> bool:
        """Return whether the recording still has an answer to a request."""
        return bool(self._left.get(key_of(masked(request, self._mask))))

    def wait(self, timeout: float | None) -> Answer | None:  # noqa: ARG002
        """Return the answer at once; see `planrun.ports.Model`."""
        answer, self._answer = self._answer, None
        return answer

    def repeats(self) -> list[Repeat]:
        """Return none: a recorded answer needs one attempt."""
        return []

    def stop(self) -> None:
        """Have the call end as stopped; what was recorded is as it is."""
        if self._answer is not None:
            self._answer = Answer(ending="stopped", replayed=True, attempts=0)

    def close(self) -> None:
        """There is nothing to leave running."""


def _clean_answer(answer: Answer, mask: Mask | None) -> Answer:
    clean = {name: cleaned(vars(answer)[name], mask) for name in WORDS if vars(answer).get(name)}
    # First what its JSON says: that is what the file shows and a plan is made of, and a mask may break JSON.
    form, data = form_of(answer.text)
    if answer.content:
        clean["content"] = tuple(cleaned(list(answer.content), mask))
    return answer.but(text=cleaned(written(form, cleaned(data, mask)), mask), **clean)


def _suspicious(what: str, data: dict[str, Any]) -> Iterator[str]:
    """Yield where something stands that looks like a credential."""
    for place, text in _texts("", data):
        for line, kind in find(text):
            yield f"{what} holds what looks like {kind}: {place}, line {line}; nothing of it was recorded"


def _texts(place: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _texts(f"{place}[{number}]", item)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _texts(f"{place}.{name}" if place else name, item)


def _unrecorded(message: str, rule: str, answer: Answer | None = None) -> Answer:
    """Return what stands for an answer that is not used; what it cost counts."""
    if answer is None:
        return Answer(ending="unrecorded", message=message, rule=rule, attempts=0)
    return answer.but(ending="unrecorded", text="", content=(), message=message, rule=rule)


def _missing(message: str) -> Answer:
    return Answer(ending="missing", message=message, rule="recording:missing", attempts=0, replayed=True)
