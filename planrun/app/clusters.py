"""The cluster of a run: connected and checked before anything runs, and the executor that uses it."""

from __future__ import annotations

import importlib.util
import os
import platform
from functools import partial

from planrun import cluster
from planrun.actions.files import MADE, matching, patterns_of
from planrun.cluster import folder
from planrun.cluster.addresses import scheduler_address
from planrun.cluster.executor import ClusterExecutor, RemoteContext
from planrun.cluster.files.moving import Declared, Moving, Sources
from planrun.cluster.files.secrecy import has_secret
from planrun.cluster.files.tree import Tree
from planrun.cluster.process import ClientProcess
from planrun.errors import EvaluationError, Interrupted, InvalidInput, RecordsLost
from planrun.model.lifecycle import ENDED
from planrun.places.addresses import masked
from planrun.records import rundir as records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any, Protocol

    from planrun.actions.prepare import Steps
    from planrun.clock import SystemClock
    from planrun.cluster.executor import LocalPart
    from planrun.executors.wait import SignalInbox
    from planrun.model.plan import Plan, Step, Text
    from planrun.model.state import RunState
    from planrun.ports import Masks
    from planrun.settings import Settings

    class Host(Protocol):
        """What a cluster asks of the session of its run."""

        settings: Settings
        workspace: str
        clock: SystemClock
        inbox: SignalInbox

        @property
        def masks(self) -> Masks | None:
            """What redacts everything that is written."""

        def inherited(self, plan: Plan) -> dict[str, str]:
            """Return the environment that steps inherit."""


MOST = 1 << 30
"""Bytes of a workspace that are sent over the connections to workers; more needs a store."""


def moving_of(steps: Steps, state: RunState, folder: str, *, has_store: bool) -> Moving:
    """Return the files of a run; raises InvalidInput when the workspace cannot be read or is too large."""
    place = steps.place
    masks = place.masks if has_store else None
    tree = Tree(place.workspace, place.hidden, partial(has_secret, masks) if masks else None)
    known = _Known(steps, state)
    try:
        tree.scan()
        tree.name(known.from_before())
    except OSError as error:
        raise InvalidInput(
            f"the workspace cannot be sent to workers: {error.filename}: {error.strerror}"
        ) from None
    if tree.bytes > MOST and not has_store:
        raise InvalidInput(
            f"the workspace has {tree.bytes / (1 << 30):.1f} GiB, and at most {MOST >> 30} GiB are sent over the "
            f"connections to workers: have them share the folder, or name a store by --cluster-store"
        )
    sources = Sources(declared=known.declared, named=known.restored, reader=known.reader)
    return Moving(tree, place.workspace, folder, sources)


class _Known:
    """What the plan and the state of a run say of files."""

    def __init__(self, steps: Steps, state: RunState) -> None:
        self._steps = steps
        self._state = state
        self._seen: set[str] = set()  # restored steps whose files were named
        self._is_cached = any(step.cache or step.kind == "group" for step in state.plan.steps)

    def declared(self, name: str) -> Declared:
        """Return the files that a running step declares."""
        step = self._state.steps[name].step
        begun = (
            self._steps.filing.begun(name) if step.inputs or step.makes or step.writes or step.cache else None
        )
        made = () if begun is None else (begun.produces, *begun.kept.values(), begun.writes)
        if step.reports:
            made = (*made, *self._steps.reported().begun(name))
        there = (*begun.read, *begun.made, *begun.others) if begun else ()
        return Declared(there=there, made=tuple([each for each in made if each.texts]))

    def from_before(self) -> Iterator[str]:
        """Yield the files that completed steps of a resumed run made."""
        for each in self._state.steps.values():
            for attempt in each.attempts:
                if attempt.ended:
                    yield from [row["path"] for row in attempt.ended.files if row["op"] in MADE]
            if each.status == "completed":  # the ledger lists a thousand of them at most
                texts = _plain([*each.step.makes, *each.step.writes])
                yield from matching(self._steps.place.workspace, patterns_of(texts), self._steps.place.hidden)
        yield from self.restored()

    def restored(self) -> Iterator[str]:
        """Yield the files that came from the cache of results since the last call."""
        if not self._is_cached:
            return
        for name, each in self._state.steps.items():
            if each.restored is not None and name not in self._seen:
                self._seen.add(name)
                yield from [row["path"] for row in each.restored.files if "path" in row]

    def reader(self, path: str) -> str:
        """Return a step that has not ended and declares that it reads a file; empty for none."""
        for name, each in self._state.steps.items():
            inputs = _plain(each.step.inputs)
            if inputs and each.status not in (*ENDED, "running"):
                try:
                    if patterns_of(inputs).takes(path):
                        return name
                except EvaluationError:
                    continue
        return ""


def _plain(texts: Sequence[Text]) -> list[str]:
    return [text for text in texts if isinstance(text, str)]


