"""Steps that a model wrote start in a sandbox at the level of their risk class, unless a policy says otherwise."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.model.job import Job, Passage
    from planrun.model.plan import Sandbox, Step
    from planrun.model.sandbox import Confinement

RULE = "llm_sandbox"
_WHY = "a step that a model wrote requires a sandbox"
_KNOWN: list[tuple[str, str]] = []  # what this machine has, when it was looked for


def confined(passage: Passage, step: Step, job: Job, confinement: Confinement) -> Passage:
    """Return the passage of such a step with its job in its sandbox; a denial where there is no sandbox."""
    sandbox = confinement.of_model(job.sandbox, passage.risk or step.risk)
    if sandbox is None:
        return passage
    if reason := _refusal(sandbox, in_container=bool(job.container)):
        return passage.but(answer="deny", rule=RULE, reason=reason)
    backend = sandbox.backend or _found()[0]
    return passage.but(job=job.confined(sandbox.but(backend=backend or "none")))


def foreseen(step: Step, confinement: Confinement | None) -> str:
    """Return why such a step could not start on this machine, as far as its plan shows; empty: it could."""
    sandbox = confinement.of_model(None, step.risk) if confinement else None
    return _refusal(sandbox, in_container=bool(step.container)) if sandbox else ""


def _refusal(sandbox: Sandbox, *, in_container: bool) -> str:
    if in_container:
        return f"{_WHY}, and it runs in a container; `policy: {{llm_sandbox: off}}` lets it run"
    if sandbox.backend or not sandbox.require or _found()[0]:
        return ""
    return f"{_WHY}, and this machine has none: {_found()[1]}; `policy: {{llm_sandbox: off}}` lets it run"


def _found() -> tuple[str, str]:
    from planrun.executors.sandbox.probe import find  # the run needs none otherwise

    if not _KNOWN:
        _KNOWN.append(find("auto"))
    return _KNOWN[0]
