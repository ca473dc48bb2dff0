"""Everything that the agents of one run share, wired together for the loop that runs them."""

from __future__ import annotations

from planrun.agents.delegation import DelegationBook, scope_of
from planrun.agents.feedback import Feedback
from planrun.agents.kept import folder_of
from planrun.agents.learned import ErrorStore
from planrun.agents.memory import Author, SharedMemory
from planrun.agents.memorytool import MemoryTool
from planrun.agents.messages import Post, Roster
from planrun.agents.metrics import Metrics
from planrun.agents.predictor import files_of
from planrun.agents.reflection import Reflector, without_marks
from planrun.model.events import AgentNoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from planrun.agents.reflection import Failure, Reflection
    from planrun.agents.snapshot import Snapshot
    from planrun.model.collaboration import Change, Collaboration, Journal, Noted


class Shared:
    """What the agents of one run share.

    `stamp`: the time, as `Clock.stamp` gives it. `note` gets each event; it writes it to the ledger. The loop names the
    agent that acts by `acting` before it calls anything here. `workspace`: the folder in which files are looked for.
    """

    def __init__(
        self,
        settings: Collaboration,
        stamp: Callable[[], str],
        note: Callable[[AgentNoted], None],
        workspace: str,
    ) -> None:
        self.settings = settings
        self._stamp = stamp
        self._note = note
        self._step, self._agent = "", ""
        self._folder = folder_of(settings.memory.dir, workspace)
        self._books: dict[str, DelegationBook] = {}
        self.metrics = Metrics(settings.delegation.alpha)
        self.errors = ErrorStore()
        if settings.memory.store != "off" and self._folder:
            self.metrics.load(self._folder)
            self.errors.load(self._folder)
        self.roster = Roster(settings.delegation)
        self.memory = SharedMemory(settings.memory, stamp, self._journal("memory"))
        self.post = Post(settings.messenger, stamp, self._journal("message"))
        reflector = Reflector(settings.reflection, self.errors, lambda: files_of(workspace), workspace)
        self.reflector = reflector
        self.feedback = Feedback(reflector, self.errors, stamp, self._journal("reflection"))

    def acting(self, step: str, agent: str) -> None:
        """Name the agent that acts from now on, and its step: they stand in the events."""
        self._step, self._agent = step, agent

    def restore(self, noted: Noted | None) -> None:
        """Take up what the ledger of a resumed run has; writes nothing."""
        if noted is None:
            return
        self.memory.restore(noted.of("memory"))
        self.post.restore(noted.of("message"))
        self.feedback.restore(noted.of("reflection"))
        changes = noted.of("delegation")
        for scope in dict.fromkeys([scope_of(change["id"]) for change in changes]):
            self.book(scope).restore(changes, self.metrics)

    def end_lost(self, noted: Noted | None) -> None:
        """End what planrun was killed in: delegations and messages whose agents are gone."""
        if noted is None:
            return
        for row in noted.delegations.rows():
            if row["result"] == "running":
                self.acting(row["step"], row["agent"])
                self.book(scope_of(row["id"])).end(row["id"], ok=False, seconds=0.0, metrics=self.metrics)
        for row in noted.messages.rows():
            if row["status"] == "waiting":
                self.acting(row["step"], row["agent"])
                self.post.agent_ended(row["from"])

    def book(self, scope: str) -> DelegationBook:
        """Return the book of the agent of a step, whose id is `scope`, and of those below it."""
        if scope not in self._books:
            book = DelegationBook(scope, self.settings.delegation, self._stamp, self._journal("delegation"))
            self._books[scope] = book
        return self._books[scope]

    def after_tool(self, agent: str, failure: Failure, status: str) -> Reflection | None:
        """Take the result of a call of a tool; returns what is known about its failure, None for nothing.

        `failure` has the call and its output, whatever `status` is: done, failed, denied or unknown.
        """
        if status == "done":
            self.feedback.succeeded(agent, failure.tool, failure.args)
        elif status in ("failed", "denied"):
            return self.feedback.failed(agent, failure.but(message=without_marks(failure.message)))
        return None

    def memory_tool(self, step: str, agent: str) -> MemoryTool:
        """Return the tool `memory` of an agent."""
        return MemoryTool(self.memory, Author(step=step, agent=agent))

    def snapshot(self, snapshot: Snapshot) -> None:
        """Record a snapshot that is handed from one agent or phase to the next."""
        self._journal("snapshot")(snapshot.as_data())

    def save(self, since: str = "") -> None:
        """Add what this run learned to what is kept, where `store: write` allows it; raises RecordsLost.

        `since`: when an earlier process of the run saved what it had learned; "" where none did.
        """
        if self.settings.memory.store == "write" and self._folder:
            self.metrics.save(self._folder, since)
            self.errors.save(self._folder, self._stamp(), since)

    def _journal(self, kind: str) -> Journal:
        def journal(change: Change) -> None:
            self._note(
                AgentNoted(at=self._stamp(), step=self._step, agent=self._agent, kind=kind, change=change)
            )

        return journal