_CONNECTING = 60.0  # seconds for the scheduler and every worker to answer


def cluster_of(plan: Plan, session: Host, run: str) -> Cluster:
    """Return the cluster that the caller named; raises InvalidInput when it or the plan cannot be used."""
    given = session.settings.executor
    address = scheduler_address(given)
    if importlib.util.find_spec("distributed") is None:
        raise InvalidInput(f"--executor {given} needs the extra dask: pip install 'planrun[dask]'")
    services = [step.id for step in plan.steps if _template(step).service is not None]
    if services:
        raise InvalidInput(
            f"--executor {given}: services run only on planrun's own machine, and steps on workers cannot reach them: "
            f"{', '.join(services)}; use --executor local"
        )
    return Cluster(address, plan, session, run)


def _template(step: Step) -> Step:
    return step.grouping.template if step.kind == "group" and step.grouping.template else step


class Cluster:
    """One run's connection to a cluster."""

    def __init__(self, address: str, plan: Plan, session: Host, run: str) -> None:
        self._given = session.settings.executor
        home = records.home(session.workspace)
        name = f"{run}-{os.urandom(4).hex()}"
        try:
            self._folder, marker = folder.make(home, name)
        except OSError as error:
            raise RecordsLost(f"cannot write into {home}: {error.strerror}") from None
        self._env = session.inherited(plan)
        asked = self._asked = session.settings.cluster_store
        # A folder or URL by which large files move; empty: all of them over the connections to workers.
        self._store = "" if asked == "connection" else asked
        self._client = ClientProcess()
        self._is_closed = False
        self._client.send(
            {
                "address": address,
                "session": name,
                "run": run,
                "folder": self._folder,
                "marker": marker,
                "lease": cluster.LEASE,
                "sends": bool(asked),
                "store": self._store
                if "://" in self._store
                else os.path.abspath(self._store)
                if self._store
                else "",
                "workspace": session.workspace,
                "env": self._env,
                "masked": session.masks is not None,
                "always_shell": session.settings.always_shell,
            }
        )
        try:
            self._facts = self._ready(session)
            for step in plan.steps:
                missing = [label for label in _template(step).runs_on if label not in self._facts["labels"]]
                if missing:
                    known = ", ".join(self._facts["labels"]) or "none"
                    raise InvalidInput(
                        f"{plan.file}:{step.line}: the step {step.id} runs on workers with {', '.join(missing)}, and "
                        f"no worker of {self._given} has it; labels of its workers: {known}"
                    )
        except BaseException:
            self.close()
            raise

    @property
    def slots(self) -> int:
        """How many attempts the workers can run at once."""
        return int(self._facts["slots"])

    def recorded(self) -> dict[str, Any]:
        """Return the option of the ledger."""
        return {
            "executor": {
                "address": self._given,
                "workers": self._facts["workers"],
                "slots": self.slots,
                "python": platform.python_version(),
                **({"files": "sent"} if self._facts["apart"] else {}),
                **({"store": self._asked} if self._asked and masked(self._asked) == self._asked else {}),
            }
        }

    def _ready(self, session: Host) -> Mapping[str, Any]:
        """Wait until every worker was checked; raises InvalidInput, Interrupted."""
        for said in self._client.wait(_CONNECTING, session.inbox.fd):
            if "ready" in said:
                ready: Mapping[str, Any] = said["ready"]
                return ready
            if "unusable" in said:
                raise InvalidInput(f"--executor {session.settings.executor}: {said['unusable']}")
        if session.inbox.drain() and (signals := session.inbox.take()):
            raise Interrupted(signals[0], "stopped while connecting to the cluster")
        raise InvalidInput(f"--executor {session.settings.executor}: the cluster does not answer")

    def executor(self, base: LocalPart, steps: Steps, state: RunState, session: Host) -> ClusterExecutor:
        """Return the executor of the run, over the one for what must run here."""
        place = steps.place
        context = RemoteContext(
            env=self._env,
            secrets=place.secrets,
            masks=place.masks,
            labels_of=lambda name: state.steps[name].step.runs_on if name in state.steps else (),
            stamp=session.clock.stamp,
            files=self._moving(steps, state),
        )
        return ClusterExecutor(base, self._client, context)

    def _moving(self, steps: Steps, state: RunState) -> Moving | None:
        """Return the files of the run; None where all workers share its folder."""
        if not self._facts["apart"]:
            return None

        return moving_of(steps, state, self._folder, has_store=bool(self._store))

    def close(self) -> None:
        """End the client, if the executor has not, and remove the folder when nothing can run on workers."""
        if self._is_closed:
            return
        self._is_closed = True
        self._client.end(_PATIENCE)
        folder.remove(self._folder)


_PATIENCE = 4.0  # seconds for runners to end
