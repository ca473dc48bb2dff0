"""The process of `web_fetch`: which hosts it may ask, and its sandbox, which writes nothing."""

from __future__ import annotations

from planrun.model.plan import Sandbox
from planrun.model.sandbox import tightened

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.agents.loop import AgentRun
    from planrun.model.job import Job

_ALLOWED = "PLANRUN_AGENT_WEB"  # `planrun.tools.web.ALLOWED`


def hosts_of(run: AgentRun) -> tuple[str, ...]:
    """Return the hosts that the step names and every sandbox of a policy allows."""
    found = Sandbox(level="read-only", network="hosts", hosts=tuple(run.agent["web"]))
    confinement = run.context.place.confinement
    for ceiling in (*confinement.ceilings, *confinement.for_models) if confinement else ():
        found = tightened(found, ceiling)
    return found.hosts if found.network == "hosts" else ()


def confined(run: AgentRun, job: Job) -> Job:
    """Return the process in its sandbox. It has a network, since it resolves names and looks at addresses itself."""
    job = run.confined(job, "read-only", ())
    sandbox = job.sandbox.but(network="any", hosts=()) if job.sandbox is not None else None
    return job.but(sandbox=sandbox, env={**job.env, _ALLOWED: ",".join(hosts_of(run))})
