"""What the agents of a run share: how events are recorded, who answers, what may be spent, who decides."""

from __future__ import annotations

from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Literal, Protocol

    from planrun.actions.environment import RunEnvironment
    from planrun.agents.judging import Judge
    from planrun.agents.shared import Shared
    from planrun.llm.budget import Budget
    from planrun.llm.projectfile import ProjectFile
    from planrun.model.events import Event
    from planrun.model.job import Job
    from planrun.model.planning import Llm
    from planrun.model.state import RunState
    from planrun.ports import Clock, Masks, Model

    class Recorder(Protocol):
        """The part of a scheduler that records."""

        state: RunState

        def emit(self, event: Event) -> None:
            """Apply an event to the state, append it to the ledger and pass it to the sinks."""

        def sync(self) -> None:
            """Make every recorded event survive a power cut."""

    class Processes(Protocol):
        """The part of an executor that runs the processes of tools."""

        def start(self, job: Job) -> None:
            """Start a process."""

        def stop(self, step: str, reason: Literal["cancelled", "timeout"]) -> None:
            """End a process with TERM, and KILL after the grace time."""


class AgentModels(Record):
    """The models of a run: `opened` returns one that answers a single agent, `budget` what the run has left."""

    llm: Llm
    opened: Callable[[], Model]
    budget: Callable[[RunState], Budget]
    hidden: tuple[str, ...] = ()  # folders of recordings, as seen from the workspace
    project: ProjectFile | None = None  # what models should know of the project
    override: str = ""  # the model of the command line, instead of that of any step


class AgentContext(Record):
    """All that the agents of a run need; `shared`: what they share, from the first agent on."""

    models: AgentModels
    judge: Judge
    place: RunEnvironment
    clock: Clock
    masks: Masks | None
    decisions: Mapping[str, str] = {}
    shared: Shared | None = None
