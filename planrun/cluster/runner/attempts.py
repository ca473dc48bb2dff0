"""Attempts on a worker without the workspace: their files come before they start, and go back after they ended."""

from __future__ import annotations

import base64
import os
import re
import shutil

from planrun.actions.files import patterns_of
from planrun.cluster.files.contents import Contents
from planrun.cluster.files.entries import LARGE, LINK, PIECE, named
from planrun.cluster.files.lanes import CannotPlace, Lane, Made
from planrun.cluster.files.stored import StoreThread
from planrun.model.job import PREFIX, Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from planrun.cluster.files.entries import Entry

_UNSEEN = 1 << 20  # bytes of products that planrun has not taken yet
_NAMED = 2000  # undeclared files whose names are sent


class Attempt:
    """One attempt: what is to be done before its process and after it."""

    def __init__(self, said: Mapping[str, Any], workspace: str, lane: Lane) -> None:
        files = said["files"]
        self.token: str = said["start"]
        self.job: Mapping[str, Any] = said["job"]
        self.own: Mapping[str, Entry] = files["own"]
        self.lane = lane
        self.outcome: Outcome | None = None
        self.work: Iterator[Any] | None = None
        self.made = Made()
        self._wanted = [patterns_of(texts) for texts in files["declared"]]
        self._results: tuple[str, ...] = tuple(files["results"])
        self._workspace = workspace
        self._text = re.compile(rf"(?<![\w./-]){re.escape(workspace)}(?![\w.-])")

    def is_declared(self, path: str) -> bool:
        """Return whether a file goes back to planrun."""
        if path.startswith(".planrun/"):
            return any(path == each or path.startswith(f"{each}/") for each in self._results)
        return any(each.takes(path) for each in self._wanted)

    def placed(self, text: str) -> str:
        """Return a text in which the folder of the attempt stands for planrun's workspace."""
        return self._text.sub(lambda _: self.lane.root, text) if self._workspace in text else text

    def here(self) -> dict[str, Any]:
        """Return the data of the job with paths of this machine."""
        job = dict(self.job)
        job["argv"] = [self.placed(word) for word in job["argv"]]
        job["env"] = {name: self.placed(value) for name, value in job["env"].items()}
        for name in ("cwd", "private"):
            if job.get(name):
                job[name] = self.placed(job[name])
        job["scripts"] = [
            {**each, "source": self.placed(each["source"]), "file": self.placed(each["file"])}
            for each in job["scripts"]
        ]
        for folder in (job.get("private"), os.path.dirname(job["env"].get("PLANRUN_OUTPUT", ""))):
            if folder:
                os.makedirs(folder, exist_ok=True)
        return job


