"""The settings of a run, with the defaults that the command line and Python share."""

from __future__ import annotations

import os

from planrun.errors import InvalidInput
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Literal, Protocol

    class Beside(Protocol):
        """What works beside a run, and is closed at its end."""

        def close(self) -> None:
            """Come to an end soon; raises nothing."""


class Settings(Record):
    """Options of `execute` and `resume`; texts are not checked yet."""

    params: tuple[str, ...] = ()  # name=value
    only: tuple[str, ...] = ()
    start: tuple[str, ...] = ()  # --from
    until: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    tag: tuple[str, ...] = ()
    shard: str = ""  # N/M: the part of the steps that this machine runs
    legs: tuple[str, ...] = ()  # groups whose instances are split into shards
    timings: str = ""  # durations for the split into shards
    skip_abstract: bool = False  # leave out steps without an action
    jobs: int | None = None
    strict: bool = False
    fail_on_flaky: bool = False
    no_rollback: bool = False  # no rollback when the run fails
    always_shell: bool = False  # bash starts also for a script that is one plain command
    executor: str = ""  # where steps run: empty or local, or the address of a cluster
    cluster_store: str = ""  # how files reach workers: empty: as they can, connection, or a folder or URL
    sandbox_backend: str = "auto"  # what confines steps with a sandbox
    report_dir: str = "planrun-out"
    html: bool = False  # also write report.html
    events: str = ""  # a file, or the number of a descriptor, that gets the events as JSON Lines
    on_event: Callable[[dict[str, Any]], None] | None = None  # of a Python program: called with each event
    otel: bool = False  # send spans to a collector while it runs
    beside: Callable[[str], Beside] | None = None  # starts, for the folder of the run, what works beside it
    junit_dialect: str = "default"
    json: bool = False
    color: Literal["auto", "always", "never"] = "auto"
    output: Literal["auto", "stream", "group", "failed", "quiet"] = (
        "auto"  # what is shown of what steps print
    )
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    verbose: bool = False  # show details that few runs need
    in_program: bool = False  # a Python program runs the plan, and stdout belongs to it
    ci_masks: bool = False  # the CI system is told to mask the plan's secrets
    no_input: bool = False  # ask nothing on the terminal
    cache: bool = True  # use compiled plans and cached step results
    cache_store: str = ""  # a shared folder or URL of step results
    publish: str = ""  # a folder or URL where a team lists its runs
    locked: bool = False  # only the plan in the lockfile may run
    approvals: tuple[str, ...] = ()  # files
    wait_lock: str = ""  # a duration; empty: do not wait
    decide: tuple[str, ...] = ()  # step=value: answers to questions of steps
    decisions: str = ""  # a file of such answers
    policy: str = ""  # a file; a ceiling above the plan's policy
    auto_approve: str = ""  # a level, in place of the plan's
    generation: Mapping[str, Any] | None = (
        None  # of `generate --execute`: the usage of the model that wrote the plan
    )
    expand: bool = False  # a model makes abstract steps concrete before the run
    propose: bool = False  # the patches of agents are kept, and not applied
    no_llm: bool = False  # no model is called, whatever plan and command line state
    llm_model: str = ""  # in place of the plan's
    llm_base_url: str = ""  # empty: that of the environment, or Anthropic's
    llm_record: str = ""  # a folder for recordings of model answers
    llm_replay: str = ""  # a folder of recordings; then no model is called
    llm_prices: str = ""  # a file; empty: planrun's own table
    max_tokens: int | None = None  # budget of model calls, in place of the plan's limits
    max_usd: float | None = None
    max_turns: int | None = None
    search: bool = False  # failures are replanned by search, without a model
    algorithm: str = ""  # of a search; empty: the plan's
    thoroughness: str = ""  # of a search, in place of the plan's numbers
    seed: int | None = None  # of a search
    candidates: int | None = None  # steps that a model may offer to a search, in place of the plan's
    no_persist: bool = False  # no records are kept of a run that completed
    remember_plans: bool = False  # plans that completed are kept for goals alike
    stored_runs: int = 0  # older ones that ended are deleted after the run; 0: none
    run: str = ""  # the id that a queue chose for the run
    adopt: bool = False  # continue a run of another folder
    discard: bool = False  # drop the broken end of a run's ledger

    @property
    def quiet(self) -> bool:
        """Whether only failures and the result are printed."""
        return self.output == "quiet"

    @property
    def gates(self) -> bool:
        """Whether the caller gives a policy, answers or approvals."""
        return bool(self.policy or self.auto_approve or self.decide or self.decisions or self.approvals)

    def selection(self) -> dict[str, list[str]]:
        """Return the options that select steps, as they are recorded."""
        chosen = {
            "only": self.only,
            "from": self.start,
            "until": self.until,
            "skip": self.skip,
            "tag": self.tag,
        }
        return {name: list(values) for name, values in chosen.items() if values}


def settings_of(values: dict[str, Any]) -> Settings:
    """Return the settings of a command line; some of --log-level stand for --quiet."""
    if values.get("log_level") in ("warning", "error"):
        values["output"] = "quiet"
    return Settings(**values)


# Variables of CI systems for ref, commit and event; the first one that is set counts.
_REFS = ("GITHUB_REF", "CI_COMMIT_REF_NAME", "BUILD_SOURCEBRANCH", "BUILDKITE_BRANCH", "CIRCLE_BRANCH")
_SHAS = (
    "GITHUB_SHA",
    "CI_COMMIT_SHA",
    "BUILD_SOURCEVERSION",
    "BUILDKITE_COMMIT",
    "CIRCLE_SHA1",
    "GIT_COMMIT",
)
_EVENTS = ("GITHUB_EVENT_NAME", "CI_PIPELINE_SOURCE", "BUILD_REASON", "BUILDKITE_SOURCE")


def ci_context(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of `run.ci`, `run.ref`, `run.sha` and `run.event` in expressions; empty where unknown."""

    def first(names: tuple[str, ...]) -> str:
        return next((environ[name] for name in names if environ.get(name)), "")

    ci = environ.get("CI", "").lower() not in ("", "0", "false", "no")
    return {"ci": ci, "ref": first(_REFS), "sha": first(_SHAS), "event": first(_EVENTS)}


def current_folder() -> str:
    """Return the current folder; raises InvalidInput when it was removed or cannot be read."""
    try:
        return os.getcwd()
    except OSError as error:
        raise InvalidInput(f"the current folder cannot be used: {error.strerror}") from None


def default_jobs() -> int:
    """Return how many processors this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
