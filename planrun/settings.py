"""What a caller decides about a run, with the defaults that the command line and Python share."""

from __future__ import annotations

import os

from planrun.errors import InvalidInput
from planrun.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Literal


class Settings(Record):
    """Options of `execute` and `resume`; texts as given, not checked yet."""

    params: tuple[str, ...] = ()  # name=value
    only: tuple[str, ...] = ()
    start: tuple[str, ...] = ()  # --from
    until: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    tag: tuple[str, ...] = ()
    skip_abstract: bool = False  # leave steps out that have no action
    jobs: int | None = None
    strict: bool = False
    fail_on_flaky: bool = False
    no_rollback: bool = False  # nothing is undone when the run fails
    report_dir: str = "planrun-out"
    events: str = ""  # a file, or the number of a descriptor, that gets what happens as JSON Lines
    on_event: Callable[[dict[str, Any]], None] | None = None  # of a Python program: called with what happens
    junit_dialect: str = "default"
    json: bool = False
    color: Literal["auto", "always", "never"] = "auto"
    logs: Literal["auto", "all", "failed", "none"] = "auto"
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    quiet: bool = False
    cache: bool = True  # compiled plans and earlier results of steps are used
    cache_store: str = ""  # a folder of results that others use, too
    locked: bool = False  # only what the lock beside the plan holds may run
    approvals: tuple[str, ...] = ()  # files
    wait_lock: str = ""  # a duration; empty: do not wait
    decide: tuple[str, ...] = ()  # step=value: answers to what steps ask
    decisions: str = ""  # a file of such answers
    policy: str = ""  # a file; a ceiling that the plan cannot lift
    auto_approve: str = ""  # a level, in place of the plan's
    generation: Mapping[str, Any] | None = (
        None  # of `generate --execute`: what the model that wrote the plan used
    )
    expand: bool = False  # a model makes abstract steps concrete before anything starts
    no_llm: bool = False  # no model is asked, whatever plan and command line say besides
    llm_model: str = ""  # in place of the plan's
    llm_base_url: str = ""  # empty: that of the environment, or Anthropic's
    llm_record: str = ""  # a folder that keeps what models answer
    llm_replay: str = ""  # a folder to take answers from; then no model is asked
    llm_prices: str = ""  # a file; empty: planrun's own table
    max_tokens: int | None = None  # what models may use up, in place of the plan's limits
    max_usd: float | None = None
    max_turns: int | None = None
    run: str = ""  # the id that a queue chose for the run
    adopt: bool = False  # go on with a run that began in another folder
    discard: bool = False  # drop the broken end of a run's ledger

    @property
    def gates(self) -> bool:
        """Whether the caller says something about who is let in."""
        return bool(self.policy or self.auto_approve or self.decide or self.decisions or self.approvals)

    def selection(self) -> dict[str, list[str]]:
        """The part that chooses steps, as it is recorded."""
        chosen = {
            "only": self.only,
            "from": self.start,
            "until": self.until,
            "skip": self.skip,
            "tag": self.tag,
        }
        return {name: list(values) for name, values in chosen.items() if values}


def settings_of(values: dict[str, Any]) -> Settings:
    """Return the settings of a command line; a level of logging is short for what other options say."""
    level = values.get("log_level", "info")
    if level in ("warning", "error"):
        values["quiet"] = True
    elif level == "debug" and values.get("logs", "auto") == "auto":
        values["logs"] = "all"
    return Settings(**values)


# Where CI systems say what they are working on; the first variable that is set counts.
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
    """Return what expressions read as `run.ci`, `run.ref`, `run.sha` and `run.event`; empty where unknown."""

    def first(names: tuple[str, ...]) -> str:
        return next((environ[name] for name in names if environ.get(name)), "")

    ci = environ.get("CI", "").lower() not in ("", "0", "false", "no")
    return {"ci": ci, "ref": first(_REFS), "sha": first(_SHAS), "event": first(_EVENTS)}


def current_folder() -> str:
    """Return the folder that planrun stands in; raises InvalidInput when it was removed or may not be read."""
    try:
        return os.getcwd()
    except OSError as error:
        raise InvalidInput(f"the current folder cannot be used: {error.strerror}") from None


def default_jobs() -> int:
    """Return how many processors this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
