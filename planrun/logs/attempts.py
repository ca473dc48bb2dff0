"""The attempts of a run that have a log, in the order of their start, and the choice of some of them."""

from __future__ import annotations

import os
import re

from planrun.app.inspect import find, known_runs
from planrun.errors import InvalidInput
from planrun.model.events import AttemptStarted
from planrun.model.record import Record
from planrun.plan.problems import did_you_mean
from planrun.reports.escape import line
from planrun.reports.facts import attempt_sentence, seconds, sentence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from planrun.model.events import AttemptEnded, Event
    from planrun.model.progress import StepState
    from planrun.model.state import RunState

LAST = "last"
_LIKE_A_RUN = re.compile(r"\d{8}-\d{6}(-[0-9a-f]*)?")
_MOST_NAMED = 20  # steps in a message


class Attempt(Record):
    """One attempt of a step; `log` is relative to the folder of the run, `ended` None while it runs."""

    step: str
    n: int
    log: str
    ended: AttemptEnded | None = None
    is_active: bool = False  # a process executes the run

    @property
    def status(self) -> str:
        """The status of the attempt: running, completed, failed, cancelled, lost."""
        if self.ended:
            return self.ended.status
        return "running" if self.is_active else "lost"

    def heading(self, part: str = "") -> str:
        """Return the attempt in words, or a check of it: `test (attempt 2, failed: exit 1, 12.3s)`."""
        first = [part] if part else []
        first += [f"attempt {self.n}"] if self.n > 1 else []
        return f"{line(self.step)} ({', '.join([*first, *self._ending()])})"

    def _ending(self) -> list[str]:
        if self.ended is None:
            return ["running" if self.is_active else "lost: planrun was killed"]
        took = seconds(self.ended.duration)
        if self.status == "completed":
            return ["completed", took]
        return [f"{self.status}: {cause_of(self.ended)}" if self.ended.reason else self.status, took]


def cause_of(ended: AttemptEnded) -> str:
    """Return why an attempt did not complete, in a few words: `exit 1`, `ran into its timeout`."""
    if ended.reason == "exit" and ended.exit_code is not None:
        return f"exit {ended.exit_code}"
    return line(ended.reason.replace("_", " ")) or attempt_sentence(ended)


class Wanted(Record):
    """Which logs: of `steps` (none: of all), of an attempt (0: the last), only of steps that failed."""

    steps: tuple[str, ...] = ()
    attempt: int = 0
    failed: bool = False