class Attempts:
    """The attempts of one runner whose files are on their way; `say` sends a mapping to planrun's client.

    `is_secret`: whether a file has the value of a secret, so that it must not get into a store.
    """

    def __init__(
        self,
        folder: str,
        opening: Mapping[str, Any],
        say: Callable[[Mapping[str, Any]], None],
        is_secret: Callable[[str], bool],
    ) -> None:
        self._folder = folder
        self._workspace: str = opening["workspace"]
        self._say = say
        self._is_secret = is_secret
        self._store = StoreThread(opening["store"]) if opening["store"] else None
        self._tried: set[str] = set()  # contents that were fetched after planrun had stored them
        self._stored: dict[str, bool] = {}  # contents that were sent to the store, and whether that went well
        self._contents = Contents(os.path.join(folder, "contents"))
        self._tree: dict[str, Entry] = {}
        self._lanes: list[Lane] = []
        self._free: list[Lane] = []
        self._count = 0
        self._preparing: dict[str, Attempt] = {}
        self._running: dict[str, Attempt] = {}
        self._ending: dict[str, Attempt] = {}
        self._resending: list[Iterator[bool]] = []
        self._unseen = 0
        self._has_work = False

    @property
    def is_busy(self) -> bool:
        """Whether there is work to go on with at once, and not only what planrun has to send or take."""
        return self._has_work

    def change(self, changes: Mapping[str, Entry | None]) -> None:
        """Take what changed in the tree."""
        for path, entry in changes.items():
            if entry is None:
                self._tree.pop(path, None)
            else:
                self._tree[path] = entry
        for lane in self._lanes:
            lane.stale.update(dict.fromkeys(changes))

    def begin(self, said: Mapping[str, Any]) -> None:
        """Take an attempt, whose files are to be brought first."""
        if self._free:
            lane = self._free.pop()
        else:
            self._count += 1
            lane = Lane(os.path.join(self._folder, f"lane{self._count}", "workspace"), self._contents)
            lane.stale.update(dict.fromkeys(self._tree))
            self._lanes.append(lane)
        attempt = self._preparing[said["start"]] = Attempt(said, self._workspace, lane)
        attempt.work = lane.prepare(self._tree, attempt.own)

    def content(self, said: Mapping[str, Any]) -> None:
        """Take a piece of a content, or why there is none."""
        digest = said["content"]
        if "gone" in said:
            self._contents.fail(digest, said["gone"])
        elif "stored" in said:
            self._tried.add(digest)
            assert self._store is not None
            self._store.ask("fetch", digest, self._contents.path(digest), said["stored"])
        else:
            data = base64.b64decode(said["data"])
            self._contents.take(digest, data, number=said["number"], is_last=said["last"])

    def kept(self, size: int) -> None:
        """Take note of bytes of products that planrun has."""
        self._unseen -= size

    def ready(self) -> list[tuple[Attempt, str]]:
        """Go on bringing files; returns the attempts whose files are there, or why they cannot be."""
        found: list[tuple[Attempt, str]] = []
        self._has_work = False
        for token, attempt in list(self._preparing.items()):
            assert attempt.work is not None
            try:
                self._has_work |= not next(attempt.work)
            except StopIteration:
                del self._preparing[token]
                self._running[token] = attempt
                found.append((attempt, ""))
            except CannotPlace as error:
                del self._preparing[token]
                self._discard(attempt.lane)
                found.append((attempt, str(error)))
        due = self._contents.due()
        store = self._store
        wanted = []
        for digest, size in due:
            if store and size >= LARGE and digest not in self._tried:
                store.ask("fetch", digest, self._contents.path(digest), size)
            else:
                wanted.append(digest)
        while store and not store.results.empty():
            verb, digest, went = store.results.get()
            if verb == "send":
                self._stored[digest] = went
            elif went:
                self._contents.arrived(digest)
            elif digest in self._tried:
                self._say({"want": [[digest, self._contents.number(digest)]], "direct": True})
            else:
                wanted.append(digest)
        if wanted:
            self._say({"want": [[digest, self._contents.number(digest)] for digest in wanted]})
        return found

    def withdraw(self, token: str) -> bool:
        """Drop an attempt that has not started; returns whether there was one."""
        attempt = self._preparing.pop(token, None)
        if attempt is None:
            return False
        self._discard(attempt.lane)  # some of its files may be new and others old
        return True

    @property
    def preparing(self) -> tuple[str, ...]:
        """The attempts that have not started."""
        return tuple(self._preparing)

    def ended(self, token: str, outcome: Outcome) -> bool:
        """Take the outcome of an attempt, whose products are to be sent; returns whether it has files."""
        attempt = self._running.pop(token, None)
        if attempt is None:
            return False
        attempt.outcome = outcome
        attempt.work = self._return(attempt)
        self._ending[token] = attempt
        return True

    def finished(self) -> list[Attempt]:
        """Go on sending products; returns the attempts whose products are sent."""
        found = []
        for sending in list(self._resending):
            is_waiting = next(sending, None)
            if is_waiting is None:
                self._resending.remove(sending)
            self._has_work |= is_waiting is False
        for token, attempt in list(self._ending.items()):
            assert attempt.work is not None
            is_waiting = next(attempt.work, None)
            if is_waiting is None:
                del self._ending[token]
                self._free.append(attempt.lane)
                found.append(attempt)
            else:
                self._has_work |= not is_waiting
        return found

    def _return(self, attempt: Attempt) -> Iterator[bool]:
        """Find what an attempt made, and send it; yields whether it waits for planrun."""
        for made in attempt.lane.collect(attempt.is_declared):
            attempt.made = made
            yield False
        attempt.lane.clear_folders()
        sizes = {entry[0]: entry[1] for _, entry in attempt.made.rows if entry[2] != LINK}
        for digest, size in sizes.items():
            path = self._contents.path(digest)
            if self._store and size >= LARGE and not self._is_secret(path):
                if digest not in self._stored:
                    self._store.ask("send", digest, path, size)
                while digest not in self._stored:
                    yield True
                if self._stored[digest]:
                    self._say({"piece": attempt.token, "digest": digest, "stored": size})
                    continue
            yield from self._send(attempt.token, digest)

    def _send(self, token: str, digest: str) -> Iterator[bool]:
        """Send a content over the connection; yields whether it waits for planrun."""
        with open(self._contents.path(digest), "rb", buffering=0) as file:
            is_last = False
            while not is_last:
                while self._unseen > _UNSEEN:
                    yield True
                data = file.read(PIECE)
                is_last = len(data) < PIECE
                self._unseen += len(data)
                piece = base64.b64encode(data).decode("ascii")
                self._say({"piece": token, "digest": digest, "data": piece, "last": is_last})
                yield False

    def resend(self, said: Mapping[str, Any]) -> None:
        """Send a product again that planrun does not find in the store."""
        self._resending.append(self._send(said["resend"], said["digest"]))

    def _discard(self, lane: Lane) -> None:
        self._lanes.remove(lane)
        shutil.rmtree(os.path.dirname(lane.root), ignore_errors=True)


def report(made: Made) -> dict[str, Any]:
    """Return what an attempt made as plain data."""
    undeclared = [
        path
        for path in made.undeclared
        if not any(part == ".planrun" or part.startswith(PREFIX) for part in path.split("/"))
    ]
    return {
        "made": [[path, list(entry)] for path, entry in made.rows],
        "deleted": made.deleted,
        "undeclared": undeclared[:_NAMED],
        "left": named(undeclared),
        "unreadable": named(made.unreadable),
    }
