"""Steps that a model wrote start in a sandbox at the level of their risk class, unless a policy says otherwise."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.model.job import Job, Passage
    from planrun.model.plan import Step
    from planrun.model.sandbox import Confinement

RULE = "llm_sandbox"
_WHY = "a step that a model wrote requires a sandbox"
_KNOWN: list[tuple[str, str]] = []  # what this machine has, when it was looked for


def confined(passage: Passage, step: Step, job: Job, confinement: Confinement) -> Passage:
    """Return the passage of such a step with its job in its sandbox; a denial where there is no sandbox."""
    sandbox = confinement.of_model(job.sandbox, passage.risk or step.risk)
    if sandbox is None:
        return passage
    if job.container:
        reason = f"{_WHY}, and it runs in a container; `policy: {{llm_sandbox: off}}` lets it run"
        return passage.but(answer="deny", rule=RULE, reason=reason)
    backend, missing = sandbox.backend, ""
    if not backend:
        from planrun.executors.sandbox.probe import find  # the run needs none otherwise

        if not _KNOWN:
            _KNOWN.append(find("auto"))
        backend, missing = _KNOWN[0]
    if not backend and sandbox.require:
        reason = f"{_WHY}, and this machine has none: {missing}; `policy: {{llm_sandbox: off}}` lets it run"
        return passage.but(answer="deny", rule=RULE, reason=reason)
    return passage.but(job=job.confined(sandbox.but(backend=backend or "none")))
