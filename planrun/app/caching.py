"""Cached results of steps: looked up before a step starts, stored when it completed."""

from __future__ import annotations

import os

from planrun.actions.files import listing
from planrun.actions.keys import changed, difference, key_of, key_parts
from planrun.errors import EvaluationError, InvalidInput
from planrun.model.events import StepRestored
from planrun.model.record import Record
from planrun.plan.cache import folder
from planrun.records.rundir import HOME
from planrun.reports.facts import NO_RESULT
from planrun.sha256 import sha256
from planrun.store.entries import (
    MAX_SIZE,
    Damaged,
    Entry,
    Kept,
    Store,
    as_bytes,
    is_sound,
    place,
    prune,
    size,
)
from planrun.store.signing import LEAST, VARIABLE, is_signed, signature_of
from planrun.values import check_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from planrun.actions.files import After, Before, Seen
    from planrun.actions.keys import Parts
    from planrun.actions.prepare import Steps
    from planrun.clock import SystemClock
    from planrun.model.job import Outcome
    from planrun.model.plan import Step
    from planrun.model.state import RunState
    from planrun.settings import Settings
    from planrun.store.entries import AnyStore

_PATIENCE = 10.0  # seconds for one answer of a store at a URL
# It failed, was cancelled, could not be stored, or was pruned since; the store does not record which.
GONE = "no result of the last time is in the store"


class Lookup(Record):
    """A lookup without a result, for a step about to start: its key, and why it runs."""

    key: str
    why: str


def own_store() -> Store | None:
    """Return this user's store; None where the environment names no folder for caches."""
    plans = folder()
    return Store(os.path.join(os.path.dirname(plans), "store")) if plans else None


def shared_store(named: str, stopped: Callable[[], bool] | None = None, *, strict: bool = False) -> AnyStore:
    """Return the store at a folder or URL that several users share; raises InvalidInput for a URL that is wrong.

    `stopped`: whether a call that waits for a server shall end. `strict`: a call that fails raises RemoteError.
    """
    if "://" not in named:
        return Store(os.path.abspath(named), shared=True)
    from planrun.places.place import open_place  # few use a URL
    from planrun.store.remote import RemoteStore

    place = open_place(named, limit=_PATIENCE, stopped=stopped)
    place.require()
    return RemoteStore(place, strict=strict)


def signature_key() -> bytes:
    """Return the key that signs the entries of a shared store, b"" for none; raises InvalidInput for a short one."""
    if VARIABLE not in os.environ:
        return b""
    secret = os.environb[os.fsencode(VARIABLE)]
    if len(secret) < LEAST:
        raise InvalidInput(f"{VARIABLE} needs at least {LEAST} characters: openssl rand -hex 32 makes one")
    return secret


def cache_of(
    steps: Steps, settings: Settings, clock: SystemClock, shared: AnyStore | None = None
) -> StepCache:
    """Return the cache of a run: this user's store, and then the one that the caller names."""
    own = own_store()
    if shared is None and settings.cache_store:
        shared = shared_store(settings.cache_store)
    if own is None and shared and not isinstance(shared, Store):  # what arrives is kept before it is used
        own = Store(os.path.join(steps.place.workspace, HOME, "store"))
    secret = signature_key() if shared else b""
    return StepCache(
        steps, [store for store in (own, shared) if store], clock, used=settings.cache, secret=secret
    )


def refused_store() -> str:
    """Return why this user's store cannot be used, "" when it can."""
    store = own_store()
    return store.open() if store else "no folder for caches: set PLANRUN_CACHE_DIR, XDG_CACHE_HOME or HOME"


def max_size() -> int:
    """Return how many bytes this user's store may hold: PLANRUN_CACHE_MAX_SIZE, else 2 GiB."""
    return as_bytes(os.environ.get("PLANRUN_CACHE_MAX_SIZE", "")) or MAX_SIZE


