"""The order of the jobs of an attempt with hooks. Loaded for plans that have any."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from planrun.model.job import Job, Outcome

_STATUS = ("PLANRUN_STATUS", "PLANRUN_REASON", "PLANRUN_EXIT_CODE")


def in_order(job: Job) -> Job:
    """Return the job that starts first, with all others in the order in which they run."""
    first = [each for each in job.following if each.hook == "before"]
    if not first:
        return job
    others = tuple([each for each in job.following if each.hook != "before"])
    return first[0].but(following=(*first[1:], job.but(following=()), *others))


def after_failure(jobs: tuple[Job, ...]) -> tuple[Job, ...]:
    """Return the jobs that still run when an attempt has failed."""
    return tuple([job for job in jobs if job.hook == "after"])


def next_jobs(following: tuple[Job, ...], concluded: Outcome) -> tuple[Job, ...]:
    """Return what an attempt runs next: after a failure only its hooks, which are told how it went."""
    if concluded.status != "completed":
        following = after_failure(following) if concluded.status == "failed" else ()
    if following and following[0].hook == "after":
        following = (with_status(following[0], concluded), *following[1:])
    return following


def with_status(job: Job, outcome: Outcome) -> Job:
    """Return a hook after a step with how the attempt went so far in its environment."""
    code = "" if outcome.exit_code is None else str(outcome.exit_code)
    return job.but(env={**job.env, **dict(zip(_STATUS, (outcome.status, outcome.reason, code), strict=True))})