def run_and_steps(words: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Tell the run from the steps on a command line.

    The first word is a run when it is `last`, has the form of a run's id, or begins the id of one in this folder.
    Otherwise every word is a step of the last run.
    """
    if not words:
        return LAST, ()
    first = words[0]
    is_run = (
        first == LAST or _LIKE_A_RUN.fullmatch(first) or any(run.startswith(first) for run in known_runs())
    )
    return (first, tuple(words[1:])) if is_run else (LAST, tuple(words))


def folder_of(run: str) -> str:
    """Return the folder of a run; raises InvalidInput, which says what may have removed a run with a whole id."""
    try:
        return find(run)
    except InvalidInput as error:
        if _LIKE_A_RUN.fullmatch(run) and f'no run "{run}"' in str(error):
            raise InvalidInput(f"{error}; `planrun prune` deletes runs with their logs") from None
        raise


def attempts_of(events: Iterable[Event], state: RunState, *, is_active: bool) -> list[Attempt]:
    """Return the attempts that have a log, in the order of their start."""
    found = {}
    for event in events:
        if isinstance(event, AttemptStarted) and event.log:
            found[event.step, event.n] = event.log
    return [
        Attempt(step=step, n=n, log=log, ended=_end_of(state, step, n), is_active=is_active)
        for (step, n), log in found.items()
    ]


def _end_of(state: RunState, step: str, n: int) -> AttemptEnded | None:
    known = state_of_step(state, step)
    return next((each.ended for each in known.attempts if each.n == n), None) if known else None


def state_of_step(state: RunState, step: str) -> StepState | None:
    """Return a step of any version of the plan, or what undoes one."""
    return state.steps.get(step) or state.undoing.get(step) or state.dropped.get(step)


def chosen(attempts: Sequence[Attempt], state: RunState, wanted: Wanted) -> list[Attempt]:
    """Return the attempts that are wanted, in their order; raises InvalidInput for an unknown step."""
    names = named(wanted.steps, state, attempts)
    of_them = [each for each in attempts if not wanted.steps or each.step in names]
    if wanted.failed:
        failed = {
            name
            for name, step in {**state.dropped, **state.undoing, **state.steps}.items()
            if step.status == "failed"
        }
        of_them = [each for each in of_them if each.step in failed]
    if wanted.attempt:
        return [each for each in of_them if each.n == wanted.attempt]
    last = {each.step: each.n for each in of_them}
    return [each for each in of_them if each.n == last[each.step]]


def named(words: Sequence[str], state: RunState, attempts: Iterable[Attempt] = ()) -> dict[str, str]:
    """Return the steps that words name, each with the word: itself, or all members of a group; raises InvalidInput."""
    known = dict.fromkeys([*state.steps, *state.undoing, *(each.step for each in attempts)])
    found: dict[str, str] = {}
    for word in words:
        matches = [name for name in known if is_of(name, word)]
        if not matches:
            run = f"run {state.started.run}" if state.started else "this run"
            raise InvalidInput(f'no step "{word}" in {run}{_instead(word, known, attempts)}')
        found |= dict.fromkeys(matches, word)
    return found


def is_of(step: str, word: str) -> bool:
    """Whether a word names a step: by its id, or by the group that it is a member of."""
    return step == word or step.startswith((f"{word}[", f"{word}/"))


def _instead(word: str, known: Iterable[str], attempts: Iterable[Attempt]) -> str:
    """Return the end of the message about a word that names no step: what was meant, and what there is."""
    hint = did_you_mean(word, known)
    with_logs = list(
        dict.fromkeys(each.step for each in attempts if each.ended is None or each.ended.log_bytes)
    )
    more = f" and {len(with_logs) - _MOST_NAMED} more" if len(with_logs) > _MOST_NAMED else ""
    listed = (
        f"steps with logs: {', '.join(with_logs[:_MOST_NAMED])}{more}" if with_logs else "no step has a log"
    )
    return (f"; {hint}" if hint else "") + f"\n  {listed}"


def without_log(step: StepState) -> str:
    """Return why a step has no log, as the end of a sentence."""
    if step.status in ("pending", "waiting", "paused"):
        return "it has not started"
    if step.status in ("skipped", "blocked", "cancelled"):
        return f"it was {step.status}: {sentence(step)}"
    if step.reason == "cached":
        return "its result was taken from the cache"
    if not any(each.started.log for each in step.attempts):
        return "it runs no process" if step.attempts or step.status == "completed" else f"it {step.status}"
    return "it printed nothing"


def parts_of(rundir: str, attempt: Attempt, slots: dict[str, str]) -> list[tuple[str, str]]:
    """Return the logs of an attempt: its own, then those of its checks, each with its path relative to the run.

    The name is empty for its own, `verify 1` for the first check, `ready` for the probe of a service.
    """
    base = attempt.log.removesuffix(".log")
    folder = os.path.dirname(base)
    stem = os.path.basename(base) + "."
    names = {
        os.path.basename(path) for path in slots if os.path.dirname(path) == os.path.join(rundir, folder)
    }
    try:
        names.update(os.listdir(os.path.join(rundir, folder)))
    except OSError:
        pass
    parts = []
    for name in names:
        middle = name.removeprefix(stem).removesuffix(".log")
        if (
            name.startswith(stem)
            and name.endswith(".log")
            and (match := re.fullmatch(r"(verify|ready)(\d*)", middle))
        ):
            parts.append((match[1], int(match[2] or 0), f"{folder}/{name}"))
    return [("", attempt.log)] + [
        (f"{kind} {number}" if number else kind, log) for kind, number, log in sorted(parts)
    ]