class StepCache:
    """The results of one run's cached steps; lookups try the stores in order, and new results go to all."""

    def __init__(
        self, steps: Steps, stores: Sequence[AnyStore], clock: SystemClock, *, used: bool, secret: bytes = b""
    ) -> None:
        self._steps = steps
        self._stores = tuple(stores)
        self._secret = secret  # b"": entries of shared stores are not signed
        self._unsent: list[Entry] = []  # for a store at a URL: sent at the end, since no step waits for that
        self._clock = clock
        self._used = used  # False: no result is reused, and each is stored
        self._due: dict[str, Lookup] = {}
        self.has_kept = False
        steps.filing.on_end = self._keep

    def find(self, step: Step, state: RunState) -> dict[str, Any] | None:
        """Restore an earlier result of a step; returns the fields of StepRestored, None when there is none."""
        try:
            known, parts = self._parts(step, state)
        except EvaluationError:  # `prepare` will report it
            return None
        key = key_of(parts)
        if not self._used:
            why = "--no-cache"
        else:
            asked = state.resumed[-1].retry if state.resumed else ()
            why = "a retry was requested" if step.id in asked else ""
        if not why:
            try:
                entry, why = self._look_up(step, key, state, parts)
                if entry is not None:
                    missing, files = self._rows(entry, known)
                    if missing:
                        workspace = self._steps.place.workspace
                        place(
                            missing, self._stores, workspace, os.path.join(workspace, ".planrun", "restoring")
                        )
                    for store in self._stores:
                        store.used(key)
                    own = self._own
                    if own and self._remote and own.read(entry.key) is None:
                        self.has_kept = self._write(own, entry) or self.has_kept
                    self._remember(state, step, parts)
                    return {
                        "key": key,
                        "source": entry.run,
                        "outputs": entry.outputs,
                        "files": files,
                        **self._reports(step, entry),
                    }
            except Damaged as damage:
                why = f"in the store {damage}"
                for store in self._stores:
                    store.drop(key)
            except OSError as error:
                why = f"its files cannot be put back: {error.strerror}"
        self._remember(state, step, parts)
        self._due[step.id] = Lookup(key=key, why=why)
        return None

    def _parts(self, step: Step, state: RunState) -> tuple[Before, Parts]:
        """Return the files of a step and what it depends on; raises EvaluationError."""
        known = self._steps.filing.look(step, self._steps.scope(state, step))
        return known, key_parts(self._steps, step, state, known)

    def peek(self, step: Step, state: RunState, *, complete: bool) -> tuple[str, StepRestored | None, str]:
        """Return a step's key, its result where there is one, else why not; changes neither files nor store.

        `complete`: whether what it takes from other steps is in `state`; without that only the rest is compared, and
        "" means that nothing of it differs. Raises EvaluationError.
        """
        known, parts = self._parts(step, state)
        key = key_of(parts)
        if not complete:
            last = self._recalled(state, step)
            return key, None, NO_RESULT if last is None else difference(_own(last), _own(parts))
        try:
            entry, why = self._look_up(step, key, state, parts)
            if entry is None:
                return key, None, why
            missing, rows = self._rows(entry, known)
        except Damaged as damage:
            return key, None, f"in the store {damage}"
        if not all(any(store.has(each.sha256, each.bytes) for store in self._stores) for each in missing):
            return key, None, "its files are not in the store any more"
        found = StepRestored(
            at=entry.at, step=step.id, key=key, source=entry.run, outputs=entry.outputs, files=rows
        )
        return key, found, ""

    def _look_up(self, step: Step, key: str, state: RunState, parts: Parts) -> tuple[Entry | None, str]:
        damage: Damaged | None = None
        refused = ""
        for store in self._stores:
            try:
                entry = store.read(key)
            except Damaged as error:
                damage = error
                continue
            if (
                entry is not None
                and bool(store.shared and self._secret)
                and not is_signed(entry, self._secret)
            ):
                refused = f"the result in {store.path} has no valid signature"
            elif entry is not None:
                self._check(step, entry)
                return entry, ""
        if damage:
            raise damage
        if refused:
            return None, refused
        last = self._recalled(state, step)
        return None, NO_RESULT if last is None else difference(last, parts) or GONE

    def _check(self, step: Step, entry: Entry) -> None:
        """Raise Damaged for an entry that no run of this step can have made."""
        if entry.outputs.keys() != step.outputs.keys():
            raise Damaged("the entry has other outputs")
        if any(check_value(schema, entry.outputs[name]) for name, schema in step.outputs.items()):
            raise Damaged("an output has another type")
        if step.reports and entry.cases is None:
            raise Damaged("the entry has no test cases")

    def _rows(self, entry: Entry, known: Before) -> tuple[list[Kept], tuple[dict[str, Any], ...]]:
        """Return the files of an entry that have to be put back, and the rows of all of them; raises Damaged."""
        for each in entry.files:
            if not is_sound(each.path) or not known.takes(each.path, failed=False):
                raise Damaged("the entry names a file that the step does not make")
        missing = [each for each in entry.files if not _is_there(known.made.get(each.path), each)]
        gone = {each.path for each in missing}
        rows = [
            {
                "path": each.path,
                "op": "restored" if each.path in gone else "unchanged",
                "sha256": each.sha256,
                "bytes": each.bytes,
            }
            for each in entry.files
        ]
        return missing, listing(rows)

    def _recalled(self, state: RunState, step: Step) -> Parts | None:
        """Return what a step depended on the last time; None where that is not known."""
        return self._own.recall(self._name(state, step)) if self._own else None

    def _reports(self, step: Step, entry: Entry) -> dict[str, Any]:
        """Return the test cases of an entry, as a field of StepRestored; raises Damaged."""
        if not step.reports or entry.cases is None:
            return {}
        try:
            found = self._steps.reported().restored(step, entry.cases)
        except ValueError:
            raise Damaged("the entry has no sound test cases") from None
        return {"reports": found} if found else {}

    def _name(self, state: RunState, step: Step) -> str:
        named = f"{state.plan.name}\0{step.id}"
        return str(sha256(named.encode("utf-8", "surrogatepass")).hexdigest())

    def _remember(self, state: RunState, step: Step, parts: Parts) -> None:
        if self._own:
            self._own.remember(self._name(state, step), parts)

    @property
    def _own(self) -> Store | None:
        """The first store, which is in a folder: this user's where there is one."""
        first = self._stores[0] if self._stores else None
        return first if isinstance(first, Store) else None

    @property
    def _remote(self) -> AnyStore | None:
        """The store at a URL."""
        last = self._stores[-1] if self._stores else None
        return last if last and last.shared and not isinstance(last, Store) else None

    def finish(self, *, sends: bool) -> str:
        """Send new results to a store at a URL, and delete the surplus of this user's; return what was in the way."""
        remote = self._remote
        if remote and sends:
            for entry in self._unsent:
                self._send(remote, entry)
        if self.has_kept and self._stores and not self._stores[0].shared:
            most = max_size()
            if size(self._stores[0]) > most:
                prune(self._stores[0], most)
        return f"{remote.open()}; steps ran without this cache" if remote and remote.open() else ""

    def _send(self, remote: AnyStore, entry: Entry) -> bool:
        """Send a result from this user's store: the files of the workspace may have changed."""
        own = self._own
        assert own is not None
        for each in entry.files:
            fd = own.opened(each.sha256)
            if fd < 0:  # pruned by another run
                return False
            try:
                if not remote.add(fd, each.sha256, each.bytes):
                    return False
            finally:
                os.close(fd)
        return remote.write(self._signed(entry))

    def _signed(self, entry: Entry) -> Entry:
        return entry.but(signature=signature_of(entry, self._secret)) if self._secret else entry

    # Storing results.

    def _keep(self, step: Step, known: Before, found: After, outcome: Outcome) -> Outcome:
        due = self._due.pop(step.id, None)
        if step.cache is None:
            return outcome
        if due is None:  # a later attempt
            because = "it was tried more than once"
            record: dict[str, Any] = {"kept": False, "because": because}
            return outcome.but(cache=record) if outcome.status == "completed" else outcome
        record = {"key": due.key, "why": due.why}
        if outcome.status == "completed":
            because = self._kept(step, due.key, known, found, outcome)
            record |= {"kept": not because, **({"because": because} if because else {})}
        return outcome.but(cache=record)

    def _kept(self, step: Step, key: str, known: Before, found: After, outcome: Outcome) -> str:
        """Keep a result; returns why that was not possible."""
        try:
            other = next(iter(changed(known.read, self._steps.filing.again(known))), "")
        except EvaluationError as error:
            return str(error)
        if other:
            return f"input {other} changed while it ran"
        masks = self._steps.place.masks
        entry = Entry(
            key=key,
            run=self._steps.place.run,
            step=step.id,
            at=self._clock.stamp(),
            seconds=round(outcome.duration, 3),
            outputs=masks.mask_value(outcome.outputs) if masks else outcome.outputs,
            files=tuple([_kept(path, seen) for path, seen in found.made.items()]),
        )
        if step.reports:
            entry = entry.but(cases=self._cases(outcome))
        if masks and (path := self._with_secret(found.made)):
            return f"{path} contains the value of a secret"
        remote = self._remote
        folders = [store for store in self._stores if store is not remote]
        results = [self._write(store, self._signed(entry) if store.shared else entry) for store in folders]
        self.has_kept = self.has_kept or any(results)
        if remote and any(results):
            self._unsent.append(entry)
        if any(results):
            return ""
        return next(filter(None, [store.open() for store in self._stores]), "the store cannot be written")

    def _cases(self, outcome: Outcome) -> str | None:
        """Return the test cases of an attempt as its run keeps them, masked; None where they cannot be read."""
        kept = outcome.reports.get("junit", {}).get("file", "")
        if not kept:
            return ""
        try:
            with open(os.path.join(self._steps.place.rundir, kept), encoding="ascii") as file:
                return file.read()
        except OSError:
            return None

    def _write(self, store: AnyStore, entry: Entry) -> bool:
        if store.open():
            return False
        workspace = self._steps.place.workspace
        return all(_add(store, workspace, each) for each in entry.files) and store.write(entry)

    def _with_secret(self, made: Mapping[str, Seen]) -> str:
        """Return a file that contains the value of a secret, "" when none does: the store never holds such bytes."""
        masks = self._steps.place.masks
        assert masks is not None
        for path, seen in made.items():
            if seen.link:
                continue
            stream, plain, masked = masks.stream(), sha256(), sha256()
            with open(os.path.join(self._steps.place.workspace, path), "rb") as file:
                while block := file.read(1 << 20):
                    plain.update(block)
                    masked.update(stream.feed(block))
            masked.update(stream.finish())
            if plain.digest() != masked.digest():
                return path
        return ""


def _own(parts: Sequence[tuple[str, str]]) -> Parts:
    """Return the parts of a key that are not about what other steps made."""
    return [(name, value) for name, value in parts if not name.startswith(("value ", "files "))]


def _is_there(seen: Seen | None, kept: Kept) -> bool:
    same = (kept.sha256, kept.link, bool(kept.mode & 0o100))
    return seen is not None and seen.same == same


def _kept(path: str, seen: Seen) -> Kept:
    link = {"link": True} if seen.link else {}
    return Kept(path=path, sha256=seen.sha256, bytes=seen.bytes, mode=seen.mode, **link)


def _add(store: AnyStore, workspace: str, file: Kept) -> bool:
    path = os.path.join(workspace, file.path)
    try:
        if file.link:
            source, target = os.pipe()
            os.write(target, os.fsencode(os.readlink(path)))
            os.close(target)
        else:
            source = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return store.add(source, file.sha256, file.bytes)
    finally:
        os.close(source)
